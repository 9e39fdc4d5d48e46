"""schedule-programs: which CTA works on which program, and when.

Before:   %m = "tile.program_id"() {axis = 0 : i32}   %n = "tile.program_id"() {axis = 1 : i32}
After:    %row, %column = "gpu_tile.tile_order"(%linear, %rows, %columns)
              {order = "grouped", group = 8 : i32}
          with %linear = program_id(0) + program_id(1) * num_programs(0)
Persistent:
          scf.for %linear = "gpu_tile.cta_id" to the product of num_programs
                  step "gpu_tile.num_ctas" { ... the whole kernel ... }

1. Programs are independent, so any permutation of them computes the same; the grouped order keeps
   the operands of a two-dimensional grid of dots in the L2 cache. Kernels without a dot in a loop,
   or that use one program id only, keep theirs.
2. A kernel is persistent where its author demands it (`tile.persistent`), else where matrix
   instructions that read shared memory multiply in a loop: the copies for the next program then
   run under this one's end.
Does not handle: an order for the third axis of a grid (it is the slowest).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir

from tilec.dialects.gpu_tile import CtaIdOp, MmaOp, NumCtasOp, TileOrderOp
from tilec.dialects.tile import DotOp, NumProgramsOp, ProgramIdOp
from tilec.mma_shapes import find_instruction
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.locations import error_at
from tilec.passes.scalars import scalar_op

GROUP = 8
PERSISTENT = "tile.persistent"


@tile_pass(requires=Level.LAYOUTS, ensures=Level.LAYOUTS)
def schedule_programs(module: ir.Module, context: PassContext) -> None:
    """Puts programs of kernels with dots in grouped order, or in a loop that CTAs share."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _schedule(function.operation, context)


@dataclass
class _Programs:
    """How a kernel uses its programs."""

    ids: dict[int, list[ir.Operation]] = field(default_factory=lambda: {0: [], 1: [], 2: []})
    multiplies: bool = False
    from_buffers: bool = False
    ordered: bool = False
    persistent: bool = False


def _schedule(function: ir.Operation, context: PassContext) -> None:
    found = _look_at(function)
    if found.ordered or found.persistent:
        return
    grouped = found.multiplies and bool(found.ids[0] and found.ids[1])
    demanded = _demanded(function)
    persistent = found.from_buffers if demanded is None else demanded
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(entry), function.location:
        if persistent:
            places = _persistent(entry, grouped)
        elif grouped:
            places = _grouped()
        else:
            return
    for axis, place in enumerate(places):
        for op in found.ids[axis]:
            op.results[0].replace_all_uses_with(place)
            op.erase()
    if persistent:
        function.attributes[PERSISTENT] = ir.BoolAttr.get(True)
        why = "the author's demand" if demanded else "copies for the next program run ahead"
        context.report.add("programs", function, "persistent CTAs share them", why)
    if grouped:
        why = "a grid of dots shares operands in L2"
        context.report.add("program order", function, f"groups of {GROUP} rows", why)


def _demanded(function: ir.Operation) -> bool | None:
    """Whether the author wants the kernel persistent, None if that is left open."""
    if PERSISTENT not in function.attributes:
        return None
    demanded = function.attributes[PERSISTENT]
    if not isinstance(demanded, ir.BoolAttr):
        raise error_at(function, f"{PERSISTENT} must be true or false, found {demanded}")
    return demanded.value


def _look_at(function: ir.Operation) -> _Programs:
    found = _Programs()

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if isinstance(view, ProgramIdOp):
            found.ids[view.axis].append(op)
        found.ordered |= isinstance(view, TileOrderOp)
        found.persistent |= isinstance(view, CtaIdOp)
        if isinstance(view, (DotOp, MmaOp)) and op.parent.name == "scf.for":
            found.multiplies = True
            name = view.instruction if isinstance(view, MmaOp) else view.options["instruction"]
            found.from_buffers |= find_instruction(name).reads_buffers
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _persistent(entry: ir.Block, grouped: bool) -> list[ir.Value]:
    """Moves the kernel into a loop over programs; their ids, in front of it inside the loop."""
    i32 = ir.IntegerType.get_signless(32)
    kept = [view.operation for view in entry.operations]
    *body, _ = kept
    sizes = [_cast(NumProgramsOp.build(axis=axis), i32) for axis in range(3)]
    plane = scalar_op("arith.muli", [sizes[0], sizes[1]], i32)
    total = scalar_op("arith.muli", [plane, sizes[2]], i32)
    loop = ir.Operation.create(
        "scf.for", operands=[CtaIdOp.build(), total, NumCtasOp.build()], regions=1
    )
    block = loop.regions[0].blocks.append(i32, arg_locs=[loop.location])
    with ir.InsertionPoint(block):
        z = scalar_op("arith.divui", [block.arguments[0], plane], i32)
        rest = scalar_op("arith.remui", [block.arguments[0], plane], i32)
        if grouped:
            places = list(_order(rest, sizes[0], sizes[1]))
        else:
            y = scalar_op("arith.divui", [rest, sizes[0]], i32)
            places = [scalar_op("arith.remui", [rest, sizes[0]], i32), y]
        places = [_cast(place, ir.IndexType.get()) for place in (*places, z)]
        end = ir.Operation.create("scf.yield")
    for op in body:
        op.move_before(end)
    return places


def _grouped() -> list[ir.Value]:
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
    x, y = (_cast(ProgramIdOp.build(axis=axis), i32) for axis in (0, 1))
    rows, columns = (_cast(NumProgramsOp.build(axis=axis), i32) for axis in (0, 1))
    linear = scalar_op("arith.addi", [x, scalar_op("arith.muli", [y, rows], i32)], i32)
    return [_cast(value, index) for value in _order(linear, rows, columns)]


def _order(linear: ir.Value, rows: ir.Value, columns: ir.Value) -> list[ir.Value]:
    return TileOrderOp.build(linear, rows, columns, order="grouped", group=GROUP)


def _cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    return scalar_op("arith.index_cast", [value], type_)
