"""torch tensors for array specs: random contents, poison around and in outputs."""

from __future__ import annotations

import torch
from array_spec import ArraySpec

DTYPES: dict[str, torch.dtype] = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i8": torch.int8,
    "i32": torch.int32,
}
"""MLIR's name -> torch's dtype."""

POISON = 0xFF
"""Every byte of unwritten memory: a NaN in each float dtype, -1 in each integer."""

TAIL_BYTES = 256
"""Poisoned memory past the end of an array, where an unmasked vector access would land."""


class Storage:
    """A spec's memory, aligned to 256 bytes and poisoned all over, and the `tensor` in it."""

    def __init__(self, spec: ArraySpec, device: str) -> None:
        self.spec = spec
        dtype = DTYPES[spec.dtype]
        nbytes = spec.span * dtype.itemsize + TAIL_BYTES
        self._raw = torch.empty(nbytes + 256, dtype=torch.uint8, device=device)
        self._bytes = self._raw[-self._raw.data_ptr() % 256 :][:nbytes]
        whole = self._bytes[: nbytes // dtype.itemsize * dtype.itemsize].view(dtype)
        self.tensor = whole.as_strided(
            spec.shape, spec.strides, whole.storage_offset() + spec.offset
        )
        self.poison()

    def poison(self) -> None:
        """Overwrites the array and what lies between and after its elements."""
        self._bytes.fill_(POISON)

    def fill(self, values: torch.Tensor) -> None:
        """Copies `values`, of the same shape and dtype, into the array."""
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[values.itemsize]
        self.tensor.view(bits).copy_(values.view(bits))  # fp8 tensors copy as bytes alone

    def stray_writes(self) -> int:
        """Bytes written outside the array's elements; destroys the contents."""
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        self.tensor.view(bits[self.tensor.itemsize]).fill_(-1)
        return int((self._bytes != POISON).sum())


def random_values(
    spec: ArraySpec, generator: torch.Generator, *, integers: bool = False
) -> torch.Tensor:
    """A contiguous tensor: standard normal, or small integers, whose sums of products are exact."""
    dtype = DTYPES[spec.dtype]
    device = generator.device
    if integers or not dtype.is_floating_point:
        limit = 128 if dtype == torch.int8 and not integers else 4
        values = torch.randint(-limit, limit, spec.shape, generator=generator, device=device)
        return values.to(torch.float32).to(dtype) if dtype.is_floating_point else values.to(dtype)
    wide = dtype if dtype in (torch.float64, torch.float32) else torch.float32
    return torch.randn(spec.shape, generator=generator, device=device, dtype=wide).to(dtype)
