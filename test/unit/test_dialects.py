"""Every op, without a test written for it: its example, its builder, its lit tests."""

from __future__ import annotations

import re
import weakref
from pathlib import Path

import pytest
from mlir import ir
from op_examples import ALL_OPS, program

from tilec.compile.source import parse_source
from tilec.dialects.constraints import ARRAY, BUFFER
from tilec.dialects.context import make_context
from tilec.dialects.gpu_tile import BufferView, TensorMapOp
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.dialects.op import TileOp
from tilec.dialects.tile import DotOp, MisalignmentOp, WindowOp
from tilec.dialects.traits import Until

LIT = Path(__file__).resolve().parents[1] / "dialects"
each_op = pytest.mark.parametrize("op", ALL_OPS, ids=lambda op: op.OPERATION_NAME)


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return make_context()


def ops_of(module: ir.Module, name: str) -> list[ir.OpView]:
    found: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


@each_op
def test_its_example_parses_verifies_and_round_trips(op: type[TileOp], context: ir.Context) -> None:
    module = parse_source(program(op), f"{op.OPERATION_NAME}.tile", context, survives=True)
    (found,) = ops_of(module, op.OPERATION_NAME)
    assert type(found) is op
    text = str(module)
    assert str(parse_source(text, "again.tile", context, survives=True)) == text


@each_op
def test_its_accessors_cover_operands_results_and_attributes(
    op: type[TileOp], context: ir.Context
) -> None:
    module = parse_source(program(op), "example.tile", context, survives=True)
    (found,) = ops_of(module, op.OPERATION_NAME)
    for fields, values in (
        (op.OPERANDS, list(found.operation.operands)),
        (op.RESULTS, list(found.operation.results)),
    ):
        flat: list[ir.Value] = []
        for field in fields:
            value = getattr(found, field.name)
            flat += value if isinstance(value, list) else [] if value is None else [value]
        assert flat == values
    declared = {field.name for field in op.ATTRIBUTES}
    written = {entry for entry in found.operation.attributes if not entry.endswith("SegmentSizes")}
    assert written == declared


@each_op
def test_it_can_be_built_again_from_its_parts(op: type[TileOp], context: ir.Context) -> None:
    module = parse_source(program(op), "example.tile", context, survives=True)
    (found,) = ops_of(module, op.OPERATION_NAME)
    operands = [getattr(found, field.name) for field in op.OPERANDS]
    results = [getattr(found, field.name) for field in op.RESULTS]
    attributes = {field.name: getattr(found, field.name) for field in op.ATTRIBUTES}
    types = [[v.type for v in r] if isinstance(r, list) else r.type for r in results]
    if len(types) == 1:
        types = types[0] if isinstance(types[0], list) else types
    with ir.InsertionPoint(found), found.location:
        built = op.build(*operands, results=types, **attributes)
    made = _owner(built) if op.RESULTS else built
    assert made.operation != found.operation
    assert _attributes(made) == _attributes(found)
    assert [v.type for v in made.results] == [v.type for v in found.results]
    if not op.REGIONS:
        assert module.operation.verify()


@each_op
def test_its_attributes_and_single_operands_can_be_set(
    op: type[TileOp], context: ir.Context
) -> None:
    module = parse_source(program(op), "example.tile", context, survives=True)
    (found,) = ops_of(module, op.OPERATION_NAME)
    text = str(module)
    with context:
        for field in (*op.ATTRIBUTES, *op.OPERANDS):
            value = getattr(found, field.name)
            if isinstance(value, list):
                with pytest.raises(AttributeError, match=f"'{field.name}' is no single operand"):
                    setattr(found, field.name, value)
            elif value is not None:
                setattr(found, field.name, value)
    assert str(module) == text
    with pytest.raises(AttributeError, match="has no 'frobnicate' that can be set"):
        found.frobnicate = 1  # pyright: ignore[reportAttributeAccessIssue]


def test_what_is_set_is_there(context: ir.Context) -> None:
    module = parse_source(program(DotOp), "example.tile", context, survives=True)
    (dot,) = ops_of(module, DotOp.OPERATION_NAME)
    lhs, _, acc = dot.operation.operands
    with context:
        dot.rhs, dot.options = lhs, {"instruction": "wgmma"}
    assert list(dot.operation.operands) == [lhs, lhs, acc]
    assert dot.operation.attributes["options"]["instruction"].value == "wgmma"
    assert (dot.rhs, dot.options) == (lhs, {"instruction": "wgmma"})


def _attributes(op: ir.OpView) -> dict[str, ir.Attribute]:
    return {name: op.operation.attributes[name] for name in op.operation.attributes}


def _owner(built: object) -> ir.OpView:
    value = built[0] if isinstance(built, list) else built
    return value.owner.opview


@each_op
def test_it_rejects_unknown_attributes(op: type[TileOp], context: ir.Context) -> None:
    given = {field.name: ir.Attribute.parse("unit", context) for field in op.ATTRIBUTES}
    with pytest.raises(TypeError, match=r"has no attribute \['frobnicate'\]"):
        op._attributes({**given, "frobnicate": 1})


@each_op
def test_it_demands_its_attributes(op: type[TileOp], context: ir.Context) -> None:
    for left_out in op.ATTRIBUTES:
        given = {f.name: ir.Attribute.parse("unit", context) for f in op.ATTRIBUTES}
        del given[left_out.name]
        if left_out.default is None:
            with pytest.raises(TypeError, match=f"attribute '{left_out.name}' is missing"):
                op._attributes(given)


def lit_text(op: type[TileOp], kind: str) -> str:
    """The lit file of the op's own file, e.g. dialects/tile/matmul/ops.mlir."""
    path = LIT / op.DIALECT / op.__module__.rpartition(".")[2] / f"{kind}.mlir"
    assert path.exists(), f"{path} is missing"
    return path.read_text()


@each_op
def test_it_has_a_round_trip_in_lit(op: type[TileOp]) -> None:
    lines = lit_text(op, "ops").splitlines()
    assert any(f'"{op.OPERATION_NAME}"(' in line and "CHECK" not in line for line in lines)


_SECTION = re.compile(r"^// -----$", re.MULTILINE)


@each_op
def test_it_has_a_wrong_case_in_lit(op: type[TileOp]) -> None:
    sections = _SECTION.split(lit_text(op, "invalid"))
    assert any(f'"{op.OPERATION_NAME}"(' in s and "expected-error" in s for s in sections)


_MESSAGE = re.compile(r'return\s+(?:\(\s*)?f?"([^"]+)"')


@pytest.mark.parametrize("name", sorted({op.__module__ for op in ALL_OPS}))
def test_every_rule_of_check_has_its_wrong_case(name: str) -> None:
    """Each message a file's checks return (its fixed words) stands in the lit tests."""
    root = Path(__file__).resolve().parents[2]
    source = root / Path(*name.split(".")[1:]).with_suffix(".py")
    tests = "".join(path.read_text() for path in LIT.rglob("*.mlir"))
    missing = [
        message
        for message in _MESSAGE.findall(source.read_text())
        if not _stands_in(message, tests)
    ]
    assert not missing


def _stands_in(message: str, tests: str) -> bool:
    """Whether some expectation matches a message whose {...} parts may be anything."""
    parts = [re.escape(part.strip()) for part in re.split(r"\{[^}]*\}", message)]
    return re.search(r".{1,120}?".join(part for part in parts if part), tests) is not None


def test_what_is_known_of_types_keeps_one_context() -> None:
    """A process that compiles hundreds of kernels does not keep hundreds of contexts."""
    made = []
    for _ in range(9):
        fresh = make_context()
        made.append(weakref.ref(fresh))
        for size in range(8, 24):
            text = f'!gpu_tile.buffer<tensor<{size}xf32>, #gpu_tile.shared<"({size}):(1)">>'
            assert buffer_of(ir.Type.parse(text, fresh)).shape == (size,)
    del fresh
    assert [one() is not None for one in made] == [False] * 8 + [True]


def test_a_class_says_only_what_somebody_asks() -> None:
    with pytest.raises(TypeError, match="_Wrong: ops have no trait 'one_thred'"):
        type("_Wrong", (TileOp,), {}, one_thred=True)


@each_op
def test_what_it_does_to_memory_is_said(op: type[TileOp]) -> None:
    """Syncs, fences and lifetimes follow from that."""
    touched = [f for f in op.OPERANDS if f.constraint in (ARRAY, BUFFER)]
    if issubclass(op, (BufferView, TensorMapOp)) or op in (MisalignmentOp, WindowOp):
        assert not [f.name for f in touched if f.reads or f.writes]
    else:
        assert not [f.name for f in touched if not (f.reads or f.writes)]


def test_what_waits_names_what_goes_on() -> None:
    """A kind of asynchronous op has a wait, or mbarriers and rings tell its end."""
    told = {Until.PRODUCTS_TOLD, Until.BYTES_COUNTED}
    assert {op.ENDS for op in ALL_OPS} - {None} == set(Until) - told
    assert {op.UNTIL for op in ALL_OPS} - {None} == set(Until)
