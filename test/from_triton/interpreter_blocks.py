"""Block pointers and descriptors for `interpreter.py`: tiles of arrays, cut at their bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from interpreter_rules import Pointer, load_elements, store_elements

from tilec.triton.program import Op


@dataclass
class Block:
    """Tiles of `shape` of an array; `padding` stands where it ends."""

    base: Pointer
    sizes: list[int]
    strides: list[int]
    offsets: list[int]
    shape: tuple[int, ...]
    padding: float = 0.0

    def places(self, checked: tuple[int, ...]) -> tuple[Pointer, Any]:
        """Pointers to a tile's elements, and which are inside along the dimensions `checked`."""
        at, inside = np.asarray(self.base.at), np.asarray(True)
        rank = len(self.shape)
        for dim in range(rank):
            along = np.arange(self.shape[dim]).reshape([-1 if d == dim else 1 for d in range(rank)])
            index = along + self.offsets[dim]
            at = at + index * self.strides[dim]
            if dim in checked:
                inside = inside & (index >= 0) & (index < self.sizes[dim])
        return self.base.moved(at), np.broadcast_to(inside, np.shape(at))


def _made(op: Op, base: Pointer, *numbers: Any) -> Block:
    found = [int(number) for number in numbers]
    shape = op.result.type.block
    assert shape is not None
    rank = len(shape)
    offsets = found[2 * rank :] or [0] * rank
    padding = np.nan if op.attributes.get("padding", "").startswith("2") else 0.0
    return Block(base, found[:rank], found[rank : 2 * rank], offsets, shape, padding)


def _advanced(op: Op, block: Block, *by: Any) -> Block:
    pairs = zip(block.offsets, by, strict=True)
    return replace(block, offsets=[one + int(two) for one, two in pairs])


def _checked(op: Op) -> tuple[int, ...]:
    text = op.attributes.get("boundaryCheck", "").partition(":")[2]
    return tuple(int(n) for n in re.findall(r"\d+", text))


def _read(op: Op, block: Block, checked: tuple[int, ...], padding: float) -> Any:
    pointer, inside = block.places(checked)
    other = np.asarray(padding).astype(pointer.array.dtype)
    return load_elements(op, pointer, inside, other).reshape(op.result.type.shape)


def load(op: Op, pointer: Any, *rest: Any) -> Any:
    """tt.load of either kind of pointer."""
    if not isinstance(pointer, Block):
        return load_elements(op, pointer, *rest)
    padding = np.nan if op.attributes.get("padding", "").startswith("2") else 0.0
    return _read(op, pointer, _checked(op), padding)


def store(op: Op, pointer: Any, value: Any, *rest: Any) -> None:
    """tt.store to either kind of pointer."""
    if not isinstance(pointer, Block):
        store_elements(op, pointer, value, *rest)
        return
    places, inside = pointer.places(_checked(op))
    store_elements(op, places, value, inside)


def _descriptor_load(op: Op, block: Block, *at: Any) -> Any:
    moved = replace(block, offsets=[int(one) for one in at])
    return _read(op, moved, tuple(range(len(block.shape))), block.padding)


def _descriptor_store(op: Op, block: Block, *rest: Any) -> None:
    *at, value = rest
    moved = replace(block, offsets=[int(one) for one in at])
    places, inside = moved.places(tuple(range(len(block.shape))))
    store_elements(op, places, np.asarray(value).reshape(block.shape), inside)


BLOCK_RULES: Mapping[str, Callable[..., Any]] = {
    "tt.make_tensor_ptr": _made,
    "tt.make_tensor_descriptor": _made,
    "tt.advance": _advanced,
    "tt.load": load,
    "tt.store": store,
    "tt.descriptor_load": _descriptor_load,
    "tt.descriptor_store": _descriptor_store,
}
