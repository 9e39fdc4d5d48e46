"""Triton's kernels in a process that may have none: `tilec.triton.enable` once Triton is imported.

`tilec run` does so for scripts on the emulator. Processes of every kind do so with TILEC_TRITON=1
(or =triton, see `enable`) and two lines in a `sitecustomize.py`:

    from tilec.cli.triton_kernels import take_over_as_asked
    take_over_as_asked()
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from tilec.runtime.when_imported import when_imported

TILEC_TRITON = "TILEC_TRITON"


def take_over_as_asked() -> None:
    """What the environment's TILEC_TRITON says: nothing; 1; or "triton", which has Triton compile
    what tilec does not import."""
    asked = os.environ.get(TILEC_TRITON, "0")
    if asked not in ("", "0"):
        take_over_on_import(**({"otherwise": asked} if asked != "1" else {}))


def take_over_on_import(**named: Any) -> None:
    """Calls `tilec.triton.enable(**named)` now, or when Triton has been imported."""

    def enable() -> None:
        # The importer takes a while to load, and MLIR with it.
        importlib.import_module("tilec.triton").enable(**named)

    when_imported("triton", enable)
