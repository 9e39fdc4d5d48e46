"""The smallest kernel that is received like another: lines go as long as it stays so."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable

from random_functions.cases import Case
from random_functions.kernel_writer import Line
from random_functions.placing import DENSE

ALIKE = 24
"""Characters at the beginning of two outcomes that are the same."""


def shrunk(case: Case, outcome: Callable[[Case], str], found: str) -> str:
    """A case's text without the lines, demands and arrays that `found` does without, and the shapes
    of its arrays."""
    small = copy.deepcopy(case)

    def still() -> bool:
        try:
            return outcome(small)[:ALIKE] == found[:ALIKE]
        except Exception:  # what is left does not even run in NumPy
            return False

    for _ in range(2):
        _without_lines(small.kernel.body, still)
    for part in filter(None, small.demands.split(", ")):
        before = small.demands
        small.demands = ", ".join(p for p in before.split(", ") if p != part)
        if not still():
            small.demands = before
    _without_arrays(small, still)
    lies = small.lies
    small.lies = [DENSE] * len(lies)
    if not still():
        small.lies = lies
    pairs = zip(small.kernel.arrays, small.arguments, strict=True)
    shapes = ", ".join(f"{array.name} {array.dtype}{list(a.shape)}" for array, a in pairs)
    lie = f"\n{small.lies}" if small.lies == lies else ""
    return f"{small.text}grid {small.grid}: {shapes}{lie}"


def _without_lines(lines: list[Line], still: Callable[[], bool]) -> None:
    for position in reversed(range(len(lines))):
        line = lines.pop(position)
        if still():
            continue
        lines.insert(position, line)
        if line.body:
            _without_lines(line.body, still)


def _without_arrays(case: Case, still: Callable[[], bool]) -> None:
    used = re.findall(r"\w+", "\n".join(t for line in case.kernel.body for t in line.lines()))
    before = case.kernel.arrays, case.arguments, case.lies
    kept = [n for n, array in enumerate(case.kernel.arrays) if array.name in used]
    if any(case.lies[n].same_as is not None for n in kept):
        return  # by the number of an array
    case.kernel.arrays = [case.kernel.arrays[n] for n in kept]
    case.arguments = [case.arguments[n] for n in kept]
    case.lies = [case.lies[n] for n in kept]
    if not still():
        case.kernel.arrays, case.arguments, case.lies = before
