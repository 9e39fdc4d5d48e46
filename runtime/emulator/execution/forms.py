"""Instructions of one form are written once: others of it differ by the names of their registers.

`add.s32 %r7, %r3, 4` becomes the code of `add.s32 %r1, %r2, 4` with other rows in it. Programs hold
few forms (some 700 in 140 000 instructions, if constants are not counted), and writing one takes
ten times as long as filling in its rows; compiling one takes as long as in each block that it would
be a line of. So a block of a rectangle has one line for all that stand behind each other: it calls
the function of each form. This holds for opcodes that work on registers alone: what
accesses memory or waits keeps its own place for its messages.
"""

from __future__ import annotations

import functools
import itertools
import re
import struct
import types
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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

if TYPE_CHECKING:
    from tilec.runtime.emulator.writing.binding import Binding

_CALL = re.compile(r"    (\w+)\(((?:%s|[a-z]\w*)(?:, (?:%s|[a-z]\w*))*)\)")
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
    name: str
    call: tuple[str, tuple[str | None, ...]] | None
    """Where the text is one call of a function of rows and names: the function, and the names of
    the arguments, None for the next row."""

    def bound(self, registers: tuple[RegisterKey, ...], binding: Binding) -> Step:
        """What executes the instruction with these registers: a function and its arguments."""
        names, named = binding.names, binding.named
        rows = [
            named(*row_of(*registers[number], code, lanes)) for lanes, number, code in self.rows
        ]
        if self.name not in names:
            for name, factory in self.factories.items():
                named(name, factory)
            direct = self.call is not None
            names[self.name] = direct or types.FunctionType(_function(self.text), names)
        if self.call is None:
            return names[self.name], tuple(rows)
        called, words = self.call
        left = iter(rows)
        return names[called], tuple([next(left) if w is None else names[w] for w in words])

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


Step = tuple[Any, tuple[Any, ...]]
"""A function and its arguments."""


class Filled(NamedTuple):
    """An instruction of a known form."""

    template: Template
    registers: tuple[RegisterKey, ...]

    @property
    def written(self) -> frozenset[RegisterKey]:
        """The registers that it writes."""
        return frozenset([self.registers[number] for number in self.template.written])


def bind_steps(run: Sequence[Filled], binding: Binding) -> tuple[Step, ...]:
    """What executes instructions, one behind the other."""
    return tuple([template.bound(registers, binding) for template, registers in run])


def _call_in(text: str, factories: dict[str, Factory]) -> tuple[str, tuple[str | None, ...]] | None:
    """`Template.call` of a text with holes."""
    found = _CALL.fullmatch(text)
    if found is None:
        return None
    words = tuple([None if word == "%s" else word for word in found.group(2).split(", ")])
    named = {found.group(1), *words} - {None}
    return (found.group(1), words) if named <= factories.keys() else None


@functools.lru_cache(maxsize=_MOST)
def _function(text: str) -> types.CodeType:
    """A template as a function of its rows: compiled once, where each block that held the lines
    would compile them again."""
    rows = [f"row{number}" for number in range(text.replace("%%", "").count("%s"))]
    source = f"def step({', '.join(rows)}):\n" + text % tuple(rows)
    module = compile(source, "<instruction of a PTX program>", "exec")
    return next(c for c in module.co_consts if isinstance(c, types.CodeType))


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
    """Whether `find` knows the form."""
    return form is not None and form.key in _templates


def find(form: Form) -> Filled | None:
    """An instruction whose form has been written."""
    template = _templates.get(form.key)
    return None if template is None else Filled(template, form.registers)


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
    call = _call_in(text, fixed)
    _templates[form.key] = Template(text, tuple(rows), fixed, written, f"step_{fresh_mark()}", call)
