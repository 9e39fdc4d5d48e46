"""Elements as integers of the same order, for sorting, and their places where these are asked for:
behind the keys in one number, where both fit in 64 bits, so that one comparison orders them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tilec.dialects.tile import IotaOp
from tilec.frontend import conversion
from tilec.frontend.conversion import compare_values
from tilec.frontend.frame import Frame
from tilec.frontend.operators import binary, invert
from tilec.frontend.tl_shape import bitcast, cat, full
from tilec.frontend.values import Tile
from tilec.records import dataclass
from tilec.terms.dtypes import DType, i8, i16, i32, i64

SHORT_BITS = 16
"""Keys of at most so many bits share a word with their place, of which there are as many."""

Keys = tuple[Tile, ...]
"""Tiles of signed integers, ordered by the first, and those equal by the next."""


@dataclass(frozen=True)
class Order:
    """Elements of `dtype` as integers that ascend, `downward` where the elements descend. `size`:
    elements along `axis`, a power of two."""

    dtype: DType
    axis: int
    size: int
    downward: bool
    has_places: bool

    @property
    def is_short(self) -> bool:
        """Whether a place fits behind a key in one word."""
        return self.dtype.bits <= SHORT_BITS

    @property
    def key(self) -> DType:
        """The dtype of keys."""
        return i64 if self.dtype.bits > i32.bits else i32

    @property
    def words(self) -> int:
        """Of a key and a place, as `packed` has them."""
        if not self.has_places or (self.is_short and self.size <= 1 << SHORT_BITS):
            return self.key.bits // i32.bits
        return 3 if self.key is i64 else 2

    def keys(self, frame: Frame, x: Tile, size: int) -> Tile:
        """An integer for each element, and behind them the greatest, up to `size`."""
        key = self._ordered(frame, self._bits(frame, x))
        if self.downward:
            key = invert(frame.builder, key)
        missing = size - x.shape[self.axis]
        if not missing:
            return key
        shape = (*x.shape[: self.axis], missing, *x.shape[self.axis + 1 :])
        last = i16.limits[1] if self.is_short else self.key.limits[1]
        return cat(frame, (key, full(frame, shape, last, self.key)), self.axis)

    def _bits(self, frame: Frame, x: Tile) -> Tile:
        """The bits of a number, one NaN for all, as signed integers."""
        if x.dtype.is_float:
            builder, kind = frame.builder, x.value.type
            is_nan = compare_values(builder, "!=", x.value, x.value, x.dtype, x.shape)
            nan = builder.constant(math.nan, x.dtype, x.shape)
            chosen = builder.value("arith.select", kind, is_nan, nan, x.value)
            x = bitcast(frame, replace(x, value=chosen), _integer(x.dtype))
        elif x.dtype.is_unsigned:
            x = bitcast(frame, x, _integer(x.dtype))
        return conversion.cast(frame.builder, x, self.key)

    def _ordered(self, frame: Frame, bits: Tile) -> Tile:
        """Changes bits so that, as signed integers, they have the order of the numbers; done twice
        it changes nothing. Of negative floats the magnitude is inverted, of unsigned integers the
        highest bit."""
        builder = frame.builder
        if self.dtype.is_unsigned:
            return binary(builder, "^", bits, -(1 << (self.dtype.bits - 1)))
        if not self.dtype.is_float:
            return bits
        sign = binary(builder, ">>", bits, self.key.bits - 1)
        magnitude = (1 << (self.dtype.bits - 1)) - 1
        return binary(builder, "^", bits, binary(builder, "&", sign, magnitude))

    def packed(self, frame: Frame, key: Tile) -> Keys:
        """The keys with their places, where these are asked for."""
        if not self.has_places:
            return (key,)
        builder = frame.builder
        place = places(frame, key.shape, self.axis)
        if self.is_short and self.size <= 1 << SHORT_BITS:
            return (binary(builder, "|", binary(builder, "<<", key, SHORT_BITS), place),)
        if self.key is i64:
            return key, place
        wide = binary(builder, "<<", conversion.cast(builder, key, i64), i32.bits)
        return (binary(builder, "|", wide, conversion.cast(builder, place, i64)),)

    def unpacked(self, frame: Frame, keys: Keys) -> Any:
        """The elements; a pair with their places where these are asked for."""
        builder, key = frame.builder, keys[0]
        if not self.has_places:
            return self._elements(frame, key)
        if len(keys) > 1:
            place = keys[1]
        elif key.dtype is i64:
            place = conversion.cast(builder, key, i32)
            key = conversion.cast(builder, binary(builder, ">>", key, i32.bits), i32)
        else:
            place = binary(builder, "&", key, (1 << SHORT_BITS) - 1)
            key = binary(builder, ">>", key, SHORT_BITS)
        return self._elements(frame, key), place

    def _elements(self, frame: Frame, key: Tile) -> Tile:
        if self.downward:
            key = invert(frame.builder, key)
        bits = self._ordered(frame, key)
        if self.dtype.is_float:
            bits = conversion.cast(frame.builder, bits, _integer(self.dtype))
            return bitcast(frame, bits, self.dtype)
        return conversion.cast(frame.builder, bits, self.dtype)


def _integer(dtype: DType) -> DType:
    return {8: i8, 16: i16, 32: i32, 64: i64}[dtype.bits]


def places(frame: Frame, shape: tuple[int, ...], axis: int) -> Tile:
    """Gives each element's coordinate along `axis`, i32."""
    return Tile(IotaOp.build(results=[frame.builder.type(i32, shape)], axis=axis), i32, shape)
