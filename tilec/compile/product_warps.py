"""The rule for the warps of a program that multiplies: its sums fit into registers, its rows stay
whole."""

from __future__ import annotations

from tilec.compile.program_facts import Products, Reductions
from tilec.hardware.mma_shapes import MMA_M, WGMMA_M
from tilec.hardware.powers import power_above, power_below
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.hardware.target import Feature, Target
from tilec.terms.tile_sizes import SMALL_SUMS

ACCUMULATORS_PER_THREAD = 128
"""Of the largest accumulator on tensor cores: half of a thread's registers, since a larger part of
a warp reuses fragments more."""
SUMS_OF_FOUR = 64
"""The same of several products, by four warpgroups with 64 rows each: beside one that loads a
thread of theirs has 112 registers. Attention with heads of 64 elements, 1024 long, takes 277 us in
256 x 64 tiles so, 301 in 192 x 128 by three, whose last program has a third of its rows; 4096 long
1021 and 1012 (bf16, full, H200)."""
FMA_ACCUMULATORS_PER_THREAD = 64
"""Of the largest accumulator of dots by fma: each thread's operands take registers, too."""
FEWEST_WARPS, USUAL_WARPS, MOST_WARPS = 2, 4, 8
"""Of a CTA that multiplies: where it has few rows, a warpgroup, and two of them, which is most but
where rows are three warpgroups'. Two also where a recurrence multiplies what it carries, of 64 rows
too: its products wait for each other, and for what is computed between them. Gated retention of 2 x
8 x 1024, 64 and 128 elements, in chunks of 64 takes 27.8 us in two, 32.8 in one by 32 columns, 25.7
and 28.4 by 16, 30.3 and 38.0 by 64; of 5 x 192 5.9 for 6.8, of 64 x 2048 of 128 72.2 for 75.8 and,
by 32 columns, 128.0 for 129.2 (H200). Loops of two products were not timed."""


def product_warps(products: Products, reductions: Reductions, target: Target) -> tuple[int, str]:
    """Decides on the warps of a program with products, and says why."""
    on_warpgroups = target.supports(Feature.WGMMA) and not products.uses_fma
    several = on_warpgroups and products.count > 1 and not products.is_ragged
    if several and products.rows == 3 * WGMMA_M:
        # What lies between two products wants whole rows.
        return 3 * WARPGROUP_WARPS, f"{products.rows} rows"
    if several and products.rows == 4 * WGMMA_M:
        warps = 4 * WARPGROUP_WARPS
        if products.accumulators <= SUMS_OF_FOUR * warps * target.warp_size:
            return warps, f"{products.rows} rows, few sums"
    wanted = min(MOST_WARPS, _that_hold(products, target.warp_size))
    warps = max(wanted, _least(products, reductions, target, on_warpgroups))
    return warps, f"{products.accumulators} accumulators"


def _that_hold(products: Products, lanes: int) -> int:
    """Warps whose registers hold the sums: what several products of one loop hold at once must fit;
    one may be spread less evenly."""
    each = FMA_ACCUMULATORS_PER_THREAD if products.uses_fma else ACCUMULATORS_PER_THREAD
    if products.count > 1:
        return power_above(-(-products.accumulators // (each * lanes)))
    return power_below(products.accumulators // (each * lanes))


def _least(products: Products, reductions: Reductions, target: Target, on_warpgroups: bool) -> int:
    """The fewest that work side by side, though fewer have room for the sums."""
    is_small = products.count > 1 or products.accumulators <= SMALL_SUMS
    if is_small and products.rows <= MMA_M:
        # Of 16 rows a warp has all, and hands them to who multiplies what it made of them; but not
        # where a loop beside them reduces no more than one sum has: two would meet in each
        # iteration.
        meets = 0 < reductions.between <= products.accumulators // products.count
        return 1 if meets else FEWEST_WARPS
    # One warpgroup multiplies while another does what stands between two products, or issues. So do
    # two sets of warps beside one that loads, of a CTA that fills a multiprocessor. Where all rows
    # meet in each iteration neither set gets ahead: other CTAs work meanwhile.
    beside_loads = target.copies_fragments and not products.uses_fma
    two_sets = (on_warpgroups or beside_loads) and products.rows >= 2 * WGMMA_M
    two_sets = two_sets and not products.rows_meet
    least = MOST_WARPS if two_sets or (on_warpgroups and _recurs(products)) else USUAL_WARPS
    if products.uses_fma or products.shares_rows:
        return least
    # More warps than rows of theirs would compute them again, and all that follows a product.
    return min(least, max(FEWEST_WARPS, products.row_groups))


def _recurs(products: Products) -> bool:
    """Whether three products or more of whole warpgroups' rows are a recurrence's."""
    return products.recurs and products.count > 2 and products.least_rows >= WGMMA_M
