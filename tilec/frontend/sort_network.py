"""Bitonic networks of exchanges (Batcher 1968). Each merge starts with partners mirrored, which
makes all of it ascend: in whose favour a pair is decided depends on one bit of its place, and on no
direction."""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from tilec.dialects.tile import ExchangeOp, ReduceOp, SplitOp
from tilec.frontend.conversion import compare_values
from tilec.frontend.frame import Frame
from tilec.frontend.operators import binary
from tilec.frontend.sort_keys import Keys, places
from tilec.frontend.tl_shape import reshape
from tilec.frontend.values import Tile
from tilec.hardware.powers import power_below
from tilec.records import dataclass
from tilec.terms.dtypes import i1, i32

LANES = 32
"""Neighbours that a warp holds in its lanes: so many runs are merged where they lie, in every lane
with its partner's, and one of each is left for the next such round."""


def exchanged(x: Tile, axis: int, mask: int) -> Tile:
    """Exchanges elements: element i along `axis` of the result is element `i ^ mask` of `x`."""
    return Tile(ExchangeOp.build(x.value, axis=axis, mask=mask), x.dtype, x.shape)


@dataclass(frozen=True)
class Network:
    """Comparisons of elements along `axis`, the lower of a pair to the lower place."""

    frame: Frame
    axis: int

    def sorted(self, keys: Keys, size: int) -> Keys:
        """Runs of `size` in order."""
        length = 2
        while length <= size:
            keys = self._merged(self._compared(keys, length - 1), length // 2)
            length *= 2
        return keys

    def _merged(self, keys: Keys, size: int) -> Keys:
        """Runs of `size`, each bitonic, in order."""
        apart = size // 2
        while apart:
            keys = self._compared(keys, apart)
            apart //= 2
        return keys

    def best_of_halves(self, keys: Keys, size: int) -> Keys:
        """Halves the number of runs, which the axis behind theirs numbers: of two each what stands
        first in both stays."""
        parts = [_halves(key, self.axis + 1) for key in keys]
        first, second = (tuple(part) for part in zip(*parts, strict=True))
        return self._best(first, second, size)

    def best_of_columns(self, keys: Keys, size: int) -> Keys:
        """What stands first in all runs of `size`, numbered by the axis behind theirs, which goes;
        a power of two of them."""
        along, apart = self.axis + 1, 1
        columns = keys[0].shape[along]
        while apart < columns:
            if apart < size:
                keys = self._best_of_neighbours(keys, apart)
            else:
                keys = replace(self, axis=along)._best_of_copies(keys, size, apart)
            apart *= 2
        shape = (*keys[0].shape[: self.axis], -1, size, *keys[0].shape[along + 1 :])
        keys = tuple(reshape(self.frame, key, shape) for key in keys)
        return tuple(_any_along(self.frame, key, self.axis) for key in keys)

    def _best_of_neighbours(self, keys: Keys, apart: int) -> Keys:
        """Of two runs each, in columns `apart`, what stands first in both: half as many elements.

        A run lies along the axis, and each element of it over `apart` columns. Of a pair that is
        compared, an element and that in whose place it is in the mirrored other run, one column
        keeps the lower where the element is even along the axis, the other where it is odd, which
        in that column's mirrored order is even, too: half of the elements move, none between
        registers. What is kept is in order again along the axis, then over `2 * apart` columns.
        """
        parts = [_parities(self.frame, key, self.axis) for key in keys]
        kept, moved = (tuple(part) for part in zip(*parts, strict=True))
        size = kept[0].shape[self.axis]
        moved = tuple(self._mirrored(key, 2 * apart) for key in moved)
        keys = self._merged(self._lower(kept, moved), size)
        across = replace(self, axis=self.axis + 1)
        return across._merged(across._compared(keys, 2 * apart - 1), apart)

    def _mirrored(self, x: Tile, apart: int) -> Tile:
        """Each element in the place that mirrors its own along the axis and over `apart` columns
        behind it: one exchange, of rows and columns together."""
        size, columns = x.shape[self.axis : self.axis + 2]
        before, behind = x.shape[: self.axis], x.shape[self.axis + 2 :]
        flat = reshape(self.frame, x, (*before, size * columns, *behind))
        mask = (size - 1) * columns + apart - 1
        return reshape(self.frame, exchanged(flat, self.axis, mask), x.shape)

    def _best_of_copies(self, keys: Keys, size: int, apart: int) -> Keys:
        """Of two runs each over `size` neighbours, `apart` from each other, what stands first in
        both, in both places."""
        others = tuple(exchanged(key, self.axis, apart + size - 1) for key in keys)
        return self._merged(self._lower(keys, others), size)

    def _best(self, keys: Keys, others: Keys, size: int) -> Keys:
        """Gives what stands first in two runs together, in order."""
        if size > 1:  # mirrored: then the best of each pair are the best of all
            others = tuple(exchanged(key, self.axis, size - 1) for key in others)
        return self._merged(self._lower(keys, others), size)

    def _lower(self, keys: Keys, others: Keys) -> Keys:
        if len(keys) == 1:
            return (self._extreme("arith.minsi", keys[0], others[0]),)
        is_less = self._less(keys, others)
        return tuple(self._chosen(is_less, a, b) for a, b in zip(keys, others, strict=True))

    def _compared(self, keys: Keys, mask: int) -> Keys:
        """Puts each pair whose places differ in `mask` in order."""
        others = tuple(exchanged(key, self.axis, mask) for key in keys)
        builder, shape = self.frame.builder, keys[0].shape
        bit = power_below(mask)
        bits = binary(builder, "&", places(self.frame, shape, self.axis), bit)
        zero = builder.constant(0, i32, shape)
        is_upper = compare_values(builder, "!=", bits.value, zero, i32, shape)
        if len(keys) == 1 and keys[0].dtype is i32:
            lower = self._extreme("arith.minsi", keys[0], others[0])
            upper = self._extreme("arith.maxsi", keys[0], others[0])
            return (self._chosen(is_upper, upper, lower),)
        kept = builder.value(
            "arith.xori", builder.type(i1, shape), self._less(keys, others), is_upper
        )
        return tuple(self._chosen(kept, a, b) for a, b in zip(keys, others, strict=True))

    def _less(self, keys: Keys, others: Keys) -> ir.Value:
        builder, shape = self.frame.builder, keys[0].shape
        kind = builder.type(i1, shape)

        def compare(symbol: str, number: int) -> ir.Value:
            a, b = keys[number], others[number]
            return compare_values(builder, symbol, a.value, b.value, a.dtype, shape)

        if len(keys) == 1:
            return compare("<", 0)
        is_tied, is_less, is_before = compare("==", 0), compare("<", 0), compare("<", 1)
        return builder.value("arith.select", kind, is_tied, is_before, is_less)

    def _extreme(self, name: str, a: Tile, b: Tile) -> Tile:
        value = self.frame.builder.value(name, a.value.type, a.value, b.value)
        return replace(a, value=value)

    def _chosen(self, condition: ir.Value, a: Tile, b: Tile) -> Tile:
        value = self.frame.builder.value("arith.select", a.value.type, condition, a.value, b.value)
        return replace(a, value=value)


def _parities(frame: Frame, x: Tile, axis: int) -> list[Tile]:
    """The elements of even and of odd number along `axis`."""
    before, size, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    pairs = reshape(frame, x, (*before, size // 2, 2, *behind))
    return [
        reshape(frame, part, (*before, size // 2, *behind)) for part in _halves(pairs, axis + 1)
    ]


def _halves(x: Tile, axis: int) -> list[Tile]:
    shape = (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :])
    kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(x.value.type).element_type)
    parts = SplitOp.build(x.value, results=[[kind] * 2], axis=axis)
    return [Tile(value, x.dtype, shape) for value in parts]


def _any_along(frame: Frame, x: Tile, axis: int) -> Tile:
    """A tile that is the same all along `axis` without it."""
    builder = frame.builder
    element = builder.element(x.dtype)

    def either(first: ir.Value, second: ir.Value) -> list[ir.Value]:
        return [builder.value("arith.minsi", element, first, second)]

    with builder.combining():
        (value,) = ReduceOp.build([x.value], body=either, body_types=[element] * 2, axis=axis)
    return Tile(value, x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))
