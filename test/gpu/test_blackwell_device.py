"""Tests what the compiler believes of sm_100a: `blackwell_facts.py` on a GPU with tensor memory.

python test/gpu/test_blackwell_device.py                        # on the GPU; compiles just in time
python test/gpu/test_blackwell_device.py --device emulator:check

A line per fact; exit code 0 only if all hold.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "unit"), str(ROOT / "test" / "gpu")]

from blackwell_facts import FACTS, Fact  # noqa: E402

import tilec  # noqa: E402
from tilec.hardware.target import Feature, target_for_device  # noqa: E402
from tilec.runtime.cuda.driver import no_device_reason  # noqa: E402


def missing() -> str | None:
    """Why there is no GPU with tensor memory, None where there is one."""
    reason = no_device_reason()
    if reason is not None:
        return reason
    target = target_for_device(tilec.device("cuda").compute_capability)
    found = target is not None and target.supports(Feature.TCGEN05)
    return None if found else "the GPU has no tensor memory"


try:
    import pytest

    @pytest.mark.gpu
    @pytest.mark.skipif(missing() is not None, reason="needs a GPU with tensor memory")
    @pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
    def test_fact(fact: Fact) -> None:
        fact.check("cuda")
except ImportError:
    pass


def main() -> int:
    """Runs every fact's test; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="facts whose name has this text")
    arguments = parser.parse_args()
    if arguments.device.startswith("cuda"):
        reason = missing()
        if reason is not None:
            print(f"nothing was tested: {reason}")
            return 0
    else:
        os.environ["TILEC_TARGET"] = "sm_100a"
    wrong = 0
    for fact in FACTS:
        if arguments.only not in fact.name:
            continue
        try:
            fact.check(arguments.device)
            print(f"holds  {fact.name}")
        except Exception as error:  # a wrong number, or what the GPU or the compiler says
            wrong += 1
            print(f"WRONG  {fact.name}: {fact.statement}\n       {str(error).strip()[:400]}")
    print(f"{len(FACTS)} facts, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
