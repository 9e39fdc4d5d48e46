"""Lowers asynchronous copies: cp.async with zero fill, groups and waits.

PTX ISA 9.0, "cp.async": 4, 8 or 16 bytes, both addresses aligned to it; `ignore-src` writes zeros,
a run-time source size below the size fills the rest with zeros. Every thread copies its vectors; a
vector that straddles the array's edge copies the part inside, in a branch of its own for the tiles
that are not wholly inside.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.passes.analysis.copy_layout import copy_layout
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.analysis.signs import is_never_negative
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.lower_to_nvvm.access import inline_asm
from tilec.passes.lower_to_nvvm.indexed import Elements
from tilec.passes.lower_to_nvvm.rectangle import Rectangle
from tilec.passes.lower_to_nvvm.shared_address import Access
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.control import branch, for_loop
from tilec.passes.rewriting.scalars import both, resized, select
from tilec.records import dataclass


def lower_cp_async(op: gpu_tile.CpAsyncOp, state: Lowering) -> None:
    """Lowers to one cp.async per vector, coalesced over the CTA."""
    buffer = state.values[op.dst]
    sizes = buffer.type.shape
    width = op.bytes // buffer.type.element_bytes
    contiguous = contiguous_dim(op.src, op.dims)
    layout = copy_layout(op, state.context)
    offsets = [state.values[offset] for offset in op.offsets]
    # A vector of one element, as where no dimension has stride 1, lies inside or outside.
    whole = contiguous is None or (
        state.divisibility.of_array(op.src, "sizes", op.dims[contiguous]) % width == 0
    )
    place = Rectangle(
        state,
        state.values[op.src],
        offsets,
        op.dims,
        layout,
        sizes,
        width,
        contiguous,
        whole,
        tuple(map(is_never_negative, op.offsets)),
    )
    access = Access(buffer, layout, state, width)
    mask = None if constant_of(op.mask) else state.values[op.mask]
    firsts = range(0, layout.num_values, width)
    copies = _Copies(
        op, state, place, mask, {n: (access.pointer(n), place.pointer(n)) for n in firsts}
    )
    if whole:
        copies.emit(copies.by_predicate)
        return
    # A size in bytes costs six instructions a vector, and only tiles at the array's end need it.
    made = branch(both(mask, place.holds_tile()), [])
    with ir.InsertionPoint(made.regions[0].blocks[0]):
        copies.emit(copies.whole)
        ir.Operation.create("scf.yield")
    with ir.InsertionPoint(made.regions[1].blocks[0]):
        with ir.InsertionPoint(_loop_of_one(state)):
            copies.emit(copies.by_size)
            ir.Operation.create("scf.yield")
        ir.Operation.create("scf.yield")


def _loop_of_one(state: Lowering) -> ir.Block:
    """The body of a loop that runs once, which ptxas cannot know, for a grid might have no CTAs: it
    must branch around a loop, while a block it would execute by predicates, beside the other."""
    zero, one = state.i32_constant(0), state.i32_constant(1)
    ctas = state.special("nctaid.x")
    times = state.arith("minui", ctas, one)
    return for_loop([zero, times, one])[1]


@dataclass
class _Copies:
    """The vectors of one tile. `pointers`: per first register, where to and where from.

    A source (`by_predicate` and so on) gives an operand that says what of a vector is read, and its
    constraint; None for all of it.
    """

    op: gpu_tile.CpAsyncOp
    state: Lowering
    place: Rectangle
    mask: ir.Value | None
    pointers: dict[int, tuple[ir.Value, ir.Value]]

    def __post_init__(self) -> None:
        # What both branches use is made in front of them.
        self.mine = self.state.first_copy(self.place.layout)
        self.guards = {n: both(self.mine, self.place.valid(n)) for n in self.pointers}

    def emit(self, source: Callable[[int], tuple[ir.Value, str] | None]) -> None:
        """A cp.async a vector."""
        for first, (to, where) in self.pointers.items():
            copy_vector(self.op, to, where, source(first), self.guards[first])

    def whole(self, first: int) -> None:
        """Says that all of the vector is read."""

    def by_predicate(self, first: int) -> tuple[ir.Value, str] | None:
        """Says how much of the vector is read: all, or nothing where a predicate is false."""
        return whole_or_nothing(self.place.inside(first, self.mask), self.state)

    def by_size(self, first: int) -> tuple[ir.Value, str]:
        """The bytes inside the array."""
        inside = self.place.inside(first, self.mask)
        return _source_bytes(self.place, first, inside, self.op.bytes, self.state), "r"


def copy_vector(
    op: gpu_tile.CpAsyncOp | gpu_tile.CpAsyncGatherOp,
    to: ir.Value,
    where: ir.Value,
    part: tuple[ir.Value, str] | None,
    guard: ir.Value | None,
) -> None:
    """Issues one cp.async to a shared pointer from a global one.

    `part`: an operand that says what of the vector is read, and its constraint; `guard`: whether
    the thread has that vector (i1). None: all of it; certainly.
    """
    operands, constraints, text = [to, where], ["r", "l"], ""
    if part is not None:
        operands.append(part[0])
        constraints.append(part[1])
        text = ", $2"
    text = f"cp.async.{op.cache}.shared.global [$0], [$1], {op.bytes}{text};"
    # A thread without a vector of its own must not write zeros over another's.
    inline_asm(text, constraints, operands, [], guard=guard)


def whole_or_nothing(inside: ir.Value | None, state: Lowering) -> tuple[ir.Value, str] | None:
    """The operand (`copy_vector`) of a vector that is read only where `inside` (i1) is true: the
    hardware takes a predicate as it is, a size it would test."""
    if inside is None:
        return None
    return state.arith("xori", inside, state.constant(state.i1, 1)), "b"


def _source_bytes(
    place: Rectangle, register: int, inside: ir.Value | None, bytes_: int, state: Lowering
) -> ir.Value:
    """The number of bytes to be read of a vector that may straddle the array's edge."""
    if place.contiguous is None:
        full = state.i32_constant(bytes_)
        return full if inside is None else select(inside, full, state.i32_constant(0))
    axis = place.dims[place.contiguous]
    at = state.arith("addi", place.starts[axis], place.coordinates[register][place.contiguous])
    left = state.arith("subi", place.array.sizes[axis], at)
    left = state.arith("minui", left, place.width)
    left = resized(left, state.i32)
    part = state.arith("muli", left, bytes_ // place.width)
    return part if inside is None else select(inside, part, state.i32_constant(0))


def lower_cp_async_gather(op: gpu_tile.CpAsyncGatherOp, state: Lowering) -> None:
    """Lowers to one cp.async per vector that a thread holds of the index tiles."""
    buffer, layout = state.values[op.dst], layout_of(op.elements)
    width = op.bytes // buffer.type.element_bytes
    elements = Elements(state, state.values[op.src], op.elements, op.indices)
    access = Access(buffer, layout, state, width)
    mask = None if constant_of(op.mask) else state.values[op.mask]
    for number, (where, inside, own) in enumerate(elements.sources(width)):
        part = whole_or_nothing(both(mask, inside), state)
        copy_vector(op, access.pointer(number * width), where, part, own)


def lower_commit(op: gpu_tile.CpAsyncCommitOp, state: Lowering) -> None:
    """Lowers to cp.async.commit_group."""
    ir.Operation.create("nvvm.cp.async.commit.group")


def lower_wait(op: gpu_tile.CpAsyncWaitOp, state: Lowering) -> None:
    """Lowers to cp.async.wait_group."""
    i32 = ir.IntegerType.get_signless(32)
    ir.Operation.create(
        "nvvm.cp.async.wait.group", attributes={"n": ir.IntegerAttr.get(i32, op.pending)}
    )


RULES = {
    gpu_tile.CpAsyncOp: lower_cp_async,
    gpu_tile.CpAsyncGatherOp: lower_cp_async_gather,
    gpu_tile.CpAsyncCommitOp: lower_commit,
    gpu_tile.CpAsyncWaitOp: lower_wait,
}
