"""Lowers tile.inline_ptx: the author's text once per element, as `llvm.inline_asm`.

Text with effects (not `pure`) leaves phantoms out; without results it runs in the first copy of
each element alone. A scalar's text runs in every thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import is_float, is_index, is_tile, number_type, shape
from tilec.hardware.sizes import WORD_BITS
from tilec.passes.lower_to_nvvm.access import inline_asm, vector_of
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.rewriting.control import either
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import both, create, resized

HALF = WORD_BITS // 2
_WIDTH = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64}
"""Bits of each constraint's register."""


def lower_inline_ptx(op: tile.InlinePtxOp, state: Lowering) -> None:
    """Lowers tile.inline_ptx."""
    letters = [c.strip().lstrip("=&") for c in op.constraints.split(",") if c.strip()]
    columns = [state.registers(value) for value in op.inputs]
    guards = _guards(op, state)
    rows = []
    for number, guard in enumerate(guards):
        values = [column[number if len(column) > 1 else 0] for column in columns]
        rows.append(_run_guarded(op, letters, values, guard, state))
    for number, result in enumerate(op.outputs):
        registers = [row[number] for row in rows]
        state.values[result] = registers if is_tile(result) else registers[0]


def _guards(op: tile.InlinePtxOp, state: Lowering) -> list[ir.Value | None]:
    """Gives, for each run of the text, the condition under which it happens (None: always)."""
    tiled = next((v for v in [*op.outputs, *op.inputs] if is_tile(v)), None)
    if tiled is None:
        return [None]
    layout = layout_of(tiled)
    if op.pure:
        return [None] * layout.num_values
    mine = None if op.outputs else state.first_copy(layout)
    return [both(mine, valid) for valid in state.valid(layout, shape(tiled))]


def _run_guarded(
    op: tile.InlinePtxOp,
    letters: Sequence[str],
    values: Sequence[ir.Value],
    guard: ir.Value | None,
    state: Lowering,
) -> Registers:
    if guard is None:
        return _run(op, letters, values, state)
    types = [_scalar(result, state) for result in op.outputs]
    run = partial(_run, op, letters, values, state)
    return either(guard, run, lambda: [state.constant(type_, 0) for type_ in types])


def _scalar(value: ir.Value, state: Lowering) -> ir.Type:
    return state.scalar_type(number_type(value))


def _run(
    op: tile.InlinePtxOp, letters: Sequence[str], values: Sequence[ir.Value], state: Lowering
) -> Registers:
    count = len(op.outputs)
    types = [_scalar(result, state) for result in op.outputs]
    registers = [_register_type(letter) for letter in letters]
    for letter, type_, value in zip(
        letters, [*types, *(v.type for v in values)], [*op.outputs, *op.inputs], strict=True
    ):
        _check_fits(op, letter, type_, value)
    operands = [
        _to_register(value, register)
        for value, register in zip(values, registers[count:], strict=True)
    ]
    constraints = [c.strip() for c in op.constraints.split(",") if c.strip()]
    results = inline_asm(op.text, constraints, operands, registers[:count], pure=op.pure)
    found = [_from_register(r, type_) for r, type_ in zip(results, types, strict=True)]
    for two in zip(found[::2], found[1::2], strict=False):
        if two[0].type == two[1].type and is_float(two[0].type) and two[0].type.width == HALF:
            state.note_whole(two, vector_of(two, state))  # mostly a word that the text takes apart
    return found


def _register_type(letter: str) -> ir.Type:
    if letter == "f":
        return ir.F32Type.get()
    return ir.F64Type.get() if letter == "d" else ir.IntegerType.get_signless(_WIDTH[letter])


def _check_fits(op: tile.InlinePtxOp, letter: str, type_: ir.Type, value: ir.Value) -> None:
    """An index fits any integer register, an integer a register as wide or wider, a float its own
    width only (fp8 sits in the low byte of `h`)."""
    declared = number_type(value)
    width = _WIDTH[letter]
    if is_index(declared):
        fits = letter in "hrl"
    elif is_float(type_):
        fits = type_.width == width or (type_.width == 8 and letter == "h")
    else:
        fits = letter in "hrl" and type_.width <= width
    if not fits:
        raise error_at(
            op.operation,
            f"constraint '{letter}' is a register of {width} bits, which does not hold {declared}",
        )


def _to_register(value: ir.Value, register: ir.Type) -> ir.Value:
    if value.type == register:
        return value
    if is_float(register):
        return create("arith.bitcast", [value], register)
    if is_float(value.type):
        bits = ir.IntegerType.get_signless(value.type.width)
        value = create("arith.bitcast", [value], bits)
    return resized(value, register)


def _from_register(value: ir.Value, type_: ir.Type) -> ir.Value:
    if value.type == type_:
        return value
    if not is_float(type_):
        return resized(value, type_)
    if is_float(value.type):
        return create("arith.bitcast", [value], type_)
    bits = ir.IntegerType.get_signless(type_.width)
    return create("arith.bitcast", [resized(value, bits)], type_)


RULES = {tile.InlinePtxOp: lower_inline_ptx}
