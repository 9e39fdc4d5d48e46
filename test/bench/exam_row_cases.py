"""The kinds of `exam_rows`."""

from __future__ import annotations

import exam_rows as kernels
import torch
import triton_exam_rows as rivals
from exam_case import FLOATS, FP8, HALVES, MOST_FP8, blocks, ours, power, row_warps, theirs
from unseen_case import Kind, Sizes, Tensors, cdiv, each
from unseen_product_cases import wide


def _matrix(
    s: object, low: int, high: int, step: int = 1, types: tuple[str, ...] = HALVES
) -> Sizes:
    n = s.log(low, high, step)
    return {"m": max(2, s.rows(n, 2**25)), "n": n, "t": s.of(types)}


def _add_norm(t: Tensors, s: Sizes) -> Tensors:
    x, residual, gain = wide(t, "x", "residual", "gain")
    total = x + residual
    v = total * torch.rsqrt((total * total).mean(1, keepdim=True) + 1e-5) * gain
    scales = v.abs().max(1).values / MOST_FP8
    return {"residual": total, "y": v / scales[:, None], "scales": scales}


ADD_NORM = Kind(
    "add_norm_fp8",
    lambda s: _matrix(s, 512, 12288, 8),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"]),
        "residual": r.normal(s["t"], s["m"], s["n"]),
        "gain": r.normal(s["t"], s["n"]),
        "y": r.out(getattr(torch, FP8), s["m"], s["n"]),
        "scales": r.out("f32", s["m"]),
    },
    ours(kernels.add_norm_fp8, "x residual gain y scales 1e-5", N="n"),
    theirs(
        rivals.add_norm_fp8, "x residual gain y scales n 1e-5", lambda s, c: s["m"],
        N=lambda s: power(s["n"]),
    ),
    row_warps("n"),
    _add_norm,
    tolerance=5e-2,
    added=("residual",),
)  # fmt: skip


def _gated(t: Tensors, s: Sizes) -> Tensors:
    (x,) = wide(t, "x")
    a, b = x.chunk(2, 1)
    v = (a * torch.sigmoid(a) * b).view(s["m"], -1, 128)
    scales = v.abs().max(2).values / MOST_FP8
    return {"y": (v / scales[:, :, None]).view(s["m"], s["n"]), "scales": scales}


GATED = Kind(
    "gated_block_fp8",
    lambda s: _matrix(s, 512, 14336, 128),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], 2 * s["n"]),
        "y": r.out(getattr(torch, FP8), s["m"], s["n"]),
        "scales": r.out("f32", s["m"], s["n"] // 128),
    },
    ours(kernels.gated_block_fp8, "x y scales"),
    theirs(
        rivals.gated_block_fp8, "x y scales n", lambda s, c: (cdiv(s["n"], 128 * c["G"]), s["m"]),
        GROUP=128,
    ),
    lambda s: each(G=(4, 8, 8, 16, 32), num_warps=(4, 4, 8, 4, 8)),
    _gated,
    tolerance=5e-2,
)  # fmt: skip


def _focal(t: Tensors, s: Sizes) -> Tensors:
    (x,) = wide(t, "x")
    one = torch.nn.functional.one_hot(t["labels"].long(), s["n"]).double()
    p = torch.sigmoid(x)
    miss = one * (1 - p) + (1 - one) * p
    bce = x.clamp(min=0) - one * x + torch.log1p(torch.exp(-x.abs()))
    return {"y": ((one * 0.25 + (1 - one) * 0.75) * miss * miss * bce).sum(1)}


FOCAL = Kind(
    "focal_loss",
    lambda s: _matrix(s, 20, 4096, types=FLOATS),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"]),
        "labels": r.whole(0, s["n"], s["m"]),
        "y": r.out("f32", s["m"]),
    },
    ours(kernels.focal_loss, "x labels y 0.25"),
    theirs(rivals.focal_loss, "x labels y n 0.25", lambda s, c: s["m"]),
    lambda s: [
        {"B": b, "num_warps": w}
        for b, w in ((128, 1), (256, 1), (512, 2), (1024, 4), (2048, 4), (2048, 8))
        if b < max(257, 2 * power(s["n"]))
    ],
    _focal,
)


def _distil(t: Tensors, s: Sizes) -> Tensors:
    student, teacher = wide(t, "student", "teacher")
    return {"dx": ((student / 2).softmax(1) - (teacher / 2).softmax(1)) / 2}


DISTIL = Kind(
    "distil_slope",
    lambda s: {"m": s.log(64, 4096), "n": s.log(8192, 160000), "t": s.of(HALVES)},
    lambda r, s: {
        "student": r.normal(s["t"], s["m"], s["n"], by=2),
        "teacher": r.normal(s["t"], s["m"], s["n"], by=2),
        "dx": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.distil_slope, "student teacher dx 2.0"),
    theirs(rivals.distil_slope, "student teacher dx n 2.0", lambda s, c: s["m"]),
    blocks(2048, 4096, 8192, counts=(8, 16)),
    _distil,
)


def _min_p(t: Tensors, s: Sizes) -> Tensors:
    x, noise = wide(t, "x", "noise")
    bar = x.max(1, keepdim=True).values + 0.7 * torch.log(torch.tensor(0.05, dtype=torch.float64))
    score = x / 0.7 - torch.log(-torch.log(noise))
    return {"y": torch.where(x >= bar, score, float("-inf")).argmax(1).double()}


MIN_P = Kind(
    "min_p_sample",
    lambda s: {"m": s.log(1, 512), "n": s.log(8192, 160000), "t": s.of(HALVES)},
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"], by=3),
        "noise": r.positive(s["m"], s["n"]) * 0.8,
        "y": r.out(torch.int32, s["m"]),
    },
    ours(kernels.min_p_sample, "x noise y 0.7 0.05"),
    theirs(rivals.min_p_sample, "x noise y n 0.7 0.05", lambda s, c: s["m"]),
    blocks(2048, 4096, 8192, counts=(8, 16)),
    _min_p,
)


def _routed(t: Tensors, s: Sizes) -> Tensors:
    high, which = wide(t, "x")[0].topk(8, 1)
    counts = torch.bincount(which.flatten(), minlength=s["n"])
    return {"weights": high.softmax(1), "experts": which.double(), "counts": counts.double()}


ROUTE = Kind(
    "route_tokens",
    lambda s: {"m": s.log(128, 65536), "n": s.of((32, 64, 128, 256))},
    lambda r, s: {
        "x": r.normal("f32", s["m"], s["n"]),
        "weights": r.out("f32", s["m"], 8),
        "experts": r.out(torch.int32, s["m"], 8),
        "counts": r.whole(0, 1, s["n"]),
    },
    ours(kernels.route_tokens, "x weights experts counts", E="n"),
    theirs(
        rivals.route_tokens, "x weights experts counts m", lambda s, c: cdiv(s["m"], c["ROWS"]),
        E="n", K=8,
    ),
    lambda s: each(ROWS=(4, 8, 8, 16, 32), num_warps=(1, 1, 2, 4, 4)),
    _routed,
    added=("counts",),
)  # fmt: skip

RUNNING = Kind(
    "running_logsumexp",
    lambda s: _matrix(s, 300, 20000, types=FLOATS),
    lambda r, s: {"x": r.normal(s["t"], s["m"], s["n"], by=3), "y": r.out("f32", s["m"], s["n"])},
    ours(kernels.running_logsumexp, "x y"),
    theirs(rivals.running_logsumexp, "x y n", lambda s, c: s["m"]),
    blocks(512, 1024, 2048, counts=(2, 4, 8)),
    lambda t, s: {"y": torch.logcumsumexp(t["x"].double(), 1)},
)


def _restarted(t: Tensors, s: Sizes) -> Tensors:
    sums = t["x"].double().cumsum(1)
    before = sums - t["x"].double()
    at = torch.where(t["starts"] != 0, torch.arange(s["n"], device=sums.device), 0)
    first = at.cummax(1).values
    begun = (t["starts"].cumsum(1) > 0).double()
    return {"y": sums - before.gather(1, first) * begun}


RESTARTED = Kind(
    "restarted_sums",
    lambda s: _matrix(s, 300, 20000, types=FLOATS),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"]),
        "starts": (r.positive(s["m"], s["n"]) < 0.11).to(torch.int8),
        "y": r.out("f32", s["m"], s["n"]),
    },
    ours(kernels.restarted_sums, "x starts y"),
    theirs(rivals.restarted_sums, "x starts y n", lambda s, c: s["m"]),
    blocks(512, 1024, 2048, counts=(2, 4, 8)),
    _restarted,
)


def _recurrent(t: Tensors, s: Sizes) -> Tensors:
    a, x = wide(t, "a", "x")
    state, out = torch.zeros_like(x[:, 0]), torch.empty_like(x)
    for step in range(s["n"]):
        state = a[:, step] * state + x[:, step]
        out[:, step] = state
    return {"y": out}


RECURRENCE = Kind(
    "linear_recurrence",
    lambda s: {
        "m": s.log(1, 16), "n": s.log(200, 4096), "k": s.log(128, 4096, 8), "t": s.of(FLOATS),
    },
    lambda r, s: {
        "a": r.positive(s["m"], s["n"], s["k"]).to(r.normal(s["t"], 1).dtype) * 0.9,
        "x": r.normal(s["t"], s["m"], s["n"], s["k"]),
        "y": r.out("f32", s["m"], s["n"], s["k"]),
    },
    ours(kernels.linear_recurrence, "a x y"),
    theirs(
        rivals.linear_recurrence, "a x y n k", lambda s, c: (cdiv(s["k"], c["BC"]), s["m"])
    ),
    lambda s: each(
        BT=(32, 64, 64, 128, 32, 64), BC=(32, 32, 16, 16, 16, 64), num_warps=(2, 4, 4, 4, 1, 8)
    ),
    _recurrent,
)  # fmt: skip


def _group_normed(t: Tensors, s: Sizes) -> Tensors:
    x, gain, bias = wide(t, "x", "gain", "bias")
    return {"y": torch.nn.functional.silu(torch.nn.functional.group_norm(x, s["g"], gain, bias))}


GROUP_NORM = Kind(
    "group_norm_silu",
    lambda s: {
        "m": s.log(1, 16), "g": s.of((8, 16, 32)), "c": s.of((4, 10, 16, 20)),
        "n": s.of((8, 16, 28, 32, 56, 64, 100)) ** 2, "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["g"] * s["c"], s["n"]),
        "gain": r.normal(s["t"], s["g"] * s["c"]),
        "bias": r.normal(s["t"], s["g"] * s["c"]),
        "y": r.out(s["t"], s["m"], s["g"] * s["c"], s["n"]),
    },
    ours(kernels.group_norm_silu, "x gain bias y 1e-5", G="g", C="c"),
    theirs(
        rivals.group_norm_silu, "x gain bias y n 1e-5", lambda s, c: (s["g"], s["m"]),
        G="g", C="c", CP=lambda s: power(s["c"]),
    ),
    blocks(64, 256, 512, counts=(4, 8, 16)),
    _group_normed,
)  # fmt: skip

KINDS = (
    ADD_NORM, GATED, FOCAL, DISTIL, MIN_P, ROUTE, RUNNING, RESTARTED, RECURRENCE, GROUP_NORM,
)  # fmt: skip
