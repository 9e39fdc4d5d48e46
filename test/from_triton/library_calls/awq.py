"""AutoAWQ: products with 4-bit weights."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "casper-hansen/AutoAWQ"


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    for name in ("awq", "awq.modules", "awq.modules.triton"):
        bare_package(name, folder.joinpath(*name.split(".")))


def _weights(draw: Draw) -> tuple[Any, Any, Any, int]:
    """Eight 4-bit numbers in 32 bits, scales and zeros of groups of 128."""
    k, n = draw.size((128, 128), (4096, 4096))
    packed = draw.integers(2**31 - 1, k, n // 8, dtype=torch.int32)
    scales = draw.uniform(k // 128, n, dtype=torch.float16, low=0.001, high=0.01)
    return packed, scales, draw.integers(2**31 - 1, k // 128, n // 8, dtype=torch.int32), k


def _gemm() -> Any:
    return importlib.import_module("awq.modules.triton.gemm")


def dequantize(draw: Draw) -> None:
    packed, scales, zeros, _ = _weights(draw)
    _gemm().awq_dequantize_triton(packed, scales, zeros)


def product(draw: Draw) -> None:
    packed, scales, zeros, k = _weights(draw)
    for rows in (draw.size(3, 16), draw.size(40, 256)):
        x = draw.normal(rows, k, dtype=torch.float16)
        _gemm().awq_gemm_triton(x, packed, scales, zeros, split_k_iters=8)


CALLS = {"dequantize": dequantize, "product": product}
