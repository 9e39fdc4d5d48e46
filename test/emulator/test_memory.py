# ruff: noqa: E501  (lines of PTX)
"""Loads, stores and atomics in every state space, and what is out of bounds."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise_ptx import evaluate, integers, same

from tilec.runtime.emulator import EmulatorError, Pointer, load

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\n"


def program(body: str, parameters: str = ".param .u64 a, .param .u64 b", top: str = ""):
    text = f"{HEAD}{top}\n.visible .entry k({parameters}) {{\n{REGISTERS}{body}\nret;\n}}"
    return load(text)


LANE = "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n"


@pytest.mark.parametrize(("lanes", "kind"), [(2, "b32"), (4, "b32"), (2, "b64"), (8, "b32"),
                                              (4, "b16"), (4, "b64"), (2, "b16")])  # fmt: skip
def test_vector_copies(lanes: int, kind: str) -> None:
    size = int(kind[1:]) // 8
    prefix = {2: "%h", 4: "%r1", 8: "%rd1"}[size]
    names = ", ".join(f"{prefix}{i}" for i in range(lanes))
    body = LANE + (
        f"mul.wide.u32 %rd3, %r1, {lanes * size}; add.s64 %rd1, %rd1, %rd3;"
        f"add.s64 %rd2, %rd2, %rd3; ld.global.nc.v{lanes}.{kind} {{{names}}}, [%rd1];"
        f"st.global.v{lanes}.{kind} [%rd2], {{{names}}};"
    )
    if size == 4 and prefix == "%r1":  # registers %r10...
        assert "%r10" in body
    a = np.random.default_rng(0).integers(0, 256, 64 * lanes * size, dtype=np.uint8)
    b = np.zeros_like(a)
    program(body).run("k", 1, 64, [a, b])
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16"])
def test_narrow_loads_extend_and_narrow_stores_truncate(kind: str) -> None:
    dtype = kind.replace("u", "uint").replace("s", "int")
    a = integers(dtype, seed=1, size=64)
    wide = np.zeros(64, np.int32)
    body = LANE + (
        f"mul.wide.u32 %rd3, %r1, {a.itemsize}; add.s64 %rd1, %rd1, %rd3;"
        f"mul.wide.u32 %rd4, %r1, 4; add.s64 %rd2, %rd2, %rd4;"
        f"ld.global.{kind} %r2, [%rd1]; st.global.u32 [%rd2], %r2; add.u32 %r2, %r2, 256;"
        f"st.global.{kind} [%rd1], %r2;"
    )
    before = a.copy()
    program(body).run("k", 1, 64, [a, wide])
    np.testing.assert_array_equal(wide, before.astype(np.int32))
    np.testing.assert_array_equal(a, (before.astype(np.int64) + 256).astype(dtype))


def test_out_of_bounds_names_array_and_offset() -> None:
    body = (
        LANE + "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; ld.global.b32 %r2, [%rd1+4];"
    )
    with pytest.raises(EmulatorError, match=r"out of bounds: 4 bytes at byte offset 256 of "
                       r"argument 0, which has 256 bytes.*PTX line 8"):  # fmt: skip
        program(body).run("k", 1, 64, [np.zeros(64, np.float32), np.zeros(1)])


def test_a_view_bounds_the_allocation() -> None:
    whole = np.arange(64, dtype=np.float32)
    body = LANE + "ld.global.b32 %r2, [%rd1+0]; st.global.b32 [%rd2], %r2;"
    out = np.zeros(1, np.float32)
    program(body).run("k", 1, 1, [whole[5:10], out])
    assert out[0] == 5
    bad = LANE + "ld.global.b32 %r2, [%rd1+20];"
    with pytest.raises(EmulatorError, match="byte offset 20 of argument 0, which has 20 bytes"):
        program(bad).run("k", 1, 1, [whole[5:10], out])
    program(body).run("k", 1, 1, [Pointer(whole, 28), out])
    assert out[0] == 7


def test_overlapping_arrays_alias() -> None:
    whole = np.zeros(64, np.uint32)
    body = LANE + "mov.u32 %r2, 7; st.global.b32 [%rd1+8], %r2; ld.global.b32 %r3, [%rd2];"
    body += "add.u32 %r3, %r3, 1; st.global.b32 [%rd2+4], %r3;"
    program(body).run("k", 1, 1, [whole, whole[2:]])
    assert whole[2] == 7
    assert whole[3] == 8


def test_strided_views_write_in_place() -> None:
    whole = np.zeros((8, 8), np.uint32)
    body = LANE + "mov.u32 %r2, 9; st.global.b32 [%rd1], %r2; st.global.b32 [%rd1+32], %r2;"
    program(body).run("k", 1, 1, [whole[1:3, 2:4], np.zeros(1)])
    assert whole[1, 2] == 9
    assert whole[2, 2] == 9
    assert whole.sum() == 18


def test_misaligned_and_read_only() -> None:
    a = np.zeros(64, np.uint32)
    with pytest.raises(EmulatorError, match="misaligned access: 8 bytes at byte offset 4"):
        program(LANE + "ld.global.b64 %rd4, [%rd1+4];").run("k", 1, 1, [a, a.copy()])
    a.flags.writeable = False
    with pytest.raises(EmulatorError, match="read-only array"):
        program(LANE + "st.global.b32 [%rd1], %r1;").run("k", 1, 1, [a, np.zeros(1)])


def test_shared_static_dynamic_and_bounds() -> None:
    top = ".extern .shared .align 16 .b8 dynamic[];"
    body = LANE + (
        ".shared .align 4 .b8 fixed[256];\n"
        "mov.u32 %r2, fixed; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r1;"
        "mov.u32 %r5, dynamic; add.u32 %r6, %r5, %r3; mul.lo.u32 %r7, %r1, 3;"
        "st.shared.u32 [%r6], %r7; bar.sync 0; xor.b32 %r8, %r3, 252; add.u32 %r9, %r2, %r8;"
        "ld.shared.u32 %r10, [%r9]; add.u32 %r11, %r5, %r8; ld.shared.u32 %r12, [%r11];"
        "add.u32 %r13, %r10, %r12; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3;"
        "mov.u32 %r14, %ctaid.x; mul.wide.u32 %rd5, %r14, 256; add.s64 %rd4, %rd4, %rd5;"
        "st.global.u32 [%rd4], %r13;"
    )
    out = np.zeros((5, 64), np.uint32)
    kernel = program(body, top=top)
    kernel.run("k", 5, 64, [out, np.zeros(1)], shared_bytes=256)
    np.testing.assert_array_equal(out, np.tile((63 - np.arange(64)) * 4, (5, 1)))
    with pytest.raises(EmulatorError, match="shared memory access out of bounds: 4 bytes at "):
        kernel.run("k", 5, 64, [out, np.zeros(1)], shared_bytes=252)


def test_generic_addresses_reach_every_space() -> None:
    body = LANE + (
        ".shared .align 4 .b8 s[128]; .local .align 4 .b8 l[8];\n"
        "mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5; mul.wide.u32 %rd3, %r1, 4;"
        "add.s64 %rd5, %rd5, %rd3; mov.u64 %rd6, l; cvta.local.u64 %rd6, %rd6;"
        "add.s64 %rd7, %rd1, %rd3; and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 1;"
        "setp.eq.u32 %p2, %r2, 2; selp.b64 %rd8, %rd5, %rd6, %p1; selp.b64 %rd8, %rd7, %rd8, %p2;"
        "st.u32 [%rd8], %r1; ld.u32 %r3, [%rd8]; add.u32 %r3, %r3, 100;"
        "add.s64 %rd9, %rd2, %rd3; st.global.u32 [%rd9], %r3; isspacep.shared %p3, %rd8;"
        "selp.u32 %r4, 1, 0, %p3; st.global.u32 [%rd9+128], %r4;"
    )
    a, out = np.full(32, 77, np.uint32), np.zeros(64, np.uint32)
    program(body).run("k", 1, 32, [a, out])
    np.testing.assert_array_equal(out[:32], np.arange(32) + 100)
    np.testing.assert_array_equal(out[32:], (np.arange(32) % 4 == 1).astype(int))
    np.testing.assert_array_equal(a, np.where(np.arange(32) % 4 == 2, np.arange(32), 77))


def test_constants_globals_and_their_addresses() -> None:
    top = (
        ".const .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};\n"
        ".global .align 4 .f32 scale[2] = {0f3FC00000, 0d4004000000000000};\n"
        ".global .align 8 .u64 pointer = generic(scale);\n"
        ".global .align 4 .u32 counter;\n"
    ).replace("0d4004000000000000", "0f40200000")
    body = LANE + (
        "and.b32 %r2, %r1, 3; mul.wide.u32 %rd3, %r2, 4; mov.u64 %rd4, table;"
        "add.s64 %rd4, %rd4, %rd3; ld.const.u32 %r3, [%rd4]; ld.global.u64 %rd5, [pointer];"
        "ld.u32 %r4, [%rd5+4]; mul.wide.u32 %rd6, %r1, 8; add.s64 %rd7, %rd1, %rd6;"
        "st.global.v2.u32 [%rd7], {%r3, %r4}; atom.global.add.u32 %r5, [counter], 1;"
        "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd8, %rd2, %rd3; st.global.u32 [%rd8], %r5;"
    )
    out, order = np.zeros((32, 2), np.uint32), np.zeros(32, np.uint32)
    program(body, top=top).run("k", 1, 32, [out, order])
    np.testing.assert_array_equal(out[:, 0], np.arange(32) % 4 + 1)
    assert (out[:, 1].view(np.float32) == 2.5).all()
    assert sorted(order.tolist()) == list(range(32))


def test_parameters_by_value() -> None:
    parameters = ".param .u64 a, .param .f32 x, .param .align 8 .b8 block[16], .param .u8 small"
    body = (
        "ld.param.u64 %rd1, [a]; ld.param.f32 %r1, [x]; ld.param.v2.u32 {%r2, %r3}, [block+8];"
        "ld.param.u8 %h1, [small]; cvt.u32.u16 %r4, %h1; st.global.v4.u32 [%rd1], "
        "{%r1, %r2, %r3, %r4};"
    )
    out = np.zeros(4, np.uint32)
    raw = np.arange(4, dtype=np.uint32).tobytes()
    program(body, parameters).run("k", 1, 1, [out, 1.5, raw, np.uint8(200)])
    assert out.tolist() == [0x3FC00000, 2, 3, 200]
    with pytest.raises(ValueError, match=r"argument 2 .*got 3 bytes"):
        program(body, parameters).run("k", 1, 1, [out, 1.5, b"abc", 1])
    with pytest.raises(ValueError, match="takes 4 arguments"):
        program(body, parameters).run("k", 1, 1, [out])
    with pytest.raises(TypeError, match=r"argument 1 .*cannot pass a str"):
        program(body, parameters).run("k", 1, 1, [out, "x", raw, 1])


ATOMS = {
    "add.u32": lambda v: np.add.reduce(v, dtype=np.uint32),
    "min.s32": lambda v: v.view(np.int32).min().view(np.uint32),
    "max.u32": np.max,
    "and.b32": np.bitwise_and.reduce,
    "or.b32": np.bitwise_or.reduce,
    "xor.b32": np.bitwise_xor.reduce,
}


@pytest.mark.parametrize("operation", ATOMS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_of_colliding_lanes(operation: str, space: str) -> None:
    values = integers("uint32", seed=3, size=128)
    out = np.zeros(4, np.uint32)
    out[:] = values[:4]
    name, kind = operation.split(".")
    body = LANE + (
        ".shared .align 4 .b8 cell[16];\n and.b32 %r2, %r1, 3; shl.b32 %r3, %r2, 2;"
        "mov.u32 %r4, cell; add.u32 %r4, %r4, %r3; mul.wide.u32 %rd3, %r1, 4;"
        "add.s64 %rd1, %rd1, %rd3; ld.global.b32 %r5, [%rd1]; cvt.u64.u32 %rd4, %r3;"
        "add.s64 %rd2, %rd2, %rd4; setp.lt.u32 %p1, %r1, 4;"
    )
    if space == "shared":
        body += (
            "@%p1 st.shared.b32 [%r4], %r5; bar.sync 0; setp.ge.u32 %p2, %r1, 4;"
            f"@%p2 red.shared.{name}.{kind} [%r4], %r5; bar.sync 0;"
            "@%p1 ld.shared.b32 %r6, [%r4]; @%p1 st.global.b32 [%rd2], %r6;"
        )
    else:
        body += f"@!%p1 red.relaxed.gpu.global.{name}.{kind} [%rd2], %r5;"
    program(body).run("k", 1, 128, [values, out])
    for cell in range(4):
        assert out[cell] == ATOMS[operation](values[cell::4]), cell


def test_cas_exch_inc_return_old_values() -> None:
    a = np.zeros(3, np.uint32)
    old = np.zeros((64, 3), np.uint32)
    body = LANE + (
        "atom.global.cas.b32 %r2, [%rd1], %r1, 1000; atom.global.exch.b32 %r3, [%rd1+4], %r1;"
        "atom.global.inc.u32 %r4, [%rd1+8], 9; mul.wide.u32 %rd3, %r1, 12; add.s64 %rd2, %rd2, %rd3;"
        "st.global.u32 [%rd2], %r2; st.global.u32 [%rd2+4], %r3; st.global.u32 [%rd2+8], %r4;"
    )
    program(body).run("k", 1, 64, [a, old])
    assert a[0] == 1000
    assert old[0, 0] == 0
    assert (old[1:, 0] == 1000).all()
    assert sorted([*old[:, 1].tolist(), int(a[1])]) == sorted([0, *range(64)])
    np.testing.assert_array_equal(old[:, 2], np.arange(64) % 10)
    assert a[2] == 4


def test_float_and_packed_atomics() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-8, 8, (64, 2)).astype(np.float16)
    total = np.zeros(4, np.float32)
    body = LANE + (
        "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; ld.global.b32 %r2, [%rd1];"
        "red.global.add.noftz.f16x2 [%rd2], %r2; mov.b32 {%h1, %h2}, %r2; cvt.f32.f16 %r3, %h1;"
        "red.global.add.f32 [%rd2+4], %r3; cvt.f32.f16 %r4, %h2;"
        "red.global.add.v2.f32 [%rd2+8], {%r3, %r4};"
    )
    program(body).run("k", 1, 64, [values, total])
    sums = values.astype(np.float32).sum(0)
    np.testing.assert_array_equal(total[:1].view(np.float16), sums.astype(np.float16))
    np.testing.assert_array_equal(total[1:], [sums[0], sums[0], sums[1]])


def test_predicated_loads_do_not_touch_other_addresses() -> None:
    a = integers("uint32", seed=1, size=40)
    out = np.zeros(64, np.uint32)
    body = LANE + (
        "setp.lt.u32 %p1, %r1, 40; mov.u32 %r2, 5; mul.wide.u32 %rd3, %r1, 4;"
        "add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3; @%p1 ld.global.u32 %r2, [%rd1];"
        "st.global.u32 [%rd2], %r2;"
    )
    program(body).run("k", 1, 64, [a, out])
    np.testing.assert_array_equal(out[:40], a)
    assert (out[40:] == 5).all()


def test_printf_and_assert() -> None:
    top = (
        ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
        ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
        ".param .b64 e);\n"
        ".global .align 1 .b8 form[18] = {116, 61, 37, 100, 32, 120, 61, 37, 46, 50, 102, 32, 37, "
        "108, 108, 117, 10, 0};\n"
        ".global .align 1 .b8 text[5] = {111, 111, 112, 115, 0};\n"
    )
    body = (
        '.loc 1 12 5\n.local .align 8 .b8 depot[24];\n mov.u64 %rd5, depot; cvta.local.u64 %rd6, %rd5;'
        "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 1; @%p1 bra SKIP;"
        "st.local.u32 [%rd5], %r1; cvt.rn.f64.u32 %rd7, %r1; st.local.f64 [%rd5+8], %rd7;"
        "mov.u64 %rd9, 12345678901; st.local.u64 [%rd5+16], %rd9;"
        "mov.u64 %rd8, form; cvta.global.u64 %rd8, %rd8;"
        "{ .param .b64 param0; .param .b64 param1; .param .b32 retval0; st.param.b64 [param0], %rd8;"
        " st.param.b64 [param1], %rd6; call.uni (retval0), vprintf, (param0, param1);"
        " ld.param.b32 %r9, [retval0]; }"
        "\nSKIP: setp.ne.u32 %p2, %r1, 3; @%p2 bra DONE; mov.u64 %rd8, text;"
        "cvta.global.u64 %rd8, %rd8; mov.u32 %r4, 42;"
        "{ .param .b64 param0; .param .b64 param1; .param .b32 param2; .param .b64 param3; "
        ".param .b64 param4; st.param.b64 [param0+0], %rd8; st.param.b64 [param1+0], %rd8; "
        "st.param.b32 [param2+0], %r4; st.param.b64 [param3+0], %rd8; st.param.b64 [param4+0], 1;"
        "call.uni __assertfail, (param0, param1, param2, param3, param4); }\nDONE:"
    )  # fmt: skip
    kernel = load(
        f'{HEAD}.file 1 "kernel.py"\n{top}.visible .entry k() {{\n{REGISTERS}{body}\nret;\n}}'
    )
    assert kernel.run("k", 1, 3, []).printed == "t=0 x=0.00 12345678901\nt=1 x=1.00 12345678901\n"
    with pytest.raises(
        EmulatorError, match=r"assertion failed: oops \(oops:42.*thread 3.*kernel.py:12"
    ):
        kernel.run("k", 1, 4, [])


def test_local_memory_is_private() -> None:
    a = integers("uint32", seed=1)
    body = (
        ".local .align 4 .b8 mine[16];\n mov.u64 %d1, mine; st.local.u32 [%d1+4], {0};"
        "ld.local.u32 {o0}, [mine+4];"
    )
    same(evaluate(body, a, out="uint32"), a)
