"""The `tilec` command: `command.py` finds the subcommand, each of which is a module here."""

from tilec.cli.command import main

__all__ = ["main"]
