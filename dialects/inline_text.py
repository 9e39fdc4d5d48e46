"""What LLVM takes as the text and the constraints of inline assembly, and what it dies of.

LLVM's printer (`AsmPrinter::emitInlineAsm`) aborts on a `$` that names no operand and on braces it
does not know, so that both are checked before it sees them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPERAND = re.compile(r"\$(?:\$|(\d+)|\{(\d+)\})")
_OUTPUT = re.compile(r"=&?[bhrlfd]")
_INPUT = re.compile(r"[bhrlfdqn]|\d+")
_CLOBBER = re.compile(r"~\{[\w.$]+\}")


def wrong_text(text: str, operands: int) -> str | None:
    """Says why LLVM takes no text of so many operands, or None. `$0` and `${0}` are operands, `$$`
    is a dollar."""
    if "\0" in text:
        return "the text holds a NUL character"
    at = text.find("$")
    while at >= 0:
        found = _OPERAND.match(text, at)
        if found is None:
            shown = text[at : at + 8]
            return f"'{shown}' names no operand; $0 and ${{0}} do, and $$ is a dollar"
        number = found[1] or found[2]
        if number is not None and (len(number) > 4 or int(number) >= operands):
            return f"'{found[0]}' names an operand that is not there: there are {operands}"
        at = text.find("$", found.end())
    return None


def wrong_constraints(constraints: str, outputs: int, inputs: Sequence[str]) -> str | None:
    """Says why LLVM takes no such constraints for so many results and inputs of these types, or
    None: results come first, one a value, what is clobbered last."""
    parts = constraints.split(",") if constraints else []
    while parts and _CLOBBER.fullmatch(parts[-1]):
        parts.pop()
    mine, others = parts[:outputs], parts[outputs:]
    if len(mine) < outputs or len(others) != len(inputs):
        return f"{outputs} results and {len(inputs)} inputs need as many constraints"
    tied = [part for part in others if part.isdigit()]
    if len(set(tied)) < len(tied):
        return f"each result may share its register with one input, found '{constraints}'"
    for part in mine:
        if not _OUTPUT.fullmatch(part):
            return f"'{part}' is no constraint of a result; '=r' is one"
    for part, kind in zip(others, inputs, strict=True):
        if not _INPUT.fullmatch(part):
            return f"'{part}' is no constraint of an input; 'r' is one"
        if part.isdigit() and (len(part) > 4 or int(part) >= outputs):
            return f"'{part}' ties an input to a result that is not there"
        if part in "bq" and (kind == "i128") != (part == "q"):
            return f"constraint '{part}' does not hold {kind}"
    return None
