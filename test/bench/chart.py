"""The README's figures: a table and a picture made from records, by `python test/bench/chart.py`.

A newer run is shown by naming its record in `ROWS`. test_chart.py compares both with the records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from statistics import geometric_mean
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "test/bench/results"
README, CHART = ROOT / "README.md", ROOT / RESULTS / "chart.svg"
BEGIN, END = "<!-- from test/bench/chart.py -->\n", "<!-- end -->\n"
REGIMES = ("burst", "sustained", "interleaved")
"""As test/bench/README.md explains them, in the order in which they are shown."""


@dataclass(frozen=True)
class Row:
    """A line: how much faster `ours` is than the fastest peer whose name begins with `theirs`.

    Of a record's case whose name is `case`, or as the geometric mean of all its cases ("").
    """

    what: str
    against: str
    record: str
    case: str
    ours: str
    theirs: str


ROWS = (
    Row("67 memory-bound cases, their mean", "Triton's best",
        "memory-h200-2026-11-29", "", "tilec default", "triton"),
    Row("bf16 product, 8192 cubed", "cuBLAS",
        "products-h200-2026-11-29", "bf16 8192^3 TN", "tilec ops", "torch"),
    Row("fp8 product to f16, 8192 cubed", "cuBLAS",
        "products-h200-2026-11-29", "e4m3 8192^3 TN to fp16", "tilec ops", "torch"),
    Row("bf16 product, 1024 cubed", "cuBLAS",
        "products-h200-2026-11-29", "bf16 1024^3 TN", "tilec ops", "torch"),
    Row("causal attention, f16, 128 elements, 4096 long", "Triton's best",
        "attention-h200-2026-11-29", "attention fp16 D128 4096 causal",
        "tilec default", "triton"),
    Row("3 x 3 convolution, 128 channels of 56 x 56", "cuDNN",
        "tables-h200-2026-11-28", "convolution 128x56x56x128, 3x3, 128",
        "tilec default", "torch"),
)  # fmt: skip


@cache
def record_of(name: str) -> Mapping[str, Any]:
    """A record of test/bench/results."""
    return json.loads((ROOT / RESULTS / f"{name}.json").read_text())


def ratios(row: Row) -> dict[str, float]:
    """Regime: their time over ours, medians of one run; more than 1 means that tilec is faster."""
    cases = [case for case in record_of(row.record)["records"] if row.case in ("", case["case"])]
    timed = [case.get("regimes") or {"interleaved": case["final"]} for case in cases]
    found = [name for name in REGIMES if all(name in each for each in timed)]
    return {name: geometric_mean([_ratio(row, each[name]) for each in timed]) for name in found}


def _ratio(row: Row, times: Mapping[str, Mapping[str, float]]) -> float:
    theirs = [time["us"] for peer, time in times.items() if peer.split()[0] == row.theirs]
    return min(theirs) / times[row.ours]["us"]


def table() -> str:
    """The README's table, a line for each of `ROWS`."""
    lines = ["| on one H200 | against | ratio of speeds | record |", "|---|---|---|---|"]
    for row in ROWS:
        shown = " / ".join(f"{ratio:.2f}" for ratio in ratios(row).values())
        date = record_of(row.record)["date"][:10]
        link = f"[{date}]({RESULTS}/{row.record}.json)"
        lines.append(f"| {row.what} | {row.against} | {shown} | {link} |")
    return "\n".join(lines) + "\n"


def picture() -> str:
    """The first ratio of each row as a bar beside the line at which both are equally fast, as SVG.

    Dark on a light panel of its own, to be read on pages of any colour.
    """
    return "\n".join(_elements()) + "\n"


def _elements(left: int = 372, unit: int = 250, step: int = 38) -> Iterator[str]:
    height, equal = step * len(ROWS) + 50, left + unit
    values = [next(iter(ratios(row).values())) for row in ROWS]
    said = "; ".join(f"{r.what}: {v:.2f} of {r.against}" for r, v in zip(ROWS, values, strict=True))
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" role="img"'
    yield ' aria-labelledby="title desc" font-family="sans-serif" font-size="13" fill="#1f2328">'
    yield '<title id="title">Speed of tilec as a ratio to the peer\'s, on one H200</title>'
    yield f'<desc id="desc">{escape(said)}</desc>'
    yield f'<rect width="760" height="{height}" rx="8" fill="#f6f8fa"/>'
    for number, (row, value) in enumerate(zip(ROWS, values, strict=True)):
        y, end = step * number + 12, value * unit
        colour = "#2f6f4f" if value >= 1 else "#a04010"
        yield f'<text x="{left - 10}" y="{y + 13}" text-anchor="end">{escape(row.what)}</text>'
        yield f'<text x="{left - 10}" y="{y + 27}" text-anchor="end" font-size="11">'
        yield f"against {escape(row.against)}</text>"
        yield f'<rect x="{left}" y="{y + 3}" width="{end:.1f}" height="24" fill="{colour}"/>'
        yield f'<text x="{left + end + 8:.1f}" y="{y + 20}">{value:.2f}</text>'
    yield f'<path d="M{equal} 8V{height - 32}" stroke="#1f2328" stroke-dasharray="4 3"/>'
    yield f'<text x="{equal}" y="{height - 14}" text-anchor="middle">1: equally fast</text>'
    yield "</svg>"


def with_table(page: str) -> str:
    """A page with what stands between the marks made anew."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    CHART.write_text(picture())
    README.write_text(with_table(README.read_text()))
