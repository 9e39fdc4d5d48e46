"""What the choice of tiles knows of a product."""

from __future__ import annotations

from dataclasses import replace

import tilec.language as tl
from tilec.costs.dot_work import Memory, is_read_across_k, way_of
from tilec.costs.work import Stored, Unit, Way
from tilec.hardware.mma_shapes import wgmma_ns
from tilec.hardware.sizes import SWIZZLE_BITS, VECTOR_BYTES
from tilec.hardware.warpgroup_tiles import BOTH_MAJOR_BYTES
from tilec.records import dataclass
from tilec.terms.dtypes import DType

ROW_MAJOR = Memory(1, 128)
"""A matrix as a framework makes it."""


@dataclass(frozen=True)
class Product:
    """A batch of products (m, k) x (k, n). `kind`: of the operands, as the model calls it; `width`:
    bytes of an element; `a`, `b`: how the operands lie in memory. `keeps_sums`: those of `KEPT`
    elements of k, in registers. `c`: how the result lies, `c_width`: bytes of its elements, 0 where
    the caller names no dtype."""

    m: int
    n: int
    k: int
    batch: int
    kind: str
    width: int
    a: Memory
    b: Memory
    keeps_sums: bool = False
    c: Memory = ROW_MAJOR
    c_width: int = 0

    def way(self, unit: Unit) -> Way:
        """The way in which the operands come to shared memory."""
        return way_of(((self.a, 1), (self.b, 0)), self.width, unit)

    def reads_across_k(self, unit: Unit) -> bool:
        """Whether threads read a into registers, since it lies across k."""
        return is_read_across_k(self.a, 1, self.width, unit)

    def takes_columns(self, columns: int) -> bool:
        """Whether tiles of warpgroups may be so wide: as an instruction, and, where the copy engine
        brings a b that lies across k, in whole panels of the narrowest swizzle."""
        across = self.b.contiguous == 1 and self.width == BOTH_MAJOR_BYTES
        is_brought = across and self.b.alignment >= VECTOR_BYTES
        is_whole = columns * self.width % min(SWIZZLE_BITS) == 0
        return columns in wgmma_ns(self.kind) and (is_whole or not is_brought)

    @property
    def stored_width(self) -> int:
        """Bytes of an element of the result."""
        return self.c_width or self.usual_width

    @property
    def usual_width(self) -> int:
        """The same where the caller names no dtype."""
        return {"f8": 2, "i8": 4}.get(self.kind, self.width)

    def stored(self, splits: int) -> Stored:
        """The way in which the result, or with more than one split a partial sum, is stored."""
        c, width = self.c, self.stored_width
        if splits > 1:
            c, width = Memory.of(0, (self.m, self.n), (self.n, 1), 4), 4
        # Threads hold whole sectors of 4-byte elements; others, and of rows that begin elsewhere,
        # are rearranged.
        if c.alignment < VECTOR_BYTES:
            return Stored.SCATTERED if c.contiguous != 1 else Stored.ELEMENTS
        return Stored.ROWS if c.contiguous == 1 or width == 4 else Stored.TRANSPOSED

    def transposed(self) -> Product:
        """The transposed product."""
        transposed = (Memory(_other(x.contiguous), x.alignment) for x in (self.b, self.a, self.c))
        a, b, c = transposed
        return replace(self, m=self.n, n=self.m, a=a, b=b, c=c)


def _other(axis: int | None) -> int | None:
    return None if axis is None else 1 - axis


def product_of(
    m: int,
    n: int,
    k: int,
    batch: int,
    dtype: DType,
    precision: str,
    a: Memory,
    b: Memory,
    c: Memory,
    c_width: int = 0,
) -> Product:
    """The product as the model sees it. `precision`: as `matmul` takes it."""
    kind = "tf32" if dtype == tl.f32 else "f8" if dtype.is_fp8 else str(dtype)
    width, keeps_sums = dtype.bits // 8, precision == "f32"
    return Product(m, n, max(k, 1), batch, kind, width, a, b, keeps_sums, c, c_width)
