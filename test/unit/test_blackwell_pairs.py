"""Products by pairs of CTAs: right, assembled, and every slip between the two found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shares import MODES
from test_explicit_kernels import changed

from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples.explicit_blackwell_pairs import pair_product
from tilec.hardware.target import TARGETS
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import FindingsError

TARGET = "sm_100a"
SHAPES = {
    256: {
        "BN": 128,
        "MMA": "tcgen05.pair.m256n128k16.f32.f16.f16",
        "MEMORY": "(128,128):(1@lane,1@col)",
    },
    128: {
        "BM": 64,
        "BN": 128,
        "MMA": "tcgen05.pair.m128n128k16.f32.f16.f16",
        "MEMORY": "(64,(64,2)):(1@lane,(1@col,64@lane))",
    },
}


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)


def check(kernel: Kernel, mode: str, rows: int, sizes: tuple[int, int, int]) -> Kernel:
    """One launch against NumPy."""
    m, n, k = sizes
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float16)
    there = kernel.on(f"emulator:{mode}")
    there(a, b, c, **SHAPES[rows])
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=2**-10, atol=1e-5 * max(k, 1))
    return there


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", SHAPES)
def test_the_product_is_right(rows: int, mode: str) -> None:
    """Two rows of pairs, the second with a CTA that has nothing of c; a ragged step of k."""
    check(pair_product, mode, rows, (rows + 24, 136, 200))


@pytest.mark.parametrize("rows", SHAPES)
def test_it_assembles_as_written(rows: int) -> None:
    specs = tuple(f"{name}:f16[?,?:8;?:8,1]" for name in "abc")
    ptx = pair_product.compile(specs, SHAPES[rows], target=TARGET).ptx
    assert assemble(ptx, TARGETS[TARGET]).spills == 0
    assert "cta_group::1" not in ptx
    assert ptx.count("tcgen05.mma.cta_group::2.kind::f16") == 4
    assert ptx.count("multicast::cluster.b64") == 1


MUTANTS = {
    "the operands are not awaited": ("loaded.wait(0, parity)  #", "pass  #"),
    "one CTA's bytes alone are announced": ("2 * (left.bytes + right.bytes)", "left.bytes"),
    "each CTA's bytes arrive at its own barrier": ("gpu.tma_pair_load(b_map", "gpu.tma_load(b_map"),
    "the products are committed to one CTA": ("done, 0, BOTH)", "done, 0, 1)"),
    "the operands are overwritten in use": (
        "            done.wait(0, parity)\n",
        "            if rank == 0:\n                done.wait(0, parity)\n",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_the_author_forgot_is_found(name: str, tmp_path: Path) -> None:
    wrong = changed(tmp_path, pair_product, MUTANTS[name])
    with pytest.raises((FindingsError, EmulatorError)):
        check(wrong, "check", 128, (128, 128, 136))
