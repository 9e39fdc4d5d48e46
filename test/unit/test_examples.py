"""The examples: right on the emulator, and the `.tile` twin says the same as the Python kernel."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from mlir import ir

import tilec.examples
from tilec.compile.compiler import lower_to
from tilec.compile.source import parse_source
from tilec.dialects.context import make_context
from tilec.examples import demands, pipelines, sgemm_steps
from tilec.examples.matmul import PRECISIONS, matmul
from tilec.hardware.target import find_target

PIPELINED = (
    *("sgemm_steps", "pipelines", "ampere_gemm", "explicit_ampere_gemm"),
    *("split_k", "stream_k", "grouped_gemm"),
)
HOPPER = ("demands", "explicit_hopper_gemm")
BLACKWELL = ("explicit_blackwell", "explicit_blackwell_pairs")
EXAMPLES = (
    "vector_add",
    "row_sum",
    "softmax",
    "layer_norm",
    "indexing",
    "matmul",
    "autotuned_matmul",
    "attention",
    "block_scaled_matmul",
    "rms_norm",
    "cross_entropy",
    "attention_backward",
    "paged_attention",
    "quantized_weights",
    "mixture_of_experts",
    "convolution",
    "tile_scales",
    "packed_attention",
    "selective_scan",
    "block_sparse",
    "adam",
    *PIPELINED,
    *HOPPER,
    *BLACKWELL,
)
DIRECTORY = Path(tilec.examples.__file__).parent


@pytest.mark.filterwarnings("error::tilec.messages.diagnostics.PerformanceWarning")
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.share(6)) for n in EXAMPLES])
def test_example_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    example = importlib.import_module(f"tilec.examples.{name}")
    if name == "matmul":  # the others: `test_examples_in_modes.py`, with tiles that compile faster
        monkeypatch.setattr(example, "PRECISIONS", {p: PRECISIONS[p] for p in ("bf16", "f32")})
    example.main()
    shown = capsys.readouterr().out
    assert "ok" in shown
    assert "WRONG" not in shown


def test_sgemm_steps_are_what_they_say() -> None:
    a, c = np.zeros((256, 64), np.float32), np.zeros((256, 256), np.float32)
    b = np.zeros((64, 256), np.float32)
    compiled = {
        step.name: step.kernel.on("emulator").compiled(a, b, c, **step.constants)
        for step in sgemm_steps.STEPS
    }
    assert [k.threads for k in compiled.values()] == [128, 128, 1024, 512, 256, 256]
    shared = [k.shared_bytes > 0 for k in compiled.values()]
    assert shared == [False, False, True, True, True, True]
    assert "st.global.v4" not in compiled["naive"].ptx
    pipelines = [
        entry["stages"]
        for kernel in list(compiled.values())[2:]
        for entry in kernel.report["decisions"]
        if entry["about"] == "pipeline"
    ]
    assert pipelines == [1, 1, 1, 3]
    assert "cp.async.cg.shared.global" in compiled["vectorised"].ptx


def test_prefetched_tiles_wait_in_registers() -> None:
    """What an iteration loads is only handed to the next."""
    module = pipelines.prefetch.source_module([f"{name}:f32[?,?]" for name in "abc"])
    job = lower_to(module, find_target("sm_80"), "gpu_tile")
    users = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tile.load" and op.parent.name == "scf.for":
            users.extend(use.owner.name for use in op.results[0].uses)
        return ir.WalkResult.ADVANCE

    job.module.operation.walk(visit)
    assert users == ["scf.yield"] * 2


def in_loop(ptx: str) -> str:
    """The text between the first label that is jumped back to and that jump."""
    for label in re.finditer(r"^(\$L__BB\S+):", ptx, re.MULTILINE):
        back = re.search(rf"bra(?:\.uni)?\s+{re.escape(label[1])};", ptx[label.end() :])
        if back:
            return ptx[label.end() : label.end() + back.start()]
    raise AssertionError("no loop")


def test_double_buffering_needs_one_barrier_where_prefetching_needs_two() -> None:
    a, b = (np.zeros((256, 64), np.float32, order="F") for _ in range(2))
    c = np.zeros((256, 256), np.float32)
    by_hand = pipelines.prefetch.on("emulator").compiled(a, b, c)
    asked_for = pipelines.double_buffered.on("emulator").compiled(a, b, c)
    assert in_loop(by_hand.ptx).count("bar.sync") == 2
    assert in_loop(asked_for.ptx).count("bar.sync") == 1
    assert "cp.async" not in by_hand.ptx
    assert "cp.async.cg.shared.global" in asked_for.ptx
    assert asked_for.shared_bytes == 2 * by_hand.shared_bytes


def test_a_demand_that_is_not_met_names_the_load(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    demands.main()
    where = r"note: the load at \S+demands\.py:\d+:\d+ is no tensor copy: the stride of dimension 0"
    assert re.search(where, capsys.readouterr().out)


def test_every_example_is_tested() -> None:
    """`test_examples_in_modes.py` runs the same list each time, and the `.tile` file."""
    files = {path.stem for path in DIRECTORY.glob("*.py")} - {"__init__", "running"}
    assert files == set(EXAMPLES)
    assert [path.name for path in DIRECTORY.glob("*.tile")] == ["matmul.tile"]


def test_every_example_is_in_the_readme() -> None:
    listed = re.findall(r"`(\w+)\.py`", (DIRECTORY / "README.md").read_text())
    assert sorted(listed) == sorted(EXAMPLES)


def ops_of(module: ir.Module) -> list[str]:
    """Every op with its types and attributes, constants (whose order is free) first."""
    lines = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name not in ("builtin.module", "func.func"):
            types = [str(v.type) for v in [*op.operands, *op.results]]
            attributes = sorted(f"{name}={op.attributes[name]}" for name in op.attributes)
            lines.append(f"{op.name} {types} {attributes}")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    constants = {line for line in lines if line.startswith("arith.constant")}
    return sorted(constants) + [line for line in lines if line not in constants]


def test_the_tile_file_is_the_python_kernels_twin() -> None:
    path = DIRECTORY / "matmul.tile"
    context = make_context()
    twin = parse_source(path.read_text(), str(path), context)
    constants = {"BM": 128, "BN": 128, "BK": 64}
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
    module = matmul.source_module(specs, constants)
    assert ops_of(twin) == ops_of(module)
    for name in ("tile.grid", "tile.constants", "tile.index_bits", "arg_attrs"):
        found = [str(m.body.operations[0].attributes[name]) for m in (twin, module)]
        assert found[0] == found[1]
