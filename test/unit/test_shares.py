"""A share of a list is always the same, and of every row, column and kind there is some in it."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import shares
from shares import (
    WHOLE,
    is_checked,
    leave_a_share,
    modes,
    note_places,
    share,
    share_of_each,
)


def test_a_share_of_a_list() -> None:
    assert share(range(7), 3, everything=False) == [0, 3, 6]
    assert share("abc", 3, everything=True) == ["a", "b", "c"]


def test_a_share_of_each_kind() -> None:
    assert [*share_of_each("aabacba", 2, str, everything=False)] == ["a", "b", "a", "c"]
    assert [*share_of_each("aabacba", 2, str, everything=True)] == [*"aabacba"]


@dataclass(eq=False)
class Case:
    """As much of a pytest item as shares look at."""

    nodeid: str
    callspec: SimpleNamespace
    marks: tuple[Any, ...] = ()

    def iter_markers(self, name: str) -> list[Any]:
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> Any:
        return next(iter(self.iter_markers(name)), None)


def table(name: str, rows: int, columns: int, of: int) -> list[Case]:
    """The cases of a test with two parameters."""
    mark = pytest.mark.share(of).mark
    return [
        Case(f"{name}[{row}-{column}]", SimpleNamespace(_idlist=[f"{row}", f"{column}"]), (mark,))
        for row in range(rows)
        for column in range(columns)
    ]


def taken(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.setattr(shares, "PLACES", {})
    note_places(cases)
    kept, left = leave_a_share(cases)
    assert len(kept) + len(left) == len(cases)
    assert kept == [case for case in cases if case in kept]
    return {case.nodeid for case in kept}


@pytest.mark.parametrize("columns", [3, 4, 6])
def test_of_a_table_every_row_and_column_is_there(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = taken(table("a.py::test", 6, columns, 3), monkeypatch)
    assert {int(name.split("[")[1].split("-")[0]) for name in kept} == {*range(6)}
    assert {int(name.split("-")[1][:-1]) for name in kept} == {*range(columns)}
    assert len(kept) == 6 * columns // 3


def test_of_every_test_one_case_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [table(f"a.py::test_{n}", 1, 2, 50) for n in range(20)]
    kept = taken([case for cases in tests for case in cases], monkeypatch)
    assert {name.split("[")[0] for name in kept} == {f"a.py::test_{n}" for n in range(20)}


def test_programs_are_checked_in_some_cases_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WHOLE, raising=False)
    monkeypatch.setattr(shares, "PLACES", {})
    cases = [case.nodeid for n in range(30) for case in table(f"a.py::test_{n}", 6, 4, 1)]
    note_places([case for n in range(30) for case in table(f"a.py::test_{n}", 6, 4, 1)])
    found = [name for name in cases if is_checked(name)]
    assert len(cases) // 6 < len(found) < len(cases) // 4
    assert {int(name.split("-")[1][:-1]) for name in found[:8]} == {*range(4)}
    alone = [name for name in cases if name.endswith("[0-0]")]
    assert 3 <= sum(map(is_checked, alone)) <= 9
    monkeypatch.setenv(WHOLE, "1")
    assert all(map(is_checked, cases))


def test_the_late_mode_is_for_one_case_in_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WHOLE, raising=False)
    assert [modes(place) for place in range(3)] == [("late", "check"), ("check",), ("check",)]
    monkeypatch.setenv(WHOLE, "1")
    assert modes(1) == ("late", "check")


@pytest.mark.parametrize("column", "abc")
@pytest.mark.parametrize("row", range(3))
def test_places_are_what_pytest_says(row: int, column: str, request: pytest.FixtureRequest) -> None:
    """Of the values of stacked parameters, of which `callspec.indices` does not tell."""
    first = shares.PLACES[request.node.nodeid.partition("[")[0] + "[0-a]"]
    assert shares.PLACES[request.node.nodeid] - first == row + "abc".index(column)
