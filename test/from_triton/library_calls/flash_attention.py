"""flash-attention: what stands beside its attention in Triton's language."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "Dao-AILab/flash-attention"


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    for name in ("flash_attn", "flash_attn.ops", "flash_attn.ops.triton", "flash_attn.utils"):
        bare_package(name, folder.joinpath(*name.split(".")))


def _of(module: str) -> Any:
    return importlib.import_module(f"flash_attn.{module}")


def _rows(draw: Draw) -> Any:
    return draw.normal(*draw.size((7, 200), (4096, 4096)), grad=True)


def norms(draw: Draw) -> None:
    m = _of("ops.triton.layer_norm")
    x, residual = _rows(draw), _rows(draw)
    w, b = (draw.normal(x.shape[1], dtype=torch.float32, grad=True) for _ in range(2))
    draw.backward(m.layer_norm_fn(x, w, b))
    draw.backward(*m.rms_norm_fn(x, w, None, residual=residual, prenorm=True))


def norms_with_dropout(draw: Draw) -> None:
    """Two of one sum, rows scaled."""
    m = _of("ops.triton.layer_norm")
    x, x1, residual = (_rows(draw) for _ in range(3))
    w, b, w1, b1 = (draw.normal(x.shape[1], dtype=torch.float32, grad=True) for _ in range(4))
    y = m.layer_norm_fn(
        x, w, b, residual=residual, x1=x1, weight1=w1, bias1=b1, dropout_p=0.2, prenorm=True
    )
    draw.backward(*y)
    draw.backward(m.layer_norm_fn(x, w, b, rowscale=draw.normal(x.shape[0])))


def rotary(draw: Draw) -> None:
    b, n, h, d = draw.size((2, 20, 3, 32), (8, 2048, 32, 128))
    x = draw.normal(b, n, h, d)
    cos, sin = (draw.uniform(n, d // 2, dtype=x.dtype) for _ in range(2))
    f = _of("ops.triton.rotary").apply_rotary
    f(x, cos, sin)
    f(x, cos, sin, interleaved=True, conjugate=True)
    half = n // 2
    starts = torch.arange(0, 2 * b + 1, dtype=torch.int32, device=draw.device) * half
    f(x.reshape(b * n, h, d), cos, sin, cu_seqlens=starts, max_seqlen=half)
    f(x[:, :half], cos, sin, seqlen_offsets=draw.integers(half, b, dtype=torch.int32))


def loss(draw: Draw) -> None:
    x = _rows(draw)
    labels = draw.integers(x.shape[1], x.shape[0])
    labels[::5] = -100
    f = _of("ops.triton.cross_entropy").cross_entropy_loss
    draw.backward(f(x, labels, label_smoothing=0.1, logit_scale=0.7, lse_square_scale=1e-4)[0])


CALLS = {
    "norms": norms,
    "norms_with_dropout": norms_with_dropout,
    "rotary": rotary,
    "loss": loss,
}
