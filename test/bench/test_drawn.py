"""What a seed draws: the same cases each time, of all classes, whose kernels compile and give on
the emulator what NumPy does. Products and the kernels of examples have tests of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec
from drawn_array_references import ARRAY_REFERENCES, fill_arrays
from drawn_cases import CLASSES, MOST_BYTES, MOST_WORK, SHARES, draw
from drawn_compiler import CompileJob, compile_drawn
from drawn_layers import EPS, FACTOR, RATE, long_rms_norm, quantisation
from drawn_results import Verdict, percentile, reason, table, verdicts
from layer_cases import LayerCase
from layer_compiler import KERNELS

from tilec.examples import layer_norm, softmax

Arrays = dict[str, np.ndarray]
DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "i32": np.int32,
}
TOLERANCE = {"i32": 0.0, "f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2, "f8E4M3FN": 4e-2}
"""Error allowed of an element, relative to the largest; f32 where kernels approximate functions."""


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def adam(x: Any, grad: Any, mean: Any, square: Any) -> tuple[Any, ...]:
    m, v = 0.9 * mean + 0.1 * grad, 0.99 * square + 0.01 * grad * grad
    return x - RATE * m / (np.sqrt(v) + 1e-3), m, v


def quantised(x: Any) -> tuple[Any, Any]:
    scales = np.abs(x).max(1) / 448
    return x / scales[:, None], scales


def attention(case: LayerCase, q: Any, k: Any, v: Any) -> Any:
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    score = q @ np.swapaxes(k, -1, -2) * case.sizes["scale"]
    query, key = np.indices(score.shape[-2:])
    if case.sizes["causal"]:
        score[..., (key > query) | (key <= query - (case.sizes["window"] or 1 << 30))] = -np.inf
    weight = np.exp(score - score.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True) @ v


def recurrence(q: Any, k: Any, v: Any, decay: Any) -> Any:
    state, out = np.zeros((*k.shape[:2], k.shape[3], v.shape[3])), np.empty(v.shape)
    for i in range(q.shape[2]):
        state *= np.exp(decay[:, :, i, None, None])
        state += k[:, :, i, :, None] * v[:, :, i, None, :]
        out[:, :, i] = np.einsum("bhk,bhkv->bhv", q[:, :, i], state)
    return out


def midpoints(case: LayerCase) -> Any:
    (programs,), sizes = case.arrays[0].shape, case.sizes
    x = (np.arange(programs * sizes["points"]) + 0.5) * sizes["width"]
    f = np.exp(-x) * np.sin(9 * x) if sizes["waves"] else 4 / (1 + x * x)
    return f.reshape(programs, -1).sum(1) * sizes["width"]


def hits(case: LayerCase) -> Any:
    (programs,), points = case.arrays[0].shape, case.sizes["points"]
    i = np.arange(programs * points, dtype=np.uint32)
    found = []
    for j in (0, 1):
        state = (2 * i + j).astype(np.uint32) * np.uint32(747796405) + np.uint32(2891336453)
        word = ((state >> ((state >> 28) + 4)) ^ state) * np.uint32(277803737)
        found.append((((word >> 22) ^ word) >> 8) * 2.0**-24)
    a, b = found
    return (a * a + b * b < 1).reshape(programs, -1).sum(1)


def cross(case: LayerCase, x: Any) -> Any:
    radius, (rows, columns) = case.sizes["radius"], x.shape
    wide, around = np.pad(x, radius), np.zeros(x.shape)
    for d in range(1, radius + 1):
        for down, right in ((-d, 0), (d, 0), (0, -d), (0, d)):
            top, left = radius + down, radius + right
            around += wide[top : top + rows, left : left + columns]
    return 0.5 * x + around * (0.5 / (4 * radius))


def sparse(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    ends = starts.astype(int)
    return np.array([values[i:j] @ x[columns[i:j].astype(int)] for i, j in pairwise(ends)])


def first(case: LayerCase, x: Any) -> tuple[Any, Any]:
    at = np.argsort(-x, 1, kind="stable")[:, : case.sizes["count"]]
    return np.take_along_axis(x, at, 1), at


REFERENCES: dict[str, Callable[..., Any]] = {
    **ARRAY_REFERENCES,
    "scale_array": lambda case, x: FACTOR * x,
    "activate": lambda case, x: gelu(x),
    "gate": lambda case, x, g: g * sigmoid(g) * x,
    "blend": lambda case, x, z, w: x + w * (z - x),
    "mix_products": lambda case, x, z, w, u: x * z + w * u,
    "mix_gated": lambda case, x, z, w, u, g: sigmoid(g) * x * z + w * u,
    "adam": lambda case, *given: adam(*given),
    "softmax": lambda case, x: softmax.reference(x),
    "layer_norm": lambda case, x, weight, bias: layer_norm.reference(x, weight, bias, EPS),
    "long_rms_norm": lambda case, x, weight: (
        x / np.sqrt((x * x).mean(1, keepdims=True) + EPS) * weight
    ),
    "quantise_rows": lambda case, x: quantised(x),
    "biased_product": lambda case, a, b, bias, residual: gelu(a @ b + bias) + residual,
    "shared_attention": attention,
    "chunked_recurrence": lambda case, *given: recurrence(*given),
    "midpoint_sums": midpoints,
    "count_hits": hits,
    "stencil": cross,
    "multiply_sparse_rows": lambda case, *given: sparse(*given),
    "sort_rows": lambda case, x: np.sort(x, 1),
    "largest_of_rows": lambda case, x: -np.sort(-x, 1)[:, : case.sizes["count"]],
    "order_rows": lambda case, x: np.sort(x, 1),
    "order_rows_with_places": lambda case, x: (np.sort(x, 1), np.argsort(x, 1)),
    "first_of_rows": lambda case, x: first(case, x)[0],
    "first_of_rows_with_places": lambda case, x: first(case, x),
}
"""Kind -> the results in float64, of the case and its inputs."""


def filled(case: LayerCase, rng: np.random.Generator) -> Arrays:
    """Random inputs, poisoned outputs."""

    def values(spec: ArraySpec) -> np.ndarray:
        dtype = DTYPES[spec.dtype]
        if spec.name in case.outputs and spec.name not in case.changed:
            return np.full(spec.shape, -1 if spec.dtype == "i32" else np.nan).astype(dtype)
        if spec.dtype == "i32":
            return rng.integers(-(2**31), 2**31, spec.shape).astype(dtype)
        return (rng.standard_normal(spec.shape) / 2).astype(dtype)

    found = {spec.name: values(spec) for spec in case.arrays}
    if case.kernel == "multiply_sparse_rows":
        mean, (rows,) = case.sizes["mean"], found["y"].shape
        ends = np.minimum(rng.integers(0, 2 * mean + 1, rows).cumsum(), rows * mean)
        found["starts"] = np.concatenate([[0], ends]).astype(np.int32)
        found["columns"] = rng.integers(0, len(found["x"]), rows * mean, dtype=np.int32)
    if case.kernel == "chunked_recurrence":
        found["decay"] = -np.abs(found["decay"])
    if case.kernel == "adam":
        found["square"] = np.abs(found["square"])
    fill_arrays(case, found, rng)
    return found


def check(case: LayerCase, seed: int) -> None:
    """Launches on the emulator and compares."""
    arrays = filled(case, np.random.default_rng(seed))
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    names = [spec.name for spec in case.arrays]
    inputs = [wide[n] for n in names if n not in case.outputs or n in case.changed]
    expected = REFERENCES[case.kernel](case, *inputs)
    for step in case.steps:
        given = (arrays[a] if isinstance(a, str) else a for a in step.arguments)
        KERNELS[step.kernel].on("emulator")(*given, **dict(step.constants))
    dtypes = {spec.name: spec.dtype for spec in case.arrays}
    results = expected if isinstance(expected, tuple) else (expected,)
    for name, right in zip(case.outputs, results, strict=True):
        found, bound = arrays[name].astype(np.float64), TOLERANCE[dtypes[name]]
        largest = np.abs(right).max()
        np.testing.assert_allclose(found, right, rtol=bound, atol=bound * largest, err_msg=name)


SEEDS = (1, 2, 3)
TURN = len(CLASSES) + sum(SHARES.values()) - len(SHARES)
"""Cases of a turn, in which each class has its share."""


def small_cases(seed: int) -> dict[str, LayerCase]:
    """Of some turns the first case of each kind that `REFERENCES` has."""
    found: dict[str, LayerCase] = {}
    for drawn in draw(seed, 60 * TURN, small=True):
        if isinstance(drawn.case, LayerCase) and drawn.case.kernel in REFERENCES:
            found.setdefault(drawn.case.kernel, drawn.case)
    return found


def test_a_seed_draws_the_same_and_each_turn_all_classes() -> None:
    for seed in SEEDS:
        cases = draw(seed, 3 * TURN)
        assert cases == draw(seed, 3 * TURN)
        assert cases[:TURN] == draw(seed, TURN)
        for turn in range(3):
            assert {one.kind for one in cases[turn * TURN : (turn + 1) * TURN]} == set(CLASSES)
        assert all(one.case.nbytes <= MOST_BYTES for one in cases)
        assert all(one.case.flops <= 2 * MOST_WORK for one in cases)
        assert all(one.variants[0].label == "default" for one in cases)
    assert draw(1, TURN) != draw(2, TURN)
    assert {one.kind for one in draw(1, 9, ["sums", "experts"])} == {"sums", "experts"}


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_kernels_give_what_numpy_does(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed checks a third of the kinds."""
    monkeypatch.setenv("TILEC_TARGET", ("sm_90a", "sm_80", "sm_100a")[number])
    long = {"long_rms_norm": long_rms_norm("bf16", 2, 9001)}
    cases = small_cases(SEEDS[number]) | long
    for kernel in sorted(REFERENCES)[number :: len(SEEDS)]:
        check(cases[kernel], SEEDS[number])


@pytest.mark.parametrize(
    ("target", "kernels"),
    [
        ("sm_90a", ("quantise_rows", "whole_rms_norm")),  # in a cluster
        ("sm_80", ("quantise_long_rows", "long_rms_norm")),
    ],
)
def test_rows_longer_than_a_cta_keeps(
    target: str, kernels: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    cases = quantisation("f16", 2, 33001), long_rms_norm("bf16", 2, 33001)
    assert tuple(case.steps[0].kernel for case in cases) == kernels
    for case in cases:
        check(case, 0)


@pytest.mark.parametrize(("seed", "target"), zip(SEEDS, ("sm_90a", "sm_80", "sm_90a"), strict=True))
def test_cases_compile(seed: int, target: str, tmp_path: Path) -> None:
    for drawn in draw(seed, 2):
        entries = compile_drawn(CompileJob(drawn, target, tmp_path, "none", seed))
        assert list(entries) == [variant.label for variant in drawn.variants]
        for entry in entries.values():
            files = entry["steps"] if "steps" in entry else [entry["file"]]
            assert all((tmp_path / name).exists() for name in files)
            assert entry["reason"]


def test_what_a_folder_has_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = draw(3, 1, ["elementwise"], small=True), draw(4, 1, ["pooling"], small=True)
    job = CompileJob(one[0], "sm_90a", tmp_path, "cpu", 1)
    first = compile_drawn(job)
    monkeypatch.setattr("drawn_compiler.compile_variant", None)
    assert compile_drawn(job) == first
    for changed in (replace(job, drawn=other[0]), replace(job, target="sm_80")):
        with pytest.raises(ValueError, match="of other cases"):
            compile_drawn(changed)


def record(kind: str, untuned: list[str], **us: float) -> dict[str, Any]:
    """Peers named like `tilec_default=10.0`; `_` in them is a space."""
    times = {name.replace("_", " "): [value, value, value] for name, value in us.items()}
    reasons = {"default": "layout: so", "ops": "programs: so"}
    about = {"kind": kind, "case": f"{kind} case", "untuned": untuned, "reasons": reasons}
    return {**about, "us": times}


def test_each_untuned_variant_is_held_against_the_fastest_peer() -> None:
    product = record(
        *("products", ["tilec default", "tilec ops"]),
        **{
            "tilec_default": 20.0,
            "tilec_ops": 8.0,
            "torch": 10.0,
            "triton_a": 12.0,
            "bound_x": 1.0,
        },
    )
    alone = record("sums", ["tilec default"], tilec_default=3.0, bound_x=1.0)
    found = verdicts([product, alone])
    assert [(v.kind, v.ratio, v.peer) for v in found] == [
        ("products, tl.auto", 0.5, "torch"),
        ("products", 1.25, "torch"),
    ]
    assert found[1].reason == "programs: so"


def test_the_table_has_all_classes_and_the_worst_first() -> None:
    ratios = (0.5, 2.0, 1.0, 4.0)
    found = [
        Verdict("ab"[n % 2], f"case {n}", r, 1.0, "torch", "why") for n, r in enumerate(ratios)
    ]
    lines = table(found)
    assert lines[1].split() == ["all", "4", "1.414", "75%", "0.575", "0.500"]
    assert lines[2].split() == ["a", "2", "0.707", "50%", "0.525", "0.500"]
    assert lines[lines.index("the worst:") + 1].startswith(" 0.500 a: case 0: 1.0 us; torch")
    assert percentile([1.0, 2.0, 3.0], 50) == 2.0
    assert percentile([7.0], 5) == 7.0


def test_what_was_left_out_says_more_than_what_was_chosen() -> None:
    def decision(about: str, chosen: str) -> dict[str, str]:
        return {"about": about, "chosen": chosen, "why": "w"}

    plain = [decision("constant", "64"), decision("dot instruction", "wgmma")]
    assert reason({}, plain) == "dot instruction: wgmma (w)"
    copied = [*plain, decision("asynchronous copy", "TMA"), decision("pipeline", "no")]
    assert reason({}, copied) == "pipeline: no (w)"
    left_out = [*copied, decision("warp specialisation", "no")]
    assert reason({"spills": 4}, left_out) == "warp specialisation: no (w)"
    warned = [*left_out, decision("registers", "about 300")]
    assert reason({"spills": 520}, warned) == "520 bytes of spills; registers: about 300 (w)"
    assert reason({}, []) == "the report is empty"
