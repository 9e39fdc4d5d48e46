"""Lists of torch's tensors as launches have seen them: found again by what decides, read at once.

Describing hundreds of arrays one by one would cost more than most launches take. So of each tensor
only that is read by which a list differs from one that was launched: first its address, then what
says its form. Where only addresses are new, as gradients of a new step have, a table is made of
those. Anything else is a KeyError, upon which the call goes the whole way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import attrgetter, or_
from typing import Any

from tilec.runtime.cuda.context import context_of
from tilec.runtime.cuda.list_tables import PlacedList, moved, tables_of
from tilec.runtime.streams import current_stream, stream_number

_DTYPE, _REQUIRES_GRAD = attrgetter("dtype"), attrgetter("requires_grad")

MOST_LISTS = 64
"""Lists kept for each argument: what is launched on ever new ones starts over, rather than grow."""


class KnownLists:
    """The lists that one argument of a kernel was, for one thread. `flat`: see `describe_list`."""

    def __init__(self, *, flat: bool) -> None:
        self._flat = flat
        self._lists: dict[Any, PlacedList] = {}
        self._forms: dict[Any, PlacedList] = {}

    def remember(self, values: Any, placed: PlacedList) -> None:
        """Makes lists like these be found."""
        if len(self._lists) >= MOST_LISTS:
            self._lists.clear()
            self._forms.clear()
        form, pointers = self._read(values)
        placed = replace(placed, members=())  # which keep the tensors' memory
        self._lists[form, pointers] = self._forms[form] = placed

    def __call__(self, values: Any, stream: Any) -> PlacedList:
        """The list, for a launch on a stream (None: torch's current one). KeyError if it is not
        known."""
        form, pointers = self._read(values)
        found = self._lists.get((form, pointers))
        known = self._forms[form] if found is None else found
        index = known.device[1]
        number = current_stream("torch", index) if stream is None else stream_number(stream)
        if found is not None and tables_of(context_of(index)).use(found.table, number):
            return found
        if reduce(or_, pointers) % known.common.align:
            raise KeyError("pointers of another alignment")
        if len(self._lists) >= MOST_LISTS:
            self._lists.clear()
        found = self._lists[form, pointers] = moved(context_of(index), known, pointers, number)
        return found

    def _read(self, values: Any) -> tuple[Any, tuple[int, ...]]:
        """What decides of a list but its addresses, and these. KeyError for a list that the whole
        way may refuse."""
        torch: Any = sys.modules["torch"]
        if torch.autograd.forward_ad._current_level >= 0 or not _are_plain(values, torch):
            raise KeyError("a list that may be refused")
        form = (
            type(values),
            tuple(map(_DTYPE, values)),
            tuple(map(torch.Tensor.get_device, values)),
            _extents(values, self._flat, torch.Tensor),
        )
        return form, tuple(map(torch.Tensor.data_ptr, values))


def _are_plain(values: Sequence[Any], torch: Any) -> bool:
    """Whether these are tensors with memory, which nothing is pending for, and whose derivatives
    torch does not want."""
    tensor = torch.Tensor
    if not all(issubclass(kind, tensor) for kind in set(map(type, values))):
        return False
    if True in map(tensor.is_neg, values):
        return False
    return not (torch.is_grad_enabled() and True in map(_REQUIRES_GRAD, values))


def _extents(values: Sequence[Any], flat: bool, tensor: Any) -> Any:
    """The sizes and strides of all tensors as far as they matter. KeyError for flat ones with
    gaps."""
    if flat:
        if not all(map(tensor.is_contiguous, values)):
            raise KeyError("an array with gaps")
        return tuple(map(tensor.numel, values))
    return tuple([(t.shape, t.stride()) for t in values])
