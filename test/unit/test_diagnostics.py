"""What an error looks like on the terminal."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tilec.messages.diagnostics import (
    CompileError,
    InternalError,
    Location,
    quote_file,
    register_source,
)


def shown(text: str, line: int, column: int, message: str = "bad", **more: object) -> list[str]:
    register_source("k.py", text)
    return str(CompileError(message, Location("k.py", line, column), **more)).split("\n")  # type: ignore[arg-type]


def test_position_message_source_line_and_caret():
    assert shown("a = 1\nb = foo(a)\n", 2, 5, "unknown name 'foo'") == [
        "k.py:2:5: error: unknown name 'foo'",
        "   2 | b = foo(a)",
        "     |     ^",
    ]


def test_tabs_are_kept_under_tabs():
    assert shown("\tx =\ty", 1, 6)[1:] == ["   1 | \tx =\ty", "     | \t   \t^"]


def test_column_counts_utf8_bytes_and_wide_characters_take_two_columns():
    # "é" is two bytes and one column, the ideograph three bytes and two columns.
    assert shown("é漢x", 1, 1 + 2 + 3)[2] == "     |    ^"
    assert shown("e\u0301x", 1, 4)[2] == "     |  ^"


def test_column_past_the_end_points_behind_the_line():
    assert shown("abc", 1, 4)[2] == "     |    ^"
    assert shown("abc", 1, 99)[2] == "     |    ^"
    assert shown("abc", 1, 0)[2] == "     | ^"


def test_long_line_is_cut_around_the_caret():
    line = "x" * 5000 + "HERE" + "y" * 5000
    _, source, caret = shown(line, 1, 5001)
    assert len(source) < 200
    assert source[caret.index("^") :].startswith("HERE")


def test_control_characters_do_not_reach_the_terminal():
    assert "\x1b" not in "\n".join(shown("a\x1b[31mb", 1, 1))


@pytest.mark.parametrize("line", [-1, 0, 3, 10**9])
def test_line_outside_the_source_gives_no_excerpt(line: int):
    assert shown("a\nb", line, 1) == [f"k.py:{line}:1: error: bad"]


def test_line_is_read_from_the_file(tmp_path: Path):
    path = tmp_path / "kernel.tile"
    path.write_text("first\r\nsecond\r\n")
    assert "\n" not in str(CompileError("m", Location(str(path), 2, 3)))  # whose is it?
    quote_file(str(path))
    assert str(CompileError("m", Location(str(path), 2, 3))).split("\n")[1:] == [
        "   2 | second",
        "     |   ^",
    ]
    path.write_text("changed\nagain, changed\n")
    assert "again, changed" in str(CompileError("m", Location(str(path), 2, 3)))


def test_missing_unreadable_and_binary_files_give_no_excerpt(tmp_path: Path):
    binary = tmp_path / "b"
    binary.write_bytes(b"\xff\xfe\x00\x80\n")
    for name in (str(tmp_path / "absent"), str(tmp_path), str(binary), "<stdin>", ""):
        quote_file(name)
        assert "\n" not in str(CompileError("m", Location(name, 1, 1)))


def test_notes_have_their_word_and_may_have_a_position():
    lines = shown(
        "a\nb",
        2,
        1,
        notes=["seen before", "help: rename it", ("called here", Location("k.py", 1, 1))],
    )
    assert lines[3:] == [
        "note: seen before",
        "help: rename it",
        "k.py:1:1: note: called here",
        "   1 | a",
    ]


def test_the_caret_of_a_note_is_left_out_under_the_first_letter():
    source = "x = 1\n\t if n: y\n"
    for column, caret in ((3, []), (7, ["     | \t     ^"]), (2, ["     | \t^"])):
        lines = shown(source, 1, 1, notes=[("here", Location("k.py", 2, column))])
        assert lines[3:] == [f"k.py:2:{column}: note: here", "   2 | \t if n: y", *caret]


def test_an_error_without_a_position():
    error = CompileError("no such target", notes=("help: use one of x, y",))
    assert str(error) == "error: no such target\nhelp: use one of x, y"
    assert error.errors == (error,)


def test_several_errors_print_in_order_and_nest_flat():
    one, two, three = (CompileError(name) for name in ("one", "two", "three"))
    group = CompileError.group([CompileError.group([one, two]), three])
    assert [error.message for error in group.errors] == ["one", "two", "three"]
    assert str(group) == "error: one\nerror: two\nerror: three"
    with pytest.raises(ValueError, match="at least one"):
        CompileError.group([])


def test_errors_cross_a_process_boundary():
    register_source("k.py", "abc")
    single = CompileError("m", Location("k.py", 1, 2), ["n"])
    for error in (single, CompileError.group([single, CompileError("o")]), InternalError("i", "d")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_internal_error_says_whose_bug_and_how_to_reproduce():
    assert "bug in tilec" in str(InternalError("boom"))
    assert "TILEC_DUMP" in str(InternalError("boom"))
    assert "tilec compile out/03.mlir" in str(InternalError("boom", "out/03.mlir"))
