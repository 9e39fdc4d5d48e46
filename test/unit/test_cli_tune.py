"""`tilec tune`: choices made ahead of time, which calls find; a simulated GPU, the emulator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import uninstall
from simulated_gpu import SimulatedGpu, constants_of, install_gpu

import tilec
from tilec.call.kernel_file import load_file
from tilec.cli.command import main
from tilec.tuning import progress

SOURCE = """
import tilec
import tilec.language as tl

@tilec.autotune([{"B": 64}, {"B": 128}, {"B": 256}])
@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def scale(x: tl.array, y: tl.array, factor: tl.f32, B: tl.const = 32, TWICE: tl.const = False):
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B) * factor * (2 if TWICE else 1))

@tilec.autotune([{"B": 64}])
@tilec.kernel
def first(x: tl.array, n: tl.i32, B: tl.const = 32):
    i = tl.program_id(0) * B
    tl.store(x, i, tl.load(x, i, B) + n)

@tilec.autotune([{"B": 64}])
@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def shifted(x: tl.array, bias: tl.array | None, B: tl.const = 32):
    i = tl.program_id(0) * B
    t = tl.load(x, i, B)
    tl.store(x, i, t if bias is None else t + tl.load(bias, i, B))

@tilec.kernel(grid=1)
def plain(x: tl.array, B: tl.const = 32):
    tl.store(x, 0, tl.load(x, 0, B))
"""
ARGUMENTS = ["--arg", "x:f32[1000]", "--arg", "y:f32[1000]", "--arg", "factor:f32=3"]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setenv("TILEC_TUNING_FILE", str(tmp_path / "winners.json"))
    monkeypatch.setenv("TILEC_TUNE", "1")  # which the command sets, so that it is put back
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    times = {32: 40.0, 64: 30.0, 128: 20.0, 256: 35.0}
    yield install_gpu(monkeypatch, lambda kernel: times[kernel.constants["B"]])
    uninstall()


def on_gpu(size: int, dtype: Any = np.float32) -> Any:
    host = np.random.default_rng(size).standard_normal(size).astype(dtype)
    return tilec.device("cuda:0").array(host)


def test_an_array_may_be_left_out(
    source: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    x = ["--arg", "x:f32[1000]"]
    assert main(["tune", f"{source}:shifted", *x, "--const", "bias=None"]) == 0
    assert capsys.readouterr().out.startswith("shifted on")
    assert main(["tune", f"{source}:shifted", *x, "--const", "bias=3"]) == 1
    assert "shifted has no constant 'bias'" in capsys.readouterr().err
    twice = ["--arg", "bias:f32[1000]", "--const", "bias=None"]
    assert main(["tune", f"{source}:shifted", *x, *twice]) == 1
    assert "argument 'bias' is given twice" in capsys.readouterr().err


def test_a_call_finds_what_was_tuned(
    gpu: SimulatedGpu, source: str, tmp_path: Path, capsys: Any
) -> None:
    assert main(["tune", f"{source}:scale", *ARGUMENTS]) == 0
    out = capsys.readouterr().out
    assert out.startswith("scale on Simulated GPU: B=128 (fastest of 4 timed): 20.0 us")
    assert out.endswith(f"kept in {tmp_path / 'winners.json'}\n")
    assert constants_of(gpu.ran, "B") == {32, 64, 128, 256}
    gpu.ran.clear()
    called = load_file(source).scale
    x, y = on_gpu(1012), on_gpu(1012)  # in the same class of sizes
    called(x, y, 2.0)
    assert [run["B"] for run in gpu.ran] == [128]
    np.testing.assert_array_equal(y.numpy(), x.numpy() * np.float32(2))
    assert called.outcome(x, y, 2.0).source == "file"
    assert called.outcome(on_gpu(1012, np.float16), y, 2.0).source == "measured"
    assert called.outcome(x, y, 2.0, TWICE=True).source == "measured"


def test_what_is_known_is_measured_again_where_that_is_asked_for(
    gpu: SimulatedGpu, source: str, capsys: Any
) -> None:
    assert main(["tune", f"{source}:scale", *ARGUMENTS, "--const", "TWICE=True"]) == 0
    gpu.ran.clear()
    assert main(["tune", f"{source}:scale", *ARGUMENTS, "--const", "TWICE=True"]) == 0
    assert not gpu.ran
    assert "kept from an earlier tuning" in capsys.readouterr().out
    assert main(["tune", f"{source}:scale", *ARGUMENTS, "--const", "TWICE=True", "--again"]) == 0
    assert constants_of(gpu.ran, "TWICE") == {True}


def test_grids_and_strides_are_those_of_calls(gpu: SimulatedGpu, source: str) -> None:
    spec = ["--arg", "x:i32[100],strides=2", "--arg", "n:i32=7"]
    assert main(["tune", f"{source}:first", *spec, "--grid", "4"]) == 0
    memory = np.zeros(200, np.int32)
    x = tilec.device("cuda:0").array(memory[::2])
    called = load_file(source).first
    gpu.ran.clear()
    called[(4,)](x, 7)
    assert [run["B"] for run in gpu.ran] == [64]
    assert called.outcome(x, 7, grid=5).source == "measured"


def test_on_the_emulator_candidates_are_ranked_and_nothing_is_kept(
    source: str, tmp_path: Path, capsys: Any
) -> None:
    huge = ["--arg", "x:f32[20000000]", "--arg", "y:f32[20000000]", "--arg", "factor:f32=3"]
    assert main(["tune", f"{source}:scale", *huge, "--device", "emulator"]) == 0
    out = capsys.readouterr().out
    assert "(the model's choice; nothing was measured)" in out
    assert len(re.findall("predicted .* us", out)) == 4
    assert out.endswith("nothing was measured, and nothing is kept\n")
    assert not (tmp_path / "winners.json").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["{}"], 1, "say which kernel, as in {}:NAME; found: scale, first, shifted"),
        (["{}:plain"], 1, "plain has no candidates to choose from"),
        (
            ["{}:scael"],
            1,
            "has no kernel 'scael'; found: scale, first, shifted\nhelp: did you mean 'scale'?",
        ),
        (["{}:scale", "--arg", "z:f32[1]"], 1, "scale has no argument 'z'; it has x, y, factor"),
        (["{}:scale", "--const", "C=1"], 1, "scale has no constant 'C'; it has B, TWICE"),
        (["{}:scale", *ARGUMENTS, *ARGUMENTS[:2]], 1, "argument 'x' is given twice"),
        (["{}:scale", *ARGUMENTS[:2]], 1, "scale(): argument 'y' is missing"),
        (["{}:scale", "--device", "gpu"], 1, "unknown device 'gpu'"),
        (["{}:scale", "--arg", "x:f32[1],fill=@no.npy"], 1, "no.npy"),
        (["{}:scale", "--arg", "f32[1]"], 2, "expected a name and an array, or a number"),
    ],
)
def test_mistakes(
    source: str, gpu: SimulatedGpu, words: list[str], code: int, message: str, capsys: Any
) -> None:
    assert main(["tune", *(word.replace("{}", source) for word in words)]) == code
    assert message.replace("{}", source) in capsys.readouterr().err


def test_a_file_without_a_tuned_kernel(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "plain.py"
    path.write_text(
        "import tilec\nimport tilec.language as tl\n\n\n@tilec.kernel(grid=1)\ndef fill(y):\n"
        "    tl.store(y, 0, tl.zeros(8, tl.f32))\n"
    )
    assert main(["tune", str(path)]) == 1
    assert "fill has no candidates to choose from: write @tilec.aut" in capsys.readouterr().err


def test_long_phases_say_how_much_time_is_left(
    gpu: SimulatedGpu, source: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    tuned = load_file(source).scale
    shown = tilec.autotune([{"B": 64}, {"B": 128}], progress=True)(tuned.kernel)
    shown.outcome(on_gpu(1000), on_gpu(1000), 3.0)
    assert "predicting" not in capsys.readouterr().err  # it took no 2 s
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0.0)
    shown.outcome(on_gpu(3000), on_gpu(3000), 3.0)
    bars = capsys.readouterr().err
    for what in ("predicting", "compiling", "comparing results", "timing all", "timing the best"):
        assert re.search(rf"tuning scale: {what}: .*\[\d\d:\d\d<[\d?]", bars), what
