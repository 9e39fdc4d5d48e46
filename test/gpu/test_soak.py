"""What a soak draws: the same for a seed, products that once stopped a GPU, and every kind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import soak_cases
from drawn_demands import Drawn
from layer_cases import LayerCase
from ops_compiler import chosen_tiles, compile_ops
from soak import compile_soaked


@pytest.fixture(scope="module")
def cases() -> list[Drawn]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soak_cases, "SHAPES", 40)
        found, products = soak_cases.soak_cases(seed=7, count=90)
        assert soak_cases.soak_cases(seed=7, count=90) == (found, products)
    assert 0 < products["taken"] <= products["plans"]
    return found


def test_the_known_product_is_in_clusters_that_wait_at_their_end(
    cases: list[Drawn], tmp_path: Path
) -> None:
    known = cases[: len(soak_cases.KNOWN)]
    assert [chosen_tiles(one.case, one.target).cluster for one in known] == [(4, 1)]
    compiled, _ = compile_ops(known[0].case, known[0].target, tmp_path / known[0].file)
    assert compiled.ptx.count("barrier.cluster.arrive") == 1
    assert compiled.ptx.count("mbarrier.try_wait.parity.relaxed.cluster") == 2


def test_layers_of_every_kind_are_drawn(cases: list[Drawn]) -> None:
    layers = {one.case.kernel for one in cases if isinstance(one.case, LayerCase)}
    assert {"attention_backward", "mixture_of_experts", "histogram", "rms_norm"} <= layers


def test_a_histogram_compiles(cases: list[Drawn], tmp_path: Path) -> None:
    drawn = next(one for one in cases if one.variant.kernel == "histogram")
    entry = compile_soaked((drawn, str(tmp_path)))
    assert entry is not None
    assert (tmp_path / entry["steps"][0]).exists()
