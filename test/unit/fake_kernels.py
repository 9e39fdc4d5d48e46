"""Kernels without code, and arrays without memory, for the cuda device over a fake driver."""

from __future__ import annotations

import struct

from tilec.executable.kernel import CompiledKernel, Parameter
from tilec.runtime.arrays import CUDA, ArrayView


def kernel(*parameters: Parameter, name: str = "k", **changes: object) -> CompiledKernel:
    fields: dict[str, object] = {"threads": 128, "shared_bytes": 0, "index_bits": 32, **changes}
    return CompiledKernel(name, "sm_90a", "// ptx", parameters, None, **fields)  # type: ignore[arg-type]


MATRIX = Parameter("a", "array", "f16", (None, None), (None, 1))
VECTOR = Parameter("v", "array", "f32", (None,), (1,))


def matrix(pointer: int = 0x1000, shape: tuple[int, int] = (5, 7), device: int = 0) -> ArrayView:
    return ArrayView(pointer, shape, (shape[1], 1), "f16", (CUDA, device), "tilec")


def vector(pointer: int = 0x2000, size: int = 9, device: int = 0) -> ArrayView:
    return ArrayView(pointer, (size,), (1,), "f32", (CUDA, device), "tilec")


def numbers(launch_arguments: list[bytes], formats: str) -> list[float]:
    return [
        struct.unpack("<" + code, raw)[0]
        for code, raw in zip(formats, launch_arguments, strict=True)
    ]
