"""Describes any array: pointer, shape, strides in elements, dtype, device.

Understands torch, CuPy, JAX, Numba and NumPy arrays, and whatever offers `__cuda_array_interface__`
or `__dlpack__`. No framework is imported: an array of one can only exist where it already is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field
from typing import Any
from weakref import WeakValueDictionary

from tilec.hardware.sizes import VECTOR_BYTES
from tilec.records import dataclass
from tilec.runtime import dlpack
from tilec.runtime.errors import ArgumentError, TracedTensorError
from tilec.runtime.traced_values import is_traced
from tilec.terms.dtypes import BY_ARRAY, ELEMENT_BYTES, DType

HOST = "host"
CUDA = "cuda"
UNKNOWN_DEVICE = -1
"""Device index where an array does not tell it: the driver knows it from the pointer."""

_BY_TYPESTR: Mapping[str, DType] = {
    dtype.typestr: dtype for dtype in BY_ARRAY.values() if dtype.typestr
}


LEGACY_DEFAULT_STREAM = 1
"""What DLPack and the CUDA array interface call stream 0."""


class Form:
    """What launches alike have alike: an array's dtype, shape, strides, device, framework and place
    within 16 bytes.

    Arrays of one form have one object, so that it is found by its address.
    """

    __slots__ = ("__weakref__",)


_FORMS: WeakValueDictionary[tuple[Any, ...], Form] = WeakValueDictionary()


def form_of(parts: tuple[Any, ...]) -> Form:
    """The form of arrays that have these in common."""
    return _FORMS.setdefault(parts, Form())


@dataclass(frozen=True, eq=False)
class ArrayView:
    """Memory of somebody else's array.

    `pointer`: address of the element at index 0, ..., 0. `shape`, `strides`: in elements. `dtype`:
    MLIR's name. `device`: HOST or CUDA, and its index. `framework`: the top-level package it is of.
    `producer_stream`: a stream whose pending work makes the contents, if the array names one.
    `memory`: the first address, and the one past the last, of the memory that the array lies in,
    where its sizes do not say it: its dimensions may be unbounded.
    `owner`: kept so that the memory lives as long as this view. `form`: see `Form`.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: tuple[str, int]
    framework: str = ""
    writable: bool = True
    producer_stream: int | None = None
    owner: Any = field(default=None, repr=False)
    memory: tuple[int, int] | None = None
    form: Form = field(init=False, repr=False)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    def __post_init__(self) -> None:
        # Now, and as a field: one added later would make every attribute slower to read.
        parts = (self.dtype, self.shape, self.strides, self.device, self.framework)
        parts = (*parts, self.pointer % VECTOR_BYTES)
        object.__setattr__(self, "form", form_of(parts))

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return ELEMENT_BYTES[self.dtype]

    def extent(self) -> tuple[int, int]:
        """Bytes from the pointer to the first and past the last byte that the elements touch."""
        if self.memory is not None:
            return self.memory[0] - self.pointer, self.memory[1] - self.pointer
        low = high = 0
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size == 0:
                return 0, 0
            reach = (size - 1) * stride * self.element_bytes
            low, high = (low + reach, high) if reach < 0 else (low, high + reach)
        return low, high + self.element_bytes


def describe(value: Any, name: str = "array", stream: int | None = None) -> ArrayView:
    """The array `value`; ArgumentError, naming the argument `name`, if it is none tilec can use.

    `stream`: the CUDA stream the memory will be used on, for producers that order themselves by it
    (0 or None: the legacy default stream).
    """
    if isinstance(value, ArrayView):
        return value
    for framework, (attribute, reader) in _FRAMEWORKS.items():
        module = sys.modules.get(framework)
        if module is not None and isinstance(value, getattr(module, attribute, ())):
            return reader(value, name, stream)
    if not isinstance(value, type):
        interface = getattr(value, "__cuda_array_interface__", None)
        if interface is not None:
            return _from_interface(value, interface, name)
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value, name, stream)
    found = "None" if value is None else _type_name(value)
    raise ArgumentError(
        f"argument {name!r}: expected an array, found {found}; "
        "arrays are torch's, JAX's, CuPy's, NumPy's, or anything with DLPack"
    )


def _from_torch(tensor: Any, name: str, stream: int | None) -> ArrayView:
    """torch's own accessors: they cover bf16 and fp8, need no stream and cost the least."""
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or tensor.is_nested:
        found = "a nested one" if tensor.is_nested else tensor.layout
        raise ArgumentError(f"argument {name!r}: expected a dense tensor, found {found}")
    if tensor.device.type not in ("cuda", "cpu"):
        kind = TracedTensorError if tensor.device.type == "meta" else ArgumentError
        raise kind(
            f"argument {name!r}: expected a CUDA or CPU tensor, found one on {tensor.device}"
        )
    if tensor.is_neg() or tensor.is_conj():
        raise ArgumentError(
            f"argument {name!r}: a view with a pending negation or conjugation; "
            "call .resolve_neg() or .resolve_conj() first"
        )
    refuse_recorded(name, tensor)
    on_device = tensor.device.type == "cuda"
    pointer = 0 if is_traced(tensor) else tensor.data_ptr()
    if not pointer and 0 not in tuple(tensor.shape):
        raise TracedTensorError(
            f"argument {name!r}: a tensor without memory ({_type_name(tensor)}), as torch.compile "
            "and torch.export trace with; there a launch is recorded, and nothing else works"
        )
    return ArrayView(
        pointer,
        tuple(tensor.shape),
        tuple(tensor.stride()),
        _dtype(str(tensor.dtype).removeprefix("torch."), name),
        (CUDA, tensor.get_device()) if on_device else (HOST, 0),
        "torch",
        owner=tensor,
    )


def refuse_recorded(name: str, tensor: Any) -> None:
    """Raises TracedTensorError where torch wants the derivative of what is done to a tensor."""
    torch = sys.modules["torch"]
    forward = torch.autograd.forward_ad
    is_dual = forward._current_level >= 0 and forward.unpack_dual(tensor).tangent is not None
    if is_dual or (tensor.requires_grad and torch.is_grad_enabled()):
        raise TracedTensorError(
            f"argument {name!r}: a tensor that requires a gradient, which no kernel records; "
            "give the launch a gradient by tilec.autograd, pass tensor.detach(), or launch under "
            "torch.no_grad()"
        )


def _from_cupy(array: Any, name: str, stream: int | None) -> ArrayView:
    dtype = _numpy_dtype(array.dtype, name)
    strides = _element_strides(array.strides, ELEMENT_BYTES[dtype], name)
    device = (CUDA, int(array.device.id))
    return ArrayView(
        int(array.data.ptr), tuple(array.shape), strides, dtype, device, "cupy", owner=array
    )


def _from_numpy(array: Any, name: str, stream: int | None) -> ArrayView:
    if isinstance(array, sys.modules["numpy"].ma.MaskedArray):
        raise ArgumentError(
            f"argument {name!r}: a masked array, whose mask a kernel does not see; "
            "pass array.filled(value), or array.data"
        )
    dtype = _numpy_dtype(array.dtype, name)
    return ArrayView(
        array.__array_interface__["data"][0],
        array.shape,
        _element_strides(array.strides, ELEMENT_BYTES[dtype], name),
        dtype,
        (HOST, 0),
        "numpy",
        writable=array.flags.writeable,
        owner=array,
    )


def _from_dlpack(array: Any, name: str, stream: int | None, framework: str = "") -> ArrayView:
    device_type, device_index = (int(part) for part in array.__dlpack_device__())
    devices = {
        dlpack.CPU: (HOST, 0),
        dlpack.CUDA_HOST: (HOST, 0),
        dlpack.CUDA: (CUDA, device_index),
        dlpack.CUDA_MANAGED: (CUDA, device_index),
    }
    if device_type not in devices:
        raise ArgumentError(
            f"argument {name!r}: expected CUDA or host memory, found DLPack device {device_type}"
        )
    device = devices[device_type]
    ordered_by = (stream or LEGACY_DEFAULT_STREAM) if device[0] == CUDA else None
    capsule = dlpack.request_capsule(array, ordered_by)
    try:
        tensor = dlpack.read_capsule(capsule)
    except ValueError as error:
        raise ArgumentError(f"argument {name!r}: {error}") from None
    return ArrayView(
        tensor.pointer,
        tensor.shape,
        tensor.strides,
        tensor.dtype,
        device,
        framework,
        writable=not tensor.read_only,
        owner=(array, capsule),
    )


def _from_jax(array: Any, name: str, stream: int | None) -> ArrayView:
    """JAX through DLPack alone: it orders its own streams, and covers bf16, fp8 and odd layouts."""
    if not hasattr(array, "__dlpack_device__") or len(array.sharding.device_set) != 1:
        raise ArgumentError(
            f"argument {name!r}: expected a concrete jax.Array on one device, "
            f"found {_type_name(array)}; inside jax.jit, kernels are called by tilec.jax.call, "
            "products and attention are tilec.jax.matmul and tilec.jax.attention"
        )
    return _from_dlpack(array, name, stream, "jax")


def _from_interface(array: Any, interface: Mapping[str, Any], name: str) -> ArrayView:
    """The CUDA array interface, version 2 or 3 (numba.pydata.org, "CUDA Array Interface")."""
    if interface.get("mask") is not None:
        raise ArgumentError(f"argument {name!r}: masked arrays are not supported")
    typestr = interface["typestr"]
    known = _BY_TYPESTR.get(typestr)
    if known is None:
        raise ArgumentError(
            f"argument {name!r}: dtype {typestr!r} of its __cuda_array_interface__ is not "
            f"supported; supported: {', '.join(_BY_TYPESTR)} (bf16 and fp8 through DLPack)"
        )
    shape = tuple(interface["shape"])
    byte_strides = interface.get("strides")
    if byte_strides is None:
        strides = dlpack.contiguous_strides(shape)
    else:
        strides = _element_strides(byte_strides, known.bytes, name)
    pointer, read_only = interface["data"]
    return ArrayView(
        pointer or 0,
        shape,
        strides,
        known.mlir,
        (CUDA, UNKNOWN_DEVICE),
        type(array).__module__.partition(".")[0],
        writable=not read_only,
        producer_stream=interface.get("stream"),
        owner=array,
    )


_FRAMEWORKS: Mapping[str, tuple[str, Any]] = {
    "torch": ("Tensor", _from_torch),
    "numpy": ("ndarray", _from_numpy),
    "cupy": ("ndarray", _from_cupy),
    "jax": ("Array", _from_jax),
}


def _numpy_dtype(dtype: Any, name: str) -> str:
    if not dtype.isnative:
        raise ArgumentError(f"argument {name!r}: byte order of {dtype.str!r} is not this machine's")
    # NumPy has no dtype of two numbers a byte: a field's name says so (`tilec.runtime.float4`).
    names = dtype.names or ()
    return _dtype(names[0] if dtype.itemsize == 1 and len(names) == 1 else dtype.name, name)


def _dtype(found: str, name: str) -> str:
    dtype = BY_ARRAY.get(found)
    if dtype is None:
        raise ArgumentError(
            f"argument {name!r}: dtype {found} is not supported; supported: {', '.join(BY_ARRAY)}"
        )
    return dtype.mlir


def _element_strides(byte_strides: Any, element_bytes: int, name: str) -> tuple[int, ...]:
    for axis, stride in enumerate(byte_strides):
        if stride % element_bytes:
            raise ArgumentError(
                f"argument {name!r}: stride of {stride} bytes on axis {axis} is not a whole "
                f"number of {element_bytes}-byte elements"
            )
    return tuple(stride // element_bytes for stride in byte_strides)


def _type_name(value: object) -> str:
    kind = type(value)
    prefix = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return prefix + kind.__qualname__
