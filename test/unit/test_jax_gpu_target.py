"""What JAX makes of a launch on a GPU, as far as it goes without one: XLA itself calls the handler.

XLA's CPU has no streams: asked for one, the handler gets XLA's number of the device instead.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, install, uninstall
from xla_frames import Driver

import tilec
import tilec.language as tl
from tilec.jax.description import ArrayArgument
from tilec.jax.xla_ffi import Interface
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.device import cuda_device

jax = pytest.importorskip("jax")
jnp = jax.numpy
gpu_target = pytest.importorskip("tilec.jax.gpu_target")
primitive = pytest.importorskip("tilec.jax.primitive")
call = pytest.importorskip("tilec.jax").call
launch_seen = pytest.importorskip("tilec.jax.kernel_call").launch_seen
New = jax.ShapeDtypeStruct
SIZE = 36


class Adder(Driver):
    """A driver whose only kernel is `y[0:n] = s * x[0:n] + y[0:n]`, whatever it is called."""

    def cuLaunchKernelEx(self, config: Any, function: int, table: Any, extra: Any) -> int:
        result = super().cuLaunchKernelEx(config, function, table, extra)
        x, n, y, _, s = (int.from_bytes(a, "little") for a in self.launches[-1][-1])
        source, target = ((ctypes.c_float * n).from_address(place) for place in (x, y))
        factor = np.array([s], np.uint32).view(np.float32)
        np.asarray(target)[:] += factor * np.asarray(source)
        return result


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Adder]:
    """JAX's CPU gets what its GPUs get, on a driver without one."""
    install(monkeypatch, FakeDriver())
    driver = Adder((8, 4, 8, 4, 4))
    found = gpu_target.interface()
    places = {**found.places, "XLA_FFI_Stream_Get": found.places["XLA_FFI_DeviceOrdinal_Get"]}
    monkeypatch.setattr(gpu_target, "interface", lambda: Interface(found.minor, places))
    monkeypatch.setattr(gpu_target, "driver_functions", lambda: driver.addresses)
    monkeypatch.setattr(gpu_target, "gpus", lambda _: [cuda_device(0)])
    monkeypatch.setattr(gpu_target, "PLATFORM", "cpu")
    lower = primitive.mlir.register_lowering
    lower(primitive.launch_p, primitive._lower_to_gpu, platform="cpu")
    yield driver
    lower(primitive.launch_p, primitive._lower_to_emulator, platform="cpu")
    uninstall()


def adder() -> Any:
    @tilec.kernel(grid=lambda y: tl.cdiv(y.shape[0], 32))
    def add(x: tl.array, y: tl.array, s: tl.f32):
        i = tl.program_id(0) * 32
        tl.store(y, i, tl.load(x, i, 32) * s + tl.load(y, i, 32))

    return add


def test_xla_calls_the_handler(driver: Adder):
    add = adder()
    x, y = (np.random.default_rng(n).standard_normal(SIZE).astype(np.float32) for n in (0, 1))

    def step(x: Any, y: Any) -> Any:
        return call(add, jnp.sin(x), y, 2.0) - 1

    np.testing.assert_allclose(jax.jit(step)(x, y), np.sin(x) * 2 + y - 1, rtol=1e-5, atol=1e-6)
    (launch,) = driver.launches
    assert launch[0] == 100
    assert launch[2:4] == ((2, 1, 1), (32, 1, 1))
    turns = jax.jit(lambda x, y: jax.lax.fori_loop(0, 3, lambda _, y: call(add, x, y, 1.0), y))
    np.testing.assert_allclose(turns(x, y), 3 * x + y, rtol=1e-5, atol=1e-6)
    batch = jax.jit(jax.vmap(lambda x: call(add, x, y, 3.0)))
    both = np.stack([x, y])
    np.testing.assert_allclose(batch(both), 3 * both + y, rtol=1e-5, atol=1e-6)
    assert len(driver.launches) == 1 + 3 + 2
    rows = jax.vmap(lambda x, y: call(add, x, y, 3.0), (None, 0))
    table = jax.jit(jax.vmap(rows, (0, None)))(both, both[::-1])
    np.testing.assert_allclose(table, 3 * both[:, None] + both[::-1], rtol=1e-5, atol=1e-6)


def test_a_kernel_may_see_arrays_otherwise_than_they_lie(driver: Adder):
    """Of a product, rows are merged and operands transposed: strides, on the arrays themselves."""
    x, y = (np.random.default_rng(n).standard_normal((9, 8)).astype(np.float32) for n in (0, 1))
    memory = {
        "x": ArrayArgument("x", (9, 8), "f32", True),
        "y": ArrayArgument("y", (9, 8), "f32", True),
    }
    line = ArrayView(64, (SIZE,), (1,), "f32", ("cuda", 0), "jax")
    values = {"x": line, "y": line, "s": 3.0}
    found = jax.jit(lambda x, y: launch_seen(adder(), values, memory, {"x": x, "y": y}))(x, y)
    expected = y.copy()
    expected.reshape(-1)[:SIZE] += 3 * x.reshape(-1)[:SIZE]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_name_stands_for_one_launch(driver: Adder):
    add, x = adder(), jnp.ones(SIZE + 4)

    def text(s: float, size: int = SIZE) -> str:
        return jax.jit(lambda x: call(add, x, x, s)).lower(x[:size]).as_text()

    texts = text(2.0), text(2.0), text(3.0), text(2.0, SIZE + 4)
    names = [re.findall(r"@tilec\.add\.\w+", found) for found in texts]
    assert names[0] == names[1]
    assert len({name for (name,) in names}) == 3
    assert "output_operand_aliases" in text(2.0)


def test_what_the_driver_refuses_is_an_error_of_jax(driver: Adder):
    driver.fail["cuLaunchKernelEx"] = 700
    add, x = adder(), jnp.ones(SIZE)
    with pytest.raises(jax.errors.JaxRuntimeError, match="launching add on cuda:0: CUresult 700"):
        jax.jit(lambda x: call(add, x, x, 7.0))(x).block_until_ready()
