"""Code for the CPU does not depend on the CPU, and what it calls rounds right."""

from __future__ import annotations

import platform

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from cpu_function import X86_64_V3, CpuFunction, baseline, machine_for

only_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="of x86-64")

TO_BF16 = """
define bfloat @f(float %x) {
  %r = fptrunc float %x to bfloat
  ret bfloat %r
}
"""


def assembly(text: str, cpu: str | None = None, features: str = "") -> str:
    """What LLVM generates."""
    return machine_for(cpu, features).emit_assembly(llvm.parse_assembly(text))


def test_the_host_is_asked_for_its_level_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    here = assembly(TO_BF16)
    host = {**llvm.get_host_cpu_features(), "avx512bf16": True, "avx512vl": True}
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: host)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "sapphirerapids")
    assert assembly(TO_BF16) == here


@only_x86
def test_avx512_bf16_would_change_the_code() -> None:
    """`vcvtneps2bf16` takes subnormals as zeros: this is what the baseline is for."""
    assert "vcvtneps2bf16" in assembly(TO_BF16, "x86-64-v3", "+avx512bf16,+avx512vl")
    assert "vcvtneps2bf16" in assembly(TO_BF16, "sapphirerapids")
    for cpu in (None, "x86-64", "x86-64-v3"):
        assert "vcvtneps2bf16" not in assembly(TO_BF16, cpu)


@only_x86
def test_an_old_cpu_gets_code_for_any() -> None:
    every = dict.fromkeys(X86_64_V3, True)
    assert baseline(every) == "x86-64-v3"
    for name in X86_64_V3:
        assert baseline({**every, name: False}) == "x86-64"


@pytest.fixture(params=["x86-64", None] if platform.machine() == "x86_64" else [None])
def cpu(request: pytest.FixtureRequest) -> str | None:
    """What to generate for: any CPU of this architecture, and this one's baseline."""
    return request.param


def cast(op: str, source: str, target: str, types: tuple[str, str], cpu: str | None) -> CpuFunction:
    """One conversion of LLVM; `types`: as `CpuFunction` calls them."""
    text = (
        f"define {target} @f({source} %x) {{ %r = {op} {source} %x to {target}\n ret {target} %r }}"
    )
    return CpuFunction(text, "f", [types[0]], types[1], cpu=cpu)


def magnitudes(dtype: type) -> np.ndarray:
    """All finite numbers of a 16-bit type that are not negative, as float64, in order."""
    with np.errstate(invalid="ignore"):
        values = np.arange(1 << 15, dtype=np.uint16).view(dtype).astype(np.float64)
    return values[np.isfinite(values)]


def close_to_ties(dtype: type) -> np.ndarray:
    """Float64 values of a 16-bit type, the middles between them, and neighbours of all."""
    values = magnitudes(dtype)
    exact = np.concatenate([values, (values[1:] + values[:-1]) / 2, [values[-1] * 1.01, 1e300]])
    parts = [exact, np.nextafter(exact, np.inf), np.nextafter(exact, 0), exact * (1 + 2.0**-23)]
    positive = np.concatenate([*parts, [5e-324, np.inf, np.nan]])
    return np.concatenate([positive, -positive])


def nearest(x: np.ndarray, dtype: type) -> np.ndarray:
    """The 16-bit numbers next to `x`, ties to even, by search among all of them."""
    values = magnitudes(dtype)
    step = values[-1] - values[-2]
    middles = np.append((values[1:] + values[:-1]) / 2, values[-1] + step / 2)
    size = np.abs(x)
    code = np.searchsorted(middles, size, side="left")
    tie = (code < middles.size) & (size == middles[np.minimum(code, middles.size - 1)])
    return np.where(tie & (code % 2 == 1), code + 1, code).astype(np.uint16)


@pytest.mark.parametrize(
    ("kind", "name", "dtype"), [("f16", "half", np.float16), ("bf16", "bfloat", ml_dtypes.bfloat16)]
)
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_conversions_to_16_bits_round_once(
    wide: str, kind: str, name: str, dtype: type, cpu: str | None
) -> None:
    x = close_to_ties(dtype)
    with np.errstate(all="ignore"):
        x = x.astype(np.float32) if wide == "f32" else x
    got = cast("fptrunc", "float" if wide == "f32" else "double", name, (wide, kind), cpu)(x)
    wanted = nearest(x.astype(np.float64), dtype) | np.where(np.signbit(x), 0x8000, 0)
    number = ~np.isnan(x)
    wrong = number & (got != wanted)
    assert not wrong.any(), (x[wrong][:5], got[wrong][:5], wanted[wrong][:5])
    assert np.isnan(got.view(dtype)[~number].astype(np.float64)).all()


def test_every_half_becomes_the_same_float(cpu: str | None) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    got = cast("fpext", "half", "float", ("f16", "f32"), cpu)(bits)
    np.testing.assert_array_equal(got, bits.view(np.float16).astype(np.float32))
    assert (np.signbit(got) == (bits >= 0x8000)).all()
