"""Where the elements lie that `tile.exchange` puts in each other's places: in one thread, in lanes
of one warp, or further apart."""

from __future__ import annotations

from functools import lru_cache

from tilec.hardware.layout import Layout
from tilec.passes.layouts.axis_levels import Place, axis_levels
from tilec.records import dataclass


@dataclass(frozen=True)
class Partners:
    """Where each register's partner is held: `registers` names, for each, the register, in the lane
    whose number differs in the bits of `lanes`."""

    registers: tuple[int, ...]
    lanes: int


@lru_cache(maxsize=4096)
def partners(layout: Layout, rank: int, axis: int, mask: int) -> Partners | None:
    """Finds who holds the element whose coordinate along `axis` differs in `mask`, of a tile whose
    size along it is a multiple of twice the mask's highest bit; None where that is no lane of the
    warp.

    A bit of the mask must be one bit of a register's or of a lane's number. What steps over whole
    multiples of the mask's range changes none of its bits, whatever its size.
    """
    whole = 1 << mask.bit_length()
    held = dict.fromkeys(Place, 0)
    lanes = 0
    for level in axis_levels(layout, axis):
        if level.stride % whole == 0:
            continue
        if level.size & (level.size - 1) or level.stride & (level.stride - 1):
            return None
        covered = level.stride * (level.size - 1)
        if covered & sum(held.values()):
            return None  # some element lies in several places of one thread's or warp's
        held[level.place] |= covered
        if level.place is Place.LANE:
            lanes |= (covered & mask) // level.stride << level.position
    if mask & ~(held[Place.VALUE] | held[Place.LANE]):
        return None
    coordinates = layout.value_coordinates(rank)
    register_at = {at: number for number, at in enumerate(coordinates)}
    inside = held[Place.VALUE] & mask
    moved = ((*at[:axis], at[axis] ^ inside, *at[axis + 1 :]) for at in coordinates)
    return Partners(tuple(register_at[at] for at in moved), lanes)
