"""What measuring in regimes needs of a case: its inputs, its reference, torch's and Triton's calls.

One entry a kind of case; see `product_cases` and `attention_cases`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import reference
import torch
from attention_cases import AttentionCase
from drawn_peers import DRAWN, expected_drawn, fill_drawn, torch_drawn
from fused_cases import FusedCase
from layer_cases import LayerCase
from layer_peers import expected_layer, torch_layer, triton_layer
from product_cases import ProductCase
from reference import Comparison
from tensors import DTYPES, Storage

RegimeCase = Any
Tensors = Mapping[str, torch.Tensor]
BOUND = "bound"
"""Begins the names of peers that do a part of the work: timed, not compared with the reference."""
INTEGER_SPREAD = 32
"""Standard deviation of 8-bit integers."""
PRODUCT_NORM = {"f16": 1e-2, "bf16": 1e-2, "f8E4M3FN": 6e-2}
PRODUCT_NORM_OF_WIDE = 2e-3
"""Error of the norm, by the result's dtype: a backstop behind the bounds of elements."""
FP8_SLACK = 4.0
"""Other peers' fp8 products accumulate over more steps in fewer bits than ours may."""


@dataclass(frozen=True)
class Expected:
    """A float64 result, the error allowed of each element, and of the norm of all relatively."""

    result: torch.Tensor
    bound: torch.Tensor
    norm: float = float("inf")

    def wrong(self, found: torch.Tensor, elements: bool = True) -> str:
        """What is wrong with `found`, or nothing. `elements`: each of them must be right."""
        comparison = Comparison()
        comparison.add(found.reshape(-1, found.shape[-1]), (self.result, self.bound))
        if comparison.wrong and elements:
            return f"{comparison.wrong} of {comparison.count}, {comparison.first}"
        error = comparison.relative_error
        return "" if error <= self.norm else f"relative error {error:.2e} > {self.norm:.2e}"


def drawn(
    dtype: torch.dtype, shape: tuple[int, ...], spread: float, generator: torch.Generator
) -> torch.Tensor:
    """Normal values."""
    device = generator.device
    values = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
    if dtype == torch.int8:
        return (values * INTEGER_SPREAD).round_().clamp_(-127, 127).to(dtype)
    return (values * spread).to(dtype)


def filled(case: RegimeCase, device: str, generator: torch.Generator) -> dict[str, Storage]:
    """One set of arrays, random but for the outputs, which are poisoned."""
    storages = {spec.name: Storage(spec, device) for spec in case.arrays}
    for name, storage in storages.items():
        if name not in written(case) or name in changed(case):
            spec = storage.spec
            storage.fill(drawn(DTYPES[spec.dtype], spec.shape, case.spread, generator))
    if isinstance(case, LayerCase):
        fill_drawn(case, {n: storage.tensor for n, storage in storages.items()}, generator)
    if "ends" in storages:
        ends = torch.tensor(case.group_ends, dtype=torch.int32, device=device)
        storages["ends"].fill(ends)
    return storages


def written(case: RegimeCase) -> tuple[str, ...]:
    """The arrays that are compared."""
    return case.outputs if isinstance(case, LayerCase) else (case.arrays[-1].name,)


def changed(case: RegimeCase) -> tuple[str, ...]:
    """Those among them that are inputs, too."""
    return case.changed if isinstance(case, LayerCase) else ()


def expected_of(case: RegimeCase, tensors: Tensors) -> Any:
    """The reference for one set of inputs: its `wrong` says what is wrong with a result."""
    return _kind(case).expected(case, tensors)


def torch_calls(case: RegimeCase) -> dict[str, Callable[[Tensors], Any]]:
    """torch's own, by peer name."""
    return _kind(case).torch_calls(case)


def candidates_of(case: RegimeCase) -> list[Any]:
    """Triton's candidates."""
    return list(_kind(case).candidates(case))


@dataclass(frozen=True)
class Kind:
    """The entry of one kind of case."""

    expected: Callable[[RegimeCase, Tensors], Any]
    torch_calls: Callable[[RegimeCase], dict[str, Callable[[Tensors], Any]]]
    candidates: Callable[[RegimeCase], Iterator[Any]]


def _expected_product(case: ProductCase, t: Tensors) -> Expected:
    error = reference.PRODUCT_ERROR[case.dtype, case.precision]
    slack = FP8_SLACK if case.dtype == "f8E4M3FN" else 1.0
    a, b = t["a"], t["b"]
    pairs = zip(a, b, strict=True) if case.batch else [(a, b)]
    parts = [reference.matmul(x, y, error * slack) for x, y in pairs]
    result, bound = (torch.cat(found) for found in zip(*parts, strict=True))
    return Expected(result, bound, PRODUCT_NORM.get(case.output, PRODUCT_NORM_OF_WIDE))


def _torch_product(case: ProductCase) -> dict[str, Callable[[Tensors], Any]]:
    precision = "high" if case.dtype == "f32" else "highest"
    torch.set_float32_matmul_precision(precision)
    if case.dtype == "i8":
        return {"torch": lambda t: torch._int_mm(t["a"], t["b"], out=t["c"])}
    if case.dtype == "f8E4M3FN":
        return {"torch": _scaled_batch if case.batch else _scaled}
    multiply = torch.bmm if case.batch else torch.mm
    if case.output != case.dtype:
        output = DTYPES[case.output]
        return {"torch": lambda t: multiply(t["a"], t["b"], out_dtype=output)}
    return {"torch": lambda t: multiply(t["a"], t["b"], out=t["c"])}


_ones: dict[torch.device, torch.Tensor] = {}


def _scaled(t: Tensors) -> torch.Tensor:
    """cuBLASLt's fp8 product with its fast accumulation."""
    device = t["a"].device
    if device not in _ones:
        _ones[device] = torch.ones((), device=device)
    one, c = _ones[device], t["c"]
    return torch._scaled_mm(
        *(t["a"], t["b"], one, one), out_dtype=c.dtype, use_fast_accum=True, out=c
    )


def _scaled_batch(t: Tensors) -> None:
    """A call a matrix: torch has no batched one."""
    for a, b, c in zip(t["a"], t["b"], t["c"], strict=True):
        _scaled({"a": a, "b": b, "c": c})


def _triton_products(case: ProductCase) -> Iterator[Any]:
    from triton_products import product_launches

    return product_launches(case)


WEIGHT_ROUNDING = {"f16": 2.0**-11, "bf16": 2.0**-8}
"""Weights are rounded to the inputs' dtype before they multiply the values."""
SMALLEST_WEIGHT = 2.0**-25
"""Half a subnormal step of f16: what a weight, at most 1, may lose besides."""
ATTENTION_NORM = {"f16": 2e-3, "bf16": 1.2e-2}


def _expected_attention(case: AttentionCase, t: Tensors) -> Expected:
    """Head by head: a matrix of scores in float64 takes half a GB at length 8192."""
    results, bounds = [], []
    for q, k, v in zip(*(t[name].flatten(0, 1) for name in "qkv"), strict=True):
        score = q.double() @ k.double().T * case.scalars[0]
        if case.causal:
            score.masked_fill_(torch.ones_like(score, dtype=torch.bool).triu(1), float("-inf"))
        weight = torch.exp(score - score.amax(-1, keepdim=True))
        total = weight.sum(-1, keepdim=True)
        size = v.double().abs()
        rounding = 2 * WEIGHT_ROUNDING[case.dtype] * (weight @ size)
        bounds.append((rounding + SMALLEST_WEIGHT * size.sum(0)) / total)
        results.append(weight @ v.double() / total)
    return Expected(torch.cat(results), torch.cat(bounds), ATTENTION_NORM[case.dtype])


def _torch_attention(case: AttentionCase) -> dict[str, Callable[[Tensors], Any]]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call_of(backend: Any) -> Callable[[Tensors], torch.Tensor]:
        def call(t: Tensors) -> torch.Tensor:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    t["q"], t["k"], t["v"], is_causal=case.causal
                )

        return call

    return {
        "torch cudnn": call_of(SDPBackend.CUDNN_ATTENTION),
        "torch flash": call_of(SDPBackend.FLASH_ATTENTION),
    }


def _triton_attention(case: AttentionCase) -> Iterator[Any]:
    from triton_attention import attention_launches

    return attention_launches(case)


SIGMOID_SLOPE = 1.1
"""The steepest silu."""


def _operands(case: FusedCase, t: Tensors) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What is multiplied: a pair a product, or a group."""
    a, b = t["a"], t["b"]
    if case.kernel == "grouped_product":
        ends = case.group_ends
        parts = zip([0, *ends], ends, strict=False)
        return [(a[i:j], matrix) for (i, j), matrix in zip(parts, b, strict=True)]
    if case.kernel == "gated_product":
        return [(a, b), (a, t["g"])]
    return [(a.relu() if case.kernel == "activated_product" else a.to(b.dtype), b)]


def _expected_fused(case: FusedCase, t: Tensors) -> Expected:
    error = reference.PRODUCT_ERROR[case.dtype, case.precision]
    parts = [reference.matmul(x, y, error) for x, y in _operands(case, t)]
    if case.kernel == "gated_product":
        (plain, of_plain), (gate, of_gate) = parts
        silu = torch.nn.functional.silu(gate)
        bound = SIGMOID_SLOPE * of_gate * (plain.abs() + of_plain) + silu.abs() * of_plain
        parts = [(silu * plain, bound + (silu * plain).abs() * F32_FUNCTION)]
    result, bound = (torch.cat(found) for found in zip(*parts, strict=True))
    return Expected(result, bound, PRODUCT_NORM["bf16"])


F32_FUNCTION = 2.0**-18
"""What approximate functions of f32 lose."""


def _torch_fused(case: FusedCase) -> dict[str, Callable[[Tensors], Any]]:
    """What a user writes ("eager"), and the products alone: cuBLAS on operands that are ready."""
    ready: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}

    def eager(t: Tensors) -> torch.Tensor | None:
        if case.kernel == "grouped_product":
            return torch._grouped_mm(t["a"], t["b"], offs=t["ends"])
        products = [torch.mm(x, y) for x, y in _operands(case, t)]
        if len(products) == 1:
            return products[0]
        return torch.nn.functional.silu(products[1]) * products[0]

    def alone(t: Tensors) -> None:
        key = t["a"].data_ptr()
        if key not in ready:
            ready[key] = _operands(case, t)
        for x, y in ready[key]:
            torch.mm(x, y, out=t["c"][: len(x)])

    return {"torch eager": eager, f"{BOUND} cublas": alone}


def _triton_fused(case: FusedCase) -> Iterator[Any]:
    from triton_fused import fused_launches

    return fused_launches(case)


_FUSED = Kind(_expected_fused, _torch_fused, _triton_fused)


def _triton_drawn(case: LayerCase) -> Iterator[Any]:
    from triton_drawn import drawn_launches

    return drawn_launches(case)


_LAYER = Kind(expected_layer, torch_layer, triton_layer)
_DRAWN = Kind(expected_drawn, torch_drawn, _triton_drawn)


def _kind(case: RegimeCase) -> Kind:
    if isinstance(case, LayerCase):
        return _DRAWN if case.kernel in DRAWN else _LAYER
    return _KINDS[case.kernel]


_KINDS = {
    "product": Kind(_expected_product, _torch_product, _triton_products),
    "attention": Kind(_expected_attention, _torch_attention, _triton_attention),
    "activated_product": _FUSED,
    "dequantised_product": _FUSED,
    "gated_product": _FUSED,
    "grouped_product": _FUSED,
}
