"""Compiles basic blocks of one entry into Python functions, on demand and once per variant."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass

from tilec.runtime.emulator.checking.register_checker import accesses_of, watched_registers
from tilec.runtime.emulator.execution import forms
from tilec.runtime.emulator.execution.forms import Filled, Form, Snippet, form_of
from tilec.runtime.emulator.execution.machine import Machine
from tilec.runtime.emulator.instructions.control import begins_products, needs_whole_warp
from tilec.runtime.emulator.instructions.memory import SYNCHRONISING
from tilec.runtime.emulator.instructions.opcodes import emit, is_control
from tilec.runtime.emulator.reading.instruction import Entry, Instruction, Symbol
from tilec.runtime.emulator.writing.binding import Binding, Rectangle
from tilec.runtime.emulator.writing.writer import Factory, Writer


@dataclass(frozen=True)
class Block:
    """Compiled instructions [start, next): `terminator` is the last one if it is control.

    `polls`: a loop over this block may wait for another thread, so others must get their turn.
    """

    start: int
    next: int
    code: types.CodeType
    factories: dict[str, Factory]
    terminator: Instruction | None
    polls: bool


def is_polling(instruction: Instruction) -> bool:
    """Does the instruction read what another thread may be about to write?"""
    if instruction.opcode == "ld":
        return not SYNCHRONISING.isdisjoint(instruction.modifiers)
    return instruction.opcode in ("atom", "nanosleep")


class _Reuse:
    """Values in local variables of a block: matrix fragments that several products use."""

    def __init__(self) -> None:
        self.available: dict[tuple[object, ...], tuple[str, frozenset[tuple[int, int]]]] = {}

    def lines(self, instruction: Instruction, snippet: Snippet) -> list[str]:
        """The snippet's lines, where a value that is there already is not computed again."""
        if not self.available and not snippet.reusable:
            return [snippet.text]
        result = []
        for line in snippet.text.split("\n"):
            name = line.strip().partition(" = ")[0]
            if name in snippet.reusable:
                key, registers = snippet.reusable[name]
                if key in self.available:
                    line = f"    {name} = {self.available[key][0]}"
                else:
                    self.available[key] = (name, registers)
            result.append(line)
        if instruction.opcode in ("wgmma", "tcgen05"):  # these write registers by themselves
            self.available.clear()
        self.forget(snippet.written)
        return result

    def forget(self, written: frozenset[tuple[int, int]]) -> None:
        """Registers are written."""
        for key in [k for k, (_, used) in self.available.items() if used & written]:
            del self.available[key]


class BlockCompiler:
    """The blocks of an entry. Creating it writes one instruction of every form, so that what is
    unsupported is found before anything runs.

    `unchecked`: makes a compiler for check mode, which takes over what is the same there.
    """

    def __init__(self, entry: Entry, unchecked: BlockCompiler | None = None) -> None:
        self.entry = entry
        self.unchecked = unchecked
        self.leaders = self._leaders()
        self.watched = watched_registers(entry) if unchecked else frozenset()
        self._snippets: dict[tuple[int, bool], Snippet] = {}
        self._blocks: dict[tuple[int, bool], Block] = {}
        if unchecked is None:
            for instruction in entry.instructions:
                if not forms.is_written(form_of(instruction, False)):
                    self._snippet(instruction, False)

    def _leaders(self) -> frozenset[int]:
        targets: set[int] = set()
        for instruction in self.entry.instructions:
            if instruction.opcode in ("bra", "brx"):
                for operand in instruction.operands:
                    if isinstance(operand, Symbol):
                        targets.update(self.targets(operand.name))
        return frozenset(targets)

    def targets(self, name: str) -> list[int]:
        """Instruction numbers of a label or of every label of a branch table."""
        labels = self.entry.tables.get(name, (name,))
        return [self.entry.labels[label] for label in labels]

    def _snippet(self, instruction: Instruction, lanes: bool) -> Snippet:
        key = (instruction.index, lanes)
        found = self._snippets.get(key)
        if found is None:
            found = self._snippets[key] = self._taken_over(key) or self.write(instruction, lanes)
        return found

    def _taken_over(self, key: tuple[int, bool]) -> Snippet | None:
        """The snippet of the other modes, if it is the same in check mode."""
        if self.unchecked is None:
            return None
        found = self.unchecked._snippets.get(key)
        if found is None or found.depends_on_checks:
            return None
        return None if accesses_of(self.entry.instructions[key[0]], self.watched) else found

    def _form(self, instruction: Instruction, lanes: bool) -> Form | None:
        return None if accesses_of(instruction, self.watched) else form_of(instruction, lanes)

    def _filled(self, instruction: Instruction) -> Filled | None:
        """An instruction for a rectangle, if it is of a form; one that is new is written."""
        form = self._form(instruction, False)
        if form is None:
            return None
        if not forms.is_written(form):
            self.write(instruction, False)
        return forms.find(form)

    def write(self, instruction: Instruction, lanes: bool) -> Snippet:
        """The code of one instruction; of its form, where that has been written before."""
        form = self._form(instruction, lanes)
        if form is not None and (known := forms.find(form)):
            return known.template.fill(known.registers)
        writer = Writer(lanes, self.unchecked is not None, self.entry)
        writer.watched = self.watched
        writer.mark = str(instruction.index) if form is None else forms.fresh_mark()
        emit(instruction, writer)
        snippet = Snippet(
            "\n".join(writer.lines), writer.factories, frozenset(writer.written),
            writer.reusable, writer.depends_on_checks,
        )  # fmt: skip
        if form is not None:
            forms.keep(form, snippet)
        return snippet

    def block(self, start: int, lanes: bool) -> Block:
        """The block that begins at instruction `start`."""
        key = (start, lanes)
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = self._compile(start, lanes)
        return found

    def _compile(self, start: int, lanes: bool) -> Block:
        lines = ["def block(L):"] if lanes else ["def block():"]
        factories: dict[str, Factory] = {}
        instructions = self.entry.instructions
        where, terminator, reuse = start, None, _Reuse()
        run: list[Filled] = []
        while where < len(instructions):
            instruction = instructions[where]
            if where > start and (
                where in self.leaders
                or begins_products(instruction)
                or (lanes and needs_whole_warp(instruction))
            ):
                break
            filled = None if lanes else self._filled(instruction)
            if filled is not None:
                run.append(filled)
                if reuse.available:
                    reuse.forget(filled.written)
            else:
                self._end(run, where, lines, factories)
                snippet = self._snippet(instruction, lanes)
                lines.extend(reuse.lines(instruction, snippet))
                factories.update(snippet.factories)
            where += 1
            if is_control(instruction):
                terminator = instruction
                break
        self._end(run, where, lines, factories)
        if len(lines) == 1:
            lines.append("    pass")
        code = _code("\n".join(lines))
        polls = any(is_polling(i) for i in instructions[start:where])
        return Block(start, where, code, factories, terminator, polls)

    def _end(
        self, run: list[Filled], where: int, lines: list[str], factories: dict[str, Factory]
    ) -> None:
        """Adds the instructions of known forms in front of instruction `where`, and empties the
        list: a line for all of them."""
        if run:
            name = f"run_{where}_{len(run)}"
            lines.append(f"    for step, rows in {name}: step(*rows)")
            factories[name] = functools.partial(forms.bind_steps, tuple(run))
            run.clear()


@functools.lru_cache(maxsize=256)
def _code(source: str) -> types.CodeType:
    """The function that is all of `source`; programs that hardly differ share most blocks."""
    module = compile(source, "<block of a PTX program>", "exec")
    return next(c for c in module.co_consts if isinstance(c, types.CodeType))


class BoundBlocks:
    """Blocks bound to one machine: names of registers and memories are filled in."""

    def __init__(self, compiler: BlockCompiler, machine: Machine) -> None:
        self.compiler = compiler
        self.machine = machine
        self._bindings: dict[Rectangle | None, Binding] = {}
        self._functions: dict[tuple[int, Rectangle | None], tuple[types.FunctionType, Block]] = {}

    def get(self, start: int, rectangle: Rectangle | None) -> tuple[types.FunctionType, Block]:
        """The function of the block at `start` for a rectangle, or for lanes (None)."""
        key = (start, rectangle)
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = self._bind(start, rectangle)
        return found

    def _bind(self, start: int, rectangle: Rectangle | None) -> tuple[types.FunctionType, Block]:
        block = self.compiler.block(start, rectangle is None)
        if rectangle not in self._bindings:
            self._bindings[rectangle] = Binding(self.machine, rectangle)
        binding = self._bindings[rectangle]
        for name, factory in block.factories.items():
            binding.named(name, factory)
        return types.FunctionType(block.code, binding.names), block

    def end(self) -> None:
        """Forgets all, the machine's parts, too. They know each other: as they are, its memory
        would stay until Python looks for such circles, which takes longer the more there are."""
        for binding in self._bindings.values():
            binding.names.clear()
        self._bindings.clear()
        self._functions.clear()
        vars(self.machine).clear()
