"""Tensor maps in the runtime: what is refused, what the driver is given, and when again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fake_driver import CUresult, FakeDriver, install, uninstall

from tilec.executable.kernel import CompiledKernel, Facts, Parameter, TensorMap
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda import tensor_map as cuda_tensor_map
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.cuda.driver import CudaError
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import check
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher
from tilec.runtime.manifest import checked_kernel
from tilec.runtime.tensor_maps import LARGEST_SIZE, hardware_map

MATRIX = Parameter("a", "array", "f16", (None, None), (None, 1), Facts(16, (1, 1), (8, 1)))
COLUMNS = replace(MATRIX, name="b", strides=(1, None), facts=Facts(16, (1, 1), (1, 8)))
ROWS_MAP = TensorMap(0, (1, 0), (64, 128), 128, "f16")
COLUMNS_MAP = TensorMap(1, (0, 1), (32, 16), 64, "f16")
CUBE_MAP = TensorMap(2, (2, 0, 1), (16, 8, 1), 0, "f32")
CUBE = Parameter("c", "array", "f32", (None,) * 3, (None, None, 1))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver())
    uninstall()


def kernel(
    maps: tuple[TensorMap, ...] = (ROWS_MAP, COLUMNS_MAP, CUBE_MAP), name: str = "k"
) -> CompiledKernel:
    parameters = (MATRIX, COLUMNS, CUBE, Parameter("n", "scalar", "i32"))
    return CompiledKernel(
        name, "sm_90a", "", parameters, ("1", "1", "1"), 128, 0, 32, tensor_maps=maps
    )


def matrix(
    pointer: int = 0x1000, shape: tuple[int, ...] = (5, 7), strides: tuple[int, ...] = (8, 1)
) -> ArrayView:
    return ArrayView(pointer, shape, strides, "f16", (CUDA, 0), "tilec")


def arguments(a: int = 0x1000, b: int = 0x2000, c: int = 0x3000, n: int = 3) -> list[Any]:
    columns = ArrayView(b, (40, 30), (1, 48), "f16", (CUDA, 0), "tilec")
    cube = ArrayView(c, (3, 4, 6), (32, 8, 1), "f32", (CUDA, 0), "tilec")
    return [matrix(a), columns, cube, n]


# -- what a map is made of


def test_a_recipe_reads_shapes_and_strides_innermost_first():
    made = hardware_map(CUBE_MAP, "c", arguments()[2])
    assert made.sizes == (6, 3, 4)
    assert made.strides == (128, 32)
    assert (made.box, made.swizzle, made.dtype) == ((16, 8, 1), 0, "f32")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (matrix(0x1008), "expected a pointer that is a multiple of 16 bytes"),
        (matrix(strides=(9, 1)), "expected a stride on axis 0 .* found 9 elements of f16"),
        (matrix(strides=(-8, 1)), "expected a stride on axis 0 .* found -8"),
        (matrix(strides=(2**39, 1)), "expected a stride on axis 0"),
        (matrix(strides=(8, 2)), "expected stride 1 on axis 1 .* found 2"),
        (
            matrix(shape=(LARGEST_SIZE + 1, 1)),
            f"expected at most {LARGEST_SIZE} elements on axis 0",
        ),
    ],
)
def test_what_the_copy_engine_cannot_address_is_refused(array: ArrayView, message: str):
    with pytest.raises(ArgumentError, match=rf"argument 'a': {message}"):
        hardware_map(ROWS_MAP, "a", array)


@pytest.mark.parametrize(
    "array",
    [
        matrix(shape=(1, 7), strides=(3, 1)),
        matrix(shape=(5, 1), strides=(8, 77)),
        matrix(0, (0, 7), (1, 3)),
        matrix(0x1002, (5, 0), (0, 1)),
        matrix(shape=(LARGEST_SIZE, 7)),
    ],
)
def test_strides_that_lead_nowhere_do_not_count(array: ArrayView):
    made = hardware_map(ROWS_MAP, "a", array)
    assert made.sizes == array.shape[::-1]
    assert made.strides[0] % 16 == 0
    assert made.strides[0] > 0


def test_rows_that_are_stored_end_at_16_bytes():
    stores = replace(ROWS_MAP, stores=True)
    for width in (8, 0, 16):
        hardware_map(stores, "a", matrix(shape=(5, width), strides=(16, 1)))
    with pytest.raises(
        ArgumentError, match=r"expected a size on axis 1 .* for stores .* found 7 elements of f16"
    ):
        hardware_map(stores, "a", matrix())


def test_every_launch_checks_the_maps(fake: FakeDriver):
    unknown = replace(MATRIX, facts=Facts())
    made = replace(kernel((ROWS_MAP,)), parameters=(unknown, *kernel().parameters[1:]))
    bound = dict(zip("abcn", arguments(), strict=True)) | {"a": matrix(strides=(9, 1))}
    check(replace(made, tensor_maps=()), bound)
    with pytest.raises(ArgumentError, match="argument 'a'"):
        check(made, bound)


# -- the driver


def encoded_maps(fake: FakeDriver, launch: int = -1) -> list[Any]:
    return [fake.map_of(raw) for raw in fake.launches[launch].arguments if len(raw) == 128]


def test_a_launch_passes_encoded_maps_behind_everything_else(fake: FakeDriver):
    device = cuda_device(0)
    device.launch(device.load(fake.know(kernel())), arguments(), 1)
    assert [len(raw) for raw in fake.launches[0].arguments[-4:]] == [4, 128, 128, 128]
    first, second, third = encoded_maps(fake)
    assert first[:7] == (
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT16", 2, 0x1000, [7, 5], [16], [64, 128], [1, 1],
    )  # fmt: skip
    assert tuple(first.modes) == (
        "CU_TENSOR_MAP_INTERLEAVE_NONE", "CU_TENSOR_MAP_SWIZZLE_128B",
        "CU_TENSOR_MAP_L2_PROMOTION_L2_128B", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
    )  # fmt: skip
    assert second[2:6] == (0x2000, [40, 30], [96], [32, 16])
    assert second.swizzle == "CU_TENSOR_MAP_SWIZZLE_64B"
    assert third[:6] == (
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT32", 3, 0x3000, [6, 3, 4], [128, 32], [16, 8, 1],
    )  # fmt: skip
    assert third.swizzle == "CU_TENSOR_MAP_SWIZZLE_NONE"


def test_a_map_is_encoded_once_an_array_and_shape(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel()))

    def encodings(values: list[Any]) -> int:
        fake.calls.clear()
        device.launch(loaded, values, 1)
        assert [m.address for m in encoded_maps(fake)] == [v.pointer for v in values[:3]]
        return fake.calls.count("encode")

    assert encodings(arguments()) == 3
    assert encodings(arguments(n=4)) == 0
    assert encodings(arguments(a=0x5000)) == 1
    assert encodings(arguments()) == 0
    other = arguments()
    other[0] = matrix(0x1000, (6, 7))
    assert encodings(other) == 1
    assert encodings(arguments()) == 0


def test_a_plan_follows_the_pointers(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel()))
    plan = device.plan(loaded, arguments(), (1, 1, 1))
    for values in (arguments(), arguments(b=0x7000), arguments(b=0x7000), arguments()):
        device.start(plan, values, (1, 1, 1), 0)
        assert [m.address for m in encoded_maps(fake)] == [v.pointer for v in values[:3]]
    assert len(fake.maps) == 4


def test_the_cache_is_bounded(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch):
    assert cuda_tensor_map.encoded.cache_info().maxsize == cuda_tensor_map.MAX_MAPS
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel((ROWS_MAP,))))
    plan = device.plan(loaded, arguments(), (1, 1, 1))
    for pointer in range(cuda_tensor_map.MAX_MAPS + 10):
        plan.pack(plan.block, 0, 16 * pointer, 0, 0, 0)
    assert cuda_tensor_map.encoded.cache_info().currsize == cuda_tensor_map.MAX_MAPS


def test_an_empty_array_is_some_zeros(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel((ROWS_MAP,))))
    values = arguments()
    values[0] = matrix(0, (0, 7), (7, 1))
    device.launch(loaded, values, 1)
    (made,) = encoded_maps(fake)
    assert made.sizes == [1, 1]
    assert made.address == device.context.zeros
    assert bytes(fake.memory[made.address])[:1] == b"\0"


def test_a_failed_encoding_says_of_what(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel()))
    fake.fail["cuTensorMapEncodeTiled"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(
        CudaError, match=r"encoding a tensor map of the array at 0x1000, .*\(7, 5\)"
    ):
        device.launch(loaded, arguments(), 1)
    del fake.fail["cuTensorMapEncodeTiled"]
    device.launch(loaded, arguments(), 1)
    assert len(encoded_maps(fake)) == 3


def test_a_failed_encoding_leaves_no_stale_map(fake: FakeDriver):
    """The second of three fails when the first is written: the next launch writes all again."""
    device = cuda_device(0)
    plan = device.plan(device.load(fake.know(kernel())), arguments(), (1, 1, 1))
    device.start(plan, arguments(a=0x5000), (1, 1, 1), 0)
    device.start(plan, arguments(), (1, 1, 1), 0)
    fake.fail["cuTensorMapEncodeTiled"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(CudaError):
        device.start(plan, arguments(a=0x5000, b=0x9000), (1, 1, 1), 0)
    device.start(plan, arguments(), (1, 1, 1), 0)
    assert [m.address for m in encoded_maps(fake)] == [0x1000, 0x2000, 0x3000]


def test_the_generated_call_re_encodes_where_a_pointer_moves(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
):
    # Where another test has imported torch, calls ask it whether it traces them.
    torch: Any = SimpleNamespace(Tensor=(), compiler=SimpleNamespace(is_compiling=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    made = fake.know(kernel())
    asked: list[Any] = []

    def resolve(device: Any, bound: Any) -> CompiledKernel:
        asked.append(bound)
        return made

    launch = Launcher("k", [LaunchArgument(p.name, p.kind) for p in made.parameters], resolve)
    for values in (arguments(), arguments(), arguments(c=0x8000), arguments(n=9)):
        launch(*values)
        assert [m.address for m in encoded_maps(fake)] == [v.pointer for v in values[:3]]
    assert len(asked) == 1
    assert len(fake.maps) == 4
    with pytest.raises(ArgumentError, match="argument 'a': expected a pointer"):
        launch(matrix(0x1004), *arguments()[1:])


# -- files


def edited(**changes: Any) -> dict[str, Any]:
    fields = kernel().to_json()
    fields["tensor_maps"] = [dict(fields["tensor_maps"][0]) | changes]
    return fields


def test_recipes_survive_a_file():
    made = kernel()
    assert checked_kernel(made.to_json(), "").tensor_maps == made.tensor_maps
    assert [slot.field for slot in made.abi()][-3:] == ["tensor_map"] * 3
    assert [slot.parameter for slot in made.abi()][-3:] == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameter": 7}, "there is no parameter 7"),
        ({"parameter": -1}, "there is no parameter -1"),
        ({"parameter": 3}, "parameter 3 is no array of f16"),
        ({"dtype": "f32"}, "parameter 0 is no array of f32"),
        ({"dtype": "f99"}, "dtype: expected one of"),
        ({"dims": [1, 1]}, r"expected each of 2 dimensions once, found \(1, 1\)"),
        ({"dims": [0, 1]}, "dimension 0 does not have stride 1"),
        ({"dims": "10"}, "dims: expected integers"),
        ({"box": [64]}, r"expected 2 box sizes of 1 to 256, found \(64,\)"),
        ({"box": [64, 257]}, "expected 2 box sizes"),
        ({"box": [128, 8]}, "a box of 256 bytes along the row under a swizzle of 128"),
        ({"box": [4, 8]}, "a box of 8 bytes along the row"),
        ({"stores": 1}, "stores: expected true or false"),
        ({"swizzle": 96}, "expected a swizzle of"),
        ({"colour": 1}, "unknown field 'colour'"),
    ],
)
def test_made_up_recipes_are_refused(changes: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=rf"kernel.tensor_maps\[0\].*{message}"):
        checked_kernel(edited(**changes), "")
