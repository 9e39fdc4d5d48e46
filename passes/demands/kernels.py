"""What an author demands of a kernel: attributes of its function.

tile.persistent = true                    CTAs share the programs ("dynamic": they ask for them)
tile.consumers = "pingpong"               two sets of warps take programs in turn
tile.explicit                             nothing is added to what is written

(Others are read by whoever meets them, as `order` by `programs/program_order.py`.)
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.dialects.demands import demanded
from tilec.dialects.gpu_tile.cluster import cluster_shape
from tilec.dialects.gpu_tile.role import ctas_per_sm
from tilec.executable.kernel import MOST_PROGRAMS
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.rewriting.locations import error_at
from tilec.terms import demands

PERSISTENT = demands.PERSISTENT.attribute
"""Kernel attribute: true, false, or "dynamic"."""
DYNAMIC = "dynamic"
CONSUMERS = demands.CONSUMERS.attribute
"""Kernel attribute: "cooperative" or "pingpong"."""
PINGPONG = "pingpong"
TEAMS = 2
"""Sets of warps that take programs in turn: one multiplies while the other stores, and two of 128 x
192 sums are all that registers hold."""
EXPLICIT = "tile.explicit"
"""Kernel attribute: nothing is added to it."""
INDEX_BITS = "tile.index_bits"
"""Kernel attribute: 32 or 64, as which it is without."""
PROGRAM_LIMIT = "tile.most_programs"
"""Kernel attribute: how many programs along x its indices are computed for, a number below
`MOST_PROGRAMS`: of a larger grid they would not fit 32 bits."""
SIZE_LIMITS = "tile.limits"
"""Kernel attribute: expressions over sizes of arrays (`tilec.executable.grid`), each with the
largest value, or the most negative, that its indices are computed for."""
STRIPES = "tile.stripes"
"""Kernel attribute: how many CTAs run each program, which are a cluster if they meet (passes
spread-rows, split-sums)."""
PARTS = "tile.parts"
"""Kernel attribute: into how many parts the loop of each program is cut, a CTA each, where clusters
of `STRIPES` CTAs share it, and meet in memory of the launch's (pass split-sums)."""
WORKSPACE = "tile.workspace"
"""Attribute of a parameter that the launch itself gives, behind the author's: memory for what CTAs
tell each other, `FLAGS`, which are 0 between launches, or `SUMS`. Its first dimension counts
clusters of the launch."""
FLAGS, SUMS = "flags", "sums"
PROGRAMS_PER_CTA = "tile.programs_per_cta"
"""Kernel attribute: how many programs a CTA runs side by side, a warp each, or `LANES` lanes of one
(pass pack-programs). What the IR says of a program's threads, barriers and shared memory, it says
of one of them."""
ROUNDS = "tile.rounds"
"""Kernel attribute: how many times as many CTAs as run side by side share its programs, at most."""
LANES = "tile.lanes"
"""Kernel attribute: how many lanes of a warp run a program of one warp, all without it."""
CROWD = "tile.crowd"
"""Kernel attribute: programs a multiprocessor, beyond which parts of a warp had better run them, or
those at edges code of their own, or loops that add up load less ahead."""
MANY = 16
"""Programs a multiprocessor, beyond which kernels are compiled so: others wait for instructions.
Stencils with rows of odd lengths: 4020 x 2753 f16, 42 a multiprocessor, 27.4 us for 36.4; 2023 x
351 bf16, 3, 5.6 for 5.2; diffusion of 37 x 149 x 25 f32, 1.4, 2.3 for 2.2 (H200)."""
SOME = 2
"""Programs a multiprocessor, up to which each takes as long as the launch does."""
SEVERAL = 5
"""Programs a multiprocessor, up to which its schedulers have a warp or two of programs of one."""
PROGRAMS_PER_SM = "tile.programs_per_sm"
"""Kernel attribute: programs a multiprocessor, rounded up, of the launches that it is compiled for;
below 0, how many multiprocessors each program has; any number without it."""
HOLDS_ROWS = "tile.holds_rows"
"""Kernel attribute: tiles that loops walk along rows by hold whole rows."""
ROOM_FOR = "tile.room_for"
"""Kernel attribute: how many CTAs a multiprocessor has to have room for, which ptxas gives all
registers that leaves; without it, as few as it makes do with."""
FEW_PROGRAMS = "tile.few_programs"
"""Kernel attribute: programs a multiprocessor, up to which another kernel is faster, whose CTAs all
fit at once with more registers, or share rows."""
SPREADS_FEW = "tile.spreads_few"
"""Kernel attribute: in launches that leave multiprocessors idle CTAs had better share rows."""
FEW = "tile.few"
"""Kernel attribute: launches have few programs, on each of whose rows so many CTAs may work without
that others wait for a multiprocessor."""
LEAST_LANES = 4
"""Of a program: a sector of 32 bytes in words of 8."""
MOST_PER_CTA = 1024 // LEAST_LANES
"""Of programs: a CTA has no more threads (CUDA C++ Programming Guide, "Compute Capabilities")."""
MOST_STRIPES = 1024
"""Of a program: what its largest tile, of 4 MiB, has with a vector for each of 256 threads."""
ALONE = (1, 1, 1)
"""The shape of a cluster of one program."""


def is_persistent(function: ir.Operation) -> bool:
    """Whether CTAs share the programs."""
    return bool(demanded(function, demands.PERSISTENT))


def has_narrow_indices(function: ir.Operation) -> bool:
    """Whether a kernel's indices have 32 bits."""
    return INDEX_BITS in function.attributes and function.attributes[INDEX_BITS].value == 32


def most_programs(function: ir.Operation) -> int:
    """How many programs along x the indices of a kernel reach."""
    known = function.attributes.get(PROGRAM_LIMIT)
    return MOST_PROGRAMS if known is None else known.value


def size_limits(function: ir.Operation) -> tuple[tuple[str, int], ...]:
    """What a launch has to evaluate for the indices of a kernel to fit, and what it may come to."""
    written = function.attributes.get(SIZE_LIMITS, ())
    return tuple((text.value, most.value) for text, most in written)


def limit_sizes(function: ir.Operation, limits: Iterable[tuple[str, int]]) -> None:
    """Adds to what a launch has to evaluate."""
    i64 = ir.IntegerType.get_signless(64)
    written = [
        ir.ArrayAttr.get([ir.StringAttr.get(text), ir.IntegerAttr.get(i64, most)])
        for text, most in dict((*size_limits(function), *limits)).items()
    ]
    if written:
        function.attributes[SIZE_LIMITS] = ir.ArrayAttr.get(written)


def is_in_line(function: ir.Operation) -> bool:
    """Whether the launch has one dimension; the author's grid is then a parameter."""
    return is_persistent(function) or demanded_cluster(function) != ALONE


def demanded_cluster(function: ir.Operation) -> tuple[int, int, int]:
    """The programs of a kernel's clusters. CompileError for a shape that no cluster has."""
    try:
        return cluster_shape(function)
    except ValueError as error:
        raise error_at(function, str(error)) from None


def chose_cluster(function: ir.Operation) -> bool:
    """Whether a kernel's cluster is the compiler's choice: no error where it shares nothing."""
    reasons = function.attributes.get("tile.auto")
    return reasons is not None and demands.CHOSEN_CLUSTER in reasons


def is_whole(function: ir.Operation) -> bool:
    """Whether a launch of one dimension has a CTA for each program, and not only as many as run
    side by side."""
    return is_dynamic(function) or (is_in_line(function) and not is_persistent(function))


def is_dynamic(function: ir.Operation) -> bool:
    """Whether CTAs ask for programs instead of taking every n-th: see request-programs."""
    return demanded(function, demands.PERSISTENT) == DYNAMIC


def is_explicit(function: ir.Operation) -> bool:
    """Whether its author writes every buffer and barrier: see keep-explicit."""
    return EXPLICIT in function.attributes


def teams_of(function: ir.Operation) -> int:
    """How many sets of warps take a kernel's programs in turn."""
    return TEAMS if demanded(function, demands.CONSUMERS) == PINGPONG else 1


def stripes_of(function: ir.Operation) -> int:
    """How many CTAs run each program, each its stripe of the tiles."""
    return function.attributes[STRIPES].value if STRIPES in function.attributes else 1


def ctas_of(function: ir.Operation) -> int:
    """How many CTAs run each program, whether they meet in clusters or in memory."""
    written = function.attributes
    return written[PARTS].value if PARTS in written else stripes_of(function)


def workspaces_of(function: ir.Operation) -> dict[ir.Value, str]:
    """The arrays that the launch itself gives, each with what it is for."""
    entry = function.regions[0].blocks[0]
    written = function.attributes.get("arg_attrs", ())
    return {
        entry.arguments[number]: attributes[WORKSPACE].value
        for number, attributes in enumerate(written)
        if WORKSPACE in attributes
    }


def lanes_of(function: ir.Operation) -> int:
    """How many lanes of each of its warps run a program."""
    return function.attributes[LANES].value if LANES in function.attributes else WARP_SIZE


def programs_per_sm(function: ir.Operation) -> int:
    """How many programs a multiprocessor has in the launches of a kernel; 0 for any number."""
    written = _crowd(function)
    return written if written >= 0 else 1


def sms_per_program(function: ir.Operation) -> int:
    """How many multiprocessors each program has in the launches of a kernel, a power of two; 1
    where there are as many programs, or any number."""
    return max(1, -_crowd(function))


def _crowd(function: ir.Operation) -> int:
    written = function.attributes
    return written[PROGRAMS_PER_SM].value if PROGRAMS_PER_SM in written else 0


def suits_of(function: ir.Operation) -> tuple[int, int]:
    """The fewest programs a multiprocessor for which its CTAs share one as they do, and the most
    for which whole warps run them; 0 for any number."""
    written, ctas = function.attributes, ctas_per_sm(function)
    few = written[FEW_PROGRAMS].value if FEW_PROGRAMS in written else 0
    most = written[CROWD].value if CROWD in written else 0
    return max(ctas if ctas > 1 else 0, few + 1 if few else 0), most


def suit_more(function: ir.Operation, programs: int) -> None:
    """Says that launches of up to so many programs a multiprocessor want another kernel."""
    written = function.attributes
    known = written[FEW_PROGRAMS].value if FEW_PROGRAMS in written else 0
    i32 = ir.IntegerType.get_signless(32)
    written[FEW_PROGRAMS] = ir.IntegerAttr.get(i32, max(known, programs))


def suit_spread(function: ir.Operation) -> None:
    """Says that launches that leave multiprocessors idle want another kernel, in as many parts."""
    suit_more(function, 1)
    function.attributes[SPREADS_FEW] = ir.BoolAttr.get(True)


def spreads_few(function: ir.Operation) -> bool:
    """Whether such launches want another kernel."""
    return SPREADS_FEW in function.attributes


def suit_few(function: ir.Operation, most: int) -> None:
    """Says that launches of more than so many programs a multiprocessor want another kernel."""
    if CROWD not in function.attributes:
        i32 = ir.IntegerType.get_signless(32)
        function.attributes[CROWD] = ir.IntegerAttr.get(i32, most)


def few_of(function: ir.Operation) -> int:
    """How many CTAs may work on each row of a kernel whose launches have few programs; else 0."""
    return function.attributes[FEW].value if FEW in function.attributes else 0


def room_for(function: ir.Operation) -> int:
    """How many CTAs a multiprocessor has to have room for; 0 where nobody says."""
    return function.attributes[ROOM_FOR].value if ROOM_FOR in function.attributes else 0


def rounds_of(function: ir.Operation) -> int:
    """How many times as many CTAs as run side by side share the programs, at most."""
    return function.attributes[ROUNDS].value if ROUNDS in function.attributes else 1


def programs_per_cta(function: ir.Operation) -> int:
    """How many programs a CTA runs side by side."""
    written = function.attributes
    return written[PROGRAMS_PER_CTA].value if PROGRAMS_PER_CTA in written else 1


def settled_arrays(function: ir.Operation) -> dict[ir.Value, str]:
    """The arrays that no launch still writes, each with its name."""
    entry = function.regions[0].blocks[0]
    written = function.attributes.get("arg_attrs", ())
    found = {}
    for number, attributes in enumerate(written):
        given = {entry.name: entry.attr for entry in attributes}
        if demands.SETTLED.attribute in given and given[demands.SETTLED.attribute].value:
            name = given.get("tile.name")
            found[entry.arguments[number]] = f"arg{number}" if name is None else name.value
    return found
