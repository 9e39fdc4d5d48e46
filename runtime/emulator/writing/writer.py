"""Writes the Python code of a basic block: operands become NumPy views, instructions lines.

A block exists in two variants. The *rectangle* variant runs for all lanes of a range of warps and a
range of CTAs: registers are views of shape (warps, CTAs, 32). The *lanes* variant runs for any set
of lanes, given as the array `L` of flat lane numbers: registers are gathered by `row[L]`.
Names that depend on the launch are made by factories, called when the block is bound to a machine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.runtime.emulator.errors import UnsupportedInstruction
from tilec.runtime.emulator.numbers.scalar_types import INTEGER_CODE, SIGNED_CODE, TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from tilec.runtime.emulator.writing.binding import Binding

Factory = Callable[["Binding"], Any]
U64 = TYPES["u64"]
U32 = TYPES["u32"]


class Writer:
    """Collects the lines and the names of one instruction in one variant of a block.

    `mark`: what tells its names from those of the block's other instructions.
    """

    def __init__(self, lanes: bool, checked: bool, entry: Entry) -> None:
        self.lanes = lanes
        self._checked = checked
        self.depends_on_checks = False
        self.entry = entry
        self.lines: list[str] = []
        self.factories: dict[str, Factory] = {"np": lambda _: np}
        self.indent = "    "
        self.selector = "[L]"
        self.written: set[tuple[int, int]] = set()
        self.watched: frozenset[int] = frozenset()  # 32-bit registers of matrix products
        self.reusable: dict[str, tuple[tuple[object, ...], frozenset[tuple[int, int]]]] = {}
        self.instruction: Instruction
        self.mark = ""
        self._counter = 0

    @property
    def checked(self) -> bool:
        """Is the code for check mode? Once asked, it is not the code of the other modes."""
        self.depends_on_checks = True
        return self._checked

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def fresh(self) -> str:
        self._counter += 1
        return f"t{self.mark}_{self._counter}"

    def unsupported(self, reason: str) -> UnsupportedInstruction:
        return UnsupportedInstruction(reason, self.instruction.place)

    def bind(self, hint: str, factory: Factory) -> str:
        """A name whose value `factory` makes when the block is bound to a launch."""
        self._counter += 1
        name = f"{hint}_{self.mark}_{self._counter}"
        self.factories[name] = factory
        return name

    def function(self, function: Callable[..., Any]) -> str:
        name = f"f_{function.__module__.rpartition('.')[2]}_{function.__name__}"
        self.factories[name] = lambda _: function
        return name

    def constant(self, value: Any) -> str:
        return self.bind("k", lambda _: value)

    # -- reading -------------------------------------------------------------------------------

    def read(self, operand: Operand, scalar: ScalarType) -> str:
        """An expression for the operand's value in every running lane, of dtype scalar.dtype."""
        if isinstance(operand, Register):
            return self._read_register(operand, scalar)
        if isinstance(operand, Immediate):
            return self.constant(immediate(operand.value, scalar))
        if isinstance(operand, Special):
            return self._read_special(operand, scalar)
        if isinstance(operand, Symbol):
            name, offset, dtype = operand.name, operand.offset, scalar.dtype
            if self.lanes:
                return self.bind("a", lambda b: b.flat_symbol(name, offset, dtype)) + self.selector
            return self.bind("a", lambda b: b.symbol(name, offset, dtype))
        raise self.unsupported(f"operand {type(operand).__name__} where a value is expected")

    def _read_register(self, register: Register, scalar: ScalarType) -> str:
        if scalar.kind == "p" or register.bits == 1:
            if scalar.kind != "p" or register.bits != 1:
                raise self.unsupported("a predicate and a value are mixed")
            value = self.row(register, "p")
            return f"(~{value})" if register.negated else value
        if register.bits == scalar.bits:
            return self.row(register, scalar.code)
        if register.bits < scalar.bits:
            raise self.unsupported(f"register {register.name} is narrower than .{scalar.name}")
        wide = self.row(register, INTEGER_CODE[register.bits])
        narrow = f"{wide}.astype(np.uint{scalar.bits})"
        return f"{narrow}.view({self._dtype(scalar)})" if scalar.kind in "fs" else narrow

    def _dtype(self, scalar: ScalarType) -> str:
        name = f"dt_{scalar.code}"
        dtype = scalar.dtype
        self.factories[name] = lambda _: dtype
        return name

    def _read_special(self, special: Special, scalar: ScalarType) -> str:
        name = special.name
        dtype = scalar.dtype
        if name in ("%clock", "%clock64", "%clock_hi") or name.startswith("%globaltimer"):
            clock = self.bind("clock", lambda b: b.machine.clock)
            return f"{self._dtype(scalar)}.type({clock}() & {(1 << min(scalar.bits, 62)) - 1})"
        if self.lanes:
            return self.bind("s", lambda b: b.flat_special(name, dtype)) + self.selector
        return self.bind("s", lambda b: b.special(name, dtype))

    def row(self, register: Register, code: str) -> str:
        """The register's row seen as dtype `code`; in the lanes variant, gathered."""
        name = self._row_name(register, code)
        return name + self.selector if self.lanes else name

    def _row_name(self, register: Register, code: str) -> str:
        name, factory = row_of(register.bits, register.index, code, self.lanes)
        self.factories[name] = factory
        return name

    def zeros(self) -> str:
        """uint64 zeros of the running lanes' shape: broadcasts a scalar address."""
        if self.lanes:
            return "np.zeros(L.size, np.uint64)"
        self.factories["zeros64"] = lambda b: b.zeros
        return "zeros64"

    def broadcast(self, expression: str, operand: Operand) -> str:
        """The expression as an array over the running lanes even if the operand is uniform."""
        if isinstance(operand, (Register, Special)):
            return expression
        return f"np.broadcast_to({expression}, {self.zeros()}.shape)"

    # -- writing -------------------------------------------------------------------------------

    def assign(self, operand: Operand, scalar: ScalarType, expression: str) -> None:
        """Write an expression of dtype scalar.dtype to a register, widened if it is wider."""
        if isinstance(operand, Sink):
            return
        target, value = self._target(operand, scalar, expression)
        self.line(f"{target}[{'L' if self.lanes else '...'}] = {value}")

    def _target(self, operand: Operand, scalar: ScalarType, expression: str) -> tuple[str, str]:
        if not isinstance(operand, Register):
            raise self.unsupported(f"{type(operand).__name__} as a destination")
        if (scalar.kind == "p") != (operand.bits == 1):
            raise self.unsupported("a predicate and a value are mixed")
        if operand.bits < scalar.bits:
            raise self.unsupported(f"register {operand.name} is narrower than .{scalar.name}")
        self.written.add((operand.bits, operand.index))
        if operand.bits == scalar.bits or scalar.kind == "p":
            return self._row_name(operand, scalar.code), expression
        if scalar.kind == "s":
            return self._row_name(operand, SIGNED_CODE[operand.bits]), expression
        if scalar.kind == "f":
            expression = f"({expression}).view(np.uint{scalar.bits})"
        return self._row_name(operand, INTEGER_CODE[operand.bits]), expression

    def apply(self, ufunc: str, destination: Operand, scalar: ScalarType, *values: str) -> None:
        """destination = np.<ufunc>(*values), computed in place where that is possible."""
        arguments = ", ".join(values)
        direct = isinstance(destination, Register) and destination.bits == scalar.bits
        if self.lanes or not direct:
            self.assign(destination, scalar, f"np.{ufunc}({arguments})")
            return
        assert isinstance(destination, Register)
        self.written.add((destination.bits, destination.index))
        name = f"u_{ufunc}"  # names and positions alone: quicker to compile and to call
        self.factories[name] = lambda _: getattr(np, ufunc)
        self.line(f"{name}({arguments}, {self._row_name(destination, scalar.code)})")

    # -- addresses -----------------------------------------------------------------------------

    def address(self, address: Operand, scalar: ScalarType = U64) -> str:
        """The byte address of `[base+offset]` in every running lane."""
        if not isinstance(address, Address):
            raise self.unsupported("an address in brackets is expected")
        base, offset = address.base, address.offset
        if isinstance(base, Symbol):
            value = self.read(Symbol(base.name, offset), scalar)
            if self.lanes:
                return value
            return f"({self.zeros()} + {value}).astype({self._dtype(scalar)})"
        if isinstance(base, Immediate):
            value = self.constant(immediate(int(base.value) + offset, scalar))
            return f"({self.zeros()} + {value}).astype({self._dtype(scalar)})"
        wide = TYPES[f"u{base.bits}"]
        value = self.read(base, wide)
        if offset:
            value = f"({value} + {self.constant(immediate(offset, wide))})"
        return value if wide.bits == scalar.bits else f"{value}.astype({self._dtype(scalar)})"

    def reuse(self, name: str, key: tuple[object, ...], registers: Iterable[Operand]) -> None:
        """Say that the value just assigned to `name` depends on nothing but these registers.

        A later instruction of the block with the same key may take it over (see blocks.py).
        """
        if not self.lanes and self.indent == "    ":
            rows = [(r.bits, r.index) for r in registers if isinstance(r, Register)]
            self.reusable[name] = (key, frozenset(rows))

    # -- calls and flags -----------------------------------------------------------------------

    def is_call_block(self, name: str) -> bool:
        """Is `name` a .param variable of a call, not a kernel parameter?"""
        variable = self.entry.variables.get(name)
        return variable is not None and variable.space == "call"

    def call_block(self, name: str) -> str:
        """The dictionary byte offset -> values of a .param variable of a call."""
        return self.bind("block", lambda b: b.machine.call_blocks.setdefault(name, {}))

    def flag_row(self) -> str:
        """The carry flag of the running lanes (add.cc and friends)."""
        if self.lanes:
            self.factories["flat_carry"] = lambda b: b.machine.carry.reshape(-1)
            return "flat_carry[L]"
        self.factories["carry"] = lambda b: b.cut(b.machine.carry)
        return "carry"

    def assign_flag(self, expression: str) -> None:
        self.flag_row()
        self.line(f"{'flat_carry[L]' if self.lanes else 'carry[...]'} = {expression}")

    # -- whole warps ---------------------------------------------------------------------------

    def begin_warps(self) -> None:
        """Before a warp instruction: in the lanes variant find the warps that take part."""
        if self.lanes:
            self.factories["f_warps_of"] = lambda _: warps_of
            self.line("WI, LI = f_warps_of(L)")

    def read_warps(self, operand: Operand, scalar: ScalarType) -> str:
        """The operand's values as an array (warps, 32); lanes that do not run hold anything."""
        if isinstance(operand, Immediate):
            value = self.read(operand, scalar)
            return f"np.full(({self.warp_count()}, 32), {value})"
        if isinstance(operand, Symbol) and not self.lanes:
            value = f"{self.read(operand, scalar)} + {self.zeros()}.astype({self._dtype(scalar)})"
            return f"({value}).reshape(-1, 32)"
        if not self.lanes:
            return f"{self.read(operand, scalar)}.reshape(-1, 32)"
        self.selector = ".reshape(-1, 32)[WI]"
        value = self.read(operand, scalar)
        self.selector = "[L]"
        return value

    def warp_count(self) -> str:
        if self.lanes:
            return "WI.size"
        return self.bind("n", lambda b: b.zeros.size // 32)

    def active_lanes(self) -> str:
        """A (warps, 32) boolean array of the lanes that run."""
        if self.lanes:
            self.factories["f_active_of"] = lambda _: active_of
            return "f_active_of(WI, LI)"
        return self.bind("all", lambda b: np.ones((b.zeros.size // 32, 32), np.bool_))

    def assign_warps(self, operand: Operand, scalar: ScalarType, expression: str) -> None:
        """Write a (warps, 32) array; only running lanes receive it."""
        if isinstance(operand, Sink):
            return
        if self.lanes:
            self.assign(operand, scalar, f"({expression}).reshape(-1)[LI]")
            return
        target, value = self._target(operand, scalar, expression)
        self.line(f"{target}[...] = ({value}).reshape({target}.shape)")

    # -- predication ---------------------------------------------------------------------------

    def guarded(self, guard: Register, emit: Callable[[], None]) -> None:
        """Emit an instruction for the lanes whose guard holds."""
        mask = self.fresh()
        self.line(f"{mask} = {self.read(guard, TYPES['pred'])}")
        outer, saved = self.indent, f"{mask}_L"
        if self.lanes:
            self.line(f"{saved} = L; L = L[{mask}]")
            self.line("if L.size:")
            self.indent = outer + "    "
            emit()
            self.indent = outer
            self.line(f"L = {saved}")
            return
        size = self.bind("size", lambda b: b.zeros.size)
        numbers = "lane_numbers"
        self.factories[numbers] = lambda b: b.lane_numbers
        self.line(f"{mask}_n = np.count_nonzero({mask})")
        self.line(f"if {mask}_n == {size}:")
        self.indent = outer + "    "
        emit()
        self.indent = outer
        self.line(f"elif {mask}_n:")
        self.indent = outer + "    "
        self.line(f"L = {numbers}[{mask}]")
        self.lanes = True
        emit()
        self.lanes = False
        self.indent = outer


@functools.cache
def row_of(bits: int, index: int, code: str, lanes: bool) -> tuple[str, Factory]:
    """The name of a register's row seen as dtype `code`, and what makes it."""
    if lanes:
        return f"w{bits}_{index}_{code}", lambda b: b.flat_row(bits, index, code)
    return f"r{bits}_{index}_{code}", lambda b: b.row(bits, index, code)


def immediate(value: int | float, scalar: ScalarType) -> Any:
    """A literal as a NumPy scalar of the type; floats keep their bits in bit types."""
    dtype = scalar.dtype
    if isinstance(value, float):
        if scalar.kind == "f":
            return dtype.type(value)
        raw = np.float32(value) if scalar.bits == 32 else np.float64(value)
        return raw.view(dtype)
    if scalar.kind == "f":
        if scalar.bits == 16:  # 16-bit float immediates are written as their bits
            return np.uint16(value & 0xFFFF).view(dtype)
        return dtype.type(value)
    if scalar.kind == "p":
        return np.bool_(value)
    return np.array(value & ((1 << scalar.bits) - 1), np.uint64).astype(dtype)[()]


def warps_of(lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The warps that hold `lanes`, and where each lane stands in the (warps, 32) array of them."""
    warps, inverse = np.unique(lanes >> 5, return_inverse=True)
    return warps, inverse.reshape(-1) * 32 + (lanes & 31)


def active_of(warps: np.ndarray, positions: np.ndarray) -> np.ndarray:
    active = np.zeros((warps.size, 32), np.bool_)
    active.reshape(-1)[positions] = True
    return active


def vector_elements(operand: Operand) -> tuple[Operand, ...]:
    """The operands of a vector, or the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)
