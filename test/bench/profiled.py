"""The program that ncu runs: python profiled.py CASE PEER ENTRY; see `profiling`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from case_sets import IN_REGIMES, SETS
from profiling import run_profiled
from regime_timing import Duration
from regimes import RegimeJob


def main() -> None:
    """Finds the case by its name and launches the peer."""
    name, peer, entry = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    (case,) = [case for set_ in IN_REGIMES for case in SETS[set_]() if case.name == name]
    files = {peer.removeprefix("tilec "): entry} if entry else {}
    run_profiled(RegimeJob(case, files, "cuda", 1, Duration()), peer)


if __name__ == "__main__":
    main()
