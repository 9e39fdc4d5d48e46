"""The bindings of MLIR have stubs for part of themselves: to type checkers all of it is `Any`."""

from typing import Any

def __getattr__(name: str) -> Any: ...
