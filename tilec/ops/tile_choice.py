"""Tile sizes of a product, from its sizes and how its operands lie in memory.

The model of `tilec.costs` picks from a list of tiles; no IR is built, so a call that is new costs
some milliseconds, and later ones look the choice up. `tl.auto` is the choice where the unit that
multiplies has one size (FMA units, f64), and, where single warps multiply, for products whose usual
tiles fill the device. For targets with tensor memory the model has rates that are stated, not
fitted: nobody has timed their tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import isfinite, prod

import tilec.language as tl
from tilec.costs.dot_work import Memory, unit_of
from tilec.costs.machine import Machine
from tilec.costs.model import predict
from tilec.costs.parts import parts_in_memory
from tilec.costs.tail_model import predict_with_tail
from tilec.costs.work import ALONE, Stored, Unit, Way
from tilec.hardware.mma_shapes import PAIR
from tilec.hardware.sizes import SWIZZLE_BITS, SWIZZLED_ROWS
from tilec.hardware.target import Target
from tilec.ops.multiply_plan import KEPT
from tilec.ops.product_facts import ROW_MAJOR, Product, product_of
from tilec.ops.product_work import filling_stages, in_parts, meeting_of, predicted, work_of
from tilec.ops.row_groups import rows_of_round
from tilec.ops.tile_pairs import may_pair
from tilec.ops.vector_choice import vector_tile, vector_us
from tilec.records import dataclass
from tilec.terms.dtypes import DType
from tilec.terms.tile_sizes import LEAST_DEEP_SLOTS, USUAL_SIDE

K_BYTES = max(SWIZZLE_BITS)
"""Bytes of k a tile spans at least: one row of the widest shared-memory swizzle, or of the
narrowest that holds a short k, beyond which a slot would be zeros that somebody writes."""
SIDES = (16, 32, 64, 128)
"""Of tiles that single warps multiply: from an instruction's 16 rows to the usual tile's."""
WIDE_ROWS = (64, 128, 256)
"""Of tiles that warpgroups multiply: one, two or four times an instruction's 64 rows, by one or two
of them."""
WIDE_COLUMNS = (8, 16, 32, 40, 48, 56, *range(64, 257, 16))
"""Of tiles that warpgroups multiply: between powers of two, so that some number of tiles comes
close below that of multiprocessors; below 64 for few rows (e4m3 112 x 3088 x 12016: 20.4 us
without, 18.6 with them; H200)."""
MOST_ELEMENTS = 128 * 256
"""Of a tile: 128 accumulators for each thread of two warpgroups."""
SLIMNESS = 4
"""Rows for each column, at most, where several warpgroups multiply: slimmer tiles load more."""
MOST_KEPT_ELEMENTS = 128 * 192
"""Of a tile with two accumulators, where sums are kept in f32, or whose operands threads bring."""
MOST_TRANSPOSED_ROWS = 256
"""Of a product of which the transpose is always tried: few become an instruction's columns."""
CLUSTERS = ((2, 1), (1, 2), (4, 1), (1, 4))
"""Programs along rows and columns whose CTAs load together what they both need."""
LEAST_PART = 16
"""Rows or columns of a shared tile that one CTA of a cluster loads, at least."""
ACROSS_K_STAGES = 3
"""Of large tiles whose lhs threads read: CTAs that do not run far ahead read from L2 together."""
MOST_CTAS = 4
"""Of a cluster: larger ones leave more multiprocessors of a processor group without one
(`clustered` of the rates). Not timed."""
MOST_SHARED = 1.5
"""Times the shortest so far that a tile may take whose clusters, which load less, are tried."""
MOST_SPLITS = 64
"""Parts of k, each written and read again; `_splits` stops where their programs fill the device. Of
128 the sum took longer (bf16 48 x 48 x 137546, H200)."""
MOST_PARTS = 1024
"""Of the sums of a batch: as many programs fill any device several times."""
TAIL_PARTS = (2, 3, 4, 6, 8)
"""Of k in the last round: up to 8 paid (2048 x 2304 x 8192: 127 to 118 us,
last-round-h200-2026-11-21.json)."""
MOST_TAIL_PARTS = TAIL_PARTS[-1]
PARTS_GAIN = 1.05
"""Times as fast as without must a product be with such parts, by prediction: below that, short
products lost by them (48 x 64 x 896, H200)."""
CLUSTER_GAIN = 1.02
"""Times as fast as others must clusters be by prediction: nearest the fastest so (165 products)."""
TURN_COLUMNS = (192,)
"""Of `USUAL_SIDE` rows by a warpgroup while another stores; narrower ones were slower."""
TURN_STEPS = 4
"""Of k, at least: shorter products wait for their stores (fp8 9792 x 15232 x 240 takes 127 us in
turns, 113 in 128 x 256; 10448 x 9600 x 48 69.5 and 62.7; 3712 x 10624 x 208 40.3 and 32.5)."""
MOST_TURN_STEPS = 48
"""Beyond, the end of a program is little beside what a narrower tile loads more: 8192 x 8192 is 0.7
to 1.5 % faster in 128 x 256 by all warps with 64 and 128 steps (bf16, f16, e4m3), 0.5 % slower with
32, 2.4 with 16 (H200, bursts)."""
TAIL_GAIN = 1.03
"""Times as fast must a last round in parts be by prediction: at 8192 cubed it lost over seconds."""
TURN_WARPS = 4
"""Of a set that takes programs in turn: a warpgroup, since two of 128 x 192 sums fill the
registers."""


@dataclass(frozen=True)
class TileChoice:
    """Sizes of a tile, and in how many parts k is summed; `us`: what the model predicts.

    `is_transposed`: they are for the transposed product, b^T a^T. `is_single`: every program runs
    at once, so that no CTA needs to stay for a second one. `cluster`: of `CLUSTERS`, or a pair that
    multiplies together.
    `tail`: in how many parts k of the tiles of the last round is summed (`tail_kernel`).
    `in_turn`: two sets of warps take the programs of a CTA in turn (`alternate-programs`).
    `stages`: of the loop along k, None for as many as there is room for.
    `parts`: how many CTAs run each program, which each sum a part of k (`split-sums`).
    `group`: how many rows of tiles programs go down before the next column, None for what the
    compiler takes. `is_vector`: of one column, multiplied by threads (`vector_kernel.py`).
    """

    rows: int
    columns: int
    depth: int
    splits: int
    us: float
    is_transposed: bool = False
    is_single: bool = False
    cluster: tuple[int, int] = ALONE
    tail: int = 1
    in_turn: bool = False
    stages: int | None = None
    parts: int = 1
    group: int | None = None
    is_vector: bool = False

    @property
    def constants(self) -> dict[str, int]:
        """The constants as the kernel takes them, but for `splits`."""
        stages = {} if self.stages is None else {"STAGES": self.stages}
        columns = {} if self.is_vector else {"BN": self.columns}
        return {"BM": self.rows, **columns, "BK": self.depth, **stages}


def wide_unit(target: Target) -> Unit:
    """The unit that multiplies large tiles."""
    return unit_of(USUAL_SIDE, USUAL_SIDE, "f16", target)


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
    c: Memory = ROW_MAJOR,
    c_width: int = 0,
) -> TileChoice | None:
    """The best predicted tile, None where `tl.auto` serves. `precision`: as `matmul` takes it.
    `most_ctas`: 1 where the copy engine may refuse the operands, which clusters want, or sums are
    too narrow for parts of them to be sent. `is_plain`: the sum is stored as it is, so that sets of
    warps in turn have registers for it. `c_width`: as `Product` has it."""
    if dtype == tl.f64 or (dtype == tl.f32 and precision == "ieee") or 0 in (m, n, batch):
        return None
    wide = wide_unit(machine.target)
    tiles = tl.cdiv(m, USUAL_SIDE) * tl.cdiv(n, USUAL_SIDE) * batch
    fills = tiles >= machine.multiprocessors and min(m, n) > USUAL_SIDE // 2
    if fills and wide is Unit.WARPS:
        return None
    product = product_of(m, n, k, batch, dtype, precision, a, b, c, c_width)
    if (vector := _vector(product, machine)) is not None:
        return vector
    choices = tile_choices(product, machine, most_splits, most_ctas, is_plain)
    return completed(min(choices, key=preference), product, machine, is_plain and most_ctas > 1)


def _vector(product: Product, machine: Machine) -> TileChoice | None:
    """The choice for a matrix times a vector, if threads are to multiply it."""
    for turned, one in enumerate((product, product.transposed())):
        if (tile := vector_tile(one, machine)) is not None:
            us = vector_us(one, tile, machine)
            return TileChoice(tile[0], 1, tile[1], 1, us, bool(turned), is_vector=True)
    return None


def tile_choices(
    product: Product,
    machine: Machine,
    most_splits: int = MOST_SPLITS,
    most_ctas: int = MOST_CTAS,
    is_plain: bool = True,
) -> list[TileChoice]:
    """Lists all that is tried for a product, each with its predicted time; as `choose_tiles`."""
    wide = wide_unit(machine.target)
    choices = list(_choices(product, False, most_splits, machine))
    is_regular = product.way(wide) is Way.ENGINE
    is_better_transposed = _is_better_transposed(product, wide)
    if is_better_transposed:  # the rhs lies across k; as the lhs it may
        choices = [one for one in choices if one.rows < WIDE_ROWS[0]]
    is_rotatable = product.m <= MOST_TRANSPOSED_ROWS or (is_plain and wide is Unit.WARPGROUPS)
    if is_better_transposed or (is_rotatable and is_regular):
        choices += _choices(product.transposed(), True, most_splits, machine)
    is_regular &= not product.reads_across_k(wide)
    if most_splits > 1 and is_regular:
        choices += _tails(product, machine)
    if is_plain and is_regular and most_ctas > 1:
        choices += _turns(product, machine)
    may_sum = most_ctas > 1
    return [x for x in choices if prod(x.cluster) <= most_ctas and (may_sum or x.parts == 1)]


def _is_better_transposed(product: Product, wide: Unit) -> bool:
    """Whether the copy engine brings the operands of the transposed product alone."""
    is_regular = product.way(wide) is Way.ENGINE
    return not is_regular and product.transposed().way(wide) is Way.ENGINE


def completed(
    choice: TileChoice, product: Product, machine: Machine, is_plain: bool = True
) -> TileChoice:
    """A choice with what follows from it: slots where CTAs stay, and the order of programs."""
    wide = wide_unit(machine.target)
    across_k = _is_better_transposed(product, wide) or product.reads_across_k(wide)
    is_large = choice.rows * choice.columns == MOST_ELEMENTS and not choice.is_single
    if across_k and is_large and is_plain:
        slowed = replace(choice, stages=ACROSS_K_STAGES)
        choice = slowed if isfinite(_us(slowed, product, machine)) else choice
    return replace(choice, group=_group(choice, product, machine))


def _us(choice: TileChoice, product: Product, machine: Machine) -> float:
    """The microseconds that the model predicts for a choice with its own number of stages."""
    tile = choice.rows, choice.columns, choice.depth
    product = product.transposed() if choice.is_transposed else product
    return predicted(product, tile, 1, choice.cluster, machine, choice.stages, choice.parts)[0]


def _group(choice: TileChoice, product: Product, machine: Machine) -> int | None:
    """The group of programs that warpgroups multiply, where CTAs share them: sets of warps in turn
    are at two rounds of them at a time, and were no faster so."""
    is_alone = choice.cluster == ALONE and choice.tail * choice.splits == 1 and not choice.in_turn
    unit = unit_of(choice.rows, choice.columns, product.kind, machine.target)
    if not is_alone or choice.is_transposed or choice.is_single or unit is not Unit.WARPGROUPS:
        return None
    tiles = tl.cdiv(product.m, choice.rows) * tl.cdiv(product.n, choice.columns) * product.batch
    return rows_of_round(choice.rows, choice.columns, tiles, machine.multiprocessors)


def preference(choice: TileChoice) -> tuple[float, ...]:
    """The key by which choices are ordered, the preferred one smallest: by time, which parts of k
    must shorten by `PARTS_GAIN`, those of the last round alone by `TAIL_GAIN`, clusters by
    `CLUSTER_GAIN`, and where that is the same, those of the product itself before those of the
    transposed one, those without a cluster, smaller tiles, deeper ones, fewer rows."""
    is_shared, size = choice.cluster != ALONE, choice.rows * choice.columns
    us = choice.us * (PARTS_GAIN if choice.parts > 1 else TAIL_GAIN if choice.tail > 1 else 1)
    us *= CLUSTER_GAIN if is_shared else 1
    return us, choice.is_transposed, is_shared, size, -choice.depth, choice.rows


def _choices(
    product: Product, is_transposed: bool, most_splits: int, machine: Machine
) -> Iterator[TileChoice]:
    """Yields each size of a tile by itself, with k in parts, and shared by clusters."""
    least = _least_depth(product)
    shortest = float("inf")
    depths = (least, 2 * least, 4 * least)
    if is_transposed and product.n > MOST_TRANSPOSED_ROWS:  # of these the sizes alone are of use
        depths, most_splits = depths[:1], 1
    for rows, columns in _tiles(product, is_transposed, machine.target):
        for depth in depths:
            if depth > least and not _may_be_deep(product, rows, columns, depth, machine.target):
                continue
            tile, alone = (rows, columns, depth), float("inf")
            for splits in _splits(product, tile, most_splits, machine):
                us, is_single = predicted(product, tile, splits, ALONE, machine)
                one = TileChoice(*tile, splits, us, is_transposed, is_single)
                yield _filling(one, product, machine)
                alone = us if splits == 1 else alone
            yield from _summed(product, tile, is_transposed, machine)
            shortest = min(shortest, alone)
            if may_pair(product, tile, machine.target):
                us, is_single = predicted(product, tile, 1, (PAIR, 1), machine)
                yield TileChoice(*tile, 1, us, is_transposed, is_single, (PAIR, 1))
            for cluster in CLUSTERS if alone < MOST_SHARED * shortest else ():
                single = _may_share(product, tile, cluster, machine)
                if single is not None:
                    us, _ = predicted(product, tile, 1, cluster, machine)
                    yield TileChoice(*tile, 1, us, is_transposed, single, cluster)


def _filling(choice: TileChoice, product: Product, machine: Machine) -> TileChoice:
    """A choice by CTAs that fill a multiprocessor each, where there is one for each, by slots
    deeper than a short k if need be and the engine fills them: the same tile was 1.2 to 1.5 times
    as fast in 10 of 12 launches of 2 to 18 us (H200). Parts that a kernel adds up gain nothing."""
    unit = unit_of(choice.rows, choice.columns, product.kind, machine.target)
    by_engine = product.way(unit) is Way.ENGINE
    # Threads would fill rows that there are not, too.
    fills = choice.is_single and (by_engine or product.m >= choice.rows)
    fills = fills if unit is Unit.WARPGROUPS else unit is Unit.WARPS
    if choice.splits * choice.tail > 1 or choice.cluster != ALONE or not fills:
        return choice
    depth, most = choice.depth, K_BYTES if by_engine else 0
    while depth == choice.depth or depth * product.width <= most:
        tile = choice.rows, choice.columns, depth
        work = in_parts(work_of(product, tile, 1, ALONE, machine), choice.parts, machine)
        stages = filling_stages(work, machine)
        if stages is not None:
            us, _ = predicted(product, tile, 1, ALONE, machine, stages, choice.parts)
            return replace(choice, depth=depth, stages=stages, us=us)
        depth *= 2
    return choice


def _tails(product: Product, machine: Machine) -> Iterator[TileChoice]:
    """Yields large tiles by warpgroups, those of the last round in parts."""
    depth = _least_depth(product)
    steps = tl.cdiv(product.k, depth)
    for rows, columns in () if product.keeps_sums else _tiles(product, False, machine.target):
        unit = unit_of(rows, columns, product.kind, machine.target)
        if unit is not Unit.WARPGROUPS or columns % SIDES[0]:
            continue
        work = work_of(product, (rows, columns, depth), 1, ALONE, machine)
        parts = [n for n in TAIL_PARTS if steps >= 4 * n]
        for n, us in predict_with_tail(work, parts, machine).items():
            yield TileChoice(rows, columns, depth, 1, us, tail=n)


def _turns(product: Product, machine: Machine) -> Iterator[TileChoice]:
    """Tiles of one warpgroup for two sets of warps, where each has a program to take."""
    depth = _least_depth(product)
    is_suited = TURN_STEPS <= tl.cdiv(product.k, depth) <= MOST_TURN_STEPS
    for columns in TURN_COLUMNS if is_suited else ():
        unit = unit_of(USUAL_SIDE, columns, product.kind, machine.target)
        if unit is not Unit.WARPGROUPS or product.keeps_sums:
            continue
        work = work_of(product, (USUAL_SIDE, columns, depth), 1, ALONE, machine)
        found = predict(replace(work, teams=2, warps=TURN_WARPS), machine)
        if found.waves > 1:
            yield TileChoice(USUAL_SIDE, columns, depth, 1, found.us, in_turn=True)


def _least_depth(product: Product) -> int:
    """The elements of k of the shallowest tile."""
    spans = (span for span in sorted(SWIZZLE_BITS) if span >= product.k * product.width)
    return next(spans, K_BYTES) // product.width


def _may_be_deep(product: Product, rows: int, columns: int, depth: int, target: Target) -> bool:
    """Whether k is long enough for such tiles, and they leave room for several slots; what passes
    through registers wants none."""
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


def _splits(
    product: Product, tile: tuple[int, int, int], most: int, machine: Machine
) -> Iterator[int]:
    """The numbers of parts in which k can be summed: as long as there is room for them on the
    device. Threads store whole rows in layouts of powers of two alone, and others one by one."""
    rows, columns, depth = tile
    programs = tl.cdiv(product.m, rows) * tl.cdiv(product.n, columns) * product.batch
    steps, splits, is_torn = tl.cdiv(product.k, depth), 1, product.stored(1) is Stored.ELEMENTS
    while splits == 1 or (steps >= 4 * splits and product.batch * splits <= MOST_PARTS):
        if splits > most or (splits > 1 and programs * splits >= 4 * machine.multiprocessors):
            return
        if splits > 1 or columns <= SIDES[1] or columns % SIDES[1] == 0 or not is_torn:
            yield splits
        splits *= 2


def _summed(
    product: Product, tile: tuple[int, int, int], is_transposed: bool, machine: Machine
) -> Iterator[TileChoice]:
    """Yields a tile with k summed in parts by CTAs, all at once, maybe several on a multiprocessor:
    two steps each, or about one that waits (bf16 7 x 49 x 371: 2.2 us in 8 for 5.3, H200)."""
    if product.keeps_sums or not machine.target.sums_in_clusters:
        return
    rows, columns, depth = tile
    programs = tl.cdiv(product.m, rows) * tl.cdiv(product.n, columns) * product.batch
    work = work_of(product, tile, 1, ALONE, machine)
    waits, steps = work.loops[0].way is Way.REGISTERS, product.k / depth
    meeting = meeting_of(work, machine)
    for parts in [*meeting.clusters, *parts_in_memory(programs, meeting, machine)]:
        if 2 * parts <= steps or (waits and parts < 2 * steps):
            us = predict(in_parts(work, parts, machine), machine).us
            one = TileChoice(*tile, 1, us, is_transposed, is_single=True, parts=parts)
            yield _filling(one, product, machine)


def _may_share(
    product: Product, tile: tuple[int, int, int], cluster: tuple[int, int], machine: Machine
) -> bool | None:
    """Whether all programs in such clusters run at once, None where they cannot load a matrix of
    theirs together, or gain nothing by it: two may in rounds, four only where one round spreads
    evenly, and of the smaller matrix."""
    rows, columns, depth = tile
    down, across = cluster
    size, tiles = down * across, (tl.cdiv(product.m, rows), tl.cdiv(product.n, columns))
    unit = unit_of(rows, columns, product.kind, machine.target)
    if min(tiles[0] - down, tiles[1] - across) < 0 or product.keeps_sums:
        return None
    if unit is not Unit.WARPGROUPS or product.way(unit) is not Way.ENGINE:
        return None
    if across > 1 and product.reads_across_k(unit):
        return None  # threads read that operand, each CTA's in its own time
    part = (columns if down > 1 else rows) // size
    if part < LEAST_PART or part % SWIZZLED_ROWS or columns < LEAST_PART:
        return None
    ctas = tl.cdiv(tiles[0], down) * tl.cdiv(tiles[1], across) * size * product.batch
    if ctas > machine.clustered(size):
        # Rounds of programs want many slots, not deep ones.
        return False if size == 2 and depth * product.width == K_BYTES else None
    is_small = (product.n < product.m) if down > 1 else (product.m < product.n)
    return True if size == 2 or (is_small and 2 * ctas > machine.multiprocessors) else None


def _tiles(product: Product, is_transposed: bool, target: Target) -> Iterator[tuple[int, int]]:
    """Rows and columns to try."""
    wide = wide_unit(target)
    if wide is not Unit.WARPS:
        widths = _sides(product.n, tuple(filter(product.takes_columns, WIDE_COLUMNS)))
        for rows in _sides(product.m, WIDE_ROWS):
            for columns in widths[-1:] if is_transposed and product.n <= WIDE_ROWS[0] else widths:
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
    for rows in () if is_transposed else narrow:
        for columns in _sides(product.n, SIDES):
            yield rows, columns


def _sides(size: int, sides: tuple[int, ...]) -> list[int]:
    """Sides no longer than what they must cover, and the shortest that covers it; few short ones
    where that is long."""
    least = next((side for side in sides if side >= size), sides[-1])
    return [side for side in sides if min(least, SIDES[1]) <= side <= least]
