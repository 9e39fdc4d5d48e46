"""The function that launches one kernel's code for one target, as C."""

from __future__ import annotations

from tilec.c_source.expressions import expression_in_c
from tilec.c_source.tables import C_TYPES
from tilec.executable.kernel import AbiSlot, CompiledKernel


def launch_source(name: str, number: int, kernel: CompiledKernel) -> str:
    """`launch_<number>`: checks, places and launches the code of that number of the kernel `name`.

    Without a grid rule it takes the grid.
    """
    lines = [
        f"static tilec_error launch_{number}(const {name}_kernel *kernel,",
        "                            const tilec_array *const *arrays, const scalars *numbers,",
        "                            const int64_t *grid, CUstream stream) {",
        "  CUlaunchConfig config;",
        "  CUlaunchAttribute attribute;",
        *_declarations(kernel),
        "  int wrong = 0;",
        "  tilec_error error;",
        "  (void)arrays, (void)numbers, (void)grid;",
        *_checks(number, kernel),
        *_grid(kernel),
        f"  error = place(&config, &attribute, &program_{number}, programs, wrong,",
        "                kernel->resident_ctas, kernel->multiprocessors,",
        "                kernel->takes_early_launches, stream);",
        "  if (error.status) return error;",
        *_maps(number, kernel),
        "  if (!config.gridDimX) return error; /* no program */",
        *_assignments(kernel),
        "  return driver(cuLaunchKernelEx(&config, kernel->function, arguments, NULL));",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _variable(kernel: CompiledKernel, slot: AbiSlot) -> str:
    """The name of what the hardware gets for a slot."""
    return {
        "pointer": f"address{slot.parameter}",
        "size": f"size{slot.parameter}_{slot.axis}",
        "stride": f"stride{slot.parameter}_{slot.axis}",
        "value": f"value{slot.parameter}",
        "grid": f"grid{slot.axis}",
        "tensor_map": f"maps[{slot.axis}]",
    }[slot.field]


def _declarations(kernel: CompiledKernel) -> list[str]:
    """The variables, and where the driver finds them."""
    index = f"int{kernel.index_bits}_t"
    kinds = {"pointer": "CUdeviceptr", "size": index, "stride": index, "grid": "int32_t"}
    lines = []
    for slot in kernel.abi():
        name = _variable(kernel, slot)
        if slot.field == "value":
            lines.append(f"  {_stored_type(slot.dtype)} {name};")
        elif slot.field != "tensor_map":
            lines.append(f"  {kinds[slot.field]} {name};")
    if kernel.tensor_maps:
        count = len(kernel.tensor_maps)
        lines.append(f"  char memory[{count} * sizeof(CUtensorMap) + MAP_ALIGNMENT];")
        lines.append("  CUtensorMap *maps = aligned(memory);")
    found = ", ".join(f"&{_variable(kernel, slot)}" for slot in kernel.abi())
    return [*lines, f"  void *arguments[] = {{{found or 'NULL'}}};", "  int64_t programs[3];"]


def _stored_type(dtype: str) -> str:
    """The type of a scalar as the hardware gets it."""
    return "uint8_t" if dtype == "i1" else C_TYPES[dtype]


def _checks(number: int, kernel: CompiledKernel) -> list[str]:
    lines = []
    if arrays := sum(parameter.kind == "array" for parameter in kernel.parameters):
        lines += [
            f"  error = check_arrays(parameters_{number}, {arrays}, arrays, {kernel.index_bits});",
            "  if (error.status) return error;",
        ]
    if kernel.limits:
        texts = [expression_in_c(text, kernel.parameters) for text, _ in kernel.limits]
        limits = ", ".join(f"INT64_C({most})" for _, most in kernel.limits)
        lines += [
            "  {",
            f"    int64_t values[{len(texts)}];",
            f"    static const int64_t limits[] = {{{limits}}};",
            *(f"    values[{n}] = {text};" for n, text in enumerate(texts)),
            f"    error = check_limits(values, limits, {len(texts)}, wrong);",
            "    if (error.status) return error;",
            "    wrong = 0;",
            "  }",
        ]
    return lines


def _grid(kernel: CompiledKernel) -> list[str]:
    if kernel.grid is None:
        return [f"  programs[{axis}] = grid[{axis}];" for axis in range(3)]
    return [
        f"  programs[{axis}] = {expression_in_c(text, kernel.parameters)};"
        for axis, text in enumerate(kernel.grid)
    ]


def _assignments(kernel: CompiledKernel) -> list[str]:
    arrays = [n for n, parameter in enumerate(kernel.parameters) if parameter.kind == "array"]
    lines = []
    for slot in kernel.abi():
        array = f"arrays[{arrays.index(slot.parameter)}]" if slot.parameter in arrays else ""
        values = {
            "pointer": f"{array}->address",
            "size": f"index_{kernel.index_bits}({array}->shape[{slot.axis}])",
            "stride": f"index_{kernel.index_bits}({array}->strides[{slot.axis}])",
            "grid": f"(int32_t)programs[{slot.axis}]",
            "value": f"numbers->n{slot.parameter}",
        }
        if slot.field != "tensor_map":
            value = values[slot.field] + (" != 0" if slot.dtype == "i1" else "")
            lines.append(f"  {_variable(kernel, slot)} = {value};")
    return lines


def _maps(number: int, kernel: CompiledKernel) -> list[str]:
    arrays = [n for n, parameter in enumerate(kernel.parameters) if parameter.kind == "array"]
    lines = []
    for n, made in enumerate(kernel.tensor_maps):
        array = arrays.index(made.parameter)
        texts = () if made.im2col is None else made.im2col.extents
        counted = [
            f"    counts[{d}] = {expression_in_c(text, kernel.parameters)};"
            for d, text in enumerate(texts)
        ]
        lines += [
            *(["  {", f"    int64_t counts[{len(texts)}];"] if texts else []),
            *(["    wrong = 0;", *counted] if texts else []),
            f"  error = encode(&maps[{n}], &recipes_{number}[{n}], &parameters_{number}[{array}],",
            f"                 arrays[{array}], {'counts, wrong' if texts else 'NULL, 0'}, "
            "kernel->zeros);",
            "  if (error.status) return error;",
            *(["  }"] if texts else []),
        ]
    return lines
