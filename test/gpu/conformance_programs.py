# ruff: noqa: E501  (lines of PTX)
"""Kernels around memory, barriers, matrices, asynchronous copies and other compilers' PTX.

Registers and shared memory are filled with random bytes, and everything is stored raw: how a
fragment or a swizzled tile is laid out is for the GPU and the emulator to agree on.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from conformance_case import DTYPES, Case, Launch, Rule, draw, raw, seeded
from ptx_fixtures import archive, index

from tilec.runtime.emulator import Im2col, TensorMap

_REGISTERS = (
    ".reg .pred %p<11>; .reg .b16 %h<20>; .reg .b32 %r<300>; .reg .b64 %rd<60>; .reg .b64 %d<60>;"
)
_NO_MAP = bytes(128)


def text(body: str, target: str = "sm_80", shared: int = 8192, top: str = "") -> str:
    """A kernel of a tensor map and pointers a (%rd1), b (%rd2); %r1 thread, %r2 shared, %r3 mbarriers."""
    return (
        f".version 8.7\n.target {target}\n.address_size 64\n{top}\n"
        ".visible .entry kernel(.param .align 64 .b8 map[128], .param .u64 a, .param .u64 b) {\n"
        f"{_REGISTERS}\n.shared .align 1024 .b8 s[{shared}];\n.shared .align 8 .b8 bar[64];\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;\n"
        "mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;\n"
        f"{body}\nret;\n}}"
    )


def program(
    family: str, name: str, body: str, inputs: str, size: int, output: int, rule: Rule | str = "u8",
    *, block: int = 128, target: str = "sm_80", shared: int = 8192, top: str = "", grid: int = 1,
    cluster: int = 1, input_rule: Rule | None = None,
) -> Case:  # fmt: skip
    """inputs: kind of a's `size` elements; output: bytes of b, zero at first."""
    compared = Rule(rule) if isinstance(rule, str) else rule

    def make(seed: int) -> Launch:
        a = raw(draw(inputs, size, seeded(name, seed)))
        rules = {2: compared} | ({1: input_rule} if input_rule else {})
        return Launch(
            text(body, target, shared, top), [_NO_MAP, a, np.zeros(output, np.uint8)],
            grid=grid, block=block, rules=rules, cluster=cluster,
        )  # fmt: skip

    return Case(name, family, make)


def names(prefix: str, first: int, count: int) -> list[str]:
    return [f"{prefix}{first + i}" for i in range(count)]


def listed(registers: list[str]) -> str:
    return f"{{{', '.join(registers)}}}"


def load_words(registers: list[str], base: str, size: int = 4, thread: str = "%r1") -> str:
    """Each thread loads its own consecutive words."""
    lines = f"mad.wide.u32 %rd9, {thread}, {len(registers) * size}, {base};"
    return lines + "".join(
        f"ld.global.b{8 * size} {r}, [%rd9+{i * size}];" for i, r in enumerate(registers)
    )


def store_words(registers: list[str], base: str = "%rd2", size: int = 4) -> str:
    lines = f"mad.wide.u32 %rd9, %r1, {len(registers) * size}, {base};"
    return lines + "".join(
        f"st.global.b{8 * size} [%rd9+{i * size}], {r};" for i, r in enumerate(registers)
    )


def fill(count: int, threads: int) -> str:
    """count bytes of a to shared memory."""
    return (
        f"mov.u32 %r80, %r1;\nFILL: setp.ge.u32 %p7, %r80, {count // 16}; @%p7 bra FILLED;"
        "shl.b32 %r81, %r80, 4; add.u32 %r82, %r2, %r81; cvt.u64.u32 %rd20, %r81; add.s64 %rd21, %rd1, %rd20;"
        "ld.global.v4.b32 {%r83, %r84, %r85, %r86}, [%rd21]; st.shared.v4.b32 [%r82], {%r83, %r84, %r85, %r86};"
        f"add.u32 %r80, %r80, {threads}; bra FILL;\nFILLED:\n"
    )


def empty(count: int, threads: int) -> str:
    """count bytes of shared memory to b."""
    return (
        f"mov.u32 %r80, %r1;\nCOPY: setp.ge.u32 %p7, %r80, {count // 16}; @%p7 bra COPIED;"
        "shl.b32 %r81, %r80, 4; add.u32 %r82, %r2, %r81; ld.shared.v4.b32 {%r83, %r84, %r85, %r86}, [%r82];"
        "cvt.u64.u32 %rd20, %r81; add.s64 %rd21, %rd2, %rd20; st.global.v4.b32 [%rd21], {%r83, %r84, %r85, %r86};"
        f"add.u32 %r80, %r80, {threads}; bra COPY;\nCOPIED:\n"
    )


def memory_cases() -> list[Case]:
    cases = []
    for lanes, bits in (
        (1, 8),
        (1, 16),
        (1, 32),
        (1, 64),
        (2, 8),
        (4, 8),
        (2, 16),
        (4, 16),
        (2, 32),
        (4, 32),
        (2, 64),
    ):
        size = lanes * bits // 8
        prefix = {8: "%h", 16: "%h", 32: "%r1", 64: "%rd1"}[bits]
        registers = listed(names(prefix, 0, lanes)) if lanes > 1 else f"{prefix}0"
        vector = f".v{lanes}" if lanes > 1 else ""
        for space in ("global", "global.nc", "shared"):
            body = f"mul.wide.u32 %rd4, %r1, {size}; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; mad.lo.u32 %r5, %r1, {size}, %r2;"
            body += f"ld.{'global' if space == 'shared' else space}{vector}.b{bits} {registers}, [%rd5];"
            if space == "shared":
                body += f"st.shared{vector}.b{bits} [%r5], {registers}; bar.sync 0; xor.b32 %r6, %r1, 37; mad.lo.u32 %r5, %r6, {size}, %r2; ld.shared{vector}.b{bits} {registers}, [%r5];"
            body += f"st.global{vector}.b{bits} [%rd6], {registers};"
            cases.append(
                program(
                    "memory", f"copy.{space}.{lanes}x{bits}", body, "u8", 128 * size, 128 * size
                )
            )
    for kind in ("u8", "s8", "u16", "s16"):
        size = int(kind[1:]) // 8
        body = f"mad.wide.u32 %rd5, %r1, {size}, %rd1; ld.global.{kind} %r10, [%rd5]; {{ .reg .b64 w; ld.global.{kind} w, [%rd5]; cvt.u32.u64 %r11, w; shr.s64 w, w, 32; cvt.u32.u64 %r12, w; }} add.u32 %r13, %r10, 300; mad.lo.u32 %r5, %r1, {size}, %r2; st.shared.{kind} [%r5], %r13; ld.shared.{kind} %r14, [%r5];"
        cases.append(
            program(
                "memory",
                f"extend.{kind}",
                body + store_words(names("%r", 10, 5)),
                kind,
                128,
                128 * 20,
            )
        )
    body = "setp.lt.u32 %p2, %r1, 40; mov.u32 %r10, 5; mad.wide.u32 %rd5, %r1, 4, %rd1; @%p2 ld.global.u32 %r10, [%rd5]; mad.lo.u32 %r5, %r1, 4, %r2; st.shared.u32 [%r5], %r1; @!%p2 st.shared.u32 [%r5], %r10; ld.shared.u32 %r11, [%r5]; mad.wide.u32 %rd6, %r1, 8, %rd2; and.b32 %r12, %r1, 1; setp.eq.u32 %p3, %r12, 0; @%p3 st.global.v2.u32 [%rd6], {%r10, %r11};"
    cases.append(program("memory", "predicated", body, "u32", 40, 128 * 8))
    body = ".local .align 16 .b8 l[64];\nmov.u64 %rd6, l; cvta.local.u64 %rd7, %rd6; mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd5, %rd4; and.b32 %r4, %r1, 1; setp.eq.u32 %p2, %r4, 1; selp.b64 %rd8, %rd5, %rd7, %p2; st.u32 [%rd8], %r1; ld.u32 %r10, [%rd8]; isspacep.shared %p3, %rd8; selp.u32 %r11, 1, 0, %p3; isspacep.local %p3, %rd8; selp.u32 %r12, 1, 0, %p3; isspacep.global %p3, %rd1; selp.u32 %r13, 1, 0, %p3;"
    cases.append(
        program("memory", "generic", body + store_words(names("%r", 10, 4)), "u32", 4, 128 * 16)
    )
    top = ".const .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};\n.global .align 4 .f32 scale[2] = {0f3FC00000, 0f40200000};\n.global .align 8 .u64 pointer = generic(scale);"
    body = "and.b32 %r4, %r1, 3; mul.wide.u32 %rd4, %r4, 4; mov.u64 %rd5, table; add.s64 %rd5, %rd5, %rd4; ld.const.u32 %r10, [%rd5]; ld.global.u64 %rd6, [pointer]; ld.u32 %r11, [%rd6+4];"
    cases.append(
        program(
            "memory",
            "constants",
            body + store_words(names("%r", 10, 2)),
            "u32",
            4,
            128 * 8,
            top=top,
        )
    )
    return cases


def atomic_cases() -> list[Case]:
    cases = []
    operations = [
        (o, k)
        for o, k in itertools.product(("add", "min", "max"), ("u32", "s32", "u64", "s64"))
        if (o, k) != ("add", "s64")
    ]
    operations += [
        (o, f"b{w}") for o, w in itertools.product(("and", "or", "xor", "exch"), (32, 64))
    ]
    operations += [
        ("inc", "u32"),
        ("dec", "u32"),
        ("add", "f32"),
        ("add", "f64"),
        ("add.noftz", "f16"),
        ("add.noftz", "bf16"),
        ("add.noftz", "f16x2"),
        ("add.noftz", "bf16x2"),
    ]
    for (op, kind), space in itertools.product(operations, ("global", "shared")):
        size = 4 if kind.endswith("x2") else int(kind.lstrip("usbf")) // 8
        prefix = {2: "%h", 4: "%r1", 8: "%rd1"}[size]
        element = kind.replace("x2", "")
        inputs = (
            f"{element}i" if element[0] == "f" or element[:2] == "bf" else kind.replace("b", "u")
        )
        cells = 4
        at = "[%rd6]" if space == "global" else "[%r5]"
        body = f"and.b32 %r4, %r1, {cells - 1}; mad.wide.u32 %rd5, %r1, {size}, %rd1; ld.global.b{8 * size} {prefix}0, [%rd5]; mad.wide.u32 %rd6, %r4, {size}, %rd2; mad.lo.u32 %r5, %r4, {size}, %r2; setp.lt.u32 %p2, %r1, {cells};"
        if space == "shared":
            body += f"@%p2 st.shared.b{8 * size} [%r5], {prefix}0; bar.sync 0;"
        forms = "red" if op != "exch" and kind not in ("f16", "bf16") else "atom"
        target = (
            f"{forms}.{space}.{op}.{kind} {at}, {prefix}0;"
            if forms == "red"
            else f"atom.{space}.{op}.{kind} {prefix}1, {at}, {prefix}0;"
        )
        if op == "exch":  # which lane comes last is open: one lane a cell
            target = f"@%p2 {target}"
        if op in ("inc", "dec"):  # with one bound for all, no order of the lanes matters
            body += f"mov.b32 {prefix}0, 5;"
        body += target
        if space == "shared":
            body += f"bar.sync 0; @%p2 ld.shared.b{8 * size} {prefix}2, [%r5]; @%p2 st.global.b{8 * size} [%rd6], {prefix}2;"
        count = 128 * (2 if kind.endswith("x2") else 1)
        cases.append(
            program(
                "atomic",
                f"{op}.{kind}.{space}",
                body,
                inputs,
                count,
                cells * size,
                element.replace("b", "u") if element[0] == "b" and element[1] != "f" else element,
                target="sm_90a",
            )
        )
    own = "mad.wide.u32 %rd5, %r1, 4, %rd1; mad.wide.u32 %rd6, %r1, 8, %rd2; ld.global.u32 %r10, [%rd5];"
    for op in ("add", "min", "max", "exch", "inc", "dec", "and", "or", "xor"):
        kind = "b32" if op in ("exch", "and", "or", "xor") else "u32"
        body = (
            own
            + f"and.b32 %r12, %r10, 63; atom.global.{op}.{kind} %r11, [%rd5], %r12; ld.global.u32 %r13, [%rd5]; st.global.v2.u32 [%rd6], {{%r11, %r13}};"
        )
        cases.append(
            program(
                "atomic",
                f"atom.own.{op}",
                body,
                "u32<100",
                128,
                1024,
                "u32",
                input_rule=Rule("u32"),
            )
        )
    body = (
        own
        + "and.b32 %r12, %r1, 1; add.u32 %r12, %r12, %r10; atom.acq_rel.gpu.global.cas.b32 %r11, [%rd5], %r12, 77; ld.global.u32 %r13, [%rd5]; st.global.v2.u32 [%rd6], {%r11, %r13};"
    )
    cases.append(
        program("atomic", "atom.own.cas", body, "u32", 128, 1024, "u32", input_rule=Rule("u32"))
    )
    for vector, kind, width in (
        ("v2", "f32", 2),
        ("v4", "f32", 4),
        ("v2", "f16x2", 2),
        ("v4", "bf16x2", 4),
        ("v2", "bf16", 2),
        ("v4", "f16", 4),
    ):
        half = kind in ("bf16", "f16")
        size, prefix = (2, "%h") if half else (4, "%r1")
        base = kind.replace("x2", "")
        registers = listed(names(prefix, 0, width))
        flag = ".noftz" if kind != "f32" else ""
        body = f"mad.wide.u32 %rd5, %r1, {size * width}, %rd1; ld.global.{vector}.b{8 * size} {registers}, [%rd5]; red.global.add{flag}.{vector}.{kind} [%rd2], {registers};"
        cases.append(
            program(
                "atomic",
                f"red.{vector}.{kind}",
                body,
                f"{base}i",
                128 * width * (2 if "x2" in kind else 1),
                size * width,
                base,
                target="sm_90a",
            )
        )
    body = "atom.global.add.u32 %r10, [%rd2], %r1; atom.global.inc.u32 %r11, [%rd2+4], 9; mad.wide.u32 %rd6, %r1, 4, %rd2; st.global.u32 [%rd6+8], %r11;"
    cases.append(
        program(
            "atomic", "returned.unordered", body, "u32", 4, 8 + 512, Rule("u32", unordered=True)
        )
    )
    return cases


def barrier_cases() -> list[Case]:
    reduction = "mad.wide.u32 %rd5, %r1, 4, %rd1; ld.global.u32 %r10, [%rd5]; setp.lt.u32 %p2, %r10, 60; barrier.cta.red.popc.aligned.u32 %r11, 3, %p2; bar.red.or.pred %p3, 0, %p2; bar.red.and.pred %p4, 0, %p2; selp.u32 %r12, 1, 0, %p3; selp.u32 %r13, 1, 0, %p4;"
    tree = "mad.wide.u32 %rd5, %r1, 4, %rd1; ld.global.u32 %r10, [%rd5]; mad.lo.u32 %r5, %r1, 4, %r2; st.shared.u32 [%r5], %r10; mov.u32 %r6, 64;\nLOOP: bar.sync 0; setp.ge.u32 %p2, %r1, %r6; @%p2 bra SKIP; shl.b32 %r7, %r6, 2; add.u32 %r8, %r5, %r7; ld.shared.u32 %r11, [%r8]; ld.shared.u32 %r12, [%r5]; add.u32 %r12, %r12, %r11; st.shared.u32 [%r5], %r12;\nSKIP: shr.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0; @%p3 bra LOOP; bar.sync 0; ld.shared.u32 %r13, [%r2];"
    named = "shr.u32 %r4, %r1, 5; and.b32 %r5, %r1, 31; mad.lo.u32 %r6, %r5, 4, %r2; mov.u32 %r10, 0; mov.u32 %r12, 0; setp.eq.u32 %p2, %r4, 0; @%p2 bra PRODUCER;\nCONSUMER: bar.sync 1, 64; ld.shared.u32 %r7, [%r6]; bar.arrive 2, 64; mad.lo.u32 %r12, %r12, 3, %r7; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 5; @%p3 bra CONSUMER; bra.uni END;\nPRODUCER: mad.lo.u32 %r11, %r10, 7, %r5; st.shared.u32 [%r6], %r11; bar.arrive 1, 64; bar.sync 2, 64; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 5; @%p3 bra PRODUCER;\nEND:"
    return [
        program(
            "barrier",
            "reductions",
            reduction + store_words(["%r11", "%r12", "%r13"]),
            "u32<100",
            128,
            128 * 12,
        ),
        program(
            "barrier",
            "reductions.all",
            reduction + store_words(["%r11", "%r12", "%r13"]),
            "u32<60",
            128,
            128 * 12,
        ),
        program("barrier", "tree", tree + store_words(["%r13"]), "u32", 128, 512),
        program("barrier", "named", named + store_words(["%r12"]), "u32", 4, 256, block=64),
    ]


def copy_async_cases() -> list[Case]:
    cases = []
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        body = (
            fill(8192, 128)
            + f"bar.sync 0; mad.lo.u32 %r4, %r1, {size}, %r2; mad.wide.u32 %rd5, %r1, {size}, %rd1; rem.u32 %r5, %r1, {size + 1}; cp.async.{cache}.shared.global [%r4], [%rd5], {size}, %r5; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"
        )
        cases.append(
            program("cp.async", f"zfill.{cache}.{size}", body + empty(8192, 128), "u8", 8192, 8192)
        )
        body = f"mad.lo.u32 %r4, %r1, {size}, %r2; mad.wide.u32 %rd5, %r1, {size}, %rd1; setp.lt.u32 %p2, %r1, 100; @%p2 cp.async.{cache}.shared.global [%r4], [%rd5], {size}; cp.async.commit_group; cp.async.{cache}.shared.global [%r4+2048], [%rd5+2048], {size}; cp.async.commit_group; cp.async.wait_group 1; @!%p2 st.shared.u32 [%r4], %r1; bar.sync 0; mad.lo.u32 %r5, %r1, {size}, %r2; ld.shared.u32 %r10, [%r5]; cp.async.wait_all; bar.sync 0; ld.shared.u32 %r11, [%r5+2048];"
        cases.append(
            program(
                "cp.async",
                f"groups.{cache}.{size}",
                body + store_words(["%r10", "%r11"]),
                "u8",
                8192,
                1024,
            )
        )
        body = f"@%p1 mbarrier.init.shared.b64 [%r3], 128; bar.sync 0; mad.lo.u32 %r4, %r1, {size}, %r2; mad.wide.u32 %rd5, %r1, {size}, %rd1; cp.async.{cache}.shared.global [%r4], [%rd5], {size}; cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];\nW: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W; xor.b32 %r5, %r1, 1; mad.lo.u32 %r5, %r5, {size}, %r2; ld.shared.u32 %r10, [%r5];"
        cases.append(
            program(
                "cp.async",
                f"mbarrier.{cache}.{size}",
                body + store_words(["%r10"]),
                "u8",
                8192,
                512,
                target="sm_90a",
            )
        )
    return cases


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
        return Launch(text(full, target), [_NO_MAP, data, np.zeros(32 * counts[2] * size, np.uint8)], block=32, rules={2: rule})  # fmt: skip

    return Case(name, "mma", make)


_INIT = (
    "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"
)


def wait(bar: str = "%r3", parity: int = 0) -> str:
    return f"{{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [{bar}], {parity}; @!done bra W; }}"


def bulk_cases() -> list[Case]:
    ring = "@%p1 mbarrier.init.shared::cta.b64 [%r3], 32; @%p1 mbarrier.init.shared::cta.b64 [%r3+8], 32; bar.sync 0; and.b32 %r10, %r1, 31; shl.b32 %r11, %r10, 2; add.u32 %r12, %r2, %r11; setp.lt.u32 %p2, %r1, 32; mov.u32 %r20, 0; mov.u32 %r30, 0; @%p2 bra PRODUCE;\nCONSUME: and.b32 %r21, %r20, 1; { .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3], %r21; @!done bra W; } ld.shared.u32 %r22, [%r12]; mad.lo.u32 %r30, %r30, 3, %r22; mbarrier.arrive.shared::cta.b64 _, [%r3+8]; add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 6; @%p3 bra CONSUME; bra END;\nPRODUCE: and.b32 %r21, %r20, 1; xor.b32 %r21, %r21, 1; { .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3+8], %r21; @!done bra W; } mad.lo.u32 %r22, %r20, 100, %r10; st.shared.u32 [%r12], %r22; mbarrier.arrive.shared::cta.b64 _, [%r3]; add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 6; @%p3 bra PRODUCE;\nEND:"
    states = "@%p1 mbarrier.init.shared::cta.b64 [%r3], 3; bar.sync 0; mov.u32 %r10, 9; mov.u32 %r11, 9; mov.u32 %r12, 9; mov.u32 %r13, 9; @!%p1 bra OUT; mbarrier.arrive.shared::cta.b64 %rd10, [%r3]; mbarrier.test_wait.shared::cta.b64 %p2, [%r3], %rd10; selp.u32 %r10, 1, 0, %p2; mbarrier.arrive.shared::cta.b64 %rd11, [%r3], 2; mbarrier.test_wait.shared::cta.b64 %p2, [%r3], %rd10; selp.u32 %r11, 1, 0, %p2; mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3], 1; selp.u32 %r12, 1, 0, %p2; mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3], 0; selp.u32 %r13, 1, 0, %p2;\nOUT:"
    linear = (
        _INIT
        + "@!%p1 bra DONE; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 2048; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [%r3];"
        + wait()
        + "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 2048; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nDONE:"
    )
    sync = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    cluster = f"mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %ctaid.x; mad.lo.u32 %r5, %r1, 4, %r2; mad.lo.u32 %r14, %r11, 1000, %r1; st.shared.u32 [%r5], %r14; {sync} xor.b32 %r15, %r10, 1; mapa.shared::cluster.u32 %r16, %r5, %r15; ld.shared::cluster.u32 %r17, [%r16]; {sync} mad.lo.u32 %r19, %r11, 64, %r1; mad.wide.u32 %rd6, %r19, 8, %rd2; st.global.v2.u32 [%rd6], {{%r17, %r10}};"
    cases = [
        program(
            "mbarrier",
            "ring",
            ring + store_words(["%r30"]),
            "u32",
            4,
            256,
            block=64,
            target="sm_90a",
        ),
        program(
            "mbarrier",
            "states",
            states + store_words(names("%r", 10, 4)),
            "u32",
            4,
            1024,
            block=64,
            target="sm_90a",
        ),
        program("bulk", "linear", linear, "u8", 2048, 2048, block=64, target="sm_90a"),
        program(
            "bulk",
            "cluster",
            cluster,
            "u8",
            16,
            6 * 512,
            block=64,
            grid=6,
            cluster=2,
            target="sm_90a",
        ),
    ]
    for op, kind in itertools.product(
        ("add", "min", "max", "inc", "dec", "and", "or", "xor"), ("u32",)
    ):
        type_ = kind if op not in ("and", "or", "xor") else "b32"
        body = (
            fill(2048, 64)
            + f"fence.proxy.async.shared::cta; bar.sync 0; @!%p1 bra DONE; cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{type_} [%rd1+2048], [%r2], 2048; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nDONE:"
        )
        cases.append(
            program(
                "bulk",
                f"reduce.{op}",
                body,
                "u32",
                1024,
                4,
                block=64,
                target="sm_90a",
                input_rule=Rule("u32"),
            )
        )
    return cases + tensor_cases()


def tensor_cases() -> list[Case]:
    cases = []
    # Bytes and rows: the GPU refuses corners that are not on 16 bytes, and stores to negative
    # ones (CUDA C++ Programming Guide, "Tensor Memory Access", negative indices).
    corners = ((0, 0), (-16, 5), (80, 60), (160, 60), (192, 3), (400, 100), (32, -7))
    for swizzle, (byte, row), kind in itertools.product(
        (0, 32, 64, 128), corners, ("u16", "f32", "u8", "f16")
    ):
        item = DTYPES[kind].itemsize
        corner = (byte // item, row)
        columns = (swizzle or 64) // item
        size = columns * item * 16

        def load(
            seed: int,
            kind=kind,
            columns=columns,
            corner=corner,
            swizzle=swizzle,
            item=item,
            size=size,
        ) -> Launch:
            tensor = (
                raw(draw(kind, 67 * 112 // item * 2, seeded("tma", seed)))
                .view(DTYPES[kind])
                .reshape(67, -1)
            )
            box = TensorMap(tensor, (tensor.shape[1] - 6, 67), (224,), (columns, 16), swizzle)
            body = (
                _INIT
                + f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size}; mov.b32 %r10, {corner[0]}; mov.b32 %r11, {corner[1]}; @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd3, {{%r10, %r11}}], [%r3];"
                + wait()
                + empty(size, 64)
            )
            return Launch(text(body, "sm_90a"), [box, tensor, np.zeros(size, np.uint8)], block=64)

        def store(
            seed: int,
            kind=kind,
            columns=columns,
            corner=corner,
            swizzle=swizzle,
            item=item,
            size=size,
        ) -> Launch:
            tensor = np.zeros((67, 224 // item), DTYPES[kind])
            box = TensorMap(tensor, (tensor.shape[1] - 6, 67), (224,), (columns, 16), swizzle)
            source = draw("u8", size, seeded("tma", seed))
            body = (
                fill(size, 64)
                + f"fence.proxy.async.shared::cta; bar.sync 0; mov.b32 %r10, {corner[0]}; mov.b32 %r11, {corner[1]}; @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {{%r10, %r11}}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
            )
            return Launch(text(body, "sm_90a"), [box, source, np.zeros(4, np.uint8)], block=64)

        name = f"{kind}.swizzle{swizzle}.{corner[0]},{corner[1]}"
        cases.append(Case(f"tma.load.{name}", "tma", load))
        if min(corner) >= 0:
            cases.append(Case(f"tma.store.{name}", "tma", store))
    for rank, store_it in itertools.product((1, 2, 3, 4, 5), (False, True)):
        cases.append(
            Case(
                f"tma.{'store' if store_it else 'load'}.{rank}d",
                "tma",
                lambda seed, rank=rank, store_it=store_it: ranked(rank, store_it, seed),
            )
        )
    for kind, op in (
        ("f32", "add"),
        ("u32", "add"),
        ("u32", "min"),
        ("u32", "max"),
        ("u32", "xor"),
        ("f16", "add"),
        ("bf16", "add"),
        ("f16", "max"),
    ):
        cases.append(
            Case(
                f"tma.reduce.{op}.{kind}",
                "tma",
                lambda seed, kind=kind, op=op: reduction(kind, op, seed),
            )
        )
    for rank, swizzle in itertools.product((3, 4, 5), (0, 64)):
        cases.append(
            Case(
                f"tma.im2col.{rank}d.swizzle{swizzle}",
                "tma",
                lambda seed, rank=rank, swizzle=swizzle: walked(rank, swizzle, seed),
            )
        )
    return cases


def walked(rank: int, swizzle: int, seed: int) -> Launch:
    """Channels 16 to 31 of 24, 48 positions from inside the first of three images on, in steps of 1
    to 3, beside the images on all sides and behind the last one."""
    dims, between = (*(24, 7, 5, 4)[: rank - 1], 3), rank - 2
    walk = Im2col((-2, 1, -1)[:between], (1, 0, -1)[:between], (1, 3, 2)[:between])
    at, moved = (*(16, 3, 4, 1)[: rank - 1], 0), (2, 0, 1)[:between]
    tensor = raw(draw("u32", int(np.prod(dims)), seeded("walk", seed))).reshape(dims[::-1])
    strides = tuple(int(np.prod(dims[: i + 1])) * 4 for i in range(rank - 1))
    coordinates, offsets = listed(names("%r", 10, rank)), listed(names("%h", 1, between))
    body = "".join(f"mov.b32 %r{10 + i}, {c};" for i, c in enumerate(at))
    body += "".join(f"mov.b16 %h{1 + i}, {c};" for i, c in enumerate(moved))
    size = 48 * 64
    body += (
        _INIT
        + f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size}; @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r2], [%rd3, {coordinates}], [%r3], {offsets};"
        + wait()
        + empty(size, 64)
    )
    made = TensorMap(tensor, dims, strides, (16, 48), swizzle, im2col=walk)
    return Launch(text(body, "sm_90a"), [made, tensor, np.zeros(size, np.uint8)], block=64)


def ranked(rank: int, store_it: bool, seed: int) -> Launch:
    dims, box = (24, 5, 4, 3, 6)[:rank], (16, 3, 2, 2, 4)[:rank]
    corner = (16, 3, 3 if store_it else -1, 1, 4)[:rank]  # a store at a negative corner stops
    tensor = (
        np.zeros(dims[::-1], np.uint32)
        if store_it
        else raw(draw("u32", int(np.prod(dims)), seeded("rank", seed))).reshape(dims[::-1])
    )
    strides = tuple(int(np.prod(dims[: i + 1])) * 4 for i in range(rank - 1))
    size = int(np.prod(box)) * 4
    coordinates = listed(names("%r", 10, rank))
    body = "".join(f"mov.b32 %r{10 + i}, {c};" for i, c in enumerate(corner))
    if store_it:
        body += (
            fill(size, 64)
            + f"fence.proxy.async.shared::cta; bar.sync 0; @%p1 cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%rd3, {coordinates}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
        )
    else:
        body += (
            _INIT
            + f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size}; @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd3, {coordinates}], [%r3];"
            + wait()
            + empty(size, 64)
        )
    source = draw("u8", size, seeded("rank", seed))
    return Launch(text(body, "sm_90a"), [TensorMap(tensor, dims, strides, box), source, np.zeros(size, np.uint8)], block=64)  # fmt: skip


def reduction(kind: str, op: str, seed: int) -> Launch:
    rng, dtype = seeded("reduce", seed), DTYPES[kind]
    columns = 64 // dtype.itemsize
    flavour = "n" if kind[0] in "fb" else ""
    tensor = draw(kind + flavour, 8 * columns, rng).reshape(8, columns)
    source = raw(draw(kind + flavour, 4 * columns, rng))
    body = (
        fill(256, 64)
        + f"fence.proxy.async.shared::cta; bar.sync 0; mov.b32 %r10, 0; mov.b32 %r11, 2; @%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group [%rd3, {{%r10, %r11}}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    )
    box = TensorMap(tensor, (columns, 8), (64,), (columns, 4))
    return Launch(text(body, "sm_90a"), [box, source, np.zeros(4, np.uint8)], block=64, rules={0: Rule(kind)})  # fmt: skip


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
        return Launch(full, [_NO_MAP, a, np.zeros(128 * 4 * len(registers), np.uint8)], block=128, rules={2: rule}, shared_bytes=size)  # fmt: skip

    return Case(name, "wgmma", make)


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


def program_cases() -> list[Case]:
    return [
        *memory_cases(), *atomic_cases(), *barrier_cases(), *copy_async_cases(), *matrix_cases(),
        *bulk_cases(), *wgmma_cases(), *fixture_cases(),
    ]  # fmt: skip
