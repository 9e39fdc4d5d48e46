"""The default variant is what the example launches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_cases import BenchCase, matmul_cases, memory_cases
from variant_compiler import KERNELS, chosen_by_example


@pytest.mark.parametrize(
    ("kernel", "columns", "expected"),
    [("softmax", 1000, 1024), ("softmax", 4096, 4096), ("layer_norm", 5000, 5120)],
)
def test_default_tile_is_the_row_rounded_up(kernel: str, columns: int, expected: int) -> None:
    assert chosen_by_example(BenchCase(kernel, "f32", (8, columns))) == (kernel, {"N": expected})


def test_kernels_without_a_choosing_function_keep_their_defaults() -> None:
    assert chosen_by_example(BenchCase("vector_add", "f32", (8,))) == ("vector_add", {})


def test_every_case_has_kernels_for_its_variants_and_moves_enough() -> None:
    for case in memory_cases():
        assert case.nbytes >= 10**9
    for case in [*memory_cases(), *matmul_cases()]:
        assert case.variants[0].label == "default"
        assert {variant.kernel for variant in case.variants} <= set(KERNELS)
        labels = [variant.label for variant in case.variants]
        assert len(labels) == len(set(labels))
