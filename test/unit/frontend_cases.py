"""Compiles kernels given as text, for tests of the frontend."""

from __future__ import annotations

import importlib.util
import itertools
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tilec.call.signature import parse_spec
from tilec.frontend import build_module

PRELUDE = """\
import math
import tilec
import tilec.language as tl
from tilec.language import gpu
"""
PRELUDE_LINES = PRELUDE.count("\n")

_NUMBERS = itertools.count()


def load_text(text: str, directory: Path) -> ModuleType:
    """Imports Python text as a module of its own."""
    name = f"frontend_case_{next(_NUMBERS)}"
    path = directory / f"{name}.py"
    path.write_text(PRELUDE + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(
    text: str, directory: Path, specs: Sequence[str], constants: dict[str, Any] | None = None
) -> str:
    """The tile module of the function `k` in a text, printed."""
    module = load_text(text, directory)
    function = getattr(module.k, "fn", module.k)
    grid = getattr(module.k, "grid", None)
    parameters = [parse_spec(spec) for spec in specs]
    demands = module.k.demands() if function is not module.k else {}
    made = build_module(function, parameters, constants or {}, grid=grid, **demands)
    return str(made)
