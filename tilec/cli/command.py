"""The `tilec` command: one module per subcommand, imported when that subcommand runs.

Exit codes: 0 done, 1 the program or its environment is at fault (diagnosed), 2 wrong usage, 3 a bug
in tilec. `compile` and `opt` run in a forked child: whatever MLIR does to it, one diagnostic comes
out. `TILEC_DEBUG=1` switches that off and shows Python's traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

import tilec
from tilec.cli.child import run_in_child
from tilec.cli.commands import COMMANDS
from tilec.cli.parser import AT_FAULT, BUG, DONE, USAGE, Parser
from tilec.cli.streams import complain, open_closed, write_out
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.runtime.errors import DeviceError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    open_closed()
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in COMMANDS:
        return _guarded(lambda: _without_command(words))
    command = COMMANDS[words[0]]
    if not command.isolated or _is_debugging():
        return _guarded(lambda: _run(words[0], words[1:]))
    return run_in_child(lambda: _guarded(lambda: _run(words[0], words[1:])))


def _without_command(words: list[str]) -> int:
    """Handles a line without a subcommand: `--help`, which no word at all means, too, `--version`,
    or a usage error."""
    parser = Parser(
        prog="tilec",
        description="Compiles tile programs to PTX.",
        epilog="commands:\n"
        + "\n".join(f"  {name:12}{command.summary}" for name, command in COMMANDS.items())
        + "\n\n`tilec COMMAND --help` explains a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tilec {tilec.__version__}")
    parser.add_argument(
        "command", choices=COMMANDS, metavar="COMMAND", help="what to do, see below"
    )
    parser.add_argument("arguments", nargs="*", help="the command's arguments")
    if words:
        parser.parse_args(words)
    else:
        parser.print_help(sys.stderr)
    return USAGE


def _guarded(run: Callable[[], int]) -> int:
    """Runs a command; whatever it raises becomes one diagnostic and an exit code."""
    try:
        try:
            return run()
        except SystemExit as end:  # the parser has printed what is wrong, or the help
            return end.code if isinstance(end.code, int) else DONE
        finally:
            write_out("")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return AT_FAULT
    except CompileError as error:
        complain(error)
        return AT_FAULT
    except DeviceError as error:  # as where another program has all of a GPU's memory
        complain(CompileError(str(error)))
        return AT_FAULT
    except Exception as error:
        if _is_debugging():
            traceback.print_exc()
        complain(error if isinstance(error, InternalError) else _unexpected(error))
        return BUG


def _run(name: str, words: list[str]) -> int:
    command = COMMANDS[name]
    if command.warm and not {"-h", "--help"} & set(words):
        module, _, function = command.warm.partition(":")
        getattr(importlib.import_module(module), function)()
    module = importlib.import_module(command.module)
    parser = Parser(
        prog=f"tilec {name}",
        description=f"{(module.__doc__ or '').strip()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return module.run(parser.parse_args(words))


def _unexpected(error: Exception) -> InternalError:
    """An exception nobody raised on purpose, with the place it came from."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    place = f"{os.path.basename(frame.f_code.co_filename)}:{line}"
    words = " ".join(str(error).split())
    return InternalError(f"{type(error).__name__} at {place}: {words}")


def _is_debugging() -> bool:
    return os.environ.get("TILEC_DEBUG", "0") not in ("", "0")
