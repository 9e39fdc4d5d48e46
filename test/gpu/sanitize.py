"""Runs the Hopper kernels under compute-sanitizer: memcheck, racecheck and synccheck.

python test/gpu/sanitize.py --build      # compiles them into build/gpu/sanitize; no GPU
python test/gpu/sanitize.py              # needs torch, compute-sanitizer, a Hopper GPU
python test/gpu/sanitize.py --only attention --tools memcheck

Shapes are small, but every ring turns, no tile is full, and CTAs take several programs. A line per
kernel and tool; exit code 1 where a result is wrong or a tool reports an error.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

ARTEFACTS = ROOT / "build" / "gpu" / "sanitize"
TARGET = "sm_90a"
TOOLS = ("memcheck", "racecheck", "synccheck")
SANITIZER = "/usr/local/cuda/bin/compute-sanitizer"
TIMEOUT_S = 120


@dataclass(frozen=True)
class Product:
    """c = a @ b, a (m, k) and c (m, n) by rows, b (k, n) by columns; `kernel`: matmul or hopper."""

    dtype: str
    shape: tuple[int, int, int]
    tiles: dict[str, Any]
    kernel: str = "matmul"


@dataclass(frozen=True)
class Attention:
    """Causal attention, one batch, `heads` of `width` elements."""

    heads: int
    length: int
    width: int


TILES = {"BM": 64, "BN": 64, "BK": 64}
CASES: dict[str, Product | Attention] = {
    # 14 x 14 programs for 132 multiprocessors; a ring of 3 turns twice in each
    "gemm bf16": Product("bf16", (888, 872, 392), TILES),
    "gemm e4m3": Product("fp8", (888, 880, 784), {**TILES, "BK": 128}),
    "gemm bf16, 128x256": Product("bf16", (264, 520, 712), {"BM": 128, "BN": 256, "BK": 64}),
    "attention 64": Attention(3, 700, 64),
    "attention 128": Attention(3, 700, 128),
    "explicit hopper gemm": Product(
        "bf16", (1416, 1544, 520),
        {"BN": 128, "INSTRUCTION": "wgmma.m64n128k16.f32.bf16.bf16"}, "hopper_gemm",
    ),
}  # fmt: skip


def path_of(name: str) -> Path:
    """Where a case's artefact lies."""
    return ARTEFACTS / (re.sub(r"\W+", "-", name) + ".tilec")


# -- without a GPU --------------------------------------------------------------------------------


def build() -> None:
    """Compiles every case."""
    os.environ["TILEC_TARGET"] = TARGET
    import numpy as np

    from tilec.examples.explicit_hopper_gemm import hopper_gemm
    from tilec.examples.matmul import PRECISIONS, matmul
    from tilec.ops.attention_kernel import attention
    from tilec.runtime.artefact import save

    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        if isinstance(case, Attention):
            q = np.zeros((1, case.heads, case.length, case.width), np.float16)
            constants = {"D": case.width, "CAUSAL": True}
            compiled = attention.on("emulator").compiled(q, q, q, q, 0.1, **constants)
        else:
            precision = PRECISIONS[case.dtype]
            m, n, k = case.shape
            order = "C" if case.kernel == "hopper_gemm" else "F"
            a = np.zeros((m, k), precision.inputs)
            b = np.zeros((k, n), precision.inputs, order=order)
            c = np.zeros((m, n), precision.output)
            if case.kernel == "hopper_gemm":
                compiled = hopper_gemm.on("emulator").compiled(a, b, c, **case.tiles)
            else:
                constants = {**case.tiles, "PRECISION": precision.dot}
                compiled = matmul.on("emulator").compiled(a, b, c, **constants)
        assert "cp.async.bulk.tensor" in compiled.ptx, name
        assert "wgmma" in compiled.ptx, name
        save(path_of(name), [compiled])
        print(f"{name}: {len(compiled.ptx)} bytes of PTX, {compiled.shared_bytes} of shared memory")


# -- on the GPU -----------------------------------------------------------------------------------


def run_case(name: str) -> float:
    """Launches a case once; the largest error, relative to the largest element."""
    import torch

    import tilec

    torch.manual_seed(0)
    case, kernel = CASES[name], tilec.load(path_of(name))
    found, expected = (_attention if isinstance(case, Attention) else _product)(torch, kernel, case)
    torch.cuda.synchronize()
    return float((found.double() - expected).abs().max() / expected.abs().max())


def _attention(torch: Any, kernel: Callable[..., None], case: Attention) -> tuple[Any, Any]:
    sizes = (1, case.heads, case.length, case.width)
    q, k, v = (torch.randn(sizes).half() for _ in range(3))
    o = torch.full(sizes, math.nan).half().cuda()
    kernel(q.cuda(), k.cuda(), v.cuda(), o, 1 / math.sqrt(case.width))
    scores = q.double() @ k.double().transpose(-1, -2) / math.sqrt(case.width)
    ahead = torch.ones(case.length, case.length).triu(1).bool()
    weights = scores.masked_fill(ahead, -math.inf).softmax(-1)
    return o.cpu(), weights @ v.double()


def _product(torch: Any, kernel: Callable[..., None], case: Product) -> tuple[Any, Any]:
    dtype, output = {
        "bf16": (torch.bfloat16, torch.bfloat16),
        "fp8": (torch.float8_e4m3fn, torch.float16),
    }[case.dtype]
    m, n, k = case.shape
    a, b = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype).T
    if case.kernel == "hopper_gemm":
        b = b.contiguous()
    c = torch.full((m, n), math.nan).to(output).cuda()
    kernel(a.cuda(), b.cuda(), c)
    return c.cpu(), a.double() @ b.double()


SUMMARY = re.compile(r"(ERROR|RACECHECK) SUMMARY: (.*)")
NOTHING = re.compile(r"0 (errors|hazards)\b")


def sanitize(name: str, tool: str, sanitizer: str) -> tuple[bool, str]:
    """Whether a tool finds nothing in a case, and its summary with the first report."""
    command = [
        sanitizer, "--tool", tool, "--error-exitcode", "9", "--print-limit", "5",
        # Python's binding of the driver asks for functions that older drivers lack.
        *(["--report-api-errors", "no"] if tool == "memcheck" else []),
        *(["--racecheck-report", "all"] if tool == "racecheck" else []),
        sys.executable, __file__, "--case", name,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False, f"did not finish within {TIMEOUT_S} s"
    text = done.stdout + done.stderr
    summary = SUMMARY.search(text)
    reports = [line for line in text.splitlines() if line.startswith("=========")]
    clean = done.returncode == 0 and summary is not None and NOTHING.match(summary[2]) is not None
    shown = summary[2].strip() if summary else f"no summary; exit code {done.returncode}"
    error = re.search(r"^error (\S+)$", done.stdout, re.MULTILINE)
    shown += f"; result within {error[1]}" if error else "; no result"
    return clean, shown if clean else "\n  ".join([shown, *reports[:12], text[-600:]])


def main(words: Sequence[str] | None = None) -> int:
    """Builds, runs one case, or has every tool look at every case; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", action="store_true", help="compile only")
    parser.add_argument("--case", choices=CASES, help="run one case, without a tool")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--tools", nargs="+", default=TOOLS, choices=TOOLS)
    parser.add_argument("--processes", type=int, default=4, help="at a time")
    parser.add_argument("--sanitizer", default=shutil.which("compute-sanitizer") or SANITIZER)
    arguments = parser.parse_args(words)
    if arguments.build:
        build()
        return 0
    if arguments.case:
        error = run_case(arguments.case)
        print(f"error {error:.2e}")
        return int(not error < 2e-2)
    wrong = 0
    names = [name for name in CASES if arguments.only in name]
    jobs = [(name, tool) for name in names for tool in arguments.tools]
    with ThreadPoolExecutor(arguments.processes) as pool:
        answers = pool.map(lambda job: sanitize(*job, arguments.sanitizer), jobs)
        for (name, tool), (clean, shown) in zip(jobs, answers, strict=True):
            wrong += not clean
            print(f"{'ok   ' if clean else 'FOUND'} {name}, {tool}: {shown}", flush=True)
    print(f"{wrong} with findings")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
