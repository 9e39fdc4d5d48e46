"""Checks the arguments of `attention` and its gradients, and plans what the kernels are given."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import tilec.language as tl
from tilec.ops.attention_options import Options
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_MLIR, DType

DTYPES: tuple[DType, ...] = (tl.f16, tl.bf16)
NARROW: tuple[DType, ...] = (tl.f8e4m3, tl.f8e5m2)
OUT_DTYPES: tuple[DType, ...] = (tl.f16, tl.bf16, tl.f32)
"""Of results of fp8."""
MOST_ELEMENTS = 256
"""Of a head: with more, a query's sums take more registers than a thread has."""
ELEMENTS_STEP = 16
"""Tiles hold multiples of so many elements of a head: the depth of a matrix instruction of 16-bit
types (PTX ISA 9.0, "mma", "wgmma")."""
NARROW_STEP = 32
"""The same of 8-bit types."""
PACKED, PAGED = "starts", "table"
"""The array whose presence says that sequences are packed, that keys lie in pages."""
_AXES = {
    "": "(batch, heads, length, elements of a head)",
    PACKED: "(tokens, heads, elements of a head)",
    PAGED: "(pages, keys of one, heads, elements of a head)",
}
_INDEX = ("i32",)


@dataclass(frozen=True)
class Shapes:
    """The sizes of a call. `batch`: of sequences; `length`, `keys`: of all tokens where packed, of
    all pages of one sequence where paged."""

    batch: int
    heads: int
    few: int
    length: int
    keys: int
    elements: int
    others: int
    page: int | None


@dataclass(frozen=True)
class Plan:
    """`out_shape`, `logs_shape`: of what comes out. `constants`, `numbers`: of all kernels.
    `longest`: the most queries, and keys, of a packed sequence. `scratch`: the most bytes beside
    the results that gradients take, None where nobody says."""

    shapes: Shapes
    out_shape: tuple[int, ...]
    logs_shape: tuple[int, ...]
    dtype: DType
    constants: Mapping[str, Any]
    numbers: Mapping[str, Any]
    longest: tuple[int, int]
    scratch: int | None
    decodes: bool


def plan_attention(views: Mapping[str, ArrayView], options: Options) -> Plan:
    """The plan for q, k and v, and whatever else is given of `out`, `logs`, `do`, `sinks`,
    `starts`, `key_starts`, `lengths`, `table`. ArgumentError names the argument that is wrong."""
    _check_together(views, options)
    sizes = _shapes(views)
    dtype = _dtype(views)
    lead = (
        (sizes.length, sizes.heads) if PACKED in views else (sizes.batch, sizes.heads, sizes.length)
    )
    out_shape = (*lead, sizes.others)
    logs_shape = lead[::-1] if PACKED in views else lead
    for name in (name for name in ("out", "do") if name in views):
        _expect(views[name], name, out_shape)
    _check_numbers(views, "logs", logs_shape, ("f32",))
    _check_numbers(views, "sinks", (sizes.heads,), ("f32", "f16", "bf16"))
    _check_tables(views, sizes)
    step = NARROW_STEP if views["q"].dtype in {x.mlir for x in NARROW} else ELEMENTS_STEP
    constants = {
        "D": _tile_elements(sizes.elements, step),
        "DV": _tile_elements(sizes.others, step),
        "CAUSAL": _flag(options.causal),
        "SHARED": sizes.heads // sizes.few,
    }
    numbers_ = {
        "scale": _positive("scale", options.scale, 1 / math.sqrt(sizes.elements)),
        "window": _window(options.window, options.causal),
        "cap": _positive("cap", options.cap, None),
        **_dropout(options.dropout, options.seed),
    }
    scratch = None if options.scratch is None else _whole("scratch", options.scratch)
    longest = _longest("longest", options.longest, sizes.length)
    usual = longest if "key_starts" not in views else sizes.keys
    longest_key = _longest("longest_key", options.longest_key, usual)
    one = PACKED not in views and sizes.length == 1 and numbers_["dropout"] is None
    decodes = one and (not options.causal or "lengths" in views)
    most = longest, longest_key
    return Plan(sizes, out_shape, logs_shape, dtype, constants, numbers_, most, scratch, decodes)


def _check_together(views: Mapping[str, ArrayView], options: Options) -> None:
    """Refuses arguments without those that give them a meaning."""
    for name, wanted in (("key_starts", PACKED), (PAGED, "lengths")):
        if name in views and wanted not in views:
            raise ArgumentError(f"argument {name!r}: it needs {wanted!r}, too")
    for name in ("lengths", PAGED):
        if name in views and PACKED in views:
            raise ArgumentError(f"argument {name!r}: not of sequences that 'starts' packs")
        if name in views and options.dropout:
            raise ArgumentError(f"argument 'dropout': not with {name!r}, which is for caches")
    for name in ("longest", "longest_key"):
        wanted = PACKED if name == "longest" else "key_starts"
        if getattr(options, name) is not None and wanted not in views:
            raise ArgumentError(f"argument {name!r}: it needs {wanted!r}, too")


def _shapes(views: Mapping[str, ArrayView]) -> Shapes:
    """The sizes that q, k and v have, which fit each other."""
    layout = PACKED if PACKED in views else ""
    q = _sized(views["q"], "q", layout)
    k, v = (_sized(views[n], n, PAGED if PAGED in views else layout) for n in "kv")
    if layout == PACKED:
        batch, (length, heads, elements), (keys, few, _), page = 0, q.shape, k.shape, None
        _expect(k, "k", (keys, few, elements))
    else:
        batch, heads, length, elements = q.shape
        if PAGED in views:
            page, few = k.shape[1:3]
            keys = page * (views[PAGED].shape[-1] if views[PAGED].shape else 0)
            _expect(k, "k", (k.shape[0], page, few, elements))
        else:
            page, few, keys = None, k.shape[1], k.shape[2]
            _expect(k, "k", (batch, few, keys, elements))
    if few == 0 or heads % few:
        raise ArgumentError(f"argument 'k': its {few} heads do not divide the {heads} of 'q'")
    _expect(v, "v", (*k.shape[:-1], v.shape[-1]))
    return Shapes(batch, heads, few, length, keys, elements, v.shape[-1], page)


def _sized(view: ArrayView, name: str, layout: str) -> ArrayView:
    axes = _AXES[layout]
    if len(view.shape) != len(axes.split(",")):
        raise ArgumentError(f"argument {name!r}: expected {axes}, found shape {view.shape}")
    if not 0 < view.shape[-1] <= MOST_ELEMENTS:
        raise ArgumentError(
            f"argument {name!r}: expected 1 to {MOST_ELEMENTS} elements of a head, "
            f"found {view.shape[-1]}"
        )
    return view


def _dtype(views: Mapping[str, ArrayView]) -> DType:
    """The result's dtype; q, k and v have one, `out` and `do` it, too, where it is not fp8."""
    q = BY_MLIR[views["q"].dtype]
    gradients = "do" in views
    if q not in (DTYPES if gradients else DTYPES + NARROW):
        expected = "f16 or bf16" + ("" if gradients else ", or fp8")
        raise ArgumentError(f"argument 'q': expected dtype {expected}, found {q}")
    same = ("k", "v") if q in NARROW else ("k", "v", "out", "do")
    for name in (name for name in same if name in views):
        if views[name].dtype != q.mlir:
            found = BY_MLIR[views[name].dtype]
            raise ArgumentError(f"argument {name!r}: expected dtype {q} like 'q', found {found}")
    if q not in NARROW or "out" not in views:
        return tl.bf16 if q in NARROW else q
    out = BY_MLIR[views["out"].dtype]
    if out not in OUT_DTYPES:
        expected = " or ".join(map(str, OUT_DTYPES))
        raise ArgumentError(f"argument 'out': expected dtype {expected}, found {out}")
    return out


def _check_tables(views: Mapping[str, ArrayView], sizes: Shapes) -> None:
    if PACKED in views:
        starts = views[PACKED]
        if len(starts.shape) != 1 or starts.shape[0] < 1:
            raise ArgumentError(
                f"argument 'starts': expected (sequences + 1,), found shape {starts.shape}"
            )
        _check_numbers(views, "starts", starts.shape, _INDEX)
        _check_numbers(views, "key_starts", starts.shape, _INDEX)
    _check_numbers(views, "lengths", (sizes.batch,), _INDEX)
    if PAGED in views:
        if len(views[PAGED].shape) != 2:
            raise ArgumentError(
                f"argument 'table': expected (batch, pages of one), found shape "
                f"{views[PAGED].shape}"
            )
        _check_numbers(views, PAGED, (sizes.batch, views[PAGED].shape[1]), _INDEX)


def _check_numbers(
    views: Mapping[str, ArrayView], name: str, shape: tuple[int, ...], dtypes: tuple[str, ...]
) -> None:
    """Checks an array of numbers that are no elements of heads, where it is given."""
    if name not in views:
        return
    _expect(views[name], name, shape)
    if views[name].dtype not in dtypes:
        expected = " or ".join(str(BY_MLIR[x]) for x in dtypes)
        found = BY_MLIR[views[name].dtype]
        raise ArgumentError(f"argument {name!r}: expected dtype {expected}, found {found}")


def _expect(view: ArrayView, name: str, shape: tuple[int, ...]) -> None:
    if view.shape != shape:
        raise ArgumentError(f"argument {name!r}: expected shape {shape}, found {view.shape}")


def _tile_elements(elements: int, step: int) -> int:
    return -(-elements // step) * step


def _positive(name: str, value: Any, usual: float | None) -> float | None:
    if value is None:
        return usual
    if not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
        raise ArgumentError(f"argument {name!r}: expected a positive number, found {value!r}")
    return float(value)


def _flag(causal: Any) -> bool:
    if not isinstance(causal, bool):
        raise ArgumentError(f"argument 'causal': expected True or False, found {causal!r}")
    return causal


def _window(window: Any, causal: Any) -> int | None:
    if window is None:
        return None
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ArgumentError(f"argument 'window': expected None or 1 or more, found {window!r}")
    if not causal:
        raise ArgumentError("argument 'window': it counts keys up to the query's: causal=True")
    return window


def _dropout(dropout: Any, seed: Any) -> dict[str, Any]:
    """`dropout` and `seed` of the kernels, None both where nothing is dropped."""
    if (
        isinstance(dropout, bool)
        or not isinstance(dropout, numbers.Real)
        or not 0 <= float(dropout) < 1
    ):
        raise ArgumentError(
            f"argument 'dropout': expected a number from 0 to less than 1, found {dropout!r}"
        )
    if dropout and (isinstance(seed, bool) or not isinstance(seed, numbers.Integral)):
        raise ArgumentError(
            f"argument 'seed': dropout needs a whole number, the same for the same mask, found "
            f"{seed!r}"
        )
    return (
        {"dropout": float(dropout), "seed": int(seed)}
        if dropout
        else dict.fromkeys(("dropout", "seed"))
    )


def _longest(name: str, value: Any, usual: int) -> int:
    return usual if value is None else _whole(name, value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ArgumentError(f"argument {name!r}: expected 0 or more, found {value!r}")
    return int(value)
