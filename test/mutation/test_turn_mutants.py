"""Every way to get turns wrong is found by the emulator."""

from __future__ import annotations

import pytest
from turn_mutants import BREAKS, TurnsProduct

MADE_ONCE = ("counts one arrival more", "counts one arrival less")
"""The barrier is; all else stands in both copies of the role."""


@pytest.fixture(scope="module")
def product() -> TurnsProduct:
    return TurnsProduct(3)


@pytest.mark.parametrize("mode", ["check", "late"])
def test_the_unbroken_product_passes(product: TurnsProduct, mode: str) -> None:
    assert product.judge(product.copy(), mode) == ("survived", "")


def test_all_are_killed(product: TurnsProduct, every_mutant: bool) -> None:
    verdicts = list(product.mutants(everything=every_mutant))
    assert [v for v in verdicts if v.outcome != "finding"] == []
    kinds = {v.mutation.name for v in verdicts}
    assert kinds == {kind for kind, _, _ in BREAKS}
    made = sum(1 if kind in MADE_ONCE else 2 for kind in kinds)
    assert len(verdicts) == (made if every_mutant else len(kinds))
