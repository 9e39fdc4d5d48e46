"""Loops of products that the CTAs of a cluster sum in parts (pass split-sums), on the emulator."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl
import tilec.ops
from tilec.call.call_class import class_of
from tilec.call.jit import Kernel
from tilec.call.shared_code import SharedCode
from tilec.call.specialization import specialize
from tilec.call.tile_choice import Tiles
from tilec.compile.compiler import find_kernel
from tilec.costs.dot_work import Memory
from tilec.costs.machine import usual_machine
from tilec.costs.model import predict
from tilec.costs.work import LoopWork, Work
from tilec.examples.attention_backward import reference as gradients
from tilec.examples.matmul import draw, matmul, reference
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops import product_launch
from tilec.ops.gradient_kernels import key_gradients, query_gradients
from tilec.ops.tile_choice import TileChoice, choose_tiles
from tilec.passes.programs.sum_parts import meeting_of, parts_that_sum, why_whole
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.terms.demands import PARTS

BF16 = ml_dtypes.bfloat16
M, N = 70, 24
"""Two tiles of 64 x 32 below each other, ragged."""


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def gated(
    a: tl.array,
    b: tl.array,
    g: tl.array,
    bias: tl.array,
    c: tl.array,
    low,
    BM: tl.const = 64,
    BN: tl.const = 32,
    BK: tl.const = 32,
):
    """c += (a @ b + bias) * sign(a @ g) without the first `low` of k; a ring of two slots wraps."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    first, second = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(tl.assume(low, min=0) // BK * BK, a.shape[1], BK, stages=2):
        x = tl.load(a, (m, k), (BM, BK))
        first = tl.dot(x, tl.load(b, (k, n), (BK, BN)), first)
        second = tl.dot(x, tl.load(g, (k, n), (BK, BN)), second)
    first = first + tl.load(bias, n, BN)[None, :]
    found = tl.where(second > 0, first, -first) + tl.load(c, (m, n), (BM, BN)).to(tl.f32)
    tl.store(c, (m, n), found.to(c.dtype))


def checked(kernel: Kernel, call: Any) -> None:
    """In check mode, by turns in late mode."""
    for mode in modes():
        call(kernel.on(f"emulator:{mode}"))


@pytest.mark.parametrize(
    ("target", "parts", "k"),
    [
        ("sm_90a", 2, 488),
        ("sm_90a", 4, 300),
        ("sm_90a", 8, 100),
        ("sm_90a", 16, 700),
        ("sm_120a", 4, 200),
    ],
)
def test_two_sums_with_an_epilogue(
    target: str, parts: Any, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 8 parts of 3 steps most have none."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(k)
    a, b, g = (rng.standard_normal(s).astype(BF16) for s in ((M, k), (k, N), (k, N)))
    bias, before = rng.standard_normal(N, np.float32), rng.standard_normal((M, N)).astype(BF16)
    wide = [x[..., 32:].astype(float) if x is a else x[32:].astype(float) for x in (a, b, g)]
    gate = wide[0] @ wide[2]
    expected = (wide[0] @ wide[1] + bias) * np.where(gate > 0, 1, -1) + before.astype(float)
    sure = np.abs(gate) > 1e-3

    def call(kernel: Kernel) -> None:
        c = before.copy()
        kernel(a, b, g, bias, c, 40)
        error = np.abs(c.astype(float) - expected)[sure].max() / np.abs(expected).max()
        assert error < 8e-3

    checked(gated.demanding(sum_parts=parts), call)


def test_two_sums_come_in_turns_through_one_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 KB each, with no room for both."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(9)
    a, b, g = (rng.standard_normal(s).astype(BF16) for s in ((130, 140), (140, 120), (140, 120)))
    c, bias = np.zeros((130, 120), BF16), np.zeros(120, np.float32)
    gate = a.astype(float) @ g.astype(float)
    expected = a.astype(float) @ b.astype(float) * np.where(gate > 0, 1, -1)

    def call(kernel: Kernel) -> None:
        found = c.copy()
        kernel(a, b, g, bias, found, 0, BM=128, BN=128)
        error = np.abs(found.astype(float) - expected)[np.abs(gate) > 1e-3].max()
        assert error < 8e-3 * np.abs(expected).max()

    checked(gated.demanding(sum_parts=2), call)


@pytest.mark.parametrize(
    ("dtype", "k", "rows"), [(np.int8, 208, 64), (np.float16, 333, 16), (np.float16, 333, 64)]
)
def test_integers_and_rows_that_threads_copy(
    dtype: Any, k: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of 333 elements begin anywhere: no tensor copies, no roles."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(k)
    a, b = draw(rng, (rows - 3, k), dtype), draw(rng, (N, k), dtype).T
    expected = reference(a, b)

    def call(kernel: Kernel) -> None:
        c = poisoned(expected.shape, np.int32 if dtype is np.int8 else dtype)
        kernel(a, b, c, BM=rows, BN=32, BK=64)
        assert np.abs(c - expected).max() <= 2e-3 * np.abs(expected).max() * (dtype != np.int8)

    checked(matmul.demanding(sum_parts=4), call)


def compiled(kernel: Kernel, target: str = "sm_90a", **constants: Any) -> Any:
    """Of products of f16."""
    specs = [f"{name}:f16[?,?:8;?:8,1]" for name in "abc"]
    return kernel.compile(specs, {"BM": 64, "BN": 32, "BK": 64, **constants}, target=target)


def test_parts_are_a_cluster_that_stays_for_one_program() -> None:
    found = compiled(matmul.demanding(sum_parts=4))
    assert (found.stripes, found.cluster, found.persistent) == (4, (4, 1, 1), False)
    assert "4 parts, a cluster" in str(decisions(found, "sums"))
    assert "stages" in str(decisions(found, "warp specialisation"))


def test_parts_take_the_shared_memory_of_one_tile_whatever_their_number() -> None:
    """64 x 144 sums, of which each CTA sends and gets three quarters; rings keep their slots."""
    found = compiled(matmul.demanding(sum_parts=4), BM=64, BN=144)
    assert "7 stages" in str(decisions(found, "warp specialisation"))
    work = Work(1, 4, (LoopWork(),), 0, 64 * 144, parts=4, sums=(64 * 144,))
    assert (work.parts_bytes, work.sent_bytes) == (64 * 144 * 4, 64 * 144 * 3)
    assert replace(work, parts=1).parts_bytes == replace(work, parts=1).sent_bytes == 0


def test_sums_that_are_sent_word_by_word_take_longer() -> None:
    """Of the transposed product, whose rows run down columns of its sums: few one by one, and many
    behind an exchange among lanes."""
    machine = usual_machine(find_target("sm_90a"))
    rates = machine.rates
    for columns, rate in ((48, rates.gathered_words), (176, rates.gathered_across)):
        sums = (64 * columns,)
        work = Work(128, 4, (LoopWork(1, {"f16": 1}),), 0, *sums, parts=8, sums=sums)
        slower = predict(replace(work, sends_words=True), machine).us - predict(work, machine).us
        assert slower == pytest.approx(
            work.sent_bytes / rate - work.sent_bytes / rates.gathered_bytes
        )
    f8 = (496, 304, 10368, 1, tl.f8e4m3, "ieee", machine)
    at_k = {"a": Memory(1, 128), "b": Memory(0, 128), "c": Memory(1, 32)}
    chosen = choose_tiles(*f8, **at_k)
    assert chosen is not None
    assert not chosen.is_transposed
    assert chosen.parts > 1


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def scaled(
    a: tl.array, b: tl.array, c: tl.array, BM: tl.const, BN: tl.const, BK: tl.const, WAY: tl.const
):
    """What no parts can sum, in several ways."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32) + (1 if WAY == "from one" else 0)
    if WAY == "early":
        tl.store(c, (m, n), acc.to(c.dtype))
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
        if WAY == "scaled":
            acc = acc * 0.5
        if WAY == "seen":
            tl.print("step", k)
    tl.store(c, (m, n), acc.to(c.dtype))


@pytest.mark.parametrize(
    ("way", "target", "demands", "reason"),
    [
        ("from one", "sm_90a", {}, "the loop carries what is no sum from zero"),
        ("scaled", "sm_90a", {}, "the loop carries what is no sum from zero"),
        ("early", "sm_90a", {}, "each part would run 'tile.store'"),
        ("seen", "sm_90a", {}, "each part would run 'tile.print'"),
        (
            "",
            "sm_80",
            {"sum_parts": 256, "BN": 96},
            "the last of 256 CTAs would read 6291456 bytes",
        ),
        ("", "sm_90a", {"persistent": True}, "CTAs or clusters share the programs already"),
        ("", "sm_90a", {"cluster": 2}, "CTAs or clusters share the programs already"),
    ],
)
def test_what_has_no_parts_is_refused(
    way: str, target: str, demands: dict[str, Any], reason: str
) -> None:
    constants = {name: demands.pop(name) for name in [*demands] if name == "BN"}
    kernel = scaled.demanding(**{"sum_parts": 2, **demands})
    with pytest.raises(CompileError, match=f"sum_parts=.* was asked for, but {reason}"):
        compiled(kernel, target, WAY=way, **constants)


def test_what_has_no_loop_is_refused() -> None:
    @tilec.kernel(grid=(1,), sum_parts=2)
    def once(a: tl.array, b: tl.array, c: tl.array, BM: tl.const, BN: tl.const, BK: tl.const):
        x, y = tl.load(a, (0, 0), (BM, BK)), tl.load(b, (0, 0), (BK, BN))
        tl.store(c, (0, 0), tl.dot(x, y).to(c.dtype))

    with pytest.raises(CompileError, match="no loop, or more than one, sums"):
        compiled(once)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("rows", [16, 64, 66, 68, 72])
def test_numbers_of_parts_are_told_at_once(target: str, rows: int) -> None:
    found = find_target(target)
    sizes = {"BM": rows, "BN": 36, "BK": 64}
    arrays = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
    module = matmul.source_module(arrays, sizes, target=target)
    with module.context:
        function = find_kernel(module, None)
        meeting = meeting_of(function, found)
        each = [n for n in PARTS if meeting.together(n) == n > 1]
        assert all(why_whole(function, found, n) is None for n in PARTS)
        assert parts_that_sum(function, found) == ([1, *each] if each else [])


def test_one_part_is_no_cluster() -> None:
    whole, one = compiled(matmul), compiled(matmul.demanding(sum_parts=1))
    assert whole.ptx == one.ptx


def test_other_numbers_are_refused() -> None:
    with pytest.raises(
        (CompileError, ArgumentError, ValueError),
        match="must be 1, 2, 4, 8 or a multiple of 4 up to 256",
    ):
        compiled(matmul.demanding(sum_parts=3))


def ranked(kernel: Kernel, shapes: dict[str, Any], given: dict[str, Any]) -> list[Tiles]:
    """The choices of `tl.auto` for arrays of these shapes on an H200, the first in front."""
    target = find_target("sm_90a")
    defaults = {p.name: p.default for p in kernel.parameters if p.name not in shapes} | given
    arrays = {}
    for name, shape in shapes.items():
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        dtype = "f32" if name in ("logs", "delta") else "bf16"
        arrays[name] = ArrayView(0, shape, strides, dtype, ("host", 0))
    wanted = specialize(kernel.parameters, {**defaults, **arrays})
    call = class_of(wanted.parameters, arrays | defaults, usual_machine(target))
    return kernel._programs.choices(wanted, target).order(call)


def taken(m: int, n: int, k: int, kernel: Kernel = matmul) -> list[Tiles]:
    """The same for a product."""
    return ranked(kernel, {"a": (m, k), "b": (k, n), "c": (m, n)}, {})


def test_automatic_tiles_come_in_parts_where_few_programs_have_a_long_loop() -> None:
    first = taken(104, 1536, 13824)[0]
    assert first.parts > 1
    assert f"in {first.parts} parts" in first.reasons["tiles of BM, BN, BK"]
    assert taken(256, 256, 8192)[0].parts > 1
    assert taken(4096, 4096, 4096)[0].parts == 1
    assert taken(256, 256, 64)[0].parts == 1
    assert {tiles.parts for tiles in taken(256, 256, 8192, matmul.demanding(sum_parts=2))} == {1}


@pytest.mark.parametrize(
    ("kernel", "parts", "heads", "kv_heads", "causal"),
    [
        (key_gradients, 2, 4, 1, True),  # two of the four heads each
        (key_gradients, 2, 3, 1, False),  # half of the queries of each head
        (key_gradients, 4, 1, 1, True),  # a quarter of the queries
        (query_gradients, 2, 2, 1, True),
    ],
)
def test_gradients_of_attention(
    kernel: Kernel,
    parts: Any,
    heads: int,
    kv_heads: int,
    causal: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sums that loops in loops carry, with more steps a part than rings have slots; with 64 keys
    and 128 elements a head, dk and dv are sent one after the other where parts are four."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    length, width = 400, 128 if parts > 2 else 16
    rng = np.random.default_rng(parts)
    q, do = rng.standard_normal((2, 1, heads, length, width)).astype(BF16)
    k, v = rng.standard_normal((2, 1, kv_heads, length, width)).astype(BF16)
    scale = width**-0.5
    o, logs, dq, dk, dv = gradients(q, k, v, do, causal, scale)
    logs, delta = logs.astype(np.float32), (o * do.astype(float)).sum(-1).astype(np.float32)
    if kernel is key_gradients:
        given, expected = (q, k, v, do, logs, delta), (dk, dv)
    else:
        given, expected = (q, k, v, o.astype(BF16), do, logs), (delta, dq)
    how = {"D": width, "SHARED": heads // kv_heads, "CAUSAL": causal, "BM": 64, "BN": 64}

    def call(kernel: Kernel) -> None:
        found = [poisoned(x.shape, np.float32 if x is delta else BF16) for x in expected]
        kernel(*given, *found, scale, **how)
        for part, right in zip(found, expected, strict=True):
            assert np.abs(part.astype(float) - right).max() < 1e-2 * np.abs(right).max()

    checked(kernel.demanding(sum_parts=parts), call)


@pytest.mark.parametrize(("batch", "is_split"), [(1, True), (4, False)])
def test_automatic_parts_of_gradients(batch: int, is_split: bool) -> None:
    """42 blocks of 128 keys are a third of an H200's multiprocessors, 168 more than all."""
    heads, kv_heads, length, width = 8, 2, 2688, 128
    of_q, of_k = (batch, heads, length, width), (batch, kv_heads, length, width)
    shapes = {x: of_q if x in ("q", "do") else of_k for x in ("q", "k", "v", "do", "dk", "dv")}
    shapes |= dict.fromkeys(("logs", "delta"), of_q[:3])
    first = ranked(key_gradients, shapes, {"D": width, "SHARED": heads // kv_heads, "scale": 0.1})[
        0
    ]
    assert (first.parts > 1) == is_split


def test_kernels_of_other_parts_are_others() -> None:
    """One that was compiled in parts does not serve a class that has the same tiles whole."""
    sizes = (("B", 64),)
    parts, whole = Tiles(sizes, {"B": "64: why"}, parts=2), Tiles(sizes, {"B": "64: why"})
    code, made = SharedCode(), []

    def compiling(stripes: int) -> Any:
        def made_so() -> CompiledKernel:
            made.append(stripes)
            return replace(once, constants={"B": 64}, stripes=stripes)

        return made_so

    once = compiled(matmul)
    assert code.find("key", [parts, whole], compiling(2)).stripes == 2
    assert code.find("key", [whole, parts], compiling(1)).stripes == 1
    assert code.find("key", [parts], compiling(1)).stripes == 2
    assert made == [2, 1]


@pytest.mark.parametrize(
    ("parts", "is_transposed", "rows"), [(2, False, 64), (4, True, 64), (8, False, 16)]
)
def test_the_operation_sums_parts(
    parts: int, is_transposed: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tilec.ops.matmul`: a batch with an epilogue; k of 7 steps, so that one of 8 parts has
    none."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    choice = TileChoice(rows, 32, 32, 1, 1.0, is_transposed, True, parts=parts)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    rng = np.random.default_rng(17)
    shapes: tuple[tuple[int, ...], ...] = (2, 40, 200), (2, 200, 72), (72,)
    a, b, bias = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes)
    expected = np.maximum(reference(a, b) + bias.astype(float), 0)
    found = tilec.ops.matmul(a, b, bias=bias, activation="relu")
    assert np.abs(found - expected).max() <= 2e-3 * np.abs(expected).max()
