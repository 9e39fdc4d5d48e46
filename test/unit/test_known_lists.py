"""Lists of torch's own tensors: what makes a list another one than was launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilec.runtime.array_list import describe_list
from tilec.runtime.cuda.known_lists import KnownLists
from tilec.runtime.cuda.list_tables import PlacedList

torch: Any = pytest.importorskip("torch")


def tensors() -> list[Any]:
    """Of one dtype and several shapes, one a parameter."""
    made = [torch.rand(n) for n in (7, 1)] + [torch.rand(4, 4)]
    return [*made, torch.nn.Parameter(torch.rand(5))]


def known(values: list[Any]) -> KnownLists:
    """What knows this list: with no GPU, without its table."""
    lists = KnownLists()
    with torch.no_grad():
        found = describe_list(values, "xs", flat=True)
    told = ("shape", "strides", "dtype", "device", "framework", "common", "elements", "members")
    lists.remember(values, PlacedList(0, **{name: getattr(found, name) for name in told}))
    return lists


def viewed(values: list[Any]) -> None:
    values[3].data = values[3].data.view(5, 1)


CHANGES: dict[str, Callable[[list[Any]], Any]] = {
    "dtype": lambda xs: xs.__setitem__(0, torch.rand(7).half()),
    "size": lambda xs: xs.__setitem__(0, torch.rand(8)),
    "size in place": lambda xs: xs[2].resize_(4, 3),
    "strides in place": lambda xs: xs[2].t_(),
    "data": viewed,
    "gaps": lambda xs: xs.__setitem__(0, torch.rand(14)[::2]),
    "negation": lambda xs: xs.__setitem__(0, torch._neg_view(xs[0])),
    "gradient": lambda xs: xs[0].requires_grad_(),
    "fewer": lambda xs: xs.pop(),
    "no tensor": lambda xs: xs.__setitem__(1, 3.0),
}


@torch.no_grad()
def test_a_list_is_found_by_its_form() -> None:
    values = tensors()
    lists = known(values)
    form = lists._find(values)
    others = [torch.empty_like(t) for t in values]
    others[3] = torch.nn.Parameter(others[3])
    assert lists._find(others) is form
    with pytest.raises(KeyError):
        lists._find(tuple(values))
    with pytest.raises(KeyError), torch.enable_grad():
        lists._find(values)


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@torch.no_grad()
def test_another_list_is_not(change: Callable[[list[Any]], Any]) -> None:
    values = tensors()
    lists = known(values)
    change(values)
    with pytest.raises((KeyError, TypeError)):
        lists._find(values)
