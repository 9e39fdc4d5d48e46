"""Scalars that are computed twice (`same_numbers.py`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from target_names import MAIN
from test_tiles_in_turn import check, product

import tilec.triton
from tilec.triton.normalize import normalized
from tilec.triton.program import walk
from tilec.triton.reader import read_kernel

KERNELS = Path(__file__).parent / "kernels"


@pytest.fixture(params=MAIN)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compiles for this target."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


@pytest.mark.parametrize("sizes", [(97, 200, 300), (33, 65, 20)])
def test_tiles_stored_apart(target: str, sizes: tuple[int, int, int]) -> None:
    text = (KERNELS / "tiles_stored_apart.ttir").read_text()
    kernel = tilec.triton.kernel(text, "k.ttir").on("emulator:check")
    arguments, wanted = product(*sizes)
    kernel[3](*arguments)
    check(arguments[2], wanted)
    assert "gather or scatter" not in kernel.report(*arguments, grid=3)


def numbers(*lines: str, before: str = "") -> str:
    """A kernel that stores %x and %y of these lines, made of the arguments %m and %n."""
    body = "\n    ".join(lines)
    return f"""
module {{
  tt.func public @k(%out: !tt.ptr<i32>, %m: i32, %n: i32) {{
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    {body}
    %q = tt.addptr %out, %c1 : !tt.ptr<i32>, i32
    tt.store %out, %x : !tt.ptr<i32>
    tt.store %q, %y : !tt.ptr<i32>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["%x = arith.remsi %m, %n : i32", "%y = arith.remsi %m, %n : i32"], 1),
        (["%x = arith.remsi %m, %n : i32", "%y = arith.remsi %n, %m : i32"], 2),
        (["%x = arith.remsi %m, %n : i32", "%y = arith.divsi %m, %n : i32"], 2),
        (
            ["%a = arith.addi %m, %c1 : i32", "%b = arith.subi %m, %c1 : i32",
             "%c = arith.addi %b, %c2 : i32",
             "%x = arith.divsi %a, %n : i32", "%y = arith.divsi %c, %n : i32"],
            1,
        ),
        (
            ["%a = arith.minsi %m, %n : i32", "%b = arith.minsi %m, %n : i32",
             "%x = arith.divsi %a, %n : i32", "%y = arith.divsi %b, %n : i32"],
            2,
        ),
    ],
    ids=["same", "other order", "other op", "same sums", "one behind the other"],
)  # fmt: skip
def test_of_two_that_are_computed_alike_one_is_left(lines: list[str], left: int) -> None:
    function = normalized(read_kernel(numbers(*lines), "k.ttir"))
    live = [op for op in walk(function.blocks[0]) if op.name == "tt.store"]
    seen, todo = set(), [value for op in live for value in op.operands]
    while todo:
        value = todo.pop()
        op = value.owner
        if value not in seen and hasattr(op, "operands"):
            seen.add(value)
            todo += op.operands
    found = [
        v.owner.name for v in seen if v.owner.name in ("arith.remsi", "arith.divsi", "arith.minsi")
    ]
    assert len(found) == left


def test_what_two_branches_compute_stays_in_both(target: str) -> None:
    """Neither is there for the other, nor behind both."""
    sides = "\n".join(
        f"""      %{side} = arith.divsi %m, %n : i32
      %{side}t = arith.muli %{side}, %c{number} : i32
      scf.yield %{side}t : i32"""
        + ("\n    } else {" if number == 1 else "\n    }")
        for number, side in ((1, "a"), (2, "b"))
    )
    lines = [
        "%f = arith.cmpi sgt, %m, %n : i32",
        f"%x = scf.if %f -> (i32) {{\n{sides}",
        "%y = arith.divsi %m, %n : i32",
    ]
    kernel = tilec.triton.kernel(numbers(*lines), "k.ttir").on("emulator:check")
    for m, n, wanted in ((17, 5, [3, 3]), (5, 5, [2, 1])):
        out = np.full(2, -1, np.int32)
        kernel[1](out, m, n)
        assert out.tolist() == wanted
