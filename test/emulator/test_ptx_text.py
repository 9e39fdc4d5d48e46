"""PTX that cannot be read: the line, and what was expected there."""

from __future__ import annotations

import re

import pytest
from golden_kernels import GOLDEN

from tilec.runtime.emulator import PtxError, load
from tilec.runtime.emulator.reading.parser import parse_module
from tilec.runtime.emulator.reading.tokens import tokenize

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("ret;", 6, "the text ends inside a block"),
        (".reg .b32 %r<3>; /* two\nlines */ mov.b32 %r1, #;\n}", 7, "unexpected character '#'"),
        ('.pragma "nounroll;\n}', 6, "unexpected character '\"'"),
        (".reg .b32 %r<3>;\nmov.b32 %r1 %r2;\n}", 7, "expected `;`, found `%r2`"),
        (".reg .b32 %r<3>;\nmov.b64 {%r1, %r2;\n}}", 7, "expected `}`, found `;`"),
        (".reg .b32 %r<3>;\nmov.b32 %r1, %r3;\n}", 7, "register `%r3` is not declared"),
        (".reg .b32 %r<3>;\nmov.b32 %r1, ;\n}", 7, "unexpected `;` in an operand"),
    ],
)
def test_what_cannot_be_read(body: str, line: int, words: str) -> None:
    with pytest.raises(PtxError) as caught:
        load(HEADER + body)
    assert str(caught.value) == f"PTX line {line}: {words}"


def test_kinds_and_lines_of_tokens() -> None:
    text = '.loc 1 2 // a "word"\n\n@!%p1 mov.f32 %f1, 0f3F800000; /* x\n */ "a // b" 1.5e-3 0x1FU'
    assert [tuple(token) for token in tokenize(text)] == [
        ("word", ".loc", 1), ("number", "1", 1), ("number", "2", 1),
        ("punctuation", "@", 3), ("punctuation", "!", 3), ("word", "%p1", 3),
        ("word", "mov.f32", 3), ("word", "%f1", 3), ("punctuation", ",", 3),
        ("number", "0f3F800000", 3), ("punctuation", ";", 3),
        ("string", '"a // b"', 4), ("number", "1.5e-3", 4), ("number", "0x1FU", 4),
    ]  # fmt: skip


def test_registers_inside_vectors_pairs_and_addresses() -> None:
    body = (
        ".reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n.reg .pred %p<3>;\n"
        "setp.eq.u32 %p1|%p2, %r1, %r2;\nld.global.v2.u32 {%r1, %r2}, [%rd1+-8];\nret;\n}"
    )
    compare, read, _ = parse_module(HEADER + body).entries["k"].instructions
    pair, vector, address = compare.operands[0], read.operands[0], read.operands[1]
    assert (pair.first.name, pair.second.name) == ("%p1", "%p2")
    assert [register.name for register in vector.elements] == ["%r1", "%r2"]
    assert (address.base.name, address.offset) == ("%rd1", -8)


@pytest.mark.parametrize(("kernel", "target"), [("attention", "sm_90a"), ("matmul", "sm_100a")])
def test_lines_and_tokens_say_the_same(kernel: str, target: str) -> None:
    """An instruction that has a line to itself is read as a whole; behind a `;` it is not."""
    text = re.sub(r"//@emulator .*", "", GOLDEN[kernel, target].ptx(target))  # notes have no line
    tokens = re.sub(r"^\t(?=[@a-z])", "\t;", text, flags=re.MULTILINE)
    assert sum(token.kind == "statement" for token in tokenize(text)) > 200
    assert not any(token.kind == "statement" for token in tokenize(tokens))
    whole, cut = (parse_module(written).entries for written in (text, tokens))
    (one,), (other,) = whole.values(), cut.values()
    assert (one.labels, one.registers, one.variables) == (
        other.labels,
        other.registers,
        other.variables,
    )
    for a, b in zip(one.instructions, other.instructions, strict=True):
        assert (a.opcode, a.modifiers, a.operands, a.guard) == (
            b.opcode,
            b.modifiers,
            b.operands,
            b.guard,
        )
        assert (a.place.ptx_line, a.place.source) == (b.place.ptx_line, b.place.source)


def test_what_a_name_means_changes_with_declarations() -> None:
    """Texts of operands are looked up, but not beyond the scope or the next declaration."""
    move = "mov.b32 %r1, %r2;\n"
    body = (
        f".reg .b32 %r<3>;\n{move}{{\n.reg .b32 %r2;\n{move}}}\n{move}"
        f".reg .b32 %r2;\n{move}ret;\n}}"
    )
    moves = parse_module(HEADER + body).entries["k"].instructions[:-1]
    assert [move.operands[1].index for move in moves] == [2, 3, 2, 4]


def test_the_place_of_a_whole_line() -> None:
    body = ".reg .b32 %r<3>;\n.loc 1 7 3\n\tadd.s32 \t%r1, %r2, -1;\n\t@%p1 bra $L;\n}"
    text = HEADER.replace(".visible", '.file 1 "k.py"\n.visible') + body
    with pytest.raises(PtxError, match="PTX line 10: `%p1` is not a predicate register"):
        load(text)
    (place,) = [
        i.place
        for i in parse_module(text.replace("\t@%p1 bra $L;\n", "")).entries["k"].instructions
    ]
    assert str(place) == "k.py:7:3 (PTX line 9: add.s32 %r1, %r2, -1)"
