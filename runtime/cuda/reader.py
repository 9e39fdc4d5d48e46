"""How generated code reads each kind of array."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView


@dataclass(frozen=True)
class Reader:
    """Expressions for one kind of array, `{0}` in place of the argument.

    `pointer`: its address. `key`: what tells it from arrays with other plans; its alignment, too,
    where `tells_alignment`. `recorded`: whether a framework may record what is done to it.
    """

    framework: str
    pointer: str
    key: str
    tells_alignment: bool = False
    recorded: str = ""

    def address(self) -> Callable[[Any], int]:
        """What gives an array's address."""
        return eval(f"lambda array: {self.pointer}".format("array"), {})

    def function(self, more: str = "", **names: Any) -> Callable[[Any], tuple[int, Any]]:
        """What gives an array's address and its key, to which `more` adds, in terms of `names`."""
        key = f"({self.key}, {more})" if more else f"({self.key})"
        return eval(f"lambda array: ({self.pointer}, {key})".format("array"), names)


_TORCH = Reader(
    "torch",
    "{0}.data_ptr()",
    "{0}.dtype, {0}.shape, {0}.stride(), {0}.get_device(), {0}.is_neg()",
    recorded="{0}.requires_grad",
)
_LIST = Reader("torch", "{0}.pointer", "{0}.form", tells_alignment=True)
"""Of a list of tensors that `known_lists` has found again."""
_CUPY = Reader("cupy", "{0}.data.ptr", "{0}.dtype, {0}.shape, {0}.strides, {0}.device.id")
_VIEW = Reader("", "{0}.pointer", "{0}.form", tells_alignment=True)


def reader_of(value: Any) -> Reader | None:
    """The reader of an array; None if it must be described anew at every call.

    JAX arrays are: only `__dlpack__` orders JAX's streams. So are arrays that name their producer.
    """
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(value, torch.Tensor):
        return _TORCH
    if isinstance(value, (list, tuple)) and torch is not None:
        return _LIST if all(isinstance(one, torch.Tensor) for one in value) else None
    if cupy is not None and isinstance(value, cupy.ndarray):
        return _CUPY
    if isinstance(value, ArrayView) and value.framework == "tilec":
        return _VIEW
    return None


def readers_of(arrays: list[Any]) -> tuple[Reader, ...] | None:
    """The readers of all `arrays`; None if one has none or two frameworks set the stream."""
    readers = [reader_of(array) for array in arrays]
    known = tuple(reader for reader in readers if reader is not None)
    if len(known) < len(readers) or len({reader.framework for reader in known} - {""}) > 1:
        return None
    return known
