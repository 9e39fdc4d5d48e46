"""Every example for every target it is for in the emulator's check mode, by turns in late mode.

Late: what is not waited for has not arrived. Check: a race, a missing wait or fence is an error.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from shares import modes
from target_names import MAIN
from test_examples import BLACKWELL, DIRECTORY, EXAMPLES, HOPPER

from tilec.compile.compiler import compile_module
from tilec.compile.source import parse_source
from tilec.dialects.context import make_context
from tilec.examples.matmul import PRECISIONS, draw, matmul, reference
from tilec.examples.running import compare, poisoned
from tilec.hardware.target import TARGETS, Feature, find_target
from tilec.runtime.device import device

NEEDS = {**dict.fromkeys(HOPPER, Feature.WGMMA), **dict.fromkeys(BLACKWELL, Feature.TCGEN05)}
"""Elsewhere these examples run for a target that has it: `test_examples.py`."""


def cases() -> Iterator[ParameterSet]:
    """Each example and target; of an example that is for every target a run takes one of them."""
    for number, name in enumerate(sorted({*EXAMPLES} - {"matmul"})):
        able = [t for t in MAIN if name not in NEEDS or TARGETS[t].supports(NEEDS[name])]
        for place, target in enumerate(able, number):
            marks = [pytest.mark.share(len(MAIN), place=place)] if len(able) == len(MAIN) else []
            yield pytest.param(name, target, place, marks=marks, id=f"{name}-{target}")


@pytest.mark.parametrize(("name", "target", "place"), [*cases()])
def test_example(
    name: str,
    target: str,
    place: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    for mode in modes(place // len(MAIN)):
        monkeypatch.setenv("TILEC_DEVICE", f"emulator:{mode}")
        importlib.import_module(f"tilec.examples.{name}").main()
        shown = capsys.readouterr().out
        assert "ok" in shown
        assert "WRONG" not in shown


def run_matmul(dtype: str, shape: tuple[int, int, int], **tiles: int) -> None:
    """The matmul example in `modes()`; SystemExit if a result is wrong."""
    precision = PRECISIONS[dtype]
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = (draw(rng, sizes, precision.inputs) for sizes in ((m, k), (k, n)))
    for mode in modes():
        c = poisoned((m, n), precision.output)
        matmul.on(f"emulator:{mode}")(a, b, c, PRECISION=precision.dot, **tiles)
        compare(mode, c, reference(a, b), precision.tolerance)


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_matmul_of_every_dtype(dtype: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    run_matmul(dtype, (45, 37, 53), BM=32, BN=32, BK=32)


@pytest.mark.parametrize("target", MAIN)
def test_matmul_with_the_compilers_tiles(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of whole 16 bytes, which asynchronous copies and tensor maps need."""
    monkeypatch.setenv("TILEC_TARGET", target)
    run_matmul("bf16", (136, 264, 328))


@pytest.mark.parametrize("target", MAIN)
def test_the_tile_file(target: str) -> None:
    path = DIRECTORY / "matmul.tile"
    module = parse_source(path.read_text(), str(path), make_context())
    kernel = compile_module(module, find_target(target))
    rng = np.random.default_rng(0)
    a, b = (draw(rng, shape, PRECISIONS["bf16"].inputs) for shape in ((140, 72), (72, 136)))
    for mode in modes():
        c = poisoned((140, 136), PRECISIONS["bf16"].output)
        checking = device(f"emulator:{mode}")
        checking.launch(checking.load(kernel), [a, b, c], (2, 2))
        compare(mode, c, reference(a, b), 1e-2)
