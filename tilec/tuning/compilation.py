"""Compiles candidates side by side: the passes of one run while LLVM and ptxas work on others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from tilec.call.jit import Kernel
from tilec.executable.kernel import CompiledKernel
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.runtime.errors import DeviceError
from tilec.tuning.candidates import Candidate

MOST_THREADS = 8
"""Compiling at once: passes run one at a time under Python's lock, and the rest of a compilation,
LLVM and ptxas, is some times as long. Not timed beyond."""

Variant = tuple[Kernel, Candidate]


def compile_candidates(
    variants: Mapping[int, Variant],
    device: Any,
    bound: Mapping[str, Any],
    step: Callable[[], Any],
) -> dict[int, str]:
    """Compiles and loads every variant; for those that cannot be used, why.

    Of variants with one code, the first is used. `step` is called after each.
    """
    results: dict[int, CompiledKernel | str] = {}
    threads = max(1, min(MOST_THREADS, len(variants), os.cpu_count() or 1))
    with ThreadPoolExecutor(threads, "tilec-tuning") as pool:
        jobs = {
            pool.submit(_compile, variant, device, bound): number
            for number, variant in variants.items()
        }
        for job in as_completed(jobs):
            step()
            results[jobs[job]] = job.result()
    failures: dict[int, str] = {}
    first: dict[Any, int] = {}
    for number in variants:
        result = results[number]
        if isinstance(result, str):
            failures[number] = result
            continue
        code = (result.ptx, result.grid, result.threads, result.shared_bytes)
        earlier = first.setdefault(code, number)
        if earlier != number:
            failures[number] = f"the same code as {variants[earlier][1].label}"
    return failures


def first_that_compiles(
    variants: Sequence[Variant], device: Any, bound: Mapping[str, Any]
) -> tuple[int, dict[int, str]]:
    """The number of the first variant that compiles, -1 if none does; why others do not."""
    failures: dict[int, str] = {}
    for number, variant in enumerate(variants):
        result = _compile(variant, device, bound)
        if not isinstance(result, str):
            return number, failures
        failures[number] = result
    return -1, failures


def _compile(variant: Variant, device: Any, bound: Mapping[str, Any]) -> CompiledKernel | str:
    """The loaded kernel, or why there is none."""
    kernel, candidate = variant
    try:
        compiled = kernel.resolve(device, {**bound, **candidate.constants})
        device.load(compiled)
        return compiled
    except CompileError as error:
        return f"does not compile: {error.message}"
    except InternalError as error:
        return f"does not compile, which is tilec's fault: {_first_line(error)}"
    except DeviceError as error:
        return f"does not load: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
