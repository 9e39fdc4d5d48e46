"""`tilec.jax.call`: a kernel on JAX arrays, inside `jax.jit` or outside; gives what it writes."""

# JAX is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np

from tilec.call.jit import Kernel
from tilec.call.specialization import constant_text
from tilec.executable.grid import check_grid
from tilec.executable.kernel import LISTS
from tilec.jax.description import ArrayArgument, Description, Static
from tilec.jax.devices import default_device, place_of
from tilec.jax.primitive import launch
from tilec.messages.binding import bound
from tilec.messages.tracebacks import short_traceback
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launch_argument import REQUIRED
from tilec.runtime.launcher import Launcher
from tilec.terms.dtypes import BY_ARRAY


@short_traceback
def call(kernel: Any, *arguments: Any, grid: Any = None, **named: Any) -> Any:
    """Launches a kernel (`@tilec.kernel`, or what `tilec.load` gives) on JAX arrays.

    The arguments are the kernel's own. An array that it only writes may be given as a
    `jax.ShapeDtypeStruct`: then it is new. An array that it writes and that is given, it finds as
    it is and changes in a copy, for which XLA takes the array's own memory where nothing else uses
    it (`jax.jit(..., donate_argnums=...)`). Numbers are constants of the launch. `grid`: as in
    `kernel[grid](...)`.

    Returns what the kernel writes, in the order of its parameters: an array, or a named tuple of
    several. ArgumentError where arguments are wrong, and CompileError, come when `jax.jit` traces.
    """
    if not isinstance(kernel, Launcher):
        raise ArgumentError(
            f"tilec.jax.call: expected a kernel, found {type(kernel).__name__}; a kernel that is "
            "tuned measures on arrays, which jax.jit has not: call the kernel inside it"
        )
    launcher, values = kernel, _bound(kernel, arguments, named)
    if isinstance(kernel, Kernel):
        launcher, values = kernel.taken_apart(values)
    kinds = {argument.name: argument.kind for argument in launcher.arguments}
    for name, kind in kinds.items():
        if kind in LISTS:
            raise ArgumentError(
                f"argument {name!r}: tilec.jax.call takes no lists of any length (tl.arrays), of "
                "whose arrays XLA knows the addresses only when it runs; a parameter without "
                "annotation takes a list as a tuple"
            )
    arrays = tuple(array_of(n, v) for n, v in values.items() if kinds[n] == "array")
    statics = tuple(_static(n, v) for n, v in values.items() if kinds[n] != "array")
    sizes = None if grid is None else check_grid(grid)
    operands = [jax.numpy.asarray(values[a.name]) for a in arrays if a.is_given]
    written, results = _launched(operands, Description(launcher, arrays, statics, (), sizes))
    return results[0] if len(results) == 1 else _results(launcher.name, written)(*results)


def launch_seen(
    kernel: Kernel[...],
    values: Mapping[str, Any],
    memory: Mapping[str, ArrayArgument],
    operands: Mapping[str, Any],
) -> Any:
    """The result of a kernel that sees arrays otherwise than they lie.

    `values`: its arguments by name, each array as an `ArrayView` of what it sees; `memory`
    describes these arrays, `operands` has those that are given.
    """
    launcher, parts = kernel.taken_apart(values)
    arrays, statics = [], []
    for name, value in parts.items():
        if name in memory:
            arrays.append(replace(memory[name], name=name, seen=(value.shape, value.strides)))
        else:
            statics.append(_static(name, value))
    given = [jax.numpy.asarray(operands[array.name]) for array in arrays if array.is_given]
    described = Description(launcher, tuple(arrays), tuple(statics), (), None)
    (result,) = _launched(given, described)[1]
    return result


def _launched(operands: Sequence[Any], described: Description) -> tuple[tuple[str, ...], list[Any]]:
    """What a launch writes: names, and the results."""
    written = _written(described)
    return written, launch(operands, replace(described, results=written))


def _bound(kernel: Launcher, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, in the kernel's order. ArgumentError as a call says it."""
    signature = inspect.Signature(
        [
            inspect.Parameter(
                argument.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty
                if argument.default is REQUIRED
                else argument.default,
            )
            for argument in kernel.arguments
        ],
        __validate_parameters__=False,
    )
    try:
        found = bound(signature, arguments, named)
    except TypeError as error:
        text = f"{kernel.name}(): {error}"
        arrays = [f"argument: '{a.name}'" for a in kernel.arguments if a.kind == "array"]
        if any(text.endswith(array) for array in arrays):  # perhaps what the caller wants back
            text += (
                "\nhelp: for a new array that is written give a jax.ShapeDtypeStruct(shape, dtype)"
            )
        raise ArgumentError(text) from None
    found.apply_defaults()
    return dict(found.arguments)


def array_of(name: str, value: Any) -> ArrayArgument:
    """The description of an array, or of what is to be one."""
    is_new = isinstance(value, jax.ShapeDtypeStruct)
    if not is_new and not isinstance(value, (jax.Array, np.ndarray)):
        raise ArgumentError(
            f"argument {name!r}: expected an array of JAX, or a jax.ShapeDtypeStruct for a result, "
            f"found {type(value).__name__}"
        )
    # JAX makes 32-bit numbers of NumPy's 64-bit ones, unless it is told otherwise.
    dtype = jax.dtypes.canonicalize_dtype(value.dtype)
    if is_new and dtype != value.dtype:
        raise ArgumentError(
            f"argument {name!r}: JAX has no {value.dtype} now: give {dtype}, or set jax_enable_x64"
        )
    known = BY_ARRAY.get(dtype.name)
    if known is None:
        raise ArgumentError(
            f"argument {name!r}: dtype {dtype} is not supported; supported: {', '.join(BY_ARRAY)}"
        )
    return ArrayArgument(name, tuple(value.shape), known.mlir, not is_new)


def _static(name: str, value: Any) -> Static:
    """A number or constant, which the launch is compiled with."""
    if isinstance(value, jax.core.Tracer):
        raise ArgumentError(
            f"argument {name!r}: a number that jax.jit traces is known on the GPU alone; make it a "
            "static argument of jax.jit, or let the kernel load it from an array of one element"
        )
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        value = value.item()
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"argument {name!r}: expected a constant, found the mutable {type(value).__name__}"
        ) from None
    return Static(name, value, constant_text(value))


def _written(described: Description) -> tuple[str, ...]:
    """The names of the arrays that the kernel writes; compiles it, which says so.

    ArgumentError for a new array that it does not write, and a kernel that writes nothing.
    """
    device = default_device(described.launcher)
    bound = described.bound(place_of(device))
    kernel = described.launcher.prepared(device, bound, described.grid).kernel
    written = kernel.written()
    for array in described.arrays:
        if not array.is_given and array.name not in written:
            raise ArgumentError(
                f"argument {array.name!r}: {kernel.name} does not write it: give an array, not "
                "the jax.ShapeDtypeStruct of a result"
            )
    if not written:
        raise ArgumentError(f"{kernel.name} writes no array: it has no result")
    return written


@cache
def _results(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple of several results; one class each, as JAX compares them."""
    return namedtuple(f"{name}_results", fields, rename=True)
