"""`tilec.ops.matmul` on the emulator: operands that are copied first, aligned or along k."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from copied_operands import copy_from
from product_checks import E4M3, check, draw, wide

import tilec
from tilec.costs.rates import sm_90a
from tilec.costs.work import Unit
from tilec.ops import aligned_operands, multiply_plan, product_launch
from tilec.runtime.arrays import describe


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")


@pytest.mark.parametrize("order", ["CC", "CF", "FC", "FF"])
def test_unaligned_operands_are_copied_where_that_pays(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of 35 or 33 elements of two bytes begin anywhere; those of the copies at 128 bytes."""
    copy_from(monkeypatch, 0, 21)
    copies = []

    def copy(name: str, *others: Any) -> Any:
        copies.append((name, aligned_operands.aligned_copy(name, *others)))
        return copies[-1][1]

    monkeypatch.setattr(product_launch, "aligned_copy", copy)
    rng = np.random.default_rng(12)
    a = np.asarray(draw(rng, (21, 35), np.float16), order=order[0])
    b = np.asarray(draw(rng, (35, 33), np.float16), order=order[1])
    check(tilec.ops.matmul(a, b), wide(a) @ wide(b), np.float16)
    assert [name for name, *_ in copies] == ["a", "b"]
    for (_, copy), letter in zip(copies, order, strict=True):
        assert (copy.made.shape, copy.made.strides) == (copy.view.shape, copy.view.strides)
        assert copy.view.strides == ((64, 1) if letter == "C" else (1, 64))
        assert copy.made.pointer % 16 == 0


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "pointer", "expected"),
    [
        (2048, 2047, 2047, np.float16, 1024, ("a", "b")),
        (2048, 2048, 2047, np.float16, 1024, ("a",)),
        (2048, 2047, 2048, np.float16, 1024, ("b",)),
        (2048, 2048, 2048, np.float16, 1024, ()),
        (2048, 2048, 2048, np.float16, 1026, ("a", "b")),
        (1024, 1023, 1023, np.float16, 1024, ()),  # too small
        (16, 16383, 16383, np.float16, 1024, ("a",)),  # each element of b is read but once
        (2048, 2047, 2047, np.float32, 1024, ()),  # FMA units
    ],
)
def test_which_operands_are_copied(
    m: int, n: int, k: int, dtype: Any, pointer: int, expected: tuple[str, ...]
) -> None:
    some = describe(np.zeros((1, 1), dtype))
    views = {
        name: replace(some, shape=shape, strides=(shape[1], 1), pointer=pointer)
        for name, shape in (("a", (m, k)), ("b", (k, n)))
    }
    options = multiply_plan.Options(None, False, None, None, "ieee")
    plan = multiply_plan.make_plan(views, options)
    copied = aligned_operands.operands_to_copy(plan, views, Unit.WARPGROUPS, sm_90a.RATES)
    assert copied == dict.fromkeys(expected, 1)


@pytest.mark.share(2)
@pytest.mark.parametrize("order", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize(
    ("dtype", "target", "kept"),
    [
        (E4M3, "sm_90a", 0),
        (np.int8, "sm_80", 0),
        (np.float32, "sm_90a", 1),
        (np.float32, "sm_80", 2),
        (np.float16, "sm_90a", 2),
    ],
)
def test_operands_that_lie_across_k_are_transposed_where_that_pays(
    dtype: Any, target: str, kept: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once in front, not for every tile; past both ends of the copying kernel's tiles. `kept`: how
    many may stay as they are."""
    monkeypatch.setenv("TILEC_TARGET", target)
    copy_from(monkeypatch, 0, 48)
    copies = {}

    def copy(name: str, *others: Any) -> Any:
        copies[name] = aligned_operands.aligned_copy(name, *others)
        return copies[name]

    monkeypatch.setattr(product_launch, "aligned_copy", copy)
    rng = np.random.default_rng(18)
    a = np.asarray(draw(rng, (48, 144), dtype), order=order[0])
    b = np.asarray(draw(rng, (144, 80), dtype), order=order[1])
    named = {"precision": "tf32"} if dtype is np.float32 else {}
    result = {E4M3: np.float32, np.int8: np.int32}.get(dtype, dtype)
    found = tilec.ops.matmul(a, b, out_dtype=result, **named)
    check(found, wide(a) @ wide(b), result, 2e-3 if named else 0.0)
    across = [name for name, letter, good in zip("ab", order, "CF", strict=True) if letter != good]
    assert list(copies) == across[kept:]
    for name, found in copies.items():
        assert found.view.strides[0 if name == "b" else 1] == 1
