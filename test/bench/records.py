"""Records of measurements as JSON to read and compare line by line: what fits a line is in one."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from typing import Any

WIDTH = 240
"""Columns of the longest line, but for one number or text that is longer."""


def record_text(value: Any, indent: str = "") -> str:
    """JSON of `value`: in one line if it fits, else a line (or more) for each of its entries."""
    flat = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(indent) + len(flat) <= WIDTH:
        return flat
    inner = f"{indent} "
    if isinstance(value, dict):
        entries = [f"{json.dumps(name)}: {record_text(v, inner)}" for name, v in value.items()]
    else:
        entries = [record_text(each, inner) for each in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n{inner}" + f",\n{inner}".join(entries) + f"\n{indent}{closed}"


def versions() -> dict[str, str]:
    """What a run runs on: Python, torch, Triton, and the GPU with its driver and state."""
    import torch

    found = {"python": platform.python_version(), "torch": torch.__version__}
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        pass
    if torch.cuda.is_available():
        found |= {"gpu": torch.cuda.get_device_name(0), "cuda": str(torch.version.cuda)}
    if shutil.which("nvidia-smi"):
        query = "--query-gpu=driver_version,clocks.sm,power.draw"
        command = ["nvidia-smi", query, "--format=csv,noheader"]
        state = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        found["driver, clock, power"] = state.stdout.strip()
    return found
