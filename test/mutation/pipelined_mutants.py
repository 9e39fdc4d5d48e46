"""Pipelined kernels broken in one place each: what the emulator is to find.

A mutation names a kind and which op of that kind it breaks. The kernel is brought to the end of the
tile pipeline, broken there, lowered on, and run in check mode against its NumPy reference.
Run as a program it prints README.md's table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import llvm
from mlir.passmanager import PassManager
from pipelined_kernels import (
    attention,
    gemm,
    near,
    persistent,
    product,
    product_and_sum,
    row_sums,
    several_products,
)
from shares import share

from tilec.call.jit import Kernel
from tilec.compile.compiler import Compilation, lower_to
from tilec.compile.emit_ptx import emit_ptx
from tilec.compile.pipeline import LLVM_PIPELINE, UPSTREAM_LOWERING
from tilec.dialects.gpu_tile import (
    CpAsyncCommitOp,
    CpAsyncOp,
    CpAsyncWaitOp,
    RingPositionOp,
    SlotOp,
    SyncOp,
)
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.passes.analysis.divisibility import constant_of
from tilec.runtime import emulator
from tilec.runtime.emulator import EmulatorError


@dataclass(frozen=True)
class Subject:
    """A kernel, its arguments (the output last, as shape and dtype), and what it must give."""

    name: str
    kernel: Kernel
    inputs: tuple[np.ndarray, ...]
    output: tuple[tuple[int, ...], Any]
    check: Callable[[np.ndarray], None]
    constants: dict[str, Any]
    grid: tuple[int, ...] = (1,)


def _draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float16)


def _gemm(stages: int) -> Subject:
    a, b = _draw(64, 120), _draw(120, 64, seed=1)
    constants = {"BM": 64, "BN": 64, "BK": 32, "STAGES": stages}
    check = near(product(a, b), 1e-6)
    return Subject(f"gemm, {stages} stages", gemm, (a, b), ((64, 64), np.float32), check, constants)


def _persistent() -> Subject:
    a, b = _draw(64, 72), _draw(72, 64, seed=1)
    check = near(product(a, b), 1e-6)
    shape = ((64, 64), np.float32)
    return Subject("persistent, 3 stages", persistent, (a, b), shape, check, {"STAGES": 3}, (2,))


def _five_loads() -> Subject:
    x, y = _draw(128, 72), _draw(72, 32, seed=1)
    expected = sum(product(x[32 * d : 32 * d + 32], y) for d in range(4))
    constants = {"DOTS": 4, "STAGES": 3}
    shape = ((32, 32), np.float32)
    return Subject(
        "5 loads, 3 stages", several_products, (x, y), shape, near(expected, 1e-6), constants
    )


def _attention() -> Subject:
    q, k, v = _draw(32, 32) / 4, _draw(88, 32, seed=1), _draw(88, 32, seed=2)
    weights = np.exp(product(q, k.T))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    shape = ((32, 32), np.float32)
    return Subject(
        "attention, 3 stages", attention, (q, k, v), shape, near(expected, 2e-3), {"STAGES": 3}
    )


def _registers() -> Subject:
    x, y = _draw(8, 448), _draw(8, 448, seed=1)
    check = near((x.astype(np.float64) * y).sum(1), 1e-5)
    constants = {"LOADS": 2, "STAGES": 3}
    return Subject("row sums, 3 stages", row_sums, (x, y), ((8,), np.float32), check, constants)


def _dot_and_registers() -> Subject:
    a, b = _draw(32, 104), _draw(104, 32, seed=1)
    check = near(product(a, b) + a.astype(np.float64).sum(1)[:, None], 1e-6)
    shape = ((32, 32), np.float32)
    return Subject("dot and sum, 4 stages", product_and_sum, (a, b), shape, check, {"STAGES": 4})


def subjects() -> list[Subject]:
    """The kernels that are broken."""
    return [
        *(_gemm(stages) for stages in (2, 3, 4)),
        _persistent(),
        _five_loads(),
        _attention(),
        _registers(),
        _dot_and_registers(),
    ]


# Mutations --------------------------------------------------------------------------------------


def _drop(op: ir.Operation) -> None:
    op.erase()


def _weaken(op: ir.Operation) -> None:
    i32 = ir.IntegerType.get_signless(32)
    op.attributes["pending"] = ir.IntegerAttr.get(i32, op.opview.pending + 1)


def _shift(op: ir.Operation) -> None:
    """The slot after the one it took."""
    slot = op.opview
    slots = buffer_of(slot.src).slots
    with ir.InsertionPoint(op), op.location:
        fixed = constant_of(slot.index)
        if fixed is not None:
            op.operands[1] = _i32((fixed + 1) % slots)
            return
        count = slot.index.owner.operands[0]
        later = ir.Operation.create(
            "arith.addi", results=[count.type], operands=[count, _i32(1)]
        ).results[0]
        op.operands[1] = RingPositionOp.build(later, slots=slots)[0]


def _i32(value: int) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    return ir.Operation.create(
        "arith.constant", results=[i32], attributes={"value": ir.IntegerAttr.get(i32, value)}
    ).results[0]


KINDS: dict[str, tuple[type, Callable[[ir.Operation], None]]] = {
    "drop a sync": (SyncOp, _drop),
    "drop a wait": (CpAsyncWaitOp, _drop),
    "weaken a wait by one": (CpAsyncWaitOp, _weaken),
    "drop a commit": (CpAsyncCommitOp, _drop),
    "shift a slot by one": (SlotOp, _shift),
    "drop a copy": (CpAsyncOp, _drop),
}


@dataclass(frozen=True)
class Mutation:
    """One break: the kind, which op of it in program order, and where that stands."""

    subject: str
    kind: str
    number: int
    place: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.kind} #{self.number} ({self.place})"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: "finding", "wrong result" or "survived", and the first words."""

    mutation: Mutation
    outcome: str
    detail: str = ""


def candidates(module: ir.Module, kind: str) -> list[ir.Operation]:
    """The ops a kind of mutation may break, in program order."""
    wanted, _ = KINDS[kind]
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, wanted):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def place_of(op: ir.Operation) -> str:
    """Whether an op stands in the steady loop, in front of it, or behind it."""
    if op.parent.name == "scf.for" and any(
        isinstance(v, RingPositionOp) for v in op.block.operations
    ):
        return "loop"
    seen = False
    for view in op.block.operations:
        if view.operation == op:
            return "behind" if seen else "prologue"
        seen = seen or view.operation.name == "scf.for"
    raise AssertionError("an op stands in its own block")


# Running ----------------------------------------------------------------------------------------


def compile_to_gpu_tile(subject: Subject) -> Compilation:
    """The subject at the end of the tile pipeline."""
    constants = {p.name: p.default for p in subject.kernel.parameters if p.kind == "const"}
    module = subject.kernel.source_module(_specs(subject), {**constants, **subject.constants})
    return lower_to(module, find_target("sm_80"), "gpu_tile")


def copy_of(job: Compilation) -> Compilation:
    """The compilation with a module of its own."""
    with job.module.context:
        return replace(job, module=ir.Module.parse(str(job.module)))


def _specs(subject: Subject) -> list[str]:
    arrays = [p.name for p in subject.kernel.parameters if p.kind != "const"]
    values = [*subject.inputs, poisoned(*subject.output)]
    short = {"float16": "f16", "float32": "f32"}
    eights = {1: "[?:8]", 2: "[?:8,?:8;?:8,1]"}
    return [
        f"{name}:{short[str(v.dtype)]}{eights[v.ndim]}"
        for name, v in zip(arrays, values, strict=True)
    ]


def finish(job: Compilation) -> str:
    """PTX from the end of the tile pipeline."""
    with job.module.context, ir.Location.unknown():
        for tile_pass in LLVM_PIPELINE:
            tile_pass(job.module, job.context)
        PassManager.parse(UPSTREAM_LOWERING).run(job.module.operation)
        return emit_ptx(llvm.translate_module_to_llvmir(job.module.operation), job.target)


def judge(subject: Subject, job: Compilation, mutation: Mutation) -> Verdict:
    """Runs a (broken) kernel in check mode."""
    result = poisoned(*subject.output)
    arguments = _arguments(job, [*subject.inputs, result])
    try:
        ran = emulator.load(finish(job)).run(
            job.name,
            subject.grid,
            job.context.num_threads,
            arguments,
            shared_bytes=job.launch["shared_bytes"],
            mode="check",
        )
    except EmulatorError as error:
        return Verdict(mutation, "finding", str(error).split("\n")[0])
    if ran.findings:
        return Verdict(mutation, "finding", ran.findings[0].kind)
    try:
        subject.check(result)
    except AssertionError:
        return Verdict(mutation, "wrong result")
    return Verdict(mutation, "survived")


def _arguments(job: Compilation, values: Sequence[np.ndarray]) -> list[Any]:
    found: list[Any] = []
    for parameter, array in zip(job.signature, values, strict=True):
        strides = [step // array.itemsize for step in array.strides]
        found.append(array)
        found += [
            np.int32(n) for s, n in zip(parameter.sizes, array.shape, strict=True) if s is None
        ]
        found += [np.int32(n) for s, n in zip(parameter.strides, strides, strict=True) if s is None]
    return found


OFTEN = {"shift a slot by one": 8, "drop a copy": 8}
"""Kinds with many mutants each, all killed: a run that takes shares takes one of so many."""


def mutants(subject: Subject, *, everything: bool = True) -> Iterator[Verdict]:
    """Every mutant of a kernel, or this run's share of them, judged."""
    pristine = compile_to_gpu_tile(subject)
    for kind, (_, mutate) in KINDS.items():
        numbers = range(len(candidates(pristine.module, kind)))
        for number in share(numbers, OFTEN.get(kind, 1), everything=everything):
            job = copy_of(pristine)
            op = candidates(job.module, kind)[number]
            mutation = Mutation(subject.name, kind, number, place_of(op))
            with job.module.context:
                mutate(op)
            yield judge(subject, job, mutation)


def table(verdicts: Sequence[Verdict]) -> str:
    """Kill rates per kind, as Markdown."""
    lines = [
        "| mutation | mutants | found by the checker | wrong result only | survived |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS:
        counts = Counter(v.outcome for v in verdicts if v.mutation.kind == kind)
        cells = [counts.total(), counts["finding"], counts["wrong result"], counts["survived"]]
        lines.append(f"| {kind} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table and every survivor."""
    verdicts = [verdict for subject in subjects() for verdict in mutants(subject)]
    print(table(verdicts))
    for verdict in verdicts:
        if verdict.outcome == "survived":
            print(f"survived: {verdict.mutation}")


if __name__ == "__main__":
    main()
