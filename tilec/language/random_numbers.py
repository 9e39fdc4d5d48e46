"""Random numbers from counters: Philox 4x32 (Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC 2011), written in the tile language.

No state: a number follows from the seed and its counter, so that a backward pass makes the mask of
the forward pass again, and any split of the work into programs gives the same numbers.
"""

from __future__ import annotations

from tilec.language import arithmetic, control, shape
from tilec.language.tile import Tile
from tilec.terms.dtypes import f32, i32, i64
from tilec.terms.numbers import Number

__all__ = ["philox", "rand", "randn"]

_TO_HALF_OPEN = 2.0**-24
"""24 bits as a number below 1: what an f32 holds exactly."""
_TWO_PI = 6.283185307179586
"""2 pi, the nearest f64."""


def philox(seed: Number, counter: Number, rounds: int = 10) -> tuple[Tile, Tile, Tile, Tile]:
    """Four tiles of i32 of random bits, for each element of `counter`.

    `seed`: a scalar, `counter`: a tile, both integers of which 64 bits count. Ten rounds pass the
    usual tests of randomness with room to spare, seven pass them.
    """
    key, count = shape.cast(seed, i64), shape.cast(counter, i64)
    low_key, high_key = shape.cast(key, i32), shape.cast(key >> 32, i32)
    a, b = shape.cast(count, i32), shape.cast(count >> 32, i32)
    c, d = a & 0, a & 0
    for _ in control.static_range(rounds):
        # The whole product of unsigned numbers of 32 bits.
        first = (shape.cast(a, i64) & 0xFFFFFFFF) * 0xD2511F53
        second = (shape.cast(c, i64) & 0xFFFFFFFF) * 0xCD9E8D57
        a = shape.cast(second >> 32, i32) ^ b ^ low_key
        b = shape.cast(second, i32)
        c = shape.cast(first >> 32, i32) ^ d ^ high_key
        d = shape.cast(first, i32)
        low_key += 0x9E3779B9 - 2**32
        high_key += 0xBB67AE85 - 2**32
    return a, b, c, d


def _uniform(bits: Tile) -> Tile:
    return shape.cast((bits >> 8) & 0xFFFFFF, f32) * _TO_HALF_OPEN


def rand(seed: Number, counter: Number) -> Tile:
    """Random numbers of f32 in [0, 1), one per element of `counter`, multiples of 2^-24.

    Dropout: `tl.where(tl.rand(seed, i) < p, 0.0, x / (1 - p))`, `i` an element's number in its
    array. Four times as many numbers: `tl.philox`.
    """
    return _uniform(philox(seed, counter)[0])


def randn(seed: Number, counter: Number) -> Tile:
    """Normally distributed numbers of f32, mean 0 and variance 1, by Box and Muller's formula."""
    bits = philox(seed, counter)
    radius = arithmetic.sqrt(-2.0 * arithmetic.log(1.0 - _uniform(bits[0])))
    return radius * arithmetic.cos(_TWO_PI * _uniform(bits[1]))
