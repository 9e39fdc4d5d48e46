"""Lowers scf: the same loops and branches over registers instead of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlir import ir

from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import bit_width, element, is_tile
from tilec.passes.lower_to_nvvm.access import pack, unpack
from tilec.passes.lower_to_nvvm.state import Lowering, Registers

LowerBlock = Callable[[ir.Block, Lowering], None]


def lower_region_op(op: ir.Operation, state: Lowering, lower_block: LowerBlock) -> None:
    """Rebuilds scf.for, scf.if and scf.while with registers for operands, results and block
    arguments."""
    results = [t for r in op.results for t in _word_types(r, state)]
    attributes = {name: attr for name, attr in op.attributes.items() if "." not in name}
    new = ir.Operation.create(
        op.name,
        results=results,
        operands=_words(op.operands, state),
        attributes=attributes,
        regions=len(op.regions),
    )
    for region, new_region in zip(op.regions, new.regions, strict=True):
        for block in region.blocks:
            types = [t for a in block.arguments for t in _word_types(a, state)]
            new_block = new_region.blocks.append(*types, arg_locs=[op.location] * len(types))
            with ir.InsertionPoint(new_block):
                _bind(block.arguments, list(new_block.arguments), state)
                lower_block(block, state)
    _bind(op.results, list(new.results), state)


def _per_word(value: ir.Value) -> int:
    """Registers of a tile that cross a block's edge as one 32-bit word: narrow ones, else each
    takes a word of the register file. PTX has no narrower registers."""
    if not is_tile(value) or bit_width(element(value)) not in (8, 16):
        return 1
    count = 32 // bit_width(element(value))
    return 1 if layout_of(value).num_values % count else count


def _word_types(value: ir.Value, state: Lowering) -> list[ir.Type]:
    types, count = state.register_types(value), _per_word(value)
    return types if count == 1 else [state.i32] * (len(types) // count)


def _words(values: Iterable[ir.Value], state: Lowering) -> Registers:
    words: Registers = []
    for value in values:
        registers = state.flatten([value])
        packed = _per_word(value) > 1
        words += pack(registers, element(value), state) if packed else registers
    return words


def _bind(values: Iterable[ir.Value], words: Registers, state: Lowering) -> None:
    """The inverse of `_words`: gives each value its own words."""
    at = 0
    for value in values:
        count = len(_word_types(value, state))
        mine, at = words[at : at + count], at + count
        if _per_word(value) > 1:
            mine = unpack(mine, element(value), count * _per_word(value), state)
        state.bind([value], mine)


def lower_terminator(op: ir.Operation, state: Lowering) -> None:
    """Lowers scf.yield and scf.condition."""
    ir.Operation.create(op.name, operands=_words(op.operands, state))


REGION_OPS = ("scf.for", "scf.if", "scf.while")
RULES = {"scf.yield": lower_terminator, "scf.condition": lower_terminator}
