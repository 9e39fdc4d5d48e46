"""Compiled kernels as JSON fields beside their code, checked field by field when they come back.

Files may be cut off, edited or made up: nothing of them reaches a launch unchecked.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilec.executable.grid import compile_grid, compile_sizes
from tilec.executable.kernel import LISTS, NOT_FINITE, CompiledKernel
from tilec.hardware.target import TARGETS
from tilec.runtime.tensor_maps import wrong_recipe
from tilec.terms.dtypes import BY_MLIR, ELEMENT_BYTES

_ENTRY_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,1023}")
_MAX_RANK = 16
"""Of an array: twice the dimensions that a spec may have (`MOST_DIMENSIONS`)."""
_MAX_PARAMETERS = 1024
"""Of a kernel: twice the pointers in 4 KB, which is what parameters took up to PTX 8.0."""
_MAX_LIMITS = 1024
"""Expressions over sizes: one an array access at most, and few differ."""


def checked_kernel(fields: Any, ptx: str, cubin: bytes | None = None) -> CompiledKernel:
    """The kernel of `CompiledKernel.to_json` fields; ValueError names the field that is wrong."""
    _check(fields, _KERNEL, "kernel")
    target = TARGETS[fields["target"]]
    if not 1 <= fields["threads"] <= target.max_threads:
        raise ValueError(f"kernel.threads: {fields['threads']} is not in 1..{target.max_threads}")
    if not 0 <= fields["shared_bytes"] <= target.shared_bytes:
        raise ValueError(
            f"kernel.shared_bytes: {fields['shared_bytes']} is not in 0..{target.shared_bytes}"
        )
    _check_programs(fields)
    for number, parameter in enumerate(fields["parameters"]):
        _check_parameter(parameter, f"kernel.parameters[{number}]")
    _check_names(fields)
    for number, workspace in enumerate(fields["workspaces"]):
        _check(workspace, _WORKSPACE, f"kernel.workspaces[{number}]")
    for number, recipe in enumerate(fields["tensor_maps"]):
        _check(recipe, _TENSOR_MAP, f"kernel.tensor_maps[{number}]")
        if recipe["im2col"] is not None:
            _check(recipe["im2col"], _IM2COL, f"kernel.tensor_maps[{number}].im2col")
    kernel = CompiledKernel.from_json(fields, ptx, cubin)
    for number, tensor_map in enumerate(kernel.tensor_maps):
        if wrong := wrong_recipe(tensor_map, kernel.parameters):
            raise ValueError(f"kernel.tensor_maps[{number}]: {wrong}")
    if kernel.grid is not None:
        compile_grid(kernel.grid, kernel.parameters)
    compile_sizes(tuple(text for text, _ in kernel.limits), kernel.parameters)
    return kernel


def _check_names(fields: Mapping[str, Any]) -> None:
    names = [parameter["name"] for parameter in fields["parameters"]]
    if len(set(names)) < len(names):
        raise ValueError("kernel.parameters: two have the same name")
    arrays = [entry["name"] for entry in fields["parameters"] if entry["kind"] != "scalar"]
    for name in fields["writes"] or ():
        if name not in arrays:
            raise ValueError(f"kernel.writes: {name!r} is no array of the kernel")


def _check_programs(fields: Mapping[str, Any]) -> None:
    cluster = list(fields["cluster"])
    is_part = cluster[1:] == [1, 1] and fields["stripes"] % cluster[0] == 0
    if not fields["persistent"] and not is_part:
        raise ValueError("kernel.cluster: only persistent kernels and stripes have clusters")
    if fields["persistent"] and fields["stripes"] > 1:
        raise ValueError("kernel.stripes: a persistent kernel's programs have none")
    if fields["dynamic"] and not fields["persistent"]:
        raise ValueError("kernel.dynamic: only persistent kernels are")
    together = fields["programs_per_cta"]
    if together > 1 and (not fields["persistent"] or fields["threads"] % together):
        raise ValueError("kernel.programs_per_cta: only parts of persistent CTAs have programs")


def _check_parameter(fields: Mapping[str, Any], where: str) -> None:
    _check(fields, _PARAMETER, where)
    rank = len(fields["sizes"])
    if len(fields["strides"]) != rank:
        raise ValueError(f"{where}: {rank} sizes but {len(fields['strides'])} strides")
    if fields["kind"] == "scalar" and rank:
        raise ValueError(f"{where}: a scalar has no sizes")
    if fields["kind"] == "scalar" and not BY_MLIR[fields["dtype"]].packed:
        raise ValueError(f"{where}: {fields['dtype']} comes in arrays only")
    if fields["kind"] == "flat_arrays" and (rank != 1 or fields["strides"] != [1]):
        raise ValueError(f"{where}: flat arrays have one dimension, of stride 1")
    _check(fields["facts"], _FACTS, f"{where}.facts")
    for name in ("sizes", "strides"):
        if len(fields["facts"][name]) not in (0, rank):
            raise ValueError(f"{where}.facts.{name}: expected {rank} divisors")


def _check(fields: Any, rules: Mapping[str, tuple[str, Callable[[Any], bool]]], where: str) -> None:
    if not isinstance(fields, dict):
        raise ValueError(f"{where}: expected an object, found {type(fields).__name__}")
    for name, (expected, is_right) in rules.items():
        if name not in fields:
            raise ValueError(f"{where}.{name}: missing")
        if not is_right(fields[name]):
            raise ValueError(f"{where}.{name}: expected {expected}, found {fields[name]!r:.80}")
    if unknown := sorted(set(fields) - set(rules)):
        raise ValueError(f"{where}: unknown field {unknown[0]!r:.80}")


def _is_integer(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_divisor(value: Any) -> bool:
    return _is_integer(value) and value >= 1


def _is_list(value: Any, is_item: Callable[[Any], bool], most: int = _MAX_RANK) -> bool:
    return isinstance(value, (list, tuple)) and len(value) <= most and all(map(is_item, value))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value)


def _is_grid(value: Any) -> bool:
    return value is None or (
        _is_list(value, lambda item: isinstance(item, str)) and len(value) == 3
    )


def _is_limit(value: Any) -> bool:
    pair = isinstance(value, (list, tuple)) and len(value) == 2
    return pair and isinstance(value[0], str) and _is_divisor(value[1])


def _one_of(choices: Sequence[Any]) -> tuple[str, Callable[[Any], bool]]:
    expected = "one of " + ", ".join(map(str, choices))
    return expected, lambda value: type(value) in (str, int) and value in choices


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_constant(value: Any) -> bool:
    if isinstance(value, Mapping):
        return list(value) == ["float"] and value["float"] in NOT_FINITE
    return isinstance(value, (bool, int, float, str))


_KERNEL: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "name": (
        "a PTX name",
        lambda value: isinstance(value, str) and _ENTRY_NAME.fullmatch(value) is not None,
    ),
    "target": _one_of(tuple(TARGETS)),
    "parameters": (
        "a list of objects",
        lambda value: _is_list(value, lambda _: True, _MAX_PARAMETERS),
    ),
    "grid": ("null or three texts", _is_grid),
    "threads": ("an integer", _is_integer),
    "shared_bytes": ("an integer", _is_integer),
    "index_bits": _one_of((32, 64)),
    "constants": (
        "an object of numbers and texts",
        lambda value: _is_object(value) and all(map(_is_constant, value.values())),
    ),
    "report": ("an object", _is_object),
    "persistent": ("true or false", lambda value: isinstance(value, bool)),
    "dynamic": ("true or false", lambda value: isinstance(value, bool)),
    "starts_early": ("true or false", lambda value: isinstance(value, bool)),
    "has_roles": ("true or false", lambda value: isinstance(value, bool)),
    "cluster": (
        "three powers of two up to 16",
        lambda value: (
            _is_list(value, lambda n: type(n) is int and n in (1, 2, 4, 8, 16)) and len(value) == 3
        ),
    ),
    "tensor_maps": (
        "a list of objects",
        lambda value: _is_list(value, lambda _: True, _MAX_PARAMETERS),
    ),
    "workspaces": (
        "a list of objects",
        lambda value: _is_list(value, lambda _: True, _MAX_PARAMETERS),
    ),
    "limits": (
        "a list of pairs of a text and an integer",
        lambda value: _is_list(value, _is_limit, _MAX_LIMITS),
    ),
    "most_programs": ("a positive integer", _is_divisor),
    "stripes": ("a positive integer", _is_divisor),
    "programs_per_cta": ("a positive integer", _is_divisor),
    "rounds": ("a positive integer", _is_divisor),
    "suits": (
        "two integers, 0 or positive",
        lambda value: _is_list(value, lambda n: _is_integer(n) and n >= 0) and len(value) == 2,
    ),
    "spreads_few": ("true or false", lambda value: isinstance(value, bool)),
    "writes": (
        "a list of names, or null",
        lambda value: value is None or _is_list(value, _is_name, _MAX_PARAMETERS),
    ),
}
_PARAMETER: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("a Python name", _is_name),
    "kind": _one_of(("array", *LISTS, "scalar")),
    "dtype": _one_of(tuple(ELEMENT_BYTES)),
    "sizes": (
        "integers or nulls",
        lambda value: _is_list(value, lambda v: v is None or (_is_integer(v) and v >= 0)),
    ),
    "strides": (
        "integers or nulls",
        lambda value: _is_list(value, lambda v: v is None or _is_integer(v)),
    ),
    "facts": ("an object", _is_object),
}
_FACTS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "align": ("a positive integer", _is_divisor),
    "sizes": ("positive integers", lambda value: _is_list(value, _is_divisor)),
    "strides": ("positive integers", lambda value: _is_list(value, _is_divisor)),
}
_TENSOR_MAP: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "parameter": ("an integer", _is_integer),
    "dims": ("integers", lambda value: _is_list(value, _is_integer)),
    "box": ("integers", lambda value: _is_list(value, _is_integer)),
    "swizzle": ("an integer", _is_integer),
    "dtype": _one_of(tuple(ELEMENT_BYTES)),
    "stores": ("true or false", lambda value: isinstance(value, bool)),
    "im2col": ("an object, or null", lambda value: value is None or _is_object(value)),
}
_WORKSPACE: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "bytes": ("a positive integer", _is_divisor),
    "is_zero": ("true or false", lambda value: isinstance(value, bool)),
}
_IM2COL: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "extents": ("texts", lambda value: _is_list(value, lambda text: isinstance(text, str))),
    "lower": ("integers", lambda value: _is_list(value, _is_integer)),
    "steps": ("integers", lambda value: _is_list(value, _is_integer)),
}
