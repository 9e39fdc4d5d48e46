"""What calls of libraries are given: random tensors, small or as large as in practice."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from pathlib import Path
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Draw:
    """Draws tensors on `device`. `is_large`: sizes of practice, else such as an emulator takes."""

    def __init__(self, device: str, is_large: bool) -> None:
        self.device, self.is_large = device, is_large
        self.half = torch.bfloat16 if is_large else torch.float16
        """Triton's interpreter, which judges the small ones, has no arithmetic of bfloat16."""

    def size(self, small: T, large: T) -> T:
        """One of both."""
        return large if self.is_large else small

    def normal(self, *shape: int, dtype: Any = None, scale: float = 1.0, grad: bool = False) -> Any:
        """Of the normal distribution times `scale`; of 16 bits, unless a dtype is given."""
        x = (torch.randn(shape, device=self.device) * scale).to(dtype or self.half)
        return x.requires_grad_(grad)

    def uniform(
        self, *shape: int, dtype: Any = torch.float32, low: float = 0.0, high: float = 1.0,
        grad: bool = False,
    ) -> Any:  # fmt: skip
        """From `low` to `high`."""
        x = (torch.rand(shape, device=self.device) * (high - low) + low).to(dtype)
        return x.requires_grad_(grad)

    def integers(self, end: int, *shape: int, dtype: Any = torch.int64) -> Any:
        """Below `end`."""
        return torch.randint(0, end, shape, device=self.device, dtype=dtype)

    def backward(self, *outputs: Any) -> None:
        """Gradients of random directions."""
        outs = [x for x in outputs if isinstance(x, torch.Tensor) and x.requires_grad]
        torch.autograd.backward(outs, [torch.randn_like(x) for x in outs])


def bare_package(name: str, folder: Path, **names: Any) -> None:
    """A package whose `__init__` is not run, since most import more than their kernels need; it
    has `names`."""
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        vars(module).update(names)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module


def stand_in(name: str, **names: Any) -> None:
    """A module that has `names` alone, for what a library imports and its kernels do not need."""
    if name not in sys.modules:
        sys.modules[name] = module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(module).update(names)
