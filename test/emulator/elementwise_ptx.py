"""Builds and runs small PTX kernels: one thread per element, so that one opcode can be compared."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator import load

_BITS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}
_PREFIX = {1: "%h", 2: "%h", 4: "%r", 8: "%d"}


_WARP_WIDE = ("shfl", "vote", "match", "redux", "elect", "bar.", "activemask", "brx")


def kernel(
    body: str,
    inputs: list[np.dtype],
    outputs: list[np.dtype],
    extra: str = "",
    every_other: bool = False,
) -> str:
    """PTX of a kernel that loads in0, in1, ... per thread, runs body, stores out0, out1, ...

    every_other: threads with an odd number skip the body, so that it runs in divergent warps.

    In the body {0}, {1}, ... are the input registers and {o0}, {o1}, ... the output registers.
    """
    dtypes = [*inputs, *outputs]
    parameters = ",".join(f".param .u64 p{i}" for i in range(len(dtypes)))
    registers = {f"{i}": f"{_PREFIX[dtype.itemsize]}{i}" for i, dtype in enumerate(inputs)}
    first = len(inputs)
    registers |= {
        f"o{i}": f"{_PREFIX[dtype.itemsize]}{first + i}" for i, dtype in enumerate(outputs)
    }
    text = body
    for key, register in registers.items():
        text = text.replace("{" + key + "}", register)
    lines = [
        ".version 8.7", ".target sm_90a", ".address_size 64", extra,
        f".visible .entry kernel({parameters}) {{",
        ".reg .b16 %h<40>; .reg .b32 %r<60>; .reg .b64 %d<60>; .reg .pred %p<11>;",
        "mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ntid.x; mov.u32 %r52, %tid.x;",
        "mad.lo.s32 %r53, %r50, %r51, %r52;",
    ]  # fmt: skip
    for i, dtype in enumerate(dtypes):
        lines.append(f"ld.param.u64 %d{20 + i}, [p{i}];")
        lines.append(f"mul.wide.u32 %d{40 + i}, %r53, {dtype.itemsize};")
        lines.append(f"add.s64 %d{20 + i}, %d{20 + i}, %d{40 + i};")
        if i < first:
            lines.append(f"ld.global.{_BITS[dtype.itemsize]} {registers[str(i)]}, [%d{20 + i}];")
    if every_other:
        text = f"and.b32 %r54, %r53, 1; setp.eq.u32 %p9, %r54, 1; @%p9 bra ODD;\n{text}\nODD:"
    lines.append(text)
    for i, dtype in enumerate(outputs):
        register = registers[f"o{i}"]
        lines.append(f"st.global.{_BITS[dtype.itemsize]} [%d{20 + first + i}], {register};")
    return "\n".join([*lines, "ret;", "}"])


def evaluate(
    body: str, *inputs: np.ndarray, out: str | tuple[str, ...], block: int = 64, extra: str = ""
) -> np.ndarray | tuple[np.ndarray, ...]:
    """The outputs of `body` for every element of the inputs (a multiple of 32 elements).

    Unless the body is about whole warps, it is run in divergent warps too, with the same result.
    """
    names = (out,) if isinstance(out, str) else out
    size = inputs[0].size
    dtypes = [np.dtype(name) for name in names]
    block = min(block, size)
    if size % block:
        raise ValueError(f"{size} elements are no multiple of {block} threads")

    def run(every_other: bool) -> list[np.ndarray]:
        results = [np.zeros(size, dtype) for dtype in dtypes]
        text = kernel(body, [a.dtype for a in inputs], dtypes, extra, every_other)
        load(text).run("kernel", size // block, block, [*(a.copy() for a in inputs), *results])
        return results

    results = run(False)
    if not any(word in body for word in _WARP_WIDE):
        for whole, part in zip(results, run(True), strict=True):
            same(part[::2].copy(), whole[::2].copy())
    return results[0] if isinstance(out, str) else tuple(results)


def integers(dtype: str, size: int = 256, seed: int = 0) -> np.ndarray:
    """Random bits of an integer dtype, with the extreme values among them."""
    kind = np.dtype(dtype)
    raw = np.random.default_rng(seed).integers(0, 256, size * kind.itemsize, dtype=np.uint8)
    values = raw.view(kind).copy()
    limits = np.iinfo(kind)
    special = np.array([0, 1, limits.max, limits.min, limits.max - 1], kind)
    values[: special.size] = np.roll(special, seed)
    return values


def floats(dtype: str, size: int = 256, seed: int = 0) -> np.ndarray:
    """Random floats of many magnitudes, with zeros, infinities, NaN and subnormals among them."""
    rng = np.random.default_rng(seed)
    spread = {"float16": 6, "float32": 30, "float64": 200}[np.dtype(dtype).name]
    values = rng.standard_normal(size) * 2.0 ** rng.integers(-spread, spread, size)
    tiny = np.finfo(dtype).tiny
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny / 4, 1.0, -1.0, tiny / 2]
    values[: len(special)] = np.roll(special, 3 * seed)
    return values.astype(dtype)


def same(got: np.ndarray, expected: np.ndarray) -> None:
    """Bit equality, any NaN standing for any NaN."""
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    bits = f"u{got.dtype.itemsize}"
    equal = got.view(bits) == np.ascontiguousarray(expected).view(bits)
    if got.dtype.kind == "f" or got.dtype.name.startswith(("bfloat", "float8")):
        equal |= np.isnan(got) & np.isnan(expected)
    bad = np.flatnonzero(~equal)
    assert bad.size == 0, (bad[:5], got[bad[:5]], expected[bad[:5]])
