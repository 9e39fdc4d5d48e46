"""The kinds of `exam_sequences`."""

from __future__ import annotations

from typing import Any

import exam_sequences as kernels
import torch
import triton_exam_sequences as rivals
from exam_case import FLOATS, HALVES, ours, power, theirs
from unseen_case import Config, Kind, Maker, Sizes, Tensors, attention_tiles, cdiv, each
from unseen_product_cases import wide


def _heads(s: Any) -> Sizes:
    return {
        "b": s.log(1, 8), "h": s.of((4, 8, 16)), "n": s.log(200, 8192), "d": s.of((64, 128)),
        "t": s.of(HALVES),
    }  # fmt: skip


def _three(r: Maker, s: Sizes, groups: int = 1) -> Tensors:
    shape = s["b"], s["h"], s["n"], s["d"]
    shared = s["b"], s["h"] // groups, s["n"], s["d"]
    return {
        "q": r.normal(s["t"], *shape), "k": r.normal(s["t"], *shared),
        "v": r.normal(s["t"], *shared), "o": r.out(s["t"], *shape),
    }  # fmt: skip


def _grid(s: Sizes, c: Config) -> tuple[int, int, int]:
    return cdiv(s["n"], c["BM"]), s["h"], s["b"]


def _attend(t: Tensors, s: Sizes, seen: Any, sinks: Any = None, groups: int = 1) -> Tensors:
    """A head at a time; `seen(sequence, row, column)`: which keys count."""
    at = torch.arange(s["n"], device=t["q"].device)
    o = torch.empty(t["q"].shape, dtype=torch.float64, device=t["q"].device)
    for b in range(s["b"]):
        mask = seen(b, at[:, None], at[None, :])
        for h in range(s["h"]):
            q, k, v = t["q"][b, h], t["k"][b, h // groups], t["v"][b, h // groups]
            scores = q.double() @ k.double().T * s["d"] ** -0.5
            scores = scores.masked_fill(~mask, float("-inf"))
            if sinks is not None:
                one = sinks[h].double().expand(s["n"], 1)
                scores = torch.cat([scores, one], 1).softmax(1)[:, :-1]
            else:
                scores = scores.softmax(1)
            o[b, h] = scores @ v.double()
    return {"o": o}


SINKS = Kind(
    "sink_attention",
    lambda s: {**_heads(s), "w": s.log(64, 2048)},
    lambda r, s: _three(r, s, 4) | {"sinks": r.normal(s["t"], s["h"])},
    lambda t, s: ours(
        kernels.sink_attention, f"q k v sinks o {s['d'] ** -0.5} w", D="d"
    )(t, s),
    lambda t, s, c: theirs(
        rivals.sink_attention, f"q k v sinks o h g n {s['d'] ** -0.5} w", _grid, D="d"
    )(t, {**s, "g": s["h"] // 4}, c),
    lambda s: attention_tiles(),
    lambda t, s: _attend(
        t, s, lambda b, i, j: (j <= i) & (i - j < s["w"]), sinks=t["sinks"], groups=4
    ),
)  # fmt: skip

PREFIX = Kind(
    "prefix_attention",
    _heads,
    lambda r, s: _three(r, s) | {"prefixes": r.whole(1, s["n"] + 1, s["b"])},
    lambda t, s: ours(kernels.prefix_attention, f"q k v prefixes o {s['d'] ** -0.5}", D="d")(t, s),
    lambda t, s, c: theirs(
        rivals.prefix_attention, f"q k v prefixes o h n {s['d'] ** -0.5}", _grid, D="d"
    )(t, s, c),
    lambda s: attention_tiles(),
    lambda t, s: _attend(t, s, lambda b, i, j: (j <= i) | (j < t["prefixes"][b])),
)

NORMED = Kind(
    "normed_attention",
    _heads,
    lambda r, s: _three(r, s)
    | {"gain": r.normal(s["t"], s["d"]), "lengths": r.whole(1, s["n"] + 1, s["b"])},
    lambda t, s: ours(
        kernels.normed_attention, f"q k v gain lengths o {s['d'] ** -0.5}", D="d"
    )(t, s),
    lambda t, s, c: theirs(
        rivals.normed_attention, f"q k v gain lengths o h n {s['d'] ** -0.5}", _grid, D="d"
    )(t, s, c),
    lambda s: attention_tiles(),
    lambda t, s: _normed(t, s),
)  # fmt: skip


def _normed(t: Tensors, s: Sizes) -> Tensors:
    def norm(x: torch.Tensor) -> torch.Tensor:
        x = x.double()
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * t["gain"].double()

    both = {"q": norm(t["q"]), "k": norm(t["k"]), "v": t["v"]}
    return _attend(both, s, lambda b, i, j: (j < t["lengths"][b]).expand(s["n"], s["n"]))


def _pages(r: Maker, s: Sizes) -> Tensors:
    most = cdiv(s["n"], s["p"])
    count = s["b"] * most
    lengths = r.whole(1, s["n"] + 1, s["b"])
    return {
        "q": r.normal(s["t"], s["b"], s["h"], s["g"], s["d"]),
        **{name: r.normal(s["t"], count, s["p"], s["h"], s["d"]) for name in "kv"},
        "pages": r.order(count).view(s["b"], most), "lengths": lengths,
        "o": r.out(s["t"], s["b"], s["h"], s["g"], s["d"]),
    }  # fmt: skip


def _decoded(t: Tensors, s: Sizes) -> Tensors:
    o = torch.empty(t["q"].shape, dtype=torch.float64, device=t["q"].device)
    for b in range(s["b"]):
        at = t["pages"][b].long()
        k, v = (t[x][at].flatten(0, 1)[: t["lengths"][b]].double() for x in "kv")
        scores = torch.einsum("hgd,nhd->hgn", t["q"][b].double(), k) * s["d"] ** -0.5
        o[b] = torch.einsum("hgn,nhd->hgd", scores.softmax(2), v)
    return {"o": o}


PAGED = Kind(
    "paged_decoding",
    lambda s: {
        "b": s.log(4, 256), "h": s.of((2, 4, 8)), "g": s.of((1, 4, 7, 8)), "n": s.log(200, 8192),
        "p": s.of((16, 32, 64)), "d": s.of((64, 128)), "t": s.of(HALVES),
    },
    _pages,
    lambda t, s: ours(
        kernels.paged_decoding, f"q k v pages lengths o {s['d'] ** -0.5}", G="g", D="d", PAGE="p"
    )(t, s),
    lambda t, s, c: theirs(
        rivals.paged_decoding, f"q k v pages lengths o h most {s['d'] ** -0.5}",
        lambda s, c: (s["h"], s["b"]), G="g", GP=lambda s: max(16, power(s["g"])), D="d", PAGE="p",
    )(t, {**s, "most": t["pages"].shape[1]}, c),
    lambda s: each(num_warps=(1, 2, 4, 4), num_stages=(3, 3, 3, 5)),
    _decoded,
)  # fmt: skip


def _chunked(s: Any) -> Sizes:
    return {
        "b": s.log(1, 8), "h": s.of((2, 4, 8)), "n": 64 * s.log(3, 64), "d": s.of((64, 128)),
        "e": s.of((64, 128, 256)), "t": s.of(HALVES),
    }  # fmt: skip


def _keys_and_values(r: Maker, s: Sizes, names: str, wide_names: str) -> Tensors:
    made = {
        x: r.normal(s["t"], s["b"], s["h"], s["n"], s["d"], by=s["d"] ** -0.5)
        for x in names.split()
    }
    more = {x: r.normal(s["t"], s["b"], s["h"], s["n"], s["e"]) for x in wide_names.split()}
    return made | more


def _value_grid(s: Sizes, c: Config) -> tuple[int, int, int]:
    return cdiv(s["e"], c["BV"]), s["h"], s["b"]


def _chunk_tiles(*chunks: int) -> Any:
    return lambda s: [
        {"BC": c, "BV": v, "num_warps": w, "num_stages": n}
        for c in chunks
        for v, w, n in ((32, 4, 3), (64, 4, 3), (64, 4, 2), (128, 8, 2))
        if v <= s["e"]
    ]


def _delta_tensors(r: Maker, s: Sizes) -> Tensors:
    g = -0.1 * r.positive(s["b"], s["h"], s["n"] // 64, 64)
    return _keys_and_values(r, s, "k w", "u") | {
        "g": g.cumsum(3).view(s["b"], s["h"], s["n"]).contiguous(),
        "states": r.out(s["t"], s["b"], s["h"], s["n"] // 64, s["d"], s["e"]),
        "v": r.out(s["t"], s["b"], s["h"], s["n"], s["e"]),
    }


def _delta(t: Tensors, s: Sizes) -> Tensors:
    k, w, u, g = (x.unflatten(2, (-1, 64)) for x in wide(t, "k", "w", "u", "g"))
    state, states, new = torch.zeros_like(k[:, :, 0, :1].mT * u[:, :, 0, :1]), [], []
    for c in range(k.shape[2]):
        states.append(state)
        v = u[:, :, c] - w[:, :, c] @ state
        new.append(v)
        last = g[:, :, c, -1:]
        v = v * torch.exp2(last - g[:, :, c])[..., None]
        state = state * torch.exp2(last)[..., None] + k[:, :, c].mT @ v
    return {"states": torch.stack(states, 2), "v": torch.cat(new, 2)}


DELTA = Kind(
    "delta_states",
    _chunked,
    _delta_tensors,
    ours(kernels.delta_states, "k w u g states v", D="d"),
    theirs(rivals.delta_states, "k w u g states v h n e", _value_grid, D="d"),
    _chunk_tiles(64),
    _delta,
)


def _steps(t: Tensors, s: Sizes, of_keys: bool) -> Tensors:
    """A place after the other."""
    q, k, v, g = wide(t, "q", "k", "v", "g")
    decay = torch.exp2(g) if of_keys else torch.exp2(g)[..., None]
    state = torch.zeros(s["b"], s["h"], s["d"], s["e"], dtype=torch.float64, device=q.device)
    o = torch.empty(v.shape, dtype=torch.float64, device=q.device)
    for i in range(s["n"]):
        state = state * decay[:, :, i, :, None] + k[:, :, i, :, None] * v[:, :, i, None]
        o[:, :, i] = (q[:, :, i, None] @ state)[:, :, 0]
    return {"o": o}


RETENTION = Kind(
    "gated_retention",
    _chunked,
    lambda r, s: (
        _keys_and_values(r, s, "q k", "v")
        | {
            "g": -0.1 * r.positive(s["b"], s["h"], s["n"]),
            "o": r.out(s["t"], s["b"], s["h"], s["n"], s["e"]),
        }
    ),
    ours(kernels.gated_retention, "q k v g o", D="d"),
    theirs(rivals.gated_retention, "q k v g o h n e", _value_grid, D="d"),
    _chunk_tiles(32, 64),
    lambda t, s: _steps(t, s, False),
)

KEYS = Kind(
    "gated_keys",
    _chunked,
    lambda r, s: (
        _keys_and_values(r, s, "q k", "v")
        | {
            "g": -0.1 * r.positive(s["b"], s["h"], s["n"], s["d"]),
            "o": r.out(s["t"], s["b"], s["h"], s["n"], s["e"]),
        }
    ),
    ours(kernels.gated_keys, "q k v g o", D="d"),
    theirs(rivals.gated_keys, "q k v g o h n e", _value_grid, D="d"),
    _chunk_tiles(16),
    lambda t, s: _steps(t, s, True),
    tolerance=2e-2,
)


def _stepped(t: Tensors, s: Sizes) -> Tensors:
    r, k, v, w, bonus = wide(t, "r", "k", "v", "w", "bonus")
    state = torch.zeros(s["b"], s["h"], s["d"], s["e"], dtype=torch.float64, device=r.device)
    o = torch.empty(v.shape, dtype=torch.float64, device=r.device)
    for i in range(s["n"]):
        both = k[:, :, i, :, None] * v[:, :, i, None]
        o[:, :, i] = (r[:, :, i, None] @ (state + bonus[..., None] * both))[:, :, 0]
        state = state * w[:, :, i, :, None] + both
    return {"o": o}


STEPS = Kind(
    "step_recurrence",
    lambda s: {**_chunked(s), "n": s.log(100, 1000), "d": 64, "e": 64},
    lambda r, s: (
        _keys_and_values(r, s, "r k", "v")
        | {
            "w": (0.8 + 0.15 * r.positive(s["b"], s["h"], s["n"], s["d"])).to(
                r.normal(s["t"], 1).dtype
            ),
            "bonus": r.normal("f32", s["h"], s["d"]),
            "o": r.out(s["t"], s["b"], s["h"], s["n"], s["e"]),
        }
    ),
    ours(kernels.step_recurrence, "r k v w bonus o", D="d"),
    theirs(rivals.step_recurrence, "r k v w bonus o h n e", _value_grid, D="d"),
    lambda s: each(BV=(16, 32, 32, 64, 8), num_warps=(2, 4, 2, 4, 1)),
    _stepped,
)


def _added(t: Tensors, s: Sizes) -> Tensors:
    q, k, v = wide(t, "q", "k", "v")
    rows = [torch.tanh(q[:, i, None] + k) @ v for i in range(s["m"])]
    return {"y": torch.stack(rows, 1)}


ADDITIVE = Kind(
    "additive_scores",
    lambda s: {"b": s.log(1, 32), "m": s.log(20, 300), "n": s.log(20, 300), "k": s.log(32, 256)},
    lambda r, s: {
        "q": r.normal("f32", s["b"], s["m"], s["k"]),
        "k": r.normal("f32", s["b"], s["n"], s["k"]),
        "v": r.normal("f32", s["k"]), "y": r.out("f32", s["b"], s["m"], s["n"]),
    },
    ours(kernels.additive_scores, "q k v y"),
    lambda t, s, c: theirs(
        rivals.additive_scores, "q k v y m n c",
        lambda s, c: (cdiv(s["m"], c["BM"]), cdiv(s["n"], c["BN"]), s["b"]),
    )(t, {**s, "c": s["k"]}, c),
    lambda s: each(
        BM=(32, 32, 16, 16, 32), BN=(32, 64, 32, 64, 32), BK=(16, 8, 16, 8, 4),
        num_warps=(4, 8, 4, 4, 4),
    ),
    _added,
)  # fmt: skip


def _filtered(t: Tensors, s: Sizes) -> Tensors:
    x, w, bias = wide(t, "x", "w", "bias")
    wide_x = torch.nn.functional.pad(x, (0, 0, 3, 0))
    total = sum(w[i] * wide_x[:, i : i + s["n"]] for i in range(4)) + bias
    return {"y": torch.nn.functional.silu(total)}


SHORT = Kind(
    "short_convolution",
    lambda s: {
        "b": s.log(1, 16), "n": s.log(100, 8192), "k": s.log(64, 4096, 8), "t": s.of(FLOATS),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["b"], s["n"], s["k"]), "w": r.normal(s["t"], 4, s["k"]),
        "bias": r.normal(s["t"], s["k"]), "y": r.out(s["t"], s["b"], s["n"], s["k"]),
    },
    ours(kernels.short_convolution, "x w bias y"),
    lambda t, s, c: theirs(
        rivals.short_convolution, "x w bias y n c",
        lambda s, c: (cdiv(s["c"], c["BC"]), cdiv(s["n"], c["BT"]), s["b"]), TAPS=4,
    )(t, {**s, "c": s["k"]}, c),
    lambda s: each(BT=(16, 32, 32, 64, 8), BC=(64, 64, 128, 64, 256), num_warps=(2, 4, 4, 4, 4)),
    _filtered,
)  # fmt: skip

KINDS = (
    SINKS, PREFIX, NORMED, PAGED, DELTA, RETENTION, KEYS, STEPS, ADDITIVE, SHORT,
)  # fmt: skip
