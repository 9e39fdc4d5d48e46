"""`tl.auto` by size: which tiles are ranked, which are taken, and for what one kernel serves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile_shapes import H200, HOPPER, array, choices, heads, product, taken

import tilec
import tilec.language as tl
from tilec.call.auto_tiles import AutoTiles
from tilec.call.call_class import class_of
from tilec.call.jit import Kernel
from tilec.call.specialization import specialize
from tilec.compile import compiler_start
from tilec.compile.fitting import MOST_UNSOUND, Unsound, first_sound
from tilec.costs.launch_work import work_of
from tilec.costs.machine import usual_machine
from tilec.costs.model import predict
from tilec.costs.work import LoopWork, Unit, Work
from tilec.dialects.context import make_context
from tilec.examples.grouped_gemm import grouped_gemm
from tilec.examples.matmul import matmul
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError, DoesNotFit
from tilec.ops.attention_kernel import attention
from tilec.ops.gradient_kernels import key_gradients, query_gradients
from tilec.runtime.launch_argument import REQUIRED

RECORDS = Path(__file__).resolve().parents[1] / "bench" / "results"


# -- what is chosen


def test_small_products_take_small_tiles_and_large_ones_the_usual() -> None:
    def first(*sizes: int) -> dict[str, int]:
        return taken(matmul, product(*sizes))[0]

    usual = {"BM": 128, "BN": 256, "BK": 64}
    assert first(8192, 8192, 8192) == first(4096, 4096, 4096) == usual
    small = first(512, 512, 4096)
    assert small["BM"] * small["BN"] <= 64 * 64
    assert first(64, 8192, 4096)["BM"] == 64


@pytest.mark.parametrize(("k", "depth"), [(2, 16), (16, 16), (17, 32), (33, 64), (600, 64)])
def test_a_short_k_takes_no_deeper_tile(k: int, depth: int) -> None:
    """The narrowest swizzle that holds it: what lies beyond k is zeros that somebody writes."""
    assert taken(matmul, product(384, 10218, k))[0]["BK"] == depth
    # One round of programs fills multiprocessors, so that the next launch begins under it.
    assert taken(matmul, product(608, 25, k))[0]["BK"] >= 64


def test_rows_of_attention_follow_from_lengths() -> None:
    """192 queries are a third faster, or 64 masked or past the end too many; 256 in four
    warpgroups are whole programs of short sequences."""

    def rows(length: int, causal: bool) -> int:
        return taken(attention, heads(16384 // length, 32, length, 64, CAUSAL=causal))[0]["BM"]

    assert rows(4096, True) == rows(4096, False) == 192
    assert rows(1024, True) == 128
    assert rows(1024, False) == rows(256, False) == 256


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


def test_llvm_loads_while_tiles_are_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    happened, order, start = [], AutoTiles.order, compiler_start.start_inside

    def noted(what: str, do: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: happened.append(what) or do(*arguments)

    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setattr(AutoTiles, "order", noted("ranked", order))
    monkeypatch.setattr(compiler_start, "start_inside", noted("started", start))
    a, b, c = (np.zeros((64, 64), np.float16) for _ in range(3))
    Kernel(matmul.fn, matmul.grid).on("emulator").compiled(a, b, c)
    assert happened[:2] == ["started", "ranked"]


def test_every_choice_is_offered_once_and_the_halved_ones_last() -> None:
    values = product(4096, 4096, 4096)
    call = class_of(specialize(matmul.parameters, values).parameters, values, H200)
    offered = choices(matmul, values).order(call)
    assert len({(tiles.chosen, tiles.warps) for tiles in offered}) == len(offered)
    found = list({tiles.chosen: dict(tiles.chosen) for tiles in offered}.values())
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
    assert taken(copy, values)[:2] == [{"R": 4, "C": 512}, {"R": 4, "C": 256}]


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
    module = narrow.source_module(specs, {}, target="sm_90a")
    chosen = module.body.operations[0].attributes
    assert chosen["tile.constants"]["BN"].value == 64  # of unknown sizes, too
    with pytest.raises(CompileError, match="a tile is narrow"):
        narrow.source_module(specs, {"MOST": 8}, target="sm_90a")


def test_few_rounds_of_programs_of_unequal_length_take_longer() -> None:
    loop = LoopWork(100, {"f16": 1 << 23}, unit=Unit.WARPGROUPS)

    def us(rounds: int, longest: float) -> float:
        work = Work(132 * rounds, 8, (loop,), 0, 128 * 200, longest=longest)
        return predict(work, H200).us / rounds

    assert us(1, 2) > 1.9 * us(1, 1)
    assert 1.05 * us(4, 1) < us(4, 2) < 1.15 * us(4, 1)
    assert us(100, 2) < 1.001 * us(100, 1)


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def scores_before(
    x: tl.array, y: tl.array, o: tl.array, before=None,
    BM: tl.const = 128, BN: tl.const = 128,
):  # fmt: skip
    """Sums of products of rows of x with those of y up to their own number: `before`, or all."""
    m, acc = tl.program_id(0) * BM, tl.zeros((BM, BN), tl.f32)
    start = tl.maximum(m - before, 0) if before is not None else 0
    for n in tl.range(start, tl.minimum(m + BM, y.shape[0]), BN):
        acc = tl.dot(tl.load(x, (m, 0), (BM, 64)), tl.load(y, (n, 0), (BN, 64)).T, acc)
    tl.store(o, (m, 0), acc)


def test_programs_that_begin_where_they_end_are_not_paired() -> None:
    """Near queries' keys: all but the first programs are as long as the longest, and those that are
    a multiprocessor's second take it as long again (attention to 874 keys before, 2 x 3 heads of
    3361 x 128: 128 x 128 tiles 50 us on an H200, predicted 24)."""
    x, o = array(2048, 64), array(2048, 128, dtype="f32")
    for before in (None, 512):
        values = {"x": x, "y": x, "o": o, "before": before, "BM": 128, "BN": 128}
        wanted = specialize(scores_before.parameters, values)
        module = scores_before._programs.module(wanted, HOPPER)
        found = work_of(module, wanted.parameters, values, HOPPER).work
        assert found.longest > 1.1
        assert found.in_pairs == (before is None)
    loop = LoopWork(100, {"f16": 1 << 23}, unit=Unit.WARPGROUPS)
    paired = Work(160, 8, (loop,), 0, 128 * 200, longest=1.3)
    assert predict(replace(paired, in_pairs=False), H200).us > 1.3 * predict(paired, H200).us


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
    known = matmul._programs.choices(specialize(matmul.parameters, values), HOPPER)
    known._last = None
    assert choices(matmul, values).order(call)[0].parts == 1
    known._last = None  # what a machine would take that there is not


def test_short_sides_want_rates_that_were_fitted() -> None:
    target = find_target("sm_100a")
    values = product(8, 4096, 4096)
    wanted = specialize(matmul.parameters, values)
    call = class_of(wanted.parameters, values, usual_machine(target))
    predicted = matmul._programs.choices(wanted, target)._predicted(call, make_context)
    assert min(dict(tiles)["BM"] for tiles, *_ in predicted) == 32
