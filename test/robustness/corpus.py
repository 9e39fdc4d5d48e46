"""The texts that the fuzzer breaks: `.tile` files, examples of every op, and the programs between
all passes for kernels that use every unit of every target."""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlir import ir

from tilec.cli import main
from tilec.compile.pipeline import ALL_PASSES, LLVM_PIPELINE
from tilec.dialects.context import make_context
from tilec.hardware.target import TARGETS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tilec" / "examples"
sys.path.insert(0, str(ROOT / "test" / "unit"))

from op_examples import ALL_OPS, program  # noqa: E402 - found through the path above

MATRICES = tuple(f"{name}:bf16[?,?:8;?:8,1]" for name in "abc")
STAGED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "matmul": ("matmul.py:matmul", MATRICES, ("BM=64", "BN=32", "BK=32")),
    "attention": (
        "../ops/attention_kernel.py:attention",
        (*(f"{name}:bf16[?,?,?,?:8;?:8,?:8,?:8,1]" for name in "qkvo"), "scale:f32"),
        ("D=16", "BM=64", "BN=32"),
    ),
    "softmax": ("softmax.py:softmax", ("x:f32[?,?]", "y:f32[?,?]"), ("N=100",)),
    "histogram": (
        "indexing.py:histogram",
        ("values:f32[?]", "low:f32", "width:f32", "counts:i32[?]"),
        ("B=64",),
    ),
}
"""Kernels whose programs between passes are broken: file and name, arguments, constants."""


@dataclass(frozen=True)
class Subject:
    """A right text, and the words of the command that takes it."""

    name: str
    text: str
    command: tuple[str, ...]


@functools.cache
def subjects() -> list[Subject]:
    """Every text with every command that reads it; made once a process, in half a minute."""
    stages = [s for name in STAGED for target in TARGETS for s in stages_of(name, target)]
    return [*_files(), *_ops(), *stages]


def _files() -> Iterator[Subject]:
    programs = Path(__file__).parent / "programs"
    for path in (*sorted(EXAMPLES.glob("*.tile")), *sorted(programs.glob("*.tile"))):
        for target in TARGETS:
            command = ("compile", "-", "--target", target)
            yield Subject(f"{path.name} {target}", path.read_text(), command)


def _ops() -> Iterator[Subject]:
    for op in ALL_OPS:
        yield Subject(op.OPERATION_NAME, program(op), ("opt", "-"))


def stages_of(name: str, target: str) -> Iterator[Subject]:
    """A kernel at each stage that differs from the one before: compiled on from there, and one pass
    further."""
    stages = _dumps(STAGED[name], target)
    for at, (stage, text) in enumerate(stages):
        yield Subject(f"{name} {target} {stage}", text, ("compile", "-", "--target", target))
        following = stages[at + 1][0] if at + 1 < len(stages) else ""
        if following in _PASSES:
            words = ("opt", "-", "--target", target, "--passes", following)
            yield Subject(f"{name} {target} {stage}, {following}", text, words)


_PASSES = {tile_pass.name for tile_pass in ALL_PASSES} - {p.name for p in LLVM_PIPELINE[1:]}


def _dumps(
    kernel: tuple[str, tuple[str, ...], tuple[str, ...]], target: str
) -> list[tuple[str, str]]:
    """The stages of a kernel by name, without the positions of the kernel's file."""
    file, specs, constants = kernel
    words = [word for spec in specs for word in ("--arg", spec)]
    words += [word for constant in constants for word in ("--const", constant)]
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder, "x.ptx"))
        command = ["compile", str(EXAMPLES / file), "--target", target, "--dump-dir", folder]
        if main([*command, *words, "-o", output]):
            raise RuntimeError(f"{file} does not compile for {target}")
        stages: list[tuple[str, str]] = []
        for path in sorted(Path(folder).glob("*.mlir")):
            with make_context():
                text = str(ir.Module.parse(path.read_text()))
            if not stages or stages[-1][1] != text:
                stages.append((path.stem.partition("-")[2], text))
    return stages
