"""PTX and decisions of kernels, in a process in which all that may have an order by chance has
another: `python same_code.py SEED` reads cases as JSON and writes what `code_of` gives for each.

Python's hashes of texts come from PYTHONHASHSEED, which the caller sets. Those of values, blocks,
types and attributes are their addresses in memory: they are mixed with the seed here, and garbage
stands on the heap between what the compiler makes.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from example_defaults import CASES
from mlir import ir

MASK = (1 << 61) - 1


def code_of(name: str, target: str) -> str:
    """PTX of a kernel with its own defaults, and what was decided."""
    kernel, specs, constants = CASES[name]
    compiled = kernel.compile(specs, constants, target=target)
    return compiled.ptx + json.dumps(compiled.report["decisions"])


def disturb(seed: int) -> list[bytearray | None]:
    """Gives sets of MLIR's objects another order; the garbage lives as long as what it returns."""
    rng = random.Random(seed)
    factor, offset = rng.getrandbits(60) | 1, rng.getrandbits(60)
    for kind in (ir.Value, ir.Block, ir.Type, ir.Attribute):
        _mix(kind, factor, offset)
    garbage: list[bytearray | None] = [bytearray(rng.randrange(16, 3000)) for _ in range(4000)]
    for place in rng.sample(range(len(garbage)), len(garbage) // 2):
        garbage[place] = None
    return garbage


def _mix(kind: type, factor: int, offset: int) -> None:
    own = kind.__hash__
    kind.__hash__ = lambda value: (own(value) * factor ^ offset) & MASK  # type: ignore[assignment]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    import op_rules  # noqa: F401 - what it imports for

    kept = disturb(int(sys.argv[1]))
    json.dump([code_of(*case) for case in json.load(sys.stdin)], sys.stdout)
