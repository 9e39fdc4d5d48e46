"""Launches of libraries' kernels, noted and launched again by both compilers (`libraries.py`)."""

from __future__ import annotations

import copy
import sys
import types
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
import jit_kernels  # noqa: E402
import libraries  # noqa: E402
import library_launches  # noqa: E402
from library_launches import Launch, changed_counts, copied, difference, noted  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from timing import HostClock, time_restored  # noqa: E402


def compare(row: libraries.Row, given: Launch) -> None:
    """On the emulator."""
    libraries.compare(row, given, libraries.ways_of(given, "emulator"))


def noted_add(n: int = 300) -> Launch:
    """A launch of `jit_kernels.add`, in place, noted before it is done."""
    x, y = torch.randn(n), torch.randn(n)
    with noted(lambda *arguments, **named: x.zero_()) as launches:
        for _ in range(3):
            jit_kernels.add[(triton.cdiv(n, 128),)](x, y, x, n, BLOCK=128)
    assert len(launches) == 1  # the others are like it
    assert x.count_nonzero() == 0 < launches[0].tensors()[0].count_nonzero()
    return launches[0]


def test_a_right_launch() -> None:
    row = libraries.Row("own", "add", "add")
    compare(row, noted_add())
    assert (row.imported, row.right, row.error) == (True, True, "")


def test_angles_are_equal_on_the_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    right = library_launches.interpret
    apart: list[float] = []

    def turned(function: Any, *arguments: Any, **named: Any) -> None:
        right(function, *arguments, **named)
        arguments[2][17] += apart[0]

    monkeypatch.setattr(library_launches, "interpret", turned)
    for apart[:], is_right in (([4.0], True), ([-8.0], True), ([2.0], False), ([4.01], False)):
        row, given = libraries.Row("own", "add", "add"), noted_add()
        ways = libraries.ways_of(given, "emulator")
        libraries.compare(row, given, ways, turns={"out_ptr": 4.0})
        assert row.right is is_right


def test_a_wrong_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    right = library_launches.interpret

    def wrong(function: Any, *arguments: Any, **named: Any) -> None:
        right(function, *arguments, **named)
        arguments[0][17] += 0.01

    monkeypatch.setattr(library_launches, "interpret", wrong)
    row = libraries.Row("own", "add", "add")
    compare(row, noted_add())
    assert row.right is False
    assert row.error.startswith("tensor 0")


def test_a_launch_that_is_not_imported() -> None:
    given = noted_add()
    given.named["BLOCK"] = 100  # no power of two
    row = libraries.Row("own", "add", "add")
    compare(row, given)
    assert (row.imported, row.right) == (False, None)
    assert row.error.startswith("tilec: ")


def test_copies_share_memory_as_before() -> None:
    x = torch.arange(12.0).view(3, 4)
    given = copied(jit_kernels.add, (1,), (x[:, 2:], (x.t(), 5)), {"y": x[1]})
    first, second, third = given.tensors()
    first.zero_()
    assert x[1].tolist() == [4, 5, 6, 7]
    assert third.tolist() == [4, 5, 0, 0]
    assert second.stride() == (1, 4)
    assert given.nbytes == 48


def test_one_configuration_for_both() -> None:
    tuned = copy.copy(jit_kernels.matmul)
    with noted(lambda *arguments, **named: None) as launches:
        jit_kernels.launch_matmul(tuned, "cpu", 70, 40, 33, None)
    assert tuned.configs == [jit_kernels.CONFIGS[1]]
    assert launches[0].named["BM"] == 64


@pytest.mark.parametrize(
    ("dtype", "change", "has_dots", "is_rounding"),
    [
        (torch.float32, 3e-5, False, True),
        (torch.float32, 1e-3, False, False),
        (torch.float32, 1e-3, True, True),
        (torch.bfloat16, 2e-2, False, True),
        (torch.float16, 2e-2, False, False),
        (torch.float32, float("nan"), False, False),
        (torch.int32, 1, False, False),
    ],
)
def test_differences(dtype: Any, change: float, has_dots: bool, is_rounding: bool) -> None:
    one, two = (torch.ones(400).to(dtype) for _ in range(2))
    two[7] += change
    launches = [Launch(None, (1,), (x,), {}) for x in (one, two)]
    for pair in (launches, launches[::-1]):
        assert difference(*pair, launches[0], has_dots).is_rounding is is_rounding


def test_orders_that_are_free() -> None:
    function = types.SimpleNamespace(arg_names=["values", "starts"])
    starts = torch.tensor([0, 3, 3, 5])

    def launch(*values: int) -> Launch:
        return Launch(function, (1,), (torch.tensor(values),), {"starts": starts})

    def differs(*values: int) -> bool:
        one, two = launch(7, 3, 5, 1, 2, 9), launch(*values)
        for each in (one, two):
            each.sort_in_groups({"values": "starts"})
        return not difference(one, two, one, has_dots=False).is_rounding

    assert not differs(3, 5, 7, 2, 1, 9)
    assert differs(3, 5, 1, 2, 7, 9)  # of another group
    assert differs(3, 5, 5, 2, 1, 9)


def test_launches_that_count_are_timed_from_where_they_began() -> None:
    counts, floats = torch.zeros(4, dtype=torch.int32), torch.ones(4)
    given = Launch(None, (1,), (floats, counts), {})
    sets = [given.copied() for _ in range(3)]
    launched = []

    def count(i: int) -> None:
        values, seen = sets[i].tensors()
        assert not seen.any()
        seen += 1
        values *= 2
        launched.append(i)

    count(0)
    changed = changed_counts(given, sets[0])
    assert changed == [1]
    times = time_restored(
        {"one": count, "two": count}, HostClock(), sets=3,
        restore=lambda: [one.restore(given, changed) for one in sets],
        budget_ms=0, least_rounds=2,
    )  # fmt: skip
    assert launched == [0, *[0, 1, 2] * 6]
    assert times["one"].launches == 3


def test_the_table() -> None:
    rows = [
        libraries.Row("a", "x", "k", True, True, triton_us=30, tilec_us=20),
        libraries.Row("a", "y", "k", True, True, triton_us=10, tilec_us=20),
        libraries.Row("b", "z", "l", True, False),
        libraries.Row("b", "w", "m", error="tilec: not imported"),
    ]
    lines = libraries.table(rows).splitlines()
    assert lines[2] == "| a | 2 | 1 | 2 | 2 of 2 | 2 of 2 | 1 | 1.50 | 0 |"
    assert lines[3] == "| b | 2 | 2 | 2 | 1 of 2 | 0 of 1 | 0 | 0.00 | 0 |"


def test_calls_have_names_of_their_own() -> None:
    names = list(libraries.calls_of())
    assert len(names) == len(set(names)) > 100
