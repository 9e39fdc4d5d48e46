"""How numbers that IR has as bytes become bf16: ops written at the insertion point.

A byte's sign and magnitude go where bf16 has its own, which makes of every number, subnormal ones
included, one that is 2 ** (127 - bias) times too small (OCP Microscaling Formats v1.0, "Element
formats"). A scale is bf16's exponent as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import is_tile, shape, with_element, with_shape
from tilec.passes.rewriting.scalars import binary, constant, create, equal, select
from tilec.records import dataclass

E8M0, E8M0_ONE = "e8m0", 127
"""Exponents of 2, and that of 1: their bias (OCP Microscaling Formats v1.0, 5.4)."""
PAIR_BITS, PAIR_MASK = 4, 0xF
"""What a number of 4 bits takes of a byte."""


@dataclass(frozen=True)
class _Format:
    exponent: int
    mantissa: int
    bias: int


_FORMATS: Mapping[str, _Format] = {
    "e2m1": _Format(2, 1, 1),
    "e2m3": _Format(2, 3, 1),
    "e3m2": _Format(3, 2, 3),
}


def decode(code: ir.Value, name: str) -> ir.Value:
    """Gives the bf16 that bytes (i8, a scalar or a tile) of one number each stand for; bits above
    the format's are not looked at."""
    wide = create("arith.extui", [code], _i16(code))
    if name == E8M0:
        return _power_of_two(wide)
    form = _FORMATS[name]
    bits = form.exponent + form.mantissa
    magnitude = _shifted(_masked(wide, (1 << bits) - 1), 7 - form.mantissa)
    sign = _shifted(_masked(wide, 1 << bits), 15 - bits)
    number = binary("arith.ori", magnitude, sign)
    small = create("arith.bitcast", [number], _bf16(wide))
    return binary("arith.mulf", small, constant(small.type, 2.0 ** (127 - form.bias)))


def _power_of_two(wide: ir.Value) -> ir.Value:
    """Gives 2 ** (code - 127) as bf16: a subnormal number for 0, NaN for 255."""
    exponent = _shifted(wide, 7)
    for code, bits in ((0, 0x40), (255, 0x7FC0)):
        special = constant(wide.type, bits)
        exponent = select(equal(wide, code), special, exponent)
    return create("arith.bitcast", [exponent], _bf16(wide))


def unpack(pairs: ir.Value, axis: int) -> ir.Value:
    """Gives the bf16 numbers of a tile of e2m1 pairs, which is twice as long along `axis` then."""
    high = binary("arith.shrui", pairs, PAIR_BITS)
    return decode(_joined(pairs, high, axis), "e2m1")


def unpack_codes(pairs: ir.Value, axis: int, at: int) -> ir.Value:
    """Bytes that have each number of a tile of e2m1 pairs from bit `at` on, up to the fourth, and
    else zeros."""
    low = _masked(_shifted(pairs, at), PAIR_MASK << at)
    high = binary("arith.shrui", pairs, PAIR_BITS - at)
    return _joined(low, _masked(high, PAIR_MASK << at), axis)


def _joined(low: ir.Value, high: ir.Value, axis: int) -> ir.Value:
    """Elements of two tiles in turn along `axis`."""
    sizes = shape(low)
    apart = [*sizes[: axis + 1], 1, *sizes[axis + 1 :]]
    halves = [tile.ReshapeOp.build(half, results=[with_shape(half, apart)]) for half in (low, high)]
    both = tile.JoinOp.build(halves, axis=axis + 1)
    whole = [*sizes[:axis], 2 * sizes[axis], *sizes[axis + 1 :]]
    return tile.ReshapeOp.build(both, results=[with_shape(both, whole)])


def _like(value: ir.Value, kind: ir.Type) -> ir.Type:
    return with_element(value, kind) if is_tile(value) else kind


def _i16(value: ir.Value) -> ir.Type:
    return _like(value, ir.IntegerType.get_signless(16))


def _bf16(value: ir.Value) -> ir.Type:
    return _like(value, ir.BF16Type.get())


def _masked(value: ir.Value, mask: int) -> ir.Value:
    return binary("arith.andi", value, mask)


def _shifted(value: ir.Value, bits: int) -> ir.Value:
    return binary("arith.shli", value, bits)
