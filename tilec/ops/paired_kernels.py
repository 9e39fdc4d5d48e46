"""The gradients of attention by one kernel, for `attention_gradients` where programs are few.

A program holds a block of keys and walks over the queries that see them, or holds one of queries
and walks over the keys that they see. Apart, they run side by side instead of one kernel behind the
other. Together, a program does both for blocks of the same number: under a causal mask the first
walk is long where the second is short, and all programs take as long. No atomics: the same bits
every time.
"""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.ops.gradient_kernels import walk_keys, walk_queries
from tilec.ops.gradient_plan import HELD

FEW_SLOTS = 2
"""Of rings of small blocks: another CTA has room beside such a program, so that the next kernel is
not let in under it. Of one as `deltas` many CTAs would crowd where there is room first (64
elements, 6 heads of 1024: 18.5 us for 19.5 with five slots, 12 heads of 128, full, 6.0 for 6.7;
H200)."""


def blocks(q: Any, k: Any, BN: int, SHARED: int, APART: bool) -> Any:
    """Programs, of each head of keys and each batch."""
    own = tl.cdiv(k.shape[2], BN)
    if APART:
        own = own + SHARED * tl.cdiv(q.shape[2], BN)
    return own, k.shape[1], k.shape[0]


def of_keys(arrays: Any, results: Any, place: Any, how: Any, drop: Any, sizes: Any) -> Any:
    """Stores dk, dv of a block of keys. `place`: batch, head of the keys, the first key; the others
    as of `walk_queries`."""
    batch, head, n = place
    q, dk, dv = arrays[0], *results
    here, span = (batch, head, 0, 0), (q.shape[2], False, n)
    stages = FEW_SLOTS if sizes[1] == HELD else None
    dkey, dvalue = walk_queries(arrays, here, span, how, drop, sizes, stages=stages)
    tl.store(dk, (batch, head, n, 0), dkey.to(dk.dtype))
    tl.store(dv, (batch, head, n, 0), dvalue.to(dv.dtype))


def of_queries(arrays: Any, dq: Any, place: Any, how: Any, drop: Any, sizes: Any) -> Any:
    """Stores dq of a block of queries. `place`: batch, head, the first query; the others as of
    `walk_keys`."""
    batch, head, m = place
    q, k, v, do, logs, delta = arrays
    off = tl.load(delta, (batch, head, m), sizes[0])
    here, span = (batch, head, 0, 0), (m, k.shape[2])
    stages = FEW_SLOTS if sizes[0] == HELD else None
    dquery = walk_keys(off, (q, k, v, do, logs), here, span, how, drop, sizes, stages)
    tl.store(dq, (batch, head, m, 0), dquery.to(dq.dtype))


@tilec.kernel(grid=blocks, persistent=False, num_warps=4)
def paired_gradients(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    do: tl.array,
    logs: tl.array,
    delta: tl.array,
    dq: tl.array,
    dk: tl.array,
    dv: tl.array,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const = None,
    window=None,  # an i32, or None
    cap=None,  # an f32, or None
    dropout=None,  # an f32, or None
    seed=None,  # an integer, or None
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    APART: tl.const = False,
    BM: tl.const = HELD,
    BN: tl.const = HELD,
):
    """dk, dv of BN keys or dq of BN queries, or, not APART, both, where there are as many queries
    as keys; parameters are those of `attention`, what it gave, and the `delta` that `deltas` gave.
    A walk goes BM rows a step."""
    batch, head, number = tl.program_id(2), tl.program_id(1), tl.program_id(0)
    arrays, width = (q, k, v, do, logs, delta), D if DV is None else DV
    how, drop = (scale, cap, CAUSAL, window), (dropout, seed)
    held, walked = (BM, BN, D, width, SHARED), (BN, BM, D, width, SHARED)
    if APART:
        first = tl.cdiv(k.shape[2], BN)
        if number < first:
            of_keys(arrays, (dk, dv), (batch, head, number * BN), how, drop, held)
        else:  # long walks first, as those of keys
            rest = first + SHARED * tl.cdiv(q.shape[2], BN) - 1 - number
            here = (batch, head * SHARED + rest % SHARED, rest // SHARED * BN)
            of_queries(arrays, dq, here, how, drop, walked)
    else:
        of_keys(arrays, (dk, dv), (batch, head, number * BN), how, drop, held)
        for one in tl.range(SHARED):
            here = (batch, head * SHARED + one, number * BN)
            of_queries(arrays, dq, here, how, drop, walked)


wide_gradients = paired_gradients.demanding(num_warps=8)
"""The same of blocks of `WIDE` rows, by two warpgroups."""
