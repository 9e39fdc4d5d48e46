"""Launches like one before: what makes two alike, and what is started then."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from tilec.triton.known_launches import Known, KnownLaunches, Lying, lying_as, lying_of
from tilec.triton.launch_keys import Form, reader

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


PLAN: Any = SimpleNamespace(block="block")


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


def test_launches_without_arguments_are_alike() -> None:
    read = KnownLaunches().reader(Form(()))
    assert read is not None
    assert read((), (1,)) == read((), (1,)) != read((), (2,))


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


def free_key(*arguments: Any) -> Any:
    """The same, where the class of the second argument is enough."""
    read = reader(Form(tuple(map(type, arguments))), frozenset((int, bool)), frozenset({1}))
    assert read is not None
    return read(arguments, GRID)[0]


def test_numbers_that_decide_nothing_are_alike_in_a_class() -> None:
    """Of Triton's classes, and of those that can be negative or beyond 32 bits by their values."""
    x = Tensor(0x1000)
    classes = [(1,), (2, 7, 77, (1 << 31) - 1), (0, 16, 1 << 30), (-1,), (-2,), (1 << 31,), (True,)]
    found = [{free_key(x, number) for number in numbers} for numbers in classes]
    assert [len(keys) for keys in found] == [1] * len(classes)
    assert len(set().union(*found)) == len(classes)
    assert (
        free_key(x, 2)
        != reader(Form((Tensor, int)), frozenset((int,)), frozenset())((x, 1), GRID)[0]
    )


def lies(pair: Lying, *starts: int) -> bool:
    """Whether two pointers lie so."""
    return Known(PLAN, (), (), lying=(pair,)).fits(starts, ())


def test_pointers_lie_apart_or_as_they_did() -> None:
    # Two arrays of 64 bytes, the first written; then the second is the first's parameter.
    spans, starts = [(0x1000, 0x1040), (0x2000, 0x2040)], [0x1000, 0x2000]
    (apart,) = lying_of(spans, (0, 1), {0}, (0, 1), starts)
    assert [lies(apart, 0x5000, 0x5000 + n) for n in (-64, -63, 0, 63, 64)] == [
        True, False, False, False, True,
    ]  # fmt: skip
    assert lying_of(spans, (0, 1), set(), (0, 1), starts) == ()
    assert lying_of(spans, (0, 1), {0}, (0, 0), [0x1000]) == ()
    (same,) = lying_of([spans[0]] * 2, (0, 0), {0}, (0, 1), [0x1000, 0x1000])
    assert [lies(same, 0x5000, 0x5000 + n) for n in (-64, 0, 64)] == [False, True, False]
    assert lying_as([(0, 2, 1)], [8, 24, 40]) == [Lying(0, 2, 32, 32), Lying(0, 1, 16, 16)]


def test_arrays_that_interleave_lie_as_they_did() -> None:
    spans = [(0x1000, 0x1100), (0x1020, 0x1120)]
    assert lying_of(spans, (0, 1), {0}, (0, 1), [0x1000, 0x1020]) == (Lying(0, 1, 0x20, 0x20),)


def test_an_array_that_begins_behind_its_pointer_lies_elsewhere() -> None:
    spans, starts = [(0x1100, 0x1140), (0x2000, 0x2040)], [0x1000, 0x2000]
    (apart,) = lying_of(spans, (0, 1), {1}, (0, 1), starts)
    assert [lies(apart, 0x5000, 0x5100 + n) for n in (-64, -63, 63, 64)] == [
        True, False, False, True,
    ]  # fmt: skip


FORM = Form((Tensor, Tensor, int))


def test_launches_of_one_key_are_told_apart() -> None:
    launches = KnownLaunches()
    given = (Tensor(0x1000), Tensor(0x3000), 7)
    far = Known(PLAN, (), (), lying=(Lying(0, 1, -64, 64),))
    same = Known(PLAN, (), (), lying=(Lying(0, 1, 0, 0),))
    found, starts = launches.key(given, GRID)
    assert launches.find(found, starts, given) is None
    launches.remember(FORM, given, GRID, far, "far")
    launches.remember(FORM, given, GRID, same, "same")
    found, _ = launches.key(given, GRID)
    assert launches.find(found, [0x1000, 0x3000], given) == (far, "far")
    assert launches.find(found, [0x1000, 0x1000], given) == (same, "same")
    assert launches.find(found, [0x1000, 0x1020], given) is None


def test_a_number_is_free_while_all_launches_say_so() -> None:
    launches = KnownLaunches()

    def given(number: int) -> tuple[Any, ...]:
        return Tensor(0x1000), Tensor(0x3000), number

    def find(number: int) -> Any:
        key, starts = launches.key(given(number), GRID)
        return launches.find(key, starts, given(number))

    free, fixed = Known(PLAN, (), (), frozenset({2})), Known(PLAN, (), ())
    launches.remember(FORM, given(7), GRID, free)
    assert find(9) == (free, None)
    assert find(32) is None
    launches.remember(FORM, given(32), GRID, fixed)
    assert find(48) is find(9) is None
    assert find(32) == (fixed, None)


def test_memory_behind_a_pointer_without_a_bound_is_as_before() -> None:
    known = Known(PLAN, (), (), memories=((1, 0x100, 4096),))
    assert known.fits([], (7, Tensor(0x1100, 0x1000)))
    assert not known.fits([], (7, Tensor(0x1200, 0x1000)))


def test_a_known_launch_moves_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    launched = []
    monkeypatch.setattr(
        "tilec.triton.known_launches.launch_plan", lambda *given: launched.append(given)
    )
    known = Known(PLAN, ((1, 0), (0, 0x10)), ((7, None), (1.5, 3)))
    known.start([0x7000, 0x9000], ("x", "y", 7, 2.5), 3)
    assert launched == [(PLAN, (0x9000, 0x7010, 7, 2.5), 3)]
    # The same launch as a call has it: the fraction first, the pointers the other way round, the
    # whole number by default.
    moved = known.seen_from((1, 0), (2, 1, None, 0))
    moved.start([0x9000, 0x7000], (3.5, "y", "x"), 3)
    assert launched[1] == (PLAN, (0x9000, 0x7010, 7, 3.5), 3)
    assert replace(known, free=frozenset({3})).seen_from((1, 0), (2, 1, None, 0)).free == {0}
