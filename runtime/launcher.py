"""Calling a kernel: binds arguments, finds the specialisation, checks it, launches.

One `Launcher` stands for one kernel as its author wrote it. It serves artefacts and the
just-in-time compiler alike; they differ in `resolve`, which gives the compiled kernel for a set of
arguments.
What a call runs is a function generated for the kinds of arrays seen last (see
`tilec.runtime.cuda.fast_call`): it launches what was launched before, and leaves the rest to us.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tilec.executable.grid import Grid, GridRule, check_grid, compile_grid
from tilec.executable.kernel import LISTS, CompiledKernel, Parameter
from tilec.executable.thread_lock import ThreadLock
from tilec.messages.tracebacks import returned_mistake
from tilec.runtime.array_list import ArrayList, describe_list
from tilec.runtime.arrays import CUDA, UNKNOWN_DEVICE, ArrayView, describe
from tilec.runtime.cuda.context import device_of_pointer
from tilec.runtime.cuda.fast_call import FastCall, build_fast_call, build_slow_call
from tilec.runtime.cuda.plan import GridOfScalars, Plan
from tilec.runtime.cuda.reader import Reader, readers_of
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import check
from tilec.runtime.launch_argument import (
    LaunchArgument,
    bind,
    check_arguments,
    with_defaults,
)
from tilec.runtime.outside import Outside
from tilec.runtime.scalars import check_scalar
from tilec.runtime.streams import DEFAULT_STREAM, current_stream_of, stream_number
from tilec.runtime.traced_calls import traceable
from tilec.runtime.traced_values import any_traced, new_number

Resolve = Callable[..., CompiledKernel]
"""(device, {name: ArrayView, scalar or constant}, [grid]) -> the kernel to launch. It is asked a
second time, with the grid, where that of the first answer is larger than its indices reach.

It may raise ArgumentError or CompileError. Called with a lock held, and only for arguments whose
shapes, strides, dtypes, alignment or constants are new to the calling thread.
"""


class Prepared(NamedTuple):
    """A launch but for its addresses: `parameters` has an ArrayView or a number for each."""

    kernel: CompiledKernel
    parameters: tuple[Any, ...]
    grid: Grid


@traceable
class Launcher:
    """Launches one kernel on whatever arrays it is called with. Safe to use from several threads.

    Calling it launches; `grid=` overrides the grid rule, `stream=` the caller's current stream.

    `arguments` in the author's order; the resolved kernels' parameters are those that are not
    constants, in the same order. `device`: where to run; None for where the arrays are.
    `outside`: values that the kernels were compiled from, which launches compare. `run`: what a
    call is, where torch does not trace it; `number`: see `traced_calls`.
    """

    if TYPE_CHECKING:

        def __call__(self, *arguments: Any, **named: Any) -> None: ...

    else:
        # A slot: a call runs the function in it, which no method hands on to.
        __slots__ = ("__dict__", "__weakref__", "run")

    def __init__(
        self,
        name: str,
        arguments: Sequence[LaunchArgument],
        resolve: Resolve,
        device: Any = None,
    ) -> None:
        check_arguments(arguments)
        self.name = name
        self.arguments = tuple(arguments)
        self.device = device
        self.run = build_slow_call(name, self.arguments, self._launch)
        self.number = new_number(self)
        self._resolve = resolve
        self._alone = ThreadLock(threading.RLock)
        self._fast: dict[tuple[Reader, ...], FastCall] = {}
        self._last: FastCall | None = None
        self.outside: tuple[Outside, ...] = ()
        self._rules: dict[int, tuple[CompiledKernel, GridRule | None]] = {}

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """`launcher[grid](...)`: a call with that grid, a number or a tuple of up to three."""
        return functools.partial(self, grid=grid)

    def known_plan(self, *arguments: Any, **named: Any) -> Plan | None:
        """The plan that this thread's last launch used, which had these arguments; None where none
        is kept: for host arrays, and for those that are described anew at every call."""
        try:
            return None if self._last is None else self._last.plan(*arguments, **named)
        except AttributeError:  # meanwhile another thread has launched on other kinds of arrays
            return None

    def forget(self) -> None:
        """Takes the next call the whole way: what kernels are compiled from has changed."""
        self._fast = {}
        self._last = None
        self.run = build_slow_call(self.name, self.arguments, self._launch)

    def traced_arguments(
        self, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The arguments that a call gives, by name, where torch traces it."""
        return bind(self.name, self.arguments, arguments, named)

    def taken_apart(self, values: Mapping[str, Any]) -> tuple[Launcher, dict[str, Any]]:
        """What launches arguments like these, and its own arguments by name, defaults among
        them."""
        return self, with_defaults(self.arguments, values)

    def written(self, bound: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the arrays that a call of described arguments may change."""
        arrays = [(name, value) for name, value in bound.items() if isinstance(value, ArrayView)]
        device = device_of(arrays, self.device)
        with self._alone.lock:
            return self._resolve(device, bound).written()

    @returned_mistake
    def _launch(self, values: tuple[Any, ...], grid: Any, stream: Any) -> None:
        """The whole way, for what the generated function has not seen: one value an argument."""
        if any_traced(values):
            # Needs torch, which is optional, and is imported where a tensor of its is traced.
            from tilec.runtime.torch_operator import record

            record(self, values, {"grid": grid, "stream": stream})
        else:
            self._launch_memory(values, grid, stream)

    def _launch_memory(self, values: tuple[Any, ...], grid: Any, stream: Any) -> None:
        """The same for arrays that have memory."""
        number = common_stream(values) if stream is None else stream_number(stream)
        bound = self._bind(values, number)
        arrays = {name: value for name, value in bound.items() if isinstance(value, ArrayView)}
        device = device_of(list(arrays.items()), self.device)
        with self._alone.lock:
            kernel = self._resolve(device, bound)
            rule = self._rule(kernel)
        parameters = [_parameter_value(parameter, bound) for parameter in kernel.parameters]
        fixed, of_scalars = _grid_parts(kernel, rule, parameters)
        given = None if grid is None else check_grid(grid)
        if given is None:
            given = fixed if of_scalars is None else of_scalars(_scalars(parameters))
        with self._alone.lock:
            if kernel.counts(given) > kernel.most_programs:
                kernel = self._resolve(device, bound, given)
            loaded = device.load(kernel)
        check(kernel, arrays)
        if device.kind != CUDA:
            device.launch(loaded, parameters, given)
            return
        parameters = device.with_tables(kernel, parameters, number)
        plan = device.plan(loaded, parameters, fixed, of_scalars)
        if not kernel.persistent or of_scalars is not None or given == fixed:
            self._remember(
                values, parameters, plan
            )  # that of a persistent kernel holds the fixed grid
        device.start(plan, parameters, given, number)

    def prepared(self, device: Any, bound: Mapping[str, Any], grid: Grid | None) -> Prepared:
        """What a call of described arguments would launch on `device`, checked as at a call;
        nothing is loaded. ArgumentError where the arguments do not fit, or there is no grid."""
        with self._alone.lock:
            kernel = self._resolve(device, bound)
            rule = self._rule(kernel)
            parameters = tuple(_parameter_value(p, bound) for p in kernel.parameters)
            fixed, of_scalars = _grid_parts(kernel, rule, parameters)
            if grid is None:
                grid = fixed if of_scalars is None else of_scalars(_scalars(parameters))
            if kernel.counts(grid) > kernel.most_programs:
                kernel = self._resolve(device, bound, grid)
        check(kernel, {n: value for n, value in bound.items() if isinstance(value, ArrayView)})
        return Prepared(kernel, parameters, grid)

    def _bind(self, values: Sequence[Any], stream: int) -> dict[str, Any]:
        """Name -> ArrayView for arrays, the value itself for the rest."""
        bound: dict[str, Any] = {}
        for argument, value in zip(self.arguments, values, strict=True):
            bound[argument.name] = value
            if argument.kind == "array":
                bound[argument.name] = located(describe(value, argument.name, stream))
            elif argument.kind in LISTS:
                bound[argument.name] = listed_as(argument.kind, value, argument.name, stream)
            elif argument.kind == "const":
                _check_constant(argument.name, value)
        return bound

    def _rule(self, kernel: CompiledKernel) -> GridRule | None:
        """The compiled grid rule of a kernel. ValueError if its parameters are not ours."""
        known = self._rules.get(id(kernel))
        if known is None:
            expected = [a.name for a in self.arguments if a.kind != "const"]
            found = [parameter.name for parameter in kernel.parameters]
            if found != expected:
                raise ValueError(
                    f"kernel {kernel.name}: expected parameters {expected}, found {found}"
                )
            rule = None if kernel.grid is None else compile_grid(kernel.grid, kernel.parameters)
            known = self._rules[id(kernel)] = (kernel, rule)
        return known[1]

    def _remember(self, values: Sequence[Any], parameters: Sequence[Any], plan: Plan) -> None:
        """Lets the generated function launch the next call like this one, where it can.
        `parameters`: what the arguments that are no constants were launched as."""
        kinds = ("array", *LISTS)
        arrays = [v for v, a in zip(values, self.arguments, strict=True) if a.kind in kinds]
        readers = readers_of(arrays)
        if readers is None:
            return
        fast = self._fast.get(readers)
        if fast is None:
            fast = build_fast_call(self.name, self.arguments, readers, self._launch, self.outside)
            self._fast[readers] = fast
        fast.remember(values, [p for p in parameters if isinstance(p, ArrayView)], plan)
        self._last = fast
        self.run = fast.call


def listed_as(kind: str, value: Any, name: str, stream: int | None = None) -> ArrayList:
    """The argument `value` of a kind of lists, with the device of its arrays."""
    found = describe_list(value, name, stream, flat=kind == "flat_arrays")
    if found.device != (CUDA, UNKNOWN_DEVICE):
        return found
    return replace(found, device=(CUDA, device_of_pointer(found.members[0].pointer)))


def common_stream(values: Sequence[Any]) -> int:
    """The stream all arguments' frameworks work on now. ArgumentError if they do not agree."""
    # The arrays of a list are of one framework, on one device.
    first = [_first_of(value) for value in values]
    streams = {stream for value in first if (stream := current_stream_of(value)) is not None}
    if len(streams) > 1:
        raise ArgumentError(
            "stream: the arrays come from frameworks that work on different streams now; "
            "say which one to launch on with stream=..."
        )
    return streams.pop() if streams else DEFAULT_STREAM


def _first_of(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    return cast("Sequence[Any]", value)[0] if value else None


def located(array: ArrayView) -> ArrayView:
    """The array with its device, which the driver is asked for where the array does not tell."""
    if array.device != (CUDA, UNKNOWN_DEVICE):
        return array
    return replace(array, device=(CUDA, device_of_pointer(array.pointer)))


def _check_constant(name: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"argument {name!r}: expected a constant, found the mutable {type(value).__name__}"
        ) from None


def _parameter_value(parameter: Parameter, bound: Mapping[str, Any]) -> Any:
    value = bound[parameter.name]
    if parameter.has_memory:
        return value
    return check_scalar(parameter.name, parameter.dtype, value)


def _scalars(parameters: Sequence[Any]) -> list[Any]:
    return [value for value in parameters if not isinstance(value, ArrayView)]


def _grid_parts(
    kernel: CompiledKernel, rule: GridRule | None, parameters: Sequence[Any]
) -> tuple[Grid, GridOfScalars | None]:
    """The grid of a call: fixed for these shapes, or else a function of the scalars, which outlives
    the call and keeps none of its arrays."""
    shapes = [shape_of(value) if isinstance(value, ArrayView) else None for value in parameters]
    if rule is not None and not rule.scalars:
        return rule(_rule_values(shapes, _scalars(parameters))), None

    def grid_of_scalars(scalars: Sequence[Any]) -> Grid:
        if rule is None:
            raise ArgumentError(
                f"{kernel.name} has no grid rule: give the grid, as in {kernel.name}[grid](...)"
            )
        return rule(_rule_values(shapes, scalars))

    return (0, 0, 0), grid_of_scalars


def _rule_values(shapes: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
    """What a grid rule reads: the shape of each array, how many arrays and elements each list has,
    the value of each scalar."""
    left = iter(scalars)
    return [next(left) if shape is None else shape for shape in shapes]


def shape_of(argument: ArrayView) -> tuple[int, ...]:
    """What rules read of an array, or of a list."""
    return argument.counts if isinstance(argument, ArrayList) else argument.shape
