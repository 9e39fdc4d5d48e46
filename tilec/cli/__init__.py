"""The `tilec` command: `command.py` finds the subcommand, each of which is a module here."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code. Ctrl-C ends it from its first import on."""
    try:
        return importlib.import_module("tilec.cli.command").main(argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
