"""Copies of whole boxes between arrays and shared memory by the tensor memory accelerator (PTX ISA
9.0, "cp.async.bulk.tensor"). One thread issues each."""

from __future__ import annotations

from typing import Any, ClassVar

from mlir import ir

from tilec.dialects.attributes import BOOL, INT, INTS, STRINGS, one_of
from tilec.dialects.constraints import ARRAY, BUFFER, COUNTED, I32, TENSOR_MAP, TILE
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.mbarrier import CountedCopy
from tilec.dialects.gpu_tile.types import buffer_of, layout_of, tensor_map_type, wrong_counter
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.traits import Until
from tilec.dialects.types import element, shape, show
from tilec.hardware.layout import warp_boxes
from tilec.hardware.sizes import IM2COL_CORNERS, MOST_BOX, MOST_IM2COL_STEP, MOST_RANK
from tilec.hardware.target import Feature

SWIZZLE_BYTES = {"none": 0, "32B": 32, "64B": 64, "128B": 128}


class TensorMapOp(Op, pure=True, needs=Feature.TMA, one_thread=True, in_cta=True, common=True):
    """An op that describes an array to the copy engine; becomes a kernel parameter that the host
    encodes. `box`, `dims`, `swizzle`: as in `make_tensor_map`."""

    array = Operand(ARRAY)
    result = Result(TENSOR_MAP)
    box = Attribute(INTS)
    dims = Attribute(INTS)
    swizzle = Attribute(one_of(*SWIZZLE_BYTES))

    @property
    def num_coordinates(self) -> int:
        """How many numbers say where a copy begins."""
        return len(shape(self.array))

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [tensor_map_type()]

    def check(self) -> str | None:
        rank = len(shape(self.array))
        if len(self.box) != len(self.dims) or not self.box:
            return f"expected one box size per entry of dims, found {self.box} and {self.dims}"
        if any(not 0 <= d < rank for d in self.dims) or len(set(self.dims)) != len(self.dims):
            return f"'dims' must name distinct array dimensions, found {self.dims}"
        if any(not 1 <= size <= MOST_BOX for size in self.box):
            return f"box sizes must be 1 to {MOST_BOX}, found {show(self.box)}"
        strides, _ = self.array.type.get_strides_and_offset()
        along = [box for box, d in zip(self.box, self.dims, strict=True) if strides[d] == 1]
        if not along:
            return "the array has no dimension of stride 1 among 'dims'"
        inner = along[-1] * max(1, element(self.array).width // 8)
        if inner % 16:
            return f"the box must be whole 16 bytes along the row, found {inner}"
        span = SWIZZLE_BYTES[self.swizzle]
        if span and inner > span:
            return f"the box has {inner} bytes along the row, more than the swizzle's {span}"
        return None


class MakeTensorMapOp(TensorMapOp, name="make_tensor_map"):
    """Describes an array to the copy engine; becomes a kernel parameter that the host encodes.

    `box`: elements per tile dimension that one copy moves; `dims`: the array dimension each runs
    along (the others have extent 1), the one with stride 1 among them, at any place.
    `swizzle`: the byte pattern in shared memory, whose span the box must not exceed along that
    dimension.

    Example:
        %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
    """

    def check(self) -> str | None:
        rank = len(shape(self.array))
        if not 1 <= rank <= MOST_RANK:
            return f"a tensor map has 1 to {MOST_RANK} dimensions, the array has {rank}"
        return super().check()


class MakeIm2colMapOp(TensorMapOp, name="make_im2col_map"):
    """Describes an array of images, whose channels lie together, to the copy engine in im2col mode.

    A copy moves rows of channels, one a position: it walks from position to position of a bounding
    box, along the dimension in front of the channels first, then from image to image. `box`,
    `dims`: positions and channels, and that these run along dimensions 0 and the last one, in the
    order of the buffer's. Along each dimension between: `extents`, how many positions, expressions
    of `tilec.executable.grid` over the kernel's parameters; `lower`, the coordinate of the first;
    `steps`, from one to the next. Copies add an offset to the coordinates, which stands behind
    these, a number a dimension between.

    Example:
        %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 3>, extents = ["y.shape[1]", "y.shape[2]"], lower = array<i32: -1, -1>, steps = array<i32: 1, 1>, swizzle = "128B"} : (memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>) -> !gpu_tile.tensor_map
    """

    extents = Attribute(STRINGS)
    lower = Attribute(INTS)
    steps = Attribute(INTS)

    @property
    def num_coordinates(self) -> int:
        """How many numbers say where a copy begins, offsets among them."""
        return 2 * len(shape(self.array)) - 2

    def check(self) -> str | None:
        rank = len(shape(self.array))
        if rank not in IM2COL_CORNERS:
            return f"an im2col map has 3 to {MOST_RANK} dimensions, the array has {rank}"
        if sorted(self.dims) != [0, rank - 1]:
            return f"'dims' must be dimensions 0 and {rank - 1}, found {self.dims}"
        for name in ("extents", "lower", "steps"):
            if len(getattr(self, name)) != rank - 2:
                return f"'{name}' must have {rank - 2} entries, found {getattr(self, name)}"
        most = IM2COL_CORNERS[rank]
        if any(abs(corner) > most for corner in self.lower):
            return f"'lower' must be -{most} to {most}, found {self.lower}"
        if any(not 1 <= step <= MOST_IM2COL_STEP for step in self.steps):
            return f"'steps' must be 1 to {MOST_IM2COL_STEP}, found {self.steps}"
        return super().check()


def check_map(tensor_map: ir.Value, buffer: ir.Value, coordinates: int) -> str | None:
    """Says what keeps a buffer from being filled (or read) through a map, or None."""
    try:
        slot = buffer_of(buffer)
    except ValueError as error:
        return str(error)
    if slot.slots > 1:
        return "a copy moves one slot of a buffer, not the whole ring"
    owner = tensor_map.owner
    if not isinstance(owner, TensorMapOp):
        return None  # what a map is made of shows where it is made
    wanted = owner.num_coordinates
    if coordinates != wanted:
        what = "one coordinate per array dimension"
        if isinstance(owner, MakeIm2colMapOp):
            what = "coordinates and offsets"
        return f"expected {what} ({wanted}), found {coordinates}"
    if element(owner.array) != slot.element:
        return f"element types differ: array {element(owner.array)}, buffer {slot.element}"
    boxes = zip(slot.shape, owner.box, strict=False)
    if len(slot.shape) != len(owner.box) or any(box < 1 or size % box for size, box in boxes):
        return f"buffer {show(slot.shape)} is not made of whole boxes {show(owner.box)}"
    return None


def _check_stored(tensor_map: ir.Value, buffer: ir.Value, coordinates: int) -> str | None:
    """The same of what is written through a map."""
    if isinstance(tensor_map.owner, MakeIm2colMapOp):
        return "a map in im2col mode is for loads"
    return check_map(tensor_map, buffer, coordinates)


class TensorMapLoad(CountedCopy, fills="tensor copies"):
    """An op that fills a buffer through a tensor map; `coordinates` stand last."""

    PAIRED: ClassVar[bool] = False
    """Whether the bytes arrive in the even CTA of the pair."""

    map = Operand(TENSOR_MAP)
    dst = Operand(BUFFER, writes=True)
    barrier = Operand(COUNTED)
    slot = Operand(I32)
    coordinates: ClassVar[Operand]
    cache = Attribute(one_of("normal", "evict_first", "evict_last"), default="normal")

    def check(self) -> str | None:
        wrong = wrong_counter(self.barrier)
        return wrong or check_map(self.map, self.dst, len(self.coordinates))


class TmaLoadOp(TensorMapLoad, name="tma_load", needs=Feature.TMA):
    """Fills a buffer from an array at `coordinates` (one per array dimension; of an im2col map the
    offsets behind them), zeros outside it.

    As many boxes as the buffer has; their bytes arrive at `barrier[slot]`, outside ones as well.

    Example:
        "gpu_tile.tma_load"(%map, %buffer, %full, %slot, %m, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, !gpu_tile.barrier, i32, i32, i32) -> ()
    """

    coordinates = Operand(I32, variadic=True)


class TmaPairLoadOp(
    TensorMapLoad, name="tma_pair_load", needs=Feature.TCGEN05, alone=True, reaches=True
):
    """`tma_load` whose bytes arrive at `barrier[slot]` of the even CTA of the pair.

    Example:
        "gpu_tile.tma_pair_load"(%map, %buffer, %full, %slot, %m, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, !gpu_tile.barrier, i32, i32, i32) -> ()
    """

    PAIRED = True
    coordinates = Operand(I32, variadic=True)


class TmaMulticastOp(
    TensorMapLoad, name="tma_multicast", needs=Feature.CLUSTERS, alone=True, reaches=True
):
    """`tma_load` into the same buffer of every CTA of the cluster that `mask` has: bit r for rank r.

    The bytes arrive at `barrier[slot]` of each of these CTAs, which announces them itself.

    Example:
        "gpu_tile.tma_multicast"(%map, %buffer, %full, %slot, %mask, %m, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, !gpu_tile.barrier, i32, i32, i32, i32) -> ()
    """

    mask = Operand(I32)
    coordinates = Operand(I32, variadic=True)


class TmaPairMulticastOp(
    TensorMapLoad, name="tma_pair_multicast", needs=Feature.TCGEN05, alone=True, reaches=True
):
    """`tma_multicast` to CTAs of several pairs: the bytes that each gets arrive at `barrier[slot]` of
    the even CTA of its pair.

    Example:
        "gpu_tile.tma_pair_multicast"(%map, %buffer, %full, %slot, %mask, %m, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>, !gpu_tile.barrier, i32, i32, i32, i32) -> ()
    """

    PAIRED = True
    mask = Operand(I32)
    coordinates = Operand(I32, variadic=True)


class TensorMapStore(Op, needs=Feature.TMA):
    """An op that writes an array through a tensor map."""


class TmaStoreOp(
    TensorMapStore, name="tma_store", one_thread=True, alone=True, until=Until.STORES_WAITED
):
    """Writes a buffer to an array at `coordinates`, or combines it with what is there.

    Elements outside the array are left out. The buffer's writers have fenced ("async_shared") and
    synced; it may be reused after `tma_wait {read}`.

    Example:
        "gpu_tile.tma_store"(%buffer, %map, %m, %n) {combine = "none"} : (!gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, !gpu_tile.tensor_map, i32, i32) -> ()
    """

    src = Operand(BUFFER, reads=True)
    map = Operand(TENSOR_MAP)
    coordinates = Operand(I32, variadic=True)
    combine = Attribute(one_of("none", "add", "min", "max"), default="none")

    def check(self) -> str | None:
        return _check_stored(self.map, self.src, len(self.coordinates))


class WarpTmaStoreOp(TensorMapStore, name="warp_tma_store", own_buffers=True):
    """Each warp writes what it holds of a tile to an array, through its own part of a buffer.

    A warp waits until at most `pending` of its groups of stores still read their buffers, fills its
    part, and its first lane starts the copies of its boxes as a group. No other warp is waited for,
    so warps may be at different tiles. Elements outside the array are left out. Before the kernel
    ends `tma_wait` must make sure that the buffers were read.

    Example:
        "gpu_tile.warp_tma_store"(%tile, %buffer, %map, %m, %n) {pending = 1 : i32} : (tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>, !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>, !gpu_tile.tensor_map, i32, i32) -> ()
    """

    tile = Operand(TILE)
    buffer = Operand(BUFFER, reads=True, writes=True)
    map = Operand(TENSOR_MAP)
    coordinates = Operand(I32, variadic=True)
    pending = Attribute(INT)

    def check(self) -> str | None:
        wrong = _check_stored(self.map, self.buffer, len(self.coordinates))
        if wrong:
            return wrong
        staged = buffer_of(self.buffer)
        try:
            layout = layout_of(self.tile)
        except ValueError as error:
            return str(error)
        if (shape(self.tile), element(self.tile)) != (staged.shape, staged.element):
            return f"the buffer holds another tile than {self.tile.type}"
        made = self.map.owner
        box = made.box if isinstance(made, MakeTensorMapOp) else ()
        if box and warp_boxes(layout, shape(self.tile), box) is None:
            return f"a warp holds no whole boxes of {show(box)}"
        return None if self.pending >= 0 else f"pending must not be negative, found {self.pending}"


class TmaCommitOp(Op, name="tma_commit", needs=Feature.TMA, one_thread=True):
    """Closes the issuing thread's group of stores.

    Example:
        "gpu_tile.tma_commit"() : () -> ()
    """


class TmaWaitOp(Op, name="tma_wait", needs=Feature.TMA, one_thread=True, ends=Until.STORES_WAITED):
    """Whoever issued stores waits until at most `pending` of its groups of them are unfinished.

    `read`: finished means that their buffers were read and may be reused; else that the array has
    the data.

    Example:
        "gpu_tile.tma_wait"() {pending = 0 : i32, read = true} : () -> ()
    """

    pending = Attribute(INT)
    read = Attribute(BOOL)

    def check(self) -> str | None:
        return None if self.pending >= 0 else f"pending must not be negative, found {self.pending}"
