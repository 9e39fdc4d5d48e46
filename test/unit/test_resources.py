"""What ptxas says stands in reports in the place of what the compiler counted."""

from __future__ import annotations

import pytest
from hopper_kernels import demanded

from tilec.compile import resources
from tilec.compile.assembler import Assembly, assemble, locate_tool
from tilec.examples.matmul import matmul
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.report import slow

COUNTED = {"about": "registers", "at": "k.py:3:1", "chosen": "300 of 248", "why": "counted"}
OTHER = {"about": "warps", "at": "k.py:2:1", "chosen": "8", "why": "32768 accumulators"}
SERIAL = (
    "Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient "
    "register resources for the wgmma pipeline in the function 'k' (C7511)"
)


def kernel(*decisions: dict[str, str]) -> CompiledKernel:
    """A kernel with a report."""
    report = {"decisions": [dict(entry) for entry in decisions]}
    return CompiledKernel("k", "sm_90a", "// ptx", (), None, 128, 0, 32, report=report)


def assembly(spills: int, *messages: str) -> Assembly:
    """What ptxas says."""
    return Assembly(b"", 255, spills, 0, 0, messages)


def test_a_count_that_was_too_high_goes() -> None:
    found = kernel(OTHER, COUNTED)
    resources.add_resources(found, assembly(0))
    assert found.report["decisions"] == [OTHER]


@pytest.mark.parametrize(("counted", "at"), [((COUNTED,), "k.py:3:1"), ((), "k.py:2:1")])
def test_spills_are_said_whatever_was_counted(counted: tuple[dict[str, str], ...], at: str) -> None:
    found = kernel(OTHER, *counted)
    resources.add_resources(found, assembly(348))
    (said,) = slow(found.report)
    assert said[0] == at
    assert said[1].startswith("registers: 348 bytes spilled (ptxas, of 255 registers a thread")


def test_serialised_warpgroup_instructions_are_said() -> None:
    found = kernel(OTHER)
    resources.add_resources(found, assembly(0, "setmaxnreg ignored", SERIAL))
    ((_, text),) = slow(found.report)
    assert text == f"wgmma: one at a time (ptxas C7511: {SERIAL})"


SPILLING = {
    "in turn": (demanded.demanding(num_warps=8, consumers="pingpong"), {"BM": 128, "BN": 192}),
    "whole": (demanded.demanding(num_warps=4), {"BM": 128, "BN": 256}),
}
FITTING = {
    "in turn": (demanded.demanding(num_warps=4, consumers="pingpong"), {"BM": 64, "BN": 192}),
    "whole": (demanded.demanding(num_warps=12), {"BM": 192, "BN": 256}),
}


@pytest.mark.filterwarnings("ignore::tilec.messages.diagnostics.PerformanceWarning")
@pytest.mark.parametrize("name", SPILLING)
def test_counts_agree_with_ptxas(name: str) -> None:
    arrays = [f"{array}:bf16[?,?:8;?:8,1]" for array in "abc"]
    for kernels, spills in ((SPILLING, True), (FITTING, False)):
        product, sizes = kernels[name]
        found = product.compile(arrays, sizes, target="sm_90a")
        counted = [e for e in found.report["decisions"] if e["about"] == "registers"]
        assert bool(counted) == spills
        if locate_tool("ptxas") is not None:
            assert bool(assemble(found.ptx, find_target("sm_90a")).spills) == spills


def test_8_bit_floats_without_their_instruction_spill_nothing() -> None:
    """On sm_80 integers convert them; a code at a time, ptxas kept 464 bytes in memory."""
    rows = "[?,?:16;?:16,1]"
    arrays = [f"a:f8E4M3FN{rows}", f"b:f8E4M3FN{rows}", f"c:f16{rows}"]
    found = matmul.compile(arrays, {"BM": 128, "BN": 128, "BK": 64}, target="sm_80")
    assert not [e for e in found.report["decisions"] if e["about"] == "registers"]
    if locate_tool("ptxas") is not None:
        assert assemble(found.ptx, find_target("sm_80")).spills == 0


def test_without_ptxas_the_count_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_PTXAS", "/nowhere/ptxas")
    found = kernel(OTHER, COUNTED)
    resources.ask_ptxas(found)
    assert found.report["decisions"] == [OTHER, COUNTED]


@pytest.mark.skipif(locate_tool("ptxas") is None, reason="needs ptxas")
def test_ptxas_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
    found = demanded.compile(arrays, {}, target="sm_80")
    found.report["decisions"].append(dict(COUNTED))
    resources.ask_ptxas(found)
    assert COUNTED not in found.report["decisions"]
    monkeypatch.setattr(resources, "assemble", lambda *_: pytest.fail("asked again"))
    resources.ask_ptxas(found)
