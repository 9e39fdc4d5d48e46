"""How a load role and the computing warps share the register file."""

from __future__ import annotations

from tilec.dialects.gpu_tile.role import WARPGROUP_WARPS
from tilec.target import Target

LOAD_WARPS = WARPGROUP_WARPS
"""Registers move between whole warpgroups, so the one warp that loads brings three idle ones."""
LOAD_REGISTERS = 40
MOST_REGISTERS = 240


def role_registers(target: Target, warps: int) -> tuple[int, int]:
    """(registers a thread of the load role keeps, a thread of the others gets); 0, 0: no change.

    PTX ISA 9.0, "setmaxnreg": whole warpgroups, multiples of 8; what one gives up another takes.
    """
    lanes = target.warp_size
    threads = (warps + LOAD_WARPS) * lanes
    share = min(target.registers_per_sm // threads, target.registers_per_thread) // 8 * 8
    if share >= MOST_REGISTERS:
        return 0, 0
    left = share * threads - LOAD_REGISTERS * LOAD_WARPS * lanes
    return LOAD_REGISTERS, min(MOST_REGISTERS, left // (warps * lanes) // 8 * 8)
