"""How a kernel's tiles get to registers and back, as far as their arrays say: `tl.auto` chooses
their sizes by that, before it knows them."""

from __future__ import annotations

from math import gcd, prod

from mlir import ir

from tilec.dialects.tile import ArrayOp, Atomic, TransposeOp
from tilec.dialects.types import bit_width, element, shape
from tilec.hardware.sizes import VECTOR_BYTES, WORD_BITS
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import Indexed, index_run
from tilec.passes.analysis.vector_width import contiguous_dim, element_bytes
from tilec.passes.rewriting.walk import all_ops, find_ops


class MovedWords:
    """What the loads, stores, gathers and scatters of a kernel say together.

    `largest`: elements of the largest tile that moves, and the bits of a register that each takes;
    of several the widest. Where elements come one by one that is a word, however narrow they are:
    `alone` is how many such a tile has, 0 if its elements are words. `apart`: elements of the
    largest tile that is loaded from places apart, as a colour of pixels is. `wants_long_rows`:
    whether they come one by one since rows begin anywhere, so that tiles share sectors at the ends
    of theirs with tiles beside them, and nothing with those above, as a stencil's do, or where rows
    of some are columns of others. `turns_torn_rows`: whether they are, and begin anywhere.
    `keeps_rows`: whether tiles share nothing with those above, however elements come, and none go
    by indices.
    """

    def __init__(self, function: ir.Operation) -> None:
        self._facts = Divisibility(function)
        self._read: list[ir.Value] = []
        self._turns = bool(find_ops(function, TransposeOp))
        self._is_torn = self._is_indexed = False
        self.largest, self.alone, self.apart = (0, 0), 0, 0
        for op in all_ops(function):
            view = op.opview
            if isinstance(view, ArrayOp) and not isinstance(view, Atomic):
                self._see(view)

    @property
    def wants_long_rows(self) -> bool:
        """See the class."""
        return self._is_torn and bool(self.alone) and self._is_apart

    @property
    def keeps_rows(self) -> bool:
        """See the class."""
        return self._is_apart and not self._is_indexed

    @property
    def _is_apart(self) -> bool:
        is_shared = len(set(self._read)) < len(self._read)
        return not self._turns and not is_shared

    @property
    def turns_torn_rows(self) -> bool:
        """See the class."""
        return self._is_torn and self._turns

    def _see(self, view: ArrayOp) -> None:
        sizes, bits = shape(view.tile), max(8, bit_width(element(view.tile)))
        width = self._width(view)
        moved = prod(sizes), max(bits, WORD_BITS // width)
        if moved > self.largest:
            self.largest = moved
            self.alone = prod(sizes) if width == 1 and bits < WORD_BITS else 0
        if isinstance(view, Indexed):
            self._is_indexed = True
            return
        if view.is_load and contiguous_dim(view.array, view.dims) is None:
            self.apart = max(self.apart, prod(sizes))
        if sum(size > 1 for size in sizes) < 2:
            return
        self._turns |= contiguous_dim(view.array, view.dims) != len(sizes) - 1
        pitches = (step * element_bytes(view.array) for step in self._pitches(view))
        self._is_torn |= any(pitch % VECTOR_BYTES for pitch in pitches)
        self._read += [view.array] if view.is_load else []

    def _width(self, view: ArrayOp) -> int:
        """Neighbours that one access may move, of rows that begin where the array's do."""
        if isinstance(view, Indexed):
            return index_run(view, self._facts)[1]
        size = element_bytes(view.array)
        if contiguous_dim(view.array, view.dims) is None:
            return 1
        aligned = self._facts.alignment(view.array) // size
        return max(1, gcd(VECTOR_BYTES // size, aligned, *self._pitches(view)))

    def _pitches(self, view: ArrayOp) -> list[int]:
        """A divisor of each stride of the array but that between neighbours, in elements."""
        along = view.dims[contiguous_dim(view.array, view.dims) or 0] if view.dims else None
        axes = (axis for axis in range(len(view.offsets)) if axis != along)
        return [self._facts.of_array(view.array, "strides", axis) for axis in axes]
