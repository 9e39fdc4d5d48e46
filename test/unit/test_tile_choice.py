"""Tiles of `tilec.ops.matmul`: what a choice promises, for any product."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilec
import tilec.language as tl
from tilec.costs.dot_work import Memory, line_bytes, narrow_loads, way_of
from tilec.costs.machine import Machine, machine_of
from tilec.costs.model import predict, stages_of
from tilec.costs.work import ALONE, Unit, Way
from tilec.examples.matmul import matmul
from tilec.hardware.target import find_target
from tilec.ops import product_launch
from tilec.ops.multiply_plan import KEPT
from tilec.ops.product_facts import Product
from tilec.ops.product_work import filling_stages, in_parts, work_of
from tilec.ops.tile_choice import (
    MOST_CTAS,
    MOST_SPLITS,
    TileChoice,
    choose_tiles,
    tile_choices,
)
from tilec.runtime.device import device
from tilec.terms.dtypes import DType


def machine_for(target: str) -> Machine:
    return machine_of(device("emulator"), find_target(target))


HOPPER, BLACKWELL = machine_for("sm_90a"), machine_for("sm_100a")
ALONG_K = Memory(1, 128), Memory(0, 128)
UNALIGNED = Memory(1, 2), Memory(0, 2)


def tiles(m: int, n: int, k: int, batch: int = 1, **changes: object) -> TileChoice:
    a, b = changes.get("memories", ALONG_K)  # type: ignore[misc]
    dtype = changes.get("dtype", tl.f16)
    splits = changes.get("splits", MOST_SPLITS)
    machine = changes.get("machine", HOPPER)
    is_plain = changes.get("is_plain", False)
    made = (m, n, k, batch, dtype, "tf32", machine, splits, a, b, MOST_CTAS, is_plain)
    found = choose_tiles(*made)  # type: ignore[arg-type]
    assert found is not None
    return found


def programs_of(choice: TileChoice, m: int, n: int, batch: int = 1) -> int:
    m, n = (n, m) if choice.is_transposed else (m, n)
    return -(-m // choice.rows) * -(-n // choice.columns) * batch * choice.splits


@settings(max_examples=60, deadline=None)
@given(
    *(st.integers(1, 9000) for _ in range(3)),
    st.sampled_from((1, 1, 1, 3, 200)),
    st.sampled_from((tl.f16, tl.bf16, tl.f8e4m3, tl.i8, tl.f32)),
    st.sampled_from((ALONG_K, UNALIGNED, (Memory(1, 16), Memory(1, 16)), (Memory(0, 128),) * 2)),
    st.sampled_from((1, MOST_SPLITS)),
    st.sampled_from((HOPPER, BLACKWELL)),
)
def test_a_choice_fits_the_hardware(
    m: int,
    n: int,
    k: int,
    batch: int,
    dtype: DType,
    memories: tuple[Memory, Memory],
    splits: int,
    machine: Machine,
) -> None:
    found = tiles(m, n, k, batch, dtype=dtype, memories=memories, splits=splits, machine=machine)
    slot = (found.rows + found.columns) * found.depth * dtype.bits // 8
    assert 2 * slot <= HOPPER.target.shared_bytes
    assert found.rows * found.columns <= 128 * 256
    assert 1 <= found.splits <= splits
    assert found.splits == 1 or -(-k // found.depth) >= 4 * found.splits
    across_k = dtype == tl.f32 and machine is HOPPER and memories[1].contiguous == 1
    assert not found.is_transposed or (m <= 256 and memories is not UNALIGNED) or across_k
    if found.is_single:
        assert found.us < float("inf")
        assert programs_of(found, m, n, batch) <= 4 * machine.multiprocessors
    if found.cluster != ALONE and machine is BLACKWELL:
        assert (found.cluster, found.rows, found.splits) == ((2, 1), 128, 1)
        assert (n if found.is_transposed else m) > 128
    elif found.cluster != ALONE:
        assert found.splits == 1
        assert found.is_single
        assert memories is not UNALIGNED


@pytest.mark.parametrize("size", [1, 7, 8, 16, 17, 63, 64, 65])
def test_every_size_finds_tiles(size: int) -> None:
    for other in (1, 64, 5000):
        for memories in (ALONG_K, UNALIGNED):
            for shape in ((size, other, other), (other, size, other), (other, other, size)):
                assert tiles(*shape, memories=memories).us < float("inf")


def test_large_products_get_large_tiles() -> None:
    for size in (4096, 8192):
        found = tiles(size, size, size)
        assert (found.rows, found.columns, found.splits) == (128, 256, 1)
        assert not found.is_single


@pytest.mark.parametrize("size", [1024, 4096, 8192])
def test_of_tf32_operands_one_may_lie_across_k(size: int) -> None:
    """As the left one: warpgroups read it into registers, so tiles are no deeper than 128 bytes,
    and no set of warps has room for taking turns."""
    rows, columns = Memory(1, 128), Memory(0, 128)
    for a, b, is_transposed in ((rows, rows, True), (columns, columns, False)):
        found = tiles(size, size, size, dtype=tl.f32, memories=(a, b), is_plain=True)
        assert (found.is_transposed, found.depth, found.in_turn) == (is_transposed, 32, False)
        assert found.constants.get("STAGES") == (None if size == 1024 else 3)
    found = tiles(size, size, size, dtype=tl.f32, memories=(rows, columns), is_plain=True)
    assert "STAGES" not in found.constants
    assert not found.in_turn
    assert not tiles(size, size, size, dtype=tl.f32, memories=(columns, rows)).is_transposed


@pytest.mark.parametrize("dtype", [tl.bf16, tl.f8e4m3, tl.i8])
@pytest.mark.parametrize("size", [4096, 8192, 16384])
def test_pairs_multiply_what_is_large(size: int, dtype: DType) -> None:
    """256 x 256 a pair: 128 x 256 of one CTA take 3/2 of the bytes from L2 that it has the time
    for, 64 a clock beside 8192 operations."""
    found = tiles(size, size, size, dtype=dtype, machine=BLACKWELL)
    assert (found.rows, found.columns, found.splits, found.cluster) == (128, 256, 1, (2, 1))
    assert found.depth * dtype.bits // 8 == 128


@pytest.mark.parametrize("k", [512, 2048, 4096, 8192])
def test_sets_in_turn_hide_ends_that_come_often(k: int) -> None:
    """8192 x 8192 of an H200, bursts: 128 x 256 tiles gain 0.7 to 1.5 % from 4096 on."""
    found = tiles(8192, 8192, k, dtype=tl.bf16, is_plain=True)
    assert (found.in_turn, found.columns) == ((True, 192) if k < 4096 else (False, 256))


@pytest.mark.parametrize("shape", [(1000, 4096, 4096), (4096, 1000, 4096), (4000, 4000, 4000)])
def test_odd_sizes_find_widths_between_powers_of_two(shape: tuple[int, int, int]) -> None:
    """As many programs as multiprocessors, or little less than a multiple of them."""
    found = tiles(*shape, machine=BLACKWELL)
    rounds = programs_of(found, *shape[:2]) / BLACKWELL.multiprocessors
    assert rounds / -(-rounds // 1) > 0.8


@pytest.mark.parametrize("m", [1, 16])
def test_few_rows_of_row_major_operands_turn(m: int) -> None:
    """Few rows become the columns of an instruction of 64 or 128 lanes."""
    found = tiles(m, 4096, 4096, memories=(Memory(1, 128),) * 2, machine=BLACKWELL)
    assert found.is_transposed
    assert m <= found.columns < m + 16
    assert 2 * programs_of(found, m, 4096) >= BLACKWELL.multiprocessors * 2 // 3


@pytest.mark.parametrize("size", [1024, 1536, 2048])
def test_programs_fill_one_round(size: int) -> None:
    found = tiles(size, size, size)
    assert found.is_single
    assert HOPPER.multiprocessors * 3 // 4 <= programs_of(found, size, size)
    assert programs_of(found, size, size) <= HOPPER.multiprocessors


def test_a_short_launch_leaves_room_for_the_next() -> None:
    """Whose programs are there when it ends, on the other half of the multiprocessors."""
    for shape in ((512, 512, 512), (64, 4864, 64), (256, 640, 64)):
        assert 2 * programs_of(tiles(*shape), *shape[:2]) <= HOPPER.multiprocessors


@pytest.mark.parametrize(("n", "k"), [(4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192)])
@pytest.mark.parametrize("m", [1, 16, 64, 256])
def test_few_rows_read_the_other_operand_once(m: int, n: int, k: int) -> None:
    """One tile covers all of few rows, and there are programs for half of the multiprocessors."""
    found = tiles(m, n, k)
    across = found.columns if found.is_transposed else found.rows
    if m <= 64:
        assert across >= m
    assert 2 * programs_of(found, m, n) >= HOPPER.multiprocessors * 2 // 3


def test_clusters_share_what_is_read_twice() -> None:
    """Two CTAs the operand of whole lines that L2 or DRAM is busiest with; four where some pairs of
    multiprocessors had one program and others two."""
    shifted = Memory(1, 16), Memory(0, 16)
    assert tiles(1000, 1000, 1000, memories=shifted).cluster in ((2, 1), (1, 2))
    assert tiles(1024, 1024, 1024).cluster == ALONE
    assert tiles(256, 4096, 4096).cluster in ((2, 1), (1, 2))
    row_major = (Memory(1, 128),) * 2
    uneven = tiles(64, 14336, 4096, memories=row_major)
    assert prod(uneven.cluster) == 4
    assert programs_of(uneven, 64, 14336) <= HOPPER.clustered(4)
    kept = choose_tiles(1000, 1000, 1000, 1, tl.f8e4m3, "f32", HOPPER, 1, *shifted)
    assert kept is not None
    assert kept.cluster == ALONE
    assert choose_tiles(256, 4096, 4096, 1, tl.f16, "ieee", HOPPER, 1, most_ctas=1).cluster == ALONE


def test_a_box_that_lies_outside_costs_time() -> None:
    """What the copy engine fills with zeros: few rows are columns of an instruction instead."""
    for n, k in ((4096, 4096), (14336, 4096)):
        assert tiles(1, n, k).is_transposed
        assert tiles(16, n, k).is_transposed


def test_each_tile_is_as_wide_as_an_instruction() -> None:
    """Of 8-bit integers none is 40 or 56 columns wide: such tiles are made of five of 8."""
    for kind, width in (("i8", 1), ("f8", 1), ("bf16", 2)):
        product = Product(3000, 40, 8192, 1, kind, width, Memory(1, 128), Memory(0, 128))
        columns = {one.columns for one in tile_choices(product, HOPPER) if one.rows >= 64}
        assert (40 in columns) == (kind != "i8")
        assert 48 in columns or 40 in columns


def test_columns_across_k_fill_panels_that_the_copy_engine_brings() -> None:
    """Of 16 bits, 8, 40 and 56 do not: such a b would be laid along k, element by element."""
    for n, odd in ((6, {8}), (40, {40}), (3000, {40, 56})):
        for contiguous, found in ((0, odd), (1, set[int]())):
            product = Product(64, n, 4096, 1, "bf16", 2, Memory(1, 128), Memory(contiguous, 128))
            every = [one for one in tile_choices(product, HOPPER) if not one.is_transposed]
            assert {x.columns for x in every if x.rows >= 64} & {8, 40, 56} == found


def test_parts_may_be_more_than_run_one_a_multiprocessor() -> None:
    """84 tiles in four parts, several CTAs on a multiprocessor; never more than run at once."""
    product = Product(5360, 16, 14928, 1, "f8", 1, Memory(1, 16), Memory(0, 16))
    parts = [one for one in tile_choices(product, HOPPER) if one.parts > 1 and isfinite(one.us)]
    many = [one for one in parts if programs_of(one, 5360, 16) * one.parts > 132]
    assert many
    for one in many:
        tile = one.rows, one.columns, one.depth
        turned = product.transposed() if one.is_transposed else product
        whole = work_of(turned, tile, 1, ALONE, HOPPER, one.stages)
        work = in_parts(whole, one.parts, HOPPER)
        assert work.programs <= predict(work, HOPPER).occupancy * HOPPER.clustered(one.parts)


def test_a_long_k_over_few_tiles_is_split() -> None:
    """By the CTAs of clusters; by programs of their own where sums are too narrow to be sent."""
    found = tiles(16, 1024, 8192)
    assert (found.parts > 1, found.splits) == (True, 1)
    assert found.parts * programs_of(found, 16, 1024) <= HOPPER.clustered(found.parts)
    alone = choose_tiles(16, 1024, 8192, 1, tl.f16, "ieee", HOPPER, most_ctas=1)
    assert alone is not None
    assert (alone.parts, alone.splits > 1) == (1, True)
    assert tiles(16, 1024, 64).parts == 1
    assert tiles(48, 48, 137546).splits > 16  # which leave most multiprocessors without work


def test_groups_of_multiprocessors_hold_whole_clusters() -> None:
    """Of an H200's eight groups two have room for one cluster of eight."""
    assert [HOPPER.clustered(size) for size in (1, 2, 4, 8)] == [132, 132, 120, 112]


def test_one_row_is_a_column_of_many_small_tiles() -> None:
    """144 programs, which all run at once, not 72 in clusters: 12.1 us for 14.9 (H200)."""
    found = tiles(1, 9216, 2112, memories=(Memory(1, 128), Memory(1, 128)))
    assert (found.is_transposed, found.rows, found.columns) == (True, 64, 8)


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_100a"])
def test_no_cluster_sums_parts_where_it_cannot(target: str) -> None:
    assert tiles(16, 1024, 8192, machine=machine_for(target)).parts == 1


def test_no_cluster_sums_parts_of_sums_that_are_kept() -> None:
    kept = choose_tiles(16, 1024, 8192, 1, tl.f8e4m3, "f32", HOPPER, MOST_SPLITS, *ALONG_K)
    assert kept is not None
    assert kept.parts == 1


def test_what_the_copy_engine_cannot_reach_gets_tiles_of_its_own() -> None:
    """Elements that wait in registers leave room for fewer accumulators."""
    even, odd = tiles(4096, 4096, 4096), tiles(4099, 4099, 4099, memories=UNALIGNED)
    assert odd.rows * odd.columns < even.rows * even.columns
    assert tiles(16, 4099, 4127, memories=UNALIGNED).rows == 16


def test_sums_kept_in_registers_leave_room_for_fewer_accumulators() -> None:
    for shape in ((8192, 8192, 8192), (16, 4096, 4096), (300, 700, 5000)):
        found = choose_tiles(*shape, 1, tl.f8e4m3, "f32", HOPPER, MOST_SPLITS, *ALONG_K)
        assert found is not None
        assert found.rows * found.columns <= 128 * 192
        assert KEPT % found.depth == 0


def test_tl_auto_serves_other_units_and_large_products_of_single_warps() -> None:
    for dtype in (tl.f64, tl.f32):
        assert choose_tiles(64, 64, 64, 1, dtype, "ieee", HOPPER) is None
    ampere = machine_for("sm_80")
    assert choose_tiles(8192, 8192, 8192, 1, tl.f16, "ieee", ampere) is None
    small = choose_tiles(512, 512, 512, 1, tl.f16, "ieee", ampere)
    assert small is not None
    assert -(-512 // small.rows) * -(-512 // small.columns) > 16  # more than 128 x 128 gives
    assert not small.is_transposed
    assert choose_tiles(0, 8, 8, 1, tl.f16, "ieee", HOPPER) is None


def test_how_a_matrix_lies_in_memory() -> None:
    assert Memory.of(0, (64, 48), (48, 1), 2) == Memory(1, 32)  # rows of 96 bytes
    assert Memory.of(0, (64, 48), (1, 64), 2) == Memory(0, 128)
    assert Memory.of(16, (64, 48), (64, 1), 2) == Memory(1, 16)  # an address is no rounder
    assert Memory.of(0, (1, 4096), (4096, 1), 2) == Memory(1, 128)
    assert Memory.of(0, (4096, 1), (1, 4099), 2) == Memory(0, 128)  # nobody steps by 4099
    assert Memory.of(0, (8, 8), (16, 2), 2).contiguous is None
    assert Memory.of(0, (3, 64, 64), (4097, 64, 1), 2) == Memory(1, 2)


def test_how_operands_travel() -> None:
    a, b = ALONG_K
    along_k, across = ((a, 1), (b, 0)), ((a, 1), (a, 0))
    assert [way_of(along_k, width, Unit.WARPGROUPS) for width in (1, 2, 4)] == [Way.ENGINE] * 3
    assert [way_of(along_k, width, Unit.WARPS) for width in (1, 2, 4)] == [Way.THREADS] * 3
    ways = [Way.REGISTERS, Way.ENGINE, Way.THREADS]
    assert [way_of(across, width, Unit.TENSOR_MEMORY) for width in (1, 2, 4)] == ways
    assert way_of(((a, 1), (UNALIGNED[1], 0)), 2, Unit.WARPGROUPS) is Way.REGISTERS
    # Of 4 bytes, elements are copied one by one, also across k; the other is not transposed then.
    shifted = Memory(1, 4)
    assert way_of(((shifted, 1), (b, 0)), 4, Unit.WARPGROUPS) is Way.THREADS
    assert way_of(((Memory(0, 128), 1), (b, 0)), 4, Unit.WARPGROUPS) is Way.ENGINE
    assert way_of(((Memory(0, 128), 1), (a, 0)), 4, Unit.WARPGROUPS) is Way.THREADS


def test_what_comes_element_by_element() -> None:
    a, b = ALONG_K
    tiles = 64 * 32, 32 * 128
    both = narrow_loads(tiles, ((UNALIGNED[0], 1), (UNALIGNED[1], 0)), 2, Unit.WARPGROUPS)
    assert both == (sum(tiles), 0)
    assert narrow_loads(tiles, ((a, 1), (UNALIGNED[1], 0)), 2, Unit.WARPGROUPS) == (4096, 256)
    assert narrow_loads(tiles, ((a, 1), (b, 0)), 2, Unit.WARPGROUPS) == (0, 0)
    # Read across k beside what the engine brings; else transposed on its way, too.
    across, beside = (Memory(0, 128), 1), (Memory(0, 4), 0)
    assert narrow_loads(tiles, (across, (b, 0)), 4, Unit.WARPGROUPS) == (0, 0)
    assert narrow_loads(tiles, (across, beside), 4, Unit.WARPGROUPS) == (sum(tiles), 0)
    assert narrow_loads(tiles, ((a, 1), beside), 4, Unit.WARPGROUPS) == (4096, 512)


@pytest.mark.parametrize(
    ("k", "dtype", "depth"),
    [(1, tl.bf16, 16), (17, tl.bf16, 32), (48, tl.f8e4m3, 64), (9, tl.f32, 16)],
)
def test_a_short_k_takes_no_deeper_tile(k: int, dtype: DType, depth: int) -> None:
    """The narrowest swizzle that holds it: what lies beyond k is zeros that somebody writes."""
    for m, n in ((384, 10216), (8192, 8192)):
        assert tiles(m, n, k, dtype=dtype, is_plain=True).depth == depth


@pytest.mark.parametrize(
    ("rows", "columns", "order"),
    [(64, 80, "?:8,1"), (64, 96, "?:8,1"), (128, 192, "?:8,1"), (128, 256, "1,?:8")],
)
def test_slots_beside_what_results_leave_through(rows: int, columns: int, order: str) -> None:
    """As many as the compiler gives the ring: panels of 32, 64 and 128 bytes a row, all of a tile
    that is rearranged."""
    specs = ["a:bf16[?:8,?:8;?:8,1]", "b:bf16[?:8,?:8;1,?:8]", f"c:bf16[?:8,?:8;{order}]"]
    constants = {"BM": rows, "BN": columns, "BK": 64}
    report = matmul.compile(specs, constants, target="sm_90a").report["decisions"]
    (decided,) = [entry for entry in report if entry["about"] == "warp specialisation"]
    c = Memory(1 if order.endswith(",1") else 0, 128)
    product = Product(4096, 4096, 4096, 1, "bf16", 2, *ALONG_K, c=c)
    work = work_of(product, (rows, columns, 64), 1, ALONE, HOPPER)
    loop, store = work.loops
    slots = stages_of(loop, HOPPER.target, work.accumulators, store.leaving_bytes)
    assert slots == decided["stages"]


def test_lines_that_begin_elsewhere_cost_more() -> None:
    def lines(row: int, alignment: int, way: Way = Way.ENGINE) -> int:
        return line_bytes(1000, row, Memory(1, alignment), way, HOPPER.rates)

    assert lines(128, 128) == 1000
    found = [lines(128, alignment) for alignment in (64, 32, 16)]
    assert 1000 < found[0] < found[1] < found[2] < 2000
    assert lines(320, 128) == 2000  # boxes of 64 bytes
    assert lines(128, 4, Way.THREADS) == found[2]
    assert lines(64, 2, Way.REGISTERS) == 1000


def test_few_programs_of_a_short_k_fill_multiprocessors_by_deeper_slots() -> None:
    """A launch is let in early by one that does: f16 64 x 4992 x 8 takes 2.3 us for 3.3 (H200)."""
    found = tiles(64, 4992, 8)
    assert found.is_single
    assert found.stages is not None
    product = Product(64, 4992, 8, 1, "f16", 2, *ALONG_K)
    product = product.transposed() if found.is_transposed else product
    tile = found.rows, found.columns, found.depth
    shared = predict(work_of(product, tile, 1, ALONE, HOPPER, found.stages), HOPPER).shared_bytes
    assert not HOPPER.target.fits_twice(shared)


def test_rings_that_a_role_of_threads_fills_are_as_full() -> None:
    """tf32 whose operands both lie across k; but no slot is deeper than a short k, which threads
    would fill with zeros."""
    across = Memory(0, 128), Memory(1, 128)
    found = tiles(532, 64, 58, dtype=tl.f32, memories=across)
    work = work_of(
        Product(532, 64, 58, 1, "tf32", 4, *across),
        (found.rows, found.columns, found.depth),
        1,
        ALONE,
        HOPPER,
        found.stages,
    )
    assert work.loops[0].way is Way.THREADS
    assert not HOPPER.target.fits_twice(predict(work, HOPPER).shared_bytes)
    assert tiles(128, 840, 2, dtype=tl.f32, memories=across).depth == 8
    assert tiles(10, 64, 58, dtype=tl.f32, memories=across).stages is None  # rows of zeros, too


def test_ctas_stay_for_products_that_write_more_than_they_read() -> None:
    """bf16 7488 x 480 x 32 takes 4.0 us so, and 6.2 where each has one of two programs (H200)."""
    for m, n, k in ((7488, 480, 32), (9000, 1000, 64), (5000, 2000, 16)):
        found = tiles(m, n, k, dtype=tl.bf16, is_plain=True)
        programs = programs_of(found, m, n)
        assert not found.is_single or programs <= HOPPER.multiprocessors


def test_results_of_a_wider_dtype_take_as_long_as_their_bytes() -> None:
    """bf16 to f32 writes twice what bf16 to bf16 does."""
    sizes = 11128, 3472, 64, 1, tl.bf16, "ieee", HOPPER, MOST_SPLITS, *ALONG_K, MOST_CTAS, True
    usual, same, wide = (choose_tiles(*sizes, Memory(1, 128), width) for width in (0, 2, 4))
    assert usual is not None
    assert wide is not None
    assert usual == same
    assert wide.us > 1.5 * usual.us


def test_the_choice_knows_the_dtype_that_the_caller_names(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = []

    def chosen(*facts: object) -> None:
        widths.append(facts[-1])

    monkeypatch.setattr(product_launch, "choose_tiles", chosen)
    a, b = np.ones((16, 16), np.float16), np.ones((16, 16), np.float16)
    for dtype in ("f16", "f32"):
        tilec.ops.matmul(a, b, out_dtype=dtype)
    assert widths == [2, 4]


def test_columns_that_threads_store_one_by_one_are_few_powers_of_two() -> None:
    """Threads have rows of 112 or 144 columns in no layout but that of the sums."""
    for m, n in ((832, 14013), (384, 10218), (1000, 3001)):
        c = Memory(1, 2)
        product = Product(m, n, 64, 1, "bf16", 2, *ALONG_K, c=c)
        found = [one for one in tile_choices(product, HOPPER) if not one.is_transposed]
        assert all(one.columns % 32 == 0 for one in found if one.columns > 32)


def test_one_program_a_multiprocessor_gets_all_of_its_memory() -> None:
    """5.63 us for 7.17 of an H200 with a ring that leaves room for a second CTA; products whose
    programs are more, or whose rings fill it anyway, are as they were."""
    product = Product(128, 3456, 1344, 1, "bf16", 2, *(Memory(1, 128),) * 2)
    size = (64, 64, 64)
    every = tile_choices(product, HOPPER)
    found = next(x for x in every if (x.rows, x.columns, x.depth) == size and x.cluster == ALONE)
    assert found.stages == 12
    work = work_of(product, size, 1, ALONE, HOPPER, found.stages)
    assert predict(work, HOPPER).occupancy == 1
    assert not HOPPER.target.fits_twice(predict(work, HOPPER).shared_bytes)
    assert filling_stages(replace(work, programs=133), HOPPER) is None
    assert tiles(4096, 4096, 4096).stages is None


def test_few_programs_of_two_warps_have_slots_as_if_each_were_alone() -> None:
    """The compiler leaves room for four such CTAs, of which a launch with fewer than there are
    multiprocessors has one on each: tf32 2 x 68 x 8192 waited for memory in each step."""
    product = Product(2, 68, 8192, 1, "tf32", 4, *ALONG_K)
    deep = {(one.rows, one.columns, one.depth): one for one in tile_choices(product, HOPPER)}
    alone = [one for one in deep.values() if (one.rows, one.columns) == (16, 32)]
    assert {one.depth: one.stages for one in alone}[128] == 4
    work = work_of(product, (16, 32, 128), 1, ALONE, HOPPER)
    assert (work.warps, stages_of(work.loops[0], HOPPER.target, warps=2)) == (2, 2)
    many = replace(work, programs=HOPPER.multiprocessors + 1)
    assert filling_stages(many, HOPPER) is None
