"""The kinds of `unseen_gathers`."""

from __future__ import annotations

from typing import Any

import torch
import triton_unseen_gathers as rivals
import unseen_gathers as kernels
from unseen_case import (
    Config,
    Kind,
    Launch,
    Maker,
    Sizes,
    Tensors,
    cdiv,
    each,
    product_tiles,
    tiles,
)
from unseen_product_cases import grouped, launch, wide

HALVES = ("f16", "bf16")
GROUP = 128
ROWS = 64
"""Of a tile of an expert."""


def _narrow(low: int, high: int) -> Any:
    def draw(s: Any) -> Sizes:
        return {"m": s.log(low, high), "n": s.log(512, 8192, 16), "k": s.log(512, 8192, 16)}

    return draw


def _scaled(t: Tensors, s: Sizes) -> Tensors:
    x, w, of_row, of_column = wide(t, "x", "w", "of_row", "of_column")
    return {"y": x @ w.T * of_row[:, None] * of_column[None, :]}


def _narrow_tiles(s: Sizes) -> list[Config]:
    if s["m"] <= 64:
        return tiles(
            (16, 64, 256, 4, 4),
            (16, 128, 128, 4, 4),
            (32, 64, 256, 4, 3),
            (64, 64, 128, 4, 4),
            (64, 32, 256, 4, 4),
        )
    return tiles(
        (128, 256, 128, 8, 3),
        (128, 128, 128, 8, 3),
        (64, 128, 128, 4, 4),
        (64, 64, 128, 4, 4),
        (128, 64, 128, 4, 4),
        (64, 64, 256, 4, 3),
    )


INT8 = Kind(
    "int8_product",
    _narrow(1, 8192),
    lambda r, s: {
        "x": r.whole(-127, 128, s["m"], s["k"], dtype=torch.int8),
        "w": r.whole(-127, 128, s["n"], s["k"], dtype=torch.int8),
        "of_row": r.positive(s["m"]) * 1e-2,
        "of_column": r.positive(s["n"]) * 1e-2,
        "y": r.out("bf16", s["m"], s["n"]),
    },
    launch(kernels.int8_product, "x w of_row of_column y"),
    grouped(rivals.int8_product, "x w of_row of_column y", "m n k"),
    _narrow_tiles,
    _scaled,
)


def _fp8(r: Maker, *shape: int) -> torch.Tensor:
    return r.normal("f32", *shape).to(torch.float8_e4m3fn)


FP8 = Kind(
    "fp8_rows",
    _narrow(1, 8192),
    lambda r, s: {
        "x": _fp8(r, s["m"], s["k"]),
        "w": _fp8(r, s["n"], s["k"]),
        "of_row": r.positive(s["m"]),
        "of_column": r.positive(s["n"]),
        "y": r.out("bf16", s["m"], s["n"]),
    },
    launch(kernels.fp8_rows, "x w of_row of_column y"),
    grouped(rivals.fp8_rows, "x w of_row of_column y", "m n k"),
    _narrow_tiles,
    _scaled,
    tolerance=2e-2,
)


def _weighed(t: Tensors, s: Sizes) -> Tensors:
    x, w, scales = wide(t, "x", "w", "scales")
    return {"y": x @ (w * scales.repeat_interleave(GROUP, 0))}


BYTES = Kind(
    "byte_weights",
    lambda s: {
        "m": s.log(1, 4096),
        "n": s.log(512, 8192, 64),
        "k": s.log(512, 8192, 128),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1),
        "w": r.whole(-127, 128, s["k"], s["n"], dtype=torch.int8),
        "scales": r.normal(s["t"], s["k"] // GROUP, s["n"], by=0.01),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.byte_weights, "x w scales y"),
    grouped(rivals.byte_weights, "x w scales y", "m n k", 128),
    lambda s: product_tiles(s["m"], s["n"]),
    _weighed,
)


def _unpacked(t: Tensors, s: Sizes) -> Tensors:
    x, scales = wide(t, "x", "scales")
    codes = torch.stack([t["w"] & 15, t["w"] >> 4], 2).view(s["n"], s["k"]).double() - 8
    return {"y": x @ (codes * scales.repeat_interleave(GROUP, 1)).T}


NIBBLES = Kind(
    "nibble_weights",
    lambda s: {
        "m": s.log(1, 4096),
        "n": s.log(512, 8192, 64),
        "k": s.log(512, 8192, 128),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1),
        "w": r.whole(0, 256, s["n"], s["k"] // 2, dtype=torch.uint8),
        "scales": r.normal(s["t"], s["n"], s["k"] // GROUP, by=0.1),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    launch(kernels.nibble_weights, "x w scales y"),
    grouped(rivals.nibble_weights, "x w scales y", "m n k", 128),
    lambda s: product_tiles(s["m"], s["n"]),
    _unpacked,
)


def _arranged(r: Maker, s: Sizes) -> Tensors:
    """Each token's two experts, the tokens of an expert in whole tiles."""
    first = r.whole(0, s["e"], s["m"])
    choice = torch.stack([first, (first + r.whole(1, s["e"], s["m"])) % s["e"]], 1).view(-1)
    found, experts = [], []
    for expert in range(s["e"]):
        own = (choice == expert).nonzero()[:, 0] // 2
        count = cdiv(len(own), ROWS)
        found.append(torch.nn.functional.pad(own, (0, count * ROWS - len(own)), value=-1))
        experts += [expert] * count
    return {
        "tokens": torch.cat(found).int(),
        "experts": torch.tensor(experts, dtype=torch.int32, device=r.device),
    }


def _expert_tensors(r: Maker, s: Sizes) -> Tensors:
    arranged = _arranged(r, s)
    return {
        "x": r.normal(s["t"], s["m"], s["k"], by=0.1),
        "w": r.normal(s["t"], s["e"], s["n"], s["k"]),
        "weights": r.positive(len(arranged["tokens"])),
        "y": torch.zeros(s["m"], s["n"], device=r.device),
        **arranged,
    }


def _added(t: Tensors, s: Sizes) -> Tensors:
    x, w, weights = wide(t, "x", "w", "weights")
    y = torch.zeros_like(t["y"], dtype=torch.float64)
    for tile, expert in enumerate(t["experts"].tolist()):
        rows = slice(tile * ROWS, tile * ROWS + ROWS)
        token = t["tokens"][rows].long()
        token, weight = token[token >= 0], weights[rows][token >= 0]
        y.index_add_(0, token, weight[:, None] * (x[token] @ w[expert].T))
    return {"y": y}


EXPERTS = Kind(
    "added_experts",
    lambda s: {
        "m": s.log(64, 4096),
        "e": s.of((4, 8, 16, 32)),
        "n": s.side(4096, 128),
        "k": s.log(256, 2048, 8),
        "t": s.of(HALVES),
    },
    _expert_tensors,
    launch(kernels.added_experts, "x w tokens weights experts y"),
    lambda t, s, c: [
        Launch(
            rivals.added_experts,
            [
                *(t[name] for name in ("x", "w", "tokens", "weights", "experts", "y")),
                s["n"],
                s["k"],
                ROWS,
            ],
            c,
            (len(t["experts"]) * ROWS // c["BM"], cdiv(s["n"], c["BN"])),
        )
    ],
    lambda s: tiles(
        (64, 64, 64, 4, 4),
        (64, 128, 64, 4, 4),
        (64, 128, 64, 8, 3),
        (64, 256, 64, 8, 3),
        (32, 128, 64, 4, 4),
        (64, 64, 128, 4, 3),
    ),
    _added,
    added=("y",),
)


def _shifted(t: Tensors, s: Sizes) -> Tensors:
    x, w = wide(t, "x", "w")
    y = torch.zeros_like(t["y"], dtype=torch.float64)
    for i in range(s["taps"]):
        y[:, i:] += x[:, : s["m"] - i] @ w[i]
    return {"y": y}


SHIFTED = Kind(
    "shifted_products",
    lambda s: {
        "b": s.log(1, 16),
        "m": s.log(64, 8192),
        "taps": s.of((3, 4, 7)),
        "k": s.log(32, 1024, 8),
        "n": s.log(32, 1024, 8),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["b"], s["m"], s["k"], by=0.1),
        "w": r.normal(s["t"], s["taps"], s["k"], s["n"]),
        "y": r.out(s["t"], s["b"], s["m"], s["n"]),
    },
    launch(kernels.shifted_products, "x w y"),
    lambda t, s, c: [
        Launch(
            rivals.shifted_products,
            [t["x"], t["w"], t["y"], s["m"], s["taps"], s["k"], s["n"]],
            c,
            (cdiv(s["m"], c["BM"]), cdiv(s["n"], c["BN"]), s["b"]),
        )
    ],
    lambda s: product_tiles(s["m"], s["n"]),
    _shifted,
)


def _smoothed(t: Tensors, s: Sizes) -> Tensors:
    x, z, v = wide(t, "x", "z", "v")
    return {"y": torch.exp(-0.02 * torch.cdist(x, z).square()) @ v}


def _pairs(s: Sizes) -> list[Config]:
    found = each(
        BM=(128, 64, 64, 128, 32),
        BN=(64, 64, 128, 128, 64),
        num_warps=(4, 4, 4, 8, 4),
        num_stages=(2, 3, 3, 2, 3),
    )
    return [{"D": max(16, 1 << (s["d"] - 1).bit_length()), **one} for one in found]


SMOOTHED = Kind(
    "smoothed_values",
    lambda s: {"m": s.log(1024, 16384), "n": s.log(1024, 16384), "d": s.log(8, 128, 4)},
    lambda r, s: {
        "x": r.normal("f32", s["m"], s["d"]),
        "z": r.normal("f32", s["n"], s["d"]),
        "v": r.positive(s["n"]),
        "y": r.out("f32", s["m"]),
    },
    lambda t, s: [
        Launch(
            kernels.smoothed_values,
            [t["x"], t["z"], t["v"], t["y"], 0.02],
            {"D": cdiv(s["d"], 8) * 8},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.smoothed_values,
            [t["x"], t["z"], t["v"], t["y"], 0.02, s["m"], s["n"], s["d"]],
            c,
            (cdiv(s["m"], c["BM"]),),
        )
    ],
    _pairs,
    _smoothed,
)


def _contrasted(t: Tensors, s: Sizes) -> Tensors:
    x = t["x"].double()
    scores = x @ x.T * 10.0
    place = torch.arange(s["m"], device=x.device)
    pair = scores[place, place ^ 1]
    scores.fill_diagonal_(float("-inf"))
    return {"loss": torch.logsumexp(scores, 1) - pair}


def _unit(r: Maker, s: Sizes) -> torch.Tensor:
    return torch.nn.functional.normalize(r.normal("f32", s["m"], s["d"])).half()


CONTRASTIVE = Kind(
    "contrastive_loss",
    lambda s: {"m": 2 * s.log(512, 8192), "d": s.of((64, 96, 128, 256))},
    lambda r, s: {"x": _unit(r, s), "loss": r.out("f32", s["m"])},
    lambda t, s: [Launch(kernels.contrastive_loss, [t["x"], t["loss"], 10.0], {"D": s["d"]})],
    lambda t, s, c: [
        Launch(
            rivals.contrastive_loss,
            [t["x"], t["loss"], 10.0, s["m"], s["d"]],
            c,
            (cdiv(s["m"], c["BM"]),),
        )
    ],
    _pairs,
    _contrasted,
)


def _block_tensors(r: Maker, s: Sizes) -> Tensors:
    rows, size = s["rows"], s["s"]
    counts = r.whole(0, 2 * s["each"] + 1, rows)
    total = int(counts.sum())
    return {
        "blocks": r.normal(s["t"], total, size, size),
        "columns": r.whole(0, rows, total),
        "starts": torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int(),
        "b": r.normal(s["t"], rows * size, s["n"]),
        "y": r.out(s["t"], rows * size, s["n"]),
    }


def _blocked(t: Tensors, s: Sizes) -> Tensors:
    blocks, b = wide(t, "blocks", "b")
    size = s["s"]
    parts = blocks @ b.view(-1, size, s["n"])[t["columns"].long()]
    counts = t["starts"].diff().long()
    row = torch.repeat_interleave(torch.arange(s["rows"], device=b.device), counts)
    y = torch.zeros(s["rows"], size, s["n"], dtype=torch.float64, device=b.device)
    return {"y": y.index_add_(0, row, parts).view(-1, s["n"])}


BLOCKS = Kind(
    "listed_blocks",
    lambda s: {
        "rows": s.log(16, 256),
        "each": s.log(2, 16),
        "s": s.of((32, 64)),
        "n": s.side(2048, 64),
        "t": s.of(HALVES),
    },
    _block_tensors,
    launch(kernels.listed_blocks, "blocks columns starts b y", S="s"),
    lambda t, s, c: [
        Launch(
            rivals.listed_blocks,
            [*(t[name] for name in ("blocks", "columns", "starts", "b", "y")), s["n"], s["s"]],
            c,
            (s["rows"], cdiv(s["n"], c["BN"])),
        )
    ],
    lambda s: each(
        BN=(64, 128, 128, 256, 64), num_warps=(4, 4, 8, 8, 4), num_stages=(3, 3, 3, 2, 4)
    ),
    _blocked,
)

KINDS = (INT8, FP8, BYTES, NIBBLES, EXPERTS, SHIFTED, SMOOTHED, CONTRASTIVE, BLOCKS)
