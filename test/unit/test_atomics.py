"""Gathers, scatters and atomics on the emulator against NumPy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from emulated import array_type, lower, random_layout, run, seed_of, tile_type
from target_names import MAIN
from test_reductions import DTYPES, PADDING, load_text, store_text

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble
from tilec.hardware.layout import Layout, parse_layout
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError

SHAPES = [((1,), 4), ((37,), 1), ((300,), 4), ((5, 37), 2), ((64, 8), 8)]


def gather_scatter(shape: Sequence[int], element: str, index: str, layout: Layout) -> str:
    """y[i, j] = x[i, j] through a gather and a scatter, masked; 2-D arrays."""
    data, mask = tile_type(shape, element, layout), tile_type(shape, "i1", layout)
    places = tile_type(shape, index, layout)
    array, flags = array_type(2, element), array_type(len(shape), "i8")
    indices = array_type(len(shape), index)
    return f"""
func.func @k(%x: {array}, %y: {array}, %m: {flags}, %i: {indices}, %j: {indices}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, "i8", layout, "%flag", "%m")}
  {load_text(shape, index, layout, "%ti", "%i", "0")}
  {load_text(shape, index, layout, "%tj", "%j", "0")}
  %zero = arith.constant dense<0> : {tile_type(shape, "i8", layout)}
  %ok = arith.cmpi ne, %flag, %zero : {tile_type(shape, "i8", layout)}
  %all = arith.constant dense<true> : {mask}
  %other = arith.constant dense<7.0> : {data}
  %t = "tile.gather"(%x, %ok, %other, %ti, %tj) {{options = {{}}}} : ({array}, {mask}, {data}, {places}, {places}) -> {data}
  "tile.scatter"(%t, %y, %all, %ti, %tj) {{options = {{}}}} : ({data}, {array}, {mask}, {places}, {places}) -> ()
  return
}}"""  # noqa: E501


@pytest.mark.share(2)
@pytest.mark.parametrize("index", ["i32", "i64", "i16"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("shape", "num_warps"), SHAPES)
def test_gather_and_scatter(shape: tuple[int, ...], num_warps: int, bits: int, index: str) -> None:
    """Indices outside (negative, too large, beyond 32 bits) touch nothing."""
    seed = seed_of(shape, num_warps, bits)
    rng = np.random.default_rng(seed)
    layout = random_layout(random.Random(seed), shape, num_warps)
    rows, columns = 50, 41
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    y = np.zeros_like(x)
    count = int(np.prod(shape))
    flat = rng.permutation(rows * columns)[:count]  # no element twice: scatters race
    i, j = (a.reshape(shape).astype(DTYPES[index]) for a in (flat // columns, flat % columns))
    i[rng.random(shape) < 0.1] = -1
    j[rng.random(shape) < 0.1] = columns
    if index == "i64":
        i[rng.random(shape) < 0.1] = 1 << 32
    mask = (rng.random(shape) < 0.7).astype(np.int8)
    run(
        gather_scatter(shape, "f32", index, layout),
        [x, y, mask, i, j],
        num_warps=num_warps,
        index_bits=bits,
    )
    want = np.zeros_like(x)
    inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
    want[i[inside], j[inside]] = np.where(mask[inside] != 0, x[i[inside], j[inside]], 7.0)
    np.testing.assert_array_equal(y, want)


def rmw(
    shape: Sequence[int],
    element: str,
    layout: Layout,
    kind: str,
    *,
    order: str = "relaxed",
    scope: str = "gpu",
    used: bool = True,
) -> str:
    """An atomic on a 1-D array; the old values go to another if `used`."""
    data, mask = tile_type(shape, element, layout), tile_type(shape, "i1", layout)
    places = tile_type(shape, "i32", layout)
    array, values = array_type(1, element), array_type(len(shape), element)
    indices, flags = array_type(len(shape), "i32"), array_type(len(shape), "i8")
    return f"""
func.func @k(%a: {array}, %v: {values}, %i: {indices}, %m: {flags}, %o: {values}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, "i8", layout, "%flag", "%m")}
  {load_text(shape, "i32", layout, "%ti", "%i", "0")}
  {load_text(shape, element, layout, "%tv", "%v")}
  %zero = arith.constant dense<0> : {tile_type(shape, "i8", layout)}
  %ok = arith.cmpi ne, %flag, %zero : {tile_type(shape, "i8", layout)}
  %old = "tile.atomic_rmw"(%tv, %a, %ok, %ti) {{kind = "{kind}", options = {{}}, order = "{order}", scope = "{scope}"}} : ({data}, {array}, {mask}, {places}) -> {data}
  {store_text(shape, element, layout, "%old", "%o") if used else ""}
  return
}}"""  # noqa: E501


COMBINE = {
    "addf": np.add,
    "addi": np.add,
    "maxs": np.maximum,
    "mins": np.minimum,
    "maxf": np.maximum,
    "minf": np.minimum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "maxu": lambda a, b: np.maximum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
    "minu": lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
}
FLOAT_KINDS = ("addf", "maxf", "minf", "exchange")
INTEGER_KINDS = ("addi", "maxs", "mins", "andi", "ori", "xori", "exchange")
CASES = [
    *((kind, element) for element in ("f16", "bf16", "f32", "f64") for kind in FLOAT_KINDS),
    *((kind, element) for element in ("i16", "i32", "i64") for kind in INTEGER_KINDS),
    ("maxu", "i32"),
    ("minu", "i32"),
]


@pytest.mark.share(3)
@pytest.mark.parametrize(("target", "seeds"), [("sm_80", (1, 2)), ("sm_90a", (2, 1))])
@pytest.mark.parametrize(("kind", "element"), CASES)
def test_every_kind(kind: str, element: str, target: str, seeds: tuple[int, int]) -> None:
    """Few places, many elements: they meet. Each element acts once, though layouts hold copies.
    With a use of the old value on one layout, without on another; the other way round elsewhere."""
    shape, places = (5, 37), 6
    for seed, used in zip(seeds, (True, False), strict=True):
        rng = np.random.default_rng(seed)
        layout = random_layout(random.Random(seed), shape, 4)
        dtype = DTYPES[element]
        v = rng.integers(-20, 20, shape).astype(dtype)
        a = rng.integers(-20, 20, places).astype(dtype)
        i = rng.integers(-1, places + 1, shape).astype(np.int32)
        mask = (rng.random(shape) < 0.8).astype(np.int8)
        old, before = np.zeros(shape, dtype), a.copy()
        text = rmw(shape, element, layout, kind, used=used)
        run(text, [a, v, i, mask, old], num_warps=4, target=target)
        for place in range(places):
            here = (i == place) & (mask != 0)
            if kind == "exchange":
                assert a[place] in [before[place], *v[here]]
                chain = sorted([*old[here], a[place]])
                assert not used or chain == sorted([before[place], *v[here]])
                continue
            want = before[place]
            for value in v[here]:
                want = dtype(COMBINE[kind](want, value))
            assert a[place] == want
            if used and here.any():
                assert before[place] in old[here]


@pytest.mark.parametrize(("target", "words"), [("sm_80", 1), ("sm_90a", 4)])
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_sums_of_neighbours_in_16_bits(
    element: str, target: str, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three programs add to the same rows, ragged at both ends, in the order of Triton's atomics;
    an odd number of columns has no pairs."""
    monkeypatch.setenv("TILEC_TARGET", target)

    @tilec.kernel(grid=lambda c, M, N: 3 * tl.cdiv(c.shape[0], M))
    def add_up(x: tl.array, c: tl.array, M: tl.const, N: tl.const):
        n, m = tl.program_id(0) % 3, tl.program_id(0) // 3 * M
        rows, columns = (m + tl.arange(M))[:, None], tl.arange(N)[None, :]
        inside = (rows < c.shape[0]) & (columns < c.shape[1])
        value = tl.load(x, (n, m, 0), (1, M, N)).reshape((M, N))
        tl.atomic_add(c, (rows, columns), value, mask=inside, order="acq_rel")

    pairs, dtype = element == "f16" or target == "sm_90a", DTYPES[element]
    for width, count in ((104, words if pairs else 0), (101, 0)):
        rng = np.random.default_rng(width)
        x = rng.integers(-20, 20, (3, 37, width)).astype(dtype)
        c = rng.integers(-20, 20, (37, width)).astype(dtype)
        want = c + x.sum(0, dtype=np.float32).astype(dtype)
        packed = f"add.noftz.{'v4.' if count > 1 else ''}{element}x2"
        assert (packed in add_up.compiled(x, c, 16, 128).ptx) == (count > 0)
        add_up.on("emulator:check")(x, c, 16, 128)
        np.testing.assert_array_equal(c, want)


def test_signed_zeros_infinities_and_nan_in_float_maximum() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 1e-40], np.float32)
    pairs = np.array([(a, b) for a in special for b in special if not np.isnan(a)], np.float32)
    layout = random_layout(random.Random(3), (len(pairs),), 2)
    for kind, reference in (("maxf", np.maximum), ("minf", np.minimum)):
        for element in ("f32", "f64"):
            a, v = (pairs[:, side].astype(DTYPES[element]) for side in (0, 1))
            want = reference(a, v)
            index = np.arange(len(a), dtype=np.int32)
            mask, old = np.ones(len(a), np.int8), np.zeros_like(a)
            text = rmw(a.shape, element, layout, kind)
            run(text, [a, v.copy(), index, mask, old], num_warps=2)
            np.testing.assert_array_equal(a, want)
            zeros = (pairs[:, 0] == 0) & (pairs[:, 1] == 0)
            signs = np.signbit(pairs[zeros])
            both = signs.all(1) if kind == "maxf" else signs.any(1)
            np.testing.assert_array_equal(np.signbit(a[zeros]), both)


def test_copies_know_the_old_value() -> None:
    """Lanes hold copies of four elements; each writes the old value it knows."""
    layout = parse_layout("T(32,2):(0,1@0) V(2):(2@0)")
    wide = parse_layout("T(32,2):(1@1,1@0) V(2):(2@0)")
    text = rmw((4,), "i32", layout, "addi").replace(
        store_text((4,), "i32", layout, "%old", "%o"),
        f'%b = "tile.broadcast"(%old) {{dims = array<i32: 0>}} : '
        f"({tile_type((4,), 'i32', layout)}) -> {tile_type((4, 32), 'i32', wide)}\n"
        + store_text((4, 32), "i32", wide, "%b", "%o"),
    )
    text = text.replace(f"%o: {array_type(1, 'i32')}", f"%o: {array_type(2, 'i32')}")
    a, v, i = (np.arange(4, dtype=np.int32) * k for k in (7, 1, 1))
    old = np.full((4, 32), -1, np.int32)
    run(text, [a, v, i, np.ones(4, np.int8), old], num_warps=2)
    np.testing.assert_array_equal(a, np.arange(4) * 8)
    np.testing.assert_array_equal(old, np.broadcast_to(np.arange(4)[:, None] * 7, (4, 32)))


def cas(shape: Sequence[int], element: str, layout: Layout) -> str:
    """Compare-and-swap against zero; the old values go to another array."""
    data, mask = tile_type(shape, element, layout), tile_type(shape, "i1", layout)
    array, values = array_type(1, element), array_type(len(shape), element)
    places, indices = tile_type(shape, "i32", layout), array_type(len(shape), "i32")
    zero = "0.0" if element in PADDING else "0"
    return f"""
func.func @k(%a: {array}, %v: {values}, %i: {indices}, %o: {values}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, "i32", layout, "%ti", "%i", "0")}
  {load_text(shape, element, layout, "%tv", "%v")}
  %e = arith.constant dense<{zero}> : {data}
  %ok = arith.constant dense<true> : {mask}
  %old = "tile.atomic_cas"(%e, %tv, %a, %ok, %ti) {{order = "acq_rel", scope = "cta"}} : ({data}, {data}, {array}, {mask}, {places}) -> {data}
  {store_text(shape, element, layout, "%old", "%o")}
  return
}}"""  # noqa: E501


@pytest.mark.parametrize("element", ["f16", "f32", "f64", "i16", "i32", "i64"])
def test_compare_and_swap(element: str) -> None:
    shape, places = (100,), 8
    layout = random_layout(random.Random(9), shape, 4)
    rng = np.random.default_rng(9)
    dtype = DTYPES[element]
    v = (rng.permutation(100) + 1).astype(dtype)
    a = np.array([0, 0, 0, 0, 55, 0, 0, 0], dtype)
    i = rng.integers(0, places, shape).astype(np.int32)
    old = np.full(shape, -1, dtype)
    run(cas(shape, element, layout), [a, v, i, old], num_warps=4)
    for place in range(places):
        here = i == place
        if place == 4:
            assert a[place] == 55
            assert (old[here] == 55).all()
            continue
        assert a[place] in v[here]
        assert (old[here] == 0).sum() == 1
        assert (old[here & (old != 0)] == a[place]).all()


@pytest.mark.share(2)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel"])
def test_orders_and_scopes_are_spelled(target: str, order: str) -> None:
    """By the access itself where a thread has one element, else by fences around all of them."""
    scopes = ["cta", "gpu", "sys"] + ([] if target == "sm_80" else ["cluster"])
    for scope in scopes:
        for used, many in product((False, True), repeat=2):
            layout = parse_layout(f"T(32):(1@0) V({2 if many else 1}):(32@0)")
            shape = (64 if many else 32,)
            text = rmw(shape, "i32", layout, "addi", order=order, scope=scope, used=used)
            ptx, _ = lower(text, num_warps=1, target=target)
            reduces = not used and order in ("relaxed", "release")
            name, said = "red" if reduces else "atom", "relaxed" if many else order
            access, fence = f"{name}.{said}.{scope}.global.add.u32", f"fence.acq_rel.{scope};"
            places = {"release": (True, False), "acquire": (False, True), "acq_rel": (True, True)}
            wanted = places.get(order, (False, False)) if many else (False, False)
            first, last = ptx.index(access), ptx.rindex(access)
            assert ptx.count(access) == 1 + many
            assert ((fence in ptx[:first]), (fence in ptx[last:])) == wanted
            assert fence not in ptx[first:last]
    assemble(ptx, find_target(target))


@pytest.mark.parametrize("target", MAIN)
def test_many_elements_a_thread_release_and_acquire(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program writes, counts all its elements up, and the one that comes last reads."""
    monkeypatch.setenv("TILEC_TARGET", target)

    @tilec.kernel(grid=3)
    def add_up(x: tl.array, part: tl.array, ready: tl.array, total: tl.array, B: tl.const):
        at = tl.arange(B)
        tl.store(part, (tl.program_id(0), 0), tl.load(x, (tl.program_id(0), 0), (1, B)))
        seen = tl.atomic_add(ready, at, tl.full((B,), 1, tl.i32), order="acq_rel")
        last = (tl.min(seen) == 2).to(tl.i32)
        for n in tl.range(3 * last):
            found = tl.sum(tl.load(part, (n, 0), (1, B)), 0)
            tl.atomic_add(total, at, found, order="relaxed")

    x = np.round(np.random.default_rng(5).standard_normal((3, 300)) * 8).astype(np.float32)
    part, total = np.full_like(x, np.nan), np.zeros(300, np.float32)
    ready = np.zeros(300, np.int32)
    add_up.on("emulator:check")(x, part, ready, total, 300)
    np.testing.assert_array_equal(total, x.sum(0))


def every_kind(layout: Layout) -> str:
    """All kinds in one kernel, each once with and once without a use of the old value."""
    shape = (32,)
    mask, places = tile_type(shape, "i1", layout), tile_type(shape, "i32", layout)
    parameters, lines = [], []
    for number, (kind, element) in enumerate(CASES):
        data, array = tile_type(shape, element, layout), array_type(1, element)
        parameters.append(f"%a{number}: {array}")
        lines.append(load_text(shape, element, layout, f"%v{number}", f"%a{number}"))
        for name in ("used", "unused"):
            lines.append(
                f'%{name}{number} = "tile.atomic_rmw"(%v{number}, %a{number}, %ok, %i) '
                f'{{kind = "{kind}", options = {{}}, order = "relaxed", scope = "gpu"}} : '
                f"({data}, {array}, {mask}, {places}) -> {data}"
            )
        lines.append(store_text(shape, element, layout, f"%used{number}", f"%a{number}"))
    return f"""
func.func @k({", ".join(parameters)}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %ok = arith.constant dense<true> : {mask}
  %i = "tile.iota"() {{axis = 0 : i32}} : () -> {places}
  {chr(10).join(lines)}
  return
}}"""


@pytest.mark.share(3)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_ptxas_takes_every_kind(target: str) -> None:
    layout = random_layout(random.Random(1), (32,), 1)
    ptx, _ = lower(every_kind(layout), num_warps=1, target=target)
    assemble(ptx, find_target(target))


def test_bf16_addition_is_an_instruction_where_there_is_one() -> None:
    layout = random_layout(random.Random(1), (64,), 1)
    text = rmw((64,), "bf16", layout, "addf", used=False)
    assert "red.relaxed.gpu.global.add.noftz.bf16" in lower(text, num_warps=1, target="sm_90a")[0]
    assert "atom.relaxed.gpu.global.cas.b16" in lower(text, num_warps=1, target="sm_80")[0]


@tilec.kernel(grid=lambda y: 1)
def largest(x: tl.array, y: tl.array, at: tl.array):
    tl.atomic_max(y, tl.arange(64), tl.load(x, 0, 64))
    tl.atomic_add(y, tl.load(at, 0, 64), tl.load(x, 0, 64))


@pytest.mark.parametrize(("dtype", "loops"), [("f16", 2), ("i16", 2), ("f32", 0), ("i32", 0)])
def test_the_report_names_loops(dtype: str, loops: int) -> None:
    """A loop around an atomic of 16 bits, or of what ptxas makes one, is not silent."""
    specs = [f"x:{dtype}[?]", f"y:{dtype}[?]", "at:i32[?]"]
    decisions = largest.compile(specs, target="sm_90a").report["decisions"]
    assert sum("loop of compare-and-swaps" in decision["why"] for decision in decisions) == loops


def test_cluster_scope_needs_clusters() -> None:
    layout = random_layout(random.Random(1), (64,), 1)
    with pytest.raises(
        CompileError, match="scope 'cluster' needs thread block clusters, which sm_80"
    ):
        lower(rmw((64,), "i32", layout, "addi", scope="cluster"), num_warps=1)


def fence(scope: str) -> str:
    """A fence alone."""
    return f"""
func.func @k() attributes {{tile.kernel}} {{
  "tile.fence"() {{order = "seq_cst", scope = "{scope}"}} : () -> () loc("kernels.py":7:3)
  return
}}"""


@pytest.mark.parametrize("scope", ["cta", "cluster", "gpu", "sys"])
def test_fences_are_spelled(scope: str) -> None:
    ptx, _ = lower(fence(scope), num_warps=1, target="sm_90a")
    assert f"fence.sc.{scope};" in ptx
    assemble(ptx, find_target("sm_90a"))


def test_a_fence_among_clusters_needs_clusters() -> None:
    with pytest.raises(CompileError, match="scope 'cluster' needs thread block clusters") as error:
        lower(fence("cluster"), num_warps=1, target="sm_80")
    assert str(error.value.location) == "kernels.py:7:3"


def test_bytes_have_no_atomics() -> None:
    layout = random_layout(random.Random(1), (64,), 1)
    with pytest.raises(
        CompileError, match="no atomics on i8; elements must have 16, 32 or 64 bits"
    ):
        lower(rmw((64,), "i8", layout, "addi"), num_warps=1)


@pytest.mark.parametrize("order", ["relaxed", "acq_rel"])
def test_sums_of_neighbours(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four at once, with old values that nobody reads: by `red`, or by `atom` where the order says
    that something is read."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")

    @tilec.kernel(grid=5)
    def add_rows(x: tl.array, y: tl.array, B: tl.const, ORDER: tl.const):
        at = tl.arange(B)
        tl.atomic_add(
            y, at, tl.load(x, (tl.program_id(0), 0), B), mask=at < y.shape[0], order=ORDER
        )

    x = np.random.default_rng(7).standard_normal((5, 1000)).astype(np.float32)
    y = np.ones(1000, np.float32)
    add_rows(x, y, B=1024, ORDER=order)
    np.testing.assert_allclose(y, 1 + x.sum(0), rtol=1e-5, atol=1e-5)
    ptx = add_rows.compiled(x, y, B=1024, ORDER=order).ptx
    name = "red" if order == "relaxed" else "atom"
    assert ptx.count(f"{name}.relaxed.gpu.global.add.v4.f32") == 1024 // 4 // 32 // 8
