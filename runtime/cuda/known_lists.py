"""Lists of torch's tensors as launches have seen them: found again by what decides, read at once.

Describing hundreds of arrays one by one would cost more than most launches take. So of each tensor
only its address is read here; that all else is as it was (class, dtype, device, sizes, strides,
whether it is a view with something pending, whether it requires a gradient) says one call of the
guards that torch compares the inputs of compiled graphs by. Where only addresses are new, as
gradients of a new step have, a table is made of those. Anything else is a KeyError, upon which the
call goes the whole way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import reduce
from operator import or_
from typing import Any

from tilec.records import dataclass
from tilec.runtime.cuda.context import context_of
from tilec.runtime.cuda.list_tables import PlacedList, moved
from tilec.runtime.streams import current_stream, stream_number

MOST_LISTS = 64
"""Lists kept for each form of an argument: what is launched on ever new ones starts over, rather
than grow."""
MOST_FORMS = 8
"""Forms kept for each argument: as many models as a program trains in turns. Not timed."""


@dataclass(eq=False)
class _Form:
    """What lists at different addresses have in common.

    `kind`: list or tuple. `check`: whether tensors, one an argument, are like those it was made of.
    `records`: whether some of them require a gradient. `placed`: the last one that went the whole
    way. `lists`: those that were launched, by their addresses.
    """

    kind: type
    count: int
    check: Callable[..., bool]
    records: bool
    placed: PlacedList
    lists: dict[tuple[int, ...], PlacedList] = field(default_factory=dict[Any, PlacedList])

    def fits(self, values: Any) -> bool:
        """Whether a list has this form."""
        alike = type(values) is self.kind and len(values) == self.count
        return alike and self.check(*values)


class KnownLists:
    """The lists that one argument of a kernel was, for one thread."""

    def __init__(self) -> None:
        self._forms: list[_Form] = []

    def remember(self, values: Any, placed: PlacedList) -> None:
        """Makes lists like these be found."""
        placed = replace(placed, members=())  # which keep the tensors' memory
        form = next((form for form in self._forms if form.fits(values)), None)
        if form is None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            form = _form_of(values, placed)
            self._forms.insert(0, form)
        form.placed = placed
        _keep(form, _addresses(values), placed)

    def __call__(self, values: Any, stream: Any) -> PlacedList:
        """The list, for a launch on a stream (None: torch's current one), whose table may have been
        freed (`use_tables`). KeyError if it is not known."""
        form = self._find(values)
        pointers = _addresses(values)
        found, known = form.lists.get(pointers), form.placed
        if found is not None and found.table.is_alive:
            return found
        index = known.device[1]
        number = current_stream("torch", index) if stream is None else stream_number(stream)
        if reduce(or_, pointers) % known.common.align:
            raise KeyError("pointers of another alignment")
        found = moved(context_of(index), known, pointers, number)
        _keep(form, pointers, found)
        return found

    def _find(self, values: Any) -> _Form:
        """The form of a list. KeyError for one that the whole way may refuse."""
        torch: Any = sys.modules["torch"]
        form = next((form for form in self._forms if form.fits(values)), None)
        if form is None or torch.autograd.forward_ad._current_level >= 0:
            raise KeyError("a list of a new form")
        if form.records and torch.is_grad_enabled():
            raise KeyError("tensors that require a gradient")
        return form


def _form_of(values: Sequence[Any], placed: PlacedList) -> _Form:
    torch: Any = sys.modules["torch"]
    sizes = [list(tensor.shape) for tensor in values]
    strides = [list(tensor.stride()) for tensor in values]
    # The guards keep no tensor alive.
    guards = torch._C._dynamo.guards.TensorGuards(
        *values, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
    )
    records = any(tensor.requires_grad for tensor in values)
    return _Form(type(values), len(values), guards.check, records, placed)


def _keep(form: _Form, pointers: tuple[int, ...], placed: PlacedList) -> None:
    if len(form.lists) >= MOST_LISTS:
        form.lists.clear()
    form.lists[pointers] = placed


def _addresses(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(sys.modules["torch"].Tensor.data_ptr, values))
