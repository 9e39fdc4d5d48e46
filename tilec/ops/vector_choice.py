"""Tiles of a matrix times a vector that no copy engine brings (`vector_kernel.py`)."""

from __future__ import annotations

import tilec.language as tl
from tilec.costs.machine import Machine
from tilec.costs.work import Unit, Way
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import WARP_SIZE
from tilec.ops.product_facts import Product

ELEMENTS, THREADS = 1024, 128
"""Of a tile: eight for each thread of four warps."""
ACROSS, FEW_ACROSS = (32, 32), (8, 256)
"""Tiles whose rows lie across k: lanes along rows, as they lie, or, where programs are few, by
eight warps, more of k at once, which wait less often (bf16 1 x 3001 x 777 takes 4.7 us for 9.3, 1 x
515 x 333 1.4 for 2.3, but 1 x 9001 x 2049 24.6 for 23.7). Of 32 by 64 that takes 21.3, f16 11834 x
1 x 960 10.9 for 8.5 (H200)."""
MOST_FEW = 4
"""Programs of these, a multiprocessor."""
ROWS = 4
"""Of a tile whose rows lie along k: a warp each, where a program a row would take several rounds. A
row that all warps share is there sooner: tf32 300 x 1 x 1001 takes 2.1 us, bf16 1 x 567 x 2165 in
four rows 6.6 (H200)."""
MOST_STEPS = 32
"""Of k, where programs are fewer than multiprocessors: four are loaded at once, so that these take
eight waits for memory. Beyond, tensor cores sum k in parts."""


def vector_tile(product: Product, machine: Machine) -> tuple[int, int] | None:
    """Rows of a tile and its part of k for a product of one column; None for other products, and
    where the copy engine brings the operands, or single programs had a long k."""
    turned = product.transposed()
    by_engine = (one.way(Unit.WARPGROUPS) is Way.ENGINE for one in (product, turned))
    if product.n != 1 or any(by_engine):
        return None
    rows, depth = _tile(product, machine)
    depth = min(depth, max(WARP_SIZE, power_above(product.k)))
    programs = tl.cdiv(product.m, rows) * product.batch
    is_short = tl.cdiv(product.k, depth) <= MOST_STEPS
    return (rows, depth) if is_short or programs >= machine.multiprocessors else None


def _tile(product: Product, machine: Machine) -> tuple[int, int]:
    """Rows, and elements of k."""
    if product.a.contiguous == 0:
        few = tl.cdiv(product.m, FEW_ACROSS[0]) * product.batch
        return FEW_ACROSS if few <= MOST_FEW * machine.multiprocessors else ACROSS
    at_once = machine.multiprocessors * (machine.target.threads_per_sm // THREADS)
    rows = ROWS if product.m * product.batch > at_once else 1
    return rows, ELEMENTS // rows


def vector_us(product: Product, tile: tuple[int, int], machine: Machine) -> float:
    """Microseconds by prediction: of DRAM, or of what each program waits for."""
    rates = machine.rates
    rows, depth = tile
    moved = product.batch * (product.m + 1) * product.k * product.width
    rate = machine.memory_gb_per_s * 1e3 * rates.dram_efficiency * rates.dram_threads
    programs = tl.cdiv(product.m, rows) * product.batch
    waits = tl.cdiv(tl.cdiv(product.k, depth), 4) * tl.cdiv(programs, 8 * machine.multiprocessors)
    return rates.launch + max(moved / rate, waits * rates.memory_latency / machine.clock_mhz)
