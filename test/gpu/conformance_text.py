# ruff: noqa: E501  (lines of PTX)
"""Text of the kernels around instructions: registers, words to and from memory, and their cases."""

from __future__ import annotations

import numpy as np
from conformance_case import Case, Launch, Rule, draw, raw, seeded

_REGISTERS = (
    ".reg .pred %p<11>; .reg .b16 %h<20>; .reg .b32 %r<300>; .reg .b64 %rd<60>; .reg .b64 %d<60>;"
)
NO_MAP = bytes(128)


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
            text(body, target, shared, top), [NO_MAP, a, np.zeros(output, np.uint8)],
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


INIT = (
    "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"
)


def wait(bar: str = "%r3", parity: int = 0) -> str:
    return f"{{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [{bar}], {parity}; @!done bra W; }}"
