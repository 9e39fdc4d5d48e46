"""Cases drawn by a seed: kernels of all classes, their sizes, dtypes and layouts.

`tensors`-free and compiler-free, as `bench_cases`. Sizes are log-uniform; a third of them are
multiples of 8 only, a third of 64, a third any, where the kernel or its peers take any.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import drawn_array_cases as arrays
import drawn_layers as layers
import layer_cases
from attention_cases import AttentionCase
from bench_cases import Variant
from fused_cases import FusedCase
from grouped_cases import GroupedCase
from product_cases import ProductCase

MOST_BYTES = 2**30
"""Of a case's arrays."""
MOST_WORK = 2**38
"""Multiplications of a case: its float64 reference takes less than a second."""
SMALL_SIDE, SMALL_BYTES = 130, 2**19
"""The same where the emulator runs them."""
PRODUCTS = (
    ("bf16", "bf16"), ("bf16", "bf16"), ("f16", "f16"), ("bf16", "f32"), ("f32", "f32"),
    ("f8E4M3FN", "bf16"), ("i8", "i32"),
)  # fmt: skip
LAYOUTS = ("TN", "NN", "NT", "TT")
FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Drawn:
    """Case `number` of a run, of a class (`kind`)."""

    number: int
    kind: str
    case: Any

    @property
    def name(self) -> str:
        """As in "12 products bf16 100x8x72 NT"."""
        return f"{self.number} {self.kind}: {self.case.name}"

    @property
    def variants(self) -> tuple[Variant, ...]:
        """tilec's untuned ones: what is launched where nobody chooses anything."""
        untuned = [name.removeprefix("tilec ") for name in self.case.untuned]
        every = self.case.swept([])
        return tuple(variant for variant in every if variant.label in untuned)


class Source:
    """Random choices; `small`: sizes that the emulator runs in milliseconds."""

    def __init__(self, seed: int, small: bool) -> None:
        self.random = random.Random(seed)
        self.small = small

    def log(self, low: int, high: int, step: int = 1) -> int:
        """A multiple of `step` from `low` to `high`, log-uniform."""
        high = max(low, min(high, SMALL_SIDE)) if self.small else high
        drawn = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return max(step, round(drawn / step) * step)

    def side(self, high: int, low: int = 1) -> int:
        """A size of which a third are multiples of 8 only, a third of 64 and a third any; those
        below a multiple stay as they are."""
        step, drawn = self.random.choice((1, 8, 64)), self.log(low, high)
        return drawn if drawn < step else max(low, round(drawn / step) * step)

    def of(self, values: Sequence[Any]) -> Any:
        """One of them."""
        return self.random.choice(values)

    def rows(self, columns: int, elements: int = 2**27) -> int:
        """So many rows that the whole has 2^18 to `elements` elements."""
        low, high = (1, 9) if self.small else (2**18, elements)
        drawn = self.log(low, high)
        return max(1, drawn if self.small else drawn // columns)


def draw(seed: int, count: int, only: Sequence[str] = (), *, small: bool = False) -> list[Drawn]:
    """`count` cases, the same for a seed: all classes (or those named `only`) in turn, the order
    drawn anew in each turn. Cases of too many bytes or too much work are drawn again."""
    source = Source(seed, small)
    names = [name for name in CLASSES for _ in range(SHARES.get(name, 1))]
    names = [name for name in names if not only or name in only]
    found: list[Drawn] = []
    while len(found) < count:
        source.random.shuffle(names)
        for name in names[: count - len(found)]:
            found.append(Drawn(len(found), name, _fitting(CLASSES[name], source)))
    return found


def _fitting(make: Callable[[Source], Any], source: Source) -> Any:
    most = SMALL_BYTES if source.small else MOST_BYTES
    while True:
        case = make(source)
        if case.nbytes <= most and case.flops <= 2 * MOST_WORK:
            return case


def _product(s: Source, batch: int = 0) -> ProductCase:
    dtype, output = s.of(PRODUCTS)
    narrow = dtype in ("f8E4M3FN", "i8")
    shape = (s.side(16384), s.side(16384), s.side(16384))
    if narrow:  # cuBLAS takes no others, nor any but "TN"
        shape = (s.log(32, 16384, 16), s.log(16, 16384, 16), s.log(16, 16384, 16))
    return ProductCase(dtype, output, shape, "TN" if narrow else s.of(LAYOUTS), (), batch)


def _batch(s: Source) -> ProductCase:
    case = _product(s, s.log(2, 256))
    return replace(case, shape=tuple(min(size, 2048) for size in case.shape))


def _groups(s: Source) -> GroupedCase:
    mean = s.log(8, 2048)
    sizes = [s.random.randint(0, 2 * mean) for _ in range(s.log(2, 64))]
    sides = s.log(64, 8192, 8), s.log(64, 8192, 8)
    return GroupedCase((*sizes, mean), *sides, f"{len(sizes) + 1}x0..{2 * mean}")


def _epilogue(s: Source) -> Any:
    m, n, k = s.side(8192, 16), s.log(64, 8192, 16), s.log(64, 8192, 16)
    kernel = s.of(("activated_product", "dequantised_product", "gated_product", "biased_product"))
    if kernel == "biased_product":
        return layers.biased_product(s.of(("f16", "bf16")), m, n, k)
    return FusedCase(kernel, (m, n, k))


def _attention(s: Source) -> Any:
    dtype, length = s.of(("f16", "bf16")), s.side(8192, 64)
    head = s.of((64, 96, 128, 128, 192, 256))
    heads, shared = s.log(1, 32), s.of((1, 1, 4, 8))
    batch, causal = s.log(1, 8), s.random.random() < 0.6
    window = s.log(64, 1024) if causal and s.random.random() < 0.25 else None
    if shared == 1 and window is None and head != 192:
        return AttentionCase(dtype, head, length, causal, heads, batch)
    widths = (192, 128) if head == 192 else (head, head)
    many = (batch, heads * shared, heads)
    return layers.shared_attention(dtype, many, length, widths, causal, window)


def _gradients(s: Source) -> Any:
    head, shared, few = s.of((64, 128)), s.of((1, 1, 4)), s.log(1, 16)
    length, causal = s.log(128, 8192, 128), s.random.random() < 0.6
    return layer_cases.attention_backward(s.log(1, 8), few * shared, length, head, causal, few)


def _experts(s: Source) -> Any:
    count = s.log(4, 64)
    sides = s.log(64, 4096, 64), s.log(256, 8192, 256)
    return layer_cases.mixture_of_experts(s.log(16, 8192), count, s.of((1, 2, 4)), *sides)


def _convolution(s: Source) -> Any:
    images = (s.log(1, 128), s.log(7, 112), s.log(7, 112), s.log(64, 512, 64))
    return layer_cases.convolution(images, s.of((1, 3, 3, 5)), s.log(128, 512, 128))


def _recurrence(s: Source) -> Any:
    if s.random.random() < 0.35:
        return layers.selective_scan(s.log(1, 8), s.log(16, 2048), s.side(8192, 32))
    key, value = s.of((64, 128)), s.of((64, 128))
    return layers.chunked_recurrence(s.log(1, 8), s.log(1, 32), s.side(4096, 64), key, value)


ONE_TILE = 32768


def _rows(s: Source) -> Any:
    kernel, dtype = s.of(("softmax", "layer_norm", "rms_norm", "rms_norm_backward")), s.of(FLOATS)
    if kernel.startswith("rms_norm"):
        columns = 1 << s.random.randint(7, 8 if s.small else 14)
        return getattr(layer_cases, kernel)(s.rows(columns), columns)
    columns = s.side(262144, 128)
    if kernel == "layer_norm" and columns > ONE_TILE:
        return layers.long_rms_norm(dtype, s.rows(columns), columns)
    return getattr(layers, kernel)(dtype, s.rows(columns), columns)


def _losses(s: Source) -> Any:
    columns = s.side(262144, 128)
    return layer_cases.cross_entropy(s.rows(columns), columns)


def _quantisation(s: Source) -> Any:
    columns = s.side(262144, 128)
    return layers.quantisation(s.of(FLOATS), s.rows(columns), columns)


def _elementwise(s: Source) -> Any:
    return layers.elementwise(s.of(list(layers.ELEMENTWISE)), s.of(FLOATS), s.side(2**27, 2**12))


def _sorting(s: Source) -> Any:
    chosen = s.random.random()
    if chosen < 0.15:  # the network by hand
        columns = s.log(8, 1024)
        return layers.sort_rows(s.rows(columns, 2**24), columns)
    if chosen < 0.3:  # one by one
        columns = s.log(64, 8192)
        return layers.largest_of_rows(s.rows(columns, 2**24), columns, s.random.randint(1, 8))
    columns, rows = s.side(16384, 16), s.log(1, 65536)
    rows = max(1, min(rows, 2**24 // columns))
    count = s.log(1, min(256, columns)) if s.random.random() < 0.6 else None
    dtype = s.of((*FLOATS, "i32"))
    places = dtype == "f32" and s.random.random() < 0.6
    return layers.ordered_rows(dtype, rows, columns, count, places=places)


def _histogram(s: Source) -> Any:
    return layer_cases.histogram(s.log(2**12, 2**26), s.log(8, 400))


def _sums(s: Source) -> Any:
    points = 1 << (7 if s.small else s.random.randint(8, 13))
    programs = s.log(3, max(4, 2**28 // points))
    if s.random.random() < 0.5:
        return layers.count_hits(programs, points)
    return layers.midpoint_sums(programs, points, s.random.random() < 0.5)


def _stencil(s: Source) -> Any:
    return layers.stencil(s.of(FLOATS), s.log(16, 16384), s.side(16384, 64), s.of((1, 2, 3)))


def _sparse(s: Source) -> Any:
    rows, columns = s.log(16, 2**18), s.log(64, 2**20)
    return layers.sparse_rows(rows, columns, s.log(4, min(512, columns // 2)))


def _four_bits(s: Source) -> Any:
    m = s.log(1, 16) if s.random.random() < 0.6 else s.log(17, 4096)
    return layer_cases.quantized_weights(m, s.log(256, 16384, 256), s.log(128, 16384, 128))


def _tile_scales(s: Source) -> Any:
    return layer_cases.tile_scales(*(s.log(128, high, 128) for high in (8192, 8192, 16384)))


def _decoding(s: Source) -> Any:
    few, shared = s.log(1, 16), s.of((4, 8, 16))
    mean, page, splits = s.log(256, 8192, 64), s.of((16, 64)), s.of((1, 2, 4, 8))
    heads = few * shared
    return layer_cases.paged_attention(
        s.log(1, 64), heads, few, s.of((64, 128)), page, splits, mean
    )


def _transposes(s: Source) -> Any:
    batch = s.log(1, 256) if s.random.random() < 0.7 else 1
    return arrays.swapped_axes(s.of(FLOATS), batch, s.side(8192), s.side(8192))


def _rotations(s: Source) -> Any:
    sizes = s.log(1, 16), s.log(16, 8192), s.log(1, 64), s.of((64, 96, 128, 256))
    return arrays.rotation(s.of(("f16", "bf16")), *sizes, s.random.random() < 0.5)


def _embeddings(s: Source) -> Any:
    each = 1 if s.random.random() < 0.4 else s.log(2, 64)
    sizes = s.log(100, 2**18), s.side(4096, 32), s.log(16, 2**16)
    return arrays.bags(s.of(FLOATS), *sizes, each)


def _caches(s: Source) -> Any:
    tokens, width = s.log(1, 16384), s.log(1, 32) * s.of((64, 128))
    return arrays.slots(s.of(("f16", "bf16")), tokens, width, tokens + s.log(16, 65536))


def _short_filters(s: Source) -> Any:
    sizes = s.log(1, 16), s.side(8192, 64), s.side(8192, 64)
    return arrays.short_filter(s.of(FLOATS), *sizes, s.random.random() < 0.5)


def _group_norms(s: Source) -> Any:
    side = s.log(7, 64)
    space = side * side
    channels = s.log(1, max(1, ONE_TILE // space))
    return arrays.group_norm(s.of(FLOATS), s.log(1, 64), s.log(4, 64), channels, space)


def _moments(s: Source) -> Any:
    return arrays.column_moments(s.of(FLOATS), s.log(256, 2**20), s.side(4096, 32))


def _running_sums(s: Source) -> Any:
    if s.random.random() < 0.5:
        columns = s.side(131072, 64)
        return arrays.running_rows("f32", s.rows(columns), columns)
    return arrays.running_columns("f32", s.log(1, 64), s.log(64, 8192), s.side(4096, 32))


def _pooling(s: Source) -> Any:
    sides = s.log(14, 256), s.log(14, 256)
    return arrays.pooling(s.of(FLOATS), s.log(4, 16384), sides, s.of(((2, 2), (3, 2), (3, 1))))


def _dropout(s: Source) -> Any:
    return arrays.dropped(s.of(FLOATS), s.side(2**26, 2**12))


def _gated_halves(s: Source) -> Any:
    columns = s.side(16384, 64)
    return arrays.gated_halves(s.of(FLOATS), s.rows(columns, 2**26), columns)


def _masked_rows(s: Source) -> Any:
    sizes = s.log(1, 256), s.side(2048, 16), s.side(8192, 32)
    return arrays.masked_softmax(s.of(FLOATS), *sizes)


def _volumes(s: Source) -> Any:
    return arrays.volume(s.log(4, 512), s.log(16, 512), s.side(512, 16))


def _segments(s: Source) -> Any:
    return arrays.segments(s.of(FLOATS), s.log(16, 2**15), s.log(2, 256), s.side(1024, 16))


def _vectors(s: Source) -> Any:
    batch = 1 if s.random.random() < 0.6 else s.log(2, 128)
    return arrays.vectors(s.of(FLOATS), batch, s.side(16384, 64), s.side(16384, 64))


def _small_products(s: Source) -> Any:
    sides = [s.log(8, 48)] * 3 if s.random.random() < 0.6 else [s.log(8, 48) for _ in range(3)]
    return arrays.small_products(s.of(FLOATS), s.log(32, 2**17), *sides)


def _grams(s: Source) -> Any:
    return arrays.gram(s.of(("f16", "bf16")), s.log(512, 2**20), s.log(32, 1024, 8))


def _nearest(s: Source) -> Any:
    sizes = s.log(64, 2**18), s.log(16, 4096), s.log(16, 256, 8)
    return arrays.nearest(s.of(("f16", "bf16")), *sizes)


def _cells(s: Source) -> Any:
    return arrays.lstm_cell(
        s.of(("f16", "bf16")), s.log(1, 2048), s.log(64, 2048, 8), s.log(64, 2048, 8)
    )


CLASSES: dict[str, Callable[[Source], Any]] = {
    "products": _product,
    "batches": _batch,
    "groups": _groups,
    "epilogues": _epilogue,
    "attention": _attention,
    "gradients": _gradients,
    "experts": _experts,
    "convolution": _convolution,
    "recurrences": _recurrence,
    "rows": _rows,
    "losses": _losses,
    "quantisation": _quantisation,
    "elementwise": _elementwise,
    "sorting": _sorting,
    "histograms": _histogram,
    "sums": _sums,
    "stencils": _stencil,
    "sparse rows": _sparse,
    "4-bit weights": _four_bits,
    "tile scales": _tile_scales,
    "decoding": _decoding,
    "transposes": _transposes,
    "rotations": _rotations,
    "embeddings": _embeddings,
    "caches": _caches,
    "short filters": _short_filters,
    "group norms": _group_norms,
    "moments": _moments,
    "running sums": _running_sums,
    "pooling": _pooling,
    "dropout": _dropout,
    "gated halves": _gated_halves,
    "masked rows": _masked_rows,
    "volumes": _volumes,
    "segments": _segments,
    "vectors": _vectors,
    "small products": _small_products,
    "grams": _grams,
    "nearest": _nearest,
    "cells": _cells,
}
SHARES = {"products": 4, "attention": 2, "rows": 2, "elementwise": 2}
"""Cases of a class in each turn, where more than one."""
