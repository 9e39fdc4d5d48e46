"""Numbers that steer what the compiler does: each has one home, and its reason beside it.

Counted are constants of modules that are made of numbers alone. Rates of machines stand in
`tilec/costs/rates`, explained in their class; the emulator's are what it emulates, the examples'
their authors'. `python test/unit/test_constants.py` lists them all.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tilec", "dialects", "passes", "runtime")
ELSEWHERE = ("tilec/costs/rates", "tilec/examples", "runtime/emulator/")
FEWEST_WORDS = 3
"""Of a reason: "CUDA driver API, cuTensorMapEncodeTiled" is the shortest source."""


class Constant(NamedTuple):
    """`value`: as Python writes it. `reason`: the text below it, "" if there is none."""

    path: str
    line: int
    names: str
    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.names} = {self.value}"


def constants_of(path: str, text: str) -> Iterator[Constant]:
    """Those of a module, in its order."""
    body = ast.parse(text).body
    for number, node in enumerate(body):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if _is_made_of_numbers(value):
            names = ", ".join(map(ast.unparse, targets))
            reason = _text(body[number + 1]) if number + 1 < len(body) else ""
            yield Constant(path, node.lineno, names, ast.unparse(value), reason)


_PLAIN = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
_TOGETHER = (ast.Tuple, ast.List, ast.Set, ast.Dict)


def _is_made_of_numbers(value: ast.expr) -> bool:
    leaves = [x for x in ast.walk(value) if not isinstance(x, (*_PLAIN, *_TOGETHER))]
    numbers = [x for x in leaves if isinstance(x, ast.Constant) and type(x.value) in (int, float)]
    return bool(leaves) and numbers == leaves


def _text(node: ast.stmt) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    found = node.value.value if is_text else ""  # type: ignore[attr-defined]
    return found if isinstance(found, str) else ""


@cache
def constants() -> tuple[Constant, ...]:
    """All that are counted."""
    found: list[Constant] = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(ELSEWHERE):
                found += constants_of(name, path.read_text())
    return tuple(found)


def test_every_constant_has_its_reason_beside_it() -> None:
    assert len(constants()) > 200
    without = [str(one) for one in constants() if len(one.reason.split()) < FEWEST_WORDS]
    assert without == []


def test_a_number_has_one_home() -> None:
    """Constants of one name and one value, in two modules, are one fact twice."""
    homes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in constants():
        homes[one.names.lstrip("_"), one.value].append(f"{one.path}:{one.line}")
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A = 3\n", ["A"]),
        ("A: int = -(1 << 4)\n", ["A"]),
        ("A, B = 3, 0.5\n", ["(A, B)"]),
        ("A = {128: 3}\n", ["A"]),
        ("A = 3 * B\n", []),
        ("A = f(3)\n", []),
        ("A = True\n", []),
        ("A = 'x'\n", []),
        ("def f():\n    A = 3\n", []),
    ],
)
def test_what_is_counted(text: str, found: list[str]) -> None:
    assert [one.names for one in constants_of("m.py", text)] == found


def test_a_reason_stands_right_below() -> None:
    text = 'A = 3\n"""Of three, by table 3."""\nB = 4\nC = 5\n\nprint()\n"""Of five."""\n'
    assert [one.reason for one in constants_of("m.py", text)] == ["Of three, by table 3.", "", ""]


if __name__ == "__main__":
    for each in constants():
        print(f"{each}\n    {' '.join(each.reason.split())}", file=sys.stdout)
