"""Numbers annotated as Python's: which dtype they have, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl


@tilec.kernel(device="emulator", grid=(1,))
def annotated(out: tl.array, n: int = 1, x: float = 1.0, b: bool = True):
    """Which dtype each annotated number has: 7 / 2 tells f32 from i32."""
    tl.store(out, 0, (n // 2).to(tl.f32))
    tl.store(out, 1, (x / 2).to(tl.f32))
    tl.store(out, 2, tl.where(b, 1.0, 0.0))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"n": 7, "x": 7}, [3, 3.5, 1]),
        ({"n": np.int64(7), "x": np.float64(0.5), "b": False}, [3, 0.25, 0]),
        ({"n": True, "x": True}, [0, 0.5, 1]),
    ],
)
def test_annotations_of_python_say_what_a_number_is(named: Any, expected: list[float]) -> None:
    out = np.full(3, np.nan, np.float32)
    annotated(out, **named)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"n": 7.0}, "argument 'n': expected an integer, found float"),
        ({"n": np.float32(7)}, "argument 'n': expected an integer, found float32"),
        ({"n": "7"}, "argument 'n': expected an integer, found str"),
        ({"x": "7"}, r"argument 'x': expected a number \(f32\), found str"),
        ({"b": 2}, "argument 'b': 2 is not in the range of i1"),
        ({"b": 1.0}, r"argument 'b': expected an integer \(i1\), found float"),
    ],
)
def test_other_numbers_than_annotated_are_refused(named: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        annotated(np.zeros(3, np.float32), **named)


def test_other_specs_than_annotated_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 'n' is f32; expected one of i8, i16, i32, i64"):
        annotated.compile(["out:f32[?]", "n:f32", "x:f32", "b:i1"], target="sm_80")
