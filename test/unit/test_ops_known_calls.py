"""`tilec.ops.matmul` called again: other arrays of the same kind, on a simulated GPU."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attention_reference import attended, error, kept_weights
from copied_operands import copy_from
from fake_driver import CUresult, uninstall
from simulated_gpu import SimulatedGpu, install_gpu

import tilec
from tilec.messages.diagnostics import PerformanceWarning
from tilec.ops import (
    attention_launch,
    gradient_launch,
    gradient_plan,
    plain_product,
    product_launch,
    tail_launch,
)
from tilec.ops.tile_choice import TileChoice
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError, DeviceError


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: None)
    plain_product._known.calls.clear()  # other tests' calls
    yield install_gpu(monkeypatch, lambda _: 1.0)
    uninstall()
    plain_product._known.calls.clear()
    attention_launch._known.calls.clear()
    gradient_launch._known.calls.clear()
    attention_launch.kernel_on.cache_clear()
    product_launch.kernel_on.cache_clear()
    tail_launch._kernel_on.cache_clear()
    tail_launch._flags.clear()


def draw(*shape: int) -> tuple[np.ndarray, Any]:
    """Random values on the host and on the GPU."""
    host = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)
    return host, tilec.device("cuda:0").array(host)


def check(found: Any, expected: np.ndarray) -> None:
    assert np.max(np.abs(found.numpy() - expected)) <= 2e-3 * np.max(np.abs(expected))


@pytest.mark.parametrize("shape", [(20, 24), (2, 10, 24), (24,)])
def test_the_second_call_is_like_the_first(shape: tuple[int, ...]) -> None:
    (b, on_b), (bias, on_bias) = draw(24, 16), draw(16)
    for _ in range(3):
        a, on_a = draw(*shape)
        found = tilec.ops.matmul(on_a, on_b, bias=on_bias, scale=2.0)
        check(found, 2 * (a.astype(float) @ b.astype(float)) + bias)
        a, on_a = draw(*shape[:-1], 24)
        tilec.ops.matmul(on_a, on_b, found, bias=on_bias, scale=0.5)
        check(found, 0.5 * (a.astype(float) @ b.astype(float)) + bias)
    assert len(plain_product._known.calls) == 2  # with out and without


def test_options_without_a_hash_go_the_whole_way() -> None:
    (a, on_a), (b, on_b) = draw(16, 24), draw(24, 8)
    for _ in range(2):
        found = tilec.ops.matmul(on_a, on_b, settled=["b"])
        check(found, a.astype(float) @ b.astype(float))
    for name in ("activation", "out_dtype", "acc_dtype", "precision"):
        with pytest.raises(ArgumentError, match=f"argument '{name}'"):
            tilec.ops.matmul(on_a, on_b, **{name: {}})
    assert not plain_product._known.calls


def test_what_is_known_keeps_no_array_alive(gpu: SimulatedGpu) -> None:
    _, on_b = draw(24, 16)
    tilec.ops.matmul(draw(2, 10, 24)[1], on_b)
    tilec.ops.matmul(draw(2, 10, 24)[1], on_b)
    gc.collect()
    assert len(gpu.memory) == 1


def test_overlaps_are_found_again_each_time() -> None:
    (_, on_a), (_, on_b), (_, on_c) = draw(16, 16), draw(16, 16), draw(16, 16)
    tilec.ops.matmul(on_a, on_b, on_c)
    with pytest.raises(ArgumentError, match="argument 'out': it overlaps 'b' in memory"):
        tilec.ops.matmul(on_a, on_b, on_b)
    shifted = ArrayView(
        on_a.pointer + 32, (16, 16), (16, 1), "f16", on_a.device, "tilec", owner=on_a
    )
    with pytest.raises(ArgumentError, match="argument 'out': it overlaps 'a' in memory"):
        tilec.ops.matmul(on_a, on_b, shifted)


def test_out_may_be_the_residual_each_time() -> None:
    (a, on_a), (b, on_b), (c, on_c) = draw(16, 24), draw(24, 8), draw(16, 8)
    product = a.astype(float) @ b.astype(float)
    for times in (1, 2):
        tilec.ops.matmul(on_a, on_b, on_c, residual=on_c)
        check(on_c, c + times * product)


def test_an_array_that_starts_elsewhere_is_no_known_call() -> None:
    """What the first call assumed of an address holds for those that are as aligned."""
    (_, on_b), (whole, on_whole) = draw(24, 16), draw(21, 24)
    b = on_b.numpy().astype(float)
    for first in (0, 1, 0, 1):
        start = on_whole.pointer + 2 * first
        on_a = ArrayView(start, (20, 24), (24, 1), "f16", on_whole.device, "tilec", owner=on_whole)
        found = tilec.ops.matmul(on_a, on_b)
        check(found, whole.reshape(-1)[first:][: 20 * 24].reshape(20, 24).astype(float) @ b)
    assert len(plain_product._known.calls) == 2


def test_each_thread_knows_its_own_calls() -> None:
    """The driver reads the arguments of a plan while other threads run."""
    (a, on_a), (b, on_b) = draw(16, 24), draw(24, 8)
    tilec.ops.matmul(on_a, on_b)
    found = []

    def work() -> None:
        found.append(dict(plain_product._known.calls))
        found.append(tilec.ops.matmul(on_a, on_b))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] == {}
    check(found[1], a.astype(float) @ b.astype(float))


PARTS = TileChoice(16, 32, 32, 3, 1.0)
TRANSPOSED_PARTS = TileChoice(16, 32, 32, 2, 1.0, is_transposed=True)
TAIL = TileChoice(16, 16, 32, 1, 1.0, tail=2)


@pytest.mark.parametrize("copied", [False, True], ids=["", "copied"])
@pytest.mark.parametrize(
    "choice",
    [None, PARTS, TRANSPOSED_PARTS, TAIL],
    ids=["one", "parts", "transposed parts", "tail"],
)
def test_several_launches(
    choice: TileChoice | None, copied: bool, gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products summed in parts, of copies, with a tail: each call makes the same launches with
    arrays of its own, without looking at anything again."""
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    if copied:
        copy_from(monkeypatch, 0, 1)
    k, n = (97, 41) if copied else (96, 40)
    (b, on_b), (bias, on_bias) = draw(k, n), draw(n)
    launched: list[int] = []
    for turn, factor in enumerate((2.0, 0.5, 3.0)):
        a, on_a = draw(33, k)
        if turn:
            monkeypatch.setattr(plain_product, "_multiply", None)  # the whole way
        before = len(gpu.ran)
        found = tilec.ops.matmul(on_a, on_b, bias=on_bias, scale=factor)
        launched.append(len(gpu.ran) - before)
        check(found, factor * (a.astype(float) @ b.astype(float)) + bias)
    clears = choice is TAIL  # the flags, once
    assert launched == [launched[1] + clears, launched[1], launched[1]]
    assert launched[1] == 1 + 2 * copied + (choice in (PARTS, TRANSPOSED_PARTS))
    assert len(plain_product._known.calls) == 1
    kept = 1 + clears  # the result of the last call, and the flags
    del on_a, on_b, on_bias
    gc.collect()
    assert len(gpu.memory) == kept


def heads(rng: Any, *shapes: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """Arrays of random values on the host, and on the GPU."""
    host = [rng.standard_normal(shape).astype(np.float16) for shape in shapes]
    return host, [tilec.device("cuda:0").array(x) for x in host]


def test_attention_again_with_other_seeds() -> None:
    """The seed is a number of the launch; one that needs 64 bits is another kernel's."""
    rng = np.random.default_rng(0)
    for seed, known in ((3, 1), (2**31 - 1, 1), (2**40, 2), (2**41, 2)):
        (q, k, v), there = heads(rng, (1, 2, 20, 16), (1, 1, 20, 16), (1, 1, 20, 16))
        out = tilec.ops.attention(*there, seed=seed, dropout=0.5)
        right = attended(q[0], k[0], v[0], kept=kept_weights(seed, 2, 20, 20, 0.5), dropout=0.5)
        assert error(out.numpy()[0], right[0]) < 2e-3
        assert len(attention_launch._known.calls) == known
    with pytest.raises(ArgumentError, match="argument 'seed'"):
        tilec.ops.attention(*there, dropout=0.5)


def test_attention_again_of_packed_sequences() -> None:
    """The grid follows from a number."""
    rng = np.random.default_rng(1)
    for first in (10, 12):
        (q, k, v), there = heads(rng, (42, 2, 16), (42, 1, 16), (42, 1, 16))
        starts = tilec.device("cuda:0").array(np.array([0, first, 42], np.int32))
        out = tilec.ops.attention(*there, starts=starts, longest=32).numpy()
        for part in (slice(0, first), slice(first, 42)):
            right = attended(*(x[part].swapaxes(0, 1) for x in (q, k, v)))[0]
            assert error(out[part].swapaxes(0, 1), right) < 2e-3
    assert len(attention_launch._known.calls) == 1


@pytest.mark.parametrize("handed", [False, True])
def test_gradients_of_attention_again(
    handed: bool, gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two kernels, or by three that hand the gradients of scores on, one head of keys
    after the other, whose grids numbers say; nothing keeps memory."""
    monkeypatch.setattr(gradient_plan, "_saves", lambda *_: handed)
    monkeypatch.setattr(gradient_plan, "MOST_BYTES", 2 * 21 * 32 * 2)
    rng = np.random.default_rng(2)
    shapes = (2, 2, 21, 16), (2, 1, 21, 16), (2, 1, 21, 8), (2, 2, 21, 8)
    for _ in range(3):
        (q, k, v, do), (*there, of_out) = heads(rng, *shapes)
        logs = tilec.device("cuda:0").array(np.full((2, 2, 21), np.nan, np.float32))
        out = tilec.ops.attention(*there, logs=logs)
        found = tilec.ops.attention_gradients(of_out, *there, out, logs)
        for n in range(2):
            right = attended(q[n], k[n], v[n], do[n])[2:5]
            assert max(error(x.numpy()[n], y) for x, y in zip(found, right, strict=True)) < 2e-3
    (known,) = gradient_launch._known.calls.values()
    assert len(known.steps) == (1 + 2 * 2 if handed else 2)
    del there, of_out, logs, out, found
    gc.collect()
    assert not gpu.memory


def test_gradients_of_attention_where_memory_is_full(
    gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first call, and of one like an earlier one, what hands gradients of scores on does not
    fit: both do without it and say so; the calls between and behind them do not."""
    monkeypatch.setattr(gradient_plan, "_saves", lambda *_: True)
    allocate, largest = gpu.cuMemAlloc, 2 * 21 * 16 * 2  # bytes of q

    def full(size: int) -> Any:
        return (CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0) if size > largest else allocate(size)

    (q, k, v, do), (*there, of_out) = heads(np.random.default_rng(3), *[(1, 2, 21, 16)] * 4)
    logs = tilec.device("cuda:0").array(np.full((1, 2, 21), np.nan, np.float32))
    out = tilec.ops.attention(*there, logs=logs)
    right = attended(q[0], k[0], v[0], do[0])[2:5]
    for is_full in (True, False, True, False):
        monkeypatch.setattr(gpu, "cuMemAlloc", full if is_full else allocate)
        before = len(gpu.ran)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = tilec.ops.attention_gradients(of_out, *there, out, logs)
        assert len(gpu.ran) - before == (2 if is_full else 3)
        assert [w.category for w in said] == [PerformanceWarning] * is_full
        assert not said or f"{2 * 21 * 32 * 2} bytes of scratch are more" in str(said[0].message)
        assert max(error(x.numpy()[0], y) for x, y in zip(found, right, strict=True)) < 2e-3
    (known,) = gradient_launch._known.calls.values()
    assert len(known.steps) == 3
    largest = 0
    monkeypatch.setattr(gpu, "cuMemAlloc", full)
    with pytest.raises(DeviceError, match="CUDA_ERROR_OUT_OF_MEMORY"):  # of a result
        tilec.ops.attention_gradients(of_out, *there, out, logs)


def test_attention_again_of_one_query(gpu: SimulatedGpu) -> None:
    """Two launches, with memory of their own between them; what is written overlaps nothing."""
    rng = np.random.default_rng(2)
    logs = tilec.device("cuda:0").array(np.zeros((1, 2, 1), np.float32))
    for length in (600, 411):
        (q, k, v), there = heads(rng, (1, 2, 1, 16), (1, 1, 600, 16), (1, 1, 600, 16))
        lengths = tilec.device("cuda:0").array(np.array([length], np.int32))
        out = tilec.ops.attention(*there, lengths=lengths, logs=logs)
        right = attended(q[0], k[0, :, :length], v[0, :, :length])
        assert error(out.numpy()[0], right[0]) < 2e-3
        assert error(logs.numpy()[0], right[1]) < 1e-3
    assert len(attention_launch._known.calls) == 1
    with pytest.raises(ArgumentError, match="argument 'out': it overlaps 'q' in memory"):
        tilec.ops.attention(*there, there[0], lengths=lengths, logs=logs)
    tilec.ops.attention(*there, out, lengths=lengths, logs=logs)
    with pytest.raises(ArgumentError, match="argument 'out': it overlaps 'q' in memory"):
        tilec.ops.attention(*there, there[0], lengths=lengths, logs=logs)
