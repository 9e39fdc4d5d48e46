"""What predictions count with beside a target's own facts: one record of numbers a target."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.costs.rates.streams import StreamRates
from tilec.records import dataclass


@dataclass(frozen=True, kw_only=True, eq=False)  # so that what has rates has a hash
class Rates:
    """Clocks are those of a multiprocessor at the clock that its device states.

    `record`: the timings that these were fitted to, relative to `test/bench/results`; empty where
    they are only stated.

    Multiplying, of one multiprocessor. `tensor_efficiency`: the part of tensor cores' rate that a
    busy program reaches. `warp_mma_speed`: the part that single warps reach where the target has
    instructions for more. `shared_bytes`: through shared memory, a clock.

    L2, of one multiprocessor, in bytes a clock. What threads get where few ask: `l2_bytes`, what
    the copy engine does: `engine_bytes`; but `thin_row`: clocks for each row of 16 bytes of its.
    What L2 reads for it where all ask: `l2_bytes_for_all`; where a part of them does, as much more
    as that part is smaller, to the power `fewer`. Lines that several ask for at about the same time
    it reads once for each of the `merging` groups of multiprocessors they are in (infinite where
    they do not merge). `shifted`: how many times as much of L2's time a line of 128
    bytes costs that begins at multiples of so many bytes; less aligned ones cost as the least
    aligned of these. `zeroed_bytes`: what the copy engine fills of boxes' parts that lie outside of
    an array.

    Waiting, in clocks. `memory_latency`: from a request to its line; `loaded_latency`: the same
    where copy engines of all multiprocessors keep asking, in proportion where fewer do. `start`: a
    program, `shared_start` where it is the next one of a warp. `step`: an iteration that waits for
    a slot of a ring and gives it back, beside what it computes; two teams take half of that each,
    under the other's products. `cluster_step`: how much more where slots are given back to another
    CTA, `lone_step` where a warpgroup multiplies by itself, which takes `lone_least` at least: from
    one group's end to where the next one runs.

    Elements one by one, in clocks for each: `narrow_load` through registers, `narrow_copy` by
    cp.async; `vector_copy`: for each 16 bytes that threads copy beside these. `narrow_store`, and
    `narrow_row` for each row, whose ends are parts of lines; `scattered_store`: where neighbours
    in a warp store to other sectors.

    Results, in bytes a clock behind the last product: `stored_bytes` by the engine, or as threads
    hold them; `rearranged_bytes`: by way of shared memory.

    DRAM. `dram_efficiency`: the part of its rate that reading arrays once reaches; `dram_threads`:
    what is left of that where threads ask instead of the engine. `short_pieces`: how much longer it
    takes in pieces of 128 bytes; half so in twice those. `dram_share`: what one multiprocessor can
    draw, as parts of all. `written`: what a byte of results costs of it; `torn`: the
    same where rows begin within sectors.
    `uneven`: how much longer reading takes for each multiprocessor in two that has no CTA, where
    more than half of them have, and half so in the last of several rounds: presumably because they
    share their way to memory in pairs; 1/n of that for clusters of n CTAs, which fill both of one;
    clusters of `even_cluster` CTAs are dealt evenly, where no more than one multiprocessor of
    `evenly_idle` has none. `unhidden`: the part of the shorter of
    computing and reading that the longer does not hide.

    Launches, in microseconds. `launch`: from the start of a grid to its first instructions, and
    from the last ones to its end. `hidden_launch`: how much of it hides under the launch before,
    where the engine fills rings; `hidden_beside`: how much more where that one leaves half of the
    multiprocessors free (`passes/overlap_launches.py`). `cluster`: that CTAs of a cluster meet at
    the beginning. `split`: what the second kernel of a product in parts takes beside reading them.
    `meeting`: that the last round of a product is in parts: one more program, partial sums on their
    way to L2, a flag, its reader; `summed_bytes`: of partial sums that one multiprocessor waits
    for, reads and adds up in a microsecond. `meet_in_memory`: that CTAs, or clusters, which sum
    parts of a program's loop leave them there, and the last of them finds them. `gather`: that the
    CTAs of a cluster which sum parts of a program's loop meet, before and behind what they send,
    `gather_wide`: more of clusters that not every GPU has room for; `gathered_bytes`: of sums that
    each of them gets and adds up in a microsecond, `gathered_across` where rows of the result run
    across the pairs of sums that a thread has, so that lanes exchange them first, `gathered_words`
    where it gets few of such word by word. `lone_issue`: clocks for each instruction in which a
    thread computes operands of products, of a program by itself: mostly one warp a scheduler, which
    waits for its own results. `prepared_overlap`: how much of that lies under products, 1 for
    nothing (the power of a norm).

    Copies of operands in front of a product, with rows at multiples of 128 bytes: they pay from
    `copied_product` M N K on, where `copied_uses` rows or columns of the other operand, or more,
    read the copy.

    Rows. `exchange`: clocks of a reduction whose result all threads wait for; `crossed`: so many of
    them takes a reduction, or scan, across warps in a loop of products, its own and those of its
    result, which each warp needs elsewhere. `kept`: the part of L2 that holds what programs read a
    second time; `kept_elements`: of the rows of a launch, a multiprocessor, that programs keep.

    `contention`: what the less busy units add to the time of the busiest. `lockstep_rounds`: after
    so many rounds of programs the last one counts half. `clustered`: by the size of clusters, the
    part of multiprocessors that they can be on.

    Computing beside products. `functions`: special ones (2^x, 1/x) a multiprocessor computes in a
    clock. `between_products`: clocks from the last product to the first instruction that reads its
    sums, and from the last of those to the next product, where the last product runs under the next
    iteration's work; `waited_products`: the same where all end in their iteration, and other groups
    of warps work meanwhile, `waited_alone` where there is one group. `overlap`: how much each
    further group of four warps brings products and computing to lie under each other, 0 for not at
    all.
    `handed_on`: clocks for each element that warps compute for others, which multiply it, too.
    `straggling`: rounds of programs after which it no longer matters that these differ in length
    (of at most two a multiprocessor the lengths themselves say it).

    `gain`: how many times as fast as the usual tile another must be predicted to be taken for it;
    `between_gain`: as tiles of powers of two, others with columns between them; `parts_gain`: as
    whole loops of products, parts that CTAs sum;
    `shared_gain`: as one CTA a program, programs in clusters that load together what they share.

    `streams`: of programs without products whose loops load (`StreamRates`).

    Registers of compiled code. `other_registers`: a thread's, beside accumulators and loaded
    elements; `loaded_registers`: for each element that waits. `spilled`: time for each
    whole register file of a thread that is needed beyond its own.
    """

    streams: StreamRates
    record: str
    tensor_efficiency: float
    warp_mma_speed: float
    shared_bytes: float
    l2_bytes: float
    l2_bytes_for_all: float
    fewer: float
    engine_bytes: float
    thin_row: float
    merging: float
    shifted: Mapping[int, float]
    zeroed_bytes: float
    memory_latency: float
    loaded_latency: float
    start: float
    shared_start: float
    step: float
    cluster_step: float
    lone_step: float
    lone_least: float
    narrow_load: float
    narrow_copy: float
    vector_copy: float
    narrow_store: float
    narrow_row: float
    scattered_store: float
    stored_bytes: float
    rearranged_bytes: float
    dram_efficiency: float
    dram_threads: float
    short_pieces: float
    dram_share: float
    written: float
    torn: float
    uneven: float
    even_cluster: int
    evenly_idle: int
    unhidden: float
    launch: float
    hidden_launch: float
    hidden_beside: float
    cluster: float
    split: float
    meeting: float
    summed_bytes: float
    meet_in_memory: float
    gather: float
    gather_wide: float
    gathered_bytes: float
    gathered_across: float
    gathered_words: float
    lone_issue: float
    prepared_overlap: float
    copied_product: int
    copied_uses: int
    exchange: float
    crossed: float
    kept: float
    kept_elements: int
    contention: float
    lockstep_rounds: float
    clustered: Mapping[int, float]
    functions: float
    between_products: float
    waited_products: float
    waited_alone: float
    overlap: float
    handed_on: float
    straggling: float
    gain: float
    between_gain: float
    parts_gain: float
    shared_gain: float
    other_registers: int
    loaded_registers: float
    spilled: float
