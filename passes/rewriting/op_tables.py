"""Tables and sets of ops: what was said of an op is found again after the op has changed.

MLIR's Python hashes an op by what it is at the time: its attributes, operands and the types of its
results. Two ops are equal if they are the same one. A dict that is keyed by an op loses it with
the next change of any of these, but for the few lookups that happen to begin at its place: it is
lost in most processes and found in some. `OpMap` and `OpSet` know an op by where it lies in memory,
as MLIR does, and have the order of insertion: an order by address would differ from process to
process, and the code with it. No other dict or set has an op for its key; in tests an op has no
hash (`test/op_rules.py`). Values and blocks may be keys: their hash is their address. A set of
them has no order that may be seen.

An address is free once its op is erased, and another op may get it. Who erases an op while a table
that holds it is still asked, takes it out first, and what is inside it; `test/op_rules.py` raises
where a table answers with what was said of an erased op.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any, TypeVar

from mlir import ir

Said = TypeVar("Said")
Op = ir.Operation | ir.OpView

_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_CAPSULE = b"mlir.ir.Operation._CAPIPtr"
"""MLIR_PYTHON_CAPSULE_OPERATION of mlir-c/Bindings/Python/Interop.h, which has no other way."""


def address(op: Op) -> int:
    """The address of an op: one number for its Operation and its OpView, until it is erased."""
    return _pointer_in(op._CAPIPtr, _CAPSULE)


class OpMap(MutableMapping[Op, Said]):
    """A dict whose keys are ops, in the order of their insertion."""

    def __init__(self, items: Iterable[tuple[Op, Said]] = ()) -> None:
        self._items: dict[int, tuple[Op, Said]] = {}
        for op, said in items:
            self[op] = said

    def __getitem__(self, op: Op) -> Said:
        return self._items[address(op)][1]

    def __setitem__(self, op: Op, said: Said) -> None:
        self._items[address(op)] = op, said

    def __delitem__(self, op: Op) -> None:
        del self._items[address(op)]

    def __contains__(self, op: object) -> bool:
        return address(op) in self._items

    def get(self, op: Op, default: Any = None) -> Any:
        """Gives what was said of an op, else the default. Raises nothing, unlike a `Mapping`'s."""
        found = self._items.get(address(op))
        return default if found is None else found[1]

    def __iter__(self) -> Iterator[Op]:
        return (op for op, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)


class OpSet(MutableSet[Op]):
    """A set of ops, in the order of their insertion."""

    def __init__(self, ops: Iterable[Op] = ()) -> None:
        self._ops = {address(op): op for op in ops}

    def __contains__(self, op: object) -> bool:
        return address(op) in self._ops

    def __iter__(self) -> Iterator[Op]:
        return iter(self._ops.values())

    def __len__(self) -> int:
        return len(self._ops)

    def add(self, op: Op) -> None:
        """Puts an op in."""
        self._ops.setdefault(address(op), op)

    def update(self, ops: Iterable[Op]) -> None:
        """Adds several ops."""
        for op in ops:
            self.add(op)

    def discard(self, op: Op) -> None:
        """Takes an op out, if it is in."""
        self._ops.pop(address(op), None)


def order_of(ops: Iterable[Op]) -> OpMap[int]:
    """The number of each op in a list."""
    return OpMap((op, number) for number, op in enumerate(ops))
