"""What threads compute of tiles beside products, in instructions of one element each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from mlir import ir

from tilec.costs.work import Passing
from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, of_kind
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile.reduction import Combining
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.hardware.sizes import VECTOR_BYTES, WARP_SIZE, WORD_BITS, WORD_BYTES
from tilec.passes.layouts.op_costs import FUNCTIONS, combining_slots, is_approximate, words
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass

_FUNCTIONS: Mapping[str, int] = {
    "math.exp": 2,
    "math.exp2": 1,
    "math.log": 2,
    "math.log2": 1,
    "math.sqrt": 3,
    "math.rsqrt": 2,
    "math.tanh": 6,
    "math.sin": 8,
    "math.cos": 8,
    "math.erf": 12,
    "math.powf": 16,
    "arith.divf": 8,
}
"""Ops that ask for a special function once an element, and the instructions around it, about, where
the author asks for no more than the hardware's approximation; else `op_costs.FUNCTIONS` counts."""
_FREE = ("arith.constant", "arith.index_cast", "arith.extui", "arith.extsi", "arith.negf")
"""Ops that take no instruction, or are part of another one."""
_OF_BYTES = 3
"""Instructions an element of bytes that become 16-bit floats without one that converts
(`passes/lower_to_nvvm/packed.py`): 92 for 32 of a thread, from buffers by twos."""
_SCAN = 4
"""Instructions an element of a scan: its part in the thread, in the warp, and adding both."""


@dataclass(frozen=True)
class Source:
    """Where the operand `tile` of a dot comes from: `load`, whose result is transposed on the way
    where it `is_transposed`."""

    load: tile.LoadOp | tile.GatherOp
    tile: ir.Value
    is_transposed: bool


def source_of(operand: ir.Value) -> Source | None:
    """The load, or gather, of an operand, or of the one tile that it is computed from element by
    element; None where it comes from elsewhere."""
    value, is_transposed = operand, False
    while (op := defining_op(value)) is not None:
        view = op.opview
        if isinstance(view, (tile.LoadOp, tile.GatherOp)):
            return Source(view, operand, is_transposed)
        tiles = [v for v in op.operands if is_tile(v)]
        varying = [v for v in tiles if not _is_constant(v)]
        if isinstance(view, tile.TransposeOp):
            is_transposed = not is_transposed
        elif not is_elementwise(op) or len(varying) != 1:
            return None
        else:
            tiles = varying
        value = tiles[0]
    return None


def is_used_twice(load: tile.LoadOp | tile.GatherOp) -> bool:
    """Whether a loaded tile is an operand of dots and used in registers, too, but for computing a
    left operand, which comes from the same buffer (`passes/dots/computed_lhs.py`)."""
    users = list(_users(load.result))
    dots = [user for user in users if isinstance(user.opview, tile.DotOp)]
    beside = of_kind(load.operation.block.operations, tile.DotOp)
    lhs = [op for dot in beside for op in preparing(dot.operation, dot.lhs)]
    return bool(dots) and any(user not in (*dots, *lhs) for user in users)


def _users(value: ir.Value) -> Iterator[ir.Operation]:
    """The ops that use a tile, or its transpose."""
    for use in value.uses:
        user = use.owner.operation
        if isinstance(user.opview, tile.TransposeOp):
            yield from _users(user.results[0])
        else:
            yield user


def _is_constant(value: ir.Value) -> bool:
    return defining_op(value, "arith.constant", "tensor.splat") is not None


def instructions_of(op: ir.Operation) -> tuple[int, int]:
    """Instructions for all elements of what an op computes, and how many special functions."""
    if is_of(op, tile.ReduceOp):
        return prod(shape(op.operands[0])), 0
    if is_of(op, tile.ScanOp):
        return _SCAN * prod(shape(op.operands[0])), 0
    tiles = [result for result in op.results if is_tile(result)]
    if not tiles or not is_elementwise(op) or op.name in _FREE:
        return 0, 0
    size = prod(shape(tiles[0]))
    if op.name in _FUNCTIONS:
        around = 1 + _FUNCTIONS[op.name]
        if not is_approximate(op) and op.name in FUNCTIONS:
            around = FUNCTIONS[op.name][bit_width(element(tiles[0])) > WORD_BITS]
        return size * around, size
    if op.name in ("arith.sitofp", "arith.uitofp") and _widens_bytes(op):
        return size * _OF_BYTES, 0
    # Conversions to 16 bits and less take two elements at a time.
    narrow = bit_width(element(tiles[0])) in (8, 16)
    return -(-size // 2) if narrow else size, 0


def _widens_bytes(op: ir.Operation) -> bool:
    return [bit_width(element(v)) for v in (op.operands[0], op.results[0])] == [8, 16]


def preparing(dot: ir.Operation, side: ir.Value) -> list[ir.Operation]:
    """The elementwise ops in a dot's block that make an operand of it of what is loaded, maybe
    transposed on the way."""
    found: list[ir.Operation] = []
    left = [] if _is_computed(side, dot.block) else [side]
    while left:
        op = defining_op(left.pop())
        if op is None or op.block != dot.block or op in found:
            continue
        if is_elementwise(op):
            found.append(op)
        if is_elementwise(op) or isinstance(op.opview, tile.TransposeOp):
            left += [value for value in op.operands if is_tile(value)]
    return found


def waits_for_product(dot: ir.Operation) -> bool:
    """Whether an operand of a dot is computed from the result of another in its block, or from
    what a loop carries: both products cannot run one behind the other."""
    return any(_is_computed(side, dot.block) for side in list(dot.operands)[:2])


def is_added_up(dot: tile.DotOp) -> bool:
    """Whether a dot starts from nothing, and what is computed of its result, element by element, is
    carried by the loop: sums that are scaled, or kept in more bits than the tensor cores'."""
    if isinstance(dot.acc.owner, ir.Block) or not _is_constant(dot.acc):
        return False
    block, pending = dot.operation.block, [dot.result]
    seen: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        seen.add(value)
        for use in value.uses:
            user = use.owner.operation
            if user.name == "scf.yield" and user.block == block:
                return True
            if user.block == block and is_elementwise(user):
                pending += [result for result in user.results if result not in seen]
    return False


def meets_product(load: tile.LoadOp) -> bool:
    """Whether a loaded tile is joined, element by element, with what is computed of a product in
    its block, as a bias is."""
    block, pending = load.operation.block, [load.result]
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = use.owner.operation
            if user.block != block or not is_elementwise(user):
                continue
            others = [one for one in user.operands if one != value]
            if any(_is_computed(one, block) for one in others):
                return True
            pending += user.results
    return False


def _is_computed(value: ir.Value, block: ir.Block) -> bool:
    seen: set[ir.Value] = set()
    left = [value]
    while left:
        one = left.pop()
        if one in seen or not is_tile(one):
            continue
        seen.add(one)
        op = defining_op(one)
        if op is None:
            if one.owner == block:
                return True
            continue
        if op.block != block and not any(op.block == inner for inner in _branches(block)):
            continue
        if isinstance(op.opview, tile.DotOp):
            return True
        left += list(op.operands)
        if op.name == "scf.if":
            left += [v for region in op.regions for v in terminator(region.blocks[0]).operands]
    return False


def _branches(block: ir.Block) -> Iterator[ir.Block]:
    """The blocks of a block's branches, and of theirs."""
    for view in block.operations:
        if view.operation.name == "scf.if":
            for region in view.operation.regions:
                for inner in region.blocks:
                    yield inner
                    yield from _branches(inner)


def passing_of(op: Combining) -> Passing:
    """What warps pass on to each other where they share what it combines."""
    sizes = shape(op.inputs[0])
    columns = prod(sizes) // sizes[op.axis]
    # Along rows a thread has one, across them as many as it loads at once, of words.
    each = min(columns, VECTOR_BYTES // WORD_BYTES) if op.axis < len(sizes) - 1 else 1
    lanes = WARP_SIZE if op.axis < len(sizes) - 1 else 1
    held = sum(map(words, op.inputs))
    slots = combining_slots(op) + (held if isinstance(op, tile.ScanOp) else 0)
    return Passing(columns, each * lanes, each * slots, each * held)


def sides_of(store: tile.StoreOp, known: tuple[int, ...] | None) -> tuple[int, ...]:
    """The sides of what a program stores to an array, one a dimension: of two tiles the larger."""
    of_tile = dict(zip(store.dims, shape(store.value), strict=True))
    sides = tuple(of_tile.get(axis, 1) for axis in range(len(shape(store.dst))))
    return sides if known is None or prod(sides) > prod(known) else known
