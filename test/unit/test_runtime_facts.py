"""Facts: what is observed of arrays, and that a kernel never gets arrays that break its own."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.executable.kernel import CompiledKernel, Facts, Parameter
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import (
    INDEX_LIMIT_32,
    check,
    check_array,
    index_bits,
    observe,
    observe_parameter,
)


def view(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "f32", pointer: int = 4096
) -> ArrayView:
    return ArrayView(pointer, shape, strides, dtype, (CUDA, 0))


@pytest.mark.parametrize(
    ("array", "facts"),
    [
        (view((8, 16), (16, 1)), Facts(16, (4, 4), (4, 1))),
        (view((7, 16), (17, 1)), Facts(16, (1, 4), (1, 1))),
        (view((8, 16), (16, 1), "f16"), Facts(16, (8, 8), (8, 1))),
        (view((8, 12), (12, 1), "f16"), Facts(16, (8, 4), (4, 1))),
        (view((4, 14), (14, 1), "f16"), Facts(16, (1, 2), (2, 1))),
        (view((4, 15), (15, 1), "f16"), Facts(16, (1, 1), (1, 1))),
        (view((6, 4), (1, 6), "f16"), Facts(16, (2, 1), (1, 2))),
        (view((7, 10), (-10, 1), "f32"), Facts(16, (1, 2), (1, 1))),
        (view((16, 8), (16, 1), "i8"), Facts(16, (16, 8), (16, 1))),
        (view((8, 6), (6, 1), "i8"), Facts(16, (1, 1), (1, 1))),
        (view((2,), (2,), "f64"), Facts(16, (2,), (2,))),
        (view((8,), (1,), "f32", 4100), Facts(4, (4,), (1,))),
        (view((8,), (1,), "f64", 4104), Facts(8, (2,), (1,))),
        (view((9, 3), (0, -4)), Facts(16, (1, 1), (4, 1))),
        (view((0, 3), (3, 5)), Facts(16, (4, 1), (4, 4))),
        (view((1, 3), (3, 5)), Facts(16, (1, 1), (4, 1))),
        (view((), ()), Facts(16, (), ())),
    ],
)
def test_observed_buckets(array: ArrayView, facts: Facts):
    assert observe(array) == facts


def test_unit_strides_become_static_wherever_they_are():
    parameter = observe_parameter("a", view((8, 16), (1, 8), "bf16"))
    assert parameter == Parameter(
        "a", "array", "bf16", (None, None), (1, None), Facts(16, (8, 8), (1, 8))
    )
    assert hash(parameter) == hash(observe_parameter("a", view((16, 8), (1, 16), "bf16")))


@pytest.mark.parametrize(
    ("shape", "strides", "units"),
    [
        ((1, 8), (1, 1), (None, 1)),  # a column, transposed
        ((8, 1), (1, 1), (1, None)),
        ((1, 4, 8), (1, 8, 1), (None, None, 1)),
        ((6, 4), (1, 1), (1, 1)),  # windows: both lead somewhere
        ((1, 1), (1, 1), (None, 1)),
        ((1, 8), (3, 2), (1, None)),  # a row of every second element
        ((4, 8), (16, 2), (None, None)),
        ((0, 8), (3, 5), (None, 1)),
        ((0, 8), (1, 4), (1, None)),
        ((), (), ()),
    ],
)
def test_a_stride_that_leads_nowhere_is_no_unit_beside_another(
    shape: tuple[int, ...], strides: tuple[int, ...], units: tuple[int | None, ...]
):
    array = view(shape, strides, "bf16")
    parameter = observe_parameter("a", array)
    assert parameter.strides == units
    check_array(parameter, array)


def test_index_bits_follow_the_bytes_spanned():
    limit = INDEX_LIMIT_32
    assert index_bits([view((limit - 1,), (1,), "i8")]) == 32
    assert index_bits([view((limit,), (1,), "i8")]) == 64
    assert index_bits([view((limit // 4,), (1,), "f32")]) == 64
    assert index_bits([view((2, 4), (limit // 4, 1), "f32")]) == 64
    assert index_bits([view((2, 4), (-(limit // 4), 1), "f32")]) == 64
    assert index_bits([view((1, 4), (limit, 1), "f32")]) == 32
    assert index_bits([view((2**40, 0), (1, 1), "f32")]) == 64
    assert index_bits([view((2**40,), (0,), "f32")]) == 64
    assert index_bits([view((4,), (1,)), view((limit,), (1,), "i8")]) == 64
    assert index_bits([]) == 32


PARAMETER = Parameter(
    "a", "array", "f16", (None, 64), (None, 1), Facts(align=16, sizes=(8, 1), strides=(8, 1))
)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (view((8, 64), (64, 1), "f32"), "expected dtype f16, found f32"),
        (view((8,), (1,), "f16"), "expected 2 dimensions, found 1 (shape (8,))"),
        (view((8, 63), (64, 1), "f16"), "expected size 64 on axis 1, found 63"),
        (view((8, 64), (64, 2), "f16"), "expected stride 1 on axis 1, found 2"),
        (
            view((9, 64), (64, 1), "f16"),
            "expected a size on axis 0 that is a multiple of 8, found 9",
        ),
        (view((8, 64), (65, 1), "f16"), "a stride on axis 0 that is a multiple of 8, found 65"),
        (
            view((8, 64), (64, 1), "f16", 4098),
            "expected a pointer that is a multiple of 16 bytes, found address 0x1002",
        ),
    ],
)
def test_a_violated_fact_names_argument_expectation_and_finding(array: ArrayView, message: str):
    with pytest.raises(
        ArgumentError, match=re.escape("argument 'a': ") + ".*" + re.escape(message)
    ):
        check_array(PARAMETER, array)


def test_what_is_written_has_memory_for_each_element():
    """A broadcast view has not; where the axis leads nowhere, it is none."""
    broadcast = view((8, 64), (0, 1), "f16")
    check_array(PARAMETER, broadcast)
    check_array(PARAMETER, view((0, 64), (0, 1), "f16"), is_written=True)
    with pytest.raises(ArgumentError, match="each element that is written, found stride 0 on axis"):
        check_array(PARAMETER, broadcast, is_written=True)


def test_how_pointers_walk_is_no_view():
    """As of fla's `fused_addcmul_fwd_kernel`: T + T_OFFSET rows apart, of which one was 0."""
    walked = replace(view((1 << 30, 64), (0, 1), "f16"), memory=(0, 4096))
    check_array(PARAMETER, walked, is_written=True)


def test_the_fitting_array_passes():
    check_array(PARAMETER, view((16, 64), (72, 1), "f16"))


def test_strides_that_lead_nowhere_are_not_looked_at():
    unit = Parameter("a", "array", "f16", (None, None), (None, 1), Facts(16, (1, 1), (8, 1)))
    check_array(unit, view((4, 1), (8, 99), "f16"))
    check_array(unit, view((1, 4), (99, 1), "f16"))
    check_array(unit, view((0, 4), (99, 99), "f16"))
    with pytest.raises(ArgumentError, match="expected stride 1 on axis 1, found 99"):
        check_array(unit, view((4, 2), (8, 99), "f16"))


def kernel(*parameters: Parameter, bits: int = 32) -> CompiledKernel:
    return CompiledKernel("k", "sm_80", "", parameters, None, 32, 0, bits)


def test_index_range_is_checked_at_launch():
    parameter = observe_parameter("big", view((8,), (1,), "i8"))
    small, large = view((16,), (1,), "i8"), view((2**31,), (1,), "i8")
    check(kernel(parameter), {"big": small})
    check(kernel(parameter, bits=64), {"big": large})
    with pytest.raises(
        ArgumentError, match=r"'big': expected less than 2 GiB .*shape \(2147483648"
    ):
        check(kernel(parameter), {"big": large})


def test_scalars_are_not_looked_at():
    check(kernel(Parameter("n", "scalar", "i32")), {"n": 3})


dimensions = st.lists(st.tuples(st.integers(0, 64), st.integers(-64, 64)), min_size=0, max_size=3)
arrays = st.builds(
    lambda axes, dtype, pointer: view(
        tuple(size for size, _ in axes), tuple(stride for _, stride in axes), dtype, pointer * 8
    ),
    dimensions,
    st.sampled_from(["f64", "f32", "f16", "i8"]),
    st.integers(0, 64),
)


@given(arrays)
def test_an_array_satisfies_what_was_observed_of_it(array: ArrayView):
    check(kernel(observe_parameter("a", array), bits=index_bits([array])), {"a": array})


@given(arrays, arrays)
def test_facts_that_pass_are_true(first: ArrayView, second: ArrayView):
    parameter = observe_parameter("a", first)
    try:
        check_array(parameter, second)
    except ArgumentError:
        return
    facts = parameter.facts
    assert second.pointer % facts.align == 0
    assert all(s % d == 0 for s, d in zip(second.shape, facts.sizes, strict=True))
    if 0 in second.shape:
        return
    for axis in range(len(second.shape)):
        if second.shape[axis] > 1:
            assert second.strides[axis] % facts.strides[axis] == 0
            assert parameter.strides[axis] in (None, second.strides[axis])


@given(arrays)
def test_extent_bounds_every_element(array: ArrayView):
    low, high = array.extent()
    offsets = [
        sum(i * s for i, s in zip(index, array.strides, strict=True)) * array.element_bytes
        for index in np.ndindex(*(min(size, 5) for size in array.shape))
    ]
    if 0 in array.shape:
        assert (low, high) == (0, 0)
        return
    corners = [
        sum(i * s for i, s in zip(index, array.strides, strict=True)) * array.element_bytes
        for index in np.ndindex(*(2,) * len(array.shape))
        for index in [tuple(i * (n - 1) for i, n in zip(index, array.shape, strict=True))]
    ]
    assert (low, high) == (min(corners), max(corners) + array.element_bytes)
    assert low <= min(offsets) <= max(offsets) < high
