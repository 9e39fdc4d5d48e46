"""Gathers whose rows the copy engine finds itself, in im2col mode.

A gather takes rows of channels by number. Where these numbers are the digits of consecutive ones,
as pixels of images are counted through, each digit times a step and moved by what is the same for
all rows, the engine counts along by itself (PTX ISA 9.0, "im2col mode"):

    pixel = m + tl.arange(BM)[:, None]
    image, p, q = pixel // width // height, pixel // width % height, pixel % width
    tl.gather(x, (image, p * 2 - 1 + r, q * 2 - 1 + s, k + tl.arange(BK)[None, :]))

is one copy from image, row and column of `m`, in steps of 2 through a bounding box that begins at
(-1, -1) and has (height, width) positions, moved by (r, s); what lies outside `x` is zero there,
too. A box's corners and how far copies are moved have few bits: `limits` says what a launch has to
see to, which takes the kernel of 64-bit indices, without im2col, where it does not hold.

Does not handle: corners and steps that are no constants; distances that may be negative, or of
which no largest is known at a launch; a single image without a dimension of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import constant_element, defining_op
from tilec.dialects.types import is_index, shape
from tilec.hardware.sizes import IM2COL_CORNERS, IM2COL_OFFSETS, MOST_IM2COL_STEP
from tilec.passes.analysis.divisibility import constant_of, static_strides, unbounded_dims
from tilec.passes.analysis.launch_texts import name_of, text_of
from tilec.passes.analysis.row_digits import (
    QUOTIENTS,
    Digit,
    Factors,
    IndexSum,
    Row,
    factors_of,
    index_sum,
    is_along,
    product,
    quotient,
    remainder_of,
    seen_through,
)
from tilec.passes.analysis.signs import Signs
from tilec.passes.copies.tensor_map_rules import never_negative
from tilec.passes.demands.kernels import has_narrow_indices
from tilec.passes.programs.sum_parts import whole_end
from tilec.passes.rewriting.loops import enclosing_ops, outside_loops
from tilec.passes.rewriting.refusals import Refusal, refuse
from tilec.passes.rewriting.scalars import binary, constant, create
from tilec.passes.rewriting.walk import kernel_of
from tilec.records import dataclass


@dataclass(frozen=True)
class Im2colWalk:
    """How the copy engine finds the rows of a gather.

    `rows`, `channels`: the tile's dimensions. Along each dimension of the array between those of
    images and channels: `counts`, how many positions, and `extents`, the same as a launch computes
    it; `lower`, the first; `steps`; `offsets`, scalars whose sum moves
    all. `start`: the number of the first row, `channel`: the first channel, as sums of scalars and
    a number. `limits`: as those of `tile.limits`.
    """

    rows: int
    channels: int
    counts: tuple[Factors, ...]
    extents: tuple[str, ...]
    lower: tuple[int, ...]
    steps: tuple[int, ...]
    offsets: tuple[tuple[ir.Value, ...], ...]
    start: tuple[tuple[ir.Value, ...], int]
    channel: tuple[tuple[ir.Value, ...], int]
    limits: tuple[tuple[str, int], ...]

    def dims(self, tile_dims: Sequence[int]) -> tuple[int, ...]:
        """The array's dimensions along these of the tile, images for rows."""
        return tuple(0 if d == self.rows else len(self.counts) + 1 for d in tile_dims)

    def coordinates(self, gather: tile.GatherOp) -> list[ir.Value]:
        """Where the copy begins, and then how far it is moved, as indices in front of the
        gather; its row's digits where they stay the same."""
        known = [*self.start[0], *(scalar for count in self.counts for scalar in count[0])]
        places = [gather.operation, *(outside_loops(value, gather.operation) for value in known)]
        place = max(places[1:] or places, key=lambda op: len(enclosing_ops(op)))
        with ir.InsertionPoint(place), gather.operation.location:
            left, corner = _sum(*self.start), []
            for count, step, lower in zip(
                self.counts[::-1], self.steps[::-1], self.lower[::-1], strict=True
            ):
                base = _product(count)
                digit = binary("arith.remsi", left, base)
                left = binary("arith.floordivsi", left, base)
                digit = binary("arith.muli", digit, _index(step)) if step > 1 else digit
                corner.append(binary("arith.addi", digit, _index(lower)) if lower else digit)
        with ir.InsertionPoint(gather.operation), gather.operation.location:
            moved = [_sum(list(map(_as_index, scalars)), 0) for scalars in self.offsets]
            return [left, *corner[::-1], _sum(*self.channel), *moved]


def im2col_walk(gather: tile.GatherOp) -> Im2colWalk:
    """How the copy engine finds the rows of a gather."""
    array, rank = gather.src, len(gather.indices)
    if rank not in IM2COL_CORNERS or len(shape(gather.result)) != 2:
        raise Refusal("images in im2col mode have 3 to 5 dimensions, and their rows two")
    if not has_narrow_indices(kernel_of(gather.operation)):
        raise Refusal("nobody checks the bounding box of a kernel of 64-bit indices")
    if defining_op(array) is not None or unbounded_dims(array) or static_strides(array)[-1] != 1:
        raise Refusal(
            "an image in im2col mode is a kernel argument with bounds whose channels lie together"
        )
    mask = constant_element(gather.mask)
    if mask is None or not mask.value:
        raise Refusal("rows are masked")
    found = _rows_of(gather)
    if found is None:
        raise Refusal("its numbers are no digits of consecutive rows")
    refuse(_why_no_walk(found, rank))
    return _walk(found, name_of(array))


class _Rows(NamedTuple):
    """What a gather brings: `row`, whose digits, as many as `counts` values each but for the first,
    are in the sums `between`; and along dimension `dim` of its tile `channels`."""

    row: Row
    counts: tuple[Factors, ...]
    between: tuple[IndexSum, ...]
    dim: int
    channels: IndexSum


def _rows_of(gather: tile.GatherOp) -> _Rows | None:
    """The rows of a gather, if its numbers are digits of one row, the last one the fastest."""
    sums = [found for index in gather.indices if (found := index_sum(index, (0, 1))) is not None]
    if len(sums) < len(gather.indices):
        return None
    first, *between, channels = sums
    image, dim = first.digit, channels.digit
    if not isinstance(image, Digit) or not isinstance(dim, int) or not is_along(channels):
        return None
    counts, below = [], ((), 1)
    for each in reversed(between):
        digit = each.digit
        if not isinstance(digit, Digit) or digit.modulo is None or digit.row != image.row:
            return None
        if quotient(digit.divisor, below) != ((), 1):
            return None
        counts.append(digit.modulo)
        below = product(below, digit.modulo)
    plain = first.factor == 1 and not first.scalars and not first.number
    if not plain or image.modulo is not None or quotient(image.divisor, below) != ((), 1):
        return None
    if image.row.dim == dim:
        return None
    return _Rows(image.row, tuple(counts[::-1]), tuple(between), dim, channels)


def _why_no_walk(found: _Rows, rank: int) -> str | None:
    """Says why the copy engine cannot walk over such rows, where no launch need be asked."""
    signs, row = Signs(), found.row
    scalars = [*row.scalars, *(scalar for count in found.counts for scalar in count[0])]
    if not all(is_index(s) for s in (*scalars, *found.channels.scalars)):
        return "its numbers are computed in other types than indices"
    scalars += [scalar for each in found.between for scalar in each.scalars]
    if row.number < 0 or not all(signs.is_never_negative(s) or never_negative(s) for s in scalars):
        return "its rows may begin in front of the first image"
    if any(not 1 <= each.factor <= MOST_IM2COL_STEP for each in found.between):
        return f"its rows lie more than {MOST_IM2COL_STEP} apart"
    corner = IM2COL_CORNERS[rank]
    if any(abs(each.number) > corner for each in found.between):
        return f"its rows begin more than {corner} in front of an image, or behind"
    return None


def _walk(found: _Rows, name: str | None) -> Im2colWalk:
    """The walk over such rows of the array `name`, if a launch can check what the hardware has few
    bits for."""
    rank = len(found.between) + 2
    extents = [text for count in found.counts if (text := _text(count)) is not None]
    most = [_most_of(each.scalars) for each in found.between]
    if len(extents) < len(found.counts) or any(text is None for text in most):
        raise Refusal("no launch knows how far its rows lie apart")
    limits = []
    for axis, (each, extent, moved) in enumerate(zip(found.between, extents, most, strict=True), 1):
        upper = f"({extent} - 1) * {each.factor} + {each.number} + 1 - {name}.shape[{axis}]"
        limits.append((upper, IM2COL_CORNERS[rank]))
        if moved:
            limits.append((moved, IM2COL_OFFSETS[rank]))
    return Im2colWalk(
        found.row.dim,
        found.dim,
        found.counts,
        tuple(extents),
        tuple(each.number for each in found.between),
        tuple(each.factor for each in found.between),
        tuple(each.scalars for each in found.between),
        (found.row.scalars, found.row.number),
        (found.channels.scalars, found.channels.number),
        tuple(limits),
    )


def _most_of(scalars: Sequence[ir.Value]) -> str | None:
    """The most that a sum comes to, as `_most`; nothing of none."""
    texts = [text for scalar in scalars if (text := _most(scalar)) is not None]
    return None if len(texts) < len(scalars) else " + ".join(texts)


def _most(value: ir.Value) -> str | None:
    """The most that a scalar comes to, as a launch computes it; None where it cannot."""
    op, value, _ = seen_through(value, ())
    known = constant_of(value)
    if known is not None:
        return str(known)
    if op is not None and op.name in ("arith.addi", "arith.muli"):
        parts = [_most(operand) for operand in op.operands]
        sign = "+" if op.name == "arith.addi" else "*"
        return None if None in parts else f"({parts[0]} {sign} {parts[1]})"
    parts = remainder_of(value)
    if parts is not None:
        count = text_of(parts[1])
        return None if count is None else f"({count} - 1)"
    end = _below(value)
    text = None if end is None else _text(end)
    return None if text is None else f"({text} - 1)"


def _below(value: ir.Value) -> Factors | None:
    """A product that a scalar, which is not negative, stays below: the end of a loop, of whose
    variable quotients are taken by some of the end's own factors."""
    op = defining_op(value)
    if op is not None:
        end = _below(op.operands[0]) if op.name in QUOTIENTS else None
        return None if end is None else quotient(end, factors_of(op.operands[1]))
    argument = ir.BlockArgument(value)
    loop = argument.owner.owner
    if loop.name != "scf.for" or argument.arg_number:
        return None
    return factors_of(whole_end(loop.operands[1]))


def _text(count: Factors) -> str | None:
    """A product as a launch computes it."""
    texts = [text for scalar in count[0] if (text := text_of(scalar)) is not None]
    numbers = [str(count[1])] if count[1] > 1 or not texts else []
    return " * ".join([*texts, *numbers]) if len(texts) == len(count[0]) else None


def _product(count: Factors) -> ir.Value:
    """A product of indices."""
    scalars = [*count[0], *([_index(count[1])] if count[1] > 1 or not count[0] else [])]
    total = scalars[0]
    for value in scalars[1:]:
        total = binary("arith.muli", total, value)
    return total


def _sum(scalars: Sequence[ir.Value], number: int) -> ir.Value:
    found = [*scalars, *([_index(number)] if number or not scalars else [])]
    total = found[0]
    for value in found[1:]:
        total = binary("arith.addi", total, value)
    return total


def _as_index(scalar: ir.Value) -> ir.Value:
    """A distance, which a launch keeps small, from 64 bits."""
    kind = ir.IndexType.get()
    return scalar if scalar.type == kind else create("arith.index_cast", [scalar], kind)


def _index(number: int) -> ir.Value:
    return constant(ir.IndexType.get(), number)
