"""ld and st in every state space, scalar and vector (PTX ISA 9.7.9.8 and following)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.checking.global_checker import GlobalChecker, order_of
from tilec.runtime.emulator.checking.sync_checker import Checker
from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.memories.global_memory import GlobalSite
from tilec.runtime.emulator.memories.shared_memory import LocalSite, SharedSite, rows
from tilec.runtime.emulator.memories.spaces import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from tilec.runtime.emulator.numbers.scalar_types import INTEGER_CODE, TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import Address, Instruction, Operand, Symbol
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer, vector_elements

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

SPACES = {
    "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param",
    "param::entry", "param::func",
}  # fmt: skip
_IGNORED = {
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "relaxed", "weak", "acquire",
    "release", "mmio", "cta", "cluster", "gpu", "sys", "L1::evict_normal", "L1::evict_unchanged",
    "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::evict_first", "L2::evict_last",
    "L2::evict_normal", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B",
}  # fmt: skip
WIDE_SCOPES = {"cluster", "gpu", "sys", "gl"}
"""Scopes that hold a whole cluster; membar.gl is membar.gpu."""
SYNCHRONISING = {"volatile", "relaxed", "acquire", "release", "mmio"}
Access = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Form:
    """What the modifiers of a load or store say."""

    space: str
    scalar: ScalarType
    count: int
    strong: bool
    cached_policy: bool

    @property
    def size(self) -> int:
        return self.scalar.size * self.count

    @property
    def bits(self) -> ScalarType:
        """The type used to move the bytes: signed where loads must sign-extend."""
        return self.scalar if self.scalar.kind == "s" else TYPES[f"b{self.scalar.bits}"]


def parse_form(instruction: Instruction, writer: Writer) -> Form:
    names = list(instruction.modifiers)
    if names[-1:] == ["b128"]:  # two halves, see body_parser.py
        names[-1:] = ["v2", "b64"]
    if not names or names[-1] not in TYPES or TYPES[names[-1]].kind == "p":
        raise writer.unsupported("type")
    scalar = TYPES[names.pop()]
    count = 1
    if names and names[-1] in ("v2", "v4", "v8"):
        count = int(names.pop()[1])
    space, strong = "generic", False
    for name in names:
        if name in SPACES and space == "generic":
            space = name
        elif name not in _IGNORED:
            raise writer.unsupported(f"modifier .{name}")
        strong |= name in SYNCHRONISING
    space = {"const": "global", "shared::cta": "shared", "shared::cluster": "shared"}.get(
        space, space
    )
    return Form(space, scalar, count, strong, "L2::cache_hint" in names)


def emit_ld(instruction: Instruction, writer: Writer) -> None:
    form = parse_form(instruction, writer)
    destination, address = instruction.operands[:2]
    if form.space.startswith("param"):
        return _emit_param(instruction, writer, form)
    value = writer.fresh()
    load = _site(writer, form, instruction, Load)
    writer.line(f"{value} = {load}({_arguments(writer, form, address)})")
    elements = vector_elements(destination)
    if len(elements) != form.count:
        raise writer.unsupported("vector length")
    if form.count == 1:
        return writer.assign(elements[0], form.bits, value)
    for position, element in enumerate(elements):
        writer.assign(element, form.bits, f"{value}[..., {position}]")
    return None


def emit_st(instruction: Instruction, writer: Writer) -> None:
    form = parse_form(instruction, writer)
    address, source = instruction.operands[:2]
    if form.space.startswith("param"):
        return _emit_call_param_store(instruction, writer, form)
    elements = vector_elements(source)
    if len(elements) != form.count:
        raise writer.unsupported("vector length")
    unsigned = TYPES[f"b{form.scalar.bits}"]
    values = ", ".join(writer.read(element, unsigned) for element in elements)
    settle_arrivals(instruction, writer)
    store = _site(writer, form, instruction, Store)
    writer.line(f"{store}({_arguments(writer, form, address)}, ({values},))")
    return None


def _arguments(writer: Writer, form: Form, address: Operand) -> str:
    """Addresses, where the lanes' own shared or local memory starts, and the lanes' numbers."""
    lanes = lanes_of(writer) if form.space == "generic" or writer.checked else "None"
    if form.space == "global":
        return f"{writer.address(address, U64)}, None, {lanes}"
    if form.space in ("shared", "local"):
        return f"{writer.address(address, U32)}, {own_base(writer, form.space)}, {lanes}"
    return f"{writer.address(address, U64)}, None, {lanes}"


def own_base(writer: Writer, space: str) -> str:
    """The start of each running lane's shared or local memory in the batch's bytes."""
    if writer.lanes:
        name = f"{space}_base_flat"
        writer.factories[name] = lambda b: getattr(b.machine, f"{space}_base").reshape(-1)
        return f"{name}[L]"
    name = f"{space}_base"
    if space == "shared":
        writer.factories[name] = lambda b: b.cut(b.machine.shared_base)[:1, :, :1]
    else:
        writer.factories[name] = lambda b: b.cut(b.machine.local_base)
    return name


def settle_arrivals(instruction: Instruction, writer: Writer) -> None:
    """What releases to the cluster, or wider, is behind the arrivals of its CTA."""
    words = set(instruction.modifiers)
    if order_of(instruction)[0] and not words.isdisjoint(WIDE_SCOPES):
        work = writer.bind("work", lambda b: b.machine.async_work)
        writer.line(f"{work}.released({lanes_of(writer)})")


def lanes_of(writer: Writer) -> str:
    """The flat numbers of the running lanes."""
    if writer.lanes:
        return "L"
    writer.factories["lane_numbers"] = lambda b: b.lane_numbers
    return "lane_numbers"


def _site(writer: Writer, form: Form, instruction: Instruction, kind: type) -> str:
    return writer.bind("m", lambda b: make_access(b, form, instruction, kind))


class Load:
    """Loads of one instruction from one memory."""

    def __init__(self, locate: Access, memory: np.ndarray, form: Form) -> None:
        self.locate = locate
        self.shift = form.size.bit_length() - 1
        self.rows = rows(memory, form.bits.dtype, form.count)

    def __call__(
        self, address: np.ndarray, base: np.ndarray | None, lanes: np.ndarray | None
    ) -> np.ndarray:
        return self.rows[self.locate(address, base, lanes) >> self.shift]


class Store:
    """Stores of one instruction to one memory."""

    def __init__(self, locate: Access, memory: np.ndarray, form: Form) -> None:
        self.locate = locate
        self.shift = form.size.bit_length() - 1
        self.rows = rows(memory, TYPES[f"b{form.scalar.bits}"].dtype, form.count)
        self.on_collision: _Collision | None = None

    def __call__(
        self,
        address: np.ndarray,
        base: np.ndarray | None,
        lanes: np.ndarray | None,
        values: tuple[np.ndarray, ...],
    ) -> None:
        where = self.locate(address, base, lanes) >> self.shift
        if len(values) == 1:
            row = values[0]
        else:
            row = np.empty((*where.shape, len(values)), self.rows.dtype)
            for position, value in enumerate(values):
                row[..., position] = value
        self.rows[where] = row
        if self.on_collision is not None:
            self.on_collision(self.rows[where], row)


class _Collision:
    """Reports warps that wrote one cell together, unless they all wrote the same value."""

    def __init__(self, checker: Checker | GlobalChecker, site: int) -> None:
        self.checker = checker
        self.site = site

    def __call__(self, stored: np.ndarray, written: np.ndarray) -> None:
        if self.checker.collision and (stored != written).any():
            self.checker.collided(self.site)


class _Generic:
    """A generic access: lanes may point into different state spaces."""

    def __init__(self, parts: dict[int, tuple[Callable, np.ndarray | None]]) -> None:
        self.parts = parts  # window -> (access, own base of every lane)

    def __call__(
        self, address: np.ndarray, _: None, lanes: np.ndarray, *values: tuple[np.ndarray, ...]
    ) -> np.ndarray | None:
        result = None
        window = np.where(
            (address >= LOCAL_WINDOW) & (address < SHARED_WINDOW + WINDOW_SIZE),
            address & np.uint64(~(WINDOW_SIZE - 1) & 0xFFFF_FFFF_FFFF_FFFF),
            np.uint64(0),
        )
        for start, (access, bases) in self.parts.items():
            chosen = window == start
            if not chosen.any():
                continue
            part, own = address[chosen], None
            if bases is not None:
                part = (part - np.uint64(start)).astype(np.uint32)
                own = bases[lanes[chosen]]
            picked = [tuple(_pick(v, chosen) for v in value) for value in values]
            loaded = access(part, own, lanes[chosen], *picked)
            if loaded is not None:
                if result is None:
                    result = np.zeros((*address.shape, *loaded.shape[1:]), loaded.dtype)
                result[chosen] = loaded
        return result


def _pick(value: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return value[chosen] if np.ndim(value) else value


def _locate_global(machine: Machine, instruction: Instruction, form: Form, store: bool) -> Access:
    site = GlobalSite(machine.launch.memory, form.size, instruction.place, store)
    checker, order = machine.launch.global_checker, order_of(instruction)
    if checker is None:
        return lambda address, _, __: site.locate(address)

    def locate(address: np.ndarray, _: None, lanes: np.ndarray) -> np.ndarray:
        offsets = site.locate(address)
        if form.strong:
            cta = machine.first_cta + lanes // 32 % machine.cta_count
            checker.flag(offsets, cta, order, instruction.opcode)
        else:
            checker.access(offsets, form.size, lanes, store, instruction.index)
        return offsets

    return locate


def _locate_shared(machine: Machine, instruction: Instruction, form: Form, store: bool) -> Access:
    site = SharedSite(machine, form.size, instruction.place)
    checker = machine.checker
    if checker is None:
        return lambda address, base, _: site.locate(address, base)

    def locate(address: np.ndarray, base: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        offsets = site.locate(address, base)
        checker.shared(offsets, form.size, lanes, store, instruction.index)
        return offsets

    return locate


def make_access(binding: Binding, form: Form, instruction: Instruction, kind: type) -> Callable:
    """The callable that performs one load or store on this machine."""
    machine, store = binding.machine, kind is Store
    if form.space == "global":
        locate = _locate_global(machine, instruction, form, store)
        access = kind(locate, machine.launch.memory.bytes, form)
        if store and machine.launch.global_checker is not None and not form.strong:
            access.on_collision = _Collision(machine.launch.global_checker, instruction.index)
        return access
    if form.space == "shared":
        access = kind(_locate_shared(machine, instruction, form, store), machine.shared, form)
        if store and machine.checker is not None:
            access.on_collision = _Collision(machine.checker, instruction.index)
        return access
    if form.space == "local":
        site = LocalSite(machine, form.size, instruction.place)
        return kind(lambda address, base, _: site.locate(address, base), machine.local, form)
    parts = {
        0: (make_access(binding, _in_space(form, "global"), instruction, kind), None),
        SHARED_WINDOW: (
            make_access(binding, _in_space(form, "shared"), instruction, kind),
            machine.shared_base.reshape(-1),
        ),
        LOCAL_WINDOW: (
            make_access(binding, _in_space(form, "local"), instruction, kind),
            machine.local_base.reshape(-1),
        ),
    }
    return _Generic(parts)


def _in_space(form: Form, space: str) -> Form:
    return Form(space, form.scalar, form.count, form.strong, form.cached_policy)


def _emit_param(instruction: Instruction, writer: Writer, form: Form) -> None:
    """Kernel parameters are the same in every lane: a constant, unless the address is computed."""
    destination, address = instruction.operands
    if not isinstance(address, Address):
        raise writer.unsupported("an address in brackets is expected")
    elements = vector_elements(destination)
    if isinstance(address.base, Symbol):
        if writer.is_call_block(address.base.name):
            return _emit_call_param_load(writer, form, address, elements)
        for position, element in enumerate(elements):
            offset = address.offset + position * form.scalar.size
            writer.assign(element, form.bits, _parameter(writer, form, address.base.name, offset))
        return None
    as_global = _in_space(form, "global")
    value = writer.fresh()
    load = _site(writer, as_global, instruction, Load)
    writer.line(f"{value} = {load}({_arguments(writer, as_global, address)})")
    if form.count == 1:
        return writer.assign(elements[0], form.bits, value)
    for position, element in enumerate(elements):
        writer.assign(element, form.bits, f"{value}[..., {position}]")
    return None


def _parameter(writer: Writer, form: Form, name: str, offset: int) -> str:
    dtype, place = form.bits.dtype, writer.instruction.place

    def read(binding: Binding) -> np.generic:
        raw = binding.machine.launch.parameter_bytes(name)
        if offset < 0 or offset + dtype.itemsize > len(raw):
            raise EmulatorError(f"read beyond the end of parameter {name}", place)
        return np.frombuffer(raw, dtype, 1, offset)[0]

    return writer.bind("param", read)


def _emit_call_param_store(instruction: Instruction, writer: Writer, form: Form) -> None:
    """st.param of a call block: kept as Python variables until the call."""
    address, source = instruction.operands
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        raise writer.unsupported("st.param to a computed address")
    for position, element in enumerate(vector_elements(source)):
        offset = address.offset + position * form.scalar.size
        block = writer.call_block(address.base.name)
        value = writer.broadcast(writer.read(element, TYPES[f"b{form.scalar.bits}"]), element)
        writer.line(f"{block}[{offset}] = np.array({value})")


def _emit_call_param_load(
    writer: Writer, form: Form, address: Address, elements: tuple[Operand, ...]
) -> None:
    block = writer.call_block(address.base.name)  # type: ignore[union-attr]
    for position, element in enumerate(elements):
        offset = address.offset + position * form.scalar.size
        value = f"{block}[{offset}]"
        code = INTEGER_CODE[form.scalar.bits]
        writer.assign(element, TYPES[f"b{form.scalar.bits}"], f"{value}.view('{code}')")


RULES = {"ld": emit_ld, "ldu": emit_ld, "st": emit_st}
