"""Scalar arguments: values, ranges, and the bytes a kernel gets, against ml_dtypes and NumPy."""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.runtime.errors import ArgumentError
from tilec.runtime.scalars import check_scalar, encode
from tilec.terms.dtypes import BY_ARRAY, BY_MLIR

SMALL = {
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


def test_every_dtype_has_a_format_of_its_size():
    for dtype in BY_ARRAY.values():
        assert bool(dtype.packed) != dtype.is_code  # which come in arrays only
        assert dtype.is_code or struct.calcsize(dtype.packed) == dtype.bytes


@pytest.mark.parametrize("dtype", SMALL)
def test_every_value_of_a_small_float_keeps_its_bits(dtype: str):
    bits = BY_MLIR[dtype].bits
    patterns = np.arange(1 << bits, dtype=f"uint{bits}")
    with np.errstate(invalid="ignore"):
        values = patterns.view(SMALL[dtype]).astype(float)
    for pattern, value in zip(patterns, values, strict=True):
        if not math.isnan(value):
            assert encode(dtype, check_scalar("x", dtype, value)) == pattern.tobytes()


@pytest.mark.parametrize("dtype", SMALL)
@given(st.floats(-500, 500) | st.floats(-1e-2, 1e-2) | st.floats(-1e-38, 1e-38))
def test_small_floats_round_to_nearest_even(dtype: str, value: float):
    try:
        found = encode(dtype, check_scalar("x", dtype, value))
    except ArgumentError:
        assert dtype == "f8E4M3FN"
        assert abs(value) > 448
        return
    # ml_dtypes rounds a double through a float first; the neighbours of `value` show it exact.
    kind = SMALL[dtype]
    result = float(np.frombuffer(found, kind)[0])
    code = int.from_bytes(found, "little")
    distances = {code: abs(result - value)}
    for neighbour in (code - 1, code + 1):
        raw = (neighbour % (1 << 8 * len(found))).to_bytes(len(found), "little")
        other = float(np.frombuffer(raw, kind)[0])
        if math.isfinite(other) and (other < 0) == (result < 0):
            distances[neighbour] = abs(other - value)
    nearest = min(distances.values())
    assert distances[code] == nearest
    if list(distances.values()).count(nearest) > 1:
        assert code % 2 == 0


@pytest.mark.parametrize("dtype", SMALL)
def test_not_a_number_stays_one(dtype: str):
    found = np.frombuffer(encode(dtype, check_scalar("x", dtype, math.nan)), SMALL[dtype])
    assert np.isnan(found.astype(float)).all()


def test_infinities():
    assert encode("bf16", -math.inf) == b"\x80\xff"
    assert encode("f8E5M2", math.inf) == b"\x7c"
    assert encode("f32", check_scalar("x", "f32", math.inf)) == struct.pack("<f", math.inf)
    with pytest.raises(ArgumentError, match="argument 'x': inf is too large for f8E4M3FN"):
        check_scalar("x", "f8E4M3FN", math.inf)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("f32", 1, 1.0),
        ("f32", np.float32(0.5), 0.5),
        ("f64", np.int64(3), 3.0),
        ("f32", np.array(2.5), 2.5),
        ("i32", np.int64(-7), -7),
        ("i32", True, 1),
        ("i64", 2**63 - 1, 2**63 - 1),
        ("i8", -128, -128),
        ("i1", 1, True),
        ("i1", np.True_.item(), True),
    ],
)
def test_numbers_of_all_kinds(dtype: str, value: object, expected: float):
    assert check_scalar("x", dtype, value) == expected


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("i32", 2**31, r"argument 'x': 2147483648 is not in the range of i32, -2147483648\.\."),
        ("i32", -(2**31) - 1, r"not in the range of i32"),
        ("i8", 128, r"not in the range of i8, -128\.\.127"),
        ("i1", 2, r"2 is not in the range of i1, 0\.\.1"),
        ("ui16", 65536, r"not in the range of ui16, 0\.\.65535"),
        ("ui64", -1, r"-1 is not in the range of ui64, 0\.\.18446744073709551615"),
        ("i32", 1.0, r"argument 'x': expected an integer \(i32\), found float"),
        ("i32", None, r"expected an integer \(i32\), found NoneType"),
        ("f32", "1.0", r"expected a number \(f32\), found str"),
        ("f32", b"1", r"expected a number \(f32\), found bytes"),
        ("f32", [1.0], r"expected a number \(f32\), found list"),
        ("f32", np.zeros(2), r"expected a number \(f32\), found ndarray"),
        ("f32", 1e39, r"1e\+39 is too large for f32"),
        ("f16", 65520.0, r"65520.0 is too large for f16"),
        ("bf16", 3.4e38 * 1.01, r"too large for bf16"),
        ("f8E4M3FN", 465.0, r"465.0 is too large for f8E4M3FN"),
        ("f64", 10**400, r"is too large for f64"),
    ],
)
def test_what_does_not_fit_is_refused(dtype: str, value: object, message: str):
    with pytest.raises(ArgumentError, match=message):
        check_scalar("x", dtype, value)


def test_a_bit_takes_no_other_numbers():
    assert encode("i1", True) == b"\1"
    with pytest.raises(OverflowError):
        encode("i1", 2)
