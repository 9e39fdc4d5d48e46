"""Lays the packages out as an installed tilec has them, of links, for pyright: it does not read
`[tool.setuptools.package-dir]`. Then runs it.

    python test/types/typecheck.py        # make types
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"tilec": ".", "dialects": "dialects", "passes": "passes", "runtime": "runtime"}
"""Folder of the repository -> folder of the package `tilec`."""


def lay_out(folder: Path) -> None:
    """Makes `folder`/tilec anew, with a link to each Python file: what imports say, is there."""
    shutil.rmtree(folder, ignore_errors=True)
    for source, package in PACKAGES.items():
        for file in (ROOT / source).rglob("*.py*"):
            if file.suffix in (".py", ".pyi"):
                link = folder / "tilec" / package / file.relative_to(ROOT / source)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file)


if __name__ == "__main__":
    lay_out(ROOT / "build" / "typecheck")
    sys.exit(subprocess.call([sys.executable, "-m", "pyright", *sys.argv[1:]], cwd=ROOT))
