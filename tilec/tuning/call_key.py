"""What a tuned choice depends on: the kernel's source, and the arguments in classes of size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilec
from tilec.call.call_class import EXACT_SIZES
from tilec.call.call_form import parts_of
from tilec.call.dependencies import source_digest
from tilec.call.jit import Kernel
from tilec.costs.machine import Machine
from tilec.executable.grid import check_grid
from tilec.runtime.arrays import ArrayView
from tilec.runtime.facts import index_bits, observe_parameter
from tilec.terms.groups import Group
from tilec.tuning.candidates import Candidate


def tuning_key(
    kernel: Kernel,
    bound: Mapping[str, Any],
    given: Mapping[str, Any],
    machine: Machine,
    grid: Any = None,
) -> dict[str, Any]:
    """The key of a call, JSON-able and the same on every machine with this device and version.

    `bound`: described arguments by name. `given`: the constants the caller fixed.
    """
    arrays = [value for value in bound.values() if isinstance(value, ArrayView)]
    functions = [value for value in given.values() if callable(value)]
    return {
        "kernel": kernel.name,
        "source": source_digest(kernel.fn, kernel.grid, *functions, portable=True),
        "tilec": tilec.__version__,
        "target": machine.target.name,
        "device": machine.name,
        "multiprocessors": machine.multiprocessors,
        "memory_gb_per_s": machine.memory_gb_per_s,
        "demands": {name: repr(value) for name, value in kernel.demands().items()},
        "constants": Candidate(given).fingerprint,
        "arguments": {
            name: argument_class(name, bound[name])
            for p in kernel.parameters
            if p.kind != "const"
            for name in (p.name, *_parts(bound[p.name]))
        },
        "index_bits": index_bits(arrays),
        "grid": None if grid is None else str(check_grid(grid)),
    }


def _parts(value: Any) -> list[str]:
    """The names of the parts of a group; none of other values."""
    return [leaf.name for leaf in value.leaves()] if isinstance(value, Group) else []


def argument_class(name: str, value: Any) -> str:
    """An argument as far as speed depends on it.

    An array: dtype, sizes in classes (see `size_class`), which strides are 1, and the facts the
    compiler specialises to. An integer: its class; any other number: its type.
    """
    if isinstance(value, ArrayView):
        seen = observe_parameter(name, value)
        sizes = ", ".join(str(size_class(size)) for size in value.shape)
        strides = ", ".join("1" if stride == 1 else "?" for stride in seen.strides)
        facts = seen.facts
        return (
            f"{seen.dtype}[{sizes}; {strides}] align {facts.align} "
            f"sizes {list(facts.sizes)} strides {list(facts.strides)}"
        )
    if isinstance(value, (str, Group)):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"int {size_class(abs(value)) * (1 if value >= 0 else -1)}"
    return type(value).__name__


def size_class(size: int) -> int:
    """The size itself up to 16, else rounded up to a power of two or three quarters of one."""
    if size <= EXACT_SIZES:
        return size
    power = 1 << (size - 1).bit_length()
    return power * 3 // 4 if size <= power * 3 // 4 else power


def quick_key(value: Any) -> Any:
    """A cheap key that tells calls with different tuned choices apart; hashable."""
    try:
        shape, dtype = value.shape, value.dtype
    except AttributeError:
        return _scalar_key(value)
    try:
        return (dtype, shape, value.strides, value.device)  # tilec, CuPy, NumPy 2
    except AttributeError:
        pass
    stride = getattr(value, "stride", None)
    steps = stride() if callable(stride) else getattr(value, "strides", None)
    return (dtype, shape, steps, getattr(value, "device", None))


def _scalar_key(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return (int, value)
    if isinstance(value, float):
        return float
    parts = parts_of(value)
    if parts is not None:
        return (type(value), *map(quick_key, parts))
    try:
        hash(value)
    except TypeError:
        return type(value)
    return (type(value), value)
