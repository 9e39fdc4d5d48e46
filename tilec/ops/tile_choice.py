"""Tile sizes of a product, from its sizes and how its operands lie in memory.

The model of `tilec.tuning` picks from a list of tiles; no IR is built, so a call that is new costs
some milliseconds, and later ones look the choice up. `tl.auto` is the choice where the unit that
multiplies has one size (FMA units, f64), and, where single warps multiply, for products whose usual
tiles fill the device. For targets with tensor memory the model has rates that are stated, not
fitted: nobody has timed their tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import tilec.language as tl
from tilec.dtypes import DType
from tilec.mma_shapes import PAIR_MS, tensor_ns
from tilec.ops.multiply_plan import KEPT
from tilec.ops.product_facts import Product
from tilec.ops.row_groups import rows_of_round
from tilec.target import Feature, Target
from tilec.tuning.dot_work import (
    Memory,
    columns_of,
    flops_of,
    line_bytes,
    narrow_loads,
    shared_traffic,
    unit_of,
)
from tilec.tuning.machine import Machine
from tilec.tuning.model import LoopWork, Unit, Way, Work, predict
from tilec.tuning.tail_model import predict_with_tail

USUAL_SIDE = 128
"""Rows and columns of the tile that `tl.auto` gives a product on tensor cores."""
K_BYTES = 128
"""Bytes of k a tile spans at least: one row of the widest shared-memory swizzle."""
SIDES = (16, 32, 64, 128)
"""Of tiles that single warps multiply."""
WIDE_ROWS = (64, 128, 256)
WIDE_COLUMNS = (8, 16, 32, 64, 96, 112, 128, 160, 192, 224, 256)
"""Of tiles that warpgroups multiply: between powers of two, so that some number of tiles comes
close below the number of multiprocessors."""
MOST_ELEMENTS = 128 * 256
"""Of a tile: 128 accumulators for each thread of two warpgroups."""
SLIMNESS = 4
"""Rows for each column, at most, of tiles for more than one warpgroup."""
MOST_KEPT_ELEMENTS = 128 * 192
"""Of a tile with two accumulators, where sums are kept in f32, or whose operands threads bring with
registers of their own."""
MOST_TURNED_ROWS = 256
"""Rows of a product of which the transpose is tried: few rows become an instruction's columns."""
ALONE = (1, 1)
CLUSTERS = ((2, 1), (1, 2), (4, 1), (1, 4))
"""Programs along rows and columns whose CTAs load together what they both need."""
CLUSTER_US = 0.7
"""What it costs that they meet at the beginning, and wait for each other from then on."""
LEAST_PART = 16
"""Rows or columns of a shared tile that one CTA of a cluster loads, at least."""
SWIZZLED_ROWS = 8
"""After so many rows a swizzle repeats: a part of a tile may begin there."""
MOST_WAITING = 2
"""Rounds of programs that wait for DRAM, whose CTAs do not stay: who gets more takes the next."""
ACROSS_K_STAGES = 3
"""Of large tiles whose lhs threads read: CTAs that do not run far ahead read from L2 together."""
ALIKE = 1.006
"""Of tiles with predictions so close, the smaller: its programs spread better."""
LEAST_DEEP_SLOTS = 4
"""Slots that tiles of more than `K_BYTES` must leave room for: with 3, products were slower."""
MOST_CTAS = 4
"""Of a cluster."""
PAIR = 2
"""CTAs that multiply together in tensor memory."""
SWIZZLE_BYTES = 32
"""The shortest row of a swizzle."""
MOST_SPLITS = 16
SPLIT_US = 4.6
"""What the second kernel of a product in parts takes beside reading them, and what the first loses
because this one starts when all is done."""
TAIL_PARTS = (2, 3, 4, 6, 8)
MOST_TAIL_PARTS = TAIL_PARTS[-1]
TURN_COLUMNS = (192,)
"""Of tiles of `USUAL_SIDE` rows that one warpgroup multiplies while another stores; narrower ones
were slower wherever turns paid."""
TURN_WARPS = 4
WORTH_TURNS = 0.995
"""Of the time without: where they meet by prediction, a run on an H200 had either first."""
WORTH_A_TAIL = 0.96
"""Of the time without: 4 % are what the model is off by, and what a card at its power limit gives
back where fewer multiprocessors work."""
ACCUMULATORS_PER_WARP = 4096
"""As the compiler chooses warps: 128 accumulators a thread, 4 to 8 warps."""


@dataclass(frozen=True)
class TileChoice:
    """Sizes of a tile, and in how many parts k is summed; `us`: what the model predicts.

    `is_turned`: they are for the transposed product, b^T a^T. `is_single`: every program runs at
    once, so that no CTA needs to stay for a second one. `cluster`: of `CLUSTERS`, or a pair that
    multiplies together.
    `tail`: in how many parts k of the tiles of the last round is summed (`tail_kernel`).
    `in_turn`: two sets of warps take the programs of a CTA in turn (`alternate-programs`).
    `stages`: slots of the ring, None for as many as there is room for.
    `group`: how many rows of tiles programs go down before the next column, None for what the
    compiler takes.
    """

    rows: int
    columns: int
    depth: int
    splits: int
    us: float
    is_turned: bool = False
    is_single: bool = False
    cluster: tuple[int, int] = ALONE
    tail: int = 1
    in_turn: bool = False
    stages: int | None = None
    group: int | None = None

    @property
    def constants(self) -> dict[str, int]:
        """As the kernel takes them, but for `splits`."""
        stages = {} if self.stages is None else {"STAGES": self.stages}
        return {"BM": self.rows, "BN": self.columns, "BK": self.depth, **stages}


def wide_unit(target: Target) -> Unit:
    """Who multiplies large tiles."""
    return unit_of(USUAL_SIDE, USUAL_SIDE, "f16", target)


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
    most_ctas: int = MOST_CTAS,
    is_plain: bool = False,
) -> TileChoice | None:
    """The best predicted tile, None where `tl.auto` serves. `precision`: as `matmul` takes it.
    `most_ctas`: 1 where the copy engine may refuse the operands, which clusters want. `is_plain`:
    the sum is stored as it is, so that sets of warps in turn have registers for it."""
    if dtype == tl.f64 or (dtype == tl.f32 and precision == "ieee") or 0 in (m, n, batch):
        return None
    wide = wide_unit(machine.target)
    tiles = tl.cdiv(m, USUAL_SIDE) * tl.cdiv(n, USUAL_SIDE) * batch
    fills = tiles >= machine.multiprocessors and min(m, n) > USUAL_SIDE // 2
    if fills and wide is Unit.WARPS:
        return None
    kind = "tf32" if dtype == tl.f32 else "f8" if dtype.is_fp8 else str(dtype)
    product = Product(m, n, max(k, 1), batch, kind, dtype.bits // 8, a, b, precision == "f32")
    choices = list(_choices(product, False, most_splits, machine))
    is_regular = product.way(wide) is Way.ENGINE
    across_k = not is_regular and product.turned().way(wide) is Way.ENGINE
    if across_k:  # the rhs lies so; as the lhs it may
        choices = [one for one in choices if one.rows < WIDE_ROWS[0]]
    if across_k or (m <= MOST_TURNED_ROWS and is_regular):
        choices += _choices(product.turned(), True, most_splits, machine)
    across_k |= product.reads_across_k(wide)
    is_regular &= not across_k
    choices = [one for one in choices if prod(one.cluster) <= most_ctas]
    least = min(choice.us for choice in choices)
    rare: list[TileChoice] = []
    if most_splits > 1 and is_regular:
        rare += [choice for choice in _tails(product, machine) if choice.us < WORTH_A_TAIL * least]
    if is_plain and is_regular and most_ctas > 1:
        rare += [choice for choice in _turns(product, machine) if choice.us < WORTH_TURNS * least]
    if rare:
        found = min(rare, key=lambda choice: choice.us)
    else:
        found = min((c for c in choices if c.us <= ALIKE * least), key=_preference)
        is_large = found.rows * found.columns == MOST_ELEMENTS and not found.is_single
        if across_k and is_large and is_plain and most_ctas > 1:
            found = replace(found, stages=ACROSS_K_STAGES)
    return replace(found, group=_group(found, product, machine))


def _group(choice: TileChoice, product: Product, machine: Machine) -> int | None:
    """The group of programs that warpgroups multiply, where CTAs share them: sets of warps in turn
    are at two rounds of them at a time, and were no faster so."""
    is_alone = choice.cluster == ALONE and choice.tail * choice.splits == 1 and not choice.in_turn
    unit = unit_of(choice.rows, choice.columns, product.kind, machine.target)
    if not is_alone or choice.is_turned or choice.is_single or unit is not Unit.WARPGROUPS:
        return None
    tiles = tl.cdiv(product.m, choice.rows) * tl.cdiv(product.n, choice.columns) * product.batch
    return rows_of_round(choice.rows, choice.columns, tiles, machine.multiprocessors)


def _preference(choice: TileChoice) -> tuple[float, ...]:
    """The key by which tiles of like predicted time are ordered, the preferred one smallest.

    Smaller tiles come first, then deeper ones, then those without a cluster; among these the one of
    fewer rows, in clusters the one of more.
    """
    size = choice.rows * choice.columns
    is_alone = choice.cluster == ALONE
    return size, -choice.depth, not is_alone, choice.rows if is_alone else -choice.rows, choice.us


def tile_space(element_bytes: int) -> list[dict[str, list[Any]]]:
    """What tuning searches: large tiles, and those of products with few rows."""
    deep = [K_BYTES // 2 // element_bytes, K_BYTES // element_bytes]
    large = {"BM": [128, 256], "BN": [128, 256], "BK": deep[1:]}
    in_turn = {"consumers": ["pingpong"]}
    return [
        {**large, "num_warps": [4, 8], "STAGES": [4]},
        {"BM": [64, 128, 256], "BN": [64, 128, 256], "BK": deep, "num_warps": [4, 8]},
        {"BM": [128], "BN": [96, 160, 192, 224], "BK": deep[1:], "num_warps": [8]},
        {**in_turn, "BM": [128], "BN": [128, 160, 192], "BK": deep[1:], "num_warps": [4]},
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
            tile = rows, columns, depth
            splits = 1
            while splits == 1 or _may_split(product, programs, depth, splits, machine):
                if splits > most_splits:
                    break
                us, is_single = _predicted(product, tile, splits, ALONE, machine)
                yield TileChoice(*tile, splits, us, is_turned, is_single)
                splits *= 2
            if _may_pair(product, tile, machine.target):
                us, is_single = _predicted(product, tile, 1, (PAIR, 1), machine)
                yield TileChoice(*tile, 1, us, is_turned, is_single, (PAIR, 1))
            for cluster in CLUSTERS:
                if _may_share(product, rows, columns, cluster, machine):
                    us, _ = _predicted(product, tile, 1, cluster, machine)
                    yield TileChoice(*tile, 1, us, is_turned, True, cluster)


def _tails(product: Product, machine: Machine) -> Iterator[TileChoice]:
    """Large tiles by warpgroups, those of the last round in parts."""
    depth = K_BYTES // product.width
    steps = tl.cdiv(product.k, depth)
    for rows, columns in () if product.keeps_sums else _tiles(product, False, machine.target):
        unit = unit_of(rows, columns, product.kind, machine.target)
        if unit is not Unit.WARPGROUPS or columns % SIDES[0]:
            continue
        work = _work(product, (rows, columns, depth), 1, ALONE, machine.target)
        for parts in TAIL_PARTS:
            if steps >= 4 * parts:
                us = predict_with_tail(work, parts, machine)
                yield TileChoice(rows, columns, depth, 1, us, tail=parts)


def _turns(product: Product, machine: Machine) -> Iterator[TileChoice]:
    """Tiles of one warpgroup for two sets of warps, where each has a program to take."""
    depth = K_BYTES // product.width
    for columns in TURN_COLUMNS:
        unit = unit_of(USUAL_SIDE, columns, product.kind, machine.target)
        if unit is not Unit.WARPGROUPS or product.keeps_sums:
            continue
        work = _work(product, (USUAL_SIDE, columns, depth), 1, ALONE, machine.target)
        found = predict(replace(work, teams=2, warps=TURN_WARPS), machine)
        if found.waves > 1:
            yield TileChoice(USUAL_SIDE, columns, depth, 1, found.us, in_turn=True)


def _may_pair(product: Product, tile: tuple[int, int, int], target: Target) -> bool:
    """Whether two programs, one below the other, can multiply together (`pair-products`)."""
    rows, columns, _ = tile
    unit = unit_of(rows, columns, product.kind, target)
    fits = rows == PAIR_MS[0] // PAIR and columns in tensor_ns(PAIR_MS[0], product.kind, PAIR)
    # Half of the columns are whole rows of a swizzle, whichever way they lie.
    whole = columns // PAIR * product.width % SWIZZLE_BYTES == 0 or product.b.contiguous == 0
    engine = unit is Unit.TENSOR_MEMORY and product.way(unit) is Way.ENGINE
    return engine and fits and whole and product.m > rows and not product.keeps_sums


def _may_be_deep(product: Product, rows: int, columns: int, depth: int, target: Target) -> bool:
    """Whether k is long enough for such tiles, and they leave room for stages; what passes through
    registers wants none."""
    unit = unit_of(rows, columns, product.kind, target)
    if (product.keeps_sums and depth > KEPT) or product.reads_across_k(unit):
        return False  # halves of such an lhs take registers
    if product.way(unit) is Way.REGISTERS and rows > SIDES[0]:
        return False
    if unit is not Unit.WARPS and product.way(unit) is Way.THREADS:
        return False
    room = target.shared_bytes // (2 if unit is Unit.WARPS else 1)
    slot = (rows + columns) * depth * product.width
    return depth < 2 * product.k and LEAST_DEEP_SLOTS * slot <= room


def _may_split(product: Product, programs: int, depth: int, splits: int, machine: Machine) -> bool:
    """Whether k can be summed in so many parts, and there is room for them on the device."""
    is_long = tl.cdiv(product.k, depth) >= 4 * splits and product.batch * splits <= 1024
    return is_long and programs * splits < 4 * machine.multiprocessors


def _may_share(
    product: Product, rows: int, columns: int, cluster: tuple[int, int], machine: Machine
) -> bool:
    """Whether programs in such clusters run all at once and load a matrix of theirs together: two
    the larger one, which comes from DRAM; four the smaller one, where they spread evenly."""
    down, across = cluster
    size, tiles = down * across, (tl.cdiv(product.m, rows), tl.cdiv(product.n, columns))
    ctas = tl.cdiv(tiles[0], down) * tl.cdiv(tiles[1], across) * size * product.batch
    if min(tiles[0] - down, tiles[1] - across) < 0 or ctas > machine.clustered(size):
        return False
    unit = unit_of(rows, columns, product.kind, machine.target)
    if unit is not Unit.WARPGROUPS or product.way(unit) is not Way.ENGINE or product.keeps_sums:
        return False
    is_large = (product.n >= product.m) if down > 1 else (product.m >= product.n)
    part = (columns if down > 1 else rows) // size
    is_whole = part >= LEAST_PART and part % SWIZZLED_ROWS == 0 and columns >= LEAST_PART
    return is_whole and (
        is_large if size == 2 else not is_large and 2 * ctas > machine.multiprocessors
    )


def _tiles(product: Product, is_turned: bool, target: Target) -> Iterator[tuple[int, int]]:
    """Rows and columns to try."""
    wide = wide_unit(target)
    if wide is not Unit.WARPS:
        widths = _sides(product.n, WIDE_COLUMNS)
        for rows in _sides(product.m, WIDE_ROWS):
            for columns in widths[-1:] if is_turned and product.n <= WIDE_ROWS[0] else widths:
                is_small = product.keeps_sums or product.way(wide) is Way.THREADS
                most = MOST_KEPT_ELEMENTS if is_small else MOST_ELEMENTS
                fits = unit_of(rows, columns, product.kind, target) is wide
                is_slim = rows > max(WIDE_ROWS[0], SLIMNESS * columns) and wide is Unit.WARPGROUPS
                if fits and rows * columns <= most and not is_slim:
                    yield rows, columns
        is_short = product.m < WIDE_ROWS[0] or product.way(wide) is Way.REGISTERS
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
    product: Product,
    tile: tuple[int, int, int],
    splits: int,
    cluster: tuple[int, int],
    machine: Machine,
) -> tuple[float, bool]:
    """Microseconds, and whether all programs run at once."""
    work = _work(product, tile, splits, cluster, machine.target)
    found = predict(work, machine)
    unit = work.loops[0].unit
    us = found.us + (CLUSTER_US if cluster != ALONE and unit is Unit.WARPGROUPS else 0)
    if splits > 1:
        # The second kernel reads the partial sums, which L2 holds.
        size = product.m * product.n * product.batch
        us += SPLIT_US + 4 * size * (splits + 1) / (machine.memory_gb_per_s * 1e3)
    waits = unit is Unit.WARPGROUPS and found.bound == "DRAM"
    return us, unit is not Unit.WARPS and found.waves <= (MOST_WAITING if waits else 1)


def _work(
    product: Product,
    tile: tuple[int, int, int],
    splits: int,
    cluster: tuple[int, int],
    target: Target,
) -> Work:
    m, n, k, width = product.m, product.n, product.k, product.width
    rows, columns, depth = tile
    unit = unit_of(rows, columns, product.kind, target)
    # What a pair multiplies lies in one of its CTAs; what a cluster shares comes once for all.
    pair, shared = (cluster[0], ALONE) if unit is Unit.TENSOR_MEMORY else (1, cluster)
    a, b = rows * depth * width, depth * columns * width // pair
    way = product.way(unit)
    a_row = depth if product.a.contiguous == 1 else rows
    b_row = columns if product.b.contiguous == 1 else depth
    lines = line_bytes(a, a_row * width, product.a, way) // shared[1]
    lines += line_bytes(b, b_row * width, product.b, way) // shared[0]
    along = product.a.contiguous == 1, product.b.contiguous == 0
    narrow = narrow_loads(rows * depth, a_row, along[0], unit)
    narrow += narrow_loads(depth * columns, b_row, along[1], unit)
    is_narrow = way is Way.REGISTERS
    zeroed = a - a * m // (tl.cdiv(m, rows) * rows) + b - b * n // (tl.cdiv(n, columns) * columns)
    loop = LoopWork(
        tl.cdiv(tl.cdiv(k, depth), splits),
        {product.kind: flops_of(*tile, unit)},
        a // shared[1] + b // shared[0],
        shared_traffic(rows, columns, a, b, unit),
        0 if is_narrow else a + b,
        line_bytes=lines,
        narrow_loads=narrow if is_narrow else 0,
        way=way,
        unit=unit,
        columns=columns_of(rows, columns, unit),
        zeroed_bytes=zeroed if way is Way.ENGINE else 0,
    )
    out_bytes = 4 if splits > 1 else width
    store = LoopWork(stored_bytes=rows * columns * out_bytes)
    programs = -(-tl.cdiv(m, rows) // pair) * pair * tl.cdiv(n, columns) * product.batch * splits
    arrays = product.batch * ((m * k + k * n) * width + m * n * out_bytes * splits)
    warps = 8 if unit is Unit.WARPGROUPS and rows >= USUAL_SIDE else 4
    if not target.supports(Feature.WGMMA):
        warps = max(4, min(8, rows * columns // ACCUMULATORS_PER_WARP))
    return Work(
        *(programs, warps, (loop, store), arrays, rows * columns),
        cluster=prod(shared),
        piece_bytes=depth * width,
    )
