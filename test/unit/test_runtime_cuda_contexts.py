"""The cuda device over a fake driver: contexts, streams, threads, and what is said of errors."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from fake_driver import CUresult, FakeDriver, install, uninstall
from fake_kernels import VECTOR, kernel, numbers, vector

from tilec.executable.kernel import Parameter
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.cuda.driver import CudaError, no_device_reason
from tilec.runtime.errors import DeviceError


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver())
    uninstall()


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver([(9, 0), (8, 0)]))
    uninstall()


def test_the_callers_context_is_back_after_a_launch(two: FakeDriver):
    two.current = 555
    device = cuda_device(1)
    device.launch(device.load(two.know(kernel(VECTOR))), [vector(device=1)], 1)
    assert (two.current, two.stack) == (555, [])
    assert len(two.launches) == 1
    assert device.compute_capability == (8, 0)
    assert device.name == "cuda:1"


def test_a_thread_without_a_context_gets_the_primary_one(two: FakeDriver):
    device = cuda_device(1)
    device.load(kernel())
    assert two.current == 101


def test_a_failed_launch_says_what_was_launched(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(shared_bytes=100)))
    fake.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(CudaError) as caught:
        device.launch(loaded, [], (2, 1))
    assert str(caught.value) == (
        "launching k on cuda:0, grid (2, 1, 1), 128 threads, 100 bytes of shared memory: "
        "CUDA_ERROR_INVALID_VALUE (text of the driver)"
    )


def test_synchronize_reports_a_failed_kernel(fake: FakeDriver):
    cuda_device(0).synchronize()
    assert fake.calls == ["synchronize context 100"]
    fake.fail["cuCtxSynchronize"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(CudaError, match="waiting for cuda:0"):
        cuda_device(0).synchronize()


def test_reasons_for_no_gpu(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver):
    assert no_device_reason() is None
    with pytest.raises(DeviceError, match="there is no cuda:3; the driver sees 1 GPUs"):
        cuda_device(3)
    fake.devices.clear()
    assert no_device_reason() == "the driver sees no GPU"
    install(monkeypatch, FakeDriver()).fail["cuInit"] = CUresult.CUDA_ERROR_NO_DEVICE
    assert no_device_reason() == "the NVIDIA driver does not start (CUDA_ERROR_NO_DEVICE)"
    uninstall()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)  # type: ignore[arg-type]
    assert "cuda-python is not installed" in (no_device_reason() or "")
    uninstall()
    broken = FakeDriver()
    broken.cuInit = lambda flags: (_ for _ in ()).throw(RuntimeError("no libcuda\nmore"))  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", broken)  # type: ignore[arg-type]
    assert no_device_reason() == "the NVIDIA driver library does not load (no libcuda)"


def test_forks_of_a_process_that_has_used_the_driver_do_not_ask_it(fake: FakeDriver):
    """On a machine with a GPU commands that ask whether there is one died in the forks of tests."""
    assert no_device_reason() is None
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        reason = pool.submit(no_device_reason).result()
    assert reason == "CUDA does not work in a fork of a process that has used it; spawn it"
    assert no_device_reason() is None


def test_work_of_a_named_producer_comes_first(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(VECTOR)))
    fake.calls.clear()
    produced = ArrayView(0x2000, (9,), (1,), "f32", (CUDA, 0), "numba", producer_stream=7)
    device.launch(loaded, [produced], 1, 9)
    assert fake.calls == ["record on 7", "9 waits"]
    device.launch(loaded, [produced], 1, 7)
    assert len(fake.calls) == 2


def test_launches_on_jax_arrays_wait(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(VECTOR)))
    fake.calls.clear()
    device.launch(loaded, [ArrayView(0x2000, (9,), (1,), "f32", (CUDA, 0), "jax")], 1, 9)
    assert fake.calls == ["synchronize stream 9"]


def test_threads_do_not_share_a_plans_memory(fake: FakeDriver):
    """Each thread packs into its own block: two threads, many launches, no mixed arguments."""
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(VECTOR, Parameter("n", "scalar", "i64"))))
    fake.current = 100

    def work(base: int) -> None:
        for step in range(200):
            device.launch(loaded, [vector(0x10000 * base + step), 0x10000 * base + step], 1)

    threads = [threading.Thread(target=work, args=(base,)) for base in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.launches) == 800
    for launch in fake.launches:
        pointer, _, number = numbers(launch.arguments, "Qiq")
        assert pointer == number
