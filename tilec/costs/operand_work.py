"""How the operands that a loop's dots read come to shared memory, once it is known how their arrays
lie in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilec.costs.dot_work import (
    Memory,
    asked_bytes,
    is_read_across_k,
    line_bytes,
    narrow_loads,
    way_of,
)
from tilec.costs.rates import Rates
from tilec.costs.work import WAYS, LoopWork, Unit, Way
from tilec.hardware.sizes import LINE_BYTES, VECTOR_BYTES
from tilec.records import dataclass


@dataclass(frozen=True)
class Operand:
    """A load of `nbytes` for one dot. `array`: its name, None where the load does not show it;
    `tile`: the sizes that the dot reads, `axis` that of k among the last two; `is_transposed`:
    whether the tile is transposed on the way. `programs`: the axes of the grid along which programs
    read other tiles."""

    array: str | None
    nbytes: int
    tile: tuple[int, ...]
    axis: int
    is_transposed: bool
    programs: frozenset[int]

    def memory(self, memories: Mapping[str, Memory]) -> Memory:
        """Says how what the dot reads lies in memory; the best where that is unknown."""
        found = None if self.array is None else memories.get(self.array)
        if found is None:
            return Memory(1, LINE_BYTES)
        if self.is_transposed and found.contiguous is not None:
            return replace(found, contiguous=1 - found.contiguous)
        return found


@dataclass(frozen=True)
class Fill:
    """The operands of a dot that an iteration loads, which multiplies elements of `width` bytes.
    `is_used_twice`: whether registers take one of them, too; `groups`: of warps, among which its
    rows can be dealt out: more cut its columns."""

    operands: tuple[Operand, ...]
    width: int
    unit: Unit
    is_used_twice: bool
    groups: int = 1


def filling(
    loop: LoopWork,
    fills: Sequence[Fill],
    memories: Mapping[str, Memory],
    rates: Rates,
    cluster: Sequence[int],
    iterations: Mapping[str, float],
    groups: int,
) -> dict[str, Any]:
    """What a loop's dots' operands take, as fields of its `LoopWork`. `memories` by name of array;
    `cluster`: CTAs along axes of the grid that load together what they share; `iterations`: of all
    programs, for each byte of an array; `groups`: of four warps of a program."""
    if not fills:
        return {"way": loop.way}
    way, staged, narrow, vectors, spared = loop.way, 0, 0, 0, 0
    wasted, asked = 0, 0
    readers: list[tuple[int, float]] = []
    for fill in fills:
        operands = [(one.memory(memories), one.axis) for one in fill.operands]
        own = way_of(operands, fill.width, fill.unit)
        if fill.is_used_twice:
            own = max(own, Way.THREADS, key=WAYS.index)
        way = max(way, own, key=WAYS.index) if staged else own
        sizes = [prod(one.tile) for one in fill.operands]
        elements, copies = narrow_loads(sizes, operands, fill.width, fill.unit)
        narrow, vectors = narrow + elements, vectors + copies
        for one, (memory, _) in zip(fill.operands, operands, strict=True):
            rows = prod(one.tile) // one.tile[-1 if memory.contiguous == 1 else -2]
            sharing = _sharing(one, memory, fill, cluster)
            row = one.nbytes // rows
            if fill.unit is Unit.WARPGROUPS and one.axis == 0 and memory.contiguous == 1:
                row //= max(1, groups // fill.groups)  # in panels that each reads whole
            lines = line_bytes(one.nbytes, row, memory, own, rates)
            spared += one.nbytes - one.nbytes // sharing
            wasted += lines // sharing - one.nbytes
            whole = asked_bytes(one.nbytes, row, row, memory, own, rates)
            asked += whole // sharing - one.nbytes
            read = one.nbytes * iterations.get(one.array or "", 0.0)
            readers.append((lines // sharing, read / sharing))
            staged += 0 if own is Way.REGISTERS else one.nbytes
        staged += copies * VECTOR_BYTES if own is Way.REGISTERS else 0
    return {
        "way": way,
        "global_bytes": loop.global_bytes - spared,
        "staged_bytes": staged,
        "line_bytes": loop.global_bytes + wasted,
        "asked_bytes": loop.global_bytes + asked,
        "readers": tuple(readers),
        "narrow_loads": narrow,
        "vector_copies": vectors,
        "is_waited_for": any(fill.is_used_twice for fill in fills),
    }


def _sharing(one: Operand, memory: Memory, fill: Fill, cluster: Sequence[int]) -> int:
    """The number of CTAs of a cluster that load an operand together. What threads read into
    registers across k each CTA reads in its own time."""
    if is_read_across_k(memory, one.axis, fill.width, fill.unit):
        return 1
    return prod(size for axis, size in enumerate(cluster) if axis not in one.programs)
