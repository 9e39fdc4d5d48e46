"""Lowers matrix products into tensor memory: tcgen05.mma, copies for them, their commit.

PTX ISA 9.0, "tcgen05.mma", "tcgen05.commit": one thread issues, all of one product and of what is
committed with it. Text, not intrinsics: LLVM takes the second of two equal products for dead. One
instruction is `k` deep, so a product is a loop over k, rows and columns, unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from mlir import ir

from tilec.dialects.gpu_tile.tcgen05 import (
    Tcgen05CommitOp,
    Tcgen05CopyOp,
    Tcgen05MmaOp,
    Tcgen05MmaScaledOp,
    Tcgen05MulticastCommitOp,
)
from tilec.dialects.gpu_tile.types import is_tensor_buffer, tensor_buffer_of
from tilec.dialects.types import bit_width
from tilec.hardware.matrix_descriptor import MatrixDescriptor
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.tensor_memory import COLUMN_BITS
from tilec.hardware.tensor_tiles import (
    SCALES_A_COLUMN,
    copy_image,
    instruction_descriptor,
    scaled_descriptor,
    tensor_operand,
)
from tilec.passes.lower_to_nvvm.access import issue_once
from tilec.passes.lower_to_nvvm.matrix_origin import Descriptors, check_origin
from tilec.passes.lower_to_nvvm.shared_address import barrier_pointer, own_base, plain_address
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.tensor_memory import element_address
from tilec.passes.lower_to_nvvm.values import Buffer
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import as_signed, create


def lower_mma(op: Tcgen05MmaOp, state: Lowering) -> None:
    """Issues a tcgen05.mma for every block of the accumulator, along k."""
    row = find_instruction(op.instruction)
    (m, k), n = state.values[op.lhs].type.shape, state.values[op.rhs].type.shape[1]
    lhs, rhs = _factors(op, row, state)
    word = instruction_descriptor(row, lhs_m_major=lhs.major, rhs_n_major=rhs.major)
    description = _descriptor_word(word, state)
    always = state.constant(state.i1, 1)
    if row.ctas != state.tensor_ctas:
        raise error_at(
            op.operation, "the products of a kernel are all those of one CTA, or all those of pairs"
        )
    text = f"tcgen05.mma.cta_group::{row.ctas}.kind::{row.kind}"
    blocks = range(0, m, row.m // row.ctas), range(0, n, row.n // row.ctas)
    for at, column in product(*blocks):
        acc = _address(op, op.acc, (at, column * row.ctas), state)
        for depth in range(0, k, row.depth):
            keep = always if depth else state.values[op.use_acc]
            operands = [acc, lhs.operand(at, depth), rhs.operand(column, depth)]
            issue_once(
                f"{text} [$0], {lhs.form}, $2, $3, $4;",
                ["r", lhs.letter, "l", "r", "b"],
                [*operands, description, keep],
                state,
            )


def lower_mma_scaled(op: Tcgen05MmaScaledOp, state: Lowering) -> None:
    """The same with scales, of which the descriptor names one of the four in a column."""
    row = find_instruction(op.instruction)
    (m, k), n = state.values[op.lhs].type.shape, state.values[op.rhs].type.shape[1]
    lhs, rhs = _factors(op, row, state)
    always = state.constant(state.i1, 1)
    if state.tensor_ctas != 1:
        raise error_at(op.operation, "products with scales are those of one CTA")
    vector = f"scale_vec::{row.scale_blocks}X"
    text = f"tcgen05.mma.cta_group::1.kind::{row.kind}.block_scale.{vector}"
    steps = range(0, k, row.depth)
    for at, column, depth in product(range(0, m, row.m), range(0, n, row.n), steps):
        block = depth * row.pack // row.scale_block
        first = block // SCALES_A_COLUMN * SCALES_A_COLUMN
        word = scaled_descriptor(row, lhs_m_major=lhs.major, rhs_n_major=rhs.major, block=block)
        issue_once(
            f"{text} [$0], {lhs.form}, $2, $3, [$4], [$5], $6;",
            ["r", lhs.letter, "l", "r", "r", "r", "b"],
            [
                _address(op, op.acc, (at, column), state),
                lhs.operand(at, depth),
                rhs.operand(column, depth),
                _descriptor_word(word, state),
                _address(op, op.lhs_scale, (at, first), state),
                _address(op, op.rhs_scale, (column, first), state),
                always if depth else state.values[op.use_acc],
            ],
            state,
        )


def _factors(
    op: Tcgen05MmaOp | Tcgen05MmaScaledOp, row: MmaInstruction, state: Lowering
) -> tuple[_Matrix | _Rows, _Matrix]:
    """Gives A, in tensor or in shared memory, and B."""
    rhs = _Matrix(op, op.rhs, row, 0, state)
    if is_tensor_buffer(op.lhs):
        return _Rows(op, row, state), rhs
    return _Matrix(op, op.lhs, row, 1, state), rhs


def _descriptor_word(word: int, state: Lowering) -> ir.Value:
    """An instruction descriptor's 32 bits."""
    return state.i32_constant(as_signed(word, 32))


def _address(op: Tcgen05MmaOp, value: ir.Value, at: Sequence[int], state: Lowering) -> ir.Value:
    address, lane = element_address(op.operation, value, at, state)
    return state.plus(address, lane << 16)


class _Rows:
    """An lhs in tensor memory."""

    major = False
    form, letter = "[$1]", "r"

    def __init__(self, op: Tcgen05MmaOp, row: MmaInstruction, state: Lowering) -> None:
        self._op, self._state = op, state

    def operand(self, at: int, k: int) -> ir.Value:
        """The address of the rows from `at` on, from `k` on."""
        return _address(self._op, self._op.lhs, (at, k), self._state)


class _Matrix:
    """An operand in shared memory."""

    form, letter = "$1", "l"

    def __init__(
        self, op: Tcgen05MmaOp, value: ir.Value, row: MmaInstruction, k_dim: int, state: Lowering
    ) -> None:
        buffer: Buffer = state.values[value]
        self._k_dim = k_dim
        check_origin(op.operation, value, buffer, state)
        found = buffer.type
        bits = bit_width(found.element)
        descriptor = tensor_operand(row, found.layout, bits, found.shape, k_dim)
        self.major = not descriptor.k_contiguous
        self._start = _descriptors(buffer, descriptor, state)

    def operand(self, at: int, k: int) -> ir.Value:
        """The descriptor (i64) of the matrix that begins at `at` along M or N and at `k`."""
        return self._start.at((at, k) if self._k_dim else (k, at))


def _descriptors(buffer: Buffer, descriptor: MatrixDescriptor, state: Lowering) -> Descriptors:
    offset = plain_address(buffer, buffer.origin, state)
    address = state.arith("addi", own_base(state), offset)
    words = descriptor.tensor_high_bits, descriptor.low_bits
    return Descriptors(buffer, address, *words, state)


def lower_copy(op: Tcgen05CopyOp, state: Lowering) -> None:
    """Issues a tcgen05.cp of as many columns as a piece has, until the buffer is full."""
    source: Buffer = state.values[op.src]
    found = source.type
    bits = bit_width(found.element)
    check_origin(op.operation, op.src, source, state)
    target = tensor_buffer_of(op.dst).layout
    image = copy_image(op.shape, target, found.layout, found.shape, bits)
    start = _descriptors(source, image.descriptor, state)
    address, lane = element_address(op.operation, op.dst, (0, 0), state)
    if lane:
        raise error_at(op.operation, f"a copy begins in lane 0, this one in lane {lane}")
    for column in range(0, image.elements, image.step):
        there = state.arith("addi", address, column * bits // COLUMN_BITS)
        operands = [there, start.at_offset(image.source.offset((0, column)))]
        text = f"tcgen05.cp.cta_group::{state.tensor_ctas}.{op.shape} [$0], $1;"
        issue_once(text, ["r", "l"], operands, state)


def lower_commit(op: Tcgen05CommitOp, state: Lowering) -> None:
    """Lowers to tcgen05.commit by the thread that issued the products."""
    pointer = barrier_pointer(op, state)
    group = f"cta_group::{state.tensor_ctas}"
    text = f"tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster.b64 [$0];"
    issue_once(text, ["r"], [pointer], state)


def lower_multicast_commit(op: Tcgen05MulticastCommitOp, state: Lowering) -> None:
    """The same for the barriers at one place of several CTAs."""
    pointer = barrier_pointer(op, state)
    i16 = ir.IntegerType.get_signless(16)
    mask = create("arith.trunci", [state.values[op.mask]], i16)
    group = f"cta_group::{state.tensor_ctas}"
    issue_once(
        f"tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
        "[$0], $1;",
        ["r", "h"],
        [pointer, mask],
        state,
    )


RULES = {
    Tcgen05MmaOp: lower_mma,
    Tcgen05MmaScaledOp: lower_mma_scaled,
    Tcgen05CopyOp: lower_copy,
    Tcgen05CommitOp: lower_commit,
    Tcgen05MulticastCommitOp: lower_multicast_commit,
}
