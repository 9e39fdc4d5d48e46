"""The kinds of `exam_products`."""

from __future__ import annotations

from typing import Any

import exam_products as kernels
import torch
import triton_exam_products as rivals
from exam_case import FP8, HALVES, ours, power, theirs, warps
from unseen_case import Config, Kind, Maker, Sizes, Tensors, cdiv, each, product_tiles, tiles
from unseen_product_cases import grouped, wide


def _product(rows: tuple[int, int], columns: tuple[int, int], inner: tuple[int, int]) -> Any:
    def draw(s: Any) -> Sizes:
        found = {"m": s.log(*rows), "n": s.log(*columns, 8), "k": s.log(*inner, 8)}
        return {**found, "t": s.of(HALVES)}

    return draw


def _by_size(s: Sizes) -> list[Config]:
    return product_tiles(s["m"], s["n"])


def _gelu(t: Tensors, s: Sizes) -> Tensors:
    x, w, bias, residual = wide(t, "x", "w", "bias", "residual")
    v = torch.nn.functional.gelu(x @ w.T + bias, approximate="tanh")
    return {"y": v + residual}


GELU = Kind(
    "gelu_product",
    _product((1, 8192), (256, 8192), (256, 8192)),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]),
        "w": r.normal(s["t"], s["n"], s["k"], by=s["k"] ** -0.5),
        "bias": r.normal(s["t"], s["n"]), "residual": r.normal(s["t"], s["m"], s["n"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.gelu_product, "x w bias residual y"),
    grouped(rivals.gelu_product, "x w bias residual y", "m n k"),
    _by_size,
    _gelu,
)  # fmt: skip


def _losses(t: Tensors, s: Sizes) -> Tensors:
    x, w = wide(t, "x", "w")
    logits = x @ w.T
    return {"y": torch.nn.functional.cross_entropy(logits, t["labels"].long(), reduction="none")}


LOSSES = Kind(
    "vocabulary_losses",
    lambda s: {
        "m": s.log(256, 8192), "n": s.log(2000, 50000), "k": s.log(128, 2048, 8),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]),
        "w": r.normal(s["t"], s["n"], s["k"], by=s["k"] ** -0.5),
        "labels": r.whole(0, s["n"], s["m"]), "y": r.out("f32", s["m"]),
    },
    ours(kernels.vocabulary_losses, "x w labels y"),
    theirs(rivals.vocabulary_losses, "x w labels y m n k", lambda s, c: cdiv(s["m"], c["BM"])),
    lambda s: tiles(
        (128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (64, 64, 64, 4, 4), (128, 64, 64, 4, 3),
        (32, 128, 64, 4, 4),
    ),
    _losses,
)  # fmt: skip


def _normed(t: Tensors, s: Sizes) -> Tensors:
    x, gain, w = wide(t, "x", "gain", "w")
    return {"y": x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5) * gain @ w.T}


NORMED = Kind(
    "norm_product",
    _product((1, 8192), (256, 8192), (256, 8192)),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]), "gain": r.normal(s["t"], s["k"]),
        "w": r.normal(s["t"], s["n"], s["k"]), "y": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.norm_product, "x gain w y 1e-5"),
    grouped(rivals.norm_product, "x gain w y", "m n k", 1e-5),
    _by_size,
    _normed,
)  # fmt: skip

GATHERED = Kind(
    "gathered_product",
    lambda s: {**_product((16, 16384), (128, 4096), (128, 4096))(s), "e": s.log(100, 20000)},
    lambda r, s: {
        "x": r.normal(s["t"], s["e"], s["k"]), "rows": r.whole(0, s["e"], s["m"]),
        "w": r.normal(s["t"], s["k"], s["n"]), "y": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.gathered_product, "x rows w y"),
    grouped(rivals.gathered_product, "x rows w y", "m n k"),
    _by_size,
    lambda t, s: {"y": t["x"].double()[t["rows"].long()] @ t["w"].double()},
    library=lambda t, s: lambda: torch.matmul(t["x"][t["rows"]], t["w"], out=t["y"]),
)  # fmt: skip


def _fp8(r: Maker, *shape: int) -> torch.Tensor:
    return r.normal("f32", *shape).to(getattr(torch, FP8))


def _spread(scales: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    whole = scales.double().repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return whole


def _in_blocks(s: Any) -> Sizes:
    return {"m": s.log(1, 8192), "n": s.log(512, 8192, 128), "k": s.log(512, 8192, 128)}


def _one_scale(s: Sizes) -> list[Config]:
    found = [one for one in product_tiles(s["m"], s["n"]) if one["BN"] <= 128]
    return [{**one, "BK": 128, "num_stages": 3} for one in found]


FP8_WEIGHTS = Kind(
    "fp8_weights",
    lambda s: {**_in_blocks(s), "t": "bf16"},
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1), "w": _fp8(r, s["n"], s["k"]),
        "scales": r.positive(s["n"] // 128, s["k"] // 128), "y": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.fp8_weights, "x w scales y"),
    grouped(rivals.fp8_weights, "x w scales y", "m n k"),
    _one_scale,
    lambda t, s: {"y": t["x"].double() @ (t["w"].double() * _spread(t["scales"], 128, 128)).T},
)  # fmt: skip

FP8_BLOCKS = Kind(
    "fp8_blocks",
    _in_blocks,
    lambda r, s: {
        "x": _fp8(r, s["m"], s["k"]), "of_x": r.positive(s["m"], s["k"] // 128),
        "w": _fp8(r, s["n"], s["k"]), "of_w": r.positive(s["n"] // 128, s["k"] // 128),
        "y": r.out("bf16", s["m"], s["n"]),
    },
    ours(kernels.fp8_blocks, "x of_x w of_w y"),
    grouped(rivals.fp8_blocks, "x of_x w of_w y", "m n k"),
    _one_scale,
    lambda t, s: {
        "y": (t["x"].double() * _spread(t["of_x"], 1, 128))
        @ (t["w"].double() * _spread(t["of_w"], 128, 128)).T
    },
    tolerance=2e-2,
)  # fmt: skip

SMALL = Kind(
    "many_small",
    lambda s: {"b": s.log(200, 20000), **{name: s.log(8, 64) for name in "mnk"}, "t": s.of(HALVES)},
    lambda r, s: {
        "x": r.normal(s["t"], s["b"], s["m"], s["k"]),
        "w": r.normal(s["t"], s["b"], s["k"], s["n"]),
        "y": r.out(s["t"], s["b"], s["m"], s["n"]),
    },
    ours(kernels.many_small, "x w y", M="m", N="n", K="k"),
    theirs(
        rivals.many_small, "x w y", lambda s, c: s["b"], M="m", N="n", K="k",
        **{f"{x}P": lambda s, x=x: max(16, power(s[x.lower()])) for x in "MNK"},
    ),
    warps(1, 2, 4),
    lambda t, s: {"y": t["x"].double() @ t["w"].double()},
    library=lambda t, s: lambda: torch.bmm(t["x"], t["w"], out=t["y"]),
)  # fmt: skip


def _strided(t: Tensors, s: Sizes) -> Tensors:
    x, w = wide(t, "x", "w")
    image = x.view(s["p"], s["h"], s["w"], s["c"]).permute(0, 3, 1, 2)
    taps = w.view(3, 3, s["c"], s["n"]).permute(3, 2, 0, 1)
    y = torch.nn.functional.conv2d(image, taps, stride=2, padding=1)
    return {"y": y.permute(0, 2, 3, 1).reshape(-1, s["n"])}


STRIDED = Kind(
    "strided_convolution",
    lambda s: {
        "p": s.log(1, 32), "h": s.of((14, 28, 32, 56, 64)), "w": s.of((14, 28, 32, 56, 64)),
        "c": s.of((32, 64, 128)), "n": s.log(32, 512, 8), "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["p"] * s["h"] * s["w"], s["c"]),
        "w": r.normal(s["t"], 9, s["c"], s["n"]),
        "y": r.out(s["t"], s["p"] * s["h"] * s["w"] // 4, s["n"]),
    },
    ours(kernels.strided_convolution, "x w y", H="h", W="w", C="c"),
    lambda t, s, c: theirs(
        rivals.strided_convolution, "x w y m n",
        lambda s, c: cdiv(s["m"], c["BM"]) * cdiv(s["n"], c["BN"]), H="h", W="w", C="c",
    )({name: t[name] for name in "xy"} | {"w": t["w"]}, {**s, "m": len(t["y"])}, c),
    lambda s: each(
        BM=(64, 128, 64, 128, 32), BN=(64, 64, 128, 128, 64), num_warps=(4, 4, 4, 8, 4),
        num_stages=(3, 3, 3, 3, 4),
    ),
    _strided,
)  # fmt: skip

DOUBLED = Kind(
    "doubled_convolution",
    lambda s: {
        "p": s.log(4, 512), "m": s.log(8, 256), "k": s.log(32, 512, 8), "n": s.log(32, 512, 8),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["p"], s["m"], s["k"]), "w": r.normal(s["t"], 2, s["k"], s["n"]),
        "y": r.out(s["t"], s["p"], 2, s["m"], s["n"]),
    },
    ours(kernels.doubled_convolution, "x w y"),
    theirs(
        rivals.doubled_convolution, "x w y m n k",
        lambda s, c: (cdiv(s["m"], c["BM"]), cdiv(s["n"], c["BN"]), 2 * s["p"]),
    ),
    _by_size,
    lambda t, s: {"y": torch.einsum("pmk,hkn->phmn", *wide(t, "x", "w"))},
    library=lambda t, s: lambda: torch.matmul(t["x"][:, None], t["w"], out=t["y"]),
)  # fmt: skip


def _symmetric(r: Maker, s: Sizes) -> Tensors:
    x = r.normal("f32", s["n"], s["n"], by=s["n"] ** -0.5)
    return {"a": (x + x.T).to(r.normal(s["t"], 1).dtype), "y": r.out(s["t"], s["n"], s["n"])}


NEWTON = Kind(
    "newton_schulz",
    lambda s: {"n": s.log(256, 6000, 8), "t": s.of(HALVES)},
    _symmetric,
    ours(kernels.newton_schulz, "a y -4.775 2.0315"),
    theirs(
        rivals.newton_schulz, "a y n -4.775 2.0315",
        lambda s, c: cdiv(s["n"], c["BM"]) * cdiv(s["n"], c["BN"]),
    ),
    lambda s: product_tiles(s["n"], s["n"]),
    lambda t, s: {"y": -4.775 * t["a"].double() + 2.0315 * t["a"].double() @ t["a"].double()},
    library=lambda t, s: lambda: torch.addmm(
        t["a"], t["a"], t["a"], beta=-4.775, alpha=2.0315, out=t["y"]
    ),
)  # fmt: skip


def _expert_rows(s: Any) -> Sizes:
    return {
        "m": 64 * s.log(2, 128), "e": s.of((4, 8, 32)), "n": s.log(256, 4096, 16),
        "k": s.log(256, 4096, 16), "t": s.of(HALVES),
    }  # fmt: skip


def _through_experts(t: Tensors, s: Sizes) -> Tensors:
    x = t["x"].double().view(-1, 64, s["k"])
    y = torch.empty(len(x), 64, s["n"], dtype=torch.float64, device=x.device)
    for e in range(s["e"]):
        own = t["experts"] == e
        g, u = x[own] @ t["gate"][e].double().T, x[own] @ t["up"][e].double().T
        y[own] = g * torch.sigmoid(g) * u
    return {"y": y.view(s["m"], s["n"])}


EXPERTS = Kind(
    "gated_experts",
    _expert_rows,
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]),
        **{
            name: r.normal(s["t"], s["e"], s["n"], s["k"], by=s["k"] ** -0.5)
            for name in ("up", "gate")
        },
        "experts": r.whole(0, s["e"], s["m"] // 64).sort().values.int(),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.gated_experts, "x up gate experts y"),
    theirs(
        rivals.gated_experts, "x up gate experts y m n k",
        lambda s, c: (s["m"] // 64, cdiv(s["n"], c["BN"])), BM=64,
    ),
    lambda s: each(
        BN=(64, 128, 128, 64, 32), BK=(64, 64, 32, 128, 64), num_warps=(4, 8, 4, 4, 4),
        num_stages=(3, 3, 4, 3, 4),
    ),
    _through_experts,
)  # fmt: skip


def _gaussian(t: Tensors, s: Sizes) -> Tensors:
    x, z = wide(t, "x", "z")
    far = (x * x).sum(1)[:, None] + (z * z).sum(1) - 2 * x @ z.T
    return {"y": torch.exp(-0.1 * far)}


GAUSSIANS = Kind(
    "gaussians",
    _product((64, 8192), (64, 8192), (16, 512)),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=2 * s["k"] ** -0.5),
        "z": r.normal(s["t"], s["n"], s["k"], by=2 * s["k"] ** -0.5),
        "y": r.out("f32", s["m"], s["n"]),
    },
    ours(kernels.gaussians, "x z y 0.1"),
    grouped(rivals.gaussians, "x z y", "m n k", 0.1),
    _by_size,
    _gaussian,
)


def _complex(t: Tensors, s: Sizes) -> Tensors:
    a, b = (torch.complex(*x) for x in wide(t, "a", "b"))
    return {"y": torch.view_as_real(a @ b).permute(2, 0, 1)}


COMPLEX = Kind(
    "complex_product",
    _product((64, 4096), (64, 4096), (64, 4096)),
    lambda r, s: {
        "a": r.normal(s["t"], 2, s["m"], s["k"]), "b": r.normal(s["t"], 2, s["k"], s["n"]),
        "y": r.out(s["t"], 2, s["m"], s["n"]),
    },
    ours(kernels.complex_product, "a b y"),
    grouped(rivals.complex_product, "a b y", "m n k"),
    lambda s: tiles(
        (64, 64, 32, 4, 3), (64, 64, 64, 4, 3), (128, 64, 32, 8, 3), (64, 128, 32, 8, 3),
        (32, 64, 64, 4, 3), (128, 128, 32, 8, 3),
    ),
    _complex,
)  # fmt: skip


def _turned(t: Tensors, s: Sizes) -> Tensors:
    x, w, cos, sin = wide(t, "x", "w", "cos", "sin")
    a, b = (x @ w.T).view(s["m"], -1, 2, s["d"] // 2).unbind(2)
    c, n = cos[:, None], sin[:, None]
    return {"y": torch.cat([a * c - b * n, a * n + b * c], 2).flatten(1)}


ROTATED = Kind(
    "rotated_product",
    lambda s: {
        "m": s.log(16, 8192), "n": (d := s.of((64, 128))) * s.of((4, 8, 32)), "d": d,
        "k": s.log(256, 4096, 8), "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]), "w": r.normal(s["t"], s["n"], s["k"]),
        **{name: r.normal("f32", s["m"], s["d"] // 2) for name in ("cos", "sin")},
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.rotated_product, "x w cos sin y", D="d"),
    theirs(
        rivals.rotated_product, "x w cos sin y m n k",
        lambda s, c: (cdiv(s["m"], c["BM"]), s["n"] // s["d"]), D="d",
    ),
    lambda s: each(
        BM=(64, 128, 64, 128, 32, 16), BK=(64, 64, 128, 32, 64, 128),
        num_warps=(4, 8, 4, 8, 4, 4), num_stages=(4, 3, 3, 4, 4, 4),
    ),
    _turned,
)  # fmt: skip

KINDS = (
    GELU, LOSSES, NORMED, GATHERED, FP8_WEIGHTS, FP8_BLOCKS, SMALL, STRIDED, DOUBLED, NEWTON,
    EXPERTS, GAUSSIANS, COMPLEX, ROTATED,
)  # fmt: skip
