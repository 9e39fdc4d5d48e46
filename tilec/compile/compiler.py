"""From a module at any level to PTX and a `CompiledKernel`.

The levels are those of the README's picture: `tile` -> `gpu_tile` -> `llvm` -> LLVM IR -> PTX. Each
prints (`dump_dir`), verifies, and parses back: a dumped file compiles from there on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from mlir import ir
from mlir._mlir_libs._mlirDialectsLLVM import translate_module_to_llvmir
from mlir.passmanager import PassManager

from tilec.compile import progress
from tilec.compile.dump_folder import write_dump
from tilec.compile.emit_ptx import emit_ptx, start_worker
from tilec.compile.fitting import check_sound, first_sound, less, show
from tilec.compile.mlir_errors import interruptible
from tilec.compile.parameters import launch_memory, signature_of, written_of
from tilec.compile.pipeline import LLVM_PIPELINE, UPSTREAM_LOWERING, passes_from
from tilec.compile.played_rings import play_rings
from tilec.compile.program_lanes import choose_lanes
from tilec.compile.program_size import choose_num_warps
from tilec.dialects.demands import attribute_of, is_demanded, value_of
from tilec.dialects.gpu_tile.role import total_warps
from tilec.executable.kernel import CompiledKernel, Parameter
from tilec.hardware.ptx_version import NEWEST
from tilec.hardware.target import Target, check_ptx_version
from tilec.messages.diagnostics import CompileError, DoesNotFit, InternalError
from tilec.passes.analysis.placement import program_bytes
from tilec.passes.checks.levels import check_level, entry_level
from tilec.passes.checks.program_check import ProgramCheck
from tilec.passes.checks.verify_ops import verify_ops
from tilec.passes.checks.verify_rings import verify_rings
from tilec.passes.checks.verify_target import verify_target
from tilec.passes.contract import Level, PassContext, Report, TilePass
from tilec.passes.copies.tensor_map_recipes import tensor_maps
from tilec.passes.demands.kernels import (
    ctas_of,
    is_explicit,
    is_in_line,
    is_whole,
    lanes_of,
    most_programs,
    programs_per_cta,
    rounds_of,
    size_limits,
    spreads_few,
    suits_of,
)
from tilec.passes.lower_to_nvvm.kernel import checked_cluster
from tilec.passes.overlap_launches import has_roles, starts_early
from tilec.passes.rewriting.locations import error_at, source_location
from tilec.records import dataclass
from tilec.terms.demands import NUM_WARPS

LEVELS = ("tile", "gpu_tile", "llvm", "llvmir", "ptx")
"""What `lower_to` can stop at, in order."""


Other = Callable[[int], "ir.Module | None"]
"""The program with the compiler's choice of tiles of a number from 0 on; None past the last."""


@dataclass
class Compilation:
    """One kernel on its way: the module, and what was learned on the way. `launch`: the fields of
    CompiledKernel that the passes decide."""

    module: ir.Module
    target: Target
    name: str
    context: PassContext
    signature: tuple[Parameter, ...]
    grid: tuple[str, str, str] | None
    constants: dict[str, Any]
    level: Level
    dump_dir: Path | None = None
    launch: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    check: ProgramCheck = field(default_factory=ProgramCheck)
    played: int = 0
    """The program whose rings were played last, by `check.changes`."""
    _dumped: int = 0

    def dump(self, name: str, suffix: str, text: str | None = None) -> None:
        """Writes the current state as `NN-name.suffix`."""
        if self.dump_dir is None:
            return
        if text is None:
            text = str(self.module.operation.get_asm(enable_debug_info=True))
        write_dump(self.dump_dir / f"{self._dumped:02}-{name}.{suffix}", text)
        self._dumped += 1

    def timed(self, level: str, start: float) -> None:
        """Adds the time since `start` to what it takes to reach a level."""
        self.seconds[level] = self.seconds.get(level, 0.0) + time.perf_counter() - start


def compile_module(
    module: ir.Module,
    target: Target,
    *,
    other: Other | None = None,
    kernel: str | None = None,
    num_warps: int | None = None,
    ptx_version: int | None = None,
    dump_dir: str | None = None,
) -> CompiledKernel:
    """Compiles a kernel of a `tile` module (it is consumed). `kernel`: its name, if there are
    several. `other`: see `lower_to`.

    `ptx_version`: of the PTX, times ten; None for the lowest that the code needs. CompileError for
    a mistake in the program, ValueError for a PTX version the target does not have.
    """
    job = lower_to(
        module,
        target,
        "ptx",
        other=other,
        kernel=kernel,
        num_warps=num_warps,
        ptx_version=ptx_version,
        dump_dir=dump_dir,
    )
    return compiled_kernel(job)


def compiled_kernel(job: Compilation) -> CompiledKernel:
    """Gives what a launch needs of a compilation that went as far as PTX."""
    milliseconds = {level: round(1000 * s, 2) for level, s in job.seconds.items()}
    return CompiledKernel(
        name=job.name,
        target=job.target.name,
        ptx=job.text,
        parameters=job.signature,
        grid=job.grid,
        index_bits=job.context.index_bits,
        constants=job.constants,
        report={"decisions": job.context.report.decisions, "milliseconds": milliseconds},
        **job.launch,
    )


@interruptible()
def lower_to(
    module: ir.Module,
    target: Target,
    level: str,
    *,
    other: Other | None = None,
    kernel: str | None = None,
    num_warps: int | None = None,
    ptx_version: int | None = None,
    dump_dir: str | None = None,
) -> Compilation:
    """Lowers a `tile` module to one of `LEVELS`; `.module` holds MLIR, `.text` LLVM IR or PTX.

    `other`: the same program with other tiles, where the author left them to the compiler. They are
    taken where the first do not fit the target's memory, spill, or starve (`fitting.py`).
    """
    if ptx_version is not None:
        check_ptx_version(target, ptx_version)
    if LEVELS.index(level) == len(LEVELS) - 1:
        start_worker()  # LLVM loads in its own process while the passes run here
    options = (kernel, num_warps, ptx_version, dump_dir)

    def lower(found: ir.Module, refused: Sequence[str], is_strict: bool) -> Compilation:
        return _lower(found, target, level, *options, refused=refused, is_strict=is_strict)

    return lower(module, (), False) if other is None else first_sound(module, other, lower)


def _lower(
    module: ir.Module,
    target: Target,
    level: str,
    kernel: str | None,
    num_warps: int | None,
    ptx_version: int | None,
    dump_dir: str | None,
    *,
    refused: Sequence[str],
    is_strict: bool,
) -> Compilation:
    """The same for tiles as they are. `refused`: what was tried before, for the report.
    `is_strict`: Unsound where they spill or starve."""
    with module.context, ir.Location.unknown():
        job = _prepare(module, target, kernel, num_warps, dump_dir)
        for text in refused:
            job.context.report.add("tiles", find_kernel(module, job.name), "others", text)
        job.context.ptx_version = ptx_version or NEWEST
        for reached, run in zip(LEVELS[1:], (_to_gpu_tile, _to_llvm, _to_llvmir), strict=False):
            if LEVELS.index(level) < LEVELS.index(reached):
                return job
            start = time.perf_counter()
            run(job)
            job.timed(reached, start)
            if is_strict and reached == "gpu_tile":
                check_sound(job.constants, job.context.report)
        if level == "ptx":
            start = time.perf_counter()
            job.text = emit_ptx(job.text, target, ptx_version)
            job.timed("ptx", start)
            job.dump(job.name, "ptx", job.text)
    return job


def find_kernel(module: ir.Module, name: str | None) -> ir.Operation:
    """The kernel of that name, or the only one. CompileError says what there is."""
    kernels = {
        op.operation.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func" and "tile.kernel" in op.operation.attributes
    }
    if name is not None and name not in kernels:
        raise CompileError(f"no kernel named '{name}'; found: {', '.join(kernels) or 'none'}")
    if name is None and len(kernels) != 1:
        found = ", ".join(kernels) or "none (a kernel has the attribute tile.kernel)"
        raise CompileError(f"expected one kernel or a name; found: {found}")
    return kernels[name] if name is not None else next(iter(kernels.values()))


def _prepare(
    module: ir.Module,
    target: Target,
    kernel: str | None,
    num_warps: int | None,
    dump_dir: str | None,
) -> Compilation:
    verify_ops(module)
    level = entry_level(module)
    check_level(module, level)
    if level is Level.LAYOUTS:
        verify_target(module, target)
    function = find_kernel(module, kernel)
    progress.at("the compiler", source_location(function.location))
    for op in list(module.body.operations):
        if op.operation != function:
            op.operation.erase()
    attributes = function.attributes
    report = Report()
    is_chosen = num_warps is None and not is_demanded(function, NUM_WARPS)
    num_warps = _num_warps(function, num_warps, target, report)
    if is_chosen and num_warps == 1:
        choose_lanes(function, target, report)
    bits = attributes["tile.index_bits"].value if "tile.index_bits" in attributes else 64
    if bits not in (32, 64):
        raise error_at(function, f"tile.index_bits must be 32 or 64, found {bits}")
    job = Compilation(
        module,
        target,
        attributes["sym_name"].value,
        PassContext(target, num_warps, bits, report, given=level, lanes=lanes_of(function)),
        signature_of(function),
        _grid(function),
        _constants(function, report),
        level,
        None if dump_dir is None else Path(dump_dir),
    )
    if not is_explicit(function):  # whose rings expand-rings looks at
        verify_rings(module, job.context)
    job.dump("tile", "mlir")
    return job


def _num_warps(function: ir.Operation, demanded: int | None, target: Target, report: Report) -> int:
    """The demanded number of warps or the compiler's choice; written on the kernel for later
    levels."""
    explicit = is_explicit(function)
    if (explicit or demanded is None) and is_demanded(function, NUM_WARPS):
        demanded = _written_warps(function, demanded, explicit)
    warps = choose_num_warps(function, target, report) if demanded is None else demanded
    limit = target.max_threads // target.warp_size
    if not 1 <= warps <= limit or (warps & (warps - 1) and warps != 12 and not explicit):
        expected = f"a power of two up to {limit}, or {12} for three warpgroups"
        raise error_at(function, f"num_warps must be {expected}, found {warps}")
    if total_warps(function, warps) < warps:
        total = total_warps(function, warps)
        raise error_at(function, f"tile.total_warps is {total}, fewer than the {warps} of layouts")
    function.attributes[NUM_WARPS.attribute] = attribute_of(warps)
    return warps


def _written_warps(function: ir.Operation, demanded: int | None, explicit: bool) -> int:
    """The warps a kernel says it has; an explicit one's layouts are for no other number."""
    written = value_of(function.attributes[NUM_WARPS.attribute])
    if explicit and demanded not in (None, written):
        raise error_at(function, f"the kernel is written for {written} warps, not {demanded}")
    return written


def _to_gpu_tile(job: Compilation) -> None:
    _run_until_it_fits(job)
    function = find_kernel(job.module, job.name)
    context, together = job.context, programs_per_cta(function)
    maps = tensor_maps(function)
    job.launch = {
        "threads": total_warps(function, context.num_warps) * together * lanes_of(function),
        "shared_bytes": program_bytes(function) * together,
        "tensor_maps": tuple(replace(m, dtype=job.signature[m.parameter].dtype) for m in maps),
        "persistent": is_in_line(function),
        "dynamic": is_whole(function),
        "starts_early": starts_early(function),
        "has_roles": has_roles(function),
        "cluster": checked_cluster(function, context),
        "limits": size_limits(function),
        "most_programs": most_programs(function),
        "stripes": ctas_of(function),
        "workspaces": launch_memory(function),
        "programs_per_cta": together,
        "suits": suits_of(function),
        "spreads_few": spreads_few(function),
        "rounds": rounds_of(function),
        "writes": tuple(parameter.name for parameter in written_of(function, job.signature)),
    }


def _run_until_it_fits(job: Compilation) -> None:
    """Runs the passes, again with a smaller allowance where memory does not suffice."""
    function = find_kernel(job.module, job.name)
    passes = passes_from(job.level, explicit=is_explicit(function))
    kept, level, dumped = function.clone(ip=False), job.level, job._dumped
    decisions = list(job.context.report.decisions)
    while True:
        try:
            for tile_pass in passes:
                run_pass(tile_pass, job)
            return
        except DoesNotFit as error:
            allowance = None if is_explicit(kept) else less(job.context.allowance, error)
            if allowance is None:
                raise
            reason = error.message
        find_kernel(job.module, job.name).erase()
        function = kept.clone(ip=ir.InsertionPoint(job.module.body))
        report = Report(list(decisions))
        report.add("fit", function, show(allowance), f"else {reason}")
        job.context = replace(job.context, report=report, allowance=allowance)
        job.level, job._dumped = level, dumped


def run_pass(tile_pass: TilePass, job: Compilation) -> None:
    """Runs one pass, checks what it left, dumps it. InternalError if it broke the program."""
    progress.at(f"'{tile_pass.name}'")
    tile_pass(job.module, job.context)
    job.level = tile_pass.ensures or job.level
    job.dump(tile_pass.name, "mlir")
    if not job.context.verify:
        return
    try:
        job.check(job.module, job.level)
    except (ir.MLIRError, CompileError) as error:
        raise InternalError(f"{tile_pass.name} left an invalid program:\n{error}") from error
    if tile_pass.rings and job.played != job.check.changes:
        play_rings(job.module, job.context, behind=tile_pass)
        job.played = job.check.changes


def _to_llvm(job: Compilation) -> None:
    for tile_pass in LLVM_PIPELINE:
        run_pass(tile_pass, job)
    progress.at("MLIR's lowering to the llvm dialect")
    try:
        manager = PassManager.parse(UPSTREAM_LOWERING)
        manager.enable_verifier(False)  # once, after the last; each of them costs a walk
        manager.run(job.module.operation)
        job.module.operation.verify()
    except ir.MLIRError as error:
        raise InternalError(f"the lowering to the llvm dialect failed:\n{error}") from error
    job.dump("llvm", "mlir")


def _to_llvmir(job: Compilation) -> None:
    progress.at("MLIR's translation to LLVM IR")
    job.text = translate_module_to_llvmir(job.module.operation)
    job.dump(job.name, "ll", job.text)


def _grid(function: ir.Operation) -> tuple[str, str, str] | None:
    if "tile.grid" not in function.attributes:
        return None
    rules = [rule.value for rule in function.attributes["tile.grid"]]
    if len(rules) > 3:
        raise error_at(function, f"a grid has at most 3 dimensions, found {len(rules)}")
    x, y, z = [*rules, *["1"] * (3 - len(rules))]
    return x, y, z


def _constants(function: ir.Operation, report: Report) -> dict[str, Any]:
    if "tile.auto" in function.attributes:
        for entry in function.attributes["tile.auto"]:
            report.add("constant", function, entry.name, entry.attr.value)
    if "tile.constants" not in function.attributes:
        return {}
    return {e.name: _constant(e.attr) for e in function.attributes["tile.constants"]}


def _constant(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.IntegerAttr) and getattr(attribute.type, "is_unsigned", False):
        return attribute.value % (1 << 64)  # the binding reads it as a signed number
    return getattr(attribute, "value", str(attribute))
