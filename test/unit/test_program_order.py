"""The order of programs that an author asks for: every tile once, neighbours behind each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.matmul import matmul
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError


@tilec.kernel(grid=lambda order: (order.shape[0],), num_warps=1)
def walk(
    order: tl.array,
    rows: tl.i32,
    columns: tl.i32,
    ORDER: tl.const = "hilbert",
    GROUP: tl.const = 4,
):
    """order[n] = (row, column) of tile n."""
    n = tl.program_id(0)
    row, column = gpu.tile_order(n, rows, columns, ORDER, GROUP)
    tl.store(order, (n, 0), row)
    tl.store(order, (n, 1), column)


def walked(rows: int, columns: int, order: str, group: int) -> np.ndarray:
    found = np.full((rows * columns, 2), -1, np.int32)
    walk.on("emulator")(found, rows, columns, ORDER=order, GROUP=group)
    return found


@pytest.mark.parametrize("group", [1, 2, 4, 8])
@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (16, 24), (7, 9), (1, 5), (5, 1), (13, 17)])
def test_every_tile_once(rows: int, columns: int, group: int) -> None:
    found = walked(rows, columns, "hilbert", group)
    assert sorted(map(tuple, found)) == [(r, c) for r in range(rows) for c in range(columns)]


@pytest.mark.parametrize("group", [2, 4, 8, 16])
def test_squares_follow_a_curve_without_jumps(group: int) -> None:
    """Each step goes to a neighbour, from one square to the next too; and every quarter of a square
    is walked before the next one."""
    found = walked(group, 3 * group, "hilbert", group)
    assert (np.abs(np.diff(found, axis=0)).sum(1) == 1).all()
    for quarter in found.reshape(-1, (group // 2) ** 2, 2):
        assert (np.ptp(quarter, axis=0) == group // 2 - 1).all()


def test_what_is_no_square_goes_in_groups() -> None:
    hilbert, grouped = (walked(7, 9, order, 4) for order in ("hilbert", "grouped"))
    assert np.array_equal(hilbert[32:], grouped[32:])
    assert not np.array_equal(hilbert[:32], grouped[:32])


def compiled(kernel: Any, target: str = "sm_90a") -> Any:
    row = "bf16[?:8,?:8;?:8,1]"
    constants = {"BM": 128, "BN": 128, "BK": 64}
    return kernel.compile([f"{x}:{row}" for x in "abc"], constants, target=target)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("hilbert", "Hilbert's curve in squares of 16"),
        (("hilbert", 8), "Hilbert's curve in squares of 8"),
        (("grouped", 5), "groups of 5 rows"),
        ("grouped", "groups of 12 rows"),
        ("rows", "row by row"),
    ],
)
def test_the_report_says_so(order: Any, text: str) -> None:
    report = compiled(matmul.demanding(order=order)).report["decisions"]
    (entry,) = [entry for entry in report if entry["about"] == "program order"]
    assert (entry["chosen"], entry["why"]) == (text, "the author's demand")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_products_are_the_same(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((200, 72)), rng.standard_normal((72, 330))
    a, b = a.astype(np.float16), b.astype(np.float16)
    c = np.full((200, 330), np.nan, np.float16)
    kernel = matmul.demanding(order=("hilbert", 2), num_warps=4).on("emulator")
    kernel(a, b, c, BM=64, BN=64, BK=64)
    expected = a.astype(float) @ b.astype(float)
    assert np.abs(c - expected).max() < 2e-3 * np.abs(expected).max()


@pytest.mark.parametrize("order", ["columns", ("hilbert", 12), ("grouped", 0), 3, ("rows", "x")])
def test_unknown_orders(order: Any) -> None:
    with pytest.raises(CompileError, match="order must be"):
        compiled(matmul.demanding(order=order))


def test_who_has_no_order() -> None:
    @tilec.kernel(grid=1, order="hilbert")
    def copy(x: tl.array, y: tl.array):
        n = tl.program_id(0) * 128
        tl.store(y, (n,), tl.load(x, (n,), (128,)))

    with pytest.raises(CompileError, match="only grids of dots in two dimensions"):
        copy.compile(["x:f32[?;1]", "y:f32[?;1]"], {}, target="sm_80")
    specs = ["order:i32[?,2;2,1]", "rows:i32", "columns:i32"]
    explicit = walk.demanding(order="rows")
    with pytest.raises(CompileError, match="which program works on what"):
        explicit.compile(specs, {}, target="sm_80")
