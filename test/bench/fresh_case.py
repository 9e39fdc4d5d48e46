"""A case of `fresh.py`: one launch of one kernel on arrays of sizes that a seed drew."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major

FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Fresh:
    """`kernel` on `arrays` and `scalars`, in its order; `changed`: outputs that are inputs, too."""

    kernel: str
    label: str
    arrays: tuple[ArraySpec, ...]
    outputs: tuple[str, ...]
    scalars: tuple[float, ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As in "row_entropy 12x800 f16"."""
        return f"{self.kernel} {self.label}"

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """By name of the array."""
        return {spec.name: spec.shape for spec in self.arrays}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(spec.nbytes for spec in self.arrays)


class Sizes:
    """Random sizes; `small`: such that the emulator takes milliseconds."""

    def __init__(self, seed: int, small: bool = False) -> None:
        self.random = random.Random(seed)
        self.small = small

    def log(self, low: int, high: int, step: int = 1) -> int:
        """A multiple of `step`, log-uniform."""
        if self.small:
            low, high = min(low, 70), min(high, 100)
        drawn = low * (high / low) ** self.random.random()
        return max(step, round(drawn / step) * step)

    def width(self, low: int, high: int) -> int:
        """Of rows: half are multiples of 64 and the others any."""
        return self.log(low, high, 64 if self.random.random() < 0.5 and low >= 64 else 1)

    def rows(self, columns: int, most: int = 2**25) -> int:
        """So many rows that the whole has 2^18 to `most` elements."""
        if self.small:
            return 3
        return max(1, self.log(2**18, most) // columns)

    def of(self, values: Sequence[Any]) -> Any:
        """One of them."""
        return self.random.choice(values)


def arrays_of(**given: tuple[str, Sequence[int]]) -> tuple[ArraySpec, ...]:
    """Contiguous arrays, a dtype and a shape by name."""
    return tuple(row_major(name, dtype, shape) for name, (dtype, shape) in given.items())


Maker = Callable[[Sizes], Fresh]
