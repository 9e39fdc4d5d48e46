"""What a user of torch writes for the kinds of `drawn_array_cases`: formulas, as in
`drawn_formulas`, and calls of what writes in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from drawn_array_cases import DIFFUSION, FILTER, SCALE, SEED, ZEROS
from drawn_layers import EPS
from layer_cases import LayerCase

Tensors = Mapping[str, torch.Tensor]
Tensor = torch.Tensor


def _swapped(x: Tensor) -> Tensor:
    # Of an axis of one element `contiguous` would copy nothing.
    return x.transpose(1, 2).clone(memory_format=torch.contiguous_format)


def _halves(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    c, s = cosines[:, None], sines[:, None]
    return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)


def _pairs(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    c, s = cosines[:, None], sines[:, None]
    return torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2).to(x.dtype)


def _taken(table: Tensor, rows: Tensor) -> Tensor:
    return F.embedding(rows.long() if table.dtype == torch.float64 else rows, table)


def _bags(table: Tensor, rows: Tensor) -> Tensor:
    """F.embedding_bag is another peer."""
    return _taken(table, rows).sum(-2)


def _filtered_rows(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    found = F.conv1d(x, weight[:, None], bias, padding=FILTER - 1, groups=x.shape[1])
    return F.silu(found[..., : x.shape[2]])


def _filtered_columns(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    wide, time = F.pad(x, (0, 0, FILTER - 1, 0)), x.shape[1]
    return F.silu(bias + sum(weight[:, k] * wide[:, k : k + time] for k in range(FILTER)))


def _group_norm(groups: int) -> Callable[..., Tensor]:
    return lambda x, weight, bias: F.group_norm(x, groups, weight, bias, EPS)


def _moments(x: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
    wide = x if x.dtype == torch.float64 else x.float()
    variance, mean = torch.var_mean(wide, 0, correction=0)
    return mean, variance


def _running(axis: int) -> Callable[..., Tensor]:
    return lambda x: torch.cumsum(x, axis)


def _pooled(sizes: Mapping[str, int]) -> Callable[..., Tensor]:
    window = sizes["SIDE"], sizes["STEP"], sizes["MARGIN"]
    return lambda x: F.max_pool2d(x[None], *window)[0]


MASK = 2**32 - 1


def _random(count: int, device: Any) -> Tensor:
    """`tl.rand` of a counter: Philox in 64 bits, whose products wrap."""
    a = torch.arange(count, device=device)
    b, c, d = a >> 32, a & 0, a & 0
    a, low, high = a & MASK, SEED & MASK, SEED >> 32
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b = ((second >> 32) & MASK) ^ b ^ low, second & MASK
        c, d = ((first >> 32) & MASK) ^ d ^ high, first & MASK
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return (a >> 8).float() * 2.0**-24


def _dropped(x: Tensor, residual: Tensor) -> Tensor:
    kept = _random(len(x), x.device) >= ZEROS
    return residual + torch.where(kept, x / (1 - ZEROS), 0.0)


def _gated(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


def _masked(x: Tensor, bias: Tensor, lengths: Tensor) -> Tensor:
    hidden = torch.arange(x.shape[2], device=x.device) >= lengths[:, None, None]
    wide = x if x.dtype == torch.float64 else x.float()
    return torch.softmax((wide * SCALE + bias).masked_fill(hidden, -torch.inf), -1).to(x.dtype)


def _diffused(x: Tensor) -> Tensor:
    wide, (depth, rows, columns) = F.pad(x, (1,) * 6), x.shape
    around = -6 * x
    for k, i, j in ((0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2)):
        around = around + wide[k : k + depth, i : i + rows, j : j + columns]
    return x + DIFFUSION * around


def _segments(x: Tensor, starts: Tensor) -> Tensor:
    return torch.segment_reduce(x, "sum", offsets=starts.long(), axis=0)


def _vectors(a: Tensor, x: Tensor) -> Tensor:
    return torch.bmm(a, x[..., None])[..., 0]


def _wide_product(a: Tensor, b: Tensor) -> Tensor:
    """In f32, or f64."""
    return a @ b if a.dtype == torch.float64 else torch.mm(a, b, out_dtype=torch.float32)


def _gram(x: Tensor) -> Tensor:
    return _wide_product(x.T, x)


def _nearest(x: Tensor, centres: Tensor, places: Tensor) -> Tensor:
    """In parts, as the whole does not fit."""
    wide, other = (a if a.dtype == torch.float64 else a.float() for a in (x, centres))
    half = 0.5 * other.square().sum(1)
    found = [(half - _wide_product(part, centres.T)).amin(1) for part in x.split(1 << 14)]
    return 2 * torch.cat(found) + wide.square().sum(1)


def _cell(
    x: Tensor, before: Tensor, state: Tensor, wx: Tensor, wh: Tensor, bias: Tensor
) -> tuple[Tensor, ...]:
    gates = F.linear(x, wx.flatten(0, 1), bias.flatten()) + F.linear(before, wh.flatten(0, 1))
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * state + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def array_formula(case: LayerCase) -> Callable[..., Any] | None:
    """As `drawn_formulas.formula`."""
    if case.kernel == "group_norm":
        return _group_norm(case.sizes["groups"])
    if case.kernel == "pool":
        return _pooled(case.sizes)
    return _FORMULAS.get(case.kernel)


_FORMULAS: dict[str, Callable[..., Any]] = {
    "swap_axes": _swapped,
    "rotate_halves": _halves,
    "rotate_pairs": _pairs,
    "gather_rows": _taken,
    "sum_bags": _bags,
    "filter_rows": _filtered_rows,
    "filter_columns": _filtered_columns,
    "column_moments": _moments,
    "add_along_rows": _running(1),
    "add_along_columns": _running(1),
    "add_dropped": _dropped,
    "gate_halves": _gated,
    "masked_softmax": _masked,
    "diffuse": _diffused,
    "sum_segments": _segments,
    "multiply_vectors": _vectors,
    "multiply_small": torch.bmm,
    "gram": _gram,
    "nearest": _nearest,
    "lstm_cell": _cell,
}


def written_slots(case: LayerCase, t: Tensors) -> tuple[Tensor, ...]:
    """The caches as `write_slots` leaves them, in float64."""
    at = t["slots"].long()
    return tuple(
        t[f"kept_{name}"].double().index_copy(0, at, t[name].double())
        for name in ("keys", "values")
    )


def slot_calls(case: LayerCase) -> dict[str, Callable[[Tensors], Any]]:
    """In place, as caches are."""

    def call(t: Tensors) -> None:
        for name in ("keys", "values"):
            t[f"kept_{name}"].index_copy_(0, t["slots"].long(), t[name])

    return {"torch eager": call}


def bag_calls(case: LayerCase) -> dict[str, Callable[[Tensors], Any]]:
    """torch's kernel for it, and the formula."""
    bag = {
        "torch bag": lambda t: F.embedding_bag(t["rows"], t["table"], mode="sum"),
        "torch eager": lambda t: _bags(t["table"], t["rows"]),
    }
    return bag


ARRAY_CALLS = {"write_slots": slot_calls, "sum_bags": bag_calls}
"""Kinds of which torch has more than a formula."""


def _rows_of_table(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    rows = t["rows"]
    found = torch.randint(0, len(t["table"]), rows.shape, generator=generator, device=rows.device)
    rows.copy_(found)


def _slots(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    slots = t["slots"]
    found = torch.randperm(len(t["kept_keys"]), generator=generator, device=slots.device)
    slots.copy_(found[: len(slots)])


def _lengths(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    lengths, columns = t["lengths"], t["x"].shape[2]
    lengths.copy_(
        torch.randint(
            (columns + 1) // 2, columns + 1, lengths.shape, generator=generator,
            device=lengths.device,
        )
    )  # fmt: skip


def _starts(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    starts, mean = t["starts"], case.sizes["mean"]
    counts = torch.randint(
        0, 2 * mean + 1, (len(starts) - 1,), generator=generator, device=starts.device
    )
    starts[0] = 0
    starts[1:].copy_(counts.cumsum(0).clamp_max(len(t["x"])))
    starts[-1] = len(t["x"])


def _angles(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    angles = 3 * t["cosines"]
    t["cosines"].copy_(torch.cos(angles))
    t["sines"].copy_(torch.sin(angles))


def _weights(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    for name in ("wx", "wh"):
        t[name].div_(t[name].shape[-1] ** 0.5)


ARRAY_FILLS: dict[str, Callable[[LayerCase, Tensors, torch.Generator], None]] = {
    "gather_rows": _rows_of_table,
    "sum_bags": _rows_of_table,
    "write_slots": _slots,
    "masked_softmax": _lengths,
    "sum_segments": _starts,
    "rotate_halves": _angles,
    "rotate_pairs": _angles,
    "lstm_cell": _weights,
}
"""Inputs that random numbers are no good for."""

ARRAYS = {*_FORMULAS, "group_norm", "pool", "write_slots"}
"""Kinds whose peers are here."""
