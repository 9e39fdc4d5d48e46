"""Ops that touch arrays in global memory. Bounds are handled: what lies outside is not accessed."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import BOOL, INT, INTS, SCALAR, one_of, options
from tilec.dialects.constraints import ARRAY, INDEX, TILE
from tilec.dialects.def_use import constant_element
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.traits import Groups, Sources
from tilec.dialects.types import byte_width, element, is_float, is_integer, shape, show

CACHE_HINTS = ("evict_first", "evict_last", "no_allocate", "streaming")
ACCESS_OPTIONS = options(cache=one_of(*CACHE_HINTS), wrapped=BOOL, walked=INT, inside=BOOL)
ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "cluster", "gpu", "sys")
KINDS = {
    "addf": is_float,
    "addi": is_integer,
    "maxs": is_integer,
    "mins": is_integer,
    "maxu": is_integer,
    "minu": is_integer,
    "maxf": is_float,
    "minf": is_float,
    "andi": is_integer,
    "ori": is_integer,
    "xori": is_integer,
    "exchange": lambda _: True,
}
"""Read-modify-write kinds and the element types each takes."""


def _check_rectangle(
    array: ir.Value, tile: ir.Value, offsets: list[ir.Value], dims: tuple
) -> str | None:
    rank = len(shape(array))
    if len(offsets) != rank:
        return f"expected one offset per array dimension ({rank}), found {len(offsets)}"
    if len(dims) != len(shape(tile)):
        return f"'dims' must name one array dimension per tile dimension ({len(shape(tile))})"
    if len(set(dims)) != len(dims) or any(not 0 <= d < rank for d in dims):
        return f"'dims' must be distinct array dimensions below {rank}, found {list(dims)}"
    if element(array) != element(tile):
        return f"element types differ: array {element(array)}, tile {element(tile)}"
    return None


class ArrayOp(Op):
    """An op that touches elements of one array: it reads them (`is_load`), writes them, or updates
    them."""

    @property
    def is_load(self) -> bool:
        """Whether the op does nothing but read the array."""
        return not self.WRITES

    @property
    def array(self) -> ir.Value:
        """The array."""
        return self.src if self.is_load else self.dst

    @property
    def tile(self) -> ir.Value:
        """The tile that it reads of the array, or writes there."""
        return self.result if self.is_load else self.value

    @property
    def rectangle(self) -> tuple[ir.Value | int, ...] | None:
        """Where its rectangle of the array begins, and along which dimensions that lies; None where
        it touches an element per index."""
        return None


class LoadOp(ArrayOp, name="load", in_thread=True):
    """A rectangular tile of an array, `padding` where it reaches past the array's edge.

    `offsets` is one element offset per array dimension; `dims[i]` is the array dimension that tile
    dimension i runs along (the others have extent 1).

    `wrapped`, from wrap-rows: the tile begins up to 32 bytes in front of its row, so that addresses
    may be aligned; what is in front of column 0 are the tile's last columns. `walked`: it is a part
    of the row, which begins at a multiple of so many columns, a power of two, and not at 0.
    `inside`, from split-edges: the whole tile is known to lie in the array.

    Example:
        %t = "tile.load"(%a, %m, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> tensor<128x64xbf16>
    """

    src = Operand(ARRAY, reads=True)
    offsets = Operand(INDEX, variadic=True)
    result = Result(TILE)
    dims = Attribute(INTS)
    padding = Attribute(SCALAR)
    options = Attribute(ACCESS_OPTIONS, default={})

    def check(self) -> str | None:
        if self.padding.type != element(self.result):
            return f"padding has type {self.padding.type}, elements {element(self.result)}"
        return _check_rectangle(self.src, self.result, self.offsets, self.dims)

    @property
    def rectangle(self) -> tuple[ir.Value | int, ...]:
        """See `ArrayOp`."""
        return (*self.offsets, *self.dims)

    @property
    def along(self) -> tuple[int, ...]:
        """The dimensions of the array along those of the tile."""
        return tuple(self.dims)

    @property
    def outside(self) -> ir.Attribute | None:
        """The number that elements outside of the array are."""
        return self.padding

    def stripes(self, axis: int) -> Sources | None:
        """See `OpTraits`; a load begins anywhere."""
        return None if self.options.get("wrapped") else []


class StoreOp(ArrayOp, name="store"):
    """Writes the part of a tile that lies inside the array; see `load` for the rest.

    Example:
        "tile.store"(%t, %c, %m, %n) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x64xbf16>, memref<?x?xbf16, strided<[?, 1]>>, index, index) -> ()
    """

    value = Operand(TILE)
    dst = Operand(ARRAY, writes=True)
    offsets = Operand(INDEX, variadic=True)
    dims = Attribute(INTS)
    options = Attribute(ACCESS_OPTIONS, default={})

    def check(self) -> str | None:
        return _check_rectangle(self.dst, self.value, self.offsets, self.dims)

    @property
    def rectangle(self) -> tuple[ir.Value | int, ...]:
        """See `ArrayOp`."""
        return (*self.offsets, *self.dims)


class WindowOp(Op, name="window", pure=True, one_thread=True, lowered=False):
    """A part of an array along `dim`, an array of its own: its element 0 is the array's element
    `start`, and it has `size` elements, without `size` those up to the array's end.

    What lies outside the window is outside for loads and stores, whatever the array has there; so
    is what lies outside the array. Windows of windows are windows. dissolve-windows makes accesses
    of the whole array of them.

    Example:
        %w = "tile.window"(%a, %first, %rows) {dim = 0 : i32} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> memref<?x?xf32, strided<[?, 1]>>
    """

    src = Operand(ARRAY)
    start = Operand(INDEX)
    size = Operand(INDEX, optional=True)
    result = Result(ARRAY)
    dim = Attribute(INT)

    @classmethod
    def infer_types(cls, src: Any, start: Any, size: Any = None, *, dim: int) -> list[ir.Type]:
        return [_open_at(src.type, dim)]

    def check(self) -> str | None:
        rank = len(shape(self.src))
        if not 0 <= self.dim < rank:
            return f"dim {self.dim} is out of range for an array of {rank} dimensions"
        expected = _open_at(self.src.type, self.dim)
        if self.result.type != expected:
            return f"result must be {expected}, found {self.result.type}"
        return None


def _open_at(array: ir.MemRefType, dim: int) -> ir.MemRefType:
    """The type of an array whose size along a dimension is known when the kernel runs."""
    sizes = list(array.shape)
    sizes[dim] = ir.ShapedType.get_dynamic_size()
    return ir.MemRefType.get(sizes, array.element_type, array.layout, array.memory_space)


class MisalignmentOp(Op, name="misalignment", pure=True, least=0):
    """Gives how many elements the one at `offsets` lies behind the last multiple of `bytes` in
    memory.

    `bytes` is a power of two, and a multiple of an element's.

    Example:
        %s = "tile.misalignment"(%x, %row, %c0) {bytes = 16 : i32} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> index
    """

    src = Operand(ARRAY)
    offsets = Operand(INDEX, variadic=True)
    result = Result(INDEX)
    bytes = Attribute(INT)

    @classmethod
    def infer_types(cls, src: Any, offsets: Any, **_: Any) -> list[ir.Type]:
        return [ir.IndexType.get()]

    def check(self) -> str | None:
        rank, size = len(shape(self.src)), byte_width(element(self.src))
        if len(self.offsets) != rank:
            return f"expected one offset per array dimension ({rank}), found {len(self.offsets)}"
        if self.bytes < size or self.bytes & (self.bytes - 1):
            return f"'bytes' must be a power of two from {size} on, found {self.bytes}"
        return None


class Indexed(ArrayOp, one_layout=True):
    """An op that touches an array element per index tuple, where its mask is true."""


class Atomic(Indexed):
    """An op that updates each element at once, as seen by threads of `scope`."""

    order = Attribute(one_of(*ORDERS))
    scope = Attribute(one_of(*SCOPES))


def check_indexed(array: ir.Value, tiles: list[ir.Value], indices: list[ir.Value]) -> str | None:
    """Says what is wrong with index tiles of an array beside the `tiles` of an op, or None."""
    if len(indices) != len(shape(array)):
        rank = len(shape(array))
        return f"expected one index tile per array dimension ({rank}), found {len(indices)}"
    for index in indices:
        if not is_integer(element(index)):
            return f"index tiles must hold integers, found {element(index)}"
    shapes = [shape(t) for t in [*tiles, *indices]]
    if len(set(shapes)) > 1:
        return f"tile shapes differ: {', '.join(map(show, shapes))}"
    return None


def check_mask(mask: ir.Value) -> str | None:
    """Says what keeps a tile from being a mask, or None."""
    return None if str(element(mask)) == "i1" else f"mask must hold i1, found {element(mask)}"


def _check_elements(array: ir.Value, *tiles: ir.Value) -> str | None:
    for tile in tiles:
        if element(tile) != element(array):
            return f"element types differ: array {element(array)}, tile {element(tile)}"
    return None


class GatherOp(Indexed, name="gather", in_thread=True):
    """One array element per index tuple; `other` where the mask is false or the index is outside.

    `run`: (tile dimension, width), from infer-layouts. Along the dimension each aligned group of
    `width` elements is neighbours in memory, aligned there, masked as one, inside or outside.

    Example:
        %t = "tile.gather"(%x, %ok, %zero, %i) {options = {}} : (memref<?xf32, strided<[1]>>, tensor<256xi1>, tensor<256xf32>, tensor<256xi32>) -> tensor<256xf32>
    """

    src = Operand(ARRAY, reads=True)
    mask = Operand(TILE)
    other = Operand(TILE)
    indices = Operand(TILE, variadic=True)
    result = Result(TILE)
    options = Attribute(options(cache=one_of(*CACHE_HINTS), run=INTS), default={})

    @classmethod
    def infer_types(cls, src: Any, mask: Any, other: Any, indices: Any, **_: Any) -> list[ir.Type]:
        return [other.type]

    def check(self) -> str | None:
        return (
            check_mask(self.mask)
            or _check_elements(self.src, self.other, self.result)
            or check_indexed(self.src, [self.mask, self.other, self.result], self.indices)
        )

    @property
    def along(self) -> tuple[int, ...]:
        """The tile's dimensions: each element lies where its own indices say."""
        return tuple(range(len(shape(self.result))))

    @property
    def outside(self) -> ir.Attribute | None:
        """The number that elements outside of the array, or masked, are; None where they differ."""
        return constant_element(self.other)

    def stripes(self, axis: int) -> Sources:
        """See `OpTraits`: all that says where elements lie."""
        return [(source, axis) for source in (self.mask, self.other, *self.indices)]


class ScatterOp(Indexed, name="scatter"):
    """Writes one array element per index tuple where the mask is true and the index is inside.

    Two lanes with one index race: either value may stay. `run` as in `gather`.

    Example:
        "tile.scatter"(%v, %x, %ok, %i) {options = {}} : (tensor<256xf32>, memref<?xf32, strided<[1]>>, tensor<256xi1>, tensor<256xi32>) -> ()
    """

    value = Operand(TILE)
    dst = Operand(ARRAY, writes=True)
    mask = Operand(TILE)
    indices = Operand(TILE, variadic=True)
    options = Attribute(options(cache=one_of(*CACHE_HINTS), run=INTS), default={})

    def alike(self) -> Groups:
        """See `OpTraits`."""
        return [[self.mask, *self.indices, self.value]]

    def check(self) -> str | None:
        return (
            check_mask(self.mask)
            or _check_elements(self.dst, self.value)
            or check_indexed(self.dst, [self.mask, self.value], self.indices)
        )


class AtomicRmwOp(Atomic, name="atomic_rmw"):
    """Atomic read-modify-write per index tuple; gives the old values (anything where masked off).

    `run` as in `gather`.

    Example:
        %old = "tile.atomic_rmw"(%v, %x, %ok, %i) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (tensor<256xf32>, memref<?xf32, strided<[1]>>, tensor<256xi1>, tensor<256xi32>) -> tensor<256xf32>
    """

    value = Operand(TILE)
    dst = Operand(ARRAY, reads=True, writes=True)
    mask = Operand(TILE)
    indices = Operand(TILE, variadic=True)
    old = Result(TILE)
    kind = Attribute(one_of(*KINDS))
    options = Attribute(options(run=INTS), default={})

    @classmethod
    def infer_types(cls, value: Any, dst: Any, mask: Any, indices: Any, **_: Any) -> list[ir.Type]:
        return [value.type]

    @property
    def gives_old(self) -> bool:
        """Whether anybody wants the old values."""
        return next(iter(self.old.uses), None) is not None

    def check(self) -> str | None:
        if not KINDS[self.kind](element(self.value)):
            return f"kind '{self.kind}' does not apply to {element(self.value)}"
        return (
            check_mask(self.mask)
            or _check_elements(self.dst, self.value, self.old)
            or check_indexed(self.dst, [self.mask, self.value, self.old], self.indices)
        )


class AtomicCasOp(Atomic, name="atomic_cas"):
    """Atomic compare-and-swap per index tuple: writes `value` where the array holds `expected`.

    Example:
        %old = "tile.atomic_cas"(%e, %v, %x, %ok, %i) {order = "acq_rel", scope = "gpu"} : (tensor<32xi32>, tensor<32xi32>, memref<?xi32, strided<[1]>>, tensor<32xi1>, tensor<32xi32>) -> tensor<32xi32>
    """

    expected = Operand(TILE)
    value = Operand(TILE)
    dst = Operand(ARRAY, reads=True, writes=True)
    mask = Operand(TILE)
    indices = Operand(TILE, variadic=True)
    old = Result(TILE)

    @classmethod
    def infer_types(
        cls, expected: Any, value: Any, dst: Any, mask: Any, indices: Any, **_: Any
    ) -> list[ir.Type]:
        return [value.type]

    def check(self) -> str | None:
        tiles = [self.mask, self.expected, self.value, self.old]
        return (
            check_mask(self.mask)
            or _check_elements(self.dst, self.expected, self.value, self.old)
            or check_indexed(self.dst, tiles, self.indices)
        )


class FenceOp(Op, name="fence"):
    """Orders this program's earlier memory accesses before its later ones, as seen from `scope`.

    Example:
        "tile.fence"() {order = "acq_rel", scope = "gpu"} : () -> ()
    """

    order = Attribute(one_of("acq_rel", "seq_cst"))
    scope = Attribute(one_of(*SCOPES))
