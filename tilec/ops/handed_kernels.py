"""The gradients of attention by five products a block instead of seven, for `attention_gradients`.

The kernel that holds keys hands the gradients of scores on through memory, in the dtype in which
they are multiplied; what is left of those of queries is a product of these and the keys. Of as many
heads at a time as the array for them holds. No atomics: the same bits every time.
"""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.ops.gradient_kernels import taken_off, walk_queries
from tilec.ops.gradient_plan import BLOCK, DEALT, MOST_HEADS


def head_behind(first: Any, number: Any, heads: Any, shared: Any) -> Any:
    """(batch, head) of the array `heads`: `number` heads behind `first` times `shared` of them,
    counted over all batches."""
    head = tl.assume(first, min=0, max=MOST_HEADS) * shared + number
    many = heads.shape[1]
    return tl.assume(head // many, min=0), tl.assume(head % many, min=0)


@tilec.kernel(grid=lambda o, BM: (tl.cdiv(o.shape[2], BM), o.shape[1], o.shape[0]))
def deltas(
    o: tl.array,
    do: tl.array,
    delta: tl.array,
    DV: tl.const,
    BM: tl.const = tl.auto,
):
    """`delta` (batch, heads, queries), f32: what the softmax takes off the scores of each query."""
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    tl.store(delta, (batch, head, m), taken_off(o, do, (batch, head, m), BM, DV))


@tilec.kernel(grid=lambda k, BN, count: (tl.cdiv(k.shape[2], BN), count))
def handing_key_gradients(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    do: tl.array,
    logs: tl.array,
    delta: tl.array,
    dscores: tl.array,
    dk: tl.array,
    dv: tl.array,
    first: tl.i32,
    count: tl.i32,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const = None,
    cap=None,  # an f32, or None
    dropout=None,  # an f32, or None
    seed=None,  # an integer, or None
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """`key_gradients` of `count` heads of keys from the `first` of all batches on. `dscores` (heads
    of their queries, keys, queries up to a multiple of `DEALT`): the gradients of scores, but for
    the scale, as `dealt` orders them; of blocks that no query sees nothing is written, but all of
    those of `BLOCK` on a side of which some does."""
    number, n = tl.program_id(1), tl.program_id(0) * BN
    batch, head = head_behind(first, number, k, 1)
    dkey, dvalue = walk_queries(
        (q, k, v, do, logs, delta),
        (batch, head, 0, 0),
        (q.shape[2], False, n),
        (scale, cap, CAUSAL, None),
        (dropout, seed),
        (BM, BN, D, D if DV is None else DV, SHARED),
        (dscores, number),
    )
    tl.store(dk, (batch, head, n, 0), dkey.to(dk.dtype))
    tl.store(dv, (batch, head, n, 0), dvalue.to(dv.dtype))


@tilec.kernel(grid=lambda q, BM, count, SHARED: (tl.cdiv(q.shape[2], BM), count * SHARED))
def handed_query_gradients(
    q: tl.array,
    k: tl.array,
    dscores: tl.array,
    dq: tl.array,
    first: tl.i32,
    count: tl.i32,
    scale: tl.f32,
    D: tl.const,
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """dq of the heads that `handing_key_gradients` was given, from what it wrote."""
    number, m = tl.program_id(1), tl.program_id(0) * BM
    batch, head = head_behind(first, number, q, SHARED)
    end = k.shape[2]
    if CAUSAL:  # so far, in whole blocks, all is written
        tl.static_assert(BLOCK % BM == 0 and BM % BN == 0)
        end = tl.minimum(end, m + BM)
    dquery = tl.zeros((BM, D), tl.f32)
    for n in tl.range(0, end, BN):
        dscore = tl.load(dscores, (number, n, m), (BN, BM))
        key = tl.load(k, (batch, head // SHARED, n, 0), (BN, D))
        dquery = tl.dot(dscore.T, key, dquery)
    tl.static_assert(BM % DEALT == 0)
    if BM % DEALT == 0:  # what `dealt` did is undone
        rows = tl.reshape(dquery, (BM // DEALT, 4, 4, 2, D))
        dquery = tl.reshape(tl.permute(rows, (0, 2, 1, 3, 4)), (BM, D))
    tl.store(dq, (batch, head, m, 0), (dquery * scale).to(dq.dtype))
