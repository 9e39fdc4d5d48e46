"""What the choice of tiles knows of a product."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilec.tuning.dot_work import Memory, is_read_across_k, way_of
from tilec.tuning.model import Unit, Way


@dataclass(frozen=True)
class Product:
    """A batch of products (m, k) x (k, n). `kind`: of the operands, as the model calls it; `width`:
    bytes of an element; `a`, `b`: how the operands lie in memory. `keeps_sums`: those of `KEPT`
    elements of k, in registers."""

    m: int
    n: int
    k: int
    batch: int
    kind: str
    width: int
    a: Memory
    b: Memory
    keeps_sums: bool = False

    def way(self, unit: Unit) -> Way:
        """How the operands come to shared memory."""
        return way_of(((self.a, 1), (self.b, 0)), self.width, unit)

    def reads_across_k(self, unit: Unit) -> bool:
        """Whether threads read a into registers, since it lies across k."""
        return is_read_across_k(self.a, 1, self.width, unit)

    def turned(self) -> Product:
        """The transposed product."""
        a, b = (Memory(_other(one.contiguous), one.alignment) for one in (self.b, self.a))
        return replace(self, m=self.n, n=self.m, a=a, b=b)


def _other(axis: int | None) -> int | None:
    return None if axis is None else 1 - axis
