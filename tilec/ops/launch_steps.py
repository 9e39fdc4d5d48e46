"""What a product comes to: launches, one behind the other, and arrays of its own that they use.

A call that is made again makes the same launches with other addresses (`known_calls.py`), so each
array of a launch says where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tilec.call.jit import Kernel
from tilec.ops.new_arrays import array_maker
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.plan import Plan as LaunchPlan
from tilec.terms.dtypes import DType

FACTOR = "factor"


@dataclass(frozen=True)
class Step:
    """One launch. `arguments`: each with its source: the name of the caller's array or of an array
    in `OwnArrays` whose address it has, `FACTOR`, or "" for a number that is always the same, and
    for None. `names`: the parameters that they are, in the kernel's order; none: the first ones."""

    kernel: Kernel[...]
    arguments: Sequence[tuple[str, Any]]
    constants: Mapping[str, Any]
    names: Sequence[str] = ()

    @property
    def values(self) -> list[Any]:
        """Lists the arguments without their sources."""
        return [value for _, value in self.arguments]

    def launch(self, stream: int | None) -> None:
        """Launches the step. `stream`: None where the launcher finds it by itself."""
        given = () if self.names else self.values
        self.kernel(*given, **self.named, stream=stream)

    @property
    def named(self) -> dict[str, Any]:
        """The arguments that are given by name."""
        return {**dict(zip(self.names, self.values, strict=False)), **self.constants}

    @property
    def plan(self) -> LaunchPlan | None:
        """What launches the same again, once it was launched; None where each launch needs more:
        on the emulator, and of arrays that are described anew at every call."""
        return self.kernel.known_plan(*(() if self.names else self.values), **self.named)


@dataclass
class OwnArrays:
    """Arrays of a product's own, by name, in the order in which they are made.

    `like`, `view`: an argument of the caller's, beside which they are made, and its description.
    `makers`: makes the array of a call whose launches go to a stream; keeps no array of a caller's
    alive. `values`: those of the first call.
    """

    like: Any
    view: ArrayView
    makers: dict[str, Callable[[int], Any]] = field(default_factory=dict[str, Callable[[int], Any]])
    values: dict[str, Any] = field(default_factory=dict[str, Any])

    def new(self, name: str, shape: Sequence[int], dtype: DType) -> Any:
        """An uninitialised row-major array, another one for each call."""
        make = array_maker(self.like, self.view, shape, dtype)
        return self.add(name, lambda _: make(), 0)

    def add(self, name: str, make: Callable[[int], Any], stream: int) -> Any:
        """Makes an array for launches on a stream, and keeps its maker for later calls."""
        self.values[name] = make(stream)
        self.makers[name] = make
        return self.values[name]


@dataclass(frozen=True)
class Made:
    """A call that was made. `names`: its arrays, in the order in which they are looked at;
    `values`, `views`: those that are there. `steps`, `own`: its launches, and their arrays.
    `shape`, `dtype`: of the result, the array that `out` names. `written`: what it changes;
    `may_update`: whether its residual may be the result."""

    names: Sequence[str]
    values: Mapping[str, Any]
    views: Mapping[str, ArrayView]
    steps: Sequence[Step]
    own: OwnArrays
    shape: Sequence[int]
    dtype: DType
    written: Sequence[str] = ("out",)
    may_update: bool = False
    out: str = "out"
