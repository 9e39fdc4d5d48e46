"""Clocks for which a loop keeps each unit of a multiprocessor busy.

What multiprocessors ask of L2 has two limits. One by itself gets so many bytes a clock
(`engine_bytes`, `l2_bytes` by threads); all together get what L2 reads, where a line that several
ask for at about the same time is read once for each group of them. So tiles that few programs share
a side of, as those of groups with few rows, have less of L2 than those of one large product.
"""

from __future__ import annotations

from math import inf, sqrt

from tilec.costs.machine import Machine
from tilec.costs.rates import Rates
from tilec.costs.work import TENSOR_SPEEDS, LoopWork, Unit, Way
from tilec.hardware.target import Feature

FMA_FLOPS = 2
"""Operations that a multiply-add counts as (`Speed`)."""


def units_of(loop: LoopWork, machine: Machine, programs: int) -> dict[str, float]:
    """Clocks that one iteration keeps each unit of a multiprocessor busy."""
    speed, rates = machine.target.speed, machine.rates
    tensor = speed.tensor_flops * _tensor_efficiency(loop.unit, machine)
    flops = {kind: tensor * factor for kind, factor in TENSOR_SPEEDS.items()}
    flops |= {"fma": speed.fma_flops, "f64": speed.f64_flops}
    narrow = rates.narrow_load if loop.way is Way.REGISTERS else rates.narrow_copy
    for_each = (machine.multiprocessors / min(programs, machine.multiprocessors)) ** rates.fewer
    read = (_read(loop, machine, programs) + loop.stored_bytes) / for_each
    read /= rates.l2_bytes_for_all
    return {
        "arithmetic": sum(count / flops[kind] for kind, count in loop.flops.items()),
        "loads": loop.narrow_loads * narrow
        + loop.vector_copies * rates.vector_copy
        + loop.beside * rates.narrow_copy,
        "shared memory": loop.shared_bytes / rates.shared_bytes,
        "L2": max(_asked(loop, rates), read) + loop.zeroed_bytes / rates.zeroed_bytes,
        "instructions": loop.computed / (speed.fma_flops / FMA_FLOPS),
        "functions": loop.functions / rates.functions,
    }


def _asked(loop: LoopWork, rates: Rates) -> float:
    """Clocks in which a multiprocessor gets what an iteration asks of L2, and hands over results,
    however few others do."""
    by_engine = loop.way is Way.ENGINE
    lines = loop.asked_bytes if by_engine else loop.line_bytes
    asked = max(loop.global_bytes, lines) + loop.stored_bytes
    return asked / (rates.engine_bytes if by_engine else rates.l2_bytes)


def _read(loop: LoopWork, machine: Machine, programs: int) -> float:
    """Bytes that L2 reads for an iteration of a program. What several programs at once ask for
    comes once for each group of multiprocessors that they are spread over. Of those at once, which
    lie side by side in rows and columns, no more share a row or a column than lie along one side
    of a square."""
    groups = machine.rates.merging
    at_once = sqrt(min(programs, machine.multiprocessors))
    found = float(max(loop.global_bytes, loop.line_bytes))
    for nbytes, readers in loop.readers:
        together = max(1.0, min(readers, at_once))
        once = groups * (1 - (1 - 1 / groups) ** together) / together if groups < inf else 1
        found -= nbytes * (1 - once)
    return found


def _tensor_efficiency(unit: Unit, machine: Machine) -> float:
    """The part of tensor cores' rate that a unit reaches."""
    target, rates = machine.target, machine.rates
    if unit is not Unit.WARPS:
        return rates.tensor_efficiency
    has_more = target.supports(Feature.WGMMA) or target.supports(Feature.TCGEN05)
    return rates.warp_mma_speed if has_more else 1.0
