"""Lowers shared-memory buffers: their base, views, and vector accesses from registers.

The widest access (16, 8, 4 ... bytes) whose elements neighbour each other in the buffer and whose
address is a multiple of it for every thread and register is used; a swizzle moves whole 16-byte
units, so it does not split one. PTX ISA 9.0, "ld", "st": natural alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import gcd

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import buffer_of, layout_of
from tilec.dialects.types import element, shape
from tilec.layout import Layout
from tilec.passes.divisibility import constant_of
from tilec.passes.lower_to_nvvm.access import (
    call_intrinsic,
    pack,
    plain_load,
    storage_bits,
    store_words,
    unpack,
    word_bits,
)
from tilec.passes.lower_to_nvvm.state import (
    Buffer,
    Lowering,
    Registers,
    both,
    create,
)
from tilec.passes.matrix_load import ROW_BYTES, MatrixLoad, plan_matrix_load
from tilec.shared_layout import SharedLayout, swizzled
from tilec.target import Feature

SHARED = "shared"
"""Name of the module's dynamic shared memory."""
SHARED_ALIGNMENT = 1024
"""Where a 128-byte swizzle's pattern starts anew, so offsets swizzle like addresses."""


def shared_base(state: Lowering) -> ir.Value:
    """Pointer to the CTA's dynamic shared memory."""
    if state.shared is None:
        with state.prologue, ir.Location.unknown():
            state.shared = create(
                "llvm.mlir.addressof",
                [],
                ir.Type.parse("!llvm.ptr<3>"),
                global_name=ir.FlatSymbolRefAttr.get(SHARED),
            )
    return state.shared


def declare_shared(function: ir.Operation) -> None:
    """The dynamic shared memory as an external array in front of `function` (`.extern .shared`)."""
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    ir.Operation.create(
        "llvm.mlir.global",
        attributes={
            "sym_name": ir.StringAttr.get(SHARED),
            "global_type": ir.TypeAttr.get(ir.Type.parse("!llvm.array<0 x i8>")),
            "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            "addr_space": ir.IntegerAttr.get(i32, 3),
            "alignment": ir.IntegerAttr.get(i64, SHARED_ALIGNMENT),
        },
        regions=1,
        ip=ir.InsertionPoint(function),
    )


def lower_alloc(op: gpu_tile.AllocOp, state: Lowering) -> None:
    """A constant offset into the shared memory."""
    parsed = buffer_of(op.result)
    zero = state.i32_constant(0)
    offset = state.i32_constant(op.options["offset"])
    state.values[op.result] = Buffer(parsed, offset, (zero,) * len(parsed.shape))


def lower_view(op: gpu_tile.ViewOp, state: Lowering) -> None:
    """The same memory with its origin moved."""
    source = state.values[op.src]
    origin = tuple(
        _moved(at, state.values[by], state)
        for at, by in zip(source.origin, op.offsets, strict=True)
    )
    state.values[op.result] = replace(source, type=buffer_of(op.result), origin=origin)


def _moved(origin: ir.Value, by: ir.Value, state: Lowering) -> ir.Value:
    """A sum that stays a constant where it is one: constant origins become immediate offsets."""
    first, second = constant_of(origin), constant_of(by)
    if first is not None and second is not None:
        return state.i32_constant(first + second)
    return create("arith.addi", [origin, by], state.i32)


def lower_slot(op: gpu_tile.SlotOp, state: Lowering) -> None:
    """The ring's address plus whole slots."""
    ring = state.values[op.src]
    step = state.i32_constant(ring.type.slot_bytes)
    offset = create("arith.muli", [state.values[op.index], step], state.i32)
    address = create("arith.addi", [ring.address, offset], state.i32)
    state.values[op.result] = Buffer(ring.type.slot(), address, ring.origin[1:])


def lower_ring_position(op: gpu_tile.RingPositionOp, state: Lowering) -> None:
    """Remainder and quotient of the count; a power of two makes them a mask and a shift."""
    count, slots = state.values[op.count], state.i32_constant(op.slots)
    state.values[op.slot] = create("arith.remui", [count, slots], state.i32)
    turns = create("arith.divui", [count, slots], state.i32)
    state.values[op.parity] = create("arith.trunci", [turns], state.i1)


def lower_reshape_view(op: gpu_tile.ReshapeViewOp, state: Lowering) -> None:
    """The same address; the source's origin, if it was moved, becomes part of it."""
    source = state.values[op.src]
    address = buffer_address(source, source.origin, state)
    parsed = buffer_of(op.result)
    zero = state.i32_constant(0)
    state.values[op.result] = Buffer(parsed, address, (zero,) * len(parsed.shape))


class Access:
    """Addresses of one tile's registers in one buffer.

    Plain rows and columns are linear: one base per thread, a constant per register. So is a swizzle
    where thread and register set different address bits: XOR distributes over disjoint bits, and
    whole periods of the pattern pass it by. Everything else computes each address.
    """

    def __init__(self, buffer: Buffer, layout: Layout, state: Lowering) -> None:
        self.state = state
        self.buffer = buffer
        rank = len(buffer.type.shape)
        self.element_bytes = storage_bits(buffer.type.element, state) // 8
        self.coordinates = layout.value_coordinates(rank)
        self.width = shared_width(buffer.type.layout, layout, rank, self.element_bytes)
        self._thread = state.thread_coordinates(layout, rank)
        self._vector_dim = layout.values[0].dim if layout.values else -1
        self._phantoms = layout.has_phantoms(buffer.type.shape)
        if self._phantoms and buffer.type.shape[self._vector_dim] % self.width:
            self.width = 1  # a vector must not straddle the tile's edge
        self._fixed = [constant_of(o) for o in buffer.origin]
        self._disjoint: dict[int, ir.Value] = {}
        self._base = self._start() if self._is_linear(layout) else None

    @cached_property
    def start(self) -> list[ir.Value]:
        """Buffer coordinates (i32) of this thread's register 0."""
        state = self.state
        pairs = zip(self.buffer.origin, self._thread, strict=True)
        return [create("arith.addi", [origin, at], state.i32) for origin, at in pairs]

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
        if self._phantoms or any(len(parts) > 1 for parts in shared.dims):
            return False
        if shared.swizzle is None:
            return True
        taken = 0
        for mode in layout.threads:
            stride = mode.stride and mode.stride * shared.dims[mode.dim][0][1] * self.element_bytes
            bits = (mode.size - 1) * stride
            if stride & (stride - 1) or taken & bits:
                return False
            taken |= bits
        period = 1 << sum(shared.swizzle)
        known = None not in self._fixed
        return known and not any(self._step(at) % period & taken for at in self.coordinates)

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
            thread if fixed is not None else create("arith.addi", [origin, thread], state.i32)
            for origin, fixed, thread in parts
        ]
        if shared.swizzle is None:
            return buffer_address(self.buffer, at, state)
        return buffer_address(replace(self.buffer, address=zero), at, state)

    def _with_bits(self, bits: int) -> ir.Value:
        if bits not in self._disjoint:
            state = self.state
            value = create("arith.xori", [self._base, state.i32_constant(bits)], state.i32)
            value = create("arith.addi", [self.buffer.address, value], state.i32)
            self._disjoint[bits] = value
        return self._disjoint[bits]

    def _coordinate(self, dim: int, step: int) -> ir.Value:
        """Buffer coordinate of a register; a phantom's stays inside the buffer."""
        state = self.state
        at = create("arith.addi", [self._thread[dim], state.i32_constant(step)], state.i32)
        if self._phantoms:
            size = self.width if dim == self._vector_dim else 1
            last = state.i32_constant(self.buffer.type.shape[dim] - size)
            at = create("arith.minui", [at, last], state.i32)
        return create("arith.addi", [self.buffer.origin[dim], at], state.i32)


def buffer_address(buffer: Buffer, at: Sequence[ir.Value], state: Lowering) -> ir.Value:
    """Byte offset (i32) into the shared memory of the element at coordinates `at` (i32)."""
    element_bytes = storage_bits(buffer.type.element, state) // 8
    shared, total = buffer.type.layout, buffer.address

    def add(coordinate: ir.Value, stride: int) -> ir.Value:
        scale = state.i32_constant(stride * element_bytes)
        term = create("arith.muli", [coordinate, scale], state.i32)
        return create("arith.addi", [total, term], state.i32)

    for coordinate, parts in zip(at, shared.dims, strict=True):
        rest = coordinate
        for size, stride in parts[:-1]:
            limit = state.i32_constant(size)
            total = add(create("arith.remui", [rest, limit], state.i32), stride)
            rest = create("arith.divui", [rest, limit], state.i32)
        total = add(rest, parts[-1][1])
    return total if shared.swizzle is None else _swizzled(total, shared.swizzle, state)


def _swizzled(address: ir.Value, swizzle: tuple[int, int, int], state: Lowering) -> ir.Value:
    bits, base, shift = swizzle
    mask = state.i32_constant(((1 << bits) - 1) << base)
    moved = create("arith.shrui", [address, state.i32_constant(shift)], state.i32)
    moved = create("arith.andi", [moved, mask], state.i32)
    return create("arith.xori", [address, moved], state.i32)


def byte_pointer(pointer: ir.Value, offset: ir.Value) -> ir.Value:
    """`pointer` moved by `offset` bytes."""
    return create(
        "llvm.getelementptr",
        [pointer, offset],
        pointer.type,
        elem_type=ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
        rawConstantIndices=ir.DenseI32ArrayAttr.get([-(2**31)]),
    )


def shared_width(shared: SharedLayout, layout: Layout, rank: int, element_bytes: int) -> int:
    """Elements one access may move between `layout` and a buffer."""
    first = layout.values[0] if layout.values else None
    if first is None or first.stride != 1 or first.dim >= rank:
        return 1
    if shared.dims[first.dim][0][1] != 1:
        return 1
    width = gcd(first.size & -first.size, 16 // element_bytes)
    steps = [
        mode.stride if mode.dim == first.dim else None
        for mode in layout.threads + layout.values[1:]
    ]
    for step in steps:
        if step is not None:
            width = gcd(width, step)
    # Every other stride moves the start of a vector; so does the end of a panel.
    for dim, parts in enumerate(shared.dims):
        for number, (size, stride) in enumerate(parts):
            own = dim == first.dim and number == 0
            width = gcd(width, size if own and len(parts) > 1 else width if own else stride)
    return max(1, width)


def lower_buffer_load(op: gpu_tile.BufferLoadOp, state: Lowering) -> None:
    """ldmatrix where the layouts fit it, else ld.shared as wide as they allow."""
    buffer, layout = state.values[op.src], layout_of(op.result)
    bytes_ = storage_bits(buffer.type.element, state) // 8
    plan = plan_matrix_load(layout, shape(op.result), buffer.type.layout, bytes_)
    has_ldmatrix = state.context.target.supports(Feature.LDMATRIX)
    if plan is not None and has_ldmatrix and _rows_aligned(op.src, bytes_, state):
        state.values[op.result] = _load_matrices(plan, buffer, element(op.result), state)
        return
    access = Access(buffer, layout, state)
    bits = access.element_bytes * 8
    word, count = word_bits(bits, access.width)
    registers: Registers = []
    for first in range(0, layout.num_values, access.width):
        words = plain_load(access.pointer(first), word, count)
        registers += unpack(words, element(op.result), access.width, state)
    state.values[op.result] = registers


def _rows_aligned(buffer: ir.Value, element_bytes: int, state: Lowering) -> bool:
    """Whether views moved the buffer's origin by whole 16-byte units along its contiguous
    dimension."""
    while isinstance(buffer.owner, gpu_tile.ViewOp):
        view = buffer.owner
        for dim, parts in enumerate(buffer_of(buffer).layout.dims):
            step = state.divisibility.of(view.offsets[dim]) * element_bytes
            if parts[0][1] == 1 and step % ROW_BYTES:
                return False
        buffer = view.src
    return isinstance(buffer.owner, (gpu_tile.AllocOp, gpu_tile.SlotOp))


def _load_matrices(
    plan: MatrixLoad, buffer: Buffer, element_type: ir.Type, state: Lowering
) -> Registers:
    access = Access(buffer, plan.rows, state)
    trans = ".trans" if plan.transposed else ""
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{plan.matrices}{trans}.b16.p3"
    registers: Registers = []
    for number in range(plan.rows.num_values):
        words = call_intrinsic(name, [access.pointer(number)], [state.i32] * plan.matrices)
        registers += unpack(words, element_type, plan.matrices * plan.per_word, state)
    return registers


def lower_buffer_store(op: gpu_tile.BufferStoreOp, state: Lowering) -> None:
    """st.shared by the first copy of each element, phantoms left out."""
    buffer, layout = state.values[op.dst], layout_of(op.value)
    access = Access(buffer, layout, state)
    valid = state.valid(layout, shape(op.value))
    mine = state.first_copy(layout)
    registers = state.registers(op.value)
    width = access.width
    for first in range(0, layout.num_values, width):
        words = pack(registers[first : first + width], element(op.value), state)
        guard = both(mine, valid[first])
        store_words(access.pointer(first), words, guard, None, space="shared")


def lower_buffer_gather(op: gpu_tile.BufferGatherOp, state: Lowering) -> None:
    """One ld.shared per register; indices and phantoms are clamped into the buffer."""
    buffer, layout = state.values[op.src], layout_of(op.result)
    sizes, bits = buffer.type.shape, storage_bits(buffer.type.element, state)
    reach, threads = layout.extents(len(sizes)), state.thread_coordinates(layout, len(sizes))
    registers: Registers = []
    for index, at in zip(
        state.registers(op.indices), layout.value_coordinates(len(sizes)), strict=True
    ):
        place = []
        for d, step in enumerate(at):
            found = create("arith.addi", [threads[d], state.i32_constant(step)], state.i32)
            if d == op.axis:
                found = _to_i32(index, state)
            if d == op.axis or reach[d] > sizes[d]:
                last = state.i32_constant(sizes[d] - 1)
                found = create("arith.minui", [found, last], state.i32)
            place.append(create("arith.addi", [buffer.origin[d], found], state.i32))
        pointer = byte_pointer(shared_base(state), buffer_address(buffer, place, state))
        registers += unpack(plain_load(pointer, bits, 1), buffer.type.element, 1, state)
    state.values[op.result] = registers


def _to_i32(value: ir.Value, state: Lowering) -> ir.Value:
    if value.type == state.i32:
        return value
    name = "arith.trunci" if value.type.width > 32 else "arith.extsi"
    return create(name, [value], state.i32)


RULES = {
    gpu_tile.AllocOp: lower_alloc,
    gpu_tile.ViewOp: lower_view,
    gpu_tile.ReshapeViewOp: lower_reshape_view,
    gpu_tile.SlotOp: lower_slot,
    gpu_tile.RingPositionOp: lower_ring_position,
    gpu_tile.BufferLoadOp: lower_buffer_load,
    gpu_tile.BufferStoreOp: lower_buffer_store,
    gpu_tile.BufferGatherOp: lower_buffer_gather,
}
