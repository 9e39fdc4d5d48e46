"""Triton's candidates for the kinds of `drawn_layers`, a small fixed space each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
import triton_drawn_kernels as kernels
import triton_kernels
import triton_small_kernels as small
from drawn_layers import ELEMENTWISE, EPS, FACTOR, RATE
from layer_cases import LOWEST, WIDTH, LayerCase
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_arrays import ARRAY_CANDIDATES
from triton_peers import SMS, Tensors, TritonLaunch

Shapes = dict[str, tuple[int, ...]]
GROUP = 8
"""Rows of tiles that programs walk together."""
LONGEST_TILE = 32768
"""Longest row of one tile; longer ones in two passes."""


def drawn_launches(case: LayerCase) -> Iterator[TritonLaunch]:
    """All candidates of a case."""
    if case.kernel in ELEMENTWISE:
        return _elementwise(case, {spec.name: spec.shape for spec in case.arrays})
    return CANDIDATES[case.kernel](case, {spec.name: spec.shape for spec in case.arrays})


def _launch(
    label: str, kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], **options: Any
) -> TritonLaunch:
    """`arguments`: numbers as they are, arrays by name, descriptors by functions of the tensors."""

    def given(t: Tensors) -> tuple[Any, ...]:
        return tuple(t[a] if isinstance(a, str) else a(t) if callable(a) else a for a in arguments)

    return TritonLaunch(label, kernel, grid, given, options)


def _elementwise(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (count,) = shapes["x"]
    numbers = {"scale_array": (FACTOR,), "adam": (RATE,)}.get(case.kernel, ())
    arguments = (*shapes, *numbers, count)
    for tile, warps in ((512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8)):
        grid = (triton.cdiv(count, tile),)
        kernel = getattr(kernels, case.kernel)
        yield _launch(f"B{tile} w{warps}", kernel, grid, arguments, B=tile, num_warps=warps)


def _row_warps(columns: int) -> tuple[int, ...]:
    if columns <= 1024:
        return 1, 2, 4, 8
    return (4, 8, 16) if columns <= 8192 else (8, 16, 32)


LONG = ((4096, 8), (8192, 8), (8192, 16), (16384, 16), (16384, 32))
"""(B, warps) of kernels that walk along rows."""


def _softmax(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    tile = triton.next_power_of_2(columns)
    if columns > LONGEST_TILE:
        for b, warps in LONG:
            arguments = ("x", "y", columns)
            yield _launch(
                f"B{b} w{warps}", kernels.online_softmax, (rows,), arguments, B=b, num_warps=warps
            )
        return
    for warps in _row_warps(columns):
        arguments = ("x", "y", columns, columns)
        yield _launch(
            f"w{warps}", triton_kernels.softmax, (rows,), arguments, B=tile, num_warps=warps
        )
    for warps, per_sm in ((4, 8), (8, 4)) if columns <= 8192 else ():
        yield _launch(
            f"persistent w{warps} x{per_sm}",
            triton_kernels.softmax_persistent,
            (min(rows, SMS * per_sm),),
            ("x", "y", columns, rows, columns),
            **{"B": tile, "STAGES": 3 if columns <= 4096 else 2, "num_warps": warps},
        )


def _layer_norm(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    tile = triton.next_power_of_2(columns)
    arguments = ("x", "weight", "bias", "y", columns, columns, EPS)
    for warps in _row_warps(columns):
        kernel = triton_kernels.layer_norm
        yield _launch(f"w{warps}", kernel, (rows,), arguments, B=tile, num_warps=warps)


def _long_rms_norm(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    arguments = ("x", "weight", "y", EPS, columns)
    for tile, warps in LONG:
        kernel = kernels.long_rms_norm
        yield _launch(f"B{tile} w{warps}", kernel, (rows,), arguments, B=tile, num_warps=warps)


def _quantise(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    arguments = ("x", "y", "scales", columns)
    tile = triton.next_power_of_2(columns)
    if columns <= LONGEST_TILE:
        for warps in _row_warps(columns):
            kernel = kernels.quantise_rows
            yield _launch(f"w{warps}", kernel, (rows,), arguments, B=tile, num_warps=warps)
        return
    for b, warps in LONG:
        kernel = kernels.quantise_long_rows
        yield _launch(f"B{b} w{warps}", kernel, (rows,), arguments, B=b, num_warps=warps)


def _described(name: str, shape: tuple[int, ...], box: list[int]) -> Callable[[Tensors], Any]:
    """A row-major array of `shape` as a descriptor."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return lambda t: TensorDescriptor(t[name], list(shape), strides, box)


def _biased(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (m, n), k = shapes["c"], shapes["a"][1]
    tiles = ((64, 64, 64, 4, 4), (128, 128, 64, 3, 4), (128, 128, 64, 4, 8), (128, 256, 64, 3, 8))
    if m <= 64:
        tiles = ((16, 64, 128, 4, 4), (16, 128, 64, 4, 4), (64, 64, 64, 5, 4), (64, 128, 64, 4, 4))
    for bm, bn, bk, stages, warps in tiles:
        for described in (False, True) if n % 8 == 0 and k % 8 == 0 else (False,):
            a = _described("a", (m, k), [bm, bk]) if described else "a"
            b = _described("b", (k, n), [bk, bn]) if described else "b"
            yield _launch(
                f"{'tiles' if described else 'pointer'} {bm}x{bn}x{bk} s{stages} w{warps}",
                kernels.biased_product,
                (triton.cdiv(m, bm) * triton.cdiv(n, bn),),
                (a, b, "bias", "residual", "c", m, n, k),
                **{"BM": bm, "BN": bn, "BK": bk, "GROUP": GROUP, "DESCRIBED": described},
                **{"num_stages": stages, "num_warps": warps},
            )


NARROW = ((128, 128, 2, 8), (128, 64, 3, 4), (128, 64, 3, 8), (64, 64, 3, 4))
BROAD = ((128, 64, 2, 8), (64, 64, 2, 4), (128, 32, 2, 8), (64, 32, 3, 4))
"""(BM, BN, stages, warps) of heads of up to 128 elements, and of more."""


def attention(
    heads: tuple[int, int], shared: int, length: int, widths: tuple[int, int], **of: Any
) -> Iterator[TritonLaunch]:
    """`heads`: of queries and of keys, of all sequences; `of`: scale, causal, window."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda").byte())
    d, dv = (triton.next_power_of_2(width) for width in widths)
    for bm, bn, stages, warps in NARROW if d <= 128 else BROAD:
        yield _launch(
            f"descriptors {bm}x{bn} s{stages} w{warps}",
            kernels.attention,
            (triton.cdiv(length, bm), heads[0]),
            (
                _described("q", (heads[0], length, widths[0]), [1, bm, d]),
                _described("k", (heads[1], length, widths[0]), [1, bn, d]),
                _described("v", (heads[1], length, widths[1]), [1, bn, dv]),
                _described("o", (heads[0], length, widths[1]), [1, bm, dv]),
                *(of["scale"], heads[0]),
            ),
            **{"SHARED": shared, "QUERIES": length, "KEYS": length, "D": d, "DV": dv},
            **{"CAUSAL": of["causal"], "WINDOW": of["window"] or 0, "BM": bm, "BN": bn},
            **{"num_stages": stages, "num_warps": warps},
        )


def _shared_attention(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, many, length, width = shapes["q"]
    _, few, _, value = shapes["v"]
    heads = (batch * many, batch * few)
    return attention(heads, many // few, length, (width, value), **case.sizes)


def _chunked(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, heads, length, width = shapes["v"]
    key = shapes["q"][3]
    arguments = ("q", "k", "v", "decay", "o", length, width)
    for bv, chunk, stages, warps in (
        *((64, 64, 2, 4), (64, 64, 3, 4), (64, 64, 2, 8), (32, 64, 2, 4), (128, 64, 2, 8)),
        *((64, 32, 3, 4), (32, 64, 3, 4)),
    ):
        yield _launch(
            f"{bv}x{chunk} s{stages} w{warps}",
            kernels.chunked_recurrence,
            (triton.cdiv(width, bv), batch * heads),
            arguments,
            **{"D": key, "BV": bv, "C": chunk, "num_stages": stages, "num_warps": warps},
        )


def _scan(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, length, channels = shapes["x"]
    for block, stages, warps in ((32, 3, 1), (64, 3, 2), (64, 3, 4), (16, 3, 1), (128, 3, 4)):
        yield _launch(
            f"BD{block} s{stages} w{warps}",
            kernels.selective_scan,
            (triton.cdiv(channels, block), batch),
            (*shapes, length, channels),
            **{"N": shapes["decay"][1], "BD": block, "num_stages": stages, "num_warps": warps},
        )


def _midpoint(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    for warps in (1, 2, 4, 8):
        yield _launch(
            f"w{warps}",
            small.midpoint_sums,
            shapes["y"],
            ("y", case.sizes["width"]),
            **{"N": case.sizes["points"], "WAVES": case.sizes["waves"], "num_warps": warps},
        )


def _hits(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    for warps in (1, 2, 4, 8):
        points = case.sizes["points"]
        yield _launch(f"w{warps}", small.count_hits, shapes["y"], ("y",), N=points, num_warps=warps)


def _stencil(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    for bm, bn, warps in ((1, 1024, 4), (4, 256, 4), (8, 128, 4), (8, 256, 8), (16, 128, 8)):
        yield _launch(
            f"{bm}x{bn} w{warps}",
            small.stencil,
            (triton.cdiv(rows, bm), triton.cdiv(columns, bn)),
            ("x", "y", rows, columns),
            **{"RADIUS": case.sizes["radius"], "BM": bm, "BN": bn, "num_warps": warps},
        )


def _sparse(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    for block, warps in ((32, 1), (64, 1), (128, 1), (128, 4), (256, 2), (256, 4), (1024, 4)):
        kernel = small.multiply_sparse_rows
        yield _launch(
            f"B{block} w{warps}", kernel, shapes["y"], tuple(shapes), B=block, num_warps=warps
        )


def _sort(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    for together, warps in ((1, 1), (1, 4), (4, 1), (4, 4), (8, 4)):
        yield _launch(
            f"R{together} w{warps}",
            small.sort_rows,
            (triton.cdiv(rows, together),),
            ("x", "y", rows, columns),
            **{"R": together, "N": case.sizes["tile"], "num_warps": warps},
        )


def _ordered(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (rows, columns), count = shapes["x"], case.sizes["count"]
    integers = case.arrays[0].dtype == "i32"
    ends = (-(2**31), 2**31 - 1) if integers else (-math.inf, math.inf)
    tile = triton.next_power_of_2(columns)
    options = {"N": tile, "LAST": ends[count is None]}
    if count is not None:
        options |= {"COUNT": count, "K": triton.next_power_of_2(count)}
    short = ((1, 1), (4, 1), (4, 4), (16, 4))
    for together, warps in short if tile <= 256 else ((1, n) for n in _row_warps(columns)):
        yield _launch(
            f"R{together} w{warps}",
            getattr(small, case.kernel),
            (triton.cdiv(rows, together),),
            (*shapes, rows, columns),
            **options | {"R": together, "num_warps": warps},
        )


def _largest(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (rows, columns), count = shapes["x"], case.sizes["count"]
    for warps in (1, 4, 8):
        for network in (False, True) if count & (count - 1) == 0 else (False,):
            yield _launch(
                f"{'topk' if network else 'loop'} w{warps}",
                small.largest_of_rows,
                (rows,),
                ("x", "y", columns),
                **{"N": triton.next_power_of_2(columns), "K": count, "NETWORK": network},
                num_warps=warps,
            )


def _histogram(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (count,), (bins,) = shapes["values"], shapes["counts"]
    for tile, programs, warps in ((1024, 2048, 4), (2048, 1024, 4), (4096, 512, 8), (4096, 264, 8)):
        yield _launch(
            f"B{tile} x{programs} w{warps}",
            small.histogram,
            (min(programs, triton.cdiv(count, tile)),),
            ("values", LOWEST, WIDTH, "counts", count, bins),
            **{"B": tile, "N": triton.next_power_of_2(bins), "num_warps": warps},
        )


CANDIDATES: dict[str, Callable[[LayerCase, Shapes], Iterator[TritonLaunch]]] = {
    **ARRAY_CANDIDATES,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "long_rms_norm": _long_rms_norm,
    "quantise_rows": _quantise,
    "biased_product": _biased,
    "shared_attention": _shared_attention,
    "chunked_recurrence": _chunked,
    "selective_scan": _scan,
    "midpoint_sums": _midpoint,
    "count_hits": _hits,
    "stencil": _stencil,
    "multiply_sparse_rows": _sparse,
    "sort_rows": _sort,
    "largest_of_rows": _largest,
    "histogram": _histogram,
    "order_rows": _ordered,
    "order_rows_with_places": _ordered,
    "first_of_rows": _ordered,
    "first_of_rows_with_places": _ordered,
}
