"""Rates of `sm_90a`, fitted to timings on an H200.

Those are 3,000: of 330 products in 2 to 11 tiles each, and of single tiles on purpose: rows shifted
by 16 to 64 bytes, elements one by one, k of 1 to 64 steps, k in parts. The products were drawn by
the seeds 101, 202 and 303. Predictions are off by 16 to 18 % (standard deviation of the logarithm),
on products that they were not fitted to by 16 (H100, seed 404) to 19 (H200, seed 505).

What shifted lines cost was read off directly: 64 x 64 tiles of 2048 cubed, which L2 bounds, take
40.2 us with rows at multiples of 128 bytes, 49.4 of 64, 54.2 of 32 and 78.8 of 16.
`l2_bytes_for_all`, `merging` and `fewer` fit these and 150 timings of groups of rows and products
(`group-tiles-h200-*.json`), which share much and little of what they read: 64 x 64 tiles of 47
groups of 0 to 168 rows, 216 x 7192, took 119 us, 122 by prediction, 109 if L2 read as much for them
as for tiles of a large product. `engine_bytes`: 1 to 20 CTAs got 96 to 102. `thin_row`: 8 columns
across k took 960 clocks for 64 rows, 1440 to 1770 for 128. `dram_efficiency`, `even_cluster` and
`clustered` are from earlier records (`decode-h200-*.json`, `tile-choices-h200-*.json`), that of
eight from fp8 352 x 1120 x 11856 and bf16 544 x 544 x 323397 by 15 clusters, which took 1.4 times
as long as they should, a second round; copies pay about where a product takes 20 us without them (a
copy of 4097 x 4097 elements of 2 bytes takes 23).
`evenly_idle`: bf16 45 x 5056 x 15232 by 80 CTAs in clusters of four takes 49.8 us (43.6 if those
were dealt evenly, 49.0 if not), e4m3 32 x 9888 x 12544 by 80, 92 and 104 40.5, 36.4 and 33.9 (34.1,
34.0, 33.7 and 38.4, 37.3, 36.1), f16 64 x 4673 x 4352 by 76 15.4 (12.6 by other tiles), but by 96
bf16 3008 x 277 x 3456 18.6 and e4m3 11840 x 48 x 1440 7.2 (22.2 and 7.4 by others).
`between_products`, `overlap`, `handed_on` and `straggling` were fitted to 356 timings of 24
launches of attention and recurrences (`auto-tiles-h200-*.json`), `functions` is the rate that the
CUDA C++ Programming Guide states. `waited_products` fits the recurrences among these, and 80
timings of gradients of attention (`gradients-h200-2026-11-28.json`): query_gradients of 4096, 64
elements, take 3198 clocks an iteration of 128 x 128, of which multiplying takes 1745 and computing
1024, and 3113 of 192 x 96 (1964 and 1152), so that two groups of warps hide nothing but waits.
`waited_alone`: retention of 64 elements takes 1257 clocks a chunk of 64 x 32 and 1576 of 64 x 64
(544 and 810 of work), and 3168 of 128 x 32 (1596) by two groups. `clustered` of 16: an H200 holds
seven such clusters (cuOccupancyMaxActiveClusters). `gather_wide`: tiles of 64 x 64, 64 x 192
and 128 x 128, 1 to 14 of them, took 0.3 to 0.7 us more in 16 parts of two steps than in 8.
`meet_in_memory`: 2^20 products of f32 in 128 parts take 4.9 us (2026-11-29), of which DRAM takes
1.9, and the launch 1.8.
With `shared_gain` clusters of two were chosen for 18 of the 173 products that were timed in such
and without, none of them slower for it; with 1.05 for 28, of which six were, by up to 15 %.
With `between_gain`, of 176 products that were timed in three plain tiles or more the one taken is
5.5 % from the fastest in the mean, with powers of two alone 6.2 %, with 1.0 5.7 %.
`cluster` fits 60 pairs of a tile by itself and in clusters (`drawn-tiles-h200-2026-11-28.json`).
With `parts_gain` groups of 708 rows, 1264 x 240, stay whole (6.2 us, in 2 parts 8.6). e4m3
496 x 304 x 10368, transposed, takes 12.0 us in 8 parts of 64 x 176 and 10.8 in 4 of 64 x 96,
straight in 4 of 64 x 112 8.9: that gives `gathered_words`. `lone_issue` and `prepared_overlap` fit
an lhs of i8 (1305 x 7072 x 1024) and relu(a) (1008 x 5344 x 2112), each in 20 tiles, 2026-11-28:
off by 12 and 13 %, by 19 and 15 before, when 128 x 128 tiles seemed as fast as those twice as wide;
and 4-bit weights by two warps, 16 x 32 tiles of 4, 6, 7 and 37 steps (3.3, 4.0, 4.3 and 16.1 us).
`rearranged_bytes` was fitted again with 287 timings of 24 products that cuBLAS had been faster on
(`slow-products-h200-2026-11-28.json`), of which the tile taken then was 7.4 % from the fastest in
the mean, and is 6.7 % now.
`launch` to `hidden_beside`, `written`, `torn`, `start`, latencies and what stores take were fitted
again, to that record less what is stored otherwise now, and to 1,700 timings of 124 products: of k
of 1 to 256 bytes, of fp8 whose rows begin inside of lines, of a long k with few rows or columns
(seed 281128777, 2026-11-28). A launch is let in early by one whose CTAs fill a multiprocessor: fp8
and bf16 in tiles of two CTAs took 0.5 to 1 us more. Writing alone reaches 3.31 TB/s (`torch.fill_`
of 512 MB), 3.6 in 64 x 256 tiles of fp8 6208 x 16000 x 64, of 4.81.
`gathered_bytes` and `gathered_across` fit 480 timings of parts, `lone_step`, `lone_least`, `uneven`
and `cluster` 1,900 of products of 384 bytes of k and more, of 2026-11-28 and 29: of 165 of them in
three tiles or more the one taken is 4.0 % from the fastest in the mean, 5.7 before, the 95th
percentile 19 % for 22; deviation of the logarithm 0.122 and 0.146. e4m3 5360 x 16 x 14928 by 84
CTAs takes 28.6 us, 6128 x 32 x 11216 by 96 25.1, 24 x 7136 x 9904 by 112 23.2 (25.8, 22.8 and 21.8
with `uneven` of 0.2), by clusters of two 22.5 (22.1). bf16 160 x 6464 x 5128 in 64 x 160 by a
warpgroup 23.0, e4m3 1040 x 560 x 3104 in 64 x 80 8.2: that is `lone_least` rather than a step more.
That a ring of two slots loads nothing ahead came with them: e4m3 3712 x 368 x 5968 in two parts of
128 x 208, transposed, takes 37.5 us (23.8 by prediction before), bf16 2248 x 872 x 13376 in two
parts of 256 x 128 175 (88).
`exchange` and `kept` fit 108 timings of cross-entropy, softmax and RMS norm, 2 to 2048 rows of 6528
to 250112 elements in tiles of 2048 to 16384 (`row-tiles-h200-*.json`): the tile that is first
by prediction takes 1.02 times as long as the fastest one, in the geometric mean, and 1.26 times at
most. `crossed`: recurrences of 360 to 2672 steps with 128 at a time take 1.28 to 1.87 times as long
as with 64, whose numbers every warp has all of. `kept_elements`: programs that keep their rows all
run at once up to there, and what a launch takes is how long one of them waits. Of more of them
fewer run side by side than of those that read twice, and compute as much: cross-entropy of 3 rows
of 229944 takes 10.3 us for 34.1, of 142 of 5888 3.8 for 4.8, but of 338 of 11176 13.2 for 9.0, of
900 of 40000 83 for 55, of 64937 of 423 66 for 50.
"""

from __future__ import annotations

from tilec.costs.rates.fields import Rates
from tilec.costs.rates.streams import STREAMS

RATES = Rates(
    streams=STREAMS,
    record="drawn-products-2026-11-23.json",
    tensor_efficiency=0.88,
    warp_mma_speed=0.48,
    shared_bytes=128,
    l2_bytes=64,
    l2_bytes_for_all=48,
    fewer=0.7,
    engine_bytes=105,
    thin_row=12,
    merging=16,
    shifted={64: 1.26, 32: 1.36, 16: 1.96},
    zeroed_bytes=33,
    memory_latency=870,
    loaded_latency=1410,
    start=270,
    shared_start=60,
    step=55,
    cluster_step=20,
    lone_step=30,
    lone_least=350,
    narrow_load=0.138,
    narrow_copy=0.22,
    vector_copy=0.72,
    narrow_store=0.08,
    narrow_row=8,
    scattered_store=0.85,
    stored_bytes=55,
    rearranged_bytes=35,
    dram_efficiency=0.947,
    dram_threads=0.85,
    short_pieces=0.05,
    dram_share=4,
    written=1.3,
    torn=1.75,
    uneven=0.42,
    even_cluster=4,
    evenly_idle=3,
    unhidden=0.24,
    launch=1.75,
    hidden_launch=0.5,
    hidden_beside=0.4,
    cluster=0.35,
    split=2.6,
    meeting=5.0,
    summed_bytes=45_000,
    meet_in_memory=1.2,
    gather=0.6,
    gather_wide=0.45,
    gathered_bytes=14_000,
    gathered_across=9_000,
    gathered_words=6_600,
    lone_issue=2.0,
    prepared_overlap=1.5,
    copied_product=2**31,
    copied_uses=512,
    exchange=300,
    crossed=4,
    kept=0.8,
    kept_elements=8192,
    contention=0.035,
    lockstep_rounds=15,
    clustered={4: 0.91, 8: 0.85, 16: 0.85},
    functions=16,
    between_products=171,
    waited_products=1000,
    waited_alone=370,
    overlap=0.34,
    handed_on=0.2,
    straggling=1.9,
    gain=1.02,
    between_gain=1.05,
    parts_gain=1.05,
    shared_gain=1.08,
    other_registers=32,
    loaded_registers=1.0,
    spilled=5,
)
