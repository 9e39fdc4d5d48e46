# ruff: noqa: E501  (lines of LLVM IR)
"""What LLVM's NVPTX printer writes for the intrinsics of the three targets can be decoded."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from tilec.runtime.emulator import load

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

ARGUMENTS = "ptr addrspace(1) %p, ptr addrspace(3) %s, i32 %i, float %f, i64 %l"
N = "@llvm.nvvm."

CASES = {
    ("barriers", "sm_80"): f"""
 call void {N}barrier.cta.sync.aligned.all(i32 0)
 call void {N}barrier.cta.sync.aligned.count(i32 1, i32 64)
 call void {N}barrier.cta.arrive.aligned.count(i32 1, i32 %i)
 call void {N}bar.warp.sync(i32 -1)""",
    ("cp.async", "sm_80"): f"""
 call void {N}cp.async.cg.shared.global.16(ptr addrspace(3) %s, ptr addrspace(1) %p)
 call void {N}cp.async.ca.shared.global.4.s(ptr addrspace(3) %s, ptr addrspace(1) %p, i32 %i)
 call void {N}cp.async.commit.group()
 call void {N}cp.async.wait.group(i32 1)
 call void {N}cp.async.wait.all()
 call void {N}cp.async.mbarrier.arrive.noinc.shared(ptr addrspace(3) %s)""",
    ("bulk tensor", "sm_90a"): f"""
 %q = addrspacecast ptr addrspace(1) %p to ptr
 %c = addrspacecast ptr addrspace(3) %s to ptr addrspace(7)
 call void {N}mbarrier.init.shared(ptr addrspace(3) %s, i32 1)
 call void {N}cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %c, ptr addrspace(3) %s, ptr %q, i32 %i, i32 0, i16 0, i64 0, i1 0, i1 0, i32 0)
 call void {N}cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %c, ptr addrspace(3) %s, ptr %q, i32 %i, i32 0, i16 3, i64 %l, i1 1, i1 1, i32 0)
 call void {N}cp.async.bulk.tensor.s2g.tile.2d(ptr addrspace(3) %s, ptr %q, i32 %i, i32 0, i64 0, i1 0)
 call void {N}cp.async.bulk.commit.group()
 call void {N}cp.async.bulk.wait.group.read(i32 0)""",
    ("cluster and wgmma", "sm_90a"): f"""
 call void {N}wgmma.fence.sync.aligned()
 call void {N}wgmma.commit_group.sync.aligned()
 call void {N}wgmma.wait_group.sync.aligned(i64 0)
 call void {N}setmaxnreg.inc.sync.aligned.u32(i32 232)
 call void {N}barrier.cluster.arrive.relaxed.aligned()
 call void {N}barrier.cluster.wait.aligned()
 %r = call i32 {N}read.ptx.sreg.cluster.ctarank()
 %a = call ptr addrspace(7) {N}mapa.shared.cluster(ptr addrspace(3) %s, i32 %r)
 store i32 %r, ptr addrspace(7) %a
 call void {N}fence.sc.cluster()
 %e = call {{i32, i1}} {N}elect.sync(i32 -1)""",
    ("tcgen05", "sm_100a"): f"""
 %t = inttoptr i32 %i to ptr addrspace(6)
 call void {N}tcgen05.alloc.shared.cg1(ptr addrspace(3) %s, i32 128)
 call void {N}tcgen05.relinq.alloc.permit.cg1()
 call void {N}tcgen05.mma.shared(ptr addrspace(6) %t, i64 %l, i64 %l, i32 %i, i1 1, i32 0, i32 1, i32 0)
 call void {N}tcgen05.mma.tensor(ptr addrspace(6) %t, ptr addrspace(6) %t, i64 %l, i32 %i, i1 1, i32 0, i32 1, i32 0)
 call void {N}tcgen05.commit.shared.cg1(ptr addrspace(3) %s)
 call void {N}tcgen05.fence.after.thread.sync()
 %v = call <4 x i32> {N}tcgen05.ld.32x32b.x4(ptr addrspace(6) %t, i1 0)
 call void {N}tcgen05.wait.ld()
 call void {N}tcgen05.st.16x256b.x1(ptr addrspace(6) %t, <4 x i32> %v, i1 0)
 call void {N}tcgen05.dealloc.cg1(ptr addrspace(6) %t, i32 128)""",
    ("atomics and order", "sm_90a"): """
 %a = atomicrmw add ptr addrspace(1) %p, i32 %i monotonic
 %b = atomicrmw fadd ptr addrspace(1) %p, float %f syncscope("device") acq_rel
 %c = cmpxchg ptr addrspace(1) %p, i32 %a, i32 %i acq_rel monotonic
 fence seq_cst
 %d = load atomic i32, ptr addrspace(1) %p acquire, align 4
 store atomic i32 %d, ptr addrspace(1) %p release, align 4
 %g = atomicrmw umax ptr addrspace(3) %s, i32 %i monotonic""",
}  # fmt: skip
DECLARATIONS = {
    "barriers": ["void barrier.cta.sync.aligned.all(i32)", "void barrier.cta.sync.aligned.count(i32, i32)",
                 "void barrier.cta.arrive.aligned.count(i32, i32)", "void bar.warp.sync(i32)"],
    "cp.async": ["void cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))",
                 "void cp.async.ca.shared.global.4.s(ptr addrspace(3), ptr addrspace(1), i32)",
                 "void cp.async.commit.group()", "void cp.async.wait.group(i32)", "void cp.async.wait.all()",
                 "void cp.async.mbarrier.arrive.noinc.shared(ptr addrspace(3))"],
    "bulk tensor": ["void mbarrier.init.shared(ptr addrspace(3), i32)",
                    "void cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7), ptr addrspace(3), ptr, i32, i32, i16, i64, i1, i1, i32)",
                    "void cp.async.bulk.tensor.s2g.tile.2d(ptr addrspace(3), ptr, i32, i32, i64, i1)",
                    "void cp.async.bulk.commit.group()", "void cp.async.bulk.wait.group.read(i32)"],
    "cluster and wgmma": ["void wgmma.fence.sync.aligned()", "void wgmma.commit_group.sync.aligned()",
                          "void wgmma.wait_group.sync.aligned(i64)", "void setmaxnreg.inc.sync.aligned.u32(i32)",
                          "void barrier.cluster.arrive.relaxed.aligned()", "void barrier.cluster.wait.aligned()",
                          "i32 read.ptx.sreg.cluster.ctarank()",
                          "ptr addrspace(7) mapa.shared.cluster(ptr addrspace(3), i32)",
                          "void fence.sc.cluster()", "{i32, i1} elect.sync(i32)"],
    "tcgen05": ["void tcgen05.alloc.shared.cg1(ptr addrspace(3), i32)", "void tcgen05.relinq.alloc.permit.cg1()",
                "void tcgen05.mma.shared(ptr addrspace(6), i64, i64, i32, i1, i32, i32, i32)",
                "void tcgen05.mma.tensor(ptr addrspace(6), ptr addrspace(6), i64, i32, i1, i32, i32, i32)",
                "void tcgen05.commit.shared.cg1(ptr addrspace(3))", "void tcgen05.fence.after.thread.sync()",
                "<4 x i32> tcgen05.ld.32x32b.x4(ptr addrspace(6), i1)", "void tcgen05.wait.ld()",
                "void tcgen05.st.16x256b.x1(ptr addrspace(6), <4 x i32>, i1)",
                "void tcgen05.dealloc.cg1(ptr addrspace(6), i32)"],
    "atomics and order": [],
}  # fmt: skip


@pytest.mark.parametrize(("name", "cpu"), CASES, ids=str)
def test_the_printed_instructions_are_known(name: str, cpu: str) -> None:
    declared = (
        "declare " + re.sub(r"([a-z]\w*(?:\.\w+)+)\(", rf"{N}\1(", text, count=1)
        for text in DECLARATIONS[name]
    )
    ir = 'target triple = "nvptx64-nvidia-cuda"\n' + "\n".join(declared)
    ir += f"\ndefine ptx_kernel void @k({ARGUMENTS}) {{{CASES[name, cpu]}\n ret void\n}}\n"
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu=cpu, features="+ptx86", opt=3)
    ptx = machine.emit_assembly(llvm.parse_assembly(ir))
    program = load(ptx)
    assert program.entries == ("k",)
    # Something of every family must have survived LLVM's optimiser.
    family = {"barriers": "bar", "bulk tensor": "cp.async.bulk.tensor", "cluster and wgmma": "wgmma",
              "atomics and order": "atom"}.get(name, name)  # fmt: skip
    assert family in ptx
