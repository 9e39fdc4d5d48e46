"""What launches a kernel that tilec compiles, called as Triton's own launchers are.

Triton gives all parameters of the Python function in order; the kernel in Triton's IR has those
that were not specialised away, with tuples laid out flat.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilec.messages.diagnostics import CompileError, DoesNotFit, InternalError
from tilec.runtime.errors import ArgumentError
from tilec.triton.kernel import TritonKernel
from tilec.triton.takeover.calls import Launched, note
from tilec.triton.takeover.wish import TRITON, FallbackWarning, Wish, wished

CONSTANT = "constexpr"
"""Triton's type of an argument that the kernel does not have any more."""


class Launcher:
    """One compiled kernel's launches. `src`: Triton's source object, with the `signature`;
    `metadata`: what Triton knows of the kernel, its options among it."""

    def __init__(self, src: Any, metadata: Any, wish: Wish) -> None:
        self._src, self._metadata, self._wish = src, metadata, wish
        self._types = tuple(src.signature.values())
        self._parameters: tuple[int, ...] | None = None
        if not any(map(_takes_more, self._types)):
            self._parameters = tuple(n for n, t in enumerate(self._types) if t != CONSTANT)
        self._theirs: Any = None

    def __call__(
        self, x: int, y: int, z: int, stream: int, function: TritonKernel, packed: Any,
        metadata: Any, enter: Any, leave: Any, *arguments: Any,
    ) -> None:  # fmt: skip
        """Launches `function`, which is what `load_binary` gave, between the hooks."""
        if enter is not None:
            enter(metadata)
        if self._theirs is None:
            self._launch(function, (x, y, z), stream, arguments)
        if self._theirs is not None:
            theirs = self._theirs
            given = (theirs.function, theirs.packed_metadata, metadata, None, None)
            theirs.run(x, y, z, stream, *given, *arguments)
        if leave is not None:
            leave(metadata)

    def _launch(
        self, function: TritonKernel, grid: tuple[int, int, int], stream: int,
        arguments: Sequence[Any],
    ) -> None:  # fmt: skip
        """Launches by tilec, or says why not, and has Triton compile the kernel where it may."""
        try:
            known = function.launch(list(flat(self._types, arguments)), grid, stream)
        except (CompileError, InternalError, ArgumentError) as error:
            if self._wish.otherwise != TRITON:
                if isinstance(error, DoesNotFit):
                    raise _out_of_resources()(error) from None
                raise
            text = f"Triton compiles {function.name}: {error}"
            warnings.warn(text, FallbackWarning, stacklevel=2)
            with wished(None):
                compiler = importlib.import_module("triton.compiler")
                options = {name: _frozen(v) for name, v in self._metadata._asdict().items()}
                self._theirs = compiler.compile(self._src, self._metadata.target, options)
        else:
            if known is not None and self._parameters is not None:
                note(Launched(known, self._parameters))


def _frozen(value: Any) -> Any:
    """An option as Triton's compiler was given it, which keeps tuples as lists."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@functools.cache
def _out_of_resources() -> Any:
    """A class of errors that autotuning takes for a configuration which does not fit."""
    theirs = importlib.import_module("triton.runtime.errors").OutOfResources

    class OutOfResources(theirs):
        """tilec's error, by its words."""

        def __init__(self, error: DoesNotFit) -> None:
            Exception.__init__(self, str(error))
            self.message = str(error)

        def __str__(self) -> str:
            return self.message

        def __reduce__(self) -> Any:
            return Exception, (self.message,)

    return OutOfResources


def flat(types: Sequence[Any], arguments: Sequence[Any]) -> Iterator[Any]:
    """The arguments of Triton's IR among those of the Python function."""
    for kind, value in zip(types, arguments, strict=True):
        if isinstance(kind, (tuple, list)):
            yield from flat(kind, value)
        elif kind != CONSTANT:
            yield _plain(kind, value)


def _plain(kind: str, value: Any) -> Any:
    """An argument as tilec takes it: Triton reads a tensor as another dtype (`reinterpret`), and
    passes unsigned integers by their bits."""
    if kind in _SIGNS:
        return value - 2 * _SIGNS[kind] if value >= _SIGNS[kind] else value
    if hasattr(value, "data_ptr") and hasattr(value, "base"):
        return value.base
    return value


def _takes_more(kind: Any) -> bool:
    """Whether an argument is several of the kernel's, or another than what was passed."""
    return isinstance(kind, (tuple, list)) or kind in _SIGNS or kind.startswith("tensordesc")


_SIGNS: Mapping[str, int] = {f"u{bits}": 1 << (bits - 1) for bits in (8, 16, 32, 64)}
