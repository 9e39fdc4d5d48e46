"""Calling kernels: binding, specialisation, the generated fast path, streams, devices."""

from __future__ import annotations

import struct
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_driver import CUresult, FakeDriver, install, uninstall

from tilec.executable.kernel import CompiledKernel, Parameter
from tilec.runtime.arrays import _FORMS, CUDA, ArrayView
from tilec.runtime.cuda import fast_call
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import index_bits, observe_parameter
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher
from tilec.runtime.outside import Outside


class FakeTensor:
    """A tensor as torch's accessors show it. `reads` counts how often its pointer was asked for."""

    def __init__(
        self,
        pointer: int = 0x1000,
        shape: tuple[int, ...] = (8, 8),
        strides: tuple[int, ...] | None = None,
        dtype: str = "torch.float16",
        device: int = 0,
    ) -> None:
        self.pointer = pointer
        self.shape = shape
        self.strides = strides or (shape[-1], 1)[2 - len(shape) :]
        self.dtype = dtype
        self.index = device
        self.layout = "strided"
        self.device = SimpleNamespace(type="cuda" if device >= 0 else "cpu")
        self.is_cuda = device >= 0
        self.is_negated = False
        self.requires_grad = False

    def data_ptr(self) -> int:
        return self.pointer

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def get_device(self) -> int:
        return self.index

    def is_neg(self) -> bool:
        return self.is_negated

    def is_conj(self) -> bool:
        return False


class Compiler:
    """Stands for the just-in-time compiler: a kernel a set of observed parameters, as Resolve."""

    def __init__(self, fake: FakeDriver, grid: tuple[str, str, str] | None) -> None:
        self.fake = fake
        self.grid = grid
        self.made: dict[Any, CompiledKernel] = {}
        self.asked = 0
        self.persistent = False
        self.stripes = 1
        self.programs_per_cta = 1

    def __call__(self, device: Any, bound: Any) -> CompiledKernel:
        self.asked += 1
        parameters = []
        constants = {}
        for name, value in bound.items():
            if isinstance(value, ArrayView):
                parameters.append(observe_parameter(name, value))
            elif name.isupper():
                constants[name] = value
            elif name == "t" and isinstance(value, float):
                parameters.append(Parameter(name, "scalar", "f32"))
            else:
                wide = name == "t" and not -(2**31) <= value < 2**31
                parameters.append(Parameter(name, "scalar", "i64" if wide else "i32"))
        bits = index_bits(v for v in bound.values() if isinstance(v, ArrayView))
        key = (tuple(parameters), tuple(constants.items()), bits)
        if key not in self.made:
            number = len(self.made)
            self.made[key] = self.fake.know(
                CompiledKernel(
                    *(f"k{number}", "sm_90a", "", key[0], self.grid, 64, 0, bits, constants),
                    persistent=self.persistent,
                    stripes=self.stripes,
                    programs_per_cta=self.programs_per_cta,
                )
            )
        return self.made[key]


GRID = ("cdiv(a.shape[0], 4)", "b.shape[0]", "1")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield from installed(monkeypatch, FakeDriver())


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield from installed(monkeypatch, FakeDriver([(9, 0), (9, 0)]))


def installed(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> Iterator[FakeDriver]:
    module = SimpleNamespace(
        Tensor=FakeTensor,
        strided="strided",
        is_grad_enabled=lambda: getattr(fake, "records", False),
        compiler=SimpleNamespace(is_compiling=lambda: False),
        autograd=SimpleNamespace(forward_ad=SimpleNamespace(_current_level=-1)),
        _C=SimpleNamespace(
            _cuda_getCurrentRawStream=lambda index: 0x500 + index,
            _cuda_getDevice=lambda: fake.current - 100,
            _functorch=SimpleNamespace(is_functorch_wrapped_tensor=lambda tensor: False),
        ),
    )
    monkeypatch.setitem(sys.modules, "torch", module)  # type: ignore[arg-type]
    yield install(monkeypatch, fake)
    uninstall()


def launcher(
    fake: FakeDriver,
    *more: LaunchArgument,
    grid: tuple[str, str, str] | None = GRID,
    device: Any = None,
) -> tuple[Launcher, Compiler]:
    compiler = Compiler(fake, grid)
    arguments = [LaunchArgument("a", "array"), LaunchArgument("b", "array"), *more]
    return Launcher("kernel", arguments, compiler, device), compiler


def pointers(fake: FakeDriver) -> list[tuple[int, int]]:
    """The two pointers of every launch so far; a and b have one run-time stride each."""
    return [
        (struct.unpack("<Q", launch.arguments[0])[0], struct.unpack("<Q", launch.arguments[4])[0])
        for launch in fake.launches
    ]


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


def own_array(pointer: int = 0x1000) -> ArrayView:
    """An array of tilec's own, as devices make them."""
    return ArrayView(pointer, (8, 8), (8, 1), "f16", (CUDA, 0), "tilec")


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


def test_streams(fake: FakeDriver):
    run, _ = launcher(fake)
    a, b = FakeTensor(), FakeTensor(0x2000)
    for _ in range(2):
        run(a, b, stream=0x42)
        run(a, b, stream=SimpleNamespace(cuda_stream=0x43))
        run(a, b)
        with pytest.raises(ArgumentError, match="stream: expected a CUDA stream"):
            run(a, b, stream="main")
    assert [launch.stream for launch in fake.launches] == [0x42, 0x43, 0x500] * 2


def test_frameworks_on_different_streams_need_one_named(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
):
    class Array:
        dtype = np.dtype(np.float16)
        shape = (8, 8)
        strides = (16, 2)
        data = SimpleNamespace(ptr=0x2000)
        device = SimpleNamespace(id=0)

    class Entered:
        def __init__(self, index: int) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    stream = SimpleNamespace(ptr=0x900)
    cuda = SimpleNamespace(Device=Entered, get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=Array, cuda=cuda))  # type: ignore[arg-type]
    run, _ = launcher(fake)
    for _ in range(2):
        run(Array(), Array())
        with pytest.raises(ArgumentError, match="different streams now"):
            run(FakeTensor(), Array())
        run(FakeTensor(), Array(), stream=5)
    stream.ptr = 0x500
    run(FakeTensor(), Array())
    assert [launch.stream for launch in fake.launches] == [0x900, 5, 0x900, 5, 0x500]


def test_device_arrays_and_foreign_arrays_mix(fake: FakeDriver):
    run, compiler = launcher(fake)
    own = cuda_device(0).empty((8, 8), "f16")
    for _ in range(3):
        run(own, FakeTensor(0x2000))
    foreign = SimpleNamespace(
        __cuda_array_interface__={"shape": (8, 8), "typestr": "<f2", "data": (0x4000, False)}
    )
    fake.owners[0x4000] = 0
    run(foreign, own)
    run(foreign, own)
    assert pointers(fake) == [(own.pointer, 0x2000)] * 3 + [(0x4000, own.pointer)] * 2
    assert [launch.stream for launch in fake.launches] == [0x500] * 3 + [0] * 2
    assert len(compiler.made) == 1


def test_arrays_on_different_devices(two: FakeDriver):
    run, _ = launcher(two)
    with pytest.raises(ArgumentError, match="'b': expected an array on cuda:0 like 'a', found one"):
        run(FakeTensor(), FakeTensor(device=1), stream=0)
    cpu = FakeTensor(device=-1)
    with pytest.raises(ArgumentError, match=r"'b': expected .* cuda:0 .* on the host"):
        run(FakeTensor(), cpu)
    bound, _ = launcher(two, device=cuda_device(1))
    with pytest.raises(
        ArgumentError, match="'a': expected an array on cuda:1, found one on cuda:0"
    ):
        bound(FakeTensor(), FakeTensor())


def test_host_arrays_are_not_copied_behind_the_callers_back(fake: FakeDriver):
    run, _ = launcher(fake)
    with pytest.raises(ArgumentError, match=r"'a': .* host memory; copy it with .*array\(\.\.\.\)"):
        run(np.zeros((8, 8), np.float16), np.zeros((8, 8), np.float16))


def test_each_gpu_gets_its_launches_in_its_own_context(two: FakeDriver):
    run, _ = launcher(two)
    two.current = 100
    for _ in range(3):
        for device in (0, 1):
            run(FakeTensor(device=device), FakeTensor(0x2000, device=device))
            assert two.current == 100
    assert [launch.stream for launch in two.launches] == [0x500, 0x501] * 3
    two.current = 101
    run(FakeTensor(), FakeTensor())
    assert two.current == 101


def test_no_launch_relies_on_the_driver_to_refuse_a_wrong_context(two: FakeDriver):
    two.minds_contexts = False
    run, _ = launcher(two)
    for current in (100, 101, 0, 555):
        for device in (0, 1):
            two.current = current
            run(FakeTensor(device=device), FakeTensor(0x2000, device=device))
            assert two.launches[-1].context == 100 + device


def test_a_persistent_kernel_keeps_its_programs_whatever_gpu_is_current(two: FakeDriver):
    run, compiler = launcher(two)
    compiler.persistent = True
    tensors = FakeTensor(shape=(400, 8), device=1), FakeTensor(0x2000, device=1)
    for current in (101, 101, 100, 101):
        two.current = current
        run(*tensors)
    assert {launch.grid for launch in two.launches} == {(128, 1, 1)}
    programs = [struct.unpack("<3i", b"".join(x.arguments[-3:])) for x in two.launches]
    assert programs == [(100, 8, 1)] * 4


def test_a_thread_without_a_context_enters_it(fake: FakeDriver):
    run, _ = launcher(fake)
    run(FakeTensor(), FakeTensor(0x2000))
    run(FakeTensor(), FakeTensor(0x2000))
    fake.current = 0
    run(FakeTensor(), FakeTensor(0x2000))
    assert fake.current == 100
    assert len(fake.launches) == 3


def test_a_failing_launch_is_reported_from_the_generated_path(fake: FakeDriver):
    run, _ = launcher(fake)
    run(FakeTensor(), FakeTensor())
    fake.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(RuntimeError, match=r"launching k0 on cuda:0, grid \(2, 8, 1\)"):
        run(FakeTensor(), FakeTensor())


def test_threads_keep_apart(fake: FakeDriver):
    run, _ = launcher(fake, LaunchArgument("n", "scalar"))
    fake.current = 100

    def work(base: int) -> None:
        for step in range(300):
            run(FakeTensor(base + 16 * step), FakeTensor(base), base + 16 * step)

    threads = [threading.Thread(target=work, args=(base << 20,)) for base in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.launches) == 1200
    for launch in fake.launches:
        first, second = (struct.unpack("<Q", launch.arguments[i])[0] for i in (0, 4))
        assert struct.unpack("<i", launch.arguments[-1])[0] == first
        assert first >> 20 == second >> 20


def test_a_launch_of_another_thread_does_not_change_arguments_being_read(fake: FakeDriver):
    """The driver reads arguments while other Python threads run: here one launches in between."""
    run, _ = launcher(fake)
    fake.current = 100

    def other() -> None:
        for _ in range(2):
            run(FakeTensor(0x9000), FakeTensor(0xA000))

    def interrupt() -> None:
        fake.during_launch = lambda: None
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    run(FakeTensor(0x1000), FakeTensor(0x2000))
    fake.during_launch = interrupt
    run(FakeTensor(0x3000), FakeTensor(0x4000))
    expected = [(0x1000, 0x2000), (0x9000, 0xA000), (0x9000, 0xA000), (0x3000, 0x4000)]
    assert pointers(fake) == expected


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
