"""Products of groups of rows, each with a matrix of its own: beside Triton as products with work of
their own, beside torch's `_grouped_mm` of many sizes.

`tensors`-free and compiler-free, as `bench_cases`.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major
from bench_cases import Variant
from configurations import Configuration, label_of, variant_of
from product_cases import BURST, INTERLEAVED, SUSTAINED

FEWEST_ROWS, FEW_ROWS, LITTLE_WORK, LISTED_ROWS = 32, 64, 2**30, 128
MANY_TILES, WIDE_TILE = 200, 256
"""As in `tilec.examples.grouped_gemm`."""
SEARCHED, ARRANGED = "searched_groups", "arranged_groups"
"""The kernels: those whose programs search for their group, those of a list of tiles."""


@dataclass(frozen=True)
class GroupedCase:
    """c[rows of group g] = a[rows of group g] @ b[g]: `sizes` of groups, N and K; bf16, b
    row-major. `what`: the sizes, in words."""

    sizes: tuple[int, ...]
    n: int
    k: int
    what: str
    anchor: str = "torch"
    rivals: tuple[str, ...] = ("triton", "bound")
    goals: tuple[tuple[str, float], ...] = ((INTERLEAVED, 1.0),)

    kernel = "grouped_product"
    untuned = ("tilec default",)
    scalars = ()
    spread = 0.1
    dtype = "bf16"
    precision = "ieee"
    products = 1
    """That a tile of the result takes."""

    @property
    def name(self) -> str:
        """As in "grouped_product 8x2048 4096x4096"."""
        return f"{self.kernel} {self.what} {self.n}x{self.k}"

    @property
    def rows(self) -> int:
        """Of all groups."""
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(M, N, K), all groups together."""
        return self.rows, self.n, self.k

    @property
    def flops(self) -> int:
        """Of the products."""
        return 2 * self.rows * self.n * self.k

    @property
    def group_ends(self) -> list[int]:
        """The row behind each group's last."""
        return list(accumulate(self.sizes))

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """a, b, ends and c."""
        groups = len(self.sizes)
        return (
            row_major("a", "bf16", (self.rows, self.k)),
            row_major("b", "bf16", (groups, self.k, self.n)),
            row_major("ends", "i32", (groups,)),
            row_major("c", "bf16", (self.rows, self.n)),
        )

    @property
    def nbytes(self) -> int:
        """Bytes that must move."""
        return sum(spec.nbytes for spec in self.arrays)

    def listed(self, block: int) -> ArraySpec:
        """The list of tiles of `block` rows that `arranged_groups` takes in place of `ends`."""
        tiles = -(-self.rows // block) + len(self.sizes)
        return row_major("tiles", "i32", (tiles + 1, 3))

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The default, then the configurations worth trying."""
        return self.swept(_configurations())

    def swept(self, configurations: list[Configuration]) -> tuple[Variant, ...]:
        """What `grouped_products` launches, then both kernels of each configuration."""
        groups = len(self.sizes)
        is_small = self.rows <= FEWEST_ROWS * groups or self.flops < 2 * LITTLE_WORK
        is_small = is_small and groups * -(-self.n // WIDE_TILE) < MANY_TILES
        size = LISTED_ROWS // 2 if self.rows <= FEW_ROWS * groups else LISTED_ROWS
        default = (SEARCHED, ()) if is_small else (ARRANGED, (("BM", size),))
        found = [
            replace(variant_of(kernel, x, {}), label=f"{kernel.partition('_')[0]} {label_of(x)}")
            for x in configurations
            for kernel in (SEARCHED, ARRANGED)
        ]
        return (Variant("default", *default), *found)

    def shrunk(self) -> GroupedCase:
        """The case small enough for the emulator, with the same facts."""
        return replace(self, sizes=(64, 0, 40, 96), n=128, k=128)


def _configurations() -> list[Configuration]:
    """Small tiles, large ones by all warps of a CTA that stays or not, and in turn."""
    tiles = [(64, 128), (64, 256), (128, 256)]
    plain = [
        {"BM": bm, "BN": bn, "BK": 64, "num_warps": bm // 16, "persistent": persistent}
        for bm, bn in tiles
        for persistent in (False, True)
    ]
    in_turn = {"BM": 128, "BK": 64, "num_warps": 4, "consumers": "pingpong"}
    return [*plain, *({**in_turn, "BN": bn} for bn in (128, 192))]


GROUP_SHARES = (0.21, 0.02, 0.16, 0.0, 0.11, 0.3, 0.07, 0.13)
"""Parts of all rows that each group has."""
UNEVEN = (275, 1165, 129, 522, 241, 1014, 920, 967)
"""129 to 1165 rows."""


def uneven_case() -> GroupedCase:
    """Beside Triton: 8 groups of 0 to 4915 rows."""
    sizes = tuple(round(part * 16384) for part in GROUP_SHARES)
    sizes = (*sizes[:-1], 16384 - sum(sizes[:-1]))
    goals = ((BURST, 1.0), (SUSTAINED, 1.0))
    return GroupedCase(sizes, 4096, 4096, "16384", "triton", ("torch", "bound"), goals)


def grouped_cases() -> list[GroupedCase]:
    """Few rows a group, as in decoding, to many; alike and uneven."""
    alike = [
        *((8, rows, 4096, 4096) for rows in (16, 128, 512, 2048)),
        *((8, 32, 14336, 4096), (8, 2048, 14336, 4096)),
        *((64, 64, 2048, 2048), (64, 256, 2048, 2048)),
    ]
    many = tuple(random.Random(32).choices(range(1, 254), k=32))
    return [
        *(GroupedCase((rows,) * count, n, k, f"{count}x{rows}") for count, rows, n, k in alike),
        GroupedCase(UNEVEN, 4096, 4096, "8x129..1165"),
        GroupedCase(many, 4096, 1536, "32x1..253"),
    ]
