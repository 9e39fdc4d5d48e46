"""Ways to break a text, drawn from a seed: the same seed gives the same broken text."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|[A-Za-z_][\w.$]*|[%#!@^][\w.$]+|-?\d+(?:\.\d+)?|->|\s+|.',
    re.DOTALL,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TYPE = re.compile(r"i1|i8|i16|i32|i64|index|f16|bf16|f32|f64|f8E5M2|f8E4M3FN|memref|tensor")

NUMBERS = (
    "0",
    "-1",
    "1",
    "3",
    "7",
    "33",
    "1025",
    "65536",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999999999",
    "0.5",
    "0x7FF",
)
TYPES = (
    "i1",
    "i7",
    "i32",
    "i64",
    "i128",
    "index",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f80",
    "f8E5M2",
    "f4E2M1FN",
    "none",
    "complex<f32>",
    "vector<4xf32>",
    "tensor<*xf32>",
    "memref<4xf32>",
    "tensor<4x!gpu_tile.buffer<tensor<4xf32>, 3>>",
    "!llvm.ptr",
    "tuple<i32, i32>",
)

Mutation = Callable[[list[str], random.Random], list[str]]


def tokens_of(text: str) -> list[str]:
    """The text cut into words, numbers, strings, comments, signs and blanks."""
    return _TOKEN.findall(text)


def _at(tokens: list[str], rng: random.Random, fits: Callable[[str], object] = str.strip) -> int:
    """The index of a random token that fits; any token where none does."""
    places = [i for i, token in enumerate(tokens) if fits(token)]
    return rng.choice(places or range(len(tokens)))


def delete(tokens: list[str], rng: random.Random) -> list[str]:
    at = _at(tokens, rng)
    return tokens[:at] + tokens[at + 1 :]


def duplicate(tokens: list[str], rng: random.Random) -> list[str]:
    at = _at(tokens, rng)
    return [*tokens[: at + 1], " ", *tokens[at:]]


def swap(tokens: list[str], rng: random.Random) -> list[str]:
    one, two = _at(tokens, rng), _at(tokens, rng)
    changed = list(tokens)
    changed[one], changed[two] = changed[two], changed[one]
    return changed


def copy_one_over_another(tokens: list[str], rng: random.Random) -> list[str]:
    """Of the same kind, so that the text often still parses: the operand of another op, say."""
    one = _at(tokens, rng)
    kind = tokens[one][:1]
    changed = list(tokens)
    changed[one] = tokens[_at(tokens, rng, lambda token: token[:1] == kind)]
    return changed


def change_number(tokens: list[str], rng: random.Random) -> list[str]:
    return _replace(tokens, _at(tokens, rng, _NUMBER.fullmatch), rng.choice(NUMBERS))


def change_type(tokens: list[str], rng: random.Random) -> list[str]:
    return _replace(tokens, _at(tokens, rng, _TYPE.fullmatch), rng.choice(TYPES))


def change_size(tokens: list[str], rng: random.Random) -> list[str]:
    """Sizes stand in words such as `tensor<` `128x64xbf16`."""
    at = _at(tokens, rng, re.compile(r"x?\d*x[\dx]*[a-z]\w+").fullmatch)
    numbers = list(re.finditer(r"\d+(?=x)", tokens[at]))
    if not numbers:
        return change_number(tokens, rng)
    found = rng.choice(numbers)
    text = tokens[at]
    return _replace(tokens, at, text[: found.start()] + rng.choice(NUMBERS) + text[found.end() :])


def change_inside_a_string(tokens: list[str], rng: random.Random) -> list[str]:
    """Layouts, op names and words of attributes are strings."""
    at = _at(tokens, rng, lambda token: token[:1] == '"')
    text = tokens[at]
    place = rng.randrange(len(text))
    piece = rng.choice(
        ["", "0", "9", "(", ")", ",", "@", ":", "\\", "\u00e4", text[::-1], "x" * 300]
    )
    return _replace(tokens, at, text[:place] + piece + text[place + 1 :])


def change_attribute(tokens: list[str], rng: random.Random) -> list[str]:
    """Another value for an attribute: the token behind an equals sign."""
    at = _at(tokens, rng, lambda token: token == "=")
    values = [
        "3",
        '"word"',
        "true",
        "[1]",
        "{}",
        "unit",
        "array<i32: 1>",
        "dense<1> : tensor<2xi32>",
    ]
    behind = next((i for i in range(at + 1, len(tokens)) if tokens[i].strip()), at)
    return _replace(tokens, behind, rng.choice(values))


def delete_a_line(tokens: list[str], rng: random.Random) -> list[str]:
    lines = "".join(tokens).split("\n")
    del lines[rng.randrange(len(lines))]
    return tokens_of("\n".join(lines))


def swap_lines(tokens: list[str], rng: random.Random) -> list[str]:
    lines = "".join(tokens).split("\n")
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return tokens_of("\n".join(lines))


def repeat_a_line(tokens: list[str], rng: random.Random) -> list[str]:
    lines = "".join(tokens).split("\n")
    at = rng.randrange(len(lines))
    lines[at:at] = [lines[at]] * rng.choice([1, 2, 50])
    return tokens_of("\n".join(lines))


def _replace(tokens: list[str], at: int, token: str) -> list[str]:
    return [*tokens[:at], token, *tokens[at + 1 :]]


MUTATIONS: tuple[Mutation, ...] = (
    delete,
    duplicate,
    swap,
    copy_one_over_another,
    copy_one_over_another,
    change_number,
    change_number,
    change_type,
    change_size,
    change_inside_a_string,
    change_attribute,
    delete_a_line,
    swap_lines,
    repeat_a_line,
)


def mutant(text: str, seed: str) -> str:
    """A text with one to three mistakes, sometimes cut off."""
    rng = random.Random(seed)
    tokens = tokens_of(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        tokens = rng.choice(MUTATIONS)(tokens, rng)
    broken = "".join(tokens)
    return broken[: rng.randrange(len(broken))] if rng.random() < 0.05 else broken


def damaged(text: str, seed: str) -> bytes:
    """A text with bytes changed, put in or cut off, whatever UTF-8 says."""
    rng = random.Random(seed)
    content = bytearray(text.encode())
    for _ in range(rng.choice((1, 2, 20))):
        at = rng.randrange(len(content))
        content[at : at + rng.choice((0, 1, 1, 8))] = rng.randbytes(rng.choice((1, 1, 4, 64)))
    return bytes(content)
