"""align-loads: a tile that begins beside an aligned place is loaded as the vectors around it.

Before:   %left = arith.subi %n, %c1                        (%n is a multiple of 8)
          %x = "tile.load"(%a, %m, %left) {dims = [0, 1]} : ... -> tensor<32x64xf16, V(8):(1@1)>
          %y = "tile.load"(%a, %m, %n) {dims = [0, 1]} ...
After:    %at = arith.addi %n, %c-8
          %low = "tile.load"(%a, %m, %at) ...
          %high = "tile.load"(%a, %m, %n) ...
          %x = "gpu_tile.shift_vectors"(%low, %high) {axis = 1, first = 7, width = 8}
          each use of %y now uses %high

Without this a stencil loads its neighbours in a row element by element: where a thread holds 8 of
them, a warp's instruction touches four lines, for 2 bytes of every 16. A stencil of f16 with two
neighbours on each side made 24 such accesses for 32 elements of a row, beside 5 of 16 bytes; they
took most of the 65 us of 5380 x 5504 on an H200 (memory alone 27).

1. A load qualifies if its offset is a multiple of a vector plus a constant, in an array that the
   kernel does not write (the vectors hold elements that nobody asked for), and arithmetic takes
   what it loads (`analysis/shifted_loads.py`). Layouts were chosen as if it were aligned.
2. Its layout has runs of at least two such accesses; vectors are as long as these.
3. Loads of the same vectors in one block are one, those that were aligned already included.

Does not handle: kernels of products, whose copies bring tiles from anywhere; offsets known only
when the kernel runs; arrays that the kernel writes.
"""

from __future__ import annotations

from dataclasses import field

from mlir import ir

from tilec.dialects.gpu_tile import ShiftVectorsOp
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.tile import LoadOp
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.shifted_loads import ShiftedLoad, along_rows, find_shifted, row_offset
from tilec.passes.analysis.vector_width import access_width, contiguous_dim
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.layouts.runs import register_run
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.scalars import binary
from tilec.passes.rewriting.walk import find_ops
from tilec.records import dataclass

_SAID = ("dims", "padding", "options")
"""What two loads of the same elements say alike."""


@kernel_pass(requires=Level.LAYOUTS)
def align_loads(function: ir.Operation, context: PassContext) -> None:
    """Loads shifted tiles as the aligned vectors that they are parts of."""
    facts = Divisibility(function)
    found = find_shifted(function, facts)
    shifted = OpMap((op, _fitted(op, each)) for op, each in found.items())
    blocks: dict[ir.Block, _Vectors] = {}
    arrays = {op.opview.src for op, each in shifted.items() if _gains(op, each, facts)}
    for op in find_ops(function, LoadOp) if arrays else ():
        load = op.opview
        if load.src in arrays and contiguous_dim(load.src, load.dims) is not None:
            vectors = blocks.setdefault(op.block, _Vectors())
            each = shifted.pop(op, None)
            if each is not None and _gains(op, each, facts):
                _shift(op, each, vectors, context)
            else:
                vectors.merge(op)


@dataclass
class _Vectors:
    """The loads of a block, by what they load; and the offsets that were made for them."""

    loads: dict[tuple, ir.Value] = field(default_factory=dict)
    offsets: dict[tuple[ir.Value, int], ir.Value] = field(default_factory=dict)

    def at(self, load: LoadOp, base: ir.Value, distance: int) -> ir.Value:
        """What a load has that begins `distance` behind `base` along rows, and else is as `load`,
        in front of which it stands."""
        key = _key(load, base, distance)
        if key not in self.loads:
            offsets = list(load.offsets)
            offsets[_axis(load)] = self._offset(base, distance)
            same = {name: load.operation.attributes[name] for name in _SAID}
            self.loads[key] = LoadOp.build(load.src, offsets, results=[load.result.type], **same)
        return self.loads[key]

    def merge(self, op: ir.Operation) -> None:
        """Puts what an earlier load has in the place of what this one loads, if there is one."""
        load = op.opview
        key = _key(load, *row_offset(load))
        if key in self.loads:
            load.result.replace_all_uses_with(self.loads[key])
            op.erase()
        else:
            self.loads[key] = load.result

    def _offset(self, base: ir.Value, distance: int) -> ir.Value:
        if distance == 0:
            return base
        if (base, distance) not in self.offsets:
            added = binary("arith.addi", base, distance)
            self.offsets[base, distance] = added
        return self.offsets[base, distance]


def _shift(op: ir.Operation, shifted: ShiftedLoad, vectors: _Vectors, context: PassContext) -> None:
    load, width = op.opview, shifted.width
    place = shifted.distance - shifted.first
    with ir.InsertionPoint(op), op.location:
        low, high = (vectors.at(load, shifted.base, place + d) for d in (0, width))
        along = along_rows(load)
        found = ShiftVectorsOp.build(low, high, axis=along, width=width, first=shifted.first)
    why = f"it begins {shifted.first} elements behind a multiple of {width}"
    context.report.add("shifted load", op, "the vectors around it", why)
    load.result.replace_all_uses_with(found)
    op.erase()


def _fitted(op: ir.Operation, shifted: ShiftedLoad) -> ShiftedLoad:
    """With vectors as long as the runs that a thread holds."""
    load = op.opview
    run = register_run(layout_of(load.result), along_rows(load))
    return ShiftedLoad(shifted.base, shifted.distance, min(shifted.width, run))


def _gains(op: ir.Operation, shifted: ShiftedLoad, facts: Divisibility) -> bool:
    """Whether two vectors are no more accesses than a thread has for a run now."""
    load = op.opview
    width, _ = access_width(load, facts)
    return shifted.first > 0 and shifted.width >= 2 * width


def _key(load: LoadOp, base: ir.Value, distance: int) -> tuple:
    others = tuple(v for axis, v in enumerate(load.offsets) if axis != _axis(load))
    said = tuple(str(load.operation.attributes[name]) for name in _SAID)
    return load.src, others, base, distance, load.result.type, said


def _axis(load: LoadOp) -> int:
    """The array's dimension along which the tile's rows lie."""
    return load.dims[along_rows(load)]
