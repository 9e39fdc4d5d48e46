"""`torch.ops.tilec.launch`: a launch as an operator of torch's, which graphs keep.

Importing this module registers it and needs torch; it is imported where torch traces a launch. One
operator serves every kernel: `call`, a text, says which, and how the tensors and numbers beside it
are its arguments. The tensors in `written` are those that the kernel may change, which the compiler
knows; so torch orders, functionalizes and captures launches as it does its own operators.
"""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any
from uuid import uuid4

import torch

from tilec.executable.kernel import LISTS
from tilec.records import dataclass
from tilec.runtime.array_list import describe_list, list_of
from tilec.runtime.arrays import CUDA, HOST, ArrayView, refuse_recorded
from tilec.runtime.errors import ArgumentError
from tilec.runtime.traced_values import any_traced, found_by_name, numbered, recordable, recorded
from tilec.terms.dtypes import BY_ARRAY

NAME = "tilec::launch"
SCHEMA = "(Tensor(a!)[] written, Tensor[] read, SymInt[]? whole, float[]? real, str call) -> ()"

MOST_CALLS = 4096
"""Texts of calls whose meaning is kept, as many as plans (`fast_call.MAX_PLANS`)."""
USUAL_SIZE = 64
"""A size that torch knows nothing of (it comes from data), where a kernel is asked what it writes:
any that no kernel is made for alone."""


def launch_traced(number: int, /, *arguments: Any, **named: Any) -> None:
    """A call of the kernel with that number, as Dynamo's graphs hold it: where tensors have no
    memory it becomes the operator, else the launch."""
    target = numbered(number)
    arguments = tuple(map(recorded, arguments))
    named = {name: recorded(value) for name, value in named.items()}
    if any_traced((*arguments, *named.values())):
        record(target, arguments, named)
    else:
        target.run(*arguments, **named)


@torch.compiler.assume_constant_result
def variant_traced(number: int, demands: tuple[tuple[str, Any], ...]) -> int:
    """The number of the kernel with that number under other demands, a constant of the graph."""
    return numbered(number).demanded(dict(demands)).number


def record(target: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Calls the operator in the place of a launch. `target`: a kernel, whose `traced_arguments`
    binds a call, and whose `taken_apart` says what launches it on which arrays.

    ArgumentError for a stream, and for a tensor whose gradient is recorded.
    """
    given = dict(named)
    if given.pop("stream", None) is not None:
        raise ArgumentError("stream: a traced launch is on the current stream")
    grid = given.pop("grid", None)
    values = target.traced_arguments(arguments, given)
    written, parts = _written(target, values)
    found = _Parts()
    for name in written:
        several = isinstance(parts[name], (list, tuple))
        for tensor in parts[name] if several else [parts[name]]:
            found.write(tensor)
    told = {name: found.told(value) for name, value in values.items()}
    constants = [a.name for a in target.arguments if a.kind == "const" and a.name in values]
    text = json.dumps(
        {
            "kernel": _name_of(target),
            "written": written,
            "open": [name for name in constants if _is_open(values[name])],
            "grid": found.told(grid),
            "values": told,
        }
    )
    # Of an empty list, `torch.export.save` does not know what it is one of.
    _operator(found.written, found.read, found.whole or None, found.real or None, text)


def _written(target: Any, values: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of the arrays that a call changes, and all its arguments by name, groups as their
    parts."""
    launcher, parts = target.taken_apart({name: _seen(value) for name, value in values.items()})
    kinds = {argument.name: argument.kind for argument in launcher.arguments}
    described = {
        name: _described_list(name, value, kinds[name])
        if kinds[name] in LISTS
        else _described(name, value)
        for name, value in parts.items()
    }
    return launcher.written(described), parts


def _is_open(value: Any) -> bool:
    """Whether a constant of the kernel is none of the graph."""
    if isinstance(value, (tuple, list)):
        return any(map(_is_open, value))
    return isinstance(value, (torch.SymInt, torch.SymFloat))


@dataclass
class _Parts:
    """What a call passes beside its text, in order."""

    written: list[Any] = field(default_factory=list)
    read: list[Any] = field(default_factory=list)
    whole: list[Any] = field(default_factory=list)
    real: list[Any] = field(default_factory=list)

    def write(self, tensor: Any) -> None:
        """Notes a tensor that the kernel changes, once however many arguments it is."""
        if _place(self.written, tensor) is None:
            self.written.append(tensor)

    def told(self, value: Any) -> Any:
        """An argument as the text has it: where it is found beside the text, or itself."""
        if isinstance(value, torch.Tensor):
            place = _place(self.written, value)
            return self._put("read", value) if place is None else {"written": place}
        if isinstance(value, torch.SymInt):
            return self._put("whole", value)
        if isinstance(value, torch.SymFloat):
            return self._put("real", value)
        value = recordable(value)
        if isinstance(value, (tuple, list)):  # whose parts may be symbols and tensors
            return {type(value).__name__: [self.told(part) for part in value]}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise ArgumentError(f"a traced launch cannot record a {type(value).__name__}: {value!r}")

    def _put(self, kind: str, value: Any) -> dict[str, int]:
        values = getattr(self, kind)
        values.append(value)
        return {kind: len(values) - 1}


def _place(tensors: Sequence[Any], wanted: Any) -> int | None:
    return next((n for n, tensor in enumerate(tensors) if tensor is wanted), None)


def _described_list(name: str, several: Any, kind: str) -> Any:
    """A list of arrays likewise. ArgumentError for what is none."""
    flat = kind == "flat_arrays"
    if not isinstance(several, (list, tuple)) or not several:
        return describe_list(several, name, flat=flat)
    members = [_described(f"{name}[{n}]", one) for n, one in enumerate(several)]
    return list_of(members, name, flat=flat)


def _described(name: str, value: Any) -> Any:
    """An argument as kernels are chosen by, of the sizes that torch has seen."""
    if not isinstance(value, torch.Tensor):
        return value
    refuse_recorded(name, value)
    device = (CUDA, value.get_device()) if value.device.type == "cuda" else (HOST, 0)
    dtype = BY_ARRAY.get(str(value.dtype).removeprefix("torch."))
    if dtype is None:
        raise ArgumentError(f"argument {name!r}: dtype {value.dtype} is not supported")
    shape, strides = _seen(tuple(value.shape)), _seen(value.stride())
    return ArrayView(0, shape, strides, dtype.mlir, device, "torch")


def _seen(value: Any) -> Any:
    """A symbol's value where torch saw it, on which the graph does not come to depend."""
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return value.node.hint if value.node.has_hint() else USUAL_SIZE
    if type(value) in (tuple, list):
        return type(value)(map(_seen, value))
    return value


_HERE = uuid4().hex
"""Stands in front of a kernel's number, which another process has for another kernel."""


def _name_of(target: Any) -> tuple[Any, ...]:
    """The module and name of a global kernel, by which another process finds it, and the demands of
    one made from it; else this process and its number."""
    module, name = getattr(target, "__module__", ""), getattr(target, "__qualname__", "")
    try:
        known: Any = found_by_name(module, name)
    except ArgumentError:
        known = None
    if known is target:
        return module, name
    if hasattr(known, "demanded") and known.demanded(demands := target.demands()) is target:
        return module, name, {n: value for n, value in demands.items() if value is not None}
    return _HERE, str(target.number)


def _named(module: str, name: str, demands: Mapping[str, Any] | None = None) -> Any:
    """The kernel of that name. ArgumentError where there is none."""
    found = numbered(int(name)) if module == _HERE else found_by_name(module, name)
    if not hasattr(found, "traced_arguments") or (demands and not hasattr(found, "demanded")):
        raise ArgumentError(f"{module}.{name}: a kernel when torch recorded a call of it, none now")
    if demands is None:
        return found
    asked = dict.fromkeys(found.demands())  # which the global one may have of its own
    several = {n: tuple(v) if isinstance(v, list) else v for n, v in demands.items()}
    return found.demanded(asked | several)


@dataclass(frozen=True)
class _Call:
    """The meaning of a call's text: what makes the arguments of a kernel of the operator's."""

    kernel: tuple[Any, ...]
    values: Mapping[str, Callable[..., Any]]
    grid: Callable[..., Any]
    written: tuple[str, ...]
    open: tuple[str, ...]
    checked: set[Any] = field(default_factory=set)

    def __call__(self, *parts: Any) -> None:
        target = _named(*self.kernel)
        values = {name: made(*parts) for name, made in self.values.items()}
        if self.open:
            self._check(target, values)
        target.run(**values, grid=self.grid(*parts))

    def _check(self, target: Any, values: Mapping[str, Any]) -> None:
        """ArgumentError where constants that the graph leaves open make the kernel write more than
        it did when it was traced."""
        key = (target, *(values[name] for name in self.open))
        if key in self.checked:
            return
        more = sorted({*_written(target, values)[0]} - {*self.written})
        if more:
            raise ArgumentError(
                f"{target.name}: with these constants it writes {', '.join(more)}, too, which "
                "torch, which traced it with others, does not know"
            )
        self.checked.add(key)


@lru_cache(MOST_CALLS)
def _call_of(text: str) -> _Call:
    told = json.loads(text)
    kernel, written, open_ = (tuple(told[name]) for name in ("kernel", "written", "open"))
    values = {name: _made(value) for name, value in told["values"].items()}
    return _Call(kernel, values, _made(told["grid"]), written, open_)


def _made(told: Any) -> Callable[..., Any]:
    """What makes an argument of the operator's written, read, whole and real ones."""
    if not isinstance(told, dict):
        return lambda *parts: told
    ((kind, content),) = told.items()
    if kind in _PARTS:
        part = _PARTS.index(kind)
        return lambda *parts: parts[part][content]
    inner = [_made(entry) for entry in content]
    several = {"tuple": tuple, "list": list}[kind]
    return lambda *parts: recorded(several(one(*parts) for one in inner))


_PARTS = ("written", "read", "whole", "real")
_library = torch.library.Library("tilec", "FRAGMENT")
_library.define("launch" + SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
_operator = torch.ops.tilec.launch.default


def _launch(written: Any, read: Any, whole: Any, real: Any, call: str) -> None:
    _call_of(call)(written, read, whole, real)


_library.impl("launch", _launch, "CompositeExplicitAutograd")


@torch.library.register_fake(NAME, lib=_library)
def _nothing(*_: Any) -> None:
    """There are no results."""


@torch.library.register_vmap(NAME, lib=_library)
def _one_by_one(
    batch: Any, dims: Any, written: Any, read: Any, whole: Any, real: Any, call: str
) -> tuple[None, None]:
    """A launch for each element of the batch."""
    if any(dim is None for dim in dims[0]):
        raise ArgumentError("vmap: a kernel writes an array that has no batch dimension")
    for number in range(batch.batch_size):
        parts = [
            [t if dim is None else t.select(dim, number) for t, dim in zip(*pair, strict=True)]
            for pair in ((written, dims[0]), (read, dims[1]))
        ]
        _operator(*parts, whole, real, call)
    return None, None


torch.compiler.allow_in_graph(launch_traced)
torch.fx.node.has_side_effect(launch_traced)
