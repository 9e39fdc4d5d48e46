"""The scalar types of the math functions, and the types and attributes of a context made once."""

from __future__ import annotations

from mlir import ir

from tilec.records import dataclass

Number = float | int


@dataclass(frozen=True)
class Kind:
    """A scalar type. `mantissa_bits` counts the stored bits and is 0 for integers."""

    name: str
    bits: int
    mantissa_bits: int = 0

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point type."""
        return self.mantissa_bits > 0

    @property
    def exponent_bias(self) -> int:
        """What is added to a float's exponent in its bits."""
        return (1 << (self.bits - self.mantissa_bits - 2)) - 1

    @property
    def as_integer(self) -> Kind:
        """The integer of the same width."""
        return INTEGERS[self.bits]


F16 = Kind("f16", 16, 10)
BF16 = Kind("bf16", 16, 7)
F32 = Kind("f32", 32, 23)
F64 = Kind("f64", 64, 52)
INTEGERS = {bits: Kind(f"i{bits}", bits) for bits in (1, 8, 16, 32, 64, 128)}
I1, I32, I64, I128 = (INTEGERS[bits] for bits in (1, 32, 64, 128))
KINDS = {kind.name: kind for kind in (F16, BF16, F32, F64, *INTEGERS.values())}


class Vocabulary:
    """The types and attributes of one context, made once: parsing them costs more than an op."""

    def __init__(self, context: ir.Context) -> None:
        self.context = context
        self.types: dict[Kind, ir.Type] = {}
        self.kinds: dict[ir.Type, Kind] = {}
        floats = {F16: ir.F16Type, BF16: ir.BF16Type, F32: ir.F32Type, F64: ir.F64Type}
        with context:
            for kind in KINDS.values():
                found = floats[kind].get() if kind in floats else None
                self.types[kind] = found or ir.IntegerType.get_signless(kind.bits)
                self.kinds[self.types[kind]] = kind
        self._constants: dict[tuple[Kind, str], ir.Attribute] = {}
        self._attributes: dict[str, ir.Attribute] = {}

    def attribute(self, text: str) -> ir.Attribute:
        """The attribute written `text`."""
        found = self._attributes.get(text)
        if found is None:
            found = self._attributes[text] = ir.Attribute.parse(text, self.context)
        return found

    def constant(self, kind: Kind, number: Number) -> ir.Attribute:
        """The attribute of a number; integers are taken modulo 2**bits."""
        # repr tells -0.0 from 0.0, which a number as a key would not.
        key = (kind, repr(number))
        found = self._constants.get(key)
        if found is None:
            with self.context, ir.Location.unknown():
                found = self._constants[key] = self._constant(kind, number)
        return found

    def _constant(self, kind: Kind, number: Number) -> ir.Attribute:
        if kind.is_float:
            return ir.FloatAttr.get(self.types[kind], float(number))
        wrapped = int(number) % (1 << kind.bits)
        if kind.bits > 64:
            return ir.Attribute.parse(f"{wrapped} : {kind.name}", self.context)
        is_negative = kind.bits > 1 and wrapped >> (kind.bits - 1)
        signed = wrapped - (1 << kind.bits) if is_negative else wrapped
        return ir.IntegerAttr.get(self.types[kind], signed)
