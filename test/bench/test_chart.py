"""The README's table and its picture say what the records say."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import chart
from chart import CHART, README, ROWS, Row, picture, ratios, record_of, table, with_table


def test_both_are_made_from_the_records() -> None:
    """Where this fails: `python test/bench/chart.py`."""
    text = README.read_text()
    assert with_table(text) == text
    assert CHART.read_text() == picture()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_a_row_shows_cases_of_its_record(row: Row) -> None:
    names = [case["case"] for case in record_of(row.record)["records"]]
    assert names.count(row.case) == 1 or row.case == ""
    assert ratios(row)
    assert "69 cases" not in row.what or len(names) == 69


def test_more_than_one_means_that_ours_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"tilec ops": {"us": 2.0}, "torch": {"us": 5.0}, "torch b": {"us": 4.0}}
    burst = {"case": "c", "regimes": {"sustained": times, "burst": {**times, "torch": {"us": 1.0}}}}
    record = {"date": "2026-11-21T06:18:45+00:00", "records": [burst, {"case": "other"}]}
    row = Row("w", "a", "r", "c", "tilec ops", "torch")
    monkeypatch.setattr(chart, "record_of", lambda name: record)
    monkeypatch.setattr(chart, "ROWS", (row,))
    assert list(ratios(row).items()) == [("burst", 0.5), ("sustained", 2.0)]
    assert "| w | a | 0.50 / 2.00 | [2026-11-21](test/bench/results/r.json) |" in table()
    monkeypatch.setattr(chart, "ROWS", (Row("w", "a", "r", "c", "torch", "tilec"), row))
    bars = ElementTree.fromstring(picture()).iterfind("{http://www.w3.org/2000/svg}rect")
    assert [bar.get("width") for bar in bars] == ["760", "500.0", "125.0"]


def test_several_cases_are_shown_by_their_geometric_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [{"case": n, "final": {"a": {"us": 1.0}, "b": {"us": n}}} for n in (1.0, 4.0)]
    monkeypatch.setattr(chart, "record_of", lambda name: {"records": cases})
    assert ratios(Row("w", "a", "r", "", "a", "b")) == {"interleaved": pytest.approx(2.0)}
