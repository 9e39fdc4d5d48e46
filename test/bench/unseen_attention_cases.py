"""The kinds of `unseen_attention`."""

from __future__ import annotations

from typing import Any

import torch
import triton_unseen_attention as rivals
import unseen_attention as kernels
from unseen_case import Config, Kind, Launch, Sizes, Tensors, attention_tiles, cdiv, each

HALVES = ("f16", "bf16")


def _wide(t: Tensors, *names: str) -> list[torch.Tensor]:
    return [t[name].double() for name in names]


def _heads(longest: int, widths: tuple[int, ...]) -> Any:
    def draw(s: Any) -> Sizes:
        return {
            "b": s.log(1, 16),
            "h": s.log(4, 32),
            "m": s.log(256, longest),
            "d": s.of(widths),
            "t": s.of(HALVES),
        }

    return draw


def _biased(t: Tensors, s: Sizes) -> Tensors:
    q, k, v, bias = _wide(t, "q", "k", "v", "bias")
    scores = q @ k.transpose(2, 3) * s["d"] ** -0.5 + bias
    return {"o": scores.softmax(3) @ v}


BIASED = Kind(
    "biased_attention",
    lambda s: {
        "b": s.log(1, 16),
        "h": s.log(4, 16),
        "m": s.log(49, 2048),
        "n": s.log(49, 2048),
        "d": s.of((32, 64, 128)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "q": r.normal(s["t"], s["b"], s["h"], s["m"], s["d"]),
        "k": r.normal(s["t"], s["b"], s["h"], s["n"], s["d"]),
        "v": r.normal(s["t"], s["b"], s["h"], s["n"], s["d"]),
        "bias": r.normal(s["t"], s["h"], s["m"], s["n"]),
        "o": r.out(s["t"], s["b"], s["h"], s["m"], s["d"]),
    },
    lambda t, s: [
        Launch(
            kernels.biased_attention,
            [t["q"], t["k"], t["v"], t["bias"], t["o"], s["d"] ** -0.5],
            {"D": s["d"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.biased_attention,
            [
                t["q"],
                t["k"],
                t["v"],
                t["bias"],
                t["o"],
                s["d"] ** -0.5,
                s["h"],
                s["m"],
                s["n"],
                s["d"],
            ],
            c,
            (cdiv(s["m"], c["BM"]), s["h"], s["b"]),
        )
    ],
    lambda s: attention_tiles(),
    _biased,
)


def _slanted(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = (x.transpose(1, 2) for x in _wide(t, "q", "k", "v"))
    place = torch.arange(s["m"], device=q.device)
    apart = place[None, :] - place[:, None]
    scores = q @ k.transpose(2, 3) * s["d"] ** -0.5 + t["slopes"].double()[:, None, None] * apart
    scores = scores.masked_fill(apart > 0, float("-inf"))
    return {"o": (scores.softmax(3) @ v).transpose(1, 2)}


SLANTED = Kind(
    "slanted_attention",
    _heads(4096, (64, 128)),
    lambda r, s: {
        **{name: r.normal(s["t"], s["b"], s["m"], s["h"], s["d"]) for name in "qkv"},
        "slopes": r.positive(s["h"]) * 0.1,
        "o": r.out(s["t"], s["b"], s["m"], s["h"], s["d"]),
    },
    lambda t, s: [
        Launch(
            kernels.slanted_attention,
            [t["q"], t["k"], t["v"], t["slopes"], t["o"], s["d"] ** -0.5],
            {"D": s["d"]},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.slanted_attention,
            [t["q"], t["k"], t["v"], t["slopes"], t["o"], s["d"] ** -0.5, s["h"], s["m"], s["d"]],
            c,
            (cdiv(s["m"], c["BM"]), s["h"], s["b"]),
        )
    ],
    lambda s: attention_tiles(),
    _slanted,
)


def _near(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = t["qkv"].double().permute(2, 0, 3, 1, 4)
    place = torch.arange(s["m"], device=q.device)
    apart = place[:, None] - place[None, :]
    scores = (q @ k.transpose(2, 3) * s["d"] ** -0.5).masked_fill(
        (apart < 0) | (apart > s["w"]), float("-inf")
    )
    return {"o": (scores.softmax(3) @ v).transpose(1, 2)}


NEAR = Kind(
    "near_attention",
    lambda s: {
        "b": s.log(1, 8),
        "h": s.log(2, 16),
        "m": s.log(256, 4096),
        "d": s.of((64, 128)),
        "w": s.log(64, 1024),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "qkv": r.normal(s["t"], s["b"], s["m"], 3, s["h"], s["d"]),
        "o": r.out(s["t"], s["b"], s["m"], s["h"], s["d"]),
    },
    lambda t, s: [
        Launch(kernels.near_attention, [t["qkv"], t["o"], s["d"] ** -0.5, s["w"]], {"D": s["d"]})
    ],
    lambda t, s, c: [
        Launch(
            rivals.near_attention,
            [t["qkv"], t["o"], s["d"] ** -0.5, s["w"], s["h"], s["m"], s["d"]],
            c,
            (cdiv(s["m"], c["BM"]), s["h"], s["b"]),
        )
    ],
    lambda s: attention_tiles(),
    _near,
)


def _latent(t: Tensors, s: Sizes) -> Tensors:
    q, cache = _wide(t, "q", "cache")
    scores = q @ cache.transpose(1, 2) * 576**-0.5
    return {"o": scores.softmax(2) @ cache[:, :, :512]}


def _joined(t: Tensors, s: Sizes) -> Tensors:
    """All splits' parts, each by its weight: where they begin differs by the tile."""
    weights = torch.softmax(t["logs"].double() * 0.6931471805599453, 1)
    return {"o": (t["parts"].double() * weights[..., None]).sum(1)}


LATENT = Kind(
    "latent_decoding",
    lambda s: {
        "b": s.log(1, 32),
        "h": s.of((16, 32, 64, 128)),
        "n": s.log(512, 8192),
        "p": s.of((4, 8, 16)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "q": r.normal(s["t"], s["b"], s["h"], 576),
        "cache": r.normal(s["t"], s["b"], s["n"], 576),
        "parts": r.out("f32", s["b"], s["p"], s["h"], 512),
        "logs": r.out("f32", s["b"], s["p"], s["h"]),
    },
    lambda t, s: [
        Launch(
            kernels.latent_decoding,
            [t["q"], t["cache"], t["parts"], t["logs"], 576**-0.5],
            {"W": 576, "V": 512},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.latent_decoding,
            [
                t["q"],
                t["cache"],
                t["parts"],
                t["logs"],
                576**-0.5,
                s["h"],
                s["n"],
                s["p"],
                576,
                512,
            ],
            c,
            (cdiv(s["h"], c["BH"]), s["p"], s["b"]),
        )
    ],
    lambda s: each(
        BH=(16, 16, 16, 16, 32),
        BN=(32, 64, 32, 16, 32),
        num_warps=(4, 4, 8, 4, 4),
        num_stages=(2, 2, 3, 4, 2),
    ),
    _latent,
    found=_joined,
)


def _cross(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = (x.transpose(1, 2) for x in _wide(t, "q", "k", "v"))
    scores = q @ k.transpose(2, 3) * s["d"] ** -0.5
    return {"o": (scores.softmax(3) @ v).transpose(1, 2)}


CROSS = Kind(
    "cross_attention",
    lambda s: {
        "b": s.log(1, 16),
        "h": s.log(4, 20),
        "m": s.log(64, 4096),
        "n": s.of((32, 77, 128)),
        "d": s.of((40, 64, 80)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "q": r.normal(s["t"], s["b"], s["m"], s["h"], s["d"]),
        "k": r.normal(s["t"], s["b"], s["n"], s["h"], s["d"]),
        "v": r.normal(s["t"], s["b"], s["n"], s["h"], s["d"]),
        "o": r.out(s["t"], s["b"], s["m"], s["h"], s["d"]),
    },
    lambda t, s: [
        Launch(
            kernels.cross_attention,
            [t["q"], t["k"], t["v"], t["o"], s["d"] ** -0.5],
            {"D": s["d"], "N": cdiv(s["n"], 16) * 16},
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.cross_attention,
            [t["q"], t["k"], t["v"], t["o"], s["d"] ** -0.5, s["h"], s["m"], s["n"], s["d"]],
            {**c, "D": 1 << (s["d"] - 1).bit_length(), "N": 1 << (s["n"] - 1).bit_length()},
            (cdiv(s["m"], c["BM"]), s["h"], s["b"]),
        )
    ],
    lambda s: each(BM=(64, 128, 128, 256, 32), num_warps=(4, 4, 8, 8, 2)),
    _cross,
)


def _sums(t: Tensors, s: Sizes) -> Tensors:
    k, v = _wide(t, "k", "v")
    return {"state": (k.relu() + 1).transpose(2, 3) @ v}


SUMS = Kind(
    "key_value_sums",
    _heads(16384, (64, 128)),
    lambda r, s: {
        **{name: r.normal(s["t"], s["b"], s["h"], s["m"], s["d"]) for name in "kv"},
        "state": r.out("f32", s["b"], s["h"], s["d"], s["d"]),
    },
    lambda t, s: [Launch(kernels.key_value_sums, [t["k"], t["v"], t["state"]], {"D": s["d"]})],
    lambda t, s, c: [
        Launch(
            rivals.key_value_sums,
            [t["k"], t["v"], t["state"], s["m"], s["d"]],
            c,
            (s["b"] * s["h"], s["d"] // c["BD"]),
        )
    ],
    lambda s: each(
        BN=(64, 64, 128, 128, 64),
        BD=(64, 64, 64, 32, 16),
        num_warps=(4, 8, 4, 4, 4),
        num_stages=(3, 4, 3, 4, 4),
    ),
    _sums,
)


def _scanned(t: Tensors, s: Sizes, change: Any) -> torch.Tensor:
    q, k, v = _wide(t, "q", "k", "v")
    state = torch.zeros(s["b"], s["h"], s["d"], s["d"], dtype=torch.float64, device=q.device)
    o = torch.empty_like(q)
    for i in range(s["m"]):
        state = change(state, k[:, :, i], v[:, :, i], i)
        o[:, :, i] = (q[:, :, i, None, :] @ state)[:, :, 0]
    return o


def _retained(t: Tensors, s: Sizes) -> Tensors:
    rate = torch.exp2(t["rates"].double())[:, None, None]
    return {"o": _scanned(t, s, lambda state, k, v, i: state * rate + k[..., None] * v[:, :, None])}


def _chunks(s: Sizes) -> list[Config]:
    return each(
        BC=(64, 64, 32, 64, 128),
        BV=(64, 32, 64, 64, 32),
        num_warps=(4, 4, 4, 8, 4),
        num_stages=(2, 3, 3, 2, 2),
    )


RETENTION = Kind(
    "retention",
    _heads(2048, (64, 128)),
    lambda r, s: {
        **{name: r.normal(s["t"], s["b"], s["h"], s["m"], s["d"], by=0.3) for name in "qkv"},
        "rates": -0.1 * r.positive(s["h"]),
        "o": r.out(s["t"], s["b"], s["h"], s["m"], s["d"]),
    },
    lambda t, s: [
        Launch(
            kernels.retention, [t[name] for name in ("q", "k", "v", "rates", "o")], {"D": s["d"]}
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.retention,
            [*(t[name] for name in ("q", "k", "v", "rates", "o")), s["h"], s["m"], s["d"]],
            c,
            (s["b"] * s["h"], s["d"] // c["BV"]),
        )
    ],
    _chunks,
    _retained,
    tolerance=2e-2,
)


def _corrected(t: Tensors, s: Sizes) -> Tensors:
    beta = t["beta"].double()

    def change(state: Any, k: Any, v: Any, i: int) -> Any:
        error = (v - (k[:, :, None] @ state)[:, :, 0]) * beta[:, :, i, None]
        return state + k[..., None] * error[:, :, None]

    return {"o": _scanned(t, s, change)}


def _unit(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(x.float(), dim=-1).to(x.dtype)


DELTA = Kind(
    "delta_rule",
    _heads(2048, (64, 128)),
    lambda r, s: {
        "q": _unit(r.normal(s["t"], s["b"], s["h"], s["m"], s["d"])),
        "k": _unit(r.normal(s["t"], s["b"], s["h"], s["m"], s["d"])),
        "v": r.normal(s["t"], s["b"], s["h"], s["m"], s["d"]),
        "beta": r.positive(s["b"], s["h"], s["m"]) * 0.8,
        "o": r.out(s["t"], s["b"], s["h"], s["m"], s["d"]),
    },
    lambda t, s: [
        Launch(
            kernels.delta_rule, [t[name] for name in ("q", "k", "v", "beta", "o")], {"D": s["d"]}
        )
    ],
    lambda t, s, c: [
        Launch(
            rivals.delta_rule,
            [*(t[name] for name in ("q", "k", "v", "beta", "o")), s["m"], s["d"]],
            c,
            (s["b"] * s["h"], s["d"] // c["BV"]),
        )
    ],
    lambda s: each(
        BC=(32, 32, 32, 32), BV=(64, 32, 16, 64), num_warps=(4, 4, 4, 2), num_stages=(2, 2, 3, 1)
    ),
    _corrected,
    tolerance=4e-2,
)

KINDS = (BIASED, SLANTED, NEAR, LATENT, CROSS, SUMS, RETENTION, DELTA)
