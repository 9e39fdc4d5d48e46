"""How often Python looks for cycles while the compiler works."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from tilec.call.jit import Kernel
from tilec.compile import compiler
from tilec.compile.collection import SELDOM, Seldom
from tilec.examples.matmul import matmul


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_kernel_is_compiled_with_few_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, lower = [], compiler.lower_to

    def noted(*arguments: object, **options: object) -> object:
        seen.append(gc.get_threshold()[0])
        return lower(*arguments, **options)

    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setattr(compiler, "lower_to", noted)
    gc.set_threshold(700, 10, 10)
    arrays = [np.zeros((64, 64), np.float16) for _ in range(3)]
    Kernel(matmul.fn, matmul.grid).on("emulator").compiled(*arrays, BM=64, BN=64, BK=64)
    assert seen == [SELDOM]
    assert gc.get_threshold()[0] == 700


@pytest.mark.parametrize(("before", "inside"), [(700, SELDOM), (2 * SELDOM, 2 * SELDOM), (0, 0)])
def test_the_author_has_what_they_had_before(before: int, inside: int) -> None:
    seldom = Seldom()
    gc.set_threshold(before, 9, 8)
    with seldom:
        with seldom:  # as two threads are
            pass
        assert gc.get_threshold()[0] == inside
    assert gc.get_threshold()[:2] == (before, 9)


def test_a_kernel_that_is_wrong_leaves_no_trace() -> None:
    seldom = Seldom()
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="wrong"), seldom:
        raise ValueError("wrong")
    assert gc.get_threshold()[0] == 700
