# ruff: noqa: E501  (lines of PTX)
"""Check mode on the registers of wgmma: fences before products, waits before accesses."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import Finding, load

D = "{%r20, %r21, %r22, %r23}"
A = "{%r30, %r31, %r32, %r33}"
FILL = (
    "mad.lo.u32 %r3, %r1, 32, %r2; mov.b32 %r9, 0; st.shared.v4.b32 [%r3], {%r9, %r9, %r9, %r9};"
    "st.shared.v4.b32 [%r3+16], {%r9, %r9, %r9, %r9}; fence.proxy.async.shared::cta; bar.sync 0;"
)
ZERO = "".join(f"mov.b32 %r{i}, 0;" for i in (20, 21, 22, 23, 30, 31, 32, 33))
FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
PRODUCT = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {D}, %rd3, %rd4, 1, 1, 1, 0, 0;"
FROM_REGISTERS = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {D}, {A}, %rd4, 1, 1, 1, 0;"
READ = "st.global.b32 [%rd2], %r20;"
WRITE_A = "mov.b32 %r31, 5;"


def wait(pending: int) -> str:
    return f"wgmma.wait_group.sync.aligned {pending};"


def check(*body: str) -> list[Finding]:
    """Findings of a warpgroup whose descriptors %rd3 and %rd4 name zeroed shared memory."""
    lines = "\n".join(f".loc 1 {number + 1} 1\n{text}" for number, text in enumerate(body))
    text = (
        '.version 8.6\n.target sm_90a\n.address_size 64\n.file 1 "kernel.py"\n'
        ".visible .entry k(.param .u64 a) {\n.reg .pred %p<4>; .reg .b32 %r<60>; .reg .b64 %rd<9>;\n"
        ".shared .align 1024 .b8 s[4096];\nld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x;"
        "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2; setp.lt.u32 %p1, %r1, 32;"
        "mov.u32 %r2, s; shr.u32 %r4, %r2, 4; cvt.u64.u32 %rd3, %r4;"
        f"or.b64 %rd3, %rd3, {8 << 16 | 16 << 32}; mov.b64 %rd4, %rd3;{FILL}\n{lines}\nret;\n}}"
    )
    return load(text).run("k", 1, 128, [np.zeros(128, np.uint32)], mode="check").findings


RIGHT = {
    "one product": (ZERO, FENCE, PRODUCT, COMMIT, wait(0), READ),
    "a chain": (ZERO, FENCE, PRODUCT, PRODUCT, COMMIT, PRODUCT, COMMIT, wait(0), READ),
    "registers": (ZERO, FENCE, FROM_REGISTERS, COMMIT, wait(0), WRITE_A, READ),
    "other lanes": (ZERO, FENCE, FROM_REGISTERS, COMMIT, "@!%p1 bra X; bar.warp.sync -1; X:", wait(0), READ),
    "A is only read": (ZERO, FENCE, FROM_REGISTERS, COMMIT, "st.global.b32 [%rd2], %r31;", wait(0)),
    "fenced again": (ZERO, FENCE, PRODUCT, COMMIT, wait(0), READ, FENCE, PRODUCT, COMMIT, wait(0)),
}  # fmt: skip
STILL = "the matrix product may still use this register"
BETWEEN = "no wgmma.fence lies between the access of a register and the product that uses it"
FIRST = "no wgmma.fence precedes the first product"
WRONG = {
    "no fence at all": ((ZERO, PRODUCT, COMMIT, wait(0), READ), FIRST, None, 2),
    "set after the fence": ((FENCE, ZERO, PRODUCT, COMMIT, wait(0)), BETWEEN, 2, 3),
    "A set after the fence": ((ZERO, FENCE, WRITE_A, FROM_REGISTERS, COMMIT, wait(0)), BETWEEN, 3, 4),
    "read before the wait": ((ZERO, FENCE, PRODUCT, COMMIT, READ, wait(0)), STILL, 3, 5),
    "read before a weak wait": ((ZERO, FENCE, PRODUCT, COMMIT, wait(1), READ), STILL, 3, 6),
    "A written before the wait": ((ZERO, FENCE, FROM_REGISTERS, COMMIT, WRITE_A, wait(0)), STILL, 3, 5),
    "read, then used again": ((ZERO, FENCE, PRODUCT, COMMIT, wait(0), READ, PRODUCT, COMMIT, wait(0)), BETWEEN, 6, 7),
    "some lanes read": ((ZERO, FENCE, PRODUCT, COMMIT, "@%p1 st.global.b32 [%rd2], %r20;", wait(0)), STILL, 3, 5),
    "never committed": ((ZERO, FENCE, PRODUCT, wait(0), READ), STILL, 3, 5),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels(name: str) -> None:
    assert check(*RIGHT[name]) == []


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels(name: str) -> None:
    body, missing, first, second = WRONG[name]
    found = [f for f in check(*body) if f.missing == missing]
    assert found, check(*body)
    assert {f.severity for f in found} == {"error"}
    lines = {(f.first and f.first.source.line, f.second.source.line) for f in found}  # type: ignore[union-attr]
    assert (first, second) in lines
    assert all("wgmma." in f.mend for f in found)
