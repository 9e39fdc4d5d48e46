"""The kernel's signature: arrays and scalars flattened into hardware parameters.

The order is `CompiledKernel.abi()`: per array the pointer, run-time sizes, run-time strides
(elements); per scalar its value; then the grid of a launch in one dimension and the tensor
maps. The parameter's name stays in the PTX's order only.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects.gpu_tile import ClusterStoreOp, ClusterSyncOp
from tilec.dialects.gpu_tile.role import RoleOp, ctas_per_sm, entry_registers, total_warps
from tilec.dialects.types import bit_width, element, is_array, is_index, is_list, is_tile, shape
from tilec.executable.kernel import TENSOR_MAP_BYTES, WORD_BYTES
from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.hardware.target import Feature
from tilec.passes.analysis.divisibility import (
    Divisibility,
    static_sizes,
    static_strides,
    unbounded_dims,
)
from tilec.passes.analysis.placement import program_bytes
from tilec.passes.analysis.register_pressure import most_live_registers
from tilec.passes.contract import PassContext
from tilec.passes.copies.tensor_map_recipes import tensor_maps
from tilec.passes.demands.kernels import (
    ctas_of,
    demanded_cluster,
    is_dynamic,
    is_in_line,
    lanes_of,
    programs_per_cta,
    room_for,
    stripes_of,
)
from tilec.passes.layouts.op_costs import words
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import Array, ArrayList
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import create
from tilec.passes.rewriting.walk import all_ops, find_ops
from tilec.passes.rows.stripes import BEST_STRIPE

BESIDE_ROWS = 32
"""Registers of a thread beside those that are counted for its stripe of a row: of 45, bf16 that
become f32, ptxas 13.0 takes 80 without spills."""


def parameter_types(function: ir.Operation, index: ir.Type) -> list[ir.Type]:
    """The hardware parameters' types."""
    pointer = ir.Type.parse("!llvm.ptr<1>")
    types: list[ir.Type] = []
    for argument in function.regions[0].blocks[0].arguments:
        if not is_array(argument.type):
            types.append(_scalar_parameter(argument.type, index))
            continue
        dynamic = [*static_sizes(argument), *static_strides(argument)].count(None)
        types += [pointer] + [index] * dynamic
    return types


def _scalar_parameter(type_: ir.Type, index: ir.Type) -> ir.Type:
    if is_index(type_):
        return index
    if bit_width(type_) <= 8:  # a bool takes a byte, floats of 8 bits are bytes (convert-floats)
        return ir.IntegerType.get_signless(8)
    return type_


def create_kernel(function: ir.Operation, context: PassContext) -> tuple[ir.Operation, Lowering]:
    """An `llvm.func` before `function`, its arguments bound. Its block ends in `llvm.return`."""
    index = ir.IntegerType.get_signless(context.index_bits)
    types = parameter_types(function, index)
    maps = tensor_maps(function)
    cluster = checked_cluster(function, context)
    own = total_warps(function, context.num_warps) * lanes_of(function)
    threads = own * programs_per_cta(function)
    generic = ir.Type.parse("!llvm.ptr")
    arguments = function.regions[0].blocks[0].arguments
    facts = Divisibility(function)
    attributes = _argument_attributes(arguments, types, facts) + [_map_attributes()] * len(maps)
    grid = 3 if is_in_line(function) else 0
    attributes[len(types) : len(types)] = [ir.DictAttr.get({})] * grid
    types += [ir.IntegerType.get_signless(32)] * grid + [generic] * len(maps)
    signature = ir.Type.parse(f"!llvm.func<void ({', '.join(map(str, types))})>")
    kernel = ir.Operation.create(
        "llvm.func",
        attributes={
            "sym_name": function.attributes["sym_name"],
            "function_type": ir.TypeAttr.get(signature),
            "nvvm.kernel": ir.UnitAttr.get(),
            # Programs of one warp come in CTAs of as many warps as the launch says.
            f"nvvm.{'reqntid' if threads == own else 'maxntid'}": ir.DenseI32ArrayAttr.get(
                [threads]
            ),
            "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
            "arg_attrs": ir.ArrayAttr.get(attributes),
            **_register_attributes(function, context, threads),
            **_stripes_attributes(function, context, threads),
            **_cluster_attributes(cluster),
        },
        regions=1,
        ip=ir.InsertionPoint(function),
        loc=function.location,
    )
    block = kernel.regions[0].blocks.append(*types, arg_locs=[function.location] * len(types))
    with ir.InsertionPoint(block), function.location:
        end = ir.Operation.create("llvm.return")
    # The prologue's marker: a no-op that is erased once the body is lowered.
    with ir.InsertionPoint(end), function.location:
        marker = ir.Operation.create("llvm.mlir.zero", results=[generic])
    state = Lowering(context, facts, marker, own)
    state.cluster = cluster
    state.stripes, state.ctas_per_program = stripes_of(function), ctas_of(function)
    state.programs_per_cta, state.lanes = programs_per_cta(function), lanes_of(function)
    if state.programs_per_cta > 1:
        state.program_bytes = program_bytes(function)
    state.dynamic = _checked_dynamic(function, context)
    with state.prologue, function.location:
        _bind_arguments(arguments, list(block.arguments), state)
    first = len(types) - len(maps)
    if grid:
        state.grid = tuple(block.arguments[first - grid + axis] for axis in range(grid))
    state.tensor_maps = dict(zip(maps, list(block.arguments)[first:], strict=True))
    return kernel, state


def checked_cluster(function: ir.Operation, context: PassContext) -> tuple[int, int, int]:
    """The programs of a kernel's clusters, or the stripes of each program that meet. CompileError
    where there are none of that shape."""
    cluster = demanded_cluster(function)
    most = PORTABLE_CTAS
    if find_ops(function, ClusterSyncOp):
        cluster = cluster[0] * stripes_of(function), *cluster[1:]
        most = context.target.ctas_per_cluster
    count = prod(cluster)
    if count > most or count & (count - 1):
        smaller = ", ".join(str(1 << n) for n in range(most.bit_length() - 1))
        raise error_at(function, f"a cluster has {smaller} or {most} CTAs, found {count}")
    if prod(cluster) == 1:
        return cluster
    if not context.target.supports(Feature.CLUSTERS):
        raise error_at(function, f"{context.target.name} has no clusters, found {cluster}")
    return cluster


def _checked_dynamic(function: ir.Operation, context: PassContext) -> bool:
    """Whether CTAs ask for programs. CompileError for a target where they cannot."""
    dynamic = is_dynamic(function)
    if dynamic and not context.target.supports(Feature.CLUSTER_LAUNCH_CONTROL):
        name = context.target.name
        raise error_at(function, f'persistent="dynamic": {name} has no cluster launch control')
    return dynamic


def _cluster_attributes(cluster: tuple[int, int, int]) -> dict[str, ir.Attribute]:
    """A launch of clusters has one dimension."""
    count = prod(cluster)
    return {"nvvm.cluster_dim": ir.DenseI32ArrayAttr.get([count, 1, 1])} if count > 1 else {}


def _stripes_attributes(
    function: ir.Operation, context: PassContext, threads: int
) -> dict[str, ir.Attribute]:
    """Gives each thread so few registers that two stripes have room on a multiprocessor, three
    where what they hold leaves registers for that, where stripes of programs wait for each other
    and are short enough: one loads while the others wait. Chunks of 65536 bf16 of a cross-entropy
    took 53.2 us for 63.7 with three (unsloth's, H200)."""
    meet = stripes_of(function) > 1 and find_ops(function, ClusterStoreOp)
    if not meet or 2 * threads > context.target.max_threads or _longest(function) > BEST_STRIPE:
        return {}
    needed = most_live_registers(function.regions[0].blocks[0]) + BESIDE_ROWS
    ctas = 3 if needed <= entry_registers(context.target, threads, 3) else 2
    return {"nvvm.minctasm": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), ctas)}


def _longest(function: ir.Operation) -> int:
    """Words of the longest tile."""
    tiles = [value for op in all_ops(function) for value in op.results if is_tile(value)]
    return max((prod(shape(value)) * words(value) for value in tiles), default=0)


def _register_attributes(
    function: ir.Operation, context: PassContext, threads: int
) -> dict[str, ir.Attribute]:
    """A kernel whose roles move registers begins with its part of all of them: `setmaxnreg` needs
    to know it (PTX ISA 9.0). Where slots leave room for several CTAs, ptxas leaves registers: it
    took 174 of 168 for fla's abc_bwd_kernel_V. CompileError if the roles hold more than the CTA
    begins with."""
    roles = [op.opview for op in find_ops(function, RoleOp)]
    i32, ctas = ir.IntegerType.get_signless(32), ctas_per_sm(function)
    room = max(room_for(function), ctas if ctas > 1 else 0)
    least = {"nvvm.minctasm": ir.IntegerAttr.get(i32, max(1, room))}
    if not any(role.registers for role in roles):
        return least if room else {}
    entry = entry_registers(context.target, threads, ctas)
    warp_size = context.target.warp_size
    total = 0
    for warp in range(threads // warp_size):
        mine = [r for r in roles if r.first_warp <= warp < r.first_warp + r.warps]
        total += warp_size * max((r.registers for r in mine if r.registers), default=entry)
    if total > entry * threads:
        raise error_at(
            function,
            f"the roles hold {total} registers, a CTA of {threads} threads begins with "
            f"{entry * threads} ({entry} a thread)",
        )
    return {"nvvm.maxnreg": ir.IntegerAttr.get(i32, entry), **least}


def _argument_attributes(
    arguments: ir.BlockArgumentList, types: list[ir.Type], facts: Divisibility
) -> list[ir.Attribute]:
    aligned = {}
    at = 0
    for argument in arguments:
        if is_array(argument.type):
            aligned[at] = WORD_BYTES if is_list(argument) else facts.alignment(argument)
            at += 1 + [*static_sizes(argument), *static_strides(argument)].count(None)
        else:
            at += 1
    i64 = ir.IntegerType.get_signless(64)
    return [
        ir.DictAttr.get(
            {"llvm.align": ir.IntegerAttr.get(i64, aligned[i])} if aligned.get(i, 1) > 1 else {}
        )
        for i in range(len(types))
    ]


def _map_attributes() -> ir.Attribute:
    """A tensor map is read where the launch put it: `grid_constant` forbids a copy on the stack."""
    return ir.Attribute.parse(
        f"{{llvm.byval = !llvm.array<{TENSOR_MAP_BYTES} x i8>, llvm.align = 64 : i64, "
        "nvvm.grid_constant}"
    )


def _bind_arguments(
    arguments: ir.BlockArgumentList, parameters: list[ir.Value], state: Lowering
) -> None:
    remaining = iter(parameters)
    for argument in arguments:
        if not is_array(argument.type):
            value = next(remaining)
            if argument.type == state.i1:
                value = create("arith.trunci", [value], state.i1)
            elif value.type != state.scalar_type(argument.type):
                value = create("arith.bitcast", [value], argument.type)
            state.values[argument] = value
            continue
        pointer = next(remaining)
        sizes, strides = (
            tuple(next(remaining) if v is None else state.index_constant(v) for v in values)
            for values in (static_sizes(argument), static_strides(argument))
        )
        if is_list(argument):
            state.values[argument] = ArrayList(pointer, sizes)
            continue
        state.values[argument] = Array(
            argument,
            pointer,
            sizes,
            strides,
            tuple(static_strides(argument)),
            element(argument),
            unbounded_dims(argument),
        )
