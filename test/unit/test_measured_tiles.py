"""The model's order of tiles beside what was measured: the record that its rates were fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp, inf, log
from pathlib import Path
from statistics import fmean

import pytest

import tilec.language as tl
from tilec.costs.dot_work import Memory
from tilec.costs.rates import sm_90a
from tilec.costs.work import Stored
from tilec.hardware.sizes import SECTOR_BYTES
from tilec.ops.product_facts import Product
from tilec.ops.tile_choice import TileChoice, choose_tiles
from tilec.ops.tile_names import tile_named
from tilec.refit.drawn_products import DrawnProduct
from tilec.refit.drawn_tiles import prediction
from tilec.refit.record import read_record

RECORD = Path(__file__).parents[1] / "bench" / "results" / sm_90a.RATES.record
RUNS = {(run.machine.name, run.seed): run for run in read_record(RECORD)}


def product_of(name: str) -> Product:
    """As the choice of tiles sees it."""
    return DrawnProduct.named(name).facts


def compared(device_name: str, seed: int) -> Iterator[list[tuple[float, float]]]:
    """For each product, without copies of operands: predicted and measured times of its tiles, but
    of those that are stored otherwise now: as threads held it, or in panels of 32 bytes a row."""
    run = RUNS[device_name, seed]
    for name, tiles in run.products.items():
        if "pad" not in name:
            product = product_of(name)
            pairs = [
                (prediction(product, tile, run.machine), us)
                for tile, us in ((tile_named(x), us) for x, us in tiles.items())
                if not is_stored_anew(product, tile)
            ]
            found = [pair for pair in pairs if pair[0] < inf]
            if found:
                yield found


def is_stored_anew(product: Product, tile: TileChoice) -> bool:
    """Whether results of 4 bytes, or sums of parts of k in rows of no whole 16 bytes, may leave
    through shared memory; or those of 2 in rows of an odd number of sectors do."""
    product = product.transposed() if tile.is_transposed else product
    if tile.splits > 1:
        return product.stored(tile.splits) is Stored.ELEMENTS
    is_odd = tile.columns * product.stored_width % (2 * SECTOR_BYTES) == SECTOR_BYTES
    return product.stored_width == 4 or (is_odd and product.stored(1) is Stored.ROWS)


@pytest.mark.parametrize(
    ("device_name", "seed"),
    [
        *(("NVIDIA H200", 202), ("NVIDIA H200", 303)),
        *(("NVIDIA H200", 505), ("NVIDIA H100 80GB HBM3", 404)),  # not fitted to
    ],
)
def test_what_is_first_by_prediction_is_among_the_first_by_the_clock(
    device_name: str, seed: int
) -> None:
    losses, errors = [], []
    for pairs in compared(device_name, seed):
        least = min(us for _, us in pairs)
        losses.append(log(min(pairs)[1] / least))
        errors += [log(expected / us) for expected, us in pairs]
    assert len(losses) > 90
    assert exp(fmean(losses)) < 1.08
    assert sum(loss < log(1.1) for loss in losses) > 0.72 * len(losses)
    assert abs(fmean(errors)) < 0.05
    assert fmean(error**2 for error in errors) ** 0.5 < 0.19


def test_rows_shifted_against_lines_are_shared_by_clusters_in_rounds() -> None:
    """Each half of what L2 is too slow for: 44 to 48 us for 63, cuBLAS 47."""
    product = product_of("bf16 8672x1152x1320 NT")
    found = chosen(product)
    assert found.cluster in ((2, 1), (1, 2))
    assert not found.is_single


def test_sides_between_tiles_are_covered_by_those_of_the_transposed_product() -> None:
    """300 rows by two tiles of 160 columns: 23 us for 30 by three of 128 rows, cuBLAS 21.6."""
    found = chosen(product_of("bf16 300x7000x3000 NT"))
    assert found.is_transposed
    assert -(-300 // found.columns) * found.columns <= 320


def test_long_k_in_few_rounds_is_not_rated_by_its_shifted_rows() -> None:
    """137 us for 189 of 256 x 112 with a tail, cuBLAS 134."""
    found = chosen(product_of("bf16 1280x3904x10208 NT"))
    assert (found.rows, found.columns, found.tail) == (128, 160, 1)


def test_rows_that_begin_anywhere_get_tiles_as_large_as_registers_hold() -> None:
    """With a copy of a, as the call makes it: 26.6 us by tiles of 128 x 112, 43.9 by 64 x 112."""
    product = product_of("bf16 256x13888x670 NT")
    found = chosen(replace(product, a=Memory(1, 128)))
    assert found.rows >= 128
    assert found.rows * found.columns >= 128 * 112


def chosen(product: Product) -> TileChoice:
    """For a plain product of bf16 on an H200."""
    sizes = product.m, product.n, product.k, 1
    machine = RUNS["NVIDIA H200", 505].machine
    memories = product.a, product.b
    found = choose_tiles(*sizes, tl.bf16, "ieee", machine, 16, *memories, 4, True, product.c)
    assert found is not None
    return found
