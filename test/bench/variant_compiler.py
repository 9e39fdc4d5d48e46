"""Compiles a variant of a case: the kernel, constants and facts it is for, into an artefact."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from bench_cases import Variant
from example_kernels import KERNELS as EXAMPLES
from fused_kernels import (
    activated_product,
    arranged_groups,
    dequantised_product,
    gated_product,
    searched_groups,
)
from grouped_cases import ARRANGED
from layer_cases import LayerCase
from layer_compiler import compile_layer, layer_key
from ops_compiler import chosen_tiles, compile_ops
from product_cases import OPS
from product_kernels import batched_matmul, swept_matmul
from row_kernels import (
    layer_norm_block,
    layer_norm_persistent,
    softmax_block,
    softmax_persistent,
)

import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble, locate_tool
from tilec.examples.grouped_gemm import arrange_tiles
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention
from tilec.runtime.artefact import save
from tilec.runtime.facts import index_bits, observe_parameter

KERNELS: dict[str, Kernel] = EXAMPLES | {
    kernel.name: kernel
    for kernel in (
        *(softmax_block, softmax_persistent, layer_norm_block, layer_norm_persistent),
        *(swept_matmul, batched_matmul, attention),
        *(activated_product, dequantised_product, gated_product),
        *(searched_groups, arranged_groups),
    )
}


def chosen_by_example(case: Any) -> tuple[str, dict[str, Any]]:
    """The kernel and constants that `softmax_rows` and the like pick for a case.

    Found by calling the function with its kernels replaced; an example without one leaves its
    kernel's own defaults.
    """
    if case.kernel == attention.name:
        return attention.name, {"D": case.head, "CAUSAL": case.causal}
    module = importlib.import_module(f"tilec.examples.{case.kernel}")
    choose = getattr(module, f"{case.kernel}_rows", None)
    if choose is None:
        return case.kernel, {}
    stand_ins = {
        name: mock.Mock(name=name)
        for name, value in vars(module).items()
        if isinstance(value, Kernel)
    }
    with mock.patch.multiple(module, **stand_ins):
        choose(*(spec.view() for spec in case.arrays))
    ((name, stand_in),) = [item for item in stand_ins.items() if item[1].called]
    return name, dict(stand_in.call_args.kwargs)


def specialized(case: Any, variant: Variant) -> tuple[Kernel, dict[str, Any]]:
    """The kernel of a variant with the variant's demands, and its constants."""
    name, settings = variant.kernel, dict(variant.constants or ())
    if variant.constants is None:
        name, settings = chosen_by_example(case)
    kernel = KERNELS[name]
    own = {parameter.name for parameter in kernel.parameters}
    demands = {key: value for key, value in settings.items() if key not in own}
    if variant.warps is not None:
        demands["num_warps"] = variant.warps
    constants = {key: value for key, value in settings.items() if key in own}
    return kernel.demanding(**demands), constants


def artefact_key(case: Any, variant: Variant, target: str) -> str:
    """Equal for variants of any cases that one artefact serves."""
    if isinstance(case, LayerCase):
        return layer_key(case, variant, target)
    arrays = case.arrays
    views = [spec.view() for spec in arrays]
    facts = [observe_parameter(s.name, view) for s, view in zip(arrays, views, strict=True)]
    settings: Any = variant.constants
    if variant.kernel == OPS:
        settings = (case.shape, case.batch, chosen_tiles(case, target), variant.constants)
    elif settings is None:
        settings = chosen_by_example(case)
    # What is left to the compiler is chosen by sizes.
    shapes = [] if _names_all(variant) else [view.shape for view in views]
    about = (variant.kernel, settings, variant.warps, variant.target or target, facts, shapes)
    return hashlib.sha256(repr((about, index_bits(views))).encode()).hexdigest()[:16]


def _names_all(variant: Variant) -> bool:
    """Whether a variant leaves no constant of its kernel to the compiler. (`tilec.ops.matmul` has
    chosen its own when it asks for a kernel.)"""
    given = dict(variant.constants or ())
    kernel = KERNELS.get(variant.kernel)
    return kernel is None or all(
        given.get(parameter.name, parameter.default) is not tl.auto
        for parameter in kernel.parameters
        if parameter.kind == "const"
    )


def compile_variant(
    case: Any, variant: Variant, target: str, path: Path, *, cubin: bool = False
) -> dict[str, Any]:
    """Compiles what the just-in-time compiler would for the case's arrays; says what it takes.

    That is registers, spills and shared memory in bytes, and ptxas's warnings, where there is a
    ptxas. `cubin`: the artefact holds its machine code too.
    """
    if isinstance(case, LayerCase):
        return compile_layer(case, variant, target, path)
    target = variant.target or target
    taken: dict[str, Any] = {}
    if variant.kernel == OPS:
        compiled, taken = compile_ops(case, target, path, **dict(variant.constants or ()))
    elif variant.kernel == ARRANGED:
        compiled, taken = _arranged(case, variant, target, path)
    else:
        compiled = _compiled(case, variant, target, case.arrays)
        save(path, [compiled])
    taken |= {"shared": compiled.shared_bytes, "threads": compiled.threads}
    if locate_tool("ptxas"):
        assembly = assemble(compiled.ptx, find_target(target))
        taken |= {"registers": assembly.registers, "spills": assembly.spills}
        taken["messages"] = list(assembly.messages)
        if cubin:
            save(path, [replace(compiled, cubin=assembly.cubin)])
    return taken


def _arranged(
    case: Any, variant: Variant, target: str, path: Path
) -> tuple[CompiledKernel, dict[str, Any]]:
    """The product of a list of tiles, and the kernel that makes the list."""
    block = dict(variant.constants or ())["BM"]
    a, b, ends, c = case.arrays
    tiles = case.listed(block)
    compiled = _compiled(case, variant, target, (a, b, tiles, c))
    save(path, [compiled])
    first = path.with_name(f"{path.stem}-list.tilec")
    constants = {"BM": block}
    save(first, [_compiled_for(arrange_tiles, constants, target, (ends, tiles))])
    return compiled, {"list": first.name, "block": block}


def _compiled(case: Any, variant: Variant, target: str, specs: Sequence[Any]) -> CompiledKernel:
    kernel, constants = specialized(case, variant)
    return _compiled_for(kernel, constants, target, specs)


def _compiled_for(
    kernel: Kernel, constants: dict[str, Any], target: str, specs: Sequence[Any]
) -> CompiledKernel:
    views = [spec.view() for spec in specs]
    parameters = [
        observe_parameter(spec.name, view) for spec, view in zip(specs, views, strict=True)
    ]
    return kernel.compile(
        parameters,
        constants,
        target=target,
        index_bits=index_bits(views),
        sizes={spec.name: view.shape for spec, view in zip(specs, views, strict=True)},
    )
