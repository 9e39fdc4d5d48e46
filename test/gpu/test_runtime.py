"""The runtime on a real GPU: arrays of every library, streams, graphs, contexts, launch overhead.

`python test/gpu/test_runtime.py` runs it with cuda-python alone; what needs NumPy, torch, CuPy, JAX
or a second GPU is skipped where that is missing. pytest runs the same functions.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import itertools
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "unit")]

from gpu_marks import needs_gpu  # noqa: E402
from runtime_kernels import ECHO_VALUES, axpy, echo, eight, mapped, reverse  # noqa: E402
from torch_checks import run_tests  # noqa: E402

from tilec.runtime.arrays import HOST, ArrayView  # noqa: E402
from tilec.runtime.artefact import Artefact, load, save  # noqa: E402
from tilec.runtime.cuda.driver import CudaError, device_count, load_driver  # noqa: E402
from tilec.runtime.device import device  # noqa: E402
from tilec.runtime.errors import ArgumentError  # noqa: E402
from tilec.runtime.scalars import encode  # noqa: E402

pytestmark = needs_gpu()

SIZE = 1000


def module(name: str) -> Any:
    """An optional library; the test that asks is skipped where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest(f"needs {name}") from None


def kernel() -> Artefact:
    return Artefact("axpy", [axpy()])


def host_floats(values: list[float]) -> tuple[Any, ArrayView]:
    """Floats in host memory, described without NumPy."""
    memory = (ctypes.c_float * len(values))(*values)
    view = ArrayView(ctypes.addressof(memory), (len(values),), (1,), "f32", (HOST, 0), owner=memory)
    return memory, view


def read_back(array: Any, kind: Any) -> list[float]:
    """The elements of a device array, without NumPy."""
    device("cuda").synchronize()
    memory = (kind * array.shape[0])()
    (result,) = load_driver().cuMemcpyDtoH(
        ctypes.addressof(memory), array.pointer, ctypes.sizeof(memory)
    )
    assert not result
    return list(memory)


# -- cuda-python alone


def test_device_arrays_without_any_library():
    gpu = device("cuda")
    _, x = host_floats([float(n) for n in range(SIZE)])
    _, y = host_floats([1.0] * SIZE)
    on_x, on_y = gpu.array(x), gpu.array(y)
    run = kernel()
    for _ in range(3):
        run(on_x, on_y, 2.0, SIZE - 1)
    found = read_back(on_y, ctypes.c_float)
    assert found == [1.0 + 6.0 * n for n in range(SIZE - 1)] + [1.0]


def test_every_scalar_dtype_arrives():
    gpu = device("cuda")
    out = gpu.empty((len(ECHO_VALUES),), "i64")
    Artefact("echo", [echo()])[1](out, *ECHO_VALUES.values())
    found = read_back(out, ctypes.c_int64)
    for bits, (dtype, value) in zip(found, ECHO_VALUES.items(), strict=True):
        expected = encode(dtype, value)
        assert bits.to_bytes(8, "little", signed=True)[: len(expected)] == expected, dtype


def test_large_dynamic_shared_memory():
    gpu = device("cuda")
    for count in (1000, 20_000, 40_000):
        out = gpu.empty((count,), "i32")
        Artefact("reverse", [reverse(count)])(out)
        assert read_back(out, ctypes.c_int32) == list(range(count))[::-1]
    out = gpu.empty((200_000,), "i32")
    expect(
        CudaError,
        "asking for 800000 bytes of shared memory",
        Artefact("r", [reverse(200_000)]),
        out,
    )


def test_the_assemblers_words_are_in_the_error():
    broken = replace(axpy(), ptx=axpy().ptx.replace("fma.rn.f32", "fma.rn.f33"))
    message = expect(CudaError, "assembling the PTX of axpy", device("cuda").load, broken)
    assert "fma.rn" in message or "f33" in message or "syntax" in message.lower(), message


def test_64_bit_indices():
    gpu = device("cuda")
    x, y = gpu.array(host_floats([1.0] * 5)[1]), gpu.array(host_floats([2.0] * 5)[1])
    Artefact("axpy", [axpy(index_bits=64)])(x, y, 3.0, 5)
    assert read_back(y, ctypes.c_float) == [5.0] * 5


def test_a_cubin_of_another_architecture_is_left_for_the_ptx():
    gpu = device("cuda")
    x, y = gpu.array(host_floats([1.0] * 5)[1]), gpu.array(host_floats([2.0] * 5)[1])
    elf = b"\x7fELF\x02\x01\x01" + bytes(57)
    try:
        Artefact("axpy", [replace(axpy(), cubin=elf)])(x, y, 3.0, 5)
    except CudaError as error:
        assert "loading the cubin of axpy" in str(error)  # noqa: PT017 - runs without pytest
    else:
        assert read_back(y, ctypes.c_float) == [5.0] * 5


def test_bare_pointers_are_located_by_the_driver():
    gpu = device("cuda")
    x, y = gpu.array(host_floats([1.0] * SIZE)[1]), gpu.array(host_floats([2.0] * SIZE)[1])
    bare = [SimpleNamespace(__cuda_array_interface__=a.__cuda_array_interface__) for a in (x, y)]
    kernel()(*bare, 3.0, SIZE)
    assert read_back(y, ctypes.c_float) == [5.0] * SIZE


def test_threads_launch_without_setting_a_device():
    gpu = device("cuda")
    run = kernel()
    pairs = []
    for number in range(4):
        x = gpu.array(host_floats([float(number + 1)] * SIZE)[1])
        pairs.append((x, gpu.array(host_floats([0.0] * SIZE)[1])))
    failures: list[BaseException] = []

    def work(x: Any, y: Any) -> None:
        try:
            for _ in range(200):
                run(x, y, 1.0, SIZE)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for number, (_, y) in enumerate(pairs):
        assert read_back(y, ctypes.c_float) == [200.0 * (number + 1)] * SIZE


def test_memory_comes_back():
    gpu = device("cuda")
    driver = load_driver()
    gpu.empty((1,), "f32")
    gc.collect()
    _, before, _ = driver.cuMemGetInfo()
    for _ in range(50):
        gpu.empty((1 << 26,), "f32")
    gc.collect()
    _, after, _ = driver.cuMemGetInfo()
    assert before - after < 1 << 28


CRASH = """
import sys; sys.path[:0] = {paths!r}
import ctypes, test_runtime as t
from dataclasses import replace
gpu = t.device("cuda")
x = gpu.array(t.host_floats([1.0] * 4)[1])
wild = replace(x, pointer=64, owner=None)
t.kernel()(x, wild, 1.0, 4)
try:
    gpu.synchronize()
except t.CudaError as error:
    print(error.code, error)
"""


def test_a_crashing_kernel_is_an_exception():
    paths = [str(ROOT), str(ROOT / "test" / "unit"), str(ROOT / "test" / "gpu")]
    ran = subprocess.run(
        [sys.executable, "-c", CRASH.format(paths=paths)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "waiting for cuda:0: CUDA_ERROR_ILLEGAL_ADDRESS" in ran.stdout, ran.stdout + ran.stderr


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mlir", "llvmlite", "numpy", "torch"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Block())
sys.path[:0] = {paths!r}
import ctypes, tilec, test_runtime as t
gpu = tilec.device("cuda")
x, y = gpu.array(t.host_floats([1.0] * 300)[1]), gpu.array(t.host_floats([2.0] * 300)[1])
tilec.load({file!r})(x, y, 3.0, 300)
print(sum(t.read_back(y, ctypes.c_float)))
"""


def test_an_artefact_runs_where_only_cuda_python_is():
    paths = [str(ROOT), str(ROOT / "test" / "unit"), str(ROOT / "test" / "gpu")]
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "axpy.tilec")
        save(file, [axpy("sm_100a"), axpy("sm_80")])
        ran = subprocess.run(
            [sys.executable, "-c", BLOCKED.format(paths=paths, file=file)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ran.stdout.strip() == "1500.0", ran.stdout + ran.stderr
        assert load(file).name == "axpy"


# -- NumPy


def test_numpy_arrays_go_over_and_back():
    np = module("numpy")
    gpu = device("cuda")
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, SIZE), np.float32)
    on_x, on_y = gpu.array(x), gpu.array(y)
    kernel()(on_x, on_y, 0.5, SIZE)
    np.testing.assert_allclose(on_y.numpy(), y + 0.5 * x.astype(np.float64), rtol=1e-5, atol=1e-6)
    gpu.copy_back(on_y, y)
    np.testing.assert_array_equal(on_y.numpy(), y)
    wide = random.standard_normal((8, 6), np.float32)
    np.testing.assert_array_equal(gpu.array(wide.T[::2, 1:]).numpy(), wide.T[::2, 1:])
    expect(
        ArgumentError,
        "argument 'x': expected an array on cuda:0, found one in host",
        kernel(),
        x,
        y,
        1.0,
        3,
    )


# -- torch


def tensors(torch: Any) -> tuple[Any, Any]:
    return torch.randn(SIZE, device="cuda"), torch.randn(SIZE, device="cuda")


def test_torch_current_and_other_streams():
    torch = module("torch")
    run = kernel()
    x, y = tensors(torch)
    expected = y.double() + 3 * 0.5 * x.double()
    for _ in range(3):
        run(x, y, 0.5, SIZE)
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)
    side = torch.cuda.Stream()
    for given in (False, True):
        x, y = torch.ones(SIZE, device="cuda"), torch.zeros(SIZE, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            # The kernel must wait for this, and does only on the same stream.
            torch.cuda._sleep(20_000_000)
            y += 1
            if not given:
                run(x, y, 1.0, SIZE)
        if given:
            run(x, y, 1.0, SIZE, stream=side)
        side.synchronize()
        assert torch.equal(y, torch.full_like(y, 2.0))


def test_torch_graph_capture():
    torch = module("torch")
    for warm in (True, False):
        run = kernel()
        x, y = torch.ones(SIZE, device="cuda"), torch.zeros(SIZE, device="cuda")
        if warm:
            run(x, y, 0.0, SIZE)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run(x, y, 1.0, SIZE)
            run(x, y, 2.0, SIZE)
        assert torch.equal(y, torch.zeros_like(y))
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, torch.full_like(y, 9.0))


def test_torch_views_and_wrong_arguments():
    torch = module("torch")
    run = kernel()
    base = torch.zeros(2 * SIZE + 1, device="cuda")
    run(torch.ones(SIZE, device="cuda"), base[1 : SIZE + 1], 2.0, SIZE)
    assert base.sum().item() == 2.0 * SIZE
    x, y = tensors(torch)
    for wrong, message in (
        ((x.half(), y, 1.0, 3), "argument 'x': expected dtype f32, found f16"),
        ((x, y[::2], 1.0, 3), "argument 'y': expected stride 1 on axis 0, found 2"),
        ((x, y.cpu(), 1.0, 3), "argument 'y': expected an array on cuda:0 like 'x'"),
        ((x, y, "1", 3), "argument 'alpha': expected a number"),
        ((x, y, 1.0, 2**31), "argument 'n': 2147483648 is not in the range of i32"),
    ):
        expect(ArgumentError, message, run, *wrong)
    run(x.requires_grad_(), torch.nn.Parameter(y), 1.0, 3)
    torch.cuda.synchronize()


def test_a_named_producer_is_waited_for():
    torch = module("torch")
    side, ours = torch.cuda.Stream(), torch.cuda.Stream()
    x, y = torch.zeros(SIZE, device="cuda"), torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        x += 1
    fields = {**x.__cuda_array_interface__, "version": 3, "stream": side.cuda_stream}
    produced = SimpleNamespace(__cuda_array_interface__=fields)
    kernel()(produced, y, 1.0, SIZE, stream=ours)
    torch.cuda.synchronize()
    assert torch.equal(y, torch.ones_like(y))


# -- CuPy and JAX


def test_cupy_arrays_and_streams():
    cupy = module("cupy")
    run = kernel()
    x, y = cupy.arange(SIZE, dtype="f4"), cupy.ones(SIZE, dtype="f4")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        y += 1
        for _ in range(3):
            run(x, y, 2.0, SIZE)
        stream.synchronize()
    assert (y.get() == 2 + 6 * x.get()).all()


def test_jax_arrays():
    jax = module("jax")
    if jax.default_backend() != "gpu":
        raise unittest.SkipTest("needs JAX with CUDA")
    x = jax.numpy.arange(SIZE, dtype="float32") * 2
    y = jax.numpy.ones(SIZE, dtype="float32") + 0
    run = kernel()
    for _ in range(3):
        run(x, y, 1.0, SIZE)
    assert bool((y == 1 + 3 * x).all())


# -- several GPUs


def test_the_gpu_of_the_arrays_decides():
    if device_count() < 2:
        raise unittest.SkipTest("needs two GPUs")
    torch = module("torch")
    run = kernel()
    for _ in range(3):
        for index in (0, 1):
            x, y = (
                torch.ones(SIZE, device=f"cuda:{index}"),
                torch.ones(SIZE, device=f"cuda:{index}"),
            )
            assert torch.cuda.current_device() == 0
            run(x, y, 2.0, SIZE)
            assert torch.cuda.current_device() == 0
            assert y.sum().item() == 3.0 * SIZE
    x, y = torch.ones(SIZE, device="cuda:0"), torch.ones(SIZE, device="cuda:1")
    expect(ArgumentError, "argument 'y': expected an array on cuda:0 like 'x'", run, x, y, 1.0, 3)


# -- launch overhead


def microseconds(launch: Callable[[], Any], count: int = 10_000, batch: int = 250) -> float:
    """Median CPU time of a launch in batches, the queue drained between them."""
    gpu = device("cuda")
    for _ in range(200):
        launch()
    gpu.synchronize()
    times = []
    for _ in range(count // batch):
        begin = time.perf_counter()
        for _ in range(batch):
            launch()
        times.append((time.perf_counter() - begin) / batch * 1e6)
        gpu.synchronize()
    return statistics.median(times)


def test_launch_overhead():
    """Three arrays and five integers, everything checked, next to the bare driver call."""
    gpu = device("cuda")
    run = Artefact("eight", [eight()])
    arrays = [gpu.empty((1024,), "f32") for _ in range(3)]
    run(*arrays, 1, 2, 3, 4, 5)
    plan = run.known_plan(*arrays, 1, 2, 3, 4, 5)
    bare, function = load_driver().cuLaunchKernel, plan.loaded.function
    arguments = plan.launch.arguments
    a, b, c = arrays
    rows = {
        "cuLaunchKernel, nothing packed": lambda: bare(
            function, 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0
        ),
        "tilec, DeviceArray": lambda: run(a, b, c, 1, 2, 3, 4, 5),
        "tilec, DeviceArray, run[grid]": lambda: run[2](a, b, c, 1, 2, 3, 4, 5),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        t, u, v = (torch.empty(1024, device="cuda") for _ in range(3))
        rows["tilec, torch"] = lambda: run(t, u, v, 1, 2, 3, 4, 5)
    found = {name: microseconds(launch) for name, launch in rows.items()}
    print("\nlaunch of 3 arrays and 5 integers, CPU microseconds (median):")
    for name, value in found.items():
        print(f"  {name:32} {value:6.2f}")
    assert max(found.values()) < 20


def test_launch_overhead_with_tensor_maps():
    """Three matrices and a tensor map of each: the same arrays, and two sets of them in turn."""
    gpu = device("cuda")
    if gpu.compute_capability < (9, 0):
        raise unittest.SkipTest("needs tensor maps")
    run = Artefact("mapped", [mapped()])
    a, b, c, d = (gpu.empty((512, 512), "f16") for _ in range(4))
    turns = itertools.cycle([(a, b, c), (b, c, d)])
    rows = {
        "tilec, DeviceArray": lambda: run(a, b, c),
        "tilec, DeviceArray, in turn": lambda: run(*next(turns)),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        t, u, v = (torch.empty(512, 512, dtype=torch.half, device="cuda") for _ in range(3))
        rows["tilec, torch"] = lambda: run(t, u, v)
    found = {name: microseconds(launch) for name, launch in rows.items()}
    print("\nlaunch of 3 matrices and their tensor maps, CPU microseconds (median):")
    for name, value in found.items():
        print(f"  {name:32} {value:6.2f}")
    assert max(found.values()) < 20


def expect(kind: type[Exception], message: str, call: Callable[..., Any], *arguments: Any) -> str:
    """The text of the exception the call raises; it must be of that kind and hold `message`."""
    try:
        call(*arguments)
    except kind as error:
        assert message in str(error), str(error)  # noqa: PT017 - runs without pytest
        return str(error)
    raise AssertionError(f"expected {kind.__name__}: {message}")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
