"""The PTX ISA version printed: the lowest that the code needs, or the one that a driver takes."""

from __future__ import annotations

import re
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import demanded

from tilec.call.device_target import ptx_version_for
from tilec.compile.assembler import assemble, locate_tool
from tilec.examples.matmul import matmul
from tilec.examples.softmax import softmax
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.ptx_version import (
    NEWEST,
    needed,
    newest_of_driver,
    printed_version,
    release_with,
    shown,
)
from tilec.hardware.target import PTX_VERSIONS, find_target
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.runtime.errors import DeviceError

FORMS = {
    "mov.b32 %r1, %r2": 70,
    "@!%p1 add.s32 %r1, %r2, 3": 70,
    "cp.async.ca.shared.global [%r1], [%rd1], 4": 70,
    "cp.async.ca.shared.global [%r1], [%rd1], 4, %r2": 70,
    "cp.async.ca.shared.global [%r1], [%rd1], 4, %p1": 75,
    "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16": 74,
    "cp.async.ca.shared::cta.global [%r1], [%rd1], 4": 78,
    "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]": 70,
    "cvt.rn.bf16.f32 %rs1, %f1": 70,
    "cvt.f32.bf16 %f1, %rs1": 71,
    "cvt.rn.bf16.s32 %rs1, %r1": 78,
    "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2": 78,
    "cvt.rn.satfinite.e2m1x2.f32 %rs1, %f1, %f2": 86,
    "fma.rn.bf16 %rs1, %rs2, %rs3, %rs4": 70,
    "add.rn.bf16 %rs1, %rs2, %rs3": 78,
    "fma.rn.f32.bf16 %f1, %rs1, %rs2, %f2": 86,
    "max.NaN.f32 %f1, %f2, %f3": 70,
    "max.NaN.f32 %f1, %f2, %f3, %f4": 88,
    "red.relaxed.gpu.global.add.f32 [%rd1], %f1": 70,
    "red.relaxed.gpu.global.add.noftz.bf16 [%rd1], %rs1": 78,
    "atom.cas.b128 %rq1, [%rd1], %rq2, %rq3": 83,
    "st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r4}": 70,
    "st.global.v8.b32 [%rd1], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}": 88,
    "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], %r2": 71,
    "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2": 78,
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r1], %r2": 80,
    "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [%r1], %r2": 86,
    "mbarrier.arrive.shared.b64 _, [%r1]": 71,
    "mbarrier.arrive.shared.b64 %rd1, [%r1]": 70,
    "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1]": 86,
    "barrier.cluster.arrive.relaxed.aligned": 80,
    "fence.acq_rel.cluster": 78,
    "fence.proxy.async.shared::cta": 80,
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {}, {}, {}, {}": 70,
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {}, {}, {}, {}": 84,
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e3m2.f32"
    ".ue8m0 {}, {}, {}, {}, %r1, {0, 1}, %r2, {2, 3}": 87,
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 {}, {}": 87,
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32"
    ".ue4m3 {}, {}, {}, {}": 87,
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {}, 1, 2, p, 1, 1": 80,
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [b]": 80,
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.cta_group::2 [a], [b]": 86,
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1": 86,
    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r1], %rd1": 87,
    "frobnicate.b32 %r1, %r2": NEWEST,
    "mov.frobnicated.b32 %r1, %r2": NEWEST,
}  # fmt: skip
"""An instruction with its operands, and the version of "PTX ISA Notes"."""


@pytest.mark.parametrize("instruction", FORMS)
def test_versions_of_instructions(instruction: str) -> None:
    text = f"again:\n\t{{\n\t.reg .pred p;\n\t{instruction};\n\t}}\n"
    assert needed(text, find_target("sm_80")).version == FORMS[instruction]


def test_a_target_needs_its_own_version_at_least() -> None:
    text = "mov.b32 %r1, %r2;\nsetmaxnreg.inc.sync.aligned.u32 240;"
    assert needed(text, find_target("sm_100a")).version == 86
    assert needed(text, find_target("sm_90a")).version == 80


def test_what_a_driver_takes() -> None:
    releases = {11080: 78, 12000: 80, 12020: 82, 12060: 85, 12080: 87, 12090: 88, 13000: 90}
    assert {known: newest_of_driver(known) for known in releases} == releases
    assert (newest_of_driver(10000), newest_of_driver(14020)) == (70, NEWEST)
    assert [release_with(version) for version in (75, 80, 86, 87)] == [
        "11.8",
        "12.0",
        "12.7",
        "12.8",
    ]


ARRAYS = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
ODD = [f"{name}:f32[?,?]" for name in "abc"]
ROWS = ["x:f32[?,?:4;?:4,1]", "y:f32[?,?:4;?:4,1]"]
COMPILED = {
    "ragged sm_80": (matmul, ODD, {"PRECISION": "tf32", "BM": 32, "BN": 32, "BK": 32}, 75),
    "rows sm_80": (softmax, ROWS, {"N": 256}, 70),
    "product sm_90a": (demanded, ARRAYS, {}, 80),
    "clusters sm_90a": (demanded.demanding(cluster=2), ARRAYS, {}, 86),
    "rows sm_100a": (softmax, ROWS, {"N": 4096}, 88),
    "product sm_100a": (demanded, ARRAYS, {"BM": 128}, 86),
}
"""A kernel, its arrays and constants, and the version of the instructions that it needs."""
LIMITED = {"rows sm_80": 75, "ragged sm_80": 75, "clusters sm_90a": 80, "rows sm_100a": 87}
"""Versions that old drivers take, for kernels whose best code needs more, or code without it."""


@pytest.fixture(scope="module")
def kernels() -> dict[str, CompiledKernel]:
    """The kernels of COMPILED at the version they need."""
    return {name: compiled(name) for name in COMPILED}


def compiled(name: str, version: int | None = None) -> CompiledKernel:
    """A kernel of COMPILED at some version."""
    kernel, arrays, constants, _ = COMPILED[name]
    return kernel.compile(arrays, constants, target=name.split()[1], ptx_version=version)


def test_the_lowest_version_is_printed(kernels: dict[str, CompiledKernel]) -> None:
    found = {name: printed_version(kernel.ptx) for name, kernel in kernels.items()}
    assert found == {name: row[-1] for name, row in COMPILED.items()}


@pytest.mark.skipif(locate_tool("ptxas") is None, reason="needs ptxas")
def test_ptxas_takes_that_version_and_none_below(kernels: dict[str, CompiledKernel]) -> None:
    for kernel in kernels.values():
        target = find_target(kernel.target)
        assert assemble(kernel.ptx, target).cubin
        version = printed_version(kernel.ptx)
        below = [v for v in PTX_VERSIONS if target.lowest_ptx <= v < version]
        if below:
            lower = kernel.ptx.replace(f".version {shown(version)}", f".version {shown(below[-1])}")
            with pytest.raises(InternalError, match=rf"requires PTX ISA .version {shown(version)}"):
                assemble(lower, target)


@pytest.mark.parametrize("name", LIMITED)
def test_code_for_an_older_version(name: str) -> None:
    kernel = compiled(name, LIMITED[name])
    assert printed_version(kernel.ptx) == LIMITED[name]
    if locate_tool("ptxas") is not None:
        assert assemble(kernel.ptx, find_target(kernel.target)).cubin


def test_barriers_of_clusters_order_more_where_relaxed_ones_are_too_new(monkeypatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    monkeypatch.setattr("tilec.call.jit.ptx_version_for", lambda device, target: 80)
    monkeypatch.setenv("TILEC_CACHE", "0")
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((136, 328), (328, 72)))
    c = np.full((136, 72), np.nan, np.float32)
    kernel = demanded.demanding(cluster=2).on("emulator:check")
    kernel(a, b, c)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=0, atol=1e-3)
    found = kernel.compiled(a, b, c)
    assert "relaxed" not in re.sub(r"barrier\.cluster\.\S+", "", found.ptx)
    assert "mbarrier.try_wait.parity.acquire.cluster" in found.ptx
    assert "mbarrier.arrive.release.cluster" in found.ptx
    assert "PTX ISA 8.0 has no relaxed one, 8.6 does" in kernel.report(a, b, c)


def test_a_version_that_is_too_low_names_the_instruction_and_the_line() -> None:
    with pytest.raises(CompileError) as caught:
        compiled("ragged sm_80", 74)
    message = str(caught.value)
    assert "cp.async.ca.shared.global with ignore-src needs PTX ISA 7.5, " in message
    assert "the program is compiled for 7.4" in message
    assert re.search(r"matmul\.py:39:\d+: error", message)
    assert "help: drivers of CUDA 11.8 and later take it" in message


def device(capability: tuple[int, int], cuda: int) -> SimpleNamespace:
    """What `ptx_version_for` asks of one."""
    newest = newest_of_driver(cuda)
    return SimpleNamespace(name="cuda:0", compute_capability=capability, newest_ptx=newest)


@pytest.mark.parametrize(
    ("cuda", "target", "version"),
    [(13000, "sm_80", None), (12080, "sm_100a", 87), (12000, "sm_90a", 80), (12000, "sm_80", 80)],
)
def test_the_just_in_time_compiler_asks_the_driver(cuda: int, target: str, version: int) -> None:
    assert ptx_version_for(device((9, 0), cuda), find_target(target)) == version


def test_a_driver_older_than_the_target_is_refused() -> None:
    words = r"of cuda:0 takes PTX ISA 8.4, sm_100a needs 8.6: update .* of CUDA 12.7 or later"
    with pytest.raises(DeviceError, match=words):
        ptx_version_for(device((10, 0), 12040), find_target("sm_100a"))
