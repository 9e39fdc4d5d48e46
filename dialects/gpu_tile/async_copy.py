"""Asynchronous copies from global to shared memory (PTX ISA 9.0, "cp.async")."""

from __future__ import annotations

from tilec.dialects.attributes import INT, INTS, one_of
from tilec.dialects.constraints import ARRAY, BARRIER, BUFFER, I1, I32, INDEX, TILE
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.mbarrier import COPIES
from tilec.dialects.gpu_tile.types import BufferType, buffer_of
from tilec.dialects.op import Attribute, Operand
from tilec.dialects.tile.memory import check_indexed, check_mask
from tilec.dialects.traits import Place, Until
from tilec.dialects.types import element, shape, show
from tilec.hardware.target import Feature


class ThreadCopy(Op, needs=Feature.CP_ASYNC, until=Until.COPIES_WAITED):
    """An op by which each thread copies from an array into a buffer, vectors of `bytes`: 4, 8 or
    16.

    Where `mask` is false nothing is read and the buffer gets zeros. `cache` "cg" bypasses L1 and
    needs 16 bytes. The data is there after `cp_async_wait` in the thread that copied, and after a
    sync in the others.
    """

    src = Operand(ARRAY, reads=True)
    dst = Operand(BUFFER, writes=True)
    mask = Operand(I1)
    bytes = Attribute(INT)
    cache = Attribute(one_of("ca", "cg"))

    def check(self) -> str | None:
        try:
            buffer = buffer_of(self.dst)
        except ValueError as error:
            return str(error)
        if buffer.slots > 1:
            return "a copy fills one slot of a buffer, not the whole ring"
        return self.wrong_place(buffer) or self._wrong_size(buffer)

    def wrong_place(self, buffer: BufferType) -> str | None:
        """Says what is wrong with the place that it copies from, or None."""
        raise NotImplementedError

    def _wrong_size(self, buffer: BufferType) -> str | None:
        if element(self.src) != buffer.element:
            return f"element types differ: array {element(self.src)}, buffer {buffer.element}"
        if self.bytes not in (4, 8, 16) or self.bytes % buffer.element_bytes:
            return f"bytes must be 4, 8 or 16 and whole elements, found {self.bytes}"
        if self.cache == "cg" and self.bytes != 16:
            return f"cache 'cg' copies 16 bytes, found {self.bytes}"
        return None


class CpAsyncOp(ThreadCopy, name="cp_async", fills="copies by cp.async"):
    """Copies a rectangular tile of an array into a buffer, zeros where it lies outside.

    See `ThreadCopy`.

    Example:
        "gpu_tile.cp_async"(%a, %s, %yes, %m, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (memref<?x?xbf16, strided<[?, 1]>>, !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"(128,64):(72,1)">>, i1, index, index) -> ()
    """

    offsets = Operand(INDEX, variadic=True)
    dims = Attribute(INTS)

    def wrong_place(self, buffer: BufferType) -> str | None:
        """See `ThreadCopy`."""
        rank = len(shape(self.src))
        if len(self.offsets) != rank:
            return f"expected one offset per array dimension ({rank}), found {len(self.offsets)}"
        if len(self.dims) != len(buffer.shape) or any(not 0 <= d < rank for d in self.dims):
            return (
                f"'dims' must name one array dimension per buffer dimension ({len(buffer.shape)})"
            )
        return None


class CpAsyncGatherOp(
    ThreadCopy, name="cp_async_gather", fills="gathers by cp.async", one_layout=True
):
    """Copies the array's elements that index tiles name to where they stand in the tiles, in a
    buffer; zeros where `elements` is false or an index lies outside.

    A thread's vectors are the elements that it holds: they neighbour each other in its registers,
    in the array and in the buffer, and lie inside or outside, or are left out, together (`run` of
    `tile.gather`). See `ThreadCopy`.

    Example:
        "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %row, %column) {bytes = 16 : i32, cache = "cg"} : (memref<?x?xbf16, strided<[?, 1]>>, !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, i1, tensor<128x64xi1>, tensor<128x64xi32>, tensor<128x64xi32>) -> ()
    """

    elements = Operand(TILE)
    indices = Operand(TILE, variadic=True)

    def wrong_place(self, buffer: BufferType) -> str | None:
        """See `ThreadCopy`."""
        if shape(self.elements) != tuple(buffer.shape):
            sizes = show(shape(self.elements)), show(buffer.shape)
            return f"elements are {sizes[0]}, the buffer {sizes[1]}"
        wrong = check_mask(self.elements)
        return wrong or check_indexed(self.src, [self.elements], self.indices)


class CpAsyncCommitOp(Op, name="cp_async_commit", needs=Feature.CP_ASYNC):
    """Closes this thread's group of copies; an empty group counts too.

    Example:
        "gpu_tile.cp_async_commit"() : () -> ()
    """


class CpAsyncWaitOp(Op, name="cp_async_wait", needs=Feature.CP_ASYNC, ends=Until.COPIES_WAITED):
    """Waits until at most `pending` of this thread's groups are unfinished.

    Example:
        "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    """

    pending = Attribute(INT)

    def check(self) -> str | None:
        return None if self.pending >= 0 else f"pending must not be negative, found {self.pending}"


class CpAsyncArriveOp(Op, name="cp_async_arrive", needs=Feature.MBARRIER):
    """Each thread of the role arrives at `barrier[slot]` once its copies so far are done.

    Counts as one of the barrier's expected arrivals per thread (PTX ISA 9.0,
    "cp.async.mbarrier.arrive.noinc").

    Example:
        "gpu_tile.cp_async_arrive"(%full, %slot) : (!gpu_tile.barrier, i32) -> ()
    """

    barrier = Operand(BARRIER)
    slot = Operand(I32)

    def arrives_at(self) -> tuple[Place, str]:
        """See `OpTraits`."""
        return (self.barrier, ""), COPIES
