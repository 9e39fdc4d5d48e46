"""Launches like one before: what makes two alike, and what is started then."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tilec.runtime.arrays import CUDA, ArrayView
from tilec.triton.known_launches import KnownLaunches

GRID = (4, 1, 1)


@dataclass
class Tensor:
    """What is asked of a torch tensor on a GPU: an address in a storage."""

    address: int
    storage: int = 0
    shape: tuple[int, ...] = (64,)
    requires_grad: bool = False
    is_cuda: bool = True
    is_sparse: bool = False
    dtype: str = field(default="float32")

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> Any:
        start = self.storage or self.address
        return SimpleNamespace(data_ptr=lambda: start, nbytes=lambda: 4096)

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def get_device(self) -> int:
        return 0

    def is_neg(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that knows these tensors."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor))


def key(*arguments: Any, grid: Any = GRID) -> Any:
    """What a launch of a kernel of two pointers and a number is known by."""
    return KnownLaunches([0, 1]).find(arguments, grid)[0]


def test_other_pointers_are_alike(torch: None) -> None:
    first = key(Tensor(0x1000), Tensor(0x3000), 7)
    assert key(Tensor(0x7000), Tensor(0x9000), 7) == first


@pytest.mark.parametrize(
    "other",
    [
        (Tensor(0x1004), Tensor(0x3000), 7),
        (Tensor(0x1000), Tensor(0x3000), 8),
        (Tensor(0x1000), Tensor(0x3000), 7.0),
        (Tensor(0x1000), Tensor(0x3000), True),
        (Tensor(0x1000, shape=(32,)), Tensor(0x3000), 7),
        (Tensor(0x1000, storage=0x800), Tensor(0x3000), 7),
        (Tensor(0x1000, dtype="int32"), Tensor(0x3000), 7),
        (Tensor(0x1000), Tensor(0x1000), 7),
    ],
)
def test_what_is_not_alike(other: tuple[Any, ...]) -> None:
    assert key(*other) != key(Tensor(0x1000), Tensor(0x3000), 7)


def test_another_grid_is_another_launch() -> None:
    one, two = (Tensor(0x1000), Tensor(0x3000))
    assert key(one, two, 7, grid=(5, 1, 1)) != key(one, two, 7)


def test_tensors_of_one_storage_lie_as_before() -> None:
    near = key(Tensor(0x1000, 0x1000), Tensor(0x1100, 0x1000), 7)
    moved = key(Tensor(0x5000, 0x5000), Tensor(0x5100, 0x5000), 7)
    far = key(Tensor(0x1000, 0x1000), Tensor(0x1200, 0x1000), 7)
    assert near == moved
    assert near != far


def test_what_needs_a_look_is_not_known() -> None:
    assert key(Tensor(0x1000, requires_grad=True), Tensor(0x3000), 7) is None
    assert key(Tensor(0x1000, is_cuda=False), Tensor(0x3000), 7) is None
    assert key([1], Tensor(0x3000), 7) is None


def test_a_known_launch_moves_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, started = [], []
    monkeypatch.setattr(
        "tilec.triton.known_launches.start_plan", lambda *given: started.append(given)
    )
    plan: Any = SimpleNamespace(block="block", pack=lambda *given: packed.append(given))
    launches = KnownLaunches([0, 1])
    arguments = (Tensor(0x1000), Tensor(0x3000), 7)
    found, starts, known = launches.find(arguments, GRID)
    assert known is None
    views = [ArrayView(at, (4,), (1,), "f32", (CUDA, 0)) for at in (0x3000, 0x1010)]
    launches.remember(found, plan, GRID, [*views, 7], starts, [1, 0])
    _, starts, known = launches.find((Tensor(0x7000), Tensor(0x9000), 7), GRID)
    assert known is not None
    known.start(starts, 3)
    assert packed == [("block", 0, 0x9000, 0x7010, 7)]
    assert started == [(plan, GRID, 3)]
