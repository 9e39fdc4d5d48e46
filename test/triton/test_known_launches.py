"""Launches like one before: what makes two alike, and what is started then."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from tilec.triton.known_launches import Known, KnownLaunches, Lying, lying_of

GRID = (4, 1, 1)


@dataclass
class Tensor:
    """What is asked of a torch tensor on a GPU: an address in a storage."""

    address: int
    storage: int = 0
    dtype: str = field(default="float32")
    negated: bool = False
    requires_grad: ClassVar[bool] = False

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> Any:
        start = self.storage or self.address
        return SimpleNamespace(data_ptr=lambda: start, nbytes=lambda: 4096)

    def get_device(self) -> int:
        return 0

    def is_neg(self) -> bool:
        return self.negated


class Parameter(Tensor):
    """A tensor whose gradient is recorded."""

    requires_grad = True


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that knows these tensors."""
    made: Any = ModuleType("torch")
    made.Tensor, made.nn = Tensor, SimpleNamespace(Parameter=Parameter)
    monkeypatch.setitem(sys.modules, "torch", made)


def key(*arguments: Any, grid: Any = GRID) -> Any:
    """What a launch of a kernel of two pointers and a number is known by."""
    return KnownLaunches().key(arguments, grid)[0]


@pytest.mark.parametrize(
    "other",
    [
        (Tensor(0x7000), Tensor(0x9000), 7, 1.5),
        (Tensor(0x7000), Tensor(0x9000), 7, 2.5),
        (Tensor(0x1000, storage=0x800), Tensor(0x3000), 7, 1.5),
    ],
)
def test_other_pointers_and_fractions_are_alike(other: tuple[Any, ...]) -> None:
    assert key(*other) == key(Tensor(0x1000), Tensor(0x3000), 7, 1.5) is not None


@pytest.mark.parametrize(
    "other",
    [
        (Tensor(0x1004), Tensor(0x3000), 7),
        (Tensor(0x1000), Tensor(0x3000), 8),
        (Tensor(0x1000), Tensor(0x3000), 7.0),
        (Tensor(0x1000), Tensor(0x3000), True),
        (Tensor(0x1000, dtype="int32"), Tensor(0x3000), 7),
    ],
)
def test_what_is_not_alike(other: tuple[Any, ...]) -> None:
    assert key(*other) != key(Tensor(0x1000), Tensor(0x3000), 7)


def test_tensors_whose_gradient_is_recorded_are_known() -> None:
    assert key(Parameter(0x1000), 7) == key(Parameter(0x2000), 7) is not None


def test_numbers_that_are_equal_are_told_apart_by_their_classes() -> None:
    assert len({key(Tensor(0x1000), one) for one in (1, True, 1.0)}) == 3


def test_another_grid_is_another_launch() -> None:
    one, two = (Tensor(0x1000), Tensor(0x3000))
    assert key(one, two, 7, grid=(5, 1, 1)) != key(one, two, 7)


@pytest.mark.parametrize("value", [Tensor(0x1000, negated=True), [1], (1, 2), object()])
def test_what_needs_a_look_is_not_known(value: Any) -> None:
    assert key(value, Tensor(0x3000), 7) is None


def test_pointers_lie_apart_or_as_they_did() -> None:
    # Two arrays of 64 bytes, the first written; then the second is the first's parameter.
    spans, starts = [(0x1000, 0x1040), (0x2000, 0x2040)], [0x1000, 0x2000]
    (apart,) = lying_of(spans, (0, 1), {0}, (0, 1), starts)
    assert [apart.holds((0x5000, 0x5000 + n)) for n in (-64, -63, 0, 63, 64)] == [
        True, False, False, False, True,
    ]  # fmt: skip
    assert lying_of(spans, (0, 1), set(), (0, 1), starts) == ()
    assert lying_of(spans, (0, 1), {0}, (0, 0), [0x1000]) == ()
    (same,) = lying_of([spans[0]] * 2, (0, 0), {0}, (0, 1), [0x1000, 0x1000])
    assert [same.holds((0x5000, 0x5000 + n)) for n in (-64, 0, 64)] == [False, True, False]


def test_an_array_that_begins_behind_its_pointer_lies_elsewhere() -> None:
    spans, starts = [(0x1100, 0x1140), (0x2000, 0x2040)], [0x1000, 0x2000]
    (apart,) = lying_of(spans, (0, 1), {1}, (0, 1), starts)
    assert [apart.holds((0x5000, 0x5100 + n)) for n in (-64, -63, 63, 64)] == [
        True, False, False, True,
    ]  # fmt: skip


PLAN: Any = SimpleNamespace(block="block")


def test_launches_of_one_key_are_told_apart() -> None:
    launches = KnownLaunches()
    given = (Tensor(0x1000), Tensor(0x3000), 7)
    found, starts = launches.key(given, GRID)
    far = Known(PLAN, GRID, (), (), (Lying(0, 1, -64, 64),))
    same = Known(PLAN, GRID, (), (), (Lying(0, 1, 0, 0),))
    assert launches.find(found, starts, given) is None
    launches.remember(found, far, "far")
    launches.remember(found, same, "same")
    assert launches.find(found, [0x1000, 0x3000], given) == (far, "far")
    assert launches.find(found, [0x1000, 0x1000], given) == (same, "same")
    assert launches.find(found, [0x1000, 0x1020], given) is None


def test_memory_behind_a_pointer_without_a_bound_is_as_before() -> None:
    known = Known(PLAN, GRID, (), (), (), ((1, 0x100, 4096),))
    assert known.fits([], (7, Tensor(0x1100, 0x1000)))
    assert not known.fits([], (7, Tensor(0x1200, 0x1000)))


def test_a_known_launch_moves_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, started = [], []
    monkeypatch.setattr(
        "tilec.triton.known_launches.start_plan", lambda *given: started.append(given)
    )
    plan: Any = SimpleNamespace(block="block", pack=lambda *given: packed.append(given))
    known = Known(plan, GRID, ((1, 0), (0, 0x10)), ((7, None), (1.5, 3)))
    known.start([0x7000, 0x9000], ("x", "y", 7, 2.5), 3)
    assert packed == [("block", 0, 0x9000, 0x7010, 7, 2.5)]
    assert started == [(plan, GRID, 3)]
    # The same launch as a call has it: the fraction first, the pointers the other way round, the
    # whole number by default.
    moved = known.seen_from((1, 0), (2, 1, None, 0))
    moved.start([0x9000, 0x7000], (3.5, "y", "x"), 3)
    assert packed[1] == ("block", 0, 0x9000, 0x7010, 7, 3.5)
