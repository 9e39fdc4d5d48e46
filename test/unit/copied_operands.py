"""Makes `tilec.ops` copy operands of small products, as it does of large ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilec.costs.rates import FITTED, rates_of
from tilec.hardware.target import TARGETS


def copy_from(monkeypatch: pytest.MonkeyPatch, product: int, uses: int) -> None:
    """From `product` M N K and `uses` of a copy on, on every target."""
    for name, target in TARGETS.items():
        rates = replace(rates_of(target), copied_product=product, copied_uses=uses)
        monkeypatch.setitem(FITTED, name, rates)  # type: ignore[arg-type]
