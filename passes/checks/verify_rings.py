"""verify-rings: who fills and who empties a ring agree, on all ways through a kernel.

The roles of a kernel are played against each other with a few made-up sizes (`ring_play.py`): every
role computes its scalars, and takes its turns. Nothing else is done. Found are

1. a slot that is filled before it was acquired, read before it was waited for, or by products after
   it was released;
2. a turn that is acquired and never published, waited for and never released, or filled and never
   read;
3. more, or fewer, arrivals and bytes than a slot needs: what waits for it waits for ever;
4. a turn that overtakes: a slot that is filled again before it was read.

Programs that come in with rings are played before any pass runs, and those that leave products
pending, which still read buffers, without rings, too.
Does not handle: mbarriers, which is what rings become last (the emulator checks those).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import MakeRingOp, RingTurn, WgmmaWaitOp
from tilec.passes.checks.ring_play import play
from tilec.passes.checks.ring_state import Broken
from tilec.passes.contract import PassContext, show_location
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import find_ops, kernels

MOST_SEEDS, STEPS = 12, 3000
"""Of made-up sizes at most, and how many ops of a CTA are played for each."""

ONE_IN = 16
"""One part of that in so many is played after each pass, which keeps it cheaper than the passes."""


def verify_rings(module: ir.Module, context: PassContext, *, one_in: int = 1) -> None:
    """CompileError at the first op that breaks the protocol of its ring.

    More and more sizes are played, three at least, until every turn was one's. With `one_in` above
    1: one of them alone, and so many times fewer steps.
    """
    for function in kernels(module):
        if _has_rings(function) or (one_in == 1 and _leaves_products(function)):
            _play_all(function, context, one_in)


def _has_rings(function: ir.Operation) -> bool:
    views = function.regions[0].blocks[0].operations
    return any(ring.bytes for ring in of_kind(views, MakeRingOp))


def _leaves_products(function: ir.Operation) -> bool:
    """Whether products may still read their buffers behind a wait."""
    return any(wait.opview.pending for wait in find_ops(function, WgmmaWaitOp))


def _play_all(function: ir.Operation, context: PassContext, one_in: int) -> None:
    turns = find_ops(function, RingTurn) if one_in == 1 else []
    for seed in range(1, MOST_SEEDS + 1):
        played = _play(function, context, seed, STEPS // one_in)
        turns = [turn for turn in turns if turn not in played]
        if one_in > 1 or (seed >= 3 and not turns):
            return


def _play(function: ir.Operation, context: PassContext, seed: int, steps: int) -> OpSet:
    """The ops that were played."""
    try:
        return play(function, context, seed, steps)
    except Broken as broken:
        notes = ()
        if broken.other is not None:
            at = show_location(broken.other)
            notes = (f"against '{broken.other.name}'{f' at {at}' if at else ''}",)
        raise error_at(broken.op, f"'{broken.op.name}' op {broken.why}", *notes) from None
