"""What the model says of L2: what several programs read comes once for groups of multiprocessors,
few programs get more each, rows of 16 bytes take the copy engine long, launches are ragged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tilec
import tilec.language as tl
from tilec.call.call_class import class_of
from tilec.call.specialization import specialize
from tilec.costs.dot_work import Memory
from tilec.costs.launch_work import launch_work
from tilec.costs.machine import Machine, usual_machine
from tilec.costs.model import predict
from tilec.costs.units import units_of
from tilec.costs.work import ALONE, LoopWork, Unit, Way, Work
from tilec.dialects.context import make_context
from tilec.examples.grouped_gemm import arranged_gemm
from tilec.examples.matmul import matmul
from tilec.hardware.target import find_target
from tilec.ops.product_facts import Product
from tilec.ops.product_work import work_of
from tilec.runtime.arrays import ArrayView

HOPPER = find_target("sm_90a")
H200 = Machine("H200", HOPPER, 132, 1980, 4814, 60 << 20)
KBYTE = 1 << 10


def l2(loop: LoopWork, programs: int, machine: Machine = H200) -> float:
    """Clocks of L2 in an iteration."""
    return units_of(loop, machine, programs)["L2"]


def read_by(readers: float, **others: Any) -> LoopWork:
    """A loop whose operand so many programs read."""
    size = 32 * KBYTE
    usual: dict[str, Any] = {"global_bytes": size, "line_bytes": size, "asked_bytes": size}
    return LoopWork(10, readers=((size, readers),), **{"way": Way.ENGINE, **usual, **others})


def test_what_many_programs_read_l2_reads_for_groups_of_them() -> None:
    times = [l2(read_by(n), 1000) for n in (1, 2, 4, 8, 11)]
    assert times == sorted(times, reverse=True)
    assert times[0] == pytest.approx(32 * KBYTE / H200.rates.l2_bytes_for_all)
    # No more than lie along a side of a square of those at once.
    assert l2(read_by(100), 1000) == l2(read_by(50), 1000) == l2(read_by(132**0.5), 1000)
    groups = H200.rates.merging
    assert times[1] / times[0] == pytest.approx((1 + (1 - 1 / groups)) / 2)


def test_few_programs_are_bound_by_their_own_ports() -> None:
    loop = read_by(1)
    port = 32 * KBYTE / H200.rates.engine_bytes
    assert l2(loop, 4) == pytest.approx(port)
    assert l2(loop, 132) > 2 * port
    shifted = read_by(1, line_bytes=64 * KBYTE)
    assert l2(shifted, 4) == pytest.approx(port)  # L2 has time for whole lines
    assert l2(shifted, 132) > 1.9 * l2(loop, 132)
    by_threads = read_by(1, way=Way.THREADS)
    assert l2(by_threads, 4) == pytest.approx(32 * KBYTE / H200.rates.l2_bytes)


def test_targets_that_nobody_timed_merge_nothing() -> None:
    for name in ("sm_80", "sm_100a"):
        machine = usual_machine(find_target(name))
        assert l2(read_by(11), 1000, machine) == l2(read_by(1), 1000, machine)


def test_rows_of_eight_elements_take_the_engine_longer() -> None:
    """A box of 64 x 64 of which 64 rows of 16 bytes lie in the array, as of 8 columns: 12 clocks
    each were measured (696 x 8 x 1664, H200)."""

    def asked(m: int) -> int:
        across = Memory(0, 16), Memory(1, 16)
        product = Product(m, 4096, 4096, 1, "bf16", 2, *across, c=Memory(1, 16))
        return work_of(product, (64, 64, 64), 1, ALONE, H200).loops[0].asked_bytes

    rates = H200.rates
    assert asked(8) - asked(64) == 64 * int(rates.thin_row * rates.engine_bytes) - 64 * 128
    assert asked(16) == asked(64)


def view(*shape: int, dtype: str = "bf16") -> ArrayView:
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return ArrayView(0, shape, tuple(strides), dtype, ("cuda", 0))


def launched(kernel: Any, values: dict[str, Any], **constants: int) -> Work:
    """The work of a launch with these constants."""
    defaults = {p.name: p.default for p in kernel.parameters}
    wanted = specialize(kernel.parameters, {**defaults, **values})
    tiles = kernel._programs.choices(wanted, HOPPER)
    order = tuple((name, constants[name]) for name in tiles._usual.values)
    program = tiles._program(order, make_context)
    call = class_of(wanted.parameters, {**defaults, **values}, H200)
    return launch_work(program, call.arguments(wanted.parameters)).work


def test_how_many_programs_read_an_operand_is_read_off_the_launch() -> None:
    values = {"a": view(2048, 1024), "b": view(1024, 1536), "c": view(2048, 1536)}
    work = launched(matmul, values, BM=128, BN=64, BK=64)
    (a, columns), (b, rows) = work.loops[0].readers
    assert (a, b) == (128 * 128, 64 * 128)
    assert columns == pytest.approx(1536 / 64)
    assert rows == pytest.approx(2048 / 128)


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def gated(
    x: tl.array, g: tl.array, u: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = (x @ g) * (x @ u)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    gate, up = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        rows = tl.load(x, (m, k), (BM, BK))
        gate = tl.dot(rows, tl.load(g, (k, n), (BK, BN)), gate)
        up = tl.dot(rows, tl.load(u, (k, n), (BK, BN)), up)
    tl.store(y, (m, n), (gate * up).to(y.dtype))


def test_what_warpgroups_cut_comes_in_panels_that_each_reads_whole() -> None:
    """Two of them take 96 columns of 192 each: half lines. 64 of 128, and three times 64 rows of
    64 columns, are whole ones; so are those of k."""
    across = view(192, 768)
    along = replace(across, strides=(1, 192))
    x, y = view(1536, 192), view(1536, 768)

    def wasted(weights: ArrayView, rows: int, columns: int) -> int:
        values = {"x": x, "g": weights, "u": weights, "y": y}
        loop = launched(gated, values, BM=rows, BN=columns, BK=64).loops[0]
        return loop.asked_bytes - loop.global_bytes

    assert wasted(across, 64, 192) == 2 * 64 * 192 * 2
    assert wasted(across, 64, 128) == wasted(across, 192, 64) == wasted(along, 64, 192) == 0


def grouped(groups: int, rows: int, n: int, k: int, BM: int) -> dict[str, Any]:
    tiles = view(-(-rows // BM) + groups + 1, 3, dtype="i32")
    arrays = {"a": view(rows, k), "b": view(groups, k, n), "c": view(rows, n), "tiles": tiles}
    return {**arrays, "BM": BM}


def test_groups_share_little() -> None:
    """47 groups of 84 rows in the mean: a column of tiles reads a matrix of b twice."""
    work = launched(arranged_gemm, grouped(47, 3948, 216, 7192, 64), BN=64, BK=64)
    (_, columns), (_, rows) = work.loops[0].readers
    assert 3 < columns < 7
    assert 1 < rows < 3
    shared = replace(work.loops[0], readers=tuple((n, 11) for n, _ in work.loops[0].readers))
    alike = replace(work, loops=(shared, *work.loops[1:]))
    assert predict(work, H200).us > 1.15 * predict(alike, H200).us


def test_ragged_launches_take_the_mean_of_the_rounds_they_may() -> None:
    """16 groups, 2 tiles of columns: 130 tiles of rows are expected, 122 or 138 may be."""
    work = launched(arranged_gemm, grouped(16, 15616, 488, 1360, 128), BN=256, BK=64)
    assert work.programs == pytest.approx(260, abs=8)
    assert work.spread == pytest.approx(9, abs=2)
    step = LoopWork(100, {"bf16": 1 << 24}, way=Way.ENGINE, unit=Unit.WARPGROUPS, stages=2)
    few = Work(120, 8, (replace(step, staged_bytes=100 * KBYTE),), 0)
    one, two = predict(few, H200).us, predict(replace(few, programs=144), H200).us
    between = predict(replace(few, programs=132, spread=12), H200).us
    assert one < between < two
    assert predict(replace(few, programs=100, spread=12), H200).us == pytest.approx(one, rel=0.02)
