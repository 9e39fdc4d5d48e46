"""Where an index is narrowed to 32 bits: the three reasons for which that is right.

An `index` means a 64-bit number. It is computed in 32 bits where

1. its interval is known to fit (`widen-indices`; the launcher sees to the sizes of arrays and grids
   that this counts with),
2. it is a coordinate of an array whose sizes are below `SIZE_LIMIT`: what lies outside only has to
   stay outside on the same side, so it is clamped to `[-SIZE_LIMIT, SIZE_LIMIT]`. A tile that
   starts there hangs over by less than 2**16 and does not wrap, and both ends are multiples of
   2**16, so that the clamp keeps what divides a coordinate,
3. otherwise it stays 64 bits wide: as an i64 in a kernel of 32-bit indices, or in a kernel whose
   indices are all of 64 bits.

The copy engine takes coordinates of 32 bits whatever a kernel computes in (PTX ISA 9.0,
"cp.async.bulk.tensor"): `as_copy_coordinate` marks the cast, and the lowering clamps where the
index is wide.
"""

from __future__ import annotations

from mlir import ir

from tilec.executable.kernel import INDEX_LIMIT_32 as SIZE_LIMIT
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.analysis.intervals import NARROW, Interval
from tilec.passes.rewriting.scalars import binary, constant, create, i32_constant

COORDINATE = "tile.coordinate"
"""The mark of a cast of a coordinate: what 32 bits do not hold is clamped, not cut."""


def clamped(value: ir.Value, low: int = -SIZE_LIMIT - 1, high: int = SIZE_LIMIT + 1) -> ir.Value:
    """A 64-bit coordinate, at the current insertion point, as a 64-bit number that 32 bits hold.
    `low`, `high`: what is known of it."""
    if high > SIZE_LIMIT:
        value = binary("arith.minsi", value, SIZE_LIMIT)
    if low < -SIZE_LIMIT:
        value = binary("arith.maxsi", value, -SIZE_LIMIT)
    return value


def clamped_sum(
    first: ir.Value, second: ir.Value, known: Interval, *, subtracts: bool = False
) -> ir.Value:
    """The same of the sum or difference of two numbers of 32 bits, which never leave these: 64 bits
    take two instructions where 32 take one, one behind the other, behind a load that waits for
    another. What divides both is lost. `known`: of the second, which should be there first."""
    fitting, sign = first, -1 if subtracts else 1
    ends = (("arith.minsi", NARROW[1]), ("arith.maxsi", NARROW[0]))
    for (keeps, end), reaches in zip(ends, (known[sign > 0], known[sign < 0]), strict=True):
        side = sign if keeps == "arith.minsi" else -sign
        if side * reaches <= 0:
            continue  # away from that end
        part = binary("arith.maxsi" if reaches > 0 else "arith.minsi", second, 0)
        room = binary(_INVERSE[subtracts], constant(first.type, end), part)
        fitting = binary(keeps, fitting, room)
    return clamped(binary(_INVERSE[not subtracts], fitting, second))


_INVERSE = ("arith.subi", "arith.addi")


def as_copy_coordinate(value: ir.Value) -> ir.Value:
    """An index, at the current insertion point, as the copy engine's i32."""
    known = constant_of(value)
    if known is not None and abs(known) > SIZE_LIMIT:
        return i32_constant(SIZE_LIMIT if known > 0 else -SIZE_LIMIT)
    cast = create("arith.index_cast", [value], ir.IntegerType.get_signless(32))
    if known is None:
        cast.owner.attributes[COORDINATE] = ir.UnitAttr.get()
    return cast
