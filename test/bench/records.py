"""Records of measurements as JSON to read and compare line by line: what fits a line is in one."""

from __future__ import annotations

import json
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
