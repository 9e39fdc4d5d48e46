"""Triton's candidates for the kinds of `drawn_array_cases`, a small fixed space each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import triton
import triton_array_kernels as kernels
from drawn_array_cases import DIFFUSION, FILTER, PARTS, SCALE, SEED, ZEROS
from drawn_layers import EPS
from layer_cases import LayerCase
from triton_peers import Tensors, TritonLaunch

Shapes = dict[str, tuple[int, ...]]
Arguments = tuple[str | float, ...]
power = triton.next_power_of_2


@dataclass(frozen=True)
class Launches:
    """Several, one behind the other, under one label."""

    label: str
    each: tuple[TritonLaunch, ...]

    def launch(self, tensors: Tensors) -> None:
        """All of them."""
        for one in self.each:
            one.launch(tensors)

    def warm(self, tensors: Tensors) -> None:
        """Compiles all."""
        for one in self.each:
            one.warm(tensors)


def _launch(
    case: LayerCase, grid: Sequence[int], arguments: Arguments, warps: int, **constants: Any
) -> TritonLaunch:
    """Of the kernel of the case's name; `arguments`: arrays by name."""

    def given(t: Tensors) -> tuple[Any, ...]:
        return tuple(t[a] if isinstance(a, str) else a for a in arguments)

    sizes = (f"{name}{value}" for name, value in constants.items() if name[0] == "B")
    kernel = getattr(kernels, case.kernel)
    options = constants | {"num_warps": warps}
    return TritonLaunch(" ".join([*sizes, f"w{warps}"]), kernel, tuple(grid), given, options)


def _warps_of(elements: int) -> tuple[int, ...]:
    """Of a program that keeps so many."""
    if elements <= 1024:
        return 1, 2, 4
    return (2, 4, 8) if elements <= 4096 else (4, 8, 16) if elements <= 16384 else (8, 16, 32)


def _swap(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, rows, columns = shapes["x"]
    for bm, bn, warps in ((32, 32, 4), (64, 32, 4), (32, 64, 4), (64, 64, 4), (64, 64, 8),
                          (128, 64, 8), (16, 256, 4), (256, 16, 4)):  # fmt: skip
        grid = (triton.cdiv(columns, bn), triton.cdiv(rows, bm), batch)
        yield _launch(case, grid, ("x", "y", rows, columns), warps, BM=bm, BN=bn)


def _rotate(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, time, heads, width = shapes["x"]
    tile = {"H": power(heads), "B": power(width // 2)}
    for warps in _warps_of(2 * tile["H"] * tile["B"]):
        yield _launch(case, (time, batch), (*shapes, time, heads, width // 2), warps, **tile)


def _bags(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    width, rows = shapes["table"][1], shapes["rows"]
    arguments = (*shapes, width, rows[1] if len(rows) == 2 else 1)
    for tile, warps in ((128, 1), (256, 1), (512, 2), (1024, 4), (4096, 8)):
        if tile < 2 * width or tile == 128:
            grid = (rows[0], triton.cdiv(width, tile))
            launch = _launch(case, grid, arguments, warps, B=tile) if len(rows) == 2 else None
            yield launch or TritonLaunch(
                f"B{tile} w{warps}", kernels.sum_bags, grid,
                lambda t: (t["table"], t["rows"], t["out"], width, 1),
                {"B": tile, "num_warps": warps},
            )  # fmt: skip


def _slots(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    tokens, width = shapes["keys"]
    for warps in _warps_of(width):
        yield _launch(case, (tokens,), (*shapes, width), warps, B=power(width))


def _filter_rows(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, channels, time = shapes["x"]
    for tile, warps in ((256, 2), (512, 4), (1024, 4), (2048, 8), (4096, 8)):
        grid = (triton.cdiv(time, tile), channels, batch)
        yield _launch(case, grid, (*shapes, channels, time), warps, WIDTH=FILTER, B=tile)


def _filter_columns(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, time, channels = shapes["x"]
    for bt, bc, warps in ((8, 128, 4), (16, 128, 4), (32, 64, 4), (16, 256, 8), (4, 512, 4)):
        grid = (triton.cdiv(channels, bc), triton.cdiv(time, bt), batch)
        arguments = (*shapes, channels, time)
        yield _launch(case, grid, arguments, warps, WIDTH=FILTER, BT=bt, BC=bc)


def _group_norm(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, every, space = shapes["x"]
    groups = case.sizes["groups"]
    channels = every // groups
    tile = power(channels * space)
    for warps in _warps_of(tile):
        arguments = (*shapes, EPS, channels, space)
        yield _launch(case, (groups, batch), arguments, warps, B=tile)


def _moments(case: LayerCase, shapes: Shapes) -> Iterator[Launches]:
    rows, columns = shapes["x"]
    about = "sums", "squares"
    for bm, bn, warps, join in ((16, 64, 4, 32), (32, 64, 4, 32), (32, 128, 8, 32), (8, 256, 4, 64),
                                (64, 32, 4, 32)):  # fmt: skip
        options = {"BM": bm, "BN": bn, "num_warps": warps}
        first = TritonLaunch(
            "", kernels.sum_columns_in_parts, (triton.cdiv(columns, bn), PARTS),
            lambda t: (*(t[n] for n in ("x", *about)), rows, columns), options,
        )  # fmt: skip
        then = TritonLaunch(
            "", kernels.join_moments, (triton.cdiv(columns, join),),
            lambda t: (*(t[n] for n in (*about, "mean", "variance")), rows, columns),
            {"PARTS": PARTS, "B": join, "num_warps": 4},
        )  # fmt: skip
        yield Launches(f"{bm}x{bn} w{warps}", (first, then))


def _running_rows(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    whole = power(columns)
    tiles = {min(whole, tile) for tile in (1024, 2048, 4096, 8192)}
    for tile in sorted(tiles):
        for warps in _warps_of(tile)[:2] if len(tiles) > 1 else _warps_of(tile):
            yield _launch(case, (rows,), ("x", "y", columns), warps, B=tile)


def _running_columns(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, rows, columns = shapes["x"]
    for bm, bn, warps in ((32, 32, 1), (64, 32, 4), (128, 16, 4), (64, 64, 4), (16, 128, 4),
                          (128, 32, 8)):  # fmt: skip
        grid = (triton.cdiv(columns, bn), batch)
        yield _launch(case, grid, ("x", "y", rows, columns), warps, BM=bm, BN=bn)


def _pool(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (planes, *sides), (_, *made) = shapes["x"], shapes["y"]
    for tile, warps in ((128, 4), (256, 4), (512, 4), (1024, 4), (1024, 8)):
        grid = (triton.cdiv(math.prod(made), tile), planes)
        arguments = ("x", "y", *sides, *made)
        yield _launch(case, grid, arguments, warps, **case.sizes, B=tile)


def _dropped(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (count,) = shapes["x"]
    for tile, warps in ((512, 4), (1024, 4), (1024, 8), (2048, 8)):
        grid = (triton.cdiv(count, tile),)
        yield _launch(case, grid, (*shapes, SEED, ZEROS, count), warps, B=tile)


def _gated(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["y"]
    for tile, warps in ((256, 1), (512, 2), (1024, 4), (2048, 4), (4096, 8)):
        if tile < 2 * columns or tile == 256:
            grid = (rows, triton.cdiv(columns, tile))
            yield _launch(case, grid, ("x", "y", columns), warps, B=tile)


def _masked(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    matrices, rows, columns = shapes["x"]
    for warps in _warps_of(power(columns)):
        arguments = (*shapes, SCALE, rows, columns)
        yield _launch(case, (rows, matrices), arguments, warps, B=power(columns))


def _diffuse(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    depth, rows, columns = shapes["x"]
    for bm, bn, warps in (
        *((4, 128, 4), (8, 128, 4), (8, 64, 4), (16, 64, 4), (4, 256, 4), (16, 32, 4)),
    ):
        grid = (triton.cdiv(columns, bn), triton.cdiv(rows, bm), depth)
        arguments = ("x", "y", DIFFUSION, depth, rows, columns)
        yield _launch(case, grid, arguments, warps, BM=bm, BN=bn)


def _segments(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    count, columns = shapes["y"]
    for bm, bn, warps in (
        *((4, 64, 1), (8, 64, 2), (8, 128, 4), (16, 64, 4), (4, 256, 4), (1, 256, 1)),
    ):
        grid = (triton.cdiv(columns, bn), count)
        yield _launch(case, grid, (*shapes, columns), warps, BM=bm, BN=bn)


def _vectors(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    batch, rows, columns = shapes["a"]
    for bm, bk, warps in ((1, 1024, 4), (4, 512, 4), (8, 256, 4), (16, 128, 4), (2, 1024, 4),
                          (16, 256, 8), (1, 512, 1)):  # fmt: skip
        grid = (triton.cdiv(rows, bm), batch)
        yield _launch(case, grid, (*shapes, rows, columns), warps, BM=bm, BK=bk)


def _small(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (count, m, k), n = shapes["a"], shapes["b"][2]
    tile = {
        name: max(16, power(size)) for name, size in zip(("BM", "BN", "BK"), (m, n, k), strict=True)
    }
    for warps in (1, 2, 4):
        yield _launch(case, (count,), (*shapes, m, n, k), warps, **tile, TF32=False)


def _gram(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    rows, columns = shapes["x"]
    for bm, bn, bk, stages, warps in ((32, 32, 128, 4, 4), (64, 64, 64, 4, 4), (128, 64, 64, 4, 4),
                                      (128, 128, 64, 3, 8), (16, 32, 256, 4, 4)):  # fmt: skip
        grid = (triton.cdiv(columns, bm), triton.cdiv(columns, bn))
        constants = {"BM": bm, "BN": bn, "BK": bk, "num_stages": stages}
        yield _launch(case, grid, ("x", "c", rows, columns), warps, **constants)


def _nearest(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (points, width), centres = shapes["x"], shapes["centres"][0]
    for bm, bn, stages, warps in ((64, 64, 3, 4), (128, 64, 3, 4), (128, 64, 3, 8),
                                  (128, 128, 2, 8), (64, 32, 3, 4)):  # fmt: skip
        constants = {"D": case.sizes["tile"], "BM": bm, "BN": bn, "num_stages": stages}
        arguments = (*shapes, points, centres, width)
        yield _launch(case, (triton.cdiv(points, bm),), arguments, warps, **constants)


def _cell(case: LayerCase, shapes: Shapes) -> Iterator[TritonLaunch]:
    (batch, inputs), units = shapes["x"], shapes["h"][1]
    for bm, bn, bk, stages, warps in ((16, 16, 128, 3, 4), (16, 32, 64, 4, 4), (32, 32, 64, 4, 4),
                                      (64, 32, 64, 3, 4), (64, 64, 64, 3, 8),
                                      (128, 32, 64, 3, 8)):  # fmt: skip
        grid = (triton.cdiv(batch, bm), triton.cdiv(units, bn))
        constants = {"BM": bm, "BN": bn, "BK": bk, "num_stages": stages}
        yield _launch(case, grid, (*shapes, batch, inputs, units), warps, **constants)


ARRAY_CANDIDATES: dict[str, Callable[[LayerCase, Shapes], Iterator[Any]]] = {
    "swap_axes": _swap,
    "rotate_halves": _rotate,
    "rotate_pairs": _rotate,
    "gather_rows": _bags,
    "sum_bags": _bags,
    "write_slots": _slots,
    "filter_rows": _filter_rows,
    "filter_columns": _filter_columns,
    "group_norm": _group_norm,
    "column_moments": _moments,
    "add_along_rows": _running_rows,
    "add_along_columns": _running_columns,
    "pool": _pool,
    "add_dropped": _dropped,
    "gate_halves": _gated,
    "masked_softmax": _masked,
    "diffuse": _diffuse,
    "sum_segments": _segments,
    "multiply_vectors": _vectors,
    "multiply_small": _small,
    "gram": _gram,
    "nearest": _nearest,
    "lstm_cell": _cell,
}
