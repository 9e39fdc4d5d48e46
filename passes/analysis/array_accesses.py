"""Accesses to arrays that a kernel both writes and touches elsewhere: what each thread touches.

A program is one thread to its author: what it stored it may load again, and a load in front of a
store gives what was there before. So two accesses to one array need an order between threads unless

* neither writes, both are atomic, or they are one store (programs, too, may leave either value);
* they lie apart along a dimension, by constant offsets from one value (iterations of an unrolled
  loop), or because a loop has moved on by as much;
* each thread touches the elements that it touches in the other: same offsets, same layout;
* both store, and an element that both write one thread writes in both: the first that has a copy of
  it, by equal layouts from equal offsets along the tiles' own dimensions, wherever they lie along
  the others (columns of a matrix that an unrolled loop fills).

Arrays that are different arguments do not overlap (`hazards`). Those of one list may be the same,
but do not overlap otherwise: what is said of one array holds of a list. Tensor copies and stores
are not for arrays that a kernel both reads and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind, users
from tilec.dialects.effects import read_by, written_by
from tilec.dialects.gpu_tile import CpAsyncGatherOp, CpAsyncOp
from tilec.dialects.gpu_tile.types import buffer_of, layout_of
from tilec.dialects.tile import ArrayAtOp, ArrayOp, Atomic, Indexed, StoreOp
from tilec.dialects.types import is_array, shape
from tilec.hardware.layout import Layout
from tilec.passes.analysis.divisibility import (
    base_and_constant,
    constant_of,
)
from tilec.passes.rewriting.loops import is_inside
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass


@dataclass(frozen=True)
class ArrayAccess:
    """An access of `op` to `array`.

    `offsets`: per dimension of the array, or index tiles; None: anywhere. `extents`: elements along
    each dimension, from a rectangle. `threads`: which elements each thread touches, if no two touch
    the same. `moved_on`: per dimension by how much a loop has gone on since, 0 for not at all.
    `writer`: of a store, what says which thread writes an element: its layout, the dimensions of
    its tile and the offsets along them; None where a loop has changed those since.
    """

    array: ir.Value
    op: ir.Operation = field(hash=False)  # that of an op changes with it
    writes: bool
    offsets: tuple[ir.Value, ...] | None
    extents: tuple[int, ...]
    threads: Layout | None
    moved_on: tuple[int, ...]
    writer: tuple[Layout, tuple[int, ...], tuple[ir.Value, ...]] | None = None

    def conflicts(self, other: object) -> bool:
        """Whether the two need an order."""
        if not isinstance(other, ArrayAccess) or self.array != other.array:
            return False
        if not (self.writes or other.writes) or self.op == other.op:
            return False
        if all(is_of(access.op, Atomic) for access in (self, other)):
            return False
        if self.writer is not None and self.writer == other.writer:
            return False
        if self.offsets is None or other.offsets is None:
            return True
        if self.lies_apart(other):
            return False
        here = (self.offsets, self.threads, self.moved_on)
        return self.threads is None or here != (other.offsets, other.threads, other.moved_on)

    def lies_apart(self, other: ArrayAccess) -> bool:
        """Whether the two are known to have no element in common."""
        if self.offsets is None or other.offsets is None:
            return False
        return any(map(_apart, *self._spans(), *other._spans()))

    def _spans(self) -> tuple[Sequence[ir.Value], Sequence[int], Sequence[int]]:
        return self.offsets or (), self.extents, self.moved_on

    def first_iteration(self, counters: object) -> ArrayAccess:
        """An access before a loop seen from its first iteration."""
        return self

    def next_iteration(self, loop: ir.Operation, counters: object) -> ArrayAccess:
        """The same access seen from the next iteration of a loop."""
        if self.writer is not None and any(is_inside(value, loop) for value in self.writer[2]):
            return replace(self, writer=None).next_iteration(loop, counters)
        inside = [is_inside(value, loop) for value in self.offsets or ()]
        if not any(inside):
            return self
        steps = tuple(_step(value, loop) for value in self.offsets or ())
        if any(made and not step for made, step in zip(inside, steps, strict=True)):
            return replace(self, offsets=None)
        return replace(self, moved_on=steps)


def _apart(
    one: ir.Value, size: int, moved: int, other: ir.Value, other_size: int, other_moved: int
) -> bool:
    """Whether two ranges along a dimension have no element in common."""
    if not (size and other_size):
        return False
    (base, first), (other_base, second) = _place(one), _place(other)
    if base != other_base:
        return False
    if moved != other_moved:  # by so much at least
        return (
            first + size <= second + moved if moved else second + other_size <= first + other_moved
        )
    return first + size <= second or second + other_size <= first


def _place(value: ir.Value) -> tuple[tuple[Any, ...], int]:
    """What an offset is of, and the constant in it: of 512 * (k + 1), 512 times k, and 512."""
    base, number = base_and_constant(value)
    op = defining_op(base[0]) if base else None
    if op is None or op.name != "arith.muli":
        return base, number
    one, two = op.operands
    for operand, factor in ((one, constant_of(two)), (two, constant_of(one))):
        if factor is not None:
            inner, more = _place(operand)
            return ((*inner, factor) if inner else ()), number + factor * more
    return base, number


def _step(value: ir.Value, loop: ir.Operation) -> int:
    """The least by which `value` grows in an iteration of `loop`; 0 where that is not known."""
    if loop.name != "scf.for":
        return 0
    times = _times(value, loop.regions[0].blocks[0].arguments[0], loop)
    return max(0, (times or 0) * (constant_of(loop.operands[2]) or 0))


def _times(value: ir.Value, counter: ir.Value, loop: ir.Operation) -> int | None:
    """By how much a sum of constant multiples grows as the counter grows by one."""
    if value == counter or not is_inside(value, loop):
        return int(value == counter)
    op = defining_op(value)
    if op is None or op.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    lhs, rhs = (_times(operand, counter, loop) for operand in op.operands)
    if lhs is None or rhs is None:
        return None
    if op.name != "arith.muli":
        return lhs + rhs if op.name == "arith.addi" else lhs - rhs
    factors = [constant_of(operand) for operand in op.operands]
    if factors[1] is not None:
        return lhs * factors[1]
    return rhs * factors[0] if factors[0] is not None else None


def array_accesses(view: Any) -> list[ArrayAccess]:
    """What an op does to an array that the kernel writes and touches in more than one place."""
    array = _array_of(view)
    if array is None or not _is_contended(array):
        return []
    rank = len(shape(view.array if isinstance(view, ArrayOp) else view.src))
    if isinstance(view, CpAsyncOp):
        sizes, layout = buffer_of(view.dst).shape, None
    elif isinstance(view, CpAsyncGatherOp):
        sizes, layout = shape(view.elements), layout_of(view.elements)
    else:
        sizes, layout = shape(view.tile), layout_of(view.tile)
    if isinstance(view, (Indexed, CpAsyncGatherOp)):
        offsets, extents = view.indices, (0,) * rank
    else:
        along = dict(zip(view.dims, sizes, strict=True))
        offsets, extents = view.offsets, tuple(along.get(axis, 1) for axis in range(rank))
    if layout is not None and any(not mode.stride for mode in layout.threads if mode.size > 1):
        layout = None  # a thread touches what others touch
    where = (tuple(offsets), extents, layout, (0,) * rank, _writer(view))
    return [ArrayAccess(array, view.operation, array in written_by(view), *where)]


def _writer(view: Any) -> tuple[Layout, tuple[int, ...], tuple[ir.Value, ...]] | None:
    if not isinstance(view, StoreOp) or view.options.get("wrapped", False):
        return None  # rows that are wrapped begin at other elements each
    along = tuple(view.offsets[axis] for axis in view.dims)
    return layout_of(view.tile), tuple(view.dims), along


def _array_of(view: Any) -> ir.Value | None:
    return next(filter(is_array, (*read_by(view), *written_by(view))), None)


def _is_contended(array: ir.Value) -> bool:
    """Whether several ops touch the array and one of them writes it.

    Atomics among themselves need no order: where nothing else touches the array the answer is no.
    """
    taken = [array, *(out.result for out in users(array, ArrayAtOp))]
    touching = [view for one in taken for view in users(one) if _array_of(view) is not None]
    atomics = len(of_kind(touching, Atomic))
    writes = any(array in written_by(v) and not isinstance(v, Atomic) for v in touching)
    return len(touching) > 1 and (writes or 0 < atomics < len(touching))
