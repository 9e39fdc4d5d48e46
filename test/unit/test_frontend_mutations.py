"""Kernels broken at random: each compiles or gives one CompileError with a position. Nothing else.

Every mutant is built in a forked child, so that an abort or a hang is seen as such.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from broken_kernels import CONSTANTS, SPECS, attempt, mutant, source_of
from frontend_cases import load_text

from tilec.call.jit import Kernel
from tilec.call.signature import parse_spec
from tilec.call.specialization import specialize_for
from tilec.compile.isolation import death_of
from tilec.executable.kernel import Parameter
from tilec.frontend import build_module

LIMIT_S = 30.0
"""Of a mutant: a second on a machine that is emulated and has other work."""


def build(kernel: Kernel) -> None:
    """The module of a kernel, or of a mutant under its name."""
    parameters: list[str | Parameter] = [parse_spec(spec) for spec in SPECS[kernel.name]]
    constants = CONSTANTS.get(kernel.name, {})
    wanted = specialize_for(kernel.parameters, parameters, constants, 32)
    build_module(
        kernel.fn,
        wanted.parameters,
        dict(wanted.constants),
        grid=kernel.grid,
        **kernel.demands(),
    )


@pytest.mark.share(6)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SPECS)
def test_mutants(name: str, seed: int, tmp_path: Path) -> None:
    importlib.import_module("tilec.frontend")
    texts = [mutant(name, number) for number in range(seed * 12, seed * 12 + 12)]

    def attempt_all() -> None:
        for text in texts:
            attempt(text, name, tmp_path, build)

    together = death_of(attempt_all, LIMIT_S * len(texts))
    if together is None:
        return
    for text in texts:  # one child each: which is it?
        death = death_of(lambda text=text: attempt(text, name, tmp_path, build), LIMIT_S)
        assert death is None, f"{text}\n\n{death.reason}\n{death.words}"
    raise AssertionError(f"one by one all are well: {together.reason}\n{together.words}")


@pytest.mark.parametrize("name", SPECS)
def test_the_kernels_themselves_compile(name: str, tmp_path: Path) -> None:
    kernel = getattr(load_text(source_of(name), tmp_path), name)
    build(kernel)
