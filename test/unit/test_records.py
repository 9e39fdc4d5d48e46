"""`tilec.records.dataclass` makes what Python's own decorator makes."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tilec.records import dataclass

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tilec", "dialects", "passes", "runtime")
Decorator = Callable[..., Any]


def plain(decorator: Decorator) -> type:
    """A class whose objects change."""

    @decorator
    class Plain:
        """Text."""

        kind: ClassVar[str] = "plain"
        first: int
        second: str = "b"
        many: list[int] = field(default_factory=list)
        hidden: int = field(default=1, repr=False, compare=False)
        found: int = field(init=False, default=7)
        made: list[int] = field(init=False, default_factory=list)

    return Plain


def frozen(decorator: Decorator) -> type:
    """A class with a hash, and one that has fields besides."""

    @decorator(frozen=True)
    class Base:
        """Text."""

        first: Any
        second: int = 2

    @decorator(frozen=True)
    class Derived(Base):
        """Text."""

        third: tuple[int, ...] = ()
        unhashed: int = field(default=0, hash=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "noted", True)

    return Derived


def identical(decorator: Decorator) -> type:
    """A class whose objects equal themselves alone."""

    @decorator(frozen=True, eq=False, kw_only=True)
    class Identical:
        """Text."""

        first: int = 1
        second: int

    return Identical


def written(decorator: Decorator) -> type:
    """A class with methods of its own."""

    @decorator(frozen=True)
    class Written:
        """Text."""

        first: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    return Written


def single(decorator: Decorator) -> type:
    """A class of one field."""

    @decorator(frozen=True)
    class Single:
        """Text."""

        first: Any

    return Single


def empty(decorator: Decorator) -> type:
    """A class of none."""

    @decorator(frozen=True)
    class Empty:
        """Text."""

    return Empty


CALLS = [
    (),
    (1,),
    (1, "c"),
    (1, "c", [3]),
    ((2, 1),),
    (1.0,),
    (1, 2, (3,), 4),
    (1, 2, 3, 4, 5, 6, 7),
]
NAMED = [{}, {"second": 4}, {"first": 1, "second": 4}, {"hidden": 3}, {"nobody": 3}]
KINDS = [plain, frozen, identical, written, single, empty]


def outcome(run: Callable[[], Any]) -> Any:
    """What a call gives, or the kind of what it raises."""
    try:
        return run()
    except (TypeError, FrozenInstanceError) as error:
        return type(error)


def shown(one: Any) -> Any:
    """What an object says of itself, without where it lies."""
    return one if isinstance(one, type) else (repr(one).split(" at ")[0], vars(one))


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_those_of_pythons_decorator(kind: Callable[[Decorator], type]) -> None:
    ours, pythons = kind(dataclass), kind(dataclasses.dataclass)
    for values in CALLS:
        for names in NAMED:
            found = [outcome(partial(k, *values, **names)) for k in (ours, pythons)]
            assert shown(found[0]) == shown(found[1])


@pytest.mark.parametrize("kind", KINDS)
def test_objects_compare_as_those_of_pythons_decorator(kind: Callable[[Decorator], type]) -> None:
    def answers(decorator: Decorator) -> list[Any]:
        made = kind(decorator)
        every = [outcome(partial(made, *v, **n)) for v in CALLS for n in NAMED]
        objects = [one for one in every if not isinstance(one, type)]
        pairs = [(a == b, a != b, a == copy.copy(b)) for a in objects for b in objects]
        if made.__hash__ is not object.__hash__:
            pairs += [outcome(partial(hash, a)) for a in objects]
        return pairs

    assert answers(dataclass) == answers(dataclasses.dataclass)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_say_the_same_of_themselves(kind: Callable[[Decorator], type]) -> None:
    ours, pythons = kind(dataclass), kind(dataclasses.dataclass)
    assert str(inspect.signature(ours)) == str(inspect.signature(pythons))
    assert ours.__match_args__ == pythons.__match_args__
    assert [f.name for f in dataclasses.fields(ours)] == [
        f.name for f in dataclasses.fields(pythons)
    ]
    assert ours.__doc__ == "Text."
    assert (ours.__hash__ is None) == (pythons.__hash__ is None)


def test_a_frozen_object_stays_as_it_is() -> None:
    one = frozen(dataclass)(1)
    for change in (
        lambda: setattr(one, "first", 2),
        lambda: setattr(one, "third", ()),
        lambda: setattr(one, "other", 2),
        lambda: delattr(one, "first"),
    ):
        with pytest.raises(FrozenInstanceError):
            change()
    other = dataclasses.asdict(dataclasses.replace(one, first=2))
    assert other == {"first": 2, "second": 2, "third": (), "unhashed": 0}


@dataclass(frozen=True)
class Pickled:
    """In a module, so that it has a name."""

    first: int


def test_objects_are_copied_and_pickled() -> None:
    one = Pickled(3)
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)


def test_who_writes_no_init_calls_that_of_the_class_above() -> None:
    class Above(Pickled):
        def __init__(self) -> None:
            super().__init__(4)

    assert Above().first == 4


def test_a_class_that_is_no_objects_has_no_init_written() -> None:
    made = plain(dataclass)
    assert not callable(vars(made)["__init__"])
    made(1)
    assert callable(vars(made)["__init__"])


OTHERS = {"emulator", "examples"}
"""Folders that have Python's: the emulator, which imports nothing of tilec's, and what authors
write."""


def test_nobody_has_pythons_decorator_who_could_have_ours() -> None:
    files = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
    assert [
        str(path.relative_to(ROOT))
        for path in files
        if not OTHERS & {*path.parts} and needs_ours(ast.parse(path.read_text()))
    ] == []


def needs_ours(file: ast.Module) -> bool:
    """Whether a file imports Python's decorator, and makes nothing with slots or an order."""
    imports = [node for node in file.body if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    calls = [node for node in ast.walk(file) if isinstance(node, ast.Call)]
    made = [node for node in calls if getattr(node.func, "id", "") == "dataclass"]
    options = {word.arg for node in made for word in node.keywords}
    return "dataclasses.dataclass" in names and not options & {"slots", "order"}
