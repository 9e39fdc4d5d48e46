"""MLIR's contexts go from one compilation to the next."""

from __future__ import annotations

from unittest import mock

import pytest

from tilec.call.jit import Kernel
from tilec.dialects import context
from tilec.dialects.context import lent_context
from tilec.examples.matmul import matmul
from tilec.examples.softmax import softmax

OPERANDS = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
ROWS = ["x:f32[?,?:16;?:16,1]", "y:f32[?,?:16;?:16,1]"]


@pytest.fixture(autouse=True)
def none_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has compiled nothing."""
    monkeypatch.setattr(context, "_idle", [])


def ptx(kernel: Kernel, arguments: list[str], **constants: int) -> str:
    return kernel.compile(arguments, constants, target="sm_90a").ptx


def test_kernels_are_compiled_in_few_contexts() -> None:
    """Probing what constants are for, ranking tiles and compiling: all in one, and so the next
    kernel."""
    with mock.patch.object(context, "make_context", wraps=context.make_context) as made:
        # A kernel of its own: the examples' may have been probed.
        ptx(Kernel(matmul.fn, matmul.grid, None), OPERANDS)
        assert made.call_count == 1
        ptx(softmax, ROWS, N=512)
        assert made.call_count == 1


def test_code_is_the_same_whatever_the_context_has_seen() -> None:
    first = ptx(softmax, ROWS, N=512)
    ptx(matmul, OPERANDS, BM=64, BN=64, BK=64)
    assert ptx(softmax, ROWS, N=512) == first


def test_loans_side_by_side_are_of_two_contexts() -> None:
    with lent_context() as one, lent_context() as two:
        assert one is not two
    with lent_context() as again:
        assert again is one


def test_who_raises_keeps_the_context() -> None:
    def fail() -> None:
        with lent_context() as lent:
            failed.append(lent)
            raise ValueError("broken")

    failed: list[object] = []
    with pytest.raises(ValueError, match="broken"):
        fail()
    with lent_context() as next_one:
        assert next_one is not failed[0]


def test_a_context_is_lent_so_often_and_no_more() -> None:
    with mock.patch.object(context, "make_context", side_effect=lambda: mock.Mock()) as made:
        for _ in range(3 * context._MOST_LOANS):
            with lent_context():
                pass
    assert made.call_count == 3
