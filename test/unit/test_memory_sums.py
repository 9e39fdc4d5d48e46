"""Sums in more parts than a cluster has CTAs, or where there are no clusters: their CTAs meet in
the launch's memory (passes/programs/memory_sums.py). On the emulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes
from test_split_sums import ranked

import tilec
import tilec.language as tl
import tilec.ops
from tilec.call.jit import Kernel
from tilec.costs.dot_work import Memory
from tilec.costs.machine import usual_machine
from tilec.costs.model import predict
from tilec.costs.parts import gather_us
from tilec.costs.work import LoopWork, Work
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops import product_launch
from tilec.ops.tile_choice import TileChoice, choose_tiles
from tilec.runtime.emulator import run_stream
from tilec.runtime.emulator_device import EmulatorDevice

TARGETS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def gram(
    x: tl.array,
    c: tl.array,
    BM: tl.const = 64,
    BN: tl.const = 32,
    BK: tl.const = 32,
):
    """c = x.T @ x."""
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[0], BK):
        acc = tl.dot(tl.load(x, (k, i), (BK, BM)).T, tl.load(x, (k, j), (BK, BN)), acc)
    tl.store(c, (i, j), acc.to(c.dtype))


@tilec.kernel(grid=lambda means, B: tl.cdiv(means.shape[0], B))
def moments(x: tl.array, means: tl.array, squares: tl.array, B: tl.const = 16, ROWS: tl.const = 8):
    """Of each column: sum / rows, and the sum of squares as halves; each program has B."""
    n = tl.program_id(0) * B
    first, second = tl.zeros((ROWS, B), tl.f32), tl.zeros((ROWS, B), tl.f32)
    for m in tl.range(0, x.shape[0], ROWS):
        tile = tl.load(x, (m, n), (ROWS, B)).to(tl.f32)
        first, second = first + tile, second + tile * tile
    tl.store(means, (n,), tl.sum(first, axis=0) / x.shape[0])
    tl.store(squares, (n,), tl.sum(second, axis=0).to(squares.dtype))


@tilec.kernel(grid=1)
def dot(x: tl.array, y: tl.array, out: tl.array, seen: tl.array, B: tl.const = 128):
    """out = x . y; `seen` counts who did what stands behind the loop."""
    acc = tl.zeros((B,), tl.f32)
    for i in tl.range(0, x.shape[0], B):
        acc += tl.load(x, (i,), (B,)) * tl.load(y, (i,), (B,))
    tl.store(out, (0,), tl.sum(acc).to(out.dtype))
    tl.atomic_add(seen, (0,), 1)


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def least(
    x: tl.array, low: tl.array, at: tl.array, top: tl.array, B: tl.const = 4, K: tl.const = 8
):
    """Of each row the least, its first place, and the greatest."""
    m = tl.program_id(0) * B
    best, place = tl.full((B, K), float("inf"), tl.f32), tl.full((B, K), 0, tl.i32)
    most = tl.full((B, K), float("-inf"), tl.f32)
    for k in tl.range(0, x.shape[1], K):
        found = tl.load(x, (m, k), (B, K))
        wins = found < best
        place = tl.where(wins, tl.full((B, K), k // K, tl.i32), place)
        best, most = tl.minimum(best, found), tl.maximum(most, found)
    tl.store(low, (m, 0), best)
    tl.store(at, (m, 0), place)
    tl.store(top, (m, 0), most)


@tilec.kernel(grid=1)
def greatest(x: tl.array, top: tl.array, K: tl.const = 8):
    most = tl.full((K,), float("-inf"), tl.f32)
    for k in tl.range(0, x.shape[0], K):
        most = tl.maximum(most, tl.load(x, (k,), (K,), padding=float("-inf")))
    tl.store(top, (0,), tl.max(most))


@tilec.kernel(grid=lambda out, K: out.shape[0])
def norm(x: tl.array, out: tl.array, most: tl.array, K: tl.const = 64):
    """Of each row the norm and the greatest, by numbers that the loop carries."""
    m, total, top = tl.program_id(0), 0.0, float("-inf")
    for k in tl.range(0, x.shape[1], K):
        v = tl.load(x, (m, k), (1, K), padding=0.0)
        total, top = total + tl.sum(v * v), tl.maximum(top, tl.max(v))
    tl.store(out, (m,), tl.sqrt(total).to(out.dtype))
    tl.store(most, (m,), top.to(out.dtype))


def checked(kernel: Kernel[...], call: Any) -> None:
    """In check mode, by turns in late mode."""
    for mode in modes():
        call(kernel.on(f"emulator:{mode}"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("parts", "rows", "columns"), [(20, 9003, 72), (32, 777, 37), (64, 900, 8)]
)
def test_grams_of_long_matrices(
    target: str, parts: int, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to six programs. In 20 parts rings wrap; of 64 parts of 29 steps most have none."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(parts).standard_normal((rows, columns)).astype(np.float16)
    expected = x.astype(float).T @ x.astype(float)

    def call(kernel: Kernel[...]) -> None:
        c = poisoned(expected.shape, np.float32)
        kernel(x, c)
        assert np.abs(c - expected).max() < 1e-6 * np.abs(expected).max()

    checked(gram.demanding(sum_parts=parts), call)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("parts", [4, 48])
def test_two_sums_that_are_added_up_before_they_meet(
    target: str, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(parts).standard_normal((531, 37)).astype(ml_dtypes.bfloat16)
    wide = x.astype(float)

    def call(kernel: Kernel[...]) -> None:
        means, squares = poisoned((37,), np.float32), poisoned((37,), np.float16)
        kernel(x, means, squares)
        np.testing.assert_allclose(means, wide.mean(0), atol=1e-6)
        np.testing.assert_allclose(squares.astype(float), (wide**2).sum(0), rtol=1e-3)

    checked(moments.demanding(sum_parts=parts), call)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("parts", [2, 128])
def test_one_cta_does_the_rest(target: str, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number behind the loop comes in no stripes, so that no cluster has two parts of it."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x, y = np.random.default_rng(parts).standard_normal((2, 33_333)).astype(np.float32)

    def call(kernel: Kernel[...]) -> None:
        out, seen = poisoned((1,), np.float32), np.zeros(1, np.int32)
        kernel(x, y, out, seen)
        np.testing.assert_allclose(out[0], x.astype(float) @ y, atol=1e-3)
        assert seen[0] == 1

    checked(dot.demanding(sum_parts=parts), call)


@pytest.mark.parametrize("parts", [4, 20])
def test_the_least_is_the_first_of_equals(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    x = np.random.default_rng(parts).integers(0, 9, (7, 40 * 8)).astype(np.float32)
    lanes = x.reshape(7, 40, 8)

    def call(kernel: Kernel[...]) -> None:
        low, top = poisoned((7, 8), np.float32), poisoned((7, 8), np.float32)
        at = poisoned((7, 8), np.int32)
        kernel(x, low, at, top)
        np.testing.assert_array_equal(low, lanes.min(1))
        np.testing.assert_array_equal(at, lanes.argmin(1))
        np.testing.assert_array_equal(top, lanes.max(1))

    checked(least.demanding(sum_parts=parts), call)


def test_parts_that_are_not_there_are_no_greatest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty are no power of two, of which several are loaded at once."""
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    x = -np.random.default_rng(1).random(333, np.float32) - 1

    def call(kernel: Kernel[...]) -> None:
        top = poisoned((1,), np.float32)
        kernel(x, top)
        assert top[0] == x.max()

    checked(greatest.demanding(sum_parts=20), call)


@pytest.mark.parametrize(("target", "parts"), [("sm_80", 20), ("sm_90a", 4), ("sm_100a", 32)])
def test_numbers_that_loops_carry(target: str, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(parts).random((3, 5003), np.float32)

    def call(kernel: Kernel[...]) -> None:
        out, most = poisoned((3,), np.float32), poisoned((3,), np.float32)
        kernel(x, out, most)
        np.testing.assert_allclose(out, np.linalg.norm(x.astype(float), axis=1), rtol=1e-5)
        np.testing.assert_array_equal(most, x.max(1))

    checked(norm.demanding(sum_parts=parts), call)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_launches_of_a_stream_share_their_memory(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of them, which may overlap: each finds flags that are down, and gives the same bits."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(5).standard_normal((800, 40)).astype(np.float16)
    found = compiled(gram.demanding(sum_parts=32), target)
    device = EmulatorDevice("check")
    results = [poisoned((40, 40), np.float32) for _ in range(3)]
    loaded = device.load(found)
    runs = [device.run_of(loaded, [x, c], (1, 2, 1)) for c in results]
    first = runs[0]
    assert first is not None
    fields = [slot.field for slot in found.abi()]
    at = fields.index("workspace")
    end = at + fields.count("workspace")
    shared = first.args[at:end]
    runs = [replace(run, args=[*run.args[:at], *shared, *run.args[end:]]) for run in runs if run]
    for result in run_stream(runs, "check"):
        assert not result.findings
    np.testing.assert_allclose(results[0], x.astype(float).T @ x.astype(float), atol=1e-3)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    flags, *_ = shared
    assert not flags.array.any()


def compiled(kernel: Kernel[...], target: str = "sm_90a", **constants: Any) -> Any:
    """Of a Gram matrix of f16."""
    return kernel.compile(["x:f16[?,?:8;?:8,1]", "c:f32[?,?:4;?:4,1]"], constants, target=target)


def test_a_cluster_takes_as_much_as_spares_the_last_cta_time() -> None:
    for sizes, together in (((64, 64), 8), ((64, 32), 4), ((64, 8), 2)):
        found = compiled(gram.demanding(sum_parts=128), BM=sizes[0], BN=sizes[1])
        assert (found.stripes, found.cluster) == (128, (together, 1, 1))
        assert f"clusters of {together}, which meet in memory" in str(decisions(found, "sums"))
        flags, sums = found.workspaces
        assert (flags.bytes, flags.is_zero) == (4, True)
        each = sizes[0] * sizes[1] * 4 // together
        assert (sums.bytes, sums.is_zero) == (each * 128 // together, False)
        assert found.workspace_bytes((128 * 3, 1, 1)) == (
            4 * 3 * together,
            sums.bytes * 3 * together,
        )


def test_sums_that_are_reduced_first_need_no_cluster() -> None:
    specs = ["x:bf16[?,?:8;?:8,1]", "means:f32[?:4;1]", "squares:f16[?:8;1]"]
    for columns, together in ((128, 1), (1024, 8)):
        kernel = moments.demanding(sum_parts=128)
        found = kernel.compile(specs, {"B": columns, "ROWS": 8}, target="sm_90a")
        assert found.cluster == (together, 1, 1)


def test_more_than_indices_reach_is_refused() -> None:
    found = compiled(gram.demanding(sum_parts=128))
    with pytest.raises(ValueError, match=r"CTAs that sum parts would leave \d+ bytes"):
        found.workspace_bytes((128 * 40000, 1, 1))


def test_what_would_take_the_last_cta_too_long_is_refused() -> None:
    with pytest.raises(CompileError, match="the last of 128 CTAs would read 8388608 bytes"):
        compiled(gram.demanding(sum_parts=128), "sm_80", BM=128, BN=128)


def test_automatic_parts_fill_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long sums of few programs, whose CTAs a cluster has not enough of, or which come in no
    stripes; not of short ones, and not where the author says how many."""
    auto = {"BM": tl.auto, "BN": tl.auto, "BK": tl.auto}
    long, short = (ranked(gram, {"x": (n, 48), "c": (48, 48)}, auto)[0] for n in (140_000, 4000))
    assert long.parts in (112, 132)
    assert f"in {long.parts} parts" in long.reasons["tiles of BM, BN, BK"]
    assert short.parts <= 16
    demanded = gram.demanding(sum_parts=8)
    assert {one.parts for one in ranked(demanded, {"x": (140_000, 48), "c": (48, 48)}, auto)} == {1}
    arrays = {"x": (1 << 22,), "y": (1 << 22,), "out": (1,), "seen": (1,)}
    assert ranked(dot, arrays, {"B": tl.auto})[0].parts > 100
    small = {name: (min(n, 2048),) for name, (n,) in arrays.items()}
    assert ranked(dot, small, {"B": tl.auto})[0].parts == 1


def test_an_automatic_dot_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x, y = np.random.default_rng(3).standard_normal((2, 400_000)).astype(np.float32)
    out, seen = poisoned((1,), np.float32), np.zeros(1, np.int32)
    kernel = dot.on("emulator")
    kernel(x, y, out, seen, B=tl.auto)
    assert "which meet in memory" in str(kernel.report(x, y, out, seen, B=tl.auto))
    np.testing.assert_allclose(out[0], x.astype(float) @ y, atol=1e-2)


def test_the_last_cta_s_reading_is_predicted() -> None:
    machine = usual_machine(find_target("sm_90a"))
    alone = Work(128, 4, (LoopWork(),), 0)
    met = replace(alone, groups=128, left_bytes=90_000)
    assert gather_us(alone, machine) == 0
    rates = machine.rates
    assert gather_us(met, machine) == rates.meet_in_memory + 90_000 / rates.summed_bytes
    both = replace(met, parts=8, groups=16, sums=(4096,))
    assert gather_us(both, machine) > gather_us(met, machine) + rates.gather
    assert "more than run at once" in predict(replace(met, programs=5000), machine).impossible


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_products_with_an_epilogue(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of three, six tiles each, in 20 parts."""
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setenv("TILEC_DEVICE", "emulator:check")
    choice = TileChoice(64, 32, 32, 1, 1.0, is_transposed=False, is_single=True, parts=20)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    rng = np.random.default_rng(20)
    a, b, bias = (
        rng.uniform(-1, 1, s).astype(np.float16) for s in ((3, 70, 900), (3, 900, 72), 72)
    )
    expected = np.maximum(a.astype(float) @ b.astype(float) + bias.astype(float), 0)
    found = tilec.ops.matmul(a, b, bias=bias, activation="relu")
    assert np.abs(found - expected).max() <= 2e-3 * np.abs(expected).max()


def test_automatic_products_meet_in_memory_where_that_is_faster() -> None:
    """A million numbers of k by one small tile, of which each byte is read once."""
    machine = usual_machine(find_target("sm_90a"))
    across = {"a": Memory(0, 128), "b": Memory(1, 128), "c": Memory(1, 32)}
    long = choose_tiles(16, 16, 1_000_000, 1, tl.f16, "ieee", machine, **across)
    short = choose_tiles(16, 16, 4000, 1, tl.f16, "ieee", machine, **across)
    assert long is not None
    assert short is not None
    assert long.parts > 100
    assert short.parts <= 16
