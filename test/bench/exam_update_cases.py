"""The kinds of `exam_updates`."""

from __future__ import annotations

import exam_updates as kernels
import torch
import triton_exam_updates as rivals
from exam_case import FLOATS, FP8, HALVES, blocks, ours, power, row_warps, theirs
from unseen_case import Kind, Sizes, Tensors, cdiv, each
from unseen_product_cases import wide


def _normal_slope(t: Tensors, s: Sizes) -> Tensors:
    x, dy, gain = wide(t, "x", "dy", "gain")
    scale = torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5)
    normal, slope = x * scale, dy * gain
    dx = (slope - normal * (slope * normal).mean(1, keepdim=True)) * scale
    return {"dx": dx, "parts": (dy * normal).sum(0)}


NORM_SLOPE = Kind(
    "rms_norm_slope",
    lambda s: {"n": (n := s.log(256, 8192, 8)), "m": max(16, s.rows(n, 2**25)), "t": s.of(HALVES)},
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"]),
        "dy": r.normal(s["t"], s["m"], s["n"]),
        "gain": r.normal(s["t"], s["n"]),
        "dx": r.out(s["t"], s["m"], s["n"]),
        "parts": r.out("f32", cdiv(s["m"], 16), s["n"]),
    },
    ours(kernels.rms_norm_slope, "x dy gain dx parts 1e-5", N="n"),
    theirs(
        rivals.rms_norm_slope, "x dy gain dx parts m n 1e-5", lambda s, c: cdiv(s["m"], 16),
        N=lambda s: power(s["n"]), BM=16,
    ),
    row_warps("n"),
    _normal_slope,
    found=lambda t, s: {**t, "parts": t["parts"].double().sum(0)},
)  # fmt: skip


def _flat(s: object) -> Sizes:
    return {"n": s.log(2**16, 2**26), "t": s.of(HALVES)}


def _gate_slopes(t: Tensors, s: Sizes) -> Tensors:
    x, gate, dy = wide(t, "x", "gate", "dy")
    sigmoid = torch.sigmoid(gate)
    return {"dx": dy * gate * sigmoid, "dgate": dy * x * sigmoid * (1 + gate * (1 - sigmoid))}


SWIGLU_SLOPE = Kind(
    "swiglu_slope",
    _flat,
    lambda r, s: (
        {name: r.normal(s["t"], s["n"]) for name in ("x", "gate", "dy")}
        | {name: r.out(s["t"], s["n"]) for name in ("dx", "dgate")}
    ),
    ours(kernels.swiglu_slope, "x gate dy dx dgate"),
    theirs(rivals.swiglu_slope, "x gate dy dx dgate n", lambda s, c: cdiv(s["n"], c["B"])),
    blocks(1024, 2048, 4096),
    _gate_slopes,
)


def _adamw(t: Tensors, s: Sizes) -> Tensors:
    w, g, m, v = wide(t, "w", "g", "m", "v")
    g = g * 0.5
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**7)) / ((v / (1 - 0.999**7)).sqrt() + 1e-8)
    w = w - 1e-2 * (step + 0.1 * w)
    return {"w": w, "low": w, "m": m, "v": v}


ADAMW = Kind(
    "adamw_rounded",
    _flat,
    lambda r, s: {
        "w": r.normal("f32", s["n"]),
        "low": r.out(s["t"], s["n"]),
        "g": r.normal(s["t"], s["n"]),
        "m": r.normal(s["t"], s["n"]),
        "v": r.positive(s["n"]).to(r.normal(s["t"], 1).dtype),
    },
    ours(kernels.adamw_rounded, "w low g m v 1e-2 0.1 0.5 7"),
    theirs(
        rivals.adamw_rounded,
        f"w low g m v n 1e-2 0.1 0.5 {1 - 0.9**7} {1 - 0.999**7}",
        lambda s, c: cdiv(s["n"], c["B"]),
    ),
    blocks(512, 1024, 2048),
    _adamw,
    added=("w", "m", "v"),
)


def _factored(t: Tensors, s: Sizes) -> Tensors:
    w, g, r, c = wide(t, "w", "g", "of_row", "of_column")
    return {"w": w - 0.1 * g * torch.rsqrt(r[:, None] / 0.5 * c + 1e-12)}


FACTORED = Kind(
    "factored_step",
    lambda s: {"m": s.log(64, 8192), "n": s.log(256, 16384), "t": s.of(FLOATS)},
    lambda r, s: {
        "w": r.normal(s["t"], s["m"], s["n"]),
        "g": r.normal(s["t"], s["m"], s["n"]),
        "of_row": r.positive(s["m"]),
        "of_column": r.positive(s["n"]),
    },
    ours(kernels.factored_step, "w g of_row of_column 0.1 0.5"),
    theirs(rivals.factored_step, "w g of_row of_column n 0.1 0.5", lambda s, c: s["m"]),
    blocks(1024, 2048, 4096),
    _factored,
    added=("w",),
)

SQUARES = Kind(
    "column_squares",
    lambda s: {"n": (n := s.log(64, 8192)), "m": max(64, s.rows(n, 2**26)), "t": s.of(FLOATS)},
    lambda r, s: {"x": r.normal(s["t"], s["m"], s["n"]), "y": r.positive(s["n"]) * 0},
    ours(kernels.column_squares, "x y"),
    theirs(
        rivals.column_squares, "x y m n",
        lambda s, c: (cdiv(s["n"], c["BN"]), cdiv(s["m"], c["PART"])),
    ),
    lambda s: each(
        BM=(32, 32, 64, 16, 32), BN=(128, 64, 64, 256, 128), PART=(512, 512, 512, 256, 256),
        num_warps=(4, 4, 8, 4, 8),
    ),
    lambda t, s: {"y": (t["x"].double() ** 2).sum(0)},
    added=("y",),
)  # fmt: skip


def _mx(t: Tensors, s: Sizes) -> Tensors:
    blocks_ = t["x"].float().view(s["m"], -1, 32)
    bits = blocks_.abs().max(2).values.view(torch.int32)
    exponent = ((bits >> 23) - 8).clamp(1, 254)
    scale = torch.exp2(exponent.double() - 127)
    y = (blocks_.double() / scale[..., None]).clamp(-448, 448)
    return {"scales": exponent.double(), "y": y.view(s["m"], s["n"])}


MX = Kind(
    "mx_quantise",
    lambda s: {"n": (n := s.log(512, 16384, 32)), "m": max(2, s.rows(n, 2**26)), "t": s.of(HALVES)},
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"]),
        "y": r.out(getattr(torch, FP8), s["m"], s["n"]),
        "scales": r.out(torch.uint8, s["m"], s["n"] // 32),
    },
    ours(kernels.mx_quantise, "x y scales"),
    theirs(rivals.mx_quantise, "x y scales n", lambda s, c: (cdiv(s["n"], c["B"]), s["m"])),
    blocks(1024, 2048, 4096),
    _mx,
    tolerance=5e-2,
)


def _looked_up(t: Tensors, s: Sizes) -> Tensors:
    codes = torch.stack([t["codes"] >> 4, t["codes"] & 15], 1).flatten().long()
    scales = t["scales"].double().repeat_interleave(64)[: s["n"]]
    return {"y": t["table"].double()[codes] * scales}


TABLE = Kind(
    "table_dequantise",
    lambda s: {"n": s.log(2**16, 2**26, 64), "t": s.of(HALVES)},
    lambda r, s: {
        "codes": r.whole(0, 256, s["n"] // 2, dtype=torch.uint8),
        "table": r.normal("f32", 16),
        "scales": r.positive(s["n"] // 64),
        "y": r.out(s["t"], s["n"]),
    },
    ours(kernels.table_dequantise, "codes table scales y"),
    theirs(rivals.table_dequantise, "codes table scales y n", lambda s, c: cdiv(s["n"], c["B"])),
    blocks(1024, 2048, 4096),
    _looked_up,
)


def _bytes(t: Tensors, s: Sizes) -> Tensors:
    (x,) = wide(t, "x")
    low, high = x.min(1).values.clamp(max=0), x.max(1).values.clamp(min=0)
    scales = (high - low).clamp(min=1e-6) / 255
    zeros = torch.round(-low / scales)
    y = (torch.round(x / scales[:, None]) + zeros[:, None]).clamp(0, 255)
    return {"scales": scales, "zeros": zeros, "y": y}


BYTES = Kind(
    "affine_bytes",
    lambda s: {"n": (n := s.log(200, 12000)), "m": max(2, s.rows(n, 2**26)), "t": s.of(FLOATS)},
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"]),
        "y": r.out(torch.uint8, s["m"], s["n"]),
        "scales": r.out("f32", s["m"]),
        "zeros": r.out(torch.int32, s["m"]),
    },
    ours(kernels.affine_bytes, "x y scales zeros", N="n"),
    theirs(
        rivals.affine_bytes, "x y scales zeros n", lambda s, c: s["m"], N=lambda s: power(s["n"])
    ),
    row_warps("n"),
    _bytes,
)


def _rotated(t: Tensors, s: Sizes) -> Tensors:
    x, cos, sin = wide(t, "x", "cos", "sin")
    at, r = t["places"].long(), s["r"]
    c, n = cos[at][:, None], sin[at][:, None]
    a, b = x[..., :r:2], x[..., 1:r:2]
    turned = torch.stack([a * c - b * n, a * n + b * c], -1).flatten(-2)
    return {"y": torch.cat([turned, x[..., r:]], -1)}


ROTATE = Kind(
    "rotate_gathered",
    lambda s: {
        "m": s.log(16, 16384), "h": s.of((2, 8, 12, 32)), "d": 128, "r": s.of((64, 128)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["h"], s["d"]),
        "places": r.whole(0, 4096, s["m"]),
        "cos": r.normal("f32", 4096, s["r"] // 2),
        "sin": r.normal("f32", 4096, s["r"] // 2),
        "y": r.out(s["t"], s["m"], s["h"], s["d"]),
    },
    ours(kernels.rotate_gathered, "x places cos sin y", D="d", R="r"),
    theirs(
        rivals.rotate_gathered, "x places cos sin y h",
        lambda s, c: (cdiv(s["h"], c["H"]), s["m"]), D="d", R="r",
    ),
    lambda s: each(H=(1, 2, 4, 8, 16), num_warps=(1, 1, 2, 4, 4)),
    _rotated,
)  # fmt: skip

KINDS = (
    NORM_SLOPE, SWIGLU_SLOPE, ADAMW, FACTORED, SQUARES, MX, TABLE, BYTES, ROTATE,
)  # fmt: skip
