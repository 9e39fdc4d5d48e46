"""The cuda device over a fake driver: what it loads, packs and launches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from fake_driver import CUresult, FakeDriver, install, uninstall
from fake_kernels import MATRIX, VECTOR, kernel, matrix, numbers, vector
from hypothesis import given
from hypothesis import strategies as st

from tilec.executable.kernel import Facts, Parameter
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda.device import CudaDevice, cuda_device
from tilec.runtime.cuda.driver import CudaError
from tilec.runtime.cuda.module import load_kernel
from tilec.runtime.cuda.plan import changing_values, launch_plan, make_plan, start_plan
from tilec.runtime.errors import ArgumentError, DeviceError
from tilec.terms.dtypes import BY_MLIR


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver())
    uninstall()


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver([(9, 0), (8, 0)]))
    uninstall()


def test_a_launch_passes_every_slot_in_abi_order(fake: FakeDriver):
    made = fake.know(
        kernel(MATRIX, Parameter("n", "scalar", "i32"), VECTOR, Parameter("x", "scalar", "f64"))
    )
    device = cuda_device(0)
    device.launch(device.load(made), [matrix(), -3, vector(), 0.25], (2, 3, 4), 0x77)
    (launch,) = fake.launches
    assert numbers(launch.arguments, "QiiiiQid") == [0x1000, 5, 7, 7, -3, 0x2000, 9, 0.25]
    assert (launch.grid, launch.block, launch.stream) == ((2, 3, 4), (128, 1, 1), 0x77)


def test_64_bit_indices_and_static_sizes_take_no_slot(fake: FakeDriver):
    fixed = Parameter("a", "array", "f16", (5, None), (7, None))
    made = fake.know(kernel(fixed, index_bits=64))
    device = cuda_device(0)
    device.launch(device.load(made), [matrix()], 1)
    assert numbers(fake.launches[0].arguments, "Qqq") == [0x1000, 7, 1]


def test_no_parameters(fake: FakeDriver):
    device = cuda_device(0)
    device.launch(device.load(fake.know(kernel())), [], 3)
    assert fake.launches[0].arguments == []


def test_small_floats_and_bits_are_encoded(fake: FakeDriver):
    dtypes = ("bf16", "i1", "f8E5M2", "f8E4M3FN", "f16")
    made = fake.know(kernel(VECTOR, *(Parameter(d, "scalar", d) for d in dtypes)))
    device = cuda_device(0)
    device.launch(device.load(made), [vector(), 1.5, True, 2.0, -3.0, 0.1], 1)
    bf16, bit, e5m2, e4m3, half = fake.launches[0].arguments[2:]
    assert np.frombuffer(bf16, ml_dtypes.bfloat16) == 1.5
    assert bit == b"\1"
    assert np.frombuffer(e5m2, ml_dtypes.float8_e5m2) == 2.0
    assert np.frombuffer(e4m3, ml_dtypes.float8_e4m3fn) == -3.0
    assert np.frombuffer(half, np.float16) == np.float16(0.1)


parameters = st.lists(
    st.one_of(
        st.sampled_from(sorted(name for name, dtype in BY_MLIR.items() if dtype.packed)),
        st.lists(st.tuples(st.booleans(), st.booleans()), max_size=3),
    ),
    max_size=8,
)


@given(parameters, st.sampled_from([32, 64]), st.integers(0, 2**32))
def test_any_signature_packs_as_the_abi_says(kinds: list, bits: int, seed: int):
    """Against the parameters written out one by one with `struct`."""
    with pytest.MonkeyPatch.context() as patch:
        fake = install(patch, FakeDriver())
        random = np.random.default_rng(seed)
        made, values, expected = [], [], []
        for position, kind in enumerate(kinds):
            if isinstance(kind, str):
                value = float(random.integers(0, 2))
                value = int(value) if kind.startswith(("i", "ui")) else value
                made.append(Parameter(f"p{position}", "scalar", kind))
                values.append(value)
                encoded = {"bf16": 0x3F80, "f8E4M3FN": 0x38, "f8E5M2": 0x3C}.get(kind)
                if encoded is not None:
                    value = encoded * int(value)
                expected.append(struct.pack("<" + BY_MLIR[kind].packed, value))
                continue
            shape = tuple(int(n) for n in random.integers(1, 2**15, len(kind)))
            strides = tuple(int(n) for n in random.integers(-(2**10), 2**10, len(kind)))
            sizes = tuple(None if free else n for (free, _), n in zip(kind, shape, strict=True))
            steps = tuple(None if free else n for (_, free), n in zip(kind, strides, strict=True))
            made.append(Parameter(f"p{position}", "array", "i8", sizes, steps))
            values.append(ArrayView(0x10 * position, shape, strides, "i8", (CUDA, 0)))
            expected.append(struct.pack("<Q", 0x10 * position))
            for fixed, found in ((sizes, shape), (steps, strides)):
                expected += [
                    struct.pack("<q" if bits == 64 else "<i", value)
                    for known, value in zip(fixed, found, strict=True)
                    if known is None
                ]
        device = CudaDevice(0)
        ready = fake.know(kernel(*made, index_bits=bits))
        device.launch(device.load(ready), values, 1)
        assert fake.launches[0].arguments == expected
    uninstall()


def test_a_plan_is_used_again_with_other_pointers_and_scalars(fake: FakeDriver):
    made = fake.know(kernel(MATRIX, Parameter("n", "scalar", "i64")))
    device = cuda_device(0)
    plan = make_plan(device.load(made), [matrix(), 1], (1, 1, 1))
    for pointer, number in ((0x5000, 2**40), (0x6000, -1)):
        device.start(plan, [matrix(pointer), number], (1, 1, 1), 0)
        found = numbers(fake.launches[-1].arguments, "Qiiiq")
        assert found == [pointer, 5, 7, 7, number]
    assert changing_values([matrix(1), 2, matrix(3), 4.0]) == ([1, 3], [2, 4.0])


def test_a_plan_is_launched_on_its_own_gpu_whatever_is_current(two: FakeDriver):
    made = two.know(kernel(VECTOR))
    device = cuda_device(1)
    plan = make_plan(device.load(made), [vector(device=1)], (3, 1, 1))
    two.minds_contexts = False
    for current, stream in ((100, 5), (101, 5), (101, 6), (0, 6)):
        two.current = current
        launch_plan(plan, [0x4000 + stream], stream)
        assert two.launches[-1].context == 101
        assert two.launches[-1].stream == stream
        assert numbers(two.launches[-1].arguments, "Qi") == [0x4000 + stream, 9]
    empty = make_plan(device.load(made), [vector(device=1)], (3, 0, 1))
    launch_plan(empty, [0x4000], 5)
    assert len(two.launches) == 4


def test_wrong_arguments_are_refused_before_the_driver_sees_them(fake: FakeDriver):
    aligned = Parameter("a", "array", "f16", (None, None), (None, 1), Facts(16, (1, 1), (1, 1)))
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(aligned, Parameter("n", "scalar", "i32"))))
    for arguments, message in (
        ([matrix(0x1002), 1], "argument 'a': expected a pointer that is a multiple of 16"),
        ([matrix(), 1.5], "argument 'n': expected an integer"),
        ([vector(), 1], "argument 'a': expected dtype f16, found f32"),
        (["a", 1], "argument 'a': expected an array, found str"),
    ):
        with pytest.raises(ArgumentError, match=message):
            device.launch(loaded, arguments, 1)
    with pytest.raises(ValueError, match="grid size 65536 on axis y"):
        device.launch(loaded, [matrix(), 1], (1, 65536))
    assert fake.launches == []


def test_an_empty_grid_launches_nothing(fake: FakeDriver):
    device = cuda_device(0)
    device.launch(device.load(fake.know(kernel(VECTOR))), [vector()], (3, 0))
    assert fake.launches == []


# -- loading


def test_parts_of_programs_are_ctas(fake: FakeDriver):
    """In a launch, and in what a plan keeps for the next ones."""
    made = fake.know(kernel(MATRIX, stripes=4, cluster=(4, 1, 1)))
    device = cuda_device(0)
    loaded = device.load(made)
    device.launch(loaded, [matrix()], (3, 2, 5))
    plan = make_plan(loaded, [matrix()], (7, 1, 1), None)
    launch_plan(plan, [0x1000], 0)
    start_plan(plan, (2, 1, 1), 0)
    assert [launch.grid for launch in fake.launches] == [(12, 2, 5), (28, 1, 1), (8, 1, 1)]


@pytest.mark.parametrize(("grid", "launched"), [((2, 3, 1), 6), ((9, 3, 7), 64), ((4, 0, 1), None)])
def test_a_persistent_kernel_reads_its_grid(fake: FakeDriver, grid: tuple, launched: int | None):
    # 2048 threads on each of 4 multiprocessors hold 64 CTAs of 128.
    made = fake.know(kernel(MATRIX, persistent=True))
    device = cuda_device(0)
    device.launch(device.load(made), [matrix()], grid)
    if launched is None:
        assert fake.launches == []
        return
    (launch,) = fake.launches
    assert launch.grid == (launched, 1, 1)
    assert numbers(launch.arguments, "Qiiiiii") == [0x1000, 5, 7, 7, *grid]


def test_a_dynamic_kernel_is_launched_whole(fake: FakeDriver):
    made = fake.know(kernel(MATRIX, persistent=True, dynamic=True))
    device = cuda_device(0)
    loaded = device.load(made)
    device.launch(loaded, [matrix()], (9, 3, 7))
    (launch,) = fake.launches
    assert launch.grid == (189, 1, 1)
    assert numbers(launch.arguments, "Qiiiiii") == [0x1000, 5, 7, 7, 9, 3, 7]
    with pytest.raises(ValueError, match="more than 2147483647 programs"):
        device.launch(loaded, [matrix()], (2**20, 2**12, 1))


@pytest.mark.parametrize(
    ("grid", "launched"),
    [((2, 3, 1), 6), ((3, 1, 1), 4), ((1, 1, 3), 6), ((9, 30, 7), 8), ((0, 3, 1), None)],
)
def test_clusters_are_launched_whole(fake: FakeDriver, grid: tuple, launched: int | None):
    """Of 1024 threads a multiprocessor holds 2 CTAs, the whole GPU 3 + 1 clusters of 2."""
    made = fake.know(kernel(MATRIX, persistent=True, threads=1024, cluster=(2, 1, 1)))
    device = cuda_device(0)
    device.launch(device.load(made), [matrix()], grid)
    expected = [] if launched is None else [(launched, 1, 1)]
    assert [launch.grid for launch in fake.launches] == expected


def test_a_cluster_that_fits_nowhere_is_refused(fake: FakeDriver):
    made = fake.know(kernel(MATRIX, persistent=True, threads=1024, cluster=(8, 1, 1)))
    with pytest.raises(DeviceError, match="no cluster of 8 CTAs of k fits on cuda:0"):
        cuda_device(0).load(made)


def test_a_persistent_kernel_that_fits_nowhere_is_refused(fake: FakeDriver):
    made = fake.know(kernel(MATRIX, persistent=True, threads=4096))
    with pytest.raises(DeviceError, match="no CTA of k fits on a multiprocessor of cuda:0"):
        cuda_device(0).load(made)


def test_the_ptx_is_loaded_once_and_before_the_first_launch(fake: FakeDriver):
    device = cuda_device(0)
    made = fake.know(kernel(VECTOR))
    loaded = device.load(made)
    assert device.load(made) is loaded
    assert [image for image, _ in fake.modules.values()] == [b"// ptx\0"]
    assert fake.calls == [
        "capture mode CU_STREAM_CAPTURE_MODE_RELAXED",
        "load function",
        "capture mode CU_STREAM_CAPTURE_MODE_GLOBAL",
    ]


def test_large_shared_memory_is_asked_for(fake: FakeDriver):
    device = cuda_device(0)
    small = device.load(fake.know(kernel(shared_bytes=48 * 1024)))
    large = device.load(fake.know(kernel(shared_bytes=48 * 1024 + 16)))
    assert fake.attributes == {large.function: 48 * 1024 + 16}
    device.launch(large, [], 1)
    device.launch(small, [], 1)
    assert [launch.shared_bytes for launch in fake.launches] == [49168, 49152]


def test_the_assemblers_log_is_in_the_error(fake: FakeDriver):
    fake.jit_error = "ptxas fatal: line 3: unknown opcode 'foo'"
    with pytest.raises(CudaError, match=r"assembling the PTX of k \(sm_90a\) for cuda:0") as caught:
        cuda_device(0).load(kernel())
    assert "capability 9.0: CUDA_ERROR_INVALID_PTX (text of the driver)" in str(caught.value)
    assert str(caught.value).endswith("\nptxas fatal: line 3: unknown opcode 'foo'")
    assert caught.value.code == "CUDA_ERROR_INVALID_PTX"
    # The mode of stream capture is restored on the way out.
    assert fake.calls[-1] == "capture mode CU_STREAM_CAPTURE_MODE_GLOBAL"


def test_a_cubin_is_preferred_and_left_when_it_is_of_another_architecture(fake: FakeDriver):
    made = kernel(cubin=b"\x7fELF")
    load_kernel(made, cuda_device(0).context)
    fake.fail["cuModuleLoadData"] = CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    load_kernel(made, cuda_device(0).context)
    assert [image for image, _ in fake.modules.values()] == [b"\x7fELF", b"// ptx\0"]
    fake.fail["cuModuleLoadData"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(CudaError, match="loading the cubin of k: CUDA_ERROR_INVALID_VALUE"):
        load_kernel(made, cuda_device(0).context)


def test_drivers_that_load_code_at_once_are_not_asked_to(fake: FakeDriver):
    fake.version = 12030
    cuda_device(0).load(kernel())
    assert "load function" not in fake.calls
    uninstall()
    fake.version = 12040
    cuda_device(0).load(kernel())
    assert "load function" in fake.calls


def test_ptx_newer_than_the_driver_says_what_to_do(fake: FakeDriver):
    fake.version = 12020
    fake.fail["cuModuleLoadDataEx"] = CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    with pytest.raises(CudaError) as caught:
        cuda_device(0).load(replace(kernel(), ptx="//\n.version 8.6\n.target sm_90a\n"))
    assert str(caught.value).endswith(
        "the PTX is of version 8.6, the driver takes 8.2: update it to one of CUDA 12.7 or later, "
        "or compile with ptx_version=82"
    )


# -- launches that start early


def test_a_kernel_that_waits_by_itself_may_start_early(fake: FakeDriver):
    made = fake.know(kernel(VECTOR, starts_early=True, shared_bytes=64))
    device = cuda_device(0)
    loaded = device.load(made)
    for pointer, grid, stream in ((0x2000, (3, 1, 1), 0), (0x3000, (3, 1, 1), 7), (0x3000, 5, 7)):
        device.launch(loaded, [vector(pointer)], grid, stream)
    device.launch(device.load(fake.know(kernel(VECTOR, name="plain"))), [vector()], 1)
    assert [launch.is_early for launch in fake.launches] == [True, True, True, False]
    assert [launch.grid for launch in fake.launches] == [(3, 1, 1), (3, 1, 1), (5, 1, 1), (1, 1, 1)]
    assert [launch.stream for launch in fake.launches[:3]] == [0, 7, 7]
    assert [launch.shared_bytes for launch in fake.launches] == [64, 64, 64, 0]
    pointers = [numbers(launch.arguments, "Qi")[0] for launch in fake.launches]
    assert pointers == [0x2000, 0x3000, 0x3000, 0x2000]


def test_a_launch_of_many_rounds_does_not_start_early(fake: FakeDriver):
    # 64 CTAs run side by side: 256 programs are 4 rounds.
    made = fake.know(kernel(MATRIX, persistent=True, starts_early=True))
    plain = fake.know(kernel(MATRIX, name="plain", persistent=True))
    device = cuda_device(0)
    plan = make_plan(device.load(made), [matrix()], (2, 3, 1))
    for grid in ((2, 3, 1), (256, 1, 1), (257, 1, 1), (1, 1, 1), (1, 2, 200)):
        start_plan(plan, grid, 0)
    device.launch(device.load(plain), [matrix()], (1, 1, 1))
    early = [launch.is_early for launch in fake.launches]
    assert early == [True, True, False, True, False, False]


def test_a_driver_whose_graphs_cannot_hold_early_launches_gets_none(fake: FakeDriver):
    fake.version = 12020
    made = fake.know(kernel(VECTOR, starts_early=True))
    device = cuda_device(0)
    device.launch(device.load(made), [vector()], 1)
    assert [launch.is_early for launch in fake.launches] == [False]


def test_a_plan_of_an_early_launch_follows_its_grid_and_stream(fake: FakeDriver):
    made = fake.know(kernel(VECTOR, starts_early=True))
    device = cuda_device(0)
    plan = make_plan(device.load(made), [vector()], (2, 1, 1))
    for grid, stream in (((2, 1, 1), 5), ((2, 1, 1), 6), ((4, 1, 1), 6)):
        start_plan(plan, grid, stream)
    assert [(launch.grid[0], launch.stream) for launch in fake.launches] == [(2, 5), (2, 6), (4, 6)]
