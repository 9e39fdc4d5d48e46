"""What `tilec.ops.matmul` chooses by itself compiles, and its rings have slots."""

from __future__ import annotations

import pytest
from choices import Drawn, draw, main


@pytest.mark.parametrize(
    "product",
    [
        # Odd rows of f32: the tile is rearranged in memory that a ring of two slots left none for.
        Drawn(3608, 6402, 4241, "tf32", "TN"),
        Drawn(3578, 8337, 7136, "tf32", "NN"),
        # One slot, 3.2 ms where two thirds of the tile took 1.8 (H100).
        Drawn(3072, 5386, 16000, "tf32", "TN"),
    ],
    ids=str,
)
def test_large_tiles_that_are_rearranged(product: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    assert product.complaint() is None


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "product",
    [
        # Of one column or row, every stride of which is 1: clusters and turns want tensor copies.
        Drawn(5747, 2184, 1, "f16", "NN"),
        Drawn(267, 40, 1, "f16", "NT"),
        Drawn(667, 13947, 368, "tf32", "NT", has_bias=True),  # once counted as 401 registers of 248
    ],
    ids=str,
)
def test_choices_of_every_target(
    product: Drawn, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    assert product.complaint() is None


@pytest.mark.parametrize(
    "product",
    [
        Drawn(7616, 2240, 1, "bf16", "TT"),
        Drawn(1, 7616, 3, "f16", "TN"),
        Drawn(1, 1, 1, "f8", "NN"),
    ],
    ids=str,
)
def test_rows_and_columns(product: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose strides are 1 twice, of which one leads nowhere."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    assert product.complaint() is None


def test_drawn_choices_compile(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few; the command draws as many as one likes."""
    monkeypatch.setenv("TILEC_TARGET", "")  # which the command sets
    assert main(["--seed", "3", "--count", "4"]) == 0
    assert "4 products of seed 3 for sm_90a: 0 wrong" in capsys.readouterr().out
    assert list(draw(3, 4, 512)) == list(draw(3, 4, 512))
