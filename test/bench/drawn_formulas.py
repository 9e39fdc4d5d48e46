"""What a user of torch writes for the kinds of `drawn_layers`, and for some other layers: formulas.

A formula is a function of the inputs of a case, in the order of its arrays. It is a peer as it is,
another by torch.compile, and on inputs in float64 the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from drawn_array_formulas import array_formula
from drawn_layers import ELEMENTWISE, EPS, FACTOR, RATE
from layer_cases import LayerCase

LARGEST_E4M3, ADAM_EPS = 448.0, 1e-3
"""As in `drawn_kernels`."""


def elementwise(kernel: str) -> Callable[..., Any]:
    """The formula of one of `drawn_layers.ELEMENTWISE`, of any float dtype."""
    return {
        "scale_array": lambda x: x * FACTOR,
        "activate": lambda x: F.gelu(x, approximate="tanh"),
        "gate": lambda x, g: F.silu(g) * x,
        "blend": lambda x, z, w: x + w * (z - x),
        "mix_products": lambda x, z, w, u: x * z + w * u,
        "mix_gated": lambda x, z, w, u, g: torch.sigmoid(g) * x * z + w * u,
        "adam": _adam,
    }[kernel]


def _adam(x: Any, grad: Any, mean: Any, square: Any) -> tuple[Any, ...]:
    m = 0.9 * mean + 0.1 * grad
    v = 0.99 * square + 0.01 * (grad * grad)
    return x - RATE * m / (v.sqrt() + ADAM_EPS), m, v


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias, EPS)


def _rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, weight.shape, weight, EPS)


def _quantise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x if x.dtype == torch.float64 else x.float()
    scale = wide.abs().amax(-1).clamp_min(1e-12) / LARGEST_E4M3
    scaled = wide / scale[:, None]
    return (scaled if wide is x else scaled.to(torch.float8_e4m3fn)), scale


def _biased(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor
) -> torch.Tensor:
    return F.gelu(a @ b + bias, approximate="tanh") + residual


def _cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Losses and their gradients, as `layer_peers` differentiates."""
    log = torch.log_softmax(logits.float(), -1)
    classes = torch.arange(logits.shape[1], device=logits.device)
    hot = classes[None, :] == labels[:, None]
    losses = -torch.gather(log, 1, labels.long()[:, None])[:, 0]
    return losses, (torch.exp(log) - hot.float()).to(logits.dtype)


def _rms_norm_gradients(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor, partial: Any
) -> tuple[torch.Tensor, ...]:
    """As `tilec.examples.rms_norm`, without its partial sums."""
    scale, grad = scales[:, None], dy.float()
    normal, slope = x.float() * scale, grad * weight.float()
    along = (slope * normal).mean(-1, keepdim=True)
    dx = (slope - normal * along) * scale
    return dx.to(x.dtype), (grad * normal).sum(0).to(weight.dtype)


def _stencil(x: torch.Tensor, radius: int) -> torch.Tensor:
    rows, columns = x.shape
    wide = F.pad(x, (radius,) * 4)
    around = 0
    for d in range(1, radius + 1):
        for down, right in ((-d, 0), (d, 0), (0, -d), (0, d)):
            top, left = radius + down, radius + right
            around = around + wide[top : top + rows, left : left + columns]
    return 0.5 * x + around * (0.5 / (4 * radius))


def _midpoint(case: LayerCase, dtype: torch.dtype, device: Any) -> torch.Tensor:
    (programs,), sizes = case.arrays[0].shape, case.sizes
    count = programs * sizes["points"]
    x = (torch.arange(count, device=device).to(dtype) + 0.5) * sizes["width"]
    f = torch.exp(-x) * torch.sin(9 * x) if sizes["waves"] else 4 / (1 + x * x)
    return f.reshape(programs, -1).sum(1) * sizes["width"]


MASK = 2**32 - 1


def _mixed(x: torch.Tensor) -> torch.Tensor:
    """`drawn_small_kernels.mixed` in 64 bits."""
    state = (x * 747796405 + 2891336453) & MASK
    word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) & MASK
    return (word >> 22) ^ word


def _hits(case: LayerCase, dtype: torch.dtype, device: Any) -> torch.Tensor:
    (programs,), points = case.arrays[0].shape, case.sizes["points"]
    i = torch.arange(programs * points, device=device)
    a, b = ((_mixed((2 * i + j) & MASK) >> 8).to(dtype) * 2.0**-24 for j in (0, 1))
    return (a * a + b * b < 1).reshape(programs, -1).sum(1).to(dtype)


def _sort(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(x, -1).values


def inputs_of(case: LayerCase, t: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """In the order of the arrays, without those that are only written."""
    names = [spec.name for spec in case.arrays]
    return [t[n] for n in names if n not in case.outputs or n in case.changed]


def formula(case: LayerCase) -> Callable[..., Any] | None:
    """What a user of torch writes for the case, a function of its inputs; None if there is none."""
    if case.kernel in ELEMENTWISE:
        return elementwise(case.kernel)
    sizes = case.sizes
    made: dict[str, Callable[..., Any]] = {
        "stencil": lambda x: _stencil(x, sizes["radius"]),
        "largest_of_rows": lambda x: torch.topk(x, sizes["count"]).values,
        "rms_norm": lambda x, weight, scales: F.rms_norm(x, weight.shape, weight, sizes["eps"]),
        "softmax": lambda x: torch.softmax(x, -1),
        "layer_norm": lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, EPS),
        "long_rms_norm": lambda x, weight: F.rms_norm(x, weight.shape, weight, EPS),
        "sort_rows": lambda x: torch.sort(x, -1).values,
        "order_rows": lambda x: torch.sort(x, -1).values,
        "order_rows_with_places": lambda x: tuple(torch.sort(x, -1)),
        "first_of_rows": lambda x: torch.topk(x, sizes["count"]).values,
        "first_of_rows_with_places": lambda x: tuple(torch.topk(x, sizes["count"])),
        "quantise_rows": _quantise,
        "biased_product": _biased,
        "cross_entropy": _cross_entropy,
        "rms_norm_backward": _rms_norm_gradients,
    }
    return made.get(case.kernel) or array_formula(case)


GENERATED = {"midpoint_sums": _midpoint, "count_hits": _hits}
"""Kinds without inputs: functions of the case, the dtype to compute in, and the device."""
