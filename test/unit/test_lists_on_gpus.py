"""Lists of arrays as a GPU gets them: tables in its memory, found again, kept for graphs."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterator, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import pytest
from fake_driver import FakeDriver
from launcher_fakes import FakeTensor, installed

from tilec.executable.kernel import CompiledKernel
from tilec.runtime.array_list import ArrayList
from tilec.runtime.cuda import list_tables
from tilec.runtime.cuda.context import context_of
from tilec.runtime.cuda.list_tables import TableStore, tables_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import index_bits, observe_list
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher

STREAM = 0x500


class Tensor(FakeTensor):
    """A dense tensor of halves."""

    def numel(self) -> int:
        return prod(self.shape)

    def is_contiguous(self) -> bool:
        return self.strides == FakeTensor(shape=self.shape).strides


class Guards:
    """Compares tensors as torch's `TensorGuards` does (`test_known_lists.py` asks torch's own)."""

    def __init__(self, *tensors: Tensor, **sizes: Any) -> None:
        assert [*sizes] == ["dynamic_dims_sizes", "dynamic_dims_strides"]
        self.seen = list(map(self.look, tensors))

    def look(self, tensor: Tensor) -> Any:
        kind = (type(tensor), tensor.dtype, tensor.index, tensor.is_negated, tensor.requires_grad)
        return (*kind, tensor.shape, tensor.strides)

    def check(self, *tensors: Tensor) -> bool:
        return list(map(self.look, tensors)) == self.seen


class Compiler:
    """A kernel for each class of lists, and how often it was asked for one."""

    def __init__(self, fake: FakeDriver) -> None:
        self.fake, self.asked = fake, 0

    def __call__(self, device: Any, bound: Any, grid: Any = None) -> CompiledKernel:
        self.asked += 1
        (name, value), *_ = bound.items()
        assert isinstance(value, ArrayList)
        parameter = observe_list(name, "flat_arrays", value)
        key = (*(f"k{self.asked}", "sm_90a", "", (parameter,)), ("parts(xs, 100)", "1", "1"), 64, 0)
        return self.fake.know(CompiledKernel(*key, index_bits([value])))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    for found in installed(monkeypatch, FakeDriver()):
        module: Any = sys.modules["torch"]
        module.Tensor = Tensor
        guards = SimpleNamespace(TensorGuards=Guards)
        module._C._dynamo = SimpleNamespace(guards=guards)
        yield found


@pytest.fixture
def run(fake: FakeDriver) -> tuple[Launcher, Compiler]:
    compiler = Compiler(fake)
    return Launcher("kernel", [LaunchArgument("xs", "flat_arrays")], compiler), compiler


def tensors(*shapes: tuple[int, ...], first: int = 0x1000) -> list[Tensor]:
    return [Tensor(first + 0x1000 * n, shape) for n, shape in enumerate(shapes)]


def table(fake: FakeDriver, number: int = -1) -> Sequence[int]:
    """The words of the table that a launch was given."""
    pointer, count = (struct.unpack("<Q", fake.launches[number].arguments[0])[0], 0)
    count = struct.unpack("<i", fake.launches[number].arguments[1])[0]
    return list((ctypes.c_int64 * (3 * count)).from_address(pointer))


def test_a_launch_gets_a_table(fake: FakeDriver, run: tuple[Launcher, Compiler]):
    launcher, _ = run
    launcher(tensors((8, 8), (500,), (3, 1)))
    assert table(fake) == [0x1000, 64, 0x2000, 500, 0x3000, 3, 0, 64, 564]
    assert fake.launches[0].grid == (567 // 100 + 3, 1, 1)
    assert fake.launches[0].stream == STREAM


def test_a_list_is_found_again(fake: FakeDriver, run: tuple[Launcher, Compiler]):
    launcher, compiler = run
    for _ in range(3):
        launcher(tensors((8, 8), (500,)))
    assert compiler.asked == 1
    assert [call for call in fake.calls if "copy" in call] == ["copy 48 bytes"]
    assert len(fake.launches) == 3


def test_new_addresses_are_a_new_table(fake: FakeDriver, run: tuple[Launcher, Compiler]):
    launcher, compiler = run
    launcher(tensors((8, 8), (500,)))
    launcher(tensors((8, 8), (500,), first=0x9000))
    assert compiler.asked == 1
    assert [table(fake, n)[:4] for n in (0, 1)] == [
        [0x1000, 64, 0x2000, 500],
        [0x9000, 64, 0xA000, 500],
    ]


@pytest.mark.parametrize(
    "other",
    [
        tensors((8, 8), (501,)),
        tensors((8, 8), (500,), (1,)),
        tensors((8, 8), (500,), first=0x1002),
        [
            Tensor(0x1000, (8, 8), dtype="torch.bfloat16"),
            Tensor(0x2000, (500,), dtype="torch.bfloat16"),
        ],
    ],
    ids=["size", "length", "alignment", "dtype"],
)
def test_another_list_goes_the_whole_way(
    fake: FakeDriver, run: tuple[Launcher, Compiler], other: list[Tensor]
):
    launcher, compiler = run
    launcher(tensors((8, 8), (500,)))
    launcher(other)
    assert compiler.asked == 2
    assert table(fake)[0] == other[0].pointer


def test_what_may_be_refused_is_refused_later_too(fake: FakeDriver, run: tuple[Launcher, Compiler]):
    launcher, _ = run
    launcher(tensors((8, 8), (500,)))
    gaps = tensors((8, 8), (500,))
    gaps[0].strides = (16, 1)
    with pytest.raises(ArgumentError, match=r"'xs\[0\]': expected an array without gaps"):
        launcher(gaps)
    negated = tensors((8, 8), (500,))
    negated[1].is_negated = True
    with pytest.raises(ArgumentError, match=r"'xs\[1\]': a view with a pending negation"):
        launcher(negated)
    fake.records = True  # type: ignore[attr-defined]
    recorded = tensors((8, 8), (500,))
    recorded[1].requires_grad = True
    with pytest.raises(ArgumentError, match=r"'xs\[1\]': a tensor that requires a gradient"):
        launcher(recorded)
    assert len(fake.launches) == 1


def test_tables_that_nothing_uses_are_freed(
    fake: FakeDriver, run: tuple[Launcher, Compiler], monkeypatch: pytest.MonkeyPatch
):
    launcher, _ = run
    monkeypatch.setattr(list_tables, "MOST_BYTES", 100)
    for n in range(9):
        launcher(tensors((8, 8), (500,), first=0x10000 * (n + 1)))
    store = tables_of(context_of(0))
    assert len(fake.memory) == len(store._tables) < 9
    assert "synchronize context 100" in fake.calls
    launcher(tensors((8, 8), (500,), first=0x10000))  # whose table is gone
    assert table(fake)[0] == 0x10000


def test_tables_in_use_stay(
    fake: FakeDriver, run: tuple[Launcher, Compiler], monkeypatch: pytest.MonkeyPatch
):
    launcher, _ = run
    monkeypatch.setattr(list_tables, "MOST_BYTES", 100)
    for n in range(9):
        launcher(tensors((8, 8), (500,)))
        launcher(tensors((8, 8), (500,), first=0x10000 * (n + 1)))
    assert len({launch.arguments[0] for launch in fake.launches[::2]}) == 1
    assert len([call for call in fake.calls if "copy" in call]) == 10


def test_a_launch_does_not_read_a_table_that_was_freed(
    fake: FakeDriver, run: tuple[Launcher, Compiler], monkeypatch: pytest.MonkeyPatch
):
    """As where another thread frees it while a call looks up what it launches."""
    launcher, _ = run
    launcher(tensors((8, 8), (500,)))
    store = tables_of(context_of(0))
    (known,) = store._tables.values()

    def free(*_: Any) -> bool:
        known.is_alive = False
        store._tables.clear()
        return TableStore.use(store, *_)

    monkeypatch.setattr(store, "use", free)
    launcher(tensors((8, 8), (500,)))
    assert len(fake.launches) == 2
    assert fake.launches[0].arguments[0] != fake.launches[1].arguments[0]
    assert table(fake) == [0x1000, 64, 0x2000, 500, 0, 64]


def test_a_graph_keeps_its_tables(
    fake: FakeDriver, run: tuple[Launcher, Compiler], monkeypatch: pytest.MonkeyPatch
):
    launcher, _ = run
    monkeypatch.setattr(list_tables, "MOST_BYTES", 0)
    launcher(tensors((8, 8), (500,)))
    fake.captured = {STREAM}
    before = len(fake.calls)
    launcher(tensors((8, 8), (500,)))
    launcher(tensors((8, 8), (500,), first=0x9000))
    assert not any("synchronize context" in call for call in fake.calls[before:])
    assert "capture mode CU_STREAM_CAPTURE_MODE_RELAXED" in fake.calls[before:]
    fake.captured = set()
    for n in range(9):
        launcher(tensors((8, 8), (500,), first=0x10000 * (n + 1)))
    kept = {launch.arguments[0] for launch in fake.launches[1:3]}
    assert {struct.unpack("<Q", raw)[0] for raw in kept} <= fake.memory.keys()


def test_lists_are_of_one_kind(fake: FakeDriver, run: tuple[Launcher, Compiler]):
    launcher, _ = run
    for wrong, text in (
        ([], "an empty list"),
        (Tensor(), "expected a list of arrays, found Tensor"),
        ([Tensor(), 3], r"'xs\[1\]': expected an array, found int"),
        ([Tensor(), Tensor(dtype="torch.float32")], r"'xs\[1\]': expected the dtype of 'xs\[0\]'"),
        ([Tensor(), Tensor(device=-1)], r"'xs\[1\]': expected the device of 'xs\[0\]'"),
    ):
        with pytest.raises(ArgumentError, match=text):
            launcher(wrong)
