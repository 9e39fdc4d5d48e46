"""Runs a Python file whose kernels launch on a GPU or on the CPU emulator.

FILE.py runs as a script, with the rest of the line as its arguments; FILE.py:NAME calls the
function NAME of it instead. The device is that of every launch that names no other; the emulator
also launches kernels of @triton.jit, on tensors in host memory. The options below may also follow
the file; what stands behind `--` is the script's in any case.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
import traceback
from pathlib import Path
from types import TracebackType

from tilec.call.kernel_file import syntax_mistake
from tilec.cli.arguments import split_name
from tilec.cli.parser import Parser
from tilec.cli.streams import write_out
from tilec.cli.triton_kernels import take_over_as_asked, take_over_on_import
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.runtime.device import EMULATOR, device
from tilec.runtime.emulator_device import MODES
from tilec.runtime.errors import ArgumentError, ArtefactError, DeviceError

_NO_SCRIPTS = {
    ".tilec": "help: Python calls an artefact on arrays: tilec.load(FILE)(...)",
    ".tile": "help: `tilec compile` makes code of it",
    ".ptx": "help: `tilec check` runs PTX on the emulator",
}
"""Endings of files that hold kernels and do nothing by themselves, and what to do with them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec run`."""
    _add_options(parser)
    parser.add_argument(
        "words",
        metavar="FILE.py[:NAME]",
        nargs=argparse.PARSER,
        help="what to run, and the script's own arguments",
    )
    parser.set_defaults(fail=parser.error)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", metavar="NAME", help="cuda, cuda:N or emulator")
    parser.add_argument(
        "--check",
        action="store_true",
        help="on the emulator: look for races, missing waits and accesses out of bounds",
    )
    parser.add_argument(
        "--mode", choices=MODES, help="on the emulator: when asynchronous work is done"
    )


def _script_arguments(arguments: argparse.Namespace) -> list[str]:
    """The words behind the file that are the script's; tilec's options among them take effect."""
    words = arguments.words[1:]
    at = words.index("--") if "--" in words else len(words)
    behind = Parser(prog="tilec run", add_help=False, allow_abbrev=False)
    _add_options(behind)
    _, others = behind.parse_known_args(words[:at], arguments)
    return [*others, *words[at + 1 :]]


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec run`; the exit code, which is the script's own where it ends by SystemExit."""
    own = _script_arguments(arguments)
    name = _device_name(arguments)
    path, function = split_name(arguments.words[0])
    _check_file(path)
    if name is not None:
        os.environ["TILEC_DEVICE"] = name
    try:
        found = device()
    except (ValueError, DeviceError) as error:
        raise CompileError(str(error)) from None
    if found.kind == EMULATOR:
        take_over_on_import(device=found.name)
    else:
        take_over_as_asked()
    sys.argv = [path, *own]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        _execute(path, function)
    except (CompileError, InternalError, SystemExit, KeyboardInterrupt, BrokenPipeError):
        raise
    except (ArgumentError, ArtefactError, DeviceError) as error:
        raise CompileError(str(error), notes=[_where(error.__traceback__, path)]) from None
    except Exception as error:  # the script's own failure is shown as Python shows it
        if isinstance(error, OSError):
            write_out("", asks=True)  # says so where it was standard output that took no more
        if isinstance(error, SyntaxError) and not _lines_of(error.__traceback__, path):
            raise syntax_mistake(error, path) from None  # the script cannot be read
        traceback.print_exception(type(error), error, _from_file(error.__traceback__, path))
        return 1
    return 0


def _check_file(path: str) -> None:
    """CompileError where there is no such file, or it holds kernels and no script."""
    if not Path(path).is_file():
        raise CompileError(f"cannot read {path}: no such file")
    if (kind := Path(path).suffix) in _NO_SCRIPTS:
        raise CompileError(f"{path} is no Python script", None, (_NO_SCRIPTS[kind],))


def _device_name(arguments: argparse.Namespace) -> str | None:
    """The device's full name, with the emulator's mode."""
    mode = "check" if arguments.check else arguments.mode
    if arguments.check and arguments.mode not in (None, "check"):
        arguments.fail("--check and --mode exclude each other")
    if mode is None:
        return arguments.device
    if arguments.device not in (None, "emulator"):
        arguments.fail(f"--check and --mode are for the emulator, not for {arguments.device}")
    return f"emulator:{mode}"


def _execute(path: str, function: str | None) -> None:
    if function is None:
        runpy.run_path(path, run_name="__main__")
        return
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise CompileError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = getattr(module, function, None)
    if not callable(found):
        raise CompileError(f"{path} has no function '{function}'")
    found()


def _from_file(start: TracebackType | None, path: str) -> TracebackType | None:
    """The part of a traceback from the script on."""
    at = start
    while at is not None and at.tb_frame.f_code.co_filename != path:
        at = at.tb_next
    return at or start


def _where(start: TracebackType | None, path: str) -> str:
    """The script's innermost line of a traceback."""
    lines = _lines_of(start, path)
    return f"raised at {path}:{lines[-1]}" if lines else f"raised while running {path}"


def _lines_of(start: TracebackType | None, path: str) -> list[int]:
    """The script's lines of a traceback."""
    return [line for frame, line in traceback.walk_tb(start) if frame.f_code.co_filename == path]
