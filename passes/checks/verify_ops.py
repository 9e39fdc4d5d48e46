"""verify-ops: runs every op's own rules, after MLIR's structural verifier.

Dynamic ops have no verifier hook in MLIR 22, so their `check()` runs here, after each pass.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects.op import NAMESPACES
from tilec.dialects.types import is_tile
from tilec.messages.diagnostics import CompileError
from tilec.passes.checks.rules import RulesOf, look_at_all
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.walk import all_ops
from tilec.terms.tile_sizes import LARGEST_TILE


def verify_ops(module: ir.Module) -> None:
    """CompileError carrying one error per op that breaks its rules."""
    look_at_all(module, op_rules())


def op_rules() -> RulesOf:
    """The rule that asks each of our ops what is wrong with itself, for one walk over a program."""
    sound: set[ir.Type] = set()  # few types, many values

    def look(op: ir.Operation) -> str | None:
        view = op.opview
        wrong = view.check_attributes() or _check_tiles(op, sound) or view.check()
        return f"'{op.name}' op {wrong}" if wrong else None

    return lambda name: (look,) if name.startswith(NAMESPACES) else ()


def verify_attributes(module: ir.Module) -> None:
    """CompileError where an op has an attribute that MLIR's parser takes and its Python bindings
    cannot read, such as `array<i128: 0>`: passes would fail on it."""
    errors = []

    with module.context, ir.Location.unknown():
        for op in all_ops(module.operation, inner_first=True):
            for name in op.attributes:
                try:
                    _read(op.attributes, name)
                except TypeError:
                    why = "an array or a tensor of elements that tilec cannot read"
                    errors.append(error_at(op, f"attribute '{name}' holds {why}"))
    if errors:
        raise CompileError.group(errors)


def _read(container: ir.ArrayAttr | ir.DictAttr | ir.OpAttributeMap, key: int | str) -> None:
    """Makes a Python object of what a container holds, and of what that holds."""
    value = container[key]
    if isinstance(value, ir.ArrayAttr):
        for number in range(len(value)):
            _read(value, number)
    elif isinstance(value, ir.DictAttr):
        for named in value:
            _read(value, named.name)


def _check_tiles(op: ir.Operation, sound: set[ir.Type]) -> str | None:
    """Says what is wrong with the tiles of an op. `sound` holds types known to be right, since many
    values have few types; the op's are added."""
    for value in (*op.operands, *op.results):
        type_ = value.type
        if type_ in sound:
            continue
        wrong = _check_tile(type_) if is_tile(type_) else None
        if wrong:
            return wrong
        sound.add(type_)
    return None


def _check_tile(type_: ir.RankedTensorType) -> str | None:
    if not type_.has_static_shape:
        return f"tiles must have a static shape, found {type_}"
    if 0 in type_.shape:
        return f"tiles must not be empty, found {type_}"
    if prod(type_.shape) > LARGEST_TILE:
        return f"tiles have at most {LARGEST_TILE} elements, found {type_}"
    return None
