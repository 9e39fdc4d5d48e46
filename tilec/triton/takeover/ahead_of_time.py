"""A `@triton.jit` function in Triton's IR, for described arguments and a target; needs no GPU."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.executable.kernel import Parameter
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.hardware.target import Target
from tilec.messages.diagnostics import CompileError, Location, quote_file
from tilec.messages.names import did_you_mean
from tilec.triton.takeover.backend import TEXT
from tilec.triton.takeover.hooks import install
from tilec.triton.takeover.wish import Wish, wished

_SCALARS: Mapping[str, str] = {
    "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5",
}  # fmt: skip
"""Triton's names of dtypes by MLIR's; integers have the same."""


def text_of(
    function: Any, arguments: Sequence[Parameter], constants: Mapping[str, Any], target: Target
) -> str:
    """The function's TTIR. An array among `arguments` is a pointer; of both, Triton is told which
    are multiples of 16. `constants`: of `tl.constexpr` parameters, and numbers that Triton is to
    specialise for; what a configuration of an autotuned function or a default gives need not be
    said.

    CompileError for what is missing, or what Triton's front end refuses.
    """
    install()
    inner, given = _unwrapped(function)
    given |= constants
    known = {parameter.name: parameter for parameter in arguments}
    wrong = [name for name in (*known, *constants) if name not in inner.arg_names]
    where = _place(inner)
    if wrong:
        notes = did_you_mean(wrong[0], inner.arg_names)
        raise CompileError(f"{inner.__name__} has no parameter '{wrong[0]}'", where, notes)
    missing = [name for name in inner.arg_names if name not in {**known, **given}]
    if missing:
        names = ", ".join(missing)
        raise CompileError(f"{inner.__name__}: nothing is said of {names}", where, _HELP)
    signature, attributes = {}, {}
    for place, name in enumerate(inner.arg_names):
        signature[name] = "constexpr" if name in given else _type(known[name])
        if name not in given and _divides(known[name]):
            attributes[(place,)] = [["tt.divisibility", VECTOR_BYTES]]
    fixed = {(inner.arg_names.index(name),): value for name, value in given.items()}
    compiler = importlib.import_module("triton.compiler")
    kind = importlib.import_module("triton.backends.compiler").GPUTarget
    major, minor = target.compute_capability
    with wished(Wish()):
        source = compiler.ASTSource(inner, signature, fixed, attributes)
        try:
            found = compiler.compile(source, kind("cuda", 10 * major + minor, target.warp_size))
        except compiler.CompilationError as error:
            raise CompileError(f"Triton's front end: {error}", where) from None
    return found.asm[TEXT]


_HELP = ["help: describe pointers and numbers with --arg, constants with --const"]


def _unwrapped(function: Any) -> tuple[Any, dict[str, Any]]:
    """The `@triton.jit` function inside, and the constants that are known of it."""
    given: dict[str, Any] = {}
    while hasattr(function, "fn") and not hasattr(function, "device_caches"):
        configurations = getattr(function, "configs", None)
        if configurations:
            given |= configurations[0].kwargs
        function = function.fn
    for name, parameter in function.signature.parameters.items():
        if parameter.default is not parameter.empty:
            given.setdefault(name, parameter.default)
    return function, given


def _place(function: Any) -> Location:
    code = function.fn.__code__
    quote_file(code.co_filename)
    return Location(code.co_filename, code.co_firstlineno)


def _type(parameter: Parameter) -> str:
    name = _SCALARS.get(parameter.dtype, parameter.dtype)
    return f"*{name}" if parameter.kind == "array" else name


def _divides(parameter: Parameter) -> bool:
    return parameter.facts.align % VECTOR_BYTES == 0
