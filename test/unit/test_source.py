"""Reading `.tile` text: every mistake is a CompileError at its position, nothing kills us."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlir import ir

from tilec.compile.isolation import Death
from tilec.compile.source import (
    MAX_BYTES,
    MAX_DEPTH,
    can_be_parsed,
    decode_source,
    parse_source,
    read_source,
)
from tilec.dialects.context import make_context
from tilec.messages.diagnostics import CompileError, Location

GOOD = 'func.func @k() {\n  %i = "tile.program_id"() {axis = 0 : i32} : () -> index\n  return\n}\n'


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return make_context()


def mistake(text: str, context: ir.Context) -> CompileError:
    with pytest.raises(CompileError) as caught:
        parse_source(text, "a.tile", context)
    assert caught.value.location is not None
    assert caught.value.location.file == "a.tile"
    return caught.value


def test_positions_of_the_module_name_the_file(context: ir.Context) -> None:
    module = parse_source(GOOD, "a.tile", context)
    (function,) = module.body.operations
    location = function.regions[0].blocks[0].operations[0].location
    assert str(location) == 'loc("a.tile":2:8)'
    assert str(function.location) == 'loc("a.tile":1:1)'


def test_positions_written_in_the_text_stay(context: ir.Context) -> None:
    text = 'func.func @k(%x: i32 loc("kernel.py":7:3)) {\n  return loc("kernel.py":9:5)\n}'
    module = parse_source(text, "a.tile", context)
    (function,) = module.body.operations
    block = function.regions[0].blocks[0]
    assert str(block.operations[0].location) == 'loc("kernel.py":9:5)'
    assert str(block.arguments[0].location) == 'loc("kernel.py":7:3)'


def test_positions_of_block_arguments_name_the_file(context: ir.Context) -> None:
    module = parse_source("func.func @k(%x: i32) {\n  return\n}", "a.tile", context)
    argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
    assert str(argument.location) == 'loc("a.tile":1:14)'


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("func.func @k() {\n  foo\n}", 2, 3, "custom op 'foo' is unknown"),
        ("func.func @k(", 1, 13, "expected non-function type"),
        ("func.func @k(%x: tensor<4xf33>) { return }", 1, 27, "expected non-function type"),
        (GOOD.replace(" {axis = 0 : i32}", ""), 2, 8, '"axis" is expected but not provided'),
        (GOOD.replace("axis = 0", "axis = 3"), 2, 8, "axis must be 0, 1 or 2, found 3"),
        (GOOD.replace("index", "i32"), 2, 8, "expected 'index' but got 'i32'"),
        ("func.func @k() {\n  return %x : i32\n}", 2, 10, "use of undeclared SSA value name"),
        ("func.func @k() {\n\t\u00e4\n}", 2, 2, "unexpected character"),
        (f"{GOOD}\n{GOOD}", GOOD.count("\n") + 2, 1, "redefinition of symbol named 'k'"),
    ],
)
def test_mistakes_have_a_position(
    context: ir.Context, text: str, line: int, column: int, message: str
) -> None:
    error = mistake(text, context)
    assert error.location == Location("a.tile", line, column)
    assert message in error.message


def test_the_text_shows_the_line_and_a_caret(context: ir.Context) -> None:
    text = str(mistake("func.func @k() {\n  foo\n}", context))
    assert text.splitlines()[1:] == ["   2 |   foo", "     |   ^"]


def test_every_wrong_op_is_reported(context: ir.Context) -> None:
    line = '  %{} = "tile.program_id"() {{axis = {} : i32}} : () -> index\n'
    text = "func.func @k() {\n" + "".join(line.format(f"v{i}", i) for i in range(5)) + "  return\n}"
    assert [error.location.line for error in mistake(text, context).errors] == [5, 6]


def test_notes_that_only_print_the_op_again_are_left_out(context: ir.Context) -> None:
    assert "see current operation" not in str(mistake(GOOD.replace("index", "i32"), context))


def test_notes_with_a_position_keep_it(context: ir.Context) -> None:
    error = mistake("func.func @k() { return }\nfunc.func @k() { return }", context)
    assert ("see existing symbol definition here", Location("a.tile", 1, 1)) in error.notes


class TestShortForm:
    """MLIR refuses the short form of a dynamic op without a word."""

    def test_has_an_example(self, context: ir.Context) -> None:
        text = "func.func @k() {\n  %i = tile.program_id {axis = 0 : i32} : index\n  return\n}"
        error = mistake(text, context)
        assert error.location == Location("a.tile", 2, 8)
        assert error.message.startswith("'tile.program_id' has no short form")
        assert '"tile.program_id"() {axis = 0 : i32} : () -> index' in str(error)

    def test_of_an_op_that_does_not_exist_has_none(self, context: ir.Context) -> None:
        error = mistake("func.func @k() {\n  tile.mutmul %a\n}", context)
        assert error.location == Location("a.tile", 2, 3)
        assert error.notes == ()

    def test_is_not_seen_in_strings_comments_and_attributes(self, context: ir.Context) -> None:
        text = (
            '// tile.load\nfunc.func @k() attributes {a = "tile.load", tile.kernel,'
            " tile.num_warps = 4 : i32} {\n  gpu_tile.sync\n}"
        )
        assert mistake(text, context).location == Location("a.tile", 3, 3)


class TestHostileText:
    """What MLIR's parser does not survive is a CompileError, too."""

    @pytest.mark.parametrize("opening", ["(", "[", "{", "<", "tensor<", "callsite("])
    def test_deep_nesting(self, context: ir.Context, opening: str) -> None:
        error = mistake("\n\n  " + opening * 100000, context)
        assert error.message == f"brackets nest deeper than {MAX_DEPTH} levels"
        column = 2 + MAX_DEPTH * len(opening) + len(opening)
        assert error.location == Location("a.tile", 3, column)

    def test_depth_is_no_matter_of_arrows_strings_and_comments(self, context: ir.Context) -> None:
        many = "\n".join(f"// ((((\nfunc.func private @f{i}() -> (i32)" for i in range(300))
        text = many + '\nfunc.func @k() attributes {a = "((((((", b = "\\"(" } { return }'
        module = parse_source(text, "a.tile", context)
        assert len(list(module.body.operations)) == 301

    def test_death_names_the_line_and_the_assertion(self, context: ir.Context) -> None:
        bomb = "  %x = arith.constant dense<0.0> : tensor<9223372036854775807x4xf32>\n"
        text = f"func.func @k() {{\n{bomb}  return\n}}\n" + "\n" * 50
        error = mistake(text, context)
        assert error.message == "MLIR's parser cannot take this text: it died of SIGABRT"
        assert error.location == Location("a.tile", 2)
        assert "integer overflow in element count" in str(error)

    def test_overflow_of_the_stack(self, context: ir.Context) -> None:
        text = "#m = affine_map<(d0) -> (" + "-" * 300000 + "d0)>"
        assert "died of SIGSEGV" in mistake(text, context).message

    def test_the_process_goes_on(self, context: ir.Context) -> None:
        assert parse_source(GOOD, "a.tile", context).operation.verify()

    def test_several_texts_are_tried_at_once(self, context: ir.Context) -> None:
        bomb = "#m = affine_map<(d0) -> (" + "-" * 300000 + "d0)>"
        assert can_be_parsed([GOOD, "nonsense"], context)
        assert not can_be_parsed([GOOD, bomb], context)


class TestBytes:
    """Files are UTF-8 text."""

    @pytest.mark.parametrize(
        ("content", "line", "column", "message"),
        [
            (b"a\nb\xff", 2, 2, "byte 0xff, which is no UTF-8"),
            (b"\xc3", 1, 1, "byte 0xc3, which is no UTF-8"),
            ("\u00e4\n\u00e4".encode() + b"\xe2\x82", 2, 3, "byte 0xe2, which is no UTF-8"),
            (b"func\n \0", 2, 2, "a NUL byte"),
        ],
    )
    def test_that_are_no_text(self, content: bytes, line: int, column: int, message: str) -> None:
        with pytest.raises(CompileError, match=message) as caught:
            decode_source(content, "b.tile")
        assert caught.value.location == Location("b.tile", line, column)

    @pytest.mark.parametrize(
        ("string", "byte"),
        [
            ('a = "x\\ee"', "ee"),  # an attribute's value
            ('"a\\ff" = 1 : i32', "ff"),  # its name
            ('a = "\\c3\\a4\\c3x"', "c3"),  # behind what is right
            ('a = "\\\\\\ad"', "ad"),  # behind an escaped backslash
        ],
    )
    def test_that_escapes_spell(self, context: ir.Context, string: str, byte: str) -> None:
        text = f"func.func @k() attributes {{{string}}} {{ return }}"
        error = mistake(text, context)
        assert error.message == f"expected text, found byte 0x{byte}, which is no UTF-8"
        assert error.location == Location("a.tile", 1, text.rindex("\\" + byte) + 1)

    def test_that_escapes_spell_in_the_name_of_an_op(self, context: ir.Context) -> None:
        error = mistake('func.func @k() {\n  "tile.l\\ad"() : () -> ()\n}', context)
        assert error.location == Location("a.tile", 2, 10)

    def test_of_strings_may_be_spelt(self, context: ir.Context) -> None:
        text = 'func.func @k() attributes {a = "\\c3\\a4\\\\ee\\"\\n"} { return } // "\\ee"'
        module = parse_source(text, "a.tile", context)  # an op does not keep it
        (function,) = module.body.operations
        assert function.attributes["a"].value == '\u00e4\\ee"\n'

    def test_of_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tile"
        path.write_text("// \u00e4\n", encoding="utf-8")
        assert read_source(str(path)) == "// \u00e4\n"

    def test_of_a_file_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(CompileError, match=r"cannot read .*: Is a directory"):
            read_source(str(tmp_path))
        with pytest.raises(CompileError, match="cannot read /nowhere/a: No such file"):
            read_source("/nowhere/a")


def test_a_text_that_never_ends_is_refused() -> None:
    with pytest.raises(CompileError, match="/dev/zero has more than 16 MiB"):
        read_source("/dev/zero")


def test_a_text_of_the_greatest_length_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tile"
    with path.open("wb") as file:
        file.write(b"\n" * MAX_BYTES)
    assert len(read_source(str(path))) == MAX_BYTES
    with path.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(CompileError, match=r"a\.tile has more than 16 MiB"):
        read_source(str(path))


def test_a_parser_that_takes_too_long_is_tried_once(
    context: ir.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = []

    def late(action: object, timeout_s: float) -> Death:
        trials.append(timeout_s)
        return Death("did not finish within 30 s", "", is_late=True)

    monkeypatch.setattr("tilec.compile.source.death_of", late)
    error = mistake(GOOD * 100, context)
    assert error.message.endswith("it did not finish within 30 s")
    assert trials == [30.0]


def test_a_text_does_not_show_files_that_it_names(context: ir.Context, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden\nlines\n")
    text = GOOD.replace("axis = 0", "axis = 3").replace("-> index", f'-> index loc("{secret}":2:1)')
    with pytest.raises(CompileError) as caught:
        parse_source(text, "a.tile", context)
    assert f"{secret}:2:1: error: 'tile.program_id' op axis must be 0, 1 or 2" in str(caught.value)
    assert "lines" not in str(caught.value)
