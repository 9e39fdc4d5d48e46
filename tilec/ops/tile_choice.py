"""Tile sizes for products too small for the usual ones: fewer tiles than multiprocessors, few rows.

For all others `tl.auto` is the choice. The model of `tilec.tuning` picks from a short list, from
sizes alone: no IR is built, so a call that is new costs microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import tilec.language as tl
from tilec.language.dtypes import DType
from tilec.tuning.machine import Machine
from tilec.tuning.model import LAUNCH_US, WARP_TILE, LoopWork, Work, predict

USUAL_SIDE = 128
"""Rows and columns of the tile that `tl.auto` gives a product on tensor cores."""
K_BYTES = 128
"""Bytes of k a tile spans: one row of the widest shared-memory swizzle."""
SIDES = (16, 32, 64, 128)
MOST_SPLITS = 16
ACCUMULATORS_PER_WARP = 4096
"""As the compiler chooses warps: 128 accumulators a thread, 4 to 8 warps."""


@dataclass(frozen=True)
class TileChoice:
    """Sizes of a tile, and in how many parts k is summed; `us`: what the model predicts."""

    rows: int
    columns: int
    depth: int
    splits: int
    us: float

    @property
    def constants(self) -> dict[str, int]:
        """As the kernel takes them, but for `splits`."""
        return {"BM": self.rows, "BN": self.columns, "BK": self.depth}


@lru_cache(maxsize=4096)
def choose_tiles(
    m: int,
    n: int,
    k: int,
    batch: int,
    dtype: DType,
    precision: str,
    machine: Machine,
    most_splits: int = MOST_SPLITS,
) -> TileChoice | None:
    """The best predicted tile, None where `tl.auto` serves.

    That is: off tensor cores, and where 128 x 128 tiles fill every multiprocessor.
    """
    if dtype == tl.f64 or (dtype == tl.f32 and precision == "ieee") or 0 in (m, n, batch):
        return None
    tiles = tl.cdiv(m, USUAL_SIDE) * tl.cdiv(n, USUAL_SIDE) * batch
    if tiles >= machine.multiprocessors and min(m, n) > USUAL_SIDE // 2:
        return None
    kind = "tf32" if dtype == tl.f32 else "f8" if dtype.is_fp8 else str(dtype)
    width = dtype.bits // 8
    splits = [1 << power for power in range(most_splits.bit_length())]
    choices = _choices((m, n, max(k, 1), batch), splits, kind, width, machine)
    return min(choices, key=lambda choice: choice.us)


def tile_space(element_bytes: int) -> list[dict[str, list[int]]]:
    """What tuning searches: large tiles, and those of products with few rows."""
    deep = [K_BYTES // 2 // element_bytes, K_BYTES // element_bytes]
    large = {"BM": [128, 256], "BN": [128, 256], "BK": deep[1:]}
    return [
        {**large, "num_warps": [4, 8], "STAGES": [4]},
        {"BM": [64, 128, 256], "BN": [64, 128, 256], "BK": deep, "num_warps": [4, 8]},
        {"BM": [16, 32], "BN": [32, 64, 128], "BK": [deep[1], 2 * deep[1]], "num_warps": [4]},
    ]


def _choices(
    sizes: tuple[int, int, int, int],
    splits_to_try: list[int],
    kind: str,
    width: int,
    machine: Machine,
) -> Iterator[TileChoice]:
    m, n, k, batch = sizes
    depth = K_BYTES // width
    for rows in _sides(m):
        for columns in _sides(n):
            for splits in splits_to_try:
                if splits > 1 and (tl.cdiv(k, depth) < 4 * splits or batch * splits > 1024):
                    continue
                us = _predicted(sizes, (rows, columns, depth), splits, kind, width, machine)
                yield TileChoice(rows, columns, depth, splits, us)


def _sides(size: int) -> Mapping[int, None]:
    """Sides no longer than what they must cover, and the shortest that covers it."""
    least = next((side for side in SIDES if side >= size), SIDES[-1])
    return dict.fromkeys(side for side in SIDES if side <= least and side >= min(least, 32))


def _predicted(
    sizes: tuple[int, int, int, int],
    tile: tuple[int, int, int],
    splits: int,
    kind: str,
    width: int,
    machine: Machine,
) -> float:
    m, n, k, batch = sizes
    rows, columns, depth = tile
    steps = tl.cdiv(tl.cdiv(k, depth), splits)
    a, b = rows * depth * width, depth * columns * width
    shared = a * (1 + tl.cdiv(columns, WARP_TILE)) + b * (1 + tl.cdiv(rows, WARP_TILE))
    loop = LoopWork(steps, {kind: 2 * prod(tile)}, a + b, shared, a + b)
    out_bytes = 4 if splits > 1 else width
    store = LoopWork(global_bytes=rows * columns * out_bytes)
    programs = tl.cdiv(m, rows) * tl.cdiv(n, columns) * batch * splits
    arrays = batch * ((m * k + k * n) * width + m * n * out_bytes * splits)
    warps = max(4, min(8, rows * columns // ACCUMULATORS_PER_WARP))
    us = predict(Work(programs, warps, (loop, store), arrays, rows * columns), machine).us
    if splits > 1:
        # The second kernel reads the partial sums, which L2 holds.
        us += LAUNCH_US + 4 * m * n * batch * (splits + 1) / (machine.memory_gb_per_s * 1e3)
    return us
