"""XLA's foreign function interface as far as a launch needs it: where its structures have what.

XLA calls a handler with an `XLA_FFI_CallFrame`, and once with an extension that asks what the
handler can do. The structures are those of `xla/ffi/api/c_api.h`, API version 0.x, which adds
fields at their ends only. The table of functions has changed its order between versions: it is read
from the header that the installed jaxlib comes with, as a compiler would.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HEADER = "xla/ffi/api/c_api.h"
MAJOR = 0
"""The version of the interface whose structures these are; another is refused."""

FRAME_EXTENSION = 8
FRAME_API = 16
FRAME_CONTEXT = 24
FRAME_STAGE = 32
FRAME_ARGUMENTS = 72
"""Of `XLA_FFI_CallFrame.args.args`: pointers to the operands' `XLA_FFI_Buffer`."""
FRAME_RESULTS = 112
"""Of `XLA_FFI_CallFrame.rets.rets`."""
BUFFER_ADDRESS = 24
EXTENSION_METADATA = 24
METADATA_MAJOR = 24
METADATA_MINOR = 28
METADATA_TRAITS = 32

QUESTION_BYTES = 32
"""Of the structures that functions of the table are given, the three that are used: the structure's
size at 0, the execution context at 16, the answer at 24."""
QUESTION_CONTEXT = 16
QUESTION_ANSWER = 24
ERROR_MESSAGE = 16
ERROR_CODE = 24

STAGE_EXECUTE = 3
ERROR_INVALID_ARGUMENT = 3
ERROR_INTERNAL = 13
COMMAND_BUFFER_COMPATIBLE = 1
"""The trait of handlers that may be recorded once and replayed, as a CUDA graph."""

_TABLE_START = 48
"""Bytes in front of the first function: size, extension, version and a private pointer."""


@dataclass(frozen=True)
class Interface:
    """The interface of the installed jaxlib: its version, and the byte in the table of each
    function."""

    minor: int
    places: dict[str, int]


@cache
def interface() -> Interface:
    """Reads the header. RuntimeError for a version whose structures are not known here."""
    folder = importlib.import_module("jax.ffi").include_dir()
    return read_interface((Path(folder) / HEADER).read_text())


def read_interface(header: str) -> Interface:
    """The interface that the text of the header declares. RuntimeError as `interface`."""
    major, minor = (_version(header, name) for name in ("MAJOR", "MINOR"))
    names = re.findall(r"^ *_XLA_FFI_API_STRUCT_FIELD\((\w+)\);", header, re.MULTILINE)
    if major != MAJOR or not names:
        raise RuntimeError(
            f"this jaxlib has version {major}.{minor} of XLA's foreign function interface; "
            f"tilec knows version {MAJOR}"
        )
    return Interface(minor, {name: _TABLE_START + 8 * n for n, name in enumerate(names)})


def _version(header: str, name: str) -> int:
    found = re.search(rf"^#define XLA_FFI_API_{name} (\d+)$", header, re.MULTILINE)
    return -1 if found is None else int(found[1])
