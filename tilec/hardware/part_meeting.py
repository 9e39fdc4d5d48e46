"""How CTAs meet that each sum a part of a loop: in clusters, which exchange stripes of the sums,
and in memory."""

from __future__ import annotations

from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.records import dataclass

READ_BYTES = 64 << 10
"""That the last of CTAs may read of sums that others left in memory before a larger cluster, which
exchanges more of them, is worth more: a multiprocessor reads some 45 bytes a ns from L2, and a
cluster takes a microsecond to meet. Not timed with others."""
REDUCED_BYTES = 256 << 10
"""The same where each CTA has reduced its own sums first, of which a cluster would exchange all:
moments of 500000 x 128 bf16 take 34.2 us so in 128 parts that leave 128 KiB, 49.8 in clusters of
eight (H200)."""
MOST_READ_BYTES = 4 << 20
"""That it may read at all: the sums of 64 parts of 128 x 128 f32, which take 40 us."""


@dataclass(frozen=True)
class Meeting:
    """How CTAs that sum parts of a kernel's loop may meet.

    `clusters`: how many of them may be a cluster, which exchanges stripes of sums of `sum_bytes`.
    `end_bytes`: of what each leaves in memory where it is no such.
    """

    clusters: tuple[int, ...]
    sum_bytes: int
    end_bytes: int

    def together(self, parts: int) -> int:
        """How many of so many CTAs are a cluster: all, if they can be; else so few that the last
        one reads no more than `READ_BYTES` of what others left in memory, or as little as can be;
        none where sums that are reduced first leave little."""
        if parts in self.clusters:
            return parts
        if self.end_bytes < self.sum_bytes and self._left(parts, 1) <= REDUCED_BYTES:
            return 1
        few = [1, *(n for n in self.clusters if n <= PORTABLE_CTAS and parts % n == 0)]
        short = [n for n in few if self._left(parts, n) <= READ_BYTES]
        return short[0] if short else min(few, key=lambda n: self._left(parts, n))

    def read_bytes(self, parts: int) -> int:
        """What the CTA that comes last reads of all parts that meet in memory."""
        together = self.together(parts)
        return 0 if together == parts else self._left(parts, together)

    def is_short(self, parts: int) -> bool:
        """Whether that is little enough to wait for."""
        return self.read_bytes(parts) <= MOST_READ_BYTES

    def _left(self, parts: int, together: int) -> int:
        each = self.sum_bytes // together if together > 1 else self.end_bytes
        return each * (parts // together)
