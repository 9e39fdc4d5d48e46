"""Programs that move one tile by the copy engine, written in `gpu_tile`."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from mlir import ir
from tma_copies import TileCopy

from tilec.compile.compiler import compile_module
from tilec.dialects.context import make_context
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.passes.layouts.candidates import blocked_layout

NUM_WARPS = 4

_HEAD = """
!a = memref<{unknown}{dtype}, strided<[{strides}]>>
!d = memref<{sizes}x{dtype}, strided<[{dense}]>>
!t = tensor<{sizes}x{dtype}, #gpu_tile.layout<"{layout}">>
!b = !gpu_tile.buffer<tensor<{sizes}x{dtype}>, #gpu_tile.shared<"{shared}">>
!map = !gpu_tile.tensor_map
!bar = !gpu_tile.barrier
func.func @k(
    %a: !a {{tile.name = "a",
             tile.facts = {{align = 16 : i32, sizes = {whole}, strides = {divisors}}}}},
    %d: !d {{tile.name = "d"}}, {parameters}) attributes {{tile.kernel}} {{
  %zero = arith.constant 0 : index
  %s = "gpu_tile.alloc"() {{options = {{}}}} : () -> !b
  %map = "gpu_tile.make_tensor_map"(%a)
    {{box = {box}, dims = {dims}, swizzle = "{swizzle}"}} : (!a) -> !map
"""
_LOAD = """
  %slot = arith.constant 0 : i32
  %no = arith.constant false
  %full = "gpu_tile.barrier_init"()
    {{slots = 1 : i32, count = 1 : i32, options = {{}}}} : () -> !bar
  "gpu_tile.fence"() {{kind = "barrier_init"}} : () -> ()
  {sync}
  "gpu_tile.barrier_expect"(%full, %slot) {{bytes = {bytes} : i32}} : (!bar, i32) -> ()
  "gpu_tile.tma_load"(%map, %s, %full, %slot, {corner})
    {{cache = "{cache}"}} : (!map, !b, !bar, i32, {corner_types}) -> ()
  "gpu_tile.barrier_wait"(%full, %slot, %no) : (!bar, i32, i1) -> ()
  %t = "gpu_tile.buffer_load"(%s) : (!b) -> !t
  "tile.store"(%t, %d, {zeros}) {{dims = {place}, options = {{}}}} : (!t, !d, {index}) -> ()
  return
}}
"""
_STORE = """
  %t = "tile.load"(%d, {zeros})
    {{dims = {place}, padding = {padding} : {dtype}, options = {{}}}} : (!d, {index}) -> !t
  "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
  "gpu_tile.fence"() {{kind = "async_shared"}} : () -> ()
  {sync}
  "gpu_tile.tma_store"(%s, %map, {corner})
    {{combine = "{combine}"}} : (!b, !map, {corner_types}) -> ()
  "gpu_tile.tma_commit"() : () -> ()
  "gpu_tile.tma_wait"() {{pending = 0 : i32, read = false}} : () -> ()
  return
}}
"""


def text_of(copy: TileCopy) -> str:
    """Kernel @k(array, dense tile, coordinates as i32...)."""
    stores = copy.combine is not None
    rank, axes = len(copy.shape), range(copy.rank)
    text = _HEAD + (_STORE if stores else _LOAD)
    return text.format(
        dtype=copy.dtype,
        unknown="?x" * copy.rank,
        sizes="x".join(map(str, copy.shape)),
        strides=", ".join("1" if d == copy.row else "?" for d in axes),
        dense=", ".join(str(prod(copy.shape[d + 1 :])) for d in range(rank)),
        layout=blocked_layout(copy.shape, rank - 1, copy.unit, 32 * NUM_WARPS),
        shared=copy.shared_layout(),
        whole=_array(copy.unit if stores and d == copy.row else 1 for d in axes),
        divisors=_array(1 if d == copy.row else copy.unit for d in axes),
        parameters=", ".join(f"%c{d}: i32" for d in axes),
        box=_array(copy.box),
        dims=_array(copy.dims),
        swizzle=f"{copy.swizzle}B" if copy.swizzle else "none",
        bytes=prod(copy.shape) * copy.item,
        corner=", ".join(f"%c{d}" for d in axes),
        corner_types=", ".join("i32" for _ in axes),
        cache=copy.cache,
        combine=copy.combine,
        zeros=", ".join(["%zero"] * rank),
        index=", ".join(["index"] * rank),
        place=_array(range(rank)),
        padding="0.0" if copy.dtype[0] in "fb" else "0",
        sync='"gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()',
    )


def _array(numbers: Iterable[int]) -> str:
    return f"array<i32: {', '.join(map(str, numbers))}>"


def compile_copy(copy: TileCopy, target: str = "sm_90a") -> CompiledKernel:
    """The kernel; its launch takes the array, a dense tile and the coordinates."""
    return compile_text(text_of(copy), target)


def compile_text(text: str, target: str) -> CompiledKernel:
    """The kernel of a text."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return compile_module(module, find_target(target), num_warps=NUM_WARPS)
