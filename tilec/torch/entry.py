"""`tilec.autograd`, as far as it works without torch: it can be imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def autograd(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """The function `forward` with the gradient that `backward` computes.

    `forward(*inputs)` gives two things: its results, a tensor or a tuple of tensors, none of them
    an input; and what `backward` needs, a tuple of tensors (inputs and results among them) and
    numbers. `backward(kept, *gradients)` gets that and a gradient a result, and gives a gradient an
    input, None where there is none. Both launch kernels and call torch as they like. What is made
    takes inputs by position, and gives the results.

    It works in `torch.compile`, `torch.export`, `torch.vmap` and `torch.func.grad`. A second
    derivative is an ArgumentError, and so is a wrong number of gradients.
    """
    # Needs torch, which is optional.
    return importlib.import_module("tilec.torch.autograd").differentiable(forward, backward)
