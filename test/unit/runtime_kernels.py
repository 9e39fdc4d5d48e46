"""Small kernels in hand-written PTX, for tests of the runtime."""

from __future__ import annotations

from tilec.executable.kernel import CompiledKernel, Facts, Parameter, TensorMap
from tilec.terms.dtypes import ELEMENT_BYTES

AXPY_PTX = """
.version 7.0
.target {target}
.address_size 64
.visible .entry axpy(.param .u64 x, .param .{index} nx, .param .u64 y, .param .{index} ny,
                     .param .f32 alpha, .param .u32 n)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .reg .f32 %f<8>;
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    ld.param.f32 %f0, [alpha];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.s32 %p0, %r4, %r0;
    @%p0 bra done;
    mul.wide.s32 %d2, %r4, 4;
    add.s64 %d3, %d0, %d2;
    add.s64 %d4, %d1, %d2;
    ld.global.f32 %f1, [%d3];
    ld.global.f32 %f2, [%d4];
    fma.rn.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%d4], %f3;
done:
    ret;
}}
"""
"""y += alpha * x over the first n elements."""


def axpy(
    target: str = "sm_80",
    index_bits: int = 32,
    facts: Facts | None = None,
    grid: tuple[str, str, str] | None = ("cdiv(y.shape[0], 128)", "1", "1"),
) -> CompiledKernel:
    """The kernel of `AXPY_PTX`, for float vectors of unit stride."""
    known = facts or Facts()
    return CompiledKernel(
        "axpy",
        target,
        AXPY_PTX.format(target="sm_80", index=f"u{index_bits}"),
        (
            Parameter("x", "array", "f32", (None,), (1,), known),
            Parameter("y", "array", "f32", (None,), (1,), known),
            Parameter("alpha", "scalar", "f32"),
            Parameter("n", "scalar", "i32"),
        ),
        grid,
        128,
        0,
        index_bits,
    )


ECHO_VALUES = {
    "f64": -1.5,
    "f32": 0.1,
    "f16": 2.0,
    "bf16": -3.0,
    "f8E4M3FN": 0.5,
    "f8E5M2": 4.0,
    "i1": True,
    "i8": -5,
    "i16": -300,
    "i32": -70000,
    "i64": -(2**40),
}
"""An argument of each scalar dtype; all but 0.1 are exact in their type."""

_ECHO_PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry echo(.param .u64 out, {declared})
{{
    .reg .b16 %h<2>;
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    ld.param.u64 %d0, [out];
{body}
    ret;
}}
"""


def echo() -> CompiledKernel:
    """Stores each scalar of `ECHO_VALUES` as the hardware got it, 8 bytes apart, into i64 `out`."""
    registers = {1: ("u8", "%h0"), 2: ("u16", "%h0"), 4: ("u32", "%r0"), 8: ("u64", "%d1")}
    declared, body = [], []
    for position, dtype in enumerate(ECHO_VALUES):
        kind, register = registers[ELEMENT_BYTES[dtype]]
        declared.append(f".param .{kind} s{position}")
        body.append(f"    ld.param.{kind} {register}, [s{position}];")
        body.append(f"    st.global.{kind} [%d0+{8 * position}], {register};")
    return CompiledKernel(
        "echo",
        "sm_80",
        _ECHO_PTX.format(declared=", ".join(declared), body="\n".join(body)),
        (
            Parameter("out", "array", "i64", (len(ECHO_VALUES),), (1,)),
            *(Parameter(f"s{n}", "scalar", dtype) for n, dtype in enumerate(ECHO_VALUES)),
        ),
        None,
        1,
        0,
        32,
    )


_REVERSE_PTX = """
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 staged[];
.visible .entry reverse(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<10>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, staged;
    mov.u32 %r3, %r0;
fill:
    shl.b32 %r4, %r3, 2;
    add.s32 %r5, %r2, %r4;
    st.shared.u32 [%r5], %r3;
    add.s32 %r3, %r3, %r1;
    setp.lt.s32 %p0, %r3, COUNT;
    @%p0 bra fill;
    bar.sync 0;
    mov.u32 %r3, %r0;
drain:
    sub.s32 %r6, LAST, %r3;
    shl.b32 %r6, %r6, 2;
    add.s32 %r5, %r2, %r6;
    ld.shared.u32 %r7, [%r5];
    mul.wide.s32 %d1, %r3, 4;
    add.s64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r7;
    add.s32 %r3, %r3, %r1;
    setp.lt.s32 %p0, %r3, COUNT;
    @%p0 bra drain;
    ret;
}
"""


def reverse(count: int) -> CompiledKernel:
    """out[i] = count - 1 - i for an i32 array, by way of `count` words of dynamic shared memory."""
    ptx = _REVERSE_PTX.replace("COUNT", str(count)).replace("LAST", str(count - 1))
    out = Parameter("out", "array", "i32", (count,), (1,))
    return CompiledKernel("reverse", "sm_80", ptx, (out,), ("1", "1", "1"), 128, 4 * count, 32)


_EIGHT_PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry eight(.param .u64 a, .param .u32 sa, .param .u64 b, .param .u32 sb,
                      .param .u64 c, .param .u32 sc, .param .u32 n0, .param .u32 n1,
                      .param .u32 n2, .param .u32 n3, .param .u32 n4)
{
    ret;
}
"""


def eight() -> CompiledKernel:
    """Does nothing with three float vectors and five integers: what a launch costs."""
    vectors = (
        Parameter(name, "array", "f32", (None,), (1,), Facts(16, (4,), (1,))) for name in "abc"
    )
    numbers = (Parameter(f"n{n}", "scalar", "i32") for n in range(5))
    return CompiledKernel(
        "eight", "sm_80", _EIGHT_PTX, (*vectors, *numbers), ("1", "1", "1"), 32, 0, 32
    )


_MAPPED_PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry mapped(.param .u64 a, .param .u32 ma, .param .u32 na, .param .u32 sa,
                       .param .u64 b, .param .u32 mb, .param .u32 nb, .param .u32 sb,
                       .param .u64 c, .param .u32 mc, .param .u32 nc, .param .u32 sc,
                       .param .align 64 .b8 first[128], .param .align 64 .b8 second[128],
                       .param .align 64 .b8 third[128])
{
    ret;
}
"""


def mapped() -> CompiledKernel:
    """Does nothing with three f16 matrices and a tensor map of each: what a launch costs."""
    facts = Facts(16, (8, 8), (8, 1))
    matrices = tuple(
        Parameter(name, "array", "f16", (None, None), (None, 1), facts) for name in "abc"
    )
    maps = tuple(TensorMap(number, (1, 0), (64, 128), 128, "f16") for number in range(3))
    grid = ("1", "1", "1")
    return CompiledKernel(
        "mapped", "sm_90a", _MAPPED_PTX, matrices, grid, 32, 0, 32, tensor_maps=maps
    )
