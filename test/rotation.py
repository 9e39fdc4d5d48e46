"""Which share of a long list a run takes: another for every state of the compiler, all in turn.

`pytest --every-mutant` (`make test-mutants`) takes the whole.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("tilec", "dialects", "passes", "runtime")


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
