"""The numbers that predictions of time count with stand in one folder, explained, with a record."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from tilec.costs.rates import FITTED, Rates, rates_of
from tilec.hardware.target import TARGETS, Feature

ROOT = Path(__file__).resolve().parents[2]
FORMULAS = {
    "tilec/costs/model.py": {
        *("LOAD_WARPS", "LOADING_REGISTERS", "REGISTER_STEP"),
    },
    "tilec/costs/dram.py": set[str](),
    "tilec/costs/parts.py": set[str](),
    "tilec/costs/units.py": {"FMA_FLOPS"},
    "tilec/costs/tail_model.py": set[str](),
    "tilec/costs/dot_work.py": {"WARP_TILE"},
    "tilec/costs/machine.py": set[str](),
    "tilec/costs/work.py": {"SUM_BYTES"},
    "tilec/costs/kernel_work.py": set[str](),
    "tilec/costs/launch_work.py": {"PANEL_BYTES"},
    "tilec/costs/operand_work.py": set[str](),
    "tilec/ops/aligned_operands.py": set[str](),
    "tilec/costs/computing.py": {"_OF_BYTES", "_SCAN"},
    "tilec/call/auto_tiles.py": {"MOST_TILES", "DEEPENED", "BETWEEN", "SHOWN"},
    "tilec/call/ranked_tiles.py": set[str](),
    "tilec/call/short_rows.py": {
        *("LONGEST", "LONGEST_AXIS", "RANKED", "LONG_STEP", "LEAST", "PER_OCTAVE"),
        *("LEAST_SHARED", "SPREAD"),
    },
    "tilec/costs/streams.py": set[str](),
    "tilec/ops/product_facts.py": set[str](),
    "tilec/ops/product_work.py": {"MOST_WAITING", "ACCUMULATORS_PER_WARP", "MOST_PADDING"},
}
"""Modules that predict, and the numbers that each may name: sizes of formats and instructions, and
what the compiler chooses by itself. What a device takes or reaches is none of them."""
PLAIN = (0.0, 1.0, 1e3)
"""Nothing, all of it, and the step between two units."""
TEXTS = {path: (ROOT / path).read_text() for path in FORMULAS}


@pytest.mark.parametrize("path", FORMULAS)
def test_formulas_name_no_number_of_a_machine(path: str) -> None:
    tree = ast.parse(TEXTS[path])
    named = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_number(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert named == FORMULAS[path]
    tables = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    skipped = {id(leaf) for table in tables for leaf in ast.walk(table)}
    floats = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
        if id(node) not in skipped and node.value not in PLAIN
    ]
    assert floats == []


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    leaves = [leaf for leaf in ast.walk(node) if not isinstance(leaf, (ast.BinOp, ast.operator))]
    return all(isinstance(x, ast.Constant) and isinstance(x.value, (int, float)) for x in leaves)


def test_every_rate_is_explained_and_used() -> None:
    text = "\n".join(TEXTS.values())
    for field in fields(Rates):
        assert f"`{field.name}`" in (Rates.__doc__ or ""), field.name
        if field.name != "record":
            assert re.search(rf"rates(_of\(target\))?\.{field.name}\b", text), field.name


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_rates_whose_record_is_there(name: str) -> None:
    rates = rates_of(TARGETS[name])
    assert not rates.record or (ROOT / "test/bench/results" / rates.record).exists()
    is_measured = name in FITTED or not TARGETS[name].supports(Feature.TCGEN05)
    assert bool(rates.record) == is_measured
    assert rates.shifted.keys() == {16, 32, 64}
    assert 0 < rates.tensor_efficiency <= 1
