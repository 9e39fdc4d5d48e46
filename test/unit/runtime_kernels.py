"""Small kernels in hand-written PTX, for tests of the runtime."""

from __future__ import annotations

from tilec.kernel import CompiledKernel, Facts, Parameter

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
