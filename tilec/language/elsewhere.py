"""What the language says for names of Triton, torch and NumPy: for messages."""

from __future__ import annotations

INSTEAD = {
    "constexpr": "tl.const",
    "float64": "tl.f64",
    "float32": "tl.f32",
    "float16": "tl.f16",
    "bfloat16": "tl.bf16",
    "float8e4nv": "tl.f8e4m3",
    "float8_e4m3fn": "tl.f8e4m3",
    "float8e5": "tl.f8e5m2",
    "float8_e5m2": "tl.f8e5m2",
    "int64": "tl.i64",
    "int32": "tl.i32",
    "int16": "tl.i16",
    "int8": "tl.i8",
    "int1": "tl.i1",
    "bool_": "tl.i1",
    "trans": "x.T, or tl.permute(x, order)",
    "view": "tl.reshape(x, shape), or tl.bitcast(x, dtype)",
    "ravel": "tl.reshape(x, shape)",
    "zeros_like": "tl.zeros(x.shape, x.dtype)",
    "fdiv": "tl.div(x, y, approx=True)",
    "device_print": "tl.print",
    "device_assert": "assert condition, text",
    "static_print": "tl.print",
    "make_block_ptr": "tl.load(array, offsets, shape), which respects the bounds",
    "advance": "tl.load(array, offsets, shape) at other offsets",
    "make_tensor_descriptor": "tl.load(array, offsets, shape), a TMA copy where it can be",
    "multiple_of": "tl.assume(x, multiple_of=n)",
    "randint": "tl.philox",
    "debug_barrier": "nothing: the compiler places barriers",
}
"""What to write for a name of theirs."""


def instead_of(name: str) -> str | None:
    """What to write for a name of Triton, torch or NumPy, or None."""
    return INSTEAD.get(name)
