"""Reductions on the emulator against NumPy: many layouts, odd shapes, dtypes, axes and warps."""

from __future__ import annotations

import random
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from emulated import array_type, lower, random_layout, run, seed_of, tile_type

from tilec.hardware.layout import Layout, parse_layout

DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
PADDING = {"f16": "0x7E00", "bf16": "0x7FC0", "f32": "0x7FC00000", "f64": "0x7FF8000000000000"}


def load_text(
    shape: Sequence[int],
    element: str,
    layout: Layout,
    name: str,
    array: str,
    padding: str | None = None,
) -> str:
    """Loads a whole array; phantoms are NaN or 77, so whoever counts them is found out."""
    padding = padding or PADDING.get(element, "77")
    dims = ", ".join(map(str, range(len(shape))))
    zeros = ", ".join(["%c0"] * len(shape))
    types = ", ".join([array_type(len(shape), element), *["index"] * len(shape)])
    return (
        f'{name} = "tile.load"({array}, {zeros}) {{dims = array<i32: {dims}>, '
        f"padding = {padding} : {element}, options = {{}}}} : ({types}) -> "
        f"{tile_type(shape, element, layout)}"
    )


def store_text(shape: Sequence[int], element: str, layout: Layout, value: str, array: str) -> str:
    """Stores a whole tile."""
    dims = ": " + ", ".join(map(str, range(len(shape)))) if shape else ""
    operands = ", ".join([value, array, *["%c0"] * len(shape)])
    types = ", ".join(
        [
            tile_type(shape, element, layout),
            array_type(len(shape), element),
            *["index"] * len(shape),
        ]
    )
    return f'"tile.store"({operands}) {{dims = array<i32{dims}>, options = {{}}}} : ({types}) -> ()'


def reduction(
    shape: Sequence[int],
    axis: int,
    elements: Sequence[str],
    layout: Layout,
    body: str,
    into: Layout | None = None,
) -> str:
    """A kernel that reduces one array per element type and writes each result along the axis again.

    So every thread along the axis writes the copy it holds. `into`: what results are converted to
    first, rows of tiles of that layout.
    """
    numbered, count = list(enumerate(elements)), len(elements)
    rest = [*shape[:axis], *shape[axis + 1 :]]
    dims = ", ".join(str(d) for d in range(len(shape)) if d != axis)
    sliced, written = layout.slice(axis), into or layout
    rows = written.slice(axis)
    arrays = [f"%{x}{i}: {array_type(len(shape), e)}" for x in "xy" for i, e in numbered]
    loads = [load_text(shape, e, layout, f"%v{i}", f"%x{i}") for i, e in numbered]
    stores = []
    for i, e in numbered:
        from_, to = tile_type(rest, e, sliced), tile_type(rest, e, rows)
        if into is not None:
            stores.append(f'%s{i} = "gpu_tile.convert_layout"(%r#{i}) : ({from_}) -> {to}')
        stores.append(
            f'%b{i} = "tile.broadcast"({f"%r#{i}" if into is None else f"%s{i}"}) '
            f"{{dims = array<i32{': ' * bool(dims)}{dims}>}} : "
            f"({to}) -> {tile_type(shape, e, written)}"
        )
        stores.append(store_text(shape, e, written, f"%b{i}", f"%y{i}"))
    arguments = [f"%{x}{i}: {e}" for x in "pq" for i, e in numbered]
    types = ", ".join(tile_type(shape, e, layout) for e in elements)
    results = ", ".join(tile_type(rest, e, sliced) for e in elements)
    return f"""
func.func @k({", ".join(arrays)}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {chr(10).join(loads)}
  %r:{count} = "tile.reduce"({", ".join(f"%v{i}" for i in range(count))}) ({{
  ^bb0({", ".join(arguments)}):
    {body}
  }}) {{axis = {axis} : i32}} : ({types}) -> ({results})
  {chr(10).join(stores)}
  return
}}"""


def reduced(
    arrays: Sequence[np.ndarray],
    axis: int,
    elements: Sequence[str],
    layout: Layout,
    body: str,
    num_warps: int,
    padding: str | None = None,
    into: Layout | None = None,
) -> list[np.ndarray]:
    """The results of a reduction; all copies agree. `padding`: what f32 phantoms hold."""
    shape = arrays[0].shape
    text = reduction(shape, axis, elements, layout, body, into)
    if padding is not None:
        text = text.replace(f"padding = {PADDING['f32']}", f"padding = {padding}")
    results = [np.zeros_like(array) for array in arrays]
    run(text, [*arrays, *results], num_warps=num_warps)
    for result in results:
        first = np.take(result, [0], axis)
        np.testing.assert_array_equal(result, np.broadcast_to(first, shape))
    return [np.take(result, 0, axis) for result in results]


def single(op: str, element: str) -> str:
    """A region of one op."""
    return f"%c = {op} %p0, %q0 : {element}\n gpu.yield %c : {element}"


def random_array(rng: np.random.Generator, shape: Sequence[int], element: str) -> np.ndarray:
    """Normal floats, small integers."""
    dtype = DTYPES[element]
    if element in PADDING:
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-100, 100, shape).astype(dtype)


SHAPES = [
    ((1,), 0),
    ((37,), 0),
    ((1000,), 0),
    ((3, 37), 0),
    ((3, 37), 1),
    ((64, 48), 0),
    ((64, 48), 1),
    ((5, 7, 9), 0),
    ((5, 7, 9), 1),
    ((5, 7, 9), 2),
    ((1, 130), 1),
]


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sums_do_not_count_phantoms(shape: tuple[int, ...], axis: int, num_warps: int) -> None:
    seed = seed_of(shape, axis, num_warps)
    layout = random_layout(random.Random(seed), shape, num_warps)
    x = random_array(np.random.default_rng(seed), shape, "f32")
    (y,) = reduced([x], axis, ["f32"], layout, single("arith.addf", "f32"), num_warps)
    np.testing.assert_allclose(y, x.astype(np.float64).sum(axis), rtol=1e-4, atol=1e-4)


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", [2, 8])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sums_that_are_wanted_in_another_layout(
    shape: tuple[int, ...], axis: int, num_warps: int
) -> None:
    """Threads read partials of their own elements, or convert the sums."""
    seed = seed_of(axis, shape, num_warps)
    source = random.Random(seed)
    layout, into = (random_layout(source, shape, num_warps) for _ in range(2))
    x = random_array(np.random.default_rng(seed), shape, "f32")
    body = single("arith.addf", "f32")
    (y,) = reduced([x], axis, ["f32"], layout, body, num_warps, into=into)
    np.testing.assert_allclose(y, x.astype(np.float64).sum(axis), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("op", "element", "expected"),
    [
        ("arith.addf", "f64", np.sum),
        ("arith.mulf", "f32", np.prod),
        ("arith.maximumf", "f32", np.max),
        ("arith.minimumf", "f64", np.min),
        ("arith.maxnumf", "f32", np.fmax.reduce),
        ("arith.minnumf", "f32", np.fmin.reduce),
        ("arith.maximumf", "f16", np.max),
        ("arith.maximumf", "bf16", np.max),
        ("arith.addi", "i64", np.sum),
        ("arith.muli", "i32", np.prod),
        ("arith.andi", "i16", np.bitwise_and.reduce),
        ("arith.ori", "i8", np.bitwise_or.reduce),
        ("arith.xori", "i32", np.bitwise_xor.reduce),
        ("arith.maxsi", "i8", np.max),
        ("arith.minsi", "i64", np.min),
        ("arith.maxui", "i32", lambda v, axis: v.view(np.uint32).max(axis).view(np.int32)),
        ("arith.minui", "i16", lambda v, axis: v.view(np.uint16).min(axis).view(np.int16)),
    ],
)
@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_neutral_element(op: str, element: str, expected: object, seed: int) -> None:
    """9 x 43 leaves phantoms in both dimensions of nearly every layout."""
    shape, axis = (9, 43), 1
    layout = random_layout(random.Random(seed), shape, 4)
    x = random_array(np.random.default_rng(seed), shape, element)
    (y,) = reduced([x], axis, [element], layout, single(op, element), 4)
    want = expected(x, axis=axis).astype(x.dtype)
    np.testing.assert_allclose(y.astype(np.float64), want.astype(np.float64), rtol=1e-5)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_half_sums_round_like_a_tree(element: str) -> None:
    """Pairwise in the element type: the error grows with the logarithm of the length."""
    shape = (1000,)
    layout = random_layout(random.Random(5), shape, 2)
    x = random_array(np.random.default_rng(5), shape, element)
    (y,) = reduced([x], 0, [element], layout, single("arith.addf", element), 2)
    bits = 8 if element == "bf16" else 11
    bound = np.abs(x.astype(np.float64)).sum() * 10 * 2.0**-bits
    assert abs(float(y) - x.astype(np.float64).sum()) < bound


def test_nan_is_kept_by_maximum_and_ignored_by_maxnum() -> None:
    x = np.array([[1, np.nan, 3], [np.nan] * 3, [-np.inf] * 3], np.float32)
    for op, want in (
        ("arith.maximumf", [np.nan, np.nan, -np.inf]),
        ("arith.maxnumf", [3, np.nan, -np.inf]),
    ):
        layout = random_layout(random.Random(3), x.shape, 2)
        (y,) = reduced([x], 1, ["f32"], layout, single(op, "f32"), 2)
        np.testing.assert_array_equal(y, want)


def test_sum_of_negative_zeros_stays_negative() -> None:
    x = np.full(37, -0.0, np.float32)
    layout = random_layout(random.Random(3), x.shape, 2)
    (y,) = reduced([x], 0, ["f32"], layout, single("arith.addf", "f32"), 2)
    assert np.signbit(y)


ARGMAX = """
    %gt = arith.cmpf ogt, %p0, %q0 : f32
    %eq = arith.cmpf oeq, %p0, %q0 : f32
    %lower = arith.cmpi slt, %p1, %q1 : i32
    %tie = arith.andi %eq, %lower : i1
    %first = arith.ori %gt, %tie : i1
    %v = arith.select %first, %p0, %q0 : f32
    %i = arith.select %first, %p1, %q1 : i32
    gpu.yield %v, %i : f32, i32
"""


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_argmax_carries_two_values(shape: tuple[int, ...], axis: int, num_warps: int) -> None:
    """No neutral element: phantoms are kept out by flags, whole warps of them too."""
    seed = seed_of(shape, axis, num_warps)
    layout = random_layout(random.Random(seed), shape, num_warps)
    x = np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32) - 50
    index = np.ascontiguousarray(
        np.broadcast_to(
            np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))]),
            shape,
        ).astype(np.int32)
    )
    # NaN never wins a comparison; this would.
    value, at = reduced([x, index], axis, ["f32", "i32"], layout, ARGMAX, num_warps, "1.0e30")
    np.testing.assert_array_equal(value, x.max(axis))
    np.testing.assert_array_equal(at, x.argmax(axis))


def test_copies_agree_where_the_region_is_not_commutative() -> None:
    """Ties keep the first of two, so a lane that swapped them would hold another index."""
    body = """
    %first = arith.cmpf oge, %p0, %q0 : f32
    %v = arith.select %first, %p0, %q0 : f32
    %i = arith.select %first, %p1, %q1 : i32
    gpu.yield %v, %i : f32, i32
    """
    layout = parse_layout("T(32):(1@1) V(3):(1@0)")
    x, index = np.zeros((3, 32), np.float32), np.tile(np.arange(32, dtype=np.int32), (3, 1))
    _, at = reduced([x, index], 1, ["f32", "i32"], layout, body, 1)
    np.testing.assert_array_equal(at, 0)


def test_index_elements_in_both_index_widths() -> None:
    shape = (37,)
    for bits in (32, 64):
        layout = random_layout(random.Random(bits), shape, 4)
        index, wide = (tile_type((), kind, layout.slice(0)) for kind in ("index", "i64"))
        text = f"""
func.func @k(%y: {array_type(0, "i64")}) attributes {{tile.kernel}} {{
  %i = "tile.iota"() {{axis = 0 : i32}} : () -> {tile_type(shape, "index", layout)}
  %r = "tile.reduce"(%i) ({{ ^bb0(%p: index, %q: index): %c = arith.maxsi %p, %q : index
    gpu.yield %c : index }}) {{axis = 0 : i32}} : ({tile_type(shape, "index", layout)})
    -> {index}
  %w = arith.index_cast %r : {index} to {wide}
  {store_text((), "i64", layout.slice(0), "%w", "%y")}
  return
}}"""
        y = np.zeros((), np.int64)
        run(text, [y], num_warps=4, index_bits=bits)
        assert y == 36


def test_scalar_control_flow_in_a_region() -> None:
    body = """
    %gt = arith.cmpi sgt, %p0, %q0 : i32
    %c = scf.if %gt -> (i32) { scf.yield %p0 : i32 } else { scf.yield %q0 : i32 }
    gpu.yield %c : i32
    """
    x = np.random.default_rng(0).integers(-500, 500, (5, 100)).astype(np.int32)
    layout = random_layout(random.Random(1), x.shape, 4)
    (y,) = reduced([x], 1, ["i32"], layout, body, 4)
    np.testing.assert_array_equal(y, x.max(1))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("arith.addi", np.add),
        ("arith.maxsi", np.maximum),
        ("arith.minsi", np.minimum),
        ("arith.andi", np.bitwise_and),
        ("arith.ori", np.bitwise_or),
        ("arith.xori", np.bitwise_xor),
        ("arith.maxui", None),
        ("arith.minui", None),
    ],
)
def test_one_instruction_for_a_whole_warp(op: str, expected: np.ufunc | None) -> None:
    x = np.random.default_rng(0).integers(-(2**31), 2**31, (3, 50)).astype(np.int32)
    layout = parse_layout("T(32,2):(1@1,1@0) V(2,2):(2@0,32@1)")
    (y,) = reduced([x], 1, ["i32"], layout, single(op, "i32"), 2)
    unsigned = np.maximum if op == "arith.maxui" else np.minimum
    want = expected.reduce(x, 1) if expected else unsigned.reduce(x.view(np.uint32), 1)
    np.testing.assert_array_equal(y, want.astype(np.int32))
    assert (
        "redux.sync"
        in lower(reduction((3, 50), 1, ["i32"], layout, single(op, "i32")), num_warps=2)[0]
    )
