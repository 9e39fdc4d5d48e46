"""Stores of a loop that stay where their own iteration has loaded: no load ahead minds them.

    scf.for %k = %lower to %upper step 128 {
      %x = "tile.load"(%a, %row, %k) ...          "tile.store"(%a, %row, %k, %y)
    }

A kernel that works in place stores where it has loaded, and goes on: what an iteration stores, no
later one reads, since the loop has moved on by a tile or more along one dimension. Where it stays,
the next iteration reads what this one has stored, if by the same threads: that needs no sync, but
this order.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.effects import whole_of, written_by
from tilec.dialects.tile import StoreOp
from tilec.passes.analysis.array_accesses import array_accesses
from tilec.passes.rewriting.op_tables import OpSet, order_of
from tilec.passes.rewriting.walk import is_of


def own_stores(loop: ir.Operation, loads: Sequence[ir.Operation]) -> OpSet:
    """The stores of a loop's own body that write nothing which one of `loads`, of that body, reads
    in a later iteration; nor which one behind them reads."""
    ops = [view.operation for view in loop.regions[0].blocks[0].operations]
    order = order_of(ops)

    def is_elsewhere(store: ir.Operation, load: ir.Operation) -> bool:
        if whole_of(load.opview.array) not in map(whole_of, written_by(store.opview)):
            return True
        before = [each.next_iteration(loop, None) for each in array_accesses(store.opview)]
        now = array_accesses(load.opview)
        apart = all(a.lies_apart(b) for a in now for b in before)
        return order[load] < order[store] and bool(now and before) and apart

    stores = (op for op in ops if is_of(op, StoreOp))
    return OpSet(op for op in stores if all(is_elsewhere(op, load) for load in loads))
