"""The correctness cases: every example kernel, dtype by dtype, on shapes and views drawn at random.

Shapes hold ones, primes and round numbers; views break each assumption the compiler may make of an
array: unit strides, row strides and addresses that are multiples of 16 bytes, 32-bit offsets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from array_spec import ArraySpec, every_second, padded, row_major, shifted, transposed

SHAPES_PER_DTYPE = 14
MATMUL_DTYPES = (
    ("f32", "ieee"),
    ("f32", "tf32"),
    ("f16", "ieee"),
    ("bf16", "ieee"),
    ("f8E4M3FN", "ieee"),
    ("f8E5M2", "ieee"),
    ("i8", "ieee"),
    ("f64", "ieee"),
)
VECTOR_DTYPES = ("f32", "f16", "bf16", "f64", "i32")
ROW_DTYPES = ("f32", "f16", "bf16")
ROW_KERNELS = ("softmax", "online_softmax", "layer_norm", "row_sum")
ROUND_SHAPES = 2
"""How many cases of each kernel and dtype, the first, have round shapes."""
ROW_TILES = (1024, 97, 5000)
"""Tile sizes N of the row kernels, in turn; neither need be a power of two."""

EXPLICIT_KERNELS: Mapping[str, tuple[str, str, str]] = {
    "gemm": ("a", "bt", "d"),
    "gemm_ahead": ("a", "bt", "d"),
    "hopper_gemm": ("a", "b", "c"),
}
"""The products written in `tilec.language.gpu`, and their arrays."""
ONE_TARGET: Mapping[str, str] = {"hopper_gemm": "sm_90a"}
"""Kernels whose instructions one target alone has."""
MANY_TILES = (3000, 4104, 520)
"""A product of more tiles than an H200 has multiprocessors, where matrices may be large."""

View = Callable[[ArraySpec], ArraySpec]


@dataclass(frozen=True)
class ExampleCase:
    """One launch to check. `arrays`: in the kernel's order. `integers`: draw values whose sums are
    exact. `view`: what was done to the arrays, in words."""

    kernel: str
    dtype: str
    precision: str
    constants: tuple[tuple[str, int | str], ...]
    arrays: tuple[ArraySpec, ...]
    view: str
    integers: bool

    @property
    def artefact(self) -> str:
        """Name of the file with its specialisation: one kernel, dtype and set of constants."""
        fixed = "".join(f"-{name}{value}" for name, value in self.constants)
        return f"{self.kernel}-{self.dtype}{fixed}"

    @property
    def name(self) -> str:
        """Names the case in reports; unique among the cases of one seed in all but rare cases."""
        shapes = " ".join("x".join(map(str, a.shape)) for a in self.arrays)
        return f"{self.artefact} {shapes} {self.view}{' integers' if self.integers else ''}"


def _same(spec: ArraySpec) -> ArraySpec:
    return spec


_pad3, _pad16 = partial(padded, extra=3), partial(padded, extra=16)
_shift1, _shift16 = partial(shifted, elements=1), partial(shifted, elements=16)

MATRIX_VIEWS: Mapping[str, tuple[View, View, View]] = {
    "contiguous": (_same, _same, _same),
    "b transposed": (_same, transposed, _same),
    "a transposed": (transposed, _same, _same),
    "padded by 3": (_pad3, _pad3, _pad3),
    "shifted by 1": (_shift1, _shift1, _shift1),
    "c transposed": (_same, _same, transposed),
    "padded and shifted by 16": (
        lambda s: _shift16(_pad16(s)),
        lambda s: _shift16(_pad16(s)),
        lambda s: _shift16(_pad16(s)),
    ),
    "every second": (every_second, every_second, every_second),
    "all transposed": (transposed, transposed, transposed),
    "mixed": (lambda s: _shift1(transposed(s)), _pad3, every_second),
}

ROW_VIEWS: Mapping[str, View] = {
    "contiguous": _same,
    "padded by 3": _pad3,
    "shifted by 1": _shift1,
    "padded and shifted by 16": lambda s: _shift16(_pad16(s)),
    "transposed": transposed,
    "every second": every_second,
}

VECTOR_VIEWS: Mapping[str, View] = {
    "contiguous": _same,
    "shifted by 1": _shift1,
    "shifted by 16": _shift16,
    "every second": every_second,
}


def draw_cases(seed: int, limit: int = 1200) -> list[ExampleCase]:
    """All cases of a seed; no dimension exceeds `limit` (times 50 for vectors, 5 for rows)."""
    rng = random.Random(seed)
    cases = [
        *_vector_cases(rng, limit),
        *_row_cases(rng, limit),
        *_matmul_cases(rng, limit),
        *_explicit_cases(rng, limit),
    ]
    return list({case.name: case for case in cases}.values())


def large_cases() -> list[ExampleCase]:
    """Arrays over 2 GiB, whose offsets need 64 bits; a GPU alone holds and finishes them."""
    half = [row_major(name, "f16", (2**30 + 7,)) for name in ("x", "y", "z")]
    rows = [row_major(name, "f16", (131101, 8192)) for name in ("x", "y")]
    summed = (row_major("x", "f32", (66003, 8200)), row_major("y", "f32", (66003,)))
    a = padded(row_major("a", "bf16", (301, 217)), 4_000_001)
    product = (a, row_major("b", "bf16", (217, 130)), row_major("c", "bf16", (301, 130)))
    made = (
        ("vector_add", "f16", (), tuple(half)),
        ("softmax", "f16", (("N", 8192),), tuple(rows)),
        ("row_sum", "f32", (), summed),
        ("matmul", "bf16", (("PRECISION", "ieee"),), product),
    )
    return [
        ExampleCase(kernel, dtype, "ieee", constants, arrays, "over 2 GiB", False)
        for kernel, dtype, constants, arrays in made
    ]


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))


def _draw_size(rng: random.Random, limit: int) -> int:
    kind = rng.choice(("one", "prime", "prime", "round", "any", "any"))
    if kind == "one":
        return 1
    size = rng.randint(2, limit)
    if kind == "prime":
        while not _is_prime(size):
            size -= 1
    if kind == "round":
        size = max(size // 64 * 64, 16)
    return min(size, limit)


def _draw_shapes(rng: random.Random, rank: int, limits: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Two round shapes, then a one in each dimension, then anything, for ever."""
    for parts in (1, 2):
        yield tuple(max(limit // parts // 64 * 64, 16) for limit in limits)
    for axis in range(rank):
        shape = [_draw_size(rng, limit) for limit in limits]
        shape[axis] = 1
        yield tuple(shape)
    while True:
        yield tuple(_draw_size(rng, limit) for limit in limits)


def _turn(views: Mapping[str, object], number: int, offset: int) -> str:
    """The view for case `number`: the first two for the round shapes, so that all facts hold;
    `offset` so that not each dtype pairs the others with the same shapes."""
    return list(views)[number if number < ROUND_SHAPES else (number + offset) % len(views)]


def _vector_cases(rng: random.Random, limit: int) -> Iterator[ExampleCase]:
    for offset, dtype in enumerate(VECTOR_DTYPES):
        shapes = _draw_shapes(rng, 1, (50 * limit,))
        for number in range(SHAPES_PER_DTYPE):
            view = _turn(VECTOR_VIEWS, number, offset)
            shape = next(shapes)
            made = [row_major(name, dtype, shape) for name in "xyz"]
            arrays = tuple(VECTOR_VIEWS[view](spec) for spec in made)
            yield ExampleCase("vector_add", dtype, "ieee", (), arrays, view, dtype == "i32")


def _row_cases(rng: random.Random, limit: int) -> Iterator[ExampleCase]:
    for kernel in ROW_KERNELS:
        for offset, dtype in enumerate(ROW_DTYPES):
            for number in range(SHAPES_PER_DTYPE):
                view = _turn(ROW_VIEWS, number, offset)
                yield _row_case(rng, kernel, dtype, number, view, limit)


def _row_case(
    rng: random.Random, kernel: str, dtype: str, number: int, view: str, limit: int
) -> ExampleCase:
    """Rows of at most N columns; any number of them where the kernel loops over tiles."""
    tile = ROW_TILES[number % len(ROW_TILES)]
    widest = 5 * limit if kernel in ("online_softmax", "row_sum") else min(tile, 5 * limit)
    rows, columns = _draw_size(rng, limit), _draw_size(rng, widest)
    if number in (0, 4):
        columns = widest
    if number == 2:
        columns = 1
    x = ROW_VIEWS[view](row_major("x", dtype, (rows, columns)))
    y = ROW_VIEWS[view](row_major("y", dtype, (rows, columns)))
    arrays: tuple[ArraySpec, ...] = (x, y)
    if kernel == "row_sum":
        y = row_major("y", "f32" if number % 2 else dtype, (rows,))
        arrays = (x, shifted(y, 1) if "shifted" in view else y)
    if kernel == "layer_norm":
        vectors = [row_major(name, dtype, (columns,)) for name in ("weight", "bias")]
        moved = [_shift1(v) if "shifted" in view else v for v in vectors]
        arrays = (x, *moved, y)
    constants: tuple[tuple[str, int | str], ...] = (("N", tile),)
    return ExampleCase(kernel, dtype, "ieee", constants, arrays, view, False)


def _matmul_cases(rng: random.Random, limit: int) -> Iterator[ExampleCase]:
    for offset, (dtype, precision) in enumerate(MATMUL_DTYPES):
        shapes = _draw_shapes(rng, 3, (limit,) * 3)
        for number in range(SHAPES_PER_DTYPE):
            m, n, k = next(shapes)
            if number == 6:
                k = 0
            view = _turn(MATRIX_VIEWS, number, offset)
            made = (
                row_major("a", dtype, (m, k)),
                row_major("b", dtype, (k, n)),
                row_major("c", _result_dtype(dtype, number), (m, n)),
            )
            arrays = tuple(f(s) for f, s in zip(MATRIX_VIEWS[view], made, strict=True))
            constants: tuple[tuple[str, int | str], ...] = (("PRECISION", precision),)
            integers = dtype == "i8" or number % 2 == 1
            yield ExampleCase("matmul", dtype, precision, constants, arrays, view, integers)


def _result_dtype(dtype: str, number: int) -> str:
    if dtype == "i8":
        return "i32"
    return dtype if not dtype.startswith("f8") else ("f16", "f32")[number % 2]


def _explicit_cases(rng: random.Random, limit: int) -> Iterator[ExampleCase]:
    """Rows of whole 16 bytes, which the kernels' copies take for granted; other sizes at will."""
    shapes = _draw_shapes(rng, 3, (limit,) * 3)
    for kernel, names in EXPLICIT_KERNELS.items():
        for number in range(SHAPES_PER_DTYPE):
            m, n, k = next(shapes)
            if number == 6:
                k = 0
            if number == 7 and limit > 1000:
                m, n, k = MANY_TILES
            view = ("contiguous", "padded and shifted by 16")[number % 2]
            yield _explicit_case(kernel, names, (m, n + -n % 8, k + -k % 8), view, number)


def _explicit_case(
    kernel: str,
    names: tuple[str, str, str],
    sizes: tuple[int, int, int],
    view: str,
    number: int,
) -> ExampleCase:
    m, n, k = sizes
    transposed_b = names[1] == "bt"
    made = (
        row_major(names[0], "bf16", (m, k)),
        row_major(names[1], "bf16", (n, k) if transposed_b else (k, n)),
        row_major(names[2], "f32" if transposed_b else "bf16", (m, n)),
    )
    arrays = tuple(f(s) for f, s in zip(MATRIX_VIEWS[view], made, strict=True))
    return ExampleCase(kernel, "bf16", "ieee", (), arrays, view, number % 2 == 1)


def targets_of(kernel: str, targets: Sequence[str]) -> tuple[str, ...]:
    """Those of `targets` that a kernel is written for."""
    only = ONE_TARGET.get(kernel)
    return tuple(target for target in targets if only in (None, target))
