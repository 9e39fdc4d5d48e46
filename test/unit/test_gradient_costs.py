"""What the model reads of attention and its gradients: whose products end in their iteration, and
which of them wait for others."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

from tilec.call.call_class import class_of
from tilec.call.jit import Kernel
from tilec.call.specialization import specialize
from tilec.costs.machine import usual_machine
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention
from tilec.ops.gradient_kernels import key_gradients, query_gradients
from tilec.runtime.arrays import ArrayView
from tilec.runtime.launch_argument import REQUIRED

TARGET = find_target("sm_90a")
SHAPE = (4, 32, 4096, 64)


def array(name: str) -> ArrayView:
    """A row-major array without memory."""
    shape, dtype = (SHAPE[:3], "f32") if name in ("logs", "delta") else (SHAPE, "bf16")
    strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return ArrayView(0, shape, strides, dtype, ("cuda", 0))


def chosen(kernel: Kernel, causal: bool) -> tuple[Any, dict[str, int]]:
    """The work of a program with 128 x 128 tiles, and the tiles that `tl.auto` takes."""
    values = {p.name: p.default for p in kernel.parameters if p.default is not REQUIRED}
    values |= {p.name: array(p.name) for p in kernel.parameters if p.kind == "array"}
    values |= {"scale": 0.125, "D": 64, "CAUSAL": causal}
    wanted = specialize(kernel.parameters, values)
    choices = kernel._programs.choices(wanted, TARGET)
    call = class_of(wanted.parameters, values, usual_machine(TARGET))
    tiles = dict(choices.order(call)[0].chosen)
    return choices._programs[("BM", 128), ("BN", 128)], tiles


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("kernel", "products", "is_rotated"),
    [(attention, 1, True), (query_gradients, 1, False), (key_gradients, 2, False)],
)
def test_products(kernel: Kernel, products: int, is_rotated: bool, causal: bool) -> None:
    """A mask in a branch hides from nobody what a product waits for."""
    program, _ = chosen(kernel, causal)
    loops = [body.work for body in program.bodies if body.work.flops]
    assert {loop.waiting_products for loop in loops} == {products}
    assert {loop.is_rotated for loop in loops} == {is_rotated}


def test_registers_of_operands() -> None:
    """Those of the second of two products are there beside the next iteration's; of more, they take
    the place of what they are computed from."""
    square, own = 128 * 128, 128 * 64
    assert chosen(attention, False)[0].accumulators == square + own + square // 2
    assert chosen(query_gradients, False)[0].accumulators == 2 * square + own


def test_three_warpgroups_hide_the_waits_of_gradients() -> None:
    """192 x 96 took 1442 us where 128 x 128 took 1604 (H200, 4 x 32 heads of 64, 4096 long)."""
    assert chosen(query_gradients, False)[1] == {"BM": 192, "BN": 96}
