"""One peer of one case under Nsight Compute: what the kernel waits for."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regimes import RegimeJob, peer_calls

SECTIONS = (
    "LaunchStats",
    "Occupancy",
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "WarpStateStats",
    "SchedulerStats",
)
SHOWN = (
    r"gpu__time_duration\.sum",
    r"sm__cycles_elapsed\.(avg\.per_second|max)",
    r"launch__(registers_per_thread|shared_mem_per_block|occupancy_limit.*|grid_size|block_size)",
    r"launch__waves_per_multiprocessor",
    r"sm__warps_active\.avg\.pct_of_peak_sustained_active",
    r"sm__.*pipe_tensor.*pct_of_peak_sustained_(active|elapsed)",
    r"smsp__issue_active\.avg\.pct.*|smsp__inst_executed\.sum",
    r"(smsp__average_warps_issue_stalled_.*_per_issue_active|smsp__average_warp.*stalled.*)\.ratio",
    r"l1tex__data_bank_conflicts_pipe_lsu.*\.sum",
    r"(dram|lts)__throughput\.avg\.pct_of_peak_sustained_elapsed",
)
LEAST_STALL = 0.01
WARM_LAUNCHES = 2


def profile(jobs: Sequence[Any], peer: str) -> int:
    """Runs ncu on `peer` of the first case; prints what it waits for. Exit code for the shell."""
    tool = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    job = jobs[0]
    if not isinstance(job, RegimeJob):
        print("--profile is for cases of the sets hopper and attention")
        return 1
    log = Path(os.environ.get("OUT") or "build") / "ncu.csv"
    log.parent.mkdir(parents=True, exist_ok=True)
    sections = [word for section in SECTIONS for word in ("--section", section)]
    command = [
        *(tool, "--clock-control", "none", "--profile-from-start", "off", "--csv"),
        *("--page", "raw", "--print-units", "base", "--log-file", str(log), *sections),
        *(sys.executable, str(Path(__file__).with_name("profiled.py"))),
        *(job.case.name, peer, job.files.get(peer.removeprefix("tilec "), "")),
    ]
    done = subprocess.run(command, check=False)
    if done.returncode:
        print(f"ncu ended with {done.returncode}; its log is {log}")
        return 1
    for line in _shown(log.read_text()):
        print(line)
    return 0


def run_profiled(job: RegimeJob, peer: str) -> None:
    """Launches a peer a few times; only the last launch is for the profiler."""
    import torch

    call = peer_calls(job)[peer]
    for _ in range(WARM_LAUNCHES):
        call()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    call()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def _shown(text: str) -> list[str]:
    """The metrics that SHOWN names, of every kernel in ncu's CSV; stalls sorted, small ones not."""
    start = text.find('"ID"')
    rows = list(csv.reader(text[start:].splitlines())) if start >= 0 else []
    if len(rows) < 3:
        return ["ncu measured no kernel:", *text.splitlines()[-10:]]
    names, units, *kernels = rows
    lines = []
    for kernel in kernels:
        lines.append(f"kernel {kernel[names.index('Kernel Name')]}")
        metrics = dict(zip(names, zip(kernel, units, strict=True), strict=True))
        for pattern in SHOWN:
            found = [name for name in metrics if re.fullmatch(pattern, name)]
            if "stall" in pattern:
                found = _stalls(metrics, found)
            lines += [f"  {name:78s} {metrics[name][0]:>16s} {metrics[name][1]}" for name in found]
    return lines


def _stalls(metrics: dict[str, tuple[str, str]], names: list[str]) -> list[str]:
    values = {name: float(metrics[name][0].replace(",", "") or 0) for name in names}
    return sorted((n for n in names if values[n] >= LEAST_STALL), key=lambda n: -values[n])
