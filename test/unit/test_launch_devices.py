"""Calling kernels: streams, devices and their contexts, threads."""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from fake_driver import CUresult, FakeDriver
from launcher_fakes import FakeTensor, installed, launcher, pointers

from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launch_argument import LaunchArgument


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield from installed(monkeypatch, FakeDriver())


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield from installed(monkeypatch, FakeDriver([(9, 0), (9, 0)]))


def test_streams(fake: FakeDriver):
    run, _ = launcher(fake)
    a, b = FakeTensor(), FakeTensor(0x2000)
    for _ in range(2):
        run(a, b, stream=0x42)
        run(a, b, stream=SimpleNamespace(cuda_stream=0x43))
        run(a, b)
        with pytest.raises(ArgumentError, match="stream: expected a CUDA stream"):
            run(a, b, stream="main")
    assert [launch.stream for launch in fake.launches] == [0x42, 0x43, 0x500] * 2


def test_frameworks_on_different_streams_need_one_named(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
):
    class Array:
        dtype = np.dtype(np.float16)
        shape = (8, 8)
        strides = (16, 2)
        data = SimpleNamespace(ptr=0x2000)
        device = SimpleNamespace(id=0)

    class Entered:
        def __init__(self, index: int) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    stream = SimpleNamespace(ptr=0x900)
    cuda = SimpleNamespace(Device=Entered, get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=Array, cuda=cuda))  # type: ignore[arg-type]
    run, _ = launcher(fake)
    for _ in range(2):
        run(Array(), Array())
        with pytest.raises(ArgumentError, match="different streams now"):
            run(FakeTensor(), Array())
        run(FakeTensor(), Array(), stream=5)
    stream.ptr = 0x500
    run(FakeTensor(), Array())
    assert [launch.stream for launch in fake.launches] == [0x900, 5, 0x900, 5, 0x500]


def test_device_arrays_and_foreign_arrays_mix(fake: FakeDriver):
    run, compiler = launcher(fake)
    own = cuda_device(0).empty((8, 8), "f16")
    for _ in range(3):
        run(own, FakeTensor(0x2000))
    foreign = SimpleNamespace(
        __cuda_array_interface__={"shape": (8, 8), "typestr": "<f2", "data": (0x4000, False)}
    )
    fake.owners[0x4000] = 0
    run(foreign, own)
    run(foreign, own)
    assert pointers(fake) == [(own.pointer, 0x2000)] * 3 + [(0x4000, own.pointer)] * 2
    assert [launch.stream for launch in fake.launches] == [0x500] * 3 + [0] * 2
    assert len(compiler.made) == 1


def test_arrays_on_different_devices(two: FakeDriver):
    run, _ = launcher(two)
    with pytest.raises(ArgumentError, match="'b': expected an array on cuda:0 like 'a', found one"):
        run(FakeTensor(), FakeTensor(device=1), stream=0)
    cpu = FakeTensor(device=-1)
    with pytest.raises(ArgumentError, match=r"'b': expected .* cuda:0 .* on the host"):
        run(FakeTensor(), cpu)
    bound, _ = launcher(two, device=cuda_device(1))
    with pytest.raises(
        ArgumentError, match="'a': expected an array on cuda:1, found one on cuda:0"
    ):
        bound(FakeTensor(), FakeTensor())


def test_host_arrays_are_not_copied_behind_the_callers_back(fake: FakeDriver):
    run, _ = launcher(fake)
    with pytest.raises(ArgumentError, match=r"'a': .* host memory; copy it with .*array\(\.\.\.\)"):
        run(np.zeros((8, 8), np.float16), np.zeros((8, 8), np.float16))


def test_each_gpu_gets_its_launches_in_its_own_context(two: FakeDriver):
    run, _ = launcher(two)
    two.current = 100
    for _ in range(3):
        for device in (0, 1):
            run(FakeTensor(device=device), FakeTensor(0x2000, device=device))
            assert two.current == 100
    assert [launch.stream for launch in two.launches] == [0x500, 0x501] * 3
    two.current = 101
    run(FakeTensor(), FakeTensor())
    assert two.current == 101


def test_no_launch_relies_on_the_driver_to_refuse_a_wrong_context(two: FakeDriver):
    two.minds_contexts = False
    run, _ = launcher(two)
    for current in (100, 101, 0, 555):
        for device in (0, 1):
            two.current = current
            run(FakeTensor(device=device), FakeTensor(0x2000, device=device))
            assert two.launches[-1].context == 100 + device


def test_a_persistent_kernel_keeps_its_programs_whatever_gpu_is_current(two: FakeDriver):
    run, compiler = launcher(two)
    compiler.persistent = True
    tensors = FakeTensor(shape=(400, 8), device=1), FakeTensor(0x2000, device=1)
    for current in (101, 101, 100, 101):
        two.current = current
        run(*tensors)
    assert {launch.grid for launch in two.launches} == {(128, 1, 1)}
    programs = [struct.unpack("<3i", b"".join(x.arguments[-3:])) for x in two.launches]
    assert programs == [(100, 8, 1)] * 4


def test_a_thread_without_a_context_enters_it(fake: FakeDriver):
    run, _ = launcher(fake)
    run(FakeTensor(), FakeTensor(0x2000))
    run(FakeTensor(), FakeTensor(0x2000))
    fake.current = 0
    run(FakeTensor(), FakeTensor(0x2000))
    assert fake.current == 100
    assert len(fake.launches) == 3


def test_a_failing_launch_is_reported_from_the_generated_path(fake: FakeDriver):
    run, _ = launcher(fake)
    run(FakeTensor(), FakeTensor())
    fake.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(RuntimeError, match=r"launching k0 on cuda:0, grid \(2, 8, 1\)"):
        run(FakeTensor(), FakeTensor())


def test_threads_keep_apart(fake: FakeDriver):
    run, _ = launcher(fake, LaunchArgument("n", "scalar"))
    fake.current = 100

    def work(base: int) -> None:
        for step in range(300):
            run(FakeTensor(base + 16 * step), FakeTensor(base), base + 16 * step)

    threads = [threading.Thread(target=work, args=(base << 20,)) for base in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.launches) == 1200
    for launch in fake.launches:
        first, second = (struct.unpack("<Q", launch.arguments[i])[0] for i in (0, 4))
        assert struct.unpack("<i", launch.arguments[-1])[0] == first
        assert first >> 20 == second >> 20


def test_a_launch_of_another_thread_does_not_change_arguments_being_read(fake: FakeDriver):
    """The driver reads arguments while other Python threads run: here one launches in between."""
    run, _ = launcher(fake)
    fake.current = 100

    def other() -> None:
        for _ in range(2):
            run(FakeTensor(0x9000), FakeTensor(0xA000))

    def interrupt() -> None:
        fake.during_launch = lambda: None
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    run(FakeTensor(0x1000), FakeTensor(0x2000))
    fake.during_launch = interrupt
    run(FakeTensor(0x3000), FakeTensor(0x4000))
    expected = [(0x1000, 0x2000), (0x9000, 0xA000), (0x9000, 0xA000), (0x3000, 0x4000)]
    assert pointers(fake) == expected
