"""The table of demands: every layer and the page say what it says, and nobody says it again.

`python test/unit/test_demands.py` writes the table of tilec/language/README.md anew.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlir import ir

import tilec
import tilec.language as tl
from tilec.dialects.context import make_context
from tilec.dialects.demands import attribute_of, value_of
from tilec.frontend.calls import signature_of
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError
from tilec.terms import demands
from tilec.terms.demands import KERNEL_DEMANDS, LOOP_DEMANDS, Demand

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "tilec" / "language" / "README.md"
BEGIN, END = "<!-- from tilec/terms/demands.py -->\n", "<!-- end -->\n"
ROWS = {**KERNEL_DEMANDS, **LOOP_DEMANDS}
CONSTANTS = {row.name: name for name, row in vars(demands).items() if isinstance(row, Demand)}


def values(row: Demand) -> list[Any]:
    """The values of a row's examples, as authors write them."""
    return [ast.literal_eval(text.partition("=")[2] or text) for text in row.examples]


def tables() -> str:
    """What the page is to show."""
    lines = ["| demand | of a kernel, met or an error with the reason |", "|---|---|"]
    lines += map(_line, KERNEL_DEMANDS.values())
    lines += ["", "| demand | of a loop, `tl.range(..., stages=4)`, likewise |", "|---|---|"]
    lines += map(_line, LOOP_DEMANDS.values())
    return "\n".join(lines) + "\n"


def _line(row: Demand) -> str:
    return f"| {', '.join(f'`{text}`' for text in row.examples)} | {row.text} |"


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text().split(BEGIN)[1].split(END)[0] == tables()


def test_a_row_has_its_name_wherever_it_is_found() -> None:
    assert {name: row.name for name, row in ROWS.items()} == {name: name for name in ROWS}
    assert {name.upper() for name in ROWS} == set(CONSTANTS.values())


def test_what_a_loop_takes_is_what_editors_see() -> None:
    parameters = signature_of(tl.range).parameters.values()
    keywords = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert keywords == {name: row.default for name, row in LOOP_DEMANDS.items()}


@pytest.mark.parametrize("name", ROWS)
def test_examples_are_right_and_survive_ir(name: str) -> None:
    row = ROWS[name]
    assert row.examples[0].startswith(f"{name}=")
    with make_context(), ir.Location.unknown():
        for value in map(row.in_ir, values(row)):
            assert row.allows(value)
            assert value_of(attribute_of(value)) == value


STRANGE = (0, 1 << 40, 2.0, "", "such", (), ("hilbert", 12), ("rows", True), {}, None, ast)


@pytest.mark.parametrize("name", [name for name in ROWS if name != "settled"])
def test_nothing_strange_is_allowed(name: str) -> None:
    row = ROWS[name]
    assert [value for value in STRANGE if row.allows(row.in_ir(value))] == []


def test_only_names_are_settled() -> None:
    allowed = demands.SETTLED.allows
    assert allowed(("a", "b"))
    assert not allowed("a")
    assert not allowed(("a", 1))


def test_help_shows_each() -> None:
    text = " ".join((inspect.getdoc(tilec.kernel) or "").split())
    for row in KERNEL_DEMANDS.values():
        assert f"{', '.join(row.examples)}: {row.text}." in text


def test_a_wrong_name_is_refused_where_it_stands() -> None:
    for refused in (
        lambda: tilec.kernel(num_warp=4),
        lambda: tilec.kernel(grid=1, num_warp=4)(values),
    ):
        with pytest.raises(ValueError, match=r"unknown demand 'num_warp'; .*\nhelp: did you mean"):
            refused()


BY_HAND = {name: row for name, row in ROWS.items() if row.not_by_hand}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_kernel_written_by_hand_refuses_what_is_its_own_to_meet(name: str) -> None:
    of_loop = name in LOOP_DEMANDS
    value = values(BY_HAND[name])[0]

    def by_hand(b: tl.array, STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None):
        for _ in tl.range(0, 4, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
            gpu.sync()
        tl.store(b, 0, 1.0)

    kernel = tilec.kernel(by_hand, grid=1, num_warps=1, **({} if of_loop else {name: value}))
    constants = {name.upper(): value} if of_loop else {}
    message = f"{name} was asked for, but a kernel that calls tilec.language.gpu "
    with pytest.raises(CompileError, match=message + re.escape(BY_HAND[name].not_by_hand)):
        kernel.compile(["b:f32[?]"], constants, target="sm_90a")


# Nobody names one again --------------------------------------------------------------------------

HAND_ON = ("language", "frontend", "call", "costs", "tuning", "cli")
CARRIERS = (
    *(p for room in HAND_ON for p in (ROOT / "tilec" / room).glob("*.py")),
    *(ROOT / "passes" / "checks").glob("*.py"),
    *(ROOT / "dialects").glob("*.py"),
)
"""What hands demands on, or could: but for the passes that meet them."""

MAY_NAME = {
    "frontend/kernel_module.py": {"num_warps"},  # layouts of explicit kernels are for so many
    "frontend/builder.py": {"num_warps"},
    "frontend/tile_layouts.py": {"num_warps"},
    "frontend/tl_gpu.py": {"num_warps"},
    "frontend/tl_memory.py": {"order"},  # of accesses to memory
    "frontend/tl_sorting.py": {"order"},  # of elements
    "frontend/tl_shape.py": {"order"},  # of dimensions
    "language/memory.py": {"order", "cluster"},
    "language/elsewhere.py": {"num_warps", "warp_specialize"},  # what others call them
    "language/control.py": set(LOOP_DEMANDS),  # the stub
    "call/ranked_tiles.py": {"cluster"},
    "call/tile_choice.py": {"cluster"},  # of a prediction
    "cli/check.py": {"cluster"},  # of a PTX program
    "cli/compile.py": {"num_warps"},  # of a text, too
    "cli/opt.py": {"num_warps"},
    "checks/ring_play.py": {"cluster", "num_warps"},  # of CTAs whose rings are played
    "checks/ring_player.py": {"cluster"},
    "call/auto_tiles.py": {"order"},  # of choices
    "call/jit.py": {"order"},
    "call/shared_code.py": {"cluster", "order"},
    "costs/dram.py": {"cluster"},
    "costs/kernel_work.py": {"stages"},  # predicted
    "costs/launch_work.py": {"cluster"},
    "costs/model.py": {"cluster", "stages"},
    "costs/operand_work.py": {"cluster"},
    "costs/work.py": {"cluster", "stages"},  # predicted
    "tuning/measurement.py": {"order"},  # of timings
    "tuning/tune.py": {"order"},
}
"""Where such a word means something else, or is asked for by its own name, and why."""


def names_in(path: Path) -> Iterator[str]:
    """Variables, parameters, keywords, attributes and whole strings of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg or ""
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


def test_a_demand_is_named_in_its_row_alone() -> None:
    named: dict[str, set[str]] = {}
    for path in CARRIERS:
        place = f"{path.parent.name}/{path.name}"
        named[place] = {name for name in names_in(path) if name in ROWS}
    needless = {place: names - MAY_NAME.get(place, set()) for place, names in named.items()}
    assert {place: names for place, names in needless.items() if names} == {}
    assert {place for place, names in MAY_NAME.items() if names - named[place]} == set()


def test_an_attribute_is_spelt_in_its_row_alone() -> None:
    attributes = {row.attribute for row in ROWS.values()}
    files = [p for folder in ("tilec", "dialects", "passes") for p in (ROOT / folder).rglob("*.py")]
    likely = [path for path in files if any(name in path.read_text() for name in attributes)]
    assert [path for path in likely if attributes & {*names_in(path)}] == []
    assert likely  # pages of passes show them


def test_somebody_meets_each() -> None:
    """One that nobody reads would be dropped in silence."""
    files = [*(ROOT / "passes").rglob("*.py"), *(ROOT / "dialects").glob("*/*.py")]
    read: set[str] = set()
    texts = [path.read_text() for path in (*files, ROOT / "tilec" / "compile" / "compiler.py")]
    for text in texts:
        for node in ast.walk(ast.parse(text)) if "demands" in text else ():
            if isinstance(node, ast.ImportFrom) and node.module == "tilec.terms.demands":
                read |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "demands":
                read.add(node.attr)
    assert {*CONSTANTS.values()} - read == set()


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + tables() + END + rest.partition(END)[2])
