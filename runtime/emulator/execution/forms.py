"""Instructions of one form are written once: others of it differ by the names of their registers.

`add.s32 %r7, %r3, 4` becomes the code of `add.s32 %r1, %r2, 4` with other rows in it. Programs hold
few forms (some 700 in 140 000 instructions, if constants are not counted), and writing one takes
ten times as long as filling in its rows. This holds for opcodes that work on registers alone: what
accesses memory or waits keeps its own place for its messages.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from tilec.runtime.emulator.instructions import (
    bits,
    compare,
    convert,
    floating,
    integer,
    move,
    warp,
)
from tilec.runtime.emulator.reading.instruction import (
    Immediate,
    Instruction,
    Operand,
    Pair,
    Register,
    Vector,
)
from tilec.runtime.emulator.writing.writer import Factory, row_of

ON_REGISTERS = frozenset(
    opcode
    for family in (bits, compare, convert, floating, integer, move, warp)
    for opcode in (*family.RULES, *getattr(family, "SHARED_RULES", ()))
)
"""Opcodes whose code depends on the form alone."""

_ROW = re.compile(r"\b([rw])(1|16|32|64)_(\d+)_(\w+)\b")
_MOST = 8192  # forms kept
_numbers = itertools.count()
_templates: dict[Hashable, Template] = {}

RegisterKey = tuple[int, int]
"""Bits and index."""


class Form(NamedTuple):
    """What an instruction is but for which registers it names; these in order of appearance."""

    key: Hashable
    registers: tuple[RegisterKey, ...]


class Snippet(NamedTuple):
    """The code of one instruction: its lines, and factories of the names in them.

    `written`: registers. `reusable`: names of values that depend on the registers beside them alone
    (see blocks.py).
    """

    text: str
    factories: dict[str, Factory]
    written: frozenset[RegisterKey]
    reusable: dict[str, tuple[tuple[object, ...], frozenset[RegisterKey]]]
    depends_on_checks: bool


@dataclass(frozen=True)
class Template:
    """A snippet with holes for rows: each (lanes variant, number of the register, dtype code)."""

    text: str
    rows: tuple[tuple[bool, int, str], ...]
    factories: dict[str, Factory]
    written: tuple[int, ...]

    def fill(self, registers: tuple[RegisterKey, ...]) -> Snippet:
        """The snippet for these registers."""
        rows = [row_of(*registers[number], code, lanes) for lanes, number, code in self.rows]
        return Snippet(
            self.text % tuple([name for name, _ in rows]),
            {**self.factories, **dict(rows)},
            frozenset([registers[number] for number in self.written]),
            {},
            False,
        )


def form_of(instruction: Instruction, lanes: bool) -> Form | None:
    """The form, for the given variant of the code; None if the instruction's place matters."""
    if instruction.opcode not in ON_REGISTERS:
        return None
    registers: dict[RegisterKey, int] = {}
    operands = tuple([_shape(operand, registers) for operand in instruction.operands])
    guard = None if instruction.guard is None else _shape(instruction.guard, registers)
    key = (lanes, instruction.opcode, instruction.modifiers, guard, operands)
    return Form(key, tuple(registers))


def _shape(operand: Operand, registers: dict[RegisterKey, int]) -> Hashable:
    """An operand with the numbers of registers instead of their names; adds new registers."""
    if isinstance(operand, Register):
        number = registers.setdefault((operand.bits, operand.index), len(registers))
        return operand.bits, number, operand.negated
    if isinstance(operand, Immediate):  # 1 and 1.0, 0.0 and -0.0 are equal in Python
        value = operand.value
        return (struct.pack("d", value), "") if isinstance(value, float) else (value, "")
    if isinstance(operand, Vector):
        return tuple([_shape(element, registers) for element in operand.elements])
    if isinstance(operand, Pair):
        return _shape(operand.first, registers), "|", _shape(operand.second, registers)
    return operand


def is_written(form: Form | None) -> bool:
    """Whether `find` has a snippet for the form."""
    return form is not None and form.key in _templates


def find(form: Form) -> Snippet | None:
    """The snippet of an instruction whose form has been written."""
    template = _templates.get(form.key)
    return None if template is None else template.fill(form.registers)


def fresh_mark() -> str:
    """What the names of a form's values end with: no other instruction's do."""
    return f"f{next(_numbers)}"


def keep(form: Form, snippet: Snippet) -> None:
    """Makes a template of a snippet whose names are marked with `fresh_mark`."""
    numbers = {register: number for number, register in enumerate(form.registers)}
    rows: list[tuple[bool, int, str]] = []

    def hole(row: re.Match[str]) -> str:
        letter, width, index, code = row.groups()
        rows.append((letter == "w", numbers[int(width), int(index)], code))
        return "%s"

    text = _ROW.sub(hole, snippet.text.replace("%", "%%"))
    fixed = {name: f for name, f in snippet.factories.items() if not _ROW.fullmatch(name)}
    if len(_templates) >= _MOST:
        _templates.clear()
    written = tuple(numbers[register] for register in snippet.written)
    _templates[form.key] = Template(text, tuple(rows), fixed, written)
