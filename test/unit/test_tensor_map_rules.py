"""When a tile can go through the copy engine: each rule refuses what breaks it, no more."""

from __future__ import annotations

from typing import Any

import pytest
from mlir import ir

from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.copies.tensor_map_rules import never_negative, why_no_reduction, why_no_tensor_map

FACTS = "{align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}"


def why(
    *,
    array: str = "memref<?x?xbf16, strided<[?, 1]>>",
    facts: str = FACTS,
    dims: tuple[int, ...] = (0, 1),
    box: tuple[int, ...] = (64, 64),
    target: str = "sm_90a",
    offsets: tuple[str, ...] = (),
    store: bool = False,
) -> str | None:
    """The rule's answer for the argument %a of a kernel whose body computes `offsets`."""
    text = f"""
func.func @k(%a: {array} {{tile.facts = {facts}}}, %n: index) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %p = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %row = arith.muli %p, %c8 : index
  %before = arith.subi %row, %c8 : index
  return
}}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function = module.body.operations[0].operation
        block = function.regions[0].blocks[0]
        values: dict[str, Any] = {"n": block.arguments[1]}
        for name, op in zip(("c0", "c8", "p", "row", "before"), block.operations, strict=False):
            values[name] = op.results[0]
        return why_no_tensor_map(
            block.arguments[0],
            dims,
            box,
            Divisibility(function),
            find_target(target),
            offsets=[values[name] for name in offsets],
            store=store,
        )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"offsets": ("n", "row")},
        {"offsets": ("before", "c0")},
        {"store": True, "offsets": ("p", "row")},
        {"store": True},
        {"target": "sm_100a"},
        {"dims": (1, 0), "box": (64, 256)},
        {"dims": (1,), "box": (8,)},
        {
            "array": "memref<?x?xbf16, strided<[1, ?]>>",
            "facts": "{align = 16 : i32, strides = array<i32: 1, 8>}",
        },
        {
            "array": "memref<4x?x6xf32, strided<[64, 0, 1]>>",
            "dims": (2,),
            "box": (4,),
            "facts": "{align = 32 : i32}",
        },
        {
            "array": "memref<?xi8, strided<[1]>>",
            "dims": (0,),
            "box": (256,),
            "facts": "{align = 16 : i32}",
        },
    ],
)
def test_what_fits(given: dict[str, Any]):
    assert why(**given) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"target": "sm_80"}, "sm_80 has no tensor memory accelerator"),
        ({"box": (257, 64)}, "a box has at most 256 elements along a dimension, this one 257"),
        ({"box": (64, 12)}, "12 elements along the row are no multiple of 16 bytes"),
        ({"dims": (0,), "box": (64,)}, "no tile dimension has stride 1"),
        (
            {"facts": "{align = 8 : i32, strides = array<i32: 8, 1>}"},
            "the pointer is not known to be a multiple of 16 bytes",
        ),
        (
            {"facts": "{align = 16 : i32}"},
            "the stride of dimension 0 is not known to be a multiple of 16 bytes (8 elements)",
        ),
        (
            {"facts": "{align = 16 : i32, strides = array<i32: 4, 1>}"},
            "the stride of dimension 0 is not known to be a multiple of 16 bytes (8 elements)",
        ),
        (
            {"array": "memref<4x8xbf16, strided<[-8, 1]>>", "facts": "{align = 16 : i32}"},
            "dimension 0 has stride -8",
        ),
        (
            {"array": "memref<4x8xi1, strided<[16, 1]>>", "facts": "{align = 16 : i32}"},
            "i1 is not stored as whole bytes",
        ),
        (
            {
                "array": "memref<1x1x1x1x1x8xbf16, strided<[8, 8, 8, 8, 8, 1]>>",
                "facts": "{align = 16 : i32}",
                "dims": (5,),
                "box": (8,),
            },
            "a tensor map has at most 5 dimensions, the array has 6",
        ),
        (
            {"offsets": ("row", "p")},
            "the offset along the row is not known to be a multiple of 16 bytes (8 elements)",
        ),
        (
            {"store": True, "facts": "{align = 16 : i32, strides = array<i32: 8, 1>}"},
            "the size of dimension 1 is not known to be a multiple of 16 bytes (8 elements): "
            "the row's last store would write beyond it",
        ),
        ({"store": True, "offsets": ("n", "row")}, "the offset of dimension 0 may be negative"),
        ({"store": True, "offsets": ("p", "before")}, "the offset of dimension 1 may be negative"),
    ],
)
def test_what_does_not_fit(given: dict[str, Any], reason: str):
    assert why(**given) == reason


@pytest.mark.parametrize(
    ("combine", "dtype", "fits"),
    [
        ("none", "f8E5M2", True),
        ("add", "f32", True),
        ("add", "bf16", True),
        ("add", "i64", False),
        ("add", "i8", False),
        ("max", "f32", False),
        ("min", "i64", True),
        ("max", "f16", True),
    ],
)
def test_reductions(combine: str, dtype: str, fits: bool):
    assert (why_no_reduction(dtype, combine) is None) == fits


SCALARS = """
func.func @k(%a: memref<?xf32, strided<[1]>>, %n: index, %m: index) attributes {{tile.kernel}} {{
  "tile.assume"(%m) {{facts = {{min = 0 : i32}}}} : (index) -> ()
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %minus = arith.constant -1 : index
  %four = arith.constant 4 : i32
  %p = "tile.program_id"() {{axis = 1 : i32}} : () -> index
  %q = "tile.num_programs"() {{axis = 0 : i32}} : () -> index
  %size = memref.dim %a, %c0 : memref<?xf32, strided<[1]>>
  %less = arith.cmpi slt, %p, %n : index
  {body}
  return
}}
"""
ASKED = '"tile.assume"({}) {{facts = {{multiple_of = 1 : i32}}}} : ({}) -> ()'


def sign_of(body: str) -> bool:
    """Whether the operand of ASKED is known not to be negative."""
    found: list[ir.Value] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tile.assume" and "multiple_of" in str(op):
            found.append(op.operands[0])
        return ir.WalkResult.ADVANCE

    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(SCALARS.format(body=body))
        module.operation.walk(visit)
        (value,) = found
        return never_negative(value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("arith.constant 0 : index", True),
        ("arith.constant -1 : index", False),
        ("arith.muli %p, %size : index", True),
        ("arith.muli %p, %n : index", False),
        ("arith.subi %p, %c1 : index", False),
        ("arith.addi %m, %q : index", True),
        ("arith.maxsi %n, %c0 : index", True),
        ("arith.minsi %n, %c0 : index", False),
        ("arith.minsi %p, %q : index", True),
        ("arith.divsi %p, %q : index", True),
        ("arith.remsi %n, %q : index", False),
        ("arith.select %less, %p, %size : index", True),
        ("arith.select %less, %p, %n : index", False),
        ("math.absi %p : index", False),
    ],
)
def test_signs_of_expressions(expression: str, expected: bool):
    assert sign_of(f"%v = {expression}\n  {ASKED.format('%v', 'index')}") == expected


@pytest.mark.parametrize("name", ["n", "m", "p", "size"])
def test_signs_of_arguments_and_grids(name: str):
    assert sign_of(ASKED.format(f"%{name}", "index")) == (name != "n")


def test_signs_of_orders():
    order = '{order = "grouped", group = 8 : i32} : (i32, i32, i32) -> (i32, i32)'
    for name in "xy":
        ask = ASKED.format(f"%{name}", "i32")
        assert sign_of(f'%x, %y = "gpu_tile.tile_order"(%four, %four, %four) {order}\n{ask}')


@pytest.mark.parametrize(
    ("start", "name", "expected"),
    [
        ("%p", "%i", True),
        ("%minus", "%i", False),
        ("%c0", "%up", True),
        ("%n", "%up", False),
        ("%c0", "%down", False),
        ("%c0", "%mixed", False),
        ("%c0", "%same", True),
    ],
)
def test_signs_in_loops(start: str, name: str, expected: bool):
    loop = f"""
  %r:4 = scf.for %i = {start} to %size step %q
      iter_args(%up = %c0, %down = %p, %mixed = %c0, %same = %m) -> (index, index, index, index) {{
    {ASKED.format(name, "index")}
    %more = arith.addi %up, %i : index
    %less_of = arith.subi %down, %c1 : index
    %sum = arith.addi %mixed, %n : index
    scf.yield %more, %less_of, %sum, %same : index, index, index, index
  }}"""
    assert sign_of(loop) == expected
