"""`dataclass`: Python's own decorator, but for how long it takes to make a class.

Python writes six functions for a frozen class as text and compiles them, in 0.6 ms, of which a
compilation needs few: it makes 150 to 220 classes, and objects of half of them. Here classes share
what is the same for all (`==`, `hash`, `repr`, what a frozen one refuses), and `__init__` is
written when it is first asked for. Fields are Python's, so that `replace`, `fields` and `asdict`
work; so are slots and an order, which Python's decorator makes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any


def _dataclass(
    cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
) -> Any:
    """Makes a class whose annotations are its fields, as `dataclasses.dataclass` does."""

    def decorate(cls: Any) -> Any:
        written = set(vars(cls))
        own_hash = written & {"__hash__"} and (cls.__hash__ is not None or "__eq__" not in written)
        cls.__doc__ = cls.__doc__ or cls.__name__  # else Python makes one of the signature
        dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=kw_only)
        methods: dict[str, Any] = {"__init__": _Init(cls, frozen), "__repr__": _repr(fields(cls))}
        if eq:
            methods |= {"__eq__": _eq(fields(cls))}
        for name in methods.keys() - written:
            setattr(cls, name, methods[name])
        if eq and not own_hash:
            cls.__hash__ = _hash(fields(cls)) if frozen else None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _refusals(cls)
        return cls

    return decorate if cls is None else decorate(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


class _Factory:
    """What stands in a signature for what is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Init:
    """`__init__` of a class until somebody asks for it, who gets the one that it then has."""

    def __init__(self, cls: type, is_frozen: bool) -> None:
        self._cls, self._is_frozen = cls, is_frozen

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        made = _written_init(self._cls, self._is_frozen)
        self._cls.__init__ = made
        return made if instance is None else made.__get__(instance)


def _written_init(cls: type, is_frozen: bool) -> Any:
    """The `__init__` that Python's decorator would have written."""
    given = [field for field in fields(cls) if field.init]
    known: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    parameters, body = ["self"], []
    for field in sorted(given, key=lambda field: bool(field.kw_only)):
        if field.kw_only and "*" not in parameters:
            parameters.append("*")
        known[f"_default_{field.name}"] = field.default
        default = "_factory" if field.default_factory is not MISSING else f"_default_{field.name}"
        parameters.append(f"{field.name}={default}" if _has_default(field) else field.name)
    for field in fields(cls):
        value = field.name
        if field.default_factory is not MISSING:
            known[f"_make_{field.name}"] = field.default_factory
            made = f"_make_{field.name}()"
            value = f"{made} if {value} is _factory else {value}" if field.init else made
        elif not field.init:
            continue
        name = field.name
        body.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    lines = "\n ".join(body or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n {lines}", known)
    init = known["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {**{field.name: field.type for field in given}, "return": None}
    return init


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives an object's fields of these names as a tuple."""
    match tuple(names):
        case ():
            return lambda _: ()
        case (name,):
            get = attrgetter(name)
            return lambda one: (get(one),)
        case several:
            return attrgetter(*several)


def _eq(of: Iterable[Field[Any]]) -> Any:
    values = _values(field.name for field in of if field.compare)

    def __eq__(self: Any, other: Any) -> Any:
        is_alike = other.__class__ is self.__class__
        return values(self) == values(other) if is_alike else NotImplemented

    return __eq__


def _hash(of: Iterable[Field[Any]]) -> Any:
    values = _values(f.name for f in of if (f.compare if f.hash is None else f.hash))

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr(of: Iterable[Field[Any]]) -> Any:
    names = [field.name for field in of if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def _refusals(cls: type) -> tuple[Any, Any]:
    """`__setattr__` and `__delattr__` of a frozen class; what a subclass adds is its own."""
    names = {field.name for field in fields(cls)}

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__
