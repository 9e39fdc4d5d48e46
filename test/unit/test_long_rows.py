"""Rows that one CTA cannot hold, spread over clusters (pass spread-rows), on the emulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl
from tilec.call import jit
from tilec.call.jit import Kernel
from tilec.compile.source import parse_source
from tilec.costs.machine import usual_machine
from tilec.dialects.context import make_context
from tilec.examples.layer_norm import layer_norm
from tilec.examples.layer_norm import reference as normalised
from tilec.examples.running import poisoned
from tilec.examples.softmax import reference as softmaxed
from tilec.examples.softmax import softmax
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.passes.analysis.lifetimes import find_allocations

BF16 = ml_dtypes.bfloat16
LONG = 65536
PROGRAMS = 2


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target with clusters."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@tilec.kernel(grid=lambda x: x.shape[0])
def best(x: tl.array, highest: tl.array, at: tl.array, seen: tl.array, N: tl.const):
    """The highest element of each row, where it is first, and what the grid looked like."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), (1, N), padding=-tl.inf)
    tl.store(at, row, tl.argmax(v, 1))
    tl.store(highest, row, tl.max(v, 1))
    tl.store(seen, row, (tl.num_programs(0) * 100 + row).to(tl.i32))


@tilec.kernel(grid=lambda x, y: (x.shape[0], x.shape[1]))
def scaled(x: tl.array, y: tl.array, N: tl.const):
    """In place: each row of a plane by its length, columns counted."""
    row, plane = tl.program_id(0), tl.program_id(1)
    v = tl.load(x, (row, plane, 0), N)
    total = tl.sum(tl.where(tl.arange(N) < x.shape[2], v * v, 0.0))
    tl.store(x, (row, plane, 0), v * tl.rsqrt(total))
    tl.store(y, (row, plane), total)


def rows(columns: int, dtype: Any, seed: int = 0) -> np.ndarray:
    """Random rows, the largest element of some at an edge of a stripe."""
    drawn = np.random.default_rng([seed, columns]).standard_normal((PROGRAMS, columns))
    drawn[0, 16384 % columns] = 9
    return drawn.astype(dtype)


def run(kernel: Kernel, outputs: list[np.ndarray], call: Any) -> None:
    """In check mode, by turns in late mode, into poisoned outputs; clusters run it."""
    for mode in modes():
        for output in outputs:
            output[...] = poisoned(output.shape, output.dtype)
        call(kernel.on(f"emulator:{mode}"))


def compiled_softmax(elements: int, dtype: str = "f32", target: str = "sm_90a") -> CompiledKernel:
    """softmax in one tile."""
    row = f"{dtype}[?,?:8;?:8,1]"
    return softmax.compile([f"x:{row}", f"y:{row}"], {"N": elements}, target=target)


@pytest.mark.parametrize(
    ("columns", "dtype", "error"), [(LONG, np.float32, 1e-6), (40961, BF16, 1e-2)]
)
def test_softmax(columns: int, dtype: Any, error: float) -> None:
    """Whole stripes, and a row that ends in the middle of one, the next without any."""
    x, y = rows(columns, dtype), poisoned((PROGRAMS, columns), dtype)
    run(softmax, [y], lambda there: there(x, y, N=LONG))
    expected = softmaxed(x.astype(np.float64))
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=0, atol=error * expected.max())
    assert softmax.compiled(x, y, N=LONG).cluster == (4, 1, 1)


def test_layer_norm() -> None:
    """Weights are spread, too, and columns are counted from the row's start."""
    x, y = rows(50000, np.float32), poisoned((PROGRAMS, 50000), np.float32)
    weight, bias = rows(50000, np.float32, seed=1)
    run(layer_norm, [y], lambda there: there(x, weight, bias, y, 1e-5, N=LONG))
    expected = normalised(x, weight, bias, 1e-5)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5)


def test_what_rows_reduce_to_is_stored_once() -> None:
    """And the first of equal elements is found, wherever it lies."""
    x = rows(LONG, np.float32)
    x[1, [70, 40000, 65535]] = 11
    highest, at = poisoned((PROGRAMS,), np.float32), poisoned((PROGRAMS,), np.int32)
    seen = poisoned((PROGRAMS,), np.int32)
    run(best, [highest, at, seen], lambda there: there(x, highest, at, seen, N=LONG))
    np.testing.assert_array_equal(highest, x.max(1))
    np.testing.assert_array_equal(at, x.argmax(1))
    np.testing.assert_array_equal(seen, [200, 201])


def test_in_place_in_two_dimensions() -> None:
    """A stripe reads and writes its own columns; the grid's second axis stays as it is."""
    given = np.random.default_rng(5).standard_normal((2, 3, 40000), dtype=np.float32)
    for mode in modes():
        x, y = given.copy(), poisoned((2, 3), np.float32)
        scaled.on(f"emulator:{mode}")(x, y, N=LONG)
        total = (given.astype(np.float64) ** 2).sum(2)
        np.testing.assert_allclose(y, total, rtol=1e-5)
        np.testing.assert_allclose(x, given / np.sqrt(total)[..., None], rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*registers")  # of 32 elements a thread
@pytest.mark.parametrize(("elements", "ctas"), [(32768, 1), (65536, 4), (262144, 8)])
def test_ctas_of_a_program(elements: int, ctas: int) -> None:
    kernel = compiled_softmax(elements)
    assert kernel.cluster == (ctas, 1, 1)
    assert kernel.launched((3, 5, 7), 0) == (3 * ctas, 5, 7)
    assert f"each spread over {ctas} CTAs, a cluster" in str(decisions(kernel, "rows")) or ctas == 1


@pytest.mark.parametrize(
    ("elements", "dtype", "shared"),
    [
        (131072, "f32", True),
        (131072, "bf16", True),
        (262144, "f32", False),
        (262144, "bf16", False),
    ],
)
@pytest.mark.filterwarnings("ignore:.*registers")  # of 32 and 64 elements a thread
def test_two_ctas_share_a_multiprocessor(elements: int, dtype: str, shared: bool) -> None:
    """Where the registers of both suffice: bf16 has half the threads."""
    assert (".minnctapersm 2" in compiled_softmax(elements, dtype).ptx) == shared


@pytest.mark.filterwarnings("ignore:.*registers")  # which they do not suffice
@pytest.mark.parametrize(("elements", "target"), [(65536, "sm_80"), (65536 + 128, "sm_90a")])
def test_a_row_that_cannot_be_spread_stays(elements: int, target: str) -> None:
    assert compiled_softmax(elements, target=target).cluster == (1, 1, 1)


PARTIALS = """
!t = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
!s = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
!all = !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>
func.func @k(%x: !t, %v: !one) {
  %s = "gpu_tile.alloc"() {options = {}} : () -> !s
  "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
  %a = "gpu_tile.alloc"() {options = {}} : () -> !all
  "gpu_tile.cluster_store"(%v, %a) : (!one, !all) -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  %b = "gpu_tile.alloc"() {options = {}} : () -> !all
  "gpu_tile.cluster_store"(%v, %b) : (!one, !all) -> ()
  return
}
"""


def test_buffers_that_other_ctas_write_share_no_memory() -> None:
    """One of them may be two reductions ahead."""
    module = parse_source(PARTIALS, "k.tile", make_context())
    first, *others = find_allocations(module.body.operations[0].operation)
    assert len(others) == 2
    assert all(each.meets(first) for each in others)
    assert others[0].meets(others[1])


@tilec.kernel(grid=lambda y: y.shape[0])
def log_sums(x: tl.array, y: tl.array, N: tl.const):
    """The logarithm of each row's sum of exponentials."""
    row = tl.program_id(0)
    values = tl.load(x, (row, 0), (N,), padding=float("-inf")).to(tl.f32)
    most = tl.max(values)
    tl.store(y, row, most + tl.log(tl.sum(tl.exp(values - most))))


@pytest.mark.parametrize(("dtype", "ctas"), [("bf16", 3), ("f32", 2)])
def test_stripes_that_hold_little_share_a_multiprocessor_with_more(dtype: str, ctas: int) -> None:
    specs = [f"x:{dtype}[?,?:8;?:8,1]", "y:f32[?]"]
    compiled = log_sums.compile(specs, {"N": 65536}, target="sm_90a")
    assert f".minnctapersm {ctas}" in compiled.ptx


@pytest.mark.filterwarnings("ignore:.*registers")  # of 30080 elements in one CTA
def test_few_long_rows_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """By as many CTAs as there are multiprocessors for, though one would hold them, if that spares
    each much; a launch that says nothing of its programs has one for each."""
    counts = ((10, 16384, 8), (30, 16384, 4), (64, 16384, 1), (64, 28672, 2), (68, 28672, 1))
    for count, elements, stripes in counts:
        sizes = dict.fromkeys("xy", (count, elements))
        specs = [f"{name}:f16[?,?:8;?:8,1]" for name in "xy"]
        promised = {"target": "sm_90a", "sizes": sizes, "at_most": True}
        assert softmax.compile(specs, {"N": elements}, **promised).stripes == stripes
    assert compiled_softmax(16384).suits[0] > 1
    assert [compiled_softmax(n).spreads_few for n in (1024, 8192, 16384)] == [False, False, True]
    assert compiled_softmax(30080).suits[0] > 1
    assert compiled_softmax(16384, target="sm_80").suits[0] <= compiled_softmax(8192).suits[0]
    device = replace(usual_machine(find_target("sm_90a")), assumed=())
    monkeypatch.setattr(jit, "machine_of", lambda *_: device)
    x, y = rows(16384, np.float32), poisoned((PROGRAMS, 16384), np.float32)
    run(softmax, [y], lambda there: there(x, y, N=16384))
    np.testing.assert_allclose(y, softmaxed(x.astype(np.float64)), rtol=1e-5, atol=1e-8)
    assert softmax.compiled(x, y, N=16384).stripes == 8
