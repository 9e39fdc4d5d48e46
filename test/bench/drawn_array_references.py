"""What NumPy gives for the kinds of `drawn_array_cases`, in float64, and inputs that make sense."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from drawn_array_cases import DIFFUSION, FILTER, SCALE, SEED, ZEROS
from drawn_layers import EPS
from layer_cases import LayerCase

Arrays = dict[str, np.ndarray]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _rotated(pairs: bool) -> Callable[..., Any]:
    def rotated(case: LayerCase, x: Any, cosines: Any, sines: Any) -> Any:
        half = x.shape[-1] // 2
        a, b = (x[..., ::2], x[..., 1::2]) if pairs else (x[..., :half], x[..., half:])
        c, s = cosines[:, None], sines[:, None]
        turned = (a * c - b * s, b * c + a * s)
        return np.stack(turned, -1).reshape(x.shape) if pairs else np.concatenate(turned, -1)

    return rotated


def _slots(case: LayerCase, keys: Any, values: Any, slots: Any, *kept: Any) -> Any:
    found = tuple(array.copy() for array in kept)
    for array, new in zip(found, (keys, values), strict=True):
        array[slots.astype(int)] = new
    return found


def _filtered(axis: int) -> Callable[..., Any]:
    def filtered(case: LayerCase, x: Any, weight: Any, bias: Any) -> Any:
        rows = np.moveaxis(x, axis, -1)
        wide = np.pad(rows, ((0, 0), (0, 0), (FILTER - 1, 0)))
        parts = (weight[:, k, None] * wide[..., k : k + rows.shape[-1]] for k in range(FILTER))
        found = bias[:, None] + sum(parts)
        return np.moveaxis(found * _sigmoid(found), -1, axis)

    return filtered


def _group_norm(case: LayerCase, x: Any, weight: Any, bias: Any) -> Any:
    groups = x.reshape(len(x), case.sizes["groups"], -1)
    centred = groups - groups.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPS)
    return scaled.reshape(x.shape) * weight[:, None] + bias[:, None]


def _pooled(case: LayerCase, x: Any) -> Any:
    side, step, margin = (case.sizes[name] for name in ("SIDE", "STEP", "MARGIN"))
    wide = np.pad(x, ((0, 0), (margin,) * 2, (margin,) * 2), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (side, side), (1, 2))
    return windows[:, ::step, ::step].max((-1, -2))


def random_bits(seed: int, counter: np.ndarray) -> np.ndarray:
    """The first word of Philox 4x32 with ten rounds, as u64."""
    low = np.uint64(2**32 - 1)
    a, b, c, d = counter & low, counter >> np.uint64(32), counter * 0, counter * 0
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        high = (word >> np.uint64(32) for word in (second, first))
        a, c = (h ^ x ^ np.uint64(key) for h, x, key in zip(high, (b, d), keys, strict=True))
        b, d = second & low, first & low
        keys = [(key + k) % 2**32 for key, k in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)]
    return a


def _dropped(case: LayerCase, x: Any, residual: Any) -> Any:
    bits = random_bits(SEED, np.arange(len(x), dtype=np.uint64))
    return residual + np.where((bits >> np.uint64(8)) * 2.0**-24 >= ZEROS, x / (1 - ZEROS), 0)


def _gated(case: LayerCase, x: Any) -> Any:
    a, b = np.split(x, 2, -1)
    return a * _sigmoid(a) * b


def _masked(case: LayerCase, x: Any, bias: Any, lengths: Any) -> Any:
    score = x * SCALE + bias
    hidden = np.arange(x.shape[2]) >= lengths[:, None, None]
    score = np.where(hidden, -np.inf, score)
    weight = np.exp(score - score.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True)


def _diffused(case: LayerCase, x: Any) -> Any:
    wide = np.pad(x, 1)
    moved = (np.roll(wide, step, axis) for axis in range(3) for step in (-1, 1))
    return x + DIFFUSION * (sum(moved)[1:-1, 1:-1, 1:-1] - 6 * x)


def _segments(case: LayerCase, x: Any, starts: Any) -> Any:
    return np.stack([x[i:j].sum(0) for i, j in pairwise(starts.astype(int))])


def _nearest(case: LayerCase, x: Any, centres: Any, places: Any) -> Any:
    return ((x[:, None] - centres[None]) ** 2).sum(-1).min(1)


def _cell(
    case: LayerCase, x: Any, before: Any, state: Any, wx: Any, wh: Any, bias: Any
) -> tuple[Any, Any]:
    i, f, g, o = (x @ a.T + before @ b.T + c for a, b, c in zip(wx, wh, bias, strict=True))
    c = _sigmoid(f) * state + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


ARRAY_REFERENCES: dict[str, Callable[..., Any]] = {
    "swap_axes": lambda case, x: x.swapaxes(1, 2),
    "rotate_halves": _rotated(False),
    "rotate_pairs": _rotated(True),
    "gather_rows": lambda case, table, rows: table[rows.astype(int)],
    "sum_bags": lambda case, table, rows: table[rows.astype(int)].sum(1),
    "write_slots": _slots,
    "filter_rows": _filtered(2),
    "filter_columns": _filtered(1),
    "group_norm": _group_norm,
    "column_moments": lambda case, x, *parts: (x.mean(0), x.var(0)),
    "add_along_rows": lambda case, x: x.cumsum(1),
    "add_along_columns": lambda case, x: x.cumsum(1),
    "pool": _pooled,
    "add_dropped": _dropped,
    "gate_halves": _gated,
    "masked_softmax": _masked,
    "diffuse": _diffused,
    "sum_segments": _segments,
    "multiply_vectors": lambda case, a, x: (a @ x[..., None])[..., 0],
    "multiply_small": lambda case, a, b: a @ b,
    "gram": lambda case, x: x.T @ x,
    "nearest": _nearest,
    "lstm_cell": _cell,
}
"""Kind -> the results in float64, of the case and its inputs."""


def fill_arrays(case: LayerCase, arrays: Arrays, rng: np.random.Generator) -> None:
    """Overwrites what random numbers are no good for."""
    if case.kernel in ("gather_rows", "sum_bags"):
        arrays["rows"][...] = rng.integers(0, len(arrays["table"]), arrays["rows"].shape)
    elif case.kernel == "write_slots":
        slots = arrays["slots"]
        slots[...] = rng.permutation(len(arrays["kept_keys"]))[: len(slots)]
    elif case.kernel == "masked_softmax":
        arrays["lengths"][...] = rng.integers(1, arrays["x"].shape[2] + 1, len(arrays["x"]))
    elif case.kernel == "sum_segments":
        starts, mean = arrays["starts"], case.sizes["mean"]
        ends = rng.integers(0, 2 * mean + 1, len(starts) - 1).cumsum()
        starts[...] = [0, *np.minimum(ends, len(arrays["x"]))]
