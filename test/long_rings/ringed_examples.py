"""The examples whose kernels have rings, or CTAs that stay: calls of the size a plan asks for."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from ring_plans import LEFT_OVER, Call, Case, RingPlan

from tilec import language as tl
from tilec.call.jit import Kernel
from tilec.examples import (
    ampere_gemm,
    attention,
    attention_backward,
    autotuned_matmul,
    block_scaled_matmul,
    block_sparse,
    convolution,
    demands,
    explicit_ampere_gemm,
    explicit_blackwell,
    explicit_blackwell_pairs,
    explicit_hopper_gemm,
    grouped_gemm,
    matmul,
    mixture_of_experts,
    packed_attention,
    paged_attention,
    pipelines,
    quantized_weights,
    sgemm_steps,
    split_k,
    stream_k,
    tile_scales,
)
from tilec.ops import attention_kernel, gradient_kernels
from tilec.tuning.tuned_kernel import TunedKernel

BF16 = ml_dtypes.bfloat16
ALL = ("sm_80", "sm_90a", "sm_100a")
CASES: dict[str, tuple[Case, tuple[str, ...]]] = {}
"""By name: the case and the targets it is for."""


def add(name: str, case: Case, targets: tuple[str, ...] = ALL) -> None:
    """Enters a case."""
    CASES[name] = case, targets


def draw(*shape: int, dtype: Any = BF16, seed: int = 0) -> np.ndarray:
    """Random numbers, the same for the same shape and seed."""
    rng = np.random.default_rng([seed, *shape])
    if np.issubdtype(np.dtype(dtype), np.integer):
        return rng.integers(-100, 100, shape, dtype=dtype)
    return rng.standard_normal(shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    """In float64."""
    return array.astype(np.float64)


def product(
    kernel: Kernel[...] | TunedKernel[...],
    *,
    transposed: bool = False,
    dtypes: tuple[Any, Any] = (BF16, BF16),
    fortran: bool = False,
    starts: bool = False,
    **constants: Any,
) -> Case:
    """c = a b, or a b^T, of a kernel with tiles BM x BN x BK. `starts`: c holds zeros before."""

    def case(plan: RingPlan) -> Call:
        plain = kernel.kernel if isinstance(kernel, TunedKernel) else kernel
        known = {parameter.name: parameter.default for parameter in plain.parameters}
        known |= plan.constants | constants
        tiles = [known.get(name) for name in ("BM", "BN", "BK")]
        rows, columns, depth = (tile if isinstance(tile, int) else 64 for tile in tiles)
        m, n, k = plan.across(rows, 2), columns + LEFT_OVER, plan.along(depth)
        a = draw(m, k, dtype=dtypes[0])
        b = draw(*((n, k) if transposed else (k, n)), dtype=dtypes[0], seed=1)
        if fortran:
            a, b = np.asfortranarray(a), np.asfortranarray(b)
        expected = wide(a) @ (wide(b).T if transposed else wide(b))
        c: Any = np.zeros((m, n), dtypes[1]) if starts else dtypes[1]
        return Call(kernel, [a, b, c], {2: expected}, constants=constants)

    return case


for _dtype, _precision in matmul.PRECISIONS.items():
    _kinds = (_precision.inputs, _precision.output)
    add(f"matmul {_dtype}", product(matmul.matmul, dtypes=_kinds, PRECISION=_precision.dot))
for _tiles in (ampere_gemm.HAND_WRITTEN, ampere_gemm.WIDE):
    _case = product(ampere_gemm.ampere_gemm, transposed=True, dtypes=(BF16, np.float32), **_tiles)
    add(f"ampere_gemm {_tiles['BM']}", _case)
_as_rows = {"transposed": True, "dtypes": (BF16, np.float32)}
add("explicit gemm", product(explicit_ampere_gemm.gemm, **_as_rows))
add("explicit gemm_ahead", product(explicit_ampere_gemm.gemm_ahead, **_as_rows, BK=32))
add("explicit hopper_gemm", product(explicit_hopper_gemm.hopper_gemm), ("sm_90a",))
for _kernel in (explicit_blackwell.blocked_product, explicit_blackwell.pipelined_product):
    _halves = (np.float16, np.float16)
    _case = product(_kernel, dtypes=_halves, BM=64, BN=64, BK=64)
    add(f"explicit {_kernel.name}", _case, ("sm_100a",))
_pairs = product(explicit_blackwell_pairs.pair_product, dtypes=(np.float16, np.float16))
add("explicit pair_product", _pairs, ("sm_100a",))
for _name, _kernel, _constants in (
    ("alone", demands.matmul, {}),
    ("two stages", demands.matmul, {"STAGES": 2, "WARP_SPECIALIZE": True}),
    ("no programs in turn", demands.matmul.demanding(num_warps=4, persistent=False), {}),
    ("cluster", demands.matmul.demanding(cluster=2), {}),
):
    _targets = ALL[:1] if _name == "alone" else ()
    add(f"demands {_name}", product(_kernel, **_constants), (*_targets, *ALL[1:]))
_turns = product(demands.matmul.demanding(num_warps=4, consumers="pingpong"))
add("demands pingpong", _turns, ("sm_90a",))
_dynamic = product(demands.matmul.demanding(persistent="dynamic"), BM=128)
add("demands dynamic", _dynamic, ("sm_100a",))
add("autotuned_matmul", product(autotuned_matmul.matmul, dtypes=(np.float16, np.float16),
                                BM=64, BN=64, BK=32))  # fmt: skip
for _kernel, _constants in (
    (pipelines.prefetch, {}),
    (pipelines.double_buffered, {}),
    (pipelines.double_buffered, {"STAGES": 4}),
):
    _case = product(_kernel, transposed=True, dtypes=(np.float32, np.float32), fortran=True,
                    **_constants)  # fmt: skip
    add(f"{_kernel.name} {_constants.get('STAGES', '')}".strip(), _case)
for _step in sgemm_steps.STEPS:
    _case = product(_step.kernel, dtypes=(np.float32, np.float32), **_step.constants)
    add(f"sgemm {_step.name}", _case)


def _split_k(plan: RingPlan) -> Call:
    parts = 3
    a, b = draw(72, parts * plan.along(32), dtype=np.float16), None
    b = draw(a.shape[1], 72, dtype=np.float16, seed=1)
    c = draw(72, 72, dtype=np.float32, seed=2)
    expected = c + wide(a) @ wide(b)
    return Call(split_k.split_k, [a, b, c], {2: expected}, 1e-5, {"SPLITS": parts})


def _stream_k(plan: RingPlan) -> Call:
    """No whole round: each program has a part as long as a loop's."""
    programs = max(3, plan.programs)
    a = draw(72, tl.cdiv(programs * plan.along(32), 64) * 16, dtype=np.float16)
    b = draw(a.shape[1], 72, dtype=np.float16, seed=1)
    c, constants = np.zeros((72, 72), np.float32), {"PROGRAMS": programs}
    return Call(stream_k.stream_k, [a, b, c], {2: wide(a) @ wide(b)}, 1e-5, constants)


def _attention(width: int, causal: bool, dtype: Any = BF16) -> Case:
    def case(plan: RingPlan) -> Call:
        queries = plan.across(int(plan.constants.get("BM") or 128))
        length = max(plan.along(128), queries if causal else 0)
        q = draw(1, 1, length if causal else queries, width, dtype=dtype)
        k, v = (draw(1, 1, length, width, dtype=dtype, seed=n) for n in (1, 2))
        scale = 1 / math.sqrt(width)
        expected = attention.reference(q, k, v, causal, scale)
        constants = {"D": max(16, 1 << (width - 1).bit_length()), "CAUSAL": causal}
        return Call(
            attention_kernel.attention, [q, k, v, dtype, scale], {3: expected}, 1e-2, constants
        )

    return case


for _width, _causal in ((64, False), (128, True), (40, True)):
    add(f"attention {_width}{' causal' if _causal else ''}", _attention(_width, _causal))
add("attention f16", _attention(64, False, np.float16))


def _gradients(of_keys: bool, width: int, causal: bool, **tiles: int) -> Case:
    kernel = gradient_kernels.key_gradients if of_keys else gradient_kernels.query_gradients
    own = {"BM": 64, "BN": 128} if of_keys else {"BM": 128, "BN": 64}

    def case(plan: RingPlan) -> Call:
        sizes = own | tiles
        block, step = (sizes[name] for name in (("BN", "BM") if of_keys else ("BM", "BN")))
        held, walked = plan.across(block), plan.along(step)
        if causal:
            held = walked = max(held, walked)
        queries, keys = (walked, held) if of_keys else (held, walked)
        q, do = (draw(1, 1, queries, width, seed=n) for n in (0, 1))
        k, v = (draw(1, 1, keys, width, seed=n) for n in (2, 3))
        scale = 1 / math.sqrt(width)
        o, logs, dq, dk, dv = attention_backward.reference(q, k, v, do, causal, scale)
        delta = (o * wide(do)).sum(-1).astype(np.float32)
        logs = logs.astype(np.float32)
        if of_keys:
            arguments = [q, k, v, do, logs, delta, BF16, BF16, scale]
            outputs = {6: dk, 7: dv}
        else:
            arguments = [q, k, v, o.astype(BF16), do, logs, np.float32, BF16, scale]
            outputs = {6: delta, 7: dq}
        constants = {"D": max(16, 1 << (width - 1).bit_length()), "CAUSAL": causal, **tiles}
        return Call(kernel, arguments, outputs, 1e-2, constants)

    return case


SMALL = {"BM": 64, "BN": 64}
for _of_keys in (True, False):
    for _causal in (False, True):
        _what = f"{'key' if _of_keys else 'query'}_gradients{' causal' if _causal else ''}"
        add(f"{_what} 64", _gradients(_of_keys, 64, _causal, **SMALL))
        add(f"{_what} 128", _gradients(_of_keys, 128, _causal, **SMALL), ALL[1:])


def _block_scaled(name: str) -> Case:
    def case(plan: RingPlan) -> Call:
        form = block_scaled_matmul.FORMATS[name]
        per_byte = 2 if np.dtype(form.element) == ml_dtypes.float4_e2m1fn else 1
        m, n, k = plan.across(128, 2), 136, plan.along(128 * per_byte, 64)
        a, b = (
            block_scaled_matmul.quantize(draw(rows, k, dtype=np.float64, seed=s), form)
            for s, rows in enumerate((m, n))
        )
        left, right = (block_scaled_matmul.packed(x[0]) for x in (a, b))
        scales = [block_scaled_matmul.arranged(x[1]) for x in (a, b)]
        expected = block_scaled_matmul.reference(*a) @ block_scaled_matmul.reference(*b).T
        arguments = [left, scales[0], right.T, scales[1], np.float32]
        constants = {"BLOCKS": 128 * (k // left.shape[1]) // form.block}
        kernel = block_scaled_matmul.block_scaled_matmul
        return Call(kernel, arguments, {4: expected}, 1e-2, constants)

    return case


for _name in block_scaled_matmul.FORMATS:
    add(f"block_scaled {_name}", _block_scaled(_name), ("sm_100a",))


def _block_sparse(plan: RingPlan) -> Call:
    size, count = 64, plan.iterations
    rows = plan.across(1, 2) + 1
    there = np.ones((rows, count), bool)
    there[1] = False
    starts = np.concatenate([[0], there.sum(1).cumsum()]).astype(np.int32)
    at, columns = np.nonzero(there)
    blocks, b = draw(len(at), size, size), draw(count * size, 72, seed=1)
    a = np.zeros((rows, size, count, size))
    a[at, :, columns] = wide(blocks)
    expected = a.reshape(rows * size, -1) @ wide(b)
    arguments = [blocks, columns.astype(np.int32), starts, b, np.float32]
    kernel = block_sparse.block_sparse_matmul
    return Call(kernel, arguments, {4: expected}, 1e-5, {"BN": 64})


def _convolution(plan: RingPlan) -> Call:
    """3 x 3 windows: the loop walks over channels, again and again."""
    channels, side = plan.along(32), 9
    images = plan.across(1, 1, 0) + 1
    x = draw(images, side, side, channels, dtype=np.float16)
    w = draw(3, 3, channels, 40, dtype=np.float16, seed=1)
    expected = convolution.reference(x, w, 1, 1)
    constants = {"PAD": 1, "BM": 64, "BN": 64, "BK": 32}
    return Call(convolution.convolve, [x, w, np.float16], {2: expected}, 2e-3, constants)


def _grouped(kernel: Kernel[...], BM: int, BN: int) -> Case:
    def case(plan: RingPlan) -> Call:
        sizes = (plan.across(BM), 0, 5, BM, plan.across(BM, 3))
        a = draw(sum(sizes), plan.along(plan.constants.get("BK", 64)), dtype=np.float16)
        b = draw(len(sizes), a.shape[1], BN + 8, dtype=np.float16, seed=1)
        ends = np.cumsum(sizes, dtype=np.int32)
        starts = np.concatenate([[0], ends[:-1]])
        parts = zip(starts, ends, b, strict=True)
        expected = np.concatenate([wide(a[s:e]) @ wide(matrix) for s, e, matrix in parts])
        given: Any = ends
        if kernel is grouped_gemm.arranged_gemm:
            given = grouped_gemm.listed_tiles(ends, len(a), BM)
        tiles = {"BM": BM, "BN": BN}
        return Call(kernel, [a, b, np.float16, given], {2: expected}, 2e-3, tiles)

    return case


add("split_k", _split_k)
add("stream_k", _stream_k)
add("block_sparse", _block_sparse)
add("convolution", _convolution)
for _kernel in (grouped_gemm.grouped_gemm, grouped_gemm.arranged_gemm):
    add(_kernel.name, _grouped(_kernel, 64, 64))
    add(f"{_kernel.name} wide", _grouped(_kernel, 128, 256))


def _experts(plan: RingPlan) -> Call:
    """Every token chooses two of four experts; nobody the third."""
    rng, top, tokens = np.random.default_rng(0), 2, max(45, plan.across(64, 2) // 2)
    k, n = plan.along(plan.constants.get("BK", 64)), 72
    choice = np.array([rng.permutation([0, 1, 3])[:top] for _ in range(tokens)])
    x, matrices = draw(tokens, k), draw(4, k, n, seed=1)
    weights = rng.random(tokens * top, np.float32)
    slots, experts = mixture_of_experts.arrange(choice, 4, 64)
    by_slot = np.einsum("tk,tskn->tsn", wide(x), wide(matrices)[choice])
    expected = (by_slot * weights.reshape(tokens, top, 1)).reshape(tokens * top, n)
    arguments = [x, matrices, slots, experts, weights, np.float32]
    constants = {"TOP": top, "BM": 64, "BN": 64}
    kernel = mixture_of_experts.multiply_by_experts
    return Call(kernel, arguments, {5: expected}, 8e-3, constants)


def _packed(beyond: int = 0, **fixed: Any) -> Case:
    """`beyond`: so many of the longest sequence's keys lie outside its last query's window."""

    def case(plan: RingPlan) -> Call:
        longest = max(plan.along(64), plan.across(64, 2))
        options = fixed | ({"WINDOW": longest - beyond} if beyond else {})
        starts = np.array([0, 0, longest, longest + 1, longest + 71], np.int32)
        slopes = np.array([0.25, 0.0625], np.float32)
        q = draw(int(starts[-1]), 2, 32)
        k, v = (draw(len(q), 1, 32, seed=n) for n in (1, 2))
        lowered = {key.lower(): value for key, value in options.items()}
        expected = packed_attention.reference(q, k, v, starts, slopes, **lowered)
        arguments = [q, k, v, BF16, starts, slopes, 1 / math.sqrt(32)]
        constants = {"LONGEST": longest, "D": 32, "BM": 64, "BN": 64, **options}
        kernel = packed_attention.packed_attention
        return Call(kernel, arguments, {3: expected}, 1e-2, constants)

    return case


def _paged(plan: RingPlan) -> Call:
    """One split: the parts are the whole, but for their division by the sum of weights."""
    heads, shared_by, width, page = 4, 2, 32, 16
    lengths = np.array([1, page * 2, plan.iterations * page - 3], np.int32)
    most = -(-int(lengths.max()) // page)
    table = np.random.default_rng(0).permutation(3 * most).reshape(3, most).astype(np.int32)
    q = draw(3, heads, width)
    keys, values = (draw(3 * most, page, heads // shared_by, width, seed=n) for n in (1, 2))
    shape = (3, heads // shared_by, 1, shared_by)
    expected = paged_attention.reference(q, keys, values, table, lengths)
    expected = expected.reshape(3, heads // shared_by, 1, shared_by, width)
    logs = np.zeros(shape, np.float32)
    arguments = [q, keys, values, table, lengths, np.float32, logs, 1 / math.sqrt(width)]
    constants = {"HEADS": shared_by, "D": width, "PAGE": page}
    return Call(paged_attention.attend_pages, arguments, {5: expected}, 1e-2, constants)


def _quantized(plan: RingPlan) -> Call:
    m, n, k = plan.across(64, 2), 72, plan.along(128, 128)
    a = draw(m, k, dtype=np.float16)
    packed = quantized_weights.quantize(draw(k, n, dtype=np.float16, seed=1), 128)
    expected = quantized_weights.reference(a, *packed, 128)
    kernel = quantized_weights.quantized_matmul
    tiles = {"BM": 64, "BN": 64}
    return Call(kernel, [a, *packed, np.float16], {4: expected}, 2e-3, tiles)


def _tile_scaled(plan: RingPlan) -> Call:
    block = tile_scales.BLOCK
    m, n, k = plan.across(64, 2), 200, plan.along(block, 16)
    f8, blocks = ml_dtypes.float8_e4m3fn, tl.cdiv(k, block)
    rng = np.random.default_rng(0)
    a, b = draw(m, k, dtype=f8), draw(n, k, dtype=f8, seed=1)
    a_scales = rng.random((m, blocks), np.float32)
    b_scales = rng.random((-(-n // block), blocks), np.float32)
    left = wide(a) * np.repeat(a_scales, block, 1)[:, :k]
    right = wide(b) * np.repeat(np.repeat(b_scales, block, 0)[:n], block, 1)[:, :k]
    arguments = [a, a_scales, b, b_scales, BF16]
    return Call(tile_scales.tile_scaled_matmul, arguments, {4: left @ right.T}, 8e-3, {"BM": 64})


add("mixture_of_experts", _experts)
add("packed_attention", _packed())
add("packed_attention bent", _packed(beyond=72, CAP=3.0))
add("paged_attention", _paged)
add("quantized_weights", _quantized)
add("tile_scales", _tile_scaled)
