"""A kernel's header and source in C, of its code for several targets.

The source needs the driver's header and library, and nothing else of CUDA. What all kernels have in
common is support.h and support.c, which every file brings along; the rest is made here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from tilec.c_source.launch_source import launch_source
from tilec.c_source.tables import (
    C_TYPES,
    code_constants,
    dtype_enumerators,
    parameters_table,
    program_constant,
    recipes_table,
    targets_table,
)
from tilec.executable.grid import GRID_LIMITS
from tilec.executable.kernel import INDEX_LIMIT_32, LEFT_OUT, CompiledKernel, Parameter
from tilec.hardware.sizes import IM2COL_CORNERS, MOST_RANK, PORTABLE_CTAS, VECTOR_BYTES
from tilec.hardware.target import TARGETS
from tilec.runtime.cuda.argument_block import MAP_ALIGNMENT
from tilec.runtime.cuda.kernel_launch import FIRST_EARLY_DRIVER
from tilec.runtime.cuda.module import FIRST_TO_LOAD_LATER, STATIC_SHARED_BYTES
from tilec.runtime.cuda.plan import SHORT_ROUNDS
from tilec.runtime.tensor_maps import LARGEST_STRIDE

DIMENSIONS_IN_C = 8
"""Of an array in C: TILEC_DIMENSIONS_IN_C of support.h."""

_RESERVED = (
    " alignas alignof asm auto bool break case catch char class const constexpr continue "
    " default delete do double else enum explicit export extern false float for friend goto "
    " grid if inline int kernel long mutable namespace new nullptr operator private protected "
    " public register restrict return short signed sizeof static stream struct switch template "
    " this throw true try typedef typename union unsigned using virtual void volatile while "
)
"""Words of C and C++, and names of ours, that an argument cannot have."""

_CONSTANTS: Mapping[str, str] = {
    "vector_bytes": str(VECTOR_BYTES),
    "map_alignment": str(MAP_ALIGNMENT),
    "static_shared_bytes": str(STATIC_SHARED_BYTES),
    "portable_ctas": str(PORTABLE_CTAS),
    "first_early_driver": str(FIRST_EARLY_DRIVER),
    "first_to_load_later": str(FIRST_TO_LOAD_LATER),
    "short_rounds": str(SHORT_ROUNDS),
    "left_out": str(LEFT_OUT),
    "most_rank": str(MOST_RANK),
    "index_limit_32": f"INT64_C({INDEX_LIMIT_32})",
    "largest_stride": f"INT64_C({LARGEST_STRIDE})",
    "most_corners": ", ".join(str(IM2COL_CORNERS[rank]) for rank in sorted(IM2COL_CORNERS)),
    "grid_limits": ", ".join(map(str, GRID_LIMITS)),
    "dtypes": dtype_enumerators(),
}


class CSource(NamedTuple):
    """The text of a header and of a source, and the name that both give the kernel."""

    name: str
    header: str
    source: str


def c_source(kernels: Sequence[CompiledKernel], stem: str | None = None) -> CSource:
    """A kernel in C, of its code for several targets, one each. `stem`: of the header's name, the
    kernel's if not given.

    ValueError for several kernels of one target, arguments that differ, arrays of too many
    dimensions, lists of arrays, and kernels whose CTAs meet in memory (`sum_parts`).
    """
    kernels = sorted(kernels, key=lambda k: TARGETS[k.target].compute_capability, reverse=True)
    _check(kernels)
    name = re.sub(r"\W", "_", kernels[0].name)
    words = {
        **_CONSTANTS,
        "name": name,
        "stem": stem or name,
        "arguments": _arguments(kernels[0]),
        "documented": _documented(kernels[0].parameters),
        "targets": ", ".join(kernel.target for kernel in kernels),
    }
    header = _filled("header.h", {**words, "support": _filled("support.h", words)})
    made = {
        **words,
        "support": _filled("support.c", words),
        "count": str(len(kernels)),
        "tables": targets_table([TARGETS[kernel.target] for kernel in kernels])
        + "\n"
        + "\n".join(_of_target(name, number, kernel) for number, kernel in enumerate(kernels)),
        "scalars": _scalars(kernels[0].parameters),
        "codes": _codes(kernels),
        "names": ", ".join(f'"{parameter.name}"' for parameter in kernels[0].parameters) or '""',
        **_body(kernels[0]),
    }
    return CSource(name, header, _filled("source.c", made))


def _check(kernels: Sequence[CompiledKernel]) -> None:
    first = kernels[0]
    for other in kernels[1:]:
        if [(p.name, p.kind, p.dtype, p.rank) for p in other.parameters] != [
            (p.name, p.kind, p.dtype, p.rank) for p in first.parameters
        ] or (other.grid is None) != (first.grid is None):
            raise ValueError(
                f"{other.name} for {other.target} and {first.target} is not one kernel"
            )
    if len({kernel.target for kernel in kernels}) < len(kernels):
        raise ValueError(f"{first.name}: C takes one kernel a target")
    for kernel in kernels:
        if kernel.workspaces:
            raise ValueError(
                f"{kernel.name} for {kernel.target}: in C, launches have no memory of their own, "
                f"where {kernel.stripes} CTAs could leave parts of sums; fewer parts, which are a "
                "cluster, need none (sum_parts=)"
            )
    for parameter in first.parameters:
        if parameter.is_list:
            raise ValueError(
                f"argument {parameter.name!r}: C has no lists of arrays; an artefact has "
                "(-o kernel.tilec, tilec.load)"
            )
        if parameter.rank > DIMENSIONS_IN_C:
            raise ValueError(
                f"argument {parameter.name!r}: in C, arrays have at most {DIMENSIONS_IN_C} "
                "dimensions"
            )


def _filled(file: str, words: Mapping[str, str]) -> str:
    """A template with its `@words@`."""
    text = files("tilec.c_source").joinpath(file).read_text()
    return re.sub(r"@(\w+)@", lambda found: words[found[1]], text)


def _c_name(parameter: Parameter) -> str:
    return f"{parameter.name}_" if f" {parameter.name} " in _RESERVED else parameter.name


def _arguments(kernel: CompiledKernel) -> str:
    """What the launch takes: a pointer for each array, a number for each scalar, the grid."""
    found = [
        f"const tilec_array *{_c_name(p)}"
        if p.kind == "array"
        else f"{C_TYPES[p.dtype]} {_c_name(p)}"
        for p in kernel.parameters
    ]
    if kernel.grid is None:
        found.append("const int64_t grid[3]")
    return ", ".join([*found, "CUstream stream"])


def _documented(parameters: Sequence[Parameter]) -> str:
    """A line for each argument."""
    lines = []
    for p in parameters:
        what = f"array of {p.dtype}, {p.rank} dimensions" if p.kind == "array" else p.dtype
        lines.append(f"     {_c_name(p)}: {what}")
    return "\n".join(lines)


def _scalars(parameters: Sequence[Parameter]) -> str:
    fields = [f"  {C_TYPES[p.dtype]} n{n};" for n, p in enumerate(parameters) if p.kind == "scalar"]
    return "\n".join(fields or ["  int none;"])


def _body(kernel: CompiledKernel) -> dict[str, str]:
    """How the arguments of the launch are handed on."""
    arrays = [_c_name(p) for p in kernel.parameters if p.kind == "array"]
    numbers = [(n, _c_name(p)) for n, p in enumerate(kernel.parameters) if p.kind == "scalar"]
    return {
        "arrays": ", ".join(arrays) or "NULL",
        "assigned": "\n".join(
            [f"  numbers.n{n} = {name};" for n, name in numbers] or ["  numbers.none = 0;"]
        ),
        "grid": "grid" if kernel.grid is None else "NULL",
    }


def _of_target(name: str, number: int, kernel: CompiledKernel) -> str:
    """The tables and the launch of one target's code."""
    return "\n".join(
        [
            f"/* -- {kernel.target} */\n",
            code_constants(number, kernel),
            *([parameters_table(number, kernel)] if any(p.rank for p in kernel.parameters) else []),
            recipes_table(number, kernel),
            program_constant(number, kernel),
            launch_source(name, number, kernel),
        ]
    )


def _codes(kernels: Sequence[CompiledKernel]) -> str:
    rows = (
        f'  {{ptx_{n}, {"NULL" if kernel.cubin is None else f"cubin_{n}"}, "{kernel.name}", '
        f"&program_{n}, {int(bool(kernel.tensor_maps))}, launch_{n}}}"
        for n, kernel in enumerate(kernels)
    )
    return ",\n".join(rows)
