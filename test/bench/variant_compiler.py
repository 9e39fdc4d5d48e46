"""Compiles a variant of a case: the kernel, constants and facts it is for, into an artefact."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from unittest import mock

from bench_cases import BenchCase, Variant
from example_kernels import KERNELS as EXAMPLES
from row_kernels import (
    layer_norm_block,
    layer_norm_persistent,
    softmax_block,
    softmax_persistent,
)

from tilec.jit import Kernel
from tilec.runtime.artefact import save
from tilec.runtime.facts import index_bits, observe_parameter

KERNELS: dict[str, Kernel] = EXAMPLES | {
    kernel.name: kernel
    for kernel in (softmax_block, softmax_persistent, layer_norm_block, layer_norm_persistent)
}


def chosen_by_example(case: BenchCase) -> tuple[str, dict[str, Any]]:
    """The kernel and constants that `softmax_rows` and its like pick for the case's arrays.

    Found by calling the function with its kernels replaced; an example without one leaves its
    kernel's own defaults.
    """
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


def compile_variant(case: BenchCase, variant: Variant, target: str, path: Path) -> None:
    """Compiles what the just-in-time compiler would for the case's arrays."""
    name, constants = variant.kernel, dict(variant.constants or ())
    if variant.constants is None:
        name, constants = chosen_by_example(case)
    demanded = KERNELS[name]
    kernel = Kernel(demanded.fn, demanded.grid, variant.warps)
    views = [spec.view() for spec in case.arrays]
    parameters = [
        observe_parameter(spec.name, view) for spec, view in zip(case.arrays, views, strict=True)
    ]
    compiled = kernel.compile(
        parameters,
        constants,
        target=variant.target or target,
        index_bits=index_bits(views),
    )
    save(path, [compiled])
