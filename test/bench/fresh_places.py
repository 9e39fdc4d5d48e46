"""Kernels of `fresh.py` whose places are computed or read: tables, graphs, sparse rows, images."""

from __future__ import annotations

from fresh_case import FLOATS, Fresh, Maker, Sizes, arrays_of

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda y: y.shape[0])
def embed_tokens(tokens, words, places, weight, bias, y, eps: tl.f32, D: tl.const):
    """The sum of a word's row and its place's, normalised."""
    t = tl.program_id(0)
    v = tl.load(words, (tl.load(tokens, t, ()), 0), D).to(tl.f32)
    v = v + tl.load(places, (t % places.shape[0], 0), D).to(tl.f32)
    v = v - tl.sum(v) / D
    scale = tl.rsqrt(tl.sum(v * v) / D + eps)
    w, b = (tl.load(each, 0, D).to(tl.f32) for each in (weight, bias))
    tl.store(y, (t, 0), (v * scale * w + b).to(y.dtype))


@tilec.kernel(grid=lambda dy: dy.shape[0])
def embedding_slope(tokens, dy, table, D: tl.const):
    """Adds each row to the row of the table that its token names."""
    t = tl.program_id(0)
    row = tl.load(dy, (t, 0), D).to(tl.f32)
    tl.atomic_add(table, (tl.load(tokens, t, ()), tl.arange(D)), row)


@tilec.kernel(grid=lambda y: y.shape[0])
def edge_messages(a, b, sources, targets, y, D: tl.const):
    """y[e] = relu(a[source] + b[target])."""
    e = tl.program_id(0)
    u = tl.load(a, (tl.load(sources, e, ()), 0), D).to(tl.f32)
    v = tl.load(b, (tl.load(targets, e, ()), 0), D).to(tl.f32)
    tl.store(y, (e, 0), tl.maximum(u + v, 0.0).to(y.dtype))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]))
def take_along_rows(x, places, y, B: tl.const = 256):
    """y[m, k] = x[m, places[m, k]]."""
    k, m = tl.program_id(0) * B, tl.program_id(1)
    tl.store(y, (m, k), tl.gather(x, (m, tl.load(places, (m, k), B))))


@tilec.kernel(grid=lambda y, R: tl.cdiv(y.shape[0], R))
def multiply_ell(columns, values, x, y, K: tl.const, R: tl.const = 64):
    """y = a x, of a in each row K elements: `columns` and `values` (rows, K)."""
    row = tl.program_id(0) * R
    gathered = tl.gather(x, tl.load(columns, (row, 0), (R, K)))
    tl.store(y, row, tl.sum(tl.load(values, (row, 0), (R, K)) * gathered, 1))


@tilec.kernel(grid=lambda y: y.shape[0])
def join_experts(x, slots, shares, y, TOP: tl.const, D: tl.const):
    """y[t]: the sum of TOP rows of x with their shares."""
    t = tl.program_id(0)
    total = tl.zeros((D,), tl.f32)
    for k in tl.static_range(TOP):
        row = tl.load(x, (tl.load(slots, (t, k), ()), 0), D).to(tl.f32)
        total += tl.load(shares, (t, k), ()) * row
    tl.store(y, (t, 0), total.to(y.dtype))


@tilec.kernel(grid=lambda y: (y.shape[1], y.shape[0]))
def pad_sequences(x, starts, y, D: tl.const):
    """y[b, t]: row t of sequence b of x, zeros behind its end."""
    t, b = tl.program_id(0), tl.program_id(1)
    first, end = tl.load(starts, b, ()), tl.load(starts, b + 1, ())
    sequence = tl.window(x, (first, 0), (end - first, x.shape[1]))
    tl.store(y, (b, t, 0), tl.load(sequence, (t, 0), D))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[2], B), y.shape[1], y.shape[0]))
def shuffle_pixels(x, y, SIDE: tl.const, B: tl.const = 512):
    """y (planes, SIDE height, SIDE width) from x (planes SIDE SIDE, height, width)."""
    column, row, plane = tl.program_id(0) * B + tl.arange(B), tl.program_id(1), tl.program_id(2)
    part = row % SIDE * SIDE + column % SIDE
    v = tl.gather(x, (plane * SIDE * SIDE + part, row // SIDE, column // SIDE))
    tl.store(y, (plane, row, tl.program_id(0) * B), v)


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[0], BM), tl.cdiv(x.shape[1], BN)))
def sobel(x, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """The length of the slope; zeros around x."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    across, down = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            if i != 1 or j != 1:
                v = tl.load(x, (m + i - 1, n + j - 1), (BM, BN)).to(tl.f32)
                across += v * ((j - 1) * (2 - abs(i - 1)))
                down += v * ((i - 1) * (2 - abs(j - 1)))
    tl.store(y, (m, n), tl.sqrt(across * across + down * down).to(y.dtype))


def _places(x, BW, BN):
    return tl.cdiv(x.shape[2], BW), x.shape[1], x.shape[0] * tl.cdiv(x.shape[3], BN)


@tilec.kernel(grid=_places)
def filter_channels(x, weight, y, BW: tl.const, BN: tl.const = 64):
    """A 3 x 3 filter a channel of x (images, height, width, channels)."""
    w, h, blocks = tl.program_id(0) * BW, tl.program_id(1), tl.cdiv(x.shape[3], BN)
    b, c = tl.program_id(2) // blocks, tl.program_id(2) % blocks * BN
    total = tl.zeros((BW, BN), tl.f32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            v = tl.load(x, (b, h + i - 1, w + j - 1, c), (1, BW, BN)).to(tl.f32)
            f = tl.load(weight, (i, j, c), (1, 1, BN)).to(tl.f32)
            total += tl.reshape(v * f, (BW, BN))
    tl.store(y, (b, h, w, c), total[None, None].to(y.dtype))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[2], B), y.shape[1], y.shape[0]))
def double_planes(x, y, B: tl.const = 256):
    """Each element four times."""
    column, row, plane = tl.program_id(0) * B, tl.program_id(1), tl.program_id(2)
    v = tl.gather(x, (plane, row // 2, (column + tl.arange(B)) // 2))
    tl.store(y, (plane, row, column), v)


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[2], B), y.shape[1], y.shape[0]))
def halve_planes(x, y, B: tl.const = 256):
    """The mean of two by two elements."""
    column, row, plane = tl.program_id(0) * B, tl.program_id(1), tl.program_id(2)
    v = tl.load(x, (plane, 2 * row, 2 * column), (2, 2 * B)).to(tl.f32)
    mean = tl.sum(tl.sum(tl.reshape(v, (2, B, 2)), 2), 0) * 0.25
    tl.store(y, (plane, row, column), mean.to(y.dtype))


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def density(x, points, y, sharp: tl.f32, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """y[i]: the sum of exp(-sharp |x[i] - points[j]|^2); x (3, many), points (3, others)."""
    m = tl.program_id(0) * BM
    a, b, c = (tl.load(x, (k, m), (BM,))[:, None] for k in (0, 1, 2))
    total = tl.zeros((BM, BN), tl.f32)
    for n in tl.range(0, points.shape[1], BN):
        u, v, w = (tl.load(points, (k, n), (BN,))[None, :] for k in (0, 1, 2))
        square = (a - u) * (a - u) + (b - v) * (b - v) + (c - w) * (c - w)
        there = (n + tl.arange(BN) < points.shape[1])[None, :]
        total += tl.where(there, tl.exp(-sharp * square, approx=True), 0.0)
    tl.store(y, m, tl.sum(total, 1))


def _tokens(kernel: str) -> Maker:
    def make(s: Sizes) -> Fresh:
        d, dtype = s.width(64, 2048), s.of(FLOATS)
        t, v = s.rows(d, 2**24), s.log(100, 60000)
        tokens = ("i32", (t,))
        if kernel == "embedding_slope":
            arrays = arrays_of(tokens=tokens, dy=(dtype, (t, d)), table=("f32", (v, d)))
            label, constants = f"{t}x{v}x{d} {dtype}", (("D", d),)
            return Fresh(kernel, label, arrays, ("table",), (), constants, ("table",))
        arrays = arrays_of(
            tokens=tokens,
            words=(dtype, (v, d)),
            places=(dtype, (min(t, 512), d)),
            **{name: (dtype, (d,)) for name in ("weight", "bias")},
            y=(dtype, (t, d)),
        )
        return Fresh(kernel, f"{t}x{v}x{d} {dtype}", arrays, ("y",), (1e-5,), (("D", d),))

    return make


def _edges(s: Sizes) -> Fresh:
    d, dtype = s.width(16, 512), s.of(FLOATS)
    e, v = s.rows(d, 2**24), s.log(1000, 50000)
    matrices = {"a": (dtype, (v, d)), "b": (dtype, (v, d))}
    arrays = arrays_of(**matrices, sources=("i32", (e,)), targets=("i32", (e,)), y=(dtype, (e, d)))
    return Fresh("edge_messages", f"{e}x{v}x{d} {dtype}", arrays, ("y",), (), (("D", d),))


def _along(s: Sizes) -> Fresh:
    n, k, dtype = s.width(256, 8192), s.log(16, 4096), s.of(FLOATS)
    m = s.rows(max(n, k), 2**23)
    arrays = arrays_of(x=(dtype, (m, n)), places=("i32", (m, k)), y=(dtype, (m, k)))
    return Fresh("take_along_rows", f"{m}x{n}x{k} {dtype}", arrays, ("y",))


def _ell(s: Sizes) -> Fresh:
    k, n = s.of((4, 8, 16, 32)), s.log(5000, 300000)
    m = s.rows(k, 2**23)
    arrays = arrays_of(
        columns=("i32", (m, k)), values=("f32", (m, k)), x=("f32", (n,)), y=("f32", (m,))
    )
    return Fresh("multiply_ell", f"{m}x{k}x{n}", arrays, ("y",), (), (("K", k),))


def _experts(s: Sizes) -> Fresh:
    d, top, dtype = s.width(512, 7168), s.of((2, 4, 8)), s.of(("f16", "bf16"))
    t = max(1, s.rows(d) // top)
    arrays = arrays_of(
        x=(dtype, (t * top, d)),
        slots=("i32", (t, top)),
        shares=("f32", (t, top)),
        y=(dtype, (t, d)),
    )
    constants = (("TOP", top), ("D", d))
    return Fresh("join_experts", f"{t}x{top}x{d} {dtype}", arrays, ("y",), (), constants)


def _sequences(s: Sizes) -> Fresh:
    d, dtype, b = s.width(32, 1024), s.of(FLOATS), s.log(2, 64)
    longest = max(2, s.rows(d) // b)
    arrays = arrays_of(
        x=(dtype, (b * longest // 2 + b, d)), starts=("i32", (b + 1,)), y=(dtype, (b, longest, d))
    )
    return Fresh("pad_sequences", f"{b}x{longest}x{d} {dtype}", arrays, ("y",), (), (("D", d),))


def _images(kernel: str) -> Maker:
    def make(s: Sizes) -> Fresh:
        h, w, dtype = s.log(16, 1000), s.width(64, 1000), s.of(FLOATS)
        planes = 1 if s.small else max(1, min(200, s.log(2**18, 2**23) // (h * w)))
        constants: tuple = ()
        if kernel == "shuffle_pixels":
            side = s.of((2, 3, 4))
            shapes = (planes * side * side, h, w), (planes, h * side, w * side)
            constants = (("SIDE", side),)
        elif kernel == "double_planes":
            shapes = (planes, h, w), (planes, 2 * h, 2 * w)
        else:
            shapes = (planes, 2 * h, 2 * w), (planes, h, w)
        arrays = arrays_of(x=(dtype, shapes[0]), y=(dtype, shapes[1]))
        label = f"{'x'.join(map(str, shapes[0]))} {dtype}"
        return Fresh(kernel, label, arrays, ("y",), (), constants)

    return make


def _sobel(s: Sizes) -> Fresh:
    h, w, dtype = s.log(300, 4000), s.width(300, 4000), s.of(FLOATS)
    arrays = arrays_of(x=(dtype, (h, w)), y=(dtype, (h, w)))
    return Fresh("sobel", f"{h}x{w} {dtype}", arrays, ("y",))


def _channels(s: Sizes) -> Fresh:
    side, c, dtype = s.log(7, 112), s.log(32, 1024, 8), s.of(FLOATS)
    b = 1 if s.small else max(1, s.log(2**19, 2**24) // (side * side * c))
    shape = (b, side, side, c)
    arrays = arrays_of(x=(dtype, shape), weight=(dtype, (3, 3, c)), y=(dtype, shape))
    label = f"{b}x{side}x{side}x{c} {dtype}"
    return Fresh("filter_channels", label, arrays, ("y",), (), (("BW", 8 if side < 16 else 16),))


def _density(s: Sizes) -> Fresh:
    m, n = s.log(1000, 40000), s.log(1000, 20000)
    arrays = arrays_of(x=("f32", (3, m)), points=("f32", (3, n)), y=("f32", (m,)))
    return Fresh("density", f"{m}x{n}", arrays, ("y",), (0.5,))


PLACES: dict[str, Maker] = {
    "embed_tokens": _tokens("embed_tokens"),
    "embedding_slope": _tokens("embedding_slope"),
    "edge_messages": _edges,
    "take_along_rows": _along,
    "multiply_ell": _ell,
    "join_experts": _experts,
    "pad_sequences": _sequences,
    "shuffle_pixels": _images("shuffle_pixels"),
    "double_planes": _images("double_planes"),
    "halve_planes": _images("halve_planes"),
    "sobel": _sobel,
    "filter_channels": _channels,
    "density": _density,
}
