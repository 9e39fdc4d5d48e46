"""What authors may demand of a kernel and of its loops: a row each, which every layer reads.

The decorator, `kernel.demanding` and `@tilec.autotune` take the names, type checkers the types, the
command line an option each, IR an attribute each (`tilec/dialects/demands.py`), errors the words
for what is allowed, and tilec/language/README.md what is said here. A pass meets a demand, or
refuses it with the reason. This is a table for all sides: it imports nothing of theirs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypedDict, cast, get_type_hints

from tilec.messages.mistakes import mistake
from tilec.messages.names import did_you_mean
from tilec.records import dataclass


@dataclass(frozen=True)
class Demand:
    """A row: what may be demanded, and how it is spelt, checked and explained.

    `name`: the keyword. `takes`: the values in words, behind "must be". `allows`: whether a value,
    as IR has it, is one of them. `examples` and `text`: the row of tilec/language/README.md.
    `in_ir`: the value that IR has for an author's, another one where he may say it shorter.
    `default`: what means that nothing is demanded. `not_by_hand`: why a kernel that calls
    `tilec.language.gpu` cannot have it; None where it can.
    """

    name: str
    takes: str
    allows: Callable[[Any], bool]
    examples: tuple[str, ...]
    text: str
    in_ir: Callable[[Any], Any] = lambda value: value
    default: Any = None
    not_by_hand: str | None = None

    @property
    def attribute(self) -> str:
        """Its name in IR: of the kernel's function, of a parameter, or of an `scf.for`."""
        return f"tile.{self.name}"


def _number(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 1 <= value <= most


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_box(value: Any) -> bool:
    return isinstance(value, tuple) and 1 <= len(value) <= 3 and all(map(_number(16), value))


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


ORDERS = ("grouped", "rows", "hilbert")


def _is_order(value: Any) -> bool:
    name, group = value if isinstance(value, tuple) and len(value) == 2 else (value, 1)
    is_number = type(group) is int and group > 0
    return name in ORDERS and is_number and not (name == "hilbert" and group & (group - 1))


NUM_WARPS = Demand(
    "num_warps",
    "a number from 1 to 32",
    _number(32),
    ("num_warps=8",),
    "warps that share a program's tiles: a power of two, or 12 for three warpgroups (Hopper)",
)
PERSISTENT = Demand(
    "persistent",
    'True, False or "dynamic"',
    lambda value: _is_bool(value) or value == "dynamic",
    ("persistent=True",),
    'CTAs stay and share the programs; `False`: one each; `"dynamic"`: they ask for the next '
    "when they are done (Blackwell)",
)
CLUSTER = Demand(
    "cluster",
    "a number of programs, or one for each axis of the grid",
    _is_box,
    ("cluster=2", "(1, 2)"),
    "neighbours along the axes of the grid load together what they share. Also `tl.auto`'s choice "
    "where rows begin inside of lines of L2 (Hopper)",
    in_ir=_as_tuple,
)
CHOSEN_CLUSTER, CHOSEN_WARPS = "clusters of programs", "warps of a program"
"""Among the reasons for what `tl.auto` came to: the cluster is no demand, but chosen as well."""
CONSUMERS = Demand(
    "consumers",
    '"cooperative" or "pingpong"',
    lambda value: value in ("cooperative", "pingpong"),
    ('consumers="pingpong"',),
    "two sets of `num_warps` warps take a persistent CTA's programs in turn (Hopper); "
    '`"cooperative"`: one set does them all',
    not_by_hand="says itself which warps compute what",
)
ORDER = Demand(
    "order",
    '"grouped", "rows" or "hilbert", or that and the rows of a group or the side of a square, a '
    "power of two",
    _is_order,
    ('order="hilbert"', '("hilbert", 8)'),
    "the programs of a two-dimensional grid of dots along Hilbert's curve in squares of 16 (8) a "
    'side; `"grouped"`, `("grouped", 8)`: in groups of rows, as without a demand; `"rows"`',
    not_by_hand="says itself which program works on what: see gpu.tile_order",
)
SETTLED = Demand(
    "settled",
    "names of the kernel's arrays",
    lambda value: isinstance(value, tuple) and all(isinstance(name, str) for name in value),
    ('settled="b"', '("a", "b")'),
    "no demand but a promise: no launch that may still run when this one is made writes these "
    "arrays, weights say. A kernel with roles loads them while the launch before ends (Hopper)",
    in_ir=_as_tuple,
    not_by_hand="waits for earlier launches where its author says so",
)
PARTS = (1, 2, 4, 8, 16)
"""Of a program's sums: as many as a cluster has CTAs."""
MOST_PARTS = 256
"""Of a program's sums, where their CTAs meet in memory: every GPU's multiprocessors, or twice as
many; the last CTA reads so many sums."""
SUM_PARTS = Demand(
    "sum_parts",
    f"1, 2, 4, 8 or a multiple of 4 up to {MOST_PARTS}",
    lambda value: (
        type(value) is int and (value in PARTS or (value % 4 == 0 and 0 < value <= MOST_PARTS))
    ),
    ("sum_parts=4", "sum_parts=128"),
    "each program is run by so many CTAs: each runs a part of its loop over products, or of the "
    "only loop, which adds up tiles or keeps the least or greatest. Up to 16 are a cluster "
    "(Hopper), of which each merges a stripe of the whole, if the rest of the kernel comes in "
    "stripes; others leave what they have in memory of the launch's, and the last of them does the "
    "rest. Also `tl.auto`'s choice where few programs have a long loop",
    not_by_hand="says itself which CTA sums what",
)


class Demands(TypedDict, total=False):
    """What `@tilec.kernel(...)` and `kernel.demanding(...)` take, each with its row."""

    num_warps: Annotated[int | None, NUM_WARPS]
    persistent: Annotated[bool | Literal["dynamic"] | None, PERSISTENT]
    cluster: Annotated[int | tuple[int, ...] | None, CLUSTER]
    consumers: Annotated[Literal["pingpong", "cooperative"] | None, CONSUMERS]
    order: Annotated[Literal["grouped", "rows", "hilbert"] | tuple[str, int] | None, ORDER]
    settled: Annotated[str | tuple[str, ...] | None, SETTLED]
    sum_parts: Annotated[int | None, SUM_PARTS]


KERNEL_DEMANDS: Mapping[str, Demand] = {
    name: kind.__metadata__[0]
    for name, kind in get_type_hints(Demands, include_extras=True).items()
}
"""What may be demanded of a kernel, by name."""

NO_DEMANDS = cast(Demands, {row.name: row.default for row in KERNEL_DEMANDS.values()})
"""Of a kernel whose author leaves all to the compiler."""

OF_ARRAYS = (SETTLED,)
"""Those whose value names arrays: in IR each of these parameters has the attribute, true."""

STAGES = Demand(
    "stages",
    "a constant from 1 to 64",
    _number(64),
    ("stages=4",),
    "the loop's tiles wait in rings of four slots in shared memory",
    not_by_hand="writes its rings itself",
)
WARP_SPECIALIZE = Demand(
    "warp_specialize",
    "True or False",
    _is_bool,
    ("warp_specialize=True",),
    "warps of their own keep the rings full, the others compute; `False`: none do",
    not_by_hand="says itself which warps do what: see gpu.role",
)
ANY_ORDER = Demand(
    "any_order",
    "True or False",
    _is_bool,
    ("any_order=True",),
    "no demand but a permission: iterations may run in any order; sums may then differ by "
    "rounding, from program to program, not from call to call. Where CTAs stay for several "
    "programs, every second one runs the loop from its end",
    default=False,
)
LOOP_DEMANDS: Mapping[str, Demand] = {
    demand.name: demand for demand in (STAGES, WARP_SPECIALIZE, ANY_ORDER)
}
"""What may be demanded of a loop, by name: keywords of `tl.range`."""


def demand_help(name: str) -> str | None:
    """Says where a demand of that name is made, for who gives it to a call; None if there is
    none."""
    if name in KERNEL_DEMANDS:
        return f"help: a demand of the kernel: @tilec.kernel({name}=...), or .demanding({name}=...)"
    return _loop_help(name)


def _loop_help(name: str) -> str | None:
    # Triton's num_stages, too.
    of_loop = LOOP_DEMANDS.get(name) or LOOP_DEMANDS.get(name.removeprefix("num_"))
    return None if of_loop is None else f"help: of a loop: tl.range(..., {of_loop.examples[0]})"


def check_names(names: Iterable[str]) -> None:
    """Raises ValueError for a name that no demand of a kernel has."""
    for name in names:
        if name in KERNEL_DEMANDS:
            continue
        of_loop = _loop_help(name)
        notes = did_you_mean(name, KERNEL_DEMANDS) if of_loop is None else (of_loop,)
        text = f"unknown demand {name!r}; a kernel takes {', '.join(KERNEL_DEMANDS)}"
        raise mistake(ValueError("\n".join([text, *notes])))


def explained() -> str:
    """Explains what may be demanded of a kernel, for `help(tilec.kernel)`."""
    rows = (f"{', '.join(row.examples)}: {row.text}." for row in KERNEL_DEMANDS.values())
    return "\n".join(textwrap.fill(row, 80, subsequent_indent="    ") for row in rows)
