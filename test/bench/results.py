"""From records of cases to the table of ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

DEFAULT = "tilec default"
AGAIN = "again tilec default"
"""The same launch once more, as a peer of its own: what differs between the two is noise."""

HEADER = (
    f"{'case':38s} {'tilec':>6s} {'best':>6s} {'Triton':>6s} {'torch':>6s}"
    f" {'/Tri':>6s} {'best/':>6s}  best of tilec | of Triton"
)


def table(records: Sequence[Record]) -> list[str]:
    """A line a case, a summary a kernel. Speeds in GB/s, or TFLOP/s of matrix products."""
    lines = []
    for kernel in dict.fromkeys(record["kernel"] for record in records):
        group = [record for record in records if record["kernel"] == kernel]
        unit = "TFLOP/s" if kernel == "matmul" else "GB/s"
        lines += [f"{HEADER} ({unit})", *map(_line, group), _summary(kernel, group)]
    return lines


def fastest(record: Record, family: str) -> str | None:
    """The fastest finalist of "tilec", "triton" or "torch"; None if none ran."""
    times = {n: t["us"] for n, t in record["final"].items() if n.split()[0] == family}
    return min(times, key=times.__getitem__, default=None)


def speed(record: Record, name: str | None) -> float:
    """GB/s or TFLOP/s of a finalist; NaN where there is none."""
    if name is None or name not in record["final"]:
        return math.nan
    work = record["flops"] / 1e3 if record["flops"] else record["nbytes"]
    return work / record["final"][name]["us"] / 1e3


def ratios(record: Record) -> tuple[float, float]:
    """Of the default, and of the best variant, to Triton's best in the same run."""
    triton = speed(record, fastest(record, "triton"))
    best = speed(record, fastest(record, "tilec"))
    return speed(record, DEFAULT) / triton, best / triton


def _line(record: Record) -> str:
    best, triton = fastest(record, "tilec"), fastest(record, "triton")
    speeds = [speed(record, name) for name in (DEFAULT, best, triton, "torch")]
    digits = 1 if record["flops"] else 0
    shown = " ".join(f"{value:6.{digits}f}" for value in speeds)
    of_default, of_best = ratios(record)
    labels = " | ".join((name or "none").partition(" ")[2] for name in (best, triton))
    return f"{record['case']:38s} {shown} {of_default:6.3f} {of_best:6.3f}  {labels}"


def _summary(kernel: str, group: Sequence[Record]) -> str:
    found = [pair for pair in map(ratios, group) if not any(map(math.isnan, pair))]
    if not found:
        return f"{kernel}: no case has both tilec's default and Triton"
    default, best = zip(*found, strict=True)
    noise = sorted(abs(_noise(record)) for record in group if AGAIN in record["final"])
    parts = [f"{kernel}: default {_counts(default, len(group))}"]
    parts.append(f"best variant {_counts(best, len(group))}")
    if noise:
        middle = noise[len(noise) // 2]
        parts.append(f"the default timed twice differs by {middle:.2%} (most {noise[-1]:.2%})")
    return "; ".join(parts)


def _counts(values: Sequence[float], of: int) -> str:
    reached, near = (sum(value >= least for value in values) for least in (1.0, 0.99))
    return (
        f">= 1.00 x Triton in {reached}/{of}, >= 0.99 in {near}/{of}, "
        f"mean {_mean(values):.3f}, least {min(values):.3f}"
    )


def _noise(record: Record) -> float:
    return record["final"][AGAIN]["us"] / record["final"][DEFAULT]["us"] - 1


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
