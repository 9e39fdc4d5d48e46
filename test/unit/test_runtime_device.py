"""Which device a name or an array means, and which stream a caller works on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, install, uninstall

from tilec.runtime.arrays import CUDA, HOST, ArrayView
from tilec.runtime.device import device, device_of
from tilec.runtime.errors import ArgumentError, DeviceError
from tilec.runtime.streams import current_stream, current_stream_of, stream_number


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    monkeypatch.delenv("TILEC_DEVICE", raising=False)
    yield install(monkeypatch, FakeDriver([(9, 0), (8, 0)]))
    uninstall()


def view(kind: str, index: int = 0) -> ArrayView:
    return ArrayView(0x1000, (4,), (1,), "f32", (kind, index))


def test_names(fake: FakeDriver, capsys: pytest.CaptureFixture[str]):
    assert device() is device("cuda") is device("cuda:0")
    assert device("cuda:1").name == "cuda:1"
    assert device("emulator").kind == "emulator"
    for name in ("gpu", "cuda:", "cuda:x", "cuda:-1", "emulator:", "CUDA"):
        with pytest.raises(ValueError, match=f"unknown device '{name}'; expected cuda, cuda:N or"):
            device(name)
    with pytest.raises(DeviceError, match="there is no cuda:2; the driver sees 2 GPUs"):
        device("cuda:2")
    assert capsys.readouterr().err == ""


def test_the_environment_names_the_default(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEC_DEVICE", "cuda:1")
    assert device().name == "cuda:1"
    assert device("cuda").name == "cuda:0"
    monkeypatch.setenv("TILEC_DEVICE", "")
    assert device().name == "cuda:0"


def test_without_a_gpu_the_emulator_says_so_once(
    fake: FakeDriver, capsys: pytest.CaptureFixture[str]
):
    fake.devices.clear()
    assert device().kind == device().kind == "emulator"
    assert capsys.readouterr().err == (
        "tilec: no GPU (the driver sees no GPU); running on the CPU emulator\n"
    )
    with pytest.raises(DeviceError, match="there is no cuda:0"):
        device("cuda")


def test_arrays_decide(fake: FakeDriver):
    assert device_of([("a", view(CUDA, 1)), ("b", view(CUDA, 1))]).name == "cuda:1"
    assert device_of([], device("cuda:1")).name == "cuda:1"
    assert device_of([]).name == "cuda:0"
    assert device_of([("a", view(HOST))], device("emulator")).kind == "emulator"
    with pytest.raises(ArgumentError, match=r"'a': expected .* emulator, found .* cuda:0"):
        device_of([("a", view(CUDA))], device("emulator"))
    fake.devices.clear()
    uninstall()
    assert device_of([("a", view(HOST))]).kind == "emulator"


@pytest.mark.parametrize(
    ("stream", "number"),
    [
        (0, 0),
        (0x70, 0x70),
        (SimpleNamespace(cuda_stream=0x71), 0x71),
        (SimpleNamespace(ptr=0x72), 0x72),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 0x73)), 0x73),
        (np.int64(0x74), 0x74),
    ],
)
def test_streams_of_many_libraries(stream: Any, number: int):
    assert stream_number(stream) == number


def test_a_stream_of_cuda_python():
    driver = pytest.importorskip("cuda.bindings.driver")
    assert stream_number(driver.CUstream(0x1234)) == 0x1234


@pytest.mark.parametrize("stream", ["0", b"1", 1.5, True, None, object(), SimpleNamespace(ptr="x")])
def test_what_is_no_stream(stream: Any):
    with pytest.raises(ArgumentError, match="stream: expected a CUDA stream or its number, found"):
        stream_number(stream)


class Tensor:
    def __init__(self, index: int) -> None:
        self.index = index
        self.is_cuda = index >= 0

    def get_device(self) -> int:
        return self.index


def test_the_current_stream_of_torch(monkeypatch: pytest.MonkeyPatch):
    raw = SimpleNamespace(_cuda_getCurrentRawStream=lambda index: 0x800 + index)
    module = SimpleNamespace(Tensor=Tensor, _C=raw)
    monkeypatch.setitem(sys.modules, "torch", module)  # type: ignore[arg-type]
    assert current_stream("torch", 3) == 0x803
    assert current_stream_of(Tensor(1)) == 0x801
    assert current_stream_of(Tensor(-1)) is None
    assert current_stream_of(object()) is None
    public = SimpleNamespace(
        current_stream=lambda index: SimpleNamespace(cuda_stream=0x900 + index)
    )
    older = SimpleNamespace(Tensor=Tensor, _C=SimpleNamespace(), cuda=public)
    monkeypatch.setitem(sys.modules, "torch", older)  # type: ignore[arg-type]
    assert current_stream("torch", 3) == 0x903


def test_frameworks_without_a_current_stream():
    assert current_stream("jax", 0) == 0
    assert current_stream("", 0) == 0
