"""Tile sizes of a product, from its sizes and how its operands lie in memory.

The model of `tilec.tuning` picks from a list of tiles; no IR is built, so a call that is new costs
some milliseconds, and later ones look the choice up. `tl.auto` is the choice where the unit that
multiplies has one size (FMA units, f64), and, where there are no warpgroup instructions, for
products whose usual tiles fill the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import tilec.language as tl
from tilec.language.dtypes import DType
from tilec.ops.multiply_plan import KEPT
from tilec.target import Feature, Target
from tilec.tuning.dot_work import (
    Memory,
    is_by_warpgroups,
    line_bytes,
    narrow_loads,
    shared_traffic,
    way_of,
)
from tilec.tuning.machine import Machine
from tilec.tuning.model import LAUNCH_US, LoopWork, Way, Work, predict

USUAL_SIDE = 128
"""Rows and columns of the tile that `tl.auto` gives a product on tensor cores."""
K_BYTES = 128
"""Bytes of k a tile spans at least: one row of the widest shared-memory swizzle."""
SIDES = (16, 32, 64, 128)
"""Of tiles that single warps multiply."""
WIDE_ROWS = (64, 128, 256)
WIDE_COLUMNS = (8, 16, 32, 64, 96, 128, 160, 192, 224, 256)
"""Of tiles that warpgroups multiply: between powers of two, so that some number of tiles comes
close below the number of multiprocessors."""
MOST_ELEMENTS = 128 * 256
"""Of a tile: 128 accumulators for each thread of two warpgroups."""
MOST_KEPT_ELEMENTS = 128 * 192
"""Of a tile with two accumulators, where sums are kept in f32."""
MOST_TURNED_ROWS = 64
"""Rows of a product of which the transpose is tried: few rows become an instruction's columns."""
ALIKE = 1.004
"""Of tiles with predictions so close, the smaller: its programs spread better."""
LEAST_DEEP_SLOTS = 4
"""Slots that tiles of more than `K_BYTES` must leave room for: with 3, products were slower."""
MOST_SPLITS = 16
ACCUMULATORS_PER_WARP = 4096
"""As the compiler chooses warps: 128 accumulators a thread, 4 to 8 warps."""


@dataclass(frozen=True)
class TileChoice:
    """Sizes of a tile, and in how many parts k is summed; `us`: what the model predicts.

    `is_turned`: they are for the transposed product, b^T a^T. `is_single`: every program runs at
    once, so that no CTA needs to stay for a second one.
    """

    rows: int
    columns: int
    depth: int
    splits: int
    us: float
    is_turned: bool = False
    is_single: bool = False

    @property
    def constants(self) -> dict[str, int]:
        """As the kernel takes them, but for `splits`."""
        return {"BM": self.rows, "BN": self.columns, "BK": self.depth}


@dataclass(frozen=True)
class Product:
    """A batch of products (m, k) x (k, n). `kind`: of the operands, as the model calls it; `width`:
    bytes of an element; `a`, `b`: how the operands lie in memory. `keeps_sums`: those of `KEPT`
    elements of k, in registers."""

    m: int
    n: int
    k: int
    batch: int
    kind: str
    width: int
    a: Memory
    b: Memory
    keeps_sums: bool = False

    def way(self, by_warpgroups: bool) -> Way:
        """How the operands come to shared memory."""
        return way_of(((self.a, 1), (self.b, 0)), self.width, by_warpgroups)

    def turned(self) -> Product:
        """The transposed product."""
        a, b = (Memory(_other(one.contiguous), one.alignment) for one in (self.b, self.a))
        return replace(self, m=self.n, n=self.m, a=a, b=b)


def _other(axis: int | None) -> int | None:
    return None if axis is None else 1 - axis


ROW_MAJOR = Memory(1, 128)
"""A matrix as a framework makes it."""


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
    a: Memory = ROW_MAJOR,
    b: Memory = ROW_MAJOR,
) -> TileChoice | None:
    """The best predicted tile, None where `tl.auto` serves. `precision`: as `matmul` takes it."""
    if dtype == tl.f64 or (dtype == tl.f32 and precision == "ieee") or 0 in (m, n, batch):
        return None
    has_warpgroups = machine.target.supports(Feature.WGMMA)
    tiles = tl.cdiv(m, USUAL_SIDE) * tl.cdiv(n, USUAL_SIDE) * batch
    fills = tiles >= machine.multiprocessors and min(m, n) > USUAL_SIDE // 2
    if fills and not has_warpgroups:
        return None
    kind = "tf32" if dtype == tl.f32 else "f8" if dtype.is_fp8 else str(dtype)
    product = Product(m, n, max(k, 1), batch, kind, dtype.bits // 8, a, b, precision == "f32")
    choices = list(_choices(product, False, most_splits, machine))
    is_regular = has_warpgroups and product.way(has_warpgroups) is Way.ENGINE
    if m <= MOST_TURNED_ROWS and is_regular:
        choices += _choices(product.turned(), True, most_splits, machine)
    least = min(choice.us for choice in choices)
    alike = [choice for choice in choices if choice.us <= ALIKE * least]
    return min(alike, key=lambda choice: (choice.rows * choice.columns, choice.us))


def tile_space(element_bytes: int) -> list[dict[str, list[int]]]:
    """What tuning searches: large tiles, and those of products with few rows."""
    deep = [K_BYTES // 2 // element_bytes, K_BYTES // element_bytes]
    large = {"BM": [128, 256], "BN": [128, 256], "BK": deep[1:]}
    return [
        {**large, "num_warps": [4, 8], "STAGES": [4]},
        {"BM": [64, 128, 256], "BN": [64, 128, 256], "BK": deep, "num_warps": [4, 8]},
        {"BM": [128], "BN": [96, 160, 192, 224], "BK": deep[1:], "num_warps": [8]},
        {"BM": [64], "BN": [32, 64, 128], "BK": [2 * deep[1]], "num_warps": [4]},
        {"BM": [16, 32], "BN": [32, 64, 128], "BK": [deep[1], 2 * deep[1]], "num_warps": [4]},
    ]


def _choices(
    product: Product, is_turned: bool, most_splits: int, machine: Machine
) -> Iterator[TileChoice]:
    least = K_BYTES // product.width
    for rows, columns in _tiles(product, is_turned, machine.target):
        programs = tl.cdiv(product.m, rows) * tl.cdiv(product.n, columns) * product.batch
        for depth in (least, 2 * least, 4 * least):
            if depth > least and not _may_be_deep(product, rows, columns, depth, machine.target):
                continue
            splits = 1
            while splits == 1 or _may_split(product, programs, depth, splits, machine):
                if splits > most_splits:
                    break
                us, is_single = _predicted(product, (rows, columns, depth), splits, machine)
                yield TileChoice(rows, columns, depth, splits, us, is_turned, is_single)
                splits *= 2


def _may_be_deep(product: Product, rows: int, columns: int, depth: int, target: Target) -> bool:
    """Whether k is long enough for such tiles, and they leave room for stages; what passes through
    registers wants none."""
    if product.keeps_sums and depth > KEPT:
        return False
    wide = is_by_warpgroups(rows, columns, product.kind, target)
    if product.way(wide) is Way.REGISTERS and rows > SIDES[0]:
        return False
    room = target.shared_bytes if wide else target.shared_bytes // 2
    slot = (rows + columns) * depth * product.width
    return depth < 2 * product.k and LEAST_DEEP_SLOTS * slot <= room


def _may_split(product: Product, programs: int, depth: int, splits: int, machine: Machine) -> bool:
    """Whether k can be summed in so many parts, and there is room for them on the device."""
    is_long = tl.cdiv(product.k, depth) >= 4 * splits and product.batch * splits <= 1024
    return is_long and programs * splits < 4 * machine.multiprocessors


def _tiles(product: Product, is_turned: bool, target: Target) -> Iterator[tuple[int, int]]:
    """Rows and columns to try."""
    if target.supports(Feature.WGMMA):
        widths = _sides(product.n, WIDE_COLUMNS)
        for rows in _sides(product.m, WIDE_ROWS):
            for columns in widths[-1:] if is_turned else widths:
                if rows * columns <= (MOST_KEPT_ELEMENTS if product.keeps_sums else MOST_ELEMENTS):
                    yield rows, columns
        is_short = product.m < WIDE_ROWS[0] or product.way(True) is Way.REGISTERS
        narrow = [s for s in _sides(product.m, SIDES) if s < WIDE_ROWS[0] and is_short]
    else:
        narrow = _sides(product.m, SIDES)
    for rows in () if is_turned else narrow:
        for columns in _sides(product.n, SIDES):
            yield rows, columns


def _sides(size: int, sides: tuple[int, ...]) -> list[int]:
    """Sides no longer than what they must cover, and the shortest that covers it; few short ones
    where that is long."""
    least = next((side for side in sides if side >= size), sides[-1])
    return [side for side in sides if min(least, SIDES[1]) <= side <= least]


def _predicted(
    product: Product, tile: tuple[int, int, int], splits: int, machine: Machine
) -> tuple[float, bool]:
    """Microseconds, and whether all programs run at once."""
    out_bytes = 4 if splits > 1 else product.width
    work = _work(product, tile, splits, out_bytes, machine.target)
    found = predict(work, machine)
    us = found.us
    if splits > 1:
        # The second kernel reads the partial sums, which L2 holds.
        size = product.m * product.n * product.batch
        us += LAUNCH_US + 4 * size * (splits + 1) / (machine.memory_gb_per_s * 1e3)
    return us, work.loops[0].by_warpgroups and found.waves <= 1


def _work(
    product: Product, tile: tuple[int, int, int], splits: int, out_bytes: int, target: Target
) -> Work:
    m, n, k, width = product.m, product.n, product.k, product.width
    rows, columns, depth = tile
    a, b = rows * depth * width, depth * columns * width
    by_warpgroups = is_by_warpgroups(rows, columns, product.kind, target)
    way = product.way(by_warpgroups)
    a_row = depth if product.a.contiguous == 1 else rows
    b_row = columns if product.b.contiguous == 1 else depth
    lines = line_bytes(a, a_row * width, product.a, way)
    lines += line_bytes(b, b_row * width, product.b, way)
    along = product.a.contiguous == 1, product.b.contiguous == 0
    narrow = narrow_loads(rows * depth, a_row, along[0], by_warpgroups)
    narrow += narrow_loads(depth * columns, b_row, along[1], by_warpgroups)
    is_narrow = way is Way.REGISTERS
    loop = LoopWork(
        tl.cdiv(tl.cdiv(k, depth), splits),
        {product.kind: 2 * prod(tile)},
        a + b,
        shared_traffic(rows, columns, a, b, by_warpgroups),
        0 if is_narrow else a + b,
        line_bytes=lines,
        narrow_loads=narrow if is_narrow else 0,
        way=way,
        by_warpgroups=by_warpgroups,
    )
    store = LoopWork(stored_bytes=rows * columns * out_bytes)
    programs = tl.cdiv(m, rows) * tl.cdiv(n, columns) * product.batch * splits
    arrays = product.batch * ((m * k + k * n) * width + m * n * out_bytes * splits)
    warps = 8 if by_warpgroups and rows >= USUAL_SIDE else 4
    if not target.supports(Feature.WGMMA):
        warps = max(4, min(8, rows * columns // ACCUMULATORS_PER_WARP))
    return Work(programs, warps, (loop, store), arrays, rows * columns)
