"""Triton's kernels on the emulator in check mode, for each kind of program, against NumPy."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from target_names import MAIN

import tilec.triton
from tilec.costs.machine import usual_machine
from tilec.hardware.target import find_target
from tilec.runtime.emulator_device import FindingsError
from tilec.runtime.errors import ArgumentError

KERNELS = Path(__file__).parent / "kernels"


@pytest.fixture(params=MAIN)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each target in turn is the emulator's."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


def kernel_of(name: str) -> tilec.triton.TritonKernel:
    """A kernel of the folder, to run in check mode."""
    path = KERNELS / f"{name}.ttir"
    return tilec.triton.kernel(path.read_text(), path.name).on("emulator:check")


def poisoned(shape: Any, dtype: Any = np.float32) -> Any:
    """An array that no kernel gives by accident."""
    return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 77, dtype)


RNG = np.random.default_rng(17)


def random(*shape: int, dtype: Any = np.float32) -> Any:
    """Normal numbers."""
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("n", [1, 255, 256, 700])
def test_vector_add(target: str, n: int) -> None:
    x, y, room = random(n), random(n), poisoned(n + 4)
    kernel_of("vector_add")[-(-n // 256) + 1](x, y, room, n)
    np.testing.assert_array_equal(room[:n], x + y)
    assert np.isnan(room[n:]).all()


def test_softmax_shares_rows_and_pads_columns(target: str) -> None:
    x, out = random(7, 101), poisoned((7, 130))
    kernel_of("softmax")[3](out, x[:, :99], 101, 130, 7, 99)
    wide = np.exp(x[:, :99].astype(np.float64) - x[:, :99].max(1, keepdims=True))
    np.testing.assert_allclose(out[:, :99], wide / wide.sum(1, keepdims=True), atol=1e-6)
    assert np.isnan(out[:, 99:]).all()


def test_softmax_in_place(target: str) -> None:
    x = random(5, 128)
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    kernel_of("softmax")[2](x, x, 128, 128, 5, 77 + 51)
    np.testing.assert_allclose(x, wide / wide.sum(1, keepdims=True), atol=1e-6)


def test_softmax_of_halves_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written lies between what is read; both stay arrays with bounds."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x = random(5, 200)
    expected = x.copy()
    wide = np.exp(x[:, :99].astype(np.float64) - x[:, :99].max(1, keepdims=True))
    expected[:, 100:199] = wide / wide.sum(1, keepdims=True)
    kernel_of("softmax")[2](x[:, 100:], x, 200, 200, 5, 99)
    np.testing.assert_allclose(x, expected, atol=1e-6)


@pytest.mark.parametrize(("m", "n", "k"), [(70, 136, 104), (200, 64, 8)])
def test_matmul(target: str, m: int, n: int, k: int) -> None:
    a, b = random(m, k, dtype=np.float16), random(k, n, dtype=np.float16)
    c = poisoned((m, n + 8), np.float16)
    kernel_of("matmul")[-(-m // 64) * -(-n // 64)](a, b, c, m, n, k, k, n, n + 8)
    np.testing.assert_allclose(
        c[:, :n], a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2
    )
    assert np.isnan(c[:, n:]).all()


def added_up(mask: str = ", %91", kinds: str = ", tensor<64x64xi1>") -> str:
    """The text of the matmul, which adds to its result instead of storing it."""
    text = (KERNELS / "matmul.ttir").read_text()
    pointers = "tensor<64x64x!tt.ptr<f16>>"
    store = f"tt.store %64, %55, %91 : {pointers}"
    assert store in text
    kinds = f"({pointers}, tensor<64x64xf16>{kinds}) -> tensor<64x64xf16>"
    update = f"%old = tt.atomic_rmw fadd, acq_rel, gpu, %64, %55{mask} : {kinds}"
    return text.replace(store, update)


def test_updates_leave_out_what_wraps(target: str) -> None:
    """Rows past the edge reach no element that a masked update counts: matrices stay matrices."""
    m, n, k = 72, 136, 40
    a, b = random(m, k, dtype=np.float16), random(k, n, dtype=np.float16)
    c = random(m, n, dtype=np.float16)
    expected = c + a.astype(np.float64) @ b.astype(np.float64)
    kernel = tilec.triton.kernel(added_up(), "added.ttir").on("emulator:check")
    kernel[6](a, b, c, m, n, k, k, n, n)
    np.testing.assert_allclose(c, expected, rtol=2e-3, atol=2e-2)
    assert [why for _, why in kernel.plan().kept] == []


def test_updates_of_everything_need_what_wraps() -> None:
    kernel = tilec.triton.kernel(added_up("", ""), "added.ttir")
    assert any("wraps" in why for _, why in kernel.plan().kept)


def test_layer_norm(target: str) -> None:
    rows, n = 3, 150
    x, w, b = (random(*shape, dtype=np.float16) for shape in ((rows, n), (n,), (n,)))
    y, mean = poisoned((rows, n), np.float16), poisoned(rows)
    kernel_of("layer_norm")[rows](x, y, w, b, mean, n, n, 1e-5)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(mean, wide.mean(1), atol=1e-5)
    np.testing.assert_allclose(y, normal * w + b, atol=1e-2)


def test_dropout_hashes_in_wrapping_arithmetic(target: str) -> None:
    n, p, seed, prime = 300, 0.4, 12345, np.uint32(-1640531527 & 0xFFFFFFFF)
    x, out = random(n), poisoned(n)
    kernel_of("dropout")[3](x, out, n, p, seed)
    hashed = ((np.arange(n, dtype=np.uint32) * prime) ^ np.uint32(seed)) * prime
    keep = (hashed >> np.uint32(16)).astype(np.float32) * np.float32(1.52587891e-5) > np.float32(p)
    assert 0 < keep.sum() < n
    expected = np.where(keep, x.astype(np.float64) / (1 - p), 0)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_scan_from_the_end_and_early_returns(target: str) -> None:
    x, out = random(5, 50), poisoned((5, 50))
    kernel_of("scan")[5](x, out, 5, 50)
    expected = np.cumsum(x[:, ::-1].astype(np.float64), 1)[:, ::-1]
    np.testing.assert_allclose(out, expected, atol=1e-5)


def test_block_pointers(target: str) -> None:
    x, room = random(19, 37), poisoned(24)
    kernel_of("row_sums")[3](x, room, 19, 37)
    np.testing.assert_allclose(room[:19], x.astype(np.float64).sum(1), atol=1e-5)
    assert np.isnan(room[19:]).all()


def test_descriptors(target: str) -> None:
    x, out = random(2, 11, 21, dtype=np.float16), poisoned((2, 21, 11), np.float16)
    kernel_of("transpose")[2, 2, 2](x, out, 2, 11, 21)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))


def test_atomics_at_loaded_indices(target: str) -> None:
    x, bins = RNG.integers(0, 7, 300, np.int32), np.zeros(7, np.int32)
    kernel_of("histogram")[3](x, bins, 300)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=7))


def test_atomics_past_the_memory_are_found(target: str) -> None:
    x, bins = np.full(128, 900, np.int32), np.zeros(7, np.int32)
    with pytest.raises(FindingsError, match=r"out of bounds.*histogram\.ttir:24"):
        kernel_of("histogram")[1](x, bins, 128)


def test_unmasked_accesses_are_not_clipped(target: str) -> None:
    x, out = random(300), poisoned(256)
    kernel_of("shift")[2](x, out, 20)
    np.testing.assert_array_equal(out, x[20:276])
    # A pointer into the middle of an array may lead back.
    kernel_of("shift")[2](x[40:], out, -33)
    np.testing.assert_array_equal(out, x[7:263])


@pytest.mark.parametrize("shift", [45, -1])
def test_unmasked_accesses_past_the_memory_are_found(target: str, shift: int) -> None:
    x, out = random(300), poisoned(256)
    with pytest.raises(FindingsError, match=r"out of bounds.*shift\.ttir:20"):
        kernel_of("shift")[2](x, out, shift)


def test_one_pointer_twice_is_one_array(target: str) -> None:
    x = random(256 + 128)
    before = x.copy()
    kernel_of("shift")[3](x, x, 0)
    np.testing.assert_array_equal(x, before)
    with pytest.raises(FindingsError, match=r"race|write|read"):  # programs read what others write
        kernel_of("shift")[2](x, x, 100)


@pytest.mark.parametrize("start", [4, 131, 260])
def test_pointers_into_one_array_are_joined(target: str, start: int) -> None:
    """What one of them writes lies where the other may read, by a first launch and a second."""
    kernel = kernel_of("shift")
    x = random(400)
    for source, out in ((start, 0), (0, start)):
        expected = x.copy()
        expected[out:][:128] = x[source:][:128]
        kernel[1](x[source:], x[out:], 0)
        np.testing.assert_array_equal(x, expected)
    assert len(kernel._compiled) == 1


def test_a_race_of_joined_pointers_is_found(target: str) -> None:
    x = random(400)
    with pytest.raises(FindingsError, match=r"race|write|read"):
        kernel_of("shift")[2](x[4:], x, 0)
    with pytest.raises(FindingsError, match=r"out of bounds.*shift\.ttir:20"):
        kernel_of("shift")[1](x[4:], x, 300)


def test_overlap_of_two_types_is_an_error() -> None:
    """The mean is written over the rows, with elements of another size."""
    x, y = random(320, dtype=np.float16), random(150, dtype=np.float16)
    with pytest.raises(ArgumentError, match="mean and x overlap in memory, and the kernel writes"):
        kernel_of("layer_norm")[1](x, y, y.copy(), y.copy(), x.view(np.float32)[4:], 150, 150, 0.1)


def test_arguments_are_checked() -> None:
    kernel = kernel_of("matmul")
    with pytest.raises(ArgumentError, match=r"matmul takes 9 arguments \(a, b, c, M,"):
        kernel[1](1)
    x = random(64, 64, dtype=np.float16)
    with pytest.raises(ArgumentError, match="'stride_am': expected a multiple of 8"):
        kernel[1](x, x, x.copy(), 64, 64, 64, 61, 64, 64)
    with pytest.raises(ArgumentError, match="'a': expected f16, found f32"):
        kernel[1](random(64, 64), x, x.copy(), 64, 64, 64, 64, 64, 64)


def test_rows_that_overlap_are_one_flat_array(target: str) -> None:
    """Each row is read and written where the next one begins: elements of two rows are one."""
    x = random(3 * 16 + 128)
    kernel = kernel_of("softmax")
    expected = x.astype(np.float64)
    for row in range(3):
        wide = np.exp(expected[16 * row :][:128] - expected[16 * row :][:128].max())
        expected[16 * row :][:128] = wide / wide.sum()
    kernel[1](x, x, 16, 16, 3, 128)
    np.testing.assert_allclose(x[: 2 * 16 + 128], expected[: 2 * 16 + 128], atol=1e-6)


def test_a_pointer_is_read_behind_its_loop(target: str) -> None:
    x = random(200)
    expected = x.copy()
    expected[3 * 20 :][:16] = sum(x[20 * i :][:16] for i in range(3))
    kernel_of("after_loop")[1](x, 3, 20)
    np.testing.assert_allclose(x, expected, atol=1e-6)


def test_nested_loops(target: str) -> None:
    x, out = random(16 * 3 * 5), poisoned(32)
    kernel_of("nested_loops")[1](x, out, 5, 2)
    np.testing.assert_allclose(out[:16], x.reshape(-1, 16).sum(0), atol=1e-5)
    np.testing.assert_allclose(out[16:], x[: 16 * 2 * 5].reshape(-1, 16).sum(0), atol=1e-5)


def test_functions_are_tritons(target: str) -> None:
    x, y = random(64), random(64, dtype=np.float64)
    x = np.where(abs(x) < 0.01, np.float32(0.01), abs(x)) * 20
    x[:2] = -128.5, -90
    out, wide = poisoned((5, 64)), poisoned((2, 64), np.float64)
    kernel_of("functions")[1](x, y, out, wide)
    exact = x[2:].astype(np.float64)
    expected = [np.exp2(exact), np.sqrt(exact), 1 / np.sqrt(exact)]
    np.testing.assert_allclose(out[:3, 2:], expected, rtol=1e-6)
    np.testing.assert_allclose(out[3, 2:], np.exp(exact), rtol=1e-5)
    assert out[0, 0] == 0  # 2^-128.5 is flushed,
    assert 0 < out[3, 1] < 1e-38  # e^-90 is not
    np.testing.assert_array_equal(out[4, 2:], np.sqrt(x[2:]))
    np.testing.assert_allclose(wide, [np.exp2(y), np.exp(y)], rtol=1e-15)


def check_attention() -> str:
    """Of six programs; gives the report."""
    length, heads, few = 150, 2, 1
    q, k, v = (random(1, n, length, 64, dtype=np.float16) for n in (heads, few, few))
    logs, out = poisoned((1, heads, length)), poisoned(q.shape, np.float16)
    strides = [s // x.itemsize for x in (q, k, v, out) for s in x.strides[:3]]
    numbers = (heads, heads // few, length)
    kernel, arguments = kernel_of("attention"), (q, k, v, 0.125, logs, out, *strides, *numbers)
    kernel[3, heads, 1](*arguments)
    score = q.astype(np.float64) @ np.swapaxes(k, -1, -2) * 0.125
    score[..., np.triu(np.ones((length, length), bool), 1)] = -np.inf
    total = np.exp(score).sum(-1)
    np.testing.assert_allclose(out, np.exp(score) @ v / total[..., None], atol=2e-3)
    np.testing.assert_allclose(logs, np.log2(total), atol=1e-5)
    return kernel.report(*arguments, grid=(3, heads, 1))


def test_attention(target: str) -> None:
    assert ("CTAs a multiprocessor: 2" in check_attention()) == (target == "sm_90a")


def test_attention_of_few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A multiprocessor that has one program at a time is one CTA's."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    found = replace(usual_machine(find_target("sm_90a")), multiprocessors=8, assumed=())
    kernel_module = importlib.import_module("tilec.triton.kernel")
    monkeypatch.setattr(kernel_module, "machine_of", lambda *_: found)
    assert "CTAs a multiprocessor: 1 (launches have 1 programs each)" in check_attention()


def test_quotients_of_multiples(target: str) -> None:
    x, out = random(32), poisoned(5 * 32)
    kernel_of("multiples")[4](x, out)  # 0, 1, 2, 4 times 64 // 48
    np.testing.assert_array_equal(out.reshape(5, 32)[[0, 1, 2, 4]], np.tile(x, (4, 1)))
    assert np.isnan(out.reshape(5, 32)[3]).all()


def test_quotients_of_where_programs_begin(target: str) -> None:
    """Five programs are two rows of 64 and a half; rows are 70 apart."""
    x, y, n = random(4 * 70), random(4 * 70), 151
    out, left = poisoned(160), np.full(160, 77, np.int32)
    kernel_of("quotients")[5](x, y, out, left, 70, n)
    row, column = np.divmod(np.arange(n + 1), 64)
    place = row * 70 + column
    np.testing.assert_array_equal(out[:n], x[place[:-1]] + y[place[1:]])
    program, element = np.divmod(np.arange(n), 32)
    np.testing.assert_array_equal(left[:n], np.trunc((program * 64 - 64 + element) / 64))
    assert np.isnan(out[n:]).all()


def test_heads_are_a_dimension(target: str) -> None:
    x, out = random(3, 21, 64, dtype=np.float16), poisoned((3, 21, 64), np.float16)
    kernel_of("heads")[2, 3](x, out, 21 * 64, 64, 19)
    np.testing.assert_array_equal(out[:, :19], x[:, :19])
    assert np.isnan(out[:, 19:]).all()


@pytest.mark.parametrize("rows", [63, 75], ids=["whole", "short"])
def test_bounds_of_chunks_are_arguments_where_none_is_short(target: str, rows: int) -> None:
    chunk = 21
    x, out = random(rows, 32), poisoned((rows + 20, 32))
    kernel = kernel_of("chunks")
    grid = (2, -(-rows // chunk))
    kernel[grid](x, out, rows, chunk)
    np.testing.assert_array_equal(out[:rows], x + x)
    assert np.isnan(out[rows:]).all()
    report = kernel.report(x, out, rows, chunk, grid=grid)
    assert ("sizes [?, chunk, ?]" in report) == (rows == 63)
    assert ("gather or scatter" in report) == (rows == 75)


def test_what_bounds_of_chunks_come_from_decides_a_launch() -> None:
    plan = kernel_of("chunks").plan(settles=frozenset({0}))
    assert plan.deciding == {"rows", "chunk"}


@pytest.mark.parametrize("rows", [1, 16, 37, 64])
def test_from_the_end(target: str, rows: int) -> None:
    x, out = random(rows, 64), poisoned((rows + 3, 64))
    kernel_of("from_the_end")[2](x, out, rows)
    chunks = x.astype(np.float64).copy()
    for first in range(0, rows, 16):
        chunks[first : first + 16] += x[first + 16 :].sum(0)
    np.testing.assert_allclose(out[:rows], chunks, atol=1e-5)
    assert np.isnan(out[rows:]).all()


def test_from_the_end_of_nothing(target: str) -> None:
    out = poisoned((4, 64))
    kernel_of("from_the_end")[2](random(4, 64), out, 0)
    assert np.isnan(out).all()


@pytest.mark.parametrize("chunk", [16, 24])
def test_parts(target: str, chunk: int) -> None:
    batches, chunks, parts, each = 2, 3, 2, 3
    x = random(batches, chunks * chunk, parts * each, 32)
    out = poisoned(x.shape)
    strides = (chunks * chunk * parts * each * 32, 32, parts * each * 32)
    kernel_of("parts")[-(-chunk // 16), batches * chunks, parts](
        x, out, batches, chunk, each, *strides
    )
    sums = x.reshape(batches, chunks * chunk, parts, each, 32).sum(3, dtype=np.float64)
    np.testing.assert_allclose(out[:, :, ::each], sums, atol=1e-5)
    assert np.isnan(out.reshape(*sums.shape[:3], each, 32)[:, :, :, 1:]).all()


@pytest.mark.parametrize("columns", [32, 96])
def test_rows_by_number(target: str, columns: int) -> None:
    x, out = random(40, 112), poisoned((32, 32))
    numbers = RNG.integers(0, 40, 32).astype(np.int32)
    kernel_of("rows_by_number")[2](x, numbers, out, 112, columns)
    sums = x[numbers, :columns].reshape(32, -1, 32).sum(1, dtype=np.float64)
    np.testing.assert_allclose(out, sums, atol=1e-5)


def test_masks_multiplied(target: str) -> None:
    x, out = random(21, 80), poisoned((24, 80))
    kernel_of("both_masks")[2, 3](x, out, 21, 70, 80)
    np.testing.assert_array_equal(out[:21, :70], 2 * x[:, :70])
    assert np.isnan(out[21:]).all()
    assert np.isnan(out[:, 70:]).all()


@pytest.mark.parametrize(("rows", "cut"), [(32, False), (24, True)])
def test_bounds_that_branches_keep_from_tiles(target: str, rows: int, cut: bool) -> None:
    text = (KERNELS / "triangle.ttir").read_text()
    text = text.replace("arith.constant 32 : i32", f"arith.constant {rows} : i32")
    kernel = tilec.triton.kernel(text, "triangle.ttir").on("emulator:check")
    n, grid = 75, (3, 5)
    x, out = random(n, n), poisoned((n + 1, n))
    kernel[grid](x, out, n)
    ends = (np.arange(n) // 32 + 1) * rows
    np.testing.assert_array_equal(out[:n], np.where(np.arange(n) < ends[:, None], x, 0))
    assert np.isnan(out[n:]).all()
    assert ("gather or scatter" in kernel.report(x, out, n, grid=grid)) == cut


@pytest.mark.parametrize(("name", "argument"), [("from_the_end", "T"), ("back_by_steps", "n")])
def test_arrays_begin_at_their_pointers(name: str, argument: str) -> None:
    rule = kernel_of(name).plan().arrays[0]
    assert str(rule).startswith(f"f32 at x + 0, sizes [{argument}"), rule


def test_back_by_steps(target: str) -> None:
    x, out = random(180), poisoned((3, 16))
    kernel_of("back_by_steps")[3](x, out, 180)
    whole = np.zeros((3, 64))
    whole.flat[:180] = x
    np.testing.assert_allclose(out, whole[:, :48].reshape(3, 3, 16).sum(1), atol=1e-5)


def test_products_added_in_memory(target: str) -> None:
    """By three programs each, onto what is there, by 16 bytes at once."""
    m, n, k, width = 80, 144, 160, 160
    a, b = random(m, k, dtype=np.float16), random(k, n, dtype=np.float16)
    before = random(m, width, dtype=np.float16)
    out = before.copy()
    kernel_of("added_products")[2, 3, 3](a, b, out, m, n, k, k, n, width)
    wanted = before[:, :n] + a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(out[:, :n].astype(np.float64), wanted, atol=0.1, rtol=0.01)
    np.testing.assert_array_equal(out[:, n:], before[:, n:])
