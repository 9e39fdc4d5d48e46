"""XLA's foreign function interface as far as a launch needs it: where its structures have what.

XLA calls a handler with an `XLA_FFI_CallFrame`, and once with an extension that asks what the
handler can do. The structures are those of `xla/ffi/api/c_api.h`, API version 0.x, which adds
fields at their ends only. The table of functions has changed its order between versions: it is read
from the header that the installed jaxlib comes with, as a compiler would.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from tilec.records import dataclass

HEADER = "xla/ffi/api/c_api.h"
MAJOR = 0
"""The version of the interface whose structures these are; another is refused."""

FRAME_EXTENSION, FRAME_API, FRAME_CONTEXT, FRAME_STAGE = 8, 16, 24, 32
"""Of `XLA_FFI_CallFrame`: where these pointers, and the stage, lie in it, in bytes."""
FRAME_ARGUMENTS = 72
"""Of `XLA_FFI_CallFrame.args.args`: pointers to the operands' `XLA_FFI_Buffer`."""
FRAME_RESULTS = 112
"""The same for the results: `XLA_FFI_CallFrame.rets.rets`."""
BUFFER_ADDRESS = 24
"""Of `XLA_FFI_Buffer.data`: the byte where the memory's address lies."""
EXTENSION_METADATA = 24
"""Of `XLA_FFI_Metadata_Extension.metadata`: the byte where the answer's address lies."""
METADATA_MAJOR, METADATA_MINOR, METADATA_TRAITS = 24, 28, 32
"""Of `XLA_FFI_Metadata`: where the handler's version and traits are written, in bytes."""

QUESTION_BYTES = 32
"""Of the structures that functions of the table are given, the three that are used: the structure's
size at 0, the execution context at 16, the answer at 24."""
QUESTION_CONTEXT, QUESTION_ANSWER = 16, 24
"""Of such a structure: where the context, and the answer, lie in it, in bytes."""
ERROR_MESSAGE, ERROR_CODE = 16, 24
"""Of `XLA_FFI_Error_Create_Args`: where the text's address, and the code, lie in it, in bytes."""

STAGE_EXECUTE = 3
"""Of `XLA_FFI_ExecutionStage`: the one in which a handler launches."""
ERROR_INVALID_ARGUMENT, ERROR_INTERNAL = 3, 13
"""Of `XLA_FFI_Error_Code`: the caller's mistake, and ours."""
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
