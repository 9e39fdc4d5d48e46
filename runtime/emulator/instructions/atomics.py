"""atom and red on global and shared memory, scalar, packed and vector (PTX ISA 9.7.13.4-7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilec.runtime.emulator.checking.global_checker import order_of
from tilec.runtime.emulator.instructions.memory import lanes_of, own_base, settle_arrivals
from tilec.runtime.emulator.memories.global_memory import GlobalSite
from tilec.runtime.emulator.memories.shared_memory import SharedSite, rows
from tilec.runtime.emulator.memories.spaces import SHARED_WINDOW, WINDOW_SIZE
from tilec.runtime.emulator.numbers.scalar_types import TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer, vector_elements

_ORDERS = {
    "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz",
    "L2::cache_hint", "async",
}  # fmt: skip
_OPERATIONS = {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"}
_PACKED = {"f16x2": "f16", "bf16x2": "bf16"}


def emit_atomic(instruction: Instruction, writer: Writer) -> None:
    names = list(instruction.modifiers)
    kind = names.pop()
    space, operation, lanes = "generic", "", 1
    for name in names:
        if name in ("global", "shared", "shared::cta", "shared::cluster"):
            space = name.partition("::")[0]
        elif name in _OPERATIONS and not operation:
            operation = name
        elif name in ("v2", "v4", "v8"):
            lanes = int(name[1])
        elif name not in _ORDERS:
            raise writer.unsupported(f"modifier .{name}")
    if not operation or (kind not in TYPES and kind not in _PACKED) or kind == "b128":
        raise writer.unsupported("operation or type")
    form = AtomicForm(writer, operation, kind, lanes, space)
    _emit(instruction, writer, form)


class AtomicForm:
    """An atomic operation and the types it works on."""

    def __init__(self, writer: Writer, operation: str, kind: str, lanes: int, space: str) -> None:
        self.operation = operation
        self.space = space
        self.lanes = lanes
        self.register = TYPES[kind]
        self.element = TYPES[_PACKED.get(kind, kind)]
        self.packed = 2 if kind in _PACKED else 1
        float_type = self.element.kind == "f"
        if float_type and operation not in ("add", "min", "max"):
            raise writer.unsupported(f"{operation} on .{kind}")
        if operation in ("inc", "dec") and kind != "u32":
            raise writer.unsupported(f"{operation} on .{kind}")

    @property
    def size(self) -> int:
        return self.register.size * self.lanes

    @property
    def bits(self) -> ScalarType:
        return TYPES[f"b{self.register.bits}"]


def _emit(instruction: Instruction, writer: Writer, form: AtomicForm) -> None:
    operands = list(instruction.operands)
    destination = operands.pop(0) if instruction.opcode == "atom" else None
    address, *values = operands
    values = values[: 2 if form.operation == "cas" else 1]
    groups = [vector_elements(value) for value in values]
    if any(len(group) != form.lanes for group in groups):
        raise writer.unsupported("vector length")
    flat = [
        writer.broadcast(writer.read(element, form.bits), element)
        for group in groups
        for element in group
    ]
    access = writer.bind("atom", lambda b: Atomic(b, instruction, form))
    if form.space == "shared":
        where = f"{writer.address(address, U32)}, {own_base(writer, 'shared')}"
    else:
        base = own_base(writer, "shared")
        where = f"{writer.address(address, U64)}, {base}"
    result = writer.fresh()
    settle_arrivals(instruction, writer)
    writer.line(f"{result} = {access}({where}, {lanes_of(writer)}, ({', '.join(flat)},))")
    if destination is not None:
        for position, element in enumerate(vector_elements(destination)):
            writer.assign(element, form.bits, f"{result}[..., {position}]")


class Atomic:
    """One atomic instruction. Lanes that hit the same address take turns in lane order."""

    def __init__(self, binding: Binding, instruction: Instruction, form: AtomicForm) -> None:
        machine = binding.machine
        self.form = form
        self.shape = binding.zeros.shape
        self.shared_site = SharedSite(machine, form.size, instruction.place)
        self.global_site = GlobalSite(machine.launch.memory, form.size, instruction.place, True)
        dtype = form.bits.dtype
        self.shared_rows = rows(machine.shared, dtype, 1)
        self.global_rows = machine.launch.memory.rows(dtype, 1)
        self.combine = _combiner(form)
        self.machine = machine
        self.site = instruction.index
        self.order = order_of(instruction)
        self.opcode = instruction.opcode

    def __call__(
        self, address: np.ndarray, base: np.ndarray, lanes: np.ndarray, values: tuple
    ) -> np.ndarray:
        base = np.broadcast_to(base, address.shape)
        if self.form.space == "generic":
            shared = (address >= SHARED_WINDOW) & (address < SHARED_WINDOW + WINDOW_SIZE)
            if shared.all():
                address = (address - np.uint64(SHARED_WINDOW)).astype(np.uint32)
            elif shared.any():
                return self._mixed(address, base, lanes, values, shared)
            return self._run(address, base, lanes, values, bool(shared.all()))
        return self._run(address, base, lanes, values, self.form.space == "shared")

    def _mixed(self, address, base, lanes, values, shared) -> np.ndarray:
        result = np.zeros((*address.shape, self.form.lanes), self.global_rows.dtype)
        for part in (shared, ~shared):
            picked = tuple(value[part] for value in values)
            result[part] = self(address[part], base[part], lanes[part], picked)
        return result

    def _run(
        self, address: np.ndarray, base: np.ndarray, lanes: np.ndarray, values: tuple, shared: bool
    ) -> np.ndarray:
        if shared:
            offsets, memory = self.shared_site.locate(address, base), self.shared_rows
        else:
            offsets, memory = self.global_site.locate(address), self.global_rows
        if self.machine.checker is not None:
            self._observe(offsets, lanes, shared)
        index = offsets.reshape(-1) // self.form.register.size
        flat = [np.broadcast_to(value, address.shape).reshape(-1) for value in values]
        old = np.empty((index.size, self.form.lanes), memory.dtype)
        for turn in turns(index):
            for k in range(self.form.lanes):
                where = index[turn] + k
                before = memory[where]
                old[turn, k] = before
                memory[where] = self.combine(before, *(v[turn] for v in flat[k :: self.form.lanes]))
        return old.reshape(*address.shape, self.form.lanes)

    def _observe(self, offsets: np.ndarray, lanes: np.ndarray, shared: bool) -> None:
        checker, everywhere = self.machine.checker, self.machine.launch.global_checker
        if shared and checker is not None:
            checker.atomic(offsets, self.form.size, lanes, self.site)
        elif everywhere is not None:
            everywhere.access(offsets, self.form.size, lanes, True, self.site, atomic=True)
            cta = self.machine.first_cta + lanes // 32 % self.machine.cta_count
            everywhere.flag(offsets, cta, self.order, self.opcode)


def turns(index: np.ndarray) -> list[np.ndarray]:
    """Positions split so that no turn has one index twice; equal ones in order."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    fresh = np.ones(index.size, bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    if fresh.all():
        return [np.arange(index.size)]
    starts = np.flatnonzero(fresh)
    rank = np.arange(index.size) - np.repeat(starts, np.diff(np.append(starts, index.size)))
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.cumsum(np.bincount(rank))[:-1]
    return np.split(order[by_rank], bounds)


def _combiner(form: AtomicForm) -> Callable[..., np.ndarray]:
    """old, operand(s) -> new, on the raw bits."""
    operation, dtype = form.operation, form.element.dtype
    if operation == "exch":
        return lambda old, new: new
    if operation == "cas":
        return lambda old, compare, new: np.where(old == compare, new, old)
    if operation == "inc":
        return lambda old, top: np.where(old >= top, np.uint32(0), old + np.uint32(1))
    if operation == "dec":
        return lambda old, top: np.where((old == 0) | (old > top), top, old - np.uint32(1))
    ufunc = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[operation]  # fmt: skip
    if form.element.kind == "f" and operation != "add":
        ufunc = np.fmin if operation == "min" else np.fmax
    bits = form.bits.dtype

    def combine(old: np.ndarray, value: np.ndarray) -> np.ndarray:
        pair = np.ascontiguousarray(old).view(dtype), np.ascontiguousarray(value).view(dtype)
        return np.ascontiguousarray(ufunc(*pair).astype(dtype)).view(bits)

    return combine


RULES = {"atom": emit_atomic, "red": emit_atomic}
