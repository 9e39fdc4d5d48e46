"""Kernels of `@triton.jit`, launched by tilec on the emulator: where they run, and one by one."""

from __future__ import annotations

import types as types_module
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
import jit_kernels  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

import tilec.triton  # noqa: E402
from tilec.messages.diagnostics import CompileError, Location  # noqa: E402
from tilec.runtime.emulator_device import FindingsError  # noqa: E402
from tilec.triton.takeover import backend  # noqa: E402
from tilec.triton.takeover.hooks import install  # noqa: E402
from tilec.triton.takeover.launcher import Launcher  # noqa: E402
from tilec.triton.takeover.wish import Wish, wished  # noqa: E402

NAMES = sorted(jit_kernels.CASES)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    """tilec compiles every kernel, for Hopper, and checks it; Triton's cache is empty."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    tilec.triton.enable(device="emulator:check")
    yield
    tilec.triton.disable()


@pytest.mark.parametrize("name", NAMES)
def test_where_they_run(taken: None, name: str) -> None:
    jit_kernels.assert_right(*jit_kernels.CASES[name][1](jit_kernels.CASES[name][0], "cpu"))


def test_autotuning_runs_each_configuration(taken: None) -> None:
    tuned = tilec.triton.kernel(jit_kernels.matmul, device="emulator")
    jit_kernels.assert_right(*jit_kernels.launch_matmul(tuned, "cpu", 70, 40, 33, None))
    assert len(tuned.configs_timings) == len(jit_kernels.CONFIGS)
    assert tuned.cache is not jit_kernels.matmul.cache


def test_one_kernel_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    ours = tilec.triton.kernel(jit_kernels.add, device="emulator:check")
    jit_kernels.assert_right(*jit_kernels.launch_add(ours, "cpu", 700))
    target = GPUTarget("cuda", 90, 32)
    wishes = (None, Wish(), Wish("triton"))
    found = []
    for one in wishes:
        with wished(one):
            found.append(triton.compiler.compiler.make_backend(target))
    assert [backend.binary_ext for backend in found] == ["cubin", "tilec", "tilec"]
    assert len({backend.hash() for backend in found}) == 3  # the key of Triton's cache on disk


def test_compilers_do_not_share_kernels(taken: None) -> None:
    before = triton.runtime.driver.active.get_current_device()
    tilec.triton.enable(device="emulator")
    now = triton.runtime.driver.active.get_current_device()
    assert before != now
    assert (before, now) == (0, 0)
    assert {before: 1, now: 2}[before] == 1


def test_wild_accesses_are_named_at_the_line(taken: None) -> None:
    line = shifted.fn.__code__.co_firstlineno + 3
    x = torch.randn(100)
    with pytest.raises(FindingsError, match=rf"out of bounds.*test_takeover\.py:{line}"):
        shifted[(1,)](x, torch.empty(128), 3, BLOCK=128)


@triton.jit
def shifted(x_ptr, out_ptr, shift, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at + shift))


@triton.jit
def odd_arguments(x_ptr, pair, missing, bits, scale: tl.constexpr, BLOCK: tl.constexpr = 8):
    at = tl.arange(0, BLOCK)
    shifted_bits = (bits >> 60).to(tl.int32)
    out_ptr, least = pair
    x = tl.load(x_ptr + at).to(tl.int32)
    if missing is None:
        x += shifted_bits
    tl.store(out_ptr + at, tl.maximum(x, least).to(tl.float32) * scale)


@triton.jit
def nothing(LAST: tl.constexpr = 3):
    tl.static_assert(LAST == 3)


def test_no_arguments(taken: None) -> None:
    compiled = [nothing[grid]() for grid in ((1,), lambda given: (given["LAST"],), (1,))]
    assert all(one.metadata.tilec for one in compiled)


def test_odd_arguments(taken: None) -> None:
    x, out = torch.arange(8, dtype=torch.int8) - 2, torch.empty(8)
    wide = triton.reinterpret(x.view(torch.uint8), tl.int8)
    odd_arguments[(1,)](wide, (out, 13), None, 0xF000000000000000, scale=0.5)
    torch.testing.assert_close(out, (x.float() + 15).clamp(min=13) * 0.5)


class Address:
    """A pointer that is no tensor, which is all that Triton asks of an argument: FlagGems makes
    them of tensors that torch has no view of."""

    def __init__(self, tensor: torch.Tensor, offset: int) -> None:
        self.tensor, self.offset, self.dtype = tensor, offset, tensor.dtype

    def data_ptr(self) -> int:
        return self.tensor.data_ptr() + self.offset * self.tensor.element_size()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.tensor.untyped_storage()


def test_pointers_that_are_no_tensors(taken: None) -> None:
    x, out = torch.randn(300), torch.zeros(300)
    for start in (7, 8, 7):
        jit_kernels.add[(2,)](Address(x, start), x, Address(out, start), 200, BLOCK=128)
        right = torch.zeros(300)
        right[start : start + 200] = x[start : start + 200] + x[:200]
        torch.testing.assert_close(out, right)
        out.zero_()


def test_hooks_hear_of_launches_and_warmup_does_not_launch(
    taken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    x, out = torch.randn(256), torch.zeros(256)
    warm = jit_kernels.add.warmup(x, x, out, 256, BLOCK=256, grid=(1,))
    assert not out.any()
    assert ".target sm_90a" in warm.asm["ptx"]
    # As releases before 3.5 have it; later ones have a chain of hooks there, which is called alike.
    hook = lambda given: heard.append(given.get()["name"])  # noqa: E731
    monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook", hook)
    launched = jit_kernels.add[(1,)](x, x, out, 256, BLOCK=256)
    assert heard == ["add"]
    assert launched.asm["ptx"] == launched.function.latest.ptx
    assert torch.equal(out, x + x)


@pytest.mark.parametrize("fuses", [True, False])
def test_products_and_sums_are_one_rounding_where_they_may_be(taken: None, fuses: bool) -> None:
    x, out = torch.randn(64), torch.zeros(64)
    given = {"grid": (1,), "enable_fp_fusion": fuses}
    warm = jit_kernels.scaled.warmup(out, x, 64, 2.5, **given)
    assert ("fma" in warm.asm["ptx"]) is fuses
    launched = jit_kernels.scaled[(1,)](out, x, 64, 2.5, enable_fp_fusion=fuses)
    assert ("fma" in launched.asm["ptx"]) is fuses
    torch.testing.assert_close(out, 2.5 * x + 3.5)


OFFSET = tl.constexpr(3)


@triton.jit
def reads_a_global(out_ptr):
    tl.store(out_ptr, OFFSET)


def test_a_global_that_changed_is_an_error(taken: None, monkeypatch: pytest.MonkeyPatch) -> None:
    out = torch.zeros(1)
    reads_a_global[(1,)](out)
    assert out == 3
    monkeypatch.setitem(globals(), "OFFSET", tl.constexpr(4))
    with pytest.raises(RuntimeError, match="OFFSET"):
        reads_a_global[(1,)](out)


@triton.jit
def not_imported(out_ptr):
    tl.store(out_ptr, 1.0)


@pytest.fixture
def nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An importer without rules."""

    def refuse(text: str, name: str) -> None:
        raise CompileError("cannot import 'tt.op'", Location("k.py", 7, 3))

    monkeypatch.setattr(backend, "module_ahead", refuse)


def test_what_is_not_imported_is_an_error(taken: None, nothing_is_imported: None) -> None:
    with pytest.raises(CompileError, match=r"k\.py:7:3: error: cannot import 'tt\.op'"):
        not_imported[(1,)](torch.zeros(1))


def test_or_triton_compiles_it(
    nothing_is_imported: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    source = triton.compiler.ASTSource(not_imported, {"out_ptr": "*fp32"}, {}, {})
    with (
        wished(Wish("triton")),
        pytest.warns(tilec.triton.FallbackWarning, match=r"k\.py:7:3: error: cannot import"),
    ):
        made = triton.compile(source, GPUTarget("cuda", 90, 32))
    assert made.asm["tilec"].startswith(b"\x7fELF")
    assert not made.metadata.tilec


def test_what_does_not_launch_is_compiled_as_triton_would(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """From what Triton keeps of a kernel on disk."""
    install()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    source = triton.compiler.ASTSource(
        jit_kernels.add, {**types, "BLOCK": "constexpr"}, {"BLOCK": 128}, {}
    )
    with wished(Wish("triton")):
        made = triton.compile(source, GPUTarget("cuda", 90, 32))
    assert made.metadata.tilec
    function = types_module.SimpleNamespace(name="add", launch=_refused)
    own = Launcher(source, made.metadata, Wish("triton"))
    with pytest.warns(tilec.triton.FallbackWarning, match="Triton compiles add: .*too much"):
        own._launch(function, (1, 1, 1), 0, (1, 2, 3, 4, 128))
    assert own._theirs.asm["cubin"].startswith(b"\x7fELF")


def _refused(*arguments: Any) -> None:
    raise CompileError("too much")


def test_wrong_wishes() -> None:
    with pytest.raises(ValueError, match="otherwise='try': expected 'error' or 'triton'"):
        tilec.triton.enable("try")
    with pytest.raises(ValueError, match="otherwise='triton' needs a GPU"):
        tilec.triton.enable("triton", device="emulator")
    with pytest.raises(TypeError, match=r"expected a @triton\.jit function, found int"):
        tilec.triton.kernel(3)
