"""How calls come to be traced, without torch: what stands for it here only says that it traces."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import tilec
import tilec.language as tl
from tilec.runtime import traced_calls
from tilec.runtime.errors import ArgumentError
from tilec.runtime.traced_values import any_traced, new_number, numbered, recordable, recorded


def helper(x: Any) -> Any:
    return x


@tilec.function
def marked(x: Any) -> Any:
    return x


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Options:
    scale: float
    dtype: Any


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A class whose calls can be traced, while what stands for Dynamo is not imported."""
    (tmp_path / "a_dynamo.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(traced_calls, "_classes", [])
    monkeypatch.setattr(traced_calls, "DYNAMO", "a_dynamo")
    traced_calls.watch()

    @traced_calls.traceable
    class Kind:
        def __init__(self) -> None:
            self.number = new_number(self)
            self.ran: list[Any] = []

        def run(self, *arguments: Any, **named: Any) -> None:
            self.ran.append((arguments, named))

    return Kind


def test_a_call_is_run_until_dynamo_is_imported(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kind.__call__ is kind.run
    traces = [False]
    torch = SimpleNamespace(compiler=SimpleNamespace(is_compiling=lambda: traces[0]))
    records: list[Any] = []
    operator = SimpleNamespace(launch_traced=lambda *a, **named: records.append((a, named)))
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tilec.runtime.torch_operator", operator)  # type: ignore[arg-type]
    kernel = kind()
    kernel(1, n=2)
    before = len(sys.meta_path)
    importlib.import_module("wave")
    assert kind.__call__ is kind.run
    importlib.import_module("a_dynamo")
    monkeypatch.delitem(sys.modules, "a_dynamo")
    assert len(sys.meta_path) == before - 1
    kernel(3, n=4)
    traces[0] = True
    kernel(5, n=tl.bf16)
    assert kernel.ran == [((1,), {"n": 2}), ((3,), {"n": 4})]
    assert records == [((kernel.number, 5), {"n": ("tilec.dtype", "bf16")})]
    assert numbered(kernel.number) is kernel


@pytest.mark.parametrize(
    "value",
    [
        3,
        None,
        "text",
        (1, [2.5, ()]),
        tl.f8e4m3,
        helper,
        marked,
        tl.exp,
        Pair(1, tl.f32),
        Options(0.5, tl.i8),
        [Pair(None, (Options(2.0, helper),))],
    ],
)
def test_what_a_graph_holds_becomes_what_it_was(value: Any) -> None:
    assert recorded(recordable(value)) == value


def test_names_that_another_process_does_not_know() -> None:
    with pytest.raises(ArgumentError, match="import antigravity, where it must be a global name"):
        recorded(("tilec.function", "antigravity", "fly", 1))
    assert "antigravity" not in sys.modules

    def helper(x: Any) -> Any:
        return x

    with pytest.raises(ArgumentError, match="helper: another function than torch recorded"):
        recorded(recordable(helper))


def test_groups_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = SimpleNamespace(is_functorch_wrapped_tensor=lambda tensor: tensor == 1.0)
    torch = SimpleNamespace(Tensor=float, _C=SimpleNamespace(_functorch=wrapped))
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    assert any_traced([0.0, (Pair(2, [1.0]),)])
    assert not any_traced([0.0, (Pair(2, [3.0]),)])
    endless: list[Any] = []
    endless.append(endless)
    assert not any_traced(endless)
