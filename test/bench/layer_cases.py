"""Layers of models as the examples have them, forward and backward: several launches a case.

`tensors`-free and compiler-free, as `bench_cases`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major
from bench_cases import Variant
from configurations import Configuration, label_of
from product_cases import BURST, SUSTAINED

from tilec.costs.machine import usual_machine
from tilec.hardware.target import find_target
from tilec.ops.attention_plan import Shapes
from tilec.ops.gradient_plan import WIDE, Paired, handed_shape, heads_at_once, paired

IN_TURNS = (("interleaved", 1.0),)
REGIMES = ((BURST, 1.0), (SUSTAINED, 1.0))


@dataclass(frozen=True)
class Step:
    """One launch of a kernel: names of arrays and numbers in its order, then its constants."""

    kernel: str
    arguments: tuple[str | float, ...]
    constants: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class LayerCase:
    """Launches one behind the other on `arrays`; `outputs` are compared.

    `changed`: outputs that are inputs, too. `sizes`: what the peers need to know. A setting of a
    variant belongs to all steps whose kernels have such a constant, and a demand to all.
    """

    kernel: str
    label: str
    arrays: tuple[ArraySpec, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    sizes: Mapping[str, Any]
    flops: int
    goals: tuple[tuple[str, float], ...] = IN_TURNS
    changed: tuple[str, ...] = ()
    worth_trying: tuple[Configuration, ...] = ()

    anchor = "triton"
    untuned = ("tilec default",)
    rivals = ("torch", "bound")
    spread = 0.5

    @property
    def name(self) -> str:
        """As in "rms_norm 16384x8192"."""
        return f"{self.kernel} {self.label}"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(spec.nbytes for spec in self.arrays)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The default, then the configurations worth trying."""
        return self.swept(self.worth_trying)

    def swept(self, configurations: Sequence[Configuration]) -> tuple[Variant, ...]:
        """The default, then a variant a configuration."""
        found = [Variant(label_of(c), self.kernel, tuple(c.items())) for c in configurations]
        return (Variant("default", self.kernel), *found)


def layer_cases() -> list[LayerCase]:
    """All of them; those that a card's power limits come first."""
    return [
        *(
            attention_backward(4, 16, 4096, 128, causal, kv_heads)
            for causal, kv_heads in ((False, 16), (True, 16), (True, 4))
        ),
        attention_backward(4, 32, 4096, 64, True, 32),
        mixture_of_experts(4096, 8, 2, 4096, 8192),
        quantized_weights(4096, 8192, 8192),
        quantized_weights(16, 8192, 8192),
        tile_scales(4096, 4096, 7168),
        convolution((128, 56, 56, 128), 3, 128),
        paged_attention(64, 32, 8, 128, 64, 4),
        cross_entropy(4096, 128256),
        rms_norm(16384, 8192),
        rms_norm_backward(16384, 8192),
    ]


def _tiles(**choices: Sequence[Any]) -> Iterator[Configuration]:
    """Configurations from one sequence of values a name, side by side."""
    for values in zip(*choices.values(), strict=True):
        yield dict(zip(choices, values, strict=True))


def attention_backward(
    batch: int, heads: int, length: int, head: int, causal: bool, kv_heads: int
) -> LayerCase:
    """Gradients of q, k and v in bf16, by the launches that `attention_gradients` makes on an H200;
    five products of the ideal."""
    q, k = (batch, heads, length, head), (batch, kv_heads, length, head)
    arrays = [row_major(n, "bf16", q if n in ("q", "o", "do", "dq") else k) for n in _BACKWARD]
    arrays += [row_major(name, "f32", q[:3]) for name in ("logs", "delta")]
    sizes = Shapes(batch, heads, kv_heads, length, length, head, head, None)
    machine = usual_machine(find_target("sm_90a"))
    how = paired(sizes, causal, None, machine)
    at_once = 0 if how else heads_at_once(sizes, 2, machine)
    if at_once:
        arrays.append(row_major("dscores", "bf16", handed_shape(sizes, at_once)))
    fixed, share = (("D", head), ("CAUSAL", causal)), ("SHARED", heads // kv_heads)
    scale = 1 / math.sqrt(head)
    shared = "" if heads == kv_heads else f" {heads // kv_heads} a head"
    return LayerCase(
        "attention_backward",
        f"D{head} {length} {'causal' if causal else 'full'}{shared}",
        tuple(arrays),
        tuple(_backward_steps(sizes, how, at_once, scale, (*fixed, share))),
        ("dq", "dk", "dv"),
        {"causal": causal, "scale": scale},
        10 * batch * heads * length**2 * head // (2 if causal else 1),
        REGIMES,
        worth_trying=(
            {"BM": 64, "BN": 64, "num_warps": 4},
            {"BM": 64, "BN": 64, "num_warps": 4, "persistent": False},
            {"persistent": False},
        ),
    )


def _backward_steps(
    sizes: Shapes,
    how: Paired | None,
    at_once: int,
    scale: float,
    fixed: tuple[tuple[str, Any], ...],
) -> Iterator[Step]:
    """The launches, by one kernel as `how` says, or with the gradients of scores of so many heads
    of keys in memory at once."""
    given = ("do", "logs", "delta")
    if how is not None:
        yield Step("deltas", ("o", "do", "delta"), (("DV", sizes.others),))
        both = ("q", "k", "v", *given, "dq", "dk", "dv", scale)
        kernel = "wide_gradients" if how.held == WIDE else "paired_gradients"
        yield Step(kernel, both, (*fixed, ("APART", how.apart), ("BN", how.held)))
        return
    if not at_once:
        yield Step("query_gradients", ("q", "k", "v", "o", *given, "dq", scale), fixed)
        yield Step("key_gradients", ("q", "k", "v", *given, "dk", "dv", scale), fixed)
        return
    yield Step("deltas", ("o", "do", "delta"), (("DV", sizes.others),))
    every = sizes.batch * sizes.few
    for first in range(0, every, at_once):
        place = first, min(at_once, every - first), scale
        keys = ("q", "k", "v", *given, "dscores", "dk", "dv", *place)
        yield Step("handing_key_gradients", keys, fixed)
        yield Step("handed_query_gradients", ("q", "k", "dscores", "dq", *place), fixed)


_BACKWARD = ("q", "k", "v", "o", "do", "dq", "dk", "dv")


def mixture_of_experts(tokens: int, experts: int, top: int, k: int, n: int) -> LayerCase:
    """One matrix an expert, the tokens gathered and the products scattered."""
    rows = 128
    tiles = -(-tokens * top // rows) + experts
    arrays = (
        row_major("tokens", "bf16", (tokens, k)),
        row_major("matrices", "bf16", (experts, k, n)),
        row_major("slots", "i32", (tiles * rows,)),
        row_major("experts", "i32", (tiles,)),
        row_major("weights", "f32", (tokens * top,)),
        row_major("products", "bf16", (tokens * top, n)),
    )
    return LayerCase(
        "mixture_of_experts",
        f"{tokens} x{top} of {experts}, {k}x{n}",
        arrays,
        (
            Step(
                "multiply_by_experts",
                tuple(spec.name for spec in arrays),
                (("TOP", top), ("BM", rows)),
            ),
        ),
        ("products",),
        {"top": top, "experts": experts, "rows": rows},
        2 * tokens * top * k * n,
        REGIMES,
        worth_trying=tuple(_tiles(BN=(128, 256), num_warps=(8, 8))),
    )


def quantized_weights(m: int, n: int, k: int, group: int = 128) -> LayerCase:
    """Weights of 4 bits, f16 activations."""
    arrays = (
        row_major("a", "f16", (m, k)),
        row_major("packed", "i8", (k // 2, n)),
        row_major("scales", "f16", (k // group, n)),
        row_major("zeros", "f16", (k // group, n)),
        row_major("c", "f16", (m, n)),
    )
    names = tuple(spec.name for spec in arrays)
    few = (("BM", 16), ("STAGES", 4)) if m <= 16 else ()
    large = _tiles(BM=(256, 128), BN=(128, 128), num_warps=(8, 8))
    small = _tiles(BN=(32, 32, 64), STAGES=(6, 8, 6), num_warps=(4, 4, 8))
    return LayerCase(
        "quantized_weights",
        f"{m}x{n}x{k}",
        arrays,
        (Step("quantized_matmul", names, few),),
        ("c",),
        {"group": group},
        2 * m * n * k,
        REGIMES if m > 64 else IN_TURNS,
        worth_trying=tuple(small if few else large),
    )


def tile_scales(m: int, n: int, k: int) -> LayerCase:
    """fp8 with scales of 128 and 128 x 128."""
    arrays = (
        row_major("a", "f8E4M3FN", (m, k)),
        row_major("a_scales", "f32", (m, k // 128)),
        row_major("b", "f8E4M3FN", (n, k)),
        row_major("b_scales", "f32", (n // 128, k // 128)),
        row_major("c", "bf16", (m, n)),
    )
    return LayerCase(
        "tile_scales",
        f"{m}x{n}x{k}",
        arrays,
        (Step("tile_scaled_matmul", tuple(spec.name for spec in arrays)),),
        ("c",),
        {},
        2 * m * n * k,
        REGIMES,
        worth_trying=tuple(_tiles(BM=(128, 256, 64), BN=(128, 128, 128), num_warps=(8, 8, 4))),
    )


def convolution(images: tuple[int, int, int, int], window: int, filters: int) -> LayerCase:
    """A window in steps of one, the result as large as the image."""
    arrays = (
        row_major("x", "f16", images),
        row_major("w", "f16", (window, window, images[3], filters)),
        row_major("y", "f16", (*images[:3], filters)),
    )
    constants = (("PAD", window // 2),)
    return LayerCase(
        "convolution",
        f"{'x'.join(map(str, images))}, {window}x{window}, {filters}",
        arrays,
        (Step("convolve", ("x", "w", "y"), constants),),
        ("y",),
        {"pad": window // 2},
        2 * math.prod(images) * window**2 * filters,
        REGIMES,
        worth_trying=tuple(_tiles(BM=(128, 256, 128), BK=(64, 64, 128), num_warps=(8, 8, 8))),
    )


def paged_attention(
    batch: int, heads: int, kv_heads: int, head: int, page: int, splits: int, mean: int = 4096
) -> LayerCase:
    """One query a sequence; lengths between half the mean and one and a half."""
    shared, most = heads // kv_heads, mean * 3 // 2 // page
    parts = (batch, kv_heads, splits, shared)
    pool = (batch * most, page, kv_heads, head)
    arrays = (
        row_major("q", "bf16", (batch, heads, head)),
        row_major("keys", "bf16", pool),
        row_major("values", "bf16", pool),
        row_major("table", "i32", (batch, most)),
        row_major("lengths", "i32", (batch,)),
        row_major("parts", "f32", (*parts, head)),
        row_major("logs", "f32", parts),
        row_major("o", "bf16", (batch, heads, head)),
    )
    fixed = (("HEADS", shared), ("D", head))
    walk = (*(spec.name for spec in arrays[:7]), 1 / math.sqrt(head))
    return LayerCase(
        "paged_attention",
        f"{batch} sequences of {mean}, {heads} heads of {kv_heads}",
        arrays,
        (
            Step("attend_pages", walk, (*fixed, ("PAGE", page))),
            Step("join_splits", ("parts", "logs", "o"), (*fixed, ("SPLITS", splits))),
        ),
        ("o",),
        {"mean": mean, "page": page, "splits": splits, "scale": 1 / math.sqrt(head)},
        4 * batch * heads * mean * head,
        worth_trying=({"num_warps": 1}, {"num_warps": 2}, {"num_warps": 8}),
    )


def cross_entropy(rows: int, classes: int) -> LayerCase:
    """Losses and gradients in bf16."""
    arrays = (
        row_major("logits", "bf16", (rows, classes)),
        row_major("labels", "i32", (rows,)),
        row_major("losses", "f32", (rows,)),
    )
    return LayerCase(
        "cross_entropy",
        f"{rows}x{classes}",
        arrays,
        (Step("cross_entropy", ("logits", "labels", "losses", 0.0)),),
        ("losses", "logits"),
        {},
        0,
        changed=("logits",),
        worth_trying=tuple(_tiles(B=(4096, 8192, 16384, 16384), num_warps=(8, 16, 16, 32))),
    )


def rms_norm(rows: int, columns: int) -> LayerCase:
    """Forward, bf16."""
    arrays = (
        *(row_major("x", "bf16", (rows, columns)), row_major("weight", "bf16", (columns,))),
        *(row_major("y", "bf16", (rows, columns)), row_major("scales", "f32", (rows,))),
    )
    return LayerCase(
        "rms_norm",
        f"{rows}x{columns}",
        arrays,
        (Step("rms_norm", ("x", "weight", "y", "scales", 1e-6), (("N", columns),)),),
        ("y",),
        {"eps": 1e-6},
        0,
        worth_trying=tuple(_tiles(num_warps=(4, 8, 16))),
    )


PROGRAMS = 264
"""That walk over rows, for the sums over them: two a multiprocessor, and no more than rows."""


def rms_norm_backward(rows: int, columns: int) -> LayerCase:
    """Gradients of rows and weight, bf16."""
    arrays = (
        *(row_major("dy", "bf16", (rows, columns)), row_major("x", "bf16", (rows, columns))),
        *(row_major("weight", "bf16", (columns,)), row_major("scales", "f32", (rows,))),
        *(row_major("dx", "bf16", (rows, columns)), row_major("dweight", "bf16", (columns,))),
        row_major("partial", "f32", (min(rows, PROGRAMS), columns)),
    )
    walk = ("dy", "x", "weight", "scales", "dx", "partial")
    return LayerCase(
        "rms_norm_backward",
        f"{rows}x{columns}",
        arrays,
        (
            Step("rms_norm_gradients", walk, (("N", columns),)),
            Step("sum_columns", ("partial", "dweight")),
        ),
        ("dx", "dweight"),
        {"eps": 1e-6},
        0,
        worth_trying=tuple(_tiles(num_warps=(8, 16, 32))),
    )


LOWEST, WIDTH = -1.5, 0.01
"""Where the first bin of a histogram begins, and how wide one is."""


def histogram(values: int, bins: int) -> LayerCase:
    """Values counted by atomics; not one of `layer_cases`: nothing is compared with its speed."""
    arrays = (row_major("values", "f32", (values,)), row_major("counts", "i32", (bins,)))
    return LayerCase(
        "histogram",
        f"{values} in {bins}",
        arrays,
        (Step("histogram", ("values", LOWEST, WIDTH, "counts")),),
        ("counts",),
        {},
        0,
        changed=("counts",),
    )
