"""Gradients of operators of torch's whose schemas have no defaults.

What `torch.library.register_autograd` does, which fills in defaults anew at every call that records
a gradient: 33 of the 57 us that a recorded product took before anything was launched.
"""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_AFTER = torch._C._after_autograd_keyset
_MEMORY = frozenset(
    torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)).raw_repr()
    for name in ("CPU", "CUDA")
)
"""What is left behind autograd of calls that go on to memory: nobody else wants to see them."""


def register(
    library: Any,
    operator: Any,
    compute: Callable[..., Any],
    keep: Callable[..., Any],
    backward: Callable[..., Any],
) -> Callable[..., Any]:
    """Says what an operator computes, and its gradient. `keep(ctx, inputs, output)` keeps what
    `backward(ctx, *gradients)` needs, which gives a gradient, or None, an input.

    Gives what calls the operator, inside `torch.func` as well: torch has no way to a gradient there
    from an operator, but from a function.
    """

    def below(keys: Any, inputs: Sequence[Any]) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            left = keys & _AFTER
            if left.raw_repr() in _MEMORY:
                return compute(*inputs)
            return operator.redispatch(left, *inputs)

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            *inputs, keys = given
            output = below(keys, inputs)
            keep(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
            return (*backward(ctx, *gradients), None)

    def call(keys: Any, *inputs: Any) -> Any:
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*inputs):
            return Recorded.apply(*inputs, keys)
        return below(keys, inputs)

    if any(argument.has_default_value() for argument in operator._schema.arguments):
        raise ValueError(f"{operator}: its schema has defaults, which calls do without")
    Recorded.__name__ = Recorded.__qualname__ = f"GradientOf_{operator._opname}"
    library.impl(operator._opname, compute, "CompositeExplicitAutograd")
    library.impl(operator._opname, call, "Autograd", with_keyset=True)
    return _called(operator, keep, backward)


def _called(
    operator: Any, keep: Callable[..., Any], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """What calls an operator, inside `torch.func` by a function that has its gradient."""

    class Transformed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs: Any) -> Any:
            return operator(*inputs)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            keep(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
            return backward(ctx, *gradients)

    def called(*inputs: Any) -> Any:
        if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
            return Transformed.apply(*inputs)
        return operator(*inputs)

    Transformed.__name__ = Transformed.__qualname__ = f"GradientOf_{operator._opname}"
    return called
