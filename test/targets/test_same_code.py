"""Code does not depend on the process that makes it: not on addresses, nor on hashes of texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from example_defaults import CASES
from same_code import code_of
from target_names import MAIN

from tilec.hardware.target import TARGETS

SHARE = [(name, MAIN[number % len(MAIN)]) for number, name in enumerate(CASES)][2::5]
WHOLE = [(name, target) for name in CASES for target in TARGETS]


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_processes_agree(seed: int, every_mutant: bool) -> None:
    cases = WHOLE if every_mutant else SHARE
    other = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("same_code.py")), str(seed)],
        input=json.dumps(cases),
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert other.returncode == 0, other.stderr
    there = json.loads(other.stdout)
    assert [case for case, code in zip(cases, there, strict=True) if code != code_of(*case)] == []
