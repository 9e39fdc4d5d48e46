"""The fast path of a call: a Python function generated for one kernel and one kind of arrays.

A launch should cost little more than the driver's own call, and most of what it needs was computed
at the last launch with the same shapes. So the function reads of each array only what decides
(dtype, shape, strides, device, alignment), looks the launch plan up under that key, packs pointers
and scalars, and calls the driver; `_CALL` below is its text. Whatever it does not expect (a new
shape, another kind of array, a scalar that does not pack) goes to `launch`, the whole way, which
decides anew and has the error messages.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from tilec.executable.grid import Grid, check_grid
from tilec.executable.kernel import LISTS
from tilec.messages.tracebacks import returned_mistake, without_source
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.context import current_device
from tilec.runtime.cuda.driver import device_count
from tilec.runtime.cuda.known_lists import KnownLists
from tilec.runtime.cuda.list_tables import PlacedList, use_tables
from tilec.runtime.cuda.plan import Plan, place_programs, run_in_context
from tilec.runtime.cuda.reader import Reader
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launch_argument import REQUIRED, RESERVED, LaunchArgument
from tilec.runtime.outside import Outside, expression
from tilec.runtime.streams import current_stream_in, stream_number
from tilec.terms.demands import demand_help

MAX_PLANS = 4096
"""Plans kept per thread; a program with ever new shapes starts over rather than growing."""

Launch = Callable[[tuple[Any, ...], Any, Any], list[Exception] | None]
"""The whole way: arguments, grid, stream. Gives the author's mistake, which the function raises."""

_SLOW_CALL = """\
def _tilec_call({signature}):
    {whole_way}
"""

_WHOLE_WAY = """\
__tracebackhide__ = True  # a frame without a source, which IPython and pytest leave out
_tilec_wrong = (_tilec_refuse_keyword(_tilec_unknown) if _tilec_unknown else
                _tilec_whole_way({values}, grid, stream))
if _tilec_wrong:
    raise _tilec_wrong.pop() from None
return
"""

_CALL = """\
def _tilec_call({signature}):
    try:
        {read}
        (_tilec_launch, _tilec_grid, _tilec_block, _tilec_pack, _tilec_index,
         _tilec_grid_of_scalars, _tilec_plan) = _tilec_local.plans[{key}]
        _tilec_pack(_tilec_block, 0, {changing})
        {watch}
        {refuse}
        {use}
    except Exception:
        _tilec_plan = None
    if _tilec_plan is None or _tilec_unknown:
        {whole_way}
    if grid is not None or _tilec_grid_of_scalars is not None:
        try:
            _tilec_grid = (_tilec_grid_of_scalars({scalars}) if grid is None
                           else _tilec_check_grid(grid))
            if 0 in _tilec_grid:
                return
            _tilec_grid = _tilec_place_programs(_tilec_plan, _tilec_grid)
        except Exception:
            _tilec_grid = None
        if _tilec_grid is None:
            {whole_way_too}
    stream = {stream} if stream is None else _tilec_stream_number(stream)
    if (_tilec_launch.stream != stream or
            _tilec_launch.grid is not _tilec_grid and _tilec_launch.grid != _tilec_grid):
        _tilec_launch.place(_tilec_grid, stream)
    if {elsewhere}_tilec_launch.run()[0]:
        _tilec_run_in_context(_tilec_plan, _tilec_grid, stream)

def _tilec_key({signature}):
    {read}
    return {key}
"""


@dataclass(frozen=True)
class FastCall:
    """`call`: the generated function. `key`: what it looks plans up under, from the arguments.
    `lists`: of each list, its position among the arguments and among arrays."""

    call: Callable[..., None]
    key: Callable[..., Any]
    local: threading.local
    lists: tuple[tuple[int, int], ...] = ()

    def remember(self, values: Sequence[Any], arrays: Sequence[ArrayView], plan: Plan) -> None:
        """Makes later calls of this thread with arguments like `values` use `plan`. `arrays`: what
        arrays and lists among them were launched as, in order."""
        for position, number in self.lists:
            known = self.local.__dict__.setdefault(f"list{position}", KnownLists())
            placed = arrays[number]
            assert isinstance(placed, PlacedList)
            known.remember(values[position], placed)
        plans = self.local.__dict__.setdefault("plans", {})
        if len(plans) >= MAX_PLANS:
            plans.clear()
        plans[self.key(*values)] = _unpacked(plan)

    def plan(self, *arguments: Any, **named: Any) -> Plan | None:
        """What a call of this thread with these arguments would use; None if it knows none."""
        known = self.local.__dict__.get("plans", {}).get(self.key(*arguments, **named))
        return None if known is None else known[-1]


def _unpacked(plan: Plan) -> tuple[Any, ...]:
    """The parts that the function needs, and the plan, as a bare tuple: Python takes that apart
    several times sooner than a named one.

    An empty grid counts as one that depends on scalars, so that only these are looked at for zeros.
    """

    def empty(scalars: Sequence[Any]) -> Grid:
        return plan.grid

    of_scalars = plan.grid_of_scalars
    if of_scalars is None and 0 in plan.grid:
        of_scalars = empty
    return (*plan[: len(plan) - 2], of_scalars, plan)


def build_slow_call(
    name: str, arguments: Sequence[LaunchArgument], launch: Launch
) -> Callable[..., None]:
    """A function with the kernel's signature that takes every call the whole way."""
    text = _SLOW_CALL.format(signature=_signature(arguments), whole_way=_whole_way(arguments, 4))
    return _compile(name, text, arguments, {"whole_way": launch})["_tilec_call"]


def build_fast_call(
    name: str,
    arguments: Sequence[LaunchArgument],
    readers: Sequence[Reader],
    launch: Launch,
    outside: Sequence[Outside] = (),
) -> FastCall:
    """The function for arrays that `readers`, one an array argument in order, read.

    `outside`: what the kernel was compiled from; calls go the whole way where it has changed.
    """
    kinds = ("array", *LISTS)
    arrays = _names(arguments, *kinds)
    lists = tuple(
        (position, arrays.index(argument.name))
        for position, argument in enumerate(arguments)
        if argument.kind in LISTS
    )
    found = [f"_tilec_l{n} = _tilec_local.list{p}({arrays[n]}, stream)" for p, n in lists]
    for _, number in lists:
        arrays[number] = f"_tilec_l{number}"
    pointers = [f"_tilec_p{number}" for number in range(len(arrays))]
    read = [
        f"{pointer} = {reader.pointer.format(array)}"
        for pointer, reader, array in zip(pointers, readers, arrays, strict=True)
    ]
    scalars = _names(arguments, "scalar", "typed")
    stream, elsewhere, names = _environment(readers)
    changed, watched = expression(outside)
    text = _CALL.format(
        signature=_signature(arguments),
        read="; ".join([*found, *read]) or "pass",
        key=_tuple([*_array_keys(arrays, readers, pointers), *_value_keys(arguments)]),
        watch=f"if {changed}: _tilec_plan = None" if outside else "",
        refuse=_refused(arrays, readers, pointers),
        use=_used([arrays[number] for _, number in lists], stream),
        changing=", ".join([*pointers, *scalars]),
        whole_way=_whole_way(arguments, 8),
        whole_way_too=_whole_way(arguments, 12),
        scalars=_tuple(scalars),
        stream=stream,
        elsewhere=elsewhere,
    )
    local = threading.local()
    made = _compile(name, text, arguments, names | watched | {"whole_way": launch, "local": local})
    return FastCall(made["_tilec_call"], made["_tilec_key"], local, lists)


def _whole_way(arguments: Sequence[LaunchArgument], indented: int) -> str:
    """Statements that take a call the whole way, as a block that is indented so far."""
    text = _WHOLE_WAY.format(values=_tuple(_names(arguments)))
    return text.rstrip().replace("\n", "\n" + " " * indented)


def _refused(arrays: Sequence[str], readers: Sequence[Reader], pointers: Sequence[str]) -> str:
    """A statement that sends arrays the whole way which that may refuse: tensors whose derivatives
    torch wants, and those without memory, which traces are made with."""
    recorded = [r.recorded.format(a) for a, r in zip(arrays, readers, strict=True) if r.recorded]
    if not recorded:
        return ""
    missing = f"not ({' and '.join(pointers)})"
    wrong = (
        f"{missing} or _tilec_forward_ad._current_level >= 0"
        f" or ({' or '.join(recorded)}) and _tilec_grad_enabled()"
    )
    return f"if {wrong}: _tilec_plan = None"


def _used(lists: Sequence[str], stream: str) -> str:
    """A statement that keeps the tables of lists for the launch."""
    if not lists:
        return ""
    number = f"{stream} if stream is None else _tilec_stream_number(stream)"
    return f"_tilec_use_tables({_tuple(lists)}, {number})"


def _array_keys(
    arrays: Sequence[str], readers: Sequence[Reader], pointers: Sequence[str]
) -> list[str]:
    keys = [reader.key.format(array) for array, reader in zip(arrays, readers, strict=True)]
    told = [reader.tells_alignment for reader in readers]
    pointers = [pointer for pointer, is_told in zip(pointers, told, strict=True) if not is_told]
    if not pointers:
        return keys
    # Almost always all are aligned, and the key is the one number 0.
    apart = _tuple(f"{pointer} & 15" for pointer in pointers)
    return [*keys, f"({' | '.join(pointers)}) & 15 and {apart}"]


def _value_keys(arguments: Sequence[LaunchArgument]) -> list[str]:
    keys = []
    for name in _names(arguments, "typed"):
        keys.append(f"{name}.__class__, -0x80000000 <= {name} <= 0x7fffffff")
    for name in _names(arguments, "const"):
        keys.append(f"{name}.__class__, {name}")  # 1, 1.0 and True are equal keys
    return keys


def _environment(readers: Sequence[Reader]) -> tuple[str, str, dict[str, Any]]:
    """Expressions for the current stream and for "not our GPU, or", and the names they use."""
    names: dict[str, Any] = {
        "check_grid": check_grid,
        "place_programs": place_programs,
        "run_in_context": run_in_context,
        "stream_number": stream_number,
        "use_tables": use_tables,
    }
    frameworks = sorted({reader.framework for reader in readers} - {""})
    stream = "0"
    if "torch" in frameworks:
        torch: Any = sys.modules["torch"]
        names["grad_enabled"] = torch.is_grad_enabled
        names["forward_ad"] = torch.autograd.forward_ad
    if frameworks:
        names["current_stream"] = current_stream_in(frameworks[0])
        stream = "_tilec_current_stream(_tilec_index)"
    if device_count() == 1:
        # The only context that may be missing shows as a failed launch, and is entered then.
        return stream, "", names
    c: Any = sys.modules["torch"]._C if frameworks == ["torch"] else None
    names["current_device"] = getattr(c, "_cuda_getDevice", current_device)
    return stream, "_tilec_current_device() != _tilec_index or ", names


def _signature(arguments: Sequence[LaunchArgument]) -> str:
    positional = [
        argument.name if argument.default is REQUIRED else f"{argument.name}=_tilec_default{number}"
        for number, argument in enumerate(arguments)
    ]
    return ", ".join([*positional, "*", "grid=None", "stream=None", "**_tilec_unknown"])


def _compile(
    name: str, text: str, arguments: Sequence[LaunchArgument], names: dict[str, Any]
) -> dict[str, Any]:
    """Runs `text`, which holds no foreign text but checked argument names; gives its functions."""
    namespace = {f"_tilec_{key}": value for key, value in names.items()}
    known = ", ".join([*_names(arguments), *RESERVED])
    namespace["_tilec_refuse_keyword"] = partial(_refuse_keyword, name, known)
    for number, argument in enumerate(arguments):
        namespace[f"_tilec_default{number}"] = argument.default
    exec(compile(text, f"<call of {name}>", "exec"), namespace)
    call = namespace["_tilec_call"]
    call.__name__ = call.__qualname__ = name
    without_source(call, name)
    return namespace


@returned_mistake
def _refuse_keyword(kernel: str, known: str, unknown: Iterable[str]) -> None:
    """ArgumentError for a keyword that a call does not take."""
    name = next(iter(unknown))
    text = f"{kernel}() got an unexpected keyword argument {name!r}; it takes {known}"
    raise ArgumentError("\n".join(filter(None, (text, demand_help(name)))))


def _names(arguments: Sequence[LaunchArgument], *kinds: str) -> list[str]:
    return [argument.name for argument in arguments if not kinds or argument.kind in kinds]


def _tuple(items: Iterable[str]) -> str:
    return "(" + "".join(f"{item}, " for item in items) + ")"
