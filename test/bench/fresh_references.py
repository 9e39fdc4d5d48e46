"""Inputs for the cases of `fresh.py`, and what each gives in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from fresh_case import Fresh
from tensors import DTYPES

Tensors = dict[str, torch.Tensor]
OTHERS: Mapping[str, str] = {
    "labels": "x",
    "tokens": "words",
    "columns": "x",
    "places": "x",
    "sources": "a",
    "targets": "b",
}
"""Arrays of indices, and the arrays they point into."""


def made_inputs(case: Fresh, device: str, generator: torch.Generator) -> Tensors:
    """Every array: outputs poisoned, the others random, indices inside of what they point into."""
    found = {spec.name: _values(case, spec, device, generator) for spec in case.arrays}
    for name in ("scales", "scale", "squares"):
        if name in found and (name not in case.outputs or name in case.changed):
            found[name].abs_().add_(0.05)
    if case.kernel == "pad_sequences":
        b, longest, _ = case.shapes["y"]
        lengths = torch.randint(1, longest, (b,), generator=generator, device=device).double()
        lengths *= min(1.0, (case.shapes["x"][0] - b) / float(lengths.sum()))
        found["starts"][0] = 0
        found["starts"][1:] = lengths.long().clamp(min=1).cumsum(0).clamp(max=case.shapes["x"][0])
    if case.kernel == "embedding_slope":
        found["table"].zero_()
    return found


def _values(case: Fresh, spec: Any, device: str, generator: torch.Generator) -> torch.Tensor:
    dtype, about = DTYPES[spec.dtype], {"device": device, "generator": generator}
    if spec.name in case.outputs and spec.name not in case.changed:
        empty = torch.empty(spec.shape, dtype=dtype, device=device)
        return empty.fill_(float("nan") if dtype.is_floating_point else 111)
    if spec.dtype == "i32":
        most = {
            "embedding_slope": lambda: case.shapes["table"][0],
            "join_experts": lambda: case.shapes["x"][0],
            "take_along_rows": lambda: case.shapes["x"][1],
            "margin_loss": lambda: case.shapes["x"][1],
            "long_cross_entropy": lambda: case.shapes["x"][1],
        }.get(case.kernel, lambda: case.shapes[OTHERS[spec.name]][0] if spec.name in OTHERS else 9)
        return torch.randint(0, most(), spec.shape, dtype=torch.int32, **about)
    if spec.dtype == "i8":
        low, high = (0, 2) if spec.name in ("mask", "ends") else (-127, 128)
        drawn = torch.randint(low, high, spec.shape, dtype=torch.int8, **about)
        if spec.name == "ends":
            drawn *= (torch.rand(spec.shape, **about) < 0.05).to(torch.int8)
        return drawn
    return torch.randn(spec.shape, dtype=torch.float32, **about).to(dtype)


def _conv(v: torch.Tensor, taps: list[list[float]]) -> torch.Tensor:
    kernel = torch.tensor(taps, dtype=v.dtype, device=v.device)[None, None]
    return F.conv2d(v[None, None], kernel, padding=1)[0, 0]


def _returns(t: Tensors, discount: float) -> torch.Tensor:
    reward, ends = t["rewards"].double(), t["ends"]
    out, after = torch.empty_like(reward), torch.zeros_like(reward[:, 0])
    for i in reversed(range(reward.shape[1])):
        after = reward[:, i] + torch.where(ends[:, i] != 0, 0.0, discount) * after
        out[:, i] = after
    return out


def _sequences(t: Tensors) -> torch.Tensor:
    out = torch.zeros(t["y"].shape, dtype=torch.float64, device=t["y"].device)
    ends = t["starts"].tolist()
    for b, (first, end) in enumerate(pairwise(ends)):
        length = min(end - first, out.shape[1])
        out[b, :length] = t["x"][first : first + length].double()
    return out


def _density(t: Tensors, sharp: float) -> torch.Tensor:
    rows = []
    for part in t["x"].double().T.split(2048):
        apart = part[:, :, None] - t["points"].double()[None]
        rows.append(torch.exp(-sharp * (apart * apart).sum(1)).sum(1))
    return torch.cat(rows)


def _depthwise(t: Tensors) -> torch.Tensor:
    x, c = t["x"].double().permute(0, 3, 1, 2), t["x"].shape[3]
    weight = t["weight"].double().permute(2, 0, 1)[:, None]
    return F.conv2d(x, weight, padding=1, groups=c).permute(0, 2, 3, 1)


def _entropy(t: Tensors) -> torch.Tensor:
    logs = torch.log_softmax(t["x"].double(), 1)
    return -(logs.exp() * logs).sum(1)


def _smoothed(t: Tensors, smoothing: float, squared: float) -> torch.Tensor:
    z = t["x"].double()
    whole, label = torch.logsumexp(z, 1), t["labels"].long()[:, None]
    wanted = (1 - smoothing) * z.gather(1, label)[:, 0] + smoothing * z.mean(1)
    return whole - wanted + squared * whole * whole


def _margin(t: Tensors, margin: float) -> torch.Tensor:
    v, label = t["x"].double(), t["labels"].long()[:, None]
    losses = (v - v.gather(1, label) + margin).clamp(min=0).scatter_(1, label, 0.0)
    return losses.mean(1)


def _causal(t: Tensors, cap: float) -> torch.Tensor:
    v = cap * torch.tanh(t["x"].double() / cap)
    later = torch.ones_like(v[0], dtype=torch.bool).triu(1)
    return torch.softmax(v.masked_fill(later, -torch.inf), -1)


def _layer_slope(t: Tensors) -> torch.Tensor:
    scale = t["scales"].double()[:, None]
    normal = (t["x"].double() - t["means"].double()[:, None]) * scale
    slope = t["dy"].double() * t["weight"].double()
    along = (slope * normal).mean(1, keepdim=True)
    return (slope - slope.mean(1, keepdim=True) - normal * along) * scale


def _nesterov(t: Tensors, rate: float, momentum: float, decay: float) -> Tensors:
    slope = t["g"].double() + decay * t["p"].double()
    v = momentum * t["v"].double() + slope
    p = t["p"].double() - rate * (slope + momentum * v)
    return {"p": p, "v": v, "copy": p}


def _adagrad(t: Tensors, rate: float, eps: float) -> Tensors:
    slope = t["g"].double()
    squares = t["squares"].double() + slope * slope
    return {"p": t["p"].double() - rate * slope / (squares.sqrt() + eps), "squares": squares}


def _mish_slope(t: Tensors) -> torch.Tensor:
    v = t["x"].double().requires_grad_()
    (slope,) = torch.autograd.grad(F.mish(v).sum(), v)
    return slope * t["dy"].double()


def _l1_sums(t: Tensors, beta: float) -> torch.Tensor:
    return F.smooth_l1_loss(t["x"].double(), t["z"].double(), beta=beta, reduction="sum")


def _shift(t: Tensors) -> torch.Tensor:
    v = t["x"].double()
    before = torch.cat((torch.zeros_like(v[:, :1]), v[:, :-1]), 1)
    return v + t["share"].double() * (before - v)


def _dequantised(t: Tensors) -> torch.Tensor:
    (m, n), scales = t["x"].shape, t["scales"].double()
    return (t["x"].double().reshape(m, scales.shape[1], -1) * scales[..., None]).reshape(m, n)


def _quantised(t: Tensors) -> Tensors:
    (m, n), groups = t["x"].shape, t["scales"].shape[1]
    v = t["x"].float().reshape(m, groups, -1)
    scales = v.abs().amax(2).clamp(min=1e-6) / 127
    return {
        "y": torch.round(v / scales[..., None]).clamp(-127, 127).reshape(m, n),
        "scales": scales,
    }


def _fake(t: Tensors) -> torch.Tensor:
    scale, zero = t["scale"], t["zero"]
    v = torch.round(t["x"].float() / scale) + zero
    return (v.clamp(0, 255) - zero).double() * scale.double()


def _complex(t: Tensors) -> torch.Tensor:
    a, b = (torch.view_as_complex(t[name].double()) for name in "ab")
    return torch.view_as_real(a * b)


def _embedded(t: Tensors, eps: float) -> torch.Tensor:
    tokens = t["tokens"].long()
    at = torch.arange(len(tokens), device=tokens.device) % len(t["places"])
    v = t["words"][tokens].double() + t["places"][at].double()
    return F.layer_norm(v, v.shape[1:], t["weight"].double(), t["bias"].double(), eps)


def _embedding_slope(t: Tensors) -> torch.Tensor:
    return t["table"].double().index_add_(0, t["tokens"].long(), t["dy"].double())


def _joined(t: Tensors) -> torch.Tensor:
    out = torch.zeros(t["y"].shape, dtype=torch.float64, device=t["y"].device)
    for k in range(t["slots"].shape[1]):
        out += t["x"][t["slots"][:, k].long()].double() * t["shares"][:, k, None].double()
    return out


def _sampled(t: Tensors, heat: float) -> torch.Tensor:
    return (t["x"].float() / heat + t["noise"]).argmax(1)


def _scaled_branch(t: Tensors, eps: float) -> torch.Tensor:
    h = t["h"].double()
    normal = F.layer_norm(h, h.shape[1:], t["weight"].double(), t["bias"].double(), eps)
    return t["x"].double() + t["gamma"].double() * normal


def _edges(t: Tensors) -> torch.Tensor:
    u, v = t["a"][t["sources"].long()].double(), t["b"][t["targets"].long()].double()
    return torch.relu(u + v)


def _affine(t: Tensors) -> torch.Tensor:
    scale, shift = (t[name].double()[None, :, None] for name in ("scale", "shift"))
    return torch.relu(t["x"].double() * scale + shift)


def _counted(t: Tensors) -> torch.Tensor:
    kept = (t["mask"] != 0).long()
    return kept.cumsum(1) - kept


def _normalised(t: Tensors, eps: float) -> torch.Tensor:
    v = t["x"].double()
    return F.layer_norm(v, v.shape[1:], eps=eps)


REFERENCES: dict[str, Callable[..., Any]] = {
    "layer_norm_slope": _layer_slope,
    "log_softmax": lambda t: torch.log_softmax(t["x"].double(), 1),
    "geglu": lambda t: F.gelu((h := t["x"].double().chunk(2, 1))[0]) * h[1],
    "scaled_branch": _scaled_branch,
    "unit_rows": lambda t, eps: F.normalize(t["x"].double(), eps=eps),
    "row_entropy": _entropy,
    "margin_loss": _margin,
    "long_cross_entropy": _smoothed,
    "cosine_of_rows": lambda t: F.cosine_similarity(t["x"].double(), t["z"].double()),
    "sample_rows": _sampled,
    "capped_causal_softmax": _causal,
    "instance_norm": _normalised,
    "discounted_returns": _returns,
    "running_max": lambda t: t["x"].double().cummax(1).values,
    "count_before": _counted,
    "nesterov": _nesterov,
    "adagrad": _adagrad,
    "moving_average": lambda t, share: torch.lerp(t["average"].double(), t["x"].double(), share),
    "mish_slope": _mish_slope,
    "smooth_l1_sums": _l1_sums,
    "token_shift": _shift,
    "dequantise_groups": _dequantised,
    "quantise_groups": _quantised,
    "affine_planes": _affine,
    "fake_quantise": _fake,
    "multiply_complex": _complex,
    "column_norms": lambda t: t["x"].double().norm(dim=0),
    "embed_tokens": _embedded,
    "embedding_slope": _embedding_slope,
    "edge_messages": _edges,
    "take_along_rows": lambda t: t["x"].gather(1, t["places"].long()).double(),
    "multiply_ell": lambda t: (t["values"].double() * t["x"].double()[t["columns"].long()]).sum(1),
    "join_experts": _joined,
    "pad_sequences": _sequences,
    "shuffle_pixels": lambda t: F.pixel_shuffle(
        t["x"].double()[None], round((t["x"].shape[0] / t["y"].shape[0]) ** 0.5)
    )[0],
    "double_planes": lambda t: t["x"].double().repeat_interleave(2, 1).repeat_interleave(2, 2),
    "halve_planes": lambda t: F.avg_pool2d(t["x"].double()[None], 2)[0],
    "sobel": lambda t: torch.hypot(
        _conv(t["x"].double(), [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]),
        _conv(t["x"].double(), [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]),
    ),
    "filter_channels": _depthwise,
    "density": _density,
}


def expected(case: Fresh, t: Tensors) -> Tensors:
    """The outputs by name."""
    found = REFERENCES[case.kernel](t, *case.scalars)
    return found if isinstance(found, dict) else {case.outputs[0]: found}


NORM = {"f32": 2e-5, "f16": 2e-3, "bf16": 1.2e-2, "i32": 0.0, "i8": 3e-3}
"""Error of the norm that a result of a dtype may have: of i8 one in some hundred numbers may be
rounded to the other side."""


def wrong(case: Fresh, t: Tensors, wanted: Tensors) -> str | None:
    """What of a result is not as wanted."""
    for spec in case.arrays:
        if spec.name not in case.outputs:
            continue
        got, want = t[spec.name].double(), wanted[spec.name].double()
        if case.kernel == "smooth_l1_sums":
            got, want = got.sum(), want.sum()
        if case.kernel == "sample_rows":  # near ties may fall either way
            error = float((got != want).double().mean()) / 100
            limit = 2e-4
        else:
            error = float((got - want).norm() / want.norm().clamp(min=1e-30))
            limit = NORM[spec.dtype]
            narrow = min((NORM[s.dtype] for s in case.arrays if s.dtype[0] in "bf"), default=0)
            limit = max(limit, 2 * narrow if case.kernel == "fake_quantise" else limit)
        if not error <= limit:
            return f"{spec.name}: error {error:.2e} above {limit:.0e}"
    return None
