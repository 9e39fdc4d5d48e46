"""The kinds of `drawn_layers`: inputs that make sense, references in float64, and torch's own.

torch's names: "eager" is a formula of `drawn_formulas` as it is, "compile" the same by
torch.compile, the others are libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from drawn_array_formulas import ARRAY_CALLS, ARRAY_FILLS, ARRAYS, written_slots
from drawn_formulas import GENERATED, formula, inputs_of
from drawn_layers import ELEMENTWISE
from fused_cases import FusedCase
from layer_cases import LOWEST, WIDTH, LayerCase
from layer_peers import TOLERANCE, Outputs, expected_layer, fill_layer

Tensors = Mapping[str, torch.Tensor]
Calls = dict[str, Callable[[Tensors], Any]]


def _queries(case: LayerCase, t: Tensors) -> torch.Tensor:
    """Attention head by head, in float64."""
    out = torch.empty(t["o"].shape, dtype=torch.float64, device=t["o"].device)
    shared, length = t["q"].shape[1] // t["k"].shape[1], t["q"].shape[2]
    i = torch.arange(length, device=out.device)
    hidden = _hidden(case, i[:, None], i[None, :])
    for batch in range(out.shape[0]):
        for head in range(out.shape[1]):
            key, value = (t[n][batch, head // shared].double() for n in "kv")
            score = t["q"][batch, head].double() @ key.T * case.sizes["scale"]
            out[batch, head] = torch.softmax(score.masked_fill_(hidden, -torch.inf), -1) @ value
    return out


def _hidden(case: LayerCase, query: Any, key: Any) -> Any:
    """Which keys a query does not see."""
    if not case.sizes["causal"]:
        return torch.zeros_like(query + key, dtype=torch.bool)
    later = key > query
    return later | (key <= query - case.sizes["window"]) if case.sizes["window"] else later


def _recurrence(case: LayerCase, t: Tensors) -> torch.Tensor:
    """Step by step."""
    q, k, v, decay = (t[n].double() for n in ("q", "k", "v", "decay"))
    state = torch.zeros((*k.shape[:2], k.shape[3], v.shape[3]), dtype=q.dtype, device=q.device)
    out = torch.empty(v.shape, dtype=q.dtype, device=q.device)
    for i in range(q.shape[2]):
        state *= torch.exp(decay[:, :, i])[..., None, None]
        state += k[:, :, i, :, None] * v[:, :, i, None, :]
        out[:, :, i] = (q[:, :, i, None, :] @ state)[..., 0, :]
    return out


def _scan(case: LayerCase, t: Tensors) -> torch.Tensor:
    """Step by step."""
    x, steps, decay, entry, readout = (
        t[n].double() for n in ("x", "steps", "decay", "entry", "readout")
    )
    state = torch.zeros((x.shape[0], *decay.shape), dtype=x.dtype, device=x.device)
    out = torch.empty_like(x)
    for i in range(x.shape[1]):
        step = steps[:, i, :, None]
        state *= torch.exp(step * decay)
        state += step * x[:, i, :, None] * entry[:, i, None, :]
        out[:, i] = (state * readout[:, i, None, :]).sum(-1)
    return out + t["skip"].double() * x


def _sparse(t: Tensors, dtype: torch.dtype) -> torch.Tensor:
    size = len(t["y"]), len(t["x"])
    end = int(t["starts"][-1])
    columns, values = t["columns"][:end], t["values"][:end].to(dtype)
    return torch.sparse_csr_tensor(t["starts"], columns, values, size)


_REFERENCES: dict[str, Callable[[LayerCase, Tensors], Any]] = {
    "write_slots": written_slots,
    "shared_attention": _queries,
    "chunked_recurrence": _recurrence,
    "selective_scan": _scan,
    "multiply_sparse_rows": lambda case, t: _sparse(t, torch.float64) @ t["x"].double(),
}
F8_ROUNDING = 4e-2
"""Error of the norm that rounding to e4m3 may make."""


def expected_drawn(case: LayerCase, t: Tensors) -> Outputs:
    """The reference for one set of inputs of a case in `DRAWN`."""
    device = t[case.outputs[0]].device
    if case.kernel in _REFERENCES:
        found: Any = _REFERENCES[case.kernel](case, t)
    elif case.kernel in GENERATED:
        found = GENERATED[case.kernel](case, torch.float64, device)
    elif (written := formula(case)) is not None:
        found = written(*(x.double() for x in inputs_of(case, t)))
    else:
        return expected_layer(case, t)
    tolerance = TOLERANCE | {"f8E4M3FN": F8_ROUNDING}
    dtypes = {spec.name: spec.dtype for spec in case.arrays}
    results = (found,) if isinstance(found, torch.Tensor) else tuple(found)
    return Outputs(results, tuple(tolerance[dtypes[name]] for name in case.outputs))


def fill_drawn(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    """Overwrites what random numbers are no good for."""
    fill = _FILLS.get(case.kernel)
    if fill is None:
        fill_layer(case, t, generator)
    else:
        fill(case, t, generator)


def _fill_rates(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    """Decays, not growth; keys short enough for states to stay of one size."""
    t["decay"].copy_(-t["decay"].abs() / 4)
    t["k"].copy_(t["k"] / t["k"].shape[-1] ** 0.5)


def _fill_scan(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    t["decay"].copy_(-t["decay"].abs())
    t["steps"].copy_(t["steps"].abs())


def _fill_squares(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    t["square"].copy_(t["square"].abs())


def _fill_rows(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    """Rows of none to twice the mean, as many elements as there is room for at most."""
    rows, mean, device = len(t["y"]), case.sizes["mean"], generator.device
    counts = torch.randint(0, 2 * mean + 1, (rows,), generator=generator, device=device)
    ends = counts.cumsum(0).clamp_max(rows * mean)
    t["starts"][0] = 0
    t["starts"][1:].copy_(ends)
    shape = t["columns"].shape
    t["columns"].copy_(torch.randint(0, len(t["x"]), shape, generator=generator, device=device))


def _fill_ranks(case: LayerCase, t: Tensors, generator: torch.Generator) -> None:
    """No two equal ones in a row: which of them comes first is not said by all peers."""
    t["x"].copy_(t["x"].argsort(-1) - t["x"].shape[1] // 2)


_FILLS = {
    **ARRAY_FILLS,
    "order_rows_with_places": _fill_ranks,
    "first_of_rows_with_places": _fill_ranks,
    "chunked_recurrence": _fill_rates,
    "selective_scan": _fill_scan,
    "adam": _fill_squares,
    "multiply_sparse_rows": _fill_rows,
}


def torch_drawn(case: LayerCase) -> Calls:
    """torch's own, without torch.compile."""
    if case.kernel in GENERATED:
        generate = GENERATED[case.kernel]
        return {"torch eager": lambda t: generate(case, torch.float32, t["y"].device)}
    made = {
        **ARRAY_CALLS,
        "shared_attention": _attention_calls,
        "multiply_sparse_rows": _sparse_calls,
        "histogram": _histogram_calls,
    }.get(case.kernel)
    if made is not None:
        return made(case)
    written = formula(case)
    return {} if written is None else {"torch eager": lambda t: written(*inputs_of(case, t))}


def compiled_calls(case: Any) -> Calls:
    """The same by torch.compile: whole graphs, or not at all."""
    torch._dynamo.reset()
    if isinstance(case, FusedCase):
        return {
            "torch compile": _compiled(_FUSED[case.kernel], "abg" if case.products > 1 else "ab")
        }
    if not isinstance(case, LayerCase):
        return {}
    if case.kernel in GENERATED:
        generate = GENERATED[case.kernel]
        return {"torch compile": _compiled(lambda y: generate(case, torch.float32, y.device), "y")}
    if case.kernel == "shared_attention":
        return {"torch flex": _flex(case)}
    written = formula(case)
    if written is None:
        return {}
    names = [spec.name for spec in case.arrays]
    inputs = [n for n in names if n not in case.outputs or n in case.changed]
    return {"torch compile": _compiled(written, inputs)}


def _compiled(function: Callable[..., Any], names: Any) -> Callable[[Tensors], Any]:
    fast = torch.compile(function, dynamic=False, fullgraph=True)
    return lambda t: fast(*(t[name] for name in names))


_FUSED: dict[str, Callable[..., Any]] = {
    "activated_product": lambda a, b: a.relu() @ b,
    "dequantised_product": lambda a, b: a.to(b.dtype) @ b,
    "gated_product": lambda a, b, g: F.silu(a @ g) * (a @ b),
}


def _flex(case: LayerCase) -> Callable[[Tensors], Any]:
    """Attention with a mask of one's own, which torch.compile makes a Triton kernel of."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    fast = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    masks: list[Any] = []

    def call(t: Tensors) -> Any:
        if not masks and case.sizes["causal"]:
            length = t["q"].shape[2]

            def seen(batch: Any, head: Any, query: Any, key: Any) -> Any:
                return ~_hidden(case, query, key)

            masks.append(create_block_mask(seen, None, None, length, length, str(t["q"].device)))
        shared = t["q"].shape[1] != t["k"].shape[1]
        block_mask = masks[0] if masks else None
        return fast(
            t["q"], t["k"], t["v"], block_mask=block_mask, scale=case.sizes["scale"],
            enable_gqa=shared,
        )  # fmt: skip

    return call


def _attention_calls(case: LayerCase) -> Calls:
    """cuDNN's and FlashAttention; they have no windows here."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call_of(backend: Any) -> Callable[[Tensors], torch.Tensor]:
        def call(t: Tensors) -> torch.Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(
                    *(t["q"], t["k"], t["v"]),
                    is_causal=case.sizes["causal"],
                    enable_gqa=t["q"].shape[1] != t["k"].shape[1],
                )

        return call

    if case.sizes["window"]:
        return {}
    return {
        "torch cudnn": call_of(SDPBackend.CUDNN_ATTENTION),
        "torch flash": call_of(SDPBackend.FLASH_ATTENTION),
    }


def _sparse_calls(case: LayerCase) -> Calls:
    """cuSPARSE."""
    kept: dict[int, torch.Tensor] = {}

    def call(t: Tensors) -> torch.Tensor:
        key = t["starts"].data_ptr()
        if key not in kept:
            kept[key] = _sparse(t, torch.float32)
        return kept[key] @ t["x"]

    return {"torch cusparse": call}


def _histogram_calls(case: LayerCase) -> Calls:
    """A last bin that takes its upper end, too."""

    def call(t: Tensors) -> torch.Tensor:
        bins = len(t["counts"])
        return torch.histc(t["values"], bins, LOWEST, LOWEST + bins * WIDTH)

    return {"torch histc": call}


DRAWN = {
    *ELEMENTWISE,
    *ARRAYS,
    *("softmax", "layer_norm", "long_rms_norm", "quantise_rows", "biased_product"),
    *("shared_attention", "chunked_recurrence", "selective_scan", "midpoint_sums", "count_hits"),
    *("stencil", "multiply_sparse_rows", "sort_rows", "largest_of_rows", "histogram"),
    *("order_rows", "order_rows_with_places", "first_of_rows", "first_of_rows_with_places"),
}
"""Kinds of layers whose peers are here; those of the others are in `layer_peers`."""
