"""Reads TTIR's text, as `print(module)` and `MLIR_ENABLE_DUMP` write it, into a plain tree.

    %3 = arith.addi %1, %2 : tensor<64xi32> loc(#loc4)

MLIR itself cannot: it has no Triton dialect, and this form needs one. An op is a line (with a
region, several), so one rule reads nearly all: names with `%` are operands, bare words are words,
what stands in braces are attributes, and types are behind the last colon. What an op is, nobody
asks here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tilec.messages.diagnostics import CompileError, Location, register_source
from tilec.triton.program import POINTER, Block, Function, Op, Type, Value
from tilec.triton.text import (
    Locations,
    bracketed,
    cut_last,
    cut_locations,
    parse_attributes,
    parse_type,
    parse_types,
    split,
)

_RESULTS = re.compile(r"^((?:%[\w$.-]+(?::\d+)?(?:, )?)+) = (.*)$", re.DOTALL)
_NAME = re.compile(r'^"?([a-z_]\w*(?:\.\w+)*)"?\s*(.*)$', re.DOTALL)
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_WORD = re.compile(r"(?<![\w%@#.\"])([A-Za-z]\w*)(?: = ([\w.]+))?")
_FUNCTION = re.compile(r'^tt\.func\s+(?:(public|private)\s+)?@("[^"]*"|[\w$.-]+)\(')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRING_OR_BRACE = re.compile(_STRING.pattern + r"|\{")
_SUCCESSOR = re.compile(r"\^(\w+)(?:\(([^)]*)\))?")
MOST_LINES = 200_000
"""Of a text: the longest kernel of Triton's own tests has 3,000."""

Scope = dict[str, list[Value]]

SEPARATE = "tilec.contract = false"
"""An attribute of a module: each product and each sum is rounded. Triton has an option for it, and
no place in the text (`enable_fp_fusion`)."""


def read_ttir(text: str, name: str = "<ttir>") -> list[Function]:
    """Every function of a module, in order. CompileError, with the line, for what is no TTIR."""
    register_source(name, text)
    return _Reader(text, name).functions()


def read_kernel(text: str, name: str = "<ttir>", kernel: str | None = None) -> Function:
    """The kernel of that name, or the only one. CompileError says what there is."""
    found = {f.name: f for f in read_ttir(text, name) if f.is_public}
    if kernel is None and len(found) == 1:
        return next(iter(found.values()))
    if kernel is None or kernel not in found:
        known = ", ".join(found) or "none (a kernel is a public tt.func)"
        raise CompileError(f"expected one kernel, or a name; found: {known}", Location(name, 1))
    return found[kernel]


class _Reader:
    """One text, line by line."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.lines = text.split("\n")
        if len(self.lines) > MOST_LINES:
            raise CompileError(f"{name} has more than {MOST_LINES} lines")
        self.locations = Locations(self.lines)
        self.at = 0

    def functions(self) -> list[Function]:
        found = []
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line.startswith("tt.func"):
                found.append(self._guarded(self._function))
            else:
                self.at += 1
        separate = any(line.startswith("module") and SEPARATE in line for line in self.lines)
        for function in found:
            function.module = {other.name: other for other in found}
            function.contracts = not separate
        return found

    def _guarded(self, read: Callable[[], Function]) -> Function:
        """A text that does not follow the rules is an error at its line, whatever goes wrong."""
        try:
            return read()
        except (ValueError, IndexError, KeyError, AssertionError) as error:
            place = Location(self.name, min(self.at, len(self.lines) - 1) + 1)
            raise CompileError(f"cannot read this as Triton's IR: {error}", place) from None

    def _here(self, texts: list[str]) -> Location:
        """The author's line, or the text's."""
        known = self.locations.find(texts[-1]) if texts else None
        return known or Location(self.name, self.at + 1)

    def _function(self) -> Function:
        header = self.lines[self.at].strip()
        match = _FUNCTION.match(header)
        if not match:
            raise ValueError("expected tt.func @name(...)")
        end = bracketed(header, match.end() - 1)
        place = Location(self.name, self.at + 1)
        body = Block("", None)
        scope: Scope = {}
        given = []
        for number, part in enumerate(split(header[match.end() : end - 1])):
            plain, locations = cut_locations(part)
            label, _, rest = plain.partition(":")
            kind, attributes = _with_attributes(rest)
            named = self.locations.name(locations[0]) if locations else None
            plain_label = re.sub(r"\W", "_", label.strip()[1:])
            known = named if named and named.isidentifier() else plain_label
            value = Value(_unused(known, body.arguments), parse_type(kind), body, number)
            body.arguments.append(value)
            scope[label.strip()] = [value]
            given.append(attributes)
        self.at += 1
        if header.endswith("{"):
            blocks, tail = self._region(body, scope, None)
            texts = cut_locations(tail)[1]
            place = self.locations.find(texts[-1]) or place if texts else place
        else:
            blocks = []
        name = match[2].strip('"')
        public = match[1] != "private"
        return Function(name, place, body.arguments, given, blocks, public)

    def _region(self, first: Block, scope: Scope, parent: Op | None) -> tuple[list[Block], str]:
        """Blocks up to the line that closes the region, and that line."""
        blocks = [first]
        while True:
            line = self.lines[self.at].strip()
            if line.startswith("}"):
                self.at += 1
                return blocks, line
            if line.startswith("^"):
                block = first if not blocks[-1].ops and len(blocks) == 1 else Block("", parent)
                if block is not blocks[-1]:
                    blocks.append(block)
                self._label(line, block, scope)
                self.at += 1
            elif not line or line.startswith(("//", "#")):
                self.at += 1
            else:
                self._op(line, blocks[-1], scope)

    def _label(self, line: str, block: Block, scope: Scope) -> None:
        text, _ = cut_locations(line.partition("//")[0])
        label, _, arguments = text.strip()[1:].partition("(")
        block.label = label.rstrip(":").strip()
        for number, part in enumerate(split(arguments.rstrip(":").rstrip(")"))):
            name, _, kind = part.partition(":")
            value = Value(name.strip()[1:], parse_type(kind), block, number)
            block.arguments.append(value)
            scope[name.strip()] = [value]

    def _op(self, line: str, block: Block, scope: Scope) -> None:
        line, locations = cut_locations(line)
        match = _RESULTS.match(line)
        names, rest = (match[1], match[2]) if match else ("", line)
        match = _NAME.match(rest)
        if not match:
            raise ValueError(f"expected an op, found {line[:60]!r}")
        op = Op(match[1], [], self._here(locations), block=block, text=match[2])
        if line.endswith("{") and not line.endswith("= {"):
            tail, results = self._with_regions(op, match[2], scope)
            locations = cut_locations(tail)[1] or locations
            op.location = self._here(locations) if locations else op.location
        else:
            self.at += 1
            head, types = cut_last(f" {match[2]}", " : ")
            if not types:  # an op without operands: `... -> i32`
                head, types = cut_last(head, " -> ")
                types = f" -> {types}" if types else ""
            self._head(op, head, scope)
            op.types, results = _types(op, types)
        _bind_results(op, results, names, scope)
        block.ops.append(op)

    def _head(self, op: Op, text: str, scope: Scope) -> None:
        """Operands, words and attributes of what stands before the types."""
        plain, op.attributes = _with_attributes(text)
        plain = _STRING.sub("", plain)
        for match in _SUCCESSOR.finditer(plain):
            values = [_find(name, scope) for name in _VALUE.findall(match[2] or "")]
            op.successors.append((match[1], values))
        plain = _SUCCESSOR.sub("", plain)
        op.operands = [_find(name, scope) for name in _VALUE.findall(plain)]
        op.words = dict(_WORD.findall(re.sub(r"<[^<>]*>", "", plain)))

    def _with_regions(self, op: Op, text: str, scope: Scope) -> tuple[str, list[Type]]:
        """Reads an op's regions; the line behind the last, and the types of the op's results."""
        inner = dict(scope)
        block = Block("", op)
        header = text.rstrip("{").rstrip().rstrip("(").rstrip()
        reader = _HEADERS.get(op.name, _generic_header)
        results = reader(op, header, scope, inner, block)
        self.at += 1
        while True:
            blocks, tail = self._region(block, inner, op)
            block.following = blocks[1:]
            if op.name in _YIELDING and (not block.ops or block.ops[-1].name != "scf.yield"):
                block.ops.append(Op("scf.yield", [], op.location, block=block))
            op.regions.append(block)
            if not tail.endswith("{"):
                break
            inner, block = dict(scope), Block("", op)
        plain, _ = cut_locations(tail)
        types = cut_last(plain.lstrip("})"), " : ")[1] if plain.startswith("})") else ""
        if types:
            op.types, results = _types(op, types)
        return tail, results


def _unused(name: str, before: list[Value]) -> str:
    """A parameter's name; numbers behind a descriptor have the descriptor's, and their place."""
    names = {value.name for value in before}
    others = (f"{name}_{number}" for number in range(len(before), 2 * len(before) + 2))
    return name if name not in names else next(one for one in others if one not in names)


def _find(name: str, scope: Scope) -> Value:
    label, _, number = name.partition("#")
    if label not in scope:
        raise ValueError(f"{name} is used before it is made")
    return scope[label][int(number or 0)]


def _bind_results(op: Op, types: list[Type], names: str, scope: Scope) -> None:
    for part in filter(None, names.split(", ")):
        label, _, count = part.partition(":")
        first = len(op.results)
        chosen = types[first : first + int(count or 1)]
        if len(chosen) != int(count or 1):
            raise ValueError(f"'{op.name}' has {len(types)} types for its results")
        op.results += [Value(label[1:], t, op, first + i) for i, t in enumerate(chosen)]
        scope[label] = op.results[first:]


def _with_attributes(text: str) -> tuple[str, dict[str, str]]:
    """A text without what stands in braces at its top level, and the attributes there."""
    attributes: dict[str, str] = {}
    plain, at = "", 0
    while (start := _brace(text, at)) >= 0:
        end = bracketed(text, start)
        attributes.update(parse_attributes(text[start + 1 : end - 1]))
        before = text[at:start].removesuffix("<")
        plain += before
        at = end + (len(before) < start - at)
    return plain + text[at:], attributes


def _brace(text: str, at: int) -> int:
    """The place of the next brace that opens outside of strings; -1 if there is none."""
    found = (match for match in _STRING_OR_BRACE.finditer(text, at) if match[0] == "{")
    return next((match.start() for match in found), -1)


def _types(op: Op, text: str) -> tuple[list[Type], list[Type]]:
    """The types that an op is written with, and those of its results."""
    for arrow in (" -> ", " to "):
        before, behind = cut_last(text, arrow)
        if behind:
            given = parse_types(behind)
            return parse_types(before), given * 2 if op.name == "tt.split" else given
    found = parse_types(text)
    if op.name == "arith.constant" and not found:  # `arith.constant true`
        found = [Type("i1")]
    return found, _RESULT_TYPES.get(op.name, lambda types: types[-1:])(found)


def _compared(types: list[Type]) -> list[Type]:
    return [types[0].with_element("i1")]


def _loaded(types: list[Type]) -> list[Type]:
    if types[0].block is not None:  # !tt.ptr<tensor<64x64xf32>>
        return [parse_type(types[0].element[len(POINTER) : -1])]
    return [types[0].with_element(types[0].pointee or types[0].element)]


_RESULT_TYPES = {
    "arith.cmpi": _compared,
    "arith.cmpf": _compared,
    "tt.load": _loaded,
    "tt.addptr": lambda types: types[:1],
    "tt.make_tensor_ptr": lambda types: [Type(f"!tt.ptr{types[0].element}")],
    "tt.advance": lambda types: [Type(f"!tt.ptr{types[0].element}")],
    "tt.make_tensor_descriptor": lambda types: [Type(f"!tt.tensordesc{types[-1].element}")],
    "arith.mulsi_extended": lambda types: types * 2,
    "arith.mului_extended": lambda types: types * 2,
}
"""What ops give that are written with other types than their results'."""


def _carried(
    op: Op, text: str, scope: Scope, inner: Scope, block: Block, kinds: list[Type]
) -> None:
    """`(%a = %init, ...)`: what a loop carries."""
    for part, kind in zip(split(text), kinds, strict=True):
        name, _, init = part.partition(" = ")
        op.operands.append(_find(init.strip(), scope))
        block.arguments.append(Value(name.strip()[1:], kind, block, len(block.arguments)))
        inner[name.strip()] = [block.arguments[-1]]


def _for_header(op: Op, text: str, scope: Scope, inner: Scope, block: Block) -> list[Type]:
    match = re.match(
        r"^(?:unsigned )?(%\S+) = (%\S+) to (%\S+) step (%\S+)\s*"
        r"(?:iter_args\((.*?)\) -> \((.*)\))?\s*:\s*(\w+)$",
        text.strip(),
    )
    if not match:
        raise ValueError("expected scf.for %i = %low to %high step %by ... : type")
    if text.strip().startswith("unsigned"):
        op.words["unsigned"] = ""
    op.operands = [_find(match[number], scope) for number in (2, 3, 4)]
    variable = Value(match[1][1:], parse_type(match[7]), block, 0)
    block.arguments.append(variable)
    inner[match[1]] = [variable]
    results = parse_types(f"({match[6]})") if match[6] else []
    _carried(op, match[5] or "", scope, inner, block, results)
    return results


def _if_header(op: Op, text: str, scope: Scope, inner: Scope, block: Block) -> list[Type]:
    condition, _, types = text.partition(" -> ")
    op.operands = [_find(condition.strip(), scope)]
    return parse_types(types) if types else []


def _while_header(op: Op, text: str, scope: Scope, inner: Scope, block: Block) -> list[Type]:
    end = bracketed(text, 0) if text.startswith("(") else 0
    types = text[end:].strip().removeprefix(":").strip()
    before, behind = cut_last(types, " -> ")
    _carried(op, text[1 : end - 1] if end else "", scope, inner, block, parse_types(before))
    return parse_types(behind)


def _generic_header(op: Op, text: str, scope: Scope, inner: Scope, block: Block) -> list[Type]:
    """`"tt.reduce"(%x) <{axis = 1 : i32}>`: its types stand behind the region."""
    plain, op.attributes = _with_attributes(text)
    op.operands = [_find(name, scope) for name in _VALUE.findall(plain)]
    return []


_YIELDING = ("scf.for", "scf.if")
"""Ops whose regions are written without their end where it passes nothing on."""
_HEADERS = {"scf.for": _for_header, "scf.if": _if_header, "scf.while": _while_header}
