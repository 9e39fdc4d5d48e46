"""How stage-operands keeps what is computed from loaded tiles in registers: an lhs of warpgroup
instructions.

Before:   %x = "tile.load"(%a, %m, %k)   %y = f(%x), element by element
          %d = "tile.dot"(%y, %b, %c) {options = {instruction = "wgmma.m64n256k16.f32.bf16.bf16"}}
After:    %x = "tile.load"(%a, %m, %k)   "gpu_tile.buffer_store"(%x, %s)      (%b in %sb alike)
          %p = "gpu_tile.wgmma_fence"(%c)
          %x0 = "gpu_tile.buffer_load"(the first half of %s along k)   %y0 = f(%x0)
          %q0 = "gpu_tile.wgmma"(%y0, the first half of %sb, %p)
          %x1 = "gpu_tile.buffer_load"(the second half of %s)          %y1 = f(%x1)
          %q1 = "gpu_tile.wgmma"(%y1, the second half of %sb, %q0)
          %d = "gpu_tile.wgmma_wait"(%q1) {pending = 0 : i32}

So the loads do nothing but fill buffers, and become tensor copies: a tile arrives as it lies in
memory, and the warpgroups that multiply read their own rows of it, as the instruction's fragments.
In two parts because registers that an instruction reads may not be written before it is done: one
part is computed while the other is multiplied (overlap-mma).

A tile that nothing is computed of comes this way, too, where it is contiguous along m, and the
instruction has rows for that (`MmaInstruction.paired`): from shared memory, tensor cores read
elements of other than 16 bits along k only.

An operand qualifies if it follows from at least one tile loaded in the dot's own block, a loop's,
and all its tiles of two dimensions are loaded there, by what the copy engine can do and buffers can
hold; elementwise ops, transposes, broadcasts, constants and element numbers may stand between.
Tiles of one dimension that are loaded there arrive whole, too, or are loaded again, part by part,
by who needs them, where no tensor copy brings them; those from outside the loop that every part
needs whole change their layout out there. Everything else stays with `warpgroup_dot` and
`roles.fills`, and the report says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.dialects.def_use import defining_op, made_by, traced
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import BufferLoadOp, ConvertLayoutOp, WgmmaFenceOp, WgmmaOp
from tilec.dialects.gpu_tile.types import BufferType, buffer_of, layout_attr
from tilec.dialects.tile import BroadcastOp, DotOp, IotaOp, LoadOp, TransposeOp
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.fragments import accumulator_layout, lhs_fragments, warpgroup_grid
from tilec.hardware.layout import Layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.shared_layout import strided
from tilec.hardware.sizes import VECTOR_BYTES, WORD_BITS
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.contract import PassContext
from tilec.passes.copies.buffer_fills import Uses, why_no_copy
from tilec.passes.copies.tensor_copies import panels_for, why_no_tensor_copy
from tilec.passes.demands.kernels import teams_of
from tilec.passes.demands.loops import forbids_roles
from tilec.passes.dots.operand_buffers import filled_buffer
from tilec.passes.layouts.components import is_thin, tile_bytes
from tilec.passes.layouts.maps import broadcast_source
from tilec.passes.layouts.panels import panel_elements
from tilec.passes.rewriting.buffers import view_part
from tilec.passes.rewriting.free_ops import erase_unused
from tilec.passes.rewriting.loops import is_inside, outside_loops
from tilec.passes.rewriting.scalars import binary, constant
from tilec.passes.rewriting.values import again
from tilec.passes.rewriting.walk import is_of
from tilec.passes.roles.registers import COMPUTE_REGISTERS, plan_roles
from tilec.records import dataclass


@dataclass(frozen=True)
class Part:
    """A rectangle of a tile, and how threads hold it."""

    origin: tuple[int, ...]
    sizes: tuple[int, ...]
    layout: Layout

    def like(self, value: ir.Value) -> ir.Type:
        """The type of this part of `value`."""
        return tile_type(self.sizes, element(value), layout_attr(self.layout))

    def below(self, op: ir.OpView) -> Part:
        """The part of an op's operands that this part of its result needs."""
        dims = _dims_in_result(op)
        if dims is None:
            return self
        ones = [size == 1 for size in shape(op.operands[0])]
        sizes = tuple(1 if one else self.sizes[d] for one, d in zip(ones, dims, strict=True))
        origin = tuple(0 if one else self.origin[d] for one, d in zip(ones, dims, strict=True))
        turned = is_of(op.operation, TransposeOp)
        layout = self.layout.permute(dims) if turned else broadcast_source(self.layout, dims, sizes)
        return Part(origin, sizes, layout)


def _dims_in_result(op: ir.OpView) -> Sequence[int] | None:
    """Of each dimension of a broadcast's or transpose's source, which of the result it is; None for
    other ops, whose tiles have one shape."""
    if is_of(op.operation, BroadcastOp):
        return op.dims
    if is_of(op.operation, TransposeOp):
        return [op.permutation.index(d) for d in range(len(op.permutation))]
    return None


MOST_ELEMENTS = 32
"""Of a part in a thread: 128 x 32 in one warpgroup. What is computed of them takes registers, and
with more parts than two ptxas has the instructions wait for each other (C7513)."""

_Made = dict[tuple[ir.Block, ir.Value, Part], ir.Value]
"""Per block, tile and part of it what was written."""


class ComputedOperands:
    """The computed operands of a function's products; what two products need is computed once."""

    def __init__(self, function: ir.Operation, context: PassContext) -> None:
        self._function, self._context = function, context
        self._made: _Made = {}
        self._replaced: list[ir.Value] = []

    def qualifies(self, dot: DotOp, row: MmaInstruction) -> bool:
        """Whether the lhs of `dot`, whose instruction is `row`, is computed part by part, in
        registers, from tiles that the copy engine brings."""
        reason = self.refusal(dot, row)
        if reason:
            self._context.report.add("dot operand", dot.operation, "lhs not in registers", reason)
        return reason is None

    def refusal(self, dot: DotOp, row: MmaInstruction) -> str | None:
        """Says why the lhs of `dot` does not qualify; "" where that needs no words, as with an lhs
        that nobody computes; None if it qualifies."""
        if dot.operation.block.owner.name != "scf.for" or forbids_roles(self._function):
            return ""
        check = _Check(dot, self._function, self._context)
        reason = check.why_not(dot.lhs, (False, True))
        if not (check.computes or row.paired) or not (check.raw or reason):
            return ""
        return reason or self._why_no_room(dot, row, check.raw)

    def _why_no_room(
        self, dot: DotOp, row: MmaInstruction, raw: Sequence[BufferType]
    ) -> str | None:
        """Says what there is too little of, registers or shared memory, for parts of the operand
        and for tiles that wait as they are; None if there is enough."""
        target, warps = self._context.target, self._context.num_warps
        elements = _fragments(dot, row, _first_part(dot, row), warps).num_values
        bits = elements * bit_width(element(dot.lhs))
        sums = prod(shape(dot.acc)) // self._context.num_threads * bit_width(element(dot.acc))
        taken = sums // WORD_BITS + 2 * -(-bits // WORD_BITS) + COMPUTE_REGISTERS
        roles = plan_roles(target, warps, teams=teams_of(self._function))
        there = roles["compute"].registers or target.registers_per_thread
        if elements > MOST_ELEMENTS:
            return (
                f"a thread would have {elements} elements of each half, more than {MOST_ELEMENTS}"
            )
        if taken > there:
            return f"sums and two halves of it take {taken} of {there} registers"
        slot = tile_bytes(dot.rhs) + sum(buffer.size_bytes for buffer in raw)
        if 2 * slot > target.shared_bytes:
            return f"{slot} bytes for its tiles as they are leave room for one stage"
        return None

    def multiply(self, dot: DotOp, row: MmaInstruction, rhs: ir.Value) -> ir.Value:
        """Issues `dot` in parts at the current insertion point; the pending sum."""
        rows, depth = shape(dot.lhs)
        first, warps = _first_part(dot, row), self._context.num_warps
        write = _Write(dot, self._made, Divisibility(self._function), self._context)
        issued: ir.Value | None = None
        for start, size in ((0, first), (first, depth - first)):
            if not size:
                continue
            part = Part((0, start), (rows, size), _fragments(dot, row, size, warps))
            lhs = write.part(dot.lhs, part)
            # Behind what is computed first: the registers are handed over as late as can be.
            sum_ = WgmmaFenceOp.build(dot.acc) if issued is None else issued
            right = rhs if size == depth else view_part(rhs, (start, 0), (size, shape(dot.rhs)[1]))
            issued = WgmmaOp.build(lhs, right, sum_, instruction=row.name)
        bytes_ = sum(buffer_of(buffer).size_bytes for buffer in write.buffers)
        self._context.report.add(
            "dot operand",
            dot.operation,
            f"lhs in registers, from {bytes_} bytes of shared memory",
            "its tiles come there as they are, and who multiplies computes them",
        )
        self._replaced.append(dot.lhs)
        return issued

    def erase_unused(self) -> None:
        """Erases what the parts were made of, once no product is left that might need it."""
        for value in dict.fromkeys(self._replaced):
            erase_unused(value)


def _first_part(dot: DotOp, row: MmaInstruction) -> int:
    """Columns of the lhs that the first part has: half of the instructions' steps, or one more; of
    an rhs in panels along k, whole ones."""
    depth = shape(dot.lhs)[1]
    panel = panel_elements(depth, element(dot.rhs))
    unit = panel if panel and panel < depth else row.k
    return -(-depth // unit // 2) * unit


def _fragments(dot: DotOp, row: MmaInstruction, k: int, num_warps: int) -> Layout:
    """The layout in which threads hold `k` columns of the lhs."""
    sizes = shape(dot.acc)
    grid = warpgroup_grid(sizes, num_warps)
    assert grid is not None  # the product was chosen for it
    return lhs_fragments(row, accumulator_layout(row, sizes, *grid), 2, k)


def memory_run(value: ir.Value) -> int | None:
    """The dimension along which a tile's elements neighbour each other in the array that it is
    loaded from, maybe transposed; None where it is not."""
    transposes, value = traced(value, TransposeOp)
    load = made_by(value, LoadOp)
    run = None if load is None else contiguous_dim(load.src, load.dims)
    for transpose in reversed(transposes) if run is not None else ():
        run = transpose.permutation.index(run)
    return run


class _Check:
    """Looks through what an operand follows from. `raw`: the buffers that tiles of its loop need;
    `computes`: whether something stands between them and the product."""

    def __init__(self, dot: DotOp, function: ir.Operation, context: PassContext) -> None:
        self._dot, self._context = dot, context
        self._facts = Divisibility(function)
        self._seen: set[tuple[ir.Value, tuple[bool, ...]]] = set()
        self.raw: list[BufferType] = []
        self.computes = False

    def why_not(self, value: ir.Value, in_parts: Sequence[bool]) -> str | None:
        """Says why `value` cannot be computed part by part; None if it can.

        `in_parts`: for each of its dimensions whether it runs along k: there a part of the operand
        needs a part of the tile, elsewhere the whole.
        """
        # A square tile may be needed both as it is and transposed.
        key = value, tuple(in_parts)
        if key in self._seen or not is_tile(value) or _is_remade(value):
            return None
        self._seen.add(key)
        block, op, sizes = self._dot.operation.block, value.owner, shape(value)
        made, outside = defining_op(value), not is_inside(value, block.owner)
        along_k = any(s > 1 for s, along in zip(sizes, in_parts, strict=True) if along)
        if outside and is_thin(value) and not along_k:
            return None
        if outside and (made is None or isinstance(op, LoadOp)):
            return "a tile along k comes from outside the loop"
        if made is None or not (outside or made.block == block):
            return "a tile of it comes from another block or iteration"
        if isinstance(op, LoadOp):
            return None if is_thin(value) else self._why_no_copy(op)
        dims = _dims_in_result(op)
        if dims is not None:
            in_parts = [in_parts[d] for d in dims]
        elif is_elementwise(op.operation) and len(op.operation.results) == 1:
            self.computes = True
        elif not isinstance(op, ConvertLayoutOp):
            return f"'{op.operation.name}' stands between load and product"
        reasons = (self.why_not(operand, in_parts) for operand in op.operation.operands)
        return next((reason for reason in reasons if reason is not None), None)

    def _why_no_copy(self, load: LoadOp) -> str | None:
        reason = why_no_copy(load, Uses([], False, []), False, VECTOR_BYTES, "")
        buffer = None if reason is not None else panels_for(load)
        if buffer is None:
            return reason or "no rows of its tile are rows of a box"
        self.raw.append(buffer)
        return why_no_tensor_copy(load, buffer, load.dims, self._facts, self._context)


def _is_remade(value: ir.Value) -> bool:
    """Whether a tile costs nothing to make anew in any layout."""
    return defining_op(value, "arith.constant", "tensor.splat", "tile.iota") is not None


class _Write:
    """Writes the parts of one product's operand at the current insertion point. `buffers`: where
    its tiles arrive."""

    def __init__(self, dot: DotOp, made: _Made, facts: Divisibility, context: PassContext) -> None:
        self._dot, self._made, self._facts, self._context = dot, made, facts, context
        self.buffers: list[ir.Value] = []

    def part(self, value: ir.Value, part: Part) -> ir.Value:
        """Makes `part` of a tile, once a block; a scalar stays as it is."""
        if not is_tile(value):
            return value
        key = self._dot.operation.block, value, part
        if key not in self._made:
            with value.owner.operation.location:
                self._made[key] = self._write(value, part)
        return self._made[key]

    def _write(self, value: ir.Value, part: Part) -> ir.Value:
        op, type_ = value.owner, part.like(value)
        if _is_remade(value):
            return _remade(op.operation, part, type_)
        outside = not is_inside(value, self._dot.operation.block.owner)
        if outside and is_thin(value) and part.sizes == shape(value):
            with ir.InsertionPoint(outside_loops(value, self._dot.operation)):
                return ConvertLayoutOp.build(value, results=[type_])
        if isinstance(op, LoadOp):
            return self._read_thin(op, part) if is_thin(value) else self._read(op, part)
        if isinstance(op, ConvertLayoutOp):
            return self.part(op.src, part)
        operands = [self.part(operand, part.below(op)) for operand in op.operation.operands]
        return again(op.operation, operands, type_)

    def _read(self, load: LoadOp, part: Part) -> ir.Value:
        kind = panels_for(load)
        assert kind is not None  # else the lhs is not computed from it in parts
        return self._read_from(kind, load, part)

    def _read_thin(self, load: LoadOp, part: Part) -> ir.Value:
        """A part of a row or column: from where all of it arrives, or, where no tensor copy brings
        that, and where the part is all, loaded by who needs it."""
        sizes = shape(load.result)
        kind = BufferType.of(load.result, strided(sizes, (1,))) if len(sizes) == 1 else None
        if part.sizes == sizes or kind is None or self._why_not_copied(load, kind) is not None:
            return _load_again(load, part)
        return self._read_from(kind, load, part)

    def _why_not_copied(self, load: LoadOp, kind: BufferType) -> str | None:
        reason = why_no_copy(load, Uses([], False, []), False, VECTOR_BYTES, "")
        return reason or why_no_tensor_copy(load, kind, load.dims, self._facts, self._context)

    def _read_from(self, kind: BufferType, load: LoadOp, part: Part) -> ir.Value:
        buffer = filled_buffer(load.result, kind, self._dot.operation)
        if buffer not in self.buffers:
            self.buffers.append(buffer)
        view = view_part(buffer, part.origin, part.sizes)
        return BufferLoadOp.build(view, results=[part.like(load.result)])


def _remade(op: ir.Operation, part: Part, type_: ir.Type) -> ir.Value:
    """A constant, a splat or element numbers, for a part."""
    made = again(op, op.operands, type_)
    start = part.origin[op.opview.axis] if is_of(op, IotaOp) else 0
    if not start:
        return made
    return binary("arith.addi", made, constant(type_, start))


def _load_again(load: LoadOp, part: Part) -> ir.Value:
    """A part of a row or column, loaded by who needs it where the whole was loaded."""
    with ir.InsertionPoint(load.operation), load.operation.location:
        offsets = list(load.offsets)
        for axis, start in zip(load.dims, part.origin, strict=True):
            if start:
                offsets[axis] = binary(
                    "arith.addi", offsets[axis], constant(ir.IndexType.get(), start)
                )
        return LoadOp.build(
            load.src,
            offsets,
            dims=load.dims,
            padding=load.padding,
            options=load.options,
            results=[part.like(load.result)],
        )
