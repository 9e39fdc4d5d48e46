"""The program's place in the grid, loops, facts, checks, printing, inline PTX."""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from tilec.language.builtin import builtin
from tilec.language.tile import Tile
from tilec.terms.dtypes import DType
from tilec.terms.numbers import Number

__all__ = [
    "assume",
    "inline_ptx",
    "num_programs",
    "print",
    "program_id",
    "range",
    "static_assert",
    "static_range",
]

N = TypeVar("N", bound=Number)


@builtin
def program_id(axis: int) -> Tile:
    """Position of this program in the launch grid along `axis` (0, 1 or 2); an `index`."""


@builtin
def num_programs(axis: int) -> Tile:
    """Size of the launch grid along `axis` (0, 1 or 2); an `index`."""


@builtin
def range(
    start: Number,
    stop: Number | None = None,
    step: Number = 1,
    *,
    stages: int | None = None,
    warp_specialize: bool | None = None,
    any_order: bool = False,
) -> Iterable[Tile]:
    """The range of a `for` loop that runs on the GPU; Python's `range` is the same without demands.

    The loop variable is an `index`, where a bound or the step is a `u64` one, too. A step that is
    no constant must be positive: the launch ends with an error where it is not. `stages` and
    `warp_specialize` are demands: they happen or the kernel does not compile. `any_order` is a
    permission: iterations may run in any order, so that sums may differ by rounding.
    """


@builtin
def static_range(start: int, stop: int | None = None, step: int = 1) -> Iterable[int]:
    """The range of a `for` loop that is unrolled at compile time; the variable is a constant."""


@builtin
def assume(
    x: N, multiple_of: int | None = None, min: int | None = None, max: int | None = None
) -> N:
    """States a fact about an integer scalar, which the compiler relies on; gives `x`.

    Of unsigned scalars it needs a `max` that the signed dtype of their bits has.
    """


@builtin
def static_assert(condition: object, message: str = "") -> None:
    """A compile-time check: a false constant condition is a compile error with `message`.

    It also says which tiles `tl.auto` may choose: those for which none is false.
    """


@builtin
def print(*values: object, sep: str = " ") -> None:
    """Prints strings and values from every program; tiles print one line per element.

    Python's `print` inside a kernel is the same; f-strings are understood.
    """


@builtin
def inline_ptx(
    text: str,
    constraints: str,
    inputs: Number | Sequence[Number],
    outputs: DType | Sequence[DType],
    pure: bool = True,
) -> Any:
    """PTX run once per element: `$0, $1 ...` name the outputs, then the inputs.

    `constraints`: LLVM's, one letter per value, outputs with `=` first ("=f,f"): h 16, r 32, l 64
    bits, f f32, d f64. `inputs`: up to sixteen tiles and scalars of any dtypes, which broadcast to
    one shape. `outputs`: the dtype of the one result or a tuple of up to eight. Text with side
    effects needs `pure=False`.
    """
