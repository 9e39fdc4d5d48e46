"""Calling kernels: binding, specialisation, the generated fast path."""

from __future__ import annotations

import struct
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver
from launcher_fakes import FakeTensor, installed, launcher, own_array, pointers

from tilec.executable.kernel import CompiledKernel, Parameter
from tilec.runtime.arrays import _FORMS, CUDA, ArrayView
from tilec.runtime.cuda import fast_call
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher
from tilec.runtime.outside import Outside


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield from installed(monkeypatch, FakeDriver())


def test_the_second_launch_takes_the_generated_path(fake: FakeDriver):
    run, compiler = launcher(fake)
    slow = run.__call__
    run(FakeTensor(0x1000), FakeTensor(0x2000))
    assert run.__call__ is not slow
    run(FakeTensor(0x3000), b=FakeTensor(0x4000))
    assert pointers(fake) == [(0x1000, 0x2000), (0x3000, 0x4000)]
    assert [launch.grid for launch in fake.launches] == [(2, 8, 1)] * 2
    assert [launch.stream for launch in fake.launches] == [0x500] * 2
    assert compiler.asked == 1


def test_a_launch_compares_what_its_kernel_was_compiled_from(fake: FakeDriver):
    run, compiler = launcher(fake)
    names, values = {"SCALE": 2.0, "f": len}, [3.0]
    cell = (lambda: values).__closure__[0]
    run.outside = (
        Outside("name", names, "SCALE", names["SCALE"]),
        Outside("name", names, "f", len),
        Outside("cell", cell, "", values),
        Outside("code", launcher, "", launcher.__code__),
    )

    def asked() -> int:
        run(FakeTensor(0x1000), FakeTensor(0x2000))
        return compiler.asked

    assert [asked(), asked()] == [1, 1]
    names["SCALE"] = 4.0
    assert asked() == 2
    names["SCALE"] = run.outside[0].value
    del names["f"]
    assert asked() == 3
    names["f"] = len
    assert asked() == 3
    values = []
    assert asked() == 4
    run.outside = ()
    run.forget()
    assert [asked(), asked()] == [5, 5]
    assert len(fake.launches) == 8


@pytest.mark.parametrize(
    "other",
    [
        FakeTensor(0x1008),
        FakeTensor(shape=(8, 9)),
        FakeTensor(shape=(16, 8)),
        FakeTensor(strides=(16, 1)),
        FakeTensor(strides=(1, 8)),
        FakeTensor(dtype="torch.bfloat16"),
        FakeTensor(shape=(8,)),
    ],
)
def test_whatever_decides_the_specialisation_misses(fake: FakeDriver, other: FakeTensor):
    run, compiler = launcher(fake)
    b = FakeTensor(0x2000)
    run(FakeTensor(), b)
    run(other, b)
    assert compiler.asked == 2
    run(other, b)
    run(FakeTensor(), b)
    assert compiler.asked == 2
    first, second, third, fourth = fake.launches
    assert first.arguments == fourth.arguments
    assert second.arguments == third.arguments
    assert (first.name, second.name) == (fourth.name, third.name)


def test_arrays_of_tilec_are_known_by_their_form(fake: FakeDriver):
    run, compiler = launcher(fake)
    b = own_array(0x2000)
    run(own_array(), b)
    run(own_array(0x3000), own_array(0x4000))
    assert compiler.asked == 1
    assert pointers(fake) == [(0x1000, 0x2000), (0x3000, 0x4000)]
    others = [
        {"pointer": 0x1008},
        {"shape": (16, 8)},
        {"strides": (16, 1)},
        {"strides": (1, 8)},
        {"dtype": "bf16"},
        {"framework": "numba"},
    ]
    for number, other in enumerate(others):
        run(replace(own_array(), **other), b)
        assert compiler.asked == number + 2
    run(own_array(0x3000), FakeTensor(0x1008))  # each kind of array has a function of its own
    run(own_array(0x3000), FakeTensor(0x2000))
    assert compiler.asked == len(others) + 3


def test_forms_are_kept_no_longer_than_arrays() -> None:
    kept = own_array().form
    assert own_array(0x2000).form is kept
    assert replace(own_array(), shape=(8, 4)).form is not kept
    forms = len(_FORMS)
    odd = replace(own_array(), shape=(123, 457))
    assert len(_FORMS) == forms + 1
    del odd
    assert len(_FORMS) == forms


def test_an_empty_grid_is_known_and_launches_nothing(fake: FakeDriver):
    run, compiler = launcher(fake)
    for _ in range(2):
        run(FakeTensor(shape=(0, 8)), FakeTensor(0x2000))
    assert (compiler.asked, fake.launches) == (1, [])
    run[2](FakeTensor(shape=(0, 8)), FakeTensor(0x2000))
    run[2, 0](FakeTensor(shape=(0, 8)), FakeTensor(0x2000))
    assert [launch.grid for launch in fake.launches] == [(2, 1, 1)]


def test_shapes_of_one_bucket_share_a_specialisation(fake: FakeDriver):
    run, compiler = launcher(fake)
    for rows in (8, 16, 24):
        run(FakeTensor(shape=(rows, 8)), FakeTensor(0x2000))
    assert compiler.asked == 3
    assert len(compiler.made) == 1
    assert [launch.grid[0] for launch in fake.launches] == [2, 4, 6]
    assert [struct.unpack("<i", launch.arguments[1])[0] for launch in fake.launches] == [8, 16, 24]


def test_scalars_are_packed_anew_and_checked_by_the_slow_path(fake: FakeDriver):
    run, compiler = launcher(fake, LaunchArgument("n", "scalar"))
    a, b = FakeTensor(), FakeTensor(0x2000)
    for number in (1, -5, np.int32(7)):
        run(a, b, number)
        assert struct.unpack("<i", fake.launches[-1].arguments[-1])[0] == number
    assert compiler.asked == 1
    for wrong in (2**31, 1.5, "1", None):
        with pytest.raises(ArgumentError, match="argument 'n'"):
            run(a, b, wrong)
    assert len(fake.launches) == 3


def test_typed_scalars_choose_by_type_and_width(fake: FakeDriver):
    run, compiler = launcher(fake, LaunchArgument("t", "typed"))
    a, b = FakeTensor(), FakeTensor(0x2000)
    for number, size in ((3, 4), (2**31, 8), (4, 4), (-(2**31), 4), (-(2**31) - 1, 8)):
        run(a, b, number)
        assert len(fake.launches[-1].arguments[-1]) == size
        assert int.from_bytes(fake.launches[-1].arguments[-1], "little", signed=True) == number
    run(a, b, 0.5)
    assert struct.unpack("<f", fake.launches[-1].arguments[-1])[0] == 0.5
    assert (compiler.asked, len(compiler.made)) == (3, 3)


def test_constants_choose_the_specialisation_and_have_defaults(fake: FakeDriver):
    run, compiler = launcher(fake, LaunchArgument("BM", "const", 64))
    a, b = FakeTensor(), FakeTensor(0x2000)
    run(a, b)
    run(a, b, BM=64)
    run(a, b, 64)
    assert compiler.asked == 1
    run(a, b, BM=128)
    run(a, b, BM=True)
    run(a, b, BM=1)
    run(a, b, BM=1.0)
    assert [kernel.constants["BM"] for kernel in compiler.made.values()] == [64, 128, True]
    assert compiler.asked == 5
    with pytest.raises(ArgumentError, match="'BM': expected a constant, found the mutable list"):
        run(a, b, BM=[])


def test_calls_that_do_not_bind_are_python_errors(fake: FakeDriver):
    run, _ = launcher(fake)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"kernel\(\) missing 1 required .*'b'"):
            run(FakeTensor())
        with pytest.raises(TypeError, match=r"kernel\(\) got an unexpected keyword argument 'c'"):
            run(FakeTensor(), FakeTensor(), c=1)
        run(FakeTensor(), FakeTensor())


def test_a_given_grid_wins(fake: FakeDriver):
    run, _ = launcher(fake)
    a, b = FakeTensor(), FakeTensor(0x2000)
    for _ in range(2):
        run(a, b, grid=7)
        run(a, b, grid=(5, 6))
        run(a, b, grid=np.int64(3))
    assert [launch.grid for launch in fake.launches] == [(7, 1, 1), (5, 6, 1), (3, 1, 1)] * 2
    for _ in range(2):
        with pytest.raises(ValueError, match="grid size -1"):
            run(a, b, grid=-1)
    run(a, b, grid=(0, 4))
    assert len(fake.launches) == 6


def test_a_grid_counts_programs_which_several_ctas_run(fake: FakeDriver):
    """That of the rule, and one that is given, the first time and from then on."""
    run, compiler = launcher(fake)
    compiler.stripes = 4
    a, b = FakeTensor(), FakeTensor(0x2000)
    for _ in range(2):
        run(a, b)
        run(a, b, grid=(5, 6))
    assert [launch.grid for launch in fake.launches] == [(8, 8, 1), (20, 6, 1)] * 2


def test_no_grid_rule_and_no_grid(fake: FakeDriver):
    run, _ = launcher(fake, grid=None)
    a, b = FakeTensor(), FakeTensor(0x2000)
    with pytest.raises(ArgumentError, match=r"has no grid rule: give the grid, as in k0\[grid\]"):
        run(a, b)
    run(a, b, grid=1)
    with pytest.raises(ArgumentError, match="has no grid rule"):
        run(a, b)
    run(a, b, grid=2)
    assert [launch.grid for launch in fake.launches] == [(1, 1, 1), (2, 1, 1)]


@pytest.mark.parametrize("grid", [None, -1, 1.5, (1, 2, 3, 4)])
def test_a_wrong_grid_of_a_known_call_ends_at_the_author_s_line(fake: FakeDriver, grid: Any):
    run, _ = launcher(fake, grid=None)
    a, b = FakeTensor(0x1000), FakeTensor(0x2000)
    run(a, b, grid=1)
    with pytest.raises((ArgumentError, TypeError, ValueError), match="grid") as caught:
        run(a, b, grid=grid)
    first, *rest = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert first == __file__
    assert all(name.startswith("<call of") for name in rest)


def test_an_error_does_not_show_the_misses_of_the_generated_path(fake: FakeDriver):
    run, _ = launcher(fake)
    run(FakeTensor(), FakeTensor())
    with pytest.raises(ArgumentError, match="argument 'b': expected an array, found int") as caught:
        run(FakeTensor(), 3)
    assert caught.value.__context__ is None


def test_a_pending_negation_is_found_at_every_call(fake: FakeDriver):
    run, _ = launcher(fake)
    a, b = FakeTensor(), FakeTensor(0x2000)
    run(a, b)
    b.is_negated = True
    with pytest.raises(ArgumentError, match="argument 'b': a view with a pending negation"):
        run(a, b)


def test_gradients_and_memory_are_looked_at_at_every_call(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
):
    run, compiler = launcher(fake)
    a, b = FakeTensor(0x1000), FakeTensor(0x2000)
    run(a, b)
    b.requires_grad = True
    run(a, b)
    assert compiler.asked == 1
    monkeypatch.setattr(fake, "records", True, raising=False)
    with pytest.raises(ArgumentError, match="argument 'b': a tensor that requires a gradient"):
        run(a, b)
    b.requires_grad = False
    forward = sys.modules["torch"].autograd.forward_ad
    monkeypatch.setattr(forward, "_current_level", 0)
    tangents = {id(a): None, id(b): object()}
    forward.unpack_dual = lambda t: SimpleNamespace(tangent=tangents[id(t)])
    with pytest.raises(ArgumentError, match="argument 'b': a tensor that requires a gradient"):
        run(a, b)
    monkeypatch.setattr(forward, "_current_level", -1)
    b.pointer = 0
    with pytest.raises(ArgumentError, match="argument 'b': a tensor without memory"):
        run(a, b)
    assert len(fake.launches) == 2


def test_views_of_other_frameworks_are_described_anew(fake: FakeDriver):
    """They may name the stream whose work makes their contents."""
    run, _ = launcher(fake)
    mine = ArrayView(0x1000, (8, 8), (8, 1), "f16", (CUDA, 0), "tilec")
    run(mine, mine)
    run(mine, replace(mine, framework="numba", producer_stream=0x77))
    assert "record on 119" in fake.calls


def test_a_grid_of_scalars_follows_them(fake: FakeDriver):
    grid = ("cdiv(n, 4) * a.shape[0]", "1", "1")
    run, compiler = launcher(fake, LaunchArgument("n", "scalar"), grid=grid)
    for number in (1, 5, 0, 12):
        run(FakeTensor(), FakeTensor(0x2000), number)
    assert [launch.grid[0] for launch in fake.launches] == [8, 16, 24]
    assert compiler.asked == 1


def test_ctas_of_several_programs_have_as_many_warps_as_these_need(fake: FakeDriver):
    """The launch says how wide they are, the arguments how many programs there are: both follow a
    grid of scalars without the whole way."""
    run, compiler = launcher(fake, LaunchArgument("n", "scalar"), grid=("n", "2", "1"))
    compiler.persistent, compiler.programs_per_cta = True, 2
    for number in (1, 40, 40, 0, 1000, 2, 3):
        run(FakeTensor(), FakeTensor(0x2000), number)
    assert compiler.asked == 1
    found = [(launch.grid[0], launch.block[0]) for launch in fake.launches]
    assert found == [(2, 32), (40, 64), (40, 64), (128, 64), (4, 32), (4, 64)]
    grids = [
        [int.from_bytes(a, "little") for a in launch.arguments[-3:]] for launch in fake.launches
    ]
    assert grids == [[n, 2, 1] for n in (1, 40, 40, 1000, 2, 3)]


def test_a_persistent_kernel_launched_on_a_grid_of_the_call(fake: FakeDriver):
    run, compiler = launcher(fake, grid=None)
    compiler.persistent = True
    a, b = FakeTensor(), FakeTensor(0x2000)
    for grid in (5, (7, 3), 5, 0, 1):
        run(a, b, grid=grid)
    assert compiler.asked == 1
    assert [launch.grid[0] for launch in fake.launches] == [5, 21, 5, 1]


def test_an_empty_array_launches_nothing(fake: FakeDriver):
    run, _ = launcher(fake)
    for _ in range(2):
        run(FakeTensor(0, (0, 8)), FakeTensor(0x2000))
    assert fake.launches == []


def test_ever_new_shapes_do_not_pile_up(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fast_call, "MAX_PLANS", 10)
    run, _ = launcher(fake)
    for rows in range(8, 8 * 40, 8):
        run(FakeTensor(shape=(rows, 8)), FakeTensor())
    (fast,) = run._fast.values()
    assert len(fast.local.plans) <= 10


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stream", "every call has a keyword of that name already"),
        ("grid", "every call has a keyword"),
        ("lambda", "cannot be the name"),
        ("a b", "cannot be the name"),
        ("x): import os", "cannot be the name"),
        ("_tilec_plan", "cannot be the name"),
        ("a", "two arguments are called 'a'"),
    ],
)
def test_names_that_would_not_make_a_function(fake: FakeDriver, name: str, message: str):
    with pytest.raises(ValueError, match=message):
        launcher(fake, LaunchArgument(name, "scalar"))
    with pytest.raises(ValueError, match="expected one of array, arrays, flat_arrays, scalar"):
        launcher(fake, LaunchArgument("x", "tensor"))


def test_a_compiler_that_mixes_parameters_up_is_caught(fake: FakeDriver):
    odd = CompiledKernel("k", "sm_90a", "", (Parameter("z", "scalar", "i32"),), None, 1, 0, 32)
    run = Launcher("kernel", [LaunchArgument("a", "array")], lambda device, bound: odd)
    with pytest.raises(ValueError, match=r"kernel k: expected parameters \['a'\], found \['z'\]"):
        run(FakeTensor())
