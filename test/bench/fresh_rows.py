"""Kernels of `fresh.py` that take a row a program, as a reader of tilec's README writes them."""

from __future__ import annotations

from fresh_case import FLOATS, Fresh, Maker, Sizes, arrays_of

import tilec
import tilec.language as tl


def _rows(x):
    return x.shape[0]


@tilec.kernel(grid=_rows)
def layer_norm_slope(dy, x, weight, means, scales, dx, N: tl.const):
    """dx of y = (x - mean) scale weight."""
    row = tl.program_id(0)
    scale = tl.load(scales, row, ())
    normal = (tl.load(x, (row, 0), N).to(tl.f32) - tl.load(means, row, ())) * scale
    normal = tl.where(tl.arange(N) < x.shape[1], normal, 0.0)
    slope = tl.load(dy, (row, 0), N).to(tl.f32) * tl.load(weight, 0, N).to(tl.f32)
    mean = tl.sum(slope) / x.shape[1]
    along = tl.sum(slope * normal) / x.shape[1]
    tl.store(dx, (row, 0), ((slope - mean - normal * along) * scale).to(dx.dtype))


@tilec.kernel(grid=_rows)
def log_softmax(x, y, N: tl.const):
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    v = v - tl.max(v)
    tl.store(y, (row, 0), (v - tl.log(tl.sum(tl.exp(v)))).to(y.dtype))


@tilec.kernel(grid=_rows)
def geglu(x, y, N: tl.const):
    """y = gelu(left half of x) * right half."""
    row = tl.program_id(0)
    a = tl.load(x, (row, 0), N).to(tl.f32)
    b = tl.load(x, (row, y.shape[1]), N).to(tl.f32)
    tl.store(y, (row, 0), (0.5 * a * (1 + tl.erf(a * 0.70710678)) * b).to(y.dtype))


@tilec.kernel(grid=_rows)
def scaled_branch(x, h, gamma, weight, bias, y, eps: tl.f32, N: tl.const):
    """y = x + gamma * layer_norm(h)."""
    row = tl.program_id(0)
    v = tl.load(h, (row, 0), N).to(tl.f32)
    mean = tl.sum(v) / N
    v = v - mean
    scale = tl.rsqrt(tl.sum(v * v) / N + eps)
    g, w, b = (tl.load(each, 0, N).to(tl.f32) for each in (gamma, weight, bias))
    tl.store(
        y, (row, 0), (tl.load(x, (row, 0), N).to(tl.f32) + g * (v * scale * w + b)).to(y.dtype)
    )


@tilec.kernel(grid=_rows)
def unit_rows(x, y, eps: tl.f32, N: tl.const):
    """Rows of length 1."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    tl.store(y, (row, 0), (v / tl.maximum(tl.sqrt(tl.sum(v * v)), eps)).to(y.dtype))


@tilec.kernel(grid=_rows)
def row_entropy(x, y, N: tl.const):
    """Entropy of softmax(x)."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    v = v - tl.max(v)
    e = tl.exp(v)
    total = tl.sum(e)
    tl.store(y, row, tl.log(total) - tl.sum(tl.where(e > 0, e * v, 0.0)) / total)


@tilec.kernel(grid=_rows)
def margin_loss(x, labels, y, margin: tl.f32, N: tl.const):
    """Mean of max(0, margin + x - x at the label) over the other classes."""
    row = tl.program_id(0)
    label = tl.load(labels, row, ())
    v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    at = tl.load(x, (row, label), ()).to(tl.f32)
    losses = tl.where(tl.arange(N) == label, 0.0, tl.maximum(v - at + margin, 0.0))
    tl.store(y, row, tl.sum(losses) / x.shape[1])


@tilec.kernel(grid=_rows)
def long_cross_entropy(x, labels, y, smoothing: tl.f32, squared: tl.f32, B: tl.const = tl.auto):
    """Smoothed cross-entropy and `squared` times the square of the logarithm of the sum."""
    row = tl.program_id(0)
    highest, total, plain = -tl.inf, tl.zeros((B,), tl.f32), tl.zeros((B,), tl.f32)
    for start in tl.range(0, x.shape[1], B):
        z = tl.load(x, (row, start), B, padding=-tl.inf).to(tl.f32)
        higher = tl.maximum(highest, tl.max(z))
        total = total * tl.exp(highest - higher) + tl.exp(z - higher)
        plain += tl.where(z > -tl.inf, z, 0.0)
        highest = higher
    whole = highest + tl.log(tl.sum(total))
    at = tl.load(x, (row, tl.load(labels, row, ())), ()).to(tl.f32)
    wanted = (1 - smoothing) * at + smoothing * tl.sum(plain) / x.shape[1]
    tl.store(y, row, whole - wanted + squared * whole * whole)


@tilec.kernel(grid=_rows)
def cosine_of_rows(x, z, y, N: tl.const):
    row = tl.program_id(0)
    a, b = (tl.load(each, (row, 0), N).to(tl.f32) for each in (x, z))
    tl.store(y, row, tl.sum(a * b) * tl.rsqrt(tl.sum(a * a) * tl.sum(b * b)))


@tilec.kernel(grid=_rows)
def sample_rows(x, noise, y, heat: tl.f32, N: tl.const):
    """The place of the largest x / heat + noise."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32) / heat + tl.load(noise, (row, 0), N)
    tl.store(y, row, tl.argmax(v, 0))


@tilec.kernel(grid=lambda x: (x.shape[1], x.shape[0]))
def capped_causal_softmax(x, y, cap: tl.f32, N: tl.const):
    """y: softmax of cap tanh(x / cap) up to the diagonal, else 0."""
    row, b = tl.program_id(0), tl.program_id(1)
    v = tl.load(x, (b, row, 0), N).to(tl.f32)
    v = tl.where(tl.arange(N) <= row, cap * tl.tanh(v / cap), -tl.inf)
    e = tl.exp(v - tl.max(v))
    tl.store(y, (b, row, 0), (e / tl.sum(e)).to(y.dtype))


@tilec.kernel(grid=_rows)
def instance_norm(x, y, eps: tl.f32, N: tl.const):
    """Planes, a row each, to mean 0 and variance 1."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    mean = tl.sum(v) / N
    square = tl.sum(v * v) / N
    tl.store(y, (row, 0), ((v - mean) * tl.rsqrt(square - mean * mean + eps)).to(y.dtype))


@tilec.kernel(grid=lambda y: y.shape[0])
def discounted_returns(rewards, ends, y, discount: tl.f32, N: tl.const):
    """y[t] = reward[t] + (discount unless it ends) y[t + 1]."""
    row = tl.program_id(0)
    reward = tl.load(rewards, (row, 0), N)
    keep = tl.where(tl.load(ends, (row, 0), N) != 0, 0.0, discount)
    _, found = tl.associative_scan(
        (keep, reward), 0, lambda a, x, b, z: (a * b, x * b + z), reverse=True
    )
    tl.store(y, (row, 0), found)


@tilec.kernel(grid=_rows)
def running_max(x, y, N: tl.const):
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N)
    tl.store(y, (row, 0), tl.associative_scan(v, 0, lambda a, b: tl.maximum(a, b)))


@tilec.kernel(grid=lambda y: y.shape[0])
def count_before(mask, y, N: tl.const):
    """How many of the elements in front of each are not 0."""
    row = tl.program_id(0)
    kept = (tl.load(mask, (row, 0), N) != 0).to(tl.i32)
    tl.store(y, (row, 0), tl.cumsum(kept) - kept)


def _row_case(kernel: str, low: int, high: int, rows: int = 2**25, dtypes=FLOATS, **about) -> Maker:
    """Matrices x and maybe others (`like`), vectors of columns (`along`) and of rows (`down`)."""

    def make(s: Sizes) -> Fresh:
        n, dtype = s.width(low, high), s.of(dtypes)
        m = s.rows(n, rows)
        shapes = {"x": (m, n), "half": (m, 2 * n), "along": (n,), "down": (m,)}
        named = {
            name: (about.get("dtypes_of", {}).get(name, dtype), shapes[shape])
            for name, shape in about["arrays"].items()
        }
        return Fresh(
            *(kernel, f"{m}x{n} {dtype}", arrays_of(**named), about["outputs"]),
            *(about.get("scalars", ()), () if about.get("auto") else (("N", n),)),
        )

    return make


def _matrix(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "x")


def _causal(s: Sizes) -> Fresh:
    n, dtype = s.log(64, 2048, 16), s.of(FLOATS)
    b = 1 if s.small else max(1, s.log(2**19, 2**25) // (n * n))
    arrays = arrays_of(x=(dtype, (b, n, n)), y=(dtype, (b, n, n)))
    return Fresh("capped_causal_softmax", f"{b}x{n} {dtype}", arrays, ("y",), (30.0,), (("N", n),))


EPS = 1e-5
ROWS: dict[str, Maker] = {
    "layer_norm_slope": _row_case(
        *("layer_norm_slope", 256, 8192),
        arrays={
            "dy": "x",
            "x": "x",
            "weight": "along",
            "means": "down",
            "scales": "down",
            "dx": "x",
        },
        dtypes_of={"means": "f32", "scales": "f32"},
        outputs=("dx",),
    ),
    "log_softmax": _row_case("log_softmax", 64, 30000, arrays=_matrix("x", "y"), outputs=("y",)),
    "geglu": _row_case("geglu", 256, 8192, arrays={"x": "half", "y": "x"}, outputs=("y",)),
    "scaled_branch": _row_case(
        *("scaled_branch", 192, 4096),
        arrays=_matrix("x", "h") | dict.fromkeys(("gamma", "weight", "bias"), "along") | {"y": "x"},
        outputs=("y",),
        scalars=(EPS,),
    ),
    "unit_rows": _row_case(
        "unit_rows", 32, 1024, arrays=_matrix("x", "y"), outputs=("y",), scalars=(1e-8,)
    ),
    "row_entropy": _row_case(
        *("row_entropy", 100, 32000),
        arrays={"x": "x", "y": "down"},
        dtypes_of={"y": "f32"},
        outputs=("y",),
    ),
    "margin_loss": _row_case(
        *("margin_loss", 100, 20000),
        arrays={"x": "x", "labels": "down", "y": "down"},
        dtypes_of={"labels": "i32", "y": "f32"},
        outputs=("y",),
        scalars=(1.0,),
    ),
    "long_cross_entropy": _row_case(
        *("long_cross_entropy", 4000, 130000, 2**27),
        arrays={"x": "x", "labels": "down", "y": "down"},
        dtypes_of={"labels": "i32", "y": "f32"},
        outputs=("y",),
        scalars=(0.1, 1e-4),
        auto=True,
    ),
    "cosine_of_rows": _row_case(
        *("cosine_of_rows", 64, 4096),
        arrays={"x": "x", "z": "x", "y": "down"},
        dtypes_of={"y": "f32"},
        outputs=("y",),
    ),
    "sample_rows": _row_case(
        *("sample_rows", 1000, 32768),
        arrays={"x": "x", "noise": "x", "y": "down"},
        dtypes_of={"noise": "f32", "y": "i32"},
        outputs=("y",),
        scalars=(0.7,),
    ),
    "capped_causal_softmax": _causal,
    "instance_norm": _row_case(
        "instance_norm", 196, 25088, arrays=_matrix("x", "y"), outputs=("y",), scalars=(EPS,)
    ),
    "discounted_returns": _row_case(
        *("discounted_returns", 64, 4096, 2**24),
        dtypes=("f32",),
        arrays=_matrix("rewards", "ends", "y"),
        dtypes_of={"ends": "i8"},
        outputs=("y",),
        scalars=(0.97,),
    ),
    "running_max": _row_case(
        "running_max", 64, 8192, 2**24, arrays=_matrix("x", "y"), outputs=("y",)
    ),
    "count_before": _row_case(
        *("count_before", 64, 8192, 2**24),
        dtypes=("i8",),
        arrays=_matrix("mask", "y"),
        dtypes_of={"y": "i32"},
        outputs=("y",),
    ),
}
