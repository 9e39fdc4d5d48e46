"""Arrays of every framework described alike: real NumPy, capsules made by hand, doubles, and torch
and JAX where they are installed."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.runtime import dlpack
from tilec.runtime.arrays import CUDA, HOST, UNKNOWN_DEVICE, describe
from tilec.runtime.errors import ArgumentError
from tilec.runtime.host import host_array, numpy_dtype
from tilec.terms.dtypes import BY_ARRAY, BY_MLIR

NUMPY_DTYPES = {
    dtype.mlir: np.dtype(getattr(ml_dtypes, name, None) or name)
    for name, dtype in BY_ARRAY.items()
    if not name.endswith("_x2")
}
NUMPY_DTYPES["f4E2M1FNx2"] = np.dtype([("float4_e2m1fn_x2", np.uint8)])


# -- NumPy


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_arrays_of_every_dtype(dtype: str):
    array = np.zeros((3, 5, 7), NUMPY_DTYPES[dtype])[:, ::2, 1:]
    view = describe(array)
    assert view.pointer == array.ctypes.data
    assert view.shape == (3, 3, 6)
    assert view.strides == (35, 14, 1)
    assert (view.dtype, view.device, view.writable) == (dtype, (HOST, 0), True)
    assert view.element_bytes == array.itemsize


def test_numpy_reversed_broadcast_empty_and_scalar_arrays():
    assert describe(np.zeros(4, np.int32)[::-1]).strides == (-1,)
    assert describe(np.broadcast_to(np.float32(1), (4, 2))).strides == (0, 0)
    assert not describe(np.broadcast_to(np.float32(1), (4, 2))).writable
    assert describe(np.zeros((0, 4), np.float16)).shape == (0, 4)
    assert describe(np.zeros((), np.float16)).shape == ()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(2, "m8[s]"), "dtype timedelta64.* is not supported; supported: float64, float32"),
        (np.zeros(2, np.complex64), "dtype complex64 is not supported"),
        (np.zeros(2, ">f4"), "byte order of '>f4' is not this machine's"),
        (
            np.zeros(2, "i2,f4")["f1"],
            r"stride of 6 bytes on axis 0 is not a whole number of 4-byte",
        ),
        ([1.0], "expected an array, found list"),
        (3, "expected an array, found int"),
        (None, "expected an array, found None; arrays are torch's"),
        (np.ndarray, "expected an array, found type"),
    ],
)
def test_what_is_no_usable_array(array: Any, message: str):
    with pytest.raises(ArgumentError, match="argument 'weights': .*" + message):
        describe(array, "weights")


# -- DLPack


def capsule(
    code: int = 2,
    bits: int = 32,
    lanes: int = 1,
    shape: tuple[int, ...] = (2, 3),
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
    version: tuple[int, int] | None = None,
    flags: int = 0,
    device: tuple[int, int] = (dlpack.CUDA, 1),
) -> Any:
    """A DLPack capsule whose structures stay alive with the test process."""
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
    tensor = dlpack._Tensor(
        pointer=0x1000,
        device=dlpack._Device(*device),
        rank=len(shape),
        dtype=dlpack._DType(code, bits, lanes),
        shape=ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
        byte_offset=offset,
    )
    if steps is not None:
        tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    if version is None:
        block, name = ctypes.create_string_buffer(bytes(tensor) + b"\0" * 16), b"dltensor"
    else:
        managed = dlpack._Versioned(version=dlpack._Version(*version), flags=flags, tensor=tensor)
        block, name = ctypes.create_string_buffer(bytes(managed)), b"dltensor_versioned"
    KEPT.append((sizes, steps, block, name))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(block), name, None)


KEPT: list[Any] = []


class Exporter:
    """An array of an unknown library; `old`: it knows no `max_version`."""

    def __init__(self, made: Any, device: tuple[int, int] = (dlpack.CUDA, 1), old: bool = False):
        self.made, self.device, self.old = made, device, old
        self.asked: dict[str, Any] = {}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None, **more: Any) -> Any:
        if self.old and more:
            raise TypeError("unexpected keyword max_version")
        self.asked = {"stream": stream, **more}
        return self.made


@pytest.mark.parametrize(
    ("code", "bits", "dtype"),
    [
        (0, 8, "i8"),
        (0, 64, "i64"),
        (2, 16, "f16"),
        (4, 16, "bf16"),
        (6, 8, "i1"),
        (10, 8, "f8E4M3FN"),
        (12, 8, "f8E5M2"),
    ],
)
@pytest.mark.parametrize("version", [None, (1, 0), (1, 1)])
def test_capsules_of_both_layouts(code: int, bits: int, dtype: str, version: Any):
    made = capsule(code, bits, strides=(6, 2), offset=64, version=version)
    view = describe(Exporter(made))
    assert (view.pointer, view.shape, view.strides) == (0x1040, (2, 3), (6, 2))
    assert (view.dtype, view.device, view.writable) == (dtype, (CUDA, 1), True)


def test_capsule_without_strides_is_row_major():
    assert describe(Exporter(capsule(shape=(2, 3, 4)))).strides == (12, 4, 1)
    assert describe(Exporter(capsule(shape=()))).strides == ()
    assert describe(Exporter(capsule(shape=(2, 0, 4)))).strides == (4, 4, 1)


def test_read_only_flag():
    assert not describe(Exporter(capsule(version=(1, 1), flags=1))).writable


def test_producer_is_told_the_stream():
    array = Exporter(capsule())
    describe(array, stream=0x5000)
    assert array.asked == {"stream": 0x5000, "max_version": (1, 1)}
    describe(array, stream=0)
    assert array.asked["stream"] == 1
    describe(array)
    assert array.asked["stream"] == 1
    host = Exporter(capsule(device=(dlpack.CPU, 0)), (dlpack.CPU, 0), old=True)
    assert describe(host, stream=0x5000).device == (HOST, 0)
    assert host.asked == {"stream": None}


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (Exporter(capsule(5, 64)), r"DLPack dtype \(code 5, 64 bits, 1 lanes\) is not supported"),
        (Exporter(capsule(2, 32, lanes=4)), r".*4 lanes"),
        (Exporter(capsule(17, 4, lanes=1)), r".*code 17, 4 bits, 1 lanes"),
        (Exporter(capsule(version=(2, 0))), "DLPack version 2 is not supported"),
        (Exporter(object()), "not a DLPack capsule"),
        (Exporter(capsule(), (10, 0)), "expected CUDA or host memory, found DLPack device 10"),
    ],
)
def test_unusable_capsules(array: Any, message: str):
    with pytest.raises(ArgumentError, match="argument 'x': " + message):
        describe(array, "x")


def test_numpy_own_capsules_read_the_same():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, ::2]
    tensor = dlpack.read_capsule(dlpack.request_capsule(array, None))
    view = describe(array)
    assert (tensor.pointer, tensor.shape, tensor.strides) == (view.pointer, (2, 2, 4), (12, 8, 1))
    assert (tensor.dtype, tensor.device) == ("f32", (dlpack.CPU, 0))


# -- the CUDA array interface


def interface(**changes: Any) -> Any:
    fields = {"shape": (4, 6), "typestr": "<f2", "data": (0x2000, False), "version": 3, **changes}
    return SimpleNamespace(__cuda_array_interface__=fields)


def test_cuda_array_interface():
    view = describe(interface())
    assert (view.pointer, view.shape, view.strides) == (0x2000, (4, 6), (6, 1))
    assert (view.dtype, view.device) == ("f16", (CUDA, UNKNOWN_DEVICE))
    assert describe(interface(strides=None, stream=7)).producer_stream == 7
    assert describe(interface(strides=(2, 8))).strides == (1, 4)
    assert not describe(interface(data=(0x2000, True))).writable
    assert describe(interface(data=(None, False), shape=(0,))).pointer == 0
    named = [dtype for dtype in BY_ARRAY.values() if dtype.typestr]
    assert len(named) > 7
    for dtype in named:
        assert np.dtype(dtype.typestr).name == dtype.array
        assert describe(interface(typestr=dtype.typestr)).dtype == dtype.mlir


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typestr": "<V2"}, r"dtype '<V2' .* \(bf16 and fp8 through DLPack\)"),
        ({"typestr": ">f4"}, "dtype '>f4'"),
        ({"mask": object()}, "masked arrays are not supported"),
        ({"strides": (12, 3)}, "stride of 3 bytes on axis 1"),
    ],
)
def test_unusable_interfaces(changes: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match="argument 'x': .*" + message):
        describe(interface(**changes), "x")


# -- frameworks, as doubles where a GPU would be needed


class FakeTensor:
    """As much of torch.Tensor as is read."""

    def __init__(self, **changes: Any) -> None:
        self.dtype = "torch.bfloat16"
        self.shape = (2, 8)
        self.device = SimpleNamespace(type="cuda")
        self.layout = "strided"
        self.is_nested = False
        self.negative = False
        self.requires_grad = False
        self.address = 0x3000
        self.__dict__.update(changes)

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        return (8, 1)

    def get_device(self) -> int:
        return 2

    def is_neg(self) -> bool:
        return self.negative

    def is_conj(self) -> bool:
        return False


@pytest.fixture
def torch_double(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = SimpleNamespace(is_functorch_wrapped_tensor=lambda tensor: False)
    module = SimpleNamespace(
        Tensor=FakeTensor,
        strided="strided",
        is_grad_enabled=lambda: True,
        autograd=SimpleNamespace(forward_ad=SimpleNamespace(_current_level=-1)),
        _C=SimpleNamespace(_functorch=wrapped),
    )
    monkeypatch.setitem(sys.modules, "torch", module)  # type: ignore[arg-type]


@pytest.mark.usefixtures("torch_double")
def test_torch_tensors_on_a_gpu():
    view = describe(FakeTensor())
    assert (view.pointer, view.shape, view.strides) == (0x3000, (2, 8), (8, 1))
    assert (view.dtype, view.device, view.framework) == ("bf16", (CUDA, 2), "torch")
    assert describe(FakeTensor(dtype="torch.float8_e4m3fn")).dtype == "f8E4M3FN"


@pytest.mark.usefixtures("torch_double")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": "sparse"}, "expected a dense tensor, found sparse"),
        ({"is_nested": True}, "expected a dense tensor, found a nested one"),
        ({"device": SimpleNamespace(type="meta")}, "expected a CUDA or CPU tensor"),
        ({"negative": True}, "call .resolve_neg"),
        ({"requires_grad": True}, r"requires a gradient, .* pass tensor.detach\(\)"),
        ({"address": 0}, "a tensor without memory"),
        ({"dtype": "torch.quint8"}, "dtype quint8 is not supported"),
    ],
)
def test_unusable_tensors(changes: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match="argument 'x': .*" + message):
        describe(FakeTensor(**changes), "x")


@pytest.mark.usefixtures("torch_double")
def test_usable_tensors(monkeypatch: pytest.MonkeyPatch):
    assert describe(FakeTensor(address=0, shape=(0, 8))).pointer == 0
    monkeypatch.setattr(sys.modules["torch"], "is_grad_enabled", lambda: False)
    assert describe(FakeTensor(requires_grad=True)).pointer == 0x3000


def test_a_masked_array_is_refused():
    with pytest.raises(ArgumentError, match=r"'x': a masked array, .*pass array.filled\(value\)"):
        describe(np.ma.masked_array([1.0, 2.0], [True, False]), "x")


def test_cupy_arrays(monkeypatch: pytest.MonkeyPatch):
    class FakeArray:
        dtype = np.dtype(np.float16)
        shape = (4, 4)
        strides = (16, 2)
        data = SimpleNamespace(ptr=0x4000)
        device = SimpleNamespace(id=1)

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=FakeArray))  # type: ignore[arg-type]
    view = describe(FakeArray())
    assert (view.pointer, view.strides, view.dtype) == (0x4000, (8, 1), "f16")
    assert (view.device, view.framework) == ((CUDA, 1), "cupy")


@pytest.mark.parametrize("name", BY_ARRAY)
def test_real_torch_tensors(name: str):
    torch = pytest.importorskip("torch")
    if not hasattr(torch, name):
        pytest.skip(f"torch has no {name}")
    whole = torch.zeros((4, 6), dtype=torch.uint8 if "x2" in name else getattr(torch, name))
    tensor = whole.view(getattr(torch, name)).t()[1:, ::2]
    view = describe(tensor)
    assert view.pointer == tensor.data_ptr()
    assert (view.shape, view.strides) == ((5, 2), (1, 12))
    assert (view.dtype, view.device) == (BY_ARRAY[name].mlir, (HOST, 0))
    capsuled = dlpack.read_capsule(dlpack.request_capsule(tensor, None))
    assert (capsuled.pointer, capsuled.strides) == (view.pointer, view.strides)
    assert capsuled.dtype == view.dtype
    if "x2" not in name:  # torch cannot convert those
        host_array(view)[...] = 1
        assert tensor.float().sum() == tensor.numel()


NOT_OF_JAX = {
    *("float64", "int64", "uint64"),  # but with jax_enable_x64
    *("float4_e2m1fn_x2", "float6_e2m3fn", "float6_e3m2fn"),  # XLA hands none of them over
}


@pytest.mark.parametrize("name", sorted(set(BY_ARRAY) - NOT_OF_JAX))
def test_real_jax_arrays(name: str):
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        array = jax.numpy.ones((4, 6), getattr(jax.numpy, name if name != "bool" else "bool_"))
    view = describe(array)
    assert (view.shape, view.strides, view.framework) == ((4, 6), (6, 1), "jax")
    assert (view.dtype, view.device) == (BY_ARRAY[name].mlir, (HOST, 0))
    np.testing.assert_array_equal(host_array(view), np.asarray(array))
    with pytest.raises(ArgumentError, match=r"concrete jax\.Array"):
        jax.jit(lambda x: describe(x, "x"))(array)


# -- host memory as NumPy arrays


@given(
    st.sampled_from([name for name, dtype in BY_MLIR.items() if dtype.packed]),
    st.lists(st.integers(0, 4), max_size=3),
    st.data(),
)
def test_host_memory_is_seen_as_it_is(dtype: str, shape: list[int], data: st.DataObject):
    steps = [data.draw(st.sampled_from([1, 2, -1, -2])) for _ in shape]
    whole = np.random.default_rng(0).integers(0, 100, [2 * n + 1 for n in shape])
    slices = (slice(None, None, step) for step in steps)
    array = whole.astype(NUMPY_DTYPES[dtype])[(*slices, ...)]
    view = describe(array)
    seen = host_array(
        type(view)(view.pointer, view.shape, view.strides, dtype, (HOST, 0), owner=array)
    )
    assert seen.dtype == array.dtype == numpy_dtype(dtype)
    np.testing.assert_array_equal(seen, array)
    if seen.size:
        seen[...] = 1
        assert (array == np.ones_like(array)).all()


def test_host_memory_only():
    with pytest.raises(ValueError, match="expected host memory, found cuda:1"):
        host_array(describe(Exporter(capsule())))
