"""setp, set, selp, slct, mov, special registers."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from elementwise_ptx import evaluate, floats, integers, same

from tilec.runtime.emulator import UnsupportedInstruction, load

COMPARE = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
           "gt": operator.gt, "ge": operator.ge}  # fmt: skip


@pytest.mark.parametrize("name", COMPARE)
@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_integer_comparisons(name: str, kind: str) -> None:
    dtype = kind.replace("u", "uint").replace("s", "int")
    a, b = integers(dtype, seed=1), integers(dtype, seed=2)
    b[::3] = a[::3]
    body = f"setp.{name}.{kind} %p1, {{0}}, {{1}}; selp.u32 {{o0}}, 1, 0, %p1;"
    same(evaluate(body, a, b, out="uint32"), COMPARE[name](a, b).astype(np.uint32))


@pytest.mark.parametrize("suffix", ["", "u"])
@pytest.mark.parametrize("name", COMPARE)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_float_comparisons_with_nan(name: str, suffix: str, kind: str) -> None:
    dtype = kind.replace("f", "float")
    a, b = floats(dtype, seed=1), floats(dtype, seed=2)
    b[::3] = a[::3]
    body = f"setp.{name}{suffix}.{kind} %p1, {{0}}, {{1}}; selp.u32 {{o0}}, 1, 0, %p1;"
    nan = np.isnan(a) | np.isnan(b)
    want = np.where(nan, suffix == "u", COMPARE[name](a, b))
    same(evaluate(body, a, b, out="uint32"), want.astype(np.uint32))


def test_num_nan_and_unsigned_names() -> None:
    a, b = floats("float32", seed=1), floats("float32", seed=2)
    body = (
        "setp.num.f32 %p1, {0}, {1}; setp.nan.f32 %p2, {0}, {1}; setp.hi.u32 %p3, {0}, {1};"
        "selp.u32 {o0}, 1, 0, %p1; selp.u32 {o1}, 1, 0, %p2; selp.u32 {o2}, 1, 0, %p3;"
    )
    number, nan, higher = evaluate(body, a, b, out=("uint32",) * 3)
    both = np.isnan(a) | np.isnan(b)
    same(number, (~both).astype(np.uint32))
    same(nan, both.astype(np.uint32))
    same(higher, (a.view(np.uint32) > b.view(np.uint32)).astype(np.uint32))


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
def test_combined_comparison_with_two_results(combine: str) -> None:
    a, b = integers("int32", seed=1), integers("int32", seed=2)
    body = (
        f"setp.lt.s32 %p3, {{0}}, 0; setp.gt.{combine}.s32 %p1|%p2, {{0}}, {{1}}, !%p3;"
        "selp.u32 {o0}, 1, 0, %p1; selp.u32 {o1}, 1, 0, %p2;"
    )
    first, second = evaluate(body, a, b, out=("uint32", "uint32"))
    ufunc = getattr(np, f"bitwise_{combine}")
    same(first, ufunc(a > b, ~(a < 0)).astype(np.uint32))
    same(second, ufunc(~(a > b), ~(a < 0)).astype(np.uint32))


def test_set_slct_packed_setp() -> None:
    a, b = floats("float32", seed=1), floats("float32", seed=2)
    body = "set.lt.u32.f32 {o0}, {0}, {1}; set.lt.f32.f32 {o1}, {0}, {1};"
    body += "slct.f32.f32 {o2}, {0}, {1}, {1};"
    mask, one, chosen = evaluate(body, a, b, out=("uint32", "float32", "float32"))
    with np.errstate(invalid="ignore"):
        same(mask, np.where(a < b, np.uint32(0xFFFFFFFF), np.uint32(0)))
        same(one, (a < b).astype(np.float32))
        same(chosen, np.where(b >= 0, a, b))
    h, g = floats("float16", seed=1, size=512), floats("float16", seed=2, size=512)
    body = "setp.lt.f16x2 %p1|%p2, {0}, {1}; selp.u32 {o0}, 1, 0, %p1; selp.u32 {o1}, 1, 0, %p2;"
    low, high = evaluate(body, h.view(np.uint32), g.view(np.uint32), out=("uint32", "uint32"))
    with np.errstate(invalid="ignore"):
        same(low, (h < g)[::2].astype(np.uint32))
        same(high, (h < g)[1::2].astype(np.uint32))


def test_vector_moves_split_and_join() -> None:
    a = integers("uint64", seed=1)
    body = (
        "mov.b64 {%r10, %r11}, {0}; mov.b64 {o0}, {%r11, %r10};"
        "mov.b32 {%h10, %h11}, %r10; mov.b32 {o1}, {%h11, %h10};"
        "mov.b64 {%h10, %h11, %h12, %h13}, {0}; mov.b64 {o2}, {%h13, %h12, %h11, %h10};"
    )
    swapped, halves, quarters = evaluate(body, a, out=("uint64", "uint32", "uint64"))
    same(swapped, a.view(np.uint32).reshape(-1, 2)[:, ::-1].copy().view(np.uint64)[:, 0])
    low = a.view(np.uint16).reshape(-1, 4)
    same(halves, low[:, 1::-1].copy().view(np.uint32)[:, 0])
    same(quarters, low[:, ::-1].copy().view(np.uint64)[:, 0])


def test_split_into_its_own_source() -> None:
    a = integers("uint32", seed=1)
    body = "mov.b32 %h3, 0; mov.b32 {%h3, %h4}, {0}; cvt.u32.u16 {o0}, %h4;"
    body = body.replace("mov.b32 %h3, 0;", "")
    same(evaluate(body, a, out="uint32"), a >> np.uint32(16))


SPECIALS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<30>; .reg .b64 %rd<5>;
mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x;
mov.u32 %r5, %ctaid.y; mov.u32 %r6, %nctaid.x; mov.u32 %r7, %laneid; mov.u32 %r8, %lanemask_le;
mov.u32 %r9, %ntid.y; mad.lo.u32 %r10, %r2, %r3, %r1; mad.lo.u32 %r11, %r5, %r6, %r4;
mul.lo.u32 %r12, %r3, %r9; mad.lo.u32 %r13, %r11, %r12, %r10;
ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r13, 32; add.u64 %rd3, %rd1, %rd2;
st.global.v4.u32 [%rd3], {%r1, %r2, %r4, %r5}; st.global.v4.u32 [%rd3+16], {%r7, %r8, %r3, %r6};
ret; }"""


def test_special_registers() -> None:
    grid, block = (3, 2), (10, 7)
    threads = block[0] * block[1]
    out = np.zeros((grid[1], grid[0], block[1], block[0], 8), np.uint32)
    load(SPECIALS).run("k", grid, block, [out])
    cy, cx, ty, tx = np.meshgrid(
        range(grid[1]), range(grid[0]), range(block[1]), range(block[0]), indexing="ij"
    )
    lane = (ty * block[0] + tx) % 32
    want = [tx, ty, cx, cy, lane, (2 << lane.astype(np.int64)) - 1, 0 * tx + 10, 0 * tx + 3]
    assert threads % 32 != 0  # the last warp is partial
    for column, values in enumerate(want):
        np.testing.assert_array_equal(out[..., column], values)


@pytest.mark.parametrize(
    "line",
    ["frobnicate.b32 {o0}, {0};", "add.wrap.u32 {o0}, {0}, {0};", "setp.foo.u32 %p1, {0}, {0};",
     "cvt.rn.s32.s32.u1 {o0}, {0};", "shfl.sync.idx.b64 {o0}, {0}, 0, 31, -1;",
     "ld.global.banana.u32 {o0}, [%d20];", "mma.sync.aligned.m16n8k7.row.col.f32.f16.f16.f32 "
     "{o0}, {0}, {0}, {0};"],
)  # fmt: skip
def test_what_is_unknown_is_refused_before_anything_runs(line: str) -> None:
    a = np.zeros(32, np.uint32)
    with pytest.raises(UnsupportedInstruction, match=r"PTX line \d+: unsupported: .*" + line[:5]):
        evaluate(line, a, out="uint32")
