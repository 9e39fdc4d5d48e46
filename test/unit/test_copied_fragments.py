"""Tensor copies that bring what warps read as fragments: 12.x has these and no wgmma or tcgen05."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import modes

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble
from tilec.compile.compiler import lower_to
from tilec.examples.attention import reference as attention_reference
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention

TARGET = "sm_120a"


def product(stages: int | None, specialize: bool | None, **demands: Any) -> tilec.call.jit.Kernel:
    def matmul(a: tl.array, b: tl.array, c: tl.array, BM: tl.const, BN: tl.const, BK: tl.const):
        m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, a.shape[1], BK, stages=stages, warp_specialize=specialize):
            acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
        tl.store(c, (m, n), acc)

    def grid(c: Any, BM: int, BN: int) -> Any:
        return tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)

    return tilec.kernel(grid=grid, **demands)(matmul)


CASES = {
    "the compiler's choice": (None, None, {}, "1 loading warp, 4 computing"),
    "two slots": (2, True, {"num_warps": 4}, "4 computing, 2 stages"),
    "persistent": (3, True, {"num_warps": 8, "persistent": True}, "8 computing, 3 stages"),
    "cluster": (None, None, {"num_warps": 4, "cluster": 2}, "1 loading warp, 4 computing"),
    "in turn": (
        2,
        None,
        {"num_warps": 4, "consumers": "pingpong", "persistent": True},
        "8 computing, 2 stages",
    ),
}
LAYOUTS = ("NN", "TN", "NT", "TT")
EVERY = [(case, layout) for case in CASES for layout in LAYOUTS]
FIXED = {*zip(CASES, ("TT", "NN", "TN", "NT", "NN"), strict=True), ("two slots", "TT")}


@pytest.mark.parametrize(
    ("case", "layout"),
    [pytest.param(*one, marks=[] if one in FIXED else pytest.mark.share(6)) for one in EVERY],
)
def test_products(case: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rings wrap; sizes fill no tile."""
    monkeypatch.setenv("TILEC_TARGET", TARGET)
    stages, specialize, demands, roles = CASES[case]
    rng = np.random.default_rng(len(case))
    a, b = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((72, 232), (232, 104)))
    a = a if layout[0] == "N" else np.asfortranarray(a)
    b = b if layout[1] == "N" else np.asfortranarray(b)
    kernel = product(stages, specialize, **demands)
    for mode in modes():
        c = np.full((72, 104), np.nan, np.float32)
        run = kernel.on(f"emulator:{mode}")
        run(a, b, c, BM=64, BN=64, BK=32)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        assert np.abs(c - expected).max() < 1e-4
    compiled = run.compiled(a, b, c, BM=64, BN=64, BK=32)
    assert roles in run.report(a, b, c, BM=64, BN=64, BK=32)
    assert "cp.async.bulk.tensor" in compiled.ptx
    assert not re.search(r"cp\.async\.c[ag]|ld\.shared\.b16|wgmma|tcgen05", compiled.ptx)
    assert ("ldmatrix.sync.aligned.m8n8.x4.trans" in compiled.ptx) == (layout != "NT")


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "i8", "f32"])
def test_types_that_ldmatrix_reads_along_k_only(dtype: str) -> None:
    """With the rhs along k both operands come by tensor copies, else none does."""
    precision = "tf32" if dtype == "f32" else "ieee"
    along = f"b:{dtype}[?,?;1,?:16]", f"b:{dtype}[?,?:16;?:16,1]"
    for b, copied in zip(along, (True, False), strict=True):
        specs = [f"a:{dtype}[?,?:16;?:16,1]", b, f"c:{'i32' if dtype == 'i8' else 'f32'}[?,?]"]

        def matmul(a: tl.array, b: tl.array, c: tl.array):
            acc = tl.zeros((64, 64), c.dtype)
            for k in tl.range(0, a.shape[1], 32):
                part = tl.load(b, (k, 0), (32, 64))
                acc = tl.dot(tl.load(a, (0, k), (64, 32)), part, acc, precision=precision)
            tl.store(c, (0, 0), acc)

        module = tilec.kernel(grid=1)(matmul).source_module(specs, target=TARGET)
        job = lower_to(module, find_target(TARGET), "gpu_tile")
        assert ("gpu_tile.tma_load" in str(job.module)) == copied


def test_attention_shares_the_buffers_of_what_is_read_both_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((1, 1, 136, 64)).astype(np.float16) for _ in range(3))
    constants = {"D": 64, "CAUSAL": True, "BM": 128, "BN": 64}
    for mode in modes():
        o = np.full_like(q, np.nan)
        run = attention.on(f"emulator:{mode}")
        run(q, k, v, o, 0.125, **constants)
        assert np.abs(o - attention_reference(q, k, v, True, 0.125)).max() < 4e-3
    assert "1 loading warp, 8 computing, 4 stages" in run.report(q, k, v, o, 0.125, **constants)
    assembled = assemble(run.compiled(q, k, v, o, 0.125, **constants).ptx, find_target(TARGET))
    assert assembled.spills == 0


@tilec.kernel(grid=lambda v, N: tl.cdiv(v.shape[1], N))
def delta(w: tl.array, k: tl.array, v: tl.array, o: tl.array, N: tl.const):
    """A state that predicts steps of 16 rows, and learns of what it did not."""
    at = tl.program_id(0) * N
    state = tl.zeros((128, N), tl.f32)
    for t in tl.range(0, k.shape[0], 16):
        seen = tl.dot(tl.load(w, (t, 0), (16, 128)), state.to(k.dtype))
        part = (tl.load(v, (t, at), (16, N)).to(tl.f32) - seen).to(k.dtype)
        tl.store(o, (t, at), part)
        state = tl.dot(tl.load(k, (t, 0), (16, 128)).T, part, state)


def reference_delta(w: Any, k: Any, v: Any) -> Any:
    """What `delta` gives, with its roundings."""
    out, state = np.empty_like(v), np.zeros((k.shape[1], v.shape[1]), np.float32)
    for t in range(0, len(k), 16):
        rows = slice(t, t + 16)
        seen = w[rows].astype(np.float32) @ state.astype(k.dtype).astype(np.float32)
        out[rows] = (v[rows].astype(np.float32) - seen).astype(v.dtype)
        state += k[rows].astype(np.float32).T @ out[rows].astype(np.float32)
    return out


@pytest.mark.parametrize("is_one", [False, True], ids=["each read once", "one read both ways"])
@pytest.mark.parametrize(("target", "warps"), [("sm_90a", 8), ("sm_100a", 4)])
def test_beside_products_that_read_buffers(
    target: str, warps: int, is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles of 16 rows are multiplied by warps' own instructions, of which the loading warp brings
    the operand, too: a copy of theirs would be waited for in each step."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(5)
    w, k = ((rng.standard_normal((168, 128)) / 16).astype(ml_dtypes.bfloat16) for _ in range(2))
    k = w if is_one else k
    v = rng.standard_normal((168, 72)).astype(ml_dtypes.bfloat16)
    expected = reference_delta(w, k, v).astype(np.float32)
    for mode in modes():
        o = np.full_like(v, np.nan)
        run = delta.on(f"emulator:{mode}")
        run(w, k, v, o, N=64)
        assert np.abs(o.astype(np.float32) - expected).max() < 0.02
    ptx, report = run.compiled(w, k, v, o, N=64).ptx, run.report(w, k, v, o, N=64)
    assert "mma.sync" in ptx
    assert "wgmma" in ptx or "tcgen05.mma" in ptx
    assert f"1 loading warp, {warps} computing" in report
    assert not re.search(r"cp\.async\.c[ag]|ld\.shared\.b16", ptx)
