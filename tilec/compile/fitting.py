"""Compiles until it fits: where the compiler's own choices exceed a memory, they take less.

A pass that chooses how much memory something gets asks `PassContext.allowance` how much it may. The
passes that place buffers raise `DoesNotFit`; the kernel then starts anew with the next allowance of
the memory that was exceeded. What an author demands is not lessened, so that it remains an error.

Tiles that the author left to the compiler may be others: where the first choice does not fit even
so, its values take more registers than there are (`passes/estimate_registers.py`), or a ring has
one slot, the next choice is lowered in its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mlir import ir

from tilec.messages.diagnostics import DoesNotFit
from tilec.passes.analysis.register_pressure import SUBJECT
from tilec.passes.contract import Allowance, Report

_STAGES = (3, 2, 1)
"""Fewer than a ring of cp.async has at most; rings that a role fills count what is left anyway."""


def less(allowance: Allowance, error: DoesNotFit) -> Allowance | None:
    """The next smaller allowance of the memory that an error is about, None if there is none."""
    if error.memory == "tensor":
        return replace(allowance, tensor_memory=False) if allowance.tensor_memory else None
    fewer = [stages for stages in _STAGES if stages < allowance.stages]
    if fewer:
        return replace(allowance, stages=fewer[0])
    return replace(allowance, copies=False) if allowance.copies else None


def show(allowance: Allowance) -> str:
    """Says, for the report, what an allowance keeps the compiler from."""
    kept = []
    if not allowance.copies:
        kept.append("no buffers ahead of their use")
    elif allowance.stages < Allowance().stages:
        kept.append("one stage" if allowance.stages == 1 else f"at most {allowance.stages} stages")
    if not allowance.tensor_memory:
        kept.append("sums in registers")
    return ", ".join(kept)


MOST_UNSOUND = 9
"""Choices that are lowered one after another, at 0.1 s each, before the least bad of them is
taken."""


class Unsound(Exception):
    """Tiles that fit, but spill or starve; `excess`: registers beyond a thread's, `text`: why."""

    def __init__(self, excess: int, text: str) -> None:
        super().__init__(text)
        self.excess = excess
        self.text = text


def check_sound(constants: Mapping[str, Any], report: Report) -> None:
    """Raises Unsound where the report of a lowered kernel says so."""
    spills = [e for e in report.decisions if e["about"] == SUBJECT]
    excess = max((e.get("live", 0) - e.get("registers", 0) for e in spills), default=0)
    starved = [e for e in report.decisions if e["chosen"] == "no" and e.get("stages") == 1]
    if spills or starved:
        wrong = (spills or starved)[0]
        tiles = ", ".join(f"{n} = {v}" for n, v in constants.items() if isinstance(v, int))
        said = wrong["chosen"] if spills else wrong["why"]
        raise Unsound(excess, f"{tiles}: {wrong['about']}: {said}")


T = TypeVar("T")


def first_sound(
    module: ir.Module,
    other: Callable[[int], ir.Module | None],
    lower: Callable[[ir.Module, Sequence[str], bool], T],
) -> T:
    """Lowers the first choice of tiles that is sound; where none is, that which spills least.

    `lower(module, refused, is_strict)`: `refused` says what was wrong with those before, and
    `is_strict` that Unsound is to be raised. DoesNotFit where no choice fits.
    """
    refused: list[str] = []
    unsound: dict[int, Unsound] = {}
    unfit: DoesNotFit | None = None
    for number in itertools.count():
        try:
            return lower(module, refused, True)
        except Unsound as error:
            unsound[number] = error
            refused.append(error.text)
        except DoesNotFit as error:
            unfit = error
            refused.append(error.message)
        following = other(number + 1) if len(unsound) < MOST_UNSOUND else None
        if following is None:
            break
        module = following
    if not unsound and unfit is not None:
        raise unfit
    least = min(unsound, key=lambda number: unsound[number].excess)
    again = other(least)
    assert again is not None
    return lower(again, refused, False)
