"""Launches like one before: what a GPU launch does again when only pointers and streams are new.

Which kernel runs, and how its arrays lie from the pointers on, follows from numbers, grid, and of
each tensor its shape, its place in its storage and its address within 16 bytes; of tensors in one
storage, how far they are apart. Where all of that has been seen, a launch packs pointers and
starts.
Known are tensors of torch; other arrays are described anew at each launch.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilec.executable.kernel import Grid
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.plan import Plan, start_plan

MOST_KNOWN = 1024
"""Launches that are remembered, of all kernels' numbers and shapes that a process has seen; then
they are forgotten at once."""


@dataclass(frozen=True)
class Known:
    """A launch: `plan`, this thread's; of each array the number of its pointer and how many bytes
    behind it it begins; the `numbers` as the kernel takes them."""

    plan: Plan
    grid: Grid
    arrays: tuple[tuple[int, int], ...]
    numbers: tuple[Any, ...]

    def start(self, starts: Sequence[int], stream: int) -> None:
        """Launches with other pointers."""
        pointers = [starts[number] + bytes_ for number, bytes_ in self.arrays]
        self.plan.pack(self.plan.block, 0, *pointers, *self.numbers)
        start_plan(self.plan, self.grid, stream)


class KnownLaunches:
    """The launches of one kernel. `pointers`: the numbers of the arguments that are pointers."""

    def __init__(self, pointers: Sequence[int]) -> None:
        self._pointers = frozenset(pointers)
        self._known: dict[Any, Known] = {}

    def find(self, arguments: Sequence[Any], grid: Grid) -> tuple[Any, list[int], Known | None]:
        """A key, the pointers' addresses, and what is known; no key for what is not torch's."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None, [], None
        parts: list[Any] = [threading.get_ident(), grid]
        starts, storages = [], []
        for number, value in enumerate(arguments):
            if number not in self._pointers:
                parts += type(value), value
                continue
            if type(value) is not torch.Tensor or not value.is_cuda or not _is_plain(value):
                return None, [], None
            start, storage = value.data_ptr(), value.untyped_storage()
            whole = storage.data_ptr()
            parts += (
                value.shape,
                value.stride(),
                value.dtype,
                value.get_device(),
                start % VECTOR_BYTES,
                start - whole,
                storage.nbytes(),
            )
            starts.append(start)
            storages.append(whole)
        if len(set(storages)) < len(storages):
            parts += (storage - storages[0] for storage in storages)
        key = tuple(parts)
        return key, starts, self._known.get(key)

    def remember(
        self, key: Any, plan: Plan, grid: Grid, values: Sequence[Any], starts: Sequence[int],
        roots: Sequence[int],
    ) -> None:  # fmt: skip
        """Keeps a launch. `values`: what the kernel was given; `roots`: of each array the number of
        its pointer."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        arrays = [value for value in values if isinstance(value, ArrayView)]
        numbers = [value for value in values if not isinstance(value, ArrayView)]
        self._known[key] = Known(
            plan,
            grid,
            tuple((r, v.pointer - starts[r]) for r, v in zip(roots, arrays, strict=True)),
            tuple(numbers),
        )


def _is_plain(tensor: Any) -> bool:
    """Whether nothing about a tensor needs a look: gradients, pending negations, sparse layouts."""
    return not (tensor.requires_grad or tensor.is_neg() or tensor.is_sparse)
