"""The cuda device over a fake driver: what it loads, packs and launches, and in which context."""

from __future__ import annotations

import gc
import struct
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import ml_dtypes
import numpy as np
import pytest
from fake_driver import CUresult, FakeDriver, install, uninstall
from hypothesis import given
from hypothesis import strategies as st

from tilec.executable.kernel import CompiledKernel, Facts, Parameter
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda.device import CudaDevice, cuda_device
from tilec.runtime.cuda.driver import CudaError, no_device_reason
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


def kernel(*parameters: Parameter, name: str = "k", **changes: object) -> CompiledKernel:
    fields: dict[str, object] = {"threads": 128, "shared_bytes": 0, "index_bits": 32, **changes}
    return CompiledKernel(name, "sm_90a", "// ptx", parameters, None, **fields)  # type: ignore[arg-type]


MATRIX = Parameter("a", "array", "f16", (None, None), (None, 1))
VECTOR = Parameter("v", "array", "f32", (None,), (1,))


def matrix(pointer: int = 0x1000, shape: tuple[int, int] = (5, 7), device: int = 0) -> ArrayView:
    return ArrayView(pointer, shape, (shape[1], 1), "f16", (CUDA, device), "tilec")


def vector(pointer: int = 0x2000, size: int = 9, device: int = 0) -> ArrayView:
    return ArrayView(pointer, (size,), (1,), "f32", (CUDA, device), "tilec")


def numbers(launch_arguments: list[bytes], formats: str) -> list[float]:
    return [
        struct.unpack("<" + code, raw)[0]
        for code, raw in zip(formats, launch_arguments, strict=True)
    ]


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


# -- contexts and errors


def test_the_callers_context_is_back_after_a_launch(two: FakeDriver):
    two.current = 555
    device = cuda_device(1)
    device.launch(device.load(two.know(kernel(VECTOR))), [vector(device=1)], 1)
    assert (two.current, two.stack) == (555, [])
    assert len(two.launches) == 1
    assert device.compute_capability == (8, 0)
    assert device.name == "cuda:1"


def test_a_thread_without_a_context_gets_the_primary_one(two: FakeDriver):
    device = cuda_device(1)
    device.load(kernel())
    assert two.current == 101


def test_a_failed_launch_says_what_was_launched(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(shared_bytes=100)))
    fake.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(CudaError) as caught:
        device.launch(loaded, [], (2, 1))
    assert str(caught.value) == (
        "launching k on cuda:0, grid (2, 1, 1), 128 threads, 100 bytes of shared memory: "
        "CUDA_ERROR_INVALID_VALUE (text of the driver)"
    )


def test_synchronize_reports_a_failed_kernel(fake: FakeDriver):
    cuda_device(0).synchronize()
    assert fake.calls == ["synchronize context 100"]
    fake.fail["cuCtxSynchronize"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(CudaError, match="waiting for cuda:0"):
        cuda_device(0).synchronize()


def test_reasons_for_no_gpu(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver):
    assert no_device_reason() is None
    with pytest.raises(DeviceError, match="there is no cuda:3; the driver sees 1 GPUs"):
        cuda_device(3)
    fake.devices.clear()
    assert no_device_reason() == "the driver sees no GPU"
    install(monkeypatch, FakeDriver()).fail["cuInit"] = CUresult.CUDA_ERROR_NO_DEVICE
    assert no_device_reason() == "the NVIDIA driver does not start (CUDA_ERROR_NO_DEVICE)"
    uninstall()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)  # type: ignore[arg-type]
    assert "cuda-python is not installed" in (no_device_reason() or "")
    uninstall()
    broken = FakeDriver()
    broken.cuInit = lambda flags: (_ for _ in ()).throw(RuntimeError("no libcuda\nmore"))  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", broken)  # type: ignore[arg-type]
    assert no_device_reason() == "the NVIDIA driver library does not load (no libcuda)"


def test_forks_of_a_process_that_has_used_the_driver_do_not_ask_it(fake: FakeDriver):
    """On a machine with a GPU commands that ask whether there is one died in the forks of tests."""
    assert no_device_reason() is None
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        reason = pool.submit(no_device_reason).result()
    assert reason == "CUDA does not work in a fork of a process that has used it; spawn it"
    assert no_device_reason() is None


def test_work_of_a_named_producer_comes_first(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(VECTOR)))
    fake.calls.clear()
    produced = ArrayView(0x2000, (9,), (1,), "f32", (CUDA, 0), "numba", producer_stream=7)
    device.launch(loaded, [produced], 1, 9)
    assert fake.calls == ["record on 7", "9 waits"]
    device.launch(loaded, [produced], 1, 7)
    assert len(fake.calls) == 2


def test_launches_on_jax_arrays_wait(fake: FakeDriver):
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(VECTOR)))
    fake.calls.clear()
    device.launch(loaded, [ArrayView(0x2000, (9,), (1,), "f32", (CUDA, 0), "jax")], 1, 9)
    assert fake.calls == ["synchronize stream 9"]


def test_threads_do_not_share_a_plans_memory(fake: FakeDriver):
    """Each thread packs into its own block: two threads, many launches, no mixed arguments."""
    device = cuda_device(0)
    loaded = device.load(fake.know(kernel(VECTOR, Parameter("n", "scalar", "i64"))))
    fake.current = 100

    def work(base: int) -> None:
        for step in range(200):
            device.launch(loaded, [vector(0x10000 * base + step), 0x10000 * base + step], 1)

    threads = [threading.Thread(target=work, args=(base,)) for base in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.launches) == 800
    for launch in fake.launches:
        pointer, _, number = numbers(launch.arguments, "Qiq")
        assert pointer == number


# -- arrays on the device


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int64", "bool"])
@pytest.mark.parametrize("shape", [(4, 6), (0, 3), (), (7,)])
def test_arrays_go_to_the_device_and_back(fake: FakeDriver, dtype: str, shape: tuple[int, ...]):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    host = np.random.default_rng(1).integers(0, 2, shape).astype(kind)
    device = cuda_device(0)
    array = device.array(host)
    assert (array.shape, array.device, array.framework) == (shape, (CUDA, 0), "tilec")
    back = array.numpy()
    assert back.dtype == kind
    np.testing.assert_array_equal(back, host)
    target = np.zeros_like(host)
    device.copy_back(array, target)
    np.testing.assert_array_equal(target, host)


def test_strides_are_kept_and_gaps_not_touched(fake: FakeDriver):
    host = np.arange(48, dtype=np.float32).reshape(6, 8)
    device = cuda_device(0)
    part = host.T[1:7:2, ::3]
    array = device.array(part)
    assert array.strides == (2, 24)
    np.testing.assert_array_equal(array.numpy(), part)
    np.testing.assert_array_equal(array.numpy(), host.T[1:7:2, ::3])
    expected = host.copy()
    expected.T[1:7:2, ::3] = part
    host[...] = -1
    expected[...] = -1
    expected.T[1:7:2, ::3] = array.numpy()
    device.copy_back(array, part)
    np.testing.assert_array_equal(host, expected)


def test_unusable_copies(fake: FakeDriver):
    device = cuda_device(0)
    with pytest.raises(ValueError, match="negative strides"):
        device.array(np.arange(4)[::-1])
    with pytest.raises(ValueError, match="unknown dtype 'f12'"):
        device.empty((3,), "f12")
    array = device.empty((3,), "float16")
    assert array.dtype == "f16"
    with pytest.raises(ValueError, match="expected a host array of shape"):
        device.copy_back(array, np.zeros(4, np.float16))
    frozen = np.zeros(3, np.float16)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        device.copy_back(array, frozen)


def test_memory_is_freed_with_the_array(fake: FakeDriver):
    array = cuda_device(0).empty((1000,), "f32")
    assert len(fake.memory) == 1
    del array
    gc.collect()
    assert fake.memory == {}


def test_other_libraries_take_device_arrays(fake: FakeDriver):
    array = cuda_device(0).empty((2, 3), "f32")
    interface = array.__cuda_array_interface__
    assert interface["typestr"] == "<f4"
    assert interface["strides"] == (12, 4)
    assert interface["data"] == (array.pointer, False)
    assert not hasattr(cuda_device(0).empty((2,), "bf16"), "__cuda_array_interface__")


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
