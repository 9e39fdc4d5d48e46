"""Products of `tilec.ops.matmul` over its options: calls of the size that a plan asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
from ring_plans import LEFT_OVER, Call, Case, RingPlan
from ringed_examples import ALL, draw, wide

import tilec.ops
from tilec.costs.machine import Machine
from tilec.examples import block_scaled_matmul
from tilec.ops import product_launch
from tilec.ops.tile_choice import choose_tiles

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
CASES: dict[str, tuple[Case, tuple[str, ...]]] = {}
LAYOUTS = ("NN", "NT", "TN", "TT")
DTYPES: dict[str, tuple[Any, Any, Any]] = {
    "bf16": (BF16, BF16, BF16),
    "f16": (np.float16, np.float16, np.float16),
    "f32": (np.float32, np.float32, np.float32),
    "f64": (np.float64, np.float64, np.float64),
    "e4m3": (E4M3, E4M3, BF16),
    "e5m2 e4m3": (E5M2, E4M3, BF16),
    "i8": (np.int8, np.int8, np.int32),
}
TOLERANCE = 1e-2


MORE_THAN_A_ROUND = 208
"""Rows of the first call, from whose tiles and number of CTAs the others' sizes follow."""


def _sizes(plan: RingPlan, rows: int | None) -> tuple[int, int, int]:
    """Rows, columns and depth for the tiles that the product has chosen."""
    tiles = [plan.constants.get(name) for name in ("BM", "BN", "BK")]
    tile_m, tile_n, tile_k = (tile if isinstance(tile, int) else 64 for tile in tiles)
    if rows is not None:
        return rows, plan.across(tile_n), plan.along(tile_k)
    m = plan.across(tile_m, 2) if plan.constants else MORE_THAN_A_ROUND
    return m, tile_n + LEFT_OVER, plan.along(tile_k)


def _keeping_tiles() -> Callable[..., None]:
    """`tilec.ops.matmul` into its third argument, whose first call on a machine chooses the tiles
    of all on it: the choice depends on sizes, and these follow from it."""
    chosen: dict[Machine, Any] = {}

    def choose(*arguments: Any) -> Any:
        machine = next(each for each in arguments if isinstance(each, Machine))
        if machine not in chosen:
            chosen[machine] = choose_tiles(*arguments)
        return chosen[machine]

    def call(left: Any, right: Any, out: Any, **options: Any) -> None:
        with mock.patch.object(product_launch, "choose_tiles", choose):
            tilec.ops.matmul(left, right, out, **options)

    return call


def multiply(
    dtype: str = "bf16",
    layout: str = "NN",
    batch: tuple[int, ...] = (),
    rows: int | None = None,
    given: tuple[str, ...] = (),
    **options: Any,
) -> Case:
    """A product; `layout`: T where an operand is stored transposed. `rows`: of few; `given`:
    epilogue arguments that are arrays."""
    kinds, call = DTYPES[dtype], _keeping_tiles()

    def case(plan: RingPlan) -> Call:
        m, n, k = _sizes(plan, rows)
        a, b = (
            draw(*batch, *shape[:: -1 if transposed == "T" else 1], dtype=kind, seed=seed)
            for seed, (shape, transposed, kind) in enumerate(
                zip(((m, k), (k, n)), layout, kinds, strict=False)
            )
        )
        a, b = (
            np.swapaxes(x, -1, -2) if transposed == "T" else x
            for x, transposed in zip((a, b), layout, strict=True)
        )
        vectors = {"bias": n, "row_scale": m, "column_scale": n}
        arrays = {name: draw(size, dtype=np.float32, seed=9) for name, size in vectors.items()}
        arrays["residual"] = draw(*batch, m, n, dtype=kinds[2], seed=8)
        chosen = {name: arrays[name] for name in given}
        one = {"row_scale": np.ones(m), "column_scale": np.ones(n), "bias": 0.0, "residual": 0.0}
        last = one | {name: wide(array) for name, array in chosen.items()}
        expected = (wide(a) @ wide(b)) * last["row_scale"][:, None] * last["column_scale"]
        expected = expected + last["bias"]
        if options.get("activation") == "relu":
            expected = np.maximum(expected, 0)
        expected = expected + last["residual"]
        return Call(call, [a, b, kinds[2]], {2: expected}, TOLERANCE, {**chosen, **options})

    return case


def scaled(name: str) -> Case:
    """A product of blocks with scales."""

    def case(plan: RingPlan) -> Call:
        form = block_scaled_matmul.FORMATS[name]
        pairs = np.dtype(form.element) == ml_dtypes.float4_e2m1fn
        n = 136
        columns = -(-n // plan.constants.get("BN", 128))
        m, k = plan.across(128, columns), plan.along(128 * (1 + pairs), 64)
        a, b = (
            block_scaled_matmul.quantize(draw(rows, k, dtype=np.float64, seed=seed), form)
            for seed, rows in enumerate((m, n))
        )
        expected = block_scaled_matmul.reference(*a) @ block_scaled_matmul.reference(*b).T
        left, right = (block_scaled_matmul.packed(x[0]) for x in (a, b))

        def call(one: Any, other: Any, out: Any, **more: Any) -> None:
            tilec.ops.matmul(one, other, out, **more)

        scales = {"a_scale": a[1], "b_scale": b[1].T}
        return Call(call, [left, right.T, BF16], {2: expected}, TOLERANCE, scales)

    return case


def _enter(name: str, case: Case, targets: tuple[str, ...] = ALL) -> None:
    CASES[f"ops {name}"] = case, targets


for _layout in LAYOUTS:
    _enter(f"bf16 {_layout}", multiply("bf16", _layout))
    _enter(f"f32 {_layout}", multiply("f32", _layout))
    _enter(f"tf32 {_layout}", multiply("f32", _layout, precision="tf32"))
for _dtype in ("f16", "f64", "e4m3", "e5m2 e4m3", "i8"):
    _enter(f"{_dtype} NT", multiply(_dtype, "NT"))
    _enter(f"{_dtype} NN", multiply(_dtype, "NN"))
_enter("e4m3 summed in f32", multiply("e4m3", "NT", precision="f32"))
_enter("f16 summed in f16", multiply("f16", "NT", acc_dtype="f16"))
_enter("few rows", multiply("bf16", "NT", rows=16))
_enter("few rows settled", multiply("bf16", "NT", rows=16, settled="b"))
_enter("one row", multiply("bf16", "NN", rows=1))
_enter("batch", multiply("bf16", "NN", batch=(3,)))
_enter("batches", multiply("f16", "TN", batch=(2, 2)))
_enter("epilogue", multiply("bf16", "NT", given=("bias", "residual"), activation="relu"))
_enter("scales", multiply("e4m3", "NT", given=("row_scale", "column_scale")))
for _name in block_scaled_matmul.FORMATS:
    _enter(f"scaled {_name}", scaled(_name), ALL[1:])
