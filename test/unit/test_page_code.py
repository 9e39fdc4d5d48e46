"""The code that pages for authors show runs, on small arrays, and gives what it says."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from frontend_cases import load_text

import tilec

ROOT = Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(0)


def blocks(page: str) -> list[str]:
    """A page's blocks of Python."""
    text = (ROOT / page).read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def random(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def of_products() -> dict[str, Any]:
    """What the first lines of the page of operations are about."""
    fp8, scales = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    names = {"a": random(16, 32), "b": random(32, 24), "c": random(16, 24)}
    names |= {"x": random(16, 32), "w": random(24, 32), "bias": random(24)}
    names |= {"a8": random(16, 32, dtype=fp8), "b8": random(32, 24, dtype=fp8)}
    names |= {"ra": np.ones(16, np.float32), "cb": np.ones(24, np.float32)}
    names |= {"a4": random(16, 64, dtype=fp8), "b4": random(64, 24, dtype=fp8)}
    names |= {"sa": np.ones((16, 2), scales), "sb": np.ones((2, 24), scales)}
    return names


def of_attention() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The same: heads in front of rows, packed sequences, a cache in pages of 16."""
    q, k, v = (random(2, 2, 20, 16, dtype=np.float16) for _ in range(3))
    packed = {name: random(40, 2, 16, dtype=np.float16) for name in "qkv"}
    cache = {"q": random(2, 2, 1, 16, dtype=np.float16)}
    cache |= {name: random(4, 16, 2, 16, dtype=np.float16) for name in "kv"}
    more = {"n": np.array([20, 9], np.int32), "pages": np.array([[0, 1], [3, 2]], np.int32)}
    starts = np.array([0, 25, 40], np.int32)
    return {"q": q, "k": k, "v": v}, {**packed, "starts": starts}, {**cache, **more}


def test_the_lines_of_the_page_of_operations() -> None:
    first, _, packed = blocks("tilec/ops/README.md")
    heads, sequences, caches = of_attention()
    lines = first.splitlines()
    for line in lines:
        names = {"tilec": tilec, **of_products()}
        if "starts=" in line:
            names |= sequences
        else:
            names |= caches if "table=" in line else heads
        before = names["c"].copy()
        exec(line, names)
        if "residual=c" in line:
            wanted = before + names["a"] @ names["b"]
            np.testing.assert_allclose(names["c"], wanted, rtol=1e-4, atol=1e-4)
        elif line.startswith("c ="):
            assert np.isfinite(names["c"].astype(np.float32)).all(), line
            assert names["c"].shape == (16, 24)
        elif line.startswith("o ="):
            assert np.isfinite(names["o"].astype(np.float32)).all(), line
            assert names["o"].shape == names["q"].shape
    assert len(lines) > 8
    names = {}
    exec(packed, names)
    assert np.isfinite(names["out"].astype(np.float32)).all()


def test_the_kernels_of_the_page_of_the_language(tmp_path: Path) -> None:
    adding, groups, lists, windows = blocks("tilec/language/README.md")
    head = "import tilec\nimport tilec.language as tl\n"
    x, y, z = random(3000), random(3000), np.zeros(3000, np.float32)
    definition, calls = adding.split("\nvector_add(x, y, z) ")
    kernel = load_text(definition, tmp_path).vector_add.on("emulator")
    for line in ("vector_add(x, y, z) " + calls).splitlines():
        z[:] = 0
        exec(line, {"vector_add": kernel, "x": x, "y": y, "z": z, "grid": (3,)})
        if "report" not in line and "check" not in line:
            np.testing.assert_array_equal(z, x + y)
    definition, call = groups.split("\nweighted_sum(")
    kernel = load_text(head + definition, tmp_path).weighted_sum.on("emulator")
    exec("weighted_sum(" + call, {"weighted_sum": kernel, "a": x, "b": y, "y": z})
    np.testing.assert_allclose(z, 0.5 * x + 2 * y, rtol=1e-6, atol=1e-7)  # sums are fused
    definition, call = lists.split("\nsgd(")
    kernel = load_text(head + definition, tmp_path).sgd.on("emulator")
    values, slopes = ([random(size) for size in (7, 5000)] for _ in range(2))
    wanted = [value - np.float32(0.1) * slope for value, slope in zip(values, slopes, strict=True)]
    # Parameters are arrays that have a `grad`, which NumPy's have not: the call reads it of others.
    by_grad = [SimpleNamespace(grad=slope) for slope in slopes]
    call = "sgd(" + call.replace("for p in params", "for p in by_grad")
    exec(call, {"sgd": kernel, "params": values, "by_grad": by_grad})
    for found, expected in zip(values, wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)  # sums are fused
    kernel = load_text(head + windows, tmp_path).segment_sums.on("emulator")
    ends, sums = np.array([3, 3, 2500, 3000], np.int32), np.zeros(4, np.float32)
    kernel(x, ends, sums)
    parts = np.split(x.astype(np.float64), ends[:-1])
    np.testing.assert_allclose(sums, [part.sum() for part in parts], atol=1e-3)


@pytest.mark.parametrize("page", ["tilec/tuning/README.md"])
def test_a_tuned_kernel_of_a_page_is_declared(page: str, tmp_path: Path) -> None:
    text = blocks(page)[0]
    head = "import tilec\nimport tilec.language as tl\n"
    tuned = load_text(head + text[: text.index("\nmatmul(a, b, c)")], tmp_path).matmul
    assert len(tuned.candidates) > 10
