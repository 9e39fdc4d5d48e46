"""bitsandbytes: 4-bit and 8-bit quantisation, and optimizers with 8-bit states."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "bitsandbytes-foundation/bitsandbytes"
PACKAGE = "bitsandbytes.backends.triton"


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    for name in ("bitsandbytes", "bitsandbytes.backends", PACKAGE):
        bare_package(name, folder.joinpath(*name.split(".")))


def _of(module: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.{module}")


def _count(draw: Draw) -> int:
    return draw.size(1 << 12, 1 << 24)


def _four_bits(kind: str) -> Any:
    def call(draw: Draw) -> None:
        n, m = _count(draw), _of("kernels_4bit")
        x = draw.normal(n)
        absmax = torch.empty(n // 64, 1, dtype=x.dtype, device=draw.device)
        packed = torch.empty(n // 2, 1, dtype=torch.uint8, device=draw.device)
        m.quantize_4bit_blockwise_triton(x, 64, kind, n // 64, absmax, n, packed)
        m.dequantize_4bit_impl(packed, absmax, 64, kind, x.dtype, torch.empty_like(x))

    return call


def _code(draw: Draw) -> Any:
    """256 values, ascending from -1 to 1."""
    return torch.linspace(-1, 1, 256, device=draw.device) ** 3


def eight_bits(draw: Draw) -> None:
    m = _of("kernels_8bit_quant")
    x = draw.normal(_count(draw), dtype=torch.float32)
    out, absmax = m.quantize_blockwise_triton(x, _code(draw), 256)
    m.dequant_8bit_blockwise(out, absmax, _code(draw), 256, dtype=torch.float32)


def _optimizer(name: str, bits: int) -> Any:
    def call(draw: Draw) -> None:
        m = _of("kernels_optim")
        n = _count(draw)
        p, g = (draw.normal(n, dtype=torch.float32) for _ in range(2))
        has_two = name in ("adam", "ademamix")
        if bits == 32:
            one, two = draw.normal(n, dtype=torch.float32), draw.uniform(n) if has_two else None
            m.optimizer_update_32bit_impl(
                name, g, p, one, two, None, 0.0, 0.0, 0.9, 0.99, 0.9, 0.0, 1e-8, 0.01, 7, 1e-3
            )
            return
        count = 2 if has_two else 1
        states = [*(draw.integers(256, n, dtype=torch.uint8) for _ in range(count)), None]
        maps = [*[_code(draw), _code(draw).abs().sort().values][:count], None]
        absmax = [*(draw.uniform(n // 256) for _ in range(count)), None]
        numbers = (0.9, 0.99, 0.9, 0.0, 1e-8, 7, 1e-3)
        m.optimizer_update_8bit_blockwise_impl(
            name, g, p, *states[:2], *numbers, *maps[:2], *absmax[:2]
        )

    return call


CALLS = {
    "nf4": _four_bits("nf4"),
    "fp4": _four_bits("fp4"),
    "eight_bits": eight_bits,
    **{f"{name}_{bits}": _optimizer(name, bits)
       for name in ("adam", "momentum", "lion", "rmsprop") for bits in (32, 8)},
}  # fmt: skip
