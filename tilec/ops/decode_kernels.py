"""Attention of one new query a sequence, as a server decodes: few rows, many keys.

The heads that share keys are the rows of one tile, so that tensor cores serve a single query, too.
Several programs share the keys of a sequence; a second kernel weighs their parts by what
each summed up.
"""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

import tilec
import tilec.language as tl
from tilec.ops.attention_kernel import LEAST, LOG2_E, NOTHING, begin, finish, walk

LEAST_ROWS = 16
"""Of a product's tile: rows of a matrix instruction (PTX ISA 9.0, "mma")."""


@tilec.kernel(grid=lambda q, count: (count, q.shape[1], q.shape[0]))
def attend_parts(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    parts: tl.array,
    sums: tl.array,
    count: tl.i32,
    scale: tl.f32,
    SHARED: tl.const,
    D: tl.const,
    DV: tl.const,
    window=None,  # what is None here is an i32
    cap=None,  # an f32
    lengths=None,  # an array
    table=None,  # an array
    PAGE: tl.const = None,
    BN: tl.const = tl.auto,
):
    """parts, sums: of each of `count` parts of the keys the mean value, and log2 of the weights it
    is a mean over, f32.

    q (batch, heads of keys, SHARED, elements), k, v as in `attention`. parts (parts, batch, heads
    of keys, SHARED, elements), sums the same without elements.
    """
    part, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows: tl.const = tl.cdiv(SHARED, LEAST_ROWS) * LEAST_ROWS
    keys = k.shape[2]
    if lengths is not None:
        keys = tl.assume(tl.load(lengths, batch, ()), min=0)
    last = keys - 1
    state = walk(
        begin(rows, DV, v, None),
        tl.load(q, (batch, head, 0, 0), (rows, D)),
        (q, k, v),
        ((batch, head, 0), (batch, head, 0, table, PAGE)),
        (last + tl.zeros((rows, 1), tl.i32), last, 1, keys, lengths is not None),
        (scale, cap, False, window),
        (None, None),
        (BN, D, DV),
        (None, None),
        (part, count),
    )
    mean, log = finish(state, v, None)
    tl.store(sums, (part, batch, head, 0), log)
    tl.store(parts, (part, batch, head, 0, 0), mean)


@tilec.kernel(grid=lambda o: (o.shape[1], o.shape[0]))
def join_parts(
    parts: tl.array,
    sums: tl.array,
    o: tl.array,
    SHARED: tl.const,
    DV: tl.const,
    PARTS: tl.const,
    logs=None,  # an array, or None
    sinks=None,  # an array, or None
):
    """o (batch, heads, 1, elements), logs (batch, heads, 1): the parts, each as heavy as its
    weights; PARTS: at least as many."""
    head, batch = tl.program_id(0), tl.program_id(1)
    at = (0, batch, head // SHARED, head % SHARED)
    log = tl.load(sums, at, PARTS, dims=(0,), padding=-tl.inf)
    highest = tl.maximum(tl.max(log), NOTHING)
    if sinks is not None:
        sink = tl.load(sinks, head, ()).to(tl.f32) * LOG2_E
        highest = tl.maximum(highest, sink)
    weight = tl.exp2(log - highest)
    total = tl.sum(weight)
    if sinks is not None:
        total += tl.exp2(sink - highest)
    part = tl.load(parts, (*at, 0), (PARTS, DV), dims=(0, 4))
    mean = tl.sum(part * weight[:, None], 0) / tl.maximum(total, LEAST)
    tl.store(o, (batch, head, 0, 0), mean.to(o.dtype))
    if logs is not None:
        tl.store(logs, (batch, head, 0), highest + tl.log2(total, approx=True))
