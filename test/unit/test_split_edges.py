"""Programs away from the edges of arrays test no bounds (split-edges), and neighbours have one
address in common."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.passes import split_edges
from tilec.passes.demands import kernels

TARGETS = ["sm_80", "sm_90a", "sm_100a"]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More programs than multiprocessors count as many."""
    for module in (kernels, split_edges):
        monkeypatch.setattr(module, "MANY", 1)


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def around(x: tl.array, y: tl.array, DOWN: tl.const, BM: tl.const = 8, BN: tl.const = 32):
    """y: what lies DOWN rows above and below x and a column beside it, less 4 x; 1 around x."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = -4.0 * tl.load(x, (m, n), (BM, BN)).to(tl.f32)
    for at in ((m - DOWN, n), (m + DOWN, n), (m, n - 1), (m, n + 1)):
        total += tl.load(x, at, (BM, BN), padding=1).to(tl.f32)
    tl.store(y, (m, n), total.to(y.dtype))


@tilec.kernel(grid=lambda y, B: (y.shape[0], tl.cdiv(y.shape[1], B)))
def of_a_plane(x: tl.array, y: tl.array, K: tl.const, B: tl.const = 1024):
    """y: plane K of x, and 7 where there is none, three columns on."""
    row, n = tl.program_id(0), tl.program_id(1) * B
    tl.store(y, (row, n), tl.load(x, (K, row, n + 3), B, padding=7))


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def gathered(x: tl.array, y: tl.array, FAR: tl.const, B: tl.const = 128):
    """y[i] = x[2 i - 1] + x[2 i + 1] - x[2 i + FAR], of each what x has."""
    i = tl.program_id(0) * B + tl.arange(B)
    near = tl.gather(x, (2 * i - 1,), other=0) + tl.gather(x, (2 * i + 1,), other=0)
    tl.scatter(y, (i,), near - tl.gather(x, (2 * i + FAR,), other=0))


def expected_around(x: np.ndarray, down: int) -> np.ndarray:
    rows, columns = x.shape
    wide = np.pad(x.astype(np.float64), down, constant_values=1)
    total = -4 * x.astype(np.float64)
    for m, n in ((-down, 0), (down, 0), (0, -1), (0, 1)):
        total += wide[down + m :, down + n :][:rows, :columns]
    return total


def edges_apart(kernel: object) -> bool:
    said = [each["chosen"] for each in kernel.report["decisions"] if each["about"] == "bounds"]
    return said == ["not tested by programs away from the edges"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        (np.float32, (99, 357)),
        (np.float16, (96, 417)),  # the edge of the last tile below is the array's
        (ml_dtypes.bfloat16, (1801, 31)),  # no program lies inside
        (np.int8, (131, 293)),
    ],
)
@pytest.mark.parametrize("down", [1, 9])
def test_tiles_inside_and_at_the_edges(
    target: str, dtype: type, shape: tuple[int, int], down: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(shape)
    x = rng.integers(-4, 5, shape).astype(dtype)
    y = poisoned(shape, np.float32)
    kernel = around.demanding(num_warps=1)
    assert edges_apart(kernel.compiled(x, y, DOWN=down))
    kernel.check(x, y, DOWN=down)
    np.testing.assert_array_equal(y, expected_around(x, down))


@pytest.mark.parametrize(("plane", "columns"), [(0, 2051), (1, 2047), (2, 1030), (-1, 1030)])
def test_axes_that_a_tile_does_not_lie_along(plane: int, columns: int) -> None:
    x = np.arange(2 * 67 * columns, dtype=np.float32).reshape(2, 67, columns)
    y = poisoned((67, columns), np.float32)
    kernel = of_a_plane.demanding(num_warps=1)
    assert edges_apart(kernel.compiled(x, y, K=plane))
    kernel.check(x, y, K=plane)
    wide = np.full((67, columns), 7, np.float32)
    if 0 <= plane < 2:
        wide[:, :-3] = x[plane, :, 3:]
    np.testing.assert_array_equal(y, wide)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("size", "far"), [(999, 2), (40, -17), (140000, 70001), (140000, 65535)])
def test_gathered_neighbours(
    target: str, size: int, far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float32)
    y = poisoned(((size + 1) // 2,), np.float32)
    gathered.check(x, y, FAR=far)
    wide = np.concatenate([np.zeros(abs(far) + 1), x, np.zeros(abs(far) + 3)])
    first = abs(far) + 1
    parts = [wide[first + at :][: size + 1 : 2][: len(y)] for at in (-1, 1, far)]
    np.testing.assert_array_equal(y, parts[0] + parts[1] - parts[2])


def test_few_programs_have_code_for_all() -> None:
    x, y = np.ones((35, 101), np.float32), poisoned((35, 101), np.float32)
    kernel = around.demanding(num_warps=1).compiled(x, y, DOWN=1)
    (said,) = (e["chosen"] for e in kernel.report["decisions"] if e["about"] == "bounds")
    assert said == "tested by all programs"
    assert kernel.suits[1] == 1


def test_neighbours_share_an_address() -> None:
    """Gathers a few columns apart differ by what the instruction adds to its address."""
    x, y = np.zeros(64, np.float32), np.zeros(32, np.float32)
    ptx = gathered.demanding(num_warps=1).compiled(x, y, FAR=2).ptx
    # One for the three loads of each of 4 elements, one for the store of all.
    assert ptx.count("ld.global") == 12
    assert ptx.count("mul.wide") == 5
