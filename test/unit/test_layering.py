"""Imports flow one way, architectures are compared in one place, names say what things are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tilec
from tilec.costs.rates import FITTED

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tilec", "dialects", "passes", "runtime")


def rooms() -> dict[str, tuple[str, ...]]:
    """The table of rooms in tilec/README.md: each with those that it imports, in the page's
    order."""
    page = (ROOT / "tilec" / "README.md").read_text().partition("\n## Rooms\n")[2]
    rows = re.findall(r"^\| (?:`(\w+)`|\[(\w+)\]\(.*?\)) \|.*\| ?([\w, ]*) \|$", page, re.MULTILINE)
    return {plain or linked: tuple(re.findall(r"\w+", names)) for plain, linked, names in rows}


ROOMS = rooms()

WITHOUT_MLIR = ("records", "messages", "terms", "hardware", "executable", "runtime", "language")
"""Rooms that a launch of what is compiled already needs."""

PASS_FOLDERS = (
    "rewriting",
    "demands",
    "layouts",
    "analysis",
    "checks",
    "programs",
    "rows",
    "copies",
    "roles",
    "dots",
    "math",
    "lower_to_nvvm",
)
"""What passes share, lowest first: a folder imports those in front of it, and no pass."""

EMULATOR = (
    "numbers",
    "reading",
    "memories",
    "writing",
    "checking",
    "instructions",
    "execution",
    "program",
    "stream",
)
"""The emulator's folders and the two files above them, lowest first; its other files are below."""

SEEN_BY_ITS_PARTS = {f"tilec.runtime.emulator.execution.{name}" for name in ("machine", "launch")}
"""A machine is made of its parts, which lie below; they name its type, for type checkers only."""

MADE_OF_PASSES = {"keep_explicit": {"split_reductions", "split_atomics", "split_conversions"}}
"""Passes that run others; no other pass imports one."""

ABOVE = {
    "frontend": ("compile.compiler",),
    "compile.emit_ptx": ("dialects", "passes", "compile.pipeline", "compile.compiler"),
    "compile.pipeline": ("compile.compiler",),
    "compile.source": ("compile.compiler",),
}
"""What modules do not import of rooms that theirs may, or of their own."""


def sources() -> Iterator[Path]:
    """Every Python file of the product."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


SOURCES = tuple(sources())


def module_name(path: Path) -> str:
    """`passes/simplify.py` as `tilec.passes.simplify`."""
    relative = path.relative_to(ROOT).with_suffix("")
    parts = relative.parts if relative.parts[0] == "tilec" else ("tilec", *relative.parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Every module of tilec imported anywhere in a file; relative imports do not occur."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            module = node.module or ""
            yield module, node
            if module == "tilec":
                yield from ((f"tilec.{alias.name}", node) for alias in node.names)


MODULES = {module_name(path): path for path in SOURCES}


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


@cache
def imports_of(path: Path) -> tuple[tuple[str, ast.stmt], ...]:
    """What `imported` finds in a file."""
    return tuple(imported(tree_of(path)))


@cache
def imports_for_types(path: Path) -> frozenset[ast.stmt]:
    """The imports of a file that only type checkers follow."""
    guards = (
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    lines = {part.lineno for guard in guards for part in guard.body}
    return frozenset(node for _, node in imports_of(path) if node.lineno in lines)


def files_imported(path: Path) -> Iterator[str]:
    """The modules of tilec that a file imports, each the one that has what is imported: of
    `from tilec.language import gpu` that is `tilec.language.gpu`."""
    for name, node in imports_of(path):
        if name in SEEN_BY_ITS_PARTS and node in imports_for_types(path):
            continue
        parts = node.names if isinstance(node, ast.ImportFrom) else ()
        inside = {f"{name}.{part.name}" for part in parts} & MODULES.keys()
        yield from inside
        if name in MODULES and len(inside) < max(1, len(parts)):
            yield name


def ours(path: Path) -> list[str]:
    """Names below `tilec` that a file imports: `passes.simplify` of `tilec.passes.simplify`."""
    return [name[6:] for name, _ in imports_of(path) if name.startswith("tilec.")]


def others(path: Path) -> set[str]:
    """Top-level names of the other packages that a file imports."""
    return {name.partition(".")[0] for name, _ in imports_of(path)}


def room_of(name: str) -> str:
    """The room of a name below `tilec`."""
    return name.partition(".")[0]


def test_rooms_import_what_their_table_says() -> None:
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        name = module_name(path)[6:]
        if path.parent != ROOT / "tilec":  # which hands on what rooms have
            others = {room_of(other) for other in ours(path)} - {room_of(name)}
            found.setdefault(room_of(name), set()).update(others)
    assert {room: sorted(names) for room, names in found.items()} == {
        room: sorted(names) for room, names in ROOMS.items()
    }


def test_a_room_stands_below_those_it_imports() -> None:
    order = tuple(ROOMS)
    assert [
        f"{room} imports {other}"
        for room in order
        for other in ROOMS[room]
        if other not in order[: order.index(room)]
    ] == []


def test_no_module_of_tilec_stands_in_no_room() -> None:
    assert {path.stem for path in (ROOT / "tilec").glob("*.py")} <= {"__init__", "__main__"}


def test_no_room_is_called_as_what_tilec_offers() -> None:
    # Importing a room would put it in the other's place.
    for name in ROOMS.keys() & {*tilec.__all__}:
        assert getattr(tilec, name).__name__ == f"tilec.{name}"


def test_the_folders_of_passes_keep_their_order() -> None:
    folders = {path.name for path in (ROOT / "passes").iterdir() if (path / "__init__.py").exists()}
    assert set(PASS_FOLDERS) == folders
    wrong = []
    for path in SOURCES:
        package, _, rest = module_name(path).removeprefix("tilec.").partition(".")
        own, _, module = rest.partition(".")
        if package != "passes" or not own:
            continue
        below = {"contract", *MADE_OF_PASSES.get(own, ())}
        below |= set(PASS_FOLDERS[: PASS_FOLDERS.index(own) + 1] if module else PASS_FOLDERS)
        names = (name.split(".")[1] for name in ours(path) if name.startswith("passes."))
        wrong += [f"passes/{rest} imports {name}" for name in names if name not in below]
    assert wrong == []


def test_the_folders_of_the_emulator_keep_their_order() -> None:
    own = "tilec.runtime.emulator."

    def floor(name: str) -> int:
        top = name.removeprefix(own).partition(".")[0]
        return EMULATOR.index(top) if top in EMULATOR else -1

    folders = {path.parent.name for path in (ROOT / "runtime/emulator").glob("*/__init__.py")}
    assert folders == {*EMULATOR} - {"program", "stream"}
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if name.startswith(own)
        for other in files_imported(path)
        if floor(other) > floor(name)
    ]
    assert wrong == []


def test_no_files_import_each_other_in_a_circle() -> None:
    # `tilec` itself hands on names of what imports its version.
    below = {name: {*files_imported(path)} - {"tilec"} for name, path in MODULES.items()}
    circles = []
    for name in below:
        met, left = set(), [name]
        while left:
            new = below[left.pop()] - met
            met |= new
            left += new
        circles += [name] * (name in met)
    assert circles == []


def test_every_package_is_in_the_wheel() -> None:
    found = {module_name(path) for path in SOURCES if path.name == "__init__.py"}
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.search(r"^packages = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    tables = {"tilec.ops.tables"}  # no code, but setuptools takes each folder for a package
    assert set(re.findall(r'"(.*?)"', listed[1])) == found | tables


def test_modules_keep_their_order() -> None:
    wrong = []
    for path in SOURCES:
        name = module_name(path)[6:]
        for head in (room_of(name), name):
            forbidden = ABOVE.get(head, ())
            wrong += [
                f"{name} imports {other}" for other in ours(path) if other.startswith(forbidden)
            ]
    assert wrong == []


def test_a_launch_works_without_mlir_and_llvm() -> None:
    wrong = []
    for path in SOURCES:
        if room_of(module_name(path)[6:]) in WITHOUT_MLIR:
            wrong += [f"{path.name} imports {o}" for o in ("mlir", "llvmlite") if o in others(path)]
    assert wrong == []


def test_the_emulator_imports_only_itself() -> None:
    wrong = [
        f"{path.name} imports {other}"
        for path in SOURCES
        if module_name(path).startswith("tilec.runtime.emulator.")
        for other in ours(path)
        if not other.startswith("runtime.emulator")
    ]
    assert wrong == []


NEEDS_TORCH = {"tilec.ops.torch", "tilec.runtime.torch_operator"}
"""Modules that are imported where they are needed: torch is optional."""


def test_tilec_is_imported_at_the_top_of_a_file_only() -> None:
    wrong = []
    indented = [path for path in SOURCES if any(node.col_offset for _, node in imports_of(path))]
    for path in indented:
        for function in ast.walk(tree_of(path)):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = {name for name, _ in imported(function)} - NEEDS_TORCH
                inside = [name for name in names if name.startswith("tilec")]
                wrong += [f"{path.name}: {function.name} imports {name}" for name in inside]
    assert wrong == []


def test_llvmlite_is_touched_by_two_files() -> None:
    users = {path.name for path in SOURCES if "llvmlite" in others(path)}
    assert users == {"llvm_worker.py", "machine_code.py"}


def test_a_launch_from_the_cache_loads_no_mlir() -> None:
    launch_path = tuple(
        f"tilec.{name}" for name in ("jit", "demands", "specialization", "declaration", "language")
    )
    wrong = [
        path.name
        for path in SOURCES
        if module_name(path).startswith(launch_path) and "mlir" in others(path)
    ]
    assert wrong == []


_ARCHITECTURE = re.compile(r"sm_\d+|compute_\d+")
_COMPARISON = re.compile(r"\b(?:arch|compute_capability|sm)\b\s*(?:[<>]=?|==|!=)")
_FACTS = (
    *(f"tilec/hardware/{name}.py" for name in ("target", "mma_shapes", "ptx_forms")),
    *(f"tilec/costs/rates/{name}.py" for name in ("__init__", "others", *FITTED)),
)


def test_architectures_are_facts_of_the_target_table() -> None:
    wrong = []
    for path in SOURCES:
        # The emulator runs any PTX: what is legal on a chip is said by the text it is given.
        if str(path.relative_to(ROOT)) in _FACTS or "emulator" in path.parts:
            continue
        code = _without_docstrings(path)
        found = _ARCHITECTURE.findall(code) + _COMPARISON.findall(code)
        wrong += [f"{path.relative_to(ROOT)}: {text}" for text in found]
    assert wrong == []


def _without_docstrings(path: Path) -> str:
    """The code of a file: comments and docstrings may speak of architectures."""
    tree = tree_of(path)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from tilec.passes.x import y", ["tilec.passes.x"]),
        ("def f():\n    import tilec.call.jit", ["tilec.call.jit"]),
        ("from tilec import compile", ["tilec", "tilec.compile"]),
        ("import numpy", ["numpy"]),
    ],
)
def test_imports_are_seen_wherever_they_stand(text: str, expected: list[str]) -> None:
    assert [name for name, _ in imported(ast.parse(text))] == expected
