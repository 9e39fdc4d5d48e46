"""Triton's candidates for `fused_cases`: label -> launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import triton
import triton_fused_kernels as kernels
from fused_cases import FusedCase
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_peers import SMS, Tensors, TritonLaunch

GROUP = 8
"""Rows of tiles that programs walk together, as in `triton_products`."""
TILES = ((128, 128, 4, 4), (128, 128, 3, 8), (128, 256, 3, 8), (128, 256, 4, 8), (64, 256, 4, 4))
PAIRED = ((128, 128, 3, 8), (128, 128, 4, 8), (64, 128, 4, 4), (128, 64, 4, 4))
"""(BM, BN, stages, warps)."""
BK = 64


def fused_launches(case: FusedCase) -> Iterator[TritonLaunch]:
    """All candidates of a case: a program a tile, and where the kernel can persistent ones."""
    for tile in PAIRED if case.products > 1 else TILES:
        if case.kernel == "grouped_product":
            yield _grouped(case, *tile)
        else:
            yield from (_walking(case, *tile, persistent) for persistent in (False, True))


def _walking(
    case: FusedCase, bm: int, bn: int, stages: int, warps: int, persistent: bool
) -> TritonLaunch:
    m, n, _ = case.shape
    count = triton.cdiv(m, bm) * triton.cdiv(n, bn)
    programs = min(SMS, count) if persistent else count
    options = {**_constants(bm, bn, stages, warps), "GROUP": GROUP, "PROGRAMS": programs}
    gated = case.kernel == "gated_product"
    if not gated:
        options["RELU"] = case.kernel == "activated_product"
    names = ("a", "b", "g", "c") if gated else ("a", "b", "c")
    boxes = {"a": [bm, BK], "b": [BK, bn], "g": [BK, bn], "c": [bm, bn]}

    def arguments(t: Tensors) -> tuple[Any, ...]:
        return (*(_described(case, t, name, boxes[name]) for name in names), *case.shape)

    kind = "persistent" if persistent else "tiles"
    return TritonLaunch(
        f"{kind} {bm}x{bn}x{BK} s{stages} w{warps}",
        kernels.gated if gated else kernels.converted,
        (programs,),
        arguments,
        options,
    )


def _grouped(case: FusedCase, bm: int, bn: int, stages: int, warps: int) -> TritonLaunch:
    m, n, _ = case.shape
    groups = len(case.group_ends)

    def arguments(t: Tensors) -> tuple[Any, ...]:
        a, b = _described(case, t, "a", [bm, BK]), _described(case, t, "b", [BK, bn])
        return (a, b, t["ends"], t["c"], *case.shape)

    return TritonLaunch(
        f"tiles {bm}x{bn}x{BK} s{stages} w{warps}",
        kernels.grouped,
        (triton.cdiv(m, bm) + groups, triton.cdiv(n, bn)),
        arguments,
        {**_constants(bm, bn, stages, warps), "GROUPS": groups},
    )


def _constants(bm: int, bn: int, stages: int, warps: int) -> dict[str, Any]:
    return {"BM": bm, "BN": bn, "BK": BK, "num_stages": stages, "num_warps": warps}


def _described(case: FusedCase, t: Tensors, name: str, box: Sequence[int]) -> TensorDescriptor:
    """A matrix, or those of all groups below each other."""
    (shape,) = (spec.shape for spec in case.arrays if spec.name == name)
    rows, columns = shape[-2] * (shape[0] if len(shape) == 3 else 1), shape[-1]
    return TensorDescriptor(t[name], [rows, columns], [columns, 1], list(box))
