"""The kinds of `unseen_masked`."""

from __future__ import annotations

from typing import Any

import torch
import triton_unseen_masked as rivals
import unseen_masked as kernels
from unseen_case import Config, Kind, Launch, Maker, Sizes, Tensors, attention_tiles, cdiv, each

BLOCK = 64
"""Queries, and keys, of what a list of blocks names."""
FEW = 16
"""Rows of a tile of few queries: an instruction's."""
MUCH = 0.4
"""Of the second softmax that the first loses."""
LN2 = 0.6931471805599453


def _wide(t: Tensors, *names: str) -> list[torch.Tensor]:
    return [t[name].double() for name in names]


def _heads(r: Maker, s: Sizes, keys: int = 0, shared: int = 1) -> Tensors:
    """q, k, v and o of a head of `d` elements; `keys`: as many as queries if not given."""
    few = s["b"], s["h"] // shared, keys or s["m"], s["d"]
    return {
        "q": r.normal(s["t"], s["b"], s["h"], s["m"], s["d"]),
        "k": r.normal(s["t"], *few),
        "v": r.normal(s["t"], *few),
        "o": r.out(s["t"], s["b"], s["h"], s["m"], s["d"]),
    }


def _scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(2, 3) * q.shape[3] ** -0.5


def _hidden(size: int, device: Any) -> torch.Tensor:
    return torch.ones(size, size, device=device, dtype=torch.bool).triu(1)


def _grid(s: Sizes, c: Config) -> tuple[int, ...]:
    return cdiv(s["m"], c["BM"]), s["h"], s["b"]


def _capped(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = _wide(t, "q", "k", "v")
    k, v = (x.repeat_interleave(s["shared"], 1) for x in (k, v))
    scores = s["cap"] * torch.tanh(_scores(q, k) / s["cap"])
    scores = scores.masked_fill(_hidden(s["m"], q.device), float("-inf"))
    sink = t["sinks"].double()[None, :, None, None].expand(s["b"], -1, s["m"], 1)
    every = torch.cat([scores, sink], 3)
    return {"o": every.softmax(3)[..., :-1] @ v, "lse": torch.logsumexp(every, 3)}


CAPPED = Kind(
    "capped_attention",
    lambda s: {
        "b": s.log(1, 4),
        "h": s.of((8, 16)),
        "m": s.log(300, 4000),
        "d": s.of((64, 80, 112, 128)),
        "shared": s.of((1, 4)),
        "cap": 30.0,
        "t": "bf16",
    },
    lambda r, s: (
        _heads(r, s, shared=s["shared"])
        | {"sinks": r.normal("f32", s["h"]), "lse": r.out("f32", s["b"], s["h"], s["m"])}
    ),
    lambda t, s: [
        Launch(
            kernels.capped_attention,
            [*(t[n] for n in ("q", "k", "v", "sinks", "o", "lse")), s["d"] ** -0.5, s["cap"]],
            {"D": s["d"], "SHARED": s["shared"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.capped_attention,
            [
                *(t[n] for n in ("q", "k", "v", "sinks", "o", "lse")),
                *(s["d"] ** -0.5, s["cap"], s["h"], s["m"], s["d"]),
                *(1 << (s["d"] - 1).bit_length(), s["shared"]),
            ],
            c,
            _grid(s, c),
        )
    ],
    lambda s: attention_tiles(),
    _capped,
)


def _lists(r: Maker, s: Sizes) -> Tensors:
    """For each block of queries of a head some blocks of keys, at least one."""
    blocks = cdiv(s["m"], BLOCK)
    most = min(blocks, s["most"])
    places = [r.order(blocks)[:most].sort().values for _ in range(s["h"] * blocks)]
    counts = r.whole(1, most + 1, s["h"], blocks)
    return {"counts": counts, "places": torch.stack(places).int().view(s["h"], blocks, most)}


def _sparse(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = _wide(t, "q", "k", "v")
    heads, blocks, most = t["places"].shape
    seen = torch.zeros(heads, blocks, blocks, dtype=torch.bool, device=q.device)
    named = torch.arange(most, device=q.device) < t["counts"][:, :, None]
    seen.scatter_(2, t["places"].long(), named)
    seen = seen.repeat_interleave(BLOCK, 1).repeat_interleave(BLOCK, 2)[:, : s["m"], : s["m"]]
    return {"o": _scores(q, k).masked_fill(~seen, float("-inf")).softmax(3) @ v}


SPARSE = Kind(
    "block_sparse_attention",
    lambda s: {
        "b": s.log(1, 4),
        "h": s.of((4, 8)),
        "m": s.log(500, 5000),
        "d": s.of((64, 128)),
        "most": s.of((4, 12)),
        "t": "f16",
    },
    lambda r, s: _heads(r, s) | _lists(r, s),
    lambda t, s: [
        Launch(
            kernels.block_sparse_attention,
            [*(t[n] for n in ("q", "k", "v", "counts", "places", "o")), s["d"] ** -0.5],
            {"D": s["d"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.block_sparse_attention,
            [
                *(t[n] for n in ("q", "k", "v", "counts", "places", "o")),
                *(s["d"] ** -0.5, s["h"], s["m"], *t["places"].shape[1:], s["d"]),
            ],
            c,
            (t["places"].shape[1], s["h"], s["b"]),
        )
    ],
    lambda s: each(BM=(BLOCK,) * 3, BN=(BLOCK,) * 3, num_warps=(4, 4, 8), num_stages=(2, 3, 3)),
    _sparse,
)


def _tree(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = _wide(t, "q", "k", "v")
    scores = _scores(q, k)
    drafts = scores[..., -s["m"] :].masked_fill(t["tree"] == 0, float("-inf"))
    return {"o": torch.cat([scores[..., : -s["m"]], drafts], 3).softmax(3) @ v}


TREE = Kind(
    "tree_attention",
    lambda s: {
        "b": s.log(1, 16),
        "h": s.of((8, 32)),
        "m": s.log(16, 128),
        "n": s.log(500, 8000),
        "d": s.of((64, 128)),
        "t": "bf16",
    },
    lambda r, s: (
        _heads(r, s, keys=s["n"] + s["m"])
        | {
            "tree": r.whole(0, 2, s["m"], s["m"], dtype=torch.int8)
            | torch.eye(s["m"], device=r.device).to(torch.int8)
        }
    ),
    lambda t, s: [
        Launch(
            kernels.tree_attention,
            [*(t[n] for n in ("q", "k", "v", "tree", "o")), s["d"] ** -0.5],
            {"D": s["d"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.tree_attention,
            [
                *(t[n] for n in ("q", "k", "v", "tree", "o")),
                *(s["d"] ** -0.5, s["h"], s["m"], s["n"] + s["m"], s["d"]),
            ],
            c,
            _grid(s, c),
        )
    ],
    lambda s: each(
        BM=(16, 32, 64, 64, 128),
        BN=(64, 64, 64, 128, 64),
        num_warps=(4, 4, 4, 4, 8),
        num_stages=(4, 3, 3, 2, 3),
    ),
    _tree,
)


def _plain(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = _wide(t, "q", "k", "v")
    return {"o": _scores(q, k).softmax(3) @ v}


def _joined(t: Tensors, s: Sizes) -> Tensors:
    shares = torch.softmax(t["logs"].double() * LN2, 2)[..., None]
    return {"o": (t["parts"].double() * shares).sum(2)[:, :, : s["m"]]}


SPLIT = Kind(
    "split_cross",
    lambda s: {
        "b": s.log(1, 8),
        "h": s.of((4, 8, 16)),
        "m": s.log(1, FEW),
        "n": s.log(2000, 40000),
        "p": s.of((8, 16, 32)),
        "d": s.of((64, 128)),
        "t": "bf16",
    },
    lambda r, s: (
        _heads(r, s, keys=s["n"])
        | {
            "parts": r.out("f32", s["b"], s["h"], s["p"], FEW, s["d"]),
            "logs": r.out("f32", s["b"], s["h"], s["p"], FEW),
        }
    ),
    lambda t, s: [
        Launch(
            kernels.split_cross,
            [*(t[n] for n in ("q", "k", "v", "parts", "logs")), s["d"] ** -0.5],
            {"D": s["d"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.split_cross,
            [
                *(t[n] for n in ("q", "k", "v", "parts", "logs")),
                *(s["d"] ** -0.5, s["h"], s["m"], s["n"], s["d"]),
            ],
            c,
            (s["p"], s["h"], s["b"]),
        )
    ],
    lambda s: each(
        BM=(FEW,) * 4, BN=(64, 128, 64, 32), num_warps=(4, 4, 2, 1), num_stages=(3, 3, 4, 4)
    ),
    _plain,
    _joined,
)


def _bytes(r: Maker, s: Sizes) -> Tensors:
    shape = s["b"], s["h"], s["m"], s["d"]
    made = {name: r.normal("f32", *shape).to(torch.float8_e4m3fn) for name in "qkv"}
    return made | {"scales": r.positive(s["h"], 3), "o": r.out(s["t"], *shape)}


def _eight_bit(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = _wide(t, "q", "k", "v")
    of_q, of_k, of_v = t["scales"].double().T[:, :, None, None]
    return {"o": (_scores(q, k) * of_q * of_k).softmax(3) @ v * of_v}


EIGHT_BIT = Kind(
    "eight_bit_attention",
    lambda s: {
        "b": s.log(1, 4),
        "h": s.of((8, 16)),
        "m": s.log(500, 6000),
        "d": s.of((64, 128)),
        "t": "bf16",
    },
    _bytes,
    lambda t, s: [
        Launch(
            kernels.eight_bit_attention,
            [*(t[n] for n in ("q", "k", "v", "scales", "o")), s["d"] ** -0.5],
            {"D": s["d"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.eight_bit_attention,
            [
                *(t[n] for n in ("q", "k", "v", "scales", "o")),
                *(s["d"] ** -0.5, s["h"], s["m"], s["d"]),
            ],
            c,
            _grid(s, c),
        )
    ],
    lambda s: attention_tiles(),
    _eight_bit,
    tolerance=6e-2,  # weights have three bits behind the first
)


def _differential(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = _wide(t, "q", "k", "v")
    weights = _scores(q, k).masked_fill(_hidden(s["m"], q.device), float("-inf")).softmax(3)
    return {"o": (weights[:, 0::2] - MUCH * weights[:, 1::2]) @ v}


def _in_pairs(r: Maker, s: Sizes) -> Tensors:
    made, half = _heads(r, s), (s["b"], s["h"] // 2, s["m"], s["d"])
    return made | {"v": r.normal(s["t"], *half), "o": r.out(s["t"], *half)}


DIFFERENTIAL = Kind(
    "differential_attention",
    lambda s: {
        "b": s.log(1, 4),
        "h": s.of((8, 16)),
        "m": s.log(300, 4000),
        "d": s.of((64, 128)),
        "t": "bf16",
    },
    _in_pairs,
    lambda t, s: [
        Launch(
            kernels.differential_attention,
            [*(t[n] for n in ("q", "k", "v", "o")), s["d"] ** -0.5, MUCH],
            {"D": s["d"], "DV": s["d"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.differential_attention,
            [
                *(t[n] for n in ("q", "k", "v", "o")),
                *(s["d"] ** -0.5, MUCH, s["h"] // 2, s["m"], s["d"]),
            ],
            c,
            (cdiv(s["m"], c["BM"]), s["h"] // 2, s["b"]),
        )
    ],
    lambda s: attention_tiles(),
    _differential,
)

KINDS = (CAPPED, SPARSE, TREE, SPLIT, EIGHT_BIT, DIFFERENTIAL)
