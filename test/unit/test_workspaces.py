"""Memory that launches give their kernels: one a stream, and one for what is captured."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fake_driver import FakeDriver
from launcher_fakes import FakeTensor, installed

from tilec.executable.kernel import CompiledKernel, Parameter, Workspace
from tilec.hardware.sizes import ALLOCATION_BYTES
from tilec.runtime.cuda import workspaces
from tilec.runtime.cuda.workspaces import LEAST_BYTES, PER_THREAD
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher

PARTS = 32


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    workspaces.workspaces_of.cache_clear()
    yield from installed(monkeypatch, FakeDriver())
    workspaces.workspaces_of.cache_clear()


@pytest.fixture
def launch(fake: FakeDriver) -> Any:
    """Launches a grid on a stream; gives the addresses of flags and of two arrays of sums."""
    parameter = Parameter("x", "array", "f16", (None, None), (None, 1))
    kernel = fake.know(
        CompiledKernel(
            "grams",
            "sm_90a",
            "",
            (parameter,),
            ("x.shape[0]", "1", "1"),
            64,
            0,
            32,
            stripes=PARTS,
            workspaces=(Workspace(4, is_zero=True), Workspace(1024), Workspace(2048)),
        )
    )
    launcher = Launcher("grams", [LaunchArgument("x", "array")], lambda *_: kernel)

    def call(programs: int, stream: int) -> list[int]:
        launcher(FakeTensor(shape=(programs, 8)), stream=stream)
        assert fake.launches[-1].grid == (programs * PARTS, 1, 1)
        assert fake.launches[-1].stream == stream
        return [struct.unpack("<Q", raw)[0] for raw in fake.launches[-1].arguments[-3:]]

    return call


def holders(fake: FakeDriver, pointers: list[int]) -> set[int]:
    """The allocations that addresses lie in."""
    return {holder(fake, pointer) for pointer in pointers}


def holder(fake: FakeDriver, pointer: int) -> int:
    """The allocation that an address lies in."""
    sizes = {start: ctypes.sizeof(block) for start, block in fake.memory.items()}
    return next(start for start, size in sizes.items() if start <= pointer < start + size)


def test_a_stream_has_one_memory_for_all_its_launches(fake: FakeDriver, launch: Any) -> None:
    flags, first, second = launch(3, 0x500)
    assert second - first == -(-3 * 1024 // ALLOCATION_BYTES) * ALLOCATION_BYTES
    assert holder(fake, flags) != holder(fake, first) == holder(fake, second)
    assert not any(ctypes.string_at(flags, LEAST_BYTES))
    for _ in range(3):
        assert launch(3, 0x500) == [flags, first, second]
    others = launch(3, 0x600)
    assert not {*map(lambda at: holder(fake, at), others)} & {
        *map(lambda at: holder(fake, at), (flags, first))
    }
    assert launch(3, 0x500) == [flags, first, second]


def test_memory_grows_and_what_was_smaller_stays(fake: FakeDriver, launch: Any) -> None:
    before = launch(3, 0x500)
    assert launch(2, 0x500)[:2] == before[:2]
    flags, first, second = launch(100, 0x500)
    assert flags == before[0]  # 400 bytes
    assert first != before[1]
    assert second + 100 * 2048 <= first + ctypes.sizeof(fake.memory[holder(fake, first)])
    assert holder(fake, before[1]) in fake.memory
    assert launch(3, 0x500) == before  # such a plan has its addresses still
    assert launch(50, 0x500)[:2] == [flags, first]


def test_what_is_captured_has_memory_of_its_own(fake: FakeDriver, launch: Any) -> None:
    plain = launch(3, 0x500)
    fake.captured = {0x500}
    before = len(fake.calls)
    one = launch(3, 0x500)
    assert "capture mode CU_STREAM_CAPTURE_MODE_RELAXED" in fake.calls[before:]
    assert launch(3, 0x500) == one
    fake.capture += 1
    other = launch(3, 0x500)
    fake.captured = set()
    assert launch(3, 0x500) == plain
    assert len({plain[0], one[0], other[0]}) == len({plain[1], one[1], other[1]}) == 3


def test_a_handle_of_a_stream_that_is_gone_waits_for_it(fake: FakeDriver, launch: Any) -> None:
    found = launch(3, 0x500)
    assert not any("synchronize context" in call for call in fake.calls)
    fake.stream_numbers[0x500] = 77
    assert launch(3, 0x500) == found
    assert any("synchronize context" in call for call in fake.calls)
    waited = len(fake.calls)
    launch(3, 0x500)
    assert not any("synchronize context" in call for call in fake.calls[waited:])


def test_the_default_stream_of_each_thread_is_another(fake: FakeDriver, launch: Any) -> None:
    fake.stream_numbers[PER_THREAD] = 5
    mine = launch(3, PER_THREAD)
    fake.stream_numbers[PER_THREAD] = 6
    theirs: list[list[int]] = []
    thread = threading.Thread(target=lambda: theirs.append(launch(3, PER_THREAD)))
    thread.start()
    thread.join()
    fake.stream_numbers[PER_THREAD] = 5
    assert launch(3, PER_THREAD) == mine != theirs[0]
    assert not any("synchronize context" in call for call in fake.calls)
