"""The instruction descriptor of tcgen05.mma: shape, element types, flags (PTX ISA 9.7.16.4.2).

Dense kinds: [4,6) D (0 f16, 1 f32, 2 s32), [7,10) A and [10,13) B format, [13] and [14] negate,
[15] and [16] MN-major, [17,23) N/8, [24,29) M/16. Block-scaled kinds: [4,6) scale factor id of B,
[23] scale type (0 ue4m3, 1 ue8m0), [27,29) M/128, [29,31) scale factor id of A, [31] K of 96; D is
f32. K is 32 bytes of A.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilec.runtime.emulator.errors import EmulatorError, Place

_EIGHT_BIT = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
FORMATS = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _EIGHT_BIT,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _EIGHT_BIT,
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
BLOCK_SCALED = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (4, 2)}  # scale factors in a row's K
_RESULTS = {"f16": {0: "f16", 1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"}, "tf32": {1: "f32"},
            "i8": {2: "s32"}}  # fmt: skip


@dataclass(frozen=True)
class InstructionDescriptor:
    """Shape and types of one tcgen05.mma; `scale` is "" where there are no scale factors."""

    m: int
    n: int
    a: str
    b: str
    d: str
    negate: bool
    a_mn_major: bool
    b_mn_major: bool
    scale: str = ""
    a_scale_id: int = 0
    b_scale_id: int = 0


def decode_instruction(
    value: int, kind: str, weights: bool, group: int, place: Place
) -> InstructionDescriptor:
    """Raises EmulatorError for what does not exist or is unsupported (sparsity, K of 96)."""
    scaled = kind in BLOCK_SCALED
    formats = FORMATS[kind]
    a, b = value >> 7 & 7, value >> 10 & 7
    m, n = (value >> 24 & 31) << 4, (value >> 17 & 63) << 3
    result = "f32" if scaled else _RESULTS[kind].get(value >> 4 & 3, "")
    if scaled:
        m = (value >> 27 & 3) << 7
    wrong = None
    if value & 0b100:
        wrong = "sparsity is unsupported"
    elif a not in formats or b not in formats:
        wrong = f"operand formats {a}, {b} of kind::{kind} are unsupported"
    elif not result:
        wrong = f"accumulator format {value >> 4 & 3} of kind::{kind} does not exist"
    elif scaled and value >> 31:
        wrong = "K of 96 is unsupported"
    elif not _exists(m, n, weights, group, scaled):
        wrong = f"shape M={m} N={n} does not exist"
    elif (value >> 15 & 3) and not _may_be_mn_major(kind, value, formats):
        wrong = "4- and 6-bit operands must be K-major"
    if wrong:
        raise EmulatorError(f"instruction descriptor {value:#x}: {wrong}", place, "descriptor")
    scale = ("ue4m3", "ue8m0")[value >> 23 & 1] if scaled else ""
    return InstructionDescriptor(
        m, n, formats[a], formats[b], result, bool((value >> 13 ^ value >> 14) & 1),
        bool(value >> 15 & 1), bool(value >> 16 & 1), scale,
        value >> 29 & 3 if scaled else 0, value >> 4 & 3 if scaled else 0,
    )  # fmt: skip


def _exists(m: int, n: int, weights: bool, group: int, scaled: bool) -> bool:
    if group == 2:
        return m in ({256} if scaled else {128, 256}) and 16 <= n <= 256 and n % 16 == 0
    shapes = {128} if scaled else {32, 64, 128} if weights else {64, 128}
    step = 8 if m == 64 or scaled else 16
    return m in shapes and 8 <= n <= 256 and n % step == 0


def _may_be_mn_major(kind: str, value: int, formats: dict[int, str]) -> bool:
    """Only the operands that are MN-major count."""
    names = [formats[value >> 7 & 7]] * (value >> 15 & 1)
    names += [formats[value >> 10 & 7]] * (value >> 16 & 1)
    return all(name not in ("e2m1", "e2m3", "e3m2") for name in names) and "mxf4" not in kind
