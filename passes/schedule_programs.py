"""schedule-programs: programs that run together work on neighbouring tiles.

Before:   %m = "tile.program_id"() {axis = 0 : i32}   %n = "tile.program_id"() {axis = 1 : i32}
After:    %row, %column = "gpu_tile.tile_order"(%linear, %rows, %columns)
              {order = "grouped", group = 8 : i32}
          with %linear = program_id(0) + program_id(1) * num_programs(0)

Programs are independent, so any permutation of them computes the same; this one keeps the operands
of a two-dimensional grid of dots in the L2 cache. Kernels without a dot in a loop, or that use one
program id only, are left alone.
Does not handle: three-dimensional grids beyond their first two axes (the third stays as it is).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import MmaOp, TileOrderOp
from tilec.dialects.tile import DotOp, NumProgramsOp, ProgramIdOp
from tilec.passes.contract import Level, PassContext, tile_pass

GROUP = 8


@tile_pass(requires=Level.LAYOUTS, ensures=Level.LAYOUTS)
def schedule_programs(module: ir.Module, context: PassContext) -> None:
    """Puts programs of kernels with dots in grouped order."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _schedule(function.operation, context)


def _schedule(function: ir.Operation, context: PassContext) -> None:
    ids: dict[int, list[ir.Operation]] = {0: [], 1: []}
    multiplies = ordered = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal multiplies, ordered
        view = op.opview
        if isinstance(view, ProgramIdOp) and view.axis in ids:
            ids[view.axis].append(op)
        ordered = ordered or isinstance(view, TileOrderOp)
        in_loop = op.parent is not None and op.parent.name == "scf.for"
        multiplies = multiplies or (isinstance(view, (DotOp, MmaOp)) and in_loop)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    if ordered or not (multiplies and ids[0] and ids[1]):
        return
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(entry), function.location:
        found = _grouped()
    for axis, place in enumerate(found):
        for op in ids[axis]:
            op.results[0].replace_all_uses_with(place)
            op.erase()
    context.report.add(
        "program order", function, f"groups of {GROUP} rows", "a grid of dots shares operands in L2"
    )


def _grouped() -> list[ir.Value]:
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()

    def cast(value: ir.Value, type_: ir.Type) -> ir.Value:
        return _op("arith.index_cast", [value], type_)

    x, y = (cast(ProgramIdOp.build(axis=axis), i32) for axis in (0, 1))
    rows, columns = (cast(NumProgramsOp.build(axis=axis), i32) for axis in (0, 1))
    linear = _op("arith.addi", [x, _op("arith.muli", [y, rows], i32)], i32)
    place = TileOrderOp.build(linear, rows, columns, order="grouped", group=GROUP)
    return [cast(value, index) for value in place]


def _op(name: str, operands: list[ir.Value], type_: ir.Type) -> ir.Value:
    return ir.Operation.create(name, results=[type_], operands=operands).results[0]
