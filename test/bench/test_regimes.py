"""Configurations, the cases in regimes, and the table of what was measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from case_sets import IN_REGIMES, SETS
from configurations import label_of, sweep, variant_of
from layer_cases import LayerCase
from product_cases import OPS, ProductCase, hopper_cases
from regime_results import fastest, ratio, table
from variant_compiler import KERNELS, artefact_key, specialized

CASES = [case for name in IN_REGIMES for case in SETS[name]()]


def record(goal: float, **microseconds: float) -> dict:
    """Peers named like `tilec_default=10.0`; `_` in them is a space."""
    times = {name.replace("_", " "): {"us": us} for name, us in microseconds.items()}
    return {
        **{"case": "bf16 4096^3 TN", "kernel": "product", "flops": 10**12, "anchor": "torch"},
        **{"goals": {"burst": goal}, "rivals": ["triton gluon", "triton"]},
        "untuned": ["tilec default", "tilec ops"],
        "regimes": {"burst": times},
    }


def test_names_are_unique_and_no_case_is_part_of_anothers() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    square = [case.name for case in hopper_cases() if case.name.startswith("bf16 4096^3 TN")]
    assert square == ["bf16 4096^3 TN"]
    assert not [name for name in names if "bf16 4096^3 TN" in name and name not in square]


def test_variants_have_kernels_and_labels_of_their_own() -> None:
    for case in CASES:
        labels = [variant.label for variant in case.variants]
        assert labels[0] == "default"
        assert len(set(labels)) == len(labels)
        if not isinstance(case, LayerCase):  # their steps name kernels: test_layer_cases.py
            assert {variant.kernel for variant in case.variants} <= {OPS, *KERNELS}


def test_a_sweep_is_every_combination() -> None:
    found = sweep(["BM=64,128", "num_warps=4", "WARP_SPECIALIZE=True,None", "cluster=2x1"])
    assert len(found) == 4
    last = {"BM": 128, "num_warps": 4, "WARP_SPECIALIZE": None, "cluster": (2, 1)}
    assert found[-1] == last
    assert len({label_of(configuration) for configuration in found}) == 4
    assert sweep([]) == []
    (in_turn,) = sweep(["BM=128", "num_warps=4", "consumers=pingpong"])
    assert label_of(in_turn) == "128 w4 pingpong"
    orders = sweep(["order=rows,hilbert:8"])
    assert [found["order"] for found in orders] == ["rows", ("hilbert", 8)]


@pytest.mark.parametrize("word", ["BM", "=4", "BM=large", "BM="])
def test_a_sweep_says_what_it_does_not_understand(word: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        sweep([word])


def test_settings_are_constants_or_demands() -> None:
    case = hopper_cases()[0]
    configuration = {"BM": 64, "num_warps": 8, "STAGES": 3}
    variant = variant_of("swept_matmul", configuration, {"PRECISION": "ieee"})
    kernel, constants = specialized(case, variant)
    assert kernel.demands()["num_warps"] == 8
    assert constants == {"BM": 64, "STAGES": 3, "PRECISION": "ieee"}
    unknown = variant_of("swept_matmul", {"BM": 64, "moon": True}, {})
    with pytest.raises(ValueError, match="moon"):
        specialized(case, unknown)


def test_an_artefact_serves_all_that_the_compiler_cannot_tell_apart() -> None:
    def key(dtype: str, size: int, layout: str = "TN") -> str:
        case = ProductCase(dtype, dtype, (size,) * 3, layout, ())
        tile = variant_of("swept_matmul", {"BM": 64, "BN": 64, "BK": 64}, {})
        return artefact_key(case, tile, "sm_90a")

    def chosen(size: int) -> str:
        case = ProductCase("bf16", "bf16", (size,) * 3, "TN", ())
        return artefact_key(case, case.variants[0], "sm_90a")

    assert chosen(4096) != chosen(8192)
    assert key("bf16", 4096) == key("bf16", 8192)
    others = [key("f16", 4096), key("bf16", 4096, "NN"), key("bf16", 1001), key("bf16", 65536)]
    assert len({key("bf16", 4096), *others}) == 5


def test_layouts_say_which_matrix_is_column_major() -> None:
    def strides(layout: str, batch: int = 0) -> list[tuple[int, ...]]:
        case = ProductCase("bf16", "bf16", (3, 5, 7), layout, (), batch)
        return [spec.strides for spec in case.arrays]

    assert strides("TN") == [(7, 1), (1, 7), (5, 1)]
    assert strides("NT") == [(1, 3), (5, 1), (5, 1)]
    assert strides("TT", 2) == [(21, 1, 3), (35, 1, 7), (15, 5, 1)]


def test_ratios_are_to_the_anchor_and_to_each_rival() -> None:
    found = record(
        1.03,
        **{"torch": 100.0, "tilec_default": 110.0, "tilec_128x256x64": 96.0},
        **{"triton_gluon_a": 99.0, "triton_pointer_b": 120.0},
    )
    assert fastest(found, "burst", "tilec") == "tilec 128x256x64"
    assert ratio(found, "burst", "tilec default", "torch") == pytest.approx(100 / 110)
    header, line, summary = table([found])
    assert "/gluon" in header
    assert line.split()[-1] == "a"
    for shown in ("0.909", "1.042*", "1.031", "128x256x64 | triton gluon a"):
        assert shown in line
    assert "goal reached in 1/1, >= Triton's best in 1" in summary
    assert "untuned within 5 % of the best in 0" in summary


def test_who_did_not_run_has_no_ratio() -> None:
    _, line, summary = table([record(1.0, torch=100.0, triton_pointer_b=90.0)])
    assert "nan" in line
    assert "goal reached in 0/1, >= Triton's best in 0" in summary
