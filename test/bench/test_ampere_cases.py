"""The groups of Ampere products: names that tell apart, arrays with the pitch they promise."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from ampere_build import entry
from ampere_cases import COPIED, Case, Variant, groups


def test_names_tell_cases_and_variants_apart() -> None:
    for cases in groups().values():
        assert len({case.name for case in cases}) == len(cases)
        for case in cases:
            labels = {variant.label for variant in case.variants}
            assert len(labels) == len(case.variants)


def test_rows_lie_a_multiple_of_the_pitch_apart() -> None:
    case = Case("bf16", "TN", (65, 33, 49), (), 8)
    a, b, c = case.arrays()
    assert (a.shape, a.strides) == ((65, 49), (56, 1))
    assert (b.shape, b.strides) == ((49, 33), (1, 56))
    assert (c.shape, c.strides) == ((65, 33), (40, 1))
    assert case.arrays(64)[0].strides == (64, 1)


def test_only_unaligned_operands_are_copied(tmp_path: Path) -> None:
    variant = Variant((32, 32, 32), 2, 4, COPIED)
    found = entry(Case("bf16", "NN", (64, 64, 72), (variant,)), variant, tmp_path)
    assert found["copies"] == {}
    found = entry(Case("bf16", "NN", (64, 64, 71), (variant,)), variant, tmp_path)
    assert {name: copy["pitch"] for name, copy in found["copies"].items()} == {"a": 128}
    files = {found["file"], *(copy["file"] for copy in found["copies"].values())}
    assert files <= {file.name for file in tmp_path.iterdir()}
