"""Tensor maps in im2col mode: what launches make of a kernel's recipes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fake_driver import FakeDriver, install, uninstall

from tilec.executable.kernel import CompiledKernel, Im2col, Parameter, TensorMap
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import check
from tilec.runtime.manifest import checked_kernel
from tilec.runtime.tensor_maps import kernel_map

IMAGES = Parameter("x", "array", "f16", (None,) * 4, (None, None, None, 1))
WALK = Im2col(("y.shape[2]", "y.shape[1] // n.shape[0]"), (-1, 2), (1, 3))
RECIPE = TensorMap(0, (3, 2, 1, 0), (64, 128), 128, "f16", im2col=WALK)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver())
    uninstall()


def kernel(recipe: TensorMap = RECIPE) -> CompiledKernel:
    numbers = Parameter("n", "array", "i32", (None,), (1,))
    parameters = (IMAGES, replace(IMAGES, name="y"), numbers)
    return CompiledKernel(
        "k", "sm_90a", "", parameters, ("1", "1", "1"), 128, 0, 32, tensor_maps=(recipe,)
    )


def images(*shape: int, pointer: int = 0x1000) -> ArrayView:
    n, height, width, channels = shape
    strides = (height * width * channels, width * channels, channels, 1)
    return ArrayView(pointer, (n, height, width, channels), strides, "f16", (CUDA, 0), "tilec")


def arguments(x: ArrayView, y: ArrayView, n: int = 1) -> list[Any]:
    return [x, y, ArrayView(0x8000, (n,), (1,), "i32", (CUDA, 0), "tilec")]


def test_a_box_ends_at_its_last_position():
    """Of 20 in steps of 1 from -1, and of 9 in steps of 3 from 2, in an image of 22 by 30."""
    made = kernel_map(kernel(), RECIPE, arguments(images(4, 30, 22, 64), images(4, 18, 20, 8), 2))
    assert made.sizes == (64, 22, 30, 4)
    assert made.strides == (128, 2816, 84480)
    assert (made.lower, made.upper, made.steps) == ((-1, 2), (18 - 21, 26 - 29), (1, 3))


def test_images_or_results_without_elements():
    """Zeros, whatever the positions; a box has a position at least."""
    empty = kernel_map(kernel(), RECIPE, arguments(images(0, 30, 22, 64), images(4, 999, 20, 8)))
    assert empty.is_empty
    assert (empty.lower, empty.upper) == ((0, 0), (0, 0))
    none = kernel_map(kernel(), RECIPE, arguments(images(4, 30, 22, 64), images(4, 0, 0, 8)))
    assert none.upper == (-1 - 21, 2 - 29)


@pytest.mark.parametrize(
    ("results", "n", "message"),
    [
        (images(4, 18, 151, 8), 1, r"beside its end on axis 2 \(tensor map\), found 128"),
        (images(4, 1, 20, 8), 1, r"expected positions that end up to 127 .* axis 1 .*found -177"),
        (images(4, 18, 20, 8), 0, "expected positions that a launch can count .* zero"),
    ],
)
def test_boxes_that_the_hardware_has_no_bits_for(results: ArrayView, n: int, message: str):
    x = images(4, 30 if n and results.shape[1] > 1 else 180, 22, 64)
    values = dict(zip("xyn", arguments(x, results, n), strict=True))
    with pytest.raises(ArgumentError, match=rf"argument 'x': .*{message}"):
        check(kernel(), values)


def test_the_driver_is_told_channels_and_positions(fake: FakeDriver):
    device = cuda_device(0)
    values = arguments(images(4, 30, 22, 64), images(4, 9, 20, 8))
    device.launch(device.load(fake.know(kernel())), values, 1)
    (made,) = fake.maps
    assert made[:7] == (
        *("CU_TENSOR_MAP_DATA_TYPE_FLOAT16", 4, 0x1000, [64, 22, 30, 4]),
        *([128, 2816, 84480], [64, 128], [1, 1, 3, 1]),
    )
    assert (made.lower, made.upper) == ([-1, 2], [-3, -3])
    assert made.swizzle == "CU_TENSOR_MAP_SWIZZLE_128B"


def test_recipes_survive_a_file():
    assert checked_kernel(kernel().to_json(), "").tensor_maps == (RECIPE,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extents": ["3"]}, r"expected 2 extents, found \('3',\)"),
        ({"extents": ["3", "z.shape[0]"]}, "unknown parameter 'z'"),
        ({"extents": ["3", "n +"]}, "syntax error"),
        ({"extents": [3, 4]}, "extents: expected texts"),
        ({"lower": [0, 128]}, r"expected corners of -127 to 127, found \(0, 128\)"),
        ({"lower": [0]}, r"expected 2 corners, found \(0,\)"),
        ({"steps": [0, 1]}, r"expected steps of 1 to 8, found \(0, 1\)"),
        ({"steps": [1, 9]}, r"expected steps of 1 to 8, found \(1, 9\)"),
        ({"colour": 1}, "unknown field 'colour'"),
    ],
)
def test_made_up_walks_are_refused(changes: dict[str, Any], message: str):
    fields = kernel().to_json()
    fields["tensor_maps"][0]["im2col"] = dict(fields["tensor_maps"][0]["im2col"]) | changes
    with pytest.raises(ValueError, match=message):
        checked_kernel(fields, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"box": [64, 128, 1, 1]}, "expected 2 box sizes"),
        ({"im2col": 3}, "im2col: expected an object, or null"),
        ({"parameter": 2, "dtype": "i32", "dims": [0]}, "of 1 dimensions has no im2col map"),
    ],
)
def test_made_up_recipes_are_refused(changes: dict[str, Any], message: str):
    fields = kernel().to_json()
    fields["tensor_maps"][0].update(changes)
    with pytest.raises(ValueError, match=message):
        checked_kernel(fields, "")
