"""`tl.range(..., any_order=True)`: what a persistent CTA makes of the permission."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.runtime.emulator_device import RESIDENT_CTAS

PROGRAMS = 3 * RESIDENT_CTAS + 1
FACTOR = 31


@tilec.kernel(grid=lambda out: (out.shape[0],))
def orders(out: tl.array, low: tl.i32, high: tl.i32, STEP: tl.const, PERMITTED: tl.const = True):
    """A number for each program that says in which order its loop ran."""
    seen = 1
    for k in tl.range(low, high, STEP, any_order=PERMITTED):
        seen = seen * FACTOR + k
    tl.store(out, (tl.program_id(0),), tl.full((1,), seen, tl.i32))


def number_of(order: range) -> int:
    seen = 1
    for k in order:
        seen = seen * FACTOR + k
    return seen


def found(kernel: tilec.call.jit.Kernel, order: range, **constants: bool) -> list[int]:
    out = np.full(PROGRAMS, -1, np.int32)
    kernel.on("emulator")(out, order.start, order.stop, STEP=order.step, **constants)
    return out.tolist()


ORDERS = (range(2, 12, 3), range(5), range(4, 5, 2), range(5, 5, 2), range(9, 1, -3))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_every_second_program_of_a_cta_runs_from_the_end(order: range) -> None:
    turns = [number // RESIDENT_CTAS % 2 for number in range(PROGRAMS)]
    both = number_of(order), number_of(order[::-1])
    assert found(orders.demanding(persistent=True), order) == [both[turn] for turn in turns]


def test_without_permission_or_without_turns_all_run_from_the_front() -> None:
    order = range(1, 8, 2)
    expected = [number_of(order)] * PROGRAMS
    assert found(orders.demanding(persistent=True), order, PERMITTED=False) == expected
    assert found(orders.demanding(persistent=False), order) == expected
    assert found(orders, order) == expected
