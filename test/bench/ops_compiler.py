"""What `tilec.ops.matmul` would launch for a case, untuned, as artefacts: one kernel, two where it
splits K, and one more for operands that it copies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from array_spec import row_major

from tilec.call.jit import Kernel
from tilec.costs.rates import rates_of
from tilec.hardware.target import find_target
from tilec.ops.aligned_operands import copied_order, copy_tile, operands_to_copy
from tilec.ops.matmul_kernel import accumulator_of
from tilec.ops.multiply_plan import Options, Plan, make_plan
from tilec.ops.product_launch import ORDER, Launch, combine_tile, kernel_on
from tilec.ops.tail_kernel import product_with_tail
from tilec.ops.tile_choice import wide_unit
from tilec.runtime.arrays import ArrayView
from tilec.runtime.artefact import save
from tilec.runtime.device import device
from tilec.runtime.facts import index_bits, observe_parameter
from tilec.terms.dtypes import BY_MLIR

OPTIONAL = ("bias", "row_scale", "column_scale", "scale", "residual")
"""Arguments that a plain product passes 0 for."""


def chosen_tiles(case: Any, target: str) -> Any:
    """The tiles, None where `tl.auto` serves."""
    return _launch(case, _aligned(case, target), target).choice


def compile_ops(
    case: Any, target: str, path: Path, settled: tuple[str, ...] = ()
) -> tuple[Any, dict[str, Any]]:
    """Saves the artefacts; gives the (first) kernel, and how to launch it. `settled`: as there."""
    operands = _aligned(case, target)
    launch = _launch(case, operands, target)
    launch.plan = replace(launch.plan, settled=settled)
    choice = launch.choice
    a, b, c, *_ = launch.ordered(ORDER)
    taken = {"transposed": launch.is_transposed, "copies": _copies(case, operands, target, path)}
    if choice is not None and choice.tail > 1:
        return _with_tail(launch, (a, b, c), case, target, path, taken)
    if choice is None or choice.splits == 1:
        compiled = _compiled(launch.kernel, (a, b, c), launch.constants, target)
        save(path, [compiled])
        return compiled, taken
    kind = accumulator_of(BY_MLIR[case.dtype]).mlir
    sums = row_major("sums", kind, (choice.splits, *c.shape)).view()
    constants = {**choice.constants, "PRECISION": case.precision, "SPLITS": choice.splits}
    compiled = _compiled(launch.kernel, (a, b, sums), constants, target)
    save(path, [compiled])
    second = path.with_name(f"{path.stem}-combine.tilec")
    rest = {"SPLITS": choice.splits, **combine_tile(c.shape[-1])}
    combine = kernel_on("combine", launch.device)
    save(second, [_compiled(combine, (sums, c), rest, target)])
    split = {"combine": second.name, "sums": kind, "splits": choice.splits}
    return compiled, taken | split


def _with_tail(
    launch: Launch, views: Sequence[ArrayView], case: Any, target: str, path: Path, taken: Any
) -> tuple[Any, dict[str, Any]]:
    """One kernel, with memory for partial sums and flags."""
    choice, (m, n) = launch.choice, views[2].shape[-2:]
    workers = find_target(target).speed.multiprocessors
    tiles = -(-m // choice.rows) * -(-n // choice.columns) * max(case.batch, 1)
    slots = tiles % workers * (choice.tail - 1)
    kind = accumulator_of(BY_MLIR[case.dtype]).mlir
    sums = row_major("sums", kind, (slots, choice.rows * choice.columns)).view()
    flags = row_major("flags", "i32", (slots,)).view()
    constants = {**launch.constants, "WORKERS": workers, "SPLITS": choice.tail}
    del constants["KEPT"]
    specs = _specs(product_with_tail, views)
    specs += [observe_parameter(n, v) for n, v in (("sums", sums), ("flags", flags))]
    bits = index_bits([*views, sums, flags])
    compiled = product_with_tail.compile(specs, constants, target=target, index_bits=bits)
    save(path, [compiled])
    return compiled, taken | {"tail": choice.tail, "sums": kind, "sums_shape": sums.shape}


def _plan(case: Any, specs: Sequence[Any]) -> tuple[Plan, dict[str, ArrayView]]:
    """The call's plan, and its arrays as torch's."""
    views = {
        name: replace(spec.view(), framework="torch")
        for name, spec in zip(("a", "b", "out"), specs, strict=True)
    }
    return make_plan(views, Options(None, False, None, None, case.precision)), views


def _launch(case: Any, specs: Sequence[Any], target: str) -> Launch:
    """The launch, its choice made for the GPU that the target is usual for."""
    plan, views = _plan(case, specs)
    launch = Launch(plan, views, views, 1.0, device("emulator"), None)
    with mock.patch.dict(os.environ, TILEC_TARGET=target):
        _ = launch.choice
    return launch


def _aligned(case: Any, target: str) -> list[Any]:
    """a, b and c as the product reads them: operands that are copied as their copies."""
    plan, views = _plan(case, case.arrays)
    copied = _copied(plan, views, target)
    found = []
    for name, spec in zip(("a", "b", "out"), case.arrays, strict=True):
        if name in copied:
            along = copied[name]
            _, pitch = copied_order(views[name], plan.views[name], along)
            spec = replace(spec, strides=(1, pitch) if along == 0 else (pitch, 1), offset=0)
        found.append(spec)
    return found


def _copied(plan: Plan, views: Mapping[str, ArrayView], target: str) -> dict[str, int]:
    found = find_target(target)
    return operands_to_copy(plan, views, wide_unit(found), rates_of(found))


def _copies(
    case: Any, operands: Sequence[Any], target: str, path: Path
) -> dict[str, Mapping[str, Any]]:
    """For each operand that is copied the copy's artefact, and how it lies."""
    plan, views = _plan(case, case.arrays)
    copies = {}
    kernel = kernel_on("copy_rows", device("emulator"))
    copied = _copied(plan, views, target)
    for name, spec, aligned in zip("ab", case.arrays, operands, strict=False):
        if name not in copied:
            continue
        along, view = copied[name], plan.views[name]
        shape, pitch = copied_order(views[name], view, along)
        rows = [
            replace(s, shape=shape, strides=(s.strides[1 - along], s.strides[along])).view()
            for s in (spec, aligned)
        ]
        file = path.with_name(f"{path.stem}-copy-{name}.tilec")
        parameters = [observe_parameter(x, one) for x, one in zip("xy", rows, strict=True)]
        tile = copy_tile(views[name], view, along)
        bits = index_bits(rows)
        save(file, [kernel.compile(parameters, tile, target=target, index_bits=bits)])
        copies[name] = {"file": file.name, "along": along, "shape": shape, "pitch": pitch}
    return copies


def _compiled(
    kernel: Kernel, views: Sequence[ArrayView], constants: dict[str, Any], target: str
) -> Any:
    specs = _specs(kernel, views)
    return kernel.compile(specs, constants, target=target, index_bits=index_bits(views))


def _specs(kernel: Kernel, views: Sequence[ArrayView]) -> list[Any]:
    """What a plain product is called with."""
    own = [p.name for p in kernel.parameters if p.kind != "const"]
    arrays = [observe_parameter(name, view) for name, view in zip(own, views, strict=False)]
    return [*arrays, *(f"{name}:i32" for name in OPTIONAL)]
