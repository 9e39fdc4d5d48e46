"""Every ring at full length: `python test/long_rings/ring_sweep.py [words of names ...]`.

Runs the cases of `ringed_examples` and `ringed_products` for their targets in check and late mode,
at the sizes of their own plans, and prints a line for each, with its CPU time, and a summary.
`--target`: one target.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ring_checks import check_case
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
    told = parser.parse_args()
    kernels: set[tuple[str, str]] = set()
    rows = findings = 0
    for name, (case, targets) in EVERYTHING.items():
        if told.words and not any(word in name for word in told.words):
            continue
        for target in targets:
            if told.target and target not in told.target:
                continue
            if told.list:
                print(name, target)
                continue
            start = time.process_time()
            outcome = check_case(case, target)
            rows += 1
            findings += bool(outcome.finding)
            kernels.update((each, target) for each in outcome.kernels)
            plan = outcome.plan
            print(
                f"{name:32} {target:8} {plan.stages:2} stages {plan.programs:3} programs "
                f"{time.process_time() - start:6.1f} s  {outcome.finding or 'ok'}",
                flush=True,
            )
    print(f"{rows} cases and targets, {len(kernels)} kernels and targets, {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    raise SystemExit(main())
