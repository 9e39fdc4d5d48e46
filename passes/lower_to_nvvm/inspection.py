"""Lowers tile.print and tile.assert to the driver's `vprintf` and `__assertfail`.

CUDA C++ Programming Guide, "Formatted Output" and "Assertion"; PTX Writer's Guide to
Interoperability, "System calls": vprintf(format, arguments) and __assertfail(message, file, line,
function, char size).

A line of `tile.print` reads `(x, y, z) text` for scalars and `(x, y, z) [i, j] text` for each
element of a tile: program ids along the three axes, the element's coordinates, and the format with
its values put in. Integers are decimals, signed but for `{u}`, i1 is 0 or 1, floats read as C's
`%g`. Every element is printed once, in no order between threads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import is_float, is_tile, shape
from tilec.passes.lower_to_nvvm.device_text import call, enclosing, text_pointer
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import moved_pointer
from tilec.passes.rewriting.control import only_if
from tilec.passes.rewriting.locations import error_at, source_location
from tilec.passes.rewriting.scalars import (
    both,
    compare,
    constant,
    create,
    resized,
    select,
)

_PLACEHOLDER = re.compile(r"\{(u?)\}")

MOST_ARGUMENTS = 32
"""Values one vprintf takes besides its format (CUDA C++ Programming Guide, "Formatted Output")."""


def lower_print(op: tile.PrintOp, state: Lowering) -> None:
    """Lowers tile.print to a vprintf per register, by the first copy of each element."""
    tiled = next((value for value in op.values if is_tile(value)), None)
    sizes = () if tiled is None else shape(tiled)
    count = 3 + len(sizes) + len(op.values)
    if count > MOST_ARGUMENTS:
        most = len(op.values) + MOST_ARGUMENTS - count
        raise error_at(
            op.operation, f"cannot print {len(op.values)} values at once, the most here is {most}"
        )
    programs = [state.special(f"ctaid.{axis}") for axis in "xyz"]
    slots = _argument_slots(count, state)
    columns = [state.registers(value) for value in op.values]
    if tiled is None:
        guards: list[ir.Value | None] = [_is_first_thread(state)]
        places: list[list[ir.Value]] = [[]]
    else:
        guards, places = _elements(tiled, state)
    for number, (guard, at) in enumerate(zip(guards, places, strict=True)):
        values = [column[number if len(column) > 1 else 0] for column in columns]
        with only_if(state.constant(state.i1, 1) if guard is None else guard):
            _print_line(op, programs, at, values, slots, state)


def _elements(
    value: ir.Value, state: Lowering
) -> tuple[list[ir.Value | None], list[list[ir.Value]]]:
    """Says, for each register of a tile, whether this thread speaks for it, and its coordinates
    (i32)."""
    layout, sizes = layout_of(value), shape(value)
    mine = state.first_copy(layout)
    guards = [both(mine, valid) for valid in state.valid(layout, sizes)]
    start = state.thread_coordinates(layout, len(sizes))
    places = []
    for offsets in layout.value_coordinates(len(sizes)):
        places.append(
            [state.arith("addi", first, step) for first, step in zip(start, offsets, strict=True)]
        )
    return guards, places


def _is_first_thread(state: Lowering) -> ir.Value:
    return compare("eq", state.thread(), state.i32_constant(0))


def _argument_slots(count: int, state: Lowering) -> ir.Value:
    """A buffer of 8-byte slots in local memory, made once: in a loop it would grow the stack."""
    slots = ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{count} x i64>"))
    with state.entry, ir.Location.unknown():
        one = constant(state.i32, 1)
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 8)
        pointer = ir.Type.parse("!llvm.ptr")
        return create("llvm.alloca", [one], pointer, elem_type=slots, alignment=alignment)


def _print_line(
    op: tile.PrintOp,
    programs: Sequence[ir.Value],
    at: Sequence[ir.Value],
    values: Sequence[ir.Value],
    slots: ir.Value,
    state: Lowering,
) -> None:
    unsigned = [mark == "u" for mark in _PLACEHOLDER.findall(op.format)]
    arguments = [_as_argument(op, value, unsigned=False) for value in [*programs, *at]]
    arguments += [
        _as_argument(op, value, unsigned=marked)
        for value, marked in zip(values, unsigned, strict=True)
    ]
    for number, argument in enumerate(arguments):
        place = moved_pointer(slots, number, 64)
        ir.Operation.create("llvm.store", operands=[argument, place])
    pointer = text_pointer(op.operation, _line_format(op, len(at), arguments[3 + len(at) :]))
    call(op.operation, "vprintf", [pointer, slots], state.i32)


def _line_format(op: tile.PrintOp, rank: int, values: Sequence[ir.Value]) -> str:
    """The C format of one line; values are i64 or f64."""
    head = "(%lld, %lld, %lld) "
    if rank:
        head += f"[{', '.join(['%lld'] * rank)}] "
    form, floats = op.format.replace("%", "%%"), iter([is_float(value.type) for value in values])
    letters = {"": "%lld", "u": "%llu"}
    body = _PLACEHOLDER.sub(lambda mark: "%g" if next(floats) else letters[mark[1]], form)
    return head + body + "\n"


def _as_argument(op: tile.PrintOp, value: ir.Value, *, unsigned: bool) -> ir.Value:
    """A value as C passes it through `...`, each in 8 bytes: i64 or f64."""
    if is_float(value.type):
        if value.type.width == 64:
            return value
        if value.type.width < 16:
            raise error_at(op.operation, f"cannot print {value.type}; cast it to float32 first")
        return create("arith.extf", [value], ir.F64Type.get())
    return resized(value, ir.IntegerType.get_signless(64), signed=not unsigned)


def lower_assert(op: tile.AssertOp, state: Lowering) -> None:
    """Lowers tile.assert to one test a thread; the driver prints the first failure and ends the
    launch."""
    _fail(op, _failed(op, state), state)


def lower_own_assert(op: tile.AssertOp, certain: Sequence[ir.Value], state: Lowering) -> None:
    """Lowers a tile.assert that each thread looks at for itself, where all of `certain` (i1) are
    true: in a combining region, of what the thread combines."""
    (holds,) = state.registers(op.condition)
    failed = state.arith("xori", holds, state.constant(state.i1, 1))
    for flag in certain:
        failed = state.arith("andi", flag, failed)
    _fail(op, failed, state)


def _fail(op: tile.AssertOp, failed: ir.Value, state: Lowering) -> None:
    """Ends the launch where `failed` (i1) is true, with the op's message and place."""
    operation = op.operation
    function = ir.StringAttr(enclosing(operation, "func.func").attributes["sym_name"]).value
    location = source_location(operation.location)
    with only_if(failed):
        arguments = [
            text_pointer(operation, op.message),
            text_pointer(operation, "<unknown>" if location is None else location.file),
            state.i32_constant(0 if location is None else location.line),
            text_pointer(operation, function),
            state.constant(ir.IntegerType.get_signless(64), 1),
        ]
        call(operation, "__assertfail", arguments)


def _failed(op: tile.AssertOp, state: Lowering) -> ir.Value:
    """Whether an element of this thread is false (i1)."""
    registers = state.registers(op.condition)
    true = state.constant(state.i1, 1)
    if is_tile(op.condition):
        valid = state.valid(layout_of(op.condition), shape(op.condition))
        registers = [select(v, r, true) for v, r in zip(valid, registers, strict=True)]
    holds = registers[0]
    for register in registers[1:]:
        holds = state.arith("andi", holds, register)
    failed = state.arith("xori", holds, true)
    if is_tile(op.condition):
        mine = state.first_copy(layout_of(op.condition))
    else:
        mine = _is_first_thread(state)
    return failed if mine is None else state.arith("andi", mine, failed)


RULES = {tile.PrintOp: lower_print, tile.AssertOp: lower_assert}
