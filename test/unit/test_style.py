"""House rules that no linter knows: sizes, names, docstrings, what a comment may not say."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tilec", "dialects", "passes", "runtime")

MOST_FILE_LINES = 450
MOST_FUNCTION_LINES = 60
TYPICAL_FILE_LINES = 200
TYPICAL_FUNCTION_LINES = 12
"""Medians must stay below: the typical file and function are small."""

BANNED = {
    "utils",
    "util",
    "helper",
    "helpers",
    "misc",
    "manager",
    "handle",
    "process",
    "data",
    "info",
    "tmp",
    "v2",
}
"""Words that say nothing about what a name stands for."""

BANNED_FILES = {*BANNED, "common", "shared", "base", "core"}
"""Words that say nothing about what a file is for."""

OTHERS_WORDS = {"DATA_LAYOUT", "manager", "utils"}
"""LLVM's data layout, MLIR's and LLVM's pass managers, what Triton's drivers have: their words for
their things."""


def sources() -> Iterator[Path]:
    """Every Python file of the product."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


SOURCES = tuple(sources())
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


def functions_of(path: Path) -> Iterator[FunctionNode]:
    """Every function and method of a file."""
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, FunctionNode))


def lines_of(node: FunctionNode) -> int:
    """Lines of a function without its docstring."""
    first, *rest = node.body
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    skipped = (first.end_lineno or 0) - first.lineno + 1 if is_text and rest else 0
    return (node.end_lineno or 0) - node.lineno + 1 - skipped


def show(path: Path) -> str:
    """A path as it is named from the repository's root."""
    return str(path.relative_to(ROOT))


def test_no_file_is_too_long() -> None:
    sizes = {show(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: size for name, size in sizes.items() if size > MOST_FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    sizes = {
        f"{show(path)}: {node.name}": lines_of(node)
        for path in SOURCES
        for node in functions_of(path)
    }
    assert {name: size for name, size in sizes.items() if size > MOST_FUNCTION_LINES} == {}


def test_typical_files_and_functions_are_small() -> None:
    files = sorted(len(path.read_text().splitlines()) for path in SOURCES)
    functions = sorted(lines_of(node) for path in SOURCES for node in functions_of(path))
    assert files[len(files) // 2] <= TYPICAL_FILE_LINES
    assert functions[len(functions) // 2] <= TYPICAL_FUNCTION_LINES


def names_in(path: Path) -> Iterator[str]:
    """The names a file gives: its own, its functions', classes', arguments' and variables'."""
    yield path.stem
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (FunctionNode, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def words_of(name: str) -> set[str]:
    """`makeTmpFile`, `make_tmp_file` as {make, tmp, file}."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+", name)}


def test_files_are_named_after_their_subject() -> None:
    assert [show(path) for path in SOURCES if path.stem in BANNED_FILES] == []


def test_names_say_what_things_are() -> None:
    wrong = [
        f"{show(path)}: {name}"
        for path in SOURCES
        for name in names_in(path)
        if words_of(name) & BANNED and name not in OTHERS_WORDS
    ]
    assert wrong == []


def test_modules_and_what_is_public_have_docstrings() -> None:
    wrong = []
    for path in SOURCES:
        tree = tree_of(path)
        if not ast.get_docstring(tree) and path.read_text().strip():
            wrong.append(show(path))
        for node in tree.body:
            public = isinstance(node, (FunctionNode, ast.ClassDef)) and node.name[0] != "_"
            if (
                public
                and not _is_overload(node)
                and not ast.get_docstring(node)
                and not _is_rule(path, node)
            ):
                wrong.append(f"{show(path)}: {node.name}")
    assert wrong == []


def _is_overload(node: FunctionNode | ast.ClassDef) -> bool:
    return "overload" in map(ast.unparse, node.decorator_list)


def _is_rule(path: Path, node: ast.AST) -> bool:
    """One of many alike, whose table or module says what they do: a text would repeat the name."""
    tables = ("runtime/emulator/", "passes/math/")
    return isinstance(node, FunctionNode) and show(path).startswith(tables)


def test_functions_say_their_types() -> None:
    """Public functions have a type for every parameter and the result."""
    wrong = []
    for path in SOURCES:
        if path.is_relative_to(ROOT / "tilec/examples"):
            continue  # kernels: their parameters have tile types or none
        for node in tree_of(path).body:
            if isinstance(node, FunctionNode) and node.name[0] != "_" and not _is_kernel(node):
                untyped = [
                    a.arg for a in (*node.args.args, *node.args.kwonlyargs) if not a.annotation
                ]
                if untyped or node.returns is None:
                    wrong.append(f"{show(path)}: {node.name}")
    assert wrong == []


def _is_kernel(node: FunctionNode) -> bool:
    """A kernel's parameter without annotation is an array or a number, as the call gives it."""
    return any("tilec.kernel" in ast.unparse(decorator) for decorator in node.decorator_list)


_UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")


def test_no_comment_is_a_promise() -> None:
    wrong = []
    for path in SOURCES:
        text = path.read_text()
        if not _UNFINISHED.search(text):
            continue
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING) and _UNFINISHED.search(
                token.string
            ):
                wrong.append(f"{show(path)}:{token.start[0]}")
    assert wrong == []


_ELSEWHERE = re.compile(r"(?<!\w)/(?:root|work)/")


def test_the_text_of_the_repository_names_no_machine() -> None:
    suffixes = {".py", ".md", ".mlir", ".tile", ".toml", ".yaml", ""}
    folders = [ROOT / name for name in (*FOLDERS, "test")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes]
    wrong = [
        show(path)
        for path in [*files, *ROOT.glob("*.md"), ROOT / "pyproject.toml"]
        if path.is_file() and path != Path(__file__) and "__pycache__" not in path.parts
        if _ELSEWHERE.search(path.read_text(errors="replace"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("make_tmp_file", {"make", "tmp", "file"}), ("LoadInfo", {"load", "info"}), ("a2", {"a2"})],
)
def test_names_are_cut_into_words(name: str, words: set[str]) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize("name", ["cupy", "jax", "numpy", "torch", "triton"])
def test_no_folder_of_tests_is_taken_for_a_package(name: str) -> None:
    """pytest puts these folders on the path, and Python takes one without __init__.py for a package
    that is not installed: torch then meets a Triton without contents."""
    on_the_path = {path.parent for path in (ROOT / "test").rglob("*.py") if path.stem[:4] in _SEEN}
    assert [folder for folder in on_the_path if (folder / name).is_dir()] == []
    assert len(on_the_path) > 10


_SEEN = {"test", "conf"}
"""How files begin whose folders pytest puts on the path."""
