"""The functions of `tilec.language.gpu`, thin over the ops of `gpu_tile`.

A stub named like an op is implemented by it: each operand and attribute takes the stub's parameter
of that name. What more a function does (defaults that depend on other arguments, result types that
no op infers) stands in a function of its own below.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import (
    BufferType,
    any_buffer_of,
    tile_of,
)
from tilec.dialects.op import TileOp
from tilec.dialects.types import element, shape, show
from tilec.frontend import tl_memory, tl_shape
from tilec.frontend.frame import Frame
from tilec.frontend.gpu_operands import attribute, refuse_unsigned
from tilec.frontend.gpu_ops import buffer_of_value, buffer_sizes, emit, enter
from tilec.frontend.tile_layouts import attribute_of, current_warps, lay_out, with_layout
from tilec.frontend.tl_tensor_memory import alloc_tensor_memory, tcgen05_mma
from tilec.frontend.values import (
    Array,
    Mistake,
    Resource,
    Role,
    Tile,
    check_shape,
    describe,
    is_number,
    is_runtime,
)
from tilec.hardware.any_layout import LAYOUTS
from tilec.hardware.shared_layout import SharedLayout
from tilec.language import gpu
from tilec.language.gpu import layouts
from tilec.terms.dtypes import BY_MLIR


def _by_op(op: type[TileOp], stub: Any) -> Callable[..., Any]:
    """The implementation of a stub whose parameters are the op's operands and attributes."""
    names = list(inspect.signature(stub.__tilec_builtin__).parameters)

    def implementation(frame: Frame, *arguments: Any) -> Any:
        return emit(frame, op, dict(zip(names, arguments, strict=True)))

    return implementation


def alloc(frame: Frame, shape: Any, dtype: Any, shared: Any, slots: Any) -> Resource:
    """`gpu.alloc`."""
    kind = tl_shape.as_dtype(dtype)
    refuse_unsigned(kind, "a buffer", "dtype")
    if not isinstance(shared, SharedLayout):
        raise Mistake(
            f"shared must be a shared-memory layout such as gpu.padded((64, 32)), found "
            f"{describe(shared)}",
            argument="shared",
        )
    sizes = buffer_sizes(shape, slots, shared, "shared")
    type_ = BufferType(sizes, frame.builder.element(kind), shared).type()
    return emit(frame, gpu_tile.AllocOp, {}, [type_])


def view(frame: Frame, src: Any, offsets: Any, shape: Any) -> Resource:
    """`gpu.view`."""
    sizes, source = check_shape(shape), buffer_of_value(src)
    type_ = replace(source, shape=sizes).type()
    given = {"src": src, "offsets": offsets}
    parts = offsets if isinstance(offsets, tuple) else (offsets,)
    for at, size, whole in zip(parts, sizes, source.shape, strict=False):
        if isinstance(at, int) and not 0 <= at <= whole - size:
            raise Mistake(
                f"the view {show(sizes)} at {at} reaches past the buffer {show(source.shape)}",
                argument="offsets",
            )
    return emit(frame, gpu_tile.ViewOp, given, [type_])


def buffer_load(frame: Frame, src: Any, layout: Any) -> Tile:
    """`gpu.buffer_load`."""
    found = buffer_of_value(src)
    held = attribute_of(frame.builder, layout, found.shape)
    type_ = ir.RankedTensorType.get(list(found.shape), found.element, held)
    return emit(frame, gpu_tile.BufferLoadOp, {"src": src}, [type_])


def buffer_store(frame: Frame, dst: Any, value: Any) -> None:
    """`gpu.buffer_store`: a number or a tile without a layout cannot say who writes what."""
    emit(frame, gpu_tile.BufferStoreOp, {"dst": dst, "value": value})


def convert_layout(frame: Frame, src: Any, layout: Any) -> Tile:
    """`gpu.convert_layout`."""
    enter(frame, "convert_layout")
    if not isinstance(src, Tile):
        raise Mistake(f"src must be a tile, found {describe(src)}", argument="src")
    held = attribute_of(frame.builder, layout, src.shape)
    if src.layout is None:
        return replace(src, value=lay_out(frame.builder, src.value, held), source=None)
    type_ = with_layout(src.value.type, held)
    bits = replace(src, dtype=BY_MLIR[src.dtype.in_ir])  # what they mean does not matter here
    return replace(emit(frame, gpu_tile.ConvertLayoutOp, {"src": bits}, [type_]), dtype=src.dtype)


def load(
    frame: Frame,
    array: Any,
    offsets: Any,
    shape: Any,
    layout: Any,
    dims: Any,
    padding: Any,
    cache: Any,
) -> Tile:
    """`gpu.load`."""
    enter(frame, "load")
    held = attribute_of(frame.builder, layout, check_shape(shape))
    loaded = tl_memory.load(frame, array, offsets, shape, dims, padding, cache)
    loaded.value.set_type(with_layout(loaded.value.type, held))
    return loaded


def full(frame: Frame, shape: Any, value: Any, dtype: Any, layout: Any) -> Tile:
    """`gpu.full`."""
    enter(frame, "full")
    made = tl_shape.full(frame, shape, value, dtype)
    held = attribute_of(frame.builder, layout, made.shape)
    return replace(made, value=lay_out(frame.builder, made.value, held))


def zeros(frame: Frame, shape: Any, dtype: Any, layout: Any) -> Tile:
    """`gpu.zeros`."""
    return full(frame, shape, 0, tl_shape.as_dtype(dtype), layout)


def cp_async(
    frame: Frame, src: Any, dst: Any, offsets: Any, mask: Any, dims: Any, bytes: Any, cache: Any
) -> None:
    """`gpu.cp_async`."""
    rank = len(buffer_of_value(dst, "dst").shape)
    given = {"src": src, "dst": dst, "mask": mask, "offsets": offsets, "bytes": bytes}
    given["dims"] = _last_dims(src, rank, "src") if dims is None else dims
    given["cache"] = ("cg" if bytes == 16 else "ca") if cache is None else cache
    emit(frame, gpu_tile.CpAsyncOp, given)


def _last_dims(array: Any, rank: int, argument: str) -> tuple[int, ...]:
    if not isinstance(array, Array):
        raise Mistake(
            f"{argument} must be an array parameter of the kernel, found {describe(array)}",
            argument=argument,
        )
    if rank > array.rank:
        raise Mistake(f"{rank} dimensions do not fit {describe(array)}")
    return tuple(range(array.rank - rank, array.rank))


def make_tensor_map(frame: Frame, array: Any, box: Any, dims: Any, swizzle: Any) -> Resource:
    """`gpu.make_tensor_map`."""
    sizes = check_shape(box, "box", "box")
    axes = _last_dims(array, len(sizes), "array") if dims is None else dims
    given = {"array": array, "box": sizes, "dims": axes, "swizzle": swizzle}
    return emit(frame, gpu_tile.MakeTensorMapOp, given)


def wgmma_wait(frame: Frame, acc: Any, pending: Any) -> Tile | Resource:
    """`gpu.wgmma_wait`."""
    if not isinstance(acc, Resource) or acc.kind != "pending":
        raise Mistake(
            f"acc must be a pending accumulator (gpu.wgmma), found {describe(acc)}",
            argument="acc",
        )
    type_ = tile_of(acc.value) if pending == 0 else acc.value.type
    return emit(frame, gpu_tile.WgmmaWaitOp, {"acc": acc, "pending": pending}, [type_])


def sync(frame: Frame, barrier: Any, warps: Any, mode: Any) -> None:
    """`gpu.sync`."""
    enter(frame, "sync")
    role = frame.builder.role_warps
    if barrier == 0 and role is not None:
        raise Mistake(
            "barrier 0 is the whole CTA's; a role has barriers 1 to 15 for itself",
            argument="barrier",
        )
    count = current_warps(frame.builder) if warps is None else warps
    total = frame.builder.num_warps
    if isinstance(count, int) and total is not None and count > total:
        raise Mistake(f"{count} warps of a kernel that has {total}", argument="warps")
    emit(frame, gpu_tile.SyncOp, {"barrier": barrier, "warps": count, "mode": mode})


def role(frame: Frame, name: Any, first_warp: Any, warps: Any, registers: Any) -> Role:
    """`gpu.role`: what its `with` builds the op from."""
    enter(frame, "role")
    given = {"name": name, "first_warp": first_warp, "warps": warps, "registers": registers}
    for field in gpu_tile.RoleOp.ATTRIBUTES:
        attribute(field, given[field.name])
    everyone = current_warps(frame.builder)
    if first_warp < 0 or warps < 1 or first_warp + warps > everyone:
        raise Mistake(
            f"warps {first_warp} to {first_warp + warps - 1} are not all in the kernel, which has "
            f"{everyone}",
            argument="warps",
        )
    return Role(given)


def _constant_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `gpu.layouts`, called at compile time."""

    def implementation(frame: Frame, *arguments: Any) -> Any:
        for name, value in zip(inspect.signature(function).parameters, arguments, strict=True):
            if is_runtime(value) or not _is_layout_argument(value):
                raise Mistake(
                    f"{name} must be a compile-time constant, found {describe(value)}",
                    argument=name,
                )
        try:
            return function(*arguments)
        except (ValueError, TypeError, AttributeError, IndexError) as error:
            raise Mistake(f"{function.__name__}: {error}") from None

    return implementation


def _is_layout_argument(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_layout_argument, value))
    known = isinstance(value, (str, *LAYOUTS)) or value in BY_MLIR.values()
    return value is None or known or is_number(value)


_WRITTEN: tuple[Callable[..., Any], ...] = (
    alloc,
    alloc_tensor_memory,
    view,
    buffer_load,
    buffer_store,
    convert_layout,
    load,
    full,
    zeros,
    cp_async,
    make_tensor_map,
    wgmma_wait,
    tcgen05_mma,
    sync,
    role,
)

OPS: Mapping[str, type[TileOp]] = {op.MNEMONIC: op for op in gpu_tile.Op.ALL}


def _builtins() -> dict[Any, Callable[..., Any]]:
    written = {function.__name__: function for function in _WRITTEN}
    found: dict[Any, Callable[..., Any]] = {}
    for name in gpu.__all__:
        stub = getattr(gpu, name)
        if name in layouts.__all__:
            found[stub] = _constant_function(stub)
        else:
            found[stub] = written.get(name) or _by_op(OPS[name], stub)
    return found


BUILTINS: Mapping[Any, Callable[..., Any]] = _builtins()

METHODS_OF: Mapping[str, Mapping[str, Any]] = {
    "buffer": {
        "slot": gpu.slot,
        "view": gpu.view,
        "permute": gpu.transpose_view,
        "load": gpu.buffer_load,
        "store": gpu.buffer_store,
    },
    "barrier": {
        "expect": gpu.barrier_expect,
        "arrive": gpu.barrier_arrive,
        "wait": gpu.barrier_wait,
    },
    "ring": {
        "acquire": gpu.ring_acquire,
        "wait": gpu.ring_wait,
        "slot": gpu.ring_slot,
        "announce": gpu.ring_announce,
        "publish": gpu.ring_publish,
        "release": gpu.ring_release,
    },
    "pending": {"wait": gpu.wgmma_wait},
    "tensor_map": {},
}
"""Methods of what the explicit level has: `x.f(...)` is the function with `x` in front."""


def properties_of(value: Resource) -> Mapping[str, Any]:
    """Gives `shape` and `dtype` of buffers and pending tiles, `slots` and `bytes` (of one) of
    buffers."""
    if value.kind == "buffer":
        found = any_buffer_of(value.value)
        dtype = BY_MLIR[str(found.element)]
        return {
            "shape": found.shape,
            "dtype": dtype,
            "slots": found.slots,
            "bytes": prod(found.slot().shape) * dtype.bits // 8,
        }
    if value.kind == "pending":
        tile = tile_of(value.value)
        return {"shape": shape(tile), "dtype": BY_MLIR[str(element(tile))]}
    return {}
