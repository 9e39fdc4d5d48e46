"""Products whose operands have a scale per block of k: mx and nv formats, for `matmul`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import tilec.language as tl
from tilec.call.device_target import target_of
from tilec.call.jit import Kernel
from tilec.hardware.target import Feature
from tilec.messages.tracebacks import short_traceback
from tilec.ops import scaled_kernel
from tilec.ops.dtype_names import dtype_of
from tilec.ops.multiply_plan import ACTIVATIONS, OUTPUTS, VECTORS, Options
from tilec.ops.new_arrays import new_array
from tilec.ops.product_launch import check_overlap
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import located
from tilec.terms.dtypes import BY_MLIR, DType

INPUTS = (tl.f8e4m3, tl.f8e5m2, tl.f6e2m3, tl.f6e3m2, tl.f4e2m1x2, tl.f16, tl.bf16)
BLOCKS: Mapping[DType, int] = {tl.f8e8m0: 32, tl.i8: 32, tl.f8e4m3: 16}
"""Numbers that share a scale, by the scale's dtype: mx (OCP Microscaling Formats v1.0), nv."""
PIECE = (128, 4)
"""Rows and blocks whose scales lie together in arranged ones."""
SMALL_TILES = {"BM": 64, "BN": 64, "BK": 64}
"""Where scales are multiplied out in registers."""
FRAGMENT_TILES = {"BM": 128, "BN": 128, "BK": 128}
"""Where warps multiply fragments: their sums take registers, and 99 KiB are for the ring."""
ORDER = ("a", "a_scale", "b", "b_scale", "out", "bias", "row_scale", "column_scale", "scale")


def multiply_scaled(
    values: Mapping[str, Any], options: Options, factor: float, where: Any, stream: int | None
) -> Any:
    """The product of `values`, among them scales of blocks. ArgumentError names what is wrong."""
    views = {name: located(describe(value, name, stream)) for name, value in values.items()}
    dtypes = {name: _dtype(views[name], name, INPUTS) for name in ("a", "b")}
    m, n, k = _sizes(views, dtypes)
    sides = tuple(side for side in ("a", "b") if f"{side}_scale" in views)
    block, arranged = _check_scales(views, sides, (m, n, k))
    given = dict(values)
    if "out" not in views:
        wanted = tl.bf16 if options.out_dtype is None else dtype_of(options.out_dtype, "out_dtype")
        given["out"] = new_array(values["a"], views["a"], (m, n), wanted)
        views["out"] = located(describe(given["out"], "out", stream))
    _dtype(views["out"], "out", OUTPUTS)
    parts = _check_epilogue(views, options, m, n)
    if 0 in (m, n):
        return given["out"]
    check_overlap(views)
    device = device_of(list(views.items()), find_device(where) if isinstance(where, str) else where)
    target = target_of(device)
    by_warps = target.supports(Feature.MMA_SYNC_BLOCK_SCALE)
    native = (by_warps or target.supports(Feature.TCGEN05)) and _is_native(dtypes, block)
    if native and not arranged:
        for side in sides:
            name = f"{side}_scale"
            given[name] = _arranged(values[name], views[name], side == "b", device, stream)
    plain = not parts and options.activation is None
    tiles = FRAGMENT_TILES if by_warps else _tiles(n if plain else 0, dtypes)
    if not native and not arranged:
        tiles = SMALL_TILES
    activation = options.activation
    if isinstance(activation, str):
        activation = ACTIVATIONS[activation]
    # Eight warps: with an epilogue the rows of four would fill their registers.
    found: Any = vars(scaled_kernel)["scaled_product"]  # parameters without types are as given
    kernel = _kernel_on(found, device, 8 if native else None)
    kernel(
        *(given.get(name, 0) for name in ORDER),
        factor,
        given.get("residual", 0),
        **tiles,
        BLOCK=block,
        SIDES=sides,
        ARRANGED=arranged or native,
        PARTS=parts,
        ACTIVATION=activation,
        stream=stream,
    )
    return given["out"]


@short_traceback
def arrange_scales(scales: Any, *, columns: bool = False, device: Any = None) -> Any:
    """Scales in the order in which tensor cores read them: (rows / 128, blocks / 4, 2, 256).

    `scales`: (rows, blocks), or (blocks, columns) where `columns`, of f8e8m0, i8 or f8e4m3. What is
    made once, as of weights, `matmul` need not make at every call. (cuBLAS, "1D block scaling
    factors"; in a kernel `tl.block_scales` reads it.)
    """
    view = located(describe(scales, "scales"))
    _dtype(view, "scales", BLOCKS)
    if len(view.shape) != 2:
        raise ArgumentError(f"argument 'scales': expected two dimensions, found {view.shape}")
    where = find_device(device) if isinstance(device, str) else device
    found = device_of([("scales", view)], where)
    return _arranged(scales, view, columns, found, None)


def _arranged(
    scales: Any, view: ArrayView, transposed: bool, device: Any, stream: int | None
) -> Any:
    rows, blocks = reversed(view.shape) if transposed else view.shape
    shape = (-(-rows // PIECE[0]), -(-blocks // PIECE[1]), 2, 256)
    made = new_array(scales, view, shape, BY_MLIR[view.dtype])
    if 0 not in shape:
        kernel = _kernel_on(scaled_kernel.arrange, device)
        kernel(scales, made, TRANSPOSED=transposed, stream=stream)
    return made


@cache
def _kernel_on(kernel: Kernel[...], device: Any, num_warps: int | None = None) -> Kernel[...]:
    return kernel.demanding(num_warps=num_warps).on(device)


def _dtype(view: ArrayView, name: str, known: Any) -> DType:
    found = BY_MLIR[view.dtype]
    if found not in known:
        expected = ", ".join(map(str, known))
        raise ArgumentError(f"argument {name!r}: expected one of {expected}, found {found}")
    return found


def _sizes(views: Mapping[str, ArrayView], dtypes: Mapping[str, DType]) -> tuple[int, int, int]:
    for name in ("a", "b"):
        if len(views[name].shape) != 2:
            raise ArgumentError(
                f"argument {name!r}: products with scales are of matrices, found shape "
                f"{views[name].shape}"
            )
    (m, left), (right, n) = views["a"].shape, views["b"].shape
    k, depth = (size * (2 if dtypes[x].is_pair else 1) for size, x in ((left, "a"), (right, "b")))
    if k != depth:
        raise ArgumentError(
            f"argument 'b': expected {k} numbers a column, as many as 'a' has in a row, found "
            f"{depth}"
        )
    return m, n, k


def _check_scales(
    views: Mapping[str, ArrayView], sides: tuple[str, ...], sizes: tuple[int, int, int]
) -> tuple[int, bool]:
    """Numbers that share a scale, and whether the scales are arranged."""
    m, n, k = sizes
    kinds = {_dtype(views[f"{side}_scale"], f"{side}_scale", BLOCKS) for side in sides}
    found = {BLOCKS[kind] for kind in kinds}
    if len(found) > 1:
        raise ArgumentError("argument 'b_scale': expected scales like 'a_scale', found others")
    (block,) = found
    blocks, ranks = -(-k // block), {len(views[f"{side}_scale"].shape) for side in sides}
    arranged = ranks == {4}
    for side, rows in (("a", m), ("b", n)):
        if side not in sides:
            continue
        shape = views[f"{side}_scale"].shape
        plain = (rows, blocks) if side == "a" else (blocks, rows)
        pieces = (-(-rows // PIECE[0]), -(-blocks // PIECE[1]), 2, 256)
        if shape != (pieces if arranged else plain):
            raise ArgumentError(
                f"argument '{side}_scale': expected shape {plain}, or both arranged, "
                f"{pieces}, found {shape}"
            )
    return block, arranged


def _check_epilogue(
    views: Mapping[str, ArrayView], options: Options, m: int, n: int
) -> tuple[str, ...]:
    """The parts of the epilogue that are there."""
    expected = {name: (n if axis == "N" else m,) for name, axis in VECTORS.items()}
    expected |= {"residual": (m, n), "out": (m, n)}
    for name, shape in expected.items():
        if name in views and views[name].shape != shape:
            raise ArgumentError(
                f"argument {name!r}: expected shape {shape}, found {views[name].shape}"
            )
    if "scale" in views and views["scale"].shape not in ((), (1,)):
        raise ArgumentError("argument 'scale': expected a number or an array of one element")
    if isinstance(options.activation, str) and options.activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ArgumentError(
            f"argument 'activation': expected one of {known}, found {options.activation!r}"
        )
    names = (*VECTORS, "scale", "residual")
    factor = ("factor",) if options.factor and "scale" not in views else ()
    return (*factor, *(name for name in names if name in views))


def _is_native(dtypes: Mapping[str, DType], block: int) -> bool:
    """Whether an instruction multiplies these with scales (multiply-out)."""
    narrow = all(dtype.is_narrow for dtype in dtypes.values())
    return _are_pairs(dtypes) or (block == BLOCKS[tl.f8e8m0] and narrow)


def _are_pairs(dtypes: Mapping[str, DType]) -> bool:
    return all(dtype.is_pair for dtype in dtypes.values())


def _tiles(n: int, dtypes: Mapping[str, DType]) -> dict[str, int]:
    """Tiles with rows of 128 bytes. `n`: columns, 0 where an epilogue needs registers as well."""
    direct = _are_pairs(dtypes) or all(dtype.is_fp8 for dtype in dtypes.values())
    wide = n > 128 and direct  # numbers that are widened take registers
    return {"BM": 128, "BN": 256 if wide else 128, "BK": 256 if _are_pairs(dtypes) else 128}
