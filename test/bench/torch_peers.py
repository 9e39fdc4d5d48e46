"""What torch offers for each case; matrix products are cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from bench_cases import BenchCase
from kernel_checks import EPS

Tensors = Mapping[str, torch.Tensor]
TorchCall = Callable[[Tensors], torch.Tensor]
"""Gives the result, in the output array where torch can write into one."""


def torch_call(case: BenchCase) -> TorchCall:
    """torch's own kernel for the case; raises at the call where torch has none."""
    if case.kernel != "matmul":
        return _CALLS[case.kernel]
    torch.set_float32_matmul_precision("high" if case.precision == "tf32" else "highest")
    if case.dtype == "i8":
        return lambda t: torch._int_mm(t["a"], t["b"], out=t["c"])
    return _scaled_product if case.dtype.startswith("f8") else _product


def _vector_add(t: Tensors) -> torch.Tensor:
    return torch.add(t["x"], t["y"], out=t["z"])


def _softmax(t: Tensors) -> torch.Tensor:
    return torch.softmax(t["x"], -1, out=t["y"])


def _layer_norm(t: Tensors) -> torch.Tensor:
    x = t["x"]
    return torch.nn.functional.layer_norm(x, x.shape[-1:], t["weight"], t["bias"], EPS)


def _row_sum(t: Tensors) -> torch.Tensor:
    return torch.sum(t["x"], 1, dtype=torch.float32, out=t["y"])


def _product(t: Tensors) -> torch.Tensor:
    return torch.mm(t["a"], t["b"], out=t["c"])


_ONES: dict[torch.device, torch.Tensor] = {}


def _scaled_product(t: Tensors) -> torch.Tensor:
    """cuBLASLt's fp8 product; it has none of two e5m2 operands."""
    device = t["a"].device
    if device not in _ONES:
        _ONES[device] = torch.ones((), device=device)
    one = _ONES[device]
    return torch._scaled_mm(
        t["a"], t["b"], scale_a=one, scale_b=one, out_dtype=t["c"].dtype, use_fast_accum=True
    )


_CALLS: dict[str, TorchCall] = {
    "vector_add": _vector_add,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "row_sum": _row_sum,
}
