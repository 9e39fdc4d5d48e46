"""Writes chosen layouts into the IR: types, and conversions where an op needs another layout."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.types import element, shape
from tilec.hardware.layout import Layout
from tilec.passes.contract import PassContext
from tilec.passes.layouts.components import Components, equal_layout_edges
from tilec.passes.layouts.maps import broadcast_source
from tilec.passes.layouts.scan_layout import scan_layout, supports_scan
from tilec.passes.rewriting.loops import behind, terminator
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.values import retype
from tilec.passes.rewriting.walk import blocks_in, is_of


def assign_layouts(
    ops: list[ir.Operation],
    components: Components,
    cuts: OpMap[Layout],
    context: PassContext,
) -> None:
    """Types every tile of a function, whose ops are `ops`.

    `cuts`: memory accesses that use a layout of their own.
    """
    attributes: dict[Layout, ir.Attribute] = {}

    def typed(value: ir.Value, layout: Layout) -> ir.Type:
        if layout not in attributes:
            attributes[layout] = layout_attr(layout)
        return ir.RankedTensorType.get(list(shape(value)), element(value), attributes[layout])

    for component in components.all():
        for value in component.values:
            assert component.layout is not None  # `infer-layouts` has given each one
            retype(value, typed(value, component.layout))
    for op in ops:
        _Fix(op, cuts.get(op), typed, context).apply()


Typed = Callable[[ir.Value, Layout], ir.Type]
"""The type of a value in a layout."""


class _Fix:
    """Makes one op's operands and results agree, now that all values have their component's
    layout."""

    def __init__(
        self, op: ir.Operation, cut: Layout | None, typed: Typed, context: PassContext
    ) -> None:
        self.op, self.cut, self.typed, self.context = op, cut, typed, context

    def apply(self) -> None:
        """Inserts the conversions this op needs."""
        view = self.op.opview
        if self.cut is not None:
            self._cut(self.cut)
        elif isinstance(view, tile.ReduceOp):
            self._reduce(view)
        elif isinstance(view, tile.ScanOp):
            self._scan(view)
        elif isinstance(view, tile.JoinOp):
            for number in range(2, len(view.inputs)):
                self._need(number, layout_of(view.inputs[1]))  # IRDL: one type for a group
        elif isinstance(view, tile.SplitOp):
            for part in view.parts[1:]:
                self._force(part, layout_of(view.parts[0]))
        elif isinstance(view, tile.BroadcastOp):
            self._need(0, broadcast_source(layout_of(view.result), view.dims, shape(view.src)))
        elif isinstance(view, tile.TransposeOp):
            inverse = [view.permutation.index(i) for i in range(len(view.permutation))]
            self._need(0, layout_of(view.result).permute(inverse))
        else:
            self._agree()

    def _cut(self, cut: Layout) -> None:
        if is_of(self.op, tile.StoreOp):
            self._need(0, cut)
        else:
            self._force(self.op.results[0], cut)

    def _reduce(self, op: tile.ReduceOp) -> None:
        layout = layout_of(op.inputs[0])
        for number in range(1, len(op.inputs)):
            self._need(number, layout)
        for result in op.outputs:
            self._force(result, layout.slice(op.axis))

    def _scan(self, op: tile.ScanOp) -> None:
        layout = layout_of(op.inputs[0])
        sizes = shape(op.inputs[0])
        if not supports_scan(layout, sizes, op.axis):
            layout = scan_layout(sizes, op.axis, self.context.num_warps)
        for number in range(len(op.inputs)):
            self._need(number, layout)
        for result in op.outputs:
            self._force(result, layout)

    def _agree(self) -> None:
        """Converts, in elementwise ops, loops and branches, every value whose layout differs from
        that of the value that it is tied to."""
        for target, other in equal_layout_edges(self.op):
            if layout_of(target) != layout_of(other):
                self._convert_edge(target, other)

    def _convert_edge(self, target: ir.Value, other: ir.Value) -> None:
        """Converts `other`, an operand of this op or of a terminator in it, to the layout of
        `target`."""
        wanted = layout_of(target)
        owners = [self.op, *map(terminator, blocks_in(self.op))]
        for owner in owners:
            for number, operand in enumerate(owner.operands):
                if operand == other:
                    owner.operands[number] = self._converted(other, wanted, owner)

    def _need(self, number: int, layout: Layout) -> None:
        value = self.op.operands[number]
        if layout_of(value) != layout:
            self.op.operands[number] = self._converted(value, layout, self.op)

    def _converted(self, value: ir.Value, layout: Layout, before: ir.Operation) -> ir.Value:
        with ir.InsertionPoint(before), self.op.location:
            return ConvertLayoutOp.build(value, results=[self.typed(value, layout)])

    def _force(self, result: ir.Value, layout: Layout) -> None:
        """The op makes `result` in `layout`; its users go on with the component's."""
        wanted = layout_of(result)
        if wanted == layout:
            return
        retype(result, self.typed(result, layout))
        with ir.InsertionPoint(behind(self.op)), self.op.location:
            copy = ConvertLayoutOp.build(result, results=[self.typed(result, wanted)])
        result.replace_all_uses_except(copy, copy.owner.operation)
