"""Attention forward: which sizes are measured, against Triton's and torch's."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major
from bench_cases import Variant
from configurations import Configuration, attention_configurations, variant_of
from product_cases import BURST, DTYPE_NAMES, SUSTAINED

TOKENS = 16384
"""Batch times length of every case."""
HEADS = {64: 32, 128: 16}
"""Elements of a head -> heads."""
LENGTHS = (1024, 2048, 4096, 8192)


@dataclass(frozen=True)
class AttentionCase:
    """softmax(q k^T / sqrt(head)) v of `heads` heads of `head` elements."""

    dtype: str
    head: int
    length: int
    causal: bool
    heads: int
    batch: int

    kernel = "attention"
    anchor = "triton"
    untuned = ("tilec default",)
    rivals = ("torch cudnn", "torch flash", "triton plain", "triton specialized")
    goals = ((BURST, 1.0), (SUSTAINED, 1.0))
    spread = 0.5
    precision = "ieee"

    @property
    def name(self) -> str:
        """As in "attention fp16 D128 4096 causal"."""
        dtype = DTYPE_NAMES.get(self.dtype, self.dtype)
        kind = "causal" if self.causal else "full"
        return f"{self.kernel} {dtype} D{self.head} {self.length} {kind}"

    @property
    def flops(self) -> int:
        """Of both products; half of them where half the scores are masked."""
        full = 4 * self.batch * self.heads * self.length**2 * self.head
        return full // 2 if self.causal else full

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """q, k, v and o."""
        shape = (self.batch, self.heads, self.length, self.head)
        return tuple(row_major(name, self.dtype, shape) for name in "qkvo")

    @property
    def scalars(self) -> tuple[float, ...]:
        """The scale of the scores."""
        return (1 / math.sqrt(self.head),)

    @property
    def nbytes(self) -> int:
        """Bytes that must move."""
        return sum(spec.nbytes for spec in self.arrays)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The default, then the configurations worth trying."""
        return self.swept(attention_configurations(self.head))

    def swept(self, configurations: list[Configuration]) -> tuple[Variant, ...]:
        """The default, then a variant a configuration."""
        fixed = {"D": self.head, "CAUSAL": self.causal}
        found = [variant_of(self.kernel, c, fixed) for c in configurations]
        return (Variant("default", self.kernel, None), *found)

    def shrunk(self) -> AttentionCase:
        """The case small enough for the emulator, with the same facts."""
        return replace(self, length=128, heads=8, batch=min(self.batch, 8))


def attention_cases() -> list[AttentionCase]:
    """All dtypes, heads, lengths, full and causal; the longest first."""
    return [
        AttentionCase(dtype, head, length, causal, HEADS[head], TOKENS // length)
        for length in sorted(LENGTHS, reverse=True)
        for head in HEADS
        for causal in (False, True)
        for dtype in ("f16", "bf16")
    ]
