"""From records of cases measured in regimes to the table of ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


def table(records: Sequence[Record]) -> list[str]:
    """A line a case and regime, grouped by kernel, and how many reached what.

    `anchor` in TFLOP/s, then the ratio to it to reach, and the ratios to it of tilec's untuned
    ones and best variant; a star: reached. Then the best variant over each rival's fastest.
    """
    lines = []
    for kernel in dict.fromkeys(record["kernel"] for record in records):
        group = [record for record in records if record["kernel"] == kernel]
        lines += [_header(group[0]), *(_line(r, regime) for r in group for regime in r["goals"])]
        lines.append(_summary(kernel, group))
    return lines


def _header(record: Record) -> str:
    rivals = " ".join(f"{'/' + rival.split()[-1][:8]:>9s}" for rival in record["rivals"])
    untuned = " ".join(f"{name.split()[-1]:>7s}" for name in record["untuned"])
    return (
        f"{'case':32s} {'regime':11s} {record['anchor']:>7s} {'goal':>5s} {untuned} "
        f"{'best':>6s}  {rivals}  best of tilec | fastest rival"
    )


def _summary(kernel: str, group: Sequence[Record]) -> str:
    rows = [(record, regime) for record in group for regime in record["goals"]]
    reached = sum(_to_anchor(*row, _best(*row)) >= row[0]["goals"][row[1]] for row in rows)
    near = sum(
        any(ratio(*row, name, _best(*row)) >= 0.95 for name in row[0]["untuned"]) for row in rows
    )
    ahead = sum(
        ratio(*row, _best(*row), fastest(*row, "triton")) >= 1
        for row in rows
        if fastest(*row, "triton")
    )
    return (
        f"{kernel}: goal reached in {reached}/{len(rows)}, >= Triton's best in {ahead}, "
        f"untuned within 5 % of the best in {near}"
    )


def fastest(record: Record, regime: str, family: str) -> str | None:
    """The fastest peer whose name begins with `family`; None if none ran."""
    times = {
        name: timing["us"]
        for name, timing in record["regimes"][regime].items()
        if name.startswith(family)
    }
    return min(times, key=times.__getitem__, default=None)


def ratio(record: Record, regime: str, ours: str | None, theirs: str | None) -> float:
    """Speed of one peer over that of another; NaN where one did not run."""
    found = record["regimes"][regime]
    if ours not in found or theirs not in found:
        return math.nan
    return found[theirs]["us"] / found[ours]["us"]


def speed(record: Record, regime: str, name: str | None) -> float:
    """TFLOP/s."""
    found = record["regimes"][regime]
    return record["flops"] / found[name]["us"] / 1e6 if name in found else math.nan


def _best(record: Record, regime: str) -> str | None:
    return fastest(record, regime, "tilec")


def _to_anchor(record: Record, regime: str, name: str | None) -> float:
    return ratio(record, regime, name, fastest(record, regime, record["anchor"]))


def _line(record: Record, regime: str) -> str:
    goal, best = record["goals"][regime], _best(record, regime)
    untuned = [_to_anchor(record, regime, name) for name in record["untuned"]]
    shown_untuned = " ".join(f"{value:7.3f}" for value in untuned)
    reached = _to_anchor(record, regime, best)
    rivals = [fastest(record, regime, rival) for rival in record["rivals"]]
    shown = " ".join(_shown(ratio(record, regime, best, rival)) for rival in rivals)
    times = record["regimes"][regime]
    rival = min(filter(None, rivals), key=lambda name: times[name]["us"], default="none")
    anchor = speed(record, regime, fastest(record, regime, record["anchor"]))
    return (
        f"{record['case']:32s} {regime:11s} {anchor:7.1f} {goal:5.2f} {shown_untuned} "
        f"{reached:6.3f}{'*' if reached >= goal else ' '} {shown}  "
        f"{(best or 'none').removeprefix('tilec ')} | {rival}"
    )


def _shown(value: float) -> str:
    return f"{'-':>9s}" if math.isnan(value) else f"{value:9.3f}"
