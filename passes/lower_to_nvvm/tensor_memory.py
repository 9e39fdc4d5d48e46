"""Lowers tensor memory: its allocation, addresses, and traffic with registers.

PTX ISA 9.0, "tcgen05.alloc", "tcgen05.ld", "tcgen05.st", "tcgen05.wait": an address is lane << 16 |
column; alloc is one warp's, ld and st are a whole warp's and reach its 32 lanes. The wait for a
load has the registers tied in and out, so nothing reads one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.tcgen05 import (
    ReleaseTensorMemoryOp,
    ReserveTensorMemoryOp,
    Tcgen05MmaOp,
)
from tilec.dialects.gpu_tile.types import is_tensor_buffer, layout_of, tensor_buffer_of
from tilec.dialects.types import element
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.sizes import WARP_SIZE, WARPGROUP_WARPS
from tilec.hardware.tensor_access import AccessPlan, Transfer, plan_access
from tilec.hardware.tensor_memory import COLUMN_BITS
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.contract import show_location
from tilec.passes.lower_to_nvvm.access import inline_asm, pack, plain_load, unpack
from tilec.passes.lower_to_nvvm.matrix_origin import divisor
from tilec.passes.lower_to_nvvm.shared_address import byte_pointer, shared_base, slot_index
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.lower_to_nvvm.values import TensorMemory
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import compare, create, resized
from tilec.passes.rewriting.walk import alloc_of, find_ops


def lower_reserve(op: ReserveTensorMemoryOp, state: Lowering) -> None:
    """Lowers to tcgen05.alloc by the first warp, which writes the address to shared memory."""
    offset = state.i32_constant(op.options["offset"])
    pointer = byte_pointer(shared_base(state), offset)
    state.tensor_ctas = _ctas(op.operation, state)
    group = f"cta_group::{state.tensor_ctas}"
    _by_first_warp(
        f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [$0], {op.columns};",
        [pointer],
        state,
    )
    _by_first_warp(f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned;", [], state)
    state.tensor_address = op.options["offset"]


def _ctas(op: ir.Operation, state: Lowering) -> int:
    """The number of CTAs that allocate together: 2 in a kernel that has a product of a pair.
    CompileError where its clusters have none."""
    products = find_ops(op.parent, Tcgen05MmaOp)
    found = [each for each in products if find_instruction(each.opview.instruction).ctas == 2]
    if found and prod(state.cluster) % 2:
        raise error_at(found[0], "a pair of CTAs is two neighbours of a cluster; this has none")
    return 2 if found else 1


def lower_release(op: ReleaseTensorMemoryOp, state: Lowering) -> None:
    """Lowers to tcgen05.dealloc by the warp that allocated."""
    group = f"cta_group::{state.tensor_ctas}"
    text = f"tcgen05.dealloc.{group}.sync.aligned.b32 $0, {op.columns};"
    _by_first_warp(text, [_base(op.operation, state)], state)


def _by_first_warp(text: str, operands: Sequence[ir.Value], state: Lowering) -> None:
    first = compare("eq", state.warp(), state.i32_constant(0))
    inline_asm(text, ["r"] * len(operands), operands, [], guard=first)


def _base(op: ir.Operation, state: Lowering) -> ir.Value:
    """The address (i32) that the first warp wrote, read behind the sync."""
    if state.tensor_base is None:
        if state.tensor_address is None:
            raise InternalError(f"{show_location(op)}: tensor memory that nobody allocates")
        offset = state.i32_constant(state.tensor_address)
        (state.tensor_base,) = plain_load(byte_pointer(shared_base(state), offset), 32, 1)
    return state.tensor_base


def lower_alloc(op: gpu_tile.AllocOp, state: Lowering) -> None:
    """Gives the buffer its columns of what the CTA has."""
    parsed = tensor_buffer_of(op.result)
    address = state.plus(_base(op.operation, state), op.options["offset"])
    zero = state.i32_constant(0)
    state.values[op.result] = TensorMemory(parsed, address, (zero,) * len(parsed.shape))


def lower_slot(op: gpu_tile.SlotOp, state: Lowering) -> None:
    """The ring's address plus whole slots."""
    ring = state.values[op.src]
    index = slot_index(op.operation, op.index, tensor_buffer_of(op.src).slots, state)
    offset = state.arith("muli", index, ring.type.slot_columns)
    address = state.arith("addi", ring.address, offset)
    state.values[op.result] = TensorMemory(ring.type.slot(), address, ring.origin[1:])


def element_address(
    op: ir.Operation, value: ir.Value, at: Sequence[int], state: Lowering
) -> tuple[ir.Value, int]:
    """The address (i32) of an element of a buffer without the constant part of its lane, and that.

    CompileError for a view whose start is not known well enough.
    """
    buffer: TensorMemory = state.values[value]
    layout, address = buffer.type.layout, buffer.address
    lane = columns = 0
    for dim, (origin, step) in enumerate(zip(buffer.origin, at, strict=True)):
        fixed = constant_of(origin)
        here, bits = layout.along(dim, step + (fixed or 0))
        if fixed is None:
            address = _moved(op, value, dim, address, state)
        if bits % COLUMN_BITS:
            raise error_at(op, f"the view begins inside a column of {layout}")
        lane, columns = lane + here, columns + bits // COLUMN_BITS
    return state.plus(address, columns), lane


def _moved(
    op: ir.Operation, value: ir.Value, dim: int, address: ir.Value, state: Lowering
) -> ir.Value:
    """Moves `address` to a view's origin along `dim`, which is known at run time only."""
    buffer: TensorMemory = state.values[value]
    layout = buffer.type.layout
    *inner, last = layout.dims[dim]
    whole, known = prod(part.size for part in inner), divisor(value, dim, state)
    fits = known % whole == 0 and (not inner or buffer.type.shape[dim] <= whole)
    if last.lanes or not fits or known // whole * last.bits % COLUMN_BITS:
        raise error_at(
            op,
            f"the view begins at a multiple of {known} of dimension {dim}, which may lie anywhere "
            f"in {layout}",
        )
    digit = buffer.origin[dim]
    if whole > 1:
        digit = state.arith("divui", digit, whole)
    if last.bits % COLUMN_BITS:
        digit = state.arith("divui", digit, COLUMN_BITS // last.bits)
    else:
        digit = state.arith("muli", digit, last.bits // COLUMN_BITS)
    return state.arith("addi", address, digit)


def lower_load(op: gpu_tile.BufferLoadOp, state: Lowering) -> None:
    """Lowers to tcgen05.ld, and one wait for all of them."""
    buffer, layout = state.values[op.src].type, layout_of(op.result)
    plan = plan_access(layout, buffer.layout, buffer.shape, buffer.bits)
    start = _warp_start(op.operation, op.src, plan, state)
    words: Registers = []
    for transfer in plan.transfers:
        count = len(transfer.values)
        split = "" if transfer.split is None else f", {transfer.split}"
        outputs = ", ".join(f"${n}" for n in range(count))
        text = f"tcgen05.ld.{_shape(transfer)} {{{outputs}}}, [${count}]{split};"
        address = state.plus(start, transfer.lane << 16 | transfer.column)
        words += inline_asm(text, ["=r"] * count + ["r"], [address], [state.i32] * count)
    words = _waited(words, state)
    registers: Registers = [words[0]] * layout.num_values
    members = [values for transfer in plan.transfers for values in transfer.values]
    for word, values in zip(words, members, strict=True):
        for number, value in zip(values, _split(word, len(values), op, state), strict=True):
            registers[number] = value
    state.values[op.result] = registers


def _split(word: ir.Value, count: int, op: gpu_tile.BufferLoadOp, state: Lowering) -> Registers:
    """The elements of a column, the lowest bits first."""
    kind = element(op.result)
    bits = COLUMN_BITS // count
    if count == 1 and tensor_buffer_of(op.src).bits < bits:
        narrow = ir.IntegerType.get_signless(tensor_buffer_of(op.src).bits)
        word = create("arith.trunci", [word], narrow)
    return unpack([word], kind, count, state)


def _waited(words: Registers, state: Lowering) -> Registers:
    count = len(words)
    constraints = ["=r"] * count + [str(n) for n in range(count)]
    text = "tcgen05.wait::ld.sync.aligned;"
    return inline_asm(text, constraints, words, [state.i32] * count)


def lower_store(op: gpu_tile.BufferStoreOp, state: Lowering) -> None:
    """Lowers to tcgen05.st, and one wait for all of them, and for the stores next to this one."""
    buffer, layout = state.values[op.dst].type, layout_of(op.value)
    plan = plan_access(layout, buffer.layout, buffer.shape, buffer.bits)
    start = _warp_start(op.operation, op.dst, plan, state)
    registers = state.registers(op.value)
    for transfer in plan.transfers:
        words = [
            _joined([registers[n] for n in values], element(op.value), state)
            for values in transfer.values
        ]
        split = "" if transfer.split is None else f", {transfer.split}"
        inputs = ", ".join(f"${n + 1}" for n in range(len(words)))
        text = f"tcgen05.st.{_shape(transfer)} [$0]{split}, {{{inputs}}};"
        address = state.plus(start, transfer.lane << 16 | transfer.column)
        inline_asm(text, ["r"] * (1 + len(words)), [address, *words], [])
    if not _goes_on(op):
        inline_asm("tcgen05.wait::st.sync.aligned;", [], [], [])


def _goes_on(store: gpu_tile.BufferStoreOp) -> bool:
    """Whether another store follows whose wait serves this one, too: only arithmetic and loads from
    other buffers stand between (those that are alive together share no columns)."""
    views = list(store.operation.block.operations)
    numbers = [view.operation for view in views]
    for view in views[numbers.index(store.operation) + 1 :]:
        if isinstance(view, gpu_tile.BufferStoreOp) and is_tensor_buffer(view.dst):
            return True
        other = isinstance(view, gpu_tile.BufferLoadOp) and (
            is_tensor_buffer(view.src) and alloc_of(view.src) != alloc_of(store.dst)
        )
        if not other and not view.operation.name.startswith(_ARITHMETIC):
            return False
    return False


_ARITHMETIC = ("arith.", "math.", "tile.broadcast")


def _joined(members: Registers, kind: ir.Type, state: Lowering) -> ir.Value:
    """A column of its elements, the lowest bits first."""
    (word,) = pack(members, kind, state)
    if not isinstance(word.type, ir.IntegerType):
        word = create("arith.bitcast", [word], ir.IntegerType.get_signless(word.type.width))
    return resized(word, state.i32, signed=False)


def _shape(transfer: Transfer) -> str:
    return f"sync.aligned.{transfer.form}.x{transfer.repeat}.b32"


def _warp_start(op: ir.Operation, value: ir.Value, plan: AccessPlan, state: Lowering) -> ir.Value:
    """The address (i32) of a warp's first place. CompileError where it is not in its own lanes."""
    at = (0,) * len(state.values[value].origin)
    address, lane = element_address(op, value, at, state)
    warps = 1 << len(plan.warps)
    first = state.first_thread // state.context.target.warp_size
    for warp in range(warps):
        own = WARP_SIZE * ((first + warp) % WARPGROUP_WARPS)
        for transfer in plan.transfers:
            begin = lane + plan.start(warp)[0] + transfer.lane - own
            if begin not in ((0,) if transfer.form == "32x32b" else (0, 16)):
                raise error_at(
                    op,
                    f"warp {first + warp} of the CTA reaches lanes {own} to {own + 31} of tensor "
                    f"memory, its part of {state.values[value].type.layout} begins in lane "
                    f"{begin + own}",
                )
    address = state.plus(address, lane << 16)
    number = state.warp()
    for below, count, (lanes, columns) in _runs(plan.warps):
        digit = number
        if below:
            digit = state.arith("shrui", digit, below)
        if below + count < len(plan.warps):
            digit = state.arith("andi", digit, (1 << count) - 1)
        term = state.arith("muli", digit, (lanes << 16) + columns)
        address = state.arith("addi", address, term)
    return address


def _runs(warps: Sequence[tuple[int, int]]) -> list[tuple[int, int, tuple[int, int]]]:
    """Bits of the warp's number that move together: the first one, how many, and its step."""
    runs: list[tuple[int, int, tuple[int, int]]] = []
    for bit, place in enumerate(warps):
        if not any(place):
            continue
        if runs:
            below, count, step = runs[-1]
            if below + count == bit and place == (step[0] << count, step[1] << count):
                runs[-1] = (below, count + 1, step)
                continue
        runs.append((bit, 1, place))
    return runs


RULES = {ReserveTensorMemoryOp: lower_reserve, ReleaseTensorMemoryOp: lower_release}
