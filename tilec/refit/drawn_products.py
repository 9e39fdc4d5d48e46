"""Products of matrices by name, and drawn by a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from math import log2

from tilec.costs.dot_work import Memory
from tilec.hardware.target import Feature, Target
from tilec.ops.product_facts import Product
from tilec.records import dataclass
from tilec.terms.dtypes import BY_NAME, DType

LONGEST_SIDE = 1 << 14
"""Of a drawn product: such sides are of large models' layers."""
FEWEST, MOST = 1 << 20, 1 << 37
"""Of m n k, drawn: below, a launch is all of the time; above, milliseconds on the fastest GPU."""
MOST_BYTES = 1 << 29
"""Of the matrices of a drawn product, so that any GPU of today has room for several sets."""
UNITS = (1, 8, 64)
"""What sides are multiples of, each as often: of nothing, of 16 bytes, of lines."""

_NAME = re.compile(
    r"(?:micro \w+ )?(?P<kind>\w+) (?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+) (?P<a>[NT])(?P<b>[NT])"
    r"(?: pad (?P<pad_a>\d+),(?P<pad_b>\d+))?"
)


@dataclass(frozen=True)
class Kind:
    """A kind of operands: their dtype, that of the result, the largest error of a result relative
    to the largest element (rounding of operands to the dtype of the instruction, and of the
    result), and what the model calls them."""

    dtype: DType
    out_dtype: DType
    tolerance: float
    work: str


KINDS = {
    "bf16": Kind(BY_NAME["bf16"], BY_NAME["bf16"], 1e-2, "bf16"),
    "f16": Kind(BY_NAME["f16"], BY_NAME["f16"], 2e-3, "f16"),
    "fp8": Kind(BY_NAME["f8e4m3"], BY_NAME["bf16"], 1e-2, "f8"),
    "tf32": Kind(BY_NAME["f32"], BY_NAME["f32"], 3e-3, "tf32"),
}


@dataclass(frozen=True)
class DrawnProduct:
    """A product c = a b of (m, k) and (k, n), c row-major. `kind`: of `KINDS`. `layout`: N
    row-major or T column-major, of a and of b. `pads`: elements between the rows (columns) of a and
    of b."""

    kind: str
    m: int
    n: int
    k: int
    layout: str
    pads: tuple[int, int] = (0, 0)

    @classmethod
    def named(cls, name: str) -> DrawnProduct:
        """Reads a name as "bf16 300x7000x3000 NT" or "f16 64x64x64 NN pad 8,0". ValueError for
        others."""
        found = _NAME.fullmatch(name)
        if found is None or found["kind"] not in KINDS:
            raise ValueError(
                f"no product: {name!r}; expected e.g. 'bf16 30x70x300 NT', of {', '.join(KINDS)}"
            )
        m, n, k = (int(found[side]) for side in "mnk")
        pads = int(found["pad_a"] or 0), int(found["pad_b"] or 0)
        return cls(found["kind"], m, n, k, found["a"] + found["b"], pads)

    @property
    def name(self) -> str:
        """The name that `named` reads."""
        pad = f" pad {self.pads[0]},{self.pads[1]}" if any(self.pads) else ""
        return f"{self.kind} {self.m}x{self.n}x{self.k} {self.layout}{pad}"

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """The shapes of a, b and out."""
        return {"a": (self.m, self.k), "b": (self.k, self.n), "out": (self.m, self.n)}

    @property
    def strides(self) -> dict[str, tuple[int, int]]:
        """The strides of a, b and out, in elements."""
        sides = zip(("a", "b"), self.layout, self.pads, strict=True)
        found = {}
        for name, order, pad in sides:
            rows, columns = self.shapes[name]
            found[name] = (1, rows + pad) if order == "T" else (columns + pad, 1)
        return {**found, "out": (self.n, 1)}

    def dtype_of(self, name: str) -> DType:
        """The dtype of a, b or out."""
        kind = KINDS[self.kind]
        return kind.out_dtype if name == "out" else kind.dtype

    def span_bytes(self, name: str) -> int:
        """The bytes from the first to the end of the last element of a matrix."""
        steps = zip(self.shapes[name], self.strides[name], strict=True)
        elements = 1 + sum((size - 1) * stride for size, stride in steps)
        return elements * self.dtype_of(name).bits // 8

    @property
    def facts(self) -> Product:
        """The product as the choice of tiles sees it."""
        a, b, c = (
            Memory.of(0, self.shapes[x], self.strides[x], self.dtype_of(x).bits // 8)
            for x in ("a", "b", "out")
        )
        kind = KINDS[self.kind]
        return Product(self.m, self.n, self.k, 1, kind.work, kind.dtype.bits // 8, a, b, c=c)


def draw(seed: int, target: Target) -> Iterator[DrawnProduct]:
    """Products without end, none twice: sides log-uniform up to `LONGEST_SIDE`, all layouts."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS if kind != "fp8" or target.supports(Feature.MMA_SYNC_FP8)]
    seen: set[str] = set()
    while True:
        unit = rng.choice(UNITS)
        sides = (2 ** rng.uniform(0, log2(LONGEST_SIDE)) for _ in range(3))
        m, n, k = (max(unit, round(side / unit) * unit) for side in sides)
        layout = rng.choice("NT") + rng.choice("NT")
        found = DrawnProduct(rng.choice(["bf16", *kinds]), m, n, k, layout)
        nbytes = sum(map(found.span_bytes, found.shapes))
        if FEWEST <= m * n * k <= MOST and nbytes <= MOST_BYTES and found.name not in seen:
            seen.add(found.name)
            yield found
