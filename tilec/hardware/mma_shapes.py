"""Matrix instructions as rows: shapes, element types, register fragments.

Fragments are layouts over one warp, or one warpgroup of 128 threads: lhs in (m, k), rhs in (k, n),
accumulator in (m, n) coordinates. Sources: PTX ISA 9.0, "Warp-level matrix fragment" per shape
(m16n8k8, m16n8k16, m16n8k32, m16n8k64, m8n8k4), and "Register Fragments and Shared Memory Matrix
Layouts" of wgmma.mma_async, whose rhs lies in shared memory only. tcgen05.mma has no fragments: its
operands lie in shared and tensor memory (`tensor_tiles.py`). `fma` is no tensor-core instruction:
one thread multiplies its own row and column elements, so its fragments are one element and any
thread layout is legal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

from tilec.hardware.layout import normalize, parse_layout
from tilec.hardware.mma_instruction import WARPGROUP_THREADS, MmaInstruction
from tilec.hardware.target import Feature, Target


def _fragments(registers: int) -> tuple[str, str, str]:
    """Lays out lhs, rhs and acc of m16n8kK: a quad of lanes along k with `registers` elements per
    32-bit register.

    K is 8 registers wide: two groups of 4 lanes, each lane holding one register's elements.
    """
    e, half = registers, 4 * registers
    lhs = f"T(4,8):({e}@1,1@0) V({e},2,2):(1@1,8@0,{half}@1)"
    rhs = f"T(4,8):({e}@0,1@1) V({e},2):(1@0,{half}@0)"
    return lhs, rhs, "T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)"


def _row(
    name: str,
    k: int,
    types: tuple[str, str, str],
    suffix: str,
    feature: Feature = Feature.MMA_SYNC,
    *,
    tf32: bool = False,
) -> MmaInstruction:
    intrinsic = f"llvm.nvvm.mma.m16n8k{k}.row.col.{suffix}"
    lhs, rhs, acc = (normalize(parse_layout(text)) for text in _fragments(k // 8))
    return MmaInstruction(name, 16, 8, k, *types, feature, intrinsic, tf32, lhs, rhs, acc)


_E4M3, _E5M2 = "f8E4M3FN", "f8E5M2"
_SHORT = {_E4M3: "e4m3", _E5M2: "e5m2"}


def _fp8_rows() -> list[MmaInstruction]:
    return [
        _row(
            f"mma.m16n8k32.f32.{_SHORT[a]}.{_SHORT[b]}",
            32,
            (a, b, "f32"),
            f"f32.{_SHORT[a]}.{_SHORT[b]}.f32",
            Feature.MMA_SYNC_FP8,
        )
        for a in _SHORT
        for b in _SHORT
    ]


_F64 = MmaInstruction(
    "mma.m8n8k4.f64.f64.f64",
    8,
    8,
    4,
    "f64",
    "f64",
    "f64",
    Feature.MMA_SYNC,
    "llvm.nvvm.mma.m8n8k4.row.col.f64",
    False,
    parse_layout("T(4,8):(1@1,1@0) V():()"),
    parse_layout("T(4,8):(1@0,1@1) V():()"),
    parse_layout("T(4,8):(2@1,1@0) V(2):(1@1)"),
)


def _fma(element: str) -> MmaInstruction:
    return MmaInstruction(f"fma.{element}", 1, 1, 1, element, element, element, None)


INSTRUCTIONS: tuple[MmaInstruction, ...] = (
    _row("mma.m16n8k16.f32.f16.f16", 16, ("f16", "f16", "f32"), "f32.f32"),
    _row("mma.m16n8k16.f16.f16.f16", 16, ("f16", "f16", "f16"), "f16.f16"),
    _row("mma.m16n8k16.f32.bf16.bf16", 16, ("bf16", "bf16", "f32"), "bf16"),
    _row("mma.m16n8k8.f32.tf32.tf32", 8, ("f32", "f32", "f32"), "tf32", tf32=True),
    *_fp8_rows(),
    _row("mma.m16n8k32.s32.s8.s8", 32, ("i8", "i8", "i32"), "s8"),
    _F64,
    _fma("f32"),
)
"""Every matrix instruction of fragments without scales, in order of preference."""

SCALES_E8M0, SCALES_E4M3 = "i8", _E4M3
"""Element types of scales: exponents of 2 with a bias of 127, and floats."""
_ELEMENTS = {"e4m3": _E4M3, "e5m2": _E5M2, "e3m2": "i8", "e2m3": "i8", "e2m1": "i8"}
"""The element types that hold numbers of a format: of e2m1 two a byte."""
_BYTE_FORMATS = tuple(_ELEMENTS)[:-1]
_SCALED_KINDS: tuple[tuple[str, str, str, str, int, str, int], ...] = (
    *(("mx", "mxf8f6f4", a, b, 32, SCALES_E8M0, 32) for a in _BYTE_FORMATS for b in _BYTE_FORMATS),
    ("mx", "mxf4", "e2m1", "e2m1", 64, SCALES_E8M0, 32),
    ("nv", "mxf4nvf4", "e2m1", "e2m1", 64, SCALES_E4M3, 16),
)
"""(family, kind, formats of lhs and rhs, k, scale, numbers that share one) of instructions with
.block_scale, PTX ISA 9.0, "Block scaling". Beside 6 or 8 bits an e2m1 is an e2m3 that ends in two
zeros, bit by bit: both have it in bits 2 to 5 of a byte."""


def _scaled_row(
    family: str, kind: str, lhs: str, rhs: str, k: int, scale: str, block: int
) -> MmaInstruction:
    """Makes the row of an mma.sync with block scales: elements of the operands lie as those of 8
    bits do."""
    lhs_layout, rhs_layout, acc_layout = (normalize(parse_layout(t)) for t in _fragments(4))
    types = f"f32.{lhs}.{rhs}.f32.{'ue8m0' if scale == SCALES_E8M0 else 'ue4m3'}"
    return MmaInstruction(
        f"mma.{family}.m16n8k{k}.f32.{lhs}.{rhs}",
        16,
        8,
        k,
        _ELEMENTS[lhs],
        _ELEMENTS[rhs],
        "f32",
        Feature.MMA_SYNC_BLOCK_SCALE,
        f"llvm.nvvm.mma.block.scale.m16n8k{k}.row.col.{kind}.scale.{k // block}x.{types}",
        lhs_layout=lhs_layout,
        rhs_layout=rhs_layout,
        acc_layout=acc_layout,
        kind=kind,
        scale=scale,
        scale_block=block,
        formats=(lhs, rhs),
        pack=k // 32,
    )


SCALED_INSTRUCTIONS = tuple(_scaled_row(*kind) for kind in _SCALED_KINDS)
"""Every matrix instruction of fragments with block scales."""

_BY_NAME = {row.name: row for row in (*INSTRUCTIONS, *SCALED_INSTRUCTIONS)}

_WGMMA_TYPES: tuple[tuple[str, str, str, bool], ...] = (
    ("f16", "f16", "f32", False),
    ("f16", "f16", "f16", False),
    ("bf16", "bf16", "f32", False),
    ("f32", "f32", "f32", True),
    *((a, b, "f32", False) for a in _SHORT for b in _SHORT),
    ("i8", "i8", "i32", False),
)
"""(lhs, rhs, acc, tf32) of wgmma.mma_async, PTX ISA 9.0."""

_PTX_NAMES = {"i8": "s8", "i32": "s32", **_SHORT}  # MLIR's names but these
_WGMMA_NAME = re.compile(r"wgmma\.m64n(\d+)k\d+\..*")
WGMMA_K_BITS = 256
"""Of the k of a warpgroup instruction, of every type (PTX ISA 9.0, "wgmma.mma_async")."""
WGMMA_M = 64
"""Rows of every wgmma.mma_async (PTX ISA 9.0, "Matrix shape")."""
MMA_M = 16
"""Rows of every mma.sync of 16 bits and less (the same section)."""
WIDEST_N = 256
"""Columns of the widest wgmma.mma_async and tcgen05.mma (PTX ISA 9.0, "Matrix shape")."""
WGMMA_NS = range(8, WIDEST_N + 1, 8)
_WGMMA_INTEGER_NS = (8, 16, 24, *range(32, 257, 16))


def wgmma_ns(lhs: str) -> Sequence[int]:
    """Lists how wide wgmma.mma_async of such an lhs may be (PTX ISA 9.0, "Matrix shape")."""
    return _WGMMA_INTEGER_NS if lhs == "i8" else WGMMA_NS


_ROWS = "T(4,8,4):({0}@1,1@0,16@0)", 8
_PAIRED_ROWS = "T(4,2,2,2,2,2):({0}@1,2@0,16@0,4@0,8@0,32@0)", 1
"""Threads' first rows, and how far off the second is. Which rows of a tile an instruction's 64 are
is free where the lhs is in registers. These ones are read 8 bytes at a time, without bank
conflicts, from tiles that are contiguous along m and swizzled by 128 bytes: 16 lanes have 4 rows
each of 4 k, which lie 8, 64 and 72 bytes apart, and 16, 32 and 48 by the swizzle."""


@lru_cache(maxsize=256)
def _wgmma_rows(n: int) -> tuple[MmaInstruction, ...]:
    """The warpgroup instructions that are `n` columns wide."""
    rows = []
    for (lhs, rhs, acc, tf32), paired in product(_WGMMA_TYPES, (False, True)):
        if n not in wgmma_ns(lhs) or (paired and not tf32):
            continue
        e = 1 if tf32 else {"f16": 2, "bf16": 2}.get(lhs, 4)  # elements of a 32-bit register
        types = "tf32.tf32" if tf32 else ".".join(_PTX_NAMES.get(t, t) for t in (lhs, rhs))
        name = f"wgmma.m64n{n}k{8 * e}.{_PTX_NAMES.get(acc, acc)}.{types}"
        name += ".paired" if paired else ""
        threads, apart = _PAIRED_ROWS if paired else _ROWS
        lhs_layout = f"{threads.format(e)} V({e},2,2):(1@1,{apart}@0,{4 * e}@1)"
        acc_layout = f"{threads.format(2)} V(2,2,{n // 8}):(1@1,{apart}@0,8@1)"
        layouts = [normalize(parse_layout(text)) for text in (lhs_layout, acc_layout)]
        rows.append(
            MmaInstruction(
                name,
                WGMMA_M,
                n,
                8 * e,
                lhs,
                rhs,
                acc,
                Feature.WGMMA,
                tf32=tf32,
                lhs_layout=layouts[0],
                acc_layout=layouts[1],
                paired=paired,
                threads=WARPGROUP_THREADS,
            )
        )
    return tuple(rows)


_TENSOR_KINDS: tuple[tuple[str, str, str, str, int], ...] = (
    *(("f16", lhs, lhs, "f32", 16) for lhs in ("f16", "bf16")),
    ("f16", "f16", "f16", "f16", 16),
    ("tf32", "f32", "f32", "f32", 8),
    *(("f8f6f4", a, b, acc, 32) for acc in ("f32", "f16") for a in _SHORT for b in _SHORT),
    ("i8", "i8", "i8", "i32", 32),
)
"""(kind, lhs, rhs, acc, k) of tcgen05.mma, PTX ISA 9.0."""
_SCALED_NAME = re.compile(r"tcgen05\.(?:mx|nv)\.m128n(\d{1,3})k(?:32|64)\..*")
_TENSOR_NAME = re.compile(r"tcgen05\.(pair\.)?m(64|128|256)n(\d{1,3})k\d+\..*")
TENSOR_MS = (128, 64)
"""Rows of tcgen05.mma by one CTA (PTX ISA 9.0, "Matrix shape", .cta_group::1), the most first."""
PAIR = 2
"""CTAs that multiply together (PTX ISA 9.0, "tcgen05.mma", .cta_group::2)."""
PAIR_MS = (256, 128)
"""Rows of tcgen05.mma by a pair (PTX ISA 9.0, "Matrix shape", .cta_group::2), the most first."""


def tensor_ns(m: int, lhs: str, ctas: int = 1) -> Sequence[int]:
    """Lists how wide tcgen05.mma of `m` rows by one CTA, or a pair, may be.

    PTX ISA 9.0, "Matrix shape"; of pairs what CUTLASS takes (cute/arch/mma_sm100_umma.hpp).
    """
    if ctas == PAIR:
        return range(32, 257, 32)
    if lhs == "i8":
        return _WGMMA_INTEGER_NS if m == 64 else range(16, 257, 16)
    return range(8, 257, 8) if m == 64 else range(16, 257, 16)


@lru_cache(maxsize=256)
def tensor_instructions(m: int, n: int, ctas: int = 1) -> tuple[MmaInstruction, ...]:
    """The instructions of tensor memory that are `m` by `n`, of one CTA or of a pair."""
    rows: list[MmaInstruction] = []
    if m not in (PAIR_MS if ctas == PAIR else TENSOR_MS):
        return ()
    for kind, lhs, rhs, acc, k in _TENSOR_KINDS:
        if n not in tensor_ns(m, lhs, ctas):
            continue
        tf32 = kind == "tf32"
        types = "tf32.tf32" if tf32 else ".".join(_PTX_NAMES.get(t, t) for t in (lhs, rhs))
        family = "tcgen05.pair" if ctas == 2 else "tcgen05"
        name = f"{family}.m{m}n{n}k{k}.{_PTX_NAMES.get(acc, acc)}.{types}"
        rows.append(
            MmaInstruction(
                name,
                m,
                n,
                k,
                lhs,
                rhs,
                acc,
                Feature.TCGEN05_I8 if kind == "i8" else Feature.TCGEN05,
                tf32=tf32,
                threads=1,
                kind=kind,
                ctas=ctas,
            )
        )
    return tuple(rows)


def scaled_widths() -> Sequence[int]:
    """Lists how wide tcgen05.mma with block scales may be (PTX ISA 9.0, "Matrix shape")."""
    return range(16, 257, 16)


@lru_cache(maxsize=256)
def scaled_instructions(n: int) -> tuple[MmaInstruction, ...]:
    """The instructions of tensor memory with block scales that are 128 by `n`."""
    if n not in scaled_widths():
        return ()
    return tuple(
        MmaInstruction(
            f"tcgen05.{family}.m128n{n}k{k}.f32.{lhs}.{rhs}",
            128,
            n,
            k,
            _ELEMENTS[lhs],
            _ELEMENTS[rhs],
            "f32",
            Feature.TCGEN05,
            threads=1,
            kind=kind,
            scale=scale,
            scale_block=block,
            formats=(lhs, rhs),
            pack=k // 32,
        )
        for family, kind, lhs, rhs, k, scale, block in _SCALED_KINDS
        if "i8" not in (_ELEMENTS[lhs], _ELEMENTS[rhs]) or k == 64
    )


def find_instruction(name: str) -> MmaInstruction:
    """The row of that name. ValueError names the known ones."""
    wide, tensor = _WGMMA_NAME.fullmatch(name), _TENSOR_NAME.fullmatch(name)
    rows: Iterable[MmaInstruction] = _wgmma_rows(int(wide[1])) if wide else ()
    if tensor:
        rows = tensor_instructions(int(tensor[2]), int(tensor[3]), 2 if tensor[1] else 1)
    scaled = _SCALED_NAME.fullmatch(name)
    if scaled:
        rows = scaled_instructions(int(scaled[1]))
    found = _BY_NAME.get(name) or next((row for row in rows if row.name == name), None)
    if found is None:
        families = (
            "wgmma.m64n<8 to 256>k<k>.<acc>.<lhs>.<rhs>, of tf32 .paired",
            "tcgen05.m<64, 128>n<8 to 256>k<k>.<acc>.<lhs>.<rhs>",
            "tcgen05.mx.m128n<16 to 256>k<32, 64>.f32.<lhs>.<rhs>",
            "tcgen05.nv.m128n<16 to 256>k64.f32.e2m1.e2m1",
            "tcgen05.pair.m<128, 256>n<32 to 256>k<k>.<acc>.<lhs>.<rhs>",
        )
        known = ", ".join([*_BY_NAME, *families])
        raise ValueError(f"unknown instruction {name!r}; known: {known}")
    return found


def select_warpgroup_instruction(
    target: Target, n: int, lhs: str, rhs: str, acc: str, *, tf32: bool, paired: bool = False
) -> MmaInstruction | None:
    """The target's warpgroup instruction that is `n` columns wide, None if it has none."""
    if not target.supports(Feature.WGMMA) or n not in WGMMA_NS:
        return None
    for row in _wgmma_rows(n):
        found = (row.lhs, row.rhs, row.acc, row.tf32, row.paired)
        if found == (lhs, rhs, acc, tf32, paired):
            return row
    return None


def select_tensor_instruction(
    target: Target, m: int, n: int, lhs: str, rhs: str, acc: str, *, tf32: bool, ctas: int = 1
) -> MmaInstruction | None:
    """The target's `m` by `n` instruction with its accumulator in tensor memory, None if it has
    none. `m` is 128 or 64, of a pair of CTAs 256 or 128."""
    for row in tensor_instructions(m, n, ctas):
        fits = (row.lhs, row.rhs, row.acc, row.tf32) == (lhs, rhs, acc, tf32)
        if fits and row.feature is not None and target.supports(row.feature):
            return row
    return None


def select_scaled_instruction(
    target: Target, n: int, lhs: str, rhs: str, scale: str, scale_block: int
) -> MmaInstruction | None:
    """The target's 128 by `n` instruction of tensor memory for operands of the formats `lhs` and
    `rhs` whose every `scale_block` numbers along k have a scale of type `scale`."""
    rows = scaled_instructions(n) if target.supports(Feature.TCGEN05) else ()
    return _with_scales(rows, (lhs, rhs), scale, scale_block)


def select_scaled_fragments(
    target: Target, lhs: str, rhs: str, scale: str, scale_block: int
) -> MmaInstruction | None:
    """The target's instruction with scales whose operands are fragments, for the same formats; None
    without."""
    rows = SCALED_INSTRUCTIONS if target.supports(Feature.MMA_SYNC_BLOCK_SCALE) else ()
    return _with_scales(rows, (lhs, rhs), scale, scale_block)


def _with_scales(
    rows: Iterable[MmaInstruction], formats: tuple[str, str], scale: str, block: int
) -> MmaInstruction | None:
    wanted = (formats, scale, block)
    return next((r for r in rows if (r.formats, r.scale, r.scale_block) == wanted), None)


def select_instruction(
    target: Target, lhs: str, rhs: str, acc: str, *, tf32: bool
) -> MmaInstruction | None:
    """The first instruction of the target for these element types, None if it has none."""
    for row in INSTRUCTIONS:
        fits = (row.lhs, row.rhs, row.acc, row.tf32) == (lhs, rhs, acc, tf32)
        if fits and (row.feature is None or target.supports(row.feature)):
            return row
    return None
