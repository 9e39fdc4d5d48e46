"""Layers: inputs that make sense, references, and torch's own.

torch's names: "eager" is what a user writes; those of `bound` do a part of the work or another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from layer_cases import LOWEST, WIDTH, LayerCase

Tensors = Mapping[str, torch.Tensor]
Calls = dict[str, Callable[[Tensors], Any]]
TOLERANCE = {"f16": 2e-3, "bf16": 1.2e-2, "f32": 1e-4, "i32": 1e-3}
"""Error of the norm, relative, of a result of that dtype."""
NAMES = {torch.float16: "f16", torch.bfloat16: "bf16"}
"""Of dtypes that torch's result may have where ours is f32."""
TRUNCATION = 2.0**-24 / 16
"""What an element of a sum may cost: once in 16 tensor cores cut off what f32 does not hold (Fasi,
Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores, 2021)."""
BACKWARD_SLACK = 3.0
"""Gradients of scores are differences, of numbers of which one follows from a rounded output."""
OUTLIER = 16.0
"""How far the error of one element may be over what the norm allows of the mean element."""


@dataclass(frozen=True)
class Outputs:
    """float64 results and the norms' errors allowed."""

    results: tuple[torch.Tensor, ...]
    norms: tuple[float, ...]

    def wrong(self, found: Any, elements: bool = True) -> str:
        """What is wrong with `found`, a tensor or some, or nothing."""
        found = (found,) if isinstance(found, torch.Tensor) else tuple(found)
        for number, (out, right, norm) in enumerate(
            zip(found, self.results, self.norms, strict=True)
        ):
            right = right.double()  # places among results are integers
            norm = max(norm, TOLERANCE.get(NAMES.get(out.dtype, ""), 0.0))
            difference = out.double().reshape(right.shape) - right
            error = float(difference.norm() / right.norm())
            if not error <= norm:  # NaN is not
                return f"output {number}: relative error {error:.2e} > {norm:.2e}"
            # Rounding is relative to an element, other errors to the size of all.
            mean = float(right.square().mean().sqrt())
            allowed = OUTLIER * norm * (right.abs() + mean)
            if elements and bool((difference.abs() > allowed).any()):
                return f"output {number}: an element is off by {float(difference.abs().max()):.2e}"
        return ""


def fill_layer(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    """Overwrites what random numbers are no good for."""
    fill = _FILLS.get(case.kernel)
    if fill is not None:
        fill(case, t, generator)


def expected_layer(case: LayerCase, t: Tensors) -> Outputs:
    """The reference for one set of inputs."""
    results = _EXPECTED[case.kernel](case, t)
    dtypes = {spec.name: spec.dtype for spec in case.arrays}
    slack = BACKWARD_SLACK if case.kernel == "attention_backward" else 1.0
    if case.kernel == "gram":  # rows add up on tensor cores
        slack = max(slack, t["x"].shape[0] * TRUNCATION / TOLERANCE["f32"])
    return Outputs(results, tuple(slack * TOLERANCE[dtypes[name]] for name in case.outputs))


def torch_layer(case: LayerCase) -> Calls:
    """torch's peers."""
    return _CALLS[case.kernel](case)


def triton_layer(case: LayerCase) -> Any:
    """Triton's candidates."""
    from triton_layers import layer_launches

    return layer_launches(case)


def _heads(t: Tensors) -> Any:
    """q, k, v, o, do of each head of queries."""
    shared = t["q"].shape[1] // t["k"].shape[1]
    for batch in range(t["q"].shape[0]):
        for head in range(t["q"].shape[1]):
            own = (t[name][batch, head] for name in ("q", "do"))
            yield batch, head, head // shared, *own, *(t[n][batch, head // shared] for n in "kv")


def _scores(q: torch.Tensor, k: torch.Tensor, case: LayerCase) -> torch.Tensor:
    score = q.double() @ k.double().T * case.sizes["scale"]
    if case.sizes["causal"]:
        score.masked_fill_(torch.ones_like(score, dtype=torch.bool).triu(1), float("-inf"))
    return score


def _fill_backward(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    """The forward pass: outputs, and base-2 logarithms of the sums of weights."""
    for batch, head, _, q, _, k, v in _heads(t):
        score = _scores(q, k, case)
        log = torch.logsumexp(score, -1)
        t["o"][batch, head] = torch.exp(score - log[:, None]) @ v.double()
        t["logs"][batch, head] = log / torch.log(torch.tensor(2.0, dtype=torch.float64))


def _expected_backward(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    dq, dk, dv = (torch.zeros(t[n].shape, dtype=torch.float64, device=t[n].device) for n in "qkv")
    scale = case.sizes["scale"]
    for batch, head, of, q, do, k, v in _heads(t):
        weight = torch.softmax(_scores(q, k, case), -1)
        q, do, k, v = q.double(), do.double(), k.double(), v.double()
        slope = do @ v.T
        slope = weight * (slope - (weight * slope).sum(-1, keepdim=True)) * scale
        dq[batch, head] = slope @ k
        dk[batch, of] += slope.T @ q
        dv[batch, of] += weight.T @ do
    return dq, dk, dv


def _torch_backward(case: LayerCase) -> Calls:
    """The operators that autograd calls; what they need of the forward pass is made once."""
    aten = torch.ops.aten
    kept: dict[tuple[str, int], dict[str, Any]] = {}

    def saved(kind: str, forward: Any, t: Tensors) -> dict[str, Any]:
        key = kind, t["q"].data_ptr()
        if key not in kept:
            shared = t["q"].shape[1] // t["k"].shape[1]
            values = {"query": t["q"], "grad_out": t["do"], "attn_bias": None, "dropout_p": 0.0}
            values |= {"key": t["k"].repeat_interleave(shared, 1)}
            values |= {"value": t["v"].repeat_interleave(shared, 1)}
            values |= {"is_causal": case.sizes["causal"], "scale": case.sizes["scale"]}
            values |= {"compute_log_sumexp": True, "return_debug_mask": False}
            found = forward(**_named(forward, values))
            names = ("out", "logsumexp", "cum_seq_q", "cum_seq_k", "max_q", "max_k")
            names = (*names, "philox_seed", "philox_offset")
            kept[key] = values | dict(zip(names, found, strict=False))
        return kept[key]

    def call_of(kind: str) -> Callable[[Tensors], Any]:
        forward = getattr(aten, f"_scaled_dot_product_{kind}_attention").default
        backward = getattr(aten, f"_scaled_dot_product_{kind}_attention_backward").default

        def call(t: Tensors) -> Any:
            dq, dk, dv = backward(**_named(backward, saved(kind, forward, t)))[:3]
            if dk.shape != t["k"].shape:
                shape = (*t["k"].shape[:2], -1, *t["k"].shape[2:])
                dk, dv = dk.reshape(shape).sum(2), dv.reshape(shape).sum(2)
            return dq, dk, dv

        return call

    return {"torch flash": call_of("flash"), "torch cudnn": call_of("cudnn")}


def _named(operator: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in operator._schema.arguments]
    return {name: values[name] for name in names if name in values}


def _fill_experts(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    """Each token's choices, arranged as `tilec.examples.mixture_of_experts.arrange` does."""
    count, top, rows = case.sizes["experts"], case.sizes["top"], case.sizes["rows"]
    noise = torch.rand(len(t["tokens"]), count, generator=generator, device=generator.device)
    favoured = torch.linspace(0, 0.5, count, device=generator.device)
    choice = (noise + favoured).topk(top, 1).indices.reshape(-1)
    slots, experts = t["slots"].fill_(-1), t["experts"].fill_(0)
    tile = 0
    for expert in range(count):
        (own,) = torch.nonzero(choice == expert, as_tuple=True)
        tiles = -(-len(own) // rows)
        slots[tile * rows : tile * rows + len(own)] = own.int()
        experts[tile : tile + tiles] = expert
        tile += tiles


def _experts_rows(case: LayerCase, t: Tensors) -> list[tuple[int, torch.Tensor]]:
    """Expert and slots of each tile that has some."""
    tiles = t["slots"].reshape(-1, case.sizes["rows"])
    pairs = zip(t["experts"].tolist(), tiles, strict=True)
    return [(expert, own[own >= 0].long()) for expert, own in pairs if bool((own >= 0).any())]


def _expected_experts(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    out = torch.empty(t["products"].shape, dtype=torch.float64, device=t["products"].device)
    for expert, slots in _experts_rows(case, t):
        product = t["tokens"][slots // case.sizes["top"]].double() @ t["matrices"][expert].double()
        out[slots] = product * t["weights"][slots, None].double()
    return (out,)


def _torch_experts(case: LayerCase) -> Calls:
    ready: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def arranged(t: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        """The slots sorted by expert, and where each expert's end."""
        key = t["tokens"].data_ptr()
        if key not in ready:
            parts: list[list[torch.Tensor]] = [[] for _ in range(case.sizes["experts"])]
            for expert, slots in _experts_rows(case, t):
                parts[expert].append(slots)
            counts = torch.tensor([sum(map(len, own)) for own in parts], device=t["slots"].device)
            order = torch.cat([slots for own in parts for slots in own])
            ready[key] = order, counts.cumsum(0).int()
        return ready[key]

    def eager(t: Tensors) -> torch.Tensor:
        order, ends = arranged(t)
        rows = t["tokens"][order // case.sizes["top"]]
        products = torch._grouped_mm(rows, t["matrices"], offs=ends)
        t["products"][order] = products * t["weights"][order, None].to(products.dtype)
        return t["products"]

    return {"torch eager": eager}


def _fill_codes(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    device = generator.device
    t["packed"].copy_(
        torch.randint(-128, 128, t["packed"].shape, generator=generator, device=device)
    )
    t["scales"].copy_(torch.rand(t["scales"].shape, generator=generator, device=device) / 16)
    t["zeros"].copy_(torch.randint(0, 16, t["zeros"].shape, generator=generator, device=device))


def _weights(case: LayerCase, t: Tensors) -> torch.Tensor:
    codes = t["packed"].reshape(-1, case.sizes["group"] // 2, t["packed"].shape[1])
    codes = torch.cat([codes & 15, (codes >> 4) & 15], 1).double()
    weights = (codes - t["zeros"][:, None].double()) * t["scales"][:, None].double()
    return weights.reshape(-1, weights.shape[2])


def _torch_codes(case: LayerCase) -> Calls:
    """cuBLAS on weights that were unpacked before: the same for all inputs."""
    ready: list[torch.Tensor] = []

    def alone(t: Tensors) -> None:
        if not ready:
            ready.append(_weights(case, t).to(t["a"].dtype))
        torch.mm(t["a"], ready[0], out=t["c"])

    return {"bound cublas f16": alone}


def _fill_scales(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    for name in ("a_scales", "b_scales"):
        t[name].copy_(0.5 + torch.rand(t[name].shape, generator=generator, device=t[name].device))


def _expected_scales(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    a = t["a"].double() * t["a_scales"].double().repeat_interleave(128, 1)
    tiles = t["b_scales"].double().repeat_interleave(128, 0).repeat_interleave(128, 1)
    return (a @ (t["b"].double() * tiles).T,)


def _torch_scales(case: LayerCase) -> Calls:
    """torch's own product with these scales, a's column by column, b's in rows of whole fours; and
    without scales."""
    arranged: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def scaled(t: Tensors) -> torch.Tensor:
        key = t["a"].data_ptr()
        if key not in arranged:
            steps = t["b_scales"].shape[1]
            fours = F.pad(t["b_scales"], (0, -steps % 4))[:, :steps]
            arranged[key] = t["a_scales"].T.contiguous().T, fours.T
        return torch._scaled_mm(t["a"], t["b"].T, *arranged[key], out_dtype=torch.bfloat16)

    def plain(t: Tensors) -> torch.Tensor:
        one = torch.ones((), device=t["a"].device)
        return torch._scaled_mm(
            *(t["a"], t["b"].T, one, one), out_dtype=torch.bfloat16, use_fast_accum=True
        )

    return {"torch scaled_mm": scaled, "bound cublas": plain}


def _torch_convolution(case: LayerCase) -> Calls:
    """cuDNN; the images are channels-last as they are."""
    kept: dict[int, torch.Tensor] = {}

    def eager(t: Tensors) -> torch.Tensor:
        key = t["w"].data_ptr()
        if key not in kept:
            w = t["w"].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            kept[key] = w
        x = t["x"].permute(0, 3, 1, 2)
        return F.conv2d(x, kept[key], padding=case.sizes["pad"]).permute(0, 2, 3, 1)

    torch.backends.cudnn.benchmark = True
    return {"torch cudnn": eager}


def _expected_convolution(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    pad, (rows, columns) = case.sizes["pad"], t["w"].shape[:2]
    height, width = t["x"].shape[1:3]
    x = F.pad(t["x"].double(), (0, 0, pad, pad, pad, pad))
    w = t["w"].double()
    parts = [
        x[:, r : r + height, s : s + width] @ w[r, s] for r in range(rows) for s in range(columns)
    ]
    return (sum(parts[1:], parts[0]),)


def _fill_pages(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    device, mean = generator.device, case.sizes["mean"]
    shape = t["table"].shape
    order = torch.randperm(t["keys"].shape[0], generator=generator, device=device)
    t["table"].copy_(order[: shape[0] * shape[1]].reshape(shape))
    most = t["table"].shape[1] * case.sizes["page"]
    low = max(1, min(mean // 2, most))
    lengths = torch.randint(low, most + 1, shape[:1], generator=generator, device=device)
    t["lengths"].copy_(lengths)


def _expected_pages(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    o = torch.empty(t["o"].shape, dtype=torch.float64, device=t["o"].device)
    shared = t["q"].shape[1] // t["keys"].shape[2]
    for number, length in enumerate(t["lengths"].tolist()):
        pages = t["table"][number].long()
        key, value = (
            t[n][pages].reshape(-1, *t[n].shape[2:])[:length].double() for n in ("keys", "values")
        )
        key, value = (x.repeat_interleave(shared, 1) for x in (key, value))
        score = torch.einsum("hd,khd->hk", t["q"][number].double(), key) * case.sizes["scale"]
        o[number] = torch.einsum("hk,khd->hd", torch.softmax(score, -1), value)
    return (o,)


def _no_calls(case: LayerCase) -> Calls:
    return {}


def _fill_labels(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    classes = t["logits"].shape[1]
    shape = t["labels"].shape
    t["labels"].copy_(
        torch.randint(0, classes, shape, generator=generator, device=t["labels"].device)
    )


def _expected_losses(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    losses, slopes = [], []
    for logits, labels in zip(t["logits"].split(256), t["labels"].split(256), strict=True):
        log = torch.log_softmax(logits.double(), -1)
        at = labels.long()[:, None]
        losses.append(-log.gather(1, at)[:, 0])
        slopes.append(torch.exp(log).scatter_add_(1, at, -torch.ones_like(at, dtype=log.dtype)))
    return torch.cat(losses), torch.cat(slopes)


def _torch_losses(case: LayerCase) -> Calls:
    def eager(t: Tensors) -> tuple[torch.Tensor, ...]:
        logits = t["logits"].detach().requires_grad_()
        losses = F.cross_entropy(logits, t["labels"].long(), reduction="none")
        (slope,) = torch.autograd.grad(losses, logits, torch.ones_like(losses))
        return losses.detach(), slope

    return {"torch eager": eager}


def _normal(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    x = t["x"].double()
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + case.sizes["eps"])
    return x * scale, scale


def _torch_norm(case: LayerCase) -> Calls:
    def eager(t: Tensors) -> torch.Tensor:
        return F.rms_norm(t["x"], t["weight"].shape, t["weight"], case.sizes["eps"])

    return {"torch eager": eager}


def _fill_norm_scales(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    t["scales"].copy_(_normal(case, t)[1][:, 0])


def _expected_norm_backward(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    normal, scale = _normal(case, t)
    grad = t["dy"].double()
    slope = grad * t["weight"].double()
    along = (slope * normal).mean(-1, keepdim=True)
    return (slope - normal * along) * scale, (grad * normal).sum(0)


def _torch_norm_backward(case: LayerCase) -> Calls:
    kept: dict[int, tuple[torch.Tensor, ...]] = {}

    def eager(t: Tensors) -> tuple[torch.Tensor, ...]:
        key = t["x"].data_ptr()
        if key not in kept:
            x, weight = (t[name].detach().requires_grad_() for name in ("x", "weight"))
            kept[key] = F.rms_norm(x, weight.shape, weight, case.sizes["eps"]), x, weight
        y, x, weight = kept[key]
        return torch.autograd.grad(y, (x, weight), t["dy"], retain_graph=True)

    return {"torch eager": eager}


def _expected_counts(case: LayerCase, t: Tensors) -> tuple[torch.Tensor, ...]:
    """Counts of the bins; a value at the edge of one may round into the next."""
    bins = ((t["values"] - LOWEST) / WIDTH).floor()
    many = len(t["counts"])
    inside = bins[(bins >= 0) & (bins < many)].long()
    return (torch.bincount(inside, minlength=many).double(),)


_FILLS = {
    "attention_backward": _fill_backward,
    "mixture_of_experts": _fill_experts,
    "quantized_weights": _fill_codes,
    "tile_scales": _fill_scales,
    "paged_attention": _fill_pages,
    "cross_entropy": _fill_labels,
    "rms_norm_backward": _fill_norm_scales,
    "histogram": lambda case, t, generator: t["counts"].zero_(),
}
_EXPECTED: dict[str, Callable[[LayerCase, Tensors], tuple[torch.Tensor, ...]]] = {
    "attention_backward": _expected_backward,
    "mixture_of_experts": _expected_experts,
    "quantized_weights": lambda case, t: (t["a"].double() @ _weights(case, t),),
    "tile_scales": _expected_scales,
    "convolution": _expected_convolution,
    "paged_attention": _expected_pages,
    "cross_entropy": _expected_losses,
    "rms_norm": lambda case, t: (_normal(case, t)[0] * t["weight"].double(),),
    "rms_norm_backward": _expected_norm_backward,
    "histogram": _expected_counts,
}
_CALLS = {
    "attention_backward": _torch_backward,
    "mixture_of_experts": _torch_experts,
    "quantized_weights": _torch_codes,
    "tile_scales": _torch_scales,
    "convolution": _torch_convolution,
    "paged_attention": _no_calls,
    "cross_entropy": _torch_losses,
    "rms_norm": _torch_norm,
    "rms_norm_backward": _torch_norm_backward,
}
