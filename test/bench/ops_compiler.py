"""What `tilec.ops.matmul` would launch for a case, untuned, as artefacts: one kernel, two where it
splits K, and one more for operands that it copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from array_spec import row_major

import tilec.language as tl
from tilec.language.dtypes import BY_MLIR
from tilec.ops.aligned_operands import copied_order, unaligned_operands
from tilec.ops.matmul_kernel import accumulator_of, combine, copy_rows, product
from tilec.ops.multiply_plan import Options, make_plan
from tilec.ops.tile_choice import choose_tiles
from tilec.runtime.artefact import save
from tilec.runtime.facts import index_bits, observe_parameter
from tilec.target import find_target
from tilec.tuning.machine import Machine

OPTIONAL = ("bias", "row_scale", "column_scale", "scale", "residual")
"""Arguments that a plain product passes 0 for."""
MLIR_NAMES = {tl.f32: "f32", tl.i32: "i32"}


def chosen_tiles(case: Any, target: str) -> Any:
    """The tiles, None where `tl.auto` serves; on the GPU that the target is usual for."""
    chip = find_target(target)
    speed = chip.speed
    machine = Machine(
        *("usual", chip, speed.multiprocessors, speed.clock_mhz),
        *(speed.memory_gb_per_s, speed.l2_bytes),
    )
    dtype = BY_MLIR[case.dtype]
    return choose_tiles(*case.shape, max(case.batch, 1), dtype, case.precision, machine)


def compile_ops(case: Any, target: str, path: Path) -> tuple[Any, dict[str, Any]]:
    """Saves the artefacts; gives the (first) kernel, and how the launch splits K."""
    choice = chosen_tiles(case, target)
    a, b, c = case.arrays
    operands, copies = _aligned({"a": a, "b": b}, case, target, path)
    a, b = operands["a"], operands["b"]
    constants: dict[str, Any] = {"PRECISION": case.precision}
    constants |= {} if choice is None else choice.constants
    if choice is None or choice.splits == 1:
        compiled = _compiled(product, (a, b, c), ("a", "b", "c"), constants, target)
        save(path, [compiled])
        return compiled, {"copies": copies}
    sums = row_major(
        "sums", MLIR_NAMES[accumulator_of(BY_MLIR[case.dtype])], (choice.splits, *c.shape)
    )
    constants["SPLITS"] = choice.splits
    compiled = _compiled(product, (a, b, sums), ("a", "b", "c"), constants, target)
    save(path, [compiled])
    second = path.with_name(f"{path.stem}-combine.tilec")
    rest = {"SPLITS": choice.splits}
    save(second, [_compiled(combine, (sums, c), ("sums", "c"), rest, target)])
    split = {"combine": second.name, "sums": sums.dtype, "splits": choice.splits}
    return compiled, split | {"copies": copies}


def _aligned(
    operands: dict[str, Any], case: Any, target: str, path: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The operands as the product reads them, and for each that is copied the copy's artefact and
    strides."""
    views = {name: replace(spec.view(), framework="torch") for name, spec in operands.items()}
    options = Options(None, False, None, None, case.precision)
    plan = make_plan(views, options)
    found, copies = dict(operands), {}
    for name in unaligned_operands(plan, views):
        spec = operands[name]
        along, shape, pitch = copied_order(spec.view(), plan.views[name])
        strides = (1, pitch) if along == 0 else (pitch, 1)
        found[name] = replace(spec, strides=strides, offset=0)
        rows = [
            replace(s, shape=shape, strides=(s.strides[1 - along], s.strides[along]))
            for s in (spec, found[name])
        ]
        file = path.with_name(f"{path.stem}-copy-{name}.tilec")
        parameters = [
            observe_parameter(parameter, one.view())
            for parameter, one in zip("xy", rows, strict=True)
        ]
        bits = index_bits([one.view() for one in rows])
        save(file, [copy_rows.compile(parameters, {}, target=target, index_bits=bits)])
        copies[name] = {"file": file.name, "along": along, "shape": shape, "pitch": pitch}
    return found, copies


def _compiled(
    kernel: Any, specs: Sequence[Any], names: Sequence[str], constants: dict[str, Any], target: str
) -> Any:
    views = [replace(spec, name=name).view() for spec, name in zip(specs, names, strict=True)]
    arrays = [observe_parameter(name, view) for name, view in zip(names, views, strict=True)]
    scalars = [f"{name}:i32" for name in OPTIONAL]
    return kernel.compile(
        [*arrays, *scalars], constants, target=target, index_bits=index_bits(views)
    )
