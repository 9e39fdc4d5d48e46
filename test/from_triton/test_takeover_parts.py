"""What stands between Triton and tilec, without Triton."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tilec.messages.diagnostics import DoesNotFit, InternalError
from tilec.runtime.errors import ArgumentError
from tilec.triton.ahead import module_ahead
from tilec.triton.reader import read_kernel
from tilec.triton.takeover import backend, launcher
from tilec.triton.takeover.backend import end_at_text
from tilec.triton.takeover.emulated import HostInterface, run_once
from tilec.triton.takeover.launcher import flat
from tilec.triton.takeover.wish import DeviceNumber, Wish, wish, wish_of_all, wished


def test_a_wish_holds_inside() -> None:
    mine, all_ = Wish("triton"), Wish()
    assert wish() is None
    wish_of_all(all_)
    try:
        with wished(mine):
            assert wish() is mine
        assert wish() is all_
    finally:
        wish_of_all(None)


def test_device_numbers_are_of_a_wish() -> None:
    one, two = DeviceNumber(1, Wish()), DeviceNumber(1, Wish("triton"))
    kernels: dict[int, str] = {1: "Triton's", one: "ours", two: "another's"}
    assert len(kernels) == 3
    assert kernels[DeviceNumber(1, Wish())] == "ours"
    assert [0, 10][one] == 10


def test_arguments_are_laid_out_flat() -> None:
    tensor = SimpleNamespace(data_ptr=lambda: 0)
    viewed = SimpleNamespace(data_ptr=lambda: 0, base=tensor)
    types = ("*fp32", "constexpr", ("i32", ("*fp8e5", "constexpr")), "u8", "u64", "i64", "u32")
    given = (tensor, None, (7, (viewed, 1)), 200, 1 << 63, -1, 5)
    assert list(flat(types, given)) == [tensor, 7, tensor, -56, -(1 << 63), -1, 5]


def stages(called: list[str]) -> dict[str, Any]:
    """A backend's stages, each of which notes that it ran."""

    def stage(name: str) -> Any:
        return lambda module, metadata: called.append(name) or f"{module}>{name}"

    return {name: stage(name) for name in ("ttir", "ttgir", "cubin")}


TEXT = """tt.func public @k(%x: !tt.ptr<f32>) {
  %0 = arith.constant 1.0 : f32
  tt.store %x, %0 : !tt.ptr<f32>
  tt.return
}
"""


def test_what_is_imported_ends_at_its_text() -> None:
    called: list[str] = []
    found, metadata = stages(called), {}
    end_at_text(found, "error")
    assert list(found) == ["ttir", "tilec"]
    assert found["tilec"](TEXT, metadata) == TEXT
    assert called == []
    assert metadata == {"name": "k", "tilec": True, "shared": 0, "tmem_size": 0}


@pytest.mark.parametrize("start", ["module {", "module attributes {a.b = 1 : i32} {"])
def test_products_and_sums_are_rounded_where_that_is_asked(start: str) -> None:
    """`enable_fp_fusion=False`: the text says so, as Triton's has no place for it."""
    body = TEXT.replace("%0 = arith.constant", "%1 = arith.constant").replace(
        "tt.store", "%0 = arith.mulf %1, %1 : f32\n  tt.store"
    )
    for contracts in (True, False):
        found: dict[str, Any] = stages([])
        end_at_text(found, "error", contracts=contracts)
        text = found["tilec"](f"{start}\n{body}}}", {})
        assert read_kernel(text).contracts is contracts
        assert ("fastmath<contract>" in str(module_ahead(text, "k.ttir"))) is contracts
    found = stages([])
    end_at_text(found, "error", contracts=False)
    with pytest.raises(backend.CompileError, match="a text without a module"):
        found["tilec"](TEXT, {})


def test_what_is_not_goes_on() -> None:
    called: list[str] = []
    found, metadata = stages(called), {}
    end_at_text(found, "triton")
    with pytest.warns(backend.FallbackWarning, match="has no rule|no rule for it"):
        made = found["tilec"](TEXT.replace("tt.store %x, %0", "tt.nothing %x, %0"), metadata)
    assert made.endswith(">ttgir>cubin")
    assert metadata == {"tilec": False}


def test_no_text_of_triton_is_no_kernel() -> None:
    found: dict[str, Any] = {"ttgir": None, "cubin": None}
    end_at_text(found, "error")
    with pytest.raises(backend.CompileError, match="Gluon"):
        found["tilec"]("module {}", {})


def test_parts_of_a_tuple_are_parameters_each() -> None:
    text = TEXT.replace("(%x: !tt.ptr<f32>)", "(%x: !tt.ptr<f32>, %p.0: i32, %p.1: i32 loc(#loc1))")
    text += '#loc1 = loc("x"(#loc2))\n#loc2 = loc("k.py":1:1)\n'
    names = [argument.name for argument in backend.read_kernel(text).arguments]
    assert names == ["x", "p_0", "x_2"]


def test_timing_on_the_emulator_runs_once() -> None:
    called: list[int] = []
    assert run_once(lambda: called.append(1), quantiles=(0.5, 0.2)) == [1.0, 1.0]
    assert called == [1]
    begin, end = HostInterface.Event(), HostInterface.Event(enable_timing=True)
    begin.record()
    end.record()
    assert begin.elapsed_time(end) > 0


PROGRAM = """
import sys, types
from tilec.cli.triton_kernels import take_over_as_asked, take_over_on_import
seen = []
fake = types.ModuleType("tilec.triton")
fake.enable = lambda **named: seen.append((named, sys.modules["triton"].done))
sys.modules["tilec.triton"] = fake
take_over_as_asked()
assert "triton" not in sys.modules and "mlir" not in sys.modules
import json
assert seen == []
import triton
print(seen)
take_over_on_import(device="emulator")
print(seen[1:])
"""


@pytest.mark.parametrize(
    ("asked", "named"), [("1", "{}"), ("triton", "{'otherwise': 'triton'}"), ("0", None)]
)
def test_tilec_is_enabled_when_triton_is_loaded(
    tmp_path: Path, asked: str, named: str | None
) -> None:
    (tmp_path / "triton.py").write_text("done = True\n")
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": f"{tmp_path}:{root}", "TILEC_TRITON": asked},
        capture_output=True,
        text=True,
        check=False,
    )
    first = [] if named is None else [f"({named}, True)"]
    second = "({'device': 'emulator'}, True)"
    assert found.stdout.splitlines() == [
        f"[{', '.join(first)}]",
        f"[{second}]" if first else "[]",
    ], found.stderr


class Refusing:
    """A kernel that tilec cannot launch as it is asked to."""

    name = "k"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def launch(self, *given: Any) -> None:
        raise self.error


LAUNCH = (1, 2, 3, 0)
TOO_LARGE = DoesNotFit("the buffers take 300000 bytes")


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Triton's compiler; what it was asked for, and who compiled then, and what was launched."""
    called: list[Any] = []
    kernel = SimpleNamespace(
        function="f", packed_metadata="p", run=lambda *given: called.append(given)
    )

    def compile(source: Any, target: Any, options: Any) -> Any:
        called.append((source, target, options, wish()))
        return kernel

    errors = SimpleNamespace(OutOfResources=type("OutOfResources", (Exception,), {}))
    monkeypatch.setitem(sys.modules, "triton.compiler", SimpleNamespace(compile=compile))
    monkeypatch.setitem(sys.modules, "triton.runtime.errors", errors)
    launcher._out_of_resources.cache_clear()
    yield called
    launcher._out_of_resources.cache_clear()


def launcher_for(otherwise: str) -> Any:
    """A launcher of a kernel with one argument and a constant."""
    source = SimpleNamespace(signature={"x": "i32", "N": "constexpr"})
    metadata = SimpleNamespace(target="t", _asdict=lambda: {"num_warps": 8})
    return launcher.Launcher(source, metadata, Wish(otherwise))


@pytest.mark.parametrize("error", [TOO_LARGE, ArgumentError("x overlaps"), InternalError("bug")])
def test_what_does_not_launch_triton_compiles(theirs: list[Any], error: Exception) -> None:
    made = launcher_for("triton")
    with wished(Wish("triton")), pytest.warns(launcher.FallbackWarning, match="k: .*[xb]"):
        made(*LAUNCH, Refusing(error), None, "m", None, None, 7, 64)
    made(*LAUNCH, Refusing(error), None, "m", None, None, 8, 64)
    (_, target, options, by), *launches = theirs
    assert (target, options, by) == ("t", {"num_warps": 8}, None)
    assert launches == [(*LAUNCH, "f", "p", "m", None, None, x, 64) for x in (7, 8)]


def test_or_is_an_error(theirs: list[Any]) -> None:
    with pytest.raises(ArgumentError, match="x overlaps"):
        launcher_for("error")(
            *LAUNCH, Refusing(ArgumentError("x overlaps")), None, "m", None, None, 7, 64
        )
    assert theirs == []


def test_autotuning_passes_over_what_does_not_fit(theirs: list[Any]) -> None:
    expected = sys.modules["triton.runtime.errors"].OutOfResources
    with pytest.raises(expected, match="the buffers take 300000 bytes"):
        launcher_for("error")(*LAUNCH, Refusing(TOO_LARGE), None, "m", None, None, 7, 64)


def test_hooks_stand_around_a_launch() -> None:
    called: list[Any] = []
    quiet: Any = SimpleNamespace(launch=lambda *given: called.append(given))
    hooks = (lambda m: called.append(("enter", m)), lambda m: called.append(("leave", m)))
    launcher_for("error")(*LAUNCH, quiet, None, "m", *hooks, 7, 64)
    assert called == [("enter", "m"), ([7], (1, 2, 3), 0), ("leave", "m")]
