"""The emulator as a device: host arrays of any kind, in place."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from runtime_kernels import ECHO_VALUES, axpy, echo, reverse

import tilec
import tilec.language as tl
from tilec.executable.kernel import CompiledKernel, Facts, Parameter
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.device import device
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError
from tilec.runtime.errors import ArgumentError
from tilec.runtime.host import numpy_dtype

EMULATOR = EmulatorDevice()


def vectors(size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal(size, np.float32), random.standard_normal(size, np.float32)


@pytest.mark.parametrize("size", [1, 31, 128, 129, 1000])
@pytest.mark.parametrize("index_bits", [32, 64])
def test_results_are_written_in_place(size: int, index_bits: int):
    x, y = vectors(size)
    expected = np.float64(0.5) * x + y
    EMULATOR.launch(EMULATOR.load(axpy(index_bits=index_bits)), [x, y, 0.5, size], -(-size // 128))
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_a_part_of_an_array():
    size = 100
    x, y = vectors(4 * size)
    before = y.copy()
    EMULATOR.launch(EMULATOR.load(axpy()), [x[size:], y[2 * size :], 2.0, size], 1)
    np.testing.assert_array_equal(y[: 2 * size], before[: 2 * size])
    np.testing.assert_array_equal(y[3 * size :], before[3 * size :])
    np.testing.assert_allclose(
        y[2 * size : 3 * size], before[2 * size : 3 * size] + 2 * x[size : 2 * size], rtol=1e-6
    )


def test_a_wrong_access_names_the_array():
    x, y = vectors(8)
    y.setflags(write=False)
    with pytest.raises(EmulatorError, match=r"read-only array: .* of argument 'y', which has 32 b"):
        EMULATOR.launch(EMULATOR.load(axpy()), [x, y, 2.0, 8], 1)


def test_a_kernel_is_decoded_once():
    kernel = axpy()
    assert EMULATOR.load(kernel).program is EMULATOR.load(kernel).program


def test_kernels_that_do_not_run_any_more_are_let_go():
    kernel = axpy()
    first = weakref.ref(EMULATOR.load(kernel).program)
    for number in range(40):
        EMULATOR.load(replace(kernel, ptx=f"{kernel.ptx}\n// {number}"))
    gc.collect()
    assert first() is None


def test_arguments_are_checked():
    loaded = EMULATOR.load(axpy(facts=Facts(16, (4,), (1,))))
    x, y = vectors(8)
    for arguments, message in (
        ([x.astype(np.float64), y, 1.0, 8], "argument 'x': expected dtype f32, found f64"),
        ([x[:7], y, 1.0, 8], "'x': expected a size on axis 0 that is a multiple of 4, found 7"),
        ([x, y[::2], 1.0, 4], "argument 'y': expected stride 1 on axis 0, found 2"),
        ([x, y, 1.0, 2**31], "argument 'n': 2147483648 is not in the range of i32"),
        ([ArrayView(0, (8,), (1,), "f32", (CUDA, 0)), y, 1.0, 8], "host memory for the emulator"),
    ):
        with pytest.raises(ArgumentError, match=message):
            EMULATOR.launch(loaded, arguments, 1)


def test_a_wrong_access_names_the_argument_and_the_array_is_left_alone():
    x, y = vectors(100)
    before = y.copy()
    with pytest.raises(EmulatorError, match="out of bounds"):
        EMULATOR.launch(EMULATOR.load(axpy()), [x[:50], y, 1.0, 100], 1)
    np.testing.assert_array_equal(y, before)
    y.flags.writeable = False
    with pytest.raises(EmulatorError, match="read-only"):
        EMULATOR.launch(EMULATOR.load(axpy()), [x, y, 1.0, 100], 1)


def test_an_empty_grid_runs_nothing():
    EMULATOR.launch(EMULATOR.load(axpy()), [*vectors(0), 1.0, 0], 0)


def test_every_scalar_dtype_arrives():
    out = np.zeros(len(ECHO_VALUES), np.int64)
    EMULATOR.launch(EMULATOR.load(echo()), [out, *ECHO_VALUES.values()], 1)
    raw = out.tobytes()
    for position, (dtype, value) in enumerate(ECHO_VALUES.items()):
        found = np.frombuffer(raw, numpy_dtype(dtype), 1, 8 * position)[0]
        assert float(found) == (np.float32(value) if dtype == "f32" else value)


RACE_PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry race(.param .u64 out, .param .u32 size)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .shared .align 4 .b8 cell[256];
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, cell;
    shl.b32 %r2, %r0, 2;
    xor.b32 %r3, %r2, 128;
    add.u32 %r2, %r1, %r2;
    add.u32 %r3, %r1, %r3;
    st.shared.u32 [%r2], %r0;
    ld.shared.u32 %r0, [%r3];
    cvt.u64.u32 %d1, %r2;
    st.global.u32 [%d0], %r0;
    ret;
}
"""


def test_dynamic_shared_memory():
    out = np.zeros(1000, np.int32)
    EMULATOR.launch(EMULATOR.load(reverse(1000)), [out], 1)
    np.testing.assert_array_equal(out, np.arange(1000)[::-1])


def test_findings_of_the_check_mode_are_errors():
    parameter = Parameter("out", "array", "i32", (None,), (1,))
    kernel = CompiledKernel("race", "sm_80", RACE_PTX, (parameter,), None, 64, 0, 32)
    out = np.zeros(1, np.int32)
    checking = device("emulator:check")
    with pytest.raises(FindingsError, match=r"race: 2 findings of the emulator") as caught:
        checking.launch(checking.load(kernel), [out], 1)
    assert [finding.memory for finding in caught.value.findings] == ["shared", "global"]
    EMULATOR.launch(EMULATOR.load(kernel), [out], 1)


@tilec.kernel(grid=lambda y: 1)
def twice(x: tl.array, y: tl.array):
    tl.store(y, 0, tl.load(x, 0, 8) + tl.load(y, 0, 8))
    tl.store(y, 0, tl.load(x, 0, 8) + tl.load(y, 0, 8))


def test_the_check_mode_warns_of_arguments_that_overlap(capsys: pytest.CaptureFixture[str]):
    """Of elements in common alone, where one of the arrays is written, and once."""
    whole = np.arange(24, dtype=np.float32)
    twice.check(whole[:8], whole[8:16])
    twice.check(whole[::2][:8], whole[1::2][:8])
    assert "overlap" not in capsys.readouterr().err
    for _ in range(2):
        twice.check(whole[:8], whole[4:12])
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if "overlap" in line] == [
        "tilec: twice: warning: arguments 'x' and 'y' overlap, and the kernel writes 'y': a load "
        "of one may give what was there before a store through the other"
    ]


def test_modes():
    assert device("emulator") is device("emulator")
    assert device("emulator").name == "emulator"
    assert device("emulator:late").mode == "late"
    with pytest.raises(ValueError, match="unknown emulator mode 'fast'; expected eager, late"):
        device("emulator:fast")


def test_tensors_of_other_libraries_on_the_host():
    torch = pytest.importorskip("torch")
    x, y = torch.ones(200), torch.arange(200, dtype=torch.float32)
    EMULATOR.launch(EMULATOR.load(axpy()), [x, y, 3.0, 200], 2)
    assert torch.equal(y, torch.arange(200) + 3.0)


def test_a_stride_that_leads_nowhere_may_be_anything():
    @tilec.kernel(grid=1)
    def add_one(x: tl.array, y: tl.array):
        tl.store(y, (0, 0), tl.load(x, (0, 0), (8, 1)) + 1)

    x = np.lib.stride_tricks.as_strided(np.arange(5, dtype=np.float32), (5, 1), (4, 2**40))
    y = np.zeros((5, 1), np.float32)
    add_one.on("emulator")(x, y)
    np.testing.assert_array_equal(y, x + 1)
