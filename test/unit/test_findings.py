"""What an author reads when check mode finds something, and how the mode is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from runtime_kernels import axpy
from target_names import MAIN

import tilec
from tilec.executable.kernel import CompiledKernel, Parameter
from tilec.runtime.emulator import program
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError

RACY = """
import numpy as np
import tilec
import tilec.language as tl
from tilec.language import gpu

@tilec.kernel(num_warps=4, grid=(1,))
def turn(x: tl.array, y: tl.array):
    rows = gpu.blocked((64, 32), warps=4, width=4)
    buffer = gpu.alloc((64, 32), tl.f32, gpu.padded((64, 32), 4))
    buffer.store(gpu.load(x, (0, 0), (64, 32), rows))
    SYNC
    held = buffer.load(gpu.blocked((64, 32), warps=4, width=4, contiguous=0))
    tl.store(y, (0, 0), held.T)

def main():
    x = np.arange(2048, dtype=np.float32).reshape(64, 32)
    y = np.zeros((32, 64), np.float32)
    turn(x, y)
    print("right" if np.array_equal(y, x.T) else "wrong")

def check():
    x, y = np.zeros((64, 32), np.float32), np.zeros((32, 64), np.float32)
    turn.check(x, y)
"""
STORE, LOAD = 11, 13


@pytest.fixture
def racy(tmp_path: Path) -> str:
    path = tmp_path / "turn.py"
    path.write_text(RACY.replace("SYNC", "pass"))
    return str(path)


@pytest.mark.parametrize("target", MAIN)
def test_both_lines_the_memory_the_order_and_the_mend(
    tilec_command, racy: str, target: str
) -> None:
    done = tilec_command(
        "run", "--device", "emulator", "--check", f"{racy}:main", TILEC_TARGET=target
    )
    assert done.code == 1
    first, *lines = done.errors.splitlines()
    assert first == "error: turn: 1 finding of the emulator"
    race = lines[0]
    assert race.startswith("error: race on shared memory: ")
    accesses = re.findall(r"turn\.py:(\d+):\d+ \(PTX line \d+: (st|ld)\.shared", race)
    assert accesses == [(str(STORE), "st"), (str(LOAD), "ld")]
    assert " against " in race
    assert re.search(
        "nothing orders the read after write of another warp; put a bar.sync that both warps pass "
        r"between the two accesses \(\d+ pairs of instructions\)$",
        race,
    )
    assert f"note: raised at {racy}:19" in done.errors


def test_without_check_it_just_runs(tilec_command, racy: str) -> None:
    assert tilec_command("run", "--device", "emulator", f"{racy}:main").code == 0
    Path(racy).write_text(RACY.replace("SYNC", "gpu.sync()"))
    done = tilec_command("run", "--device", "emulator", "--check", f"{racy}:main")
    assert (done.code, done.output, done.errors) == (0, "right\n", "")


def test_the_check_method_needs_no_device(tilec_command, racy: str) -> None:
    done = tilec_command("run", "--device", "emulator", f"{racy}:check")
    assert done.code == 1
    assert "race on shared memory" in done.errors
    Path(racy).write_text(RACY.replace("SYNC", "gpu.sync()"))
    assert tilec_command("run", "--device", "emulator", f"{racy}:check").code == 0


WARNING = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry unfenced(.param .u64 a)
{
    .reg .b32 %r<30>; .reg .b64 %d<9>; .shared .align 1024 .b8 s[4096];
    ld.param.u64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 4;
    add.u32 %r3, %r2, %r3; cp.async.cg.shared.global [%r3], [%d1], 16;
    cp.async.cg.shared.global [%r3+2048], [%d1], 16; cp.async.commit_group;
    cp.async.wait_group 0; FENCE bar.sync 0; shr.u32 %r4, %r2, 4; cvt.u64.u32 %d3, %r4;
    or.b64 %d3, %d3, 68720001024; mov.b64 %d4, %d3; mov.b32 %r20, 0; mov.b32 %r21, 0;
    mov.b32 %r22, 0; mov.b32 %r23, 0; wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r20, %r21, %r22, %r23}, %d3, %d4, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    ret;
}
"""  # noqa: E501


def unfenced(fence: str) -> CompiledKernel:
    parameter = Parameter("a", "array", "f32", (4,), (1,))
    text = WARNING.replace("FENCE", fence)
    return CompiledKernel("unfenced", "sm_90a", text, (parameter,), None, 128, 0, 32)


def test_warnings_are_printed_once_and_are_no_errors(capsys: pytest.CaptureFixture[str]) -> None:
    checking = EmulatorDevice("check")
    a = np.zeros(4, np.float32)
    kernel = unfenced("")
    for _ in range(2):
        checking.launch(checking.load(kernel), [a], 1)
    shown = capsys.readouterr().err.splitlines()
    assert shown
    assert len(set(shown)) == len(shown)
    for line in shown:
        assert line.startswith("tilec: unfenced: warning: missing proxy fence on shared memory: ")
    EmulatorDevice("check").launch(checking.load(unfenced("fence.proxy.async;")), [a], 1)
    assert capsys.readouterr().err == ""


def test_a_bar_for_runs_that_take_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = np.zeros(9000, np.float32), np.zeros(9000, np.float32)
    kernel = axpy()

    def launch(progress: bool | None) -> str:
        device = EmulatorDevice(progress=progress)
        device.launch(device.load(kernel), [x, y, 1.0, 9000], 71)
        return capsys.readouterr().err

    assert launch(True) == ""  # too short
    monkeypatch.setattr(program, "_SILENT_S", 0.0)
    shown = launch(True)
    assert "axpy" in shown
    assert "71/71" in shown
    assert launch(False) == ""
    assert launch(None) == ""  # standard error is no terminal here


def test_findings_are_kept_for_programs(racy: str) -> None:
    namespace: dict = {"__name__": "turn"}
    exec(compile(Path(racy).read_text(), racy, "exec"), namespace)
    x, y = np.zeros((64, 32), np.float32), np.zeros((32, 64), np.float32)
    with pytest.raises(FindingsError) as found:
        namespace["turn"].check(x, y)
    race, *others = found.value.findings
    assert others
    assert (race.memory, race.severity) == ("shared", "error")
    assert race.first.source.line == STORE
    assert race.second.source.line == LOAD
    assert Path(race.first.source.file).name == "turn.py"
    assert tilec.device("emulator").kind == "emulator"
