"""Argument specs and constants as written on a command line."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilec.language as tl
from tilec.call.signature import parse_constant, parse_spec
from tilec.executable.kernel import Facts, Parameter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a:bf16[?,?]",
            Parameter("a", "array", "bf16", (None, None), (None, 1), Facts(16, (1, 1), (1, 1))),
        ),
        (
            " a : f32 [ ?:8 , 128 ; ?:4 , 1 ] @ 4 ",
            Parameter("a", "array", "f32", (None, 128), (None, 1), Facts(4, (8, 128), (4, 1))),
        ),
        ("a:f8e4m3[?]@1", Parameter("a", "array", "f8E4M3FN", (None,), (1,), Facts(1, (1,), (1,)))),
        ("a:f64[?]@1", Parameter("a", "array", "f64", (None,), (1,), Facts(8, (1,), (1,)))),
        ("a:f16[?;0]", Parameter("a", "array", "f16", (None,), (0,), Facts(16, (1,), (1,)))),
        ("n:i64", Parameter("n", "scalar", "i64")),
    ],
)
def test_specs(text: str, expected: Parameter) -> None:
    assert parse_spec(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "wrong argument spec"),
        ("a:bf17[?]", "unknown dtype 'bf17'; known: "),
        ("a:index", "unknown dtype 'index'"),
        ("a:float32[?]", "argument 'a': unknown dtype 'float32'; write f32"),
        ("a:f32[]", "wrong size ''"),
        ("a:f32[x]", "wrong size 'x'; expected"),
        ("a:f32[?:0]", "size 0 is out of range"),
        ("a:f32[?,?;?]", "2 sizes but 1 strides"),
        ("a:f32[?]@3", "power of two"),
        ("a:f32[?]@512", "power of two up to 256"),
        ("a:f32[99999999999]", "out of range"),
        ("a:f32[?,?,?,?,?,?,?,?,?]", "more than 8 dimensions"),
        ("1a:f32", "wrong argument spec"),
    ],
)
def test_wrong_specs(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".*") as caught:
        parse_spec(text)
    assert message in str(caught.value)


@given(st.text(alphabet="ab:f32[?,;1@6x] ", max_size=24))
def test_any_text_is_a_parameter_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(parse_spec(text), Parameter)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128", 128),
        ("-1.5", -1.5),
        ("True", True),
        ("None", None),
        ("tf32", "tf32"),
        ("'128'", "128"),
        ("f16", tl.f16),
        ("tl.f8e4m3", tl.f8e4m3),
        ("auto", tl.auto),
        ("(1, 2)", (1, 2)),
        ("[1]", "[1]"),
        ("1 +", "1 +"),
    ],
)
def test_constants(text: str, expected: Any) -> None:
    found = parse_constant(text)
    assert found == expected
    assert type(found) is type(expected)
