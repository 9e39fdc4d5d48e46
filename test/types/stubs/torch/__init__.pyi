"""torch is optional, and not there where types are checked: all of it is `Any`."""

from typing import Any

def __getattr__(name: str) -> Any: ...
