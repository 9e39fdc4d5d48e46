"""The statements of one entry: registers, variables, labels, scopes, instructions, calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from string import digits
from typing import TypeVar

from tilec.runtime.emulator.errors import Place, PtxError, SourceLocation, UnsupportedInstruction
from tilec.runtime.emulator.numbers.scalar_types import register_bits
from tilec.runtime.emulator.reading.instruction import (
    Address,
    Call,
    Entry,
    Immediate,
    Instruction,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)
from tilec.runtime.emulator.reading.token_stream import TokenStream
from tilec.runtime.emulator.reading.tokens import Statement, cut, number, operand_texts
from tilec.runtime.emulator.reading.variable_parser import parse_parameter, parse_variable

Part = TypeVar("Part")
SPECIAL_REGISTERS = {
    f"%{name}.{axis}"
    for name in (
        "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid",
        "cluster_nctaid",
    )
    for axis in "xyz"
} | {
    "%laneid", "%warpid", "%nwarpid", "%clock", "%clock_hi", "%clock64", "%globaltimer",
    "%globaltimer_lo", "%globaltimer_hi", "%lanemask_eq", "%lanemask_le", "%lanemask_lt",
    "%lanemask_ge", "%lanemask_gt", "%smid", "%nsmid", "%gridid", "%dynamic_smem_size",
    "%total_smem_size", "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster", "WARP_SZ",
}  # fmt: skip


def halves_of(register: Register) -> Vector:
    """A 128-bit register is two rows of the 64-bit file, the low half first."""
    name, index = register.name, register.index
    return Vector((Register(f"{name}.low", 64, index), Register(f"{name}.high", 64, index + 1)))


@functools.lru_cache(maxsize=4096)
def _split(name: str) -> tuple[str, tuple[str, ...]]:
    """Opcode and modifiers; programs hold few different ones."""
    opcode, *modifiers = name.split(".")
    return opcode, tuple(modifiers)


class _Scope:
    """Names declared between one pair of braces."""

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.registers: dict[str, Register] = {}
        self.ranges: dict[str, tuple[int, int, int]] = {}
        self.renamed: dict[str, str] = {}
        self.operands: dict[str, Operand] = {}
        self.guards: dict[str, Register] = {}
        """What texts mean here, as long as nothing more is declared."""

    def forget(self) -> None:
        """Something is declared: texts may mean something else from here on."""
        self.operands.clear()
        self.guards.clear()

    def register(self, name: str) -> Register | None:
        scope: _Scope | None = self
        while scope:
            found = scope.registers.get(name) or scope._of_range(name)
            if found:
                return found
            scope = scope.parent
        return None

    def _of_range(self, name: str) -> Register | None:
        stem = name.rstrip(digits)
        if stem not in self.ranges or stem == name:
            return None
        bits, first, count = self.ranges[stem]
        index = int(name[len(stem) :])
        if index >= count:
            return None
        step = 2 if bits == 128 else 1
        found = self.registers[name] = Register(name, bits, first + step * index)
        return found

    def variable(self, name: str) -> str:
        scope: _Scope | None = self
        while scope:
            if name in scope.renamed:
                return scope.renamed[name]
            scope = scope.parent
        return name


class BodyParser:
    """Fills `entry` from a stream that stands after the `{` of the entry."""

    def __init__(
        self,
        stream: TokenStream,
        entry: Entry,
        module_variables: dict[str, Variable],
        files: dict[int, str],
    ) -> None:
        self.stream = stream
        self.entry = entry
        self.files = files
        self.scope = _Scope(None)
        self.location: SourceLocation | None = None
        self.known = set(module_variables) | {p.name for p in entry.parameters}
        self.scopes = 0

    def parse(self) -> None:
        depth = 1
        while True:
            token = self.stream.peek()
            if isinstance(token, Statement):
                self.stream.position += 1
                self._line(token)
            elif token.text == "{":
                self.stream.next()
                self._open_scope()
                depth += 1
            elif token.text == "}":
                self.stream.next()
                depth -= 1
                if not depth:
                    break
                assert self.scope.parent is not None
                self.scope = self.scope.parent
            else:
                self._statement()
        self._resolve_labels()

    def _open_scope(self) -> None:
        """A new scope; its labels are renamed first, for a branch may stand before its label."""
        self.scope = _Scope(self.scope)
        self.scopes += 1
        depth, ahead = 1, 0
        while depth:
            token = self.stream.peek(ahead)
            depth += (token.text == "{") - (token.text == "}")
            if depth == 1 and token.kind == "word" and self.stream.peek(ahead + 1).text == ":":
                self.scope.renamed[token.text] = f"{token.text}@{self.scopes}"
            ahead += 1

    def _statement(self) -> None:
        stream = self.stream
        token = stream.peek()
        if token.kind == "loc":
            stream.position += 1
            self.location = self._location(*map(int, token.text.split()[1:4]))
        elif token.text.startswith("."):
            self._declaration()
        elif token.kind == "word" and stream.peek(1).text == ":":
            self._label(token.text, token.line)
        elif token.text == ";":
            stream.next()
        else:
            self._instruction()

    def _label(self, name: str, line: int) -> None:
        self.stream.next()
        self.stream.next()
        if self.stream.accept(".branchtargets"):
            targets = [self.stream.next().text]
            while self.stream.accept(","):
                targets.append(self.stream.next().text)
            self.stream.expect(";")
            self.entry.tables[name] = tuple(targets)
            return
        scoped = self.scope.variable(name)
        if scoped in self.entry.labels:
            raise PtxError(f"label {name} is defined twice", line)
        self.entry.labels[scoped] = len(self.entry.instructions)

    def _declaration(self) -> None:
        token = self.stream.next()
        if token.text == ".loc":
            self._loc()
        elif token.text == ".reg":
            self._registers(token.line)
        elif token.text in (".shared", ".local", ".global", ".const"):
            self._declare(parse_variable(self.stream, token.text[1:]))
        elif token.text == ".param":
            self.stream.position -= 1
            variable = parse_parameter(self.stream)
            self.stream.expect(";")
            self._declare(Variable(variable.name, "call", variable.size, variable.alignment))
        elif token.text == ".pragma":
            self.stream.skip_past(";")
        else:
            raise PtxError(f"unsupported: directive `{token.text}`", token.line)

    def _declare(self, variable: Variable) -> None:
        name = variable.name
        if name in self.entry.variables or name in self.known:
            name = f"{variable.name}@{self.scopes}"
        self.scope.renamed[variable.name] = name
        self.scope.forget()
        self.entry.variables[name] = Variable(
            name,
            variable.space,
            variable.size,
            variable.alignment,
            variable.initial,
            variable.words,
            variable.dynamic,
        )

    def _loc(self) -> None:
        self.location = self._location(*(self.stream.integer() for _ in range(3)))
        while self.stream.accept(","):
            word = self.stream.next().text
            if word == "function_name":
                self.stream.next()
                if self.stream.accept("+"):
                    self.stream.integer()
            else:  # inlined_at file line column: keep the innermost place
                for _ in range(3):
                    self.stream.integer()

    def _location(self, file: int, line: int, column: int) -> SourceLocation | None:
        if line == 0:  # DWARF's "of no line": what stands before it says more
            return self.location
        return SourceLocation(self.files.get(file, f"<file {file}>"), line, column)

    def _registers(self, line: int) -> None:
        self.scope.forget()
        kind = self.stream.next().text[1:]
        bits = register_bits(kind)
        if bits is None:
            raise PtxError(f"unsupported: registers of type .{kind}", line)
        file, step = (64, 2) if bits == 128 else (bits, 1)
        while True:
            name = self.stream.next().text
            first = self.entry.registers.get(file, 0)
            if self.stream.accept("<"):
                count = self.stream.integer()
                self.stream.expect(">")
                self.scope.ranges[name] = (bits, first, count)
            else:
                count = 1
                self.scope.registers[name] = Register(name, bits, first)
            self.entry.registers[file] = first + step * count
            if not self.stream.accept(","):
                break
        self.stream.expect(";")

    def _instruction(self) -> None:
        stream = self.stream
        start = stream.position
        guard = self._guard() if stream.accept("@") else None
        token = stream.next()
        if token.kind != "word":
            raise PtxError(f"expected an instruction, found `{token.text}`", token.line)
        opcode, modifiers = _split(token.text)
        call, operands = None, []
        if opcode == "call":
            call = self._call()
            stream.expect(";")
        else:
            operands = self._operands()
        words = tuple([token[1] for token in stream.tokens[start : stream.position - 1]])
        place = Place(token.line, self.location, words)
        known = self.entry.instructions
        known.append(
            Instruction(opcode, modifiers, tuple(operands), guard, place, len(known), call)
        )

    def _line(self, said: Statement) -> None:
        """An instruction that is all of a line: what an operand's text means is asked once."""
        _, text, line, guard_text, name, operand_text = said
        guard, operands, known = None, [], self.scope.operands
        if guard_text is not None:
            guards = self.scope.guards
            guard = guards.get(guard_text)
            if guard is None:
                guard = guards[guard_text] = self._read(guard_text, line, self._guard)
        if operand_text is not None:
            for one in operand_texts(operand_text):
                operand = known.get(one)
                if operand is None:
                    operand = known[one] = self._operand_of(one, line)
                operands.append(operand)
        place = Place(line, self.location, (text,))
        opcode, modifiers = _split(name)
        before = self.entry.instructions
        before.append(Instruction(opcode, modifiers, tuple(operands), guard, place, len(before)))

    def _operand_of(self, text: str, line: int) -> Operand:
        register = self.scope.register(text)
        if register is not None and register.bits < 128:
            return register
        return self._read(text, line, self._operand)

    def _read(self, text: str, line: int, rule: Callable[[], Part]) -> Part:
        """What `rule` makes of a text, all of it."""
        outer, self.stream = self.stream, TokenStream(cut(text, line))
        part = rule()
        if not self.stream.at_end():
            raise PtxError(f"expected `;`, found `{self.stream.next().text}`", line)
        self.stream = outer
        return part

    def _guard(self) -> Register:
        negated = self.stream.accept("!")
        token = self.stream.next()
        register = self.scope.register(token.text)
        if register is None or register.bits != 1:
            raise PtxError(f"`{token.text}` is not a predicate register", token.line)
        return Register(register.name, 1, register.index, negated)

    def _operands(self) -> list[Operand]:
        """Those of an instruction, and the `;` behind them."""
        return [] if self.stream.accept(";") else self._list(";", self._operand)

    def _list(self, end: str, other: Callable[[], Operand]) -> list[Operand]:
        """Operands up to and with `end`; `other` reads those that are more than a register."""
        stream, registers = self.stream, self.scope.registers
        operands: list[Operand] = []
        while True:
            position = stream.position
            known = registers.get(stream.tokens[position].text)  # most operands are
            behind = stream.tokens[position + 1].text
            if known is not None and known.bits < 128 and (behind == "," or behind == end):
                stream.position = position + 1
                operands.append(known)
            else:
                operands.append(other())
            if not stream.accept(","):
                stream.expect(end)
                return operands

    def _operand(self) -> Operand:
        first = self._single()
        if self.stream.accept("|"):
            return Pair(first, self._single())
        return first

    def _single(self) -> Operand:
        stream = self.stream
        token = stream.next()
        if token.kind == "word":
            return self._named(token.text, token.line)
        if token.text == "{":
            return self._vector()
        if token.text == "[":
            return self._address()
        if token.text == "!":
            register = self.scope.register(stream.next().text)
            if register is None:
                raise PtxError("`!` must stand before a predicate register", token.line)
            return Register(register.name, register.bits, register.index, True)
        if token.text in ("-", "+"):
            value = number(stream.next().text)
            return Immediate(-value if token.text == "-" else value)
        if token.kind == "number":
            return Immediate(number(token.text))
        raise PtxError(f"unexpected `{token.text}` in an operand", token.line)

    def _named(self, name: str, line: int) -> Operand:
        register = self.scope.register(name)
        if register is not None:
            return register if register.bits < 128 else halves_of(register)
        if name == "_":
            return Sink()
        if name in SPECIAL_REGISTERS:
            return Special(name)
        if name.startswith("%") and "." in name:
            raise PtxError(f"unsupported: special register or element `{name}`", line)
        if name.startswith("%") and name not in self.entry.variables:
            raise PtxError(f"register `{name}` is not declared", line)
        offset = 0
        if self.stream.peek().text in "+-" and self.stream.peek(1).kind == "number":
            sign = -1 if self.stream.next().text == "-" else 1
            offset = sign * self.stream.integer()
        return Symbol(self.scope.variable(name), offset)

    def _vector(self) -> Vector:
        return Vector(tuple(self._list("}", self._single)))

    def _address(self) -> Address:
        base = self._single()
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), base.offset
        else:
            offset = 0
        while self.stream.peek().text in "+-":
            sign = -1 if self.stream.next().text == "-" else 1
            offset += sign * self.stream.integer()
        coordinates: tuple[Operand, ...] = ()
        if self.stream.accept(","):
            vector = self._single()
            coordinates = vector.elements if isinstance(vector, Vector) else (vector,)
        token = self.stream.expect("]")
        if not isinstance(base, (Register, Symbol, Immediate)):
            raise PtxError("an address needs a register, a variable or a number", token.line)
        return Address(base, offset, coordinates)

    def _call(self) -> Call:
        """`call (returns), callee, (arguments)`, parts in parentheses optional."""
        lists: list[tuple[str, ...]] = []
        callee = ""
        while self.stream.peek().text != ";":
            if self.stream.accept("("):
                names = []
                while not self.stream.accept(")"):
                    names.append(self.scope.variable(self.stream.next().text))
                    self.stream.accept(",")
                lists.append(tuple(names))
            elif not self.stream.accept(","):
                word = self.stream.next().text
                callee = callee or word
                if len(lists) == 0:
                    lists.append(())
        returns = lists[0] if lists else ()
        return Call(callee, returns, lists[1] if len(lists) > 1 else ())

    def _resolve_labels(self) -> None:
        """Every branch must know its target, inside this entry."""
        for instruction in self.entry.instructions:
            if instruction.opcode not in ("bra", "brx"):
                continue
            for operand in instruction.operands:
                if not isinstance(operand, Symbol):
                    continue
                if operand.name not in self.entry.labels and operand.name not in self.entry.tables:
                    raise UnsupportedInstruction("branch to an unknown label", instruction.place)
