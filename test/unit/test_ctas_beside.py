"""How many CTAs share a multiprocessor where threads compute operands for each other, by how many
programs a launch has. Rings wrap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call import jit
from tilec.call.crowds import better_suited
from tilec.costs.machine import Machine, usual_machine
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target

BF16 = ml_dtypes.bfloat16
TARGET = find_target("sm_90a")


@tilec.kernel(grid=lambda o: o.shape[0], num_warps=8)
def states(q: tl.array, b: tl.array, v: tl.array, o: tl.array):
    """h += q.T @ (v + b @ h), 16 rows at a time, all of which o has: a delta rule. Warps round h
    for each other."""
    i = tl.program_id(0)
    h = tl.zeros((128, 16), tl.f32)
    for t in tl.range(0, v.shape[1], 16):
        held = tl.dot(tl.load(b, (i, t, 0), (16, 128)), h.to(b.dtype))
        new = (tl.load(v, (i, t, 0), (16, 16)).to(tl.f32) + held).to(v.dtype)
        tl.store(o, (i, t, 0), new)
        h = tl.dot(tl.load(q, (i, t, 0), (16, 128)).T, new, h)


@tilec.kernel(grid=lambda y: tl.cdiv(y.shape[0], 256))
def scaled(x: tl.array, y: tl.array):
    at = tl.program_id(0) * 256
    tl.store(y, (at,), 2 * tl.load(x, (at,), (256,)))


def drawn_states(rows: int) -> tuple[Any, ...]:
    """Arguments of `states`, and what comes of them."""
    rng = np.random.default_rng(rows)
    q, b = ((rng.standard_normal((2, rows, 128)) / 16).astype(BF16) for _ in range(2))
    v = rng.standard_normal((2, rows, 16)).astype(BF16)
    h, expected = np.zeros((2, 128, 16)), np.zeros((2, rows, 16))
    for t in range(0, rows, 16):
        part = slice(t, t + 16)
        held = b[:, part].astype(np.float64) @ h.astype(BF16).astype(np.float64)
        expected[:, part] = new = (v[:, part] + held).astype(BF16).astype(np.float64)
        h += q[:, part].astype(np.float64).swapaxes(1, 2) @ new
    return q, b, v, poisoned(v.shape, BF16), expected


def machine(multiprocessors: int, *assumed: str) -> Machine:
    return replace(usual_machine(TARGET), multiprocessors=multiprocessors, assumed=assumed)


def shared_by(kernel: CompiledKernel) -> int:
    """The CTAs of a multiprocessor that a kernel is made for."""
    return max(1, kernel.suits[0])


@pytest.mark.parametrize("multiprocessors", [0, 1, 2])
def test_as_many_ctas_as_there_are_programs(
    multiprocessors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two warpgroups that wait for each other share a multiprocessor with two CTAs like theirs; of
    two programs on one, or on each its own, with as many."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    if multiprocessors:
        monkeypatch.setattr(jit, "machine_of", lambda *_: machine(multiprocessors))
    q, b, v, o, expected = drawn_states(200)
    there = states.on("emulator:check")
    there(q, b, v, o)
    np.testing.assert_allclose(o.astype(np.float64), expected, atol=4e-2)
    compiled = there.compiled(q, b, v, o)
    assert shared_by(compiled) == {0: 3, 1: 2, 2: 1}[multiprocessors]
    assert (".minnctapersm 3" in compiled.ptx) == (multiprocessors == 0)


def test_programs_that_another_kernel_suits_better() -> None:
    """Fewer than share a multiprocessor, where a device says itself how many it has; more than
    whole warps are for."""
    kernel = scaled.compile(["x:f32[?:8]", "y:f32[?:8]"], target="sm_90a")
    for suits, roles, expected in (
        ((3, 0), True, [1, 1, 2, 2, 0]),
        ((3, 0), False, [1, 2, 2, 2, 0]),
        ((0, 2), False, [0, 0, 0, 0, 3]),
    ):
        suited = replace(kernel, suits=suits, has_roles=roles)
        found = [better_suited(suited, {}, machine(10), (n, 1, 1)) for n in (0, 9, 11, 20, 21)]
        assert found == expected
    for spreads, expected in ((True, [-8, -4, -2, -2, 1]), (False, [1, 1, 1, 1, 1])):
        suited = replace(kernel, suits=(2, 0), spreads_few=spreads)
        found = [better_suited(suited, {}, machine(10), (n, 1, 1)) for n in (1, 2, 3, 5, 6)]
        assert found == expected
    striped = replace(kernel, suits=(3, 0), stripes=4)  # CTAs a program
    assert better_suited(striped, {}, machine(10), (3, 1, 1)) == 2
    usual, few = machine(10, "multiprocessors"), replace(kernel, suits=(3, 0))
    assert better_suited(few, {}, usual, (5, 1, 1)) == 0
