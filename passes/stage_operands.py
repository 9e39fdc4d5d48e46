"""stage-operands: dot operands go through shared memory and come back as instruction fragments.

Before:   %d = "tile.dot"(%a, %b, %c) {options = {instruction = "mma.m16n8k16.f32.bf16.bf16"}} : ...
After:    %sa = "gpu_tile.alloc"() ...   "gpu_tile.buffer_store"(%a, %sa)      (and %sb for %b)
          %va = "gpu_tile.view"(%sa, %0, %k) ...   %fa = "gpu_tile.buffer_load"(%va)    (per k-step)
          %d0 = "gpu_tile.mma"(%fa, %fb, %c) {instruction = ...}

A dot by an instruction that reads its buffers itself: `warpgroup_dot`, `tensor_memory_dot`.
Where tensor copies bring what warps read (12.x; elsewhere beside a dot that reads buffers), the
buffer lies in swizzled panels as the copy engine writes them. An operand from outside a loop is
stored once, in front of it; dots that read one tile alike share its buffer. A k that is no multiple
of the instruction's is padded with zeros in the last step's fragments. An lhs that warps hold as
fragments, what they made of a product of their own, stays in registers, and one `gpu_tile.mma`
takes all of k.
Does not handle: operands that already lie in a buffer; an rhs in fragments.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import made_by
from tilec.dialects.gpu_tile import BufferLoadOp, MmaOp, MmaScaledOp
from tilec.dialects.gpu_tile.types import BufferType, buffer_of, layout_attr, layout_of
from tilec.dialects.types import bit_width, element, shape, with_element
from tilec.hardware.fragments import OperandLayouts, operand_layouts
from tilec.hardware.layout import Layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.sizes import WORD_BITS
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.buffer_fills import copies_fragments
from tilec.passes.copies.tensor_copies import why_no_tensor_copy
from tilec.passes.demands.loops import forbids_roles
from tilec.passes.dots.block_scales import replace_dot, stage_scale_fragments
from tilec.passes.dots.computed_lhs import ComputedOperands
from tilec.passes.dots.operand_buffers import staged_as
from tilec.passes.dots.tensor_memory_dot import stage_tensor_memory_dot
from tilec.passes.dots.warpgroup_dot import stage_warpgroup_dot
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.layouts.panels import operand_layout, swizzle_bytes
from tilec.passes.rewriting.buffers import view_part
from tilec.passes.rewriting.scalars import constant, less, select
from tilec.passes.rewriting.walk import find_ops

FMA_STEP = 1
"""Elements of k a step of an fma dot takes. Both operands then lie with stride 1 along m and n, so
that one 16-byte read serves four rows or columns, and two steps' fragments fit the registers."""
HELD_WORDS = 64
"""Registers of a thread for all fragments of an rhs whose lhs threads hold: a quarter of them."""


@kernel_pass(requires=Level.LAYOUTS, rings=True)
def stage_operands(function: ir.Operation, context: PassContext) -> None:
    """Turns every dot into buffer traffic and `gpu_tile.mma` per k-step."""
    computed = ComputedOperands(function, context)
    panels = _Panels(function, context)
    for dot in [op.opview for op in find_ops(function, tile.DotOp)]:
        with ir.InsertionPoint(dot.operation), dot.operation.location:
            _stage(dot, computed, panels, context)
    computed.erase_unused()


def _stage(
    dot: tile.DotOp, computed: ComputedOperands, panels: _Panels, context: PassContext
) -> None:
    row = find_instruction(dot.options["instruction"])
    if row.is_warpgroup:
        stage_warpgroup_dot(dot, row, computed, context)
        return
    if row.is_tensor:
        stage_tensor_memory_dot(dot, row, context)
        return
    rank = len(shape(dot.acc))
    depth = shape(dot.lhs)[-1]
    step = min(depth, FMA_STEP) if row.acc_layout is None else row.depth
    layouts = operand_layouts(
        row,
        layout_of(dot.acc),
        rank,
        step,
        lhs_k_first=_runs_along(dot.lhs, rank - 1),
        rhs_k_first=_runs_along(dot.rhs, rank - 2),
    )
    rhs = panels.staged(dot, dot.rhs, "rhs")
    whole = operand_layouts(row, layout_of(dot.acc), rank, depth)
    if _is_held(dot, whole, row):
        if rhs is None:
            rhs = _staged(dot.rhs, layouts.rhs, rank - 2, step, context, dot)
        why = "threads hold its fragments, of the product that it follows from"
        context.report.add("dot operand", dot.operation, "lhs in registers", why)
        right = _fragment(rhs, rank - 2, 0, depth, whole.rhs)
        replace_dot(dot, MmaOp.build(dot.lhs, right, dot.acc, instruction=row.name))
        return
    lhs = panels.staged(dot, dot.lhs, "lhs")
    if lhs is None:
        lhs = _staged(dot.lhs, layouts.lhs, rank - 1, step, context, dot)
    if rhs is None:
        rhs = _staged(dot.rhs, layouts.rhs, rank - 2, step, context, dot)
    steps = [
        lambda k=k: (
            _fragment(lhs, rank - 1, k, min(step, depth - k), layouts.lhs),
            _fragment(rhs, rank - 2, k, min(step, depth - k), layouts.rhs),
        )
        for k in range(0, depth, step)
    ]
    scales = stage_scale_fragments(dot, row, context) if row.is_scaled else ()
    total, following = dot.acc, steps[0]()
    for number in range(len(steps)):
        # The next step's fragments are on their way before this one multiplies.
        left, right = following
        if number + 1 < len(steps):
            following = steps[number + 1]()
        if scales:
            total = MmaScaledOp.build(
                *(left, right, total, *scales),
                instruction=row.name,
                block=number * row.scale_blocks,
            )
        else:
            total = MmaOp.build(left, right, total, instruction=row.name)
    replace_dot(dot, total)


def _is_held(dot: tile.DotOp, whole: OperandLayouts, row: MmaInstruction) -> bool:
    """Whether threads hold the lhs as the instruction reads it, in whole steps, and have registers
    for all fragments of the rhs. What comes from memory goes through buffers, as copies."""
    loaded = isinstance(dot.lhs.owner, (tile.LoadOp, tile.GatherOp))
    if row.acc_layout is None or row.is_scaled or loaded or shape(dot.lhs)[-1] % row.depth:
        return False
    words = whole.rhs.num_values * bit_width(element(dot.rhs)) // WORD_BITS
    return layout_of(dot.lhs) == whole.lhs and words <= HELD_WORDS


class _Panels:
    """Operands that tensor copies bring, where threads read them as fragments."""

    def __init__(self, function: ir.Operation, context: PassContext) -> None:
        self._context = context
        wanted = context.allowance.copies and not forbids_roles(function)
        self._facts = Divisibility(function) if wanted else None
        dots = [op.opview for op in find_ops(function, tile.DotOp)]
        self._beside = {dot.operation.block for dot in dots if _reads_buffers(dot)}

    def staged(self, dot: tile.DotOp, value: ir.Value, side: str) -> ir.Value | None:
        """A buffer that holds `value` as the copy engine writes it, None if it cannot bring it.

        In panels as wide as the widest swizzle that its rows in memory are a multiple of: eight
        rows' 16 bytes then lie in different banks, and one ldmatrix reads them at once.
        """
        transpose = made_by(value, tile.TransposeOp)
        order = [0, 1] if transpose is None else list(transpose.permutation)
        load = made_by(value if transpose is None else transpose.src, tile.LoadOp)
        beside = dot.operation.block in self._beside
        wanted = copies_fragments(self._context, beside=beside)
        if self._facts is None or load is None or len(order) != 2:
            return None
        dims, k_dim = [load.dims[d] for d in order], int(side == "lhs")
        row = contiguous_dim(load.src, dims)
        in_loop = load.operation.block.owner.name == "scf.for"
        if not wanted or not in_loop or row is None or not _matrices(dot, value, row == k_dim):
            return None
        if not swizzle_bytes(shape(value)[row], element(value)):
            return None
        layout = operand_layout(shape(value), element(value), row)
        type_ = BufferType.of(value, layout)
        if why_no_tensor_copy(load, type_, dims, self._facts, self._context) is not None:
            return None
        why = "fragments are read by threads that did not load them"
        return staged_as(dot, value, type_, self._context, side, why)


def _reads_buffers(dot: tile.DotOp) -> bool:
    """Whether a dot's instruction reads operands from buffers, as tensor copies bring them."""
    row = find_instruction(dot.options["instruction"])
    return row.is_warpgroup or row.is_tensor


def _matrices(dot: tile.DotOp, value: ir.Value, along_k: bool) -> bool:
    """Whether ldmatrix reads an operand's fragments from panels: with .trans of 16 bits only (PTX
    ISA 9.0, "ldmatrix")."""
    bits = bit_width(element(value))
    if find_instruction(dot.options["instruction"]).acc_layout is None or bits > WORD_BITS:
        return False
    return bits == 16 or along_k


def _runs_along(value: ir.Value, dim: int) -> bool:
    """Whether neighbours along `dim` lie in neighbouring registers of a tile, which lies so in the
    buffer, too."""
    values = layout_of(value).values
    return bool(values) and (values[0].dim, values[0].stride) == (dim, 1)


def _staged(
    value: ir.Value,
    fragment: Layout,
    axis: int,
    step: int,
    context: PassContext,
    dot: tile.DotOp,
) -> ir.Value:
    """A buffer that holds the operand; `step` elements along `axis` are read at a time."""
    part = list(shape(value))
    part[axis] = min(step, part[axis])
    # FMA units multiply one element an instruction: a read takes the slot of a product.
    on_fma_units = find_instruction(dot.options["instruction"]).acc_layout is None
    fragments = ((fragment, tuple(part)),)
    type_ = buffer_for(value, fragments=fragments, per_instruction=int(on_fma_units))
    why = "fragments are read by threads that did not load them"
    side = "lhs" if axis == len(part) - 1 else "rhs"
    return staged_as(dot, value, type_, context, side, why)


def _fragment(buffer: ir.Value, axis: int, k: int, size: int, layout: Layout) -> ir.Value:
    """The fragments of elements [k, k+size) along `axis`; what a short step lacks is zero."""
    whole = buffer_of(buffer)
    sizes = list(whole.shape)
    sizes[axis] = size
    view = view_part(buffer, [k if d == axis else 0 for d in range(len(sizes))], sizes)
    tile_type = ir.RankedTensorType.get(sizes, whole.element, layout_attr(layout))
    loaded = BufferLoadOp.build(view, results=[tile_type])
    return loaded if layout.extents(len(sizes))[axis] == size else _zero_past(loaded, axis, size)


def _zero_past(value: ir.Value, axis: int, size: int) -> ir.Value:
    """Makes phantoms along `axis` zero, as the instruction multiplies them like any other
    element."""
    i32 = ir.IntegerType.get_signless(32)
    at = tile.IotaOp.build(results=[with_element(value, i32)], axis=axis)
    inside = less(at, size)
    return select(inside, value, constant(value.type, 0))
