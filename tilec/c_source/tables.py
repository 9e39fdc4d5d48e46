"""What a kernel was compiled for, as constants of C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilec.executable.kernel import CompiledKernel, Parameter, TensorMap
from tilec.hardware.target import Target
from tilec.runtime.tensor_maps import dtype_enumerator, swizzle_enumerator
from tilec.terms.dtypes import BY_MLIR, DTYPES, ELEMENT_BYTES

C_TYPES: Mapping[str, str] = {
    "f64": "double",
    "f32": "float",
    "i1": "int",
    **{
        d.mlir: f"{'u' if d.is_unsigned else ''}int{d.bits}_t"
        for d in DTYPES
        if d.is_integer and d.packed
    },
    **{
        d.mlir: f"uint{d.bits}_t"
        for d in DTYPES
        if d.is_narrow or (d.bits == 16 and d.kind == "float")
    },
}
"""What a function takes for a scalar: of floats that C has no type for, their bits."""


def dtype_name(mlir: str) -> str:
    """The enumerator of an element type."""
    return f"TILEC_{BY_MLIR[mlir].name.upper()}"


def dtype_enumerators() -> str:
    """All element types of arrays, in the order of the table."""
    return ",\n".join(f"  {dtype_name(d.mlir)}" for d in DTYPES if d.mlir in ELEMENT_BYTES)


def targets_table(targets: Sequence[Target]) -> str:
    """The GPUs that code is for, in this order."""
    rows = (
        f"{{{t.compute_capability[0]}, {t.compute_capability[1]}, {int(t.forward_compatible)}, "
        f"{t.shared_bytes}}}"
        for t in targets
    )
    return _table("target", "targets", rows)


def parameters_table(number: int, kernel: CompiledKernel) -> str:
    """What the arrays of a kernel must be."""
    rows = (
        _parameter(argument, parameter, parameter.name in (kernel.writes or ()))
        for argument, parameter in enumerate(kernel.parameters)
        if parameter.kind == "array"
    )
    return _table("parameter", f"parameters_{number}", rows)


def _parameter(argument: int, parameter: Parameter, is_written: bool) -> str:
    facts, rank = parameter.facts, parameter.rank
    lists = (
        _any(parameter.sizes),
        map(str, facts.sizes or (1,) * rank),
        _any(parameter.strides),
        map(str, facts.strides or (1,) * rank),
    )
    first = f"{argument}, {dtype_name(parameter.dtype)}, {rank}, {ELEMENT_BYTES[parameter.dtype]}"
    texts = ", ".join(f"{{{', '.join(values) or '0'}}}" for values in lists)
    return f"{{{first}, {facts.align}, {int(is_written)}, {texts}}}"


def _any(values: Iterable[int | None]) -> Iterable[str]:
    return ("ANY" if value is None else str(value) for value in values)


def recipes_table(number: int, kernel: CompiledKernel) -> str:
    """How the copy engine sees a kernel's arrays; nothing where it sees none."""
    arrays = [n for n, parameter in enumerate(kernel.parameters) if parameter.kind == "array"]
    rows = [_recipe(arrays.index(made.parameter), made) for made in kernel.tensor_maps]
    return _table("recipe", f"recipes_{number}", rows) if rows else ""


def _recipe(array: int, made: TensorMap) -> str:
    dims, box = (", ".join(map(str, values)) for values in (made.dims, made.box))
    enumerators = f"{dtype_enumerator(made.dtype)}, {swizzle_enumerator(made.swizzle)}"
    numbers = f"{array}, {len(made.dims)}, {int(made.stores)}"
    walk = "0, {0}, {0}"
    if made.im2col is not None:
        lower, steps = (", ".join(map(str, n)) for n in (made.im2col.lower, made.im2col.steps))
        walk = f"1, {{{lower}}}, {{{steps}}}"
    return f"{{{numbers}, {{{dims}}}, {{{box}}}, {enumerators}, {walk}}}"


def program_constant(number: int, kernel: CompiledKernel) -> str:
    """How programs of a kernel become CTAs."""
    cluster = ", ".join(map(str, kernel.cluster))
    flags = (kernel.persistent, kernel.dynamic, kernel.starts_early, kernel.has_roles)
    each = (kernel.stripes, kernel.programs_per_cta, kernel.rounds)
    numbers = (*map(int, flags), *each, kernel.most_programs)
    rest = ", ".join(map(str, numbers))
    return (
        f"static const program program_{number} = {{{kernel.threads}, {kernel.shared_bytes}, "
        f"{{{cluster}}}, {rest}}};\n"
    )


def code_constants(number: int, kernel: CompiledKernel) -> str:
    """The PTX as a string, and the machine code, if there is any, as bytes."""
    lines = "\n".join(f'  "{_escaped(line)}\\n"' for line in kernel.ptx.splitlines())
    text = f"static const char ptx_{number}[] =\n{lines};\n"
    if kernel.cubin is not None:
        rows = [kernel.cubin[at : at + 24] for at in range(0, len(kernel.cubin), 24)]
        content = ",\n".join("  " + ", ".join(map(str, row)) for row in rows)
        text += f"static const unsigned char cubin_{number}[] = {{\n{content}}};\n"
    return text


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")


def _table(kind: str, name: str, rows: Iterable[str]) -> str:
    content = ",\n".join(f"  {row}" for row in rows)
    return f"static const {kind} {name}[] = {{\n{content}}};\n"
