# ruff: noqa: E501  (lines of PTX)
"""Kernels of test_emulator_conformance.py that compute with floats."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from conformance_case import Case, Rule
from conformance_element import DIRECTED, each


def float_cases() -> list[Case]:
    cases = []

    def add(name: str, body: str, inputs: str, out: str | Rule | Sequence[str | Rule]) -> None:
        cases.append(each("float", name, body, inputs, out))

    for kind in ("f32", "f64"):
        for mode, op in itertools.product(DIRECTED, ("add", "sub", "mul")):
            add(
                f"{op}.{mode}.{kind}",
                f"{op}.{mode}.{kind} {{o0}}, {{0}}, {{1}};",
                f"{kind} {kind}",
                kind,
            )
        for mode in DIRECTED:
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
    for mode in DIRECTED:
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
