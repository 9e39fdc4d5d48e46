"""Runs one correctness case on a launcher and compares its output."""

from __future__ import annotations

from typing import Any

import torch
from example_cases import ExampleCase
from kernel_checks import OUTPUTS, Check, call_arguments, compare
from tensors import Storage, random_values

_CHECKED_AS = {
    "online_softmax": "softmax",
    "gemm": "product_by_rows",
    "gemm_ahead": "product_by_rows",
    "hopper_gemm": "matmul",
}
_PRODUCTS = ("matmul", "product_by_rows")


def context_is_lost(device: str) -> bool:
    """Whether an error, such as a wild address, has made the GPU unusable to this process."""
    try:
        if device == "cuda":
            torch.cuda.synchronize()
    except Exception:
        return True
    return False


def check_case(launcher: Any, case: ExampleCase, device: str, seed: int) -> dict[str, Any]:
    """Draws inputs from `seed`, runs, compares: the numbers of the comparison, as a record.

    `stray` counts bytes changed around the output; they make the case wrong too.
    """
    kernel = _CHECKED_AS.get(case.kernel, case.kernel)
    generator = torch.Generator(device=device).manual_seed(seed)
    storages = {spec.name: Storage(spec, device) for spec in case.arrays}
    output = storages[OUTPUTS[kernel]]
    for storage in storages.values():
        if storage is not output:
            storage.fill(random_values(storage.spec, generator, integers=case.integers))
    tensors = {name: storage.tensor for name, storage in storages.items()}
    launcher(*call_arguments(kernel, list(tensors.values())))
    if device == "cuda":
        torch.cuda.synchronize()
    exact = case.integers and kernel in _PRODUCTS
    found = compare(Check(kernel, case.precision, exact), tensors)
    relative_error = found.relative_error
    stray = output.stray_writes()
    if stray:
        found.wrong += stray
        found.first = f"{stray} bytes written outside the array; {found.first}"
    return {
        "wrong": found.wrong,
        "first": found.first,
        "count": found.count,
        "relative_error": relative_error,
    }
