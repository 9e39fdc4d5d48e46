"""What measuring in regimes needs of a case: its inputs, its reference, torch's and Triton's calls.

One entry a kind of case; see `product_cases` and `attention_cases`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import reference
import torch
from product_cases import ProductCase
from reference import Comparison
from tensors import DTYPES, Storage

RegimeCase = Any
Tensors = Mapping[str, torch.Tensor]
SCALE = 0.1
"""Standard deviation of float inputs; of 8-bit integers `INTEGER_SCALE`."""
INTEGER_SCALE = 32
FP8_SLACK = 4.0
"""Other peers' fp8 products accumulate over more steps in fewer bits than ours may."""


@dataclass(frozen=True)
class Expected:
    """A float64 result and the error allowed, elementwise."""

    result: torch.Tensor
    bound: torch.Tensor

    def compare(self, found: torch.Tensor, comparison: Comparison) -> None:
        """Adds every element of `found`."""
        flat = found.reshape(-1, found.shape[-1])
        comparison.add(flat, (self.result, self.bound))


def drawn(dtype: torch.dtype, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Normal values."""
    device = generator.device
    values = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
    if dtype == torch.int8:
        return (values * INTEGER_SCALE).round_().clamp_(-127, 127).to(dtype)
    return (values * SCALE).to(dtype)


def filled(case: RegimeCase, device: str, generator: torch.Generator) -> dict[str, Storage]:
    """One set of arrays, random but for the output, which is poisoned."""
    storages = {spec.name: Storage(spec, device) for spec in case.arrays}
    for name, storage in storages.items():
        if name != written(case):
            storage.fill(drawn(DTYPES[storage.spec.dtype], storage.spec.shape, generator))
    return storages


def written(case: RegimeCase) -> str:
    """The array that the kernel writes."""
    return case.arrays[-1].name


def expected_of(case: RegimeCase, tensors: Tensors) -> Expected:
    """The reference for one set of inputs."""
    return _KINDS[case.kernel].expected(case, tensors)


def torch_calls(case: RegimeCase) -> dict[str, Callable[[Tensors], Any]]:
    """torch's own, by peer name; the case's anchor is among them."""
    return _KINDS[case.kernel].torch_calls(case)


def candidates_of(case: RegimeCase) -> list[Any]:
    """Triton's candidates."""
    return list(_KINDS[case.kernel].candidates(case))


@dataclass(frozen=True)
class Kind:
    """The entry of one kind of case."""

    expected: Callable[[RegimeCase, Tensors], Expected]
    torch_calls: Callable[[RegimeCase], dict[str, Callable[[Tensors], Any]]]
    candidates: Callable[[RegimeCase], Iterator[Any]]


def _expected_product(case: ProductCase, t: Tensors) -> Expected:
    error = reference.PRODUCT_ERROR[case.dtype, case.precision]
    slack = FP8_SLACK if case.dtype == "f8E4M3FN" else 1.0
    a, b = t["a"], t["b"]
    pairs = zip(a, b, strict=True) if case.batch else [(a, b)]
    parts = [reference.matmul(x, y, error * slack) for x, y in pairs]
    return Expected(*(torch.cat(found) for found in zip(*parts, strict=True)))


def _torch_product(case: ProductCase) -> dict[str, Callable[[Tensors], Any]]:
    precision = "high" if case.dtype == "f32" else "highest"
    torch.set_float32_matmul_precision(precision)
    if case.dtype == "i8":
        return {"torch": lambda t: torch._int_mm(t["a"], t["b"], out=t["c"])}
    if case.dtype == "f8E4M3FN":
        return {"torch": _scaled_batch if case.batch else _scaled}
    if case.batch:
        return {"torch": lambda t: torch.bmm(t["a"], t["b"], out=t["c"])}
    return {"torch": lambda t: torch.mm(t["a"], t["b"], out=t["c"])}


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


_KINDS = {"product": Kind(_expected_product, _torch_product, _triton_products)}
