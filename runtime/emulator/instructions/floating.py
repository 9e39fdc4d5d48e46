"""Floating-point arithmetic, scalar and packed (PTX ISA 9.7.3, 9.7.4, 9.7.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tilec.runtime.emulator.instructions.integer import split_modifiers
from tilec.runtime.emulator.numbers import rounding
from tilec.runtime.emulator.numbers.float64 import directed64
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Operand
from tilec.runtime.emulator.writing.writer import Writer

U32, U64, PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
_PACKED = {"f16x2": TYPES["f16"], "bf16x2": TYPES["bf16"], "f32x2": TYPES["f32"]}
_ROUNDINGS = {"rn", "rz", "rm", "rp", "rna"}


_NARROW = {"f16": TYPES["f16"], "bf16": TYPES["bf16"]}


class Form:
    """What the modifiers of a float instruction say.

    `narrow`: the type of the multiplicands or first addend of a mixed-precision form, which are
    widened to f32 exactly (PTX ISA 9.7.5, "add.f32.bf16").
    """

    def __init__(
        self, instruction: Instruction, writer: Writer, known: set[str], *, may_mix: bool = False
    ) -> None:
        self.narrow = None
        if may_mix and instruction.modifiers[-2:-1] == ("f32",):
            self.narrow = _NARROW.get(instruction.modifiers[-1])
        if self.narrow is not None:
            instruction = replace(instruction, modifiers=instruction.modifiers[:-1])
        flags, (scalar,) = split_modifiers(instruction, writer, known)
        self.packed = scalar if scalar.name in _PACKED else None
        self.scalar = _PACKED.get(scalar.name, scalar)
        if self.scalar.kind != "f":
            raise writer.unsupported(f"type .{scalar.name}")
        self.flags = flags
        roundings = flags & _ROUNDINGS
        if len(roundings) > 1:
            raise writer.unsupported("two rounding modes")
        self.rounding = roundings.pop() if roundings else "rn"

    @property
    def directed(self) -> bool:
        return self.rounding != "rn"

    def read_narrow(self, writer: Writer, operand: Operand) -> str:
        """An operand a mixed-precision form has in its narrow type."""
        if self.narrow is None:
            return self.read(writer, operand)
        return f"{writer.read(operand, self.narrow)}.astype(np.float32)"

    def read(self, writer: Writer, operand: Operand) -> str:
        """The operand as an array of the scalar type, (..., 2) if packed; .ftz flushes."""
        if self.packed is not None:
            if isinstance(operand, Immediate):
                value = f"np.array({writer.read(operand, U32)})"
            else:
                value = writer.read(operand, self.packed)
            function = writer.function(packed_values)
            value = f"{function}({value}, np.dtype({self._dtype_name(writer)}))"
        else:
            value = writer.read(operand, self.scalar)
        if "ftz" in self.flags and self.scalar.bits < 64:
            value = f"{writer.function(rounding.flush)}({value})"
        return value

    def _dtype_name(self, writer: Writer) -> str:
        dtype = self.scalar.dtype
        name = f"dt_{self.scalar.code}"
        writer.factories[name] = lambda _: dtype
        return name

    def flush_rounded(self, writer: Writer, value: str, operation: str, *operands: str) -> str:
        """`value` with .ftz, where the exact result of the operation decides what is tiny."""
        if "ftz" not in self.flags or self.scalar.bits == 64:
            return value
        function = writer.function(rounding.flush_rounded)
        return f"{function}({value}, {operation!r}, {self.rounding!r}, {', '.join(operands)})"

    def write(self, writer: Writer, destination: Operand, value: str) -> None:
        for flag, function in (
            ("ftz", rounding.flush),
            ("sat", rounding.saturate),
            ("relu", rounding.relu),
        ):
            if flag in self.flags:
                value = f"{writer.function(function)}({value})"
        if self.packed is None:
            writer.assign(destination, self.scalar, value)
            return
        function = writer.function(packed_register)
        writer.assign(destination, self.packed, f"{function}({value})")


def packed_values(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    raw = np.ascontiguousarray(value)
    return raw.reshape(*np.shape(value), 1).view(dtype)


def packed_register(value: np.ndarray) -> np.ndarray:
    raw = np.ascontiguousarray(value)
    return raw.view(f"u{2 * raw.dtype.itemsize}").reshape(raw.shape[:-1])


def emit_arithmetic(instruction: Instruction, writer: Writer) -> None:
    """add, sub, mul: correctly rounded; .ftz, .sat, .relu on operands and result."""
    may_mix = instruction.opcode != "mul"
    form = Form(instruction, writer, _ROUNDINGS | {"ftz", "sat", "relu"}, may_mix=may_mix)
    if len(instruction.operands) != 3:
        raise writer.unsupported("operand count")
    x = form.read_narrow(writer, instruction.operands[1])
    y = form.read(writer, instruction.operands[2])
    name = {"add": "add", "sub": "subtract", "mul": "multiply"}[instruction.opcode]
    destination = instruction.operands[0]
    if form.directed:
        function = writer.function(directed_binary)
        value = f"{function}(np.{name}, {x}, {y}, {form.rounding!r})"
        if name == "multiply":
            value = form.flush_rounded(writer, value, name, x, y)
        form.write(writer, destination, value)
    elif name == "multiply" and "ftz" in form.flags:
        value = form.flush_rounded(writer, f"np.multiply({x}, {y})", name, x, y)
        form.write(writer, destination, value)
    elif form.packed or form.flags & {"ftz", "sat", "relu"}:
        form.write(writer, destination, f"np.{name}({x}, {y})")
    else:
        writer.apply(name, destination, form.scalar, x, y)


def directed_binary(
    ufunc: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray, mode: str
) -> np.ndarray:
    """A sum or product rounded towards zero, down or up."""
    if a.dtype == np.float64:
        return directed64(ufunc(a, b), mode, ufunc.__name__, a, b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = ufunc(wide_a, wide_b)
    if ufunc is np.multiply:
        return rounding.directed(ufunc(a, b), exact, mode)
    other = wide_b if ufunc is np.add else -wide_b
    exact = rounding._to_odd(wide_a, other, exact)
    result = rounding.directed(ufunc(a, b), exact, mode)
    return rounding.zero_down(result, exact, wide_a, other) if mode == "rm" else result


def emit_fma(instruction: Instruction, writer: Writer) -> None:
    form = Form(instruction, writer, _ROUNDINGS | {"ftz", "sat", "relu"}, may_mix=True)
    *factors, addend = instruction.operands[1:]
    a, b = (form.read_narrow(writer, operand) for operand in factors)
    c = form.read(writer, addend)
    value = f"{writer.function(rounding.fma)}({a}, {b}, {c})"
    if form.directed:
        value = f"{writer.function(directed_fma)}({a}, {b}, {c}, {form.rounding!r})"
    value = form.flush_rounded(writer, value, "fma", a, b, c)
    form.write(writer, instruction.operands[0], value)


def directed_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    if np.asarray(a).dtype == np.float64:
        return directed64(rounding.fma(a, b, c), mode, "fma", a, b, c)
    product = a.astype(np.float64) * b.astype(np.float64)
    wide = np.asarray(c, np.float64)
    exact = rounding._to_odd(product, wide, product + wide)
    result = rounding.directed(rounding.fma(a, b, c), exact, mode)
    return rounding.zero_down(result, exact, product, wide) if mode == "rm" else result


def emit_div(instruction: Instruction, writer: Writer) -> None:
    form = Form(instruction, writer, _ROUNDINGS | {"ftz", "approx", "full"})
    x, y = (form.read(writer, operand) for operand in instruction.operands[1:])
    if form.directed:
        function = writer.function(directed_quotient)
        value = f"{function}({x}, {y}, {form.rounding!r})"
    else:
        value = f"np.divide({x}, {y})"
    value = form.flush_rounded(writer, value, "divide", x, y)
    form.write(writer, instruction.operands[0], value)


def directed_quotient(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    if np.asarray(a).dtype == np.float64:
        return directed64(np.divide(a, b), mode, "divide", a, b)
    exact = np.asarray(a).astype(np.float64) / np.asarray(b).astype(np.float64)
    return rounding.directed(np.divide(a, b), exact, mode)


def emit_unary(instruction: Instruction, writer: Writer) -> None:
    """rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh: computed in a wider type, rounded once."""
    form = Form(instruction, writer, _ROUNDINGS | {"ftz", "approx", "full"})
    function = writer.function(_UNARY[instruction.opcode])
    value = f"{function}({form.read(writer, instruction.operands[1])})"
    if form.directed:
        other = writer.function(directed_unary)
        source = form.read(writer, instruction.operands[1])
        value = f"{other}({function}, {source}, {form.rounding!r})"
    form.write(writer, instruction.operands[0], value)


def directed_unary(
    function: Callable[[np.ndarray], np.ndarray], a: np.ndarray, mode: str
) -> np.ndarray:
    if a.dtype == np.float64:
        return directed64(function(a), mode, function.__name__, a)
    return rounding.directed(function(a), function(a.astype(np.float64)), mode)


def reciprocal(a: np.ndarray) -> np.ndarray:
    a = np.asarray(a)
    return np.divide(a.dtype.type(1), a)


def square_root(a: np.ndarray) -> np.ndarray:
    return np.sqrt(a)


def reciprocal_root(a: np.ndarray) -> np.ndarray:
    a = np.asarray(a)
    return (1.0 / np.sqrt(a.astype(np.float64))).astype(a.dtype)


def power_of_two(a: np.ndarray) -> np.ndarray:
    a = np.asarray(a)
    return np.exp2(a) if a.dtype != rounding.BF16 else np.exp2(a.astype("f4")).astype(a.dtype)


def logarithm(a: np.ndarray) -> np.ndarray:
    return np.log2(a)


def sine(a: np.ndarray) -> np.ndarray:
    return np.sin(a.astype(np.float64)).astype(a.dtype)


def cosine(a: np.ndarray) -> np.ndarray:
    return np.cos(a.astype(np.float64)).astype(a.dtype)


def hyperbolic_tangent(a: np.ndarray) -> np.ndarray:
    a = np.asarray(a)
    return np.tanh(a.astype(np.float32)).astype(a.dtype)


_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rcp": reciprocal,
    "sqrt": square_root,
    "rsqrt": reciprocal_root,
    "ex2": power_of_two,
    "lg2": logarithm,
    "sin": sine,
    "cos": cosine,
    "tanh": hyperbolic_tangent,
}


def emit_min_max(instruction: Instruction, writer: Writer) -> None:
    """min and max of two or three floats; .xorsign.abs compares magnitudes."""
    form = Form(instruction, writer, {"ftz", "NaN", "xorsign", "abs"})
    smaller = instruction.opcode == "min"
    function = writer.function(rounding.minimum if smaller else rounding.maximum)
    values = [form.read(writer, operand) for operand in instruction.operands[1:]]
    propagate = "NaN" in form.flags
    if "xorsign" in form.flags:
        inner = f"{function}(np.abs({values[0]}), np.abs({values[1]}), {propagate})"
        sign = writer.function(xor_of_signs)
        return form.write(
            writer, instruction.operands[0], f"{sign}({inner}, {values[0]}, {values[1]})"
        )
    result = values[0]
    for value in values[1:]:
        result = f"{function}({result}, {value}, {propagate})"
    if propagate:
        result = f"{writer.function(canonical_nan)}({result})"
    return form.write(writer, instruction.operands[0], result)


def xor_of_signs(value: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    sign = np.where(np.signbit(a) ^ np.signbit(b), -1.0, 1.0)
    return np.copysign(value, sign.astype(value.dtype))


def canonical_nan(value: np.ndarray) -> np.ndarray:
    """NaN results of min/max are canonical: all ones below the sign (PTX ISA min, max)."""
    nan = np.isnan(value)
    if not np.any(nan):
        return value
    bits = f"u{value.dtype.itemsize}"
    raw = np.ascontiguousarray(value).view(bits)
    largest = np.array((1 << (8 * value.dtype.itemsize - 1)) - 1, bits)
    return np.where(nan, largest, raw).view(value.dtype)


def emit_neg_abs(instruction: Instruction, writer: Writer) -> None:
    """Sign bit operations: exact for every bit pattern, NaN included."""
    form = Form(instruction, writer, {"ftz"})
    scalar = form.packed or form.scalar
    if "ftz" in form.flags:
        name = "negative" if instruction.opcode == "neg" else "absolute"
        value = form.read(writer, instruction.operands[1])
        return form.write(writer, instruction.operands[0], f"np.{name}({value})")
    unsigned = TYPES[f"b{scalar.bits}"]
    sign = 1 << (form.scalar.bits - 1)
    if form.packed is not None:
        sign |= sign << form.scalar.bits
    mask = sign if instruction.opcode == "neg" else ~sign & ((1 << scalar.bits) - 1)
    name = "bitwise_xor" if instruction.opcode == "neg" else "bitwise_and"
    constant = writer.constant(unsigned.dtype.type(mask))
    value = writer.read(instruction.operands[1], unsigned)
    return writer.apply(name, instruction.operands[0], unsigned, value, constant)


def emit_copysign(instruction: Instruction, writer: Writer) -> None:
    """d = |b| with the sign of a (PTX ISA copysign: the sign comes from the first operand)."""
    _, (scalar,) = split_modifiers(instruction, writer, set())
    a, b = (writer.read(operand, scalar) for operand in instruction.operands[1:])
    writer.apply("copysign", instruction.operands[0], scalar, b, a)


_TESTS: dict[str, str] = {
    "finite": "np.isfinite({0})",
    "infinite": "np.isinf({0})",
    "number": "~np.isnan({0})",
    "notanumber": "np.isnan({0})",
    "normal": (  # zero is a normal number (PTX ISA testp)
        "(({0} == 0) | (np.isfinite({0}) & (np.abs({0}) >= np.finfo({0}.dtype).tiny)))"
    ),
    "subnormal": "(({0} != 0) & (np.abs({0}) < np.finfo({0}.dtype).tiny))",
}


def emit_testp(instruction: Instruction, writer: Writer) -> None:
    test, kind = instruction.modifiers
    if test not in _TESTS or kind not in ("f32", "f64"):
        raise writer.unsupported("modifiers")
    value = writer.read(instruction.operands[1], TYPES[kind])
    writer.assign(instruction.operands[0], PRED, _TESTS[test].format(value))


RULES = {
    "fma": emit_fma,
    "rcp": emit_unary,
    "sqrt": emit_unary,
    "rsqrt": emit_unary,
    "ex2": emit_unary,
    "lg2": emit_unary,
    "sin": emit_unary,
    "cos": emit_unary,
    "tanh": emit_unary,
    "copysign": emit_copysign,
    "testp": emit_testp,
}
SHARED_RULES = {
    "add": emit_arithmetic,
    "sub": emit_arithmetic,
    "mul": emit_arithmetic,
    "mad": emit_fma,
    "div": emit_div,
    "min": emit_min_max,
    "max": emit_min_max,
    "neg": emit_neg_abs,
    "abs": emit_neg_abs,
}
