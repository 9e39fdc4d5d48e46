"""A dump made for one target, compiled for another: valid PTX, or an error with what it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hopper_kernels import demanded

from tilec.compile.assembler import assemble, locate_tool
from tilec.compile.compiler import compile_module
from tilec.compile.llvm_level import is_llvm_level, lower_llvm
from tilec.compile.source import parse_source
from tilec.dialects.context import make_context
from tilec.hardware.target import TARGETS, Feature, find_target
from tilec.messages.diagnostics import CompileError

ARRAYS = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
SIZES = {"sm_80": {"BM": 64}, "sm_90a": {"BM": 64}, "sm_100a": {"BM": 128}}
NEEDS = {"sm_90a": Feature.WGMMA, "sm_100a": Feature.TCGEN05}
"""What the product takes that other targets lack."""
EARLY = ("infer-layouts", "insert-async-copies")
STAGES = (*EARLY, "schedule-programs", "stage-operands", "insert-barriers", "lower-to-nvvm", "llvm")
"""Passes, from the first on that keeps the instructions chosen."""

Dumps = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Dumps:
    """The program for a target after a pass."""
    folders: dict[str, Path] = {}

    def made(target: str, stage: str) -> Path:
        if target not in folders:
            folders[target] = tmp_path_factory.mktemp(target)
            demanded.compile(ARRAYS, SIZES[target], target=target, dump_dir=str(folders[target]))
        return next(folders[target].glob(f"*-{stage}.mlir"))

    return made


def compiled(dump: Path, target: str) -> str:
    """The PTX of a dump."""
    module = parse_source(dump.read_text(), str(dump), make_context())
    row = find_target(target)
    if is_llvm_level(module):
        return lower_llvm(module, row, "ptx")
    return compile_module(module, row).ptx


@pytest.mark.share(7)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("made_for", "target"),
    [(made, name) for made, f in NEEDS.items() for name, t in TARGETS.items() if not t.supports(f)],
)
def test_instructions_of_one_target_are_refused_by_others(
    made_for: str, target: str, stage: str, dumps: Dumps
) -> None:
    with pytest.raises(CompileError) as found:
        compiled(dumps(made_for, stage), target)
    assert f"needs {NEEDS[made_for].name}, which {target} does not have" in str(found.value)


@pytest.mark.skipif(locate_tool("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("stage", [*EARLY, "lower-to-nvvm"])
def test_those_that_later_targets_have_are_assembled(stage: str, target: str, dumps: Dumps) -> None:
    assert assemble(compiled(dumps("sm_80", stage), target), find_target(target)).cubin
