"""What a tile size of a product comes to: the work of its launch, and how long the model says."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import tilec.language as tl
from tilec.costs.dot_work import (
    asked_bytes,
    columns_of,
    flops_of,
    line_bytes,
    narrow_loads,
    shared_traffic,
    unit_of,
)
from tilec.costs.machine import Machine
from tilec.costs.model import predict, stages_of
from tilec.costs.rates import Rates
from tilec.costs.work import ALONE, SUM_BYTES, LoopWork, Stored, Unit, Way, Work, in_stripes
from tilec.hardware.mma_shapes import MMA_M
from tilec.hardware.part_meeting import Meeting
from tilec.hardware.ring_stages import (
    MOST_COPIED,
    around_ring,
    most_slots,
    most_store_bytes,
    panel_bytes,
    ring_stages,
    store_slots,
)
from tilec.hardware.sizes import SECTOR_BYTES, VECTOR_BYTES
from tilec.hardware.target import Feature, Target
from tilec.ops.product_facts import Product
from tilec.terms.demands import PARTS
from tilec.terms.tile_sizes import SMALL_SUMS, USUAL_SIDE

MOST_WAITING = 2
"""Rounds of programs that wait for what they read of DRAM, whose CTAs do not stay: who gets more
takes the next. Where they write more, the next one's operands had better be there (bf16 7488 x 480
x 32 in 128 x 128: 4.0 us for 6.2, H200)."""
MOST_PADDING = 16
"""Bytes behind each row or column of a tile that is rearranged, so that banks differ: 256 x 128 of
4 bytes leave room for one slot of 48 kB, not for the two that they leave without it."""
ACCUMULATORS_PER_WARP = 4096
"""As the compiler chooses warps: 128 accumulators a thread, 4 to 8 warps."""


def predicted(
    product: Product,
    tile: tuple[int, int, int],
    splits: int,
    cluster: tuple[int, int],
    machine: Machine,
    stages: int | None = None,
    parts: int = 1,
) -> tuple[float, bool]:
    """Predicts how many microseconds a product takes, and whether all its programs run at once.
    Each program is run by as many CTAs as k is cut into `parts`."""
    work = in_parts(work_of(product, tile, splits, cluster, machine, stages), parts, machine)
    found = predict(work, machine)
    unit = work.loops[0].unit
    us = found.us
    if splits > 1:
        # The second kernel reads the partial sums, which L2 holds.
        size = product.m * product.n * product.batch
        us += machine.rates.split + SUM_BYTES * size * (splits + 1) / (
            machine.memory_gb_per_s * 1e3
        )
    reads = 2 * work.written_bytes < work.array_bytes
    waits = unit is Unit.WARPGROUPS and found.bound == "DRAM" and reads
    return us, unit is not Unit.WARPS and found.waves <= (MOST_WAITING if waits else 1)


def work_of(
    product: Product,
    tile: tuple[int, int, int],
    splits: int,
    cluster: tuple[int, int],
    machine: Machine,
    stages: int | None = None,
) -> Work:
    """The launch of a product in tiles of (rows, columns, depth), k in `splits` parts, by clusters
    of CTAs along rows and columns, through a ring of so many `stages` or the compiler's."""
    m, n, k = product.m, product.n, product.k
    rows, columns, depth = tile
    target = machine.target
    unit = unit_of(rows, columns, product.kind, target)
    width = SUM_BYTES if splits > 1 else product.stored_width
    stored = product.stored(splits)
    store = LoopWork(
        stored_bytes=rows * columns * width,
        stored=stored,
        stored_rows=rows if product.c.contiguous == 1 else columns,
        stored_elements=rows * columns,
    )
    down, across = cluster
    programs = (
        tl.cdiv(tl.cdiv(m, rows), down) * down * tl.cdiv(tl.cdiv(n, columns), across) * across
    )
    stays = programs * product.batch * splits > machine.multiprocessors
    leaving = _leaving_bytes(rows, columns, width, stored, product.way(unit), stays, target)
    store = replace(store, leaving_bytes=leaving)
    results = product.batch * m * n * width * splits
    arrays = product.batch * (m * k + k * n) * product.width + results
    warps = 8 if unit is Unit.WARPGROUPS and rows >= USUAL_SIDE else 4
    if not target.supports(Feature.WGMMA):
        warps = max(4, min(8, rows * columns // ACCUMULATORS_PER_WARP))
    if unit is Unit.WARPS and rows <= MMA_M and rows * columns <= SMALL_SUMS:
        warps = 2
    return Work(
        programs * product.batch * splits,
        warps,
        (replace(_loop(product, tile, splits, cluster, unit, machine.rates), stages=stages), store),
        arrays,
        rows * columns,
        cluster=1 if unit is Unit.TENSOR_MEMORY else prod(cluster),
        piece_bytes=depth * product.width,
        torn_bytes=results if product.c.alignment < SECTOR_BYTES and splits == 1 else 0,
        written_bytes=results,
        sends_words=product.c.contiguous != 1,
    )


def in_parts(work: Work, parts: int, machine: Machine) -> Work:
    """A launch with each program run by so many CTAs, each a part of the loop, and then a stripe of
    the tile (pass split-sums), whose threads store whole rows."""
    if parts == 1:
        return work
    meeting = meeting_of(work, machine)
    together = meeting.together(parts)
    loop, *rest = work.loops
    loop = replace(loop, trips=-(-loop.trips // parts))
    stripes = (replace(in_stripes(one, together), leaving_bytes=0) for one in rest)
    return replace(
        work,
        programs=parts * work.programs,
        loops=(loop, *stripes),
        parts=together,
        groups=parts // together,
        left_bytes=meeting.read_bytes(parts),
        sums=(work.accumulators,),
    )


def meeting_of(work: Work, machine: Machine) -> Meeting:
    """How CTAs meet that sum parts of a product's tile."""
    most = machine.target.ctas_per_cluster if machine.target.sums_in_clusters else 1
    sums = SUM_BYTES * work.accumulators
    return Meeting(tuple(n for n in PARTS if 1 < n <= most), sums, sums)


def filling_stages(work: Work, machine: Machine) -> int | None:
    """Slots with which a CTA fills a multiprocessor, where all programs run at once on one each and
    the compiler's ring would leave room for a second one; None elsewhere.

    Nobody else needs that room, and the next launch may only begin under this one where its CTAs
    cannot crowd beside ours (`passes/overlap_launches.py`). Where warps copy for themselves, slots
    as if there were room for one CTA alone."""
    loop, target = work.loops[0], machine.target
    if work.programs > machine.multiprocessors or loop.way is Way.REGISTERS:
        return None
    if not loop.has_role:
        most = min(MOST_COPIED, target.shared_bytes // loop.staged_bytes)
        usual = stages_of(loop, target, work.accumulators, warps=work.warps)
        return most if most > usual else None
    panels = max(one.leaving_bytes for one in work.loops) + work.parts_bytes
    slots = most_slots(loop.staged_bytes, panels + around_ring(), target)
    usual = ring_stages(loop.staged_bytes, panels + around_ring(), target)
    leaves_room = target.fits_twice(panels + usual * loop.staged_bytes)
    fills = not target.fits_twice(panels + slots * loop.staged_bytes)
    return slots if leaves_room and fills else None


def _leaving_bytes(
    rows: int, columns: int, width: int, stored: Stored, way: Way, stays: bool, target: Target
) -> int:
    """Shared memory through which a tile leaves, in elements of `width` bytes: panels, or, where
    there is a ring beside, all that is rearranged.

    Threads that hold whole sectors store these by themselves where no CTA takes a further program
    (`stays`), or panels take too much (`insert-tensor-stores`)."""
    if way is Way.THREADS:
        return 0
    if stored is not Stored.ROWS:
        padded = rows * columns * width + MOST_PADDING * max(rows, columns)
        return padded if way is Way.ENGINE else 0
    panel = panel_bytes(rows, columns * width)
    found = rows * panel * store_slots(columns * width // panel, rows * panel) if panel else 0
    if width == SUM_BYTES and (not stays or found > most_store_bytes(target, fills_sectors=True)):
        return 0
    return found


def _loop(
    product: Product,
    tile: tuple[int, int, int],
    splits: int,
    cluster: tuple[int, int],
    unit: Unit,
    rates: Rates,
) -> LoopWork:
    """The work of one step along k."""
    width, (rows, columns, depth) = product.width, tile
    # What a pair multiplies lies in one of its CTAs; what a cluster shares comes once for all.
    pair, shared = (cluster[0], ALONE) if unit is Unit.TENSOR_MEMORY else (1, cluster)
    a, b = rows * depth * width, depth * columns * width // pair
    way = product.way(unit)
    a_row = depth if product.a.contiguous == 1 else rows
    b_row = columns if product.b.contiguous == 1 else depth
    # Of a box only what lies in the array is asked for: rows of 8 elements, where it has 8.
    inside = (
        min(a_row, product.k if product.a.contiguous == 1 else product.m),
        min(b_row, product.n if product.b.contiguous == 1 else product.k),
    )
    sides = (a, a_row, inside[0], product.a), (b, b_row, inside[1], product.b)
    lines = [line_bytes(n, row * width, x, way, rates) for n, row, _, x in sides]
    asked = [asked_bytes(n, row * width, own * width, x, way, rates) for n, row, own, x in sides]
    others = tl.cdiv(product.n, columns), tl.cdiv(product.m, rows)
    by_cluster = shared[1], shared[0]
    readers = zip(lines, others, by_cluster, strict=True)
    operands = (product.a, 1), (product.b, 0)
    whole = product.k / (tl.cdiv(product.k, depth) * depth)
    zeroed = a * (1 - whole * product.m / (tl.cdiv(product.m, rows) * rows)) / shared[1]
    zeroed += b * (1 - whole * product.n / (tl.cdiv(product.n, columns) * columns)) / shared[0]
    narrow, vectors = narrow_loads((rows * depth, depth * columns), operands, width, unit)
    return LoopWork(
        tl.cdiv(tl.cdiv(product.k, depth), splits),
        {product.kind: flops_of(*tile, unit)},
        a // shared[1] + b // shared[0],
        shared_traffic(rows, columns, a, b, unit),
        vectors * VECTOR_BYTES if way is Way.REGISTERS else a + b,
        line_bytes=sum(n // size for n, size in zip(lines, by_cluster, strict=True)),
        asked_bytes=sum(n // size for n, size in zip(asked, by_cluster, strict=True)),
        readers=tuple((n // size, count / size) for n, count, size in readers),
        narrow_loads=narrow,
        vector_copies=vectors,
        way=way,
        unit=unit,
        columns=columns_of(rows, columns, unit),
        zeroed_bytes=int(zeroed) if way is Way.ENGINE else 0,
    )
