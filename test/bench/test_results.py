"""The table says what the records say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from records import WIDTH, record_text
from results import fastest, ratios, speed, table


def record(flops: int = 0, **microseconds: float) -> dict:
    """A record with finalists named like `tilec_default=10.0`."""
    final = {name.replace("_", " "): {"us": us} for name, us in microseconds.items()}
    kernel = "matmul" if flops else "softmax"
    return {"case": "c", "kernel": kernel, "nbytes": 2 * 10**9, "flops": flops, "final": final}


def test_speeds_and_ratios() -> None:
    found = record(tilec_default=500.0, tilec_w8=400.0, triton_a=450.0, triton_b=440.0, torch=800.0)
    assert fastest(found, "tilec") == "tilec w8"
    assert fastest(found, "triton") == "triton b"
    assert speed(found, "tilec default") == 4000.0
    of_default, of_best = ratios(found)
    assert (round(of_default, 3), round(of_best, 3)) == (0.88, 1.1)
    assert round(speed(record(10**12, torch=2000.0), "torch"), 9) == 500.0


def test_summary_counts_what_reached_triton() -> None:
    slow = record(tilec_default=500.0, triton_a=400.0)
    fast = record(tilec_default=400.0, triton_a=500.0)
    no_triton = record(tilec_default=400.0)
    lines = table([slow, fast, no_triton])
    assert len(lines) == 5
    counted = "default >= 1.00 x Triton in 1/3, >= 0.99 in 1/3, mean 1.000, least 0.800"
    assert counted in lines[-1]
    assert "timed twice" not in lines[-1]
    assert "nan" in lines[-2]


def test_noise_is_what_the_same_launch_differs_by() -> None:
    found = record(tilec_default=400.0, again_tilec_default=404.0, triton_a=400.0)
    assert fastest(found, "tilec") == "tilec default"
    assert "timed twice differs by 1.00% (most 1.00%)" in table([found])[-1]


def test_a_record_has_a_line_for_each_case_and_none_too_long() -> None:
    cases = [{"name": f"case {n}", "times": [0.5] * n, "best": None} for n in (1, 3, 200)]
    record = {"date": "2026-11-22", "cases": cases, "broken": {}}
    text = record_text(record)
    assert json.loads(text) == record
    assert [line for line in text.splitlines() if '"case 3"' in line] == [
        f"  {json.dumps(cases[1])},"
    ]
    assert max(map(len, text.splitlines())) <= WIDTH + 1  # a comma
