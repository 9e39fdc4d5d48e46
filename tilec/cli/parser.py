"""How the `tilec` command reads its words: argparse, with errors of one line."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from tilec.cli.streams import pass_on, write_out

DONE, AT_FAULT, USAGE, BUG = 0, 1, 2, 3
"""Exit codes of `tilec`."""


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong, and where the options are explained."""

    def error(self, message: str) -> NoReturn:
        """Ends with the exit code of wrong usage."""
        self.exit(USAGE, f"error: {message}\nhelp: `{self.prog} --help` explains the options\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes a message; argparse would drop one that standard output does not take."""
        if file is sys.stderr:
            pass_on(message)
        else:
            write_out(message)
