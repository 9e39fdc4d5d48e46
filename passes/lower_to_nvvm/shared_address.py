"""Addresses in shared memory: the CTA's base, and where each register of a tile lies in a
buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import gcd, prod

from mlir import ir

from tilec.dialects.def_use import made_by
from tilec.dialects.gpu_tile.mbarrier import BARRIER_BYTES
from tilec.dialects.gpu_tile.ring import RingPositionOp
from tilec.hardware.layout import Layout, Mode
from tilec.hardware.matrix_descriptor import ADDRESS_LIMIT
from tilec.hardware.shared_layout import swizzled
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.layouts.runs import shared_width
from tilec.passes.lower_to_nvvm.access import inline_asm, storage_bits
from tilec.passes.lower_to_nvvm.device_text import enclosing
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import Barriers, Buffer, moved_pointer
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import create

SHARED = "shared"
"""Name of the module's dynamic shared memory, where the kernel is not called so itself."""
SHARED_ALIGNMENT = 1024
"""Where a 128-byte swizzle's pattern starts anew, so offsets swizzle like addresses."""


def shared_base(state: Lowering) -> ir.Value:
    """Pointer to the CTA's dynamic shared memory, or to what this thread's program has of it."""
    if state.shared is None:
        kind = ir.Type.parse("!llvm.ptr<3>")
        with state.prologue, ir.Location.unknown():
            kernel = enclosing(state.entry.ref_operation.operation, "llvm.func")
            name = ir.FlatSymbolRefAttr.get(shared_name(kernel))
            state.shared = create("llvm.mlir.addressof", [], kind, global_name=name)
            if state.programs_per_cta > 1:
                offset = state.arith("muli", state.program_in_cta(), state.program_bytes)
                state.shared = byte_pointer(state.shared, offset)
    return state.shared


def own_base(state: Lowering) -> ir.Value:
    """The address (i32) of the CTA's dynamic shared memory as matrix descriptors count it: in a
    cluster the upper bits of a pointer say in which CTA it points."""
    address = create("llvm.ptrtoint", [shared_base(state)], state.i32)
    if prod(state.cluster) == 1:
        return address
    return state.arith("andi", address, ADDRESS_LIMIT - 1)


def shared_name(function: ir.Operation) -> str:
    """What the dynamic shared memory of this kernel is called; no kernel's name has a `$`."""
    taken = ir.StringAttr(function.attributes["sym_name"]).value == SHARED
    return f"{SHARED}$" if taken else SHARED


def declare_shared(function: ir.Operation) -> None:
    """The dynamic shared memory as an external array in front of `function` (`.extern .shared`)."""
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    ir.Operation.create(
        "llvm.mlir.global",
        attributes={
            "sym_name": ir.StringAttr.get(shared_name(function)),
            "global_type": ir.TypeAttr.get(ir.Type.parse("!llvm.array<0 x i8>")),
            "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            "addr_space": ir.IntegerAttr.get(i32, 3),
            "alignment": ir.IntegerAttr.get(i64, SHARED_ALIGNMENT),
        },
        regions=1,
        ip=ir.InsertionPoint(function),
    )


class Access:
    """Addresses of one tile's registers in one buffer.

    Plain rows and columns are linear: one base per thread, a constant per register. So are panels
    and a swizzle where thread and register set different bits of coordinates and addresses: XOR
    distributes over disjoint bits, and whole periods of the pattern pass it by. Everything else
    computes each address.

    `width`: elements that are accessed at a register's address, along the dimension of the layout's
    first values; without it as many as the layouts allow.
    """

    def __init__(
        self, buffer: Buffer, layout: Layout, state: Lowering, width: int | None = None
    ) -> None:
        self.state = state
        self.buffer = buffer
        rank = len(buffer.type.shape)
        self.element_bytes = storage_bits(buffer.type.element, state) // 8
        self.coordinates = layout.value_coordinates(rank)
        widest = shared_width(buffer.type.layout, layout, rank, self.element_bytes)
        self._fixed = [constant_of(o) for o in buffer.origin]
        # A part of a buffer, of a join of 1 and 64 elements say, may begin between two vectors.
        first = buffer.type.layout.offset([at or 0 for at in self._fixed])
        self.width = gcd(widest, first) if width is None else width
        self._thread = state.thread_coordinates(layout, rank)
        self._vector_dim = layout.values[0].dim if layout.values else -1
        self._phantoms = layout.has_phantoms(buffer.type.shape)
        if self._phantoms and buffer.type.shape[self._vector_dim] % self.width:
            self.width = 1  # a vector must not straddle the tile's edge
        self._disjoint: dict[int, ir.Value] = {}
        self._base = self._start() if self._is_linear(layout) else None

    @cached_property
    def start(self) -> list[ir.Value]:
        """Buffer coordinates (i32) of this thread's register 0."""
        state = self.state
        pairs = zip(self.buffer.origin, self._thread, strict=True)
        return [state.arith("addi", origin, at) for origin, at in pairs]

    def pointer(self, register: int) -> ir.Value:
        """Shared pointer to a register's element."""
        state, at = self.state, self.coordinates[register]
        if self._base is None:
            moved = [self._coordinate(d, c) for d, c in enumerate(at)]
            address = buffer_address(self.buffer, moved, state)
            return byte_pointer(shared_base(state), address)
        base, step = self._base, self._step(at)
        swizzle = self.buffer.type.layout.swizzle
        if swizzle is not None:
            low = step % (1 << sum(swizzle))
            base, step = self._with_bits(swizzled(low, swizzle)), step - low
        pointer = byte_pointer(shared_base(state), base)
        return byte_pointer(pointer, state.i32_constant(step)) if step else pointer

    def _is_linear(self, layout: Layout) -> bool:
        shared = self.buffer.type.layout
        in_panels = any(len(parts) > 1 for parts in shared.dims)
        if self._phantoms or (in_panels and not self._adds_up(layout)):
            return False
        if shared.swizzle is None:
            return True
        period, taken = 1 << sum(shared.swizzle), 0
        for mode in layout.threads:
            for digit in _bits(mode) if mode.stride else ():
                at = [digit if d == mode.dim else 0 for d in range(len(shared.dims))]
                bit = shared.offset(at) * self.element_bytes % period
                if bit & (bit - 1) or taken & bit:
                    return False
                taken |= bit
        known = None not in self._fixed
        return known and not any(self._step(at) % period & taken for at in self.coordinates)

    def _adds_up(self, layout: Layout) -> bool:
        """Whether no sum of a thread's and a register's coordinates carries over from one place in
        a panel, whose sizes are powers of two, to another."""
        shared = self.buffer.type.layout
        taken = [0] * len(shared.dims)
        for mode in layout.threads:
            for digit in _bits(mode) if mode.stride else ():
                if digit & (digit - 1) or taken[mode.dim] & digit:
                    return False
                taken[mode.dim] |= digit
        sizes = [size for parts in shared.dims for size, _ in parts[:-1]]
        return (
            not any(size & (size - 1) for size in sizes)
            and not any(
                (c + fixed) & bits
                for at in self.coordinates
                for c, fixed, bits in zip(at, (f or 0 for f in self._fixed), taken, strict=True)
            )
            and None not in self._fixed
        )

    def _step(self, at: tuple[int, ...]) -> int:
        """Bytes from a thread's part to a register, constant origins included."""
        moved = [c + (fixed or 0) for c, fixed in zip(at, self._fixed, strict=True)]
        return self.buffer.type.layout.offset(moved) * self.element_bytes

    def _start(self) -> ir.Value:
        """A thread's part of every address; with a swizzle without the buffer's own."""
        state, shared = self.state, self.buffer.type.layout
        zero = state.i32_constant(0)
        parts = zip(self.buffer.origin, self._fixed, self._thread, strict=True)
        at = [
            thread if fixed is not None else state.arith("addi", origin, thread)
            for origin, fixed, thread in parts
        ]
        if shared.swizzle is None:
            return buffer_address(self.buffer, at, state)
        return buffer_address(replace(self.buffer, address=zero), at, state)

    def _with_bits(self, bits: int) -> ir.Value:
        if bits not in self._disjoint:
            state = self.state
            value = state.arith("xori", self._base, bits)
            value = state.arith("addi", self.buffer.address, value)
            self._disjoint[bits] = value
        return self._disjoint[bits]

    def _coordinate(self, dim: int, step: int) -> ir.Value:
        """Buffer coordinate of a register; a phantom's stays inside the buffer."""
        state = self.state
        at = state.arith("addi", self._thread[dim], step)
        if self._phantoms:
            size = self.width if dim == self._vector_dim else 1
            at = state.arith("minui", at, self.buffer.type.shape[dim] - size)
        return state.arith("addi", self.buffer.origin[dim], at)


def _bits(mode: Mode) -> list[int]:
    """What each bit of a mode's digit adds to the coordinate."""
    return [mode.stride << bit for bit in range((mode.size - 1).bit_length())]


def buffer_address(buffer: Buffer, at: Sequence[ir.Value], state: Lowering) -> ir.Value:
    """The byte offset (i32) into the shared memory of the element at coordinates `at` (i32)."""
    swizzle = buffer.type.layout.swizzle
    address = plain_address(buffer, at, state)
    return address if swizzle is None else _swizzled(address, swizzle, state)


def plain_address(buffer: Buffer, at: Sequence[ir.Value], state: Lowering) -> ir.Value:
    """The same before the swizzle: what copy engines and tensor cores are told."""
    element_bytes = storage_bits(buffer.type.element, state) // 8
    shared, total = buffer.type.layout, buffer.address

    def add(coordinate: ir.Value, stride: int) -> ir.Value:
        term = state.arith("muli", coordinate, stride * element_bytes)
        return state.arith("addi", total, term)

    for coordinate, parts in zip(at, shared.dims, strict=True):
        rest = coordinate
        for size, stride in parts[:-1]:
            limit = state.i32_constant(size)
            total = add(state.arith("remui", rest, limit), stride)
            rest = state.arith("divui", rest, limit)
        total = add(rest, parts[-1][1])
    return total


def _swizzled(address: ir.Value, swizzle: tuple[int, int, int], state: Lowering) -> ir.Value:
    bits, base, shift = swizzle
    moved = state.arith("shrui", address, shift)
    moved = state.arith("andi", moved, ((1 << bits) - 1) << base)
    return state.arith("xori", address, moved)


def barrier_pointer(op: ir.OpView, state: Lowering) -> ir.Value:
    """Shared pointer to the mbarrier that `op` names by its operands `barrier` and `slot`."""
    barriers = state.values[op.barrier]
    index = slot_index(op.operation, op.slot, barriers.slots, state)
    return one_barrier(barriers, index, state)


def one_barrier(barriers: Barriers, slot: ir.Value, state: Lowering) -> ir.Value:
    """Shared pointer to one mbarrier of a ring; `slot` is an i32."""
    offset = state.arith("muli", slot, BARRIER_BYTES)
    address = state.arith("addi", barriers.address, offset)
    return byte_pointer(shared_base(state), address)


def slot_index(op: ir.Operation, index: ir.Value, slots: int, state: Lowering) -> ir.Value:
    """The lowered `index` of one of a ring's `slots` (i32).

    An index that is no slot reaches what lies beside the ring. CompileError for such a constant;
    one that is not known to be a slot gets a comment by which the emulator stops there.
    """
    value = state.values[index]
    known = known_slot(op, index, slots)
    made = made_by(index, RingPositionOp)
    if known is not None or (made is not None and made.slots <= slots):
        return value
    (value,) = inline_asm(slot_note(1, slots), ["=r", "r"], [value], [state.i32], pure=True)
    return value


def known_slot(op: ir.Operation, index: ir.Value, slots: int) -> int | None:
    """The slot, if `index` is a constant. CompileError if the ring has none of that number."""
    known = constant_of(index)
    if known is not None and not 0 <= known < slots:
        raise error_at(op, f"slot {known} of a ring of {slots}")
    return known


def slot_note(step: int, slots: int) -> str:
    """Writes PTX that copies $1, a slot's number times `step`, to $0, with a comment for the
    emulator."""
    return f"mov.b32 $0, $1;\n\t//@emulator slot.u32 $0, {step}, {slots};"


def byte_pointer(pointer: ir.Value, offset: ir.Value) -> ir.Value:
    """`pointer` moved by `offset` bytes."""
    return moved_pointer(pointer, offset, 8)
