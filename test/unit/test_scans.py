"""Scans on the emulator against NumPy: many layouts, both directions, order that matters."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import pytest
from emulated import array_type, random_layout, run, seed_of, tile_type
from mlir import ir
from test_reductions import DTYPES, load_text, random_array, single, store_text

import tilec
import tilec.language as tl
from tilec.dialects.context import make_context
from tilec.dialects.tile import ScanOp
from tilec.hardware.layout import Layout, parse_layout
from tilec.passes.layouts.axis_levels import Place, axis_levels
from tilec.passes.layouts.scan_costs import in_runs, scan_cost, warps_last
from tilec.passes.layouts.scan_layout import scan_layout, supports_scan, totals_layout
from tilec.passes.rewriting.walk import find_ops


def scan(
    shape: Sequence[int],
    axis: int,
    elements: Sequence[str],
    layout: Layout,
    body: str,
    reverse: bool,
) -> str:
    """A kernel that scans one array per element type into one result each."""
    count = len(elements)
    numbered = list(enumerate(elements))
    parameters = [
        f"%{letter}{i}: {array_type(len(shape), e)}" for letter in "xy" for i, e in numbered
    ]
    loads = [load_text(shape, e, layout, f"%v{i}", f"%x{i}") for i, e in numbered]
    stores = [store_text(shape, e, layout, f"%r#{i}", f"%y{i}") for i, e in numbered]
    arguments = [f"%{letter}{i}: {e}" for letter in "pq" for i, e in numbered]
    types = ", ".join(tile_type(shape, e, layout) for e in elements)
    return f"""
func.func @k({", ".join(parameters)}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {chr(10).join(loads)}
  %r:{count} = "tile.scan"({", ".join(f"%v{i}" for i in range(count))}) ({{
  ^bb0({", ".join(arguments)}):
    {body}
  }}) {{axis = {axis} : i32, reverse = {str(reverse).lower()}}} : ({types}) -> ({types})
  {chr(10).join(stores)}
  return
}}"""


def scanned(
    arrays: Sequence[np.ndarray],
    axis: int,
    reverse: bool,
    combine: Callable[..., Sequence[np.ndarray]],
) -> list[np.ndarray]:
    """The definition: element i is the combination of elements 0 to i in order; reversed, that of
    the last to i, as flip, scan, flip gives it."""
    moved = [np.moveaxis(a, axis, 0).copy() for a in arrays]
    length = len(moved[0])
    for i in range(length - 2, -1, -1) if reverse else range(1, length):
        before = [a[i + 1] if reverse else a[i - 1] for a in moved]
        mine = [a[i] for a in moved]
        for a, value in zip(moved, combine(before, mine), strict=True):
            a[i] = value
    return [np.moveaxis(a, 0, axis) for a in moved]


def scannable_layout(
    seed: int, shape: Sequence[int], axis: int, num_warps: int, is_wanted: Callable[..., bool]
) -> Layout:
    """A random layout on which a scan works."""
    rng = random.Random(seed)
    while True:
        layout = random_layout(rng, shape, num_warps)
        if supports_scan(layout, shape, axis) and is_wanted(layout):
            return layout


SHAPES = [
    ((1,), 0),
    ((37,), 0),
    ((1000,), 0),
    ((3, 37), 0),
    ((3, 37), 1),
    ((48, 20), 0),
    ((5, 7, 9), 1),
    ((5, 7, 9), 2),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sums(shape: tuple[int, ...], axis: int, num_warps: int, reverse: bool) -> None:
    seed = seed_of(shape, axis, num_warps, reverse)
    x = random_array(np.random.default_rng(seed), shape, "i32")
    y = np.zeros_like(x)
    want = scanned([x], axis, reverse, lambda a, b: [a[0] + b[0]])[0]
    layouts = [
        scannable_layout(seed, shape, axis, num_warps, lambda _: True),
        scan_layout(shape, axis, num_warps),
    ]
    for layout in layouts:
        text = scan(shape, axis, ["i32"], layout, single("arith.addi", "i32"), reverse)
        run(text, [x, y], num_warps=num_warps)
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("num_warps", [1, 4, 12])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_runs_hold_what_a_layout_holds(shape: tuple[int, ...], axis: int, num_warps: int) -> None:
    """Of any layout: all elements, nothing else moved, and a scan along the axis."""
    rng = random.Random(seed_of(shape, axis, num_warps))
    for _ in range(20):
        layout = random_layout(rng, shape, num_warps)
        runs = in_runs(layout, axis)
        assert supports_scan(runs, shape, axis)
        assert runs.slice(axis) == layout.slice(axis)
        first, *_ = axis_levels(runs, axis) or [None]
        held = prod(mode.size for mode in layout.values if mode.dim == axis and mode.stride)
        assert first is None or (first.place is Place.VALUE) == (held > 1)


@pytest.mark.parametrize("num_warps", [1, 4, 12])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_what_a_warp_holds_lies_together(shape: tuple[int, ...], axis: int, num_warps: int) -> None:
    """Of any layout that a scan works on: all elements, the lanes as they were, warps last."""
    rng = random.Random(seed_of(shape, axis, num_warps))
    for _ in range(20):
        layout = scannable_layout(rng.random(), shape, axis, num_warps, lambda _: True)
        found = warps_last(layout, axis)
        assert supports_scan(found, shape, axis)
        assert found.slice(axis) == layout.slice(axis)
        places = [level.place for level in axis_levels(found, axis)]
        assert sorted(places, key=lambda place: place is Place.WARP) == places
        assert lanes_of(found, axis) == lanes_of(layout, axis)


def lanes_of(layout: Layout, axis: int) -> int:
    """Those that tell elements along the axis apart."""
    return prod(v.size for v in axis_levels(layout, axis) if v.place is Place.LANE)


def test_neighbours_in_registers_cost_less() -> None:
    """The price follows what a scan is lowered to: as shuffles and shared memory go, so does it."""
    text = scan((64, 64), 0, ["f32"], parse_layout(STRIPED), single("arith.addf", "f32"), False)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (op,) = find_ops(module.operation, ScanOp)
        prices = [
            scan_cost(op.opview, parse_layout(each)) for each in (STRIPED, RUNS, LANES, WHOLE)
        ]
    assert prices == sorted({*prices}, reverse=True)


STRIPED = "T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)"
RUNS = "T(16,8):(4@1,8@0) V(4,8):(1@1,1@0)"
LANES = "T(4,8,4):(4@1,8@0,16@1) V(4,8):(1@1,1@0)"
WHOLE = "T(64,2):(1@1,32@0) V(32):(1@0)"

RECURRENCE = """
    %a = arith.muli %p0, %q0 : i32
    %t = arith.muli %p1, %q0 : i32
    %b = arith.addi %t, %q1 : i32
    gpu.yield %a, %b : i32, i32
"""


@pytest.mark.share(3)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("num_warps", [1, 2, 8])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_order_is_kept(shape: tuple[int, ...], axis: int, num_warps: int, reverse: bool) -> None:
    """Maps x -> a x + b compose associatively, but not commutatively."""
    seed = seed_of(shape, axis, num_warps, reverse)
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-9, 9, shape).astype(np.int32) | 1 for _ in range(2))
    ya, yb = np.zeros_like(a), np.zeros_like(b)

    def compose(first: list[np.ndarray], second: list[np.ndarray]) -> list[np.ndarray]:
        return [first[0] * second[0], first[1] * second[0] + second[1]]

    layout = scannable_layout(seed, shape, axis, num_warps, lambda _: True)
    text = scan(shape, axis, ["i32", "i32"], layout, RECURRENCE, reverse)
    run(text, [a, b, ya, yb], num_warps=num_warps)
    with np.errstate(over="ignore"):
        want = scanned([a, b], axis, reverse, compose)
    np.testing.assert_array_equal(ya, want[0])
    np.testing.assert_array_equal(yb, want[1])


@pytest.mark.parametrize("reverse", [False, True])
def test_two_values_of_two_types(reverse: bool) -> None:
    """A segmented sum: it starts anew at each flag."""
    body = """
    %f = arith.ori %p0, %q0 : i8
    %zero = arith.constant 0 : i8
    %new = arith.cmpi ne, %q0, %zero : i8
    %sum = arith.addi %p1, %q1 : i32
    %v = arith.select %new, %q1, %sum : i32
    gpu.yield %f, %v : i8, i32
    """
    mirrored = body.replace("%q0, %zero", "%p0, %zero").replace("%new, %q1", "%new, %p1")
    rng = np.random.default_rng(0)
    shape = (2, 500)
    flag = (rng.random(shape) < 0.1).astype(np.int8)
    x = rng.integers(-9, 9, shape).astype(np.int32)
    yf, y = np.zeros_like(flag), np.zeros_like(x)
    layout = scan_layout(shape, 1, 8)
    assert totals_layout(layout, 1).num_threads == 256
    text = scan(shape, 1, ["i8", "i32"], layout, mirrored if reverse else body, reverse)
    run(text, [flag, x, yf, y], num_warps=8)

    def combine(first: list[np.ndarray], second: list[np.ndarray]) -> list[np.ndarray]:
        newer = first if reverse else second
        return [
            first[0] | second[0],
            np.where(newer[0] != 0, newer[1], first[1] + second[1]),
        ]

    want = scanned([flag, x], 1, reverse, combine)
    np.testing.assert_array_equal(yf, want[0])
    np.testing.assert_array_equal(y, want[1])


@pytest.mark.share(2)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64", "i8", "i16", "i64"])
def test_dtypes(element: str) -> None:
    shape = (3, 200)
    x = random_array(np.random.default_rng(1), shape, element)
    if DTYPES[element] is not np.float64:
        x = np.rint(x * 2).astype(x.dtype) if element.startswith(("f", "bf")) else x
    y = np.zeros_like(x)
    add = "arith.addf" if element.startswith(("f", "bf")) else "arith.addi"
    for reverse in (False, True):
        layout = scannable_layout(7 + reverse, shape, 1, 4, lambda _: True)
        run(scan(shape, 1, [element], layout, single(add, element), reverse), [x, y], num_warps=4)
        want = np.flip(np.cumsum(np.flip(x, 1), 1), 1) if reverse else np.cumsum(x, 1)
        np.testing.assert_allclose(
            y.astype(np.float64), want.astype(x.dtype).astype(np.float64), rtol=1e-12
        )


def test_running_maximum_from_the_end_ignores_phantoms() -> None:
    x = -np.abs(np.random.default_rng(1).standard_normal(37)).astype(np.float32) - 100
    y = np.zeros_like(x)
    layout = scan_layout((37,), 0, 2)
    run(scan((37,), 0, ["f32"], layout, single("arith.maximumf", "f32"), True), [x, y], num_warps=2)
    np.testing.assert_array_equal(y, np.flip(np.maximum.accumulate(np.flip(x))))


@pytest.mark.parametrize(
    "text",
    [
        "T(32,2,2):(4@0,128@0,256@0) V(4,2):(1@0,512@0)",
        "T(32,4):(8@0,2@0) V(2,4):(1@0,256@0)",
        "T(2,32,2):(512@0,4@0,128@0) V(4,2):(1@0,256@0)",
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_warps_between_registers_and_lanes(text: str, reverse: bool) -> None:
    layout = parse_layout(text)
    x = np.random.default_rng(2).integers(-99, 99, 1000).astype(np.int32)
    y = np.zeros_like(x)
    body = single("arith.addi", "i32")
    run(scan((1000,), 0, ["i32"], layout, body, reverse), [x, y], num_warps=4)
    np.testing.assert_array_equal(y, np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x))


def test_layouts_that_do_not_nest_are_not_supported() -> None:
    assert not supports_scan(parse_layout("T(32):(2@0) V(4):(16@0)"), (64,), 0)
    assert not supports_scan(parse_layout("T(32):(1@0) V():()"), (64,), 0)
    assert supports_scan(parse_layout("T(32):(1@0) V(2):(32@0)"), (64,), 0)


@pytest.mark.parametrize("num_warps", [1, 4, 16])
@pytest.mark.parametrize("shape", [(1,), (5000,), (7, 300), (300, 7), (2, 3, 5)])
def test_the_liked_layout_always_works(shape: tuple[int, ...], num_warps: int) -> None:
    for axis in range(len(shape)):
        layout = scan_layout(shape, axis, num_warps)
        assert supports_scan(layout, shape, axis)
        assert layout.num_threads == 32 * num_warps


def _higher(value, at, other, where):
    more = value > other
    return tl.where(more, value, other), tl.where(more, at, where)


@tilec.kernel(grid=lambda x: 1)
def highest_so_far(x: tl.array, y: tl.array, at: tl.array, M: tl.const, N: tl.const):
    """at: where the highest of each column is of the rows so far; y: where it is of all."""
    rows = tl.arange(M)[:, None] + tl.zeros((M, N), tl.i64)
    tile = tl.load(x, (0, 0), (M, N))
    tl.store(at, (0, 0), tl.associative_scan((tile, rows), 0, _higher)[1])
    tl.store(y, 0, tl.reduce((tile, rows), 0, _higher)[1])


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_elements_of_two_widths_that_warps_hand_on(columns: int) -> None:
    """One layout for both, though each has its own that takes least."""
    rng = np.random.default_rng(columns)
    x = rng.permutation(1024 * columns).reshape(1024, columns).astype(np.float32)
    y, at = np.full(columns, -1, np.int64), np.full(x.shape, -1, np.int64)
    highest_so_far.on("emulator:check")(x, y, at, M=1024, N=columns)
    expected = [[np.argmax(x[: m + 1, n]) for n in range(columns)] for m in range(1024)]
    np.testing.assert_array_equal(at, expected)
    np.testing.assert_array_equal(y, expected[-1])
