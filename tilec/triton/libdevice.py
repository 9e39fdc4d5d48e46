"""NVIDIA's libdevice: what `tt.extern_elementwise` of a function becomes.

    tt.extern_elementwise %x {symbol = "__nv_rsqrtf"} : (tensor<64xf32>) -> tensor<64xf32>
    math.rsqrt %x

Three tables. Functions that tilec has as an op of its own; those that are one instruction, with a
rounding or an accuracy that no op has, as inline PTX (PTX ISA 9.7.3, 9.7.9); and those that are
written in terms of ops. Names, arguments and special values: the libdevice user's guide, and CUDA's
math API, which has the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from mlir import ir

from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.tile import InlinePtxOp
from tilec.passes.rewriting.control import either, for_loop
from tilec.triton import bessel
from tilec.triton.build import Builder
from tilec.triton.elementwise import Rule
from tilec.triton.formula import Formula
from tilec.triton.live import constant_behind
from tilec.triton.op_facts import constant_integer
from tilec.triton.program import Op, defining
from tilec.triton.special_functions import erfinv, lgamma, normcdf

_Composed = Callable[..., ir.Value]
_SAME = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "sin", "cos",
    "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "erf", "erfc", "floor", "ceil", "trunc", "round", "fma", "copysign",
)  # fmt: skip
_OPS: Mapping[str, str] = {
    **{name: f"math.{name}" for name in _SAME},
    "fabs": "math.absf",
    "pow": "math.powf",
    "rint": "math.roundeven",
    "nearbyint": "math.roundeven",
    "fmax": "arith.maxnumf",
    "fmin": "arith.minnumf",
    "fmod": "arith.remf",
}
"""By the name of the function of f64; that of f32 ends in an f more."""
_OF_BITS: Mapping[str, str] = {
    "__nv_abs": "math.absi",
    "__nv_llabs": "math.absi",
    "__nv_min": "arith.minsi",
    "__nv_max": "arith.maxsi",
    "__nv_umin": "arith.minui",
    "__nv_umax": "arith.maxui",
    "__nv_llmin": "arith.minsi",
    "__nv_llmax": "arith.maxsi",
    "__nv_ullmin": "arith.minui",
    "__nv_ullmax": "arith.maxui",
    "__nv_clz": "math.ctlz",
    "__nv_popc": "math.ctpop",
    "__nv_float_as_int": "arith.bitcast",
    "__nv_float_as_uint": "arith.bitcast",
    "__nv_int_as_float": "arith.bitcast",
    "__nv_uint_as_float": "arith.bitcast",
    "__nv_double_as_longlong": "arith.bitcast",
    "__nv_longlong_as_double": "arith.bitcast",
}
_ROUNDINGS = {"rn": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}
"""PTX's names for CUDA's roundings."""
_ROUNDED = {
    "add": ("add", 2),
    "sub": ("sub", 2),
    "mul": ("mul", 2),
    "div": ("div", 2),
    "fma": ("fma", 3),
    "rcp": ("rcp", 1),
    "sqrt": ("sqrt", 1),
}
"""Instructions with a rounding, and how many operands they have."""
_INTEGERS = {"int": "s32", "uint": "u32", "ll": "s64", "ull": "u64"}
_FLOATS = {"float": "f32", "double": "f64"}
_LETTERS = {"s32": "r", "u32": "r", "s64": "l", "u64": "l", "b32": "r", "f32": "f", "f64": "d"}


def _instruction(name: str, kind: str, operands: int) -> tuple[str, str]:
    """PTX's text and constraints for an instruction whose operands and result are of one kind."""
    places = ", ".join(f"${n}" for n in range(operands + 1))
    letter = _LETTERS[kind]
    return f"{name}.{kind} {places};", ",".join([f"={letter}", *[letter] * operands])


def _conversion(rounding: str, to: str, source: str) -> tuple[str, str]:
    """Floats to integers are rounded to whole numbers, of the float's width."""
    suffix = f"{rounding}i" if to[0] in "su" else rounding
    return f"cvt.{suffix}.{to}.{source} $0, $1;", f"={_LETTERS[to]},{_LETTERS[source]}"


def _instructions() -> dict[str, tuple[str, str]]:
    found = {
        "__nv_saturatef": ("cvt.sat.f32.f32 $0, $1;", "=f,f"),
        "__nv_fast_sinf": _instruction("sin.approx", "f32", 1),
        "__nv_fast_cosf": _instruction("cos.approx", "f32", 1),
        "__nv_fast_log2f": _instruction("lg2.approx", "f32", 1),
        "__nv_fast_fdividef": _instruction("div.approx", "f32", 2),
        "__nv_mulhi": _instruction("mul.hi", "s32", 2),
        "__nv_umulhi": _instruction("mul.hi", "u32", 2),
        "__nv_mul64hi": _instruction("mul.hi", "s64", 2),
        "__nv_umul64hi": _instruction("mul.hi", "u64", 2),
        "__nv_mul24": _instruction("mul24.lo", "s32", 2),
        "__nv_umul24": _instruction("mul24.lo", "u32", 2),
        "__nv_sad": _instruction("sad", "s32", 3),
        "__nv_usad": _instruction("sad", "u32", 3),
        "__nv_brev": _instruction("brev", "b32", 1),
        "__nv_brevll": ("brev.b64 $0, $1;", "=l,l"),
        "__nv_byte_perm": _instruction("prmt", "b32", 3),
    }
    for (name, (instruction, operands)), (ending, rounding) in product(
        _ROUNDED.items(), _ROUNDINGS.items()
    ):
        single = f"__nv_{name}f_{ending}" if name == "fma" else f"__nv_f{name}_{ending}"
        double = f"__nv_{name}_{ending}" if name == "fma" else f"__nv_d{name}_{ending}"
        found[single] = _instruction(f"{instruction}.{rounding}", "f32", operands)
        found[double] = _instruction(f"{instruction}.{rounding}", "f64", operands)
    for ending, rounding in _ROUNDINGS.items():
        for one, source in _FLOATS.items():
            for two, to in _INTEGERS.items():
                found[f"__nv_{one}2{two}_{ending}"] = _conversion(rounding, to, source)
                found[f"__nv_{two}2{one}_{ending}"] = _back(rounding, to, source)
        found[f"__nv_double2float_{ending}"] = _conversion(rounding, "f32", "f64")
    return found


def _back(rounding: str, integer: str, real: str) -> tuple[str, str]:
    letters = f"={_LETTERS[real]},{_LETTERS[integer]}"
    return f"cvt.{rounding}.{real}.{integer} $0, $1;", letters


_PTX = _instructions()
_MOST_PRODUCTS = 64
"""The largest power that is taken by products: 10 of them at most."""


def _whole(rounding: str) -> _Composed:
    return lambda f, x: f.integer(f.math(rounding, x))


def _positive_difference(f: Formula, x: ir.Value, y: ir.Value) -> ir.Value:
    """fdim: x - y, or 0 where that is not positive; NaN where either is."""
    return f.select(f.compare("ole", x, y), f.number(0.0), f.arith("subf", x, y))


def _hypotenuse(f: Formula, x: ir.Value, y: ir.Value) -> ir.Value:
    """Of f32, in f64, where squares neither overflow nor vanish; an infinity wins over NaN."""
    squares = [f.arith("mulf", wide, wide) for wide in (f.wide(x), f.wide(y))]
    root = f.narrow(f.math("sqrt", f.arith("addf", *squares)))
    infinite = f.arith("ori", f.is_infinite(x), f.is_infinite(y))
    return f.select(infinite, f.number(float("inf")), root)


def _finite(f: Formula, x: ir.Value) -> ir.Value:
    return f.integer(f.compare("olt", f.math("absf", x), f.number(float("inf"))))


def _whole_power(f: Formula, x: ir.Value, n: ir.Value) -> ir.Value:
    """powi. By products, as libdevice has it, where the power is known and small, or one for all
    elements (FlagGems' powers by a number that only the launch knows took 72 us for 32); else of
    the magnitude, with the sign of x where n is odd: n as an f32 does not tell whether it is."""
    known = constant_behind(f.op.operands[1])
    power = None if known is None else constant_integer(known)
    if power is not None and abs(power) <= _MOST_PRODUCTS:
        found = _product_of(f, x, abs(power))
        return f.arith("divf", f.number(1.0), found) if power < 0 else found
    common = defining(f.op.operands[1], "tt.splat")
    if common is not None:
        return _counted_product(f, x, f.builder.get(common.operands[0]))
    size = f.math("powf", f.math("absf", x), f.builder.op("arith.sitofp", x.type, n))
    one, zero = (f.builder.constant(value, n.type) for value in (1, 0))
    unlike = predicate_attribute("arith.cmpi", "ne")
    last = f.arith("andi", n, one)
    odd = f.builder.op("arith.cmpi", f.like("i1"), last, zero, predicate=unlike)
    return f.select(odd, f.math("copysign", size, x), size)


def _product_of(f: Formula, x: ir.Value, power: int) -> ir.Value:
    """x to that power, by squares."""
    found = None
    while power:
        if power & 1:
            found = x if found is None else f.arith("mulf", found, x)
        power >>= 1
        x = f.arith("mulf", x, x) if power else x
    return f.number(1.0) if found is None else found


def _counted_product(f: Formula, x: ir.Value, power: ir.Value) -> ir.Value:
    """x to a power of which there is one for all elements: a step for each of its bits."""
    builder, kind = f.builder, power.type
    zero, one, bits = (builder.constant(n, kind) for n in (0, 1, kind.width))
    size = builder.op("math.absi", kind, power)
    steps = f.arith("subi", bits, builder.op("math.ctlz", kind, size))
    bounds = [builder.op("arith.index_cast", builder.index_type, n) for n in (zero, steps, one)]
    loop, body = for_loop(bounds, [f.number(1.0), x])
    with ir.InsertionPoint(body):
        counter, found, square = body.arguments
        shifted = f.arith("shrui", size, builder.op("arith.index_cast", kind, counter))
        odd = _compared(f, f.arith("andi", shifted, one), zero, "ne")
        factor = f.select(builder.splat(odd, f.kind.shape), square, f.number(1.0))
        following = [f.arith("mulf", found, factor), f.arith("mulf", square, square)]
        ir.Operation.create("scf.yield", operands=following)
    found = loop.results[0]
    negative = _compared(f, power, zero, "slt")
    return either(negative, lambda: [f.arith("divf", f.number(1.0), found)], lambda: [found])[0]


def _compared(f: Formula, one: ir.Value, two: ir.Value, predicate: str) -> ir.Value:
    """arith.cmpi of two numbers."""
    attribute = predicate_attribute("arith.cmpi", predicate)
    return f.builder.op("arith.cmpi", f.builder.typed("i1", None), one, two, predicate=attribute)


_COMPOSED: Mapping[str, _Composed] = {
    "isnan": lambda f, x: f.integer(f.compare("uno", x, x)),
    "isinf": lambda f, x: f.integer(f.is_infinite(x)),
    "finite": _finite,
    "isfinite": _finite,
    "signbit": lambda f, x: f.integer(f.sign(x)),
    "llrint": _whole("roundeven"),
    "llround": _whole("round"),
    "fdim": _positive_difference,
    "exp10": lambda f, x: f.math("powf", f.number(10.0), x),
    "powi": _whole_power,
    "rcbrt": lambda f, x: f.arith("divf", f.number(1.0), f.math("cbrt", x)),
    "j0": bessel.j0,
    "j1": bessel.j1,
    "y0": bessel.y0,
    "y1": bessel.y1,
    "cyl_bessel_i0": bessel.i0,
    "cyl_bessel_i1": bessel.i1,
}
"""By the name of the function of f64, without the d that some end in."""
_OF_F32: Mapping[str, _Composed] = {
    "__nv_hypotf": _hypotenuse,
    "__nv_erfinvf": erfinv,
    "__nv_lgammaf": lgamma,
    "__nv_normcdff": normcdf,
    "__nv_fast_expf": lambda f, x: f.math("exp", x),
    "__nv_fast_exp10f": lambda f, x: f.math("powf", f.number(10.0), x),
    "__nv_fast_logf": lambda f, x: f.math("log", x),
    "__nv_fast_log10f": lambda f, x: f.math("log10", x),
    "__nv_fast_tanf": lambda f, x: f.math("tan", x),
    "__nv_fast_powf": lambda f, x, y: f.math("powf", x, y),
}
"""The hurried ones that are several instructions are computed with care."""


def _elementwise(builder: Builder, op: Op, build: Any) -> None:
    """CompileError for a function in none of the tables."""
    symbol = op.attributes["symbol"].strip('"')
    operands = [builder.get(operand) for operand in op.operands]
    made = builder.type(op.result.type)
    name = _of_f64(op, symbol)
    known = _OF_BITS.get(symbol) or _OPS.get(name)
    formula = _OF_F32.get(symbol) or _COMPOSED.get(name) or _COMPOSED.get(name.removesuffix("d"))
    if symbol in _PTX:
        text, constraints = _PTX[symbol]
        options = {"text": text, "constraints": constraints, "pure": True}
        builder.set(op, *InlinePtxOp.build(operands, results=[made], **options))
    elif known is not None:
        builder.set(op, builder.op(known, made, *operands))
    elif formula is not None:
        builder.set(op, formula(Formula(builder, op), *operands))
    else:
        kinds = ", ".join(operand.type.element for operand in op.operands)
        raise op.error(f"tilec has no function '{symbol}' for {kinds}")


def _of_f64(op: Op, symbol: str) -> str:
    """The name that a function of floats has for f64, without `__nv_`; "" if it is of others."""
    name = symbol.removeprefix("__nv_")
    element = op.operands[0].type.element if op.operands else ""
    if element == "f32" and name.endswith("f"):
        return name[:-1]
    return name if element == "f64" else ""


RULES: dict[str, Rule] = {"tt.extern_elementwise": _elementwise}
