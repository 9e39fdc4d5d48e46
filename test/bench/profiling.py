"""One peer of one case under Nsight Compute: what the kernel waits for."""

from __future__ import annotations

import csv
import json
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
SHOWN = {
    "time": "gpu__time_duration.sum",
    "SM clock": "gpc__cycles_elapsed.avg.per_second",
    "tensor pipe, of elapsed": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "tensor pipe, of SMs' active": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "issue slots": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "ALU pipe": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
    "FMA pipe": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "XU pipe (exp2)": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "TMA pipe": "sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_active",
    "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "DRAM": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "DRAM read": "dram__bytes_read.sum",
    "grid": "launch__grid_size",
    "threads": "launch__block_size",
    "registers a thread": "launch__registers_per_thread",
    "shared memory a CTA": "launch__shared_mem_per_block",
    "occupancy achieved": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "waves": "launch__waves_per_multiprocessor",
    "instructions": "inst_executed",
    "local loads (spills)": "sass__inst_executed_local_loads",
    "shared wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "bank conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "  of loads": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "  of stores": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "  of cp.async": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
}
"""What is printed -> ncu's metric."""
STALL = r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"
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
        *(job.case.name, peer, json.dumps(job.files.get(peer.removeprefix("tilec ")))),
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
    """The metrics of SHOWN and the stalls of every kernel in ncu's CSV."""
    start = text.find('"ID"')
    rows = list(csv.reader(text[start:].splitlines())) if start >= 0 else []
    if len(rows) < 3:
        return ["ncu measured no kernel:", *text.splitlines()[-10:]]
    names, units, *kernels = rows
    lines = []
    for kernel in kernels:
        metrics = dict(zip(names, zip(kernel, units, strict=True), strict=True))
        lines.append(f"kernel {metrics['Kernel Name'][0]}")
        lines += [
            f"  {shown:28s} {metrics[name][0]:>16s} {metrics[name][1]}"
            for shown, name in SHOWN.items()
            if name in metrics
        ]
        lines += _stalls(metrics)
    return lines


def _stalls(metrics: dict[str, tuple[str, str]]) -> list[str]:
    """Warps stalled per issued instruction, by reason, the most frequent first."""
    found = {
        match[1]: float(metrics[name][0].replace(",", "") or 0)
        for name in metrics
        if (match := re.fullmatch(STALL, name))
    }
    order = sorted(found, key=lambda reason: -found[reason])
    return [f"  stalled: {r:19s} {found[r]:16.2f}" for r in order if found[r] >= LEAST_STALL]
