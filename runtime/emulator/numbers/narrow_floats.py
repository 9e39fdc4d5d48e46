"""4- and 6-bit floats and 8-bit scale factors of tcgen05 (PTX ISA 9.7.16.4, 9.7.16.9, 5.2.3).

Where a kind has 8-bit containers, shared memory holds 16 elements in the first 8 (4-bit) or 12
(6-bit) bytes of every 16, the rest is padding (.b4x16_p64, .b6x16_p32). In tensor memory a 4-bit
element stands in bits 2..5 of its byte, a 6-bit one in bits 0..5.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6}
_DTYPES = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
}
_SHIFT = {"e2m1": 2, "e2m3": 0, "e3m2": 0}


def table_of(kind: str) -> np.ndarray:
    """The float32 value of every code."""
    count = 1 << BITS.get(kind, 8)
    codes = np.arange(count, dtype=np.uint8)
    if kind == "ue4m3":
        codes &= 0x7F  # unsigned: the sign bit is not looked at
    return codes.view(_DTYPES[kind]).astype(np.float32)


_TABLES = {kind: table_of(kind) for kind in _DTYPES}


def scale_values(codes: np.ndarray, kind: str) -> np.ndarray:
    """float32 of ue8m0 or ue4m3 scale factors."""
    return _TABLES[kind][codes]


def padded_codes(raw: np.ndarray, kind: str) -> np.ndarray:
    """Bytes (..., 16) of padded shared memory to 16 codes each."""
    return _unpacked(raw[..., : 2 * BITS[kind]], BITS[kind])


def _unpacked(raw: np.ndarray, bits: int) -> np.ndarray:
    """A little-endian stream of `bits`-bit codes."""
    flat = np.unpackbits(raw, axis=-1, bitorder="little")
    groups = flat.reshape(*raw.shape[:-1], -1, bits)
    weights = (1 << np.arange(bits)).astype(np.uint8)
    return (groups * weights).sum(-1, dtype=np.uint8)


def padded_values(raw: np.ndarray, kind: str) -> np.ndarray:
    """Bytes (..., 16) of padded shared memory to 16 float32 each."""
    return _TABLES[kind][padded_codes(raw, kind)]


def dense_values(raw: np.ndarray) -> np.ndarray:
    """Bytes of e2m1 pairs, the low half first, to twice as many float32."""
    return _TABLES["e2m1"][_unpacked(raw, 4)]


def container_values(raw: np.ndarray, kind: str) -> np.ndarray:
    """Bytes of tensor memory, one element each, to float32."""
    mask = (1 << BITS[kind]) - 1
    return _TABLES[kind][raw >> _SHIFT[kind] & mask]


def containers(raw: np.ndarray, kind: str) -> np.ndarray:
    """Bytes (..., 16) of padded shared memory to 16 bytes of tensor memory."""
    return padded_codes(raw, kind) << _SHIFT[kind]
