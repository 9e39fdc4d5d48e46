"""Arrays of the cuda device over a fake driver: copies, strides, memory, other libraries."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from fake_driver import FakeDriver, install, uninstall

from tilec.runtime.arrays import CUDA
from tilec.runtime.cuda.device import cuda_device


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver())
    uninstall()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int64", "bool"])
@pytest.mark.parametrize("shape", [(4, 6), (0, 3), (), (7,)])
def test_arrays_go_to_the_device_and_back(fake: FakeDriver, dtype: str, shape: tuple[int, ...]):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    host = np.random.default_rng(1).integers(0, 2, shape).astype(kind)
    device = cuda_device(0)
    array = device.array(host)
    assert (array.shape, array.device, array.framework) == (shape, (CUDA, 0), "tilec")
    back = array.numpy()
    assert back.dtype == kind
    np.testing.assert_array_equal(back, host)
    target = np.zeros_like(host)
    device.copy_back(array, target)
    np.testing.assert_array_equal(target, host)


def test_strides_are_kept_and_gaps_not_touched(fake: FakeDriver):
    host = np.arange(48, dtype=np.float32).reshape(6, 8)
    device = cuda_device(0)
    part = host.T[1:7:2, ::3]
    array = device.array(part)
    assert array.strides == (2, 24)
    np.testing.assert_array_equal(array.numpy(), part)
    np.testing.assert_array_equal(array.numpy(), host.T[1:7:2, ::3])
    expected = host.copy()
    expected.T[1:7:2, ::3] = part
    host[...] = -1
    expected[...] = -1
    expected.T[1:7:2, ::3] = array.numpy()
    device.copy_back(array, part)
    np.testing.assert_array_equal(host, expected)


def test_unusable_copies(fake: FakeDriver):
    device = cuda_device(0)
    with pytest.raises(ValueError, match="negative strides"):
        device.array(np.arange(4)[::-1])
    with pytest.raises(ValueError, match="unknown dtype 'f12'"):
        device.empty((3,), "f12")
    array = device.empty((3,), "float16")
    assert array.dtype == "f16"
    with pytest.raises(ValueError, match="expected a host array of shape"):
        device.copy_back(array, np.zeros(4, np.float16))
    frozen = np.zeros(3, np.float16)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        device.copy_back(array, frozen)


def test_memory_is_freed_with_the_array(fake: FakeDriver):
    array = cuda_device(0).empty((1000,), "f32")
    assert len(fake.memory) == 1
    del array
    gc.collect()
    assert fake.memory == {}


def test_other_libraries_take_device_arrays(fake: FakeDriver):
    array = cuda_device(0).empty((2, 3), "f32")
    interface = array.__cuda_array_interface__
    assert interface["typestr"] == "<f4"
    assert interface["strides"] == (12, 4)
    assert interface["data"] == (array.pointer, False)
    assert not hasattr(cuda_device(0).empty((2,), "bf16"), "__cuda_array_interface__")
