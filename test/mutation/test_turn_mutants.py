"""Every way to get turns wrong is found by the emulator."""

from __future__ import annotations

import pytest
from turn_mutants import BREAKS, TurnsProduct


@pytest.fixture(scope="module")
def product() -> TurnsProduct:
    return TurnsProduct(3)


@pytest.mark.parametrize("mode", ["check", "late"])
def test_the_unbroken_product_passes(product: TurnsProduct, mode: str) -> None:
    assert product.judge(product.copy(), mode) == ("survived", "")


def test_all_are_killed(product: TurnsProduct) -> None:
    verdicts = list(product.mutants())
    assert [v for v in verdicts if v.outcome != "finding"] == []
    # one op in each copy of the role, but the barrier itself is made once
    assert len(verdicts) == 2 * len(BREAKS) - 2
