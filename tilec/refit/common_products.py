"""Products that many programs compute: squares, and linear layers of well-known sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.hardware.target import Feature, Target
from tilec.refit.drawn_products import DrawnProduct

SQUARES = (512, 1024, 2048, 4096, 8192)
"""Sides that products are usually compared at."""
LAYERS = {
    (16, 64, 256, 1024, 4096): ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336)),
    (16, 256, 4096): ((8192, 8192), (10240, 8192), (8192, 28672)),
    (1024, 8192): ((768, 768), (2304, 768), (3072, 768), (768, 3072)),
}
"""Rows -> columns and k: of Llama 3's 8 and 70 billion parameters (queries, keys and values in one,
the two products of the feed-forward part), and GPT-2's 124 million."""


def common_products(target: Target) -> Iterator[DrawnProduct]:
    """Yields the products that a target has instructions for; b of layers is a weight's
    transpose."""
    kinds: Sequence[str] = ("bf16", "f16")
    if target.supports(Feature.MMA_SYNC_FP8):
        kinds = (*kinds, "fp8")
    for side in SQUARES:
        for kind in kinds:
            yield DrawnProduct(kind, side, side, side, "NT")
        yield DrawnProduct("bf16", side, side, side, "NN")
    for rows, matrices in LAYERS.items():
        for m in rows:
            for n, k in matrices:
                yield DrawnProduct("bf16", m, n, k, "NT")
