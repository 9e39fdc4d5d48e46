"""Checks the arguments of `matmul` and plans the launch: what does not change from call to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import FunctionType
from typing import Any

import tilec.language as tl
from tilec.executable.grid import GRID_LIMITS
from tilec.ops import matmul_kernel
from tilec.ops.batch_dimensions import Strides, broadcast_sizes, lead_strides, merge
from tilec.ops.dtype_names import dtype_of
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_MLIR, DType

INPUTS: tuple[DType, ...] = (tl.f64, tl.f32, tl.f16, tl.bf16, tl.f8e4m3, tl.f8e5m2, tl.i8)
OUTPUTS: tuple[DType, ...] = (*INPUTS, tl.i32)
ACTIVATIONS: Mapping[str, Callable[..., Any]] = {
    "relu": matmul_kernel.relu,
    "gelu": matmul_kernel.gelu,
    "gelu_tanh": matmul_kernel.gelu_tanh,
    "silu": matmul_kernel.silu,
}
VECTORS = {"bias": "N", "row_scale": "M", "column_scale": "N"}
"""Optional arguments that are vectors, and the size of the product they run along."""
KEPT = 512
"""Elements of k that tensor cores add up where sums of fp8 are to be kept in f32: with so many, an
H200's error is that of rounding the result to bf16 alone, 1.7e-3 of the norm, for k of 32768, too,
where without it is 5e-3; with 256 products took 12 % longer."""
MOST_MATRICES = GRID_LIMITS[2]
"""Of a batch: a grid's third dimension (CUDA C++ Programming Guide, "Compute Capabilities")."""


@dataclass(frozen=True)
class Options:
    """What a caller asks for beside arrays, as it was given."""

    activation: Any
    factor: bool
    out_dtype: Any
    acc_dtype: Any
    precision: str
    settled: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """How an argument is looked at: its shape and strides, in elements."""

    shape: tuple[int, ...]
    strides: Strides


@dataclass(frozen=True)
class Plan:
    """`m`, `n`, `k` and `batch` sizes of the product as launched (rows may have been merged).

    `views`: by argument. `out_shape`, `out_dtype`: of the result. `constants` of the kernel, but
    for tile sizes. `settled`: operands that no launch still under way writes.
    """

    m: int
    n: int
    k: int
    lead: tuple[int, ...]
    views: Mapping[str, View]
    out_shape: tuple[int, ...]
    out_dtype: DType
    dtype: DType
    constants: Mapping[str, Any]
    settled: tuple[str, ...] = ()

    @property
    def batch(self) -> int:
        """The number of matrices."""
        return prod(self.lead)


def settled_names(given: Any) -> tuple[str, ...]:
    """Lists the operands that a caller calls settled, in the order of the alphabet.

    ArgumentError for what is no operand.
    """
    names: Sequence[Any] = (given,) if isinstance(given, str) else given
    if not isinstance(given, (str, tuple, list)) or any(name not in ("a", "b") for name in names):
        raise ArgumentError(
            f"argument 'settled': expected 'a', 'b' or a tuple of them, found {given!r}"
        )
    return tuple(sorted(set(names)))


def make_plan(views: Mapping[str, ArrayView], options: Options) -> Plan:
    """The plan of a call; `views`: the described arguments that are there, `out` maybe.

    ArgumentError names the argument that is wrong, what was expected and what was found.
    """
    dtype = _input_dtype(views)
    parts = tuple(name for name in ("factor",) if options.factor) + tuple(
        name for name in (*VECTORS, "scale", "residual") if name in views
    )
    a, b = _matrix_of(views["a"], 0), _matrix_of(views["b"], 1)
    (m, k), (b_k, n) = a.shape[-2:], b.shape[-2:]
    if k != b_k:
        raise ArgumentError(
            f"argument 'b': expected {k} rows, as many as 'a' has columns, found shape "
            f"{views['b'].shape}"
        )
    sizes = _leading_sizes(views, a, b, m, n)
    activation = _activation(options.activation)
    out_dtype = _output_dtype(views, options, dtype, parts, activation)
    is_vector = (len(views["a"].shape) == 1, len(views["b"].shape) == 1)
    out_shape = (*sizes, *(() if is_vector[0] else (m,)), *(() if is_vector[1] else (n,)))
    if "out" in views:
        _check_output(views, out_shape)
    matrices, vectors = _operands(views, a, b, sizes, m, n, is_vector)
    rows, lead, found = _merged(sizes, m, n, k, matrices, vectors)
    if prod(lead) > MOST_MATRICES:
        raise ArgumentError(
            f"argument 'a': a batch of {prod(lead)} matrices; at most {MOST_MATRICES} at once"
        )
    constants = {
        "PARTS": parts,
        "ACTIVATION": activation,
        "ACC": _accumulator(options.acc_dtype, dtype),
        "PRECISION": "tf32" if _precision(options.precision, dtype) == "tf32" else "ieee",
        "KEPT": KEPT if options.precision == "f32" else 0,
    }
    made = (rows, n, k, lead, found, out_shape, out_dtype, dtype, constants)
    return Plan(*made, options.settled)


def _input_dtype(views: Mapping[str, ArrayView]) -> DType:
    for name in ("a", "b"):
        if BY_MLIR[views[name].dtype] not in INPUTS:
            known = ", ".join(map(str, INPUTS))
            raise ArgumentError(
                f"argument {name!r}: products of {views[name].dtype} are not supported; "
                f"supported: {known}"
            )
    a, b = (BY_MLIR[views[name].dtype] for name in ("a", "b"))
    if a != b and not (a.is_fp8 and b.is_fp8):
        raise ArgumentError(f"argument 'b': expected dtype {a} like 'a', found {b}")
    return a


def _matrix_of(view: ArrayView, axis: int) -> View:
    """Gives `view` at least two dimensions; a vector is a row (0) or a column (1)."""
    if len(view.shape) == 0:
        name = "ab"[axis]
        raise ArgumentError(f"argument {name!r}: expected a matrix or a vector, found a scalar")
    if len(view.shape) > 1:
        return View(view.shape, view.strides)
    size, stride = view.shape[0], view.strides[0]
    return View((1, size), (0, stride)) if axis == 0 else View((size, 1), (stride, 0))


def _leading_sizes(
    views: Mapping[str, ArrayView], a: View, b: View, m: int, n: int
) -> tuple[int, ...]:
    """Finds the common leading sizes of a and b; checks the sizes of the optional vectors against
    them."""
    sizes = broadcast_sizes({"a": a.shape[:-2], "b": b.shape[:-2]})
    for name, side in VECTORS.items():
        if name in views:
            shape, expected = views[name].shape, m if side == "M" else n
            if not shape or shape[-1] != expected:
                raise ArgumentError(
                    f"argument {name!r}: expected {expected} elements ({side} of the product) "
                    f"along the last dimension, found shape {shape}"
                )
            if len(shape) - 1 > len(sizes) or any(
                size not in (1, whole)
                for size, whole in zip(reversed(shape[:-1]), reversed(sizes), strict=False)
            ):
                raise ArgumentError(
                    f"argument {name!r}: leading dimensions {shape[:-1]} do not broadcast to those "
                    f"of the product, {sizes}"
                )
    if "scale" in views and prod(views["scale"].shape) != 1:
        raise ArgumentError(
            f"argument 'scale': expected a number or an array of one element, found shape "
            f"{views['scale'].shape}; see row_scale and column_scale"
        )
    return sizes


def _check_output(views: Mapping[str, ArrayView], shape: tuple[int, ...]) -> None:
    out = views["out"]
    if out.shape != shape:
        raise ArgumentError(f"argument 'out': expected shape {shape}, found {out.shape}")
    if not out.writable and out.framework != "jax":  # whose arrays all say so
        raise ArgumentError("argument 'out': the array is read-only")
    if any(size > 1 and stride == 0 for size, stride in zip(out.shape, out.strides, strict=True)):
        raise ArgumentError("argument 'out': two of its elements are the same memory (stride 0)")


def _operands(
    views: Mapping[str, ArrayView],
    a: View,
    b: View,
    sizes: tuple[int, ...],
    m: int,
    n: int,
    is_vector: tuple[bool, bool],
) -> tuple[dict[str, View], dict[str, View]]:
    """Matrices and vectors, each with all leading dimensions, broadcast ones of stride 0.

    An `out` that is still to be made is planned row-major.
    """
    lead = len(sizes)
    matrices = {"a": _spread(a, sizes, 2), "b": _spread(b, sizes, 2)}
    for name in ("out", "residual"):
        if name in views:
            matrices[name] = _product_shaped(name, views[name], sizes, m, n, is_vector)
    if "out" not in views:
        strides = [1]
        for size in reversed((*sizes, m, n)[1:]):
            strides.insert(0, strides[0] * max(size, 1))
        matrices["out"] = View((*sizes, m, n), tuple(strides))
    vectors = {
        name: _spread(View(views[name].shape, views[name].strides), sizes, 1)
        for name in VECTORS
        if name in views
    }
    assert all(len(view.shape) == lead + 2 for view in matrices.values())
    return matrices, vectors


def _spread(view: View, sizes: tuple[int, ...], own: int) -> View:
    strides = lead_strides(view, sizes, own)
    return View((*sizes, *view.shape[-own:]), (*strides, *view.strides[-own:]))


def _product_shaped(
    name: str,
    view: ArrayView,
    sizes: tuple[int, ...],
    m: int,
    n: int,
    is_vector: tuple[bool, bool],
) -> View:
    """Gives `out` or `residual` as matrices: dimensions that a vector operand took away come
    back."""
    shape, strides = list(view.shape), list(view.strides)
    if is_vector[1]:
        shape.append(1)
        strides.append(0)
    if is_vector[0]:
        shape.insert(len(shape) - 1, 1)
        strides.insert(len(strides) - 1, 0)
    full = (*sizes, m, n)
    shape = [1] * (len(full) - len(shape)) + shape
    strides = [0] * (len(full) - len(strides)) + strides
    if len(shape) > len(full) or any(
        size not in (1, whole) for size, whole in zip(shape, full, strict=True)
    ):
        raise ArgumentError(
            f"argument {name!r}: shape {view.shape} does not broadcast to the product's {full}"
        )
    return View(full, tuple(0 if s == 1 else t for s, t in zip(shape, strides, strict=True)))


def _merged(
    sizes: tuple[int, ...],
    m: int,
    n: int,
    k: int,
    matrices: Mapping[str, View],
    vectors: Mapping[str, View],
) -> tuple[int, tuple[int, ...], dict[str, View]]:
    """Merges leading dimensions into rows where b, and what runs along its columns, are the same
    for all of them; gives the rows, the leading sizes and the views."""
    lead = len(sizes)
    by_rows = {name: v for name, v in {**matrices, **vectors}.items() if _runs_along_rows(name)}
    others = {name: v for name, v in {**matrices, **vectors}.items() if name not in by_rows}
    columns = {"a": k, "b": n, "out": n, "residual": n}
    found: dict[str, View] = {}
    if all(not any(view.strides[:lead]) for view in others.values()):
        merged, strides = merge((*sizes, m), {x: v.strides[: lead + 1] for x, v in by_rows.items()})
        *front, rows = merged or (1,)
        for name, view in by_rows.items():
            steps = strides[name] if merged else (0,)
            own = (rows, columns[name]) if name in columns else (rows,)
            found[name] = View((*front, *own), (*steps, *view.strides[lead + 1 :]))
        fronts = dict.fromkeys(others, (0,) * len(front))
        outer = tuple(front)
    else:
        every = {**by_rows, **others}
        outer, fronts = merge(sizes, {x: v.strides[:lead] for x, v in every.items()})
        rows = m
        for name, view in by_rows.items():
            found[name] = View((*outer, *view.shape[lead:]), (*fronts[name], *view.strides[lead:]))
    for name, view in others.items():
        found[name] = View((*outer, *view.shape[lead:]), (*fronts[name], *view.strides[lead:]))
    for name in vectors:
        # One vector for the whole batch stays a vector: fewer arguments, and one cache line.
        if outer and not any(found[name].strides[:-1]):
            found[name] = View(found[name].shape[-1:], found[name].strides[-1:])
    return rows, outer, found


def _runs_along_rows(name: str) -> bool:
    return name in ("a", "out", "residual") or VECTORS.get(name) == "M"


def _activation(value: Any) -> Any:
    if value is None or isinstance(value, FunctionType) or hasattr(value, "__tilec_builtin__"):
        return value
    if isinstance(value, str) and value in ACTIVATIONS:
        return ACTIVATIONS[value]
    raise ArgumentError(
        f"argument 'activation': expected None, {', '.join(map(repr, ACTIVATIONS))} or a function "
        f"of the tile language, found {value!r}"
    )


def _output_dtype(
    views: Mapping[str, ArrayView],
    options: Options,
    dtype: DType,
    parts: Sequence[str],
    activation: Any,
) -> DType:
    """The result's dtype: asked for, or `out`'s, or the inputs'; i8 gives i32, or f32 with an
    epilogue, fp8 gives bf16."""
    wanted = None if options.out_dtype is None else dtype_of(options.out_dtype, "out_dtype")
    if "out" in views:
        found = BY_MLIR[views["out"].dtype]
        if wanted not in (None, found):
            raise ArgumentError(f"argument 'out': expected dtype {wanted}, found {found}")
        wanted = found
    if wanted is None:
        if dtype == tl.i8:
            return tl.f32 if parts or activation else tl.i32
        return tl.bf16 if dtype.is_fp8 else dtype
    if wanted not in OUTPUTS:
        known = ", ".join(map(str, OUTPUTS))
        raise ArgumentError(f"argument 'out_dtype': expected one of {known}, found {wanted}")
    return wanted


def _accumulator(wanted: Any, dtype: DType) -> DType | None:
    """The accumulator's dtype, None for the usual one."""
    if wanted is None:
        return None
    found = dtype_of(wanted, "acc_dtype")
    usual = matmul_kernel.accumulator_of(dtype)
    allowed = (usual, tl.f16) if dtype == tl.f16 or dtype.is_fp8 else (usual,)
    if found not in allowed:
        raise ArgumentError(
            f"argument 'acc_dtype': products of {dtype} are summed in "
            f"{' or '.join(map(str, allowed))}, found {found}"
        )
    return None if found == usual else found


def _precision(wanted: str, dtype: DType) -> str:
    if wanted not in ("ieee", "tf32", "f32"):
        raise ArgumentError(
            f"argument 'precision': expected 'ieee', 'tf32' or 'f32', found {wanted!r}"
        )
    if wanted == "tf32" and dtype != tl.f32:
        raise ArgumentError(f"argument 'precision': 'tf32' is for f32 inputs, found {dtype}")
    if wanted == "f32" and not dtype.is_fp8:
        raise ArgumentError(f"argument 'precision': 'f32' is for fp8 inputs, found {dtype}")
    return wanted
