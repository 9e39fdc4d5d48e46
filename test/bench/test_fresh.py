"""What a seed draws for `fresh.py`: the same cases whatever is left out, each with a kernel; those
that look rows up, scan backward or add to memory give on the emulator what NumPy does."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from fresh_build import FILES, MAKERS, draw

Arrays = dict[str, np.ndarray]


def embedded(t: Arrays, eps: float) -> Any:
    v = t["words"][t["tokens"]] + t["places"][np.arange(len(t["tokens"])) % len(t["places"])]
    v = v - v.mean(1, keepdims=True)
    return v / np.sqrt((v * v).mean(1, keepdims=True) + eps) * t["weight"] + t["bias"]


def margins(t: Arrays, margin: float) -> Any:
    rows = np.arange(len(t["x"]))
    losses = np.maximum(t["x"] - t["x"][rows, t["labels"]][:, None] + margin, 0)
    losses[rows, t["labels"]] = 0
    return losses.mean(1)


def returns(t: Arrays, discount: float) -> Any:
    out, after = np.zeros(t["rewards"].shape), 0.0
    for i in reversed(range(out.shape[1])):
        after = t["rewards"][:, i] + np.where(t["ends"][:, i] != 0, 0.0, discount) * after
        out[:, i] = after
    return out


def added(t: Arrays) -> Any:
    table = np.zeros(t["table"].shape)
    np.add.at(table, t["tokens"], t["dy"])
    return table


REFERENCES: dict[str, Callable[..., Any]] = {
    "embed_tokens": embedded,
    "margin_loss": margins,
    "discounted_returns": returns,
    "embedding_slope": added,
    "edge_messages": lambda t: np.maximum(t["a"][t["sources"]] + t["b"][t["targets"]], 0),
}


def filled(case: Any) -> Arrays:
    """Small numbers, which every dtype holds; indices of rows that there are."""
    rng = np.random.default_rng(0)
    least = min(n for s in case.arrays if s.dtype[0] in "bf" for n in s.shape)
    found = {}
    for spec in case.arrays:
        if spec.name in case.outputs:
            found[spec.name] = np.zeros(spec.shape, np.float32)
        elif spec.dtype in ("i32", "i8"):
            kind = np.int32 if spec.dtype == "i32" else np.int8
            found[spec.name] = rng.integers(0, min(least, 3), spec.shape).astype(kind)
        else:
            found[spec.name] = rng.standard_normal(spec.shape).astype(np.float32)
    return found


@pytest.mark.parametrize("name", list(REFERENCES))
def test_kernels_give_what_numpy_does(name: str) -> None:
    (case,) = draw(5, 1, [name], small=True)
    t = filled(case)
    kernel = next(vars(file)[name] for file in FILES if name in vars(file))
    kernel(*t.values(), *case.scalars, **dict(case.constants))
    wanted = REFERENCES[name](t, *case.scalars)
    (out,) = case.outputs
    assert np.abs(t[out] - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_cases_do_not_depend_on_what_is_left_out() -> None:
    every = {case.name for case in draw(3, 2)}
    assert {case.name for case in draw(3, 2, ["sobel", "geglu"])} <= every
    assert {case.kernel for case in draw(3, 1)} == set(MAKERS)


@pytest.mark.parametrize("theme", ["rows", "updates", "places"])
def test_every_kernel_has_peers(theme: str) -> None:
    folder = Path(__file__).parent
    tables = (folder / f"fresh_{theme}_triton.py", folder / "fresh_references.py")
    named = [
        {node.value for node in ast.walk(ast.parse(file.read_text())) if type(node) is ast.Constant}
        for file in tables
    ]
    kernels = {"rows": FILES[0].ROWS, "updates": FILES[1].UPDATES, "places": FILES[2].PLACES}
    for name in kernels[theme]:
        assert all(name in table for table in named), name
