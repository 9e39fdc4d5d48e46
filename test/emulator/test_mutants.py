"""Drop or weaken one synchronisation of Triton's kernels at a time: check mode must notice.

Zero findings on the unchanged kernels; the survivors are listed with the reason why they are
harmless, so that a weaker checker shows as a failure here.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_fixtures import archive, cases, index

from tilec.runtime.emulator import Finding, load

SYNCHRONISATION = re.compile(r"^\s*(bar\.sync|cp\.async\.wait_group)\s+(\d+)")


def arguments(case: str) -> tuple[tuple[int, int], list]:
    """Grid and arguments: the smallest problem that fills and drains the pipeline."""
    rng = np.random.default_rng(0)
    if case.startswith("matmul"):
        bm, bn, bk = (int(x) for x in case.split(".")[3].split("x"))
        k = 5 * bk
        a, b = (rng.standard_normal((s, k)).astype(np.float16) for s in (bm, bn))
        c = np.zeros((bm, bn), np.float16)
        order = case.split(".")[2]
        strides = [bm if order[0] == "t" else k, k if order[1] == "t" else bn, bn]
        return (1, 1), [a, b, c, bm, bn, k, *strides]
    if case.startswith("attention"):
        q, k, v = (rng.standard_normal((1, 128, 64)).astype(np.float16) for _ in range(3))
        return (2, 1), [q, k, v, np.zeros_like(q), np.float32(0.125), 128]
    x = rng.standard_normal((2, 500)).astype(np.float32)
    return (2, 1), [x, np.zeros_like(x), 500, 500]


def findings(case: str, text: str) -> list[Finding]:
    record = index("triton")[case]
    grid, values = arguments(case)
    return (
        load(text)
        .run(record["entry"], grid, record["threads"], [*values, 0, 0],
             shared_bytes=record["shared"], mode="check")
        .findings
    )  # fmt: skip


CASES = [
    *cases("triton", "matmul.f16.nn.64x64x32.sm_80"), *cases("triton", "matmul.f16.tt.64x64x32.sm_80"),
    "attention.causal.sm_80", "attention.full.sm_80", "softmax.sm_80",
]  # fmt: skip


def mutants(text: str) -> list[tuple[str, str]]:
    """(what was done, the mutant)."""
    result = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = SYNCHRONISATION.match(line)
        if not found:
            continue
        replacements = [""]
        if "wait_group" in line:
            replacements.append(f"cp.async.wait_group {int(found.group(2)) + 1};")
        for replacement in replacements:
            changed = [*lines[:number], replacement, *lines[number + 1 :]]
            result.append((f"{number + 1}: {line.strip()} -> {replacement}", "\n".join(changed)))
    return result


@pytest.mark.parametrize("case", CASES)
def test_mutants_are_found(case: str) -> None:
    text = archive("triton")[f"{case}.ptx"]
    assert findings(case, text) == []
    every = mutants(text)
    survivors = [what for what, mutant in every if not findings(case, mutant)]
    # Triton drains and meets once before the first and after the last use of shared memory, where
    # nothing follows (or precedes) that could collide: those mutants are equivalent kernels.
    allowed = 3 if case.startswith("attention") else 1
    assert len(every) >= 5
    assert len(survivors) <= allowed, survivors
