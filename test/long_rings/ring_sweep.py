"""Every ring at full length: `python test/long_rings/ring_sweep.py [words of names ...]`.

Runs the cases of `ringed_examples` and `ringed_products` for their targets in check and late mode,
at the sizes of their own plans, and prints a line for each, with its CPU time, and a summary.
`--target`: one target. `--done FILE`: what was printed before, of which nothing right runs again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
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
    parser.add_argument("--done", type=Path, help="output of earlier runs")
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
    right = _right_before(told.done.read_text()) if told.done else set()
    os.environ["TILEC_DEVICE"] = "emulator"  # where there is a GPU, too
    kernels: set[tuple[str, str]] = set()
    findings = 0
    with ProcessPoolExecutor(told.jobs, multiprocessing.get_context("fork")) as pool:
        due = {pool.submit(_timed, *each): each for each in wanted if each not in right}
        for future in as_completed(due):
            (name, target), (outcome, seconds) = due[future], future.result()
            findings += bool(outcome.finding)
            kernels.update((each, target) for each in outcome.kernels)
            plan = outcome.plan
            print(
                f"{name:32} {target:8} {plan.stages:2} stages {plan.programs:3} programs "
                f"{plan.parts:2} parts {seconds:6.1f} s  {outcome.finding or 'ok'}",
                flush=True,
            )
    before = right.intersection(wanted)
    print(
        f"{len(wanted)} cases and targets, {len(before)} of them before, "
        f"{len(kernels)} kernels and targets, {findings} findings"
    )
    return int(findings > 0)


def _right_before(text: str) -> set[tuple[str, str]]:
    """The names and targets of the lines that end in "ok"."""
    lines = re.findall(r"^(.+?) +(sm_\w+) +\d+ stages .* ok$", text, re.MULTILINE)
    return {(name, target) for name, target in lines}


def _timed(name: str, target: str) -> tuple[Outcome, float]:
    """What a case did on a target, and its CPU time in seconds."""
    start = time.process_time()
    outcome = check_case(EVERYTHING[name][0], target)
    return outcome, time.process_time() - start


if __name__ == "__main__":
    raise SystemExit(main())
