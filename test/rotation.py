"""What a run takes of long lists: another share for every state of the compiler, all in turn.

`share` takes from a list; a test marked `share(3)` runs one in three of its cases; `modes` are the
emulator's modes for a test. `pytest --every-mutant` (`make test-mutants`) takes everything.
"""

from __future__ import annotations

import functools
import hashlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

Item = TypeVar("Item")
ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("tilec", "dialects", "passes", "runtime")
WHOLE = "TILEC_EVERY_MUTANT"
"""Set in the environment by conftest.py where the run takes everything."""

LATE = pytest.param("late", marks=pytest.mark.share(3))
MODES = ("check", LATE)
"""For tests with a parameter `mode`. Check mode executes what eager mode does, and of the mutants
in mutation/README.md late mode alone finds none: it is kept for one case in three."""


@functools.cache
def turn() -> int:
    """A number drawn from the contents of the compiler's files: the same on every machine."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:4], "big")


def share(items: Sequence[Item], of: int, *, everything: bool) -> list[Item]:
    """Every `of`-th item, from another one at another turn; or all."""
    return list(items) if everything else list(items)[turn() % of :: of]


def is_due(case: str, of: int) -> bool:
    """Whether a test's case, by its name, is among the one in `of` that this run takes."""
    return WHOLE in os.environ or (zlib.crc32(case.encode()) + turn()) % of == 0


def modes() -> tuple[str, ...]:
    """As `MODES`, for a test that runs in one mode after the other."""
    case, _, _ = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")
    return ("late", "check") if is_due(case, 3) else ("check",)
