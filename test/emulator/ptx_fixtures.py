"""Reads the PTX of other compilers from fixtures/*.tar.xz (see fixtures/regenerate.py)."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from tilec.runtime.emulator import Program, load

FIXTURES = Path(__file__).resolve().parent / "fixtures"


@cache
def archive(name: str) -> dict[str, str]:
    """File name -> text of one archive."""
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as tar:
        return {
            member.name: (tar.extractfile(member) or b"").read().decode()  # type: ignore[union-attr]
            for member in tar.getmembers()
        }


@cache
def index(name: str) -> dict[str, Any]:
    return json.loads(archive(name)["index.json"])


@cache
def program(name: str, case: str) -> Program:
    return load(archive(name)[f"{case}.ptx"])


def cases(name: str, prefix: str) -> list[str]:
    return [case for case in index(name) if case.startswith(prefix)]
