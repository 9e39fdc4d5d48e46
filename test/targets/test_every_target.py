"""What other targets have of their own; the examples and products that all are tested for."""

from __future__ import annotations

import numpy as np
import pytest
from example_defaults import CASES
from table import EXAMPLES, PAGE, assembled, compile_default, markdown, recorded, run_example
from target_names import MAIN, OTHERS

from tilec.examples.matmul import PRECISIONS, draw, matmul, reference
from tilec.examples.running import compare, poisoned
from tilec.hardware.target import TARGETS

SMALL = {"BM": 64, "BN": 64, "BK": 32}
ADA = "mma.m16n8k32.f32.e4m3.e4m3"
FP8_BY = {
    **dict.fromkeys(("sm_86", "sm_87"), "mma.m16n8k16.f32.f16.f16"),
    **dict.fromkeys(("sm_89", "sm_120a", "sm_121a"), ADA),
    "sm_103a": "tcgen05.m64n64k32.f32.e4m3.e4m3",
}


@pytest.mark.parametrize("target", OTHERS)
def test_products_of_fp8_by_the_instructions_that_the_target_has(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    kernel = matmul.on("emulator").compiled(*run_product("fp8", target, **SMALL), **SMALL)
    chosen = [d["chosen"] for d in kernel.report["decisions"] if d["about"] == "dot instruction"]
    assert chosen == [FP8_BY[target]]
    assert f".target {target}\n" in kernel.ptx
    assert assembled([kernel])


def test_the_page_shows_the_record() -> None:
    lines = list(markdown(recorded()))
    assert PAGE.read_text().endswith("\n\n" + "\n".join(lines) + "\n")
    assert not [line for line in lines if "**" in line or "?" in line]


def test_bytes_are_multiplied_by_warps_where_tensor_memory_adds_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_103a")
    kernel = matmul.on("emulator").compiled(*run_product("s8", "sm_103a", **SMALL), **SMALL)
    assert "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" in kernel.ptx
    assert "tcgen05" not in kernel.ptx
    assert assembled([kernel])


def run_product(dtype: str, target: str, **tiles: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays of a product that is right in check mode."""
    precision, rng = PRECISIONS[dtype], np.random.default_rng(0)
    a, b = (draw(rng, shape, precision.inputs) for shape in ((80, 160), (160, 48)))
    c = poisoned((80, 48), precision.output)
    matmul.on("emulator:check")(a, b, c, PRECISION=precision.dot, **tiles)
    compare(f"{dtype} {target}", c, reference(a, b), precision.tolerance)
    return a, b, c


@pytest.mark.share(36)
@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize("dtype", sorted({*PRECISIONS} - {"fp8"}))
def test_products(dtype: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    run_product(dtype, target)  # with the compiler's tiles


@pytest.mark.share(36)
@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right on the emulator, without findings; ptxas takes it."""
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setenv("TILEC_DEVICE", "emulator:check")
    assert run_example(name, target) != "**wrong**"


@pytest.mark.share(48)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_an_example_compiles_with_its_own_defaults(name: str, target: str) -> None:
    assert float(compile_default(name, target)) <= TARGETS[target].shared_bytes / 1024


def test_names() -> None:
    assert {*MAIN, *OTHERS} == {*TARGETS}
