"""Kernels of `fresh.py` that change states, quantise, or pass over arrays once."""

from __future__ import annotations

from fresh_case import FLOATS, Fresh, Maker, Sizes, arrays_of

import tilec
import tilec.language as tl


def _blocks(x, B):
    return tl.cdiv(x.shape[0], B)


@tilec.kernel(grid=lambda p, B: tl.cdiv(p.shape[0], B))
def nesterov(p, g, v, copy, rate: tl.f32, momentum: tl.f32, decay: tl.f32, B: tl.const = 1024):
    """A step of SGD on f32 weights, and their copy in another dtype."""
    i = tl.program_id(0) * B
    weight = tl.load(p, i, B)
    slope = tl.load(g, i, B).to(tl.f32) + decay * weight
    speed = momentum * tl.load(v, i, B) + slope
    weight = weight - rate * (slope + momentum * speed)
    tl.store(v, i, speed)
    tl.store(p, i, weight)
    tl.store(copy, i, weight.to(copy.dtype))


@tilec.kernel(grid=lambda p, B: tl.cdiv(p.shape[0], B))
def adagrad(p, g, squares, rate: tl.f32, eps: tl.f32, B: tl.const = tl.auto):
    i = tl.program_id(0) * B
    slope = tl.load(g, i, B).to(tl.f32)
    square = tl.load(squares, i, B) + slope * slope
    tl.store(squares, i, square)
    moved = tl.load(p, i, B).to(tl.f32) - rate * slope / (tl.sqrt(square) + eps)
    tl.store(p, i, moved.to(p.dtype))


@tilec.kernel(grid=lambda average, B: tl.cdiv(average.shape[0], B))
def moving_average(average, x, share: tl.f32, B: tl.const = tl.auto):
    i = tl.program_id(0) * B
    v = tl.load(average, i, B)
    tl.store(average, i, v + share * (tl.load(x, i, B).to(tl.f32) - v))


@tilec.kernel(grid=_blocks)
def mish_slope(x, dy, dx, B: tl.const = 1024):
    i = tl.program_id(0) * B
    v = tl.load(x, i, B).to(tl.f32)
    inner = tl.tanh(tl.where(v > 20, v, tl.log(1 + tl.exp(v))))
    slope = inner + v * tl.sigmoid(v) * (1 - inner * inner)
    tl.store(dx, i, (tl.load(dy, i, B).to(tl.f32) * slope).to(dx.dtype))


@tilec.kernel(grid=lambda y: y.shape[0])
def smooth_l1_sums(x, z, y, beta: tl.f32, B: tl.const = tl.auto):
    """y[p]: the loss of every y.shape[0]th block, from p on."""
    program = tl.program_id(0)
    total = tl.zeros((B,), tl.f32)
    for i in tl.range(program * B, x.shape[0], tl.num_programs(0) * B):
        d = tl.abs(tl.load(x, i, B).to(tl.f32) - tl.load(z, i, B).to(tl.f32))
        total += tl.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    tl.store(y, program, tl.sum(total) - 0.0)


@tilec.kernel(grid=lambda x: (x.shape[1], x.shape[0]))
def token_shift(x, share, y, C: tl.const):
    """y[b, t] = x[b, t] + share (x[b, t - 1] - x[b, t])."""
    t, b = tl.program_id(0), tl.program_id(1)
    now, before = (tl.load(x, (b, at, 0), C).to(tl.f32) for at in (t, t - 1))
    tl.store(y, (b, t, 0), (now + tl.load(share, 0, C).to(tl.f32) * (before - now)).to(y.dtype))


@tilec.kernel(grid=lambda x, GROUP: (tl.cdiv(x.shape[1], 16 * GROUP), x.shape[0]))
def dequantise_groups(x, scales, y, GROUP: tl.const):
    """y = x times the scale of its group of GROUP columns."""
    n, row = tl.program_id(0) * 16, tl.program_id(1)
    v = tl.reshape(tl.load(x, (row, n * GROUP), 16 * GROUP).to(tl.f32), (16, GROUP))
    scaled = v * tl.load(scales, (row, n), 16).to(tl.f32)[:, None]
    tl.store(y, (row, n * GROUP), tl.reshape(scaled, (16 * GROUP,)).to(y.dtype))


@tilec.kernel(grid=lambda x, GROUP: (x.shape[1] // GROUP, x.shape[0]))
def quantise_groups(x, y, scales, GROUP: tl.const):
    """y: i8, scales: the largest of each group over 127."""
    n, row = tl.program_id(0), tl.program_id(1)
    v = tl.load(x, (row, n * GROUP), GROUP).to(tl.f32)
    scale = tl.maximum(tl.max(tl.abs(v)), 1e-6) / 127
    tl.store(scales, (row, n), scale)
    tl.store(y, (row, n * GROUP), tl.clamp(tl.round(v / scale), -127, 127).to(tl.i8))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[2], B), x.shape[1], x.shape[0]))
def affine_planes(x, scale, shift, y, B: tl.const = tl.auto):
    """y = relu(x scale + shift), numbers of a channel, of planes (images, channels, places)."""
    i, c, b = tl.program_id(0) * B, tl.program_id(1), tl.program_id(2)
    v = tl.load(x, (b, c, i), B).to(tl.f32)
    v = v * tl.load(scale, c, ()) + tl.load(shift, c, ())
    tl.store(y, (b, c, i), tl.maximum(v, 0.0).to(y.dtype))


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[0], BM), tl.cdiv(x.shape[1], BN)))
def fake_quantise(x, scale, zero, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """x rounded as u8 would, with a scale and a zero a column."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    a, z = (tl.load(each, n, BN)[None, :] for each in (scale, zero))
    v = tl.round(tl.load(x, (m, n), (BM, BN)).to(tl.f32) / a) + z
    tl.store(y, (m, n), ((tl.clamp(v, 0.0, 255.0) - z) * a).to(y.dtype))


@tilec.kernel(grid=lambda a, B: tl.cdiv(a.shape[0], B))
def multiply_complex(a, b, c, B: tl.const = 512):
    """Rows of two are complex numbers."""
    i = tl.program_id(0) * B
    x, u = tl.split(tl.load(a, (i, 0), (B, 2)), 2, 1)
    y, v = tl.split(tl.load(b, (i, 0), (B, 2)), 2, 1)
    tl.store(c, (i, 0), tl.cat((x * y - u * v, x * v + u * y), 1))


@tilec.kernel(grid=lambda x, BN: tl.cdiv(x.shape[1], BN))
def column_norms(x, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """The length of each column."""
    n = tl.program_id(0) * BN
    total = tl.zeros((BM, BN), tl.f32)
    for m in tl.range(0, x.shape[0], BM):
        v = tl.load(x, (m, n), (BM, BN)).to(tl.f32)
        total += v * v
    tl.store(y, n, tl.sqrt(tl.sum(total, 0)))


def _flat(kernel: str, outputs: tuple[str, ...], names: str, dtypes: str, **about) -> Maker:
    """Vectors of one length; a dtype "?" is drawn."""

    def make(s: Sizes) -> Fresh:
        count, drawn = s.log(2**17, 2**25), s.of(FLOATS)
        step = s.of((1, 8, 1024))
        count = max(step, count // step * step)
        kinds = [drawn if dtype == "?" else dtype for dtype in dtypes.split()]
        named = {name: (kind, (count,)) for name, kind in zip(names.split(), kinds, strict=True)}
        if about.get("sums"):
            named["y"] = "f32", (512,)
        arrays = arrays_of(**named)
        return Fresh(
            *(kernel, f"{count} {drawn}", arrays, outputs, about.get("scalars", ()), ()),
            changed=about.get("changed", ()),
        )

    return make


def _shift(s: Sizes) -> Fresh:
    c, dtype = s.width(128, 4096), s.of(FLOATS)
    rows = s.rows(c)
    b = s.of([each for each in (1, 2, 4, 8) if each <= rows])
    arrays = arrays_of(
        x=(dtype, (b, rows // b, c)), share=(dtype, (c,)), y=(dtype, (b, rows // b, c))
    )
    label = f"{b}x{rows // b}x{c} {dtype}"
    return Fresh("token_shift", label, arrays, ("y",), (), (("C", c),))


def _groups(kernel: str) -> Maker:
    def make(s: Sizes) -> Fresh:
        group, dtype = s.of((32, 64, 128)), s.of(("f16", "bf16"))
        n = s.log(4, 96)
        m = s.rows(n * group)
        wide, narrow = (m, n * group), (m, n)
        if kernel == "dequantise_groups":
            arrays = arrays_of(x=("i8", wide), scales=("f16", narrow), y=(dtype, wide))
            outputs = ("y",)
        else:
            arrays = arrays_of(x=(dtype, wide), y=("i8", wide), scales=("f32", narrow))
            outputs = ("y", "scales")
        label = f"{m}x{n}x{group} {dtype}"
        return Fresh(kernel, label, arrays, outputs, (), (("GROUP", group),))

    return make


def _planes(s: Sizes) -> Fresh:
    side, c, dtype = s.log(7, 200), s.log(3, 512), s.of(FLOATS)
    b = 1 if s.small else max(1, s.log(2**18, 2**25) // (side * side * c))
    shape = (b, c, side * side)
    arrays = arrays_of(x=(dtype, shape), scale=("f32", (c,)), shift=("f32", (c,)), y=(dtype, shape))
    return Fresh("affine_planes", f"{b}x{c}x{side * side} {dtype}", arrays, ("y",))


def _fake(s: Sizes) -> Fresh:
    n, dtype = s.width(64, 4096), s.of(FLOATS)
    m = s.rows(n)
    arrays = arrays_of(
        x=(dtype, (m, n)), scale=("f32", (n,)), zero=("f32", (n,)), y=(dtype, (m, n))
    )
    return Fresh("fake_quantise", f"{m}x{n} {dtype}", arrays, ("y",))


def _complex(s: Sizes) -> Fresh:
    count = s.log(2**16, 2**23)
    arrays = arrays_of(**{name: ("f32", (count, 2)) for name in "abc"})
    return Fresh("multiply_complex", f"{count}", arrays, ("c",))


def _columns(s: Sizes) -> Fresh:
    n, dtype = s.width(512, 16384), s.of(FLOATS)
    m = 3 if s.small else s.log(64, 4096)
    arrays = arrays_of(x=(dtype, (m, n)), y=("f32", (n,)))
    return Fresh("column_norms", f"{m}x{n} {dtype}", arrays, ("y",))


UPDATES: dict[str, Maker] = {
    "nesterov": _flat(
        *("nesterov", ("p", "v", "copy"), "p g v copy", "f32 bf16 f32 bf16"),
        scalars=(1e-3, 0.9, 1e-2),
        changed=("p", "v"),
    ),
    "adagrad": _flat(
        *("adagrad", ("p", "squares"), "p g squares", "? ? f32"),
        scalars=(1e-2, 1e-8),
        changed=("p", "squares"),
    ),
    "moving_average": _flat(
        *("moving_average", ("average",), "average x", "f32 ?"),
        scalars=(0.01,),
        changed=("average",),
    ),
    "mish_slope": _flat("mish_slope", ("dx",), "x dy dx", "? ? ?"),
    "smooth_l1_sums": _flat(
        "smooth_l1_sums", ("y",), "x z y", "? ? f32", scalars=(0.5,), sums=True
    ),
    "token_shift": _shift,
    "dequantise_groups": _groups("dequantise_groups"),
    "quantise_groups": _groups("quantise_groups"),
    "affine_planes": _planes,
    "fake_quantise": _fake,
    "multiply_complex": _complex,
    "column_norms": _columns,
}
