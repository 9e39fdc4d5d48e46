"""Hand-written `gpu_tile` programs whose dots are warpgroup instructions, as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import ml_dtypes
import numpy as np
from emulated import array_type, tile_type

from tilec.hardware.fragments import accumulator_layout, lhs_fragments, warpgroup_grid
from tilec.hardware.layout import Layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.shared_layout import SharedLayout
from tilec.passes.layouts.candidates import blocked_layout

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
}
SWIZZLES = {128: (3, 4, 3), 64: (2, 4, 3), 32: (1, 4, 3)}


def panels(sizes: tuple[int, int], contiguous: int, span: int, element_bytes: int) -> SharedLayout:
    """A buffer as matrix instructions read it, written out from the ISA's canonical layouts.

    `span`: bytes of the swizzle; 0: core matrices of 8 rows of 16 bytes, one behind the other.
    """
    other = 1 - contiguous
    if span:
        width = span // element_bytes
        count = sizes[contiguous] // width
        along = ((width, 1),) if count == 1 else ((width, 1), (count, sizes[other] * width))
        across = ((sizes[other], width),)
    else:
        width = 16 // element_bytes
        along = ((width, 1), (sizes[contiguous] // width, 8 * width))
        across = ((8, width), (sizes[other] // 8, 8 * sizes[contiguous]))
    dims = (along, across) if contiguous == 0 else (across, along)
    return SharedLayout(dims, SWIZZLES.get(span))


def buffer_type(sizes: tuple[int, ...], element: str, layout: SharedLayout) -> str:
    """`!gpu_tile.buffer<...>`."""
    tile = "x".join([*map(str, sizes), element])
    return f'!gpu_tile.buffer<tensor<{tile}>, #gpu_tile.shared<"{layout}">>'


def load(name: str, array: str, type_: str, rank2: str, element: str, at: str = "%c0, %c0") -> str:
    """`tile.load` of a two-dimensional tile."""
    zero = "0 : i8" if element == "i8" else f"0.0 : {element}"
    return (
        f'{name} = "tile.load"({array}, {at}) {{dims = array<i32: 0, 1>, padding = {zero}, '
        f"options = {{}}}} : ({rank2}, index, index) -> {type_}"
    )


def store(name: str, array: str, type_: str, rank2: str) -> str:
    """`tile.store` of a two-dimensional tile."""
    return (
        f'"tile.store"({name}, {array}, %c0, %c0) {{dims = array<i32: 0, 1>, options = {{}}}} '
        f": ({type_}, {rank2}, index, index) -> ()"
    )


@dataclass(frozen=True)
class Product:
    """c = a @ b + c0 of an (m, k) by a (k, n) tile by the instruction `name`.

    `lhs`, `rhs`: the contiguous dimension of the buffer ("k" or "mn") and its swizzle in bytes; lhs
    None keeps it in registers. `steps`: a loop over that many tiles along k, with up to `in_flight`
    unfinished groups; 0: no loop. `zero`: starts from nothing.
    """

    name: str
    m: int
    n: int
    k: int
    warps: int = 4
    lhs: tuple[str, int] | None = ("k", 128)
    rhs: tuple[str, int] = ("k", 128)
    steps: int = 0
    in_flight: int = 1
    zero: bool = False

    @cached_property
    def row(self) -> MmaInstruction:
        """The instruction."""
        return find_instruction(self.name)

    @property
    def acc_layout(self) -> Layout:
        """The accumulator's layout."""
        grid = warpgroup_grid((self.m, self.n), self.warps)
        assert grid is not None
        return accumulator_layout(self.row, (self.m, self.n), *grid)

    def text(self) -> str:
        """The kernel: @k(a, b, c)."""
        row, slots = self.row, max(self.steps, 1)
        depth = self.k * slots
        a, b, c = (array_type(2, e) for e in (row.lhs, row.rhs, row.acc))
        acc = tile_type((self.m, self.n), row.acc, self.acc_layout)
        zero = "0" if row.acc == "i32" else "0.0"
        start = (
            f"%start = arith.constant dense<{zero}> : {acc}"
            if self.zero
            else load("%start", "%c", acc, c, row.acc).replace("0.0 : i32", "0 : i32")
        )
        pending = f"!gpu_tile.pending<{acc}>"
        return f"""
func.func @k(%a: {a}, %b: {b}, %c: {c}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index   %i0 = arith.constant 0 : i32   %i1 = arith.constant 1 : i32
  %steps = arith.constant {slots} : i32
  {self._fill("lhs", a, row.lhs, (self.m, depth))}
  {self._fill("rhs", b, row.rhs, (depth, self.n))}
  "gpu_tile.fence"() {{kind = "async_shared"}} : () -> ()
  "gpu_tile.sync"() {{barrier = 0 : i32, warps = {self.warps} : i32, mode = "sync"}} : () -> ()
  {start}
  %p = "gpu_tile.wgmma_fence"(%start) : ({acc}) -> {pending}
  {self._multiply(pending)}
  %done = "gpu_tile.wgmma_wait"(%last) {{pending = 0 : i32}} : ({pending}) -> {acc}
  {store("%done", "%c", acc, c)}
  return
}}"""

    def _sizes(self, side: str) -> tuple[int, int]:
        return (self.m, self.k) if side == "lhs" else (self.k, self.n)

    def _fill(self, side: str, array: str, element: str, whole: tuple[int, int]) -> str:
        """Loads an operand, slot by slot, into its buffer (or into fragments)."""
        name = "%a" if side == "lhs" else "%b"
        sizes, k_dim = self._sizes(side), 1 if side == "lhs" else 0
        if side == "lhs" and self.lhs is None:
            assert not self.steps
            layout = lhs_fragments(self.row, self.acc_layout, 2, self.k)
            return load("%lhs", name, tile_type(sizes, element, layout), array, element)
        layout = blocked_layout(sizes, 1, 1, 32 * self.warps, narrow=False)
        tile = tile_type(sizes, element, layout)
        ring, slot = self.ring(side), self.buffer(side)
        lines = [f'%{side}s = "gpu_tile.alloc"() {{options = {{}}}} : () -> {ring}']
        if not self.steps:
            lines = [f'%{side} = "gpu_tile.alloc"() {{options = {{}}}} : () -> {slot}']
        for number in range(max(self.steps, 1)):
            at = [0, 0]
            at[k_dim] = number * self.k
            names = [f"%{side}_at{number}_{d}" for d in range(2)]
            lines += [f"{v} = arith.constant {c} : index" for v, c in zip(names, at, strict=True)]
            value, place = f"%{side}_tile{number}", f"%{side}" + (str(number) if self.steps else "")
            lines.append(load(value, name, tile, array, element, ", ".join(names)))
            if self.steps:
                lines.append(f"%{side}_index{number} = arith.constant {number} : i32")
                lines.append(
                    f'{place} = "gpu_tile.slot"(%{side}s, %{side}_index{number}) '
                    f": ({ring}, i32) -> {slot}"
                )
            lines.append(f'"gpu_tile.buffer_store"({value}, {place}) : ({tile}, {slot}) -> ()')
        return "\n  ".join(lines)

    def buffer(self, side: str) -> str:
        """The buffer type of one operand."""
        sizes, element = self._sizes(side), self.row.lhs if side == "lhs" else self.row.rhs
        return buffer_type(sizes, element, self._layout(side))

    def ring(self, side: str) -> str:
        """The type of a ring of them."""
        sizes, element = self._sizes(side), self.row.lhs if side == "lhs" else self.row.rhs
        return buffer_type((self.steps, *sizes), element, self._layout(side))

    def _layout(self, side: str) -> SharedLayout:
        chosen = self.lhs if side == "lhs" else self.rhs
        assert chosen is not None
        k_dim = 1 if side == "lhs" else 0
        contiguous = k_dim if chosen[0] == "k" else 1 - k_dim
        element = self.row.lhs if side == "lhs" else self.row.rhs
        return panels(self._sizes(side), contiguous, chosen[1], DTYPES[element].itemsize)

    def _multiply(self, pending: str) -> str:
        layout = lhs_fragments(self.row, self.acc_layout, 2, self.k)
        fragments = tile_type((self.m, self.k), self.row.lhs, layout)
        left = fragments if self.lhs is None else self.buffer("lhs")
        types = f"({left}, {self.buffer('rhs')}, {pending}) -> {pending}"
        op = f'"gpu_tile.wgmma"(%lhs, %rhs, %p) {{instruction = "{self.name}"}} : {types}'
        if not self.steps:
            return f"%last = {op}"
        return f"""%last = scf.for %i = %i0 to %steps step %i1 iter_args(%flight = %p) -> ({pending}) : i32 {{
    %lhs = "gpu_tile.slot"(%lhss, %i) : ({self.ring("lhs")}, i32) -> {self.buffer("lhs")}
    %rhs = "gpu_tile.slot"(%rhss, %i) : ({self.ring("rhs")}, i32) -> {self.buffer("rhs")}
    %next = {op.replace("%p)", "%flight)")}
    %safe = "gpu_tile.wgmma_wait"(%next) {{pending = {self.in_flight} : i32}} : ({pending}) -> {pending}
    scf.yield %safe : {pending}
  }}"""  # noqa: E501

    def arguments(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random a, b and c; every f32 operand is exact in tf32."""
        rng = np.random.default_rng(seed)
        depth = self.k * max(self.steps, 1)
        made = []
        for element, sizes in (
            (self.row.lhs, (self.m, depth)),
            (self.row.rhs, (depth, self.n)),
            (self.row.acc, (self.m, self.n)),
        ):
            if element in ("i8", "i32"):
                made.append(rng.integers(-100, 100, sizes).astype(DTYPES[element]))
                continue
            values = rng.standard_normal(sizes)
            rounded = values.astype(ml_dtypes.bfloat16) if element == "f32" else values
            made.append(rounded.astype(DTYPES[element]))
        return made[0], made[1], made[2]

    def reference(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """The result in float64."""
        product = a.astype(np.float64) @ b.astype(np.float64)
        return product if self.zero else product + c.astype(np.float64)


def view_text(row_step: int) -> str:
    """@k(a, b, c, r): c = the 64 rows of a from r * `row_step` on, times b, over views of whole
    buffers, 64 elements of k at a time."""
    row = find_instruction("wgmma.m64n128k16.f32.bf16.bf16")
    half, full = array_type(2, "bf16"), array_type(2, "f32")
    acc = tile_type((64, 128), "f32", accumulator_layout(row, (64, 128), 1, 1))
    pending = f"!gpu_tile.pending<{acc}>"
    lines, types = [], {}
    for name, sizes, part in (("a", (128, 128), (64, 64)), ("b", (128, 128), (64, 128))):
        shared = panels(sizes, 1, 128, 2)
        tile = tile_type(sizes, "bf16", blocked_layout(sizes, 1, 8, 128))
        whole = buffer_type(sizes, "bf16", shared)
        types[name], types[name + "part"] = whole, buffer_type(part, "bf16", shared)
        lines += [
            load(f"%t{name}", f"%{name}", tile, half, "bf16"),
            f'%s{name} = "gpu_tile.alloc"() {{options = {{}}}} : () -> {whole}',
            f'"gpu_tile.buffer_store"(%t{name}, %s{name}) : ({tile}, {whole}) -> ()',
        ]
    return f"""
func.func @k(%a: {half}, %b: {half}, %c: {full}, %r: i32) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index   %i0 = arith.constant 0 : i32
  %step = arith.constant 64 : i32   %end = arith.constant 128 : i32
  %unit = arith.constant {row_step} : i32   %row = arith.muli %r, %unit : i32
  {chr(10).join(lines)}
  %zero = arith.constant dense<0.0> : {acc}
  %p = "gpu_tile.wgmma_fence"(%zero) : ({acc}) -> {pending}
  %last = scf.for %k = %i0 to %end step %step iter_args(%acc = %p) -> ({pending}) : i32 {{
    %lhs = "gpu_tile.view"(%sa, %row, %k) : ({types["a"]}, i32, i32) -> {types["apart"]}
    %rhs = "gpu_tile.view"(%sb, %k, %i0) : ({types["b"]}, i32, i32) -> {types["bpart"]}
    %q = "gpu_tile.wgmma"(%lhs, %rhs, %acc) {{instruction = "{row.name}"}} : ({types["apart"]}, {types["bpart"]}, {pending}) -> {pending}
    scf.yield %q : {pending}
  }}
  %done = "gpu_tile.wgmma_wait"(%last) {{pending = 0 : i32}} : ({pending}) -> {acc}
  {store("%done", "%c", acc, full)}
  return
}}"""  # noqa: E501
