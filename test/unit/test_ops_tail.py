"""Products whose last round of tiles is split along k: results, flags, races, when it is chosen."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.costs.dot_work import Memory
from tilec.costs.machine import Machine, machine_of
from tilec.costs.model import predict
from tilec.costs.tail_model import predict_with_tail
from tilec.costs.work import LoopWork, Work
from tilec.hardware.target import find_target
from tilec.ops import product_launch, tail_kernel, tail_launch
from tilec.ops.product_facts import ROW_MAJOR
from tilec.ops.tile_choice import TileChoice, choose_tiles
from tilec.runtime.device import device
from tilec.runtime.emulator_device import FindingsError

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
HOPPER = machine_of(device("emulator"), find_target("sm_90a"))
CHOICE = TileChoice(128, 64, 64, 1, 1.0, tail=2)


def with_workers(
    monkeypatch: pytest.MonkeyPatch, workers: int, choice: TileChoice, target: str = "sm_90a"
) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    few = replace(machine_of(device("emulator"), find_target(target)), multiprocessors=workers)
    monkeypatch.setattr(product_launch, "machine_of", lambda *_: few)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dtype", "out", "named", "error"),
    [
        (BF16, BF16, {}, 4e-3),
        (np.float16, np.float32, {}, 1e-6),
        (np.float32, np.float32, {"precision": "tf32"}, 2e-3),
        (E4M3, np.float16, {}, 1e-3),
        (np.int8, np.int32, {}, 0.0),
        (np.float16, E4M3, {}, 7e-2),
        (np.float16, np.float16, {"acc_dtype": "f16"}, 2e-2),
    ],
)
def test_dtypes(
    dtype: Any, out: Any, named: Any, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five workers and six tiles of 128 x 64: one tile is left, its k in three parts."""
    depth = 128 // np.dtype(dtype).itemsize
    with_workers(monkeypatch, 5, replace(CHOICE, depth=depth, tail=3))
    rng = np.random.default_rng(1)
    spread = 4 if dtype is np.int8 else 1
    k = 5 * depth - 16
    a, b = (rng.standard_normal(s) * spread for s in ((270, k), (104, k)))
    a, b = a.astype(dtype), b.astype(dtype).T
    found = tilec.ops.matmul(a, b, out_dtype=np.dtype(out).name, **named)
    expected = wide(a) @ wide(b)
    assert found.dtype == np.dtype(out)
    assert np.abs(wide(found) - expected).max() <= error * np.abs(expected).max()


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_epilogue_and_batch(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two matrices of 2 x 2 tiles by three workers; the last tile is of the second one."""
    with_workers(monkeypatch, 3, CHOICE, target)
    rng = np.random.default_rng(2)
    a = rng.standard_normal((2, 130, 264)).astype(np.float16)
    b = rng.standard_normal((2, 264, 72)).astype(np.float16)
    bias, rows = rng.standard_normal(72, np.float32), rng.standard_normal((2, 130), np.float32)
    residual = rng.standard_normal((130, 72)).astype(np.float16)
    named = {"bias": bias, "row_scale": rows, "residual": residual, "activation": "relu"}
    found = tilec.ops.matmul(a, b, **named, out_dtype="f32", scale=0.5)
    scaled = 0.5 * (wide(a) @ wide(b)) * wide(rows)[..., None]
    expected = np.maximum(scaled + bias, 0) + wide(residual)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.share(2)
@pytest.mark.parametrize("mode", ["late", "check"])
@pytest.mark.parametrize(
    ("shape", "workers", "parts"),
    [
        ((300, 200, 200), 5, 2),  # two rounds and two tiles
        ((128, 64, 512), 3, 4),  # less than a round
        ((256, 128, 320), 4, 3),  # nothing left
        ((136, 264, 328), 7, 3),  # more parts than CTAs run at once
    ],
)
def test_flags_are_down_and_nothing_races(
    mode: str, shape: tuple[int, int, int], workers: int, parts: int, monkeypatch: Any
) -> None:
    """Twice with the same flags and old sums: the second launch finds what the first left."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    m, n, k = shape
    rng = np.random.default_rng(3)
    a = rng.standard_normal((m, k)).astype(BF16)
    b = rng.standard_normal((k, n)).astype(BF16)
    sums = np.full((workers * parts, 128 * 64), np.nan, np.float32)
    flags = np.zeros(workers * parts, np.int32)
    kernel = tail_kernel.product_with_tail.on(f"emulator:{mode}")
    constants = {"BM": 128, "BN": 64, "BK": 64, "WORKERS": workers, "SPLITS": parts}
    results = []
    for _ in range(2):
        c = np.full((m, n), np.nan, np.float32)
        kernel(a, b, c, 0, 0, 0, 0, 1.0, 0, sums, flags, **constants)
        results.append(c)
        assert not flags.any()
    assert np.array_equal(*results)
    expected = wide(a) @ wide(b)
    assert np.abs(results[0] - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("order", ["release", "acquire"])
def test_a_relaxed_flag_is_a_race(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check mode finds partial sums that are read without the order that the flag brings."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(4)
    a = rng.standard_normal((128, 512)).astype(BF16)
    b = rng.standard_normal((512, 64)).astype(BF16)
    c = np.zeros((128, 64), np.float32)
    sums, flags = np.zeros((2, 128 * 64), np.float32), np.zeros(2, np.int32)
    kernel = tail_kernel.product_with_tail.on("emulator")
    constants = {"BM": 128, "BN": 64, "BK": 64, "WORKERS": 3, "SPLITS": 3}
    arguments = (a, b, c, 0, 0, 0, 0, 1.0, 0, sums, flags)
    compiled = kernel.compiled(*arguments, **constants)
    right = f"atom.{order}.gpu.global"
    assert right in compiled.ptx
    broken = replace(compiled, ptx=compiled.ptx.replace(right, "atom.relaxed.gpu.global"))
    checking = device("emulator:check")
    for one, races in ((compiled, False), (broken, True)):
        flags[:] = 0
        loaded, values = checking.load(one), list(arguments)
        with pytest.raises(FindingsError, match="race") if races else nullcontext():
            checking.launch(loaded, values, (3, 1, 1))


def test_a_program_that_waits_for_a_later_one_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one flag that never goes up: the emulator says who waits, and where."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    a, b = np.ones((128, 512), BF16), np.ones((512, 64), BF16)
    sums, flags = np.zeros((1, 128 * 64), np.float32), np.zeros(1, np.int32)
    c = np.zeros((128, 64), np.float32)
    constants = {"BM": 128, "BN": 64, "BK": 64, "WORKERS": 3, "SPLITS": 3}
    kernel = tail_kernel.product_with_tail.on("emulator")
    # The second part's flag lies outside the array, so nobody sees it go up.
    with pytest.raises(Exception, match="asking again and again"):
        kernel(a, b, c, 0, 0, 0, 0, 1.0, 0, sums, flags, **constants)


@pytest.mark.parametrize(("rows", "columns"), [(128, 256), (256, 128), (128, 192)])
def test_it_keeps_what_makes_a_kernel_fast(
    rows: int, columns: int, recwarn: pytest.WarningsRecorder
) -> None:
    """Roles, tensor copies and stores, a ring as deep as without partial sums, no spills; however
    warpgroups lie in the tile, the sums leave as threads hold them."""
    row = "bf16[?:8,?:8;?:8,1]"
    specs = [f"a:{row}", f"b:{row}", f"c:{row}", "bias:i32", "row_scale:i32", "column_scale:i32"]
    specs += [
        "scale:i32",
        "factor:f64",
        "residual:i32",
        f"sums:f32[?,{rows * columns};{rows * columns},1]",
        "flags:i32[?;1]",
    ]
    tiles = {"BM": rows, "BN": columns}
    compiled = tail_kernel.product_with_tail.compile(specs, tiles, target="sm_90a")
    assert not recwarn.list
    report = "\n".join(f"{e['about']}: {e['chosen']}" for e in compiled.report["decisions"])
    assert re.search("1 loading warp, 8 computing, [45] stages", report)
    assert "tensor store: TMA" in report
    assert "layout conversion" not in report
    assert "one group in flight" in report


def test_when_it_is_chosen() -> None:
    """Few rounds and a long k; not where rounds are full, many or short, nor without memory."""

    def chosen(
        *sizes: int, splits: int = 16, machine: Machine = HOPPER, b: Memory = ROW_MAJOR
    ) -> TileChoice:
        found = choose_tiles(*sizes, 1, tl.bf16, "ieee", machine, splits, b=b)
        assert found is not None
        return found

    assert chosen(2304, 2304, 16384).tail == 4
    assert chosen(2304, 2304, 16384, b=Memory(0, 128)).tail == 4
    assert chosen(2304, 2304, 16384, splits=1).tail == 1
    for m, n, k in ((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (2304, 2304, 256)):
        assert chosen(m, n, k).tail == 1
    blackwell = machine_of(device("emulator"), find_target("sm_100a"))
    assert chosen(2304, 2304, 16384, machine=blackwell).tail == 1


def test_the_model_counts_rounds() -> None:
    loop = LoopWork(1024, {"bf16": 2 * 128 * 256 * 64}, 49152, 49152, 49152)
    work = Work(165, 8, (loop,), 0, 128 * 256)
    whole = predict(replace(work, programs=132), HOPPER).us
    parts = predict_with_tail(work, (2, 4), HOPPER)
    assert 1.25 * whole < parts[4] < 1.5 * whole < parts[2]
    assert predict_with_tail(replace(work, programs=132), (4,), HOPPER) == {}
    assert predict_with_tail(replace(work, programs=100), (4,), HOPPER) == {}


def test_a_stream_keeps_its_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is captured into a graph gets flags of its own, cleared whenever the graph runs."""
    cleared: list[int] = []

    class Gpu:
        kind, context = "cuda", None

        def empty(self, shape: tuple[int], dtype: str) -> object:
            kept.append((*shape, dtype))
            return object()

    def clear(flags: Any, stream: int) -> None:
        cleared.append(stream)

    monkeypatch.setattr(tail_launch, "_kernel_on", lambda *_: clear)
    monkeypatch.setattr(tail_launch, "is_captured", lambda _, stream: stream == 7)
    monkeypatch.setattr(tail_launch, "_flags", {})
    kept: list[tuple[int | str, ...]] = []
    flags_of = partial(tail_launch._flags_of, object, 396, Gpu())
    first, again, other = map(flags_of, (1, 1, 2))
    assert first is again
    assert first is not other
    assert flags_of(7) is not flags_of(7)
    assert cleared == [1, 2, 7, 7]
    assert kept == [(396, "i32")] * 2
