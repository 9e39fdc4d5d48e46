"""Rows that `tl.auto` tiles hold: loops along them go round once, and the row is loaded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import modes
from tile_shapes import soften

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.dialects.tile import LoadOp, ReduceOp
from tilec.examples.cross_entropy import cross_entropy, reference
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.frontend import build_module
from tilec.hardware.target import find_target
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.walk import find_ops, kernels
from tilec.runtime.artefact import save
from tilec.runtime.errors import ArgumentError

BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target with clusters."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


def run_losses(rows: int, columns: int, dtype: Any, seed: int = 0) -> CompiledKernel:
    """Cross-entropy in check mode, by turns in late mode, compared with float64; label 1 is
    ignored."""
    rng = np.random.default_rng([seed, rows, columns])
    logits = (4 * rng.standard_normal((rows, columns))).astype(dtype)
    labels = rng.integers(0, columns, rows).astype(np.int32)
    labels[-1] = columns - 1
    labels[1:2] = -100
    expected, gradient = reference(logits, labels, 0.1)
    tolerance = 2e-6 if dtype is np.float32 else 8e-3
    for mode in modes():
        found, z = poisoned((rows,), np.float32), logits.copy()
        kernel = cross_entropy.on(f"emulator:{mode}")
        kernel(z, labels, found, 0.1)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(z.astype(np.float64), gradient, rtol=0, atol=tolerance)
    return cross_entropy.on("emulator").compiled(logits, labels, found, 0.1)


@pytest.mark.parametrize(
    ("rows", "columns", "tile"),
    [(9, 641, 768), (5, 777, 896), (3, 4996, 5120), (200, 1000, 1024), (2, 2048, 2048)],
)
@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_rows_that_a_tile_holds(rows: int, columns: int, tile: int, dtype: Any) -> None:
    kernel = run_losses(rows, columns, dtype)
    assert kernel.constants["B"] == tile
    assert kernel.limits[0][1] == tile


@pytest.mark.parametrize(
    ("columns", "dtype", "stripes"),
    [(40001, BF16, 8), (40960, np.float32, 8), (140000, BF16, 8), (4996, np.float32, 2)],
)
def test_rows_that_a_cluster_holds(columns: int, dtype: Any, stripes: int) -> None:
    """The branch of ignored rows among them, and a logit that is read where gradients go."""
    assert run_losses(3, columns, dtype).stripes == stripes


def compiled_losses(rows: int, columns: int) -> CompiledKernel:
    """As for a call on an H200."""
    specs = ["logits:bf16[?,?:8;?:8,1]", "labels:i32[?]", "losses:f32[?]", "smoothing:f32"]
    sizes = {"logits": (rows, columns), "labels": (rows,), "losses": (rows,)}
    return cross_entropy.compile(specs, target="sm_90a", sizes=sizes, at_most=True)


def test_many_rows_are_read_twice_by_more_programs_side_by_side() -> None:
    """Where rows of a launch fill multiprocessors; few are spread over those that idle."""
    assert compiled_losses(338, 11176).constants["B"] == 4096
    assert compiled_losses(900, 40000).stripes == 1
    for rows, stripes in ((3, 8), (19, 4), (40, 2), (70, 1)):
        kernel = compiled_losses(rows, 16384)
        assert (kernel.constants["B"], kernel.stripes) == (16384, stripes)
    assert not compiled_losses(100, 640).limits


def test_few_rows_have_many_warps() -> None:
    assert [compiled_losses(100, n).threads for n in (1500, 5888, 8192)] == [64, 256, 512]


def test_no_row_is_too_long_for_registers() -> None:
    """Of a cluster of eight, 64 elements a thread: estimated to fit, so that no loop comes back."""
    for rows, columns in ((40, 20000), (30, 32768), (3, 229944), (2, 262144)):
        kernel = compiled_losses(rows, columns)
        assert kernel.constants["B"] >= columns
        assert "registers" not in [one["about"] for one in kernel.report["decisions"]]


def test_longer_rows_and_empty_ones_are_refused(tmp_path: Path) -> None:
    """Ahead of time, where launches are promised to bring no longer ones; else they take any."""
    specs = ["logits:f32[?,?]", "labels:i32[?]", "losses:f32[?]", "smoothing:f32"]
    sizes = {"logits": (7, 1000), "labels": (7,), "losses": (7,)}

    def launch(columns: int, **promise: Any) -> None:
        kernel = cross_entropy.compile(specs, target="sm_90a", sizes=sizes, **promise)
        save(tmp_path / "k.tilec", [kernel])
        logits, labels = np.ones((7, columns), np.float32), np.zeros(7, np.int32)
        losses = poisoned((7,), np.float32)
        tilec.load(str(tmp_path / "k.tilec"))(logits, labels, losses, 0.0)
        np.testing.assert_allclose(losses, np.log(columns), rtol=1e-5, atol=1e-6)

    launch(1024, at_most=True)
    launch(1025)
    for columns in (1025, 0):
        with pytest.raises(ArgumentError, match=r"logits\.shape\[1\] is beyond the 1 to 1024 el"):
            launch(columns, at_most=True)


def test_calls_of_any_length_one_after_the_other() -> None:
    """A kernel that keeps rows of a tile of 16384 does not serve a class with such tiles that go
    round; nor does one of many columns serve none."""
    rng = np.random.default_rng(3)
    there = soften.on("emulator:check")
    for columns in (1000, 16384, 300000, 5000, 1, 1000):
        x = rng.standard_normal((2, columns)).astype(np.float32)
        y = poisoned(x.shape, np.float32)
        there(x, y)
        np.testing.assert_allclose(y, np.exp(x - x.max(1, keepdims=True)), rtol=1e-5)
        if columns > 10000:
            kernel = there.compiled(x, y)
            assert (kernel.constants["B"], kernel.index_bits) == (16384, 32)
    empty = np.zeros((2, 0), np.float32)
    there(empty, empty.copy())


def straight(kernel: Kernel, specs: list[str], size: int = 256) -> tuple[list[str], int]:
    """What the kernel loads, at tile level with tiles of `size`, and how many loops it has, where
    axis 1 of its first array has no more than 256 elements."""
    wanted = kernel._for(specs, {"B": size}, 32, find_target("sm_90a"))
    constants = dict(wanted.constants)
    module = build_module(kernel.fn, wanted.parameters, constants, held=[(0, 1, 256)])
    with module.context:
        (function,) = kernels(module)
        return [str(op) for op in find_ops(function, LoadOp)], len(find_loops(function))


ROWS = ["x:f32[?,?]", "y:f32[?,?]"]


def test_a_row_is_loaded_once_although_its_padding_differs() -> None:
    """What is computed of it the second time goes where it came from, nowhere else."""
    (load,), loops = straight(in_place, ["x:f32[?,?]"])
    assert "0xFF800000" in load
    assert loops == 0


@tilec.kernel(grid=lambda x: x.shape[0])
def in_place(x: tl.array, B: tl.const = tl.auto):
    """x minus the highest of its row."""
    row, highest = tl.program_id(0), -tl.inf
    for start in tl.range(0, x.shape[1], B):
        highest = tl.maximum(highest, tl.max(tl.load(x, (row, start), B, padding=-tl.inf)))
    for start in tl.range(0, x.shape[1], B):
        tl.store(x, (row, start), tl.load(x, (row, start), B) - highest)


def test_padding_that_shows_is_loaded_again() -> None:
    """`y` may have other sizes than x: elements beyond x are stored there."""
    assert len(straight(soften, ROWS)[0]) == 2


def test_steps_that_do_not_hold_the_axis_stay_loops() -> None:
    assert straight(soften, ROWS, size=128)[1] == 2


@tilec.kernel(grid=lambda x: x.shape[0])
def doubled_first(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """y: the sum of a row, after it was doubled where it is."""
    row, total = tl.program_id(0), 0.0
    for start in tl.range(0, x.shape[1], B):
        tl.store(x, (row, start), 2 * tl.load(x, (row, start), B))
    for start in tl.range(0, x.shape[1], B):
        total += tl.sum(tl.load(x, (row, start), B))
    tl.store(y, row, total)


def test_what_was_stored_between_is_loaded() -> None:
    assert len(straight(doubled_first, ["x:f32[?,?]", "y:f32[?]"])[0]) == 2
    x = np.random.default_rng(5).standard_normal((3, 200)).astype(np.float32)
    y, twice = poisoned((3,), np.float32), 2 * x
    doubled_first.on("emulator:check")(x, y)
    np.testing.assert_array_equal(x, twice)
    np.testing.assert_allclose(y, twice.sum(1), rtol=1e-4, atol=1e-4)


def test_single_elements_are_loaded_before_stripes_store() -> None:
    """In front of the first reduction, where all stripes of the row meet."""
    specs = ["logits:f32[?,?]", "labels:i32[?]", "losses:f32[?]", "smoothing:f32"]
    wanted = cross_entropy._for(specs, {"B": 256}, 32, find_target("sm_90a"))
    constants = dict(wanted.constants)
    module = build_module(cross_entropy.fn, wanted.parameters, constants, held=[(0, 1, 256)])
    with module.context:
        (function,) = kernels(module)
        loads = find_ops(function, LoadOp)
        (number,) = [op for op in loads if str(op.results[0].type) == "tensor<f32>"]
        first = next(op for op in find_ops(function, ReduceOp) if op.block == number.block)
        order = [view.operation for view in number.block.operations]
        assert order.index(number) < order.index(first)


@tilec.kernel(grid=lambda x: x.shape[0])
def scaled_if(x: tl.array, flags: tl.array, N: tl.const, OWN: tl.const):
    """Rows by their sums, where a flag says so, or with OWN their first element."""
    row = tl.program_id(0)
    flag = tl.load(x, (row, 0), ()) if OWN else tl.load(flags, row, ())
    if flag > 0:
        v = tl.load(x, (row, 0), N)
        tl.store(x, (row, 0), v / tl.sum(v))


def test_branches_that_all_stripes_take_alike() -> None:
    """Not those that a row decides in which another stripe may have stored."""
    rng = np.random.default_rng(6)
    x = 1 + rng.random((4, 40000), dtype=np.float32)
    flags = np.array([1, -1, 0, 2], np.float32)
    expected = np.where(flags[:, None] > 0, x / x.sum(1, keepdims=True, dtype=np.float64), x)
    for own in (True, False):
        z, kernel = x.copy(), scaled_if.on("emulator:check")
        kernel(z, flags if not own else flags + 9, 40192, own)
        wanted = x / x.sum(1, keepdims=True, dtype=np.float64) if own else expected
        np.testing.assert_allclose(z, wanted, rtol=1e-5)
        assert (kernel.compiled(z, flags, 40192, own).stripes > 1) is not own


def test_few_rows_that_are_too_many_to_stay() -> None:
    """One round of each loop, which reads the row again; launches may bring longer ones."""
    rng = np.random.default_rng(6)
    logits = (4 * rng.standard_normal((166, 6700))).astype(BF16)
    labels = rng.integers(0, 6700, 166).astype(np.int32)
    expected, gradient = reference(logits, labels, 0.1)
    found, kernel = poisoned((166,), np.float32), cross_entropy.on("emulator")
    chosen = kernel.compiled(logits, labels, found, 0.1)
    assert chosen.constants["B"] == 6912 < dict(chosen.limits)["logits.shape[1]"]
    kernel(logits, labels, found, 0.1)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(logits.astype(np.float64), gradient, rtol=0, atol=8e-3)


@tilec.kernel(grid=lambda x: x.shape[0])
def run_on(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """Running sums of rows of any length."""
    row, before = tl.program_id(0), 0.0
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B)
        tl.store(y, (row, start), before + tl.cumsum(v))
        before += tl.sum(v)


@pytest.mark.parametrize(("rows", "columns"), [(3, 20000), (2, 83984)])
def test_rows_that_one_loop_walks_along_are_shared(rows: int, columns: int) -> None:
    """By the CTAs of a cluster, where multiprocessors would idle."""
    x = np.random.default_rng(columns).standard_normal((rows, columns), dtype=np.float32)
    for mode in modes():
        y = poisoned(x.shape, np.float32)
        run_on.on(f"emulator:{mode}")(x, y)
        np.testing.assert_allclose(y, np.cumsum(x.astype(np.float64), 1), atol=2e-3)
    assert run_on.on("emulator").compiled(x, y).stripes == 8


def test_few_rows_of_any_length_are_shared() -> None:
    """Each by as many CTAs as there are multiprocessors for; more stay loops."""
    assert [compiled_losses(rows, 256496).stripes for rows in (3, 10, 60, 70)] == [8, 8, 8, 1]
    specs = ["x:f32[?,?:8;?:8,1]", "y:f32[?,?:8;?:8,1]"]
    for rows, stripes in ((10, 8), (60, 4), (70, 1), (1000, 1)):
        sizes = {"x": (rows, 40000), "y": (rows, 40000)}
        kernel = run_on.compile(specs, target="sm_90a", sizes=sizes, at_most=True)
        assert (kernel.stripes, kernel.constants["B"] > 40000) == (stripes, stripes > 1)
