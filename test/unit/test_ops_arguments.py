"""What `tilec.ops.matmul` says of wrong arguments; batch dimensions; other frameworks' arrays."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.ops.batch_dimensions import broadcast_sizes, merge
from tilec.ops.dtype_names import dtype_of
from tilec.ops.new_arrays import new_array
from tilec.runtime.arrays import CUDA, HOST, ArrayView, describe
from tilec.runtime.errors import ArgumentError


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")


def f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def i8(*shape: int) -> np.ndarray:
    return np.ones(shape, np.int8)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


A, B = f32(4, 6), f32(6, 5)
SHARED = f32(60)

MISTAKES = [
    ((A, "b"), {}, "argument 'b': expected an array, found str"),
    ((f32(), B), {}, "argument 'a': expected a matrix or a vector, found a scalar"),
    ((A, f32(5, 6)), {}, "argument 'b': expected 6 rows, as many as 'a' has columns"),
    ((np.ones((4, 6), np.int32), B), {}, "argument 'a': products of i32 are not supported"),
    ((A, B.astype(np.float64)), {}, "argument 'b': expected dtype f32 like 'a', found f64"),
    ((f32(2, 4, 6), f32(3, 6, 5)), {}, "argument 'b': leading dimensions (3,) do not broadcast"),
    ((A, B), {"bias": f32(4)}, "argument 'bias': expected 5 elements (N of the product)"),
    ((A, B), {"row_scale": f32(5)}, "argument 'row_scale': expected 4 elements (M of the product)"),
    ((A, B), {"column_scale": f32()}, "argument 'column_scale': expected 5 elements"),
    ((A, B), {"bias": f32(2, 5)}, "argument 'bias': leading dimensions (2,) do not broadcast"),
    ((A, B), {"scale": f32(4)}, "argument 'scale': expected a number or an array of one element"),
    ((A, B), {"residual": f32(3, 5)}, "argument 'residual': shape (3, 5) does not broadcast"),
    ((A, B), {"residual": f32(2, 4, 5)}, "argument 'residual': shape (2, 4, 5) does not broadcast"),
    ((A, B, f32(5, 4)), {}, "argument 'out': expected shape (4, 5), found (5, 4)"),
    ((A, B, f32(4, 5)), {"out_dtype": "f16"}, "argument 'out': expected dtype f16, found f32"),
    ((A, B, read_only(f32(4, 5))), {}, "argument 'out': the array is read-only"),
    (
        (A, B, np.lib.stride_tricks.as_strided(f32(5), (4, 5), (0, 4))),
        {},
        "argument 'out': two of its elements are the same memory",
    ),
    ((SHARED[:24].reshape(4, 6), B, SHARED[20:40].reshape(4, 5)), {}, "it overlaps 'a' in memory"),
    (
        (A, B, SHARED[:20].reshape(4, 5)),
        {"residual": SHARED[5:25].reshape(4, 5)},
        "argument 'out': it overlaps 'residual' in memory",
    ),
    ((A, B), {"activation": "tanh"}, "argument 'activation': expected None, 'relu', 'gelu'"),
    ((A, B), {"activation": int}, "argument 'activation': expected None, 'relu', 'gelu'"),
    ((A, B), {"out_dtype": "f12"}, "argument 'out_dtype': unknown dtype 'f12'"),
    ((A, B), {"out_dtype": np.int64}, "argument 'out_dtype': expected one of f64, f32"),
    ((A, B), {"acc_dtype": "f16"}, "argument 'acc_dtype': products of f32 are summed in f32"),
    ((i8(4, 6), i8(6, 5)), {"acc_dtype": "f32"}, "argument 'acc_dtype': products of i8 are summed"),
    ((A, B), {"precision": "fast"}, "argument 'precision': expected 'ieee', 'tf32' or 'f32'"),
    ((A, B), {"precision": "f32"}, "argument 'precision': 'f32' is for fp8 inputs, found"),
    ((i8(4, 6), i8(6, 5)), {"precision": "tf32"}, "argument 'precision': 'tf32' is for f32 inputs"),
    ((f32(70000, 1, 2), f32(70000, 2, 1)), {}, "argument 'a': a batch of 70000 matrices; at most"),
    ((A, B), {"stream": "mine"}, "stream: expected a CUDA stream or its number, found str"),
]


@pytest.mark.parametrize(("arguments", "named", "message"), MISTAKES)
def test_a_wrong_argument_is_named(arguments: Any, named: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        tilec.ops.matmul(*arguments, **named)
    assert message in str(caught.value)


def test_an_argument_on_another_device_is_named() -> None:
    here = describe(A, "a")
    there = ArrayView(4096, (6, 5), (5, 1), "f32", (CUDA, 0), "tilec")
    with pytest.raises(ArgumentError, match="argument 'b': expected an array on the host"):
        tilec.ops.matmul(here, there, out=f32(4, 5))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (tl.bf16, tl.bf16),
        ("bf16", tl.bf16),
        ("bfloat16", tl.bf16),
        (ml_dtypes.bfloat16, tl.bf16),
        (np.dtype(np.float16), tl.f16),
        (np.float64, tl.f64),
        ("f8E4M3FN", tl.f8e4m3),
        (ml_dtypes.float8_e5m2, tl.f8e5m2),
    ],
)
def test_dtypes_have_many_names(value: Any, expected: tl.DType) -> None:
    assert dtype_of(value, "x") == expected


def test_torch_dtypes_are_known_by_their_text() -> None:
    class FakeDtype:
        def __str__(self) -> str:
            return "torch.float8_e4m3fn"

    assert dtype_of(FakeDtype(), "x") == tl.f8e4m3


def test_leading_sizes_broadcast_like_numpys() -> None:
    for one, two in (((3, 1), (4,)), ((), (2, 3)), ((1,), (1,)), ((0, 2), (1, 1))):
        expected = np.broadcast_shapes(one, two)
        assert broadcast_sizes({"a": one, "b": two}) == expected


@pytest.mark.parametrize("seed", range(20))
def test_merged_dimensions_are_the_same_elements(seed: int) -> None:
    """Any views of two arrays: the offsets of all elements stay, in their order."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in rng.integers(1, 4, 4))
    strides = {}
    for name in "ab":
        order = rng.permutation(4) if rng.random() < 0.5 else np.arange(4)
        array = np.zeros([sizes[axis] for axis in order], np.int8).transpose(np.argsort(order))
        steps = [0 if rng.random() < 0.2 else step for step in array.strides]
        strides[name] = tuple(steps)
    merged, found = merge(sizes, strides)
    assert len(merged) <= len(sizes)
    for name in "ab":
        before = [np.dot(index, strides[name]) for index in np.ndindex(*sizes)]
        after = [np.dot(index, found[name]) for index in np.ndindex(*merged)]
        assert np.allclose(before, after)


def test_contiguous_dimensions_merge_into_one() -> None:
    assert merge((2, 3, 4), {"a": (12, 4, 1), "b": (0, 0, 0)}) == ((24,), {"a": (1,), "b": (0,)})
    assert merge((2, 3), {"a": (3, 1), "b": (1, 2)})[0] == (2, 3)
    assert merge((1, 1), {"a": (7, 9)}) == ((), {"a": ()})


# -- where results are made


def view(framework: str, place: Any = (HOST, 0)) -> ArrayView:
    return ArrayView(0, (2,), (1,), "f32", place, framework)


def test_results_are_of_the_framework_of_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = SimpleNamespace(
        empty_strided=lambda sizes, strides, **options: ("new", sizes, strides, options),
        bfloat16="torch.bfloat16",
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    tensor = SimpleNamespace(device="cuda:1")
    found = new_array(tensor, view("torch", (CUDA, 1)), (2, 3), tl.bf16)
    options = {"dtype": "torch.bfloat16", "device": "cuda:1"}
    assert found == ("new", (2, 3), (3, 1), options)
    found = new_array(A, view("numpy"), (2, 3), tl.f8e5m2)
    assert (found.shape, found.dtype) == ((2, 3), ml_dtypes.float8_e5m2)


@pytest.mark.parametrize(
    ("framework", "dtype"), [("numba", tl.f32), ("cupy", tl.bf16), ("", tl.f32)]
)
def test_where_no_result_can_be_made_out_must_be_given(framework: str, dtype: tl.DType) -> None:
    with pytest.raises(ArgumentError, match=f"argument 'out': .* cannot make {dtype} arrays"):
        new_array(object(), view(framework, (CUDA, 0)), (2, 3), dtype)


def test_tensors_that_want_a_gradient_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        requires_grad = True

    compiler = SimpleNamespace(is_compiling=lambda: False)
    torch = SimpleNamespace(Tensor=Tensor, is_grad_enabled=lambda: True, compiler=compiler)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(ArgumentError, match="argument 'b': the tensor requires a gradient, which"):
        tilec.ops.matmul(A, Tensor(), a_scale=A, b_scale=A)
