"""Legality sets: what a module may contain at each level, and which op breaks the rule.

Checked once on every program that comes in, and between passes when `PassContext.verify` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import encoding, is_tile, shape
from tilec.passes.contract import Level
from tilec.passes.layout_maps import register_permutation

Rule = Callable[[ir.Operation], "str | None"]

_SCALAR_OPS = {
    "builtin.module",
    "func.func",
    "func.return",
    "gpu.yield",
    "memref.dim",
    "scf.condition",
    "scf.for",
    "scf.if",
    "scf.while",
    "scf.yield",
    "tensor.extract",
    "tensor.splat",
}
_DEMANDS = {
    "func.func": (
        "tile.auto",
        "tile.cluster",
        "tile.constants",
        "tile.consumers",
        "tile.explicit",
        "tile.grid",
        "tile.group",
        "tile.index_bits",
        "tile.kernel",
        "tile.num_warps",
        "tile.order",
        "tile.persistent",
        "tile.shared_bytes",
        "tile.total_warps",
    ),
    "scf.for": ("tile.any_order", "tile.stages", "tile.warp_specialize"),
}
SPLIT_OPS = (tile.DotOp, tile.DotScaledOp, tile.TakeOp)
"""Ops gone from level BUFFERS on: others do their work through buffers. They have no lowering
rule."""
_LOWERED_DIALECTS = ("llvm.", "nvvm.", "arith.", "math.", "scf.", "builtin.")


def illegal_ops(module: ir.Module, level: Level) -> Iterator[tuple[ir.Operation, str]]:
    """Every op that does not belong at `level`, with the reason."""
    found: list[tuple[ir.Operation, str]] = []
    rules = _RULES[level]

    def visit(op: ir.Operation) -> ir.WalkResult:
        for rule in rules:
            wrong = rule(op)
            if wrong:
                found.append((op, wrong))
                break
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return iter(found)


def entry_level(module: ir.Module) -> Level:
    """The level a program is written at: by its ops and layouts."""
    level = Level.TILE

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal level
        if op.name == "llvm.func":
            level = Level.NVVM
            return ir.WalkResult.INTERRUPT
        tiles = [v for v in [*op.results, *op.operands] if is_tile(v)]
        if op.name.startswith("gpu_tile.") or any(encoding(v) is not None for v in tiles):
            level = Level.LAYOUTS
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return level


def _known_op(op: ir.Operation) -> str | None:
    known = op.name in _SCALAR_OPS or op.name.startswith(("tile.", "gpu_tile."))
    if known or is_elementwise(op):
        return None
    return f"'{op.name}' has no meaning in a tile program"


def _known_demand(op: ir.Operation) -> str | None:
    """A demand nobody reads would be dropped in silence."""
    for name in op.attributes:
        if name.startswith("tile.") and name not in _DEMANDS.get(op.name, ()):
            known = ", ".join(_DEMANDS.get(op.name, ())) or "none"
            return f"'{op.name}' has the unknown demand '{name}'; known: {known}"
    return None


def _single_block(op: ir.Operation) -> str | None:
    if op.name == "func.func" and len(op.regions[0].blocks) != 1:
        return "a kernel's body is one block; loops and branches are scf ops"
    return None


def _dynamic_dim(op: ir.Operation) -> str | None:
    if op.name != "memref.dim":
        return None
    owner = op.operands[1].owner
    constant = not isinstance(owner, ir.Block) and owner.name == "arith.constant"
    if not constant or not isinstance(op.operands[0].owner, ir.Block):
        return "memref.dim needs a kernel argument and a constant dimension"
    return None


def _tensor_constant(op: ir.Operation) -> str | None:
    if op.name != "arith.constant" or not is_tile(op.results[0]):
        return None
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
        return None
    return "a constant tile must have one value for all elements (dense<x>)"


def _no_layout(op: ir.Operation) -> str | None:
    if op.name.startswith("gpu_tile."):
        return f"'{op.name}' needs layouts; this program has none"
    if any(encoding(v) is not None for v in op.results if is_tile(v)):
        return f"'{op.name}' op result has a layout, others have none"
    return None


def _has_layout(op: ir.Operation) -> str | None:
    for value in [*op.operands, *op.results]:
        if is_tile(value):
            try:
                layout_of(value)
            except ValueError as error:
                return f"'{op.name}' op: {error}"
    return None


def _dot_selected(op: ir.Operation) -> str | None:
    view = op.opview
    if isinstance(view, tile.DotOp) and "instruction" not in view.options:
        return "the dot names no instruction"
    return None


def _no_split_op(op: ir.Operation) -> str | None:
    view = op.opview
    return f"a {view.MNEMONIC} is left" if isinstance(view, SPLIT_OPS) else None


def _no_cross_thread_conversion(op: ir.Operation) -> str | None:
    view = op.opview
    if not isinstance(view, gpu_tile.ConvertLayoutOp):
        return None
    stays = register_permutation(layout_of(view.src), layout_of(view.result), shape(view.src))
    return None if stays is not None else "the conversion crosses threads"


def _has_offset(op: ir.Operation) -> str | None:
    view = op.opview
    if isinstance(view, gpu_tile.AllocOp) and "offset" not in view.options:
        return "the buffer has no offset"
    if isinstance(view, gpu_tile.BarrierInitOp) and "offset" not in view.options:
        return "the barrier has no offset"
    if isinstance(view, gpu_tile.ReserveTensorMemoryOp) and "offset" not in view.options:
        return "the address of tensor memory has no offset"
    return None


def _lowered(op: ir.Operation) -> str | None:
    return None if op.name.startswith(_LOWERED_DIALECTS) else f"'{op.name}' was not lowered"


_PROGRAM: tuple[Rule, ...] = (
    _known_op,
    _known_demand,
    _single_block,
    _dynamic_dim,
    _tensor_constant,
)
_BUFFERS = (*_PROGRAM, _has_layout, _no_split_op, _no_cross_thread_conversion)
_RULES: dict[Level, tuple[Rule, ...]] = {
    Level.TILE: (*_PROGRAM, _no_layout),
    Level.SELECTED: (*_PROGRAM, _no_layout, _dot_selected),
    Level.LAYOUTS: (*_PROGRAM, _has_layout, _dot_selected),
    Level.BUFFERS: _BUFFERS,
    Level.ALLOCATED: (*_BUFFERS, _has_offset),
    Level.NVVM: (_lowered,),
}
