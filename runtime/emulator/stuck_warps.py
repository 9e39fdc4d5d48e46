"""The deadlock report: which warps of which CTAs wait for what, alike ones on one line."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 12


class StuckWarps:
    """Collects (CTA, warp, what it waits for); CTAs are counted from `first` of the grid."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.waits: dict[str, dict[int, set[int]]] = {}

    def add(self, cta: int, warps: Iterable[int], what: str) -> None:
        self.waits.setdefault(what, {}).setdefault(cta, set()).update(warps)

    def lines(self) -> list[str]:
        """`CTAs 0-3: warps 0-7 WHAT`, at most a dozen."""
        found = []
        for what, ctas in self.waits.items():
            groups: dict[frozenset[int], list[int]] = {}
            for cta, warps in ctas.items():
                groups.setdefault(frozenset(warps), []).append(self.first + cta)
            for warps, where in groups.items():
                found.append(f"{ranges('CTA', where)}: {ranges('warp', warps)} {what}")
        more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
        return found[:_MOST] + more


def ranges(noun: str, numbers: Iterable[int]) -> str:
    """`warp 3`, `warps 0-3, 8`."""
    ordered = sorted(numbers)
    parts: list[list[int]] = []
    for number in ordered:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    texts = [f"{p[0]}-{p[-1]}" if len(p) > 2 else ", ".join(map(str, p)) for p in parts]
    return f"{noun}{'s' if len(ordered) > 1 else ''} {', '.join(texts)}"
