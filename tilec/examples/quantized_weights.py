"""Products with weights of 4 bits, two a byte, unpacked on the way to the tensor cores.

Each GROUP of rows of the weights has a scale and a zero per column. A byte holds rows i and
i + GROUP / 2 of its group, low half first: both halves of a tile of bytes are whole tiles of
weights, and nothing has to be interleaved.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def quantized_matmul(
    a: tl.array,
    packed: tl.array,
    scales: tl.array,
    zeros: tl.array,
    c: tl.array,
    GROUP: tl.const = 128,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    STAGES: tl.const = None,
):
    """c = a @ w, w = (unpacked - zeros) * scales; a (M, K), packed (K / 2, N) of i8, scales and
    zeros (K / GROUP, N) of a's dtype.

    For few rows of a take BM=16 and STAGES=4, which copies the packed weights ahead, too.
    """
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    half: tl.const = GROUP // 2
    acc = tl.zeros((BM, BN), tl.f32)
    for group in tl.range(0, tl.cdiv(a.shape[1], GROUP), stages=STAGES):
        pairs = tl.load(packed, (group * half, n), (half, BN))
        scale, zero = (tl.load(x, (group, n), BN) for x in (scales, zeros))
        for number, codes in enumerate((pairs & 15, (pairs >> 4) & 15)):
            weights = (codes.to(a.dtype) - zero) * scale
            k = group * GROUP + number * half
            acc = tl.dot(tl.load(a, (m, k), (BM, half)), weights, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def quantize(weights: np.ndarray, group: int = 128) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Packed weights, scales and zeros of a matrix (K, N); K is a multiple of `group`."""
    parts = weights.reshape(-1, group, weights.shape[1]).astype(np.float64)
    low, high = parts.min(1, keepdims=True), parts.max(1, keepdims=True)
    scale = ((high - low) / 15).astype(weights.dtype).astype(np.float64)
    zero = np.rint(-low / scale)
    codes = np.clip(np.rint(parts / scale) + zero, 0, 15).astype(np.uint8)
    packed = codes[:, : group // 2] | codes[:, group // 2 :] << 4
    per_group = (x[:, 0].astype(weights.dtype) for x in (scale, zero))
    return (packed.reshape(-1, weights.shape[1]).view(np.int8), *per_group)


def reference(
    a: np.ndarray, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray, group: int
) -> np.ndarray:
    """The product in float64."""
    codes = packed.view(np.uint8).reshape(-1, group // 2, packed.shape[1])
    codes = np.concatenate([codes & 15, codes >> 4], 1).astype(np.float64)
    weights = (codes - zeros[:, None]) * scales[:, None].astype(np.float64)
    return a.astype(np.float64) @ weights.reshape(-1, packed.shape[1])


def main() -> None:
    """Few rows and many, columns that fill no tile."""
    rng = np.random.default_rng(0)
    for m, n, k, tiles in (
        (5, 72, 256, {"BM": 16, "BN": 64}),
        (70, 40, 128, {"BM": 64, "BN": 64, "GROUP": 64}),
    ):
        a = rng.standard_normal((m, k)).astype(np.float16)
        group = tiles.get("GROUP", 128)
        packed = quantize(rng.standard_normal((k, n)).astype(np.float16), group)
        c = poisoned((m, n), np.float16)
        launch(quantized_matmul, a, *packed, c, **tiles)
        compare(f"quantized_matmul {m}x{n}x{k}", c, reference(a, *packed, group), 2e-3)


if __name__ == "__main__":
    main()
