"""Compiles the launches of a layer, an artefact each."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import drawn_array_kernels
import drawn_kernels
import drawn_product_kernels
import drawn_small_kernels
from bench_cases import Variant
from layer_cases import LayerCase, Step

from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble, locate_tool
from tilec.examples.convolution import convolve
from tilec.examples.cross_entropy import cross_entropy
from tilec.examples.indexing import gather_rows, histogram
from tilec.examples.layer_norm import layer_norm
from tilec.examples.mixture_of_experts import multiply_by_experts
from tilec.examples.paged_attention import attend_pages, join_splits
from tilec.examples.quantized_weights import quantized_matmul
from tilec.examples.rms_norm import rms_norm, rms_norm_gradients, sum_columns
from tilec.examples.selective_scan import selective_scan
from tilec.examples.softmax import online_softmax, softmax
from tilec.examples.tile_scales import tile_scaled_matmul
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.ops.gradient_kernels import key_gradients, query_gradients
from tilec.ops.handed_kernels import deltas, handed_query_gradients, handing_key_gradients
from tilec.ops.paired_kernels import paired_gradients, wide_gradients
from tilec.runtime.artefact import save
from tilec.runtime.facts import index_bits, observe_parameter

_FILES = (drawn_kernels, drawn_small_kernels, drawn_array_kernels, drawn_product_kernels)
_DRAWN = tuple(each for file in _FILES for each in vars(file).values())

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        *(each for each in _DRAWN if isinstance(each, Kernel)),
        *(softmax, online_softmax, layer_norm, selective_scan),
        *(key_gradients, query_gradients, multiply_by_experts),
        *(deltas, handing_key_gradients, handed_query_gradients),
        *(quantized_matmul, tile_scaled_matmul, convolve, attend_pages, join_splits),
        *(cross_entropy, histogram, gather_rows, rms_norm, rms_norm_gradients, sum_columns),
    )
} | {"paired_gradients": paired_gradients, "wide_gradients": wide_gradients}


def layer_key(case: LayerCase, variant: Variant, target: str) -> str:
    """Equal for variants that the same artefacts serve."""
    about = (case.arrays, case.steps, variant.constants, target)
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


def compile_layer(case: LayerCase, variant: Variant, target: str, path: Path) -> dict[str, Any]:
    """Saves each step's artefact beside `path`; says what the steps take, the most of each."""
    kinds = [replace(step, arguments=_arrays(step)) for step in case.steps]
    settings = dict(variant.constants or ())
    compiled = {kind: _compiled(case, kind, settings, target) for kind in dict.fromkeys(kinds)}
    kernels = [compiled[kind] for kind in kinds]
    files = []
    for number, kernel in enumerate(kernels):
        files.append(path.with_stem(f"{path.stem}-{number}").name)
        save(path.parent / files[-1], [kernel])
    taken: dict[str, Any] = {"steps": files}
    if locate_tool("ptxas"):
        found = [assemble(kernel.ptx, find_target(target)) for kernel in compiled.values()]
        taken |= {"registers": max(a.registers for a in found)}
        taken |= {"spills": max(a.spills for a in found)}
        taken["messages"] = [message for a in found for message in a.messages]
    return taken


def _compiled(case: LayerCase, step: Step, settings: dict[str, Any], target: str) -> CompiledKernel:
    kernel = KERNELS[step.kernel]
    own = [parameter.name for parameter in kernel.parameters]
    constants = dict(step.constants) | {k: v for k, v in settings.items() if k in own}
    every = {name for each in case.steps for name in _parameters(each)}
    demands = {name: value for name, value in settings.items() if name not in every}
    arrays = {spec.name: spec.view() for spec in case.arrays}
    views = {
        parameter: arrays[argument]
        for parameter, argument in zip(own, step.arguments, strict=False)
        if isinstance(argument, str)
    }
    facts = [observe_parameter(name, view) for name, view in views.items()]
    return kernel.demanding(**demands).compile(
        facts,
        constants,
        target=target,
        index_bits=index_bits(list(views.values())),
        sizes={name: view.shape for name, view in views.items()},
        at_most=True,  # as calls are compiled for where they are made
    )


def _arrays(step: Step) -> tuple[str | float, ...]:
    """A step's arguments without the numbers: launches that differ in these have one kernel."""
    return tuple(one if isinstance(one, str) else 0.0 for one in step.arguments)


def _parameters(step: Step) -> list[str]:
    return [parameter.name for parameter in KERNELS[step.kernel].parameters]
