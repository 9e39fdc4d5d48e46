"""Reductions and scans. `axis` counts from 0, negative from the end; None reduces everything."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "associative_scan",
    "cumprod",
    "cumsum",
    "max",
    "min",
    "prod",
    "reduce",
    "sum",
]


@builtin
def reduce(x: Any, axis: Any, combine: Any) -> Any:
    """Combines all elements along `axis` in any order by an associative function.

    `x` is a tile or a tuple of n tiles of one shape; `combine` takes 2n scalars (the n of the left,
    then the n of the right) and returns n. It is a plain function or a lambda of scalars and
    constants: arithmetic, comparisons, `tl.where`, math; no loops, no memory.
    """


@builtin
def associative_scan(x: Any, axis: int, combine: Any, reverse: bool = False) -> Any:
    """Inclusive scan along `axis`, from its end where `reverse`; `x` and `combine` as `reduce`."""


@builtin
def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Sum along `axis` in the dtype of `x`; i1, i8 and i16 are summed as i32."""


@builtin
def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Product along `axis`; dtypes as `sum`."""


@builtin
def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Greatest element along `axis`; NaN if there is one."""


@builtin
def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Smallest element along `axis`; NaN if there is one."""


@builtin
def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether any element along `axis` is non-zero (i1)."""


@builtin
def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements along `axis` are non-zero (i1)."""


@builtin
def argmax(x: Any, axis: int, keepdims: bool = False) -> Any:
    """Position (i32) of the greatest element along `axis`, the first of equals; NaN is greatest."""


@builtin
def argmin(x: Any, axis: int, keepdims: bool = False) -> Any:
    """Position (i32) of the smallest element along `axis`, the first of equals; NaN is smallest."""


@builtin
def cumsum(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running sum along `axis`, each element included; dtypes as `sum`."""


@builtin
def cumprod(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running product along `axis`, each element included; dtypes as `sum`."""
