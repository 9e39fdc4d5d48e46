"""Bessel functions of f32 and f64, computed in f64.

Up to 8 an even function of x is a polynomial in t = x**2 / 32 - 1, from -1 to 1: those of the
first kind as they are (J1 over x), those of the second without their logarithm,
Y0 - 2/pi log(x) J0 and (Y1 - 2/pi (log(x) J1 - 1/x)) / x, and those of imaginary argument by the
series in x**2 / 4, whose terms are all positive (NIST DLMF 10.2.2, 10.8.1, 10.25.2). From there on
Hankel's form, sqrt(2 / (pi x)) (P cos(x - a) - Q sin(x - a)) (DLMF 10.17), where P and Q x / 8 are
polynomials in t = 2 (8 / x)**2 - 1, and exp(x) / sqrt(x) times one in t = 16 / x - 1.

The tables are the interpolations at Chebyshev's points, computed in 50 digits, as far as their
coefficients are above 1e-18 (1e-17 of the last two), the highest power first. Errors are some units
of the last place of f64 times the largest value nearby, as near a zero every such form has.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mlir import ir

from tilec.triton.formula import Formula

_J0 = (
    4.0037632815796753e-13, -1.243301171273326e-11, 3.3634475788173604e-10, -7.91532308295207e-09,
    1.5956109104549218e-07, -2.717749223632098e-06, 3.8473197855944365e-05,
    -0.0004435459224311503, 0.004058078989140991, -0.028472718610882047, 0.14598884856759264,
    -0.5074680458471, 1.0383794611437211, -0.8080888076696872, -0.6484692830871837,
    0.9303012472958572, 0.04582966485981377,
)  # fmt: skip
"""J0 up to 8."""
_J1 = (
    -4.0045728425886457e-13, 1.1658972367678622e-11, -2.943013798001659e-10,
    6.431190177265836e-09, -1.196708186787801e-07, 1.8684526037206013e-06, -2.404574865968694e-05,
    0.0002494945813597261, -0.0020290394945705996, 0.012456814392263375, -0.05474581821284722,
    0.15858376432721838, -0.2595948652859303, 0.15151665143806636, 0.08105866038589796,
    -0.05814382795599107,
)  # fmt: skip
"""J1 over x up to 8."""
_Y0 = (
    -8.840112096073101e-13, 2.6926938054524057e-11, -7.13046146536789e-10, 1.6390875014077404e-08,
    -3.2185078445935923e-07, 5.3213188103997145e-06, -7.279541882454115e-05, 0.000806158605961636,
    -0.00702574105727097, 0.046367047681375125, -0.21895747096171628, 0.6721770783431679,
    -1.0775477338215995, 0.14412632369302475, 1.6470964788745466, -0.8284358903604587,
    -0.382250654459425,
)  # fmt: skip
"""Y0 up to 8, without its logarithm."""
_Y1 = (
    8.760001143977853e-13, -2.499531546171249e-11, 6.169688029066965e-10, -1.3153147367094951e-08,
    2.3804930420514178e-07, -3.601000022590458e-06, 4.467433012646365e-05, -0.0004438173434420147,
    0.0034224907399188495, -0.01962875683311711, 0.07854786922242532, -0.19639839859930203,
    0.23507209206669755, 0.02336757172099348, -0.24337743079193114, 0.07075985882118005,
)  # fmt: skip
"""(Y1 - 2/pi (log(x) J1 - 1/x)) / x up to 8."""
_P0 = (
    -1.180002783020184e-14, 3.339452259070809e-14, -6.416781008015415e-14, 2.4531772967345006e-13,
    -1.0636861151667625e-12, 4.786995821368028e-12, -2.4882702786880542e-11,
    1.5500565496632596e-10, -1.2121182069774233e-09, 1.280376144080092e-08,
    -2.0527448156307146e-07, 6.137416080109497e-06, -0.0005363673192130047, 0.9994572757882519,
)  # fmt: skip
"""P of order 0, from 8 on."""
_Q0 = (
    1.2731367623367943e-14, -3.417306155904644e-14, 5.756325587995953e-14,
    -2.0979723806283122e-13, 8.689732394690306e-13, -3.605043103124562e-12,
    1.7029372022291316e-11, -9.469830663448226e-11, 6.432789503382007e-10, -5.668717017471248e-09,
    7.106214852192226e-08, -1.477138832589449e-06, 6.833149099344083e-05, -0.01555511387951352,
)  # fmt: skip
"""Q x / 8 of order 0, from 8 on."""
_P1 = (
    1.2489929194563941e-14, -3.5455617466606254e-14, 6.864486664846182e-14,
    -2.6335760672461096e-13, 1.1462229852806783e-12, -5.191158004646548e-12,
    2.720406848040165e-11, -1.713107485294131e-10, 1.3603058049468316e-09,
    -1.4708512991275258e-08, 2.4536766222672443e-07, -7.9596946984383e-06, 0.0008988049416705579,
    1.0009070262780821,
)  # fmt: skip
"""P of order 1, from 8 on."""
_Q1 = (
    -1.3449019339973269e-14, 3.620117603894229e-14, -6.144675787095688e-14,
    2.2462055932168237e-13, -9.33138059712287e-13, 3.8929927766683146e-12,
    -1.8520736145988993e-11, 1.0394482901993273e-10, -7.151113611051071e-10,
    6.420133519314915e-09, -8.291960701313517e-08, 1.8212018511674905e-06, -9.621458822054632e-05,
    0.04677687402744898,
)  # fmt: skip
"""Q x / 8 of order 1, from 8 on."""
_I0_LARGE = (
    9.36508689281819e-11, 3.629355229718733e-11, -6.633287112547084e-10, -2.8033819978869995e-10,
    2.1968921378829006e-09, 1.1050558794424347e-09, -4.575553424534973e-09,
    -3.1346276429240787e-09, 6.560138746917057e-09, 7.3359687108161536e-09,
    -5.0381064879032845e-09, -1.3326094405766387e-08, -6.8493381882867694e-09,
    7.534355843803342e-09, 2.1566251453104354e-08, 3.932889375114634e-08, 8.872034383314144e-08,
    2.973596046562712e-07, 1.4838476651250266e-06, 1.1143033800708978e-05, 0.00013621607438984735,
    0.0033605519836677504, 0.4021765094450081,
)  # fmt: skip
"""exp(-x) sqrt(x) I0 from 8 on."""
_I1_LARGE = (
    -9.752397204138195e-11, -3.365431853180176e-11, 6.917089294193807e-10, 2.6340771095136483e-10,
    -2.297004161885201e-09, -1.0594544160443166e-09, 4.810597405089944e-09, 3.086886736722725e-09,
    -6.983839624895866e-09, -7.44444147719727e-09, 5.59337010179061e-09, 1.3958551001385955e-08,
    6.8401389977069586e-09, -8.409182040442918e-09, -2.339250374801858e-08,
    -4.313196489977733e-08, -1.000109565963654e-07, -3.4838534380376333e-07,
    -1.8349102358955385e-06, -1.5038547209501858e-05, -0.0002192357638317243,
    -0.009749577193235635, 0.38939845902587233,
)  # fmt: skip
"""exp(-x) sqrt(x) I1 from 8 on."""
_TERMS = 23
"""Of the series, the last of which is below 1e-18 of the sum at 8."""
_END = 8.0
"""Where the forms for large x begin: Hankel's converges fast enough from there on."""
_OVERFLOWS = 1000.0
"""Where exp(x) has long been infinite, and exp(x / 2) is not."""


def j0(f: Formula, x: ir.Value) -> ir.Value:
    """Of the first kind and order 0."""
    return f.narrow(_first(f, f.wide(x), 0))


def j1(f: Formula, x: ir.Value) -> ir.Value:
    """Of the first kind and order 1."""
    return f.narrow(_first(f, f.wide(x), 1))


def y0(f: Formula, x: ir.Value) -> ir.Value:
    """Of the second kind and order 0: minus infinity at 0, NaN below."""
    return f.narrow(_second(f, f.wide(x), 0))


def y1(f: Formula, x: ir.Value) -> ir.Value:
    """Of the second kind and order 1."""
    return f.narrow(_second(f, f.wide(x), 1))


def i0(f: Formula, x: ir.Value) -> ir.Value:
    """Of imaginary argument and order 0."""
    wide = f.wide(x)
    return f.narrow(_growing(f, f.math("absf", wide), 0))


def i1(f: Formula, x: ir.Value) -> ir.Value:
    """Of imaginary argument and order 1."""
    wide = f.wide(x)
    return f.narrow(f.math("copysign", _growing(f, f.math("absf", wide), 1), wide))


def _first(f: Formula, x: ir.Value, order: int) -> ir.Value:
    size = f.math("absf", x)
    near = f.polynomial(_of_square(f, x), (_J0, _J1)[order])
    if order:
        near = f.arith("mulf", near, size)
    far = _hankel(f, size, order, lambda p, q, s, c: f.arith("subf", _mul(f, p, c), _mul(f, q, s)))
    found = f.select(f.compare("olt", size, f.wide_number(_END)), near, far)
    found = f.select(f.is_infinite(x), f.wide_number(0.0), found)
    # Odd: -J1(|x|) below 0.
    return _mul(f, found, f.math("copysign", f.wide_number(1.0), x)) if order else found


def _second(f: Formula, x: ir.Value, order: int) -> ir.Value:
    near = f.polynomial(_of_square(f, x), (_Y0, _Y1)[order])
    part = _mul(f, f.math("log", x), _first(f, x, order))
    if order:
        near = _mul(f, near, x)
        part = f.arith("subf", part, f.arith("divf", f.wide_number(1.0), x))
    near = f.math("fma", part, f.wide_number(2 / math.pi), near)
    far = _hankel(f, x, order, lambda p, q, s, c: f.arith("addf", _mul(f, p, s), _mul(f, q, c)))
    found = f.select(f.compare("olt", x, f.wide_number(_END)), near, far)
    found = f.select(f.is_infinite(x), f.wide_number(0.0), found)
    found = f.select(f.compare("oeq", x, f.wide_number(0.0)), f.wide_number(-math.inf), found)
    return f.select(f.compare("olt", x, f.wide_number(0.0)), f.wide_number(math.nan), found)


def _hankel(f: Formula, x: ir.Value, order: int, combined: Callable[..., ir.Value]) -> ir.Value:
    """For x from `_END` on: P and Q with the sine and the cosine of x - (order / 2 + 1 / 4) pi,
    which come of those of x itself, so that no digit of a large x is lost."""
    inverse = f.arith("divf", f.wide_number(_END), x)
    t = f.math("fma", _mul(f, inverse, inverse), f.wide_number(2.0), f.wide_number(-1.0))
    p = f.polynomial(t, (_P0, _P1)[order])
    q = _mul(f, f.polynomial(t, (_Q0, _Q1)[order]), inverse)
    sine, cosine = f.math("sin", x), f.math("cos", x)
    less, more = f.arith("subf", sine, cosine), f.arith("addf", sine, cosine)
    if order:
        less, more = f.arith("negf", more), less
    root = f.math("sqrt", f.arith("divf", f.wide_number(1 / math.pi), x))
    return _mul(f, root, combined(p, q, less, more))


def _growing(f: Formula, size: ir.Value, order: int) -> ir.Value:
    quarter = _mul(f, _mul(f, size, size), f.wide_number(0.25))
    terms = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]
    near = f.polynomial(quarter, terms[::-1])
    if order:
        near = _mul(f, near, _mul(f, size, f.wide_number(0.5)))
    is_small = f.compare("olt", size, f.wide_number(_END))
    most = f.wide_number(_OVERFLOWS)
    some = f.select(f.compare("ogt", size, most), most, size)
    t = f.arith("subf", f.arith("divf", f.wide_number(2 * _END), some), f.wide_number(1.0))
    # exp(x) in two parts: it overflows before the function does.
    half = f.math("exp", _mul(f, some, f.wide_number(0.5)))
    scaled = f.arith("divf", f.polynomial(t, (_I0_LARGE, _I1_LARGE)[order]), f.math("sqrt", some))
    return f.select(is_small, near, _mul(f, _mul(f, half, scaled), half))


def _of_square(f: Formula, x: ir.Value) -> ir.Value:
    """x**2 / 32 - 1."""
    part = f.wide_number(1 / 32)
    return f.math("fma", _mul(f, x, x), part, f.wide_number(-1.0))


def _mul(f: Formula, one: ir.Value, two: ir.Value) -> ir.Value:
    return f.arith("mulf", one, two)
