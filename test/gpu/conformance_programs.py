# ruff: noqa: E501  (lines of PTX)
"""Kernels around memory, atomics and barriers, and the list of all that are programs.

Registers and shared memory are filled with random bytes, and everything is stored raw: how a
fragment or a swizzled tile is laid out is for the GPU and the emulator to agree on.
"""

from __future__ import annotations

import itertools

from conformance_case import Case, Rule
from conformance_copies import bulk_cases, copy_async_cases
from conformance_fixtures import fixture_cases
from conformance_matrices import matrix_cases, wgmma_cases
from conformance_text import listed, names, program, store_words


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


def program_cases() -> list[Case]:
    return [
        *memory_cases(), *atomic_cases(), *barrier_cases(), *copy_async_cases(), *matrix_cases(),
        *bulk_cases(), *wgmma_cases(), *fixture_cases(),
    ]  # fmt: skip
