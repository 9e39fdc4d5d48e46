"""Matrix descriptors: how a warpgroup instruction is told where its operand lies in shared memory.

PTX ISA 9.0, "wgmma: Matrix Descriptor Format", offsets in units of 16 bytes: bits [0,14) start,
[16,30) leading, [32,46) stride byte offset, [62,64) swizzle mode. tcgen05 ("Shared memory
descriptor"; CUTLASS, cute/arch/mma_sm100_desc.hpp) has a one in [46,49) and the swizzle mode, in
other numbers, in [61,64). Element (r, k), r along M or N,
es bytes large, lies in bytes from the start, before the swizzle of W bytes, at ("Strides", same
chapter; CUTLASS, cute/arch/mma_sm90_desc.hpp; T = 16 / es):

    K contiguous, swizzled:  (r%8)*W + (r/8)*stride + k*es
    K contiguous, plain:     (r%8)*16 + (r/8)*stride + (k/T)*leading + (k%T)*es
    r contiguous, swizzled:  (r*es)%W + (r*es/W)*leading + (k%8)*W + (k/8)*stride
    r contiguous, plain:     (r%T)*es + (r/T)*stride + (k%8)*16 + (k/8)*leading

All are sums of a function of r and one of k, as the offsets of a `SharedLayout` are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from tilec.hardware.shared_layout import SharedLayout
from tilec.records import dataclass

_MODES = {None: 0, (3, 4, 3): 1, (2, 4, 3): 2, (1, 4, 3): 3}
_TENSOR_MODES = (0, 2, 4, 6)
"""What descriptors of tcgen05 call the modes of `_MODES`, by those (PTX ISA 9.0, "Shared memory
descriptor")."""
UNIT_BYTES = 16
"""What descriptors count in, and what a swizzle moves as a whole."""
_ROWS = 8
"""Of a core matrix, after which a swizzle repeats (PTX ISA 9.0, "Core matrices")."""
ADDRESS_LIMIT = 1 << 18
"""Bytes of shared memory that starts and offsets reach."""


@dataclass(frozen=True)
class MatrixDescriptor:
    """How an operand lies in shared memory, as warpgroup instructions are told. `k_contiguous`: K-
    or MN-major. `leading`, `stride`: bytes. `mode`: the swizzle's number."""

    k_contiguous: bool
    leading: int
    stride: int
    mode: int

    @property
    def low_bits(self) -> int:
        """The low word without the start, which is added as address / 16."""
        return self.leading // UNIT_BYTES << 16

    @property
    def high_bits(self) -> int:
        """The high word."""
        return self.stride // UNIT_BYTES | self.mode << 30

    @property
    def tensor_high_bits(self) -> int:
        """The high word of tcgen05."""
        return self.stride // UNIT_BYTES | 1 << 14 | _TENSOR_MODES[self.mode] << 29


@lru_cache(maxsize=1024)
def describe_operand(
    layout: SharedLayout,
    element_bytes: int,
    sizes: tuple[int, ...],
    k_dim: int,
    step: tuple[int, int],
) -> MatrixDescriptor:
    """The descriptor of every instruction that reads a part of `sizes`, cut into blocks of `step`
    (along M or N, along K).

    ValueError says why the instruction cannot read such a buffer.
    """
    if layout.swizzle not in _MODES:
        raise ValueError(f"the instruction knows no swizzle like that of {layout}")
    contiguous = [d for d, parts in enumerate(layout.dims) if parts[0][1] == 1]
    if len(layout.dims) != 2 or not contiguous:
        raise ValueError(f"neither dimension of {layout} is contiguous")
    if any(size % part for size, part in zip(_ordered(sizes, k_dim), step, strict=True)):
        raise ValueError(f"a buffer of {sizes} is not made of whole instructions of {step}")
    k_contiguous = _runs_along_k(layout, contiguous, k_dim)
    plan = _Plan(layout, element_bytes, k_dim, k_contiguous)
    descriptor = plan.descriptor(step)
    plan.check(descriptor, _ordered(sizes, k_dim), step)
    return descriptor


def _runs_along_k(layout: SharedLayout, contiguous: list[int], k_dim: int) -> bool:
    longest = max(contiguous, key=lambda d: layout.dims[d][0][0])
    return longest == k_dim


def _ordered(sizes: Sequence[int], k_dim: int) -> tuple[int, int]:
    return sizes[1 - k_dim], sizes[k_dim]


class _Plan:
    """The byte offsets of a layout along M or N (`along_r`) and along K."""

    def __init__(
        self, layout: SharedLayout, element_bytes: int, k_dim: int, k_contiguous: bool
    ) -> None:
        self.layout = layout
        self.k_contiguous = k_contiguous
        self.bytes = element_bytes
        self.unit = UNIT_BYTES // element_bytes
        bits = layout.swizzle[0] if layout.swizzle else 0
        self.width = (UNIT_BYTES << bits) if bits else 0

        def along(dim: int) -> Callable[[int], int]:
            at = [0, 0]

            def offset(coordinate: int) -> int:
                at[dim] = coordinate
                return layout.offset(at) * element_bytes

            return offset

        self.along_r, self.along_k = along(1 - k_dim), along(k_dim)

    def descriptor(self, step: tuple[int, int]) -> MatrixDescriptor:
        """The offsets read off the layout; one that no block reaches stays 16."""
        rows, depth = step
        r, k, width = self.along_r, self.along_k, self.width

        def reached(along: Callable[[int], int], at: int, size: int) -> int:
            return along(at) if at < size else UNIT_BYTES

        if self.k_contiguous:
            leading = UNIT_BYTES if width else reached(k, self.unit, depth)
            stride = reached(r, _ROWS, rows)
        elif width:
            leading = reached(r, width // self.bytes, rows)
            stride = reached(k, _ROWS, depth)
        else:
            leading = reached(k, _ROWS, depth)
            stride = reached(r, self.unit, rows)
        mode = _MODES[self.layout.swizzle]
        return MatrixDescriptor(self.k_contiguous, leading, stride, mode)

    def check(
        self, descriptor: MatrixDescriptor, sizes: tuple[int, int], step: tuple[int, int]
    ) -> None:
        """Raises ValueError unless every block of the layout lies as the descriptor says."""
        r, k = self._formulas(descriptor)
        for along, formula, size, part in zip(
            (self.along_r, self.along_k), (r, k), sizes, step, strict=True
        ):
            for first in range(0, size, part):
                start = along(first)
                if any(along(first + i) - start != formula(i) for i in range(part)):
                    raise ValueError(
                        f"{self.layout} does not lie as the instruction reads it, from element "
                        f"{first} on"
                    )
                in_pattern = start % (_ROWS * self.width) if self.width else 0
                if start % UNIT_BYTES or in_pattern >= self.width > 0:
                    raise ValueError(f"{self.layout}: element {first} is no start of a matrix")
        offsets = (descriptor.leading, descriptor.stride)
        if any(offset % UNIT_BYTES or offset >= ADDRESS_LIMIT for offset in offsets):
            raise ValueError(f"{self.layout}: strides that a matrix descriptor cannot say")

    def _formulas(
        self, descriptor: MatrixDescriptor
    ) -> tuple[Callable[[int], int], Callable[[int], int]]:
        es, unit, width = self.bytes, self.unit, self.width
        leading, stride = descriptor.leading, descriptor.stride
        if self.k_contiguous and width:
            return (lambda r: r % 8 * width + r // 8 * stride), (lambda k: k * es)
        if self.k_contiguous:
            return (
                lambda r: r % 8 * 16 + r // 8 * stride,
                lambda k: k // unit * leading + k % unit * es,
            )
        if width:
            return (
                lambda r: r * es % width + r * es // width * leading,
                lambda k: k % 8 * width + k // 8 * stride,
            )
        return (
            lambda r: r % unit * es + r // unit * stride,
            lambda k: k % 8 * 16 + k // 8 * leading,
        )
