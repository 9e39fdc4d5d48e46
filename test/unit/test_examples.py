"""The examples: right on the emulator, and the `.tile` twin says the same as the Python kernel."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from mlir import ir

import tilec.examples
from tilec.dialects.context import make_context
from tilec.examples.matmul import matmul
from tilec.source import parse_source

EXAMPLES = ("vector_add", "row_sum", "softmax", "layer_norm", "indexing", "matmul")
DIRECTORY = Path(tilec.examples.__file__).parent


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    importlib.import_module(f"tilec.examples.{name}").main()
    shown = capsys.readouterr().out
    assert "ok" in shown
    assert "WRONG" not in shown


def test_every_example_is_tested() -> None:
    files = {path.stem for path in DIRECTORY.glob("*.py")} - {"__init__", "running"}
    assert files == set(EXAMPLES)


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
    specs = ["a:bf16[?,?]", "b:bf16[?,?]", "c:bf16[?,?]"]
    module = matmul.source_module(specs, constants)
    assert ops_of(twin) == ops_of(module)
    for name in ("tile.grid", "tile.constants", "tile.index_bits", "arg_attrs"):
        found = [str(m.body.operations[0].attributes[name]) for m in (twin, module)]
        assert found[0] == found[1]
