"""Grid rules: what they compute, and that no text, however hostile, runs or hangs."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.executable.grid import MAX_LENGTH, check_grid, compile_grid
from tilec.executable.kernel import Parameter

PARAMETERS = (
    Parameter("a", "array", "f16", (None, None), (None, 1)),
    Parameter("n", "scalar", "i32"),
    Parameter("alpha", "scalar", "f32"),
    Parameter("c", "array", "f32", (None, None, 7), (None, None, 1)),
)
VALUES = ((1000, 33), 5, 0.5, (300, 129, 7))


def grid(*texts: str) -> tuple[int, int, int]:
    return compile_grid(texts, PARAMETERS)(VALUES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        ("n", 5),
        ("a.shape[1]", 33),
        ("cdiv(c.shape[0], 128)", 3),
        ("cdiv(c.shape[1], 128) * cdiv(c.shape[0], 64)", 10),
        ("(c.shape[1] - 4) // 2 % 10", 2),
        ("min(n, a.shape[0], 4)", 4),
        ("max(n, -3)", 5),
        ("--n", 5),
        ("-(-a.shape[0] // 128)", 8),
        ("2 + 3 * n", 17),
        ("cdiv(n + 1, 2 + 2)", 2),
        ("cdiv(n,\n  2)", 3),
        ("c.shape[2]", 7),
        ("\tn +\n n", 10),
    ],
)
def test_value(text: str, expected: int):
    assert grid(text) == (expected, 1, 1)


def test_one_to_three_expressions():
    assert grid("1", "n", "a.shape[1]") == (1, 5, 33)
    for count in (0, 4):
        with pytest.raises(ValueError, match="one to three"):
            compile_grid(["1"] * count, PARAMETERS)


def test_the_scalars_a_rule_reads_are_known():
    assert compile_grid(["n * 2", "a.shape[0]"], PARAMETERS).scalars == {1}
    assert compile_grid(["a.shape[0]"], PARAMETERS).scalars == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", r"column 1: unknown parameter 'x'; known: a, n, alpha, c"),
        ("1 + x.shape[0]", r"column 5: unknown parameter 'x'"),
        ("a", r"column 1: 'a' is an array; expected an integer scalar"),
        ("alpha", r"'alpha' is f32; expected an integer scalar"),
        ("n.shape[0]", r"'n' is a scalar and has no shape"),
        ("a.shape[2]", r"axis 2 of 'a', which has 2 dimensions"),
        ("a.shape[True]", r"unsupported expression"),
        ("a.shape[n]", r"unsupported expression"),
        ("a.shape[-1]", r"unsupported expression"),
        ("a.strides[0]", r"unsupported expression 'a.strides\[0\]'"),
        ("n / 2", r"column 1: unsupported expression 'n / 2'; expected integers"),
        ("n ** 2", r"unsupported expression"),
        ("n << 2", r"unsupported expression"),
        ("1.5", r"unsupported expression"),
        ("True", r"unsupported expression"),
        ("'a'", r"unsupported expression"),
        (str(2**63), r"unsupported expression"),
        ("cdiv(1)", r"cdiv takes 2 values, not 1"),
        ("cdiv(*a)", r"unsupported expression '\*a'"),
        ("cdiv(1, b=2)", r"unsupported expression"),
        ("min(1)", r"min takes at least 2 values"),
        ("2 + abs(n)", r"column 5: unknown function 'abs'; known: cdiv, max, min"),
        ("__import__('os')", r"unsupported expression|unknown function"),
        ("().__class__", r"unsupported expression"),
        ("(lambda: 1)()", r"unsupported expression"),
        ("[n for n in a]", r"unsupported expression"),
        ("n if n else 1", r"unsupported expression"),
        ("(n := 2)", r"unsupported expression"),
        ("n, 2", r"unsupported expression"),
        ("", r"unsupported expression|syntax error"),
        ("n + 12if", r"column 7: a letter inside a number"),
        ("0x10", r"column 2: a letter inside a number"),
        ("1_000", r"a letter inside a number"),
        ("1 +", r"column \d+: syntax error"),
        ("1 1", r"column \d+: syntax error"),
        ("1)+(1", r"column 2: syntax error"),
        ("1\n)\n(1", r"syntax error"),
        ("n; n", r"syntax error"),
        ("\x00", r"cannot be parsed|syntax error"),
    ],
)
def test_wrong_text_names_the_place(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        compile_grid([text], PARAMETERS)


def test_not_text():
    with pytest.raises(ValueError, match="is text"):
        compile_grid([3], PARAMETERS)  # type: ignore[list-item]


@pytest.mark.parametrize(
    "text",
    [
        "9" * 10**6,
        "(" * 4000,
        "-" * 4000 + "1",
        "+".join(["n"] * 2000),
        "cdiv(" * 700,
        "9**" * 1000 + "9",
        "[" * 4000,
        "n" * MAX_LENGTH,
    ],
)
def test_hostile_text_is_refused_at_once(text: str):
    begin = time.perf_counter()
    with pytest.raises(ValueError):  # noqa: PT011 - any of the messages above
        compile_grid([text], PARAMETERS)
    assert time.perf_counter() - begin < 1


def test_division_by_zero_and_sizes_out_of_range():
    for text in ("n // (n - 5)", "n % 0", "cdiv(n, 0)"):
        with pytest.raises(ValueError, match="division by zero"):
            grid(text)
    with pytest.raises(ValueError, match=r"grid size -1 on axis x is not in 0..2147483647"):
        grid("n - 6")
    with pytest.raises(ValueError, match=r"grid size 65536 on axis y is not in 0..65535"):
        grid("1", "65536")
    assert grid("0") == (0, 1, 1)


def test_grids_given_by_the_caller():
    assert check_grid(4) == (4, 1, 1)
    assert check_grid([2, 3]) == (2, 3, 1)
    assert check_grid((2, 3, 4)) == (2, 3, 4)
    for wrong in ((), (1, 2, 3, 4), (2**31,), (1, 1, 65536), (-1,)):
        with pytest.raises(ValueError, match="grid"):
            check_grid(wrong)
    for wrong in ((1.0,), "3", None, ("1",), lambda: 1):
        with pytest.raises(TypeError, match="a grid is"):
            check_grid(wrong)


expressions = st.recursive(
    st.sampled_from(["n", "a.shape[0]", "a.shape[1]", "c.shape[1]"]) | st.integers(0, 999).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(" ".join),
        inner.map(lambda e: f"-{e}"),
        st.tuples(st.sampled_from(["min", "max", "cdiv"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
    ),
    max_leaves=12,
)


@given(expressions)
@settings(max_examples=300, deadline=None)
def test_agrees_with_python(text: str):
    class Shape:
        def __init__(self, shape: tuple[int, ...]) -> None:
            self.shape = shape

    names = {"a": Shape(VALUES[0]), "n": 5, "c": Shape(VALUES[3])}
    try:
        expected = eval(text, {"cdiv": lambda p, q: -(-p // q), **names})
    except ZeroDivisionError:
        with pytest.raises(ValueError, match="division by zero"):
            grid(text)
        return
    if 0 <= expected < 2**31:
        assert grid(text) == (expected, 1, 1)
    else:
        with pytest.raises(ValueError, match="axis x"):
            grid(text)


@given(st.text(max_size=40) | st.text("an.shape[0]()+-*/%,mincdvx 1", max_size=40))
@settings(max_examples=500, deadline=None)
def test_any_text_gives_a_grid_or_a_value_error(text: str):
    with contextlib.suppress(ValueError):
        grid(text)
