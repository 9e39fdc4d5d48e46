"""The decoded record of one PTX instruction and of its operands."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilec.runtime.emulator.errors import Place


@dataclass(slots=True, unsafe_hash=True)  # not frozen: these are made by the thousand
class Register:
    """A virtual register: row `index` of the register file of `bits` (1 for predicates)."""

    name: str
    bits: int
    index: int
    negated: bool = False


@dataclass(frozen=True)
class Immediate:
    """A literal. `value` is an int, or a float; a 0f/0d literal keeps its exact bits as a float."""

    value: int | float


@dataclass(frozen=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """The address of a variable (or a label, or a function name) plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """`[base+offset]`, for tensor copies `[base, {coordinates}]`."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Vector:
    """`{a, b, ...}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """`d|p`: a value and a predicate destination, or the two predicates of setp."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Sink:
    """`_`: a destination that is thrown away."""


Operand = Register | Immediate | Special | Symbol | Address | Vector | Pair | Sink


@dataclass(slots=True, unsafe_hash=True)
class Instruction:
    """One instruction: `opcode` is the text before the first dot, `modifiers` the rest."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    place: Place
    index: int
    call: Call | None = None


@dataclass(frozen=True)
class Call:
    """A call: the callee and the names of its `.param` blocks."""

    callee: str
    returns: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Variable:
    """A declared variable in `space`; `initial` is None where nothing is written into it.

    `words` are (byte offset, symbol, addend) of initialisers that hold the address of a variable.
    """

    name: str
    space: str
    size: int
    alignment: int
    initial: bytes | None = None
    words: tuple[tuple[int, str, int], ...] = ()
    dynamic: bool = False


@dataclass
class Entry:
    """One `.entry`: its parameters, variables, register file sizes, instructions and labels."""

    name: str
    parameters: list[Variable] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    registers: dict[int, int] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    place: Place | None = None


@dataclass
class Module:
    """A parsed PTX text."""

    version: str
    target: str
    entries: dict[str, Entry]
    variables: dict[str, Variable]
