"""Builds the wheel of tilec-runtime: that of tilec with another name and other requirements.

A build backend (PEP 517), run in `runtime`. The files of both are the same; what differs is said in
`runtime/pyproject.toml`.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setuptools import build_meta

# Python 3.10 has none.
tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

HERE = Path(__file__).resolve().parents[1]
OF_TILEC = ("Name:", "Requires-Dist:", "Provides-Extra:")
"""Lines of the metadata that are written anew."""


def build_wheel(directory: str, settings: Any = None, metadata: Any = None) -> str:
    """The name of the wheel, which is in `directory` then."""
    target = Path(directory).resolve()
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as place:
        os.chdir(HERE.parent)
        whole = build_meta.build_wheel(place)
        old, new = "tilec-", project["name"].replace("-", "_") + "-"
        name = whole.replace(old, new, 1)
        with (
            zipfile.ZipFile(Path(place, whole)) as source,
            zipfile.ZipFile(target / name, "w", zipfile.ZIP_DEFLATED) as wheel,
        ):
            _rewrite(source, wheel, (old, new), project)
    return name


def build_sdist(directory: str, settings: Any = None) -> str:
    """There is none: tilec's has the sources."""
    raise NotImplementedError("tilec-runtime is built from tilec's sources: build a wheel")


def _rewrite(
    source: zipfile.ZipFile, wheel: zipfile.ZipFile, names: tuple[str, str], project: Any
) -> None:
    """Copies all files; those about the package are for the other one."""
    record = []
    folder = next(n for n in source.namelist() if n.endswith(".dist-info/RECORD")).split("/")[0]
    renamed = folder.replace(*names, 1)
    for member in source.infolist():
        content = source.read(member)
        member.filename = member.filename.replace(folder, renamed, 1)
        if member.filename == f"{renamed}/RECORD":
            continue
        if member.filename == f"{renamed}/METADATA":
            content = "\n".join(_metadata(content.decode(), project)).encode()
        wheel.writestr(member, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{member.filename},sha256={digest},{len(content)}")
    record.append(f"{renamed}/RECORD,,\n")
    wheel.writestr(f"{renamed}/RECORD", "\n".join(record))


def _metadata(text: str, project: Any) -> Iterator[str]:
    """The lines of METADATA (core metadata: fields, an empty line, the description)."""
    fields, _, description = text.partition("\n\n")
    for line in fields.splitlines():
        if line.startswith("Name:"):
            yield f"Name: {project['name']}"
        elif not line.startswith(OF_TILEC):
            yield line
    for requirement in project["dependencies"]:
        yield f"Requires-Dist: {requirement}"
    for extra, requirements in project["optional-dependencies"].items():
        yield f"Provides-Extra: {extra}"
        for requirement in requirements:
            yield f"Requires-Dist: {requirement}; extra == '{extra}'"
    yield f"\n{description}"
