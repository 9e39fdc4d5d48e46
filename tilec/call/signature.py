"""Argument specs: what a kernel is compiled for when there are no arrays to look at.

    spec    := name part* ':' type
             | name '[]' ':' type                      a list of any length of such arrays
    part    := '[' number ']' | '.' name              of a tuple, of an object with fields
    type    := dtype [':' d]                          a scalar, of Triton's kernels a multiple of d
             | dtype '[' sizes [';' strides] ']' ['@' alignment]   an array
    sizes   := size (',' size)*               size: '?', '?:d' (a multiple of d), or a number
    strides := the same, in elements; without them: '?' but the last, which is 1
    dtype   := a name of `tilec.terms.dtypes`, e.g. f32, bf16, i64

`a:bf16[?,?:8;?:8,1]` is a row-major matrix whose columns and row stride are multiples of 8 elements
and whose pointer is one of 16 bytes (the default alignment; `@1` promises nothing): rows of whole
16 bytes, which wide accesses and tensor copies need. `a:bf16[?,?]` is one of any size, whose
elements are read one by one. What is promised here is checked at every launch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import lcm
from typing import Any

from tilec.executable.kernel import CompiledKernel, Facts, Parameter
from tilec.hardware.target import Feature, find_target
from tilec.language.parameters import auto
from tilec.terms.dtypes import BY_ARRAY, BY_NAME, ELEMENT_BYTES

DEFAULT_ALIGNMENT = 16
"""Bytes that a spec promises of a pointer unless it says otherwise: what tensor maps and wide
accesses want, and frameworks allocate at more."""
MOST_DIMENSIONS = 8
"""Of an array in a spec: more than any framework's layers have, few enough for a message to
show."""

NAME = re.compile(r"[A-Za-z_]\w*(?:\[\d+\]|\.[A-Za-z_]\w*)*")
"""Of a parameter, or of a part of one: `x`, `xs[0]`, `p.weight`."""
_SPEC = re.compile(
    rf"(?P<name>{NAME.pattern})(?P<list>\[\])?\s*:\s*(?P<dtype>\w+)\s*"
    r"(?::\s*(?P<multiple>\d+)"
    r"|\[(?P<sizes>[^\];]*)(?:;(?P<strides>[^\]]*))?\]\s*(?:@\s*(?P<align>\d+))?)?"
)
_DIMENSION = re.compile(r"\?(?:\s*:\s*(?P<divisor>\d+))?|(?P<number>\d+)")


def parse_spec(text: str) -> Parameter:
    """One argument spec as a parameter. ValueError says what was expected."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"wrong argument spec {text!r}; expected name:dtype or "
            "name:dtype[sizes;strides]@alignment, e.g. a:bf16[?,?]"
        )
    found = parse_type(match["name"], text.strip().partition(":")[2])
    if match["list"] is None:
        return found
    if found.kind != "array":
        raise ValueError(
            f"argument {found.name!r}: a list holds arrays, e.g. {found.name}[]:f32[?]"
        )
    return replace(found, kind="arrays")


def parse_type(name: str, text: str) -> Parameter:
    """The type part of a spec (`bf16[?,?]`) as the parameter `name`. ValueError as `parse_spec`."""
    match = _SPEC.fullmatch(f"{name}:{text}")
    if match is None:
        raise ValueError(f"argument {name!r}: wrong type {text!r}; expected e.g. bf16[?,?] or i32")
    dtype = BY_NAME.get(match["dtype"])
    if dtype is None or dtype.mlir not in ELEMENT_BYTES:
        word = match["dtype"]
        known = f"known: {', '.join(d for d in BY_NAME if BY_NAME[d].mlir in ELEMENT_BYTES)}"
        told = f"write {BY_ARRAY[word].name}" if word in BY_ARRAY else known
        raise ValueError(f"argument {name!r}: unknown dtype {word!r}; {told}")
    if match["sizes"] is None and dtype.is_code:
        raise ValueError(f"argument {name!r}: {dtype} comes in arrays, e.g. {dtype}[?,?]")
    if match["sizes"] is None:
        multiple = max(1, int(match["multiple"] or 1))
        return Parameter(name, "scalar", dtype.mlir, facts=Facts(multiple))
    sizes, size_divisors = _dimensions(name, "size", match["sizes"])
    if match["strides"] is None:
        strides: list[int | None] = [None] * (len(sizes) - 1) + [1]
        stride_divisors = [1] * len(sizes)
    else:
        strides, stride_divisors = _dimensions(name, "stride", match["strides"])
    if len(strides) != len(sizes):
        raise ValueError(f"argument {name!r}: {len(sizes)} sizes but {len(strides)} strides")
    align = int(match["align"] or DEFAULT_ALIGNMENT)
    if align & (align - 1) or not 1 <= align <= 256:
        raise ValueError(
            f"argument {name!r}: alignment must be a power of two up to 256, found {align}"
        )
    facts = Facts(
        max(align, ELEMENT_BYTES[dtype.mlir]), tuple(size_divisors), tuple(stride_divisors)
    )
    return Parameter(name, "array", dtype.mlir, tuple(sizes), tuple(strides), facts)


def _dimensions(name: str, what: str, text: str) -> tuple[list[int | None], list[int]]:
    """The compile-time values (None: at run time) and known divisors of a list of dimensions."""
    values: list[int | None] = []
    divisors: list[int] = []
    for part in text.split(","):
        match = _DIMENSION.fullmatch(part.strip())
        if match is None:
            raise ValueError(
                f"argument {name!r}: wrong {what} {part.strip()!r}; "
                "expected ?, ?:divisor or a number"
            )
        number = match["number"]
        value = int(number or match["divisor"] or 1)
        if not (1 if number is None else 0) <= value < 1 << 31:
            raise ValueError(f"argument {name!r}: {what} {value} is out of range")
        values.append(None if number is None else value)
        divisors.append(1 if number == "1" else max(value, 1))
    if len(values) > MOST_DIMENSIONS:
        raise ValueError(f"argument {name!r}: more than {MOST_DIMENSIONS} dimensions")
    return values, divisors


_NARROW = re.compile(r"the stride of dimension (\d+) is not a known multiple")
_SLOW_BYTES = 4
"""What accesses of one thread may move without being slow; a warp's are whole lines then."""


def add_promises(kernel: CompiledKernel) -> None:
    """Adds to the report of a kernel compiled for specs what they would have to promise of an array
    for wider accesses, or tensor copies: strides that are multiples of 16 bytes."""
    decisions = kernel.report["decisions"]
    engine = find_target(kernel.target).supports(Feature.TMA)
    for number, parameter in enumerate(kernel.parameters):
        narrow = [e for e in decisions if e.get("array") == number and _is_open(e, parameter)]
        if narrow:
            least = min(narrow, key=lambda entry: entry["bytes"])
            decisions.append(
                {
                    "about": "array",
                    "at": least["at"],
                    "chosen": f"{parameter.name} by {least['chosen']}"
                    f"{', without tensor copies' if engine else ''}",
                    "why": f"{least['why']}; {_promised(parameter)} promises that it is",
                }
            )


def _is_open(access: Mapping[str, Any], parameter: Parameter) -> bool:
    """Whether an access would be wide, if a spec promised more of a stride."""
    match = _NARROW.fullmatch(access["why"])
    if match is None or access["bytes"] >= _SLOW_BYTES:
        return False
    return parameter.strides[int(match[1])] is None


def _promised(parameter: Parameter) -> str:
    """The spec of an array whose rows are whole vectors of 16 bytes."""
    vector = DEFAULT_ALIGNMENT // ELEMENT_BYTES[parameter.dtype]
    row = parameter.strides.index(1)
    sizes, strides = list(parameter.facts.sizes), list(parameter.facts.strides)
    sizes[row] = lcm(sizes[row], vector)
    strides = [lcm(d, vector) if axis != row else d for axis, d in enumerate(strides)]
    names = (name for name, found in BY_NAME.items() if found.mlir == parameter.dtype)
    dtype = min(names, key=len)
    texts = (_dimensions_of(parameter.sizes, sizes), _dimensions_of(parameter.strides, strides))
    return f"{parameter.name}:{dtype}[{';'.join(texts)}]"


def _dimensions_of(values: Sequence[int | None], divisors: Sequence[int]) -> str:
    """Sizes or strides as a spec has them."""
    return ",".join(
        str(value) if value is not None else "?" if divisor == 1 else f"?:{divisor}"
        for value, divisor in zip(values, divisors, strict=True)
    )


def parse_constant(text: str) -> Any:
    """A constant as written on a command line: a number, True/False/None, a dtype, else a string.

    Quotes make a string of anything; `auto` leaves the choice to the compiler.
    """
    words = {"True": True, "False": False, "None": None, "auto": auto, **BY_NAME}
    if text.removeprefix("tl.") in words:
        return words[text.removeprefix("tl.")]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if not isinstance(value, (bool, int, float, str, tuple)):
        return text
    return value
