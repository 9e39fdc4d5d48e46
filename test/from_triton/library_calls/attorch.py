"""attorch: PyTorch's modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw

REPOSITORY = "BobMcDear/attorch"


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    sys.path.insert(0, str(folder))


def _made(draw: Draw, name: str, *given: Any, **named: Any) -> Any:
    """A module in training, on the device of the drawn tensors."""
    return getattr(importlib.import_module("attorch"), name)(*given, **named).to(draw.device)


def _rows(draw: Draw) -> Any:
    shape = draw.size((7, 200), (4096, 4096))
    return draw.normal(*shape, dtype=torch.float32, grad=True)


def activations(draw: Draw) -> None:
    for name in ("GELU", "SiLU", "Mish", "Hardswish", "SELU", "Softplus", "LogSigmoid", "Tanh"):
        draw.backward(_made(draw, name)(_rows(draw)))
    draw.backward(_made(draw, "GELU", drop_p=0.3)(_rows(draw)))
    draw.backward(_made(draw, "GLU", act_func="sigmoid")(_rows(draw)))
    draw.backward(_made(draw, "Dropout", 0.3)(_rows(draw)))


def softmaxes(draw: Draw) -> None:
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        draw.backward(_made(draw, name, dim=-1)(_rows(draw)))


def norms(draw: Draw) -> None:
    x = _rows(draw)
    draw.backward(_made(draw, "LayerNorm", x.shape[1], device=draw.device)(x))
    draw.backward(_made(draw, "RMSNorm", x.shape[1], device=draw.device)(x))


def batch_norm(draw: Draw) -> None:
    n, c, h = draw.size((2, 8, 6), (32, 256, 28))
    x = draw.normal(n, c, h, h, dtype=torch.float32, grad=True)
    draw.backward(_made(draw, "BatchNorm2d", c, act_func="relu", device=draw.device)(x))


def losses(draw: Draw) -> None:
    x = _rows(draw)
    labels = draw.integers(x.shape[1], x.shape[0])
    draw.backward(_made(draw, "CrossEntropyLoss")(x, labels))
    draw.backward(_made(draw, "NLLLoss")(x, labels))
    for name in ("L1Loss", "MSELoss", "HuberLoss", "SmoothL1Loss"):
        draw.backward(_made(draw, name)(x, _rows(draw).detach()))


def products(draw: Draw) -> None:
    m, n, k = draw.size((70, 48, 96), (4096, 4096, 4096))
    x = draw.normal(m, k, dtype=torch.float32, grad=True)
    draw.backward(_made(draw, "Linear", k, n, act_func="gelu", device=draw.device)(x))


def convolutions(draw: Draw) -> None:
    n, c, h, o = draw.size((2, 16, 9, 32), (32, 64, 56, 64))
    x = draw.normal(n, c, h, h, dtype=torch.float32)
    with torch.no_grad():
        _made(draw, "Conv2d", c, o, 3, padding=1, device=draw.device)(x)


CALLS = {
    "activations": activations,
    "softmaxes": softmaxes,
    "norms": norms,
    "batch_norm": batch_norm,
    "losses": losses,
    "products": products,
    "convolutions": convolutions,
}
