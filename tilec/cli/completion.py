"""Prints a script that completes tilec's commands, options and files in a shell.

bash   tilec completion bash > ~/.local/share/bash-completion/completions/tilec
zsh    tilec completion zsh > DIR/_tilec       with DIR in $fpath
fish   tilec completion fish > ~/.config/fish/completions/tilec.fish
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from typing import Any

from tilec.cli.commands import COMMANDS
from tilec.cli.parser import DONE, Parser
from tilec.cli.streams import write_out
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import CompileError

SHELLS = ("bash", "zsh", "fish")
"""Shells that are completed."""

_VALUES = {"--target": tuple(TARGETS), "--device": ("cuda", "emulator")}
"""Of options that take more than argparse is told of."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec completion`; the exit code."""
    try:
        shtab = importlib.import_module("shtab")
    except ImportError:
        raise CompileError("completion needs shtab: pip install shtab") from None
    parser = whole_parser()
    for action in _actions(parser):
        found = _files(action, shtab)
        if found is not None:
            action.complete = found
    write_out(shtab.complete(parser, arguments.shell) + "\n")
    return DONE


def whole_parser() -> argparse.ArgumentParser:
    """A parser of all commands with their options, which `main` never needs at once. CompileError
    where the compiler is not installed."""
    parser = Parser(prog="tilec")
    parser.add_argument("--version", action="store_true", help="the version")
    commands = parser.add_subparsers(dest="command")
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.summary, description=command.summary)
        try:
            module = importlib.import_module(command.module)
        except ImportError as error:
            raise CompileError(
                f"completion lists the options of every command, and {name} needs {error.name}"
            ) from None
        module.add_arguments(own)
    for action in _actions(parser):
        for option in action.option_strings:
            action.choices = _VALUES.get(option, action.choices)
    return parser


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    """Yields the actions of a parser and of those below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)


def _files(action: Any, shtab: Any) -> Any:
    """What completes an action that takes a file or a folder, by what its help calls it; None of
    others."""
    word = str(action.metavar or "")
    if word == "DIR":
        return shtab.DIRECTORY
    return shtab.FILE if word.startswith("FILE") or word == "INPUT" else None
