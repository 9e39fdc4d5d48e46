"""What a soak runs: drawn kernels of every kind, as the cases of the benches describe them.

Products for every plan that the model of `tilec.ops` picks for drawn shapes, combinations that
nobody picks (`drawn_demands`), and layers: gradients of attention, experts, decoding, norms, losses
and a histogram by atomics.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from bench_cases import Variant
from drawn_demands import Drawn, draw
from layer_cases import (
    LayerCase,
    attention_backward,
    convolution,
    cross_entropy,
    histogram,
    mixture_of_experts,
    paged_attention,
    quantized_weights,
    rms_norm,
    rms_norm_backward,
    tile_scales,
)
from product_cases import OPS, ProductCase

TARGET = "sm_90a"
SHAPES = 3000
"""Drawn to find out which plans the model picks."""
MOST_SIDE = 8192
MOST_WORK = 2**35
"""Multiplications of a product: a launch is to take some 10 us, for many to overlap."""
KINDS = (
    ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("f8E4M3FN", "bf16"), ("f32", "f32"),
    ("i8", "i32"),
)  # fmt: skip
KNOWN = (("bf16", (3456, 112, 3456), "NN"),)
"""A product in clusters of four that stopped an H200 within seconds, when clusters still parted by
a relaxed meeting."""


def soak_cases(seed: int, count: int) -> tuple[list[Drawn], dict[str, int]]:
    """About `count` cases, the same for a seed; and of what is drawn, how many "plans" of products
    there were and how many are "taken".

    Half of the cases are products, which come first: `KNOWN`, then one a plan, the rarest plans
    first. The rest are demands and layers.
    """
    rng = random.Random(seed)
    plans, seen = _plans(rng, count // 2 - len(KNOWN))
    known = [ProductCase(dtype, dtype, shape, layout, ()) for dtype, shape, layout in KNOWN]
    demands = [one for one in draw(seed, count // 3) if one.target == TARGET]
    layers = [_layer(rng, n) for n in range(count // 6)]
    found = [(case, Variant("ops", OPS, ())) for case in (*known, *plans)]
    found += [(one.case, one.variant) for one in demands]
    found += [(case, Variant("default", case.kernel)) for case in layers]
    numbered = enumerate(found)
    cases = [Drawn(case, way, TARGET, f"{n:04}.tilec") for n, (case, way) in numbered]
    return cases, {"plans": seen, "taken": len(plans)}


def _plans(rng: random.Random, most: int) -> tuple[list[ProductCase], int]:
    """Products of plans that differ, rare ones first, and how many plans there were."""
    from ops_compiler import chosen_tiles

    by_plan: dict[Any, ProductCase] = {}
    times: Counter[Any] = Counter()
    for case in _shapes(rng):
        choice = chosen_tiles(case, TARGET)
        plan = None if choice is None else _plan(choice)
        times[plan] += 1
        by_plan.setdefault((plan, case.dtype == "f32"), case)
    rare = sorted(by_plan, key=lambda key: times[key[0]])
    return [by_plan[key] for key in rare[:most]], len(by_plan)


def _plan(choice: Any) -> Any:
    """What of a choice makes other code, or meets other kernels in another way."""
    return (
        *(choice.rows, choice.columns, choice.cluster, choice.in_turn, choice.is_transposed),
        *(choice.is_single, choice.splits > 1, choice.tail > 1, choice.stages),
    )


def _shapes(rng: random.Random) -> Iterator[ProductCase]:
    """Log-uniform sides; a third multiples of 64, a third of 8 only, a third any."""
    for _ in range(SHAPES):
        step = rng.choice((64, 8, 1))
        shape = tuple(max(1, round(_side(rng) / step)) * step for _ in range(3))
        if math.prod(shape) > MOST_WORK:
            continue
        dtype, output = rng.choice(KINDS)
        narrow = dtype in ("f8E4M3FN", "i8")
        yield ProductCase(dtype, output, shape, "TN" if narrow else rng.choice(("TN", "NN")), ())


def _side(rng: random.Random) -> float:
    return math.exp(rng.uniform(0, math.log(MOST_SIDE)))


def _layer(rng: random.Random, number: int) -> LayerCase:
    """The kinds in turn, sizes drawn; sequences and rows fill no tile."""
    length, wide = rng.randint(300, 1500), 128 * rng.randint(2, 12)
    rows = rng.randint(200, 3000)
    kinds = (
        lambda: attention_backward(1, 8, length, rng.choice((64, 128)), rng.random() < 0.5, 8),
        lambda: attention_backward(2, 8, length, 64, True, 2),
        lambda: mixture_of_experts(rows, 8, 2, wide, wide),
        lambda: quantized_weights(rng.choice((16, rows)), wide, wide),
        lambda: tile_scales(rows, wide, wide),
        lambda: convolution((8, rng.randint(9, 40), rng.randint(9, 40), 64), 3, 128),
        lambda: paged_attention(rng.randint(2, 24), 32, 8, 128, 64, 4, 1024),
        lambda: cross_entropy(rows, rng.randint(1000, 40000)),
        lambda: rms_norm(rows, 8 * rng.randint(40, 1500)),
        lambda: rms_norm_backward(rows, 8 * rng.randint(40, 1500)),
        lambda: histogram(rng.randint(10**4, 10**7), rng.randint(5, 500)),
    )
    return kinds[number % len(kinds)]()
