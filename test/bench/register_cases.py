"""Kernels on which `register_verdicts.py` compares the compiler's count of registers with ptxas's:
attention of all head sizes, examples with their own defaults, products of all dtypes with and
without facts about rows, and whatever `test/gpu/drawn_demands.py` draws.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "targets"))

from attention_cases import AttentionCase
from bench_cases import Variant
from configurations import variant_of
from drawn_demands import draw
from example_defaults import CASES as DEFAULTS
from variant_compiler import compile_variant

from tilec.examples.matmul import matmul

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("sm_90a", "sm_80", "sm_100a")
DEFAULT_TARGETS = (*TARGETS, "sm_89", "sm_120a")
HEADS = (16, 32, 64, 72, 96, 128, 192, 256)
TILES = ({}, {"BM": 64, "BN": 64}, {"BM": 128, "BN": 128})
PRODUCTS = (
    ("f32", "f32", "ieee"), ("f32", "f32", "tf32"), ("bf16", "bf16", "ieee"),
    ("f16", "f32", "ieee"), ("f8E4M3FN", "f16", "ieee"), ("i8", "i32", "ieee"),
)  # fmt: skip


@dataclass(frozen=True)
class RegisterCase:
    """A kernel: `compile` compiles it, using the folder that it is given."""

    name: str
    target: str
    compile: Callable[[Path], Any]


def cases(half: int, seed: int, count: int) -> Iterator[RegisterCase]:
    """Every second of the fixed ones, 0 or 1, and `count` that are drawn by the half's own seed."""
    fixed = [*_attention(), *_defaults(), *_products()]
    yield from fixed[half::2]
    for one in draw(seed + half, count):
        name = f"drawn{seed + half}-{one.file[:4]}-{one.target}"
        yield _of_variant(name, one.case, one.variant, one.target)


def _of_variant(name: str, case: Any, variant: Variant, target: str) -> RegisterCase:
    def compile_into(folder: Path) -> None:
        compile_variant(case, variant, target, folder / "kernel.tilec")

    return RegisterCase(name, target, compile_into)


def _attention() -> Iterator[RegisterCase]:
    for number, head in enumerate(HEADS):
        for tiles in TILES:
            for target in (TARGETS[number % 3],) if tiles else TARGETS:
                case = AttentionCase("bf16", head, 512, bool(number % 2), 4, 2)
                constants = {"D": head, "CAUSAL": case.causal}
                label = "-".join(f"{key}{value}" for key, value in tiles.items()) or "auto"
                name = f"attention{head}-{label}-{target}"
                yield _of_variant(name, case, variant_of("attention", tiles, constants), target)


def _defaults() -> Iterator[RegisterCase]:
    for (name, (kernel, specs, constants)), target in product(DEFAULTS.items(), DEFAULT_TARGETS):
        compiled = partial(kernel.compile, specs, constants, target=target)
        yield RegisterCase(f"{name}-{target}", target, lambda _, compiled=compiled: compiled())


def _products() -> Iterator[RegisterCase]:
    for (dtype, output, precision), target, facts in product(
        PRODUCTS, (*TARGETS, "sm_89"), ("[?,?]", "[?,?:16;?:16,1]")
    ):
        specs = [f"a:{dtype}{facts}", f"b:{dtype}{facts}", f"c:{output}{facts}"]
        compiled = partial(matmul.compile, specs, {"PRECISION": precision}, target=target)
        name = f"matmul-{dtype}-{precision}-{'rows' if ';' in facts else 'any'}-{target}"
        yield RegisterCase(name, target, lambda _, compiled=compiled: compiled())
