"""Array rules: the arrays that a kernel's pointers and numbers make, evaluated at every launch.

    x: f16 at x + 0, sizes [M, K], strides [stride_xm, 1]

Sizes that no mask gives are unbounded: as large as the memory behind the pointer and larger, so
that nothing is ever clipped there. The rule stands beside the grid's (`tilec.executable.grid`):
what comes of it is an array as any other, with facts, a specialisation and, where it can have one,
a tensor map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.terms.dtypes import ELEMENT_BYTES
from tilec.triton.memory_of import memory_behind
from tilec.triton.polynomial import Polynomial, Symbol

UNBOUNDED = 1 << 30
"""Elements of an unbounded dimension: more than memory of 2 GiB, the most that 32-bit indices take,
has of two bytes; of larger memory it is twice what that holds."""
_STEP = 1 << 16
"""What such a size is a multiple of: any vector's width, any tile's side."""


@dataclass(frozen=True)
class ArrayRule:
    """One array. `root`: the pointer argument; `base`: elements from there on; `sizes`: None for an
    unbounded dimension; `strides` in elements; all of launch-time arguments."""

    root: str
    dtype: str
    base: Polynomial
    sizes: tuple[Polynomial | None, ...]
    strides: tuple[Polynomial, ...]

    @property
    def unbounded(self) -> tuple[int, ...]:
        """The dimensions without a bound."""
        return tuple(axis for axis, size in enumerate(self.sizes) if size is None)

    @property
    def forms(self) -> tuple[Polynomial, ...]:
        """All that a launch computes for it."""
        return (self.base, *(size for size in self.sizes if size is not None), *self.strides)

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.sizes)
        strides = ", ".join(map(str, self.strides))
        return f"{self.dtype} at {self.root} + {self.base}, sizes [{sizes}], strides [{strides}]"

    def view(self, pointer: ArrayView, numbers: Mapping[str, int]) -> ArrayView:
        """The array of a launch. `pointer`: the root's argument; `numbers`: scalars by name."""
        bytes_ = ELEMENT_BYTES[self.dtype]
        start = pointer.pointer + evaluate(self.base, numbers) * bytes_
        memory = memory_behind(pointer)
        strides = tuple(evaluate(stride, numbers) for stride in self.strides)
        left = max(0, memory[1] - start)
        sizes = tuple(
            _unbounded(left, abs(stride) * bytes_)
            if size is None
            else max(0, evaluate(size, numbers))
            for size, stride in zip(self.sizes, strides, strict=True)
        )
        # No framework: NumPy's arrays would be taken as they are.
        return replace(
            pointer,
            pointer=start,
            shape=sizes,
            strides=strides,
            dtype=self.dtype,
            memory=memory,
            framework="",
        )


def _unbounded(bytes_left: int, stride: int) -> int:
    reach = bytes_left // max(1, stride)
    return UNBOUNDED if reach < UNBOUNDED // 2 else -(-2 * reach // _STEP) * _STEP


def evaluate(form: Polynomial, numbers: Mapping[str, int]) -> int:
    """The value of what arguments alone decide. ZeroDivisionError as the kernel would have it."""
    total = 0
    for monomial, n in form.terms.items():
        for symbol in monomial:
            n *= _value(symbol, numbers)
        total += n
    return total


def _value(symbol: Symbol, numbers: Mapping[str, int]) -> int:
    if symbol.made is None:
        return int(numbers[symbol.value.name])
    name, parts = symbol.made
    one, two = (evaluate(part, numbers) for part in parts)
    return _COMPUTED[name](one, two)


def _quotient(one: int, two: int) -> int:
    """Rounded towards 0, as arith.divsi is."""
    found = abs(one) // abs(two)
    return found if (one < 0) == (two < 0) else -found


_COMPUTED = {
    "arith.divsi": _quotient,
    "arith.remsi": lambda one, two: one - two * _quotient(one, two),
    "arith.minsi": min,
    "arith.maxsi": max,
}


def divisor(form: Polynomial, known: Mapping[str, int]) -> int:
    """A number that divides the value, from divisors of arguments; 0 of what is 0."""
    from math import gcd

    total = 0
    for monomial, n in form.terms.items():
        for symbol in monomial:
            n *= known.get(symbol.value.name, 1) if symbol.made is None else 1
        total = gcd(total, n)
    return total
