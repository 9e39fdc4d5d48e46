"""Reads `.tile` text: MLIR of any level, verified, every mistake a CompileError at its position."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mlir import ir

from tilec.compile import progress
from tilec.compile.isolation import Death, death_of
from tilec.compile.mlir_errors import compile_error, interruptible
from tilec.dialects import gpu_tile, tile
from tilec.messages.diagnostics import CompileError, Location, register_source
from tilec.passes.checks.verify_kernels import verify_kernels
from tilec.passes.checks.verify_ops import verify_attributes, verify_ops

MAX_DEPTH = 200
"""Deepest nesting of brackets: MLIR's parser, verifier and printer recurse with much stack."""

MAX_BYTES = 16 << 20
"""Longest text: of constants, a line each, 400,000, which take 40 s to compile."""

_PARSE_TIMEOUT_S = 30.0
"""Longest parsing may take before a text counts as one that the parser hangs at."""
_UNNAMED = "-"
"""What MLIR calls a text that has no file."""


def read_source(path: str) -> str:
    """The text of a file, of standard input for "-". CompileError if it is not readable UTF-8, or
    longer than MAX_BYTES."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CompileError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise CompileError(f"{source_name(path)} has more than {MAX_BYTES >> 20} MiB")
    return decode_source(content, source_name(path))


def source_name(path: str) -> str:
    """Names a file as diagnostics do."""
    return "<stdin>" if path == "-" else path


def decode_source(content: bytes, name: str) -> str:
    """Decodes UTF-8 bytes. CompileError points to the first byte that is none."""
    wrong = None
    try:
        text = content.decode()
        at = content.find(0)
        wrong = "a NUL byte" if at >= 0 else None
    except UnicodeDecodeError as error:
        at = error.start
        text = content.decode(errors="replace")
        wrong = f"byte 0x{content[at]:02x}, which is no UTF-8"
    if wrong:
        register_source(name, text)
        before = content[:at]
        position = Location(name, before.count(b"\n") + 1, at - before.rfind(b"\n"))
        raise CompileError(f"expected text, found {wrong}", position)
    return text


@interruptible()
def parse_source(text: str, name: str, context: ir.Context, *, survives: bool = False) -> ir.Module:
    """The verified module of a text that diagnostics call `name`.

    CompileError carries every mistake found. Texts that kill MLIR's parser are refused, too, unless
    the caller knows (`can_be_parsed`) that this one `survives`.
    """
    register_source(name, text)
    progress.at("the parser", Location(name, 1), is_text=True)
    _check_depth(text, name)
    _check_strings(text, name)
    if not survives:
        _check_survives(text, name, context)
    try:
        with context:
            module = ir.Module.parse(text)
    except ir.MLIRError as error:
        if not error.error_diagnostics:
            raise _unexplained(text, name, context) from None
        raise compile_error(error, {_UNNAMED: name}) from None
    _rename(module, name)
    verify_attributes(module)
    verify_ops(module)
    verify_kernels(module)
    return module


def _rename(module: ir.Module, name: str) -> None:
    """Gives what was parsed from a text the text's name; positions written in it stay."""

    def renamed(location: ir.Location) -> ir.Location | None:
        if not location.is_a_file() or location.filename != _UNNAMED:
            return None
        return ir.Location.file(name, location.start_line, location.start_col, module.context)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if location := renamed(op.location):
            op.location = location
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    if location := renamed(argument.location):
                        argument.set_location(location)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|>=|<=|[({\[<]|[)}\]>]')


def _check_depth(text: str, name: str) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match[0]
        if token in "({[<":
            depth += 1
            if depth > MAX_DEPTH:
                raise CompileError(
                    f"brackets nest deeper than {MAX_DEPTH} levels", _at(text, match.start(), name)
                )
        elif token in ")}]>":
            depth = max(0, depth - 1)


_STRINGS = re.compile(r'//[^\n]*|"(?P<inside>(?:[^"\\\n]|\\.)*)"')
_BYTES = re.compile(r"(?:\\[0-9A-Fa-f]{2})+")


def _check_strings(text: str, name: str) -> None:
    """Refuses bytes that a string's escapes (`\\ee`) spell, where they are no UTF-8: MLIR keeps
    them, and Python can read neither the string nor what MLIR says of it."""
    for string in _STRINGS.finditer(text):
        inside = string["inside"]
        if inside is None or "\\" not in inside:
            continue
        for spelt in _BYTES.finditer(inside.replace("\\\\", "  ")):
            content = bytes.fromhex(spelt[0].replace("\\", ""))
            try:
                content.decode()
            except UnicodeDecodeError as error:
                raise CompileError(
                    f"expected text, found byte 0x{content[error.start]:02x}, which is no UTF-8",
                    _at(text, string.start("inside") + spelt.start() + 3 * error.start, name),
                ) from None


def _at(text: str, index: int, name: str) -> Location:
    """The position of a character."""
    start = text.rfind("\n", 0, index) + 1
    return Location(name, text.count("\n", 0, index) + 1, len(text[start:index].encode()) + 1)


def _try_parsing(text: str, context: ir.Context) -> Death | None:
    def parse() -> None:
        with context:
            ir.Module.parse(text)

    return death_of(parse, _PARSE_TIMEOUT_S)


def can_be_parsed(texts: Sequence[str], context: ir.Context) -> bool:
    """Whether MLIR's parser survives all of several texts, right or wrong; one trial for all."""

    def parse() -> None:
        for text in texts:
            with context, suppress(ir.MLIRError):
                ir.Module.parse(text)

    return death_of(parse, _PARSE_TIMEOUT_S) is None


def _check_survives(text: str, name: str, context: ir.Context) -> None:
    death = _try_parsing(text, context)
    if death is None:
        return
    # Each trial of a text that takes too long would take as long again.
    line = 1
    if not death.is_late:
        line = _first_line(text, lambda part: _try_parsing(part, context) is not None)
    said = re.search(r"Assertion `(.*)' failed", death.words)
    raise CompileError(
        f"MLIR's parser cannot take this text: it {death.reason}",
        Location(name, line),
        [f"it says: {said[1]}"] if said else [],
    )


def _first_line(text: str, is_wrong: Callable[[str], bool]) -> int:
    """The shortest beginning of a text (in lines) that is wrong as the whole is, by bisection."""
    lines = text.split("\n")
    low, high = 1, len(lines)
    while low < high:
        middle = (low + high) // 2
        if is_wrong("\n".join(lines[:middle])):
            high = middle
        else:
            low = middle + 1
    return low


def _unexplained(text: str, name: str, context: ir.Context) -> CompileError:
    """The error for a text that MLIR refuses without a word: ops of ours in MLIR's short form."""
    for match in _short_forms(text):
        example = _example(match["name"])
        return CompileError(
            f"'{match['name']}' has no short form; write it in MLIR's generic form",
            _at(text, match.start("name"), name),
            [f"help: for example {example}"] if example else [],
        )

    def is_silent(part: str) -> bool:
        try:
            with context:
                ir.Module.parse(part)
        except ir.MLIRError as error:
            return not error.error_diagnostics
        return False

    line = _first_line(text, is_silent)
    return CompileError("MLIR cannot parse this", Location(name, line))


_SHORT_FORM = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|(?:^|[={}()\w>\]])\s*(?P<name>(?:gpu_)?tile\.\w+)\b(?!\s*=)',
    re.MULTILINE,
)


def _short_forms(text: str) -> Iterator[re.Match[str]]:
    """Finds where ops of ours stand without quotes, in the order of the text."""
    return (match for match in _SHORT_FORM.finditer(text) if match["name"])


def _example(op_name: str) -> str:
    """The first line of an op's documented example, "" for a name that is no op."""
    for op in (*tile.Op.ALL, *gpu_tile.Op.ALL):
        if op_name == op.OPERATION_NAME:
            return (op.__doc__ or "").partition("Example:\n")[2].strip().split("\n")[0]
    return ""
