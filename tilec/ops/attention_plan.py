"""Checks the arguments of `attention` and its gradients, and plans what the kernels are given."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tilec.language as tl
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_MLIR, DType

DTYPES: tuple[DType, ...] = (tl.f16, tl.bf16)
MOST_ELEMENTS = 256
"""Of a head: with more, a query's sums take more registers than a thread has."""
ELEMENTS_STEP = 16
"""Tiles hold multiples of so many elements of a head: the depth of a matrix instruction of 16-bit
types (PTX ISA 9.0, "mma", "wgmma")."""
_AXES = "(batch, heads, length, elements of a head)"


@dataclass(frozen=True)
class Plan:
    """`out_shape`, `logs_shape`: of what comes out. `constants`, `numbers`: of all kernels."""

    out_shape: tuple[int, ...]
    logs_shape: tuple[int, ...]
    dtype: DType
    constants: Mapping[str, Any]
    numbers: Mapping[str, Any]


def plan_attention(views: Mapping[str, ArrayView], causal: Any, window: Any, scale: Any) -> Plan:
    """The plan for q, k and v, and whatever else is given of `out`, `logs`, `do`. ArgumentError
    names the argument that is wrong."""
    q, k, v = (_checked(views[name], name) for name in "qkv")
    for name in (name for name in ("k", "v", "out", "do") if name in views):
        if views[name].dtype != q.dtype:
            found = BY_MLIR[views[name].dtype]
            raise ArgumentError(
                f"argument {name!r}: expected dtype {BY_MLIR[q.dtype]} like 'q', found {found}"
            )
    batch, heads, length, elements = q.shape
    few = k.shape[1]
    if few == 0 or heads % few:
        raise ArgumentError(f"argument 'k': its {few} heads do not divide the {heads} of 'q'")
    _expect(k, "k", (batch, few, k.shape[2], elements))
    _expect(v, "v", (*k.shape[:3], v.shape[3]))
    out_shape = (batch, heads, length, v.shape[3])
    for name in (name for name in ("out", "do") if name in views):
        _expect(views[name], name, out_shape)
    if "logs" in views:
        _expect(views["logs"], "logs", out_shape[:3])
        if views["logs"].dtype != "f32":
            found = BY_MLIR[views["logs"].dtype]
            raise ArgumentError(f"argument 'logs': expected dtype f32, found {found}")
    widths = {"D": _tile_elements(elements), "DV": _tile_elements(v.shape[3])}
    numbers_ = {"scale": _scale(scale, elements), "window": _window(window, causal)}
    dtype = BY_MLIR[q.dtype]
    return Plan(out_shape, out_shape[:3], dtype, {**widths, "CAUSAL": causal}, numbers_)


def _checked(view: ArrayView, name: str) -> ArrayView:
    if BY_MLIR[view.dtype] not in DTYPES:
        expected = " or ".join(map(str, DTYPES))
        raise ArgumentError(
            f"argument {name!r}: expected dtype {expected}, found {BY_MLIR[view.dtype]}"
        )
    if len(view.shape) != len(_AXES.split(",")):
        raise ArgumentError(f"argument {name!r}: expected {_AXES}, found shape {view.shape}")
    if not 0 < view.shape[3] <= MOST_ELEMENTS:
        raise ArgumentError(
            f"argument {name!r}: expected 1 to {MOST_ELEMENTS} elements of a head, "
            f"found {view.shape[3]}"
        )
    return view


def _expect(view: ArrayView, name: str, shape: tuple[int, ...]) -> None:
    if view.shape != shape:
        raise ArgumentError(f"argument {name!r}: expected shape {shape}, found {view.shape}")


def _tile_elements(elements: int) -> int:
    return -(-elements // ELEMENTS_STEP) * ELEMENTS_STEP


def _scale(scale: Any, elements: int) -> float:
    if scale is None:
        return 1 / math.sqrt(elements)
    if not isinstance(scale, numbers.Real) or not 0 < float(scale) < math.inf:
        raise ArgumentError(f"argument 'scale': expected a positive number, found {scale!r}")
    return float(scale)


def _window(window: Any, causal: Any) -> int | None:
    if not isinstance(causal, bool):
        raise ArgumentError(f"argument 'causal': expected True or False, found {causal!r}")
    if window is None:
        return None
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ArgumentError(f"argument 'window': expected None or 1 or more, found {window!r}")
    if not causal:
        raise ArgumentError("argument 'window': it counts keys up to the query's: causal=True")
    return window
