"""Control flow of the language on the emulator: loops, branches, returns, helpers, unrolling."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from one_program import f32, i32, run

import tilec
import tilec.language as tl
from tilec.runtime.emulator.errors import EmulatorError


@tilec.kernel
def collatz(start: tl.array, steps: tl.array):
    n = tl.load(start, 0, ())
    count = 0
    while n != 1:
        if n % 2 == 0:  # noqa: SIM108 - the statement is what is tested
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    tl.store(steps, 0, count)


@pytest.mark.parametrize("start", [1, 2, 7, 27])
def test_while(start: int) -> None:
    steps = np.zeros(1, np.int32)
    run(collatz, np.array([start], np.int32), steps)
    n, count = start, 0
    while n != 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    assert steps[0] == count


@tilec.kernel
def first_at_least(x: tl.array, limit: tl.i32, out: tl.array):
    found = -1
    seen = 0
    for i in range(x.shape[0]):
        value = tl.load(x, i, ())
        if value < 0:
            continue
        seen += 1
        if value >= limit:
            found = i
            break
    tl.store(out, 0, found)
    tl.store(out, 1, seen.to(tl.i64))


@pytest.mark.parametrize("limit", [0, 5, 40, 1000])
def test_break_and_continue(limit: int) -> None:
    x = i32(37)
    out = np.zeros(2, np.int64)
    run(first_at_least, x, limit, out)
    found, seen = -1, 0
    for i, value in enumerate(x):
        if value < 0:
            continue
        seen += 1
        if value >= limit:
            found = i
            break
    assert tuple(out) == (found, seen)


@tilec.kernel
def early_return(x: tl.array, n: tl.i32, out: tl.array):
    if n < 0:
        tl.store(out, 0, -1)
        return
    if n == 0:
        tl.store(out, 0, 0)
    elif n == 1:
        tl.store(out, 0, 1)
        return
    tl.store(out, 1, n)


@pytest.mark.parametrize(("n", "expected"), [(-3, (-1, 9)), (0, (0, 0)), (1, (1, 9)), (5, (9, 5))])
def test_return_in_branches(n: int, expected: tuple[int, int]) -> None:
    out = np.full(2, 9, np.int32)
    run(early_return, np.zeros(1, np.float32), n, out)
    assert tuple(out) == expected


def sign(value):
    """Returns from branches, which the call merges."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0


def swap(pair):
    first, second = pair
    return second, first


@tilec.kernel
def helpers(x: tl.array, out: tl.array):
    for i in range(x.shape[0]):
        tl.store(out, i, sign(tl.load(x, i, ())))
    a, b = swap((1, 2))
    tl.static_assert((a, b) == (2, 1))


def test_helper_functions() -> None:
    x = i32(11)
    x[3] = 0
    out = np.zeros(11, np.int32)
    run(helpers, x, out)
    np.testing.assert_array_equal(out, np.sign(x))


@tilec.kernel
def unrolled(x: tl.array, out: tl.array, N: tl.const = 4):
    total = 0.0
    for i in tl.static_range(N):
        if i == 1:
            continue
        if i == 3:
            break
        total += tl.load(x, i, ())
    for scale in (1.0, 10.0, 100.0):
        total += scale
    values = [2 * i for i in range(3)]
    for position, value in enumerate(values):
        total += position * value
    tl.store(out, 0, total)


def test_static_loops() -> None:
    x = f32(4)
    out = np.zeros(1, np.float32)
    run(unrolled, x, out)
    np.testing.assert_allclose(out[0], x[0] + x[2] + 111 + (0 + 2 + 8), rtol=1e-6)


@tilec.kernel
def opened(x: tl.array, y: tl.array, out: tl.array):
    at = (1, out.shape[1] - 3)
    first, second = (tl.load(array, (*at, 2), 4) for array in (x, y))
    pair = (first * 10, second)
    tl.store(out, (*at[1:], 0), tl.maximum(*pair))


def test_tuples_are_opened() -> None:
    x, y = f32(2, 3, 8), f32(2, 3, 8) * 5
    out = np.zeros((2, 4), np.float32)
    run(opened, x, y, out)
    np.testing.assert_array_equal(out[1], np.maximum(x[1, 1, 2:6] * 10, y[1, 1, 2:6]))


@tilec.kernel
def downward(out: tl.array, n: tl.i32):
    position = 0
    for i in range(n, -1, -2):
        tl.store(out, position, i)
        position += 1  # noqa: SIM113


@pytest.mark.parametrize("n", [-1, 0, 5, 6])
def test_negative_step(n: int) -> None:
    out = np.full(8, -7, np.int64)
    expected = out.copy()
    expected[: len(range(n, -1, -2))] = list(range(n, -1, -2))
    run(downward, out, n)
    np.testing.assert_array_equal(out, expected)


@tilec.kernel
def stepped(out: tl.array, step: tl.i32, steps: tl.array):
    for i in range(2, 9, step):
        tl.store(out, i, 1)
    for i in range(9, 16, tl.load(steps, 0, ())):
        tl.store(out, i, 2)


def line_of(error: Exception) -> str:
    """The line of this file that a finding names."""
    found = re.search(rf"{re.escape(__file__)}:(\d+):", str(error))
    assert found is not None
    return Path(__file__).read_text().splitlines()[int(found[1]) - 1]


@pytest.mark.parametrize(("first", "second"), [(3, 4), (0, 4), (-1, 4), (3, 0), (3, -4)])
def test_a_step_that_is_no_constant_counts_up_or_ends_the_launch(first: int, second: int) -> None:
    out = np.zeros(16, np.int32)
    arguments = out, first, np.array([second], np.int64)
    if min(first, second) > 0:
        run(stepped, *arguments)
        np.testing.assert_array_equal(np.flatnonzero(out == 1), range(2, 9, first))
        np.testing.assert_array_equal(np.flatnonzero(out == 2), range(9, 16, second))
        return
    with pytest.raises(EmulatorError, match="the step of this range is 0 or negative") as caught:
        run(stepped, *arguments)
    assert f"in range({'2, 9, step' if first <= 0 else '9, 16, tl.load'}" in line_of(caught.value)


@tilec.kernel
def shared(out: tl.array):
    for i in range(tl.program_id(0), out.shape[0], tl.num_programs(0) * 4):
        tl.store(out, i, 1)


def test_a_step_that_counts_programs_costs_no_test() -> None:
    assert "__assertfail" not in shared.compile(["out:i32[?]"], target="sm_80").ptx


@tilec.kernel
def reused_name(x: tl.array, out: tl.array):
    t = tl.load(x, 0, 8)
    for i in range(2):
        t = tl.load(x, i, ())
        tl.store(out, i, t)
    t = t if x.shape[0] > 3 else 5.0
    t = tl.load(x, 0, (4,))
    tl.store(out, 2, t)


def test_a_name_may_change_its_type_where_nothing_reads_the_old_one() -> None:
    x = f32(8)
    out = np.zeros(6, np.float32)
    with pytest.raises(tilec.CompileError, match=r"'t' changes in the loop"):
        run(reused_name, x, out)


@tilec.kernel
def dead_name(x: tl.array, out: tl.array):
    t = tl.load(x, 0, 8)
    for i in range(2):
        t = tl.load(x, i, ())
        tl.store(out, i, t)
    t = tl.load(x, 0, (4,))
    tl.store(out, 2, t)


def test_dead_names_are_not_carried() -> None:
    x = f32(8)
    out = np.zeros(6, np.float32)
    run(dead_name, x, out)
    np.testing.assert_array_equal(out, [x[0], x[1], *x[:4]])


@tilec.kernel
def nested(out: tl.array, n: tl.i32):
    total, rows = 0, 0
    for i in range(n):
        inner = 0
        for j in range(i):
            if j == 3:
                break
            inner += j
        total += inner
        rows += 1 if inner > 0 else 0
    tl.store(out, 0, total)
    tl.store(out, 1, rows.to(tl.i64))


def test_nested_loops() -> None:
    out = np.zeros(2, np.int64)
    run(nested, out, 7)
    inner = [sum(range(min(i, 3))) for i in range(7)]
    assert tuple(out) == (sum(inner), sum(v > 0 for v in inner))


@tilec.kernel
def scalar_logic(out: tl.array, a: tl.i32, b: tl.f32):
    tl.store(out, 0, 1 if 0 < a < 10 and not b > 1 else 0)
    tl.store(out, 1, 1 if a or b > 1 else 0)
    tl.store(out, 2, max(a, 3, 4) + min(a, 2))
    tl.store(out, 3, int(b) + len((1, 2)))
    tl.store(out, 4, a if b else -a)


@pytest.mark.parametrize(("a", "b"), [(5, 0.5), (0, 2.5), (20, 0.0), (-3, 1.5)])
def test_scalar_logic(a: int, b: float) -> None:
    out = np.zeros(5, np.int32)
    run(scalar_logic, out, a, b)
    expected = (
        1 if 0 < a < 10 and not b > 1 else 0,
        1 if a or b > 1 else 0,
        max(a, 3, 4) + min(a, 2),
        int(b) + 2,
        a if b else -a,
    )
    assert tuple(out) == expected


@tilec.kernel
def pick(n: tl.i32, m: tl.i32, f: tl.f32, y: tl.array, H: tl.const, A: tl.const):
    """`and` and `or` of numbers are one of their operands."""
    tl.store(y, 0, n or m)
    tl.store(y, 1, n and m)
    tl.store(y, 2, n or 7)
    tl.store(y, 3, (n < m) and m)
    tl.store(y, 4, (n < m) or m)
    tl.store(y, 5, H and n)
    tl.store(y, 6, n or (m and 9) or 4)
    tl.store(y, 7, ((n > 0) and f).to(tl.i32))
    tl.store(y, 8, (n > 0) and 5)
    tl.store(y, 9, (n and False) + 3)
    tl.store(y, 10, 0)
    tl.store(y, 11, (H and 2 and 3) + (H or 4))
    for _ in range(H or y.shape[0]):
        tl.store(y, 10, tl.load(y, 10, ()) + 1)
    if (n > 0 and A) or m < 0:
        tl.store(y, 12, 1)
    else:
        tl.store(y, 12, 0)


@pytest.mark.parametrize("n", [0, -3, 5])
@pytest.mark.parametrize("m", [0, 2, -7])
@pytest.mark.parametrize(("number", "text"), [(0, "gelu"), (6, "")])
def test_and_and_or_give_an_operand(n: int, m: int, number: int, text: str) -> None:
    y = np.full(13, 99, np.int32)
    run(pick, n, m, 2.5, y, number, text)
    given = [n or m, n and m, n or 7, (n < m) and m, (n < m) or m, number and n]
    given += [n or (m and 9) or 4, int((n > 0) and 2.5), (n > 0) and 5, (n and False) + 3]
    least = (number and 2 and 3) + (number or 4)
    assert y.tolist() == [*given, number or 13, least, bool((n > 0 and text) or m < 0)]
