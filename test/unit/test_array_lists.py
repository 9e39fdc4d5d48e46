"""Lists of arrays of any length: arrays chosen at run time, and parts that programs share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.executable.kernel import CompiledKernel, Facts
from tilec.messages.diagnostics import CompileError
from tilec.runtime.array_list import LIMIT_32, describe_list
from tilec.runtime.arrays import ArrayView
from tilec.runtime.artefact import load, save
from tilec.runtime.emulator import EmulatorError, Pointer, PointerTable
from tilec.runtime.emulator import load as load_ptx
from tilec.runtime.emulator_device import FindingsError
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import index_bits, observe_list


@tilec.kernel(grid=lambda params, B: tl.parts(params, B))
def sgd(params: tl.flat_arrays, grads: tl.flat_arrays, rate: float, B: tl.const = 64):
    which, start = tl.part(params, B)
    g = tl.load(grads[which], start, B).to(tl.f32)
    p = tl.load(params[which], start, B).to(tl.f32) - rate * g
    tl.store(params[which], start, p.to(params.dtype))


@tilec.kernel(grid=lambda xs: len(xs))
def column_sums(xs: tl.arrays, y: tl.array, R: tl.const = 4, C: tl.const = 32):
    """The first C columns of every matrix, added up over rows: matrices of any sizes, strides."""
    x = xs[tl.program_id(0)]
    total = tl.zeros((C,), tl.f32)
    for row in tl.range(0, x.shape[0], R):
        total += tl.sum(tl.load(x, (row, 0), (R, C)), 0)
    tl.store(y, (tl.program_id(0), 0), total)


@tilec.kernel(grid=lambda y: 1)
def picked(xs: tl.arrays, chosen: tl.array, y: tl.array, B: tl.const = 32):
    """One array behind the other, of those that an array of positions names."""
    for i in tl.range(0, chosen.shape[0]):
        x = xs[tl.load(chosen, i, ())]
        tl.store(y, (i, 0), tl.load(x, 0, B))
        if i == len(xs):
            tl.store(y, (i, 0), tl.zeros((B,), tl.f32))


@tilec.kernel(grid=lambda y: 1)
def far_places(xs: tl.arrays, y: tl.array):
    """Arithmetic of the length that might leave 32 bits."""
    tl.store(y, 0, (len(xs) * 1_000_000 + xs[0].shape[0]).to(tl.i64))
    tl.store(y, 1, tl.load(xs[len(xs) - 1], len(xs) * 1_000_000 - 2_999_999, ()).to(tl.i64))


def test_the_length_of_a_list_in_arithmetic() -> None:
    """What a launch evaluates, to see whether it fits, is len(xs), which has no shape."""
    xs, y = [np.arange(n, dtype=np.int32) for n in (4, 5, 6)], np.zeros(2, np.int64)
    far_places.check(xs, y)
    assert [*y] == [3_000_004, 1]


@tilec.kernel(grid=1, device="emulator:check")
def sum_of_products(As: tl.arrays, Bs: tl.arrays, C: tl.array):
    """The sum of a product of each pair of matrices: copies run ahead into the next pair's."""
    acc = tl.zeros((64, 32), tl.f32)
    for i in tl.range(0, len(As)):
        acc = tl.dot(tl.load(As[i], (0, 0), (64, 32)), tl.load(Bs[i], (0, 0), (32, 32)), acc)
    tl.store(C, (0, 0), acc)


def drawn(random: np.random.Generator, shapes: Any, dtype: Any = np.float32) -> list[np.ndarray]:
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("length", [1, 2, 3, 40])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=["f32", "bf16"])
def test_programs_share_all_elements(length: int, dtype: Any) -> None:
    random = np.random.default_rng(length)
    shapes = [tuple(random.integers(1, 9, random.integers(0, 4))) for _ in range(length)]
    shapes[-1] = (7 * 64 + 1,)
    params, grads = drawn(random, shapes, dtype), drawn(random, shapes)
    expected = [p.astype(np.float32) - 0.5 * g for p, g in zip(params, grads, strict=True)]
    sgd.check(params, grads, 0.5)
    for found, wanted in zip(params, expected, strict=True):
        assert np.allclose(
            found.astype(np.float32), wanted, rtol=1e-2 if dtype != np.float32 else 1e-6, atol=1e-6
        )


def test_whole_parts_empty_arrays_and_an_array_twice() -> None:
    random = np.random.default_rng(1)
    grads = drawn(random, [64, 0, 128, 1, 0])
    params = drawn(random, [64, 0, 128, 1, 0])
    expected = [p - g for p, g in zip(params, grads, strict=True)]
    sgd.check(params, grads, 1.0)
    assert all(map(np.allclose, params, expected))
    zeros = np.zeros(100, np.float32)
    sgd.check([zeros], [grads[2][:100]], 1.0)
    same = [grads[0], grads[0]]
    sgd.check(drawn(random, [64, 64]), same, 1.0)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_matrices_of_any_sizes(target: str) -> None:
    random = np.random.default_rng(7)
    whole = [
        random.standard_normal((random.integers(1, 19), 70)).astype(np.float32) for _ in range(5)
    ]
    xs = [x[:, : random.integers(1, 65)] for x in whole]
    y = np.full((5, 32), np.nan, np.float32)
    specs = ["xs[]:f32[?,?;?,1]@4", "y:f32[?,?;?,1]@4"]
    kernel = column_sums.compile(specs, target=target)
    device = tilec.device("emulator:check")
    device.launch(device.load(kernel), [xs, y], (5, 1, 1))
    for x, found in zip(xs, y, strict=True):
        wanted = np.zeros(32)
        wanted[: x.shape[1]] = x[:, :32].sum(0)
        assert np.allclose(found, wanted, atol=1e-4)


def test_copies_run_ahead_into_other_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    random = np.random.default_rng(4)
    As, Bs = drawn(random, [(64, 32)] * 7, np.float16), drawn(random, [(32, 32)] * 7, np.float16)
    C = np.full((64, 32), np.nan, np.float32)
    sum_of_products(As, Bs, C)
    wanted = sum(a.astype(np.float64) @ b for a, b in zip(As, Bs, strict=True))
    assert np.allclose(C, wanted, atol=2e-2)
    assert "pipeline: 4 stages" in sum_of_products.report(As, Bs, C)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_positions_from_memory(dtype: Any) -> None:
    random = np.random.default_rng(3)
    xs, y = drawn(random, [20, 31, 40]), np.full((4, 32), np.nan, np.float32)
    picked.check(xs, np.array([2, 0, 1, 2], dtype), y)
    for n, found in ((2, y[0]), (0, y[1]), (1, y[2])):
        assert np.allclose(found[: min(32, xs[n].size)], xs[n][:32])
    assert not y[3].any()


@pytest.mark.parametrize("position", [np.int32(3), np.int32(-1), np.int64(2**32)])
def test_a_position_that_is_none_is_found_at_its_line(position: Any) -> None:
    xs, y = drawn(np.random.default_rng(3), [20, 31, 40]), np.zeros((1, 32), np.float32)
    with pytest.raises(FindingsError, match="xs has no array at this position") as caught:
        picked.check(xs, np.array([position]), y)
    line = next(
        n for n, t in enumerate(Path(__file__).read_text().splitlines(), 1) if "x = xs[tl.load" in t
    )
    assert f"test_array_lists.py:{line}" in str(caught.value)


def test_nothing_writes_a_table() -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 t) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [t];
  st.global.u64 [%rd1+8], %rd1;
  ret;
}
"""
    array = np.arange(4.0)
    table = PointerTable([0, 4], {0: Pointer(array, name="xs[0]")}, "the table of xs")
    with pytest.raises(EmulatorError, match=r"store to a read-only array: .* of the table of xs"):
        load_ptx(text).run("k", (1, 1, 1), 1, [table])


def test_lists_of_other_lengths_share_a_kernel() -> None:
    kernel = Kernel(sgd.fn, sgd.grid, device="emulator")
    random = np.random.default_rng(0)
    made = {
        id(kernel.compiled(drawn(random, [9] * n), drawn(random, [9] * n), 1.0))
        for n in (1, 5, 300)
    }
    assert len(made) == 1


def test_what_is_assumed_of_all_is_so_of_each() -> None:
    memory = np.zeros(1000, np.float32)
    aligned, apart = memory[-memory.ctypes.data % 16 // 4 :][:800], 401
    for arrays, facts in (
        ([aligned[:8], aligned[400:420]], Facts(16, (4,), (4,))),
        ([aligned[:8], aligned[400:421]], Facts(16, (1,), (4,))),
        ([aligned[:8], aligned[apart:][:8]], Facts(4, (4,), (4,))),
        ([aligned[:0], aligned[:1]], Facts(16, (1,), (4,))),
    ):
        found = observe_list("xs", "flat_arrays", describe_list(arrays, "xs", flat=True))
        assert (found.facts.align, found.facts.sizes) == (facts.align, facts.sizes)
        assert found.strides == (1,)
    rows = [aligned[:80].reshape(10, 8)[:, :5], aligned[:120].reshape(10, 12)[:, :4]]
    found = observe_list("xs", "arrays", describe_list(rows, "xs", flat=False))
    assert (found.strides, found.facts) == ((None, 1), Facts(16, (1, 1), (4, 1)))
    rows = [aligned[:80].reshape(10, 8)[:, :6], aligned[:100].reshape(10, 10)]
    found = observe_list("xs", "arrays", describe_list(rows, "xs", flat=False))
    assert (found.strides, found.facts) == ((None, 1), Facts(16, (1, 2), (2, 1)))
    turned = describe_list([rows[0], rows[1][::-1]], "xs", flat=False)
    assert observe_list("xs", "arrays", turned).facts.strides[0] == 1


def test_vectors_are_wide_where_no_size_is_known() -> None:
    kernel = sgd.compile(
        ["params[]:f32[?]", "grads[]:f32[?]", "rate:f32"], {"B": 256}, target="sm_90a"
    )
    assert re.search(r"ld\.global.*\.v4", kernel.ptx)
    assert re.search(r"st\.global.*\.v4", kernel.ptx)
    assert kernel.writes == ("params",)
    narrow = sgd.compile(
        ["params[]:f32[?]@4", "grads[]:f32[?]@4", "rate:f32"], {"B": 256}, target="sm_90a"
    )
    assert ".v4" not in narrow.ptx


@pytest.mark.parametrize(
    ("dtype", "shape", "strides", "bits"),
    [
        ("i8", (LIMIT_32 - 1,), (1,), 32),
        ("i8", (LIMIT_32,), (1,), 64),  # its last part may begin beyond what 32 bits hold
        ("f32", (LIMIT_32 // 4,), (1,), 64),
        ("i8", (2, 2), (2**31, 1), 64),
        ("i8", (2, 2), (-(2**31), 1), 64),
    ],
)
def test_arrays_of_2_GiB_take_wide_indices(dtype: str, shape: Any, strides: Any, bits: int) -> None:
    small = ArrayView(4096, (1,) * len(shape), (1,) * len(shape), dtype, ("cuda", 0))
    large = ArrayView(8192, shape, strides, dtype, ("cuda", 0))
    assert index_bits([describe_list([small, large], "xs", flat=False)]) == bits


def test_an_artefact_takes_lists(tmp_path: Path) -> None:
    kernel = sgd.compile(["params[]:f32[?]@4", "grads[]:f32[?]@4", "rate:f32"], target="sm_90a")
    path = tmp_path / "sgd.tilec"
    save(path, [kernel])
    loaded = load(path, device="emulator")
    assert loaded.kernels[0].parameters == kernel.parameters
    random = np.random.default_rng(5)
    params, grads = drawn(random, [(3, 5), 200]), drawn(random, [(3, 5), 200])
    expected = [p - g for p, g in zip(params, grads, strict=True)]
    loaded(params, grads, 1.0)
    assert all(map(np.allclose, params, expected))
    with pytest.raises(ArgumentError, match="expected arrays of dtype f32, found f16"):
        loaded(drawn(random, [4], np.float16), grads[:1], 1.0)


def test_facts_of_specs_are_checked() -> None:
    kernel: CompiledKernel = column_sums.compile(
        ["xs[]:f32[?,64;64,1]", "y:f32[?,?;?,1]@4"], target="sm_90a"
    )
    device = tilec.device("emulator")
    memory = np.zeros(2000, np.float32)
    aligned = memory[-memory.ctypes.data % 16 // 4 :]
    y = np.zeros((2, 32), np.float32)
    right = aligned[:640].reshape(10, 64)
    for wrong, text in (
        (aligned[:600].reshape(10, 60), "size 64 on axis 1 of each, found others"),
        (aligned[:1280].reshape(10, 128)[:, :64], "stride 64 on axis 0 of each, found others"),
        (
            aligned[1:641].reshape(10, 64),
            "pointers that are multiples of 16 bytes, found multiples of 4",
        ),
    ):
        with pytest.raises(ArgumentError, match=text):
            device.launch(device.load(kernel), [[right, wrong], y], (2, 1, 1))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (3, "expected a list of arrays, found int"),
        (np.zeros(3, np.float32), "expected a list of arrays, found ndarray"),
        ([], "an empty list; nobody knows its dtype"),
        ([np.zeros(3, np.float32), 1], r"'params\[1\]': expected an array, found int"),
        (
            [np.zeros(3, np.float32), np.zeros(3, np.float16)],
            r"'params\[1\]': expected the dtype of 'params\[0\]', f32, found f16",
        ),
        (
            [np.zeros(3, np.float32), np.zeros((3, 4), np.float32)[:, :2]],
            r"'params\[1\]': expected an array without gaps, row-major",
        ),
    ],
    ids=["number", "array", "empty", "part", "dtype", "gaps"],
)
def test_what_is_no_list(argument: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sgd.on("emulator")(argument, [np.zeros(3, np.float32)], 1.0)


def test_arrays_of_one_list_have_one_rank() -> None:
    xs = [np.zeros((3, 3), np.float32), np.zeros(3, np.float32)]
    with pytest.raises(ArgumentError, match=r"the rank of 'xs\[0\]', 2, found 1; tl.flat_arrays"):
        column_sums.on("emulator")(xs, np.zeros((2, 32), np.float32))


def no_loop(xs: tl.arrays):
    for x in xs:
        print(x)


def no_slice(xs: tl.arrays):
    print(xs[1:])


def no_last(xs: tl.arrays):
    tl.load(xs[-1], 0, 4)


def no_float(xs: tl.arrays):
    tl.load(xs[0.5], 0, 4)


def no_shape(xs: tl.arrays):
    print(xs.shape)


def no_load(xs: tl.arrays):
    tl.load(xs, 0, 4)


def no_part(xs: tl.arrays, n: tl.i32):
    tl.part(xs, n)


def no_large_part(xs: tl.arrays):
    tl.part(xs, 1 << 17)


def no_part_of_a_number(xs: tl.arrays, n: tl.i32):
    tl.part(n, 64)


def no_parts(xs: tl.arrays):
    tl.parts(xs, 64)


def no_other(xs: tl.arrays, n: tl.i32):
    x = xs[0]
    if n > 0:
        x = xs[1]
    tl.store(x, 0, tl.zeros((4,), tl.f32))


@pytest.mark.parametrize(
    ("fn", "message", "help_"),
    [
        (no_loop, "cannot loop over the list 'xs' of arrays of f32", "for i in tl.range(len(xs))"),
        (no_slice, "a list of arrays has no parts", "xs[i] is one of its arrays"),
        (no_last, "positions in a list begin at 0, found -1", "xs[len(xs) - 1]"),
        (no_float, "a position in a list must be an integer scalar", ""),
        (no_shape, "a list of arrays has no attribute 'shape'", "xs[i] is an array"),
        (no_load, "found the list 'xs' of arrays of f32", "xs[i] is one of them"),
        (no_part, "elements must be a constant, found a scalar of i32", ""),
        (no_large_part, "elements must be from 1 to 65536, found 131072", ""),
        (
            no_part_of_a_number,
            "part takes a list of arrays, found a scalar of i32",
            "tl.flat_arrays",
        ),
        (no_parts, "parts is for grid rules", "tl.num_programs(0)"),
        (no_other, "'x' is", ""),
    ],
)
def test_mistakes_in_kernels(fn: Any, message: str, help_: str) -> None:
    specs = ["xs[]:f32[?]", *(["n:i32"] if fn.__code__.co_argcount > 1 else [])]
    with pytest.raises(CompileError) as caught:
        Kernel(fn).source_module(specs)
    assert message in str(caught.value)
    assert help_ in str(caught.value)
    assert "test_array_lists.py" in str(caught.value)


def test_parts_are_of_rows() -> None:
    with pytest.raises(
        CompileError, match="part takes a list of rows, arrays of 'xs' have 2 dimensions"
    ):
        Kernel(no_large_part).source_module(["xs[]:f32[?,?]"])


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda xs: xs, "found the list 'xs'; len(xs) and tl.parts(xs, B) are integers"),
        (lambda xs: xs.shape[0], "a list of arrays in a grid rule has ndim and dtype, not 'shape'"),
        (lambda y: tl.parts(y, 4), "tl.parts takes a list of arrays (tl.arrays)"),
        (
            lambda xs: tl.parts(xs, 4),
            "tl.parts takes a list of rows, 'xs' has arrays of 2 dimensions",
        ),
    ],
)
def test_mistakes_in_grid_rules(rule: Any, message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        Kernel(column_sums.fn, rule).source_module(["xs[]:f32[?,?]", "y:f32[?,?]"])


def test_parts_in_grid_rules_have_a_constant() -> None:
    with pytest.raises(CompileError, match="column 7: 'params' is a list of arrays"):
        Kernel(sgd.fn, lambda params, rate: tl.parts(params, rate)).source_module(
            ["params[]:f32[?]", "grads[]:f32[?]", "rate:f32"]
        )


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (
            ["params:f32[?]", "grads[]:f32[?]"],
            "argument 'params' is a list; expected e.g. params[]:f32[?]",
        ),
        (["params[]:f32", "grads[]:f32[?]"], "a list holds arrays, e.g. params[]:f32[?]"),
        (["params[]:f32[?,?]", "grads[]:f32[?]"], "argument 'params': flat arrays are rows"),
        (["params[0]:f32[?]", "grads[]:f32[?]"], "argument 'params' is no group"),
    ],
)
def test_wrong_specs(specs: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        sgd.compile(specs, target="sm_90a")


def test_a_list_where_none_is_declared() -> None:
    with pytest.raises(ValueError, match="is a list of any length; its annotation does not say so"):
        column_sums.compile(["xs[]:f32[?,?]", "y[]:f32[?,?]"], target="sm_90a")


def test_what_takes_no_lists() -> None:
    kernel = sgd.compile(["params[]:f32[?]", "grads[]:f32[?]", "rate:f32"], target="sm_90a")
    from tilec.c_source.source import c_source

    with pytest.raises(ValueError, match="argument 'params': C has no lists of arrays"):
        c_source([kernel])
    with pytest.raises(
        ValueError, match="argument 'params' is a list of arrays; such kernels are not"
    ):
        tilec.autotune(search={"B": [64, 128]})(sgd)


def test_a_list_stands_for_one_of_many_classes_of_sizes() -> None:
    @tilec.kernel(grid=lambda xs, B: tl.parts(xs, B), device="emulator")
    def doubled(xs: tl.flat_arrays, B: tl.const = tl.auto):
        which, start = tl.part(xs, B)
        tl.store(xs[which], start, 2 * tl.load(xs[which], start, B))

    xs = drawn(np.random.default_rng(2), [3000, 1, 17])
    expected = [2 * x for x in xs]
    doubled(xs)
    assert all(map(np.array_equal, xs, expected))
    assert "constant: B" in doubled.report(xs)
