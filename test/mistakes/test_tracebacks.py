"""What an author sees of a mistake: the message, and of the traceback what is the author's."""

from __future__ import annotations

import gc
import sys
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.hardware.target import find_target


@tilec.kernel(grid=1, device="emulator")
def scaled(x, y, s, B: tl.const = 32):
    tl.store(y, 0, tl.load(x, 0, B) * s)


@tilec.kernel(grid=1, device="emulator")
def misspelt(x):
    tl.loda(x, 0, 32)


@tilec.kernel(grid=2, device="emulator")
def races(x, y):
    tl.store(y, 0, tl.load(x, 0, 32) + tl.program_id(0))


@tilec.kernel(grid=1, device="emulator")
def asserts(x):
    tl.device_assert(tl.load(x, 0, 32) > 1.0, "too small")


@tilec.autotune(search={"B": [32, 64]})
@tilec.kernel(grid=1, device="emulator")
def tuned(x, B: tl.const):
    tl.loda(x, 0, B)


def declared_wrongly() -> None:
    @tilec.kernel
    def wrong(*arrays):
        pass


OPS = Path(tilec.ops.__file__).parent
X = np.ones(32, np.float32)
M = np.ones((2, 3), np.float32)
ERRORS = (tilec.CompileError, TypeError, RuntimeError)
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a misspelt function": (lambda: misspelt(X), "did you mean 'load'?"),
    "the same, compiled": (lambda: misspelt.compiled(X), "did you mean 'load'?"),
    "the same, in a report": (lambda: misspelt.report(X), "did you mean 'load'?"),
    "the same, checked": (lambda: misspelt.check(X), "did you mean 'load'?"),
    "the same, ahead of time": (
        lambda: misspelt.compile(["x:f32[?]"], target="sm_90a"), "did you mean 'load'?"
    ),
    "the same, with tuned constants": (lambda: tuned(X), "did you mean 'load'?"),
    "no array": (lambda: scaled("x", X, 1.0), "argument 'x': expected an array, found str"),
    "a demand": (lambda: scaled(X, X, 1.0, num_warps=8), r"@tilec.kernel\(num_warps=...\)"),
    "a demand of a loop": (lambda: scaled(X, X, 1.0, num_stages=3), r"tl.range\(..., stages=4\)"),
    "no argument": (lambda: scaled(X, X, 1.0, C=8), "'C'; it takes x, y, s, B, grid, stream$"),
    "an array for a number": (lambda: scaled(X, X, np.array(2.0)), r"\(s: float\), or read it"),
    "a race": (lambda: races.check(X, X.copy()), "race on global memory"),
    "an assertion": (lambda: asserts(X), "too small"),
    "a product": (lambda: tilec.ops.matmul(M, M), "argument 'b': expected 3 rows"),
    "attention": (lambda: tilec.ops.attention(M, M, M), r"argument 'q': expected \(batch"),
    "a product in a report": (lambda: tilec.ops.matmul_report(M, M), "argument 'b': expected 3"),
    "parameters": (declared_wrongly, r"'\*arrays' parameters"),
}  # fmt: skip


def _is_ours(frame: Any) -> bool:
    """Whether a frame is of what authors call."""
    return frame.f_code.co_filename.startswith(("<call of", str(OPS)))


@pytest.mark.parametrize("name", MISTAKES)
def test_the_traceback_is_short(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, message = MISTAKES[name]
    with pytest.raises(ERRORS, match=message) as caught:
        call()
    # Two frames are of this file, where a script has its own line; ours show no source, but for
    # what authors may want to read.
    frames = traceback.extract_tb(caught.value.__traceback__)
    most = 4 + ("torch._dynamo" in sys.modules)  # which calls look out for
    assert len(frames) <= most, "\n".join(map(str, frames))
    shown = {frame.name for frame in frames if frame.line and frame.filename != __file__}
    assert shown <= {"matmul", "attention"}
    assert caught.value.__suppress_context__
    # IPython and pytest leave out the frames that are not the author's.
    walked = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    others = [frame for frame in walked if frame.f_code.co_filename != __file__]
    assert all(frame.f_locals.get("__tracebackhide__") for frame in others if _is_ours(frame))
    monkeypatch.setenv("TILEC_TRACEBACK", "full")
    with pytest.raises(ERRORS, match=message) as caught:
        call()
    assert len(traceback.extract_tb(caught.value.__traceback__)) > len(frames)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_notebook_shows_the_author_s_frames(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, message = MISTAKES[name]
    with pytest.raises(ERRORS, match=message) as caught:
        call()
    seen: list[Any] = []

    def structured_traceback(*arguments: Any, context: int) -> list[str]:
        seen.append((*arguments, context))
        return ["shown"]

    shell = SimpleNamespace(
        InteractiveTB=SimpleNamespace(structured_traceback=structured_traceback)
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    # What IPython does with an error, in this order.
    monkeypatch.setattr(sys, "last_value", caught.value, raising=False)
    assert caught.value._render_traceback_() == ["shown"]
    ((kind, error, frames, context),) = seen
    assert (kind, error, context) == (caught.type, caught.value, 1)
    files = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(frames)}
    assert files == {__file__}


def test_ipython_shows_less_than_twelve_lines(capsys: pytest.CaptureFixture[str]) -> None:
    shells: Any = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell.instance()
    capsys.readouterr()
    shell.push({"misspelt": misspelt, "x": X})
    shell.run_cell("1 + 1\nmisspelt(\n    x)")
    shown = capsys.readouterr().out.rstrip().splitlines()
    assert any("did you mean 'load'?" in line for line in shown)
    assert len(shown) < 12
    shell.push({"tilec": tilec, "tl": tl})
    for name, meant in (
        ("tilec.kernl", "kernel"),
        ("tl.lod", "load"),
        ("tilec.ops.matmull", "matmul"),
    ):
        shell.run_cell(name)
        shown = capsys.readouterr().out.rstrip().splitlines()
        assert shown[-1] == f"help: did you mean '{meant}'?"
        assert len(shown) < 12
    shells.InteractiveShell.clear_instance()


def test_a_misspelt_name_of_the_package_ends_at_the_author_s_line() -> None:
    with pytest.raises(AttributeError, match="module 'tilec' has no attribute 'kernl'") as caught:
        tilec.kernl  # noqa: B018
    assert hasattr(caught.value, "_render_traceback_")
    *_, last = traceback.walk_tb(caught.value.__traceback__)
    assert last[0].f_locals["__tracebackhide__"]


def test_no_frame_of_a_mistake_keeps_it() -> None:
    """What a failed call was given is free when the error is, with no collection of cycles."""
    array = np.ones(33, np.float32)[1:]
    freed = weakref.ref(array)
    gc.disable()
    try:
        with pytest.raises(tilec.CompileError) as caught:
            misspelt(array)
        del caught, array
        assert freed() is None
    finally:
        gc.enable()


def test_what_is_no_mistake_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("ours")

    kernel = scaled.on("emulator")
    monkeypatch.setattr(type(kernel), "_compile", fail)
    monkeypatch.setenv("TILEC_CACHE", "0")
    with pytest.raises(RuntimeError, match="ours") as caught:
        kernel(X, X, 1.0)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"


def test_a_target_without_its_letter() -> None:
    with pytest.raises(ValueError, match="help: write sm_90a"):
        find_target("sm_90")


def test_numbers_of_numpy_are_constants_and_arguments() -> None:
    y = np.zeros(64, np.float32)
    scaled(np.ones(64, np.float32), y, np.float16(2), np.int64(64))
    assert y.tolist() == [2.0] * 64
    scaled(X, y, np.bool_(False), B=np.int32(32))
    assert y[:32].tolist() == [0.0] * 32
