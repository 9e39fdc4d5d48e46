# ruff: noqa: E501  (lines of PTX)
"""The kernels of test_emulator_conformance.py, family by family, and their random inputs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from conformance_barriers import barrier_programs
from conformance_case import DTYPES, Case, Rule
from conformance_element import DIRECTED, each
from conformance_floats import float_cases
from conformance_programs import program_cases

_INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")


def integer_cases() -> list[Case]:  # noqa: C901  (a table)
    cases = []

    def add(name: str, body: str, inputs: str, outputs: Sequence[str] | str) -> None:
        cases.append(each("integer", name, body, inputs, outputs, target="sm_80"))

    for op, kind in itertools.product(("add", "sub", "mul.lo", "mul.hi", "min", "max"), _INTEGERS):
        add(f"{op}.{kind}", f"{op}.{kind} {{o0}}, {{0}}, {{1}};", f"{kind} {kind}", kind)
    for op, kind in itertools.product(("add.sat", "sub.sat"), ("s32",)):
        add(f"{op}.{kind}", f"{op}.{kind} {{o0}}, {{0}}, {{1}};", f"{kind} {kind}", kind)
    for kind in _INTEGERS:
        nonzero = f"or.b{kind[1:]} {{1}}, {{1}}, 1;"
        if kind[0] == "s":  # the least integer divided by -1 overflows, which PTX leaves open
            nonzero = f"shr.{kind} {{1}}, {{1}}, 3; or.b{kind[1:]} {{1}}, {{1}}, 1; shr.{kind} {{0}}, {{0}}, 1;"
        add(
            f"div.rem.{kind}",
            f"{nonzero} div.{kind} {{o0}}, {{0}}, {{1}}; rem.{kind} {{o1}}, {{0}}, {{1}};",
            f"{kind} {kind}",
            (kind, kind),
        )
        add(
            f"mad.lo.{kind}",
            f"mad.lo.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
            f"{kind} {kind} {kind}",
            kind,
        )
        add(
            f"mad.hi.{kind}",
            f"mad.hi.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
            f"{kind} {kind} {kind}",
            kind,
        )
        add(
            f"sad.{kind}",
            f"sad.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
            f"{kind} {kind} u{kind[1:]}",
            kind,
        )
        bits = kind[1:]
        if kind[0] == "u":
            add(
                f"logic.b{bits}",
                f"and.b{bits} {{o0}}, {{0}}, {{1}}; or.b{bits} {{o1}}, {{0}}, {{1}}; xor.b{bits} {{o2}}, {{0}}, {{1}}; not.b{bits} {{o3}}, {{0}}; cnot.b{bits} {{o4}}, {{0}};",
                f"{kind} {kind}",
                (kind,) * 5,
            )
            add(
                f"shifts.b{bits}",
                f"shl.b{bits} {{o0}}, {{0}}, {{1}}; shr.u{bits} {{o1}}, {{0}}, {{1}}; shr.s{bits} {{o2}}, {{0}}, {{1}};",
                f"{kind} u32<70",
                (kind,) * 3,
            )
            add(
                f"wild.shifts.b{bits}",
                f"shl.b{bits} {{o0}}, {{0}}, {{1}}; shr.u{bits} {{o1}}, {{0}}, {{1}}; shr.s{bits} {{o2}}, {{0}}, {{1}};",
                f"{kind} u32",
                (kind,) * 3,
            )
        if kind[0] == "s":
            add(
                f"neg.abs.{kind}",
                f"neg.{kind} {{o0}}, {{0}}; abs.{kind} {{o1}}, {{0}};",
                kind,
                (kind, kind),
            )
    for kind, wide in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
        add(f"mul.wide.{kind}", f"mul.wide.{kind} {{o0}}, {{0}}, {{1}};", f"{kind} {kind}", wide)
        add(
            f"mad.wide.{kind}",
            f"mad.wide.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
            f"{kind} {kind} {wide}",
            wide,
        )
    for kind in ("u32", "s32"):
        add(
            f"mul24.{kind}",
            f"mul24.lo.{kind} {{o0}}, {{0}}, {{1}}; mul24.hi.{kind} {{o1}}, {{0}}, {{1}}; mad24.lo.{kind} {{o2}}, {{0}}, {{1}}, {{1}};",
            f"{kind} {kind}",
            (kind,) * 3,
        )
        for other in ("u32", "s32"):
            add(
                f"dp4a.{kind}.{other}",
                f"dp4a.{kind}.{other} {{o0}}, {{0}}, {{1}}, {{2}};",
                "u32 u32 u32",
                "u32",
            )
            for half in ("lo", "hi"):
                add(
                    f"dp2a.{half}.{kind}.{other}",
                    f"dp2a.{half}.{kind}.{other} {{o0}}, {{0}}, {{1}}, {{2}};",
                    "u32 u32 u32",
                    "u32",
                )
    for kind in ("u32", "s32", "u64", "s64"):
        for span in ("u32<80", "u32<255"):
            add(
                f"bfe.{kind}.{span[4:]}",
                f"bfe.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
                f"{kind} {span} {span}",
                kind,
            )
    for bits in ("32", "64"):
        for span in ("u32<80", "u32<255"):
            add(
                f"bfi.b{bits}.{span[4:]}",
                f"bfi.b{bits} {{o0}}, {{0}}, {{1}}, {{2}}, {{3}};",
                f"u{bits} u{bits} {span} {span}",
                f"u{bits}",
            )
        add(
            f"counts.b{bits}",
            f"popc.b{bits} {{o0}}, {{0}}; clz.b{bits} {{o1}}, {{0}}; brev.b{bits} {{o2}}, {{0}};",
            f"u{bits}",
            ("u32", "u32", f"u{bits}"),
        )
        for sign in "us":
            add(
                f"bfind.{sign}{bits}",
                f"bfind.{sign}{bits} {{o0}}, {{0}}; bfind.shiftamt.{sign}{bits} {{o1}}, {{0}};",
                f"u{bits}",
                ("u32", "u32"),
            )
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        add(f"prmt{mode}", f"prmt.b32{mode} {{o0}}, {{0}}, {{1}}, {{2}};", "u32 u32 u32", "u32")
    for table in (0x00, 0x1E, 0x80, 0x96, 0xCA, 0xE8, 0xFE, 0x3B):
        add(
            f"lop3.{table:02x}",
            f"lop3.b32 {{o0}}, {{0}}, {{1}}, {{2}}, {table};",
            "u32 u32 u32",
            "u32",
        )
    for side, mode, span in itertools.product("lr", ("wrap", "clamp"), ("u32<70", "u32")):
        add(
            f"shf.{side}.{mode}.{span}",
            f"shf.{side}.{mode}.b32 {{o0}}, {{0}}, {{1}}, {{2}};",
            f"u32 u32 {span}",
            "u32",
        )
    add(
        "carries",
        "add.cc.u32 {o0}, {0}, {1}; addc.cc.u32 {o1}, {1}, {2}; addc.u32 {o2}, 0, 0; sub.cc.u32 {o3}, {0}, {2}; subc.u32 {o4}, {1}, {0};",
        "u32 u32 u32",
        ("u32",) * 5,
    )
    add(
        "mad.carries",
        "mad.lo.cc.u32 {o0}, {0}, {1}, {2}; madc.hi.cc.u32 {o1}, {0}, {1}, {2}; madc.lo.u32 {o2}, {0}, {2}, {1};",
        "u32 u32 u32",
        ("u32",) * 3,
    )
    for op, kind in itertools.product(("add", "min", "max"), ("u16x2", "s16x2")):
        cases.append(
            each("integer", f"{op}.{kind}", f"{op}.{kind} {{o0}}, {{0}}, {{1}};", "u32 u32", "u32")
        )
    cases.append(
        each(
            "integer",
            "min.max.relu",
            "min.relu.s32 {o0}, {0}, {1}; max.relu.s32 {o1}, {0}, {1};",
            "s32 s32",
            ("s32", "s32"),
        )
    )
    return cases


def compare_cases() -> list[Case]:
    cases = []
    orders = ("eq", "ne", "lt", "le", "gt", "ge")
    for kind in _INTEGERS:
        body = "".join(
            f"setp.{o}.{kind} %p1, {{0}}, {{1}}; selp.u32 {{o{i}}}, 1, 0, %p1;"
            for i, o in enumerate(orders)
        )
        cases.append(
            each("compare", f"setp.{kind}", body, f"{kind} {kind}", ("u32",) * 6, target="sm_80")
        )
    for kind in ("f16", "bf16", "f32", "f64"):
        every = [f"{o}{u}" for o in orders for u in ("", "u")] + ["num", "nan"]
        for part in (every[:7], every[7:]):
            body = "".join(
                f"setp.{o}.{kind} %p1, {{0}}, {{1}}; selp.u32 {{o{i}}}, 1, 0, %p1;"
                for i, o in enumerate(part)
            )
            cases.append(
                each("compare", f"setp.{kind}.{part[0]}", body, f"{kind} {kind}", ("u32",) * 7)
            )
    cases.append(
        each(
            "compare",
            "setp.ftz",
            "setp.lt.ftz.f32 %p1, {0}, {1}; selp.u32 {o0}, 1, 0, %p1; setp.equ.ftz.f32 %p1, {0}, {1}; selp.u32 {o1}, 1, 0, %p1;",
            "f32 f32",
            ("u32", "u32"),
        )
    )
    for kind in ("f16x2", "bf16x2"):
        cases.append(
            each(
                "compare",
                f"setp.{kind}",
                f"setp.lt.{kind} %p1|%p2, {{0}}, {{1}}; selp.u32 {{o0}}, 1, 0, %p1; selp.u32 {{o1}}, 1, 0, %p2;",
                f"{kind} {kind}",
                ("u32", "u32"),
            )
        )
    for combine in ("and", "or", "xor"):
        cases.append(
            each(
                "compare",
                f"setp.{combine}",
                f"setp.lt.s32 %p3, {{0}}, 0; setp.gt.{combine}.s32 %p1|%p2, {{0}}, {{1}}, !%p3; selp.u32 {{o0}}, 1, 0, %p1; selp.u32 {{o1}}, 1, 0, %p2;",
                "s32 s32",
                ("u32", "u32"),
            )
        )
    cases.append(
        each(
            "compare",
            "set.slct",
            "set.lt.u32.f32 {o0}, {0}, {1}; set.geu.f32.f32 {o1}, {0}, {1}; slct.f32.f32 {o2}, {0}, {1}, {1}; slct.u64.s32 {o3}, {2}, {3}, {4};",
            "f32 f32 u64 u64 s32",
            ("u32", "f32", "u32", "u64"),
        )
    )
    for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        cases.append(
            each(
                "compare",
                f"testp.{test}",
                f"testp.{test}.f32 %p1, {{0}}; selp.u32 {{o0}}, 1, 0, %p1; testp.{test}.f64 %p1, {{1}}; selp.u32 {{o1}}, 1, 0, %p1;",
                "f32 f64",
                ("u32", "u32"),
            )
        )
    return cases


def convert_cases() -> list[Case]:  # noqa: C901  (a table)
    cases = []
    integers = ("u8", "s8", *_INTEGERS)

    def add(body: str, inputs: str, out: str | Rule, name: str = "") -> None:
        cases.append(each("convert", name or body.split()[0], body, inputs, out))

    for to, source in itertools.permutations(integers, 2):
        add(f"cvt.{to}.{source} {{o0}}, {{0}};", source, to)
        own, other = np.iinfo(DTYPES[to]), np.iinfo(DTYPES[source])
        if other.min < own.min or other.max > own.max:  # elsewhere .sat is refused
            add(f"cvt.sat.{to}.{source} {{o0}}, {{0}};", source, to)
    floats = ("f16", "bf16", "f32", "f64")
    for to, source, mode in itertools.product(integers, floats, ("rni", "rzi", "rmi", "rpi")):
        if not (to in ("u8", "s8") and source == "bf16"):
            add(f"cvt.{mode}.{to}.{source} {{o0}}, {{0}};", source, to)
    add("cvt.rzi.ftz.s32.f32 {o0}, {0};", "f32", "s32")
    add("cvt.rpi.ftz.u32.f32 {o0}, {0};", "f32", "u32")
    for to, source, mode in itertools.product(floats, integers, DIRECTED):
        if not (source in ("u8", "s8") and to == "bf16"):
            add(f"cvt.{mode}.{to}.{source} {{o0}}, {{0}};", source, to)
    add("cvt.rn.sat.f32.s32 {o0}, {0};", "s32", "f32")
    for to, source in (("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f64")):
        for mode, sat in itertools.product(DIRECTED, ("", ".sat")):
            if sat and to == "bf16":
                continue
            add(f"cvt.{mode}{sat}.{to}.{source} {{o0}}, {{0}};", source, to)
    for mode, flag in itertools.product(
        ("rn", "rz"), ("", ".relu", ".satfinite", ".relu.satfinite")
    ):
        for to in ("f16", "bf16"):
            add(
                f"cvt.{mode}{flag}.{to}.f32 {{o0}}, {{0}};",
                "f32",
                to,
                f"cvt.{mode}{flag}.{to}.f32.alt",
            )
            add(
                f"cvt.{mode}{flag}.{to}x2.f32 {{o0}}, {{0}}, {{1}}; #x2@0",
                "f32 f32",
                to,
                f"cvt.{mode}{flag}.{to}x2.f32",
            )
    for to, source in (
        ("f32", "f16"),
        ("f64", "f16"),
        ("f32", "bf16"),
        ("f64", "bf16"),
        ("f64", "f32"),
    ):
        add(f"cvt.{to}.{source} {{o0}}, {{0}};", source, to)
    add("cvt.ftz.f64.f32 {o0}, {0};", "f32", "f64")
    add("cvt.rn.ftz.f32.f64 {o0}, {0};", "f64", "f32")
    add("cvt.ftz.f32.f16 {o0}, {0};", "f16", "f32")
    add("cvt.rn.ftz.f16.f32 {o0}, {0};", "f32", "f16")
    add("cvt.rn.bf16.f16 {o0}, {0};", "f16", "bf16")
    add("cvt.rn.f16.bf16 {o0}, {0};", "bf16", "f16")
    for kind, mode in itertools.product(("f16", "f32", "f64"), ("rni", "rzi", "rmi", "rpi")):
        add(f"cvt.{mode}.{kind}.{kind} {{o0}}, {{0}};", kind, kind)
        add(f"cvt.{mode}.sat.{kind}.{kind} {{o0}}, {{0}};", kind, kind)
    for flag in ("rn", "rn.relu", "rz", "rz.relu", "rna", "rna.satfinite"):
        add(f"cvt.{flag}.tf32.f32 {{o0}}, {{0}};", "f32", "f32")
    for eight, relu in itertools.product(("e4m3", "e5m2"), ("", ".relu")):
        pair = f"{eight}x2"
        add(
            f"cvt.rn.satfinite{relu}.{pair}.f32 {{o0}}, {{0}}, {{1}};",
            "f32 f32",
            "u16",
            f"cvt{relu}.{pair}.f32",
        )
        add(
            f"cvt.rn.satfinite{relu}.{pair}.f32 {{o0}}, {{0}}, {{1}};",
            "f32[-20,20] f32[-600,600]",
            "u16",
            f"cvt{relu}.{pair}.f32.ordinary",
        )
        add(
            f"cvt.rn.satfinite{relu}.{pair}.f32 {{o0}}, {{0}}, {{1}};",
            "f32[-0.02,0.02] f32[-0.0001,0.0001]",
            "u16",
            f"cvt{relu}.{pair}.f32.small",
        )
        add(
            f"cvt.rn.satfinite{relu}.{pair}.f16x2 {{o0}}, {{0}};",
            "f16x2",
            "u16",
            f"cvt{relu}.{pair}.f16x2",
        )
        add(
            f"cvt.rn{relu}.f16x2.{pair} {{o0}}, {{0}}; #x2@0",
            "u16",
            "f16",
            f"cvt{relu}.f16x2.{pair}",
        )
    for kind in ("s16", "u16"):
        add(f"cvt.pack.sat.{kind}.s32 {{o0}}, {{0}}, {{1}};", "s32 s32", "u32", f"cvt.pack.{kind}")
    for kind in ("s8", "u8"):
        add(
            f"cvt.pack.sat.{kind}.s32.b32 {{o0}}, {{0}}, {{1}}, {{2}};",
            "s32 s32 u32",
            "u32",
            f"cvt.pack.{kind}",
        )
    return cases


def warp_cases() -> list[Case]:
    cases = []

    def add(name: str, body: str, inputs: str, out: Sequence[str] | str) -> None:
        cases.append(each("warp", name, body, inputs, out))

    for mode, c in itertools.product(
        ("up", "down", "bfly", "idx"), (0, 31, 0x1800, 0x181F, 0x100F, 7)
    ):
        add(
            f"shfl.{mode}.{c:x}",
            f"shfl.sync.{mode}.b32 {{o0}}|%p1, {{0}}, {{1}}, {c}, -1; selp.u32 {{o1}}, 1, 0, %p1;",
            "u32 u32<40",
            ("u32", "u32"),
        )
    add(
        "votes",
        "setp.lt.s32 %p1, {0}, 0; vote.sync.ballot.b32 {o0}, %p1, -1; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1; vote.sync.uni.pred %p4, %p1, -1; selp.u32 {o1}, 1, 0, %p2; selp.u32 {o2}, 1, 0, %p3; selp.u32 {o3}, 1, 0, %p4; activemask.b32 {o4};",
        "s32",
        ("u32",) * 5,
    )
    add(
        "match",
        "match.any.sync.b32 {o0}, {0}, -1; match.any.sync.b64 {o1}, {1}, -1; match.all.sync.b32 {o2}|%p1, {2}, -1; selp.u32 {o3}, 1, 0, %p1;",
        "u32<5 u64<3 u32<1",
        ("u32",) * 4,
    )
    add(
        "match.all.mixed",
        "match.all.sync.b32 {o0}|%p1, {0}, -1; selp.u32 {o1}, 1, 0, %p1;",
        "u32<2",
        ("u32", "u32"),
    )
    for op, kind in itertools.product(("add", "min", "max"), ("u32", "s32")):
        add(f"redux.{op}.{kind}", f"redux.sync.{op}.{kind} {{o0}}, {{0}}, -1;", kind, kind)
    for op in ("and", "or", "xor"):
        add(f"redux.{op}.b32", f"redux.sync.{op}.b32 {{o0}}, {{0}}, -1;", "u32", "u32")
    add(
        "elect",
        "elect.sync %r20|%p1, -1; selp.u32 {o0}, 1, 0, %p1; mov.u32 {o1}, %r20;",
        "u32",
        ("u32", "u32"),
    )
    add(
        "half.warps",
        "mov.u32 %r21, %laneid; and.b32 %r22, %r21, 16; setp.eq.u32 %p1, %r22, 0; mov.u32 {o0}, 0; mov.u32 {o1}, 0; @!%p1 bra OTHER; vote.sync.ballot.b32 {o0}, %p1, 0xffff; redux.sync.add.s32 {o1}, {0}, 0xffff; bra.uni JOIN;\nOTHER: shfl.sync.bfly.b32 {o0}, {0}, 3, 31, 0xffff0000; redux.sync.max.u32 {o1}, {0}, 0xffff0000;\nJOIN: bar.warp.sync -1;",
        "u32",
        ("u32", "u32"),
    )
    add(
        "special.registers",
        "mov.u32 {o0}, %laneid; mov.u32 {o1}, %lanemask_lt; mov.u32 {o2}, %lanemask_ge; mov.u32 {o3}, %ntid.x; mov.u32 {o4}, %nctaid.x; add.u32 {o0}, {o0}, {0};",
        "u32",
        ("u32",) * 5,
    )
    return cases


def all_cases() -> list[Case]:
    return [
        *integer_cases(), *compare_cases(), *convert_cases(), *float_cases(), *warp_cases(),
        *program_cases(), *barrier_programs(),
    ]  # fmt: skip
