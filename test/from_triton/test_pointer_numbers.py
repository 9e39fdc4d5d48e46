"""Whether there is a pointer, and pointers as numbers and back (`pointer_numbers.py`)."""

from __future__ import annotations

import numpy as np
import pytest

import tilec.triton
from tilec.messages.diagnostics import CompileError
from tilec.runtime.arrays import CUDA, HOST, ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.triton.memory_of import with_one_device

HOST0 = HOST, 0


def weighted(ask: str) -> str:
    """x, times w where `ask` says so."""
    return f"""
module {{
  tt.func public @weighted(%x: !tt.ptr<f32>, %w: !tt.ptr<f32>, %out: !tt.ptr<i32>) {{
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1.000000e+00 : f32
    %pid = tt.get_program_id x : i32
    %p = tt.addptr %x, %pid : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %a = tt.ptr_to_int %w : !tt.ptr<f32> -> i64
    {ask}
    %s = scf.if %is -> (f32) {{
      %q = tt.addptr %w, %pid : !tt.ptr<f32>, i32
      %l = tt.load %q : !tt.ptr<f32>
      scf.yield %l : f32
    }} else {{
      scf.yield %c1 : f32
    }}
    %y = arith.mulf %v, %s : f32
    %o = tt.ptr_to_int %out : !tt.ptr<i32> -> i64
    %f = tt.int_to_ptr %o : i64 -> !tt.ptr<f32>
    %g = tt.addptr %f, %pid : !tt.ptr<f32>, i32
    tt.store %g, %y : !tt.ptr<f32>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(("word", "is_there"), [("ne", True), ("eq", False)])
def test_pointers_that_are_there(word: str, is_there: bool) -> None:
    kernel = tilec.triton.kernel(weighted(f"%is = arith.cmpi {word}, %a, %c0 : i64"))
    x, w = (np.arange(1, 6, dtype=np.float32) * n for n in (1, 10))
    out = np.zeros(5, np.int32)
    kernel.on("emulator:check")[5](x, w, out)
    np.testing.assert_array_equal(out.view(np.float32), x * w if is_there else x)


def test_a_null_pointer_is_an_error() -> None:
    torch = pytest.importorskip("torch")
    kernel = tilec.triton.kernel(weighted("%is = arith.cmpi ne, %a, %c0 : i64"))
    given = torch.ones(5), torch.empty(0), torch.zeros(5, dtype=torch.int32)
    with pytest.raises(ArgumentError, match="'w': an array without memory"):
        kernel.on("emulator")[5](*given)


def test_an_array_without_memory_is_where_the_others_are() -> None:
    gpu, here = ArrayView(512, (4,), (1,), "f32", (CUDA, 1)), ArrayView(0, (0,), (1,), "f32", HOST0)
    found = with_one_device({"lse": here, "x": gpu})
    assert found["lse"].device == found["x"].device == gpu.device
    assert with_one_device({"lse": here})["lse"].device == HOST0


def test_other_arithmetic_of_addresses_is_an_error_at_its_line() -> None:
    ask = "%b = arith.addi %a, %a : i64\n    %is = arith.cmpi ne, %b, %c0 : i64"
    with pytest.raises(CompileError, match=r"k.ttir:10.*only whether it is 0 can be asked"):
        tilec.triton.kernel(weighted(ask), "k.ttir").plan()


LOADED = """
module {
  tt.func public @chosen(%table: !tt.ptr<KIND>, %x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %pid = tt.get_program_id x : i32
    %q = tt.addptr %table, %pid : !tt.ptr<KIND>, i32
    MADE
    %g = tt.addptr %p, %pid : !tt.ptr<f32>, i32
    %v = tt.load %g : !tt.ptr<f32>
    %o = tt.addptr %y, %pid : !tt.ptr<f32>, i32
    tt.store %o, %v : !tt.ptr<f32>
    tt.return
  }
}
"""


@pytest.mark.parametrize(
    ("kind", "made", "what"),
    [
        (
            "!tt.ptr<f32>",
            "%p = tt.load %q : !tt.ptr<!tt.ptr<f32>>",
            "the pointer comes from memory",
        ),
        (
            "i64",
            "%a = tt.load %q : !tt.ptr<i64>\n    %p = tt.int_to_ptr %a : i64 -> !tt.ptr<f32>",
            "an access by a pointer that is made of a number, of no array",
        ),
    ],
)
def test_where_an_array_of_pointers_is_loaded(kind: str, made: str, what: str) -> None:
    text = LOADED.replace("KIND", kind).replace("MADE", made)
    with pytest.raises(CompileError, match=what) as found:
        tilec.triton.kernel(text, "chosen.ttir").plan()
    where, instead = map(str, found.value.notes)
    assert where.endswith("is loaded at chosen.ttir:7:1")
    assert "give the kernel the arrays" in instead


WALKED = """%p = scf.while (%z = %x) : (!tt.ptr<f32>) -> !tt.ptr<f32> {
      %is = arith.cmpi slt, %n, %c0 : i32
      %w = arith.select %is, %x, %y : !tt.ptr<f32>
      scf.condition(%is) %w : !tt.ptr<f32>
    } do {
    ^bb0(%z: !tt.ptr<f32>):
      scf.yield %x : !tt.ptr<f32>
    }"""


def test_which_arguments_a_pointer_may_come_from() -> None:
    text = LOADED.replace("KIND", "i64").replace("MADE", WALKED)
    with pytest.raises(CompileError, match="may come from 'x' or 'y'"):
        tilec.triton.kernel(text).plan()
