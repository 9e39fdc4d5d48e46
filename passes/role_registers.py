"""Which warps a kernel's roles have, and how they share the register file."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.dialects.gpu_tile.role import WARPGROUP_WARPS
from tilec.target import Target

LOAD_REGISTERS = 40
MOST_REGISTERS = 240


@dataclass(frozen=True)
class RoleShape:
    """Warps [first_warp, first_warp + warps); `registers` of each thread from then on, 0: as is."""

    first_warp: int
    warps: int
    registers: int

    @property
    def end(self) -> int:
        """The first warp past it."""
        return self.first_warp + self.warps


def plan_roles(target: Target, warps: int, *, multiply: bool) -> dict[str, RoleShape]:
    """The shapes of "compute" (`warps` of them), "load" and, where wanted, "multiply".

    Beside a multiply role nobody holds accumulators, so registers stay where they are and both
    roles take one warp. Otherwise what the load role gives up the others get: registers move
    between whole warpgroups in multiples of 8 (PTX ISA 9.0, "setmaxnreg"), so the one warp that
    loads brings three idle ones.
    """
    if multiply:
        return {
            "compute": RoleShape(0, warps, 0),
            "load": RoleShape(warps, 1, 0),
            "multiply": RoleShape(warps + 1, 1, 0),
        }
    load, compute = _shares(target, warps)
    return {
        "compute": RoleShape(0, warps, compute),
        "load": RoleShape(warps, WARPGROUP_WARPS, load),
    }


def _shares(target: Target, warps: int) -> tuple[int, int]:
    """(registers a thread of the load role keeps, a thread of the others gets); 0, 0: no change."""
    lanes = target.warp_size
    threads = (warps + WARPGROUP_WARPS) * lanes
    share = min(target.registers_per_sm // threads, target.registers_per_thread) // 8 * 8
    if share >= MOST_REGISTERS:
        return 0, 0
    left = share * threads - LOAD_REGISTERS * WARPGROUP_WARPS * lanes
    return LOAD_REGISTERS, min(MOST_REGISTERS, left // (warps * lanes) // 8 * 8)
