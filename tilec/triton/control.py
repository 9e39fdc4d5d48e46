"""Rules for loops, branches, the place in the grid, and what combines elements along an axis."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.tile import AssertOp, NumProgramsOp, PrintOp, ProgramIdOp, ReduceOp, ScanOp
from tilec.triton.build import Builder
from tilec.triton.elementwise import Rule
from tilec.triton.program import Block, Op, walk
from tilec.triton.searches import extreme_and_place
from tilec.triton.shapes import scalar_of

_AXES = ("x", "y", "z")


def _place_in_grid(builder: Builder, op: Op, build: Any) -> None:
    made = ProgramIdOp if op.name == "tt.get_program_id" else NumProgramsOp
    axis = next(number for number, word in enumerate(_AXES) if word in op.words)
    index = made.build(axis=axis)
    builder.indices[op.result] = index
    builder.set(op, builder.cast(index, op.result.type.element))


def _for(builder: Builder, op: Op, build: Any) -> None:
    """Loops count in `index`. What is an induction is no longer carried (`forms.py`)."""
    if "unsigned" in op.words:
        raise op.error("the loop's bounds have no sign")
    block = op.regions[0]
    variable, *carried = block.arguments
    live = builder.plan.live
    kept = [n for n, v in enumerate(carried) if v in live.values and v not in live.inductions]
    bounds = [builder.index(operand) for operand in op.operands[:3]]
    inits = [builder.get(op.operands[3 + n]) for n in kept]
    types = [value.type for value in inits]
    loop = ir.Operation.create("scf.for", types, [*bounds, *inits], regions=1)
    body = loop.regions[0].blocks.append(
        builder.index_type, *types, arg_locs=[loop.location] * (len(types) + 1)
    )
    with ir.InsertionPoint(body):
        builder.indices[variable] = body.arguments[0]
        builder.values[variable] = builder.cast(body.arguments[0], variable.type.element)
        for n, argument in zip(kept, list(body.arguments)[1:], strict=True):
            builder.values[carried[n]] = argument
        build(builder, _without_end(block))
        yielded = block.terminator.operands
        _create("scf.yield", [builder.get(yielded[n]) for n in kept])
    for n, value in zip(kept, loop.results, strict=True):
        builder.values[op.results[n]] = value


def _without_end(block: Block) -> Block:
    return Block(block.label, block.parent, block.arguments, block.ops[:-1])


def _create(name: str, operands: list[ir.Value]) -> None:
    ir.Operation.create(name, operands=operands)


def _if(builder: Builder, op: Op, build: Any) -> None:
    kept = [n for n, value in enumerate(op.results) if value in builder.plan.live.values]
    types = [builder.type(op.results[n].type) for n in kept]
    branch = ir.Operation.create("scf.if", types, [builder.get(op.operands[0])], regions=2)
    for number in range(len(op.regions)):
        block = op.regions[number]
        with ir.InsertionPoint(branch.regions[number].blocks.append()):
            build(builder, _without_end(block))
            yielded = block.terminator.operands
            _create("scf.yield", [builder.get(yielded[n]) for n in kept])
    for n, value in zip(kept, branch.results, strict=True):
        builder.values[op.results[n]] = value


def _while(builder: Builder, op: Op, build: Any) -> None:
    before, after = op.regions
    inits = [builder.get(value) for value in op.operands]
    types = [builder.type(value.type) for value in op.results]
    loop = ir.Operation.create("scf.while", types, inits, regions=2)
    for number, (block, given) in enumerate(((before, [v.type for v in inits]), (after, types))):
        body = loop.regions[number].blocks.append(*given, arg_locs=[loop.location] * len(given))
        builder.values.update(zip(block.arguments, body.arguments, strict=True))
        with ir.InsertionPoint(body):
            build(builder, _without_end(block))
            name = "scf.yield" if number else "scf.condition"
            _create(name, [builder.get(value) for value in block.terminator.operands])
    builder.set(op, *loop.results)


def _combined(builder: Builder, op: Op, build: Any) -> None:
    searched = extreme_and_place(builder, op) if op.name == "tt.reduce" else None
    if searched is not None:
        is_one = op.results[1].type.shape is None
        builder.set(op, *(scalar_of(builder, v) if is_one else v for v in searched))
        return
    block = op.regions[0]
    inputs = [builder.get(operand) for operand in op.operands]
    if len({value.type for value in inputs[1:]}) > 1:
        raise op.error("of several inputs only the first may have a type of its own")
    _check_closed(op)

    def body(*arguments: ir.Value) -> list[ir.Value]:
        before, builder.combining = builder.combining, op
        builder.values.update(zip(block.arguments, arguments, strict=True))
        build(builder, _without_end(block))
        found = [builder.get(value) for value in block.terminator.operands]
        builder.combining = before
        return found

    elements = [value.type.element_type for value in inputs]
    made: Any = ReduceOp if op.name == "tt.reduce" else ScanOp
    attributes: dict[str, Any] = {"axis": op.number("axis")}
    if made is ScanOp:
        attributes["reverse"] = op.attributes.get("reverse", "false") == "true"
    found = made.build(inputs, body=body, body_types=elements * 2, **attributes)
    if op.results[0].type.shape is None:
        found = [scalar_of(builder, value) for value in found]
    builder.set(op, *found)


def _check_closed(op: Op) -> None:
    """A combination reads its arguments, what it computes, and constants."""
    block = op.regions[0]
    own = {*block.arguments, *(value for inner in walk(block) for value in inner.results)}
    for inner in walk(block):
        for value in inner.operands:
            owner = value.owner
            if value not in own and not (isinstance(owner, Op) and owner.name == "arith.constant"):
                raise inner.error("a combination reads a value from outside")


def _assert(builder: Builder, op: Op, build: Any) -> None:
    text = op.text.partition('"')[2].partition('"')[0]
    AssertOp.build(builder.get(op.operands[0]), message=text)


def _print(builder: Builder, op: Op, build: Any) -> None:
    text = op.text.partition('"')[2].partition('"')[0].replace("{", "(").replace("}", ")")
    values = [builder.get(value) for value in op.operands]
    if any(value.type.pointee for value in op.operands) or len(values) > 8:
        raise op.error("pointers, or more than eight values")
    PrintOp.build(values, format=text + ", ".join(["{}"] * len(values)))


def _nothing(builder: Builder, op: Op, build: Any) -> None:
    """Read elsewhere (`assume`), or there without being said: a program is one thread to its
    author, so that barriers inside it are the compiler's."""


RULES: dict[str, Rule] = {
    "tt.get_program_id": _place_in_grid,
    "tt.get_num_programs": _place_in_grid,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "tt.reduce": _combined,
    "tt.scan": _combined,
    "tt.assert": _assert,
    "tt.print": _print,
    "gpu.barrier": _nothing,
    "llvm.intr.assume": _nothing,
    "scf.yield": _nothing,
}
