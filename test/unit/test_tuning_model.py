"""The model that autotuning ranks candidates by: what a kernel does, and how long it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.call.specialization import specialize
from tilec.costs.launch_work import KernelWork, work_of
from tilec.costs.machine import Machine
from tilec.costs.model import (
    predict,
    stages_of,
)
from tilec.costs.rates import rates_of
from tilec.costs.work import LoopWork, Stored, Unit, Way, Work
from tilec.examples.matmul import matmul
from tilec.examples.split_k import split_k
from tilec.hardware.target import Target, find_target
from tilec.runtime.arrays import HOST, ArrayView

A100 = find_target("sm_80")


MACHINE = Machine("test", A100, 100, 1000, 2000, 1 << 20)


RATES = rates_of(A100)


def matrix(*shape: int, dtype: str = "bf16") -> ArrayView:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return ArrayView(4096, shape, tuple(strides), dtype, (HOST, 0))


def work(
    kernel: Kernel,
    values: dict[str, Any],
    grid: Any = None,
    target: Target = A100,
    **constants: Any,
) -> KernelWork:
    defaults = {p.name: p.default for p in kernel.parameters if p.kind == "const"}
    bound = {**values, **defaults, **constants}
    wanted = specialize(kernel.parameters, bound)
    specs = wanted.parameters
    module = kernel.source_module(specs, dict(wanted.constants), target=target.name)
    return work_of(module, specs, bound, target, grid)


def test_a_product_is_as_many_operations_as_its_tiles_have() -> None:
    values = {"a": matrix(1000, 504), "b": matrix(504, 304), "c": matrix(1000, 304)}
    found = work(matmul, values, BM=128, BN=64, BK=32)
    assert found.grid == (8, 5, 1)
    loop, outside = found.work.loops
    assert loop.trips == 16  # 504 / 32, rounded up
    assert loop.flops == {"bf16": 2 * 128 * 64 * 32}
    assert loop.global_bytes == loop.staged_bytes == 2 * (128 * 32 + 32 * 64)
    assert outside == LoopWork(stored_bytes=2 * 128 * 64, computed=128 * 64 // 2)
    assert (loop.way, loop.narrow_loads) == (Way.THREADS, 0)
    assert found.work.programs == 40
    assert found.work.accumulators == 128 * 64
    assert found.work.array_bytes == 2 * (1000 * 504 + 504 * 304 + 1000 * 304)
    assert (found.reads, found.writes) == ({"a", "b"}, {"c"})
    assert found.work.guessed == ()


def test_arrays_that_atomics_add_to_are_read_and_written() -> None:
    values = {"a": matrix(64, 256), "b": matrix(256, 64), "c": matrix(64, 64, dtype="f32")}
    found = work(split_k, values, SPLITS=4)
    assert found.writes == {"c"}
    assert found.reads == {"a", "b", "c"}
    assert found.work.loops[0].trips == 2  # a quarter of 256 / 32


@tilec.kernel(grid=lambda x: x.shape[0])
def triangle(x: tl.array, y: tl.array, n: tl.i32):
    """Loops that differ from program to program, depend on a scalar, or on memory."""
    row = tl.program_id(0)
    acc = tl.zeros((32,), tl.f32)
    for i in tl.range(0, (row + 1) * 32, 32):
        acc += tl.load(x, (row, i), (32,))
    for i in range(n // 2):
        acc += tl.load(x, (row, i), (32,))
    for _ in range(tl.cast(tl.load(y, (0, 0), ()), tl.i32)):
        acc += 1.0
    tl.store(y, (row, 0), acc)


def test_bounds_of_loops_are_evaluated_for_the_middle_program() -> None:
    arrays = {"x": matrix(100, 3200, dtype="f32"), "y": matrix(100, 32, dtype="f32")}
    found = work(triangle, {**arrays, "n": 21})
    assert [loop.trips for loop in found.work.loops] == [50.5, 10, 1, 1]
    assert found.reads == {"x", "y"}
    assert any("unknown before the run" in note for note in found.work.guessed)


def test_a_grid_must_come_from_somewhere() -> None:
    @tilec.kernel
    def bare(x: tl.array):
        tl.store(x, tl.program_id(0), tl.full((8,), 1.0, tl.f32))

    values = {"x": matrix(100, dtype="f32")}
    with pytest.raises(ValueError, match="no grid rule"):
        work(bare, values)
    assert work(bare, values, grid=(3, 2)).work.programs == 6


COMPUTE = Work(100, 4, (LoopWork(1000, {"f16": 2048 * 1000}),), 0, accumulators=128 * 32)


def test_a_lone_wave_takes_the_time_of_its_arithmetic() -> None:
    """1000 trips of 1000 clocks at 1 GHz are a millisecond."""
    found = predict(COMPUTE, MACHINE)
    assert found.us == pytest.approx(1000 + RATES.launch, rel=0.01)
    assert found.bound in ("arithmetic", "latency")


def test_one_program_more_than_multiprocessors_costs_a_second_round() -> None:
    work = replace(COMPUTE, accumulators=128 * 200)  # 200 registers a thread: one program at once
    one, two = (predict(replace(work, programs=n), MACHINE) for n in (100, 101))
    assert one.occupancy == two.occupancy == 2
    alone = replace(work, warps=8, accumulators=256 * 200)
    assert predict(alone, MACHINE).occupancy == 1
    few, more = (predict(replace(alone, programs=n), MACHINE).us for n in (100, 101))
    # Nearly: programs do not run in lockstep, the less the more there are.
    assert 1.8 * few < more < 2 * few
    assert 1.8 * one.us < two.us < 2 * one.us
    many, one_more = (predict(replace(alone, programs=n), MACHINE).us for n in (5000, 5001))
    assert many < one_more < many + few / 2


def test_what_is_in_memory_must_come_from_there() -> None:
    found = predict(replace(COMPUTE, array_bytes=20 * 10**9), MACHINE)
    # 20 GB at what threads get of 2 TB/s, and a part of the millisecond of arithmetic behind it.
    whole = 10_000 / (RATES.dram_efficiency * RATES.dram_threads)
    assert found.us == pytest.approx(whole + 1000 * RATES.unhidden + RATES.launch, rel=1e-3)
    assert found.bound == "DRAM"
    programs = 100 // (2 * RATES.dram_share)
    few = predict(replace(COMPUTE, programs=programs, array_bytes=20 * 10**9), MACHINE)
    assert few.us == pytest.approx(2 * found.us, rel=0.05)  # half of all shares


def test_idle_multiprocessors_among_others_slow_reading_down() -> None:
    loop = replace(COMPUTE.loops[0], trips=1, way=Way.ENGINE)
    reads = replace(COMPUTE, loops=(loop,), array_bytes=10**9)
    us = {n: predict(replace(reads, programs=n), MACHINE).us for n in (100, 75, 50, 150)}
    assert us[100] < us[150] < us[75]
    assert us[50] == pytest.approx(us[100], rel=0.01)  # one in each pair
    dealt = predict(replace(reads, programs=75, cluster=4), MACHINE).us
    assert dealt == pytest.approx(us[100] + MACHINE.rates.cluster, rel=0.01)


def test_zeros_and_short_pieces_take_time() -> None:
    engine = replace(COMPUTE.loops[0], way=Way.ENGINE, global_bytes=4096, staged_bytes=4096)
    zeroed = replace(engine, zeroed_bytes=1 << 20)
    few, more = (predict(replace(COMPUTE, loops=(x,)), MACHINE).us for x in (engine, zeroed))
    assert more > few
    reads = replace(COMPUTE, array_bytes=20 * 10**9)
    short, longer = (predict(replace(reads, piece_bytes=n), MACHINE).us for n in (128, 512))
    # 128 bytes a piece cost `short_pieces`, four times as many a quarter of it.
    assert short / longer == pytest.approx(1 + RATES.short_pieces * 3 / 4, rel=0.01)


def test_stages_hide_latency() -> None:
    loop = LoopWork(100, {"f16": 2048 * 100}, global_bytes=16, staged_bytes=16)
    us = [predict(Work(1, 4, (replace(loop, stages=n),), 0), MACHINE).us for n in (1, 2, 5)]
    assert us[0] > us[1] > us[2]
    assert us[2] == pytest.approx(
        RATES.launch + RATES.memory_latency * (1 + 100 / 4) / 1000, rel=0.02
    )


def test_the_model_counts_stages_as_the_compiler_does() -> None:
    """Up to 4 slots, half of shared memory: 163 KiB."""
    for size, wanted in ((0, 1), (1024, 4), (20_000, 4), (40_000, 2), (80_000, 1)):
        loop = LoopWork(10, {"f16": 1}, staged_bytes=size)
        assert stages_of(loop, A100, 128 * 128) == wanted
    # CTAs of two warps leave room for two more of them, if two slots remain.
    for size, wanted in ((8_000, 4), (16_384, 2), (32_768, 2), (60_000, 1)):
        loop = LoopWork(10, {"f16": 1}, staged_bytes=size)
        assert stages_of(loop, A100, 3072, warps=2) == wanted
    # The accumulators of 256x128 tiles leave no registers for a second CTA.
    assert stages_of(LoopWork(10, {"f16": 1}, staged_bytes=48 << 10), A100, 256 * 128) == 3


@pytest.mark.parametrize("sides", [(64, 64), (64, 128), (128, 256)])
def test_the_model_counts_the_slots_of_rings_as_the_compiler_does(sides: tuple[int, int]) -> None:
    """One that fills shared memory, and one that leaves room for a second CTA."""
    hopper = find_target("sm_90a")
    specs = ["a:bf16[?:8,?:8;?:8,1]", "b:bf16[?:8,?:8;1,?:8]", "c:bf16[?:8,?:8;?:8,1]"]
    constants = {"BM": sides[0], "BN": sides[1], "BK": 64}
    report = matmul.compile(specs, constants, target="sm_90a").report["decisions"]
    (decided,) = [entry for entry in report if entry["about"] == "warp specialisation"]
    values = {"a": matrix(4096, 4096), "b": matrix(4096, 4096), "c": matrix(4096, 4096)}
    found = work(matmul, values, target=hopper, **constants).work
    loop, store = found.loops
    assert loop.way is Way.ENGINE
    assert loop.unit is Unit.WARPGROUPS
    panels = min(store.stored_bytes, 2 * 128 * sides[0])
    assert stages_of(loop, hopper, found.accumulators, panels) == decided["stages"]


def test_what_lies_awkwardly_costs_more() -> None:
    hopper = find_target("sm_90a")
    machine = Machine("H200", hopper, 132, 1755, 4800, 60 << 20)

    def product(k: int, n: int) -> Work:
        values = {"a": matrix(1000, k), "b": matrix(k, n), "c": matrix(1000, n)}
        return work(matmul, values, target=hopper, BM=64, BN=128, BK=64).work

    even, shifted, odd = product(1024, 1024), product(1000, 1000), product(1001, 1001)
    assert even.loops[0].line_bytes == even.loops[0].global_bytes
    cost = rates_of(hopper).shifted[16]
    assert shifted.loops[0].line_bytes == int(cost * shifted.loops[0].global_bytes)
    assert odd.loops[0].way is Way.REGISTERS
    assert odd.loops[0].narrow_loads >= (64 + 128) * 64
    us = [predict(one, machine).us for one in (even, shifted, odd)]
    assert us == sorted(us)


HOPPER = Machine("H200", find_target("sm_90a"), 132, 1980, 4814, 60 << 20)


def test_results_whose_rows_begin_anywhere_take_longer() -> None:
    """Element by element, most where neighbours in a warp store to different sectors."""
    tile = 128 * 128
    store = LoopWork(stored_bytes=2 * tile, stored_rows=128, stored_elements=tile)
    loop = replace(COMPUTE.loops[0], trips=1)
    us = {
        way: predict(replace(COMPUTE, loops=(loop, replace(store, stored=way))), HOPPER).us
        for way in Stored
    }
    assert us[Stored.ROWS] < us[Stored.TRANSPOSED] < us[Stored.ELEMENTS] < us[Stored.SCATTERED]
    torn = replace(COMPUTE, array_bytes=10**9, torn_bytes=10**9)
    whole = replace(torn, torn_bytes=0)
    assert predict(torn, HOPPER).us > predict(whole, HOPPER).us


def test_a_launch_hides_where_the_one_before_leaves_room() -> None:
    """It is let in early where it fits no multiprocessor beside one of its own kind."""
    loop = LoopWork(1, {"f16": 2048}, staged_bytes=48 << 10, way=Way.ENGINE, unit=Unit.WARPGROUPS)
    work = Work(60, 4, (replace(loop, stages=4),), 0)
    two = replace(work, loops=(replace(loop, stages=2),))
    alone, beside = predict(two, HOPPER).us, predict(work, HOPPER).us
    hidden = HOPPER.rates.hidden_launch + HOPPER.rates.hidden_beside
    assert alone - beside == pytest.approx(hidden, abs=0.01)
    full = predict(replace(work, programs=100), HOPPER).us
    assert full - beside == pytest.approx(HOPPER.rates.hidden_beside, abs=0.01)


def test_a_slot_that_another_cta_gives_back_costs_clocks() -> None:
    loop = LoopWork(
        1000,
        {"f16": 1 << 22},
        staged_bytes=48 << 10,
        stages=4,
        way=Way.ENGINE,
        unit=Unit.WARPGROUPS,
    )
    work = Work(132, 8, (loop,), 0, 128 * 256)
    alone, shared = (predict(replace(work, cluster=n), HOPPER).us for n in (1, 2))
    clocks = 1000 * HOPPER.rates.cluster_step
    expected = clocks / HOPPER.clock_mhz + HOPPER.rates.cluster
    assert shared - alone == pytest.approx(expected, rel=0.01)


def test_elements_that_registers_do_not_hold_come_in_goes() -> None:
    loop = LoopWork(100, {"f16": 2048}, global_bytes=1 << 15, way=Way.REGISTERS)
    work = Work(1, 4, (loop,), 0, 128 * 128)
    few, more = (replace(loop, narrow_loads=128 * n) for n in (64, 2 * (255 - 128 - 32)))
    us = [predict(replace(work, loops=(x,)), HOPPER) for x in (few, more)]
    assert us[1].registers == 256
    rates = HOPPER.rates
    extra = 100 * (rates.memory_latency + 128 * rates.narrow_load * (190 - 64))
    assert us[1].us - us[0].us == pytest.approx(extra / HOPPER.clock_mhz, rel=0.06)


def test_shared_memory_limits_how_many_run_at_once() -> None:
    loop = LoopWork(10, {"f16": 1}, staged_bytes=16 * 1024, stages=4)
    assert predict(Work(500, 4, (loop,), 0), MACHINE).occupancy == 2  # 65 KiB each of 164
    assert predict(Work(500, 4, (replace(loop, stages=5),), 0), MACHINE).occupancy == 2
    assert predict(Work(500, 4, (replace(loop, stages=6),), 0), MACHINE).occupancy == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"warps": 64}, "2048 threads a program; sm_80 has at most 1024"),
        ({"accumulators": 128 * 256}, "256 registers a thread for the accumulator alone"),
        (
            {"loops": (LoopWork(1, {}, 0, 0, 64 * 1024, 3),)},
            "its stages take 196608 bytes of shared memory; a program has at most 166912",
        ),
        ({"warps": 32, "accumulators": 1024 * 100}, "about 136 registers for each of 1024 threads"),
        ({"teams": 2}, "no sets of warps take programs in turn on sm_80"),
        (
            {"loops": (LoopWork(1, columns=640),)},
            "its sums take 640 columns of tensor memory, which has 512",
        ),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(change: Any, reason: str) -> None:
    found = predict(replace(COMPUTE, **change), MACHINE)
    assert reason in found.impossible
    assert found.us == float("inf")


def test_sets_of_warps_in_turn_hide_the_end_of_programs() -> None:
    """As timed on an H200, 8192 x 8192: 128 x 192 in turn is a tenth faster than 128 x 256 by all
    where K is 512, and about the same where it is 8192."""
    hopper = find_target("sm_90a")
    machine = Machine("H200", hopper, 132, 1755, 4800, 60 << 20)
    in_turn = matmul.demanding(num_warps=4, consumers="pingpong")

    def us(kernel: Kernel, depth: int, columns: int) -> float:
        values = {"a": matrix(8192, depth), "b": matrix(depth, 8192), "c": matrix(8192, 8192)}
        found = work(kernel, values, target=hopper, BM=128, BN=columns, BK=64).work
        assert found.teams == (2 if kernel is in_turn else 1)
        return predict(found, machine).us

    for depth, most in ((512, 0.95), (8192, 1.02)):
        assert 0.8 < us(in_turn, depth, 192) / us(matmul, depth, 256) < most


def test_the_model_knows_good_tiles_from_bad_ones() -> None:
    """On an A100: 128 x 128 for a large product, small tiles for a small one."""
    machine = Machine("A100", A100, 108, 1410, 2039, 40 << 20)

    def best(size: int) -> tuple[int, int]:
        values = {name: matrix(size, size) for name in "abc"}
        times = {
            (m, n): predict(work(matmul, values, BM=m, BN=n, BK=64).work, machine).us
            for m in (32, 64, 128)
            for n in (32, 64, 128)
        }
        return min(times, key=lambda sides: times[sides])

    assert best(8192) == (128, 128)
    assert max(best(512)) <= 64
