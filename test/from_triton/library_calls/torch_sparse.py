"""PyTorch's own kernels in Triton's language: matrices of which blocks are stored."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw

REPOSITORY = "pytorch/pytorch"


def prepare(folder: Path) -> None:
    """`folder`: none is needed, the kernels are torch's."""


def _ops() -> Any:
    return importlib.import_module("torch.sparse._triton_ops")


def _blocks(draw: Draw, size: int, block: int, kept: float, dtype: Any = torch.float16) -> Any:
    """A square matrix of which so many of its blocks are stored."""
    mask = draw.uniform(size // block, size // block) < kept
    whole = mask.repeat_interleave(block, 0).repeat_interleave(block, 1)
    return (draw.normal(size, size, dtype=dtype) * whole).to_sparse_bsr((block, block))


def products(draw: Draw) -> None:
    size, columns = draw.size((128, 64), (4096, 4096))
    bsr = _blocks(draw, size, 32, 0.3)
    dense = draw.normal(size, columns, dtype=torch.float16)
    m = _ops()
    m.bsr_dense_mm(bsr, dense)
    m.bsr_dense_addmm(draw.normal(size, columns, dtype=torch.float16), bsr, dense, alpha=0.5)
    m.bsr_scatter_mm(bsr, dense)


def sampled(draw: Draw) -> None:
    """Products of which the stored blocks are wanted, and softmax of those."""
    size, inner = draw.size((128, 64), (4096, 128))
    bsr = _blocks(draw, size, 32, 0.3)
    a, b = (
        draw.normal(size, inner, dtype=torch.float16),
        draw.normal(inner, size, dtype=torch.float16),
    )
    m = _ops()
    m.sampled_addmm(bsr, a, b, alpha=0.5, beta=0.25)
    m.bsr_softmax(bsr)


CALLS = {"products": products, "sampled": sampled}
