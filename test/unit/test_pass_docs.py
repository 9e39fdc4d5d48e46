"""What the docstrings of passes show exists: every op by its name, with its attributes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilec.dialects import gpu_tile, tile
from tilec.dialects.op import TileOp

ROOT = Path(__file__).resolve().parents[2]
OPS = {
    kind.OPERATION_NAME: kind
    for package in (tile, gpu_tile)
    for kind in vars(package).values()
    if isinstance(kind, type) and issubclass(kind, TileOp) and hasattr(kind, "OPERATION_NAME")
}
_SHOWN = re.compile(
    r'"((?:gpu_)?tile\.\w+)"(?:\([^{}()\n]*\))?(?:[ ]*\{(\w[^{}]*(?:\{[^}]*\})?)\})?'
)


def shown(text: str) -> Iterator[tuple[str, list[str]]]:
    """The ops that a text shows, with the names of their attributes."""
    for name, attributes in _SHOWN.findall(text):
        outer = re.sub(r"\{[^}]*\}", "", attributes)
        yield name, re.findall(r"(\w+) =", outer)


def test_what_is_looked_for_is_found() -> None:
    text = 'a "tile.dot"(%a, %b) {options = {instruction = "x"}} b "gpu_tile.sync"() {w = 4, m = 1}'
    assert list(shown(text)) == [("tile.dot", ["options"]), ("gpu_tile.sync", ["w", "m"])]
    assert list(shown('"gpu_tile.num_clusters" {\n  "tile.load"')) == [
        ("gpu_tile.num_clusters", []),
        ("tile.load", []),
    ]


@pytest.mark.parametrize("folder", ["passes", "tilec"])
def test_the_ops_in_docstrings_exist(folder: str) -> None:
    assert len(OPS) > 70
    wrong = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
                continue
            for name, attributes in shown(ast.get_docstring(node, clean=False) or ""):
                known = dir(OPS[name]) if name in OPS else ()
                missing = [one for one in attributes if one not in known]
                if name not in OPS or missing:
                    wrong.append(f"{path.relative_to(ROOT)}: {name} {missing}")
    assert wrong == []
