# ruff: noqa: E501  (lines of PTX)
"""Warpgroups whose warps come to a product on different paths."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .f32 %f<9>; .reg .b64 %rd<20>;
  .shared .align 1024 .b8 s[4096];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r5, 0;
  mov.b32 %r4, 0x3C003C00; shl.b32 %r3, %r1, 4; add.u32 %r3, %r2, %r3;
  st.shared.v4.b32 [%r3], {%r4, %r4, %r4, %r4}; st.shared.v4.b32 [%r3+2048], {%r4, %r4, %r4, %r4};
  fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p2, %r1, 9999;
  shr.u32 %r10, %r2, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, 68719738880;
  add.s64 %rd11, %rd10, 128; setp.LATE %p1, %r1, 64; @%p1 bra LATER;
  mov.u32 %r5, 1;
MEET: wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, %p2, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  mad.wide.u32 %rd2, %r1, 8, %rd1; st.global.f32 [%rd2], %f0; st.global.b32 [%rd2+4], %r5;
  ret;
LATER: mov.u32 %r5, 2; GO
}"""


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_they_meet_at_the_fence(mode: str) -> None:
    """Code of one path stands behind the product, as LLVM likes to put it."""
    out = np.zeros((128, 2), np.float32)
    program = load(KERNEL.replace("LATE ", "ge.u32 ").replace("GO", "bra MEET;"))
    result = program.run("k", 1, 128, [out], mode=mode)
    assert [f for f in result.findings if f.severity == "error"] == []
    np.testing.assert_array_equal(out[:, 0], 16)
    assert set(out[:64, 1].view(np.int32)) == {1}
    assert set(out[64:, 1].view(np.int32)) == {2}


def test_half_a_warpgroup_multiplies_nothing() -> None:
    """The others stay where they wait for each other."""
    program = load(KERNEL.replace("LATE ", "ge.u32 ").replace("GO", "bar.sync 1, 128; ret;"))
    with pytest.raises(EmulatorError, match=r"waits for the others at .*wgmma\.fence"):
        program.run("k", 1, 128, [np.zeros((128, 2), np.float32)])
