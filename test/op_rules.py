"""What `passes/rewriting/op_tables.py` asks of its users holds in every test: importing this module
sees to it.

An op has no hash: a dict or set that would be keyed by one raises at once. A table raises where it
would answer with what was said of an op that was erased since: another op may lie there by now.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, NoReturn

from mlir import ir
from mlir.passmanager import PassManager

from tilec.passes.rewriting.op_tables import OpMap, OpSet, address

_BASE = ir.Operation.__mro__[1]
"""What Operation and OpView have in common."""


def _no_hash(op: ir.Operation) -> NoReturn:
    raise TypeError(f"'{op.name}' as a key: its hash changes with the op; use OpMap or OpSet")


_of_thread = threading.local()


def _tables() -> weakref.WeakSet[_Items]:
    """The tables of this thread: what others erase meanwhile is of other programs."""
    if not hasattr(_of_thread, "tables"):
        _of_thread.tables = weakref.WeakSet()
    return _of_thread.tables


class _Items(dict):
    """What a table holds by address; `erased`: the keys whose op is no more."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.erased: set[int] = set()
        _tables().add(self)

    def _alive(self, key: int) -> int:
        if key in self.erased:
            raise AssertionError("a table of ops is asked for what was said of an erased op")
        return key

    def __getitem__(self, key: int) -> Any:
        return super().__getitem__(self._alive(key))

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self._alive(key))

    def get(self, key: int, default: Any = None) -> Any:
        return super().get(self._alive(key), default)

    def setdefault(self, key: int, default: Any = None) -> Any:
        return super().setdefault(self._alive(key), default)

    def pop(self, key: int, *default: Any) -> Any:
        return super().pop(self._alive(key), *default)

    def __delitem__(self, key: int) -> None:
        super().__delitem__(self._alive(key))

    def __setitem__(self, key: int, value: Any) -> None:
        self.erased.discard(key)
        super().__setitem__(key, value)


def _watch(table: type, name: str) -> None:
    """Tables of a class hold `_Items`, under `name`."""
    make = table.__init__

    def made(self: Any, *arguments: Any) -> None:
        make(self, *arguments)
        setattr(self, name, _Items(getattr(self, name)))

    table.__init__ = made


def _inside(op: ir.Operation) -> list[int]:
    """The addresses of an op and of all that it holds."""
    found = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.append(address(inner))
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit)
    return found


def _note_erased() -> None:
    erase, run = _BASE.erase, PassManager.run

    def noted(op: ir.Operation) -> None:
        if _tables():
            gone = _inside(op)
            for items in _tables():
                items.erased.update(key for key in gone if dict.__contains__(items, key))
        erase(op)

    def run_noted(self: PassManager, *arguments: Any) -> None:
        for items in _tables():
            items.erased.update(items)
        run(self, *arguments)

    _BASE.erase, PassManager.run = noted, run_noted


_BASE.__hash__ = _no_hash
_watch(OpMap, "_items")
_watch(OpSet, "_ops")
_note_erased()
