"""`tilec refit`: names, records, the fit and its judgement, the timing on a simulated GPU."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import islice
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
from fake_driver import uninstall
from simulated_gpu import SimulatedGpu, install_gpu

from tilec.cli import refit
from tilec.cli.command import main
from tilec.costs.machine import machine_of
from tilec.costs.model import predict
from tilec.costs.rates import Rates, rates_of
from tilec.hardware.target import find_target
from tilec.ops.product_work import work_of
from tilec.ops.tile_names import name_of, tile_named
from tilec.refit import measuring, product_timing
from tilec.refit.compile_ahead import compile_all, compile_tiles
from tilec.refit.drawn_products import DrawnProduct, draw
from tilec.refit.drawn_tiles import draw_tiles, prediction
from tilec.refit.fitting import fit, names_of, value_of, with_values
from tilec.refit.product_timing import ProductTimer, WrongResult
from tilec.refit.rates_file import rates_text
from tilec.refit.record import FIT, TEST, RecordError, Run, check_runs, read_record, record_text
from tilec.refit.scores import Case, Score, cases_of, is_better, score
from tilec.refit.tile_launches import moved, steps_of, views_at
from tilec.runtime.cuda.driver import CudaError
from tilec.runtime.device import device
from tilec.runtime.errors import DeviceError

HOPPER = machine_of(device("emulator"), find_target("sm_90a"))
STANDING = rates_of(HOPPER.target)
RESULTS = Path(__file__).parents[1] / "bench" / "results"


def made_up(rates: Rates, seeds: dict[str, int], count: int, tiles: int = 4) -> list[Run]:
    """What a machine of these rates would be measured at, with 2 % of noise."""
    machine, runs = replace(HOPPER, other_rates=rates), []
    for use, seed in seeds.items():
        rng, products = random.Random(seed), {}
        for product in islice(draw(seed, HOPPER.target), count):
            drawn = draw_tiles(product.facts, HOPPER, tiles, rng)
            times = {name_of(x): prediction(product.facts, x, machine) for x in drawn}
            products[product.name] = {
                name: us * rng.lognormvariate(0, 0.02) for name, us in times.items() if us < inf
            }
        runs.append(Run(HOPPER, seed, use, products))
    return runs


# -- names


@pytest.mark.parametrize(
    "name",
    [
        *("128x160x64/T/c41/1", "256x112x64/t3", "64x16x128/s16", "128x192x64/pp", "8x8x8"),
        *("64x128x64/q4/1", "16x32x128/p4/1"),
    ],
)
def test_a_tile_is_what_its_name_says(name: str) -> None:
    assert name_of(tile_named(name)) == name


def test_a_ring_of_few_slots_leaves_room_for_a_second_cta() -> None:
    product, machine = DrawnProduct.named("bf16 4096x4096x512 NN").facts, HOPPER
    whole, half = (work_of(product, (64, 128, 64), 1, (1, 1), machine, x) for x in (None, 4))
    assert [predict(work, machine).occupancy for work in (whole, half)] == [1, 2]
    tile = tile_named("64x128x64/q4")
    assert prediction(product, tile, machine) == pytest.approx(predict(half, machine).us)


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a"])
def test_what_is_drawn_is_found_by_its_name(target: str) -> None:
    machine = machine_of(device("emulator"), find_target(target))
    rng = random.Random(0)
    drawn = list(islice(draw(7, machine.target), 12))
    assert drawn == list(islice(draw(7, machine.target), 12))
    assert len({product.name for product in drawn}) == 12
    for product in drawn:
        assert DrawnProduct.named(product.name) == product
        tiles = draw_tiles(product.facts, machine, 4, rng)
        assert len({name_of(tile) for tile in tiles}) == len(tiles)
        for tile in tiles:
            found = prediction(product.facts, tile_named(name_of(tile)), machine)
            assert found == pytest.approx(tile.us)


# -- the fit


def test_a_fit_finds_the_rates_of_a_made_up_machine() -> None:
    changed = {"launch": 3.0, "l2_bytes_for_all": 40.0, "dram_efficiency": 0.6, "gather": 6.0}
    runs = made_up(replace(STANDING, **changed), {FIT: 1, TEST: 2}, 44, 4)
    cases = {use: cases_of(runs, use) for use in (FIT, TEST)}
    found = fit(cases[FIT], STANDING, [*changed, "shifted 16"])
    for name, true in {**changed, "shifted 16": STANDING.shifted[16]}.items():
        assert value_of(found, name) == pytest.approx(true, rel=0.06), name
    before, after = (score(cases[TEST], rates) for rates in (STANDING, found))
    assert before.error > 0.2
    assert after.error < 0.03
    assert is_better(after, before)
    kept = set(names_of(STANDING)) - {*changed, "shifted 16"}
    assert all(value_of(found, name) == value_of(STANDING, name) for name in kept)


def test_what_no_timing_says_anything_about_stays() -> None:
    """Launches of small products on tensor cores store no element by itself."""
    runs = made_up(STANDING, {FIT: 1}, 0)
    products = {
        f"bf16 {m}x256x{k} NT": {f"64x64x{depth}": 5.0, "128x64x64": 5.5}
        for m, k, depth in ((128, 256, 64), (256, 512, 128), (512, 256, 64))
    }
    cases = cases_of([replace(runs[0], products=products)], FIT)
    found = fit(cases, STANDING, ["launch", "scattered_store"])
    assert found.scattered_store == STANDING.scattered_store
    assert found.launch != STANDING.launch


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
def test_rates_that_stand_in_for_others_can_be_fitted(target: str) -> None:
    """Theirs has an infinite number, which stays; all others may change."""
    standing = rates_of(find_target(target))
    assert standing.merging == inf
    runs = made_up(replace(standing, launch=3 * standing.launch), {FIT: 1}, 12)
    cases = cases_of([replace(runs[0], machine=replace(HOPPER, other_rates=standing))], FIT)
    found = fit(cases, standing)
    assert found.merging == inf
    assert score(cases, found).error < 0.5 * score(cases, standing).error


def test_the_page_says_how_many_numbers_are_fitted() -> None:
    page = Path(refit.__file__).parents[1] / "refit" / "README.md"
    assert f"count with {len(names_of(STANDING))} numbers" in page.read_text()


def test_parts_are_at_most_one_and_shifted_lines_at_least() -> None:
    found = with_values(STANDING, ["tensor_efficiency", "shifted 64"], [1.7, 0.4])
    assert found.tensor_efficiency == found.shifted[64] == 1.0


def scored(losses: list[float], error: float) -> Score:
    return Score(1.0, 1.0, error, np.array(losses))


def test_a_score_says_what_choosing_by_predictions_costs() -> None:
    """The second of three tiles is predicted fastest, and takes twice the best one's time."""
    product = DrawnProduct.named("bf16 4096x4096x4096 NT").facts
    names = ("64x64x64", "128x256x64", "64x128x64")
    tiles = tuple(map(tile_named, names))
    machine = replace(HOPPER, memory_gb_per_s=4814)
    us = [prediction(product, tile, machine) for tile in tiles]
    assert min(us) == us[1]
    found = score([Case(machine, product, tiles, np.log([us[0], 2 * us[2], us[2]]))], STANDING)
    assert found.chosen == found.slowest == pytest.approx(2)
    assert found.error == pytest.approx(np.log(2 * us[2] / us[1]) / 3**0.5)


def test_what_is_not_better_does_not_take_the_place() -> None:
    """Nearer times do not make up for choices that cost more; nor does what chance explains make up
    for times that are further off."""
    old = scored([0.1, 0.0, 0.1, 0.0], 0.2)
    assert is_better(scored([0.1, 0.0, 0.1, 0.0], 0.1), old)
    assert not is_better(scored([0.1, 0.0, 0.1, 0.0], 0.2), old)
    assert not is_better(scored([0.1, 0.0, 0.1, 0.1], 0.1), old)
    assert not is_better(scored([0.0, 0.0, 0.15, 0.0], 0.3), old)
    assert is_better(scored([0.0, 0.0, 0.0, 0.0], 0.3), old)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_the_file_of_rates_gives_them(target: str) -> None:
    runs = made_up(STANDING, {FIT: 1, TEST: 2}, 2)
    standing = rates_of(find_target(target))
    found = with_values(standing, ["launch", "shifted 32", "summed_bytes"], [2.25, 1.5, 50_100.0])
    result = scored([0.1], 0.2)
    text = rates_text(found, runs, "x.json", "2026-11-23", {"tilec": "0.1"}, result, result)
    assert max(map(len, text.splitlines())) <= 100
    names: dict[str, Any] = {}
    exec(text, names)
    expected = replace(found, record="x.json")
    for field in fields(Rates):
        assert getattr(names["RATES"], field.name) == getattr(expected, field.name), field.name


# -- records


@pytest.fixture(scope="module")
def record() -> str:
    """A good one."""
    runs = made_up(replace(STANDING, launch=2.0), {FIT: 1, TEST: 2}, 22, 2)
    return record_text(runs, "2026-11-23", {"tilec": "0.1"})


def test_a_record_reads_as_it_was_written(record: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(record)
    runs = read_record(path)
    check_runs(runs)
    machine = runs[0].machine
    assert (machine.target.name, machine.clock_mhz) == ("sm_90a", 1980)
    assert [(run.use, run.seed) for run in runs] == [(FIT, 1), (TEST, 2)]


@pytest.mark.parametrize("name", ["drawn-products-2026-11-23", "refit-h200-2026-11-23"])
def test_records_of_real_devices_are_good(name: str) -> None:
    check_runs(read_record(RESULTS / f"{name}.json"))


def _of_one_seed(found: Any) -> None:
    found["runs"][1]["seed"] = 1


def _of_two_targets(found: Any) -> None:
    found["runs"][1]["target"] = "sm_80"


def _of_few_products(found: Any) -> None:
    products = found["runs"][1]["products"]
    found["runs"][1]["products"] = dict(islice(products.items(), 5))


def _with_time(us: Any) -> Callable[[Any], None]:
    def change(found: Any) -> None:
        tiles = next(iter(found["runs"][0]["products"].values()))["tiles"]
        tiles[next(iter(tiles))] = us

    return change


def _of_unknown_tile(found: Any) -> None:
    next(iter(found["runs"][0]["products"].values()))["tiles"]["128 by 128"] = 3.0


def _of_no_product(found: Any) -> None:
    found["runs"][0]["products"]["bf17 4x4x4 NT"] = {"tiles": {}}


def _without(name: str) -> Callable[[Any], None]:
    return lambda found: found["runs"][0].pop(name)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_of_one_seed, "fitted to and judged by the same seeds: \\[1\\]"),
        (_of_two_targets, "timings of several targets: sm_80, sm_90a"),
        (_of_few_products, "5 products to test; expected 20"),
        (_with_time(-1.0), "expected microseconds, found -1.0"),
        (_with_time(float("nan")), "expected microseconds, found nan"),
        (_with_time("3"), "expected microseconds, found '3'"),
        (_of_unknown_tile, "no tile: '128 by 128'"),
        (_of_no_product, "no product: 'bf17 4x4x4 NT'"),
        (_without("use"), "run 0: expected 'use', a str"),
        (_without("figures"), "run 0: expected 'figures'"),
        (lambda found: found.pop("runs"), "a list of 'runs'"),
    ],
)
def test_a_bad_record_is_refused(
    change: Callable[[Any], None], reason: str, record: str, tmp_path: Path
) -> None:
    found = json.loads(record)
    change(found)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(found))
    with pytest.raises(RecordError, match=reason):
        check_runs(read_record(path))


@pytest.mark.parametrize("launch", [2.0, STANDING.launch])
def test_the_command_writes_rates_that_are_better(
    launch: float,
    record: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The machine of the record takes 2 us for a launch."""
    path = tmp_path / "record.json"
    path.write_text(record)
    found = with_values(STANDING, ["launch"], [launch])
    monkeypatch.setattr(refit, "fit", lambda *_, **__: found)
    assert main(["refit", "--record", str(path), "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("chosen / best") == 4
    written = tmp_path / "sm_90a.py"
    assert written.exists() == (launch == 2.0)
    assert ("these stay" in printed) == (launch != 2.0)
    if launch == 2.0:
        assert "    launch=2,\n" in written.read_text()


def test_the_command_says_why_it_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["refit", "--record", "/nowhere/record.json"]) == 1
    assert "No such file" in capsys.readouterr().err
    assert main(["refit", "--device", "emulator"]) == 1
    assert "has no speed" in capsys.readouterr().err


# -- timing, on a simulated GPU


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    """Tiles of 16 rows take 600 us, others 700; there is room for two sets of `PRODUCT`."""
    monkeypatch.setattr(product_timing, "BUSY_BYTES", 1 << 12)
    monkeypatch.setattr(product_timing, "ROOM_BYTES", 24 << 10)
    yield install_gpu(monkeypatch, lambda kernel: 600.0 if kernel.constants["BM"] == 16 else 700.0)
    uninstall()


PRODUCT = DrawnProduct("bf16", 40, 48, 64, "NT")
TILES = [tile_named(name) for name in ("16x32x64", "32x32x64")]


def timer() -> ProductTimer:
    there = device("cuda:0")
    machine = machine_of(there, find_target("sm_80"))
    return ProductTimer(there, machine, 3)


def test_tiles_are_checked_and_timed_by_turns(gpu: SimulatedGpu) -> None:
    assert compile_tiles(PRODUCT, TILES, "cuda:0") == {}
    with timer() as found:
        assert found.times(PRODUCT, TILES) == {"16x32x64": 600.0, "32x32x64": 700.0}
    rows = [constants["BM"] for constants in gpu.ran]
    rounds = [rows[at : at + 4] for at in range(len(rows))[-4 * product_timing.ROUNDS :: 4]]
    assert all(sorted(one) == [16, 16, 32, 32] for one in rounds)
    assert {one[0] for one in rounds} == {16, 32}
    assert not gpu.graphs


def test_a_tile_with_another_result_is_not_timed(
    gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written here: what was there before, be it the product, is no result."""
    with timer() as found:
        found.times(PRODUCT, TILES[:1])
        monkeypatch.setattr(gpu, "cuLaunchKernel", lambda *_: (0,))
        with pytest.raises(WrongResult, match="bf16 40x48x64 NT in tiles of 16x32"):
            found.times(PRODUCT, TILES)


def test_arrays_of_a_launch_s_own_live_as_long_as_its_graph(gpu: SimulatedGpu) -> None:
    """Sums of k in parts: each tile has its own, which the graph is replayed on after the next
    tile's are made."""
    product = replace(PRODUCT, k=128)
    gpu.cost = lambda kernel: 350.0
    split = [tile_named(name) for name in ("32x32x32/s2", "16x32x32/s2")]
    with timer() as found:
        times = found.times(product, split)
    assert times == {"32x32x32/s2": 700.0, "16x32x32/s2": 700.0}


def test_after_a_failure_of_the_gpu_what_was_timed_is_kept(
    monkeypatch: pytest.MonkeyPatch, gpu: SimulatedGpu
) -> None:
    timed: list[str] = []

    def times(self: ProductTimer, product: DrawnProduct, tiles: Any) -> dict[str, float]:
        if len(timed) == 2:
            raise CudaError("launching: CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS")
        timed.append(product.name)
        return dict.fromkeys(map(name_of, tiles), 1.0)

    monkeypatch.setattr(ProductTimer, "times", times)
    monkeypatch.setattr(measuring, "compile_all", lambda jobs, *_: {p.name: {} for p, _ in jobs})
    there = device("cuda:0")
    machine = machine_of(there, find_target("sm_80"))
    runs, wrong = measuring.measure(there, machine, measuring.Draw(5, 9, 3), 1.0, timed.append)
    assert [name for run in runs for name in run.products] == timed
    assert [(run.use, run.seed) for run in runs] == [(FIT, 5), (TEST, 6)]
    (message,) = wrong
    assert "in one of" in message
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in message


@pytest.mark.parametrize("tile", ["32x16x64", "32x16x64/T"])
def test_launches_move_with_their_matrices(tile: str, gpu: SimulatedGpu) -> None:
    views = views_at(PRODUCT, {"a": 1 << 20, "b": 2 << 20, "out": 3 << 20}, 0)
    by = {"a": 256, "b": 512, "out": 1024}
    steps = steps_of(PRODUCT, tile_named(tile), views, device("cuda:0"), 5)
    (before,), (after,) = (
        [{name: value.pointer for name, value in step.arguments if name in by} for step in found]
        for found in (steps, moved(steps, by))
    )
    assert before == {name: view.pointer for name, view in views.items()}
    assert after == {name: pointer + by[name] for name, pointer in before.items()}


def test_processes_that_find_no_gpu_say_so() -> None:
    with pytest.raises(DeviceError, match=r"there is no cuda:99|driver"):
        compile_all([(PRODUCT, TILES)], "cuda:99", monotonic() + 60, lambda: None)


def test_a_tile_that_does_not_compile_says_why(gpu: SimulatedGpu) -> None:
    (reason,) = compile_tiles(PRODUCT, [tile_named("4096x4096x64")], "cuda:0").values()
    assert "4096" in reason or "large" in reason
