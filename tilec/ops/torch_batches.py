"""`torch.vmap` of the operators: a batch is one call, as one more leading dimension.

Where an operator has no such dimension (products of vectors, packed sequences, caches, dropout,
whose mask would be another one) the batch is a call an element. Imported by `tilec.ops.torch`.
"""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_ENDS = {0: 2, 1: 2, 2: 1, 6: 1, 7: 1, 8: 2}
"""Of a product's arrays, by their places: how many dimensions are its rows and columns. The others
are leading ones: a, b, bias, row_scale, column_scale, residual."""
_SCALE = 4
"""The place of a product's scale of all results: with one each, a batch's are made one by one."""
_DROPOUT = 12, 13
"""Where an attention, and its gradients, say how much is dropped."""

Rule = Callable[..., tuple[Any, Any]]


def register_batches(library: Any, rules: dict[Any, Callable[[Any], Rule]]) -> None:
    """Says of each operator what vmap does."""
    for operator, rule in rules.items():
        torch.library.register_vmap(operator._schema.name, rule(operator), lib=library)


def batched_product(operator: Any) -> Rule:
    """The rule of products."""

    def rule(batch: Any, dims: Sequence[Any], *inputs: Any) -> tuple[Any, Any]:
        a, b = (_rank(x, dim) for x, dim in zip(inputs[:2], dims[:2], strict=True))
        if dims[_SCALE] is not None or min(a, b) < 2:
            return _one_by_one(operator, batch, dims, inputs)
        lead, given = max(a, b) - 2, list(inputs)
        for place, ends in _ENDS.items():
            if dims[place] is not None:
                given[place] = _in_front(inputs[place], dims[place], lead + ends)
        if dims[0] is dims[1] is None:
            given[0] = _repeated(inputs[0], batch.batch_size, lead + 2)
        return operator(*given), 0

    return rule


def batched_product_gradients(operator: Any) -> Rule:
    """The rule of a product's gradients."""

    def rule(batch: Any, dims: Sequence[Any], *inputs: Any) -> tuple[Any, Any]:
        arrays, rest = inputs[:3], inputs[3:]
        ranks = [_rank(x, dim) for x, dim in zip(arrays, dims, strict=False)]
        given = [
            _repeated(x, batch.batch_size, max(ranks))
            if dim is None
            else _in_front(x, dim, max(ranks))
            for x, dim in zip(arrays, dims, strict=False)
        ]
        found = []
        for x, rank, slope, wanted in zip(
            given[1:], ranks[1:], operator(*given, *rest), rest[:2], strict=True
        ):
            sizes = x.shape[x.dim() - rank :]
            found.append(slope.reshape(batch.batch_size, *sizes) if wanted else slope)
        return tuple(found), tuple(0 if wanted else None for wanted in rest[:2])

    return rule


def batched_attention(operator: Any) -> Rule:
    """The rule of attention."""

    def rule(batch: Any, dims: Sequence[Any], *inputs: Any) -> tuple[Any, Any]:
        if inputs[_DROPOUT[0]] or dims[3] is not None or any(x is not None for x in inputs[4:8]):
            return _one_by_one(operator, batch, dims, inputs)
        return _folded(operator, batch, dims, inputs, 3, 2)

    return rule


def batched_attention_gradients(operator: Any) -> Rule:
    """The rule of attention's gradients."""

    def rule(batch: Any, dims: Sequence[Any], *inputs: Any) -> tuple[Any, Any]:
        if inputs[_DROPOUT[1]] or any(x is not None for x in inputs[6:9]):
            return _one_by_one(operator, batch, dims, inputs)
        return _folded(operator, batch, dims, inputs, 6, 3)

    return rule


def _folded(
    operator: Any, batch: Any, dims: Sequence[Any], inputs: Sequence[Any], arrays: int, results: int
) -> tuple[Any, Any]:
    """One call, in which the batch is part of the first dimension of so many arrays and results."""
    size = batch.batch_size
    moved = [
        x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
        for x, dim in zip(inputs[:arrays], dims[:arrays], strict=True)
    ]
    own = moved[0].shape[1]
    found = operator(*(x.flatten(0, 1) for x in moved), *inputs[arrays:])
    apart = [x.unflatten(0, (size, own)) for x in found[:results]]
    more = found[results:]
    return (*apart, *more), (*[0] * len(apart), *[None] * len(more))


def _one_by_one(
    operator: Any, batch: Any, dims: Sequence[Any], inputs: Sequence[Any]
) -> tuple[Any, Any]:
    """A call for each element of the batch."""
    found = [
        operator(*(x if d is None else x.select(d, n) for x, d in zip(inputs, dims, strict=True)))
        for n in range(batch.batch_size)
    ]
    if isinstance(found[0], torch.Tensor):
        return torch.stack(found), 0
    return tuple(map(torch.stack, zip(*found, strict=True))), (0,) * len(found[0])


def _rank(x: Any, dim: int | None) -> int:
    """How many dimensions an element has."""
    return x.dim() - (dim is not None)


def _in_front(x: Any, dim: int, rank: int) -> Any:
    """The batch as the first dimension, in front of as many as `rank` says."""
    moved = x.movedim(dim, 0)
    return moved[(slice(None), *[None] * (rank + 1 - x.dim()))]


def _repeated(x: Any, size: int, rank: int) -> Any:
    """An array that is the same for all elements, with a batch in front."""
    return x[(None,) * (rank + 1 - x.dim())].expand(size, *[-1] * rank)
