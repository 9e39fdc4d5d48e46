"""The kernels whose PTX is broken: tilec's, Triton's and nvcc's, for every target.

Sizes are the smallest at which rings wrap twice, so that pipelines fill, turn and drain.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
from hopper_kernels import demanded
from pipelined_kernels import attention, gemm, row_sums
from ptx_fixtures import archive, index
from ring_plans import RingPlan
from target_names import MAIN

from tilec.call.jit import Kernel
from tilec.examples.explicit_hopper_gemm import hopper_gemm
from tilec.examples.running import poisoned
from tilec.examples.softmax import softmax
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import Feature, find_target
from tilec.ops.attention_kernel import attention as heads_of_attention
from tilec.runtime.emulator import Finding, TensorMap, load
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError


@dataclass(frozen=True)
class Outcome:
    """The findings of a run (check mode has some), and the bytes of every array after it."""

    findings: tuple[Finding, ...]
    arrays: tuple[bytes, ...]


@dataclass(frozen=True)
class Subject:
    """A kernel; `run(text, mode)` executes its, or a broken, text on fresh arguments."""

    compiler: str
    name: str
    target: str
    text: str
    run: Callable[[str, str], Outcome]

    def __str__(self) -> str:
        return f"{self.compiler} {self.name} {self.target}"


def _draw(*shape: int, seed: int = 0, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


# -- tilec ----------------------------------------------------------------------------------------


@contextmanager
def _target(name: str) -> Any:
    with mock.patch.dict(os.environ, TILEC_TARGET=name):
        yield


def _tilec(name: str, kernel: Kernel, target: str, arrays: Sequence[np.ndarray], grid: Any,
           scalars: tuple[float, ...] = (), **constants: Any) -> Subject:  # fmt: skip
    """The last of `arrays` is the output's shape and dtype; `scalars` follow it."""
    with _target(target):
        compiled = kernel.on("emulator").compiled(*arrays, *scalars, **constants)

    def run(text: str, mode: str) -> Outcome:
        return _launch(replace(compiled, ptx=text), mode, arrays, grid, scalars)

    return Subject("tilec", name, target, compiled.ptx, run)


def _launch(
    kernel: CompiledKernel, mode: str, arrays: Sequence[np.ndarray], grid: Any,
    scalars: tuple[float, ...],
) -> Outcome:  # fmt: skip
    values: list[Any] = [array.copy() for array in arrays[:-1]]
    values.append(poisoned(arrays[-1].shape, arrays[-1].dtype))
    checking = EmulatorDevice(mode)
    findings: tuple[Finding, ...] = ()
    try:
        checking.launch(checking.load(kernel), [*values, *scalars], grid)
    except FindingsError as found:
        findings = found.findings
    return Outcome(findings, tuple(value.tobytes() for value in values))


def _by_hand(target: str) -> list[Subject]:
    """The example with TMA, mbarriers, wgmma and roles: a CTA with two tiles, a ring that turns."""
    if not find_target(target).supports(Feature.WGMMA):
        return []
    bf16 = ml_dtypes.bfloat16
    a, b = _draw(256, 320, dtype=bf16), _draw(320, 128, seed=1, dtype=bf16)
    constants = {"BN": 64, "SLOTS": 2, "INSTRUCTION": "wgmma.m64n64k16.f32.bf16.bf16"}
    c = np.zeros((256, 128), bf16)
    return [_tilec("hopper gemm", hopper_gemm, target, [a, b, c], (2, 2), **constants)]


def _specialised(target: str) -> list[Subject]:
    """The same by the compiler's passes: a product, and attention with its products rotated.

    A CTA has several programs, so that even the rings of the queries and of the sums come round.
    """
    chip = find_target(target)
    if not chip.supports(Feature.WGMMA) and not chip.supports(Feature.TCGEN05):
        return []
    a, b = _draw(448, 160), _draw(160, 128, seed=1)
    rows = 64 if chip.supports(Feature.WGMMA) else 128  # of an instruction
    q, k = _draw(1, 3, 3 * rows, 32), _draw(1, 3, 176, 32, seed=1)
    sizes = {"BM": 64, "BN": 64, "BK": 32, "STAGES": 2, "WARP_SPECIALIZE": True}
    heads = {"D": 32, "BN": 32, "CAUSAL": True, "STAGES": 2, "WARP_SPECIALIZE": True}
    product = _tilec(
        "specialised gemm",
        demanded,
        target,
        [a, b, np.zeros_like(a, shape=(448, 128))],
        (7, 2),
        **sizes,
    )
    arrays, programs = [q, k, k, np.zeros_like(q)], (q.shape[2] // rows, 3, 1)
    rotated = _tilec("specialised attention", heads_of_attention, target, arrays, programs,
                     (0.125,), BM=rows, **heads)  # fmt: skip
    if not chip.supports(Feature.WGMMA):
        return [product, rotated]
    teams = demanded.demanding(num_warps=4, consumers="pingpong")
    pairs, parts = demanded.demanding(cluster=2), demanded.demanding(sum_parts=2)
    deep, square = _draw(192, 416), np.zeros_like(a, shape=(192, 192))
    c = np.zeros_like(a, shape=(448, 128))
    return [
        product,
        _tilec("ping-pong gemm", teams, target, [a, b, c], (7, 2), **{**sizes, "STAGES": 3}),
        _tilec("cluster gemm", pairs, target, [a[:384], b, c[:384]], (6, 2), **sizes),
        _tilec("gemm in parts", parts, target, [deep, deep.T.copy(), square], (3, 3), **sizes),
        rotated,
    ]


@cache
def gemm_of_many_programs(target: str) -> Subject:
    """The product of `tilec_subjects` with two stages, by seven programs on three CTAs."""
    depth = RingPlan(2).along(16, 8)
    arrays = [_draw(448, depth), _draw(depth, 64, seed=1), np.zeros((448, 64), np.float32)]
    return _tilec("gemm of seven", gemm, target, arrays, 7, BM=64, BN=64, BK=16, STAGES=2)


@cache
def tilec_subjects(target: str) -> tuple[Subject, ...]:
    """tilec's kernels, compiled for a target."""
    f32 = np.float32
    small = {"BM": 64, "BN": 64, "BK": 16}
    three = RingPlan(3)
    q, k = _draw(32, 32) / 4, _draw(three.along(16, 8), 32, seed=1)
    x = _draw(8, three.along(64, 64))
    return (
        *_by_hand(target),
        *_specialised(target),
        *(
            _tilec(f"gemm, {stages} stages", gemm, target,
                   [_draw(64, depth), _draw(depth, 64, seed=1), np.zeros((64, 64), f32)], 1,
                   **small, STAGES=stages)
            for stages in (2, 4)
            for depth in (RingPlan(stages).along(small["BK"], 8),)
        ),
        _tilec("attention", attention, target, [q, k, k, np.zeros((32, 32), f32)], 1, STAGES=3),
        _tilec("row sums", row_sums, target, [x, x, np.zeros(8, f32)], 1, LOADS=2, STAGES=3),
        _tilec("softmax", softmax, target, [_draw(2, 2000, dtype=f32), np.zeros((2, 2000), f32)],
               2, N=2048),
    )  # fmt: skip


# -- Triton ---------------------------------------------------------------------------------------

TRITON = (
    "matmul.f16.nn.64x64x32.sm_80", "matmul.f16.tt.64x64x32.sm_80", "matmul.f16.nt.32x64x64.sm_80",
    "attention.causal.sm_80", "softmax.sm_80", "reduce_scan.sm_80",
    "matmul.f16.nn.64x64x32.sm_90a", "matmul.f16.nt.64x64x32.sm_90a", "attention.causal.sm_90a",
    "matmul_tma.64x64x32.nn.sm_90a", "matmul_tma.64x32x16.nt.sm_90a", "softmax.sm_90a",
    "matmul.f16.nn.64x64x32.sm_100a", "attention.causal.sm_100a", "matmul_tma.64x64x32.nn.sm_100a",
    "matmul_tma.64x32x16.nt.sm_100a", "matmul.f16.nt.64x64x32.sm_100a",
    "matmul_tma.128x128x64.nt.ws.sm_100a", "softmax.sm_100a",
)  # fmt: skip


def _triton_launch(case: str) -> tuple[tuple[int, int], list[Any]]:
    kind = case.split(".")[0]
    if kind == "matmul_tma":
        return (1, 1), _tensor_maps(case)
    if kind == "matmul":
        _, _, order, size, _ = case.split(".")
        bm, bn, bk = (int(x) for x in size.split("x"))
        k = 5 * bk
        strides = [bm if order[0] == "t" else k, k if order[1] == "t" else bn, bn]
        c = np.zeros((bm, bn), np.float16)
        return (1, 1), [_draw(bm, k), _draw(k, bn, seed=1), c, bm, bn, k, *strides]
    if kind == "attention":
        q, k, v = (_draw(1, 256, 64, seed=seed) for seed in range(3))
        return (4, 1), [q, k, v, np.zeros_like(q), np.float32(0.125), 256]
    if kind == "reduce_scan":
        x = _draw(16, 128, dtype=np.float32)
        sums, first = np.zeros(16, np.float32), np.zeros(16, np.int32)
        return (1, 1), [x, sums, first, np.zeros_like(x), 128]
    x = _draw(2, 500, dtype=np.float32)
    return (2, 1), [x, np.zeros_like(x), 500, 500]


def _tensor_maps(case: str) -> list[Any]:
    _, size, order, *_ = case.split(".")
    bm, bn, bk = (int(x) for x in size.split("x"))
    k = 5 * bk
    shapes = [(k, bm) if order[0] == "t" else (bm, k), (bn, k) if order[1] == "t" else (k, bn)]
    arrays = [_draw(*shape, seed=i) for i, shape in enumerate([*shapes, (bm, bn)])]
    values: list[Any] = []
    for array, meta in zip(arrays, index("triton")[case]["tensor_maps"], strict=True):
        rows, columns = array.shape
        box = tuple(meta["block_size"][::-1])
        swizzle = (0, 32, 64, 128)[meta["swizzle"]]
        values.append(TensorMap(array, (columns, rows), (2 * columns,), box, swizzle))
        values += [rows, columns, columns, 1]
    return [*values, bm, bn, k]


def _triton(case: str) -> Subject:
    def run(text: str, mode: str) -> Outcome:
        return _run_triton(case, text, mode, tensor_fences=False)

    name, _, target = case.rpartition(".")
    return Subject("Triton", name, target, archive("triton")[f"{case}.ptx"], run)


def _run_triton(case: str, text: str, mode: str, tensor_fences: bool) -> Outcome:
    record = index("triton")[case]
    grid, values = _triton_launch(case)
    values = [*values, 0, 0]
    return _execute(text, record["entry"], grid, record["threads"], values, mode,
                    record["shared"], tensor_fences)  # fmt: skip


def missing_tensor_fences(case: str) -> Counter[tuple[str, str]]:
    """Of a kernel of Triton: which tcgen05 instructions meet without the fences PTX asks for."""
    found = _run_triton(case, archive("triton")[f"{case}.ptx"], "check", True).findings
    places = [(f.first, f.second) for f in found if f.kind == "missing tensor fence"]
    words = [[re.search(r"tcgen05\.(\w+)", place.text)[1] for place in pair] for pair in places]
    return Counter((first, second) for first, second in words)


def _execute(text: str, entry: str, grid: Any, block: Any, values: list[Any], mode: str,
             shared: int, tensor_fences: bool = True) -> Outcome:  # fmt: skip
    result = load(text).run(
        entry, grid, block, values, shared_bytes=shared, mode=mode, tensor_fences=tensor_fences
    )
    arrays = [v.array if isinstance(v, TensorMap) else v for v in values]
    kept = tuple(a.tobytes() for a in arrays if isinstance(a, np.ndarray))
    return Outcome(tuple(result.findings), kept)


# -- nvcc -----------------------------------------------------------------------------------------


def _nvcc_launch(entry: str) -> tuple[Any, Any, list[Any], int]:
    """Grid, block, arguments and dynamic shared memory."""
    x = np.arange(1, 385, dtype=np.float32)
    if entry == "collatz":
        return 3, 128, [x.astype(np.uint32), np.zeros(384, np.uint32), 384], 0
    if entry == "block_sum":
        return 2, 256, [np.ones(600, np.float32), np.zeros(1, np.float32), 600], 0
    if entry == "transpose":
        return (2, 2), (32, 8), [_draw(50, 60), np.zeros((60, 50), np.float16), 50, 60], 0
    tiles = _draw(11, 64, 4, dtype=np.float32)
    return 1, 64, [tiles, np.zeros_like(tiles), 11], 2 * 64 * 16


def _entry_only(text: str, entry: str) -> str:
    """The module with one entry."""
    prelude, _, rest = text.partition(".visible .entry ")
    bodies = rest.split(".visible .entry ")
    body = next(b for b in bodies if b.startswith(f"{entry}("))
    return f"{prelude}.visible .entry {body}"


def _nvcc(case: str, entry: str) -> Subject:
    text = _entry_only(archive("nvcc")[f"{case}.ptx"], entry)

    def run(broken: str, mode: str) -> Outcome:
        grid, block, values, shared = _nvcc_launch(entry)
        return _execute(broken, entry, grid, block, values, mode, shared)

    return Subject("nvcc", entry, case.rpartition(".")[2], text, run)


@cache
def fixture_subjects() -> tuple[Subject, ...]:
    """Triton's and nvcc's kernels."""
    entries = ("collatz", "block_sum", "transpose", "pipelined_copy")
    return (
        *(_triton(case) for case in TRITON),
        *(_nvcc(case, entry) for case in index("nvcc") for entry in entries),
    )


def subjects() -> tuple[Subject, ...]:
    """All of them."""
    return (*(s for target in MAIN for s in tilec_subjects(target)), *fixture_subjects())
