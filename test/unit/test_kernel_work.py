"""What the cost model reads off a kernel's text: loads, products, and computing beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tile_shapes import H200, HOPPER, array, heads, product

import tilec
import tilec.language as tl
from tilec.call.specialization import specialize
from tilec.costs.launch_work import work_of
from tilec.costs.model import predict
from tilec.costs.work import LoopWork, Unit, Way, Work
from tilec.examples.convolution import convolve
from tilec.examples.matmul import matmul
from tilec.examples.quantized_weights import quantized_matmul
from tilec.examples.tile_scales import tile_scaled_matmul
from tilec.ops.attention_kernel import attention


def test_what_attention_does_between_its_products() -> None:
    found = specialize(attention.parameters, values := heads(2, 3, 400, 64, BM=128, BN=96))
    module = attention.source_module(found.parameters, dict(found.constants), target="sm_90a")
    work = work_of(module, found.parameters, values, HOPPER).work
    whole, masked, outside = work.loops
    assert (whole.trips, masked.trips) == (4, 1)
    assert whole.staged_bytes == whole.global_bytes == 2 * 2 * 96 * 64
    assert work.outer_bytes == 2 * 128 * 64
    assert (whole.waiting_products, whole.way) == (1, Way.ENGINE)
    assert whole.functions == 128 * 96 + 128  # a weight each, and a row's factor
    assert masked.computed > whole.computed > 4 * 128 * 96
    assert work.accumulators == 128 * (96 + 64) + 128 * 96 // 2  # sums, and weights in bf16
    assert (outside.waiting_products, outside.functions) == (0, 128 * 64)  # the quotient


def test_products_that_a_loop_scales_and_adds_up_are_waited_for_and_held_twice() -> None:
    values = {
        **{"a": array(512, 512, dtype="f8E4M3FN"), "b": array(512, 512, dtype="f8E4M3FN")},
        **{"a_scales": array(512, 4, dtype="f32"), "b_scales": array(4, 4, dtype="f32")},
        **{"c": array(512, 512), "BM": 128, "BN": 64},
    }
    found = specialize(tile_scaled_matmul.parameters, values)
    module = tile_scaled_matmul.source_module(
        found.parameters, dict(found.constants), target="sm_90a"
    )
    work = work_of(module, found.parameters, values, HOPPER).work
    assert work.accumulators == 2 * 128 * 64
    assert [(loop.trips, loop.waiting_products, loop.groups) for loop in work.loops] == [
        (4, 1, 2),
        (1, 0, 1),
    ]


def test_what_two_products_read_is_loaded_once() -> None:
    @tilec.kernel(grid=1)
    def two(a: tl.array, b: tl.array, c: tl.array, K: tl.const):
        first, second = tl.zeros((64, 64), tl.f32), tl.zeros((64, 64), tl.f32)
        for k in tl.range(0, K, 32):
            x = tl.load(a, (0, k), (64, 32))
            y = tl.load(b, (0, k), (64, 32))
            first = tl.dot(x, y.T, first)
            second = tl.dot(tl.maximum(x, 0.0), y.T, second)
        tl.store(c, (0, 0), (first + second).to(c.dtype))

    values = {name: array(64, 64) for name in "abc"} | {"K": 64}
    found = specialize(two.parameters, values)
    module = two.source_module(found.parameters, dict(found.constants), target="sm_90a")
    loop = work_of(module, found.parameters, values, HOPPER).work.loops[0]
    assert loop.staged_bytes == 2 * 2 * 64 * 32
    assert loop.waiting_products == 0
    assert loop.computed == 64 * 32 // 2


def test_converted_operands_come_as_what_the_dot_multiplies() -> None:
    """Bytes that become bf16 do not make the other operand one of bytes, which lies along k."""

    @tilec.kernel(grid=1)
    def converted(a: tl.array, b: tl.array, c: tl.array, K: tl.const):
        total = tl.zeros((64, 64), tl.f32)
        for k in tl.range(0, K, 64):
            x = tl.load(a, (0, k), (64, 64)).to(b.dtype)
            total = tl.dot(x, tl.load(b, (k, 0), (64, 64)), total)
        tl.store(c, (0, 0), total.to(c.dtype))

    values = {"a": array(64, 128, dtype="i8"), "b": array(128, 64), "c": array(64, 64), "K": 128}
    found = specialize(converted.parameters, values)
    module = converted.source_module(found.parameters, dict(found.constants), target="sm_90a")
    loop = work_of(module, found.parameters, values, HOPPER).work.loops[0]
    assert (loop.way, loop.staged_bytes) == (Way.ENGINE, 64 * 64 * (1 + 2))
    assert loop.line_bytes == 64 * 128 + 64 * 2 * 64  # rows of 64 bytes are halves of lines


def test_products_and_computing_lie_under_each_other_the_more_the_more_warps() -> None:
    """2048 clocks of products and 1024 of special functions, by one to three warpgroups."""

    def us(warps: int, **own: Any) -> float:
        loop = LoopWork(100, {"f16": 1 << 23}, functions=1 << 14, unit=Unit.WARPGROUPS, **own)
        return predict(Work(132, warps, (loop,), 0, 128 * 100), H200).us

    in_turns = [us(4 * groups, waiting_products=1, groups=groups) for groups in (1, 2, 3)]
    assert in_turns == sorted(in_turns, reverse=True)
    assert in_turns[0] > 1.15 * in_turns[2]
    assert us(12, waiting_products=1, groups=1) == pytest.approx(
        in_turns[0]
    )  # the same rows, in more warps
    assert us(4) == us(12) < in_turns[2]


def test_what_makes_operands_takes_a_programs_threads() -> None:
    """Weights of 4 bits, nine instructions for two of them, in a few warps; not what follows a
    product, as of losses, and nothing where operands are loaded as they are."""
    values = {"a": array(8, 512, dtype="f16"), "packed": array(256, 1024, dtype="i8")}
    values |= {name: array(4, 1024, dtype="f16") for name in ("scales", "zeros")}
    values |= {"c": array(8, 1024, dtype="f16")}
    given = {"GROUP": 128, "BM": 16, "BN": 32, "STAGES": 4}
    wanted = specialize(quantized_matmul.parameters, {**values, **given})
    module = quantized_matmul._programs.module(wanted, HOPPER)
    work = work_of(module, wanted.parameters, values, HOPPER).work
    loop = max(work.loops, key=lambda one: one.prepared)
    assert 128 * 32 * 5 < loop.prepared <= loop.computed + 128 * 32
    none = replace(work, loops=tuple(replace(one, prepared=0) for one in work.loops))
    assert predict(work, H200).us > 1.2 * predict(none, H200).us
    plain = product(512, 512, 512) | {"BM": 64, "BN": 64, "BK": 64}
    wanted = specialize(matmul.parameters, plain)
    module = matmul._programs.module(wanted, HOPPER)
    work = work_of(module, wanted.parameters, plain, HOPPER).work
    assert [loop.prepared for loop in work.loops] == [0] * len(work.loops)


def test_a_load_role_computes_what_warpgroups_read() -> None:
    """relu of the lhs is the computing threads' work, of the rhs a load role's, however many warps
    multiply."""

    def us(warps: int, **own: Any) -> float:
        loop = LoopWork(100, {"bf16": 1 << 21}, unit=Unit.WARPGROUPS, **own)
        return predict(Work(132, warps, (loop,), 0, 128 * 100), H200).us

    assert us(4, prepared=1 << 16) == pytest.approx(us(8, prepared=1 << 16), rel=0.02)
    assert us(4, prepared=1 << 16) > us(4, filled=1 << 16) > 1.1 * us(4)
    assert us(4, filled=1 << 16) == pytest.approx(us(8, filled=1 << 16), rel=0.02)
    assert us(2, prepared=1 << 16) > 1.3 * us(4, prepared=1 << 16)


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def with_weights(
    a: tl.array, w: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """c = relu(a) @ w^T, of bytes."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        x = tl.maximum(tl.load(a, (m, k), (BM, BK)), 0.0)
        acc = tl.dot(x, tl.load(w, (n, k), (BN, BK)).to(a.dtype).T, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def test_what_makes_each_operand_is_told_apart() -> None:
    """Transposed on the way, too: 64 x 64 of relu by pairs, 128 x 64 bytes, and their ways."""
    values = {"a": array(512, 512, dtype="bf16"), "w": array(512, 512, dtype="i8")}
    values |= {"c": array(512, 512, dtype="bf16")}
    wanted = specialize(with_weights.parameters, {**values, "BM": 64, "BN": 128, "BK": 64})
    module = with_weights._programs.module(wanted, HOPPER)
    work = work_of(module, wanted.parameters, values, HOPPER).work
    loop = max(work.loops, key=lambda one: one.prepared)
    assert (loop.prepared, loop.filled) == (64 * 64 * 3 // 2, 128 * 64 * 4)


def test_gathered_operands_take_slots_too() -> None:
    """Of a convolution: 128 x 64 pixels and 64 x 128 weights of 2 bytes a step."""
    x, y = array(2, 32, 32, 128), array(2, 32, 32, 128)
    values = {"x": x, "w": array(3, 3, 128, 128), "y": y}
    given = {"STRIDE": 1, "PAD": 1, "BM": 128, "BN": 128, "BK": 64}
    wanted = specialize(convolve.parameters, {**values, **given})
    module = convolve._programs.module(wanted, HOPPER)
    work = work_of(module, wanted.parameters, values, HOPPER).work
    assert max(loop.staged_bytes for loop in work.loops) == 2 * (128 * 64 + 64 * 128)


@tilec.kernel(grid=lambda q: 1)
def summed_decays(q: tl.array, g: tl.array, o: tl.array, C: tl.const, FAST: tl.const):
    """Products of rows by C, each scaled by what sums up to it."""
    for t in tl.range(0, q.shape[0], C):
        x, passed = tl.load(q, (t, 0), (C, 64)), tl.cumsum(tl.load(g, t, C))
        scale = tl.exp(passed[:, None] - passed[None, :], approx=FAST)
        near = (tl.dot(x, x.T) * scale).to(tl.bf16)
        tl.store(o, (t, 0), tl.dot(near, x))


def test_exact_functions_and_scans_that_cross_warpgroups_have_a_price() -> None:
    """An exact exponential is nine instructions, one by the hardware three; a scan of 128 rows of
    products is passed from warp to warp, of 64 each warp has all."""
    values = {"q": array(512, 64, dtype="bf16"), "g": array(512, dtype="f32")}
    values |= {"o": array(512, 64, dtype="f32")}

    def loop(rows: int, fast: bool) -> LoopWork:
        found = specialize(summed_decays.parameters, every := {**values, "C": rows, "FAST": fast})
        module = summed_decays.source_module(
            found.parameters, dict(found.constants), target="sm_90a"
        )
        return work_of(module, found.parameters, every, HOPPER).work.loops[0]

    assert loop(64, False).computed - loop(64, True).computed == 6 * 64 * 64
    assert [loop(rows, True).crossed for rows in (64, 128)] == [0, 1]
