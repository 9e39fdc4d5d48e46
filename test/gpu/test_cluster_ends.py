"""How the products of `cluster_ends.py` end: as the compiler decides, and as it did."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cluster_ends
import cluster_ways


def test_clusters_end_in_each_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_ways, "SHAPES", cluster_ends.SHAPES[:1])
    monkeypatch.setattr(cluster_ways, "STAGES", (None,))
    cluster_ways.build(tmp_path)
    printed = capsys.readouterr().out.splitlines()
    assert [line.rpartition(", as many slots, ")[2] for line in printed] == [
        "now: 0 meetings at the end, 0 relaxed, 2 waits",
        "relaxed meeting: 1 meetings at the end, 1 relaxed, 1 waits",
        "no meeting: 0 meetings at the end, 0 relaxed, 1 waits",
    ]
    entries = json.loads((tmp_path / cluster_ends.MANIFEST).read_text()).values()
    assert [entry["way"] for entry in entries] == list(cluster_ends.WAYS)
