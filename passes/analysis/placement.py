"""Where allocations that are alive at different times lie: the same memory, one after the other."""

from __future__ import annotations

from collections.abc import Collection

from mlir import ir

from tilec.dialects.gpu_tile import AllocOp
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.hardware.sizes import LINE_BYTES
from tilec.passes.analysis.lifetimes import Allocation, find_allocations
from tilec.passes.demands.kernels import programs_per_cta
from tilec.passes.rewriting.walk import find_ops

SHARED_BYTES = "tile.shared_bytes"
"""Kernel attribute: what allocate-shared came to, for one program."""


def program_bytes(function: ir.Operation) -> int:
    """Bytes of shared memory that a program takes; where several share a CTA, up to where the next
    one's begin: at a line of banks, and where the longest pattern of a swizzled buffer does."""
    found = function.attributes[SHARED_BYTES].value
    if programs_per_cta(function) == 1:
        return found
    buffers = (buffer_of(op.results[0]) for op in find_ops(function, AllocOp))
    apart = max([LINE_BYTES, *(buffer.alignment_bytes for buffer in buffers)])
    return -(-found // apart) * apart


def place(allocations: list[Allocation]) -> int:
    """Fills in offsets; returns how much memory they take together.

    Largest first, each at the lowest free offset among those that are alive with it.
    """
    placed: list[Allocation] = []
    for each in _largest_first(allocations):
        each.offset = _lowest_offset(each, placed)
        placed.append(each)
    return max((a.offset + a.size for a in placed), default=0)


def shared_bytes(function: ir.Operation, without: Collection[ir.Operation] = ()) -> int:
    """Bytes the buffers of a kernel take, those that the ops `without` allocate left out."""
    return place([a for a in find_allocations(function) if a.op.operation not in without])


def spread(allocations: list[Allocation], size: int) -> None:
    """Fills in offsets below `size`, which `place` does not exceed: each where the fewest others of
    its block lie, since those wait for their turn in every iteration. Where one finds no place like
    that, all lie as `place` has them.
    """
    placed: list[Allocation] = []
    for each in _largest_first(allocations):
        starts = range(0, size - each.size + 1, each.alignment)
        free = [at for at in starts if _is_free(each, at, placed)]
        if not free:
            place(allocations)
            return
        block = each.op.operation.block
        beside = [a for a in placed if a.op.operation.block == block]
        each.offset = min(free, key=lambda at: sum(_overlap(each, at, a) for a in beside))
        placed.append(each)


def _largest_first(allocations: list[Allocation]) -> list[Allocation]:
    return sorted(allocations, key=lambda a: -a.size)


def _overlap(allocation: Allocation, offset: int, other: Allocation) -> bool:
    return offset < other.offset + other.size and other.offset < offset + allocation.size


def _is_free(allocation: Allocation, offset: int, placed: list[Allocation]) -> bool:
    return not any(_overlap(allocation, offset, a) and a.meets(allocation) for a in placed)


def _lowest_offset(allocation: Allocation, placed: list[Allocation]) -> int:
    align = allocation.alignment
    offset = 0
    for other in sorted((a for a in placed if a.meets(allocation)), key=lambda a: a.offset):
        if offset + allocation.size <= other.offset:
            break
        end = other.offset + other.size
        offset = max(offset, -(-end // align) * align)
    return offset
