"""Attention of one new query per sequence over keys and values in pages, as a server decodes.

A table names the pages of each sequence. The heads that share keys are the rows of one tile, so
tensor cores serve a single query, too. SPLITS programs share the pages of a sequence; a second
kernel weighs their parts by what each summed up.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned
from tilec.ops.attention_kernel import LOG2_E, attend


@tilec.kernel(grid=lambda parts: (parts.shape[2], parts.shape[1], parts.shape[0]))
def attend_pages(
    q: tl.array,
    keys: tl.array,
    values: tl.array,
    table: tl.array,
    lengths: tl.array,
    parts: tl.array,
    logs: tl.array,
    scale: tl.f32,
    HEADS: tl.const,
    D: tl.const,
    PAGE: tl.const,
):
    """parts, logs: of each split the mean value, and log2 of the weights it is a mean over.

    q (batch, heads, D); keys, values (pages, PAGE, heads / HEADS, D); table (batch, pages of one);
    parts (batch, heads / HEADS, splits, HEADS, D), logs the same without D, in f32.
    """
    split, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.assume(tl.load(lengths, batch, ()), min=0)
    pages = tl.cdiv(length, PAGE)
    share = tl.cdiv(pages, tl.num_programs(0))
    rows: tl.const = tl.cdiv(HEADS, 16) * 16
    query = tl.load(q, (batch, head * HEADS, 0), (rows, D))
    # Finite, so that a split without pages weighs nothing: 2^(lowest - anything) is 0.
    highest = tl.full((rows,), -1e30, tl.f32)
    state = (highest, tl.zeros((rows,), tl.f32), tl.zeros((rows, D), tl.f32))
    for number in tl.range(split * share, tl.minimum(split * share + share, pages)):
        at = (tl.load(table, (batch, number), ()), 0, head, 0)
        key, value = (tl.load(x, at, (PAGE, D), dims=(1, 3)) for x in (keys, values))
        visible = number * PAGE + tl.arange(PAGE)[None, :] < length
        state = attend(state, query, key, value, scale * LOG2_E, visible)
    highest, total, acc = state
    mean = acc / tl.maximum(total, 1e-30)[:, None]
    tl.store(logs, (batch, head, split, 0), highest + tl.log2(tl.maximum(total, 1e-30)))
    tl.store(parts, (batch, head, split, 0, 0), mean)


@tilec.kernel(grid=lambda o: (o.shape[1], o.shape[0]))
def join_splits(
    parts: tl.array, logs: tl.array, o: tl.array, HEADS: tl.const, D: tl.const, SPLITS: tl.const
):
    """o (batch, heads, D): the splits' parts, each as heavy as its weights."""
    head, batch = tl.program_id(0), tl.program_id(1)
    at = (batch, head // HEADS, 0, head % HEADS)
    log = tl.load(logs, at, SPLITS, dims=(2,), padding=-tl.inf)
    weight = tl.exp2(log - tl.max(log))
    part = tl.load(parts, (*at, 0), (SPLITS, D), dims=(2, 4))
    o_row = tl.sum(part * weight[:, None], 0) / tl.sum(weight)
    tl.store(o, (batch, head, 0), o_row.to(o.dtype))


def reference(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, table: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Attention of each sequence by itself, in float64."""
    o = np.empty(q.shape)
    shared_by = q.shape[1] // keys.shape[2]
    for pages, length, query, out in zip(table, lengths, q.astype(np.float64), o, strict=True):
        key, value = (x[pages].reshape(-1, *x.shape[2:])[:length] for x in (keys, values))
        key, value = (np.repeat(x.astype(np.float64), shared_by, axis=1) for x in (key, value))
        weight = np.exp(np.einsum("hd,khd->hk", query, key) / math.sqrt(q.shape[2]))
        out[:] = np.einsum("hk,khd->hd", weight / weight.sum(1, keepdims=True), value)
    return o


def main() -> None:
    """Sequences of one element, of whole pages and not, some with fewer pages than splits."""
    rng = np.random.default_rng(0)
    dtype, heads, shared_by, width, page, splits = ml_dtypes.bfloat16, 6, 3, 32, 16, 3
    lengths = np.array([1, 64, 75], np.int32)
    most = -(-int(lengths.max()) // page)
    table = rng.permutation(20)[: 3 * most].reshape(3, most).astype(np.int32)
    q = rng.standard_normal((3, heads, width)).astype(dtype)
    keys, values = rng.standard_normal((2, 20, page, heads // shared_by, width)).astype(dtype)
    logs = poisoned((3, heads // shared_by, splits, shared_by), np.float32)
    parts, o = poisoned((*logs.shape, width), np.float32), poisoned(q.shape, dtype)
    scale, sizes = 1 / math.sqrt(width), {"HEADS": shared_by, "D": width}
    launch(attend_pages, q, keys, values, table, lengths, parts, logs, scale, PAGE=page, **sizes)
    launch(join_splits, parts, logs, o, SPLITS=4, **sizes)
    compare("paged_attention", o, reference(q, keys, values, table, lengths), 1e-2)


if __name__ == "__main__":
    main()
