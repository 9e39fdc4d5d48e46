"""Runs `tile` programs on the emulator and compares them with NumPy.

`check` compares with the program's own meaning (`tile_reference`), `run` leaves the comparison to
the caller. Arrays lie inside larger ones full of a sentinel, so a store past an edge is seen, and
levels are verified between all passes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir
from tile_arithmetic import DTYPES
from tile_reference import evaluate

from tilec.compile.assembler import Assembly, assemble
from tilec.compile.compiler import Compilation, compiled_kernel, find_kernel, lower_to
from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.runtime.emulator_device import EmulatorDevice

os.environ["TILEC_CHECK"] = "1"  # PassContext.verify

WIDEST = 16
"""Bytes of the widest access: facts beyond it change nothing."""


@dataclass(frozen=True)
class Options:
    """How to compile: `facts` tells the compiler what is true of the arrays' alignment."""

    target: str = "sm_80"
    num_warps: int | None = 4
    index_bits: int = 32
    facts: bool = True


DEFAULT = Options()


@dataclass
class Outcome:
    """A compiled kernel that ran."""

    job: Compilation

    def assemble(self) -> Assembly:
        """Machine code by ptxas."""
        return assemble(self.job.text, self.job.target)

    def decisions(self, about: str) -> list[dict[str, Any]]:
        """The entries of the decision report about one thing."""
        return [d for d in self.job.context.report.decisions if d["about"] == about]


# Arrays ---------------------------------------------------------------------------------------


def place(
    values: np.ndarray, *, order: Sequence[int] | None = None, pitch: int = 0, lead: int = 0
) -> np.ndarray:
    """A view with these values inside a larger array full of a sentinel.

    `order`: dimensions from the slowest to the fastest; `pitch`: elements of padding after each run
    of the fastest; `lead`: elements before the first.
    """
    values = np.asarray(values)
    order = list(order or range(values.ndim))
    sizes = [values.shape[d] for d in order]
    padded = [*sizes[:-1], sizes[-1] + pitch] if sizes else []
    count = int(np.prod(padded, dtype=np.int64))
    root = np.full(lead + max(1, count) + 8, sentinel(values.dtype), values.dtype)
    if sizes:
        block = root[lead : lead + count].reshape(padded)[..., : sizes[-1]]
        block = block.transpose(np.argsort(order))
    else:
        block = _view_of(root, values.dtype, (), lead * root.itemsize, ())
    block[...] = values
    return block


def sentinel(dtype: Any) -> Any:
    """What fills memory nobody may write: NaN, true, or a pattern."""
    if dtype == np.bool_:
        return True
    kind = np.dtype(dtype)
    return np.asarray(np.nan if is_floating(kind) else 77).astype(kind)


def is_floating(dtype: Any) -> bool:
    """Whether a NumPy dtype is a float, ml_dtypes' included."""
    return np.dtype(dtype).kind == "f" or dtype in (
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
    )


def random_array(rng: np.random.Generator, shape: Sequence[int], element: str) -> np.ndarray:
    """Normal floats; integers over their whole range but for the widest."""
    dtype = DTYPES[element]
    if is_floating(dtype):
        return rng.standard_normal(shape).astype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(-100, 100, shape).astype(dtype)


def blank(shape: Sequence[int], element: str, **where: Any) -> np.ndarray:
    """A poisoned output."""
    return place(np.full(shape, sentinel(DTYPES[element]), DTYPES[element]), **where)


def root_of(view: np.ndarray) -> np.ndarray:
    """The whole array a placed one lies in."""
    root = view
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root


def _start(view: np.ndarray) -> int:
    """Bytes from the root's first element to the view's."""
    first = view.__array_interface__["data"][0]
    return first - root_of(view).__array_interface__["data"][0]


def twin(view: np.ndarray) -> np.ndarray:
    """A copy that lies in a copy of the same surroundings."""
    return _view_of(root_of(view).copy(), view.dtype, view.shape, _start(view), view.strides)


def _view_of(
    root: np.ndarray, dtype: Any, shape: Sequence[int], start: int, strides: Sequence[int]
) -> np.ndarray:
    """A strided view; NumPy takes no buffer of a dtype it does not know, so it goes by integers."""
    words = np.dtype(f"u{root.itemsize}")
    return np.ndarray(shape, words, root.view(words), start, strides).view(dtype)


# Compiling and running ------------------------------------------------------------------------


def compile_program(
    text: str,
    arguments: Sequence[Any] = (),
    options: Options = DEFAULT,
    *,
    level: str = "ptx",
    dump_dir: Path | None = None,
) -> Compilation:
    """Lowers the only kernel of a text."""
    context = make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        function = find_kernel(module, None)
        i32 = ir.IntegerType.get_signless(32)
        function.attributes["tile.index_bits"] = ir.IntegerAttr.get(i32, options.index_bits)
        if options.facts and arguments:
            _state_facts(function, arguments)
        return lower_to(
            module,
            find_target(options.target),
            level,
            num_warps=options.num_warps,
            dump_dir=None if dump_dir is None else str(dump_dir),
        )


def _state_facts(function: ir.Operation, arguments: Sequence[Any]) -> None:
    entries = [_facts(a) if isinstance(a, np.ndarray) else "{}" for a in arguments]
    function.attributes["arg_attrs"] = ir.Attribute.parse(f"[{', '.join(entries)}]")


def _facts(array: np.ndarray) -> str:
    most = max(1, WIDEST // array.itemsize)

    def divisors(values: Sequence[int]) -> str:
        numbers = ", ".join(str(gcd(most, value)) for value in values)
        return f"array<i32: {numbers}>" if numbers else "array<i32>"

    sizes, strides = divisors(array.shape), divisors(element_strides(array))
    align = gcd(WIDEST, _start(array))
    return f"{{tile.facts = {{align = {align} : i32, sizes = {sizes}, strides = {strides}}}}}"


def element_strides(array: np.ndarray) -> list[int]:
    """Strides in elements."""
    return [step // array.itemsize for step in array.strides]


def execute(
    job: Compilation, arguments: Sequence[Any], grid: Sequence[int], mode: str = "check"
) -> None:
    """Runs a compiled kernel; arrays change in place. Fails on any finding of the checker."""
    device = EmulatorDevice(mode)
    device.launch(device.load(compiled_kernel(job)), arguments, tuple(grid))


def run(
    text: str,
    arguments: Sequence[Any],
    grid: Sequence[int] = (1,),
    options: Options = DEFAULT,
    *,
    mode: str = "check",
) -> Outcome:
    """Compiles and runs a kernel; arrays change in place."""
    job = compile_program(text, arguments, options)
    execute(job, arguments, grid, mode)
    return Outcome(job)


def check(
    text: str,
    arguments: Sequence[Any],
    grid: Sequence[int] = (1,),
    options: Options = DEFAULT,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Outcome:
    """Runs a kernel and its meaning; every byte of every array's surroundings must agree."""
    expected = reference(text, arguments, grid)
    outcome = run(text, arguments, grid, options)
    compare(arguments, expected, rtol, atol)
    return outcome


def reference(text: str, arguments: Sequence[Any], grid: Sequence[int]) -> list[Any]:
    """Twins of the arguments after the program, as NumPy executes it."""
    expected = [twin(a) if isinstance(a, np.ndarray) else a for a in arguments]
    with make_context(), ir.Location.unknown():
        evaluate(ir.Module.parse(text), expected, grid)
    return expected


def compare(
    found: Sequence[Any], expected: Sequence[Any], rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Placed arrays against twins, surroundings included."""
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(one, np.ndarray):
            continue
        what = f"argument {number} of shape {one.shape}"
        a, b = root_of(one), root_of(other)
        a, b = a.view(one.dtype), b.view(one.dtype)
        if is_floating(one.dtype):
            a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol, atol, equal_nan=True, err_msg=what)


# Going on from a dump --------------------------------------------------------------------------


def dump(
    text: str, arguments: Sequence[Any], options: Options, directory: Path
) -> tuple[Compilation, list[Path]]:
    """A whole compilation; the kernel before and after each pass of the tile pipeline."""
    job = compile_program(text, arguments, options, dump_dir=directory)
    found = []
    for path in sorted(directory.glob("*.mlir")):
        if stage_of(path) == "lower-to-nvvm":
            break
        found.append(path)
    return job, found


def stage_of(path: Path) -> str:
    """The pass that left a dump, "tile" for what came in."""
    return path.stem.partition("-")[2]


def resume(path: Path, options: Options) -> Compilation:
    """A dump, parsed and compiled on. It holds the facts and the number of warps itself."""
    plain = replace(options, num_warps=None, facts=False)
    return compile_program(path.read_text(), (), plain)
