"""What machine code launches is what a call launches: the same arguments, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fake_driver import FakeDriver, install, uninstall
from runtime_kernels import axpy
from xla_frames import INTERFACE, STREAM, Driver, Xla

from tilec.executable.kernel import (
    TENSOR_MAP_BYTES,
    CompiledKernel,
    Im2col,
    Parameter,
    TensorMap,
)
from tilec.jax.gpu_launch import device_launch, plan_of
from tilec.jax.handler import ENTRY, Place, handler_code
from tilec.jax.machine_code import function_address
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda.device import CudaDevice, cuda_device
from tilec.runtime.launcher import Prepared
from tilec.terms.dtypes import ELEMENT_BYTES

WIDTHS = {"pointer": 8, "tensor_map": TENSOR_MAP_BYTES}
NUMBERS = {
    "CU_TENSOR_MAP_DATA_TYPE_FLOAT16": 6,
    "CU_TENSOR_MAP_INTERLEAVE_NONE": 0,
    "CU_TENSOR_MAP_SWIZZLE_64B": 2,
    "CU_TENSOR_MAP_SWIZZLE_128B": 3,
    "CU_TENSOR_MAP_L2_PROMOTION_L2_128B": 2,
    "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE": 0,
}
"""Of cuda.h, for the driver that has names instead."""


class Numbered(str):
    """A name of the driver that also has its number."""

    def __int__(self) -> int:
        return NUMBERS[self]


class NumberedDriver(FakeDriver):
    """Enumerators of tensor maps have numbers, too."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return _Numbers(found) if name.startswith("CUtensorMap") else found


class _Numbers:
    def __init__(self, names: Any) -> None:
        self.names = names

    def __getattr__(self, name: str) -> Numbered:
        return Numbered(getattr(self.names, name))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, NumberedDriver())
    uninstall()


def kernel_of_everything(persistent: bool) -> CompiledKernel:
    """Two matrices that the copy engine moves, sizes, strides and scalars."""
    matrix = Parameter("a", "array", "f16", (None, None), (None, 1))
    return replace(
        axpy("sm_90a"),
        name="everything",
        parameters=(
            matrix,
            Parameter("s", "scalar", "bf16"),
            replace(matrix, name="b"),
            Parameter("n", "scalar", "i64"),
            Parameter("images", "array", "f16", (None,) * 4, (None, None, None, 1)),
        ),
        grid=("cdiv(b.shape[0], 16)", "3", "1"),
        shared_bytes=100_000,
        tensor_maps=(
            TensorMap(0, (1, 0), (64, 16), 128, "f16"),
            TensorMap(2, (1, 0), (64, 32), 128, "f16", stores=True),
            TensorMap(
                *(4, (3, 2, 1, 0), (32, 16), 64, "f16"),
                im2col=Im2col(("b.shape[0]", "a.shape[1] // 2"), (-1, 0), (1, 2)),
            ),
        ),
        persistent=persistent,
        starts_early=persistent,
    )


def launched_by_python(
    fake: FakeDriver, device: CudaDevice, prepared: Prepared
) -> tuple[Any, list[tuple[Any, ...]]]:
    """The launch of a call, and the maps that it encoded, with the driver's numbers."""
    device.launch(device.load(prepared.kernel), prepared.parameters, prepared.grid, STREAM)
    maps = [
        (
            int(m.dtype),
            m.address,
            m.sizes,
            m.strides,
            m.box,
            m.steps,
            [*map(int, m.modes)],
            m.lower,
            m.upper,
        )  # type: ignore[call-overload]
        for m in fake.maps
    ]
    return fake.launches[-1], maps


@pytest.mark.parametrize("rows", [70, 0])
@pytest.mark.parametrize("persistent", [False, True])
def test_machine_code_launches_what_a_call_launches(
    fake: FakeDriver, persistent: bool, rows: int
) -> None:
    kernel = fake.know(kernel_of_everything(persistent))
    device = cuda_device(0)
    a = ArrayView(0x1000, (rows, 200), (200, 1), "f16", (CUDA, 0), "jax")
    b = ArrayView(0x9000, (90, 304), (304, 1), "f16", (CUDA, 0), "jax")
    images = ArrayView(0xB000, (rows, 180, 70, 32), (2**20, 2240, 32, 1), "f16", (CUDA, 0), "jax")
    prepared = Prepared(kernel, (a, -2.5, b, 2**40, images), (6, 3, 1))
    expected, maps = launched_by_python(fake, device, prepared)

    widths = [WIDTHS.get(slot.field) or ELEMENT_BYTES[slot.dtype] for slot in kernel.abi()]
    driver = Driver(widths)
    launch = device_launch(prepared, plan_of(device, prepared))
    places = (Place(True, 0), Place(False, 0), Place(True, 1))
    text = handler_code("k", places, ((0,), (0,), (0,)), (launch,), driver.addresses, INTERFACE)
    assert Xla(function_address(text, ENTRY)).call((0x1000, 0xB000), (0x9000,)) is None
    ((context, function, grid, block, stream, arguments),) = driver.launches
    assert (context, grid, block, stream) == (
        expected.context,
        expected.grid,
        expected.block,
        expected.stream,
    )
    assert fake.functions[function][0] == "everything"
    plain = len(widths) - 3
    assert arguments[:plain] == expected.arguments[:plain]
    assert driver.maps == maps
    assert [int.from_bytes(raw[:4], "little") for raw in arguments[plain:]] == [1, 2, 3]
    assert rows or maps[0][1] not in (0x1000, 0)
