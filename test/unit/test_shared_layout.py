"""Shared-memory layouts: text, offsets, swizzles, against formulas written out here."""

from __future__ import annotations

import re
from itertools import product
from math import prod

import pytest
import tensor_layouts
from hypothesis import given
from hypothesis import strategies as st

from tilec.hardware.shared_layout import SharedLayout, parse_shared_layout, strided, swizzled

SWIZZLES = st.one_of(st.none(), st.tuples(st.integers(1, 3), st.integers(2, 5), st.integers(3, 4)))


@st.composite
def shared_layouts(draw: st.DrawFn) -> SharedLayout:
    part = st.tuples(st.integers(1, 4), st.integers(0, 300))
    dims = draw(st.lists(st.lists(part, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3))
    return SharedLayout(tuple(dims), draw(SWIZZLES))


@given(shared_layouts())
def test_text_round_trip(layout: SharedLayout) -> None:
    assert parse_shared_layout(str(layout)) == layout


@pytest.mark.parametrize(
    "text",
    ["(128,64):(64,1)", "S<3,4,3> o (64,(64,2)):(64,(1,4096))", "(8):(1)", "((2,4)):((1,8))"],
)
def test_reads_what_it_prints(text: str) -> None:
    assert str(parse_shared_layout(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected e.g. '(128,64):(64,1)'"),
        ("(8)", "expected e.g. '(128,64):(64,1)'"),
        ("8:1", "malformed shared layout '8:1'"),
        ("(8):1", "malformed shared layout"),
        ("(8:(1)", "malformed shared layout"),
        ("((8):(1)", "malformed shared layout"),
        ("(((8,2))):((1,8))", "malformed shared layout"),
        ("(a):(1)", "malformed shared layout"),
        ("(8,8):(1)", "sizes and strides differ in structure"),
        ("((8,2)):(1)", "sizes and strides differ in structure"),
        ("(0):(1)", "sizes must be positive"),
        ("S<3,99999999999,3> o (8):(1)", "bits above the 18 of an address"),
        ("S<3,4> o (8):(1)", "malformed shared layout"),
        ("S<3,4,3> (8):(1)", "malformed shared layout"),
        ("(8):(-1)", "malformed shared layout"),
    ],
)
def test_what_does_not_read_says_why(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_shared_layout(text)


@given(shared_layouts())
def test_offsets_are_digits_times_strides(layout: SharedLayout) -> None:
    assert layout.shape == tuple(prod(size for size, _ in parts) for parts in layout.dims)
    offsets = []
    for at in product(*map(range, layout.shape)):
        expected = 0
        for coordinate, parts in zip(at, layout.dims, strict=True):
            for size, stride in parts:
                expected += coordinate % size * stride
                coordinate //= size
        assert layout.offset(at) == expected
        offsets.append(expected)
    assert layout.span == max(offsets) + 1


@given(shared_layouts(), st.data())
def test_agrees_with_cute_s_algebra(layout: SharedLayout, data: st.DataObject) -> None:
    shape = tuple(tuple(size for size, _ in parts) for parts in layout.dims)
    stride = tuple(tuple(stride for _, stride in parts) for parts in layout.dims)
    cute = tensor_layouts.Layout(shape, stride)
    for _ in range(8):
        at = tuple(data.draw(st.integers(0, size - 1)) for size in layout.shape)
        # CuTe counts with the first dimension fastest.
        index = sum(c * prod(layout.shape[:dim]) for dim, c in enumerate(at))
        assert cute(index) == layout.offset(at)


@given(st.integers(0, 1 << 20), st.integers(1, 3), st.integers(2, 5), st.integers(3, 4))
def test_swizzle_is_cute_s(address: int, bits: int, base: int, shift: int) -> None:
    expected = tensor_layouts.Swizzle(bits, base, shift)(address)
    assert swizzled(address, (bits, base, shift)) == expected
    assert swizzled(expected, (bits, base, shift)) == address


@pytest.mark.parametrize(("bits", "mask"), [(3, 7), (2, 3), (1, 1)])
@given(address=st.integers(0, 1 << 18))
def test_swizzles_of_tma_and_wgmma(bits: int, mask: int, address: int) -> None:
    # PTX ISA, "Shared memory matrix layout": address bits 7 and up into bits 4 and up.
    assert swizzled(address, (bits, 4, 3)) == address ^ (((address >> 7) & mask) << 4)


@given(shared_layouts(), st.sampled_from([1, 2, 4, 8]), st.integers(0, 64))
def test_address_is_the_swizzled_byte_offset(layout: SharedLayout, size: int, pages: int) -> None:
    base = pages * 1024
    at = tuple(s - 1 for s in layout.shape)
    plain = base + layout.offset(at) * size
    expected = plain if layout.swizzle is None else swizzled(plain, layout.swizzle)
    assert layout.address(at, size, base) == expected


def test_strided_is_a_plain_layout() -> None:
    layout = strided((4, 8), (10, 1))
    assert str(layout) == "(4,8):(10,1)"
    assert layout.offset((3, 7)) == 37
    assert layout.span == 38


@given(st.integers(1, 8).map(lambda n: n * 8), st.sampled_from([1, 2, 4]))
def test_a_swizzled_panel_holds_every_element_once(rows: int, size: int) -> None:
    layout = parse_shared_layout(f"S<3,4,3> o ({rows},{128 // size}):({128 // size},1)")
    addresses = {layout.address(at, size) for at in product(*map(range, layout.shape))}
    assert addresses == set(range(0, rows * 128, size))
