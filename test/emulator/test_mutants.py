# ruff: noqa: E501  (lines of PTX)
"""Drop or weaken one synchronisation of Triton's kernels at a time: check mode must notice.

Zero findings on the unchanged kernels; the survivors are listed with the reason why they are
harmless, so that a weaker checker shows as a failure here.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_fixtures import archive, index

from tilec.runtime.emulator import Finding, TensorMap, load

SYNCHRONISATION = re.compile(
    r"^\s*(bar\.sync|cp\.async\.wait_group|wgmma\.wait_group\.sync\.aligned|fence\.proxy\.async"
    r"|mbarrier\.try_wait\S*|cp\.async\.bulk\.wait_group\.read)\b"
)


def arguments(case: str) -> tuple[tuple[int, int], list]:
    """Grid and arguments: the smallest problem that fills and drains the pipeline."""
    rng = np.random.default_rng(0)
    if case.startswith("matmul_tma"):
        return tensor_map_arguments(case)
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


def tensor_map_arguments(case: str) -> tuple[tuple[int, int], list]:
    rng = np.random.default_rng(0)
    _, size, order, *_ = case.split(".")
    bm, bn, bk = (int(x) for x in size.split("x"))
    k = 5 * bk
    shapes = [(k, bm) if order[0] == "t" else (bm, k), (bn, k) if order[1] == "t" else (k, bn)]
    arrays = [rng.standard_normal(shape).astype(np.float16) for shape in (*shapes, (bm, bn))]
    values: list = []
    for array, meta in zip(arrays, index("triton")[case]["tensor_maps"], strict=True):
        rows, columns = array.shape
        box = tuple(meta["block_size"][::-1])
        swizzle = (0, 32, 64, 128)[meta["swizzle"]]
        values.append(TensorMap(array, (columns, rows), (2 * columns,), box, swizzle))
        values += [rows, columns, columns, 1]
    return (1, 1), [*values, bm, bn, k]


def findings(case: str, text: str) -> list[Finding]:
    """Errors of check mode (warnings are about what the sources disagree on)."""
    record = index("triton")[case]
    grid, values = arguments(case)
    found = (
        load(text)
        .run(record["entry"], grid, record["threads"], [*values, 0, 0],
             shared_bytes=record["shared"], mode="check")
        .findings
    )  # fmt: skip
    return [finding for finding in found if finding.severity == "error"]


# Case -> mutants that are allowed to survive, because they are equivalent kernels: Triton drains and
# meets once before the first and after the last use of shared memory, where nothing follows (or
# precedes) that could collide, and meets before a wait that orders everything by itself.
CASES = {
    "matmul.f16.nn.64x64x32.sm_80": 1,
    "matmul.f16.tt.64x64x32.sm_80": 1,
    "attention.causal.sm_80": 3,
    "attention.full.sm_80": 3,
    "softmax.sm_80": 0,
    "matmul_tma.64x64x32.nn.sm_90a": 0,
    "matmul_tma.64x32x16.nt.sm_90a": 0,
    "matmul_tma.64x64x32.nn.sm_100a": 0,
    "matmul_tma.128x128x64.nt.ws.sm_100a": 1,  # a wait for the phase before the first
}


def mutants(text: str) -> list[tuple[str, str]]:
    """(what was done, the mutant). Where one thread drives the copies, Triton puts a bar.sync
    around each of its steps; nearly all are redundant, so only the other waits are mutated
    there."""
    result = []
    lines = text.split("\n")
    tensor_copies = "cp.async.bulk.tensor" in text
    for number, line in enumerate(lines):
        if not SYNCHRONISATION.match(line) or (tensor_copies and "bar.sync" in line):
            continue
        replacements = [""]
        pending = re.search(r"wait_group\S*\s+(\d+)", line)
        if pending:
            operation = line[: pending.start(1)].strip()
            replacements.append(f"{operation} {int(pending.group(1)) + 1};")
        if "try_wait" in line:
            predicate = line.split()[1].rstrip(",")
            replacements = [f"setp.eq.u32 {predicate}, %tid.x, %tid.x;"]
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
    assert len(every) >= 5
    assert len(survivors) <= CASES[case], survivors
