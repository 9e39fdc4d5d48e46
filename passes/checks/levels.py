"""Legality sets: what a module may contain at each level, and which op breaks the rule.

Checked once on every program that comes in, and between passes when `PassContext.verify` is set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from math import prod

from mlir import ir
from mlir._mlir_libs._mlirDialectsLLVM import StructType

from tilec.dialects import gpu_tile, tile
from tilec.dialects.constraints import COUNTED, RING
from tilec.dialects.def_use import constant_attribute, defining_op, made_by
from tilec.dialects.demands import OF_FUNCTIONS, OF_LOOPS, wrong_demand
from tilec.dialects.elementwise import ELEMENTWISE
from tilec.dialects.gpu_tile.types import is_ring, layout_of
from tilec.dialects.inline_text import wrong_constraints, wrong_text
from tilec.dialects.op import NAMESPACES
from tilec.dialects.types import encoding, is_array, is_tile, shape
from tilec.passes.checks.rules import Rule, RulesOf, look_at_all
from tilec.passes.contract import Level
from tilec.passes.demands.kernels import is_explicit
from tilec.passes.layouts.lane_moves import LaneMove, lane_move
from tilec.passes.layouts.maps import register_permutation
from tilec.passes.rewriting.walk import is_of, kernel_of
from tilec.terms.demands import Demand

_SCALAR_OPS = {
    "builtin.module",
    "func.func",
    "func.return",
    "gpu.yield",
    "memref.dim",
    "scf.condition",
    "scf.for",
    "scf.if",
    "scf.while",
    "scf.yield",
    "tensor.extract",
    "tensor.splat",
}
_DEMANDS: dict[str, Mapping[str, Demand]] = {"func.func": OF_FUNCTIONS, "scf.for": OF_LOOPS}
_SAID = {
    "arith.index_cast": ("tile.coordinate",),
    "func.func": (
        "tile.auto",
        "tile.constants",
        "tile.crowd",
        "tile.ctas_per_sm",
        "tile.explicit",
        "tile.grid",
        "tile.few",
        "tile.few_programs",
        "tile.holds_rows",
        "tile.index_bits",
        "tile.kernel",
        "tile.lanes",
        "tile.limits",
        "tile.most_programs",
        "tile.programs_per_cta",
        "tile.programs_per_sm",
        "tile.room_for",
        "tile.parts",
        "tile.rounds",
        "tile.spreads_few",
        "tile.stripes",
        "tile.shared_bytes",
        "tile.total_warps",
    ),
    "scf.for": ("tile.loads_ahead",),
}
"""What ops of a name say of themselves, beside what is demanded of them."""
PARAMETER_BYTES = 32764
"""Of a kernel, from PTX 8.1 and sm_70 on (PTX ISA 9.0, "Kernel Function Parameters")."""
_LOWERED_DIALECTS = ("llvm.", "nvvm.", "arith.", "math.", "scf.", "builtin.")


def check_level(module: ir.Module, level: Level) -> None:
    """CompileError naming every op that does not belong at `level`."""
    look_at_all(module, level_rules(level))


def level_rules(level: Level) -> RulesOf:
    """The rules that say what keeps an op from belonging at `level`, for one walk over a
    program."""
    general = _GENERAL[level]
    if level in _WITH_LAYOUTS:
        general = (*general, partial(_has_layout, sound=set()))
    return partial(_rules_for, level=level, general=general)


def _rules_for(name: str, level: Level, general: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Lists what an op of this name is asked."""
    wrong = _unlowered(name) if level is Level.NVVM else _unknown(name)
    if wrong:
        return (lambda op: wrong,)
    return (*general, *_SPECIAL[level].get(name, ()))


def entry_level(module: ir.Module) -> Level:
    """The level a program is written at: by its ops and layouts."""
    level = Level.TILE

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal level
        if op.name == "llvm.func":
            level = Level.NVVM
            return ir.WalkResult.INTERRUPT
        tiles = [v for v in [*op.results, *op.operands] if is_tile(v)]
        if op.name.startswith("gpu_tile.") or any(encoding(v) is not None for v in tiles):
            level = Level.LAYOUTS
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return level


def _unknown(name: str) -> str | None:
    if name.startswith((*NAMESPACES, *ELEMENTWISE)) or name in _SCALAR_OPS:
        return None
    return f"'{name}' has no meaning in a tile program"


def _known_demand(op: ir.Operation) -> str | None:
    """A demand nobody reads would be dropped in silence, a wrong one break a pass."""
    demands = _DEMANDS.get(op.name, {})
    for name in op.attributes:
        if not name.startswith("tile."):
            continue
        if name in demands:
            wrong = wrong_demand(demands[name], op.attributes[name])
            if wrong is not None:
                return wrong
        elif name not in _SAID.get(op.name, ()):
            known = ", ".join(sorted({*demands, *_SAID.get(op.name, ())})) or "none"
            return f"'{op.name}' has the unknown demand '{name}'; known: {known}"
    return None


def _single_block(op: ir.Operation) -> str | None:
    if len(op.regions[0].blocks) != 1:
        return "a kernel's body is one block; loops and branches are scf ops"
    return None


def _signed_loop(op: ir.Operation) -> str | None:
    """Passes count a loop's iterations as signed numbers."""
    if "unsignedCmp" in op.attributes:
        return "'scf.for' op compares as unsigned; count the iterations of such a loop from 0"
    return None


def _dynamic_dim(op: ir.Operation) -> str | None:
    source, dimension = op.operands
    known = constant_attribute(dimension)
    made = defining_op(source)
    if known is None or (made is not None and not is_of(made, tile.ArrayAtOp)):
        return "memref.dim needs a kernel argument, or an array of one, and a constant dimension"
    array, number = source.type, known.value
    if not is_array(array) or not 0 <= number < array.rank:
        return f"memref.dim: {array} has no dimension {number}"
    return None


def _tensor_constant(op: ir.Operation) -> str | None:
    if not is_tile(op.results[0]):
        return None
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
        return None
    return "a constant tile must have one value for all elements (dense<x>)"


def _no_layout(op: ir.Operation) -> str | None:
    if op.name.startswith("gpu_tile."):
        return f"'{op.name}' needs layouts; this program has none"
    if any(encoding(v) is not None for v in op.results if is_tile(v)):
        return f"'{op.name}' op result has a layout, others have none"
    return None


def _has_layout(op: ir.Operation, sound: set[ir.Type]) -> str | None:
    """Says which tile of an op has no layout, or one of too many dimensions, if one does. `sound`
    holds types known to be right, since many values have few types; the op's are added."""
    for value in (*op.operands, *op.results):
        type_ = value.type
        if type_ in sound:
            continue
        if is_tile(type_):
            try:
                layout = layout_of(type_)
            except ValueError as error:
                return f"'{op.name}' op: {error}"
            if layout.rank > type_.rank:
                return f"'{op.name}' op: {type_} has no dimension {layout.rank - 1}"
        sound.add(type_)
    return None


def _dot_selected(op: ir.Operation) -> str | None:
    return None if "instruction" in op.opview.options else "the dot names no instruction"


def _not_replaced(op: ir.Operation) -> str | None:
    return f"a {op.opview.MNEMONIC} is left"


def _no_window(op: ir.Operation) -> str | None:
    """A kernel written by hand has layouts from the beginning, and windows until they are gone."""
    return None if is_explicit(kernel_of(op)) else _not_replaced(op)


def _no_cross_warp_conversion(op: ir.Operation) -> str | None:
    view = op.opview
    ends = layout_of(view.src), layout_of(view.result), shape(view.src)
    if register_permutation(*ends) is not None or isinstance(lane_move(*ends), LaneMove):
        return None
    return "the conversion crosses warps, or threads in a way that shuffles cannot"


def _has_offset(op: ir.Operation) -> str | None:
    view = op.opview
    return None if "offset" in view.options else f"the {view.PLACED} has no offset"


def _known_ring(op: ir.Operation) -> str | None:
    """Passes ask a ring how many slots it has."""
    for value in op.operands:
        if is_ring(value) and made_by(value, gpu_tile.MakeRingOp) is None:
            return "a ring is known by the 'gpu_tile.make_ring' that made it"
    return None


def _unlowered(name: str) -> str | None:
    return None if name.startswith(_LOWERED_DIALECTS) else f"'{name}' was not lowered"


_GENERAL: dict[Level, tuple[Rule, ...]] = {
    Level.TILE: (_known_demand, _no_layout),
    Level.SELECTED: (_known_demand, _no_layout),
    Level.LAYOUTS: (_known_demand,),
    Level.BUFFERS: (_known_demand,),
    Level.ALLOCATED: (_known_demand,),
    Level.NVVM: (),
}
"""Rules for every op whose name belongs to the level."""
_WITH_LAYOUTS = (Level.LAYOUTS, Level.BUFFERS, Level.ALLOCATED)
_PROGRAM: dict[str, tuple[Rule, ...]] = {
    "func.func": (_single_block,),
    "memref.dim": (_dynamic_dim,),
    "scf.for": (_signed_loop,),
    "arith.constant": (_tensor_constant,),
}
_RINGS: dict[str, tuple[Rule, ...]] = {
    op.OPERATION_NAME: (_known_ring,)
    for op in gpu_tile.Op.ALL
    if op.takes(RING) or op.takes(COUNTED)
}
_CHOSEN = {
    **_PROGRAM,
    **_RINGS,
    tile.DotOp.OPERATION_NAME: (_dot_selected,),
    tile.WindowOp.OPERATION_NAME: (_no_window,),
}
_BUFFERS: dict[str, tuple[Rule, ...]] = {
    **_PROGRAM,
    **_RINGS,
    **{op.OPERATION_NAME: (_not_replaced,) for op in tile.Op.ALL if not op.LOWERED},
    gpu_tile.ConvertLayoutOp.OPERATION_NAME: (_no_cross_warp_conversion,),
}
_OFFSETS: dict[str, tuple[Rule, ...]] = {
    op.OPERATION_NAME: (_has_offset,) for op in gpu_tile.Op.ALL if op.PLACED
}


def _wrong_assembly(op: ir.Operation) -> str | None:
    """Says what is wrong with an op's inline assembly, of which LLVM would die."""
    kinds = [value.type for value in op.results]
    if len(kinds) == 1 and isinstance(kinds[0], StructType):
        kinds = list(kinds[0].body or ())
    inputs = [str(value.type) for value in op.operands]
    if "asm_dialect" in op.attributes and op.attributes["asm_dialect"].value != 0:
        return "'llvm.inline_asm' op PTX has no Intel dialect"
    wrong = wrong_constraints(op.attributes["constraints"].value, len(kinds), inputs)
    wrong = wrong or wrong_text(op.attributes["asm_string"].value, len(kinds) + len(inputs))
    return wrong and f"'llvm.inline_asm' op {wrong}"


def _too_many_parameters(op: ir.Operation) -> str | None:
    """Says so where a kernel has more bytes of parameters than ptxas takes. Each parameter begins
    at a multiple of its own alignment."""
    if "nvvm.kernel" not in op.attributes or not op.regions[0].blocks:
        return None
    arguments = list(op.regions[0].blocks[0].arguments)
    given = op.attributes.get("arg_attrs", ())
    end = 0
    for argument, attributes in zip_longest(arguments, given, fillvalue={}):
        size, alignment = _parameter(argument, attributes)
        end = -(-end // alignment) * alignment + size
    if end <= PARAMETER_BYTES:
        return None
    return f"a kernel's parameters are at most {PARAMETER_BYTES} bytes, these {end}"


def _wrong_bound(op: ir.Operation) -> str | None:
    """Says which attribute bounds a launch by less than 1, a directive that ptxas would refuse (PTX
    ISA 9.0, "Performance-Tuning Directives")."""
    for name in _BOUNDS:
        given = op.attributes.get(name)
        numbers = list(given) if isinstance(given, ir.DenseI32ArrayAttr) else []
        if isinstance(given, ir.IntegerAttr):
            numbers = [given.value]
        if any(number < 1 for number in numbers):
            return f"'{name}' must be positive, found {', '.join(map(str, numbers))}"
    return None


_BOUNDS = ("nvvm.reqntid", "nvvm.maxntid", "nvvm.maxnreg", "nvvm.minctasm")


def _parameter(argument: ir.Value, given: ir.DictAttr | dict[str, ir.Attribute]) -> tuple[int, int]:
    """Bytes and alignment of a parameter; those of a value that stands in them are its own."""
    if "llvm.byval" in given:
        sizes = [int(number) for number in re.findall(r"(\d+) x", str(given["llvm.byval"].value))]
        alignment = given["llvm.align"].value if "llvm.align" in given else 1
        return prod(sizes), max(1, alignment)
    bits = argument.type.width if isinstance(argument.type, (ir.IntegerType, ir.FloatType)) else 64
    return -(-bits // 8), -(-bits // 8)


_SPECIAL: dict[Level, dict[str, tuple[Rule, ...]]] = {
    Level.TILE: _PROGRAM,
    Level.SELECTED: _CHOSEN,
    Level.LAYOUTS: _CHOSEN,
    Level.BUFFERS: _BUFFERS,
    Level.ALLOCATED: {**_BUFFERS, **_OFFSETS},
    Level.NVVM: {
        "llvm.inline_asm": (_wrong_assembly,),
        "llvm.func": (_too_many_parameters, _wrong_bound),
    },
}
"""Rules for the ops of one name, behind the general ones."""
