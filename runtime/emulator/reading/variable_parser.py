"""Variable declarations: alignment, type, array bounds and initialisers (PTX ISA 5.4)."""

from __future__ import annotations

import struct

from tilec.runtime.emulator.errors import PtxError
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Variable
from tilec.runtime.emulator.reading.token_stream import TokenStream
from tilec.runtime.emulator.reading.tokens import number

_INTEGER_FORMAT = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


def parse_variable(stream: TokenStream, space: str) -> Variable:
    """A declaration after its state space, up to and with the `;`."""
    variable = _declarator(stream, space)
    if stream.accept("="):
        variable = _initialised(stream, variable)
    stream.expect(";")
    return variable


def parse_parameter(stream: TokenStream) -> Variable:
    """One `.param` of an entry or a call block, without the separator after it."""
    stream.expect(".param")
    return _declarator(stream, "param")


def _declarator(stream: TokenStream, space: str) -> Variable:
    alignment = lanes = 1
    element = None
    while stream.peek().text.startswith("."):
        token = stream.next()
        word = token.text[1:]
        if word == "align":
            alignment = stream.integer()
        elif word in ("v2", "v4"):
            lanes = int(word[1])
        elif word in TYPES:
            element = TYPES[word]
        elif word == "ptr":
            _pointer_attributes(stream)
        else:
            raise PtxError(f"unsupported: `{token.text}` in a declaration", token.line)
    token = stream.next()
    if element is None:
        raise PtxError(f"`{token.text}` is declared without a type", token.line)
    count, dynamic = 1, False
    while stream.accept("["):
        if stream.accept("]"):
            dynamic = True
            continue
        count *= stream.integer()
        stream.expect("]")
    size = 0 if dynamic else count * lanes * element.size
    alignment = max(alignment, element.size)
    return Variable(token.text, space, size, alignment, dynamic=dynamic)


def _pointer_attributes(stream: TokenStream) -> None:
    """`.ptr [.space] [.align n]`: what the compiler promises about the pointer; not needed here."""
    while stream.peek().text in (".global", ".const", ".shared", ".local", ".align"):
        if stream.next().text == ".align":
            stream.integer()


def _initialised(stream: TokenStream, variable: Variable) -> Variable:
    """The declaration with its initialiser read; element size is found from size and alignment."""
    element = _element_size(stream, variable)
    values: list[int | float | tuple[str, int]] = []
    _initial_values(stream, values)
    raw = bytearray(max(variable.size, element * len(values)))
    words: list[tuple[int, str, int]] = []
    for position, value in enumerate(values):
        where = position * element
        if isinstance(value, tuple):
            words.append((where, *value))
        elif isinstance(value, float):
            raw[where : where + element] = struct.pack("<f" if element == 4 else "<d", value)
        else:
            mask = (1 << 8 * element) - 1
            raw[where : where + element] = struct.pack(_INTEGER_FORMAT[element], value & mask)
    return Variable(
        variable.name, variable.space, len(raw), variable.alignment, bytes(raw), tuple(words)
    )


def _element_size(stream: TokenStream, variable: Variable) -> int:
    """Bytes per initialiser value: the type is the token before the name."""
    where = stream.position
    while stream.tokens[where].text != variable.name:
        where -= 1
    return TYPES[stream.tokens[where - 1].text[1:]].size


def _initial_values(stream: TokenStream, values: list[int | float | tuple[str, int]]) -> None:
    if stream.accept("{"):
        while not stream.accept("}"):
            _initial_values(stream, values)
            stream.accept(",")
        return
    negative = stream.accept("-")
    token = stream.next()
    if token.kind == "number":
        value = number(token.text)
        values.append(-value if negative else value)
    elif token.text == "generic":
        stream.expect("(")
        values.append(_symbol(stream))
        stream.expect(")")
    elif token.kind == "word":
        stream.position -= 1
        values.append(_symbol(stream))
    else:
        raise PtxError(f"unexpected `{token.text}` in an initialiser", token.line)


def _symbol(stream: TokenStream) -> tuple[str, int]:
    name = stream.next().text
    return name, stream.integer() if stream.accept("+") else 0
