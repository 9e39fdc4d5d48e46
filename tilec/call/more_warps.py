"""Candidates of `tl.auto` by twice as many warps, for where registers do not suffice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tilec.call.tile_choice import Constants, Tiles
from tilec.compile.product_warps import MOST_WARPS
from tilec.costs.kernel_work import ProgramWork
from tilec.terms.demands import CHOSEN_WARPS

LARGE = 4
"""The part of a thread's registers, one in so many, from which on sums are halved so."""


def with_more_warps(
    ranked: Iterable[Tiles], programs: Mapping[Constants, ProgramWork | None]
) -> Iterator[Tiles]:
    """Yields candidates, behind each whose products have few warps the same by twice as many, of
    which each has half of the sums: it is next where lowering shows that it spills."""
    for tiles in ranked:
        yield tiles
        program = programs.get(tiles.chosen)
        if program is None or tiles.warps is not None or not _may_have_more(program):
            continue
        warps = 2 * program.warps
        why = f"{warps}: the registers of {program.warps} do not suffice"
        yield replace(tiles, warps=warps, reasons={**tiles.reasons, CHOSEN_WARPS: why})


def _may_have_more(program: ProgramWork) -> bool:
    """Whether sums are a large part of a thread's registers, and no product waits for another,
    whose rows twice as many warps would have to hand to each other."""
    sums = program.accumulators // (program.warps * program.target.warp_size)
    waits = any(body.work.waiting_products for body in program.bodies)
    is_large = LARGE * sums >= program.target.registers_per_thread
    is_open = not program.demands_warps and program.teams == 1 and program.warps < MOST_WARPS
    return is_open and is_large and not waits
