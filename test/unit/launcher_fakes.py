"""A launcher with a fake driver below, fake tensors, and a compiler of kernels that nobody runs."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fake_driver import FakeDriver, install, uninstall

from tilec.executable.kernel import CompiledKernel, Parameter
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.facts import index_bits, observe_parameter
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher


class FakeTensor:
    """A tensor as torch's accessors show it. `reads` counts how often its pointer was asked for."""

    def __init__(
        self,
        pointer: int = 0x1000,
        shape: tuple[int, ...] = (8, 8),
        strides: tuple[int, ...] | None = None,
        dtype: str = "torch.float16",
        device: int = 0,
    ) -> None:
        self.pointer = pointer
        self.shape = shape
        self.strides = strides or (shape[-1], 1)[2 - len(shape) :]
        self.dtype = dtype
        self.index = device
        self.layout = "strided"
        self.device = SimpleNamespace(type="cuda" if device >= 0 else "cpu")
        self.is_cuda = device >= 0
        self.is_negated = False
        self.is_nested = False
        self.requires_grad = False

    def data_ptr(self) -> int:
        return self.pointer

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def get_device(self) -> int:
        return self.index

    def is_neg(self) -> bool:
        return self.is_negated

    def is_conj(self) -> bool:
        return False


class Compiler:
    """Stands for the just-in-time compiler: a kernel a set of observed parameters, as Resolve."""

    def __init__(self, fake: FakeDriver, grid: tuple[str, str, str] | None) -> None:
        self.fake = fake
        self.grid = grid
        self.made: dict[Any, CompiledKernel] = {}
        self.asked = 0
        self.persistent = False
        self.stripes = 1
        self.programs_per_cta = 1

    def __call__(self, device: Any, bound: Any) -> CompiledKernel:
        self.asked += 1
        parameters = []
        constants = {}
        for name, value in bound.items():
            if isinstance(value, ArrayView):
                parameters.append(observe_parameter(name, value))
            elif name.isupper():
                constants[name] = value
            elif name == "t" and isinstance(value, float):
                parameters.append(Parameter(name, "scalar", "f32"))
            else:
                wide = name == "t" and not -(2**31) <= value < 2**31
                parameters.append(Parameter(name, "scalar", "i64" if wide else "i32"))
        bits = index_bits(v for v in bound.values() if isinstance(v, ArrayView))
        key = (tuple(parameters), tuple(constants.items()), bits)
        if key not in self.made:
            number = len(self.made)
            self.made[key] = self.fake.know(
                CompiledKernel(
                    *(f"k{number}", "sm_90a", "", key[0], self.grid, 64, 0, bits, constants),
                    persistent=self.persistent,
                    stripes=self.stripes,
                    programs_per_cta=self.programs_per_cta,
                )
            )
        return self.made[key]


GRID = ("cdiv(a.shape[0], 4)", "b.shape[0]", "1")


def installed(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> Iterator[FakeDriver]:
    module = SimpleNamespace(
        Tensor=FakeTensor,
        strided="strided",
        is_grad_enabled=lambda: getattr(fake, "records", False),
        compiler=SimpleNamespace(is_compiling=lambda: False),
        autograd=SimpleNamespace(forward_ad=SimpleNamespace(_current_level=-1)),
        _C=SimpleNamespace(
            _cuda_getCurrentRawStream=lambda index: 0x500 + index,
            _cuda_getDevice=lambda: fake.current - 100,
            _functorch=SimpleNamespace(is_functorch_wrapped_tensor=lambda tensor: False),
        ),
    )
    monkeypatch.setitem(sys.modules, "torch", module)  # type: ignore[arg-type]
    yield install(monkeypatch, fake)
    uninstall()


def launcher(
    fake: FakeDriver,
    *more: LaunchArgument,
    grid: tuple[str, str, str] | None = GRID,
    device: Any = None,
) -> tuple[Launcher, Compiler]:
    compiler = Compiler(fake, grid)
    arguments = [LaunchArgument("a", "array"), LaunchArgument("b", "array"), *more]
    return Launcher("kernel", arguments, compiler, device), compiler


def pointers(fake: FakeDriver) -> list[tuple[int, int]]:
    """The two pointers of every launch so far; a and b have one run-time stride each."""
    return [
        (struct.unpack("<Q", launch.arguments[0])[0], struct.unpack("<Q", launch.arguments[4])[0])
        for launch in fake.launches
    ]


def own_array(pointer: int = 0x1000) -> ArrayView:
    """An array of tilec's own, as devices make them."""
    return ArrayView(pointer, (8, 8), (8, 1), "f16", (CUDA, 0), "tilec")
