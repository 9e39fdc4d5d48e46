"""Whole `.tile` kernels on the emulator against float64 references, in every configuration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shares import share
from tile_kernels import Attention, LayerNorm, Matmul, RowSum, Softmax
from tile_programs import (
    Options,
    Outcome,
    blank,
    dump,
    execute,
    place,
    random_array,
    resume,
    run,
    stage_of,
    twin,
)

from tilec.compile.compiler import Compilation

TARGETS = ("sm_80", "sm_90a", "sm_100a")
RESOLUTION = {"f64": 1e-13, "f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2, "i32": 0.0}
"""Largest relative error of one rounding to a type and a sum of a few hundred terms in f32."""
TF32 = 2e-3


def near(found: np.ndarray, expected: np.ndarray, element: str, tolerance: float = 0.0) -> None:
    """Close relative to the largest value."""
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    atol = (tolerance or RESOLUTION[element]) * scale
    np.testing.assert_allclose(np.asarray(found, expected.dtype), expected, rtol=0, atol=atol)


def aligned(values: np.ndarray) -> np.ndarray:
    """Placed so that every row starts at a multiple of 16 bytes."""
    return place(values, pitch=-values.shape[-1] % (16 // values.itemsize))


def crooked(values: np.ndarray) -> np.ndarray:
    """Placed so that nothing is aligned beyond one element."""
    return place(values, pitch=1 - values.shape[-1] % 2, lead=1)


def run_matmul(
    kernel: Matmul,
    sizes: tuple[int, int, int],
    options: Options,
    lay: object = aligned,
    seed: int = 0,
) -> Outcome:
    """Runs a product of those M, N, K and compares it."""
    m, n, k = sizes
    rng = np.random.default_rng(seed)
    e = kernel.element
    a = random_array(rng, (k, m) if kernel.a_transposed else (m, k), e)
    b = random_array(rng, (n, k) if kernel.b_transposed else (k, n), e)
    extra = [random_array(rng, n, "f32")] if kernel.bias else []
    extra += [random_array(rng, (m, n), kernel.result)] if kernel.residual else []
    c = lay(blank((m, n), kernel.result))
    grid = (-(-m // kernel.m), -(-n // kernel.n))
    outcome = run(kernel.text(), [lay(a), lay(b), c, *map(lay, extra)], grid, options)
    bias = extra[0] if kernel.bias else None
    residual = extra[-1] if kernel.residual else None
    tolerance = TF32 if kernel.precision == "tf32" else 0.0
    near(c, kernel.reference(a, b, bias, residual), kernel.result, tolerance)
    return outcome


INSTRUCTIONS = [
    Matmul(64, 64, 32, "bf16"),
    Matmul(48, 80, 40, "f16"),
    Matmul(32, 16, 24, "f16", acc="f16"),
    Matmul(32, 24, 24, "f32", precision="tf32"),
    Matmul(24, 40, 10, "f32"),
    Matmul(32, 32, 16, "f64", acc="f64"),
    Matmul(64, 32, 64, "i8", acc="i32", out="i32"),
    Matmul(16, 8, 16, "bf16", out="f32"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize("lay", [aligned, crooked])
@pytest.mark.parametrize("kernel", INSTRUCTIONS, ids=str)
def test_every_instruction_multiplies_odd_sizes(kernel: Matmul, lay: object) -> None:
    run_matmul(kernel, (67, 45, 71), Options(), lay)


@pytest.mark.parametrize("depth", [0, 1, 32, 33, 100])
def test_no_one_and_many_iterations(depth: int) -> None:
    run_matmul(Matmul(32, 32, 32, "f16"), (40, 24, depth), Options())


@pytest.mark.share(2)
@pytest.mark.parametrize("a_transposed", [False, True])
@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize("element", ["bf16", "f32", "f64", "i8"])
def test_operands_may_lie_transposed(element: str, a_transposed: bool, b_transposed: bool) -> None:
    acc = {"f64": "f64", "i8": "i32"}.get(element, "f32")
    kernel = Matmul(32, 32, 32, element, acc, acc, a_transposed, b_transposed)
    run_matmul(kernel, (40, 50, 70), Options())


@pytest.mark.parametrize("lay", [aligned, crooked])
def test_bias_and_residual(lay: object) -> None:
    kernel = Matmul(32, 48, 16, "bf16", bias=True, residual=True)
    run_matmul(kernel, (50, 70, 40), Options(), lay)


@pytest.mark.share(2)
@pytest.mark.parametrize("index_bits", [32, 64])
@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16, None])
def test_any_number_of_warps(num_warps: int | None, index_bits: int) -> None:
    options = Options(num_warps=num_warps, index_bits=index_bits)
    run_matmul(Matmul(64, 48, 32, "f16"), (70, 60, 50), options)


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", [1, 4, 16])
@pytest.mark.parametrize("columns", [1, 37, 1000, 1024])
@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_softmax(element: str, columns: int, num_warps: int) -> None:
    x = random_array(np.random.default_rng(1), (3, columns), element)
    y = aligned(blank(x.shape, element))
    tile = 1024 if columns >= 1000 else columns
    run(Softmax(tile, element).text(), [aligned(x), y], (3,), Options(num_warps=num_warps))
    near(y, Softmax.reference(x), element)


@pytest.mark.parametrize("facts", [True, False])
@pytest.mark.parametrize("columns", [5, 500, 512])
def test_layer_norm(columns: int, facts: bool) -> None:
    rng = np.random.default_rng(2)
    x, weight, bias = (random_array(rng, s, "f32") for s in ((4, columns), columns, columns))
    y = aligned(blank(x.shape, "f32"))
    arguments = [aligned(x), aligned(weight), aligned(bias), y]
    run(LayerNorm(512).text(), arguments, (4,), Options(facts=facts))
    near(y, LayerNorm.reference(x, weight, bias), "f32")


@pytest.mark.parametrize("columns", [0, 1, 511, 1024, 1500])
def test_row_sum(columns: int) -> None:
    x = random_array(np.random.default_rng(3), (5, columns), "f32")
    y = blank((5,), "f32")
    run(RowSum(512).text(), [aligned(x), y], (5,))
    near(y, x.astype(np.float64).sum(1), "f32")


@pytest.mark.share(2)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize("rows", [(64, 64), (50, 75)])
def test_attention(rows: tuple[int, int], element: str, causal: bool) -> None:
    run_attention(Attention(32, 32, 32, element, causal), rows, Options())


def run_attention(kernel: Attention, rows: tuple[int, int], options: Options) -> Outcome:
    """Two heads of so many queries and keys."""
    queries, keys = rows if not kernel.causal else (rows[1], rows[1])
    rng, heads = np.random.default_rng(4), 2
    q = random_array(rng, (heads, queries, kernel.depth), kernel.element)
    k, v = (random_array(rng, (heads, keys, kernel.depth), kernel.element) for _ in range(2))
    o = blank(q.shape, kernel.element)
    grid = (-(-queries // kernel.m), heads)
    outcome = run(kernel.text(), [place(q), place(k), place(v), o], grid, options)
    near(o, kernel.reference(q, k, v), kernel.element)
    return outcome


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", [1, 2, 8])
@pytest.mark.parametrize("depth", [16, 48])
def test_attention_on_any_number_of_warps(depth: int, num_warps: int) -> None:
    run_attention(Attention(16, 24, depth, "f16"), (40, 50), Options(num_warps=num_warps))


# Targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_assemble_without_spills(target: str) -> None:
    options = Options(target=target)
    rng = np.random.default_rng(5)
    x, y = aligned(random_array(rng, (2, 1000), "bf16")), aligned(blank((2, 1000), "bf16"))
    outcomes = [
        run_matmul(Matmul(64, 64, 32, "bf16", bias=True), (70, 66, 64), options),
        run_matmul(Matmul(64, 64, 8, "f32"), (64, 60, 20), options),
        run_attention(Attention(64, 32, 32, "bf16", True), (64, 64), options),
        run(Softmax(1024).text(), [x, y], (2,), options),
    ]
    for outcome in outcomes:
        assembly = outcome.assemble()
        assert assembly.spills == 0
        assert assembly.stack == 0
        assert not assembly.messages


# Stopping and going on ------------------------------------------------------------------------


def matmul_arguments() -> list[np.ndarray]:
    """For a 64 x 48 x 40 product of f16."""
    rng = np.random.default_rng(6)
    return [
        aligned(random_array(rng, (64, 40), "f16")),
        aligned(random_array(rng, (40, 48), "f16")),
        aligned(blank((64, 48), "f16")),
    ]


def test_matmul_goes_on_from_any_dump(tmp_path: Path) -> None:
    kernel = Matmul(32, 32, 16, "f16").text()
    assert_restarts_agree(kernel, matmul_arguments(), (2, 2), tmp_path, of=1)


def test_softmax_goes_on_from_any_dump(tmp_path: Path, every_mutant: bool) -> None:
    x = random_array(np.random.default_rng(7), (2, 200), "f32")
    arguments = [aligned(x), aligned(blank(x.shape, "f32"))]
    of = 1 if every_mutant else 3
    assert_restarts_agree(Softmax(200, "f32").text(), arguments, (2,), tmp_path, of=of)


def test_attention_goes_on_from_any_dump(tmp_path: Path, every_mutant: bool) -> None:
    rng = np.random.default_rng(8)
    arguments = [place(random_array(rng, (1, 32, 16), "f16")) for _ in range(3)]
    arguments.append(blank((1, 32, 16), "f16"))
    text = Attention(16, 16, 16, "f16").text()
    assert_restarts_agree(text, arguments, (2, 1), tmp_path, of=1 if every_mutant else 3)


def assert_restarts_agree(
    text: str, arguments: list[np.ndarray], grid: tuple[int, ...], directory: Path, *, of: int
) -> None:
    """Every `of`-th dump of the tile pipeline compiles on to PTX that computes the same."""
    straight, dumps = dump(text, arguments, Options(), directory)
    stages = [stage_of(path) for path in dumps]
    assert {"tile", "simplify", "infer-layouts", "allocate-shared", "insert-barriers"} <= {*stages}
    first = output_of(straight, arguments, grid)
    assert not np.isnan(first).any()
    for path in share(dumps, of, everything=of == 1):
        job = resume(path, Options())
        # A pass that runs again may reorder code; equal PTX needs no second run.
        found = first if job.text == straight.text else output_of(job, arguments, grid)
        np.testing.assert_array_equal(found, first, err_msg=stage_of(path))


def output_of(job: Compilation, arguments: list[np.ndarray], grid: tuple[int, ...]) -> np.ndarray:
    """The last argument after a run, in float64."""
    output = twin(arguments[-1])
    execute(job, [*arguments[:-1], output], grid)
    return output.astype(np.float64)
