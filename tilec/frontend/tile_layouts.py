"""Layouts of tiles in explicit kernels: how they pass through ordinary operators.

An elementwise op gives its result the layout of its tiles, which must be one. A tile that has none,
because it is made of constants, coordinates and scalars alone, is made again in the layout wanted:
that costs nothing, and the first one is dropped when nothing uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile import RoleOp
from tilec.dialects.gpu_tile.types import layout_attr, layout_in, layout_of
from tilec.dialects.tile import BroadcastOp, IotaOp
from tilec.dialects.types import encoding, is_tile, shape
from tilec.frontend.builder import ELEMENTWISE, Builder
from tilec.frontend.values import Mistake, Tile, show_shape
from tilec.hardware.layout import Layout, Mode, copies, covers, normalize
from tilec.hardware.sizes import WARP_SIZE
from tilec.messages.diagnostics import CompileError
from tilec.passes.layouts.maps import broadcast_source
from tilec.passes.rewriting.locations import error_at

_CONVERT = "help: between threads a tile moves through a buffer: store, gpu.sync, load"


class LayoutBuilder(Builder):
    """A builder of kernels that may be explicit: from then on elementwise ops on tiles with a
    layout have it in their results, and tiles without take it."""

    def agree(
        self, operands: Sequence[ir.Value], results: Sequence[ir.Type] = ()
    ) -> tuple[Sequence[ir.Value], Sequence[ir.Type]]:
        """Operands and result types of an op whose tiles have one layout, in that layout."""
        if not self.explicit:
            return operands, results
        return with_common_layout(self, operands, results)


def with_common_layout(
    builder: Builder, operands: Sequence[ir.Value], results: Sequence[ir.Type]
) -> tuple[list[ir.Value], list[ir.Type]]:
    """The operands and result types of an elementwise op, in the one layout its tiles have."""
    found: list[ir.Attribute] = []
    for value in operands:
        layout = encoding(value) if is_tile(value) else None
        if layout is not None and layout not in found:
            found.append(layout)
    if not found:
        return list(operands), list(results)
    if len(found) > 1:
        raise Mistake(
            "the tiles have different layouts",
            f"one is {layout_text(found[0])}",
            f"the other is {layout_text(found[1])}",
            "help: gpu.convert_layout moves elements inside a thread",
            _CONVERT,
        )
    check_threads(builder, layout_in(found[0]))
    values = [lay_out(builder, v, found[0]) if is_tile(v) else v for v in operands]
    types = [with_layout(t, found[0]) if is_tile(t) else t for t in results]
    return values, types


def with_layout(tile: Any, layout: ir.Attribute) -> ir.Type:
    """A tile type in another layout."""
    return ir.RankedTensorType.get(list(tile.shape), tile.element_type, layout)


def keep_layout(
    value: ir.Value, source: ir.Attribute | None, change: Callable[[Layout], Layout]
) -> None:
    """Gives an op's result the layout that follows from its operand's, if that has one."""
    if source is not None:
        value.set_type(with_layout(value.type, layout_attr(change(layout_in(source)))))


def expanded_layout(
    tile: Tile, sizes: tuple[int, ...], dims: tuple[int, ...]
) -> ir.Attribute | None:
    """The layout of a broadcast that only adds dimensions of size 1; of others it is open."""
    kept = {dim: size for dim, size in zip(dims, tile.shape, strict=True)}
    if tile.layout is None or any(s != kept.get(d, 1) for d, s in enumerate(sizes)):
        return None

    def moved(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
        return tuple(Mode(m.size, m.stride, dims[m.dim]) if m.stride else m for m in modes)

    found = layout_in(tile.layout)
    return layout_attr(Layout(moved(found.threads), moved(found.values)))


def lay_out(builder: Builder, value: ir.Value, layout: ir.Attribute) -> ir.Value:
    """A tile in `layout`: itself, or made again if it has none. Mistake where it cannot be."""
    found = encoding(value)
    if found is not None:
        if found == layout:
            return value
        raise Mistake(
            f"the tile has the layout {layout_text(found)}, expected {layout_text(layout)}",
            _CONVERT,
        )
    op = defining_op(value)
    if op is not None:
        made = _made_again(builder, op, with_layout(value.type, layout))
        if made is not None:
            return made
    name = "it comes from around a loop" if op is None else f"it is made by '{op.name}'"
    raise Mistake(
        f"the tile {show_shape(shape(value))} has no layout: {name}",
        "help: tl.zeros, tl.full, tl.arange and numbers take a layout from what they meet; "
        "gpu.load, gpu.zeros and gpu.full are given one",
    )


def _made_again(builder: Builder, op: ir.Operation, type_: Any) -> ir.Value | None:
    """A tile without a layout in `type_`, None if its op is none that may be repeated."""
    if op.name == "arith.constant":
        return builder.typed_constant(op.attributes["value"].get_splat_value(), type_)
    if op.name == "tensor.splat":
        return builder.value(op.name, type_, op.operands[0])
    if op.name == IotaOp.OPERATION_NAME:
        return IotaOp.build(results=[type_], axis=op.opview.axis)
    if op.name == BroadcastOp.OPERATION_NAME:
        return _broadcast(builder, op.opview, type_)
    if op.name.startswith(ELEMENTWISE):
        operands = [lay_out(builder, v, type_.encoding) if is_tile(v) else v for v in op.operands]
        attributes = {name: op.attributes[name] for name in op.attributes}
        return builder.value(op.name, type_, *operands, **attributes)
    return None


def _broadcast(builder: Builder, op: Any, type_: Any) -> ir.Value:
    """A broadcast to `type_`; its source must lie as the result does, without what repeats."""
    result = layout_in(type_.encoding)
    wanted = broadcast_source(result, op.dims, shape(op.src))
    source = op.src
    if encoding(source) is None:
        source = lay_out(builder, source, layout_attr(wanted))
    elif normalize(layout_of(source)) != wanted:
        raise Mistake(
            f"the tile {show_shape(shape(source))} does not lie so that it can be repeated to "
            f"{show_shape(tuple(type_.shape))}",
            f"it has the layout {layout_of(source)}",
            f"the result in {result} needs it in {wanted} (gpu.sliced)",
            _CONVERT,
        )
    return BroadcastOp.build(source, results=[type_], dims=op.dims)


def attribute_of(
    builder: Builder, layout: Any, sizes: tuple[int, ...], argument: str = "layout"
) -> ir.Attribute:
    """The attribute of an author's layout for a tile of `sizes`. Mistake where it does not fit."""
    if not isinstance(layout, Layout):
        raise Mistake(
            "expected a register layout, e.g. gpu.layout('T(32):(1@0) V(4):(32@0)')",
            argument=argument,
        )
    check_threads(builder, layout, argument)
    if layout.rank > len(sizes):
        raise Mistake(
            f"layout {layout} has {layout.rank} dimensions, the tile {show_shape(sizes)} has "
            f"{len(sizes)}",
            argument=argument,
        )
    if not covers(layout, sizes):
        raise Mistake(
            f"layout {layout} leaves elements of the tile {show_shape(sizes)} to nobody",
            f"it reaches {show_shape(layout.extents(len(sizes)))}",
            argument=argument,
        )
    return layout_attr(layout)


def check_threads(builder: Builder, layout: Layout, argument: str | None = None) -> None:
    """Mistake unless a layout is for the threads of the kernel, or of the role around."""
    warps = current_warps(builder)
    if layout.num_threads != warps * WARP_SIZE:
        where = "kernel" if builder.role_warps is None else "role"
        raise Mistake(
            f"layout {layout} is for {layout.num_threads} threads, the {where} has "
            f"{warps * WARP_SIZE}",
            argument=argument,
        )


def current_warps(builder: Builder) -> int:
    """Warps that run what is being built. Mistake where the kernel does not say how many."""
    if builder.role_warps is not None:
        return builder.role_warps
    if builder.num_warps is None:
        raise Mistake(
            "an explicit kernel says how many warps it has",
            "help: @tilec.kernel(num_warps=4)",
        )
    return builder.num_warps


def complete_layouts(function: ir.Operation, num_warps: int) -> None:
    """Gives every tile of shape () its layout. CompileError at other tiles that have none."""
    errors: list[CompileError] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        for value in op.results:
            if not is_tile(value) or encoding(value) is not None:
                continue
            if shape(value):
                # Constants stand at the top: what is made of them tells the author more.
                errors.insert(
                    len(errors) if op.name == "arith.constant" else 0,
                    error_at(
                        op,
                        f"this tile {show_shape(shape(value))} has no layout",
                        "in a kernel that uses tilec.language.gpu every tile has one",
                        "help: gpu.load, gpu.zeros and gpu.full take a layout, "
                        "gpu.convert_layout gives one",
                    ),
                )
            else:
                _set_layout(op, value, scalar_layout(_warps_of(op, num_warps)))
        return ir.WalkResult.ADVANCE

    with function.location:
        function.walk(visit, ir.WalkOrder.PRE_ORDER)
    if errors:
        raise errors[0]


def _set_layout(op: ir.Operation, value: ir.Value, layout: ir.Attribute) -> None:
    type_ = with_layout(value.type, layout)
    if op.name == "arith.constant":
        number = op.attributes["value"].get_splat_value()
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, number)
    value.set_type(type_)


def _warps_of(op: ir.Operation, num_warps: int) -> int:
    parent = op.parent
    while parent is not None:
        if isinstance(parent.opview, RoleOp):
            return parent.opview.warps
        parent = parent.parent
    return num_warps


def scalar_layout(warps: int) -> ir.Attribute:
    """The layout of a tile of shape (): every thread holds it."""
    return layout_attr(Layout((copies(warps * WARP_SIZE),), ()))


def layout_text(layout: ir.Attribute | None) -> str:
    """A layout attribute as the author writes it."""
    return "none" if layout is None else str(layout_in(layout))
