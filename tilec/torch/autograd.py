"""Functions that launch kernels, as one operation of torch's that has a gradient."""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tilec.runtime.errors import ArgumentError


def differentiable(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """See `tilec.autograd`."""
    name = getattr(forward, "__name__", "forward")
    function = _forward_function(name, forward, _gradients_of(name, backward))

    @functools.wraps(forward)
    def call(*inputs: Any) -> Any:
        if _records(inputs):
            *outputs, places = function.apply(*inputs)
            results = tuple(outputs[: len(outputs) - _own(places) - 1])
        else:
            results = _checked(name, inputs, forward(*inputs))[0]
        return results if len(results) != 1 else results[0]

    return call


def _forward_function(
    name: str, forward: Callable[..., Any], gradients_of: Callable[..., Any]
) -> Any:
    """Makes forward a function of torch's. Its outputs are the results, `_mark` of them, what is
    kept besides inputs and results, and where all that is kept is found."""

    class Forward(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs: Any) -> tuple[Any, ...]:
            results, kept = _checked(name, inputs, forward(*inputs))
            own: list[Any] = []
            places = tuple([_place(value, inputs, results, own) for value in kept])
            return (*results, _mark(results), *own, places)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
            *tensors, ctx.places = output
            ctx.results, ctx.inputs = len(tensors) - _own(ctx.places) - 1, len(inputs)
            results, mark = tensors[: ctx.results], tensors[ctx.results]
            parts = {"input": inputs, "result": results, "own": tensors[ctx.results + 1 :]}
            ctx.mark_non_differentiable(*parts["own"])
            found = [parts[kind][place] for kind, place in ctx.places if kind in parts]
            ctx.save_for_backward(mark, *found)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            mark, *saved = ctx.saved_tensors
            left = iter(saved)
            kept = [value if kind == "number" else next(left) for kind, value in ctx.places]
            return gradients_of(mark, ctx.inputs, tuple(kept), gradients[: ctx.results])

    return _with_signature(Forward)


def _gradients_of(name: str, backward: Callable[..., Any]) -> Callable[..., Any]:
    """Makes backward a function of torch's that refuses a gradient of its own."""

    def checked(inputs: int, kept: Sequence[Any], given: Sequence[Any]) -> tuple[Any, ...]:
        found = backward(kept, *given)
        if not isinstance(found, tuple) or len(found) != inputs:
            wanted = f"a tuple of {inputs} gradients, one an input"
            raise ArgumentError(f"{name}: expected {wanted}, found {_said(found)}")
        return found

    class Backward(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(mark: Any, inputs: int, count: int, *values: Any) -> Any:
            return checked(inputs, values[:count], values[count:])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *_: Any) -> Any:
            raise ArgumentError(f"{name}: tilec.autograd has no second derivative")

    _with_signature(Backward)

    def gradients_of(
        mark: Any, inputs: int, kept: tuple[Any, ...], given: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        if torch.compiler.is_compiling():  # which refuses a second derivative itself
            return checked(inputs, kept, given)
        return Backward.apply(mark, inputs, len(kept), *kept, *given)

    return gradients_of


def _with_signature(function: Any) -> Any:
    """The same function of torch's, which binds each call to the signature of its forward: Python
    works that out anew in 45 us where it is not there."""
    function.forward.__signature__ = inspect.signature(function.forward)
    return function


def _records(inputs: Sequence[Any]) -> bool:
    """Whether torch wants the derivative of what is done to inputs, of one or the other mode."""
    if torch.is_grad_enabled() and any([getattr(t, "requires_grad", False) for t in inputs]):
        return True
    return torch.autograd.forward_ad._current_level >= 0


def _checked(
    name: str, inputs: Sequence[Any], given: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What forward gave: results and what is kept, both as tuples."""
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[1], tuple):
        raise ArgumentError(
            f"{name}: expected its results and a tuple of what backward needs, found {_said(given)}"
        )
    results = given[0] if isinstance(given[0], tuple) else (given[0],)
    for result in results:
        if not isinstance(result, torch.Tensor) or _index(result, inputs) is not None:
            raise ArgumentError(f"{name}: expected new tensors as results, found {_said(result)}")
    return results, given[1]


def _place(
    value: Any, inputs: Sequence[Any], results: Sequence[Any], own: list[Any]
) -> tuple[str, Any]:
    """Where a value that is kept will be found; a tensor of its own is added to `own`."""
    if not isinstance(value, torch.Tensor):
        return ("number", value)
    for kind, tensors in (("input", inputs), ("result", results)):
        number = _index(value, tensors)
        if number is not None:
            return (kind, number)
    own.append(value)
    return ("own", len(own) - 1)


def _own(places: Sequence[tuple[str, Any]]) -> int:
    """How many tensors are kept that are neither inputs nor results."""
    return len([kind for kind, _ in places if kind == "own"])


def _index(wanted: Any, values: Sequence[Any]) -> int | None:
    for number, value in enumerate(values):
        if value is wanted:
            return number
    return None


def _mark(results: Sequence[Any]) -> Any:
    """A tensor without elements that depends on the inputs, for torch: by it backward does, too,
    whatever it is given, and a second derivative is asked of it."""
    return results[0].new_empty(0, dtype=torch.float32)


def _said(value: Any) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
