"""How many warps a kernel gets when its author does not say.

What a program does (`program_facts.py`) decides whose rules hold: products' (`product_warps.py`),
those of loops that load (`loop_warps.py`), or of programs that load all at once (`tile_warps.py`).
"""

from __future__ import annotations

from copy import copy

from mlir import ir

from tilec.compile.loop_warps import IN_LOOPS
from tilec.compile.product_warps import product_warps
from tilec.compile.program_facts import ProgramFacts, facts_of
from tilec.compile.tile_warps import AT_ONCE, COMPUTED_PER_THREAD, meets_often
from tilec.compile.warp_rules import Rule
from tilec.hardware.powers import power_below
from tilec.hardware.target import Target
from tilec.passes.contract import Report
from tilec.passes.demands.kernels import MANY, SEVERAL, SOME, suit_few, suit_more

RULES: tuple[Rule, ...] = (meets_often, *IN_LOOPS, *AT_ONCE)
"""Of programs without products: the first that is for a program decides, the last is for all."""
MOST_WARPS, MOST_REDUCING = 16, 32
"""Of a CTA; the second of one whose threads meet, which a tile of 128 KiB takes, or of whose tiles
threads of the first would hold `COMPUTED_PER_THREAD` elements: in 16 warps each thread would hold
64 words of it, and with what it is scaled by all the registers it may have. Either fills a
multiprocessor. On an H200 Liger's cross-entropy in tiles of 32768 takes 419 us for 424, with all
its options 2009 for 2615, fla's gradient of GRPO 88 for 100."""


def choose_num_warps(function: ir.Operation, target: Target, report: Report) -> int:
    """A power of two, 1 to 32 warps, with dots 4 to 8, of few rows 2, or three or four
    warpgroups."""
    program = facts_of(function, target)
    if program.products.accumulators:
        warps, why = product_warps(program.products, program.reductions, target)
    else:
        warps, why = _by_rules(program, target.warp_size)
        _suit_launches(function, program, warps, target.warp_size)
    report.add("warps", function, str(warps), why, num_warps=warps)
    return warps


def _suit_launches(function: ir.Operation, program: ProgramFacts, warps: int, lanes: int) -> None:
    """Says for which launches other warps than a kernel's are the best."""
    for most in (SOME, MANY):
        more = max(most, SEVERAL) + 1
        if program.crowd <= most and warps != _warps_for(more, program, lanes):
            suit_few(function, most)
            break
    if not program.crowd and warps != _warps_for(1, program, lanes):
        suit_more(function, SEVERAL)


def _warps_for(crowd: int, program: ProgramFacts, lanes: int) -> int:
    """The warps that launches of so many programs a multiprocessor want."""
    other = copy(program)
    other.crowd = crowd
    return _by_rules(other, lanes)[0]


def _by_rules(program: ProgramFacts, lanes: int) -> tuple[int, str]:
    """What the first rule for a program says, within what a CTA may have."""
    found = (rule(program, lanes) for rule in RULES)
    wanted = next(each for each in found if each is not None)
    return min(_most(program, lanes), power_below(wanted.warps)), wanted.why


def _most(program: ProgramFacts, lanes: int) -> int:
    """Warps of a CTA at most."""
    alone = program.accesses.streamed or not program.meets
    held = program.elements // (MOST_WARPS * lanes)
    return MOST_WARPS if alone and held < COMPUTED_PER_THREAD else MOST_REDUCING
