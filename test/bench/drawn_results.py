"""From records of drawn cases to the distribution: how fast tilec's untuned kernels are beside the
fastest peer of each case, and where not, what the decision report says of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OURS, PART = "tilec", "bound"
"""How names of tilec's variants begin, and of those that do a part of the work only."""
SHOWN = 10
"""Cases that are shown as the worst."""


@dataclass(frozen=True)
class Verdict:
    """The speed of one untuned variant over that of the fastest peer."""

    kind: str
    case: str
    ratio: float
    us: float
    peer: str
    reason: str


def verdicts(records: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """One for each untuned variant of each case that has a peer.

    A product has two: what `tilec.ops.matmul` launches, and the README's kernel with `tl.auto`,
    which is of a class of its own.
    """
    return [verdict for record in records for verdict in _of_record(record)]


def _of_record(record: Mapping[str, Any]) -> Iterator[Verdict]:
    times = {name: median for name, (median, *_) in record["us"].items()}
    peers = [name for name in times if name.split()[0] not in (OURS, PART)]
    if not peers:
        return
    peer = min(peers, key=times.__getitem__)
    untuned = [name for name in record["untuned"] if name in times]
    for name in untuned:
        us, is_kernel = times[name], "tilec ops" in record["untuned"] and name != "tilec ops"
        kind = f"{record['kind']}, tl.auto" if is_kernel else record["kind"]
        reason = record["reasons"].get(name.removeprefix(f"{OURS} "), "")
        yield Verdict(kind, record["case"], times[peer] / us, us, peer, reason)


def table(found: Sequence[Verdict]) -> list[str]:
    """A line for all, one for each class, then the worst cases of all."""
    if not found:
        return ["no case has both tilec and a peer"]
    own = [v for v in found if not v.kind.endswith("tl.auto")]
    lines = [f"{'class':22s} {'cases':>5s} {'mean':>6s} {'>=1':>5s} {'p5':>6s} {'least':>6s}"]
    lines.append(_line("all", own or found))
    for kind in dict.fromkeys(sorted(verdict.kind for verdict in found)):
        lines.append(_line(kind, [v for v in found if v.kind == kind]))
    lines.append("the worst:")
    for v in sorted(own or found, key=lambda v: v.ratio)[:SHOWN]:
        lines.append(f"{v.ratio:6.3f} {v.kind}: {v.case}: {v.us:.1f} us; {v.peer}")
        lines.append(f"       {v.reason}")
    return lines


def _line(kind: str, group: Sequence[Verdict]) -> str:
    ratios = sorted(verdict.ratio for verdict in group)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    reached = sum(ratio >= 1 for ratio in ratios) / len(ratios)
    fifth = percentile(ratios, 5)
    return f"{kind:22s} {len(ratios):5d} {mean:6.3f} {reached:5.0%} {fifth:6.3f} {ratios[0]:6.3f}"


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Of numbers in ascending order, between neighbours by the straight line."""
    at = (len(ordered) - 1) * percent / 100
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


TELLING = (
    *("registers", "array", "wgmma", "asynchronous copy", "tensor map", "producer"),
    *(
        "warp specialisation",
        "pipeline",
        "dot operand",
        "matrix instructions",
        "memory access",
        "fit",
    ),
    *("conversion", "programs", "layout", "dot instruction", "warps"),
)
"""What decisions are about, that which says most of a slow kernel first."""
NEGATIVE = (
    "no",
    "not ",
    "each CTA its own",
    "lhs not",
    "finished in",
    "multiplied out",
    "loads and",
)
"""How decisions begin that leave something out."""
SPILLS = 16
"""Bytes from which on spills are named."""


def reason(entry: Mapping[str, Any], decisions: Sequence[Mapping[str, Any]]) -> str:
    """The line of a report that says most of why a kernel may be slow, and ptxas's spills.

    Of decisions that leave something out that of the first subject of `TELLING`, else any of the
    first subject there is.
    """
    spills = entry.get("spills", 0)
    begin = f"{spills} bytes of spills; " if spills >= SPILLS else ""
    known = [d for d in decisions if d["about"] in TELLING]
    left_out = [d for d in known if d["chosen"].startswith(NEGATIVE) or d["about"] == TELLING[0]]
    for group in (left_out, known, list(decisions)):
        if group:
            best = min(group, key=_rank)
            return f"{begin}{best['about']}: {best['chosen']} ({best['why']})"
    return begin or "the report is empty"


def _rank(decision: Mapping[str, Any]) -> int:
    about = decision["about"]
    return TELLING.index(about) if about in TELLING else len(TELLING)
