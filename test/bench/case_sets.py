"""The sets of cases that the build and the run know by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attention_cases import attention_cases
from bench_cases import matmul_cases, memory_cases
from fused_cases import fused_cases
from grouped_cases import grouped_cases, uneven_case
from layer_cases import layer_cases
from product_cases import hopper_cases

SETS: Mapping[str, Callable[[], list[Any]]] = {
    "memory": memory_cases,
    "matmul": matmul_cases,
    "hopper": hopper_cases,
    "attention": attention_cases,
    "fused": lambda: [*fused_cases(), uneven_case()],
    "grouped": grouped_cases,
    "layers": layer_cases,
}

IN_REGIMES = ("hopper", "attention", "fused", "grouped", "layers")
"""Sets that `regimes` measures; the others `measure`."""

USUAL = ["memory", "matmul"]
"""Sets that are built and run where none is named."""
