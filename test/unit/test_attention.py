"""The attention example on the emulator, for every target: lengths, heads and views of any kind."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import MODES
from target_names import MAIN

import tilec
from tilec.compile.assembler import assemble
from tilec.compile.compiler import find_kernel
from tilec.dialects.types import is_tile
from tilec.examples.attention import TOLERANCE, reference
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention
from tilec.passes.rewriting.walk import ops_named

BF16 = ml_dtypes.bfloat16
SMALL = {"D": 64, "BM": 64, "BN": 32}


def draw(shape: tuple[int, ...], dtype: type, scale: float = 1.0) -> np.ndarray:
    """Normal values, different for each shape."""
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) * scale).astype(dtype)


def error(o: np.ndarray, expected: np.ndarray) -> float:
    """Of the largest element; NaN where anything was not written."""
    return float(np.abs(o.astype(np.float64) - expected).max() / np.abs(expected).max())


@pytest.mark.share(2)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("dtype", "queries", "keys", "causal"),
    [
        (np.float16, 130, 130, True),
        (np.float16, 65, 97, False),
        (BF16, 96, 33, False),
        (BF16, 33, 96, True),
        (np.float16, 96, 33, True),
    ],
)
def test_any_length(
    dtype: type,
    queries: int,
    keys: int,
    causal: bool,
    mode: str,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    q = draw((1, 2, queries, 64), dtype)
    k, v = (draw((1, 2, keys, width), dtype)[..., :64] for width in (64, 65))
    o = poisoned(q.shape, dtype)
    attention.on(f"emulator:{mode}")(q, k, v, o, 0.125, CAUSAL=causal, **SMALL)
    assert error(o, reference(q, k, v, causal, 0.125)) <= TOLERANCE[dtype]


@pytest.mark.share(2)
@pytest.mark.parametrize(("mode", "dtype"), [("late", np.float16), ("check", BF16)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("rows", "columns", "warps"), [(192, 128, "12"), (256, 64, "16")])
def test_tiles_of_three_and_four_warpgroups(
    rows: int,
    columns: int,
    warps: str,
    causal: bool,
    mode: str,
    dtype: type,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Warpgroups with 64 queries each; 400 is no multiple of theirs, nor of a block of keys.

    What fits in registers is not warned of: numbers of columns take none.
    """
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    q, k, v = (draw((1, heads, 400, 64), dtype) for heads in (2, 2, 2))
    o = poisoned(q.shape, dtype)
    there = attention.on(f"emulator:{mode}")
    constants = {"D": 64, "CAUSAL": causal, "BM": rows, "BN": columns}
    there(q, k, v, o, 0.125, **constants)
    assert error(o, reference(q, k, v, causal, 0.125)) <= TOLERANCE[dtype]
    decisions = there.compiled(q, k, v, o, 0.125, **constants).report["decisions"]
    chosen = {(one["about"], one["chosen"].split()[0]) for one in decisions}
    assert ("warps", warps) in chosen
    assert not [about for about, _ in chosen if about == "registers"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", MAIN)
def test_rings_that_both_products_read(
    target: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More blocks of keys than slots, in arrays that the copy engine can read."""
    monkeypatch.setenv("TILEC_TARGET", target)
    q, k, v = (draw((1, 1, n, 64), BF16) for n in (64, 330, 331))
    k, v = k[:, :, :328], v[:, :, :328]
    o = poisoned(q.shape, BF16)
    attention.on(f"emulator:{mode}")(q, k, v, o, 0.125, D=64, BM=64, BN=64)
    assert error(o, reference(q, k, v, False, 0.125)) <= TOLERANCE[BF16]


@pytest.mark.parametrize("target", MAIN)
def test_fp8(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 queries in tensor memory threads hold columns by twos: two bytes, half of what they
    store."""
    monkeypatch.setenv("TILEC_TARGET", target)
    f8 = ml_dtypes.float8_e4m3fn
    q, k, v = draw((1, 1, 80, 64), f8), draw((1, 1, 97, 64), f8), draw((1, 1, 97, 64), f8, 2)
    o = poisoned(q.shape, np.float32)
    attention.on("emulator:check")(q, k, v, o, 0.125, D=64, BM=64, BN=64)
    assert error(o, reference(q, k, v, False, 0.125)) <= 5e-2


def test_queries_have_one_slot_where_keys_have_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """More programs than CTAs run side by side: the one slot is filled again."""
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")
    q, k, v = (draw((1, 7, n, 128), np.float16) for n in (40, 290, 290))
    o = poisoned(q.shape, np.float16)
    for mode in ("late", "check"):
        there = attention.on(f"emulator:{mode}")
        there(q, k, v, o, 0.125, D=128, BM=128, BN=128)
        assert error(o, reference(q, k, v, False, 0.125)) <= TOLERANCE[np.float16]
    compiled = there.compiled(q, k, v, o, 0.125, D=128, BM=128, BN=128)
    (roles,) = decisions(compiled, "warp specialisation")
    assert "2 stages" in roles
    assert assemble(compiled.ptx, find_target("sm_100a")).spills == 0


@pytest.mark.parametrize("target", MAIN)
def test_heads_between_the_rows_of_a_longer_array(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a projection leaves them: (batch, length, 3, heads, elements), and 40 elements a head."""
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    packed = draw((2, 70, 3, 3, 40), np.float16)
    q, k, v = (packed[:, :, i].swapaxes(1, 2) for i in range(3))
    o = poisoned(q.shape, np.float16)
    tilec.ops.attention(q, k, v, o, causal=True)
    assert error(o, reference(q, k, v, True, 1 / math.sqrt(40))) <= TOLERANCE[np.float16]


def test_scores_whose_exponential_would_overflow() -> None:
    """e^89 is no float32 any more."""
    q, k, v = (draw((1, 1, n, 64), np.float16, scale) for n, scale in ((64, 9), (96, 10), (96, 1)))
    scores = np.einsum("bhid,bhjd->bhij", q.astype(float), k.astype(float)) * 0.25
    assert scores.max() > 500
    o = poisoned(q.shape, np.float16)
    attention.on("emulator")(q, k, v, o, 0.25, **SMALL)
    assert error(o, reference(q, k, v, False, 0.25)) <= 4 * TOLERANCE[np.float16]


@pytest.mark.parametrize(("rows", "loops"), [(128, 1), (192, 2)])
def test_blocks_that_all_queries_see_are_not_masked(rows: int, loops: int) -> None:
    """One loop compares columns in a branch; of two the first does not."""
    specs = [*(f"{name}:f16[?,?,?,?;?,?,?,1]" for name in "qkvo"), "scale:f32"]
    module = attention.source_module(specs, {"D": 64, "CAUSAL": True, "BM": rows, "BN": 128})
    found = ops_named(find_kernel(module, None), ["scf.for"])
    masks = [op for op in ops_named(found[-1], ["arith.cmpi"]) if is_tile(op.results[0])]
    assert len(found) == loops
    assert {op.parent.name for op in masks} == {"scf.if" if loops == 1 else "scf.for"}
    assert loops == 1 or not ops_named(found[0], ["arith.cmpi"])
