"""Products of quantised numbers, of gathered rows, of shifted ones, and of all pairs."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl


def _tiles(y: Any, BM: int, BN: int) -> tuple[int, int]:
    return tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)


@tilec.kernel(grid=_tiles)
def int8_product(
    x: tl.array, w: tl.array, of_row: tl.array, of_column: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """x w^T of bytes, with a scale for each row and column."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.i32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (BN, BK)).T, acc)
    out = acc.to(tl.f32) * tl.load(of_row, m, BM)[:, None] * tl.load(of_column, n, BN)[None, :]
    tl.store(y, (m, n), out.to(y.dtype))


@tilec.kernel(grid=_tiles)
def byte_weights(
    x: tl.array, w: tl.array, scales: tl.array, y: tl.array, GROUP: tl.const = 128,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = 64,
):  # fmt: skip
    """x (w scales): w (K, N) of i8, scales (K / GROUP, N)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        scale = tl.load(scales, (k // GROUP, n), (1, BN))
        weights = tl.load(w, (k, n), (BK, BN)).to(x.dtype) * scale
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), weights, acc)
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(grid=_tiles)
def nibble_weights(
    x: tl.array, w: tl.array, scales: tl.array, y: tl.array, GROUP: tl.const = 128,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """x (w scales)^T: w (N, K / 2) of u8, numbers of 4 bits less 8, even ones low; scales (N, K /
    GROUP)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for g in tl.range(0, scales.shape[1]):
        pairs = tl.load(w, (n, g * GROUP // 2), (BN, GROUP // 2))
        codes = tl.join((pairs & 15, pairs >> 4)).reshape((BN, GROUP))
        scale = tl.load(scales, (n, g), (BN, 1))
        weights = (codes.to(x.dtype) - 8.0) * scale
        acc = tl.dot(tl.load(x, (m, g * GROUP), (BM, GROUP)), weights.T, acc)
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(grid=_tiles)
def fp8_rows(
    x: tl.array, w: tl.array, of_row: tl.array, of_column: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """x w^T of fp8, with a scale for each row and column."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (BN, BK)).T, acc)
    acc *= tl.load(of_row, m, BM)[:, None] * tl.load(of_column, n, BN)[None, :]
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(grid=lambda experts, y, BN: (experts.shape[0], tl.cdiv(y.shape[1], BN)))
def added_experts(
    x: tl.array, w: tl.array, tokens: tl.array, weights: tl.array, experts: tl.array, y: tl.array,
    BM: tl.const = 64, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y[token] += weight * x[token] w[expert]^T: tokens in tiles of BM rows of one expert, -1 where
    there is none."""
    tile, n = tl.program_id(0), tl.program_id(1) * BN
    expert, token = tl.load(experts, tile, ()), tl.load(tokens, tile * BM, BM)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        rows = tl.gather(x, (token[:, None], k + tl.arange(BK)[None, :]))
        acc = tl.dot(rows, tl.load(w, (expert, n, k), (BN, BK)).T, acc)
    acc *= tl.load(weights, tile * BM, BM)[:, None]
    tl.atomic_add(y, (token[:, None], n + tl.arange(BN)[None, :]), acc)


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[1], BM), tl.cdiv(y.shape[2], BN), y.shape[0]))
def shifted_products(
    x: tl.array, w: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """A causal convolution along a sequence: y[l] is the sum of x[l - t] w[t] over taps t."""
    m, n, b = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2)
    acc = tl.zeros((BM, BN), tl.f32)
    for t in tl.range(0, w.shape[0]):
        for k in tl.range(0, x.shape[2], BK):
            rows = tl.load(x, (b, m - t, k), (BM, BK))
            acc = tl.dot(rows, tl.load(w, (t, k, n), (BK, BN)), acc)
    tl.store(y, (b, m, n), acc[None].to(y.dtype))


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def smoothed_values(
    x: tl.array, z: tl.array, v: tl.array, y: tl.array, gamma: float, D: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, STAGES: tl.const = None,
):  # fmt: skip
    """y[i]: the sum over j of exp(-gamma |x[i] - z[j]|^2) v[j]; f32 by tf32."""
    m = tl.program_id(0) * BM
    point, total = tl.load(x, (m, 0), (BM, D)), tl.zeros((BM,), tl.f32)
    own = tl.sum(point * point, 1)
    for n in tl.range(0, z.shape[0], BN, stages=STAGES):
        other = tl.load(z, (n, 0), (BN, D))
        far = own[:, None] + tl.sum(other * other, 1)[None, :]
        far -= 2.0 * tl.dot(point, other.T, precision="tf32")
        weight = tl.exp(-gamma * tl.maximum(far, 0.0), approx=True)
        total += tl.sum(weight * tl.load(v, n, BN)[None, :], 1)
    tl.store(y, m, total)


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def contrastive_loss(
    x: tl.array, loss: tl.array, factor: float, D: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, STAGES: tl.const = None,
):  # fmt: skip
    """Rows 2 i and 2 i + 1 are a pair: -log softmax of each among all others, factor x x^T."""
    m = tl.program_id(0) * BM
    own, row = tl.load(x, (m, 0), (BM, D)), m + tl.arange(BM)[:, None]
    high, total = tl.full((BM,), -1e30, tl.f32), tl.zeros((BM,), tl.f32)
    pair = tl.zeros((BM,), tl.f32)
    for n in tl.range(0, x.shape[0], BN, stages=STAGES):
        column = n + tl.arange(BN)[None, :]
        s = tl.dot(own, tl.load(x, (n, 0), (BN, D)).T) * factor
        pair += tl.sum(tl.where(column == (row ^ 1), s, 0.0), 1)
        s = tl.where((column != row) & (column < x.shape[0]), s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        total *= tl.exp(high - higher, approx=True)
        total += tl.sum(tl.exp(s - higher[:, None], approx=True), 1)
        high = higher
    tl.store(loss, m, high + tl.log(total) - pair)


@tilec.kernel(grid=lambda starts, y, BN: (starts.shape[0] - 1, tl.cdiv(y.shape[1], BN)))
def listed_blocks(
    blocks: tl.array, columns: tl.array, starts: tl.array, b: tl.array, y: tl.array,
    S: tl.const, BN: tl.const = tl.auto,
):  # fmt: skip
    """A matrix of S x S blocks, those of each row of blocks in a list, times b."""
    row, n = tl.program_id(0), tl.program_id(1) * BN
    acc = tl.zeros((S, BN), tl.f32)
    for i in tl.range(tl.load(starts, row, ()), tl.load(starts, row + 1, ())):
        k = tl.load(columns, i, ()) * S
        block = tl.load(blocks, (i, 0, 0), (1, S, S)).reshape((S, S))
        acc = tl.dot(block, tl.load(b, (k, n), (S, BN)), acc)
    tl.store(y, (row * S, n), acc.to(y.dtype))
