"""What LLVM demands of inline assembly, asked before LLVM is: it ends the process otherwise.

Constraints are those that the NVPTX back end knows (LLVM 22, NVPTXISelLowering.cpp): a register
class each, outputs with `=` first, the number of an output where an input shares its register, and
clobbers last. Text is LLVM's: `$3` or `${3}` names an operand, `$$` is a dollar.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mlir import ir

_OPERAND = re.compile(r"\$(?:(?P<dollar>\$)|(?P<number>\d+)|\{(?P<braced>\d+)\})?")
_OUTPUT = re.compile(r"=&?[bchrlqfd]")
_INPUT = re.compile(r"[bchrlqfdn]|\d+")
_CLOBBER = re.compile(r"~\{\w+\}")


def wrong_assembly(op: ir.Operation) -> str | None:
    """What is wrong with an `llvm.inline_asm`, or None."""
    constraints, text = op.attributes["constraints"].value, op.attributes["asm_string"].value
    outputs = 0
    if len(op.results):
        struct = re.fullmatch(r"!llvm\.struct<\((.*)\)>", str(op.results[0].type))
        outputs = _members(struct[1]) if struct else 1
    return _wrong(constraints, text, outputs, len(op.operands))


def _members(text: str) -> int:
    """How many types a list has."""
    depth, found = 0, 1 if text.strip() else 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        found += character == "," and depth == 0
    return found


@lru_cache(maxsize=512)
def _wrong(constraints: str, text: str, outputs: int, inputs: int) -> str | None:
    words = constraints.split(",") if constraints else []
    operands = [word for word in words if not _CLOBBER.fullmatch(word)]
    if operands != words[: len(operands)]:
        return "clobbers stand behind all other constraints"
    written, read = operands[:outputs], operands[outputs:]
    if len(read) != inputs or not all(word.startswith("=") for word in written):
        return f"{outputs} results and {inputs} operands do not fit the constraints '{constraints}'"
    for number, word in enumerate(operands):
        if not (_OUTPUT if number < outputs else _INPUT).fullmatch(word):
            return (
                f"unknown constraint '{word}'; use b, c, h, r, l, q, f, d, n or a result's number"
            )
    tied = [int(word) for word in read if word.isdigit()]
    if len(set(tied)) < len(tied) or any(number >= outputs for number in tied):
        return f"each result may share its register with one operand, found '{constraints}'"
    for place in _OPERAND.finditer(text):
        number = place["number"] or place["braced"]
        if number is None and not place["dollar"]:
            return "a '$' in the text must name an operand, as $0 or ${0}, or be written $$"
        if number is not None and int(number) >= len(operands):
            return f"the text names ${number}, of {len(operands)} operands"
    return None
