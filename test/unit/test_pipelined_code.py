"""What the pipelined main loops are made of: barriers, copies, and no bank conflicts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from mlir import ir
from pipelined_kernels import attention, carried_beside, gemm, persistent, several_products

from tilec.call.jit import Kernel
from tilec.compile.compiler import lower_to
from tilec.dialects.gpu_tile import CpAsyncWaitOp
from tilec.examples.matmul import PRECISIONS, draw, matmul
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.runtime import emulator
from tilec.runtime.arrays import describe
from tilec.runtime.emulator_device import _slot_value
from tilec.runtime.facts import observe_parameter

EIGHTS = "[?:8,?:8;?:8,1]"


def matrices(names: str) -> list[str]:
    """f16 matrices that can be copied 16 bytes at a time; the last, the output, is f32."""
    *inputs, output = names
    return [*(f"{name}:f16{EIGHTS}" for name in inputs), f"{output}:f32{EIGHTS}"]


MATRICES = matrices("abc")


def main_loop(kernel: Kernel, specs: list[str], **constants: Any) -> list[tuple[str, int | None]]:
    """The innermost loop's ops at the end of the tile pipeline: name, and `pending` of waits."""
    module = kernel.source_module(specs, constants)
    job = lower_to(module, find_target("sm_80"), "gpu_tile")
    loops: list[list[tuple[str, int | None]]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "scf.for":
            body = [view.operation for view in op.regions[0].blocks[0].operations]
            loops.append([(inner.name, _pending(inner)) for inner in body])
        return ir.WalkResult.ADVANCE

    job.module.operation.walk(visit)
    return loops[0]


def _pending(op: ir.Operation) -> int | None:
    return op.opview.pending if isinstance(op.opview, CpAsyncWaitOp) else None


def names(ops: list[tuple[str, int | None]]) -> list[str]:
    return [name for name, _ in ops]


CASES = {
    "gemm": (gemm, MATRICES, {"BM": 64, "BN": 64, "BK": 32}),
    "persistent": (persistent, MATRICES, {}),
    "three loads": (several_products, matrices("xyc"), {"DOTS": 2}),
    "five loads": (several_products, matrices("xyc"), {"DOTS": 4}),
}
ATTENTION = matrices("qkvo")


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("name", CASES)
def test_one_barrier_one_wait_and_one_commit_an_iteration(name: str, stages: int) -> None:
    kernel, specs, constants = CASES[name]
    ops = main_loop(kernel, specs, STAGES=stages, **constants)
    found = names(ops)
    assert found.count("gpu_tile.cp_async_wait") == 1
    assert found.count("gpu_tile.cp_async_commit") == 1
    assert found.count("gpu_tile.sync") == 1
    assert [pending for _, pending in ops if pending is not None] == [stages - 2]
    first, *_, last = [number for number, op in enumerate(found) if op == "gpu_tile.mma"]
    wait, sync = found.index("gpu_tile.cp_async_wait"), found.index("gpu_tile.sync")
    assert first < found.index("gpu_tile.cp_async") < found.index("gpu_tile.cp_async_commit") < wait
    assert wait < sync < last
    # Behind the barrier only the next iteration's first fragments are read.
    assert found[sync:last].count("gpu_tile.buffer_load") == 2
    assert "gpu_tile.buffer_load" not in found[last:]


def test_copies_are_spread_over_the_products() -> None:
    """Issued at once they would fill the queue of the load unit, and the fragments wait behind."""
    found = names(main_loop(gemm, MATRICES, BM=64, BN=64, BK=64, STAGES=3))
    kept = [n[9:] for n in found if n in ("gpu_tile.cp_async", "gpu_tile.mma")]
    assert kept == ["mma", "cp_async"] * 2 + ["mma"] * 2


def test_a_stage_that_leaves_room_for_no_second_is_no_pipeline() -> None:
    module = gemm.source_module(MATRICES, {"BM": 128, "BN": 128, "BK": 128})
    job = lower_to(module, find_target("sm_80"), "gpu_tile")
    (entry,) = [d for d in job.context.report.decisions if d["about"] == "pipeline"]
    assert entry["chosen"] == "no"
    why = "a stage takes 65536 bytes of shared memory, and no second fits beside the next CTA's"
    assert entry["why"] == why


def test_a_single_k_step_is_read_where_it_is_used() -> None:
    found = names(main_loop(gemm, MATRICES, BM=64, BN=64, BK=16, STAGES=3))
    assert found.count("gpu_tile.mma") == found.count("gpu_tile.sync") == 1
    assert found.index("gpu_tile.sync") < found.index("gpu_tile.buffer_load")


def test_copies_of_two_dots_are_one_group() -> None:
    """k and v are needed at different places of the body, but fly together."""
    found = names(main_loop(attention, ATTENTION, STAGES=3))
    assert found.count("gpu_tile.cp_async") == 2
    assert found.count("gpu_tile.cp_async_wait") == found.count("gpu_tile.cp_async_commit") == 1
    # The weights stay in registers, and a row vector follows them.
    assert found.count("gpu_tile.buffer_store") == 0
    assert "tile.load" not in found


def test_a_count_of_the_authors_is_not_taken_for_the_rings() -> None:
    """Another loop-carried integer that grows by 1: still one barrier for the operands."""
    ops = main_loop(carried_beside, MATRICES, STAGES=3)
    assert names(ops).count("gpu_tile.sync") == 1


def test_without_stages_two_barriers_are_needed() -> None:
    ops = main_loop(gemm, MATRICES, BM=64, BN=64, BK=32, STAGES=1)
    assert names(ops).count("gpu_tile.sync") == 2


def test_fragments_are_loaded_one_step_ahead() -> None:
    """The next k-step's fragments are read before a step multiplies, over the loop's end, too."""
    ops = main_loop(gemm, MATRICES, BM=64, BN=64, BK=48, STAGES=3)
    kept = [n[9:] for n in names(ops) if n in ("gpu_tile.buffer_load", "gpu_tile.mma")]
    assert kept == (["buffer_load"] * 2 + ["mma"]) * 3


def test_scalar_fragments_are_read_over_the_loops_end_in_ptx_too() -> None:
    """LLVM would make one load at the loop's start of two in front of it and at its end. Each warp
    has 16x16 sums: two fragments of either operand."""
    specs = [f"{name}:f64[?:2,?:2;?:2,1]" for name in "abc"]
    ptx = gemm.compile(specs, {"BM": 32, "BN": 32, "BK": 16, "STAGES": 3}, target="sm_80").ptx
    labels = re.findall(r"^(\$L__BB\w+):", ptx, re.MULTILINE)
    (loop,) = [name for name in labels if re.search(rf"bra\S*\s+\{name};", _behind(ptx, name))]
    in_front = ptx[ptx.index("bar.sync") : ptx.index(f"{loop}:")]
    assert in_front.count("ld.shared.b64") == 4
    body = _behind(ptx, loop)
    at_end = body[body.index("bar.sync") : body.rindex("mma.sync")]
    assert at_end.count("ld.shared.b64") == 4


def _behind(ptx: str, label: str) -> str:
    return ptx[ptx.index(f"{label}:") :]


def test_tf32_operands_go_in_as_they_are() -> None:
    """Rounding would take two instructions an element."""
    specs = [f"{name}:f32[?:4,?:4;?:4,1]" for name in "abc"]
    tiles = {"BM": 64, "BN": 64, "BK": 32, "PRECISION": "tf32"}
    ptx = gemm.compile(specs, tiles, target="sm_80").ptx
    assert "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in ptx
    assert "cvt.rna" not in ptx


@pytest.mark.parametrize(
    ("m", "warps", "stages"),
    [(128, 4, 2), (256, 8, 3)],  # of 32 and 48 KiB; 256x128 sums leave registers for one CTA
)
def test_stages_are_what_the_ctas_that_fit_have_shared_memory_for(
    m: int, warps: int, stages: int
) -> None:
    tiles = {"BM": m, "BN": 128, "BK": 64}
    compiled = gemm.demanding(num_warps=warps).compile(MATRICES, tiles, target="sm_80")
    found = [d for d in compiled.report["decisions"] if d["about"] == "pipeline"]
    assert [entry["stages"] for entry in found] == [stages]


def arguments_of(compiled: CompiledKernel, values: list[np.ndarray]) -> list[Any]:
    """Hardware parameters, as the launcher would pass them."""
    found = []
    for slot in compiled.abi():
        array = values[slot.parameter]
        if slot.field == "tensor_map":
            found.append(_slot_value(compiled, slot, describe(array, "array")))
            continue
        if slot.field == "pointer":
            found.append(array)
            continue
        numbers = (
            array.shape if slot.field == "size" else [s // array.itemsize for s in array.strides]
        )
        found.append(np.int32(numbers[slot.axis]))
    return found


@pytest.mark.share(3)
@pytest.mark.parametrize("order", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("name", sorted({*PRECISIONS} - {"fp8"}))
def test_operands_have_no_bank_conflicts(name: str, order: str) -> None:
    """The standard tile of every dtype, operands with stride 1 along rows (C) or columns (F). Of
    fp8 see the next test; the targets that multiply it do so by instructions that read shared
    memory themselves."""
    statistics = run_one_tile(name, order)
    assert statistics.shared_accesses > 0
    assert statistics.bank_conflicts == 0


def test_widened_operands_are_stored_with_conflicts() -> None:
    """fp8 on sm_80: sixteen bytes of a thread's load are 32 in f16, so lanes meet pairwise."""
    statistics = run_one_tile("fp8", "CC")
    assert statistics.bank_conflicts > 0


def run_one_tile(name: str, order: str) -> emulator.Statistics:
    """Statistics of one program of a GEMM of the usual auto tiles over four k-tiles."""
    precision = PRECISIONS[name]
    rng = np.random.default_rng(0)
    a = np.asarray(draw(rng, (128, 512), precision.inputs), order=order[0])
    b = np.asarray(draw(rng, (512, 128), precision.inputs), order=order[1])
    c = np.zeros((128, 128), precision.output)
    arrays = zip("abc", (a, b, c), strict=True)
    facts = [observe_parameter(name, describe(array, name)) for name, array in arrays]
    compiled = matmul.compile(facts, {"PRECISION": precision.dot}, target="sm_80")
    result = emulator.load(compiled.ptx).run(
        compiled.name,
        (1,),
        compiled.threads,
        arguments_of(compiled, [a, b, c]),
        shared_bytes=compiled.shared_bytes,
        mode="check",
    )
    assert not result.findings
    return result.statistics
