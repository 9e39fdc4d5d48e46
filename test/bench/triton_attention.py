"""Triton's candidates for attention: label -> launch; families plain and specialized.

The total begins at 1 in the tutorial because its first shrink is 2^-inf = 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import triton
import triton_attention_kernels as kernels
from attention_cases import AttentionCase
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_drawn import attention
from triton_peers import Tensors, TritonLaunch
from triton_products import TRITON_TYPES

PLAIN = {
    64: ((128, 128, 2, 8), (128, 128, 3, 8), (128, 64, 3, 4), (128, 64, 4, 4), (64, 64, 3, 4)),
    128: ((128, 128, 2, 8), (128, 128, 3, 8), (128, 64, 3, 4), (128, 64, 3, 8), (64, 64, 3, 4)),
}
SPECIALIZED = {64: ((128, 128, 2, 4),), 128: ((128, 128, 2, 4), (128, 128, 1, 4))}
"""Elements of a head -> (BM, BN, stages, warps); 128 x 64 tiles, specialised, gave NaN."""


WHOLE = 128
"""Lengths that these kernels take are multiples of it."""


def attention_launches(case: AttentionCase) -> Iterator[TritonLaunch]:
    """All candidates of a case; those of `triton_drawn` where heads or lengths are other ones."""
    if case.head not in PLAIN or case.length % WHOLE:
        heads = case.batch * case.heads
        masks = {"causal": case.causal, "window": None, "scale": case.scalars[0]}
        yield from attention((heads, heads), 1, case.length, (case.head, case.head), **masks)
        return
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda").byte())
    for numbers in PLAIN[case.head]:
        yield _launch(case, "plain", *numbers)
    for numbers in () if case.causal else SPECIALIZED[case.head]:
        yield _launch(case, "specialized", *numbers)


def _launch(
    case: AttentionCase, kind: str, bm: int, bn: int, stages: int, warps: int
) -> TritonLaunch:
    heads = case.batch * case.heads
    scale = case.scalars[0] * math.log2(math.e)
    rows = heads * case.length

    def arguments(t: Tensors) -> tuple[Any, ...]:
        found: list[Any] = [t[name] for name in "qkvo"]
        if kind == "plain":
            boxes = (bm, bn, bn, bm)
            found = [
                TensorDescriptor(tensor, [rows, case.head], [case.head, 1], [box, case.head])
                for tensor, box in zip(found, boxes, strict=True)
            ]
        return (*found, scale, heads)

    return TritonLaunch(
        f"{kind} {bm}x{bn} s{stages} w{warps}",
        getattr(kernels, kind),
        (triton.cdiv(case.length, bm), heads),
        arguments,
        {
            **{"LENGTH": case.length, "D": case.head, "BM": bm, "BN": bn},
            **{"OUT": TRITON_TYPES[case.dtype], "CAUSAL": case.causal},
            **{"num_stages": stages, "num_warps": warps},
        },
    )
