"""Triton's candidates for `layer_cases`: label -> launches one behind the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import triton
import triton_layer_kernels as kernels
from layer_cases import LayerCase
from triton_peers import Tensors, TritonLaunch

TOGETHER = 8
"""Rows of tiles that programs walk together."""


@dataclass(frozen=True)
class LayerLaunch:
    """Launches in order, as `triton_peers.TritonLaunch`."""

    label: str
    parts: tuple[TritonLaunch, ...]

    def launch(self, tensors: Tensors) -> None:
        """Launches all."""
        for part in self.parts:
            part.launch(tensors)

    def warm(self, tensors: Tensors) -> None:
        """Compiles all."""
        for part in self.parts:
            part.warm(tensors)


def layer_launches(case: LayerCase) -> Iterator[LayerLaunch]:
    """All candidates of a case."""
    return _CANDIDATES[case.kernel](case, {spec.name: spec.shape for spec in case.arrays})


Shapes = dict[str, tuple[int, ...]]
Arguments = Callable[[Tensors], tuple[Any, ...]]


def _named(*names: str | float) -> Arguments:
    """Arguments by name, numbers as they are."""
    return lambda t: tuple(t[name] if isinstance(name, str) else name for name in names)


def _part(kernel: Any, grid: tuple[int, ...], arguments: Arguments, **options: Any) -> TritonLaunch:
    return TritonLaunch("", kernel, grid, arguments, options)


def _backward(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    batch, heads, length, head = shapes["q"]
    shared, rows = heads // shapes["k"][1], batch * heads * length
    sizes = {"LENGTH": length, "D": head, "CAUSAL": case.sizes["causal"]}
    inputs, scale = ("q", "k", "v", "do", "logs", "delta"), case.sizes["scale"]
    before = _part(
        kernels.weigh_gradients, (rows // 64,), _named("o", "do", "delta"), D=head, BM=64
    )
    for few, many, stages, warps in (
        *((32, 128, 5, 4), (32, 128, 3, 4), (32, 64, 3, 4), (64, 64, 2, 4), (64, 128, 2, 8)),
        *((64, 128, 3, 8), (32, 128, 4, 8), (128, 128, 1, 8), (64, 64, 3, 4)),
    ):
        options = {**sizes, "num_stages": stages, "num_warps": warps}
        label = f"{few}x{many} s{stages} w{warps}"
        keys = _part(
            kernels.key_gradients,
            (length // many, batch * heads // shared),
            _named(*inputs, "dk", "dv", scale),
            **{**options, "SHARED": shared, "BM": few, "BN": many},
        )
        queries = _part(
            kernels.query_gradients,
            (length // many, batch * heads),
            _named(*inputs, "dq", scale),
            **{**options, "SHARED": shared, "BM": many, "BN": few},
        )
        yield LayerLaunch(f"two {label}", (before, keys, queries))
        if shared == 1:
            both = _part(
                kernels.both_gradients,
                (length // many, batch * heads),
                _named(*inputs, "dq", "dk", "dv", scale),
                **{**options, "FEW": few, "MANY": many},
            )
            yield LayerLaunch(f"tutorial {label}", (before, both))


def _experts(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    slots, (_, k, n) = shapes["slots"][0], shapes["matrices"]
    names = ("tokens", "matrices", "slots", "experts", "weights", "products")
    for bm, bn, bk, stages, warps in (
        *((128, 128, 64, 3, 8), (128, 128, 64, 4, 8), (128, 256, 64, 3, 8), (128, 128, 64, 3, 4)),
        *((64, 256, 64, 3, 4), (64, 128, 64, 4, 4), (128, 128, 32, 4, 8)),
    ):
        part = _part(
            kernels.experts,
            (slots // bm * (n // bn),),
            _named(*names, slots),
            **{"TOP": case.sizes["top"], "N": n, "K": k, "ROWS": case.sizes["rows"]},
            **{"BM": bm, "BN": bn, "BK": bk, "GROUP": TOGETHER},
            **{"num_stages": stages, "num_warps": warps},
        )
        yield LayerLaunch(f"{bm}x{bn}x{bk} s{stages} w{warps}", (part,))


def _quantized(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    (m, n), k = shapes["c"], shapes["a"][1]
    names = tuple(spec.name for spec in case.arrays)
    few = ((16, 32, 4, 4), (16, 64, 3, 4), (16, 64, 4, 4), (16, 64, 4, 8), (16, 128, 3, 4))
    many = ((128, 128, 3, 8), (128, 128, 3, 4), (128, 256, 3, 8), (64, 128, 3, 4), (64, 256, 3, 8))
    for bm, bn, stages, warps in few if m <= 16 else many:
        part = _part(
            kernels.quantized,
            (triton.cdiv(m, bm) * (n // bn),),
            _named(*names, m),
            **{"N": n, "K": k, "GROUP": case.sizes["group"], "BM": bm, "BN": bn},
            **{"TOGETHER": TOGETHER, "num_stages": stages, "num_warps": warps},
        )
        yield LayerLaunch(f"{bm}x{bn} s{stages} w{warps}", (part,))


def _tile_scales(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    (m, n), k = shapes["c"], shapes["a"][1]
    for bm, bn, stages, warps in (
        *((128, 128, 3, 4), (128, 128, 3, 8), (128, 128, 4, 8), (64, 128, 3, 4), (64, 128, 4, 4)),
        (128, 64, 4, 4),
    ):
        part = _part(
            kernels.tile_scaled,
            (triton.cdiv(m, bm) * (n // bn),),
            _named(*(spec.name for spec in case.arrays), m),
            **{"N": n, "K": k, "BM": bm, "BN": bn, "GROUP": TOGETHER},
            **{"num_stages": stages, "num_warps": warps},
        )
        yield LayerLaunch(f"{bm}x{bn} s{stages} w{warps}", (part,))


def _convolution(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    images, height, width, channels = shapes["x"]
    window, filters = shapes["w"][0], shapes["w"][3]
    pixels = images * height * width
    for bm, bn, bk, stages, warps in (
        *((128, 128, 64, 3, 4), (128, 128, 64, 3, 8), (128, 128, 32, 4, 4), (64, 128, 64, 3, 4)),
        *((256, 128, 64, 3, 8), (128, 128, 64, 4, 8)),
    ):
        part = _part(
            kernels.convolution,
            (triton.cdiv(pixels, bm), filters // bn),
            _named("x", "w", "y", pixels),
            **{"H": height, "W": width, "C": channels, "F": filters, "R": window},
            **{"PAD": case.sizes["pad"], "BM": bm, "BN": bn, "BK": bk},
            **{"num_stages": stages, "num_warps": warps},
        )
        yield LayerLaunch(f"{bm}x{bn}x{bk} s{stages} w{warps}", (part,))


def _paged(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    batch, kv_heads, splits, shared, head = shapes["parts"]
    fixed = {"HEADS": shared, "D": head}
    names = ("q", "keys", "values", "table", "lengths", "parts", "logs")
    factor = case.sizes["scale"] * math.log2(math.e)
    for stages, warps in ((2, 4), (3, 4), (4, 4), (2, 2), (3, 2), (3, 8)):
        walk = _part(
            kernels.attend_pages,
            (splits, kv_heads, batch),
            _named(*names, factor, shapes["table"][1]),
            **{**fixed, "KV": kv_heads, "PAGE": case.sizes["page"], "ROWS": 16},
            **{"num_stages": stages, "num_warps": warps},
        )
        join = _part(
            kernels.join_splits,
            (batch * kv_heads * shared,),
            _named("parts", "logs", "o"),
            **{**fixed, "SPLITS": splits, "num_warps": 1},
        )
        yield LayerLaunch(f"s{stages} w{warps}", (walk, join))


def _losses(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    rows, classes = shapes["logits"]
    for tile, warps in ((4096, 4), (4096, 8), (8192, 8), (16384, 16), (32768, 32), (65536, 32)):
        part = _part(
            kernels.cross_entropy,
            (rows,),
            _named("logits", "labels", "losses"),
            **{"CLASSES": classes, "B": tile, "num_warps": warps},
        )
        yield LayerLaunch(f"B{tile} w{warps}", (part,))


def _norm(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    rows, columns = shapes["x"]
    for warps in (4, 8, 16, 32):
        part = _part(
            kernels.rms_norm,
            (rows,),
            _named("x", "weight", "y", "scales", case.sizes["eps"]),
            **{"N": columns, "num_warps": warps},
        )
        yield LayerLaunch(f"w{warps}", (part,))


def _norm_backward(case: LayerCase, shapes: Shapes) -> Iterator[LayerLaunch]:
    rows, columns = shapes["x"]
    programs, _ = shapes["partial"]
    add = _part(
        kernels.sum_columns,
        (columns // 64,),
        _named("partial", "dweight", programs),
        **{"N": columns, "BM": 32, "BN": 64},
    )
    for warps in (8, 16, 32):
        part = _part(
            kernels.rms_norm_gradients,
            (programs,),
            _named("dy", "x", "weight", "scales", "dx", "partial", rows),
            **{"N": columns, "num_warps": warps},
        )
        yield LayerLaunch(f"w{warps}", (part, add))


_CANDIDATES: dict[str, Callable[[LayerCase, Shapes], Iterator[LayerLaunch]]] = {
    "attention_backward": _backward,
    "mixture_of_experts": _experts,
    "quantized_weights": _quantized,
    "tile_scales": _tile_scales,
    "convolution": _convolution,
    "paged_attention": _paged,
    "cross_entropy": _losses,
    "rms_norm": _norm,
    "rms_norm_backward": _norm_backward,
}
