"""From records of cases to the table of ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

HEADER = (
    f"{'case':38s} {'tilec':>6s} {'best':>6s} {'Triton':>6s} {'torch':>6s}"
    f" {'/Tri':>5s} {'best/':>5s}  best of tilec | of Triton"
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
    return speed(record, "tilec default") / triton, best / triton


def _line(record: Record) -> str:
    best, triton = fastest(record, "tilec"), fastest(record, "triton")
    speeds = [speed(record, name) for name in ("tilec default", best, triton, "torch")]
    digits = 1 if record["flops"] else 0
    shown = " ".join(f"{value:6.{digits}f}" for value in speeds)
    of_default, of_best = ratios(record)
    labels = " | ".join((name or "none").partition(" ")[2] for name in (best, triton))
    return f"{record['case']:38s} {shown} {of_default:5.2f} {of_best:5.2f}  {labels}"


def _summary(kernel: str, group: Sequence[Record]) -> str:
    found = [pair for pair in map(ratios, group) if not any(map(math.isnan, pair))]
    if not found:
        return f"{kernel}: no case has both tilec's default and Triton"
    default, best = zip(*found, strict=True)
    return (
        f"{kernel}: default >= 1.00 x Triton in {sum(r >= 1 for r in default)}/{len(group)}, "
        f"geometric mean {_mean(default):.3f}, least {min(default):.3f}; "
        f"best variant in {sum(r >= 1 for r in best)}/{len(group)}, "
        f"mean {_mean(best):.3f}, least {min(best):.3f}"
    )


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
