"""The schemas of torch operators whose gradients `operator_gradient.register` says; without torch.

`register` refuses defaults where torch is: this looks at the sources, so that a host without torch
sees it as well.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path
    for path in sorted((ROOT / "tilec").rglob("*.py"))
    if "operator_gradient import register" in path.read_text()
]


def schema_texts(source: str) -> list[str]:
    """The strings of a source that speak of tensors or of a schema's other types, docstrings not
    among them."""
    tree = ast.parse(source)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    texts = (node.value for node in constants if id(node) not in said)
    types = ("Tensor ", "Tensor? ", "bool ", "SymInt? ", "float ")
    return [text for text in texts if isinstance(text, str) and any(t in text for t in types)]


def test_products_and_attention_are_looked_at() -> None:
    assert {path.name for path in FILES} >= {"torch.py", "torch_attention.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_schema_has_a_default(path: Path) -> None:
    texts = schema_texts(path.read_text())
    assert any("Tensor" in text for text in texts)
    assert not [text for text in texts if "=" in text]


def test_a_default_is_seen() -> None:
    """That of attention's `causal` made `tilec.ops.torch` fail at import."""
    source = '_OPTIONS = (\n    "bool causal=False, int? window=None, "\n    "float dropout=0.0"\n)'
    assert [text for text in schema_texts(source) if "=" in text]
