"""The kinds of `unseen_products`."""

from __future__ import annotations

from typing import Any

import torch
import triton_unseen_products as rivals
import unseen_products as kernels
from unseen_case import (
    Config,
    Kind,
    Launch,
    Sizes,
    Tensors,
    cdiv,
    each,
    product_tiles,
    tiles,
)

HALVES = ("f16", "bf16")


def wide(t: Tensors, *names: str) -> list[torch.Tensor]:
    return [t[name].double() for name in names]


def launch(kernel: Any, names: str, *numbers: float, **constants: str) -> Any:
    """tilec's launch on the tensors of these names; constants are sizes by name."""

    def launches(t: Tensors, s: Sizes) -> list[Launch]:
        values = {name: s[size] for name, size in constants.items()}
        return [Launch(kernel, [*(t[name] for name in names.split()), *numbers], values)]

    return launches


def grouped(kernel: Any, names: str, sizes: str, *numbers: float) -> Any:
    """Triton's, a program a tile of m x n in a row, then sizes and numbers."""

    def launches(t: Tensors, s: Sizes, c: Config) -> list[Launch]:
        grid = (cdiv(s["m"], c["BM"]) * cdiv(s["n"], c["BN"]),)
        given = [*(t[name] for name in names.split()), *(s[size] for size in sizes.split())]
        return [Launch(kernel, [*given, *numbers], c, grid)]

    return launches


def _product(rows: tuple[int, int], columns: int, inner: int) -> Any:
    def draw(s: Any) -> Sizes:
        return {
            "m": s.log(*rows),
            "n": s.side(columns, 192),
            "k": s.log(192, inner, 8),
            "t": s.of(HALVES),
        }

    return draw


def _by_size(s: Sizes) -> list[Config]:
    return product_tiles(s["m"], s["n"])


def _best(t: Tensors, s: Sizes) -> Tensors:
    x, w = wide(t, "x", "w")
    return {"best": (x @ w.T).max(1).values}


BEST_CLASS = Kind(
    "best_class",
    lambda s: {
        "m": s.log(512, 16384),
        "n": s.log(256, 4096),
        "k": s.log(128, 1024, 8),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]),
        "w": r.normal(s["t"], s["n"], s["k"]),
        "best": r.out("f32", s["m"]),
        "which": r.out(torch.int32, s["m"]),
    },
    launch(kernels.best_class, "x w best which"),
    lambda t, s, c: [
        Launch(
            rivals.best_class,
            [t["x"], t["w"], t["best"], t["which"], s["m"], s["n"], s["k"]],
            c,
            (cdiv(s["m"], c["BM"]),),
        )
    ],
    lambda s: tiles(
        (128, 128, 64, 8, 3),
        (64, 128, 64, 4, 3),
        (64, 64, 64, 4, 4),
        (128, 64, 64, 4, 3),
        (32, 128, 64, 4, 4),
    ),
    _best,
)


def _normed(t: Tensors, s: Sizes) -> Tensors:
    x, w, gain = wide(t, "x", "w", "gain")
    y = x @ w
    return {"y": y * torch.rsqrt((y * y).mean(1, keepdim=True) + 1e-5) * gain}


def _whole_rows(s: Sizes) -> list[Config]:
    width = 1 << (s["n"] - 1).bit_length()
    rows = each(
        BM=(64, 128, 64, 32, 128),
        BK=(64, 64, 32, 64, 32),
        num_warps=(4, 8, 8, 4, 8),
        num_stages=(3, 3, 4, 4, 3),
    )
    return [{**one, "N": width} for one in rows]


NORMED = Kind(
    "normed_product",
    lambda s: {
        "m": s.log(256, 16384),
        "n": s.of((64, 96, 128, 192, 256)),
        "k": s.log(256, 4096, 8),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]),
        "w": r.normal(s["t"], s["k"], s["n"]),
        "gain": r.normal(s["t"], s["n"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.normed_product, "x w gain y", 1e-5, N="n"),
    lambda t, s, c: [
        Launch(
            rivals.normed_product,
            [t["x"], t["w"], t["gain"], t["y"], s["m"], s["n"], s["k"], 1e-5],
            c,
            (cdiv(s["m"], c["BM"]),),
        )
    ],
    _whole_rows,
    _normed,
)


def _gated(t: Tensors, s: Sizes) -> Tensors:
    x, w = wide(t, "x", "w")
    gate, up = (x @ w.T).chunk(2, 1)
    return {"y": torch.nn.functional.gelu(gate) * up}


GATED = Kind(
    "gated_halves_product",
    _product((16, 8192), 8192, 4096),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1),
        "w": r.normal(s["t"], 2 * s["n"], s["k"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.gated_halves_product, "x w y"),
    grouped(rivals.gated_halves_product, "x w y", "m n k"),
    lambda s: tiles(
        (128, 128, 64, 8, 3),
        (64, 128, 64, 8, 3),
        (128, 64, 64, 8, 4),
        (64, 64, 64, 4, 4),
        (64, 32, 128, 4, 3),
        (16, 64, 128, 4, 4),
    ),
    _gated,
)


def _quantised(t: Tensors, s: Sizes) -> Tensors:
    x, w = wide(t, "x", "w")
    y = torch.nn.functional.pad(x @ w, (0, -s["n"] % 128))
    scales = (y.view(s["m"], -1, 128).abs().amax(2) / 448).clamp(min=1e-10)
    return {"scales": scales, "y": (x @ w) / scales.repeat_interleave(128, 1)[:, : s["n"]]}


QUANTISED = Kind(
    "quantised_product",
    _product((64, 8192), 8192, 4096),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]),
        "w": r.normal(s["t"], s["k"], s["n"]),
        "y": r.out(torch.float8_e4m3fn, s["m"], s["n"]),
        "scales": r.out("f32", s["m"], cdiv(s["n"], 128)),
    },
    launch(kernels.quantised_product, "x w y scales"),
    grouped(rivals.quantised_product, "x w y scales", "m n k"),
    lambda s: tiles(
        (128, 128, 64, 8, 3),
        (64, 128, 64, 4, 4),
        (64, 128, 128, 8, 3),
        (128, 128, 64, 4, 4),
        (32, 128, 64, 4, 4),
    ),
    _quantised,
    tolerance=4e-2,
)


def _residual(t: Tensors, s: Sizes) -> Tensors:
    x, w, bias, gain, old = wide(t, "x", "w", "bias", "gain", "old")
    return {"y": old + gain * ((x @ w.T + bias) * t["kept"].double() * 1.25)}


RESIDUAL = Kind(
    "residual_product",
    _product((64, 8192), 8192, 4096),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1),
        "w": r.normal(s["t"], s["n"], s["k"]),
        "bias": r.normal(s["t"], s["n"]),
        "kept": r.whole(0, 2, s["m"], s["n"], dtype=torch.int8),
        "gain": r.normal(s["t"], s["n"]),
        "old": r.normal(s["t"], s["m"], s["n"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.residual_product, "x w bias kept gain old y", 1.25),
    grouped(rivals.residual_product, "x w bias kept gain old y", "m n k", 1.25),
    _by_size,
    _residual,
)


def _scattered(t: Tensors, s: Sizes) -> Tensors:
    x, w = wide(t, "x", "w")
    y = torch.empty_like(t["y"], dtype=torch.float64)
    y[t["places"].long()] = x @ w
    return {"y": y}


SCATTERED = Kind(
    "scattered_product",
    _product((64, 8192), 4096, 4096),
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"]),
        "w": r.normal(s["t"], s["k"], s["n"]),
        "places": r.order(s["m"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.scattered_product, "x w places y"),
    grouped(rivals.scattered_product, "x w places y", "m n k"),
    _by_size,
    _scattered,
)


def _two_layers(t: Tensors, s: Sizes) -> Tensors:
    x, up, down = wide(t, "x", "up", "down")
    return {"y": torch.relu(x @ up.T).square() @ down}


TWO_LAYERS = Kind(
    "two_layers",
    lambda s: {
        "m": s.log(256, 32768),
        "h": s.log(128, 4096, 8),
        "d": s.of((64, 128, 256)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["d"], by=0.1),
        "up": r.normal(s["t"], s["h"], s["d"]),
        "down": r.normal(s["t"], s["h"], s["d"], by=0.1),
        "y": r.out(s["t"], s["m"], s["d"]),
    },
    launch(kernels.two_layers, "x up down y", D="d"),
    lambda t, s, c: [
        Launch(
            rivals.two_layers,
            [t["x"], t["up"], t["down"], t["y"], s["m"], s["h"], s["d"]],
            c,
            (cdiv(s["m"], c["BM"]),),
        )
    ],
    lambda s: each(
        BM=(128, 128, 64, 64, 128),
        BH=(64, 128, 64, 128, 32),
        num_warps=(8, 8, 4, 8, 4),
        num_stages=(3, 2, 3, 2, 3),
    ),
    _two_layers,
)


def _low_rank(t: Tensors, s: Sizes) -> Tensors:
    x, a, b = wide(t, "x", "a", "b")
    return {"y": (x @ a.T) @ b.T}


LOW_RANK = Kind(
    "low_rank",
    lambda s: {
        "m": s.log(256, 8192),
        "n": s.side(2048, 128),
        "k": s.log(256, 4096, 8),
        "r": s.of((16, 32, 64, 128)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1),
        "a": r.normal(s["t"], s["r"], s["k"]),
        "b": r.normal(s["t"], s["n"], s["r"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.low_rank, "x a b y", R="r"),
    grouped(rivals.low_rank, "x a b y", "m n k r"),
    _by_size,
    _low_rank,
)


def _weight_gradient(t: Tensors, s: Sizes) -> Tensors:
    dy, x = wide(t, "dy", "x")
    return {"dw": dy.T @ x}


def _split_gradient(t: Tensors, s: Sizes, c: Config) -> list[Launch]:
    grid = (cdiv(s["m"], c["BM"]) * cdiv(s["n"], c["BN"]), c["PARTS"])
    given = [t["dy"], t["x"], t["dw"], s["m"], s["n"], s["k"]]
    return [Launch(rivals.weight_gradient, given, c, grid)]


WEIGHT_GRADIENT = Kind(
    "weight_gradient",
    lambda s: {
        "m": s.log(64, 2048, 8),
        "n": s.log(64, 2048, 8),
        "k": s.log(2048, 131072),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "dy": r.normal(s["t"], s["k"], s["m"]),
        "x": r.normal(s["t"], s["k"], s["n"]),
        "dw": torch.zeros(s["m"], s["n"], device=r.device),
    },
    launch(kernels.weight_gradient, "dy x dw"),
    _split_gradient,
    lambda s: each(
        BM=(128, 128, 64, 64, 128, 128),
        BN=(128, 128, 64, 64, 64, 128),
        BK=(64,) * 6,
        num_warps=(8, 8, 4, 4, 4, 8),
        num_stages=(3, 3, 4, 4, 4, 3),
        PARTS=(1, 4, 8, 32, 16, 16),
    ),
    _weight_gradient,
    added=("dw",),
)


def _few_rows(t: Tensors, s: Sizes) -> Tensors:
    x, w, bias = wide(t, "x", "w", "bias")
    return {"y": torch.nn.functional.silu(x @ w.T + bias)}


FEW_ROWS = Kind(
    "few_rows",
    lambda s: {
        "m": s.log(1, 16),
        "n": s.side(32768, 1024),
        "k": s.log(512, 8192, 8),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1),
        "w": r.normal(s["t"], s["n"], s["k"]),
        "bias": r.normal(s["t"], s["n"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.few_rows, "x w bias y"),
    grouped(rivals.few_rows, "x w bias y", "m n k"),
    _by_size,
    _few_rows,
)


def _head_scores(t: Tensors, s: Sizes) -> Tensors:
    q, k = wide(t, "q", "k")
    return {"s": torch.einsum("blhd,bkhd->bhlk", q, k) * 0.125}


HEAD_SCORES = Kind(
    "head_scores",
    lambda s: {
        "b": s.log(1, 8),
        "h": s.log(2, 16),
        "m": s.log(64, 2048),
        "n": s.side(2048, 64),
        "d": s.of((40, 64, 128)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "q": r.normal(s["t"], s["b"], s["m"], s["h"], s["d"]),
        "k": r.normal(s["t"], s["b"], s["n"], s["h"], s["d"]),
        "s": r.out(s["t"], s["b"], s["h"], s["m"], s["n"]),
    },
    launch(kernels.head_scores, "q k s", 0.125),
    lambda t, s, c: [
        Launch(
            rivals.head_scores,
            [t["q"], t["k"], t["s"], 0.125, s["m"], s["n"], s["h"], s["d"]],
            c,
            (cdiv(s["m"], c["BM"]), cdiv(s["n"], c["BN"]), s["b"] * s["h"]),
        )
    ],
    _by_size,
    _head_scores,
)


def _interactions(t: Tensors, s: Sizes) -> Tensors:
    x = t["x"].double()
    return {"z": x @ x.transpose(1, 2)}


INTERACTIONS = Kind(
    "interactions",
    lambda s: {
        "b": s.log(2048, 65536),
        "f": s.log(9, 40),
        "d": s.of((16, 32, 64, 128)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["b"], s["f"], s["d"]),
        "z": r.out(s["t"], s["b"], s["f"], s["f"]),
    },
    launch(kernels.interactions, "x z", F="f", D="d"),
    lambda t, s, c: [Launch(rivals.interactions, [t["x"], t["z"], s["f"], s["d"]], c, (s["b"],))],
    lambda s: [
        {"F": max(16, 1 << (s["f"] - 1).bit_length()), "D": s["d"], "num_warps": w}
        for w in (1, 2, 4)
    ],
    _interactions,
)


def _triangular(t: Tensors, s: Sizes) -> Tensors:
    a, b = wide(t, "a", "b")
    return {"y": a.tril() @ b}


TRIANGULAR = Kind(
    "triangular_product",
    lambda s: {"m": s.side(6144, 512), "n": s.side(4096, 128), "t": s.of(HALVES)},
    lambda r, s: {
        "a": r.normal(s["t"], s["m"], s["m"]),
        "b": r.normal(s["t"], s["m"], s["n"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.triangular_product, "a b y"),
    grouped(rivals.triangular_product, "a b y", "m n"),
    _by_size,
    _triangular,
)

KINDS = (
    BEST_CLASS,
    NORMED,
    GATED,
    QUANTISED,
    RESIDUAL,
    SCATTERED,
    TWO_LAYERS,
    LOW_RANK,
    WEIGHT_GRADIENT,
    FEW_ROWS,
    HEAD_SCORES,
    INTERACTIONS,
    TRIANGULAR,
)
