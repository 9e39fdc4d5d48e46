"""One entry a kernel: which arrays it takes and how its output is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import reference
import torch
from reference import Comparison, compare_rows
from tensors import DTYPES

EPS = 1e-5
"""The epsilon every layer norm here runs with."""

OUTPUTS: Mapping[str, str] = {
    "vector_add": "z",
    "softmax": "y",
    "layer_norm": "y",
    "row_sum": "y",
    "matmul": "c",
    "product_by_rows": "d",
}
"""Kernel -> the array it writes."""


@dataclass(frozen=True)
class Check:
    """What `compare` needs besides the tensors.

    `exact`: matrix products must be exact. `slack`: multiplies the error a matrix product may have.
    """

    kernel: str
    precision: str = "ieee"
    exact: bool = False
    slack: float = 1.0


def call_arguments(kernel: str, tensors: Sequence[torch.Tensor]) -> tuple[object, ...]:
    """The kernel's arguments in order, scalars included."""
    return (*tensors, EPS) if kernel == "layer_norm" else tuple(tensors)


def compare(check: Check, tensors: Mapping[str, torch.Tensor]) -> Comparison:
    """Compares the output among `tensors` (by parameter name) with the reference."""
    return _COMPARE[check.kernel](check, tensors)


def _vector_add(check: Check, t: Mapping[str, torch.Tensor]) -> Comparison:
    return compare_rows(t["z"], (t["x"], t["y"]), reference.vector_add)


def _softmax(check: Check, t: Mapping[str, torch.Tensor]) -> Comparison:
    return compare_rows(t["y"], (t["x"],), reference.softmax)


def _layer_norm(check: Check, t: Mapping[str, torch.Tensor]) -> Comparison:
    def expected(x: torch.Tensor) -> reference.Expected:
        return reference.layer_norm(x, t["weight"], t["bias"], EPS)

    return compare_rows(t["y"], (t["x"],), expected)


def _row_sum(check: Check, t: Mapping[str, torch.Tensor]) -> Comparison:
    return compare_rows(t["y"], (t["x"],), reference.row_sum)


_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def _matmul(check: Check, t: Mapping[str, torch.Tensor]) -> Comparison:
    error = reference.PRODUCT_ERROR[_DTYPE_NAMES[t["a"].dtype], check.precision] * check.slack
    comparison = Comparison()
    comparison.add(t["c"], reference.matmul(t["a"], t["b"], 0.0 if check.exact else error))
    return comparison


def _product_by_rows(check: Check, t: Mapping[str, torch.Tensor]) -> Comparison:
    return _matmul(check, {"a": t["a"], "b": t["bt"].T, "c": t["d"]})


_COMPARE = {
    "vector_add": _vector_add,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "row_sum": _row_sum,
    "matmul": _matmul,
    "product_by_rows": _product_by_rows,
}
