"""Every ring at full length: `python test/long_rings/ring_sweep.py [words of names ...]`.

Runs the cases of `ringed_examples` and `ringed_products` for their targets in check and late mode,
at the sizes of their own plans, and prints a line for each, with its CPU time, and a summary.
`--target`: one target.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ring_checks import Outcome, check_case
from ringed_examples import ALL
from ringed_examples import CASES as EXAMPLES
from ringed_products import CASES as PRODUCTS

EVERYTHING = EXAMPLES | PRODUCTS


def main() -> int:
    """Exit code 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases with one of these in their names")
    parser.add_argument("--target", action="append", choices=ALL)
    parser.add_argument("--list", action="store_true", help="print names alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    told = parser.parse_args()
    wanted = [
        (name, target)
        for name, (_, targets) in EVERYTHING.items()
        for target in targets
        if (not told.words or any(word in name for word in told.words))
        and (not told.target or target in told.target)
    ]
    if told.list:
        print("\n".join(f"{name} {target}" for name, target in wanted))
        return 0
    os.environ["TILEC_DEVICE"] = "emulator"  # where there is a GPU, too
    kernels: set[tuple[str, str]] = set()
    findings = 0
    with ProcessPoolExecutor(told.jobs, multiprocessing.get_context("fork")) as pool:
        for (name, target), (outcome, seconds) in zip(
            wanted, pool.map(_timed, *zip(*wanted, strict=True)), strict=True
        ):
            findings += bool(outcome.finding)
            kernels.update((each, target) for each in outcome.kernels)
            plan = outcome.plan
            print(
                f"{name:32} {target:8} {plan.stages:2} stages {plan.programs:3} programs "
                f"{seconds:6.1f} s  {outcome.finding or 'ok'}",
                flush=True,
            )
    print(
        f"{len(wanted)} cases and targets, {len(kernels)} kernels and targets, {findings} findings"
    )
    return int(findings > 0)


def _timed(name: str, target: str) -> tuple[Outcome, float]:
    """What a case did on a target, and its CPU time in seconds."""
    start = time.process_time()
    outcome = check_case(EVERYTHING[name][0], target)
    return outcome, time.process_time() - start


if __name__ == "__main__":
    raise SystemExit(main())
