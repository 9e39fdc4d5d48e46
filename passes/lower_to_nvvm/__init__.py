"""lower-to-nvvm: from tiles with layouts to what one thread does, in llvm, nvvm and scalar ops.

One file per instruction family; each ends with its table `RULES`, from an op class (or the name of
an upstream op) to its rule `(op, state) -> None`. The tables are joined here and doubles are
rejected. Ops of the elementwise dialects need no rule of their own: they are lowered by words of
several elements (`packed.py`) or one by one; runs of them on large tiles a few registers at a time
(`piecewise.py`).

Before:   %z = arith.addf %x, %y : tensor<4xf32, #gpu_tile.layout<"T(2):(1@0) V(2):(2@0)">>
After:    %z0 = arith.addf %x0, %y0 : f32        (the elements that this thread holds)
          %z1 = arith.addf %x1, %y1 : f32
Does not handle: values that move between warps (passes before have put them through buffers), math
functions (expand-math), 8-bit floats (convert-floats).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from tilec.dialects.elementwise import is_elementwise
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.piecewise_runs import Run, runs_of
from tilec.passes.contract import Level, PassContext, show_location, tile_pass
from tilec.passes.lower_to_nvvm import (
    atomics,
    bounds,
    buffer,
    cluster,
    control,
    conversion,
    cp_async,
    elementwise,
    indexed,
    inline_ptx,
    inspection,
    launch_control,
    lists,
    load_store,
    mbarrier,
    mma,
    packed,
    piecewise,
    program,
    reduction,
    role,
    scan,
    shape,
    tcgen05,
    tensor_memory,
    tma,
    wgmma,
    wrapped_row,
)
from tilec.passes.lower_to_nvvm.kernel import create_kernel
from tilec.passes.lower_to_nvvm.shared_address import declare_shared
from tilec.passes.lower_to_nvvm.state import Lowering

_FAMILIES = (
    program,
    lists,
    elementwise,
    bounds,
    control,
    shape,
    load_store,
    wrapped_row,
    indexed,
    atomics,
    reduction,
    scan,
    conversion,
    buffer,
    cp_async,
    mbarrier,
    cluster,
    launch_control,
    tma,
    mma,
    wgmma,
    tensor_memory,
    tcgen05,
    role,
    inspection,
    inline_ptx,
)


def _join_tables() -> dict[str, Callable[[Any, Lowering], None]]:
    joined: dict[str, Callable[[Any, Lowering], None]] = {}
    for family in _FAMILIES:
        for key, rule in family.RULES.items():
            name = key if isinstance(key, str) else key.OPERATION_NAME
            if name in joined:
                raise InternalError(f"two lowering rules for {name}")
            joined[name] = rule
    return joined


RULES = _join_tables()
"""Op name -> lowering rule."""


@tile_pass(requires=Level.ALLOCATED, ensures=Level.NVVM)
def lower_to_nvvm(module: ir.Module, context: PassContext) -> None:
    """Lowers every kernel to an `llvm.func` of scalar code.

    Before:   func.func @k(%a: memref<?xf32, strided<[1]>>, %n: index) {
                %t = "tile.load"(%a, %n) ... }
    After:    llvm.func @k(%p: !llvm.ptr<1>, %size: i32, %n: i32) attributes {nvvm.kernel} {
                %0 = llvm.load %2 : !llvm.ptr<1> -> vector<4xi32> ... }
    Does not handle: calls, and functions that are no kernels; the frontend inlines.
    """
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    for function in functions:
        with function.location:
            _lower_kernel(function.operation, context)
        function.operation.erase()


def _lower_kernel(function: ir.Operation, context: PassContext) -> None:
    _, state = create_kernel(function, context)
    marker = state.prologue.ref_operation
    if marker is None:
        raise InternalError("the kernel's prologue has no end")
    state.lower_block = lower_block
    end = ir.InsertionPoint.at_block_terminator(marker.operation.block)
    with end:
        tma.prefetch_maps(state)
        lower_block(function.regions[0].blocks[0], state)
    marker.operation.erase()
    if state.shared is not None:
        declare_shared(function)


def lower_block(block: ir.Block, state: Lowering) -> None:
    """Lowers each op of a block at the current insertion point."""
    for op in runs_of(block):
        if isinstance(op, Run):
            piecewise.lower_run(op, state, _lower_op)
            continue
        with op.location:
            _lower_op(op, state)


def _lower_op(op: ir.Operation, state: Lowering) -> None:
    name = op.name
    rule = RULES.get(name)
    if rule is not None:
        rule(op.opview if name.startswith(("tile.", "gpu_tile.")) else op, state)
    elif name in control.REGION_OPS:
        control.lower_region_op(op, state, lower_block)
    elif is_elementwise(op):
        if not packed.lower_packed(op, state):
            elementwise.lower_elementwise(op, state)
    elif name != "func.return":
        raise InternalError(f"{show_location(op)}: no lowering rule for '{name}'")
