"""Norms of rows and a loss, with gradients: kernels of tilec.examples as operations of torch.

Each is a `tilec.autograd`: eager, in `torch.compile(fullgraph=True)`, under CUDA graphs.
"""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

import torch

import tilec
from tilec.examples.cross_entropy import loss_gradients, row_losses
from tilec.examples.layer_norm import layer_norm as layer_norm_rows
from tilec.examples.layer_norm import layer_norm_gradients
from tilec.examples.rms_norm import rms_norm as rms_norm_rows
from tilec.examples.rms_norm import rms_norm_gradients, sum_columns
from tilec.examples.softmax import row_tile
from tilec.runtime.errors import ArgumentError

PROGRAMS = 264
"""Partial sums of a weight's gradient, two a multiprocessor of an H200, and twice as many of short
rows."""
SHORT_ROW = 1024
"""Elements: programs of shorter rows have few warps. Gradients of layer_norm in bf16 with 264, 528
and 1056 programs: 16384 x 768 69.8, 43.4, 43.3 us; 16384 x 256 16.5, 12.4, 14.1; 4096 x 1024 14.1,
15.0, 20.3; 8192 x 2048 47.7, 48.5, 53.4; 8192 x 4096, 132, 264, 528 88.7, 93.3, 103.4 (H200)."""


def rms_norm(x: Any, weight: Any, eps: float = 1e-6) -> Any:
    """x / sqrt(mean(x^2) + eps) * weight along the last axis, as `torch.nn.functional.rms_norm`.

    x: (..., n), weight: (n,), of f32, f16 or bf16; the result has x's shape and dtype.
    ArgumentError for others.
    """
    _check_rows(x, weight=weight)
    return _rms_norm(x.reshape(-1, x.shape[-1]), weight, eps).view(x.shape)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(variance + eps) * weight + bias along the last axis, as
    `torch.nn.functional.layer_norm`.

    x: (..., n), weight and bias: (n,), of f32, f16 or bf16; the result has x's shape and dtype.
    ArgumentError for others.
    """
    _check_rows(x, weight=weight, bias=bias)
    return _layer_norm(x.reshape(-1, x.shape[-1]), weight, bias, eps).view(x.shape)


def cross_entropy(logits: Any, labels: Any, smoothing: float = 0.0) -> Any:
    """The loss of each row, f32, as `torch.nn.functional.cross_entropy` with reduction="none".

    logits: (rows, classes) of f32, f16 or bf16; labels: (rows,) of integers, -100 for rows that do
    not count, and from 0 to the number of classes: the loss of any other is NaN. Keeps logits
    and a number a row, nothing of logits' size in f32. ArgumentError for others.
    """
    _check_floats("logits", logits, "(rows, classes)", getattr(logits, "ndim", 0) == 2)
    fits = isinstance(labels, torch.Tensor) and labels.shape == logits.shape[:1]
    _check_tensor("labels", labels, f"({logits.shape[0]},)", fits)
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ArgumentError(f"argument 'labels': expected integers, found {labels.dtype}")
    if not 0 <= smoothing <= 1:
        raise ArgumentError(f"argument 'smoothing': expected 0 to 1, found {smoothing!r}")
    return _cross_entropy(logits, labels, smoothing)


def _check_rows(x: Any, **along: Any) -> None:
    """Refuses what is no tensor of rows, and no vectors along them."""
    _check_floats("x", x, "(..., n)", x.dim() > 0 if isinstance(x, torch.Tensor) else False)
    for name, value in along.items():
        fits = isinstance(value, torch.Tensor) and value.shape == x.shape[-1:]
        _check_floats(name, value, f"({x.shape[-1]},)", fits)


def _check_floats(name: str, value: Any, wanted: str, fits: bool) -> None:
    """Refuses an argument of another class, dtype or shape: kernels read no more than there is of
    each, compute in f32, and would say nothing."""
    _check_tensor(name, value, wanted, fits)
    if not value.is_floating_point() or value.element_size() not in (2, 4):
        raise ArgumentError(f"argument {name!r}: expected f32, f16 or bf16, found {value.dtype}")


def _check_tensor(name: str, value: Any, wanted: str, fits: bool) -> None:
    if not isinstance(value, torch.Tensor):
        found = type(value).__name__
        raise ArgumentError(f"argument {name!r}: expected a tensor {wanted}, found {found}")
    if not fits:
        found = tuple(value.shape)
        raise ArgumentError(f"argument {name!r}: expected shape {wanted}, found {found}")


def _partial_sums(x: Any, *weights: int) -> Any:
    most = 2 * PROGRAMS if x.shape[1] < SHORT_ROW else PROGRAMS
    programs = min(most, x.shape[0])
    return x.new_empty((programs, *weights, x.shape[1]), dtype=torch.float32)


def _rms_forward(x: Any, weight: Any, eps: float) -> Any:
    y, scales = torch.empty_like(x), x.new_empty(x.shape[0], dtype=torch.float32)
    rms_norm_rows(x, weight, y, scales, eps, row_tile(x.shape[1]))
    return y, (x, weight, scales)


def _rms_backward(kept: Any, dy: Any) -> Any:
    x, weight, scales = kept
    dx, dweight, partial = torch.empty_like(x), torch.empty_like(weight), _partial_sums(x)
    given = dy.contiguous(), x, weight, scales
    rms_norm_gradients(*given, dx, partial, row_tile(x.shape[1]))
    sum_columns(partial, dweight)
    return dx, dweight, None


def _layer_forward(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    y = torch.empty_like(x)
    layer_norm_rows(x, weight, bias, y, eps, row_tile(x.shape[1]))
    return y, (x, weight, eps)


def _layer_backward(kept: Any, dy: Any) -> Any:
    x, weight, eps = kept
    dx, sums, partial = torch.empty_like(x), weight.new_empty(2, x.shape[1]), _partial_sums(x, 2)
    layer_norm_gradients(dy.contiguous(), x, weight, dx, partial, eps, row_tile(x.shape[1]))
    sum_columns(partial.flatten(1), sums.view(-1))
    return dx, sums[0], sums[1], None


def _loss_forward(logits: Any, labels: Any, smoothing: float) -> Any:
    losses = logits.new_empty(logits.shape[0], dtype=torch.float32)
    totals = torch.empty_like(losses)
    row_losses(logits, labels, losses, totals, smoothing)
    return losses, (logits, labels, totals, smoothing)


def _loss_backward(kept: Any, dlosses: Any) -> Any:
    logits, labels, totals, smoothing = kept
    slopes = torch.empty_like(logits, memory_format=torch.contiguous_format)
    loss_gradients(logits, labels, totals, dlosses, slopes, smoothing)
    return slopes, None, None


_rms_norm = tilec.autograd(_rms_forward, _rms_backward)
_layer_norm = tilec.autograd(_layer_forward, _layer_backward)
_cross_entropy = tilec.autograd(_loss_forward, _loss_backward)
