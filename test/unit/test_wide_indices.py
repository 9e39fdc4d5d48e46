"""Indices beyond 32 bits: coordinates, bounds, steps and sums that arrays do not bound, against
Python's integers, with kernels of 32-bit indices."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tile_programs import Options, run

import tilec
import tilec.language as tl
from tilec.compile.source import parse_source
from tilec.dialects.context import make_context
from tilec.executable.kernel import INDEX_LIMIT_32, MOST_PROGRAMS
from tilec.messages.diagnostics import CompileError
from tilec.passes.pack_programs import REACHED
from tilec.runtime.artefact import load, save
from tilec.runtime.errors import ArgumentError

TARGETS = ("sm_80", "sm_90a", "sm_100a")
EDGES = (0, 2**31, -(2**31), 2**32, -(2**32), 2**33, 2**62, -(2**62))


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")


def near_edges(seed: int, count: int) -> list[int]:
    """Numbers near where 32 bits end, or near what is the same in 32 bits."""
    rng = random.Random(seed)
    return [rng.choice(EDGES) + rng.randrange(-12, 60) for _ in range(count)]


@tilec.kernel(grid=(1,))
def copy_from(x: tl.array, y: tl.array, m: tl.i64, n: tl.i64):
    tl.store(y, (0, 0), tl.load(x, (m, n), (2, 4), padding=-1.0))


@tilec.kernel(grid=(1,))
def copy_to(x: tl.array, y: tl.array, m: tl.i64, n: tl.i64):
    tl.store(x, (m, n), tl.load(y, (0, 0), (2, 4)))


def cut(shape: tuple[int, int], m: int, n: int) -> list[tuple[int, int, int, int]]:
    """What of a 2 x 4 tile at (m, n) lies inside: (row, column) of the array and of the tile."""
    places = [(m + i, n + j, i, j) for i in range(2) for j in range(4)]
    return [p for p in places if 0 <= p[0] < shape[0] and 0 <= p[1] < shape[1]]


@pytest.mark.parametrize("target", TARGETS)
def test_a_coordinate_outside_stays_outside(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.arange(6 * 50, dtype=np.float32).reshape(6, 50)
    tile = -1 - np.arange(8, dtype=np.float32).reshape(2, 4)
    assert copy_from.compiled(x, tile, m=0, n=0).index_bits == 32
    rows, columns = near_edges(1, 14), near_edges(2, 14)
    for m, n in [
        *zip(rows, columns, strict=True),
        (2**32 + 1, 3),
        (1, 2**32 + 8),
        (-1, 48),
        (4, -2),
    ]:
        expected = np.full((2, 4), -1, np.float32)
        stored = x.copy()
        for row, column, i, j in cut(x.shape, m, n):
            expected[i, j] = x[row, column]
            stored[row, column] = tile[i, j]
        found, array = np.zeros((2, 4), np.float32), x.copy()
        copy_from(x, found, m, n)
        copy_to(array, tile, m, n)
        np.testing.assert_array_equal(found, expected, err_msg=f"load at {m}, {n}")
        np.testing.assert_array_equal(array, stored, err_msg=f"store at {m}, {n}")


@tilec.kernel(grid=(1,))
def constant_places(x: tl.array, y: tl.array, N: tl.const):
    tl.store(y, 0, tl.load(x, N, 4, padding=-1.0))
    tl.store(x, N, tl.full((4,), 9.0, tl.f32))


@pytest.mark.parametrize("n", [2**32 + 8, 2**31, -(2**32) + 8, -2, 48])
def test_a_constant_coordinate(n: int) -> None:
    x, y = np.arange(50, dtype=np.float32), np.zeros(4, np.float32)
    expected = np.array([n + i if 0 <= n + i < 50 else -1 for i in range(4)], np.float32)
    stored = x.copy()
    for i in range(4):
        if 0 <= n + i < 50:
            stored[n + i] = 9
    constant_places(x, y, n)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(x, stored)


@tilec.kernel(grid=(1,))
def copy_at_unsigned(x: tl.array, y: tl.array, z: tl.array, n: tl.u64):
    tl.store(y, 0, tl.load(x, n, 4, padding=-1.0))
    tl.store(z, n, tl.full((4,), 9.0, tl.f32))


@pytest.mark.parametrize("target", TARGETS)
def test_a_coordinate_without_sign_is_never_in_front(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2**64 - 2 has the bits of -2, where the second half of the tile lies inside."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.arange(50, dtype=np.float32)
    for n in (2**64 - 2, 2**63, 2**63 - 2, 2**32 + 8, 48, 8):
        inside = [n + i for i in range(4) if n + i < 50]
        y, z, stored = np.zeros(4, np.float32), x.copy(), x.copy()
        stored[inside] = 9
        copy_at_unsigned(x, y, z, n)
        np.testing.assert_array_equal(y, [*x[inside], *[-1] * (4 - len(inside))])
        np.testing.assert_array_equal(z, stored)


def sum_up(y, start, stop, step, BREAK=False):
    """How many numbers a range has, and their sum; `BREAK` leaves the loop at its end."""
    count, total = tl.full((1,), 0, y.dtype), tl.full((1,), 0, y.dtype)
    for i in tl.range(start, stop, step):
        if BREAK and i == stop:
            break
        count += 1
        total += i
    tl.store(y, 0, count)
    tl.store(y, 1, total)


@tilec.kernel(grid=(1,))
def sum_of_range(y: tl.array, start: int, stop: int, step: int):
    sum_up(y, start, stop, step)


@tilec.kernel(grid=(1,))
def sum_of_constant_range(y: tl.array, start: int, stop: int, STEP: tl.const, BREAK: tl.const):
    sum_up(y, start, stop, STEP, BREAK)


@tilec.kernel(grid=(1,))
def sum_of_unsigned_range(y: tl.array, start: tl.u64, stop: tl.u64, step: tl.u64):
    sum_up(y, start, stop, step)


@tilec.kernel(grid=(1,))
def sum_of_unsigned_constant_range(
    y: tl.array, start: tl.u64, stop: tl.u64, STEP: tl.const, BREAK: tl.const
):
    sum_up(y, start, stop, STEP, BREAK)


RANGES = (
    (2**31 - 2, 2**31 + 3, 1),
    (2**32, 2**32 + 3, 1),
    (0, 2**32, 2**29),
    (2**31, 5, 1),
    (2**31 - 10, 2**31 - 1, 4),
    (0, 2**31 - 1, 2**30 - 3),
    (-(2**31), 2**31 - 1, 2**30),
    (-(2**40), -(2**40) + 5, 2),
    (-(2**31) - 3, -(2**31) + 2, 1),
    (2**60, 2**60 + 9, 3),
    (7, 7, 5),
)
DOWN = ((2**32, 0, -(2**30)), (-(2**31) + 3, -(2**31) - 4, -2), (2**31 + 2, 2**31 - 3, -1))


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_runs_the_right_number_of_times(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    for start, stop, step in RANGES:
        y = np.zeros(2, np.int64)
        sum_of_range(y, start, stop, step)
        expected = range(start, stop, step)
        assert [*y] == [len(expected), sum(expected)], (start, stop, step)


@pytest.mark.parametrize(("start", "stop", "step"), [*RANGES[:6], *DOWN])
def test_a_loop_of_constant_step(start: int, stop: int, step: int) -> None:
    for breaks in (False, True):
        y = np.zeros(2, np.int64)
        sum_of_constant_range(y, start, stop, step, breaks)
        expected = range(start, stop, step)
        assert [*y] == [len(expected), sum(expected)]


FAR_UNSIGNED = (
    (2**63 - 2, 2**63 + 3, 1),
    (2**63, 2**63 + 3, 1),
    (0, 2**64 - 1, 2**62),
    (2**64 - 10, 2**64 - 1, 4),
    (2**63 - 10, 2**63 - 1, 4),
    (2**63 + 5, 2**63 - 5, 1),
    (3, 17, 4),
)


@pytest.mark.parametrize("target", TARGETS)
def test_a_range_of_numbers_without_sign(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setenv("TILEC_EMULATOR_STEPS", "100000")
    down = [(stop + 1, start, -step) for start, stop, step in FAR_UNSIGNED if stop < 2**64 - 1]
    down += [(2**64 - 1, 0, -(2**61)), (2**64 - 1, 2**64 - 9, -3)]
    for start, stop, step in [*FAR_UNSIGNED, *down]:
        expected, y = range(start, stop, step), np.zeros(2, np.uint64)
        wanted = [len(expected), sum(expected) % 2**64]
        if step > 0:
            sum_of_unsigned_range(y, start, stop, step)
            assert [*map(int, y)] == wanted, (start, stop, step)
        for breaks in (False, True):
            y[:] = 0
            sum_of_unsigned_constant_range(y, start, stop, step, breaks)
            assert [*map(int, y)] == wanted, (start, stop, step)


@tilec.kernel(grid=(1,))
def copy_in_unsigned_steps(x: tl.array, y: tl.array, n: tl.u64, B: tl.const, STAGES: tl.const):
    for i in tl.range(0, n, B, stages=STAGES):
        tl.store(y, i, tl.load(x, i, B) + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_of_a_range_of_numbers_without_sign(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as the range has, and in accesses as wide as if its numbers had a sign."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
    for stages in (None, 3):
        for n in (1024, 700, 1):
            y = np.zeros_like(x)
            copy_in_unsigned_steps(x, y, n, 128, stages)
            tiles = -(-n // 128) * 128
            np.testing.assert_array_equal(y, np.where(np.arange(1024) < tiles, x + 1, 0))
        text = copy_in_unsigned_steps.compiled(x, y, 1024, 128, stages).ptx
        assert "st.global.b32" not in text


FAR_SIGNED = (
    (2**63 - 10, 2**63 - 1, 4),
    (2**63 - 2, 2**63 - 1, 2**40),
    (-(2**63), 2**63 - 1, 2**62),
    (-(2**63), -(2**63) + 9, 5),
    (5, -(2**63), 3),
    (2**63 - 1, -(2**63), -(2**62)),
    (2**62, -(2**62) - 5, -(2**61)),
    (-(2**63) + 3, -(2**63), -2),
    (2**63 - 1, 0, -(2**61)),
    (-(2**63), 2**63 - 1, -1),
)


@pytest.mark.parametrize("target", TARGETS)
def test_a_range_up_to_the_end_of_64_bits(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number behind the last one leaves 64 bits, and so may the distance of the bounds."""
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setenv("TILEC_EMULATOR_STEPS", "100000")
    for start, stop, step in FAR_SIGNED:
        expected = range(start, stop, step)
        total = (sum(expected) + 2**63) % 2**64 - 2**63
        y = np.zeros(2, np.int64)
        if step > 0:
            sum_of_range(y, start, stop, step)
            assert [*y] == [len(expected), total], (start, stop, step)
        for breaks in (False, True):
            y[:] = 0
            sum_of_constant_range(y, start, stop, step, breaks)
            assert [*y] == [len(expected), total], (start, stop, step)


@tilec.kernel(grid=(1,))
def constant_far_range(y: tl.array):
    count = tl.full((1,), 0, tl.i64)
    for _ in tl.range(2**63 - 9, 2**63 - 1, 5):
        count += 1
    tl.store(y, 0, count)


def test_constants_up_to_the_end_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_EMULATOR_STEPS", "100000")
    y = np.zeros(1, np.int64)
    constant_far_range(y)
    assert y[0] == 2


@tilec.kernel(grid=(3,))
def arithmetic(x: tl.array, y: tl.array, n: int):
    number = tl.program_id(0)
    far = (number + x.shape[0]) * 85899346
    tl.store(y, (number, 0), (far // 7 % 1000).to(tl.i64))
    tl.store(y, (number, 1), far.to(tl.i64))
    tl.store(y, (number, 2), tl.load(x, far, ()).to(tl.i64))
    lanes = number * n * 3 + tl.arange(4)
    tl.store(y, (number, 3), tl.max(tl.where(lanes > 2**31, lanes, -lanes)).to(tl.i64))
    tl.store(y, (number, 4), tl.sum(tl.gather(x, lanes)).to(tl.i64))
    at = number * n
    for _ in tl.range(2):
        at = at * 2 + 1
    tl.store(y, (number, 5), (tl.minimum(at, 77) if n > 5 else at).to(tl.i64))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [2, 5 * 2**28, 2**31 - 1, -(2**30)])
def test_arithmetic_that_leaves_32_bits(
    target: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x, y = np.arange(50, dtype=np.float32), np.zeros((3, 6), np.int64)
    arithmetic(x, y, n)
    for number in range(3):
        far = (number + 50) * 85899346
        lanes = [number * n * 3 + i for i in range(4)]
        at = number * n
        for _ in range(2):
            at = at * 2 + 1
        assert [*y[number]] == [
            far // 7 % 1000,
            far,
            0,
            max(lane if lane > 2**31 else -lane for lane in lanes),
            sum(lane for lane in lanes if 0 <= lane < 50),
            min(at, 77) if n > 5 else at,
        ]


@tilec.kernel(grid=lambda x, BM: (tl.cdiv(x.shape[0], BM),))
def product_at(
    x: tl.array, w: tl.array, y: tl.array, m: tl.i64, k: tl.i64, BM: tl.const, SPECIAL: tl.const
):
    """Operands from (m, k) on: copied asynchronously, by the copy engine where there is one."""
    row, k = tl.program_id(0) * BM, tl.assume(k, multiple_of=32)
    acc = tl.zeros((BM, 64), tl.f32)
    for i in tl.range(k, k + x.shape[1], 32, warp_specialize=SPECIAL):
        acc = tl.dot(tl.load(x, (row + m, i), (BM, 32)), tl.load(w, (i, 0), (32, 64)), acc)
    tl.store(y, (row, 0), acc)


@pytest.mark.parametrize(
    ("target", "special"), [*((target, None) for target in TARGETS), ("sm_90a", True)]
)
def test_coordinates_of_asynchronous_copies(
    target: str, special: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((128, 64), np.float32), rng.standard_normal((64, 64), np.float32)
    x, w = x.astype(np.float16), w.astype(np.float16)
    for m, k in ((0, 0), (2**32, 0), (-(2**32), 0), (64, 0), (2**31 - 64, 0), (0, 2**32), (0, 32)):
        shifted = np.zeros((128, 64))
        if 0 <= m < 128:
            shifted[: 128 - m] = x[m:]
        expected = (
            shifted[:, k:].astype(float) @ w[k:].astype(float) if k < 64 else np.zeros((128, 64))
        )
        y = np.full((128, 64), np.nan, np.float32)
        product_at(x, w, y, m, k, 64, special)
        np.testing.assert_allclose(y, expected, atol=1e-2, err_msg=f"{m}, {k}")


@tilec.kernel
def ids(y: tl.array, B: tl.const):
    number = tl.program_id(0)
    tl.store(y, number * B, (number + 1).to(tl.f32))


def test_a_grid_beyond_the_indices_gets_wide_ones() -> None:
    y = np.zeros(64, np.float32)
    narrow = ids.compiled(y, 2**20)
    assert (narrow.index_bits, narrow.most_programs) == (32, 2**11)
    assert ids.compiled(y, 1).most_programs == MOST_PROGRAMS - REACHED
    ids[2**12 + 1](y[:8], 2**20)  # 2**20 * 2**12 is 0 in 32 bits
    assert [*y] == [1] + [0] * 63


@tilec.kernel(grid=(1,))
def products_of_sizes(x: tl.array, y: tl.array):
    tl.store(y, 0, (x.shape[0] * x.shape[1] * 3 // 5).to(tl.i64))


def test_sizes_beyond_the_indices_get_wide_ones() -> None:
    y = np.zeros(1, np.int64)
    small = np.zeros((7, 9), np.float32)
    kernel = products_of_sizes.compiled(small, y)
    assert kernel.index_bits == 32
    assert kernel.limits
    # No element, no memory: only its sizes are large.
    large = np.broadcast_to(np.zeros((), np.float32), (2**20, 2**14))
    for x in (small, large):
        products_of_sizes(x, y)
        assert y[0] == x.shape[0] * x.shape[1] * 3 // 5


def test_an_artefact_refuses_what_its_indices_do_not_reach(tmp_path: Any) -> None:
    kernel = ids.compile(["y:f32[?]"], {"B": 2**20}, target="sm_80")
    flat = np.broadcast_to(np.zeros((), np.float32), (7, 9))
    sizes = products_of_sizes.compiled(flat, np.zeros(1, np.int64))
    save(tmp_path / "k", [kernel])
    save(tmp_path / "s", [sizes])
    y = np.zeros(64, np.float32)
    with pytest.raises(ArgumentError, match="a grid of 3000 programs; its 32-bit indices reach"):
        load(tmp_path / "k", device="emulator")[3000](y)
    large = np.broadcast_to(np.zeros((), np.float32), (2**20, 2**14))
    with pytest.raises(ArgumentError, match=r"is \d+; its 32-bit indices reach"):
        load(tmp_path / "s", device="emulator")(large, np.zeros(1, np.int64))
    wide = ids.compile(["y:f32[?]"], {"B": 2**20}, target="sm_80", index_bits=64)
    save(tmp_path / "both", [kernel, wide])
    load(tmp_path / "both", device="emulator")[3000](y)
    assert [*np.flatnonzero(y)] == [0]


def test_what_fits_stays_narrow() -> None:
    x = np.zeros((64, 64), np.float32)
    kernel = product_at.compile(
        ["x:f16[?,?:8]", "w:f16[?,?:8]", "y:f32[?,?]"], {"BM": 64, "SPECIAL": None}, target="sm_80"
    )
    wide = [entry for entry in kernel.report["decisions"] if entry["about"] == "index"]
    assert {entry["chosen"] for entry in wide} == {"64 bits"}
    plain = ids.compiled(x[0], 64)
    assert plain.most_programs == 2**25
    assert not [entry for entry in plain.report["decisions"] if entry["about"] == "index"]
    assert INDEX_LIMIT_32 < 2**31


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("tile.most_programs = 0 : i32", "'tile.most_programs' must be positive"),
        ("tile.most_programs = 1.0", "attribute 'tile.most_programs'"),
        ("tile.limits = 3", "'tile.limits' must hold pairs of a string and a number"),
        ('tile.limits = ["x"]', "'tile.limits' must hold pairs of a string and a number"),
        ('tile.limits = [["y.shape[0]", 3]]', "wrong limit: grid rule 'y.shape[0]'"),
        ('tile.limits = [["n", 3]]', "expected sizes of arrays, found a scalar"),
    ],
)
def test_wrong_limits_of_a_file(attribute: str, message: str) -> None:
    text = f"""func.func @k(%x: memref<?xf32> {{tile.name = "x"}}, %n: i32 {{tile.name = "n"}})
        attributes {{tile.kernel, {attribute}}} {{ return }}"""
    with pytest.raises(CompileError, match=r".+") as error:
        parse_source(text, "k.tile", make_context())
    assert message in str(error.value)


ONE_ELEMENT = """
!a = memref<?xi32, strided<[1]>>
func.func @k(%x: !a, %a: !a, %b: !a, %y: !a) attributes {tile.kernel} {
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %c64 = arith.constant 64 : index
  %ta = "tile.load"(%a, %p) {OPTIONS, padding = 0 : i32} : (!a, index) -> tensor<i32>
  %tb = "tile.load"(%b, %p) {OPTIONS, padding = 0 : i32} : (!a, index) -> tensor<i32>
  %ia = tensor.extract %ta[] : tensor<i32>
  %ib = tensor.extract %tb[] : tensor<i32>
  %first = arith.index_cast %ia : i32 to index
  %second = arith.index_cast %ib : i32 to index
  %begin = arith.muli %p, %c64 : index
  %at = PLACE : index
  %v = "tile.load"(%x, %at) {OPTIONS, padding = -1 : i32} : (!a, index) -> tensor<i32>
  "tile.store"(%v, %y, %p) {OPTIONS} : (tensor<i32>, !a, index) -> ()
  return
}""".replace("OPTIONS", "dims = array<i32>, options = {}")
PLACES = {
    "arith.addi %first, %second": lambda a, b, p: a + b,
    "arith.subi %first, %second": lambda a, b, p: a - b,
    "arith.addi %second, %begin": lambda a, b, p: b + 64 * p,
    "arith.subi %second, %begin": lambda a, b, p: b - 64 * p,
    "arith.subi %begin, %second": lambda a, b, p: 64 * p - b,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("target", TARGETS)
def test_one_element_at_a_sum(target: str, place: str) -> None:
    """Of numbers of 32 bits each, near where these end: inside only where the sum is."""
    limit, low, high = INDEX_LIMIT_32, -(2**31), 2**31 - 1
    ends = [low, low + 1, -limit, -limit - 1, -9, -1, 0, 1, 8, 60, limit, limit + 1, high - 1, high]
    pairs = [(m, n) for m in ends for n in ends]
    pairs += [(m, s * (k - m)) for m in ends for k in (-1, 0, 6, 49, 50) for s in (1, -1)]
    pairs = [(m, n) for m, n in pairs if low <= n <= high]
    a, b = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    x, y = np.arange(50, dtype=np.int32), np.full(len(pairs), -7, np.int32)
    run(ONE_ELEMENT.replace("PLACE", place), [x, a, b, y], (len(pairs),), Options(target))
    places = PLACES[place](a.astype(np.int64), b.astype(np.int64), np.arange(len(pairs)))
    inside = (places >= 0) & (places < 50)
    np.testing.assert_array_equal(y, np.where(inside, places, -1))
