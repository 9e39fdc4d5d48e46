"""`CompiledKernel.writes`: the arrays that a kernel may change, whichever way it stores."""

from __future__ import annotations

from typing import Any

import pytest
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.examples.matmul import matmul

ALIGNED = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]


@tilec.kernel(grid=lambda y: y.shape[0])
def moves(x: tl.array, y: tl.array, z: tl.array, i: tl.array, WAY: tl.const):
    row = tl.program_id(0)
    at = tl.load(i, (row,), ())
    value = tl.load(x, (row,), ())
    if WAY == "store":
        tl.store(y, (row,), value)
    elif WAY == "scatter":
        tl.scatter(y, (at,), value)
    elif WAY == "add":
        tl.atomic_add(y, (at,), value)
    elif WAY == "both":
        tl.store(y, (row,), value)
        tl.store(z, (row,), value)


@pytest.mark.parametrize(
    ("way", "writes"),
    [("store", ("y",)), ("scatter", ("y",)), ("add", ("y",)), ("both", ("y", "z")), ("no", ())],
)
def test_stores_scatters_and_atomics_count_and_loads_do_not(way: str, writes: Any) -> None:
    specs = ["x:f32[?]", "y:f32[?]", "z:f32[?]", "i:i32[?]"]
    assert moves.compile(specs, {"WAY": way}, target="sm_80").writes == writes


@pytest.mark.parametrize("target", MAIN)
def test_so_do_tensor_maps(target: str) -> None:
    found = matmul.compile(ALIGNED, target=target, sizes={n: (4096, 4096) for n in "abc"})
    assert any(recipe.stores for recipe in found.tensor_maps) == (target != "sm_80")
    assert found.writes == found.written() == ("c",)


def test_where_nobody_looked_any_array_may_be_written() -> None:
    found = moves.compile(
        ["x:f32[?]", "y:f32[?]", "z:f32[?]", "i:i32[?]"], {"WAY": "no"}, target="sm_80"
    )
    unknown = type(found)(**{**vars(found), "writes": None})
    assert (found.written(), unknown.written()) == ((), ("x", "y", "z", "i"))
