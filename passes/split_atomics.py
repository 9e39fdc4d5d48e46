"""split-atomics: the old value of an atomic reaches the copies of its element.

Before:   %old = "tile.atomic_rmw"(%v, %a, %ok, %i) ...       used, in a layout that holds copies
After:    %old = "tile.atomic_rmw"(%v, %a, %ok, %i) ...
          %s = "gpu_tile.alloc"()   "gpu_tile.buffer_store"(%old, %s)
          %all = "gpu_tile.buffer_load"(%s)

Only the first copy of an element performs the atomic, so only it knows the old value.
Does not handle: copies inside one warp by shuffles, which would save the shared memory.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.hardware.layout import Layout
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.rewriting.walk import find_ops


@tile_pass(requires=Level.LAYOUTS)
def split_atomics(module: ir.Module, context: PassContext) -> None:
    """Sends the old values of atomics to the copies of their elements."""
    for op in find_ops(module.operation, tile.Atomic):
        is_read = next(iter(op.results[0].uses), None) is not None
        if is_read and holds_copies(layout_of(op.results[0]), context.num_threads):
            _spread(op, context)


def holds_copies(layout: Layout, num_threads: int) -> bool:
    """Whether several threads of a CTA hold the same element."""
    return layout.num_threads < num_threads or any(
        mode.size > 1 and not mode.stride for mode in layout.threads
    )


def _spread(op: ir.Operation, context: PassContext) -> None:
    old = op.results[0]
    with ir.InsertionPoint.after(op), op.location:
        buffer = gpu_tile.AllocOp.build(results=[buffer_for(old).type()])
        store = gpu_tile.BufferStoreOp.build(old, buffer)
        spread = gpu_tile.BufferLoadOp.build(buffer, results=[old.type])
    old.replace_all_uses_except(spread, [store.operation])
    context.report.add(
        "atomic",
        op,
        "old values through shared memory",
        f"layout {layout_of(old)} holds copies, of which only the first performs the atomic",
    )
