"""Launches of Triton's kernels as a library's own host code makes them: noted, repeated, compared.

`noted()` keeps every new launch with a copy of its arguments; afterwards each is done again by both
compilers, on copies of what it was given. An autotuned kernel takes one configuration, the one in
the middle of those that its author's pruning leaves, for both.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

MOST_ALIKE = 2
"""Launches of one kernel in one call that are kept."""


@dataclass
class Launch:
    """One of a `JITFunction`: its arguments are copies, which share memory as the originals do."""

    function: Any
    grid: Any
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    @property
    def name(self) -> str:
        """The kernel's: its module's last name and its own."""
        return f"{self.function.fn.__module__.rpartition('.')[2]}.{self.function.fn.__name__}"

    def copied(self) -> Launch:
        """The same with memory of its own."""
        return copied(self.function, self.grid, self.arguments, self.named)

    def tensors(self) -> list[Any]:
        """Those among the arguments, in order."""
        return list(_tensors((self.arguments, self.named)))

    def restore(self, given: Launch, numbers: Sequence[int]) -> None:
        """Makes tensors of these numbers what they are in `given`, whose copy this is."""
        own, theirs = self.tensors(), given.tensors()
        for number in numbers:
            own[number].copy_(theirs[number])

    def by_name(self) -> dict[str, Any]:
        """Arguments by their names."""
        return {**dict(zip(self.function.arg_names, self.arguments, strict=False)), **self.named}

    def turn_towards(self, other: Launch, turns: Mapping[str, float]) -> None:
        """Moves elements of arrays, by their arguments' names, by whole turns of that length to
        where they are nearest to `other`'s."""
        own, theirs = self.by_name(), other.by_name()
        for name, turn in turns.items():
            if own[name] is not None:
                values = own[name].double()
                apart = values - theirs[name].double()
                own[name].copy_(values - turn * (apart / turn).round())

    def sort_in_groups(self, starts: Mapping[str, str]) -> None:
        """Sorts arrays, by their arguments' names, within groups that begin where the array of
        another name says."""
        named = self.by_name()
        for name, begins in starts.items():
            values = named[name]
            places = torch.arange(len(values), device=values.device, dtype=named[begins].dtype)
            group = torch.searchsorted(named[begins], places, right=True)
            order = values.argsort(stable=True)
            values.copy_(values[order[group[order].argsort(stable=True)]])

    @property
    def nbytes(self) -> int:
        """Of the memory that the arguments lie in."""
        return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()
                    for t in self.tensors()}.values())  # fmt: skip


def copied(function: Any, grid: Any, arguments: Any, named: Any) -> Launch:
    """A launch whose tensors are copies."""
    storages: dict[int, Any] = {}
    return Launch(function, grid, _copy(arguments, storages), _copy(named, storages))


def _copy(value: Any, storages: dict[int, Any]) -> Any:
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        at = storage.data_ptr()
        if at not in storages:
            storages[at] = storage.clone()
        new = torch.empty(0, dtype=value.dtype, device=value.device)
        return new.set_(storages[at], value.storage_offset(), value.size(), value.stride())
    if hasattr(value, "data_ptr") and hasattr(value, "untyped_storage"):
        return _copy(_tensor_at(value), storages)
    if isinstance(value, TensorDescriptor):
        base = _copy(value.base, storages)
        return TensorDescriptor(base, value.shape, value.strides, value.block_shape, value.padding)
    if isinstance(value, dict):
        return {name: _copy(one, storages) for name, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_copy(one, storages) for one in value)
    return value


def _tensor_at(pointer: Any) -> Any:
    """All that lies from a pointer on which is no tensor (FlagGems makes such)."""
    storage, size = pointer.untyped_storage(), pointer.dtype.itemsize
    offset = (pointer.data_ptr() - storage.data_ptr()) // size
    empty = torch.empty(0, dtype=pointer.dtype, device=storage.device)
    return empty.set_(storage, offset, (storage.nbytes() // size - offset,), (1,))


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, TensorDescriptor):
        yield value.base
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


@contextlib.contextmanager
def noted(instead: Callable[..., Any] | None = None) -> Iterator[list[Launch]]:
    """Inside, the list grows by every new launch, which `instead` then does, if it is given."""
    launches: list[Launch] = []
    seen: dict[Any, int] = {}
    plain, tuned = JITFunction.run, Autotuner.run

    def run(self: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        if not warmup:
            key = (id(self), _alike((arguments, named)))
            count = seen[id(self)] = seen.get(id(self), 0) + (key not in seen)
            if key not in seen and count <= MOST_ALIKE:
                launches.append(copied(self, grid, arguments, named))
            seen[key] = 1
        way = plain if instead is None else instead
        return way(self, *arguments, grid=grid, warmup=warmup, **named)

    def run_tuned(self: Any, *arguments: Any, **named: Any) -> Any:
        if len(self.configs) > 1:
            self.nargs = dict(zip(self.arg_names, arguments, strict=False))
            left = self.prune_configs(named)
            self.configs = [left[len(left) // 2]]
        return tuned(self, *arguments, **named)

    JITFunction.run, Autotuner.run = run, run_tuned
    try:
        yield launches
    finally:
        JITFunction.run, Autotuner.run = plain, tuned


def _alike(value: Any) -> Any:
    """Equal for launches whose arguments differ in their numbers at most."""
    if hasattr(value, "data_ptr"):
        return (value.dtype, tuple(value.size()), value.stride())
    if isinstance(value, dict):
        return tuple((name, _alike(one)) for name, one in value.items())
    if isinstance(value, tuple | list):
        return tuple(map(_alike, value))
    return str(value) if isinstance(value, bool | int | str | torch.dtype) else type(value).__name__


def launch(way: Callable[..., Any], one: Launch) -> Any:
    """By `way`, which is called as `JITFunction.run` is; gives the compiled kernel."""
    return way(one.function, *one.arguments, grid=one.grid, warmup=False, **one.named)


COUNTS = (torch.int32, torch.int64)
"""Dtypes of numbers that say where a kernel goes."""


def changed_counts(before: Launch, after: Launch) -> list[int]:
    """The numbers of the integer tensors that a launch changed. What it does next may follow from
    them: a kernel that counts in memory goes past its arrays when it is only repeated."""
    pairs = enumerate(zip(before.tensors(), after.tensors(), strict=True))
    return [n for n, (a, b) in pairs if a.dtype in COUNTS and not torch.equal(a, b)]


@dataclass
class Difference:
    """Between what two launches left: relative to the largest element and to the mean square, the
    most of all tensors; the share of integers that differ; the tolerance."""

    most: float = 0.0
    square: float = 0.0
    integers: float = 0.0
    tolerance: float = 0.0
    where: list[str] = field(default_factory=list)

    @property
    def is_rounding(self) -> bool:
        """Whether they are equal within rounding."""
        return not self.where


TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
"""Relative to the largest element, and half of that in the mean square; products in tf32 and 8-bit
floats have their own."""
TF32, BITS8 = 4e-3, 0.13
ROUNDED_INTEGERS = 2e-3
"""The share of integers that may differ where they were rounded from fractions."""


def difference(one: Launch, two: Launch, given: Launch, has_dots: bool) -> Difference:
    """Of `one`'s tensors from `two`'s, launched with copies of `given`."""
    dtypes = {t.dtype for t in given.tensors() if t.is_floating_point()}
    tolerance = max([TOLERANCES.get(dtype, BITS8) for dtype in dtypes], default=0.0)
    tolerance = max(tolerance, TF32 if has_dots else 0.0)
    found = Difference(tolerance=tolerance)
    for number, (a, b) in enumerate(zip(one.tensors(), two.tensors(), strict=True)):
        if a.is_floating_point():
            most, square = _relative(a, b)
            found.most, found.square = max(found.most, most), max(found.square, square)
            if not (most <= tolerance and square <= tolerance / 2):
                found.where.append(f"tensor {number}: {most:.1e} of the largest")
        else:
            share = (a != b).double().mean().item() if a.numel() else 0.0
            found.integers = max(found.integers, share)
            if share > (ROUNDED_INTEGERS if dtypes else 0):
                found.where.append(f"tensor {number}: {share:.1e} of the integers")
    return found


def _relative(a: Any, b: Any) -> tuple[float, float]:
    """Of floats: the largest difference to the largest element, and both in the mean square; not a
    number where infinities or NaNs are at other places."""
    a, b = a.double(), b.double()
    finite = b.isfinite()
    if not torch.equal(a[~finite].nan_to_num(7.0), b[~finite].nan_to_num(7.0)):
        return math.nan, math.nan
    a, b = a[finite], b[finite]
    if not a.numel():
        return 0.0, 0.0
    apart, size = (a - b).abs(), b.abs()
    least = torch.finfo(torch.float32).tiny
    most = apart.max() / size.max().clamp(min=least)
    square = apart.square().mean().sqrt() / size.square().mean().sqrt().clamp(min=least)
    return most.item(), square.item()


def interpret(function: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> None:
    """By Triton's interpreter, on tensors in host memory; functions that it calls, too."""
    from triton.runtime import interpreter

    options = {"num_warps", "num_stages", "num_ctas", "maxnreg"}
    taken = {name: one for name, one in named.items()
             if name in function.arg_names or name not in options}  # fmt: skip
    plain = JITFunction.__call__

    def called(self: Any, *given: Any, **words: Any) -> Any:
        return interpreter.InterpretedFunction(self.fn).rewrite()(*given, **words)

    bound = inspect.signature(function.fn).bind(*arguments, **taken)
    constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
    for name, value in bound.arguments.items():
        if isinstance(value, float) and name not in constants:
            handle = interpreter.TensorHandle(np.array([value], np.float32), tl.float32)
            bound.arguments[name] = tl.core.tensor(handle, tl.float32)
    modules = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    patched = interpreter._patch_lang(modules)
    JITFunction.__call__ = called
    try:
        kernel = interpreter.InterpretedFunction(function.fn)
        kernel.run(*bound.args, grid=grid, warmup=warmup, **bound.kwargs)
    finally:
        JITFunction.__call__ = plain
        patched.restore()
