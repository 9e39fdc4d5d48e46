"""The decision report as text: what the compiler chose by itself, where, and why."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tilec.messages.diagnostics import PerformanceWarning


class Report(str):
    """Lines for people: as what a cell of a notebook gives they are shown as lines."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def show_report(report: Mapping[str, Any]) -> str:
    """A report (`CompiledKernel.report`) as lines, one decision each, in the compiler's order.

    What was decided of one place several times alike, as where a loop is unrolled, is a line with
    their number.
    """
    alike = Counter(tuple(entry.items()) for entry in report.get("decisions", ()))
    lines = []
    for entry, count in ((dict(items), count) for items, count in alike.items()):
        where = f"{_from_here(entry['at'])}: " if entry["at"] else ""
        times = f", {count} times" if count > 1 else ""
        lines.append(f"{where}{entry['about']}: {entry['chosen']} ({entry['why']}){times}")
        if "layout" in entry:
            lines.append(f"    layout {entry['layout']}")
    times = report.get("milliseconds")
    if times:
        spent = ", ".join(f"{level} {value:.0f}" for level, value in times.items())
        lines.append(f"compile time in ms: {spent}; {sum(times.values()):.0f} in all")
    return "\n".join(lines)


WARNED = ("registers", "array", "wgmma")
"""What decisions are about that surely make a kernel slow."""


def slow(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The position and the text of each decision that the author should hear of."""
    for entry in report["decisions"]:
        if entry["about"] in WARNED:
            yield entry["at"], f"{entry['about']}: {entry['chosen']} ({entry['why']})"


_ANNOUNCED: dict[Any, Any] = {}
"""What `warnings` has shown, so that it shows it once."""


def announce(report: Mapping[str, Any]) -> None:
    """A PerformanceWarning for each thing that surely makes a kernel slow."""
    for at, text in slow(report):
        path, line, _ = at.rsplit(":", 2)
        warnings.warn_explicit(
            f"{at}: {text}", PerformanceWarning, path, int(line), registry=_ANNOUNCED
        )


def _from_here(place: str) -> str:
    """A place below the working directory as seen from there: lines stay short, links work."""
    return place.removeprefix(f"{os.getcwd()}{os.sep}")
