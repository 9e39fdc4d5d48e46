"""`tilec.autotune` from decorator to launch: on a simulated GPU, and on the emulator."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import CUresult, uninstall
from simulated_gpu import SimulatedGpu, constants_of, install_gpu

import tilec
import tilec.language as tl
from tilec.messages.diagnostics import CompileError
from tilec.runtime.cuda.driver import CudaError
from tilec.runtime.errors import ArgumentError
from tilec.terms.demands import KERNEL_DEMANDS
from tilec.tuning import tuned_kernel

BLOCKS = [{"B": 64}, {"B": 128}, {"B": 256}]


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def scale(x: tl.array, y: tl.array, factor: tl.f32, B: tl.const = 32):
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B) * factor)


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def accumulate(x: tl.array, y: tl.array, B: tl.const = 32):
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(y, i, B) + tl.load(x, i, B))


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def wrong_when_large(x: tl.array, y: tl.array, B: tl.const = 32):
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B) + (1.0 if B == 256 else 0.0))


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def refuses_128(x: tl.array, y: tl.array, B: tl.const = 32):
    tl.static_assert(B != 128, "not with 128")
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B))


def tune(kernel: Any, *arguments: Any, **named: Any) -> Any:
    """A tuned kernel that remembers nothing of the devices of other tests."""
    return tilec.autotune(*arguments, **named)(kernel.on(None))


def by_block(times: dict[int, float]) -> Any:
    return lambda kernel: times[kernel.constants["B"]]


FASTEST_128 = by_block({32: 40.0, 64: 30.0, 128: 20.0, 256: 35.0})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setenv("TILEC_TUNING_FILE", str(tmp_path / "winners.json"))
    monkeypatch.delenv("TILEC_TUNE", raising=False)
    return tmp_path / "winners.json"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, file: Path) -> Iterator[SimulatedGpu]:
    yield install_gpu(monkeypatch, FASTEST_128)
    uninstall()


def arrays(size: int = 1000) -> tuple[np.ndarray, Any, Any]:
    """A host array, and on the GPU it and an array of sevens."""
    host = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    device = tilec.device("cuda:0")
    return host, device.array(host), device.array(np.full(size, 7, np.float32))


def test_the_fastest_measured_candidate_runs(gpu: SimulatedGpu, capsys: Any) -> None:
    tuned = tune(scale, BLOCKS)
    host, x, y = arrays()
    tuned(x, y, 3.0)
    np.testing.assert_array_equal(y.numpy(), host * np.float32(3))
    assert gpu.ran[-1]["B"] == 128
    assert constants_of(gpu.ran, "B") == {32, 64, 128, 256}
    said = capsys.readouterr().err
    assert "scale on Simulated GPU: B=128 (fastest of 4 timed): 20.0 us, the default 40.0" in said
    launches = len(gpu.ran)
    tuned(x, y, 2.0)
    assert len(gpu.ran) == launches + 1
    assert capsys.readouterr().err == ""


def test_each_measurement_starts_with_a_cold_cache(gpu: SimulatedGpu) -> None:
    tuned = tune(scale, BLOCKS)
    _, x, y = arrays()
    outcome = tuned.outcome(x, y, 3.0)
    # One launch of each is compared with the default's, all others are timed.
    assert gpu.flushed == len(gpu.ran) - 4
    assert {trial.measured_us for trial in outcome.trials} == {20.0, 30.0, 35.0, 40.0}


def test_hopeless_candidates_get_few_rounds(gpu: SimulatedGpu) -> None:
    tune(scale, BLOCKS).outcome(*arrays()[1:], 3.0)
    counts = {b: sum(run["B"] == b for run in gpu.ran) for b in (32, 64, 128, 256)}
    assert counts[32] == counts[64] == counts[256] == 6
    assert counts[128] == 41


def test_the_callers_arrays_are_untouched_while_tuning(gpu: SimulatedGpu) -> None:
    """An in-place sum: every launch goes to a copy, which starts the same each time."""
    tuned = tune(accumulate, BLOCKS)
    host, x, y = arrays()
    outcome = tuned.outcome(x, y)
    assert outcome.source == "measured"
    assert not any(trial.rejected for trial in outcome.trials)
    np.testing.assert_array_equal(y.numpy(), np.full(1000, 7, np.float32))
    tuned(x, y)
    np.testing.assert_array_equal(y.numpy(), host + np.float32(7))


def test_a_candidate_with_another_result_does_not_win(
    gpu: SimulatedGpu, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu.cost = by_block({32: 40.0, 64: 30.0, 128: 20.0, 256: 1.0})
    tuned = tune(wrong_when_large, BLOCKS)
    host, x, y = arrays()
    tuned(x, y)
    np.testing.assert_array_equal(y.numpy(), host)
    outcome = tuned.outcome(x, y)
    assert outcome.winner.constants == {"B": 128}
    reasons = [trial.rejected for trial in outcome.trials]
    assert reasons[:3] == ["", "", ""]
    assert "another result than the first candidate's: differs by" in reasons[3]
    assert reasons[3] in outcome.report()


def test_a_candidate_that_does_not_compile_is_reported(gpu: SimulatedGpu) -> None:
    tuned = tune(refuses_128, BLOCKS)
    outcome = tuned.outcome(*arrays()[1:])
    assert outcome.winner.constants == {"B": 64}
    assert outcome.trials[2].rejected == "does not compile: static assertion failed: not with 128"


def test_no_usable_candidate_is_an_error(gpu: SimulatedGpu) -> None:
    tuned = tune(refuses_128, [{"B": 128}])
    with pytest.raises(CompileError, match="not with 128"):
        tuned.outcome(*arrays()[1:], B=128)


def test_only_the_best_predicted_are_timed(gpu: SimulatedGpu) -> None:
    tuned = tune(scale, BLOCKS, most=1)
    outcome = tuned.outcome(*arrays(100_000)[1:], 3.0)
    best = min(outcome.trials[1:], key=lambda trial: trial.predicted_us or 0)
    timed = [trial for trial in outcome.trials if trial.measured_us is not None]
    assert timed == [outcome.trials[0], best]
    left = [trial.rejected for trial in outcome.trials if trial not in timed]
    assert left == ["not timed: the model prefers others"] * 2


def test_a_tie_goes_to_the_default(gpu: SimulatedGpu) -> None:
    gpu.cost = by_block({32: 20.0, 64: 20.0, 128: 20.0, 256: 20.0})
    assert tune(scale, BLOCKS).outcome(*arrays()[1:], 3.0).winner.label == "default"


def test_winners_are_kept_for_the_next_process(gpu: SimulatedGpu, file: Path) -> None:
    _, x, y = arrays()
    first = tune(scale, BLOCKS).outcome(x, y, 3.0)
    gpu.ran.clear()
    again = tune(scale, BLOCKS)
    again(x, y, 3.0)
    assert [run["B"] for run in gpu.ran] == [128]
    found = again.outcome(x, y, 3.0)
    assert found.source == "file"
    assert [t.measured_us for t in found.trials] == [t.measured_us for t in first.trials]
    # Another size class, dtype or constant is another entry.
    again.outcome(*arrays(5000)[1:], 3.0)
    assert len(json.loads(file.read_text())["entries"]) == 2
    # The same class: 1000 and 900 are both up to 1024.
    assert again.outcome(*arrays(900)[1:], 3.0).source == "file"


def test_a_winner_that_is_no_candidate_any_more_is_not_believed(gpu: SimulatedGpu) -> None:
    _, x, y = arrays()
    tune(scale, BLOCKS).outcome(x, y, 3.0)
    fewer = tune(scale, [{"B": 64}, {"B": 256}]).outcome(x, y, 3.0)
    assert (fewer.source, fewer.winner.constants) == ("measured", {"B": 64})


def test_a_broken_file_is_tuned_over(gpu: SimulatedGpu, file: Path) -> None:
    file.write_text("{not json")
    with pytest.warns(UserWarning, match="is not readable"):
        outcome = tune(scale, BLOCKS).outcome(*arrays()[1:], 3.0)
    assert outcome.source == "measured"
    assert len(json.loads(file.read_text())["entries"]) == 1


def test_tilec_tune_says_whether_to_measure(
    gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, x, y = arrays()
    tuned = tune(scale, BLOCKS)
    monkeypatch.setenv("TILEC_TUNE", "0")
    assert tuned.outcome(x, y, 3.0).source == "default"
    assert gpu.ran == []
    monkeypatch.setenv("TILEC_TUNE", "1")
    assert tuned.outcome(x, y, 3.0).source == "measured"
    monkeypatch.setenv("TILEC_TUNE", "again")
    assert tune(scale, BLOCKS).outcome(x, y, 3.0).source == "measured"
    monkeypatch.setenv("TILEC_TUNE", "yes")
    with pytest.raises(ValueError, match="TILEC_TUNE: expected 1, 0, again, found 'yes'"):
        tune(scale, BLOCKS).outcome(x, y, 3.0)


def test_a_captured_stream_is_not_timed(gpu: SimulatedGpu, capsys: Any) -> None:
    _, x, y = arrays()
    tuned = tune(scale, BLOCKS)
    gpu.capturing = 1
    tuned(x, y, 3.0)
    assert len(gpu.ran) == 1
    assert "a stream under capture cannot be timed" in capsys.readouterr().err
    gpu.capturing = 0
    gpu.fail["cuStreamIsCapturing"] = CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
    tuned(x, y, 3.0)
    assert len(gpu.ran) == 2
    del gpu.fail["cuStreamIsCapturing"]
    assert tuned.outcome(x, y, 3.0).source == "measured"


def test_a_launch_that_fails_is_raised_not_swallowed(gpu: SimulatedGpu) -> None:
    gpu.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(CudaError, match="launching scale"):
        tune(scale, BLOCKS)(*arrays()[1:], 3.0)


def test_constants_of_the_call_are_obeyed(gpu: SimulatedGpu) -> None:
    _, x, y = arrays()
    tuned = tune(scale, BLOCKS)
    tuned(x, y, 3.0, B=256)
    assert constants_of(gpu.ran, "B") == {256}
    gpu.ran.clear()
    tuned(x, y, 3.0, 64)
    assert constants_of(gpu.ran, "B") == {64}


def test_demands_of_the_decorator_are_tuned_too(gpu: SimulatedGpu) -> None:
    gpu.cost = lambda kernel: 100.0 / kernel.threads
    alone = scale.demanding(persistent=False)
    tuned = tune(alone, search={"num_warps": [1, 2, 4], "B": [512]})
    _, x, y = arrays()
    tuned(x, y, 3.0)
    assert tuned.outcome(x, y, 3.0).winner.demands["num_warps"] == 4
    assert tuned.compiled(x, y, 3.0).threads == 128


def test_demands_are_those_of_the_decorator() -> None:
    kernel = scale.demanding(num_warps=2)
    none = dict.fromkeys(KERNEL_DEMANDS)
    assert kernel.demands() == {**none, "num_warps": 2}
    changed = kernel.demanding(persistent=True, cluster=2).demands()
    assert changed == {**none, "num_warps": 2, "persistent": True, "cluster": 2}
    assert kernel.on("emulator").demands() == kernel.demands()
    with pytest.raises(ValueError, match="unknown demand 'warps'; a kernel takes num_warps, pers"):
        kernel.demanding(warps=2)
    with pytest.raises(ValueError, match="did you mean 'num_warps'"):
        kernel.demanding(num_warp=2)
    with pytest.raises(ValueError, match=r"help: of a loop: tl\.range\(\.\.\., stages=4"):
        kernel.demanding(num_stages=2)


def test_persistence_is_a_demand(gpu: SimulatedGpu) -> None:
    _, x, y = arrays()
    assert not scale.demanding(persistent=False).compiled(x, y, 3.0).persistent
    assert scale.demanding(persistent=True).compiled(x, y, 3.0).persistent


def test_candidates_with_the_same_code_are_timed_once(gpu: SimulatedGpu) -> None:
    outcome = tune(scale, [{"B": 32}, {"B": 64}]).outcome(*arrays()[1:], 3.0)
    assert outcome.trials[1].rejected == "the same code as default"


def test_a_grid_given_by_the_call(gpu: SimulatedGpu) -> None:
    @tilec.kernel
    def fill(y: tl.array, N: tl.const = 8):
        tl.store(y, tl.program_id(0) * 100, tl.full((100,), 1.0, tl.f32))

    gpu.cost = lambda kernel: float(kernel.constants["N"])
    tuned = tilec.autotune([{"N": 4}])(fill)
    _, _, y = arrays()
    tuned[5](y)
    assert (y.numpy() == 1).sum() == 500
    with pytest.raises(ValueError, match="no grid rule, and the call gives no grid"):
        tuned(y)


# -- the emulator


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    tuned_kernel._say_that_nothing_is_timed.cache_clear()


@pytest.mark.usefixtures("emulated")
def test_on_the_emulator_the_model_chooses_and_says_so_once(file: Path, capsys: Any) -> None:
    tuned = tune(scale, BLOCKS)
    x = np.arange(1000, dtype=np.float32)
    y = np.zeros(1000, np.float32)
    tuned(x, y, 3.0)
    np.testing.assert_array_equal(y, 3 * x)
    tune(accumulate, BLOCKS)(x, y)
    assert capsys.readouterr().err.count("the model alone chooses") == 1
    outcome = tuned.outcome(x, y, 3.0)
    assert outcome.source == "model"
    assert all(trial.measured_us is None for trial in outcome.trials)
    assert outcome.winner == min(outcome.trials, key=lambda t: t.predicted_us or 0).candidate
    assert not file.exists()


@pytest.mark.usefixtures("emulated")
def test_the_model_skips_what_does_not_compile() -> None:
    @tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
    def too_large(x: tl.array, y: tl.array, B: tl.const = 1024, C: tl.const = 0):
        i = tl.program_id(0) * B
        tl.static_assert(C == 0, "C is not for you")
        tl.store(y, i, tl.load(x, i, B))

    x, y = np.ones(10, np.float32), np.zeros(10, np.float32)
    outcome = tilec.autotune([{"C": 1}])(too_large).outcome(x, y)
    assert outcome.winner.label == "default"
    assert "C is not for you" in outcome.report()


@pytest.mark.usefixtures("emulated")
def test_a_constant_without_default_is_left_to_the_candidates() -> None:
    @tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
    def copy(x: tl.array, y: tl.array, B: tl.const):
        i = tl.program_id(0) * B
        tl.store(y, i, tl.load(x, i, B))

    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    tilec.autotune(BLOCKS)(copy)(x, y)
    assert y.all()


@pytest.mark.usefixtures("emulated")
def test_what_is_called_wrongly_names_the_kernel_and_the_argument() -> None:
    tuned = tune(scale, BLOCKS)
    x = np.ones(10, np.float32)
    with pytest.raises(ArgumentError, match=r"scale\(\): .*unexpected keyword argument 'z'"):
        tuned(x, x, 1.0, z=3)
    with pytest.raises(ArgumentError, match=r"scale\(\): argument 'factor' is missing"):
        tuned(x, x)


def test_only_kernels_can_be_tuned() -> None:
    with pytest.raises(TypeError, match=r"write it above @tilec\.kernel"):
        tilec.autotune(BLOCKS)(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="most: expected a positive number"):
        tilec.autotune(BLOCKS, most=0)


@pytest.mark.usefixtures("emulated")
def test_it_is_checked_and_reported_like_a_kernel() -> None:
    tuned = tune(scale, BLOCKS)
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    assert "stores" in tuned.report(x, y, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned.on("emulator:check")(x, y, 2.0)
    assert (y == 2).all()
