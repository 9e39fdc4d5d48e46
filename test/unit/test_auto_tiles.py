"""`tl.auto` by size: which tiles are ranked, which are taken, and for what one kernel serves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.auto_tiles import AutoTiles, Tiles
from tilec.call.call_class import CallClass, any_class, class_of, class_of_specs, size_class
from tilec.call.jit import Kernel
from tilec.call.shared_code import SharedCode
from tilec.call.specialization import specialize
from tilec.compile.fitting import MOST_UNSOUND, Unsound, first_sound
from tilec.costs.launch_work import work_of
from tilec.costs.machine import usual_machine
from tilec.costs.model import predict
from tilec.costs.work import LoopWork, Unit, Way, Work
from tilec.dialects.context import make_context
from tilec.examples.convolution import convolve
from tilec.examples.grouped_gemm import grouped_gemm
from tilec.examples.matmul import matmul
from tilec.examples.quantized_weights import quantized_matmul
from tilec.examples.tile_scales import tile_scaled_matmul
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError, DoesNotFit
from tilec.ops.attention_kernel import attention
from tilec.ops.gradient_kernels import key_gradients, query_gradients
from tilec.runtime.arrays import ArrayView
from tilec.runtime.launch_argument import REQUIRED

HOPPER = find_target("sm_90a")
H200 = usual_machine(HOPPER)
RECORDS = Path(__file__).resolve().parents[1] / "bench" / "results"


def array(*shape: int, dtype: str = "bf16") -> ArrayView:
    """A row-major array without memory."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return ArrayView(0, shape, tuple(strides), dtype, ("host", 0))


def heads(batch: int, count: int, length: int, width: int, **constants: Any) -> dict[str, Any]:
    """Arguments of attention."""
    arrays = {name: array(batch, count, length, width) for name in "qkvo"}
    defaults = {p.name: p.default for p in attention.parameters if p.default is not REQUIRED}
    return {**defaults, **arrays, "scale": 0.1, "D": width, **constants}


def product(m: int, n: int, k: int) -> dict[str, Any]:
    """Arguments of a product."""
    defaults = {p.name: p.default for p in matmul.parameters if p.kind == "const"}
    return {**defaults, "a": array(m, k), "b": array(k, n), "c": array(m, n)}


def taken(
    kernel: Kernel, values: Mapping[str, Any], *, is_most: bool = True
) -> list[dict[str, int]]:
    """The choices of tiles for a call on an H200, the first in front. `is_most`: of its class."""
    call = class_of(specialize(kernel.parameters, values).parameters, values, H200)
    call = replace(call, is_most=is_most)
    return [dict(tiles.chosen) for tiles in choices(kernel, values).order(call)]


def choices(kernel: Kernel, values: Mapping[str, Any]) -> AutoTiles:
    """The choices of tiles for calls like this one, of any sizes."""
    return kernel._programs.choices(specialize(kernel.parameters, values), HOPPER)


def test_classes_of_sizes() -> None:
    sizes = range(1, 20_000)
    classes = [size_class(size) for size in sizes]
    assert classes == sorted(classes)
    assert all(
        size <= of <= max(16, 1.0625 * size + 1) for size, of in zip(sizes, classes, strict=True)
    )
    assert [size_class(of) for of in classes] == classes
    assert len(set(classes)) < 200
    assert {1 << n for n in range(15)} <= set(classes)


def test_a_class_holds_sizes_whole_numbers_and_the_device() -> None:
    @tilec.kernel
    def scaled(x: tl.array, n: int, by: tl.f32, B: tl.const = tl.auto):
        tl.store(x, 0, tl.load(x, n, B) * by)

    def of(length: int, n: int, by: float = 2.0) -> CallClass:
        values = {"x": array(length, dtype="f32"), "n": n, "by": by, "B": tl.auto}
        return class_of(specialize(scaled.parameters, values).parameters, values, H200)

    assert of(1000, 40) == of(1020, 39) == of(1000, 40, 3.0)
    assert len({of(1000, 40), of(1100, 40), of(1000, 70), of(1000, -40)}) == 4
    assert of(1000, 40).sizes == ((1024,), 40, None)
    assert "1024" in of(1000, 40).text
    assert "132" in of(1000, 40).text


def test_where_rows_begin_is_a_class_of_its_own() -> None:
    """In lines, or at multiples of less inside of them; by specs of dense arrays, too."""
    found = []
    for width in (5000, 5008, 5024, 5056):
        values = product(1000, 5000, width)
        parameters = specialize(matmul.parameters, values).parameters
        found.append(class_of(parameters, values, H200))
        shapes = {name: values[name].shape for name in "abc"}
        assert class_of_specs(parameters, shapes, H200, is_most=True) == found[-1]
        assert class_of_specs(parameters, shapes, H200) == replace(found[-1], is_most=False)
    assert [one.pitches for one in found] == [(n, 16, 16) for n in (16, 32, 64, 128)]
    assert len({one.sizes for one in found}) == 1
    assert len({one.text for one in found}) == 4


def test_specs_have_a_class_where_they_say_all_sizes() -> None:
    q = [f"{name}:bf16[2,3,395,64]" for name in "qkvo"]
    found = attention._for([*q, "scale:f32"], {"D": 64}, 32, HOPPER)
    assert found.call is not None
    assert found.call.sizes == (*[(2, 3, 400, 64)] * 4, None)
    half = attention._for([*q[:3], "o:bf16[?,3,?,64]", "scale:f32"], {"D": 64}, 32, HOPPER)
    assert half.call is None
    assert any_class(half.parameters, H200).sizes[3] == (8, 3, 1024, 64)
    given = attention._for(
        [*q[:3], "o:bf16[?,3,?,64]", "scale:f32"], {"D": 64}, 32, HOPPER, {"o": (2, 3, 395, 64)}
    )
    assert given.call == found.call
    with pytest.raises(ValueError, match="'o' is no parameter with as many sizes as 4"):
        attention.compile([*q, "scale:f32"], {"D": 64}, target="sm_90a", sizes={"o": 4})


# -- what is chosen


def test_small_products_take_small_tiles_and_large_ones_the_usual() -> None:
    def first(*sizes: int) -> dict[str, int]:
        return taken(matmul, product(*sizes))[0]

    usual = {"BM": 128, "BN": 256, "BK": 64}
    assert first(8192, 8192, 8192) == first(4096, 4096, 4096) == usual
    small = first(512, 512, 4096)
    assert small["BM"] * small["BN"] <= 64 * 64
    assert first(64, 8192, 4096)["BM"] == 64


def test_short_sequences_take_fewer_queries() -> None:
    """192 queries are 64 masked or past the end too many, or a third faster."""

    def rows(length: int, causal: bool) -> int:
        return taken(attention, heads(16384 // length, 32, length, 64, CAUSAL=causal))[0]["BM"]

    assert rows(4096, True) == rows(4096, False) == 192
    assert rows(1024, True) == rows(256, False) == 128


FEW_PROGRAMS = [
    (attention, (1, 4, 5120, 128), {(128, 128): 66.8, (128, 64): 74.5, (64, 128): 93.0}),
    (attention, (2, 8, 1024, 64), {(64, 128): 11.3, (128, 128): 13.0, (64, 64): 13.0}),
    (query_gradients, (1, 4, 5120, 64), {(128, 64): 59.5, (64, 64): 85.6}),
    (key_gradients, (5, 7, 384, 64), {(64, 64): 8.6, (64, 128): 9.8}),
]
"""Causal; batch, heads, length, elements; microseconds by BM and BN on an H200, results right."""


@pytest.mark.share(2)
@pytest.mark.parametrize(("kernel", "shape", "timed"), FEW_PROGRAMS)
def test_programs_of_different_lengths_two_a_multiprocessor(
    kernel: Kernel, shape: tuple[int, ...], timed: dict[tuple[int, int], float]
) -> None:
    """The longest has a multiprocessor of its own, or as good as that: rounds of equal ones would
    take another tile, up to 1.44 times as long."""
    values = {p.name: p.default for p in kernel.parameters if p.default is not REQUIRED}
    for parameter in kernel.parameters:
        if parameter.kind == "array":
            rows = parameter.name in ("logs", "delta")
            dtype = "f32" if rows else "bf16"
            values[parameter.name] = array(*(shape[:3] if rows else shape), dtype=dtype)
    values |= {"scale": 0.1, "D": shape[3], "CAUSAL": True}
    choices = ((tiles["BM"], tiles["BN"]) for tiles in taken(kernel, values))
    assert timed[next(tiles for tiles in choices if tiles in timed)] == min(timed.values())


def test_every_choice_is_offered_once_and_the_halved_ones_last() -> None:
    found = taken(matmul, product(4096, 4096, 4096))
    assert len({tuple(tiles.items()) for tiles in found}) == len(found)
    ranked = [tiles for tiles in found if tiles["BM"] >= 64]
    halved = [tiles for tiles in found if tiles["BM"] < 64]
    assert found == ranked + halved
    assert {"BM": 128, "BN": 64, "BK": 64} in ranked
    elements = [math.prod(tiles.values()) for tiles in halved]
    assert elements == sorted(elements, reverse=True)
    assert set(halved[-1].values()) == {16}


def test_without_a_rule_for_the_grid_the_usual_tiles_are_taken() -> None:
    @tilec.kernel
    def copy(x: tl.array, y: tl.array, R: tl.const = tl.auto, C: tl.const = tl.auto):
        tl.store(y, (0, 0), tl.load(x, (0, 0), (R, C)))

    values = {"x": array(64, 64), "y": array(64, 64), "R": tl.auto, "C": tl.auto}
    assert taken(copy, values)[:2] == [{"R": 32, "C": 64}, {"R": 32, "C": 32}]


# -- what is not taken


@pytest.mark.parametrize(("columns", "rows"), [(256, 8), (1000, 2), (8192, 1), (65536, 1)])
def test_rows_beside_a_length_that_is_given(columns: int, rows: int) -> None:
    """4 KiB of f16 together, or a row."""

    @tilec.kernel(grid=lambda y, R: tl.cdiv(y.shape[0], R))
    def add_up(x: tl.array, y: tl.array, N: tl.const, R: tl.const = tl.auto):
        row = tl.program_id(0) * R
        tl.store(y, row, tl.sum(tl.load(x, (row, 0), (R, N)).to(tl.f32), 1))

    values = {"x": array(64, columns, dtype="f16"), "y": array(64, dtype="f32")}
    assert taken(add_up, {**values, "N": columns, "R": tl.auto})[0] == {"R": rows}


@tilec.kernel(grid=lambda x: x.shape[0])
def soften(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """y = exp(x - max x) of each row, which is read twice."""
    row, highest = tl.program_id(0), -tl.inf
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B, padding=-tl.inf).to(tl.f32)
        highest = tl.maximum(highest, tl.max(v))
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B).to(tl.f32)
        tl.store(y, (row, start), tl.exp(v - highest).to(y.dtype))


def test_loops_along_rows_take_tiles_by_their_length() -> None:
    """Short rows take short tiles, and so do many rows; few long ones have little else to load.
    That is where launches may bring longer rows."""

    def first(rows: int, columns: int) -> int:
        values = {"x": array(rows, columns, dtype="f16"), "y": array(rows, columns, dtype="f16")}
        return taken(soften, {**values, "B": tl.auto}, is_most=False)[0]["B"]

    assert first(8192, 1536) <= 2048
    assert 2048 <= first(900, 10000) <= 4096
    assert first(64, 250000) == first(2, 250000) == 16384


def test_short_rows_take_a_tile_that_holds_them() -> None:
    """Up to five eighths of the smallest tile of long rows, in eight sizes an octave; and up to
    three such tiles, which would each be one round of the loop, in steps of a quarter. That is
    where launches may bring longer rows."""

    def first(columns: int) -> int:
        values = {"x": array(99, columns, dtype="f16"), "y": array(99, columns, dtype="f16")}
        return taken(soften, {**values, "B": tl.auto}, is_most=False)[0]["B"]

    found = {columns: first(columns) for columns in (1, 33, 145, 160, 530, 640)}
    assert found == {1: 32, 33: 64, 145: 160, 160: 160, 530: 576, 640: 640}
    assert {columns: first(columns) for columns in (641, 1024)} == {641: 1024, 1024: 1024}
    found = {columns: first(columns) for columns in (1025, 1500, 3072)}
    assert found == {1025: 1280, 1500: 1536, 3072: 3072}
    assert first(3073) in (1024, 2048, 4096)


@tilec.kernel(grid=lambda y: y.shape[0])
def segment_sums(starts: tl.array, values: tl.array, y: tl.array, B: tl.const = tl.auto):
    """Sums of runs of values, each of which ends where the next begins."""
    row = tl.program_id(0)
    first, end = tl.load(starts, row, ()), tl.load(starts, row + 1, ())
    acc = tl.zeros((B,), tl.f32)
    for at in tl.range(first, end, B):
        acc += tl.where(at + tl.arange(B) < end, tl.load(values, at, B), 0.0)
    tl.store(y, row, tl.sum(acc))


@pytest.mark.parametrize(
    ("rows", "elements", "tile"), [(94403, 94403 * 21, 64), (99, 0, 32), (1, 300, 640)]
)
def test_rows_that_memory_begins_take_twice_their_mean(rows: int, elements: int, tile: int) -> None:
    values = {
        "starts": array(rows + 1, dtype="i32"),
        "values": array(elements, dtype="f32"),
        "y": array(rows, dtype="f32"),
    }
    assert taken(segment_sums, {**values, "B": tl.auto})[0] == {"B": tile}
    longer = {**values, "values": array(rows * 400, dtype="f32")}
    assert taken(segment_sums, {**longer, "B": tl.auto})[0]["B"] >= 1024


def test_results_of_short_rows_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of none to many tiles, more of them than programs run at once."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng()
    counts = rng.integers(0, 50, 200)
    counts[77] = 300
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    values, y = rng.standard_normal(starts[-1], dtype=np.float32), np.full(200, np.nan, np.float32)
    there = segment_sums.on("emulator:check")
    there(starts, values, y)
    assert there.compiled(starts, values, y).constants["B"] == 64
    padded = np.concatenate([values, [0]]).astype(np.float64)
    expected = np.add.reduceat(padded, starts[:-1]) * (counts > 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)


def test_loops_down_columns_take_tiles_of_64_columns() -> None:
    @tilec.kernel(grid=lambda y, BN: tl.cdiv(y.shape[0], BN))
    def add_rows(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
        n, acc = tl.program_id(0) * BN, tl.zeros((BM, BN), tl.f32)
        for m in tl.range(0, x.shape[0], BM):
            acc += tl.load(x, (m, n), (BM, BN)).to(tl.f32)
        tl.store(y, n, tl.sum(acc, 0))

    values = {"x": array(4096, 512, dtype="f16"), "y": array(512, dtype="f32")}
    assert taken(add_rows, {**values, "BM": tl.auto, "BN": tl.auto})[0] == {"BM": 64, "BN": 64}


def test_what_programs_read_again_comes_from_memory_where_it_is_too_much() -> None:
    def work(columns: int) -> Work:
        arrays = {name: array(4096, columns, dtype="f16") for name in "xy"}
        found = specialize(soften.parameters, values := {**arrays, "B": 4096})
        module = soften.source_module(found.parameters, dict(found.constants), target="sm_90a")
        return work_of(module, found.parameters, values, HOPPER).work

    short, long = work(4096), work(131072)
    assert (short.again_bytes, long.again_bytes) == (2 * 4096, 2 * 131072)
    assert [loop.exchanges for loop in short.loops] == [1, 0]
    once = replace(long, again_bytes=0)
    assert predict(short, H200) == predict(replace(short, again_bytes=0), H200)
    assert 1.3 < predict(long, H200).us / predict(once, H200).us < 1.6


def test_attention_with_wide_heads_neither_spills_nor_starves() -> None:
    """128 x 128 tiles of heads of 256 take 262 registers of 248, and leave a ring one slot."""
    specs = [f"{n}:bf16[?,?,?,?:8;?:8,?:8,?:8,1]" for n in "qkvo"] + ["scale:f32"]
    found = attention.compile(specs, {"D": 256}, target="sm_90a")
    said = {e["about"]: e["chosen"] for e in found.report["decisions"]}
    assert (found.constants["BM"], found.constants["BN"]) == (128, 64)
    assert "registers" not in said
    assert said["warp specialisation"].endswith("2 stages")
    refused = [e["why"] for e in found.report["decisions"] if e["about"] == "tiles"]
    assert len(refused) == 1
    assert "BM = 128, BN = 128" in refused[0]
    assert "registers: about 262 for a thread, which has 248" in refused[0]


def lowered(outcomes: list[Any], most: int = 99) -> tuple[Any, list[tuple[int, bool]]]:
    """What `first_sound` gives where choices end like this, and what it lowered how."""
    seen: list[tuple[int, bool]] = []

    def lower(number: int, refused: Any, is_strict: bool) -> int:
        seen.append((number, is_strict))
        outcome = outcomes[number]
        if isinstance(outcome, Unsound) and not is_strict:
            return number
        if isinstance(outcome, Exception):
            raise outcome
        assert len(refused) == number
        return number

    def other(number: int) -> Any:
        return number if number < min(most, len(outcomes)) else None

    return first_sound(0, other, lower), seen  # pyright: ignore[reportArgumentType]


def test_the_first_sound_choice_is_taken() -> None:
    assert lowered([1, 1]) == (0, [(0, True)])
    found, seen = lowered([Unsound(20, "spills"), DoesNotFit("large"), 1, 1])
    assert (found, len(seen)) == (2, 3)


def test_of_unsound_choices_that_which_spills_least() -> None:
    starved, bad, worse = Unsound(0, "one slot"), Unsound(9, "spills"), Unsound(90, "spills")
    assert lowered([worse, bad, DoesNotFit("large")])[0] == 1
    assert lowered([worse, starved, bad])[0] == 1
    found, seen = lowered([worse] * (MOST_UNSOUND + 5))
    assert (found, len(seen)) == (0, MOST_UNSOUND + 1)
    with pytest.raises(DoesNotFit, match="too large"):
        lowered([DoesNotFit("large"), DoesNotFit("too large")])


# -- what a kernel cannot be


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def narrow(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, MOST: tl.const = 64,
):  # fmt: skip
    """A product in tiles of at most MOST columns."""
    tl.static_assert(BN <= MOST, "a tile is narrow")
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        acc = tl.dot(tl.load(a, (m, k), (BM, 64)), tl.load(b, (k, n), (64, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def test_static_assertions_say_which_tiles_a_kernel_can_have() -> None:
    values = product(4096, 4096, 4096) | {"BM": tl.auto, "BN": tl.auto, "MOST": 64}
    assert taken(matmul, product(4096, 4096, 4096))[0]["BN"] == 256
    assert max(tiles["BN"] for tiles in taken(narrow, values)) == 64
    found = specialize(narrow.parameters, values)
    specs = [replace(spec, sizes=(None, None)) for spec in found.parameters]
    chosen = narrow.source_module(specs, {}, target="sm_90a").body.operations[0].attributes
    assert chosen["tile.constants"]["BN"].value == 64  # of unknown sizes, too
    with pytest.raises(CompileError, match="a tile is narrow"):
        narrow.source_module(specs, {"MOST": 8}, target="sm_90a")


# -- what the model reads of a kernel


def test_what_attention_does_between_its_products() -> None:
    found = specialize(attention.parameters, values := heads(2, 3, 400, 64, BM=128, BN=96))
    module = attention.source_module(found.parameters, dict(found.constants), target="sm_90a")
    work = work_of(module, found.parameters, values, HOPPER).work
    whole, masked, outside = work.loops
    assert (whole.trips, masked.trips) == (4, 1)
    assert whole.staged_bytes == whole.global_bytes == 2 * 2 * 96 * 64
    assert work.outer_bytes == 2 * 128 * 64
    assert (whole.waiting_products, whole.way) == (1, Way.ENGINE)
    assert whole.functions == 128 * 96 + 128  # a weight each, and a row's factor
    assert masked.computed > whole.computed > 4 * 128 * 96
    assert work.accumulators == 128 * (96 + 64) + 128 * 96 // 2  # sums, and weights in bf16
    assert (outside.waiting_products, outside.functions) == (0, 128 * 64)  # the quotient


def test_products_that_a_loop_scales_and_adds_up_are_waited_for_and_held_twice() -> None:
    values = {
        **{"a": array(512, 512, dtype="f8E4M3FN"), "b": array(512, 512, dtype="f8E4M3FN")},
        **{"a_scales": array(512, 4, dtype="f32"), "b_scales": array(4, 4, dtype="f32")},
        **{"c": array(512, 512), "BM": 128, "BN": 64},
    }
    found = specialize(tile_scaled_matmul.parameters, values)
    module = tile_scaled_matmul.source_module(
        found.parameters, dict(found.constants), target="sm_90a"
    )
    work = work_of(module, found.parameters, values, HOPPER).work
    assert work.accumulators == 2 * 128 * 64
    assert [(loop.trips, loop.waiting_products, loop.groups) for loop in work.loops] == [
        (4, 1, 2),
        (1, 0, 1),
    ]


def test_a_kernel_is_read_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = choices(matmul, product(512, 512, 512))
    first, second = (
        class_of(tiles._parameters, product(*sizes), H200)
        for sizes in ((512, 512, 512), (4096, 4096, 4096))
    )
    before = tiles.order(first)
    monkeypatch.setattr(tiles, "_build", lambda *_: pytest.fail("built again"))
    assert tiles.order(second)[0].chosen != before[0].chosen
    assert tiles.order(first) == before


def test_what_two_products_read_is_loaded_once() -> None:
    @tilec.kernel(grid=1)
    def two(a: tl.array, b: tl.array, c: tl.array, K: tl.const):
        first, second = tl.zeros((64, 64), tl.f32), tl.zeros((64, 64), tl.f32)
        for k in tl.range(0, K, 32):
            x = tl.load(a, (0, k), (64, 32))
            y = tl.load(b, (0, k), (64, 32))
            first = tl.dot(x, y.T, first)
            second = tl.dot(tl.maximum(x, 0.0), y.T, second)
        tl.store(c, (0, 0), (first + second).to(c.dtype))

    values = {name: array(64, 64) for name in "abc"} | {"K": 64}
    found = specialize(two.parameters, values)
    module = two.source_module(found.parameters, dict(found.constants), target="sm_90a")
    loop = work_of(module, found.parameters, values, HOPPER).work.loops[0]
    assert loop.staged_bytes == 2 * 2 * 64 * 32
    assert loop.waiting_products == 0
    assert loop.computed == 64 * 32 // 2


def test_converted_operands_come_as_what_the_dot_multiplies() -> None:
    """Bytes that become bf16 do not make the other operand one of bytes, which lies along k."""

    @tilec.kernel(grid=1)
    def converted(a: tl.array, b: tl.array, c: tl.array, K: tl.const):
        total = tl.zeros((64, 64), tl.f32)
        for k in tl.range(0, K, 64):
            x = tl.load(a, (0, k), (64, 64)).to(b.dtype)
            total = tl.dot(x, tl.load(b, (k, 0), (64, 64)), total)
        tl.store(c, (0, 0), total.to(c.dtype))

    values = {"a": array(64, 128, dtype="i8"), "b": array(128, 64), "c": array(64, 64), "K": 128}
    found = specialize(converted.parameters, values)
    module = converted.source_module(found.parameters, dict(found.constants), target="sm_90a")
    loop = work_of(module, found.parameters, values, HOPPER).work.loops[0]
    assert (loop.way, loop.staged_bytes) == (Way.ENGINE, 64 * 64 * (1 + 2))
    assert loop.line_bytes == 64 * 128 + 64 * 2 * 64  # rows of 64 bytes are halves of lines


def test_products_and_computing_lie_under_each_other_the_more_the_more_warps() -> None:
    """2048 clocks of products and 1024 of special functions, by one to three warpgroups."""

    def us(warps: int, **own: Any) -> float:
        loop = LoopWork(100, {"f16": 1 << 23}, functions=1 << 14, unit=Unit.WARPGROUPS, **own)
        return predict(Work(132, warps, (loop,), 0, 128 * 100), H200).us

    in_turns = [us(4 * groups, waiting_products=1, groups=groups) for groups in (1, 2, 3)]
    assert in_turns == sorted(in_turns, reverse=True)
    assert in_turns[0] > 1.15 * in_turns[2]
    assert us(12, waiting_products=1, groups=1) == pytest.approx(
        in_turns[0]
    )  # the same rows, in more warps
    assert us(4) == us(12) < in_turns[2]


def test_few_rounds_of_programs_of_unequal_length_take_longer() -> None:
    loop = LoopWork(100, {"f16": 1 << 23}, unit=Unit.WARPGROUPS)

    def us(rounds: int, longest: float) -> float:
        work = Work(132 * rounds, 8, (loop,), 0, 128 * 200, longest=longest)
        return predict(work, H200).us / rounds

    assert us(1, 2) > 1.9 * us(1, 1)
    assert 1.05 * us(4, 1) < us(4, 2) < 1.15 * us(4, 1)
    assert us(100, 2) < 1.001 * us(100, 1)


# -- one kernel for many sizes


def test_a_kernel_is_shared_where_the_same_choices_led_to_it() -> None:
    a, b, c = (Tiles((("B", size),), {"B": f"{size}: why"}) for size in (16, 32, 64))
    code, compiled = SharedCode(), []

    def find(order: list[Tiles], taken: Tiles) -> CompiledKernel:
        def compile_() -> CompiledKernel:
            compiled.append(taken)
            decisions = [{"about": "constant", "chosen": "B", "why": "first"}, {"about": "fit"}]
            made = CompiledKernel("k", "sm_90a", "", (), None, 32, 0, 32, dict(taken.chosen))
            return replace(made, report={"decisions": decisions})

        return code.find("key", order, compile_)

    assert find([a, b], b).constants == find([a, b, c], b).constants == {"B": 32}
    assert compiled == [b]
    assert find([b, c], b).constants == {"B": 32}  # `a` may have been refused or not
    assert find([a, c], c).constants == {"B": 64}
    assert compiled == [b, b, c]
    told = find([b, a], b).report["decisions"]
    assert [entry.get("why") for entry in told] == ["32: why", None]


def test_classes_with_the_same_tiles_share_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")

    @tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
    def times(
        a: tl.array, b: tl.array, c: tl.array,
        BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
        PRECISION: tl.const = "ieee",
    ):  # fmt: skip
        m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, a.shape[1], BK):
            acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
        tl.store(c, (m, n), acc.to(c.dtype))

    compiled: list[Any] = []
    whole = Kernel._compile
    monkeypatch.setattr(Kernel, "_compile", lambda *a: compiled.append(a) or whole(*a))
    device = tilec.device("emulator")

    def resolve(m: int, n: int, k: int) -> Any:
        return times.resolve(device, product(m, n, k))

    first, again = resolve(8192, 8192, 4096), resolve(8184, 8192, 4096)
    assert first is again is resolve(8192, 8192, 1024)
    assert len(compiled) == 1
    there, c = times.on("emulator"), np.zeros((8192, 8192), np.float16)
    pairs = [(c[:, :k], c[:k]) for k in (4096, 1024)]
    reports = [there.report(a, b, c) for a, b in pairs]
    assert len(compiled) == 2
    said = [next(x for x in r.splitlines() if "tiles of BM, BN, BK" in x) for r in reports]
    assert said[0] != said[1]
    assert "128x256x64" in said[0]
    small = resolve(256, 256, 512).constants
    assert small["BM"] * small["BN"] <= 64 * 128
    assert len(compiled) == 3


def test_results_of_chosen_tiles_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes for which the choices differ, none a multiple of a tile."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng()
    tiles = set()
    for m, n, k in ((40, 72, 200), (8, 300, 40)):
        a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float16)
        there = matmul.on("emulator:check")
        there(a, b, c)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        assert abs(c - expected).max() <= 2e-3 * abs(expected).max()
        tiles.add(there.compiled(a, b, c).constants["BM"])
    assert len(tiles) == 2


def test_tiles_of_groups_that_have_rows_are_counted_by_whole_columns() -> None:
    """27 groups of 7134 rows in all, 448 columns in two tiles of 256 of which one is not full: of
    the programs beyond the 222 tiles that the rows fill, half have some of them."""
    rows, groups, columns = 7134, 27, 448
    arrays = {"a": array(rows, 352), "b": array(groups, 352, columns), "c": array(rows, columns)}
    values = {**arrays, "ends": array(groups, dtype="i32")}
    tiles = {"BM": 64, "BN": 256, "BK": 64}
    wanted = specialize(grouped_gemm.parameters, {**values, **tiles})
    module = grouped_gemm._programs.module(wanted, HOPPER)
    found = work_of(module, wanted.parameters, values, HOPPER)
    assert found.grid == (112 + 27 - 1, 2, 1)
    filled = 2 * rows // 64
    assert found.work.programs == 276 - (276 - filled) // 2


def test_few_rows_or_columns_have_tiles_of_single_warps() -> None:
    """16 rows of 4096 x 4096: 19 us in tiles of 64 rows, 14 in 16 x 32 x 256 (H200)."""
    whole = matmul.demanding(sum_parts=1)
    few = taken(whole, product(8, 4096, 4096))[0]
    assert few["BM"] == 16
    assert few["BK"] > 64
    assert taken(whole, product(4096, 8, 4096))[0]["BN"] == 16
    assert taken(whole, product(50, 1190, 189))[0]["BM"] == 32
    for rows, columns in ((65, 4096), (4096, 4096)):
        tiles = taken(whole, product(rows, columns, 4096))[:8]
        assert min(each["BM"] for each in tiles) == 64
        assert max(each["BK"] for each in tiles) <= 128


def test_the_fastest_tiles_may_have_longer_steps_where_there_is_room_for_slots() -> None:
    def steps(*sizes: int) -> set[tuple[int, int, int]]:
        whole = matmul.demanding(sum_parts=1)
        return {(x["BM"], x["BN"], x["BK"]) for x in taken(whole, product(*sizes))}

    assert (64, 64, 128) in steps(192, 832, 7808)
    assert (128, 256, 128) not in steps(4096, 4096, 4096)


def test_columns_between_powers_of_two_where_they_fill_the_device() -> None:
    """120 tiles of 128 x 192 on 132 multiprocessors, for 90 of 128 x 256; the usual ones where
    there are many rounds, and where what has the columns is computed."""
    one = taken(matmul, product(1280, 2304, 4096))[0]
    assert (one["BM"], one["BN"]) == (128, 192)
    assert taken(matmul, product(8192, 8192, 8192))[0]["BN"] == 256

    @tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
    def halved(
        a: tl.array,
        b: tl.array,
        c: tl.array,
        BM: tl.const = tl.auto,
        BN: tl.const = tl.auto,
        BK: tl.const = tl.auto,
    ):
        m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, a.shape[1], BK):
            x, y = tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN))
            acc = tl.dot(x, y + y.to(tl.f32).to(y.dtype), acc)
        tl.store(c, (m, n), acc.to(c.dtype))

    sides = {1 << number for number in range(4, 9)}
    every = taken(halved, product(1280, 2304, 4096))
    assert {each["BN"] for each in every} <= sides
    ragged = product(1280, 2301, 4096)  # whose rows no copy engine moves
    assert {each["BN"] for each in taken(matmul, ragged)} <= sides


def test_columns_between_must_promise_more_than_the_model_errs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They promise 1.27 times the speed."""
    wary = replace(H200, other_rates=replace(H200.rates, between_gain=1.4))
    monkeypatch.setattr("tilec.call.auto_tiles.usual_machine", lambda _: wary)
    assert taken(matmul, product(1280, 2304, 4096))[0]["BN"] in (64, 128, 256)


def test_parts_must_promise_more_than_the_model_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    values = product(104, 1536, 13824)
    call = class_of(specialize(matmul.parameters, values).parameters, values, H200)
    assert choices(matmul, values).order(call)[0].parts > 1
    wary = replace(H200, other_rates=replace(H200.rates, parts_gain=10))
    monkeypatch.setattr("tilec.call.auto_tiles.usual_machine", lambda _: wary)
    matmul._programs.choices(specialize(matmul.parameters, values), HOPPER)._last = None
    assert choices(matmul, values).order(call)[0].parts == 1


def test_what_makes_operands_takes_a_programs_threads() -> None:
    """Weights of 4 bits, nine instructions for two of them, in a few warps; not what follows a
    product, as of losses, and nothing where operands are loaded as they are."""
    values = {"a": array(8, 512, dtype="f16"), "packed": array(256, 1024, dtype="i8")}
    values |= {name: array(4, 1024, dtype="f16") for name in ("scales", "zeros")}
    values |= {"c": array(8, 1024, dtype="f16")}
    given = {"GROUP": 128, "BM": 16, "BN": 32, "STAGES": 4}
    wanted = specialize(quantized_matmul.parameters, {**values, **given})
    module = quantized_matmul._programs.module(wanted, HOPPER)
    work = work_of(module, wanted.parameters, values, HOPPER).work
    loop = max(work.loops, key=lambda one: one.prepared)
    assert 64 * 32 * 4 < loop.prepared <= loop.computed
    none = replace(work, loops=tuple(replace(one, prepared=0) for one in work.loops))
    assert predict(work, H200).us > 1.2 * predict(none, H200).us
    plain = product(512, 512, 512) | {"BM": 64, "BN": 64, "BK": 64}
    wanted = specialize(matmul.parameters, plain)
    module = matmul._programs.module(wanted, HOPPER)
    work = work_of(module, wanted.parameters, plain, HOPPER).work
    assert [loop.prepared for loop in work.loops] == [0] * len(work.loops)


def test_gathered_operands_take_slots_too() -> None:
    """Of a convolution: 128 x 64 pixels and 64 x 128 weights of 2 bytes a step."""
    x, y = array(2, 32, 32, 128), array(2, 32, 32, 128)
    values = {"x": x, "w": array(3, 3, 128, 128), "y": y}
    given = {"STRIDE": 1, "PAD": 1, "BM": 128, "BN": 128, "BK": 64}
    wanted = specialize(convolve.parameters, {**values, **given})
    module = convolve._programs.module(wanted, HOPPER)
    work = work_of(module, wanted.parameters, values, HOPPER).work
    assert max(loop.staged_bytes for loop in work.loops) == 2 * (128 * 64 + 64 * 128)


def test_short_sides_want_rates_that_were_fitted() -> None:
    target = find_target("sm_100a")
    values = product(8, 4096, 4096)
    wanted = specialize(matmul.parameters, values)
    call = class_of(wanted.parameters, values, usual_machine(target))
    predicted = matmul._programs.choices(wanted, target)._predicted(call, make_context)
    assert min(dict(tiles)["BM"] for tiles, *_ in predicted) == 32


@tilec.kernel(grid=lambda q: 1)
def summed_decays(q: tl.array, g: tl.array, o: tl.array, C: tl.const, FAST: tl.const):
    """Products of rows by C, each scaled by what sums up to it."""
    for t in tl.range(0, q.shape[0], C):
        x, passed = tl.load(q, (t, 0), (C, 64)), tl.cumsum(tl.load(g, t, C))
        scale = tl.exp(passed[:, None] - passed[None, :], approx=FAST)
        near = (tl.dot(x, x.T) * scale).to(tl.bf16)
        tl.store(o, (t, 0), tl.dot(near, x))


def test_exact_functions_and_scans_that_cross_warpgroups_have_a_price() -> None:
    """An exact exponential is nine instructions, one by the hardware three; a scan of 128 rows of
    products is passed from warp to warp, of 64 each warp has all."""
    values = {"q": array(512, 64, dtype="bf16"), "g": array(512, dtype="f32")}
    values |= {"o": array(512, 64, dtype="f32")}

    def loop(rows: int, fast: bool) -> LoopWork:
        found = specialize(summed_decays.parameters, every := {**values, "C": rows, "FAST": fast})
        module = summed_decays.source_module(
            found.parameters, dict(found.constants), target="sm_90a"
        )
        return work_of(module, found.parameters, every, HOPPER).work.loops[0]

    assert loop(64, False).computed - loop(64, True).computed == 6 * 64 * 64
    assert [loop(rows, True).crossed for rows in (64, 128)] == [0, 1]
