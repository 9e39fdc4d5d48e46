"""Inside `jax.shard_map`: along which axes of a mesh an array varies, as the installed JAX says it.

An array that is the same on all GPUs does not vary. What a kernel makes of one that varies does,
and a function with a gradient of its own gives each array's as that array varies: its operands are
made to vary alike in front of it, and JAX, which sees that, sums gradients of those that did not.
"""

# JAX is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax


def alike(*arrays: Any) -> list[Any]:
    """The arrays, each varying along every axis along which one of them does; None stays."""
    axes = axes_of(arrays)
    return [array if array is None else varied(array, axes) for array in arrays]


def axes_of(arrays: Iterable[Any]) -> frozenset[str]:
    """The axes along which one of the arrays varies, by name."""
    return frozenset().union(*(_axes(array) for array in arrays if array is not None))


def varied(array: Any, axes: frozenset[str]) -> Any:
    """The array, varying along these axes as well."""
    names = tuple(sorted(axes - _axes(array)))
    if not names:
        return array
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, names, to="varying")
    return jax.lax.pvary(array, names)


def _axes(array: Any) -> frozenset[str]:
    # JAX 0.10 has `manual_axis_type`, those before it `vma`.
    of = jax.typeof(array)
    found = getattr(of, "manual_axis_type", None)
    return getattr(of, "vma", frozenset()) if found is None else found.varying
