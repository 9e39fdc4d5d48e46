"""Computes the polynomial coefficients in `passes/math/coefficients.py` and prints that file.

Run by hand, `python test/unit/fit_coefficients.py > passes/math/coefficients.py`,
when an interval or a degree changes. Needs mpmath, which tilec does not depend on.

Each fit is a least-squares fit on Chebyshev nodes, weighted by the relative error of the finished
function, which comes within a factor of two of the minimax error. Coefficients are rounded one by
one to the working type, lowest first, and the rest fitted again (the idea of Brisebarre and
Chevillard, "Efficient polynomial L-infinity approximations", 2007), so rounding costs nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp  # pyright: ignore[reportMissingImports]

mp.mp.dps = 80
"""Digits: four times an f64's 16 and more, so that no rounding of the fit is in what it finds."""


@dataclass(frozen=True)
class Fit:
    """`polynomial(variable(x))` shall be `goal(x)` on `interval`.

    `weight(x)` turns the polynomial's error into the relative error of `formula`.
    """

    name: str
    formula: str
    goal: Callable
    variable: Callable
    weight: Callable
    interval: tuple
    counts: dict[str, int]


def round_to(value, float_type: str) -> float:
    """`value` rounded once to f32 or f64."""
    if float_type == "f64":
        return float(value)
    mantissa, exponent = mp.frexp(value)
    scaled = mp.nint(mp.ldexp(mantissa, 24))
    return struct.unpack("f", struct.pack("f", float(mp.ldexp(scaled, int(exponent) - 24))))[0]


def least_squares(nodes: list, goals: list, weights: list, count: int) -> list:
    """Coefficients of the polynomial with `count` terms nearest to `goals`."""
    powers = [[w * v**i for i in range(count)] for v, w in zip(nodes, weights, strict=True)]
    rhs = [w * g for w, g in zip(weights, goals, strict=True)]
    normal = mp.matrix(count, count)
    vector = mp.matrix(count, 1)
    for i in range(count):
        vector[i] = mp.fsum(row[i] * b for row, b in zip(powers, rhs, strict=True))
        for j in range(count):
            normal[i, j] = mp.fsum(row[i] * row[j] for row in powers)
    return list(mp.lu_solve(normal, vector))


def fit(task: Fit, float_type: str) -> tuple[list[float], float]:
    """The rounded coefficients, lowest first, and log2 of the largest relative error."""
    count = task.counts[float_type]
    low, high = (mp.mpf(end) for end in task.interval)
    angles = [(2 * k + 1) * mp.pi / (12 * count) for k in range(6 * count)]
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(angle) for angle in angles]
    nodes = [task.variable(x) for x in points]
    goals = [task.goal(x) for x in points]
    weights = [task.weight(x) for x in points]
    rest, rest_weights, rounded = list(goals), list(weights), []
    for done in range(count):
        lowest = round_to(least_squares(nodes, rest, rest_weights, count - done)[0], float_type)
        rounded.append(lowest)
        rest = [(g - lowest) / v for g, v in zip(rest, nodes, strict=True)]
        rest_weights = [w * v for w, v in zip(rest_weights, nodes, strict=True)]
    errors = [
        abs(w * (mp.polyval(rounded[::-1], v) - g))
        for v, g, w in zip(nodes, goals, weights, strict=True)
    ]
    return rounded, float(mp.log(max(errors), 2))


def odd(name: str, function: Callable, high, counts: dict[str, int]) -> Fit:
    """x + x**3 p(x**2), for an odd function that starts with x."""
    return Fit(
        name,
        f"{name}(x) = x + x**3 p(x**2)",
        lambda x: (function(x) - x) / x**3,
        lambda x: x * x,
        lambda x: x**3 / function(x),
        (mp.mpf("1e-6") * high, high),
        counts,
    )


def erfc_scaled(centre: int):
    """erfc(a) exp(a**2) (1 + 2 a) as a function of t = (a - centre) / (a + centre)."""

    def at(t):
        a = centre * (1 + t) / (1 - t)
        return mp.erfc(a) * mp.exp(a * a) * (1 + 2 * a)

    return at


def erfc_fit(float_type: str, centre: int, largest, count: int) -> Fit:
    scaled = erfc_scaled(centre)
    return Fit(
        "erfc",
        f"erfc(a) exp(a**2) (1 + 2 a) = p(t), t = (a - {centre}) / (a + {centre})",
        scaled,
        lambda t: t,
        lambda t: 1 / scaled(t),
        (-1, (largest - centre) / (largest + centre)),
        {float_type: count},
    )


QUARTER_PI = mp.pi / 4 * mp.mpf("1.001")
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.001")
ROOT_2 = mp.sqrt(2)

FITS = (
    Fit(
        "expm1",
        "expm1(x) = x + x**2 p(x)",
        lambda x: (mp.expm1(x) - x) / x**2,
        lambda x: x,
        lambda x: x**2 / mp.expm1(x),
        (-HALF_LN2, HALF_LN2),
        {"f32": 6, "f64": 11},
    ),
    Fit(
        "exp2",
        "2**x = p(x), for the f32 result of pow",
        lambda x: mp.power(2, x),
        lambda x: x,
        lambda x: mp.power(2, -x),
        (mp.mpf("-0.501"), mp.mpf("0.501")),
        {"f64": 8},
    ),
    Fit(
        "log1p",
        "log1p(f) = f - f**2 / 2 + f**3 p(f)",
        lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3,
        lambda f: f,
        lambda f: f**3 / mp.log1p(f),
        (-mp.mpf(1) / 3, mp.mpf(1) / 3),
        {"f32": 9},
    ),
    Fit(
        "log1p",
        "log1p(f) = 2 s + s**3 p(s**2), s = f / (2 + f)",
        lambda s: (2 * mp.atanh(s) - 2 * s) / s**3,
        lambda s: s * s,
        lambda s: s**3 / (2 * mp.atanh(s)),
        (mp.mpf("1e-6"), (ROOT_2 - 1) / (ROOT_2 + 1) * mp.mpf("1.001")),
        {"f64": 8},
    ),
    Fit(
        "log_tail",
        "log1p(f) = 2 s + 2/3 s**3 + s**5 p(s**2), s = f / (2 + f), for pow",
        lambda s: (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5,
        lambda s: s * s,
        lambda s: s**5 / (2 * mp.atanh(s)),
        (mp.mpf("1e-6"), (ROOT_2 - 1) / (ROOT_2 + 1) * mp.mpf("1.001")),
        {"f64": 9},
    ),
    Fit(
        "log2",
        "log2(1 + f) = f p(f), for the f32 result of pow",
        lambda f: mp.log1p(f) / mp.log(2) / f,
        lambda f: f,
        lambda f: f * mp.log(2) / mp.log1p(f),
        (1 / ROOT_2 - 1, ROOT_2 - 1),
        {"f64": 13},
    ),
    odd("sin", mp.sin, QUARTER_PI, {"f32": 3, "f64": 6}),
    Fit(
        "cos",
        "cos(x) = 1 - x**2 / 2 + x**4 p(x**2)",
        lambda x: (mp.cos(x) - 1 + x**2 / 2) / x**4,
        lambda x: x * x,
        lambda x: x**4 / mp.cos(x),
        (mp.mpf("1e-6"), QUARTER_PI),
        {"f32": 3, "f64": 6},
    ),
    odd("atan", mp.atan, mp.mpf(1), {"f32": 9, "f64": 20}),
    odd("asin", mp.asin, mp.mpf("0.5"), {"f32": 5, "f64": 13}),
    odd("sinh", mp.sinh, mp.mpf(2), {"f32": 6, "f64": 11}),
    odd("tanh", mp.tanh, mp.mpf("0.6"), {"f32": 5}),
    Fit(
        "erf",
        "erf(x) = x + x p(x**2)",
        lambda x: mp.erf(x) / x - 1,
        lambda x: x * x,
        lambda x: x / mp.erf(x),
        (mp.mpf("1e-6"), 1),
        {"f32": 7, "f64": 14},
    ),
    Fit(
        "erf_tail",
        "erfc(a) = 2**p(a), weighted by the error of erf(a) = 1 - erfc(a)",
        lambda a: mp.log(mp.erfc(a), 2),
        lambda a: a,
        lambda a: mp.log(2) * mp.erfc(a) / mp.erf(a),
        (1, 4),
        {"f32": 7},
    ),
    erfc_fit("f32", 2, mp.mpf("10.3"), 12),
    erfc_fit("f64", 4, mp.mpf("27.6"), 25),
)


def main() -> None:
    text = "Polynomial coefficients, lowest power first; printed by test/unit/fit_coefficients.py."
    print(f'"""{text}"""\n')
    print("from __future__ import annotations\n")
    print("COEFFICIENTS: dict[tuple[str, str], tuple[float, ...]] = {")
    for task in FITS:
        for float_type in task.counts:
            rounded, error = fit(task, float_type)
            print(f"    # {task.formula}; relative error 2**{error:.1f}")
            print(f'    ("{task.name}", "{float_type}"): (')
            for coefficient in rounded:
                print(f"        {coefficient!r},")
            print("    ),")
    print("}")


if __name__ == "__main__":
    main()
