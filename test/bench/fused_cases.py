"""Products with work of their own: elementwise in front, two that share an operand.

`tensors`-free and compiler-free, as `bench_cases`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major
from bench_cases import Variant
from configurations import Configuration, fused_configurations, variant_of
from product_cases import BURST, SUSTAINED


@dataclass(frozen=True)
class FusedCase:
    """`shape`: (M, N, K); bf16, b row-major."""

    kernel: str
    shape: tuple[int, int, int]

    anchor = "triton"
    untuned = ("tilec default",)
    rivals = ("torch", "bound")
    goals = ((BURST, 1.0), (SUSTAINED, 1.0))
    scalars = ()
    spread = 0.1
    dtype = "bf16"
    precision = "ieee"

    @property
    def name(self) -> str:
        """As in "gated_product 8192x8192x4096"."""
        return f"{self.kernel} {'x'.join(map(str, self.shape))}"

    @property
    def products(self) -> int:
        """How many products a tile of the result takes."""
        return 2 if self.kernel == "gated_product" else 1

    @property
    def flops(self) -> int:
        """Of the products alone."""
        m, n, k = self.shape
        return 2 * m * n * k * self.products

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """In the kernel's order, the result last."""
        m, n, k = self.shape
        a = row_major("a", "i8" if self.kernel == "dequantised_product" else "bf16", (m, k))
        b, c = row_major("b", "bf16", (k, n)), row_major("c", "bf16", (m, n))
        if self.kernel == "gated_product":
            return a, b, replace(b, name="g"), c
        return a, b, c

    @property
    def nbytes(self) -> int:
        """Bytes that must move."""
        return sum(spec.nbytes for spec in self.arrays)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The default, then the configurations worth trying."""
        return self.swept(fused_configurations(self.products))

    def swept(self, configurations: list[Configuration]) -> tuple[Variant, ...]:
        """The default, then a variant a configuration."""
        found = [variant_of(self.kernel, configuration, {}) for configuration in configurations]
        return (Variant("default", self.kernel, ()), *found)

    def shrunk(self) -> FusedCase:
        """The case small enough for the emulator, with the same facts."""
        return replace(self, shape=(192, 128, 128))


def fused_cases() -> list[FusedCase]:
    """One of each kind."""
    return [
        FusedCase("activated_product", (8192, 8192, 8192)),
        FusedCase("dequantised_product", (8192, 8192, 8192)),
        FusedCase("gated_product", (8192, 8192, 4096)),
    ]
