"""Matrix products into tensor memory, issued by one thread (PTX ISA 9.0, "tcgen05")."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.attributes import INT, STRING, one_of, options
from tilec.dialects.constraints import BARRIER, BUFFER, I1, I32
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.mbarrier import PRODUCTS
from tilec.dialects.gpu_tile.types import any_buffer_of, buffer_of, tensor_buffer_of
from tilec.dialects.op import Attribute, Operand
from tilec.dialects.traits import Place, Until
from tilec.dialects.types import bit_width, show
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.target import Feature
from tilec.hardware.tensor_memory import COLUMNS, LEAST_COLUMNS
from tilec.hardware.tensor_tiles import COPY_SHAPES, check_operands, check_scales, copy_image

ADDRESS_BYTES = 4
"""What tcgen05.alloc writes to shared memory."""


class Tcgen05MmaOp(
    Op, name="tcgen05_mma", one_thread=True, alone=True, product=True, until=Until.PRODUCTS_TOLD
):
    """acc = lhs @ rhs, plus acc where `use_acc`, by as many of `instruction` as the tiles are.

    `lhs` lies in shared or tensor memory, `rhs` in shared, `acc` in tensor memory. Asynchronous:
    `tcgen05_commit` tells a barrier when all of them are done; those that follow each other into
    one accumulator keep their order.

    By an instruction of a pair each of its CTAs has half of the rows of `lhs` and `acc` and half of
    the columns of `rhs`, in the same places of its memory; one thread of the CTA of even rank
    issues it for both.

    Example:
        "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>, !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>, i1) -> ()
    """

    lhs = Operand(BUFFER, reads=True)
    rhs = Operand(BUFFER, reads=True)
    acc = Operand(BUFFER, reads=True, writes=True)
    use_acc = Operand(I1)
    instruction = Attribute(STRING)

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        return find_instruction(self.instruction).feature

    def check(self) -> str | None:
        return _check_product(self, scaled=False)


class Tcgen05MmaScaledOp(Tcgen05MmaOp, name="tcgen05_mma_scaled"):
    """`tcgen05_mma` whose operands have a scale per row of `lhs` (column of `rhs`) and block of
    numbers along k.

    "mx": per 32 numbers an exponent of 2 with a bias of 127, as i8; "nv": per 16 an f8E4M3FN. They
    lie in tensor memory, those of `lhs` (m, blocks), of `rhs` (n, blocks), each in lane row % 32 and
    column row / 32, four blocks in a column, with copies in the other lanes (`tcgen05_copy` by
    "32x128b.warpx4"). Operands of 4 bits are i8, two numbers a byte along k.

    Example:
        "gpu_tile.tcgen05_mma_scaled"(%a, %b, %acc, %use, %sa, %sb) {instruction = "tcgen05.mx.m128n64k32.f32.e4m3.e4m3"} : (!gpu_tile.buffer<tensor<128x128xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,128):(128,1)">>, !gpu_tile.buffer<tensor<128x64xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,64):(1,128)">>, !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>, i1, !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),8@bit)">>, !gpu_tile.buffer<tensor<64x4xi8>, #gpu_tile.tmem<"((32,2),4):((1@lane,1@col),8@bit)">>) -> ()
    """

    lhs_scale = Operand(BUFFER, reads=True)
    rhs_scale = Operand(BUFFER, reads=True)

    def check(self) -> str | None:
        return _check_product(self, scaled=True)


def _check_product(op: Tcgen05MmaOp, *, scaled: bool) -> str | None:
    """Says what is wrong with a product, or None."""
    try:
        row = find_instruction(op.instruction)
        lhs, rhs, acc = any_buffer_of(op.lhs), buffer_of(op.rhs), tensor_buffer_of(op.acc)
    except ValueError as error:
        return str(error)
    if not row.is_tensor:
        return f"{row.name} is no instruction of tensor memory"
    if row.is_scaled != scaled:
        return f"{row.name} takes {'no scales' if scaled else 'scales'}"
    sizes = [buffer.shape for buffer in (lhs, rhs, acc)]
    if any(len(size) != 2 for size in sizes):
        return f"operands are one slot each, found {', '.join(map(show, sizes))}"
    (m, k), (depth, n) = lhs.shape, rhs.shape
    if k != depth or acc.shape != (m, n * row.ctas):
        return f"shapes do not multiply: {show(sizes[0])} by {show(sizes[1])} into {show(sizes[2])}"
    found = tuple(str(buffer.element) for buffer in (lhs, rhs, acc))
    if found != (row.lhs, row.rhs, row.acc):
        expected = f"{row.lhs}, {row.rhs} and {row.acc}"
        return f"{row.name} multiplies {expected}, found {', '.join(found)}"
    bits = [bit_width(buffer.element) for buffer in (lhs, rhs, acc)]
    try:
        check_operands(row, sizes, [lhs.layout, rhs.layout, acc.layout], bits)
    except ValueError as error:
        return str(error)
    if not isinstance(op, Tcgen05MmaScaledOp):
        return None
    return _check_scale("lhs_scale", op.lhs_scale, m, k, row) or _check_scale(
        "rhs_scale", op.rhs_scale, n, k, row
    )


def _check_scale(
    name: str, value: ir.Value, rows: int, depth: int, row: MmaInstruction
) -> str | None:
    try:
        scales = tensor_buffer_of(value)
        expected = (rows, depth * row.pack // row.scale_block)
        if scales.shape != expected or str(scales.element) != row.scale:
            raise ValueError(
                f"expected {show(expected)}x{row.scale}, a scale per row and {row.scale_block} "
                "elements, "
                f"found {show(scales.shape)}x{scales.element}"
            )
        check_scales(scales.layout, scales.shape)
    except ValueError as error:
        return f"{name}: {error}"
    return None


class Tcgen05CommitOp(
    Op, name="tcgen05_commit", needs=Feature.TCGEN05, one_thread=True, alone=True
):
    """Arrives once at `barrier[slot]` when all products that this thread issued so far are done.

    Their operands may then be overwritten, and the accumulators read.

    Example:
        "gpu_tile.tcgen05_commit"(%done, %slot) : (!gpu_tile.barrier, i32) -> ()
    """

    barrier = Operand(BARRIER)
    slot = Operand(I32)

    def arrives_at(self) -> tuple[Place, str]:
        """See `OpTraits`."""
        return (self.barrier, ""), PRODUCTS


class Tcgen05MulticastCommitOp(Tcgen05CommitOp, name="tcgen05_multicast_commit", reaches=True):
    """`tcgen05_commit` to `barrier[slot]` of every CTA of the cluster that `mask` has: bit r for
    rank r.

    Example:
        "gpu_tile.tcgen05_multicast_commit"(%done, %slot, %mask) : (!gpu_tile.barrier, i32, i32) -> ()
    """

    mask = Operand(I32)


class Tcgen05CopyOp(
    Op,
    name="tcgen05_copy",
    needs=Feature.TCGEN05,
    one_thread=True,
    alone=True,
    until=Until.PRODUCTS_TOLD,
):
    """dst = src, from shared into tensor memory, in pieces of `shape`.

    `dst` has the lanes of one piece, and each lane's elements lie side by side. By "64x128b" and "32x128b" two or four groups of 32 lanes get
    copies, of which `dst` is the first. Asynchronous as a product: products that this thread issues
    behind it see it, threads that wait for a `tcgen05_commit` behind it do, too.

    Example:
        "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o (128,32):(32,1)">>, !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>) -> ()
    """

    src = Operand(BUFFER, reads=True)
    dst = Operand(BUFFER, writes=True)
    shape = Attribute(one_of(*COPY_SHAPES))

    def check(self) -> str | None:
        try:
            source, target = buffer_of(self.src), tensor_buffer_of(self.dst)
        except ValueError as error:
            return str(error)
        if source.shape != target.shape or len(source.shape) != 2:
            return f"shapes differ: source {show(source.shape)}, target {show(target.shape)}"
        if source.element != target.element:
            return f"element types differ: source {source.element}, target {target.element}"
        try:
            copy_image(self.shape, target.layout, source.layout, target.shape, target.bits)
        except ValueError as error:
            return str(error)
        return None


def _check_columns(columns: int) -> str | None:
    power = columns & (columns - 1) == 0
    if not LEAST_COLUMNS <= columns <= COLUMNS or not power:
        return f"columns must be a power of two from {LEAST_COLUMNS} to {COLUMNS}, found {columns}"
    return None


class ReserveTensorMemoryOp(
    Op, name="reserve_tensor_memory", needs=Feature.TCGEN05, placed="address of tensor memory"
):
    """The CTA's first warp takes `columns` of tensor memory, and lets other CTAs take theirs.

    A sync stands between it and the allocs, which read its address from 4 bytes of shared memory at
    `options.offset`. allocate-tensor-memory makes it.

    Example:
        "gpu_tile.reserve_tensor_memory"() {columns = 128 : i32, options = {}} : () -> ()
    """

    columns = Attribute(INT)
    options = Attribute(options(offset=INT), default={})
    ALIGNMENT = ADDRESS_BYTES

    @property
    def bytes(self) -> int:
        """The bytes of shared memory that the address takes."""
        return ADDRESS_BYTES

    def check(self) -> str | None:
        offset = self.options.get("offset", 0)
        if offset < 0 or offset % ADDRESS_BYTES:
            return f"offset {offset} is no multiple of {ADDRESS_BYTES}"
        return _check_columns(self.columns)


class ReleaseTensorMemoryOp(Op, name="release_tensor_memory", needs=Feature.TCGEN05):
    """The CTA's first warp gives its `columns` of tensor memory back; nobody uses them any more.

    Example:
        "gpu_tile.release_tensor_memory"() {columns = 128 : i32} : () -> ()
    """

    columns = Attribute(INT)

    def check(self) -> str | None:
        return _check_columns(self.columns)
