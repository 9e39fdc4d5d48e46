"""Standard streams that are closed, full, or have nobody at the other end."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from tilec.messages.diagnostics import CompileError, InternalError


def open_closed() -> None:
    """Gives streams that the caller closed a file which refuses what they are for.

    Without, the next file that is opened has the number that C++ code writes its messages to, and
    Python's `print` to a stream that is None goes to standard output.
    """
    for name, flags, mode in (
        ("stdin", os.O_WRONLY, "r"),
        ("stdout", os.O_RDONLY, "w"),
        ("stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, flags)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - until the end


def write_out(text: str, *, asks: bool = False) -> None:
    """Writes to standard output, to the end. CompileError where that takes no more.

    A full device refuses to write nothing, too: without text that is no error unless one `asks`.
    BrokenPipeError where nobody reads any more, as in `tilec ... | head`.
    """
    try:
        if text or asks:
            sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is left goes nowhere: the end of the process would try again, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise CompileError(f"cannot write standard output: {error.strerror or error}") from None


def complain(error: CompileError | InternalError) -> None:
    """Prints a diagnostic; the exit code alone says it where standard error takes nothing."""
    pass_on(f"{error}\n")


def pass_on(words: str) -> None:
    """Writes to standard error, if that takes anything."""
    if words:
        with suppress(OSError):
            sys.stderr.write(words)
            sys.stderr.flush()
