"""Products of numbers of 8 and 4 bits with a scale per block along k: the mx formats and nvfp4.

Matrices are quantised in front of the kernel: each block of numbers gets a scale with which its
largest one still fits. The scales lie as tensor cores read them (`tilec.ops.arrange_scales` does
the same on a device), so that on 10.x and 12.x they come by tensor copies and the instructions
that multiply read them; other targets multiply each tile by its scales in bf16. `tilec.ops.matmul`
does all that for arrays of any layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, emulated_target, launch, poisoned
from tilec.hardware.target import Feature

PAIR = np.dtype([("float4_e2m1fn_x2", np.uint8)])
"""Two numbers of 4 bits a byte, the first in the low half: tl.f4e2m1x2."""


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def block_scaled_matmul(
    a: tl.array,
    a_scale: tl.array,
    b: tl.array,
    b_scale: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BYTES: tl.const = 128,
    BLOCKS: tl.const = 4,
):
    """c = (a * a_scale) @ (b * b_scale), BYTES of each row of a, with BLOCKS scales, a step."""
    m, n = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(tl.cdiv(a.shape[1], BYTES)):
        left = tl.load(a, (m * BM, k * BYTES), (BM, BYTES))
        right = tl.load(b, (k * BYTES, n * BN), (BYTES, BN))
        left_scale = scales(a_scale, m, k, BM, BLOCKS)
        right_scale = scales(b_scale, n, k, BN, BLOCKS)
        acc = tl.dot_scaled(left, left_scale, right, right_scale.T, acc)
    tl.store(c, (m * BM, n * BN), acc.to(c.dtype))


def scales(arranged: Any, number: Any, step: Any, ROWS: int, BLOCKS: int) -> Any:
    """The (ROWS, BLOCKS) scales of a tile."""
    pieces, groups = ROWS // 128, BLOCKS // 4
    at = (number * pieces, step * groups, 0, 0)
    return tl.block_scales(tl.load(arranged, at, (pieces, groups, 2, 256)))


@dataclass(frozen=True)
class Format:
    """`element`: of the numbers, `scale`: of what `block` of them share."""

    element: Any
    scale: Any
    block: int


FORMATS = {
    "mxfp8": Format(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, 32),
    "mxfp4": Format(ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu, 32),
    "nvfp4": Format(ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, 16),
}


def quantize(x: np.ndarray, form: Format) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and scales (rows, blocks) of a matrix, blocks along its rows."""
    blocks = x.reshape(x.shape[0], -1, form.block)
    largest = np.abs(blocks).max(2) / float(ml_dtypes.finfo(form.element).max)
    if form.scale is ml_dtypes.float8_e8m0fnu:
        largest = 2.0 ** np.ceil(np.log2(np.maximum(largest, 2.0**-127)))
    scale = largest.astype(form.scale)
    factor = scale.astype(np.float64)[:, :, None]
    numbers = np.divide(blocks, factor, where=factor > 0, out=np.zeros(blocks.shape))
    return numbers.astype(form.element).reshape(x.shape), scale


def packed(numbers: np.ndarray) -> np.ndarray:
    """Numbers as a kernel takes them: those of 4 bits two a byte."""
    if numbers.dtype != ml_dtypes.float4_e2m1fn:
        return numbers
    codes = numbers.view(np.uint8)
    return (codes[:, 0::2] | codes[:, 1::2] << 4).view(PAIR)


def arranged(scale: np.ndarray) -> np.ndarray:
    """Scales (rows, blocks) as (rows / 128, blocks / 4, 2, 256), filled up (see
    `tl.block_scales`)."""
    rows, blocks = scale.shape
    whole = np.zeros((-(-rows // 128) * 128, -(-blocks // 4) * 4), np.uint8)
    whole[:rows, :blocks] = scale.view(np.uint8)
    pieces = whole.reshape(whole.shape[0] // 128, 4, 32, whole.shape[1] // 4, 4)
    flat = np.ascontiguousarray(pieces.transpose(0, 3, 2, 1, 4))
    return flat.reshape(*flat.shape[:2], 2, 256).view(scale.dtype)


def reference(numbers: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """What numbers and scales mean, in float64."""
    block = numbers.shape[1] // scale.shape[1]
    return numbers.astype(np.float64) * np.repeat(scale.astype(np.float64), block, 1)


def multiply(name: str, m: int, n: int, k: int) -> None:
    """One product of random matrices in a format, against float64."""
    form, rng = FORMATS[name], np.random.default_rng(0)
    a, b = (quantize(rng.standard_normal((rows, k)), form) for rows in (m, n))
    left, right = packed(a[0]), packed(b[0])
    c = poisoned((m, n), np.float32)
    blocks = 128 * (k // left.shape[1]) // form.block
    launch(block_scaled_matmul, left, arranged(a[1]), right.T, arranged(b[1]), c, BLOCKS=blocks)
    compare(f"{name} {m}x{n}x{k}", c, reference(*a) @ reference(*b).T, 1e-5)


def main() -> None:
    """Two of the formats, in sizes that do not fill the tiles."""
    with emulated_target(Feature.TCGEN05, Feature.MMA_SYNC_BLOCK_SCALE):
        for name in ("mxfp8", "nvfp4"):
            multiply(name, 136, 72, 320)


if __name__ == "__main__":
    main()
