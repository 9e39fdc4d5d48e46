"""What a run takes of long lists: a fixed share, the same in every run of every commit.

`share` takes from a list, `share_of_each` from each kind in it; a test marked `share(3)` runs one
in three of its cases; `modes` are the emulator's modes for a test; `is_checked` says which cases
have their programs checked around every pass. `pytest --every-mutant` (`make test-mutants`) takes
everything.

A case's place is the sum of its parameters' positions in their lists, so that of a table of
parameters each share is a diagonal: every row and every column is in it.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

import pytest

Item = TypeVar("Item")
WHOLE = "TILEC_EVERY_MUTANT"
"""Set in the environment by conftest.py where the run takes everything."""

LATE = pytest.param("late", marks=pytest.mark.share(3))
MODES = ("check", LATE)
"""For tests with a parameter `mode`. Check mode executes what eager mode does, and of the mutants
in mutation/README.md late mode alone finds none: it is kept for one case in three."""

CHECKED = 5
"""Of so many cases one has its programs checked around every pass; of three it was 8.6 % of the
suite's time."""

PLACES: dict[str, int] = {}
"""Of each case that was collected, by its node's name."""


def share(items: Sequence[Item], of: int, *, everything: bool) -> list[Item]:
    """Every `of`-th item from the first on; or all."""
    return list(items) if everything else list(items)[::of]


def share_of_each(
    items: Sequence[Item], of: int, kind: Callable[[Item], Hashable], *, everything: bool
) -> Iterator[Item]:
    """The first item of each kind and every `of`-th behind it, in their order; or all."""
    seen: defaultdict[Hashable, int] = defaultdict(int)
    for item in items:
        if everything or seen[kind(item)] % of == 0:
            yield item
        seen[kind(item)] += 1


def note_places(cases: Sequence[pytest.Item]) -> None:
    """Fills `PLACES` with numbers by which shares are taken: of the test's name, and of each
    parameter how many other values of it came before."""
    ranks: defaultdict[Hashable, dict[str, int]] = defaultdict(dict)
    for case in cases:
        test = case.nodeid.partition("[")[0]
        place = zlib.crc32(test.encode())
        values = case.callspec._idlist if hasattr(case, "callspec") else ()
        for axis, value in enumerate(values):
            known = ranks[test, axis]
            place += known.setdefault(value, len(known))
        PLACES[case.nodeid] = place


def leave_a_share(cases: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The cases that run, and those marked `share` that do not. Of each test's cases with a mark
    one is in its share at least; `share(3, place=n)` says a case's place."""
    groups: defaultdict[Hashable, list[pytest.Item]] = defaultdict(list)
    places: dict[tuple[str, int], int] = {}
    for case in cases:
        for mark in case.iter_markers("share"):
            of = mark.args[0]
            places[case.nodeid, of] = mark.kwargs.get("place", PLACES[case.nodeid])
            groups[case.nodeid.partition("[")[0], of].append(case)
    left = set()
    for (_, of), members in groups.items():
        due = {case for case in members if places[case.nodeid, of] % of == 0} or {members[0]}
        left |= {*members} - due
    return [case for case in cases if case not in left], [case for case in cases if case in left]


def is_checked(node: str) -> bool:
    """Whether the case of this name has its programs checked around every pass, which takes half as
    long again as all passes: by its place one in `CHECKED`, of cases of one test and of tests of
    one case. Programs of lit's tests are all checked, whatever the share."""
    return WHOLE in os.environ or PLACES[node] % CHECKED == 0


def modes(place: int | None = None) -> tuple[str, ...]:
    """As `MODES`, for a test that runs in one mode after the other; `place`: instead of the
    case's own, where its parameters are a list of several in one."""
    if place is None:
        case, _, _ = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")
        place = PLACES[case]
    return ("late", "check") if WHOLE in os.environ or place % 3 == 0 else ("check",)
