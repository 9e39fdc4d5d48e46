"""The program's place in the grid, loops, facts, checks, printing, inline PTX."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

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


@builtin
def program_id(axis: int) -> Any:
    """Position of this program in the launch grid along `axis` (0, 1 or 2); an `index`."""


@builtin
def num_programs(axis: int) -> Any:
    """Size of the launch grid along `axis` (0, 1 or 2); an `index`."""


@builtin
def range(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    stages: int | None = None,
    warp_specialize: bool | None = None,
    any_order: bool = False,
) -> Any:
    """The range of a `for` loop that runs on the GPU; Python's `range` is the same without demands.

    The loop variable is an `index`. A step that is no constant must be positive. `stages` and
    `warp_specialize` are demands: they happen or the kernel does not compile. `any_order` is a
    permission: iterations may run in any order, so that sums may differ by rounding.
    """


@builtin
def static_range(start: Any, stop: Any = None, step: Any = 1) -> Any:
    """The range of a `for` loop that is unrolled at compile time; the variable is a constant."""


@builtin
def assume(
    x: Any, multiple_of: int | None = None, min: int | None = None, max: int | None = None
) -> Any:
    """States a fact about an integer scalar, which the compiler relies on; gives `x`."""


@builtin
def static_assert(condition: Any, message: str = "") -> Any:
    """A compile-time check: a false constant condition is a compile error with `message`."""


@builtin
def print(*values: Any, sep: str = " ") -> Any:
    """Prints strings and values from every program; tiles print one line per element.

    Python's `print` inside a kernel is the same; f-strings are understood.
    """


@builtin
def inline_ptx(text: str, constraints: str, inputs: Any, outputs: Any, pure: bool = True) -> Any:
    """PTX run once per element: `$0, $1 ...` name the outputs, then the inputs.

    `constraints`: LLVM's, one letter per value, outputs with `=` first ("=f,f"): h 16, r 32, l 64
    bits, f f32, d f64. `inputs`: up to eight tiles and scalars of any dtypes, which broadcast to
    one shape. `outputs`: the dtype of the one result or a tuple of up to four. Text with side
    effects needs `pure=False`.
    """
