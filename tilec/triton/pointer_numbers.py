"""Pointers taken for numbers: whether there is one, and as pointers again.

Before:   %a = tt.ptr_to_int %w : !tt.ptr<f16> -> i64       %is = arith.cmpi ne, %a, %c0
          %q = tt.int_to_ptr %a : i64 -> !tt.ptr<i8>
After:    %is = true                                        %q = tt.bitcast %w

`if weight:` of an argument that may be None asks for its address; Triton compiles a kernel of its
own for None, so that any other is there. A launch makes sure of that: the argument gets the
attribute PRESENT. Does not handle other arithmetic of addresses.
"""

from __future__ import annotations

from tilec.triton.op_facts import constant_integer
from tilec.triton.pointer_roots import argument_of, why_no_argument
from tilec.triton.program import Block, Function, Op, Value, defining

PRESENT = "tilec.present"
"""The attribute of a pointer argument that must not be null."""


def resolve_numbers(function: Function) -> None:
    """Replaces them in a function of one block. CompileError, at its line, for any other use."""
    asked: set[Value] = set()
    for block in function.blocks:
        _block(block, {}, asked)
    for number, argument in enumerate(function.arguments):
        if argument in asked:
            function.given[number] = {**function.given[number], PRESENT: "true"}


def _block(block: Block, pointers: dict[Value, Value], asked: set[Value]) -> None:
    """`pointers`: by the number that each was taken for."""
    ops: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            _block(region, pointers, asked)
        if op.name == "tt.ptr_to_int" and op.operands[0].type.shape is None:
            pointers[op.result] = op.operands[0]
            continue
        taken = next((value for value in op.operands if value in pointers), None)
        if taken is not None and op.name == "tt.int_to_ptr":
            op.name, op.operands = "tt.bitcast", [pointers[taken]]
        elif taken is not None:
            asked.add(_root(op, pointers[taken]))
            op.text = "true" if _is_compared(op, taken) == "ne" else "false"
            op.name, op.operands, op.words = "arith.constant", [], {}
        ops.append(op)
    block.ops = ops


def _root(op: Op, pointer: Value) -> Value:
    root = argument_of(pointer)
    if root is None:
        raise op.error(*why_no_argument(pointer))
    return root


def _is_compared(op: Op, number: Value) -> str:
    """The predicate of a comparison with 0. CompileError for any other op."""
    others = [value for value in op.operands if value is not number]
    zero = defining(others[0], "arith.constant") if len(others) == 1 else None
    asked = [word for word in ("eq", "ne") if word in op.words]
    if op.name != "arith.cmpi" or not asked or zero is None or constant_integer(zero) != 0:
        raise op.error("a pointer is a number here; only whether it is 0 can be asked")
    return asked[0]
