# ruff: noqa: E501  (lines of PTX)
"""Kernels around matrices: fragments in shared memory, mma and wgmma."""

from __future__ import annotations

import itertools

import numpy as np
from conformance_case import Case, Launch, Rule, draw, raw, seeded
from conformance_text import (
    NO_MAP,
    empty,
    fill,
    listed,
    load_words,
    names,
    program,
    store_words,
    text,
)


def matrix_cases() -> list[Case]:
    cases = []
    for count, trans in itertools.product((1, 2, 4), ("", ".trans")):
        registers = names("%r", 20, count)
        body = (
            fill(2048, 64)
            + f"bar.sync 0; mul.lo.u32 %r4, %r1, 37; and.b32 %r4, %r4, 127; mad.lo.u32 %r4, %r4, 16, %r2; ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {listed(registers)}, [%r4];"
        )
        cases.append(
            program(
                "matrix",
                f"ldmatrix.x{count}{trans}",
                body + store_words(registers),
                "u8",
                2048,
                64 * 4 * count,
                block=64,
            )
        )
        body = (
            fill(2048, 64)
            + f"bar.sync 0; {load_words(registers, '%rd1')} mul.lo.u32 %r4, %r1, 37; and.b32 %r4, %r4, 127; mad.lo.u32 %r4, %r4, 16, %r2; stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r4], {listed(registers)}; bar.sync 0;"
        )
        cases.append(
            program(
                "matrix",
                f"stmatrix.x{count}{trans}",
                body + empty(2048, 64),
                "u8",
                2048,
                2048,
                block=64,
                target="sm_90a",
            )
        )
    body = load_words(["%r20"], "%rd1") + "movmatrix.sync.aligned.m8n8.trans.b16 %r21, %r20;"
    cases.append(
        program("matrix", "movmatrix", body + store_words(["%r21"]), "u32", 64, 256, block=64)
    )
    return cases + mma_cases()


_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "e4m3": 8,
    "e5m2": 8,
    "f64": 64,
}
_MMA = [
    *(("m16n8k" + k, a, a, c) for k, (a, c) in itertools.product(("8", "16"), (("f16", "f32"), ("f16", "f16"), ("bf16", "f32")))),
    ("m16n8k4", "tf32", "tf32", "f32"), ("m16n8k8", "tf32", "tf32", "f32"),
    *((s, a, b, "s32") for s, a, b in itertools.product(("m8n8k16", "m16n8k16", "m16n8k32"), ("s8", "u8"), ("s8", "u8"))),
    *((s, a, b, "s32") for s, a, b in itertools.product(("m8n8k32", "m16n8k32", "m16n8k64"), ("s4", "u4"), ("s4", "u4"))),
    *(("m16n8k" + k, a, b, c) for k, a, b, c in itertools.product(("16", "32"), ("e4m3", "e5m2"), ("e4m3", "e5m2"), ("f32", "f16"))),
    *((f"m{s}", "f64", "f64", "f64") for s in ("8n8k4", "16n8k4", "16n8k8", "16n8k16")),
]  # fmt: skip
_ACCUMULATED = {"f32": 2.0**-19, "f16": 2.0**-9, "f64": 2.0**-50}


def operand(kind: str, words: int, flavour: str, rng: np.random.Generator) -> np.ndarray:
    """32-bit (f64: 64-bit) registers of a kind; flavour "n" normal, "i" small integers."""
    if kind in ("s8", "u8", "s4", "u4", "s32"):
        return draw("u32", words, rng) if kind != "s32" else raw(draw("s32<9999", words, rng))
    name = "f32" if kind == "tf32" else kind
    return raw(draw(name + flavour, words * max(32 // _BITS.get(kind, 32), 1), rng)).view(
        "u8" if kind == "f64" else "u4"
    )


def mma_cases() -> list[Case]:
    """Small integers must come out exactly; normal numbers within a rounding of each addition."""
    cases = []
    for (shape, a, b, c), flavour in itertools.product(_MMA, "ni"):
        if flavour == "i" and c == "s32":
            continue
        cases.append(mma_case(shape, a, b, c, flavour))
    for a in ("s8", "u8"):
        cases.append(mma_case("m16n8k32", a, a, "s32", "n", ".satfinite"))
    return cases


def mma_case(shape: str, a: str, b: str, c: str, flavour: str, satfinite: str = "") -> Case:
    m, n, k = (int(x) for x in shape[1:].replace("n", " ").replace("k", " ").split())
    wide = a == "f64"
    size, prefix = (8, "%d") if wide else (4, "%r")
    per = 1 if wide else 32 // _BITS[a]
    counts = [m * k // 32 // per, k * n // 32 // per, m * n // 32 // (2 if c == "f16" else 1)]
    ra, rb, rc = (
        names(f"{prefix}", base, count) for base, count in zip((10, 30, 40), counts, strict=True)
    )
    body = load_words([*ra, *rb, *rc], "%rd1", size)
    body += f"mma.sync.aligned.{shape}.row.col{satfinite}.{c}.{a}.{b}.{c} {listed(rc)}, {listed(ra)}, {listed(rb)}, {listed(rc)};"
    name = f"mma{satfinite}.{shape}.{c}.{a}.{b}.{'exact' if flavour == 'i' else 'random'}"
    exact = flavour == "i" or c == "s32"
    scaled = _ACCUMULATED.get(c, 0)
    if a in ("e4m3", "e5m2"):  # an H200 keeps fewer bits of sums of fp8 products
        scaled = 2.0**-9 if c == "f16" else 2.0**-10
    rule = Rule(c) if exact else Rule(c, scaled=scaled)

    def make(seed: int) -> Launch:
        rng = seeded(name, seed)
        parts = [
            operand(kind, count * 32, flavour, rng).reshape(32, count)
            for kind, count in zip((a, b, c), counts, strict=True)
        ]
        if satfinite:
            parts[2][:, ::2] = 0x7FFFFF00
            parts[2][:, 1::2] = 0x80000010
        data = np.ascontiguousarray(np.concatenate(parts, 1))
        target = "sm_90a" if a in ("e4m3", "e5m2") or (wide and shape != "m8n8k4") else "sm_80"
        full = body + store_words(rc, size=size)
        return Launch(text(full, target), [NO_MAP, data, np.zeros(32 * counts[2] * size, np.uint8)], block=32, rules={2: rule})  # fmt: skip

    return Case(name, "mma", make)


_WGMMA = [
    (kind, 16, result) for kind, result in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))
] + [("tf32", 8, "f32"), ("e4m3", 32, "f32"), ("e5m2", 32, "f32"), ("e4m3", 32, "f16"), ("s8", 32, "s32"), ("u8", 32, "s32")]  # fmt: skip


def wgmma_cases() -> list[Case]:
    """Operands from descriptors over random shared memory: layouts must be read alike."""
    cases = []
    for (kind, k, result), swizzle, flavour in itertools.product(_WGMMA, (0, 32, 64, 128), "ni"):
        if flavour == "i" and result == "s32":
            continue
        cases.append(
            wgmma_case(kind, k, result, swizzle, flavour, 64 if swizzle == 64 else 24, "00")
        )
    for kind, swizzle, majors in itertools.product(
        ("f16", "bf16"), (0, 32, 64, 128), ("01", "10", "11")
    ):
        cases.append(wgmma_case(kind, 16, "f32", swizzle, "i", 64, majors))
    for n in (8, 16, 40, 128, 256):
        cases.append(wgmma_case("f16", 16, "f32", 128, "i", n, "00"))
    return cases


def wgmma_case(
    kind: str, k: int, result: str, swizzle: int, flavour: str, n: int, majors: str
) -> Case:
    """a at 0, b at 32 KiB of 96 KiB; strides far enough apart for every shape up to n = 256."""
    code = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    lbo, sbo = (128, 256) if swizzle == 0 else (8 * swizzle * 2, 8 * swizzle)
    if "1" in majors:
        lbo, sbo = (128, 512) if swizzle == 0 else (8 * swizzle, 16 * swizzle)
    span, size = 32768, 65536
    registers = names("%r", 100, n // (4 if result == "f16" else 2))
    trans = f", {majors[0]}, {majors[1]}"
    extra = {"f16": f", 1, -1{trans}", "bf16": f", 1, 1{trans}", "s8": "", "u8": ""}.get(
        kind, ", 1, 1"
    )
    fields = lbo >> 4 << 16 | sbo >> 4 << 32 | code << 62
    signed = fields - (1 << 64) if fields >> 63 else fields
    op = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{result}.{kind}.{kind} {listed(registers)}, %rd10, %rd11, "
    zero = "".join(f"mov.b32 {r}, 0;" for r in registers)
    body = (
        fill(size, 128) + f"{zero} fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p2, %r1, 9999; and.b32 %r10, %r2, 0x3ffff; shr.u32 %r10, %r10, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, {signed}; add.s64 %rd11, %rd10, {span >> 4};"
        f"wgmma.fence.sync.aligned; {op}%p2{extra}; setp.ne.u32 %p2, %r1, 9999; {op}%p2{extra}; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
        + store_words(registers)
    )  # fmt: skip
    name = f"wgmma.m64n{n}k{k}.{result}.{kind}.swizzle{swizzle}.major{majors}.{'exact' if flavour == 'i' else 'random'}"
    scaled = {"e4m3": 2.0**-9, "e5m2": 2.0**-9}.get(kind, _ACCUMULATED.get(result, 0))
    rule = Rule(result) if flavour == "i" or result == "s32" else Rule(result, scaled=scaled)

    def make(seed: int) -> Launch:
        a = operand(kind, size // 4, flavour, seeded(name, seed))
        full = (
            text(body, "sm_90a")
            .replace(".shared .align 1024 .b8 s[8192];", "")
            .replace("mov.u32 %r2, s;", "mov.u32 %r2, dynamic;")
        )
        full = full.replace(".visible", ".extern .shared .align 1024 .b8 dynamic[];\n.visible")
        return Launch(full, [NO_MAP, a, np.zeros(128 * 4 * len(registers), np.uint8)], block=128, rules={2: rule}, shared_bytes=size)  # fmt: skip

    return Case(name, "wgmma", make)
