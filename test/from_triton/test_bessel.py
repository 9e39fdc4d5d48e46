"""Bessel functions by libdevice's names, against their integrals (NIST DLMF 10.9.2, 10.9.7 and
10.32.3) by quadrature in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_imported_ops import of_floats

import tilec.triton

ROUND = 2 * np.pi * np.arange(400) / 400
NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)
F32, F64 = "f32", "f64"


def first(order: int, x: Any) -> Any:
    """J: a mean over a period, which the trapezoidal rule has to all digits."""
    return np.cos(order * ROUND - np.outer(x, np.sin(ROUND))).mean(axis=1)


def of_imaginary(order: int, x: Any) -> Any:
    """I, in the same way."""
    return (np.exp(np.outer(x, np.cos(ROUND))) * np.cos(order * ROUND)).mean(axis=1)


def second(order: int, x: Any) -> Any:
    """Y, of x from 0.05 on."""
    angle = np.pi * (NODES + 1) / 2
    waves = np.sin(np.outer(x, np.sin(angle)) - order * angle) @ WEIGHTS / 2
    t = 5 * (NODES + 1)
    grown = np.exp(order * t) + (-1) ** order * np.exp(-order * t)
    return waves - (np.exp(-np.outer(x, np.sinh(t))) * grown) @ WEIGHTS * 5 / np.pi


@pytest.mark.parametrize("kind", [F32, F64])
@pytest.mark.parametrize(
    ("name", "right", "order", "ends"),
    [
        ("j0", first, 0, [0, 0, 1]),
        ("j1", first, 1, [0, -0.0, 0]),
        ("y0", second, 0, [0, np.nan, -np.inf]),
        ("y1", second, 1, [0, np.nan, -np.inf]),
        ("cyl_bessel_i0", of_imaginary, 0, [np.inf, np.inf, 1]),
        ("cyl_bessel_i1", of_imaginary, 1, [np.inf, -np.inf, 0]),
    ],
)
def test_bessel(name: str, right: Any, order: int, ends: list[float], kind: str) -> None:
    symbol = f"__nv_{name}f" if kind == F32 else f"__nv_{name}"
    low = 0.05 if right is second else -40
    x = np.concatenate([np.linspace(low, 40, 60), [np.inf, -np.inf, 0, np.nan]])
    x = x.astype({F32: np.float32, F64: np.float64}[kind])
    out = np.zeros_like(x)
    tilec.triton.kernel(of_floats(symbol, [kind], kind)).on("emulator")[1](x, out)
    expected = right(order, x[:60].astype(np.float64))
    # As a share of the function's size nearby: near its zeros quadrature has few digits.
    most = {F32: 1e-6, F64: 1e-12}[kind]
    assert (np.abs(out[:60] - expected) <= most * np.maximum(np.abs(expected), 0.3)).all()
    np.testing.assert_allclose(out[60:], [*ends, np.nan], rtol=1e-15)
