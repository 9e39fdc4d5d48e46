"""From records of cases measured in regimes to the table of ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

DEFAULT = "tilec default"
KINDS = ("persistent", "specialized", "gluon")

HEADER = (
    f"{'case':26s} {'regime':11s} {'anchor':>7s} {'goal':>5s} {'deflt':>6s} {'best':>6s}  "
    f"{'/pers':>6s} {'/spec':>6s} {'/gluon':>6s} {'/Tri':>6s}  best of tilec | of Triton"
)


def table(records: Sequence[Record]) -> list[str]:
    """A line a case and regime, and how many reached what.

    `anchor` in TFLOP/s; `deflt` and `best` are tilec's default and best variant over the anchor,
    `/pers` and on the best variant over that kind of peer, `/Tri` over the fastest of all Triton's.
    """
    if not records:
        return []
    lines = [HEADER]
    reached = beaten = of = rivals = 0
    for record in records:
        for regime, goal in record["goals"].items():
            lines.append(_line(record, regime, goal))
            best = ratio(record, regime, fastest(record, regime, "tilec"), record["anchor"])
            against = ratio(
                record, regime, fastest(record, regime, "tilec"), fastest(record, regime, "triton")
            )
            of += 1
            reached += best >= goal
            rivals += not math.isnan(against)
            beaten += against >= 1
    lines.append(
        f"goal reached in {reached}/{of}; best variant >= Triton's best in {beaten}/{rivals}"
    )
    return lines


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


def _line(record: Record, regime: str, goal: float) -> str:
    anchor, best = record["anchor"], fastest(record, regime, "tilec")
    triton = fastest(record, regime, "triton")
    peers = [fastest(record, regime, f"triton {kind}") for kind in KINDS]
    to_anchor = [ratio(record, regime, name, anchor) for name in (DEFAULT, best)]
    to_peers = [ratio(record, regime, best, peer) for peer in (*peers, triton)]
    shown = " ".join("     -" if math.isnan(r) else f"{r:6.3f}" for r in to_peers)
    labels = " | ".join((name or "none").partition(" ")[2] for name in (best, triton))
    mark = "*" if to_anchor[1] >= goal else " "
    return (
        f"{record['case']:26s} {regime:11s} {speed(record, regime, anchor):7.1f} {goal:5.2f} "
        f"{to_anchor[0]:6.3f} {to_anchor[1]:6.3f}{mark} {shown}  {labels}"
    )
