"""Operands that a product reads slowly, copied to rows that begin at multiples of 128 bytes.

Asynchronous copies and tensor maps move 16 bytes from multiples of 16. From other rows, those of a
contiguous matrix with an odd number of columns, a product loads element by element, and reads each
again for every tile of the other operand. And tensor cores want operands of 1 byte, those of
warpgroups of 4 bytes too, in rows along k: others are transposed on their way, for every tile
again. (With 4 bytes one of the two may lie across k: it becomes the left one, of the transposed
product where it is b.) A copy costs as much as reading and writing the operand once (23 us for
4097x4097 of 2 bytes on an H200), which large products win back several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilec.costs.dot_work import Memory, way_of
from tilec.costs.rates import Rates
from tilec.costs.work import Unit, Way
from tilec.hardware.sizes import LINE_BYTES, VECTOR_BYTES
from tilec.ops.batch_dimensions import with_dimensions
from tilec.ops.multiply_plan import Plan, View
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.launcher import located

FRAMEWORKS = ("torch", "numpy", "tilec")
"""Whose arrays of every dtype can be made and written here."""


def operands_to_copy(
    plan: Plan, views: Mapping[str, ArrayView], unit: Unit, rates: Rates
) -> dict[str, int]:
    """Lists which of a and b are worth a copy, and the axis that its rows run along: none of a
    batch, nor where FMA units multiply. `unit`: who multiplies large tiles."""
    on_tensor_cores = plan.dtype.bits <= 16 or plan.constants["PRECISION"] == "tf32"
    if plan.lead or not on_tensor_cores or plan.m * plan.n * plan.k < rates.copied_product:
        return {}
    copied: dict[str, int] = {}
    lies = {"a": 1, "b": 0}
    for name, along_k, uses in (("a", 1, plan.n), ("b", 0, plan.m)):
        found, view = views[name], plan.views[name]
        contiguous = 0 if view.strides[0] == 1 else 1
        best, other = (
            _best_way(lies | {name: axis}, found.element_bytes, unit)
            for axis in (along_k, 1 - along_k)
        )
        if uses < rates.copied_uses or found.framework not in FRAMEWORKS:
            lies[name] = contiguous
            continue
        lies[name] = contiguous if best is other else along_k
        if lies[name] != contiguous or not _is_aligned(found, view):
            copied[name] = lies[name]
    return copied


def _best_way(lies: Mapping[str, int], width: int, unit: Unit) -> Way:
    """Says how aligned operands come to shared memory, contiguous along the axes `lies`: in the
    product or in the transposed one."""
    a, b = (Memory(lies[name], LINE_BYTES) for name in "ab")
    transposed = [(Memory(1 - lies[name], LINE_BYTES), axis) for name, axis in (("b", 1), ("a", 0))]
    ways = [way_of(operands, width, unit) for operands in (((a, 1), (b, 0)), transposed)]
    return Way.ENGINE if Way.ENGINE in ways else ways[0]


def _is_aligned(found: ArrayView, view: View) -> bool:
    vector = VECTOR_BYTES // found.element_bytes
    strides = [stride for size, stride in zip(view.shape, view.strides, strict=True) if size > 1]
    fitting = strides.count(1) == 1 and all(s > 0 and s % vector == 0 for s in strides if s != 1)
    return fitting and found.pointer % VECTOR_BYTES == 0


def copied_order(found: ArrayView, view: View, along: int) -> tuple[tuple[int, int], int]:
    """Says how a copy in rows along an axis lies: their number and length, and their pitch."""
    columns = view.shape[along]
    unit = LINE_BYTES // found.element_bytes
    return (view.shape[1 - along], columns), -(-columns // unit) * unit


@dataclass(frozen=True)
class AlignedCopy:
    """A copy of an operand in rows along an axis. `source`, `target`, `constants`: what the kernel
    `matmul_kernel.copy_rows` gets. `made`: the copy as the operand is looked at, by `view`."""

    source: ArrayView
    target: ArrayView
    constants: Mapping[str, int]
    made: ArrayView
    view: View


def aligned_copy(name: str, memory: Any, found: ArrayView, view: View, along: int) -> AlignedCopy:
    """Plans how operand `name` is copied to `memory`, which has the rows of `copied_order`."""
    shape, pitch = copied_order(found, view, along)
    made = replace(located(describe(memory, name)), owner=memory)
    aligned = View(view.shape, (1, pitch) if along == 0 else (pitch, 1))
    return AlignedCopy(
        with_dimensions(found, shape, (view.strides[1 - along], view.strides[along])),
        with_dimensions(made, shape, (pitch, 1)),
        copy_tile(found, view, along),
        with_dimensions(made, aligned.shape, aligned.strides),
        aligned,
    )


def copy_tile(found: ArrayView, view: View, along: int) -> dict[str, int]:
    """Constants of the kernel that copies: rows of a cache line both ways where it turns them."""
    if view.strides[along] == 1:
        return {}
    side = LINE_BYTES // found.element_bytes
    return {"BM": side, "BN": side}
