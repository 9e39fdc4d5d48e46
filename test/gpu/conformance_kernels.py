# ruff: noqa: E501  (lines of PTX)
"""The kernels of test_emulator_conformance.py, family by family, and their random inputs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from conformance_barriers import barrier_programs
from conformance_case import DTYPES, Case, Launch, Rule, draw, raw, seeded
from conformance_programs import program_cases
from elementwise_ptx import kernel as elementwise_text

_SIZE = 2048
_INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
_DIRECTED = ("rn", "rz", "rm", "rp")


def each(
    family: str, name: str, body: str, inputs: str, outputs: Sequence[str | Rule] | str | Rule,
    size: int = _SIZE, target: str = "sm_90a", extra: str = "",
) -> Case:  # fmt: skip
    """A case of one element a thread. inputs: kinds for `draw`, separated by blanks.

    outputs: how each output compares; a bare name is bit for bit. What follows `#` in body names
    the outputs that are packed pairs.
    """
    many = [outputs] if isinstance(outputs, (str, Rule)) else list(outputs)
    rules = [Rule(out) if isinstance(out, str) else out for out in many]

    def make(seed: int) -> Launch:
        rng = seeded(name, seed)
        arrays = [raw(draw(kind, size, rng)) for kind in inputs.split()]
        results = [np.zeros(size, f"u{DTYPES[rule.dtype].itemsize}") for rule in rules]
        for mark in body_marks:  # "x2@N": output N holds pairs
            if mark.startswith("x2@") and int(mark[3:]) < len(results):
                results[int(mark[3:])] = np.zeros(size, "u4")
        text = elementwise_text(
            clean, [a.dtype for a in arrays], [r.dtype for r in results], extra
        ).replace(".target sm_90a", f".target {target}")
        return Launch(
            text, [*arrays, *results], grid=size // 128, block=128,
            rules={len(arrays) + i: rule for i, rule in enumerate(rules)},
        )  # fmt: skip

    clean, _, marks = body.partition("#")
    body_marks = marks.split()
    return Case(name, family, make)


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
    for to, source, mode in itertools.product(floats, integers, _DIRECTED):
        if not (source in ("u8", "s8") and to == "bf16"):
            add(f"cvt.{mode}.{to}.{source} {{o0}}, {{0}};", source, to)
    add("cvt.rn.sat.f32.s32 {o0}, {0};", "s32", "f32")
    for to, source in (("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f64")):
        for mode, sat in itertools.product(_DIRECTED, ("", ".sat")):
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


def float_cases() -> list[Case]:
    cases = []

    def add(name: str, body: str, inputs: str, out: str | Rule | Sequence[str | Rule]) -> None:
        cases.append(each("float", name, body, inputs, out))

    for kind in ("f32", "f64"):
        for mode, op in itertools.product(_DIRECTED, ("add", "sub", "mul")):
            add(
                f"{op}.{mode}.{kind}",
                f"{op}.{mode}.{kind} {{o0}}, {{0}}, {{1}};",
                f"{kind} {kind}",
                kind,
            )
        for mode in _DIRECTED:
            add(
                f"fma.{mode}.{kind}",
                f"fma.{mode}.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
                f"{kind} {kind} {kind}",
                kind,
            )
            add(
                f"fma.{mode}.{kind}.normal",
                f"fma.{mode}.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
                f"{kind}n {kind}n {kind}n",
                kind,
            )
            add(
                f"fma.{mode}.{kind}.cancel",
                f"mul.rn.{kind} {{2}}, {{0}}, {{1}}; neg.{kind} {{2}}, {{2}}; fma.{mode}.{kind} {{o0}}, {{0}}, {{1}}, {{2}};",
                f"{kind}n {kind}n {kind}n",
                kind,
            )
            add(
                f"div.{mode}.{kind}",
                f"div.{mode}.{kind} {{o0}}, {{0}}, {{1}};",
                f"{kind} {kind}",
                kind,
            )
            add(
                f"div.{mode}.{kind}.normal",
                f"div.{mode}.{kind} {{o0}}, {{0}}, {{1}};",
                f"{kind}n {kind}n",
                kind,
            )
            add(
                f"rcp.sqrt.{mode}.{kind}",
                f"rcp.{mode}.{kind} {{o0}}, {{0}}; sqrt.{mode}.{kind} {{o1}}, {{0}};",
                kind,
                (kind, kind),
            )
        for op in ("min", "max"):
            add(f"{op}.{kind}", f"{op}.{kind} {{o0}}, {{0}}, {{1}};", f"{kind} {kind}", kind)
        add(
            f"neg.abs.copysign.{kind}",
            f"neg.{kind} {{o0}}, {{0}}; abs.{kind} {{o1}}, {{0}}; copysign.{kind} {{o2}}, {{0}}, {{1}};",
            f"{kind} {kind}",
            (kind,) * 3,
        )
    for op in ("add", "sub", "mul"):
        add(
            f"{op}.ftz.f32",
            f"{op}.ftz.f32 {{o0}}, {{0}}, {{1}}; {op}.sat.f32 {{o1}}, {{0}}, {{1}}; {op}.ftz.sat.f32 {{o2}}, {{0}}, {{1}};",
            "f32 f32",
            ("f32",) * 3,
        )
    add(
        "fma.ftz.sat.f32",
        "fma.rn.ftz.f32 {o0}, {0}, {1}, {2}; fma.rn.sat.f32 {o1}, {0}, {1}, {2};",
        "f32 f32 f32",
        ("f32", "f32"),
    )
    add(
        "div.ftz.f32",
        "div.rn.ftz.f32 {o0}, {0}, {1}; rcp.rn.ftz.f32 {o1}, {0}; sqrt.rn.ftz.f32 {o2}, {0};",
        "f32 f32",
        ("f32",) * 3,
    )
    add(
        "min.max.NaN.f32",
        "min.NaN.f32 {o0}, {0}, {1}; max.NaN.f32 {o1}, {0}, {1}; min.ftz.f32 {o2}, {0}, {1}; max.xorsign.abs.f32 {o3}, {0}, {1}; min.NaN.xorsign.abs.f32 {o4}, {0}, {1};",
        "f32 f32",
        ("u32", "u32", "f32", "f32", "f32"),
    )
    add("neg.abs.ftz.f32", "neg.ftz.f32 {o0}, {0}; abs.ftz.f32 {o1}, {0};", "f32", ("f32", "f32"))
    for kind in ("f16", "bf16", "f16x2", "bf16x2"):
        base = kind.replace("x2", "")
        marks = " #" + " ".join(f"x2@{i}" for i in range(4)) if "x2" in kind else ""
        two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"
        add(
            f"arithmetic.{kind}",
            f"add.rn.{kind} {{o0}}, {{0}}, {{1}}; sub.rn.{kind} {{o1}}, {{0}}, {{1}}; mul.rn.{kind} {{o2}}, {{0}}, {{1}};{marks}",
            two,
            (base,) * 3,
        )
        add(
            f"fma.{kind}",
            f"fma.rn.{kind} {{o0}}, {{0}}, {{1}}, {{2}}; fma.rn.relu.{kind} {{o1}}, {{0}}, {{1}}, {{2}};{marks}",
            three,
            (base,) * 2,
        )
        near = f"{base}x2n" if "x2" in kind else f"{base}n"
        add(
            f"fma.{kind}.normal",
            f"fma.rn.{kind} {{o0}}, {{0}}, {{1}}, {{2}};{marks}",
            f"{near} {near} {near}",
            base,
        )
        add(
            f"min.max.{kind}",
            f"min.{kind} {{o0}}, {{0}}, {{1}}; max.{kind} {{o1}}, {{0}}, {{1}}; neg.{kind} {{o2}}, {{0}}; abs.{kind} {{o3}}, {{0}};{marks}",
            two,
            (base,) * 4,
        )
        add(
            f"min.max.NaN.{kind}",
            f"min.NaN.{kind} {{o0}}, {{0}}, {{1}}; max.NaN.{kind} {{o1}}, {{0}}, {{1}}; max.xorsign.abs.{kind} {{o2}}, {{0}}, {{1}};{marks}",
            two,
            (base,) * 3,
        )
        if base == "f16":
            add(
                f"sat.ftz.{kind}",
                f"add.sat.{kind} {{o0}}, {{0}}, {{1}}; mul.ftz.{kind} {{o1}}, {{0}}, {{1}}; fma.rn.ftz.sat.{kind} {{o2}}, {{0}}, {{1}}, {{1}};{marks}",
                two,
                (base,) * 3,
            )
            edge = f"{kind}e"
            add(
                f"ftz.edge.{kind}",
                f"mul.ftz.{kind} {{o0}}, {{0}}, {{1}}; fma.rn.ftz.{kind} {{o1}}, {{0}}, {{1}}, {{2}};{marks}",
                f"{edge} {edge} {kind}t",
                (base,) * 2,
            )
    for mode in _DIRECTED:
        add(
            f"ftz.edge.{mode}.f32",
            f"mul.{mode}.ftz.f32 {{o0}}, {{0}}, {{1}}; fma.{mode}.ftz.f32 {{o1}}, {{0}}, {{1}}, {{2}}; div.{mode}.ftz.f32 {{o2}}, {{0}}, {{3}};",
            "f32e f32e f32t f32b",
            ("f32",) * 3,
        )
    add(
        "ftz.edge.cvt",
        "cvt.f64.f32 %d0, {0}; cvt.f64.f32 %d1, {1}; mul.f64 %d2, %d0, %d1; cvt.rn.ftz.f32.f64 {o0}, %d2;",
        "f32e f32e",
        "f32",
    )
    return cases + approximation_cases()


def approximation_cases() -> list[Case]:
    """Errors as the PTX ISA states them, plus one unit for the emulator's own rounding."""
    table = [
        ("rcp.approx", "f32", 2, 0, 0), ("rcp.approx.ftz", "f32", 2, 0, 0),
        ("sqrt.approx", "f32", 2, 0, 0), ("sqrt.approx.ftz", "f32", 2, 0, 0),
        ("rsqrt.approx", "f32", 3, 0, 0), ("rsqrt.approx.ftz", "f32", 3, 0, 0),
        ("ex2.approx", "f32", 3, 0, 0), ("ex2.approx.ftz", "f32", 3, 0, 0),
        ("lg2.approx", "f32", 2, 0, 2.0**-21), ("lg2.approx.ftz", "f32", 2, 0, 2.0**-21),
        ("tanh.approx", "f32", 1, 2.0**-10.9, 0),
    ]  # fmt: skip
    cases = []
    for op, kind, ulp, relative, absolute in table:
        rule = Rule(kind, ulp=ulp, relative=relative, absolute=absolute)
        for inputs, what in (
            (kind, "bits"),
            (f"{kind}[0.01,50]", "positive"),
            (f"{kind}[-4,4]", "near"),
        ):
            cases.append(
                each(
                    "approximation",
                    f"{op}.{kind}.{what}",
                    f"{op}.{kind} {{o0}}, {{0}};",
                    inputs,
                    rule,
                )
            )
    for op in ("sin", "cos"):
        rule = Rule("f32", absolute=2.0**-20)
        cases.append(
            each(
                "approximation",
                f"{op}.approx",
                f"{op}.approx.f32 {{o0}}, {{0}}; {op}.approx.ftz.f32 {{o1}}, {{0}};",
                "f32[-3.14,3.14]",
                (rule, rule),
            )
        )
    cases.append(
        each(
            "approximation",
            "div.approx",
            "div.approx.f32 {o0}, {0}, {1}; div.full.f32 {o1}, {0}, {1}; div.approx.ftz.f32 {o2}, {0}, {1}; div.full.ftz.f32 {o3}, {0}, {1};",
            "f32n f32n",
            (Rule("f32", ulp=3),) * 4,
        )
    )
    cases.append(
        each(
            "approximation",
            "rcp.rsqrt.approx.ftz.f64",
            "rcp.approx.ftz.f64 {o0}, {0}; rsqrt.approx.ftz.f64 {o1}, {0};",
            "f64[0.01,50]",
            (Rule("f64", relative=2.0**-19),) * 2,
        )
    )
    for kind, relative in (("f16", 2.0**-9.5), ("bf16", 2.0**-7)):
        suffix = ".ftz" if kind == "bf16" else ""
        for pair in ("", "x2"):
            marks = "#x2@0" if pair else ""
            cases.append(
                each(
                    "approximation",
                    f"ex2.approx.{kind}{pair}",
                    f"ex2.approx{suffix}.{kind}{pair} {{o0}}, {{0}}; {marks}",
                    f"{kind}{pair}[-6,6]",
                    Rule(kind, ulp=1, relative=relative),
                )
            )
            cases.append(
                each(
                    "approximation",
                    f"tanh.approx.{kind}{pair}",
                    f"tanh.approx.{kind}{pair} {{o0}}, {{0}}; {marks}",
                    f"{kind}{pair}[-4,4]",
                    Rule(kind, ulp=1, absolute=2.0**-10 if kind == "f16" else 2.0**-8),
                )
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
