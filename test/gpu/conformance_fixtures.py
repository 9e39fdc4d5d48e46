# ruff: noqa: E501  (lines of PTX)
"""PTX of other compilers, Triton and nvcc, and what it is launched with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from conformance_case import DTYPES, Case, Launch, Rule, draw, seeded
from ptx_fixtures import archive, index

from tilec.runtime.emulator import TensorMap

# -- PTX of other compilers ------------------------------------------------------------------------


def fixture_cases() -> list[Case]:
    cases = []
    makers = {
        "matmul": triton_matmul,
        "matmul_tma": triton_tensor_matmul,
        "attention": attention,
        "softmax": softmax,
        "reduce_scan": reduce_scan,
        "histogram": histogram,
        "elementwise": elementwise,
    }
    for case in index("triton"):
        if not case.endswith("sm_100a"):
            maker = makers[case.split(".")[0]]
            cases.append(
                Case(
                    f"triton.{case}",
                    "triton",
                    lambda seed, case=case, maker=maker: maker(case, seed),
                )
            )
    for arch, name in itertools.product(("sm_80", "sm_90a"), NVCC):
        cases.append(
            Case(
                f"nvcc.{name}.{arch}",
                "nvcc",
                lambda seed, arch=arch, name=name: nvcc(arch, name, seed),
            )
        )
    return cases


def triton(case: str, grid: Any, arguments: list[Any], rules: dict[int, Rule]) -> Launch:
    record = index("triton")[case]
    return Launch(
        archive("triton")[f"{case}.ptx"], [*arguments, 0, 0], record["entry"], grid, record["threads"],
        rules, record["shared"],
    )  # fmt: skip


def triton_matmul(case: str, seed: int) -> Launch:
    _, kind, order, size, _ = case.split(".")
    bm, bn, bk = (int(x) for x in size.split("x"))
    m, n, k = bm + 48, bn + 16, 3 * bk + 16
    rng = seeded(case, seed)
    name = {"f8e4": "e4m3", "f8e5": "e5m2"}.get(kind, kind)
    flavour = "" if kind == "s8" else "n"
    left, right = (draw(name + flavour, s, rng) for s in (m * k, k * n))
    strides = [m if order[0] == "t" else k, k if order[1] == "t" else n, n]
    out = {"s8": "s32", "f16": "f16"}.get(kind, "f32")
    c = np.zeros(m * n, DTYPES[out])
    scaled = {"s8": 0, "f16": 2.0**-10, "bf16": 1e-5, "f32": 2e-5}.get(kind, 2e-3)
    return triton(case, (-(-m // bm), -(-n // bn)), [left, right, c, m, n, k, *strides], {2: Rule(out, scaled=scaled)})  # fmt: skip


def triton_tensor_matmul(case: str, seed: int) -> Launch:
    _, size, order, *_ = case.split(".")
    bm, bn, bk = (int(x) for x in size.split("x"))
    m, n, k = 2 * bm - 24, bn + 40, 4 * bk + 24
    rng = seeded(case, seed)
    left = draw("f16n", m * k, rng).reshape((k, m) if order[0] == "t" else (m, k))
    right = draw("f16n", k * n, rng).reshape((n, k) if order[1] == "t" else (k, n))
    c = np.zeros((m, n), np.float16)
    arguments: list[Any] = []
    for array, meta in zip((left, right, c), index("triton")[case]["tensor_maps"], strict=True):
        rows, columns = array.shape
        box = TensorMap(array, (columns, rows), (2 * columns,), tuple(meta["block_size"][::-1]), (0, 32, 64, 128)[meta["swizzle"]])  # fmt: skip
        arguments += [box, rows, columns, columns, 1]
    return triton(case, (-(-m // bm), -(-n // bn)), [*arguments, m, n, k], {10: Rule("f16", scaled=2.0**-10)})  # fmt: skip


def attention(case: str, seed: int) -> Launch:
    heads, n, d = 3, 192, 64
    rng = seeded(case, seed)
    q, k, v = (draw("f16n", heads * n * d, rng) for _ in range(3))
    rule = Rule("f16", absolute=2e-3)
    return triton(case, (n // 64, heads), [q, k, v, np.zeros_like(q), np.float32(d**-0.5), n], {3: rule})  # fmt: skip


def softmax(case: str, seed: int) -> Launch:
    n = (1000, 77, 1024, 1)[seed % 4]
    x = draw("f32[-9,9]", 9 * (n + 3), seeded(case, seed))
    return triton(case, 9, [x, np.zeros_like(x), n, n + 3], {1: Rule("f32", ulp=16)})


def reduce_scan(case: str, seed: int) -> Launch:
    n = (128, 5)[seed % 2]
    x = draw("s32<100", 16 * n, seeded(case, seed)).astype(np.float32)
    total, argmax, scan = np.zeros(16, np.float32), np.zeros(16, np.int32), np.zeros_like(x)
    return triton(case, 1, [x, total, argmax, scan, n], {1: Rule("f32"), 3: Rule("f32")})


def histogram(case: str, seed: int) -> Launch:
    x = draw("s32<13", 3001, seeded(case, seed))
    return triton(case, -(-x.size // 256), [x, np.zeros(13, np.int32), np.zeros(1, np.float32), x.size], {1: Rule("s32"), 2: Rule("f32")})  # fmt: skip


def elementwise(case: str, seed: int) -> Launch:
    kind = case.split(".")[1]
    rng = seeded(case, seed)
    x, y = (draw(f"{kind}[-3,3]", 1337, rng) for _ in range(2))
    absolute = {"f16": 4e-3, "bf16": 4e-2, "f32": 2e-6}[kind]
    return triton(case, 3, [x, y, np.zeros_like(x), x.size], {2: Rule(kind, ulp=2, absolute=absolute)})  # fmt: skip


NVCC = ("saxpy", "mathematics", "doubles", "integers", "collatz", "block_sum", "transpose",
        "narrow_types", "pipelined_copy", "by_value", "switches")  # fmt: skip


# mul.f16 and add.f16 without .rn may become one fma (PTX ISA mul, add: "no rounding modifier"):
# the sum differs by the rounding of a product of about 0.25 where it cancels, else by a place.
CONTRACTED = Rule("f16", ulp=1, absolute=2.0**-12)


def nvcc(arch: str, name: str, seed: int) -> Launch:
    rng = seeded(name, seed)
    f, i = np.float32, np.int32
    x = draw("f32[-3,3]", 1280, rng)
    table: dict[str, tuple[Any, Any, list[Any], dict[int, Rule]]] = {
        "saxpy": (8, 128, [f(2.5), x[:1000].copy(), x[:1000] * 2, 1000], {2: Rule("f32")}),
        "mathematics": (4, 128, [x[:500].copy(), np.zeros(5000, f), 500], {1: Rule("f32", ulp=4, absolute=2e-6)}),
        "doubles": (3, 128, [x[:300].astype("f8"), np.zeros(300), 300], {1: Rule("f64", ulp=2)}),
        "integers": (4, 128, [draw("s32[-2147483647,2147483647]", 400, rng), draw("s32[-99999,99999]", 400, rng), np.zeros(400, "i8"), 400], {2: Rule("s64")}),
        "collatz": (3, 128, [np.arange(1, 385, dtype="u4"), np.zeros(384, "u4"), 384], {1: Rule("u32")}),
        "block_sum": (7, 256, [draw("s32<18", 5000, rng).astype(f), np.zeros(1, f), 5000], {1: Rule("f32")}),
        "transpose": ((2, 3), (32, 8), [draw("f16n", 3150, rng), np.zeros(3150, "f2"), 70, 45], {1: Rule("f16")}),
        "narrow_types": (4, 128, [x[:400] * 200, np.zeros(400, "f2"), np.zeros(400, DTYPES["bf16"]), np.zeros(400, "u1"), 400], {1: CONTRACTED, 2: Rule("bf16")}),
        "pipelined_copy": (1, 64, [x.copy(), np.zeros(1280, f), 5], {1: Rule("f32")}),
        "by_value": (1, 32, [np.array([2.5, -1.0], f).tobytes() + i(7).tobytes(), np.arange(32, dtype=i) * 3, np.zeros(32, f)], {2: Rule("f32")}),
        "switches": (1, 64, [np.arange(64, dtype=i) % 9, np.arange(64, dtype=i)], {1: Rule("s32")}),
    }  # fmt: skip
    grid, block, arguments, rules = table[name]
    shared = 2048 if name == "pipelined_copy" else 0
    return Launch(
        archive("nvcc")[f"kernels.{arch}.ptx"], arguments, name, grid, block, rules, shared
    )
