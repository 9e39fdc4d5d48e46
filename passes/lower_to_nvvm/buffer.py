"""Lowers shared-memory buffers: their base, views, and vector accesses from registers.

The widest access (16, 8, 4 ... bytes) whose elements neighbour each other in the buffer and whose
address is a multiple of it for every thread and register is used; a swizzle moves whole 16-byte
units, so it does not split one. PTX ISA 9.0, "ld", "st": natural alignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.def_use import made_by, of_kind, traced
from tilec.dialects.gpu_tile.types import any_buffer_of, buffer_of, is_tensor_buffer, layout_of
from tilec.dialects.types import element, shape
from tilec.hardware.layout import Layout
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.target import Feature
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.layouts.maps import register_permutation, run_first
from tilec.passes.layouts.matrix_load import (
    ROW_BYTES,
    MatrixLoad,
    plan_matrix_load,
    plan_matrix_store,
)
from tilec.passes.layouts.runs import shared_width
from tilec.passes.lower_to_nvvm import tensor_memory
from tilec.passes.lower_to_nvvm.access import (
    call_intrinsic,
    inline_asm,
    pack,
    plain_load,
    storage_bits,
    store_words,
    unpack,
    word_bits,
)
from tilec.passes.lower_to_nvvm.shared_address import (
    Access,
    buffer_address,
    byte_pointer,
    known_slot,
    shared_base,
    slot_note,
)
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.lower_to_nvvm.values import Buffer
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import both, compare, create, resized


def lower_alloc(op: gpu_tile.AllocOp, state: Lowering) -> None:
    """A constant offset into the shared memory."""
    if is_tensor_buffer(op.result):
        tensor_memory.lower_alloc(op, state)
        return
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
    state.values[op.result] = replace(source, type=any_buffer_of(op.result), origin=origin)


def lower_transpose_view(op: gpu_tile.TransposeViewOp, state: Lowering) -> None:
    """The same memory, its origin's coordinates in the new order."""
    source = state.values[op.src]
    origin = tuple(source.origin[d] for d in op.permutation)
    state.values[op.result] = replace(source, type=any_buffer_of(op.result), origin=origin)


def _moved(origin: ir.Value, by: ir.Value, state: Lowering) -> ir.Value:
    """A sum that stays a constant where it is one: constant origins become immediate offsets."""
    first, second = constant_of(origin), constant_of(by)
    if first is not None and second is not None:
        return state.i32_constant(first + second)
    return state.arith("addi", origin, by)


def lower_slot(op: gpu_tile.SlotOp, state: Lowering) -> None:
    """The ring's address plus whole slots.

    LLVM must not look into the slot's offset: it would write a remainder as count - count/slots *
    slots, spread a swizzle's XOR over the sum, and add the terms to every address by itself. A
    copy keeps one sum per address, which the uniform data path and immediate offsets take over.
    The comment beside it tells the emulator how many slots there are: it stops where the index is
    none of them, which on a GPU reaches the buffer beside. CompileError for such a constant.
    """
    if is_tensor_buffer(op.src):
        tensor_memory.lower_slot(op, state)
        return
    ring = state.values[op.src]
    offset = state.arith("muli", state.values[op.index], ring.type.slot_bytes)
    slots = any_buffer_of(op.src).slots
    if known_slot(op.operation, op.index, slots) is None:
        text = slot_note(ring.type.slot_bytes, slots)
        (offset,) = inline_asm(text, ["=r", "r"], [offset], [state.i32], pure=True)
    address = state.arith("addi", ring.address, offset)
    state.values[op.result] = Buffer(ring.type.slot(), address, ring.origin[1:])


def lower_ring_position(op: gpu_tile.RingPositionOp, state: Lowering) -> None:
    """Lowers to remainder and quotient of the count; a power of two makes them a mask and a
    shift."""
    count, slots = state.values[op.count], state.i32_constant(op.slots)
    state.values[op.slot] = state.arith("remui", count, slots)
    turns = state.arith("divui", count, slots)
    state.values[op.parity] = create("arith.trunci", [turns], state.i1)


def lower_reshape_view(op: gpu_tile.ReshapeViewOp, state: Lowering) -> None:
    """The same address; the source's origin, if it was moved, becomes part of it."""
    source = state.values[op.src]
    address = buffer_address(source, source.origin, state)
    parsed = buffer_of(op.result)
    zero = state.i32_constant(0)
    state.values[op.result] = Buffer(parsed, address, (zero,) * len(parsed.shape))


def lower_buffer_load(op: gpu_tile.BufferLoadOp, state: Lowering) -> None:
    """Lowers to ldmatrix where the layouts fit it, else to ld.shared as wide as they allow."""
    if is_tensor_buffer(op.src):
        tensor_memory.lower_load(op, state)
        return
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
        if count == 1 and _is_read_ahead(op):
            words = [_opaque(words[0])]
        registers += unpack(words, element(op.result), access.width, state)
    state.values[op.result] = registers


def _is_read_ahead(op: gpu_tile.BufferLoadOp) -> bool:
    """Whether the next iteration of a loop uses what is loaded, or a loop's first one."""
    return any(use.owner.name in ("scf.yield", "scf.for") for use in op.result.uses)


def _opaque(word: ir.Value) -> ir.Value:
    """Gives the same value in a way that LLVM does not see through. Else it would make one load,
    behind the loop's start, of two that meet there."""
    letter = {32: "r", 64: "l"}.get(word.type.width)
    if letter is None:
        return word
    text = f"mov.b{word.type.width} $0, $1;"
    return inline_asm(text, [f"={letter}", letter], [word], [word.type], pure=True)[0]


def _rows_aligned(buffer: ir.Value, element_bytes: int, state: Lowering) -> bool:
    """Whether views moved the buffer's origin by whole 16-byte units along its contiguous
    dimension."""
    views, buffer = traced(buffer, gpu_tile.ViewOp, gpu_tile.TransposeViewOp)
    for view in of_kind(views, gpu_tile.ViewOp):
        for dim, parts in enumerate(buffer_of(view.result).layout.dims):
            step = state.divisibility.of(view.offsets[dim]) * element_bytes
            if parts[0][1] == 1 and step % ROW_BYTES:
                return False
    return made_by(buffer, gpu_tile.AllocOp, gpu_tile.SlotOp) is not None


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


def _store_matrices(
    plan: MatrixLoad, registers: Registers, buffer: Buffer, element_type: ir.Type, state: Lowering
) -> None:
    """Stores by stmatrix, the inverse of ldmatrix."""
    access = Access(buffer, plan.rows, state)
    trans = ".trans" if plan.transposed else ""
    name = f"llvm.nvvm.stmatrix.sync.aligned.m8n8.x{plan.matrices}{trans}.b16.p3"
    count = plan.matrices * plan.per_word
    for number in range(plan.rows.num_values):
        words = pack(registers[number * count : (number + 1) * count], element_type, state)
        call_intrinsic(name, [access.pointer(number), *words], [])


def lower_buffer_store(op: gpu_tile.BufferStoreOp, state: Lowering) -> None:
    """Lowers to stmatrix where the layouts fit it and no element has copies, else to st.shared by
    the first copy of each element, phantoms left out."""
    if is_tensor_buffer(op.dst):
        tensor_memory.lower_store(op, state)
        return
    write_buffer(op.value, op.dst, state)


def write_buffer(tile: ir.Value, into: ir.Value, state: Lowering) -> None:
    """Writes a tile's registers into a buffer."""
    buffer, layout = state.values[into], layout_of(tile)
    bytes_ = storage_bits(buffer.type.element, state) // 8
    plan = plan_matrix_store(layout, shape(tile), buffer.type.layout, bytes_, state.context)
    whole = plan is not None and state.first_copy(layout) is None
    if plan is not None and whole and _rows_aligned(into, bytes_, state):
        _store_matrices(plan, state.registers(tile), buffer, element(tile), state)
        return
    for pointer, words, guard in stores_of(tile, into, state):
        store_words(pointer, words, guard, None, space="shared")


def stores_of(
    tile: ir.Value, into: ir.Value, state: Lowering
) -> Iterator[tuple[ir.Value, Registers, ir.Value | None]]:
    """Yields the stores that write a tile into a buffer: a shared pointer, words, and whether a
    thread does it, None where all do. As wide as the layouts allow."""
    for pointer, words, guard, _ in _stores(tile, state.values[into], 0, state):
        yield pointer, words, guard


def stores_of_stripes(
    tile: ir.Value, into: ir.Value, axis: int, state: Lowering
) -> Iterator[tuple[ir.Value, Registers, ir.Value | None, int]]:
    """Yields the stores that write each stripe of a tile along `axis` into a buffer, and where in
    the tile a register of each lies along that axis, from the thread's first one on."""
    buffer = state.values[into]
    stripe, whole = buffer.type, shape(tile)
    count = whole[axis] // stripe.shape[axis]
    dims = list(stripe.layout.dims)
    dims[axis] = (*dims[axis], (count, 0)) if count > 1 else dims[axis]
    repeated = replace(stripe, shape=whole, layout=replace(stripe.layout, dims=tuple(dims)))
    yield from _stores(tile, replace(buffer, type=repeated), axis, state)


def _stores(
    tile: ir.Value, buffer: Buffer, axis: int, state: Lowering
) -> Iterator[tuple[ir.Value, Registers, ir.Value | None, int]]:
    layout, registers = layout_of(tile), state.registers(tile)
    order = run_first(layout, _contiguous(buffer.type.layout))
    if (permutation := register_permutation(layout, order, shape(tile))) is not None:
        layout, registers = order, [registers[number] for number in permutation]
    access = Access(buffer, layout, state)
    valid = state.valid(layout, shape(tile))
    mine = state.first_copy(layout)
    width = access.width
    for first in range(0, layout.num_values, width):
        words = pack(registers[first : first + width], element(tile), state)
        at = access.coordinates[first][axis] if access.coordinates[first] else 0
        yield access.pointer(first), words, both(mine, valid[first]), at


def _contiguous(layout: SharedLayout) -> int | None:
    """The dimension along which a buffer's elements are neighbours in memory."""
    return next((d for d, parts in enumerate(layout.dims) if parts[0][1] == 1), None)


def lower_buffer_gather(op: gpu_tile.BufferGatherOp, state: Lowering) -> None:
    """One ld.shared per register, or per vector of neighbours that have the same index, as of a
    broadcast; indices and phantoms are clamped into the buffer."""
    buffer, layout = state.values[op.src], layout_of(op.result)
    sizes, bits = buffer.type.shape, storage_bits(buffer.type.element, state)
    reach, threads = layout.extents(len(sizes)), state.thread_coordinates(layout, len(sizes))
    indices, coordinates = state.registers(op.indices), layout.value_coordinates(len(sizes))
    width = _gathered_width(op, indices, buffer, layout, bits // 8)
    word, count = word_bits(bits, width)
    registers: Registers = []
    for index, at in zip(indices[::width], coordinates[::width], strict=True):
        place = []
        for d, step in enumerate(at):
            found = state.arith("addi", threads[d], step)
            if d == op.axis:
                found = resized(index, state.i32)
            if d == op.axis or reach[d] > sizes[d]:
                found = state.arith("minui", found, sizes[d] - 1)
            place.append(state.arith("addi", buffer.origin[d], found))
        pointer = byte_pointer(shared_base(state), buffer_address(buffer, place, state))
        words = plain_load(pointer, word, count)
        registers += unpack(words, buffer.type.element, width, state)
    state.values[op.result] = registers


def _gathered_width(
    op: gpu_tile.BufferGatherOp,
    indices: Registers,
    buffer: Buffer,
    layout: Layout,
    element_bytes: int,
) -> int:
    """Neighbours along another dimension than that of the indices that one access may move."""
    sizes = buffer.type.shape
    width = shared_width(buffer.type.layout, layout, len(sizes), element_bytes)
    if width == 1 or layout.values[0].dim == op.axis or layout.has_phantoms(sizes):
        return 1
    vectors = (indices[first : first + width] for first in range(0, len(indices), width))
    return width if all(own == each[0] for each in vectors for own in each) else 1


def lower_buffer_count(op: gpu_tile.BufferCountOp, state: Lowering) -> None:
    """One red.shared per register. The 1 is an immediate: of that ptxas makes one instruction, of
    other numbers a vote of the lanes in front of the atomic. Only the first of several copies of an
    element counts, phantoms do not. CompileError for rows that are neither one nor one a warp."""
    buffer, layout = state.values[op.dst], layout_of(op.values)
    rows, columns = buffer.type.shape
    row, warps = buffer.origin[0], state.num_threads // state.context.target.warp_size
    if rows not in (1, warps):
        raise error_at(
            op.operation, f"{warps} warps count in a buffer of {rows} rows, not 1 or {warps}"
        )
    if rows > 1:
        row = state.arith("addi", row, state.warp())
    mine, valid = state.first_copy(layout), state.valid(layout, shape(op.values))
    registers = zip(state.registers(op.values), state.registers(op.mask), valid, strict=True)
    for found, flag, inside in registers:
        # At least as wide as i32, since of i8 no number of columns above 127 is one.
        value = found if found.type.width > 32 else resized(found, state.i32)
        counted = compare("ult", value, state.constant(value.type, columns))
        guard = both(both(mine, inside), both(flag, counted))
        column = state.arith("addi", buffer.origin[1], resized(value, state.i32))
        pointer = byte_pointer(shared_base(state), buffer_address(buffer, [row, column], state))
        inline_asm("red.relaxed.cta.shared.add.u32 [$0], 1;", ["r"], [pointer], [], guard=guard)


RULES = {
    gpu_tile.AllocOp: lower_alloc,
    gpu_tile.ViewOp: lower_view,
    gpu_tile.TransposeViewOp: lower_transpose_view,
    gpu_tile.ReshapeViewOp: lower_reshape_view,
    gpu_tile.SlotOp: lower_slot,
    gpu_tile.RingPositionOp: lower_ring_position,
    gpu_tile.BufferLoadOp: lower_buffer_load,
    gpu_tile.BufferStoreOp: lower_buffer_store,
    gpu_tile.BufferGatherOp: lower_buffer_gather,
    gpu_tile.BufferCountOp: lower_buffer_count,
}
