"""Pairs of programs that multiply together (`pair-products`)."""

from __future__ import annotations

from tilec.costs.dot_work import unit_of
from tilec.costs.work import Unit, Way
from tilec.hardware.mma_shapes import PAIR, PAIR_MS, tensor_ns
from tilec.hardware.sizes import SWIZZLE_BITS
from tilec.hardware.target import Target
from tilec.ops.product_facts import Product


def may_pair(product: Product, tile: tuple[int, int, int], target: Target) -> bool:
    """Whether two programs, one below the other, can multiply together (`pair-products`)."""
    rows, columns, _ = tile
    unit = unit_of(rows, columns, product.kind, target)
    fits = rows == PAIR_MS[0] // PAIR and columns in tensor_ns(PAIR_MS[0], product.kind, PAIR)
    # Half of the columns are whole rows of a swizzle, whichever way they lie.
    whole = columns // PAIR * product.width % min(SWIZZLE_BITS) == 0 or product.b.contiguous == 0
    engine = unit is Unit.TENSOR_MEMORY and product.way(unit) is Way.ENGINE
    return engine and fits and whole and product.m > rows and not product.keeps_sums
