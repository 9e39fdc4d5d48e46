"""Triton's and Gluon's candidates for a product on Hopper: label -> launch.

Parameters are the best that short searches on an H200 found for each kind of kernel; the families,
by the first words of the labels, are persistent, specialized, gluon, tiles and pointer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gluon_products
import torch
import triton
import triton.language as tl
import triton_product_kernels as kernels
from product_cases import ProductCase
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_peers import SMS, Tensors, TritonLaunch

GROUP = 8
TRITON_TYPES = {
    "f16": tl.float16,
    "bf16": tl.bfloat16,
    "f32": tl.float32,
    "f8E4M3FN": tl.float8e4nv,
    "i32": tl.int32,
}
WIDE = ("f32", "i32")
"""Results of four bytes: the whole tile beside three stages exceeds shared memory."""
GLUON_TYPES = {"f16": gl.float16, "bf16": gl.bfloat16, "f8E4M3FN": gl.float8e4nv}

DESCRIPTOR_ALIGN = 16
"""Bytes that a descriptor's rows must be multiples of (CUDA driver API, cuTensorMapEncodeTiled)."""


def product_launches(case: ProductCase) -> Iterator[TritonLaunch]:
    """All candidates of a case."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda").byte())
    for kind, *numbers in _candidates(case):
        if kind == "pointer" or _describable(case):
            yield _MAKERS[kind](case, *numbers)


def _candidates(case: ProductCase) -> list[tuple[Any, ...]]:
    """(kind, BM, BN, BK, stages, warps[, whether stored in halves])."""
    k = {"f16": 64, "bf16": 64, "f32": 32}.get(case.dtype, 128)
    m, n, _ = case.shape
    if m <= 16:
        found = _few_rows()
    elif m <= 64:
        found = _some_rows()
    elif m <= 256:
        found = _many_rows()
    elif min(m, n) <= 1024:
        found = _small(k)
    else:
        found = [
            ("persistent", 128, 256, k, 3, 8, False),
            ("persistent", 128, 256, k, 4, 8, True),
            ("persistent", 128, 256, k, 3, 8, True),
            ("specialized", 128, 256, k, 3, 4),
            ("pointer", 128, 128, k, 3, 8),
        ]
        if case.output in WIDE:
            found = _wide(k)
        if case.dtype in GLUON_TYPES and not case.batch:
            found.append(("gluon", 128, 256, k, 3))
    if case.transposed_a:
        found += [("tiles", 128, 256, k, 3, 8), ("tiles", 128, 128, k, 4, 4)] if m > 1024 else []
        return [numbers for numbers in found if numbers[0] in ("pointer", "tiles")]
    return [numbers for numbers in found if not case.batch or _batched(case, *numbers[:4])]


def _batched(case: ProductCase, kind: str, *tile: int) -> bool:
    """Whether a kernel does batches, those below each other in whole tiles."""
    whole = not any(size % part for size, part in zip(case.shape, tile, strict=True))
    return kind == "pointer" or (kind in ("persistent", "specialized") and whole)


def _wide(k: int) -> list[tuple[Any, ...]]:
    return [
        ("persistent", 128, 256, k, 3, 8, True),
        ("persistent", 128, 128, k, 4, 4, False),
        ("persistent", 128, 128, k, 3, 8, False),
        ("specialized", 128, 128, k, 3, 4),
        ("pointer", 128, 256, k, 3, 8),
        ("pointer", 256, 128, k, 3, 8),
        ("pointer", 128, 128, k, 4, 4),
        ("pointer", 128, 128, k, 3, 8),
    ]


def _few_rows() -> list[tuple[Any, ...]]:
    pointer = ((16, 64, 256, 4, 4), (16, 64, 128, 6, 4), (16, 128, 128, 5, 4), (16, 32, 256, 5, 4))
    described = ((64, 64, 128, 5, 4), (64, 32, 256, 4, 4))
    return [*(("pointer", *p) for p in pointer), *(("tiles", *d) for d in described)]


def _some_rows() -> list[tuple[Any, ...]]:
    pointer = ((64, 64, 128, 5, 4), (64, 64, 64, 6, 4), (64, 128, 64, 5, 4))
    described = ((64, 64, 128, 6, 4), (64, 128, 64, 6, 4), (64, 32, 256, 4, 4), (64, 32, 128, 8, 4))
    return [*(("pointer", *p) for p in pointer), *(("tiles", *d) for d in described)]


def _many_rows() -> list[tuple[Any, ...]]:
    pointer = ((64, 128, 64, 5, 4), (128, 64, 64, 5, 4))
    described = ((64, 128, 128, 4, 4), (128, 64, 128, 4, 4), (64, 64, 128, 6, 4))
    return [
        *(("pointer", *p) for p in pointer),
        *(("tiles", *d) for d in described),
        ("persistent", 128, 128, 64, 5, 8, True),
    ]


def _small(k: int) -> list[tuple[Any, ...]]:
    pointer = ((64, 64, k, 4, 4), (64, 128, k, 4, 4), (128, 64, k, 4, 4), (64, 32, 2 * k, 4, 4))
    described = (
        (64, 64, k, 4, 4),
        (128, 64, k, 4, 4),
        (128, 128, k, 4, 4),
        (64, 64, 2 * k, 3, 4),
        (64, 32, 2 * k, 4, 4),
    )
    return [
        *(("pointer", *p) for p in pointer),
        *(("tiles", *d) for d in described),
        ("persistent", 128, 128, k, 4, 4, False),
    ]


def _describable(case: ProductCase) -> bool:
    """Whether all rows are multiples of 16 bytes, as descriptors demand."""
    m, n, k = case.shape
    rows = (
        (m if case.transposed_a else k, case.dtype),
        (k if case.transposed_b else n, case.dtype),
        (n, case.output),
    )
    sizes = {"f16": 2, "bf16": 2, "f32": 4, "i32": 4}
    return all(count * sizes.get(dtype, 1) % DESCRIPTOR_ALIGN == 0 for count, dtype in rows)


def _flat(case: ProductCase) -> dict[str, tuple[int, int]]:
    """The matrices as they lie in memory, those of a batch below each other."""
    m, n, k = case.shape
    batch = max(case.batch, 1)
    a = (batch * k, m) if case.transposed_a else (batch * m, k)
    b = (batch * n, k) if case.transposed_b else (batch * k, n)
    return {"a": a, "b": b, "c": (batch * m, n)}


def _constants(case: ProductCase, bm: int, bn: int, bk: int) -> dict[str, Any]:
    return {
        **{"BM": bm, "BN": bn, "BK": bk, "GROUP": GROUP, "TRANSPOSED": case.transposed_b},
        "ACC": tl.int32 if case.dtype == "i8" else tl.float32,
        "OUT": TRITON_TYPES[case.output],
        "PRECISION": "tf32" if case.dtype == "f32" else None,
    }


def _count(case: ProductCase, bm: int, bn: int) -> int:
    m, n, _ = case.shape
    return triton.cdiv(m, bm) * triton.cdiv(n, bn) * max(case.batch, 1)


def _described(case: ProductCase, boxes: dict[str, list[int]]) -> Any:
    """Arguments: descriptors of a, b and c with these boxes, then M, N, K."""
    flat = _flat(case)

    def arguments(t: Tensors) -> tuple[Any, ...]:
        found = [
            TensorDescriptor(t[name], list(flat[name]), [flat[name][1], 1], boxes[name])
            for name in "abc"
        ]
        return (*found, *case.shape)

    return arguments


def _boxes(case: ProductCase, bm: int, bn: int, bk: int, columns: int) -> dict[str, list[int]]:
    a = [bk, bm] if case.transposed_a else [bm, bk]
    b = [bn, bk] if case.transposed_b else [bk, bn]
    return {"a": a, "b": b, "c": [bm, columns]}


def _tiles(case: ProductCase, bm: int, bn: int, bk: int, stages: int, warps: int) -> TritonLaunch:
    return TritonLaunch(
        f"tiles {bm}x{bn}x{bk} s{stages} w{warps}",
        kernels.tiles,
        (_count(case, bm, bn),),
        _described(case, _boxes(case, bm, bn, bk, bn)),
        {
            **{**_constants(case, bm, bn, bk), "ACROSS": case.transposed_a},
            **{"num_stages": stages, "num_warps": warps},
        },
    )


def _persistent(
    case: ProductCase, bm: int, bn: int, bk: int, stages: int, warps: int, halves: bool
) -> TritonLaunch:
    scheduled = {"BATCH": max(case.batch, 1), "PROGRAMS": SMS, "HALVES": halves}
    return TritonLaunch(
        f"persistent {bm}x{bn}x{bk} s{stages} w{warps}{' halves' if halves else ''}",
        kernels.persistent,
        (min(SMS, _count(case, bm, bn)),),
        _described(case, _boxes(case, bm, bn, bk, bn // 2 if halves else bn)),
        {**_constants(case, bm, bn, bk), **scheduled, "num_stages": stages, "num_warps": warps},
    )


def _specialized(
    case: ProductCase, bm: int, bn: int, bk: int, stages: int, warps: int
) -> TritonLaunch:
    scheduled = {"BATCH": max(case.batch, 1), "PROGRAMS": SMS}
    return TritonLaunch(
        f"specialized {bm}x{bn}x{bk} s{stages} w{warps}",
        kernels.specialized,
        (min(SMS, _count(case, bm, bn)),),
        lambda t: (t["a"], t["b"], t["c"], *case.shape),
        {**_constants(case, bm, bn, bk), **scheduled, "num_stages": stages, "num_warps": warps},
    )


def _pointer(case: ProductCase, bm: int, bn: int, bk: int, stages: int, warps: int) -> TritonLaunch:
    m, n, k = case.shape
    strides = (
        *((1, m) if case.transposed_a else (k, 1)),
        *((1, k) if case.transposed_b else (n, 1)),
        n,
    )
    options = {**_constants(case, bm, bn, bk), "EVEN": k % bk == 0}
    del options["TRANSPOSED"], options["OUT"]
    batch = max(case.batch, 1)
    return TritonLaunch(
        f"pointer {bm}x{bn}x{bk} s{stages} w{warps}",
        kernels.masked,
        (_count(case, bm, bn) // batch, batch),
        lambda t: (t["a"], t["b"], t["c"], m, n, k, *strides, m * k, k * n, m * n),
        {**options, "num_stages": stages, "num_warps": warps},
    )


def _gluon(case: ProductCase, bm: int, bn: int, bk: int, stages: int) -> TritonLaunch:
    operand, output = GLUON_TYPES[case.dtype], GLUON_TYPES[case.output]
    boxes = _boxes(case, bm, bn, bk, bn) | {"c": [bm // 2, bn]}
    layouts = {
        name: gl.NVMMASharedLayout.get_default_for(box, output if name == "c" else operand)
        for name, box in boxes.items()
    }
    flat = _flat(case)
    instruction = [16, bn, 32 if case.dtype == "f8E4M3FN" else 16]
    fragment = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=instruction
    )

    def arguments(t: Tensors) -> tuple[Any, ...]:
        found = [
            GluonDescriptor(t[n], list(flat[n]), [flat[n][1], 1], boxes[n], layouts[n])
            for n in "abc"
        ]
        return (*found, *case.shape)

    constants = {"GROUP": GROUP, "STAGES": stages, "TRANSPOSED": case.transposed_b}
    return TritonLaunch(
        f"gluon {bm}x{bn}x{bk} s{stages} w4+4+1",
        gluon_products.product,
        (min(SMS, _count(case, bm, bn)),),
        arguments,
        {**constants, "LAYOUT": fragment, "num_warps": 4, "maxnreg": 168},
    )


_MAKERS = {
    "tiles": _tiles,
    "persistent": _persistent,
    "specialized": _specialized,
    "pointer": _pointer,
    "gluon": _gluon,
}
