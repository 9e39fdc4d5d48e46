"""Every way to get a warp-specialised ring wrong is found by the emulator's check mode."""

from __future__ import annotations

from collections import Counter

import pytest
from role_mutants import BREAKS, RoleProduct

SLOTS = 3
"""More than two: else the slot before a slot is the slot after it."""


@pytest.fixture(scope="module")
def product() -> RoleProduct:
    return RoleProduct(SLOTS)


def test_the_unbroken_product_passes(product: RoleProduct) -> None:
    assert product.judge(product.copy()) == ("survived", "")


def test_all_are_killed_by_the_checker(product: RoleProduct) -> None:
    verdicts = list(product.mutants())
    assert [v for v in verdicts if v.outcome != "finding"] == []
    counts = Counter(v.mutation.name for v in verdicts)
    assert set(counts) == {kind.name for kind in BREAKS}
    # the loader's wait and the reader's; two copies; the arrival in the loop and the one behind it
    assert counts["does not wait"] == counts["copies nothing"] == counts["never gives back"] == 2
    assert counts["takes another slot's bytes"] == 4
