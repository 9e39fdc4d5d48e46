"""What is drawn for a GPU compiles, or is refused with a diagnostic, one of each kind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drawn_demands import Drawn, compile_drawn, draw

CASES = draw(seed=3, count=60)
KERNELS = sorted({drawn.variant.kernel for drawn in CASES})


def test_a_seed_draws_the_same_again() -> None:
    assert draw(seed=3, count=60) == CASES
    assert draw(seed=4, count=60) != CASES


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_of_each_kernel_compiles(kernel: str, tmp_path: Path) -> None:
    drawn = [one for one in CASES if one.variant.kernel == kernel]
    entry = next(
        found for one in sorted(drawn, key=_size) if "file" in (found := _built(one, tmp_path))
    )
    assert entry["kernel"] == kernel
    assert (tmp_path / entry["file"]).exists()


def _built(drawn: Drawn, folder: Path) -> dict:
    return compile_drawn((drawn, str(folder)))


def _size(drawn: Drawn) -> int:
    """Small tiles compile fast."""
    settings = dict(drawn.variant.constants or ())
    return settings.get("BM", 0) * settings.get("BN", 0)
