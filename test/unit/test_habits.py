"""What NumPy, torch and Triton say otherwise: the message says how tilec says it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from frontend_cases import build

import tilec.language as tl
from tilec.executable.grid import check_grid
from tilec.frontend.habits import dtype_help, function_help
from tilec.language.elsewhere import INSTEAD
from tilec.messages.diagnostics import CompileError

CASES = {
    "t = tl.load(v, 0, 16, mask=n > 0)": "so no mask is needed",
    "t = tl.load(v, 0, 16, other=0.0)": "help: elements outside the array are `padding`",
    "t = tl.load(v + tl.arange(16), 0, 16)": "help: an array is no pointer",
    "t = -v": "help: an array is no pointer",
    "t = v.sum()": "help: an array is no pointer",
    "t = tl.sum(tl.load(v, 0, 16), dim=0)": "help: dimensions are called `axis`",
    "t = tl.load(v, 0, 16).astype(tl.f16)": "help: write x.to(dtype)",
    "t = tl.load(v, 0, 16).mean()": "help: write x.sum() / n",
    "t = numpy.exp(tl.load(v, 0, 16))": "help: use tl.exp",
    "t = numpy.clip(tl.load(v, 0, 16), 0, 1)": "help: write tl.clamp(x, low, high)",
    "t = tl.load(v, 0, 16).flatten()": "help: write tl.reshape(x, shape)",
    "parts = []\n    parts.append(n)": "help: a list is a tuple in a kernel",
    "t = tl.load(v, 0, n)": "declared as in 'B: tl.const'",
    "v[0] = 3.0": "an array's elements cannot be assigned",
    "t = tl.zeros(4, tl.f32)\n    t[0] = 3.0": "help: build the new tile with tl.where",
    "print(f'{n:3}')": "help: write the value alone",
    "t = len(v)": "help: use x.shape[0]",
    "t = tl.float32": "help: write tl.f32",
    "t = tl.debug_barrier()": "help: write nothing: the compiler places",
    "t = tl.laod(v, 0, 16)": "help: did you mean 'load'",
    "t = tl.zeros(4, numpy.float32)": "help: write tl.f32",
    "t = tl.zeros(4, 'f16')": "help: write tl.f16",
    "t = tl.matmul(n, n)": "help: write tl.dot(x, y, acc); outside kernels tilec.ops.matmul",
    "t = tl.memory": "has no 'memory'",
    "t = tl.gpu.aloc(n)": "help: did you mean 'alloc'",
    "t = tl.load(v, 0, 64 / 2)": "help: `/` gives a float; `//` and tl.cdiv",
    "t = tl.arange(0, 32, 2)": "arange has no step",
    "tl.store(v, tl.zeros(4, tl.f32))": "help: the order is array, offsets, tile",
    "t = tl.load(v, 0, 16, eviction_policy='evict_last')": "help: it is called `cache`",
    "t = tl.dot(v, v, allow_tf32=False)": "help: precision='tf32' puts f32 on tensor cores",
    "t = tl.dot(v, v, input_precision='ieee')": "help: it is called `precision`",
    "t = sum(tl.load(v, 0, 16))": "help: use tl.sum",
    "t = tl.load(v, 0, 16)\n    t = t > 0 and t < 1": "help: `&` and `|` combine",
    "t = not (tl.load(v, 0, 16) > 0)": "help: `~` negates",
    "t = (1, 2)\n    for i in tl.range(2):\n        u = t[i]": "a loop over tl.static_range(n)",
    "tl.store(v, tl.zeros(4, tl.f32), 0)": "help: the order is array, offsets",
    "t = tl.load(v, (0, n), 16)": "help: give one number",
    "with open('x') as f:\n        pass": "'with' is for one role",
}


@pytest.mark.parametrize("body", CASES)
def test_the_message_helps(body: str, tmp_path: Path) -> None:
    text = f"import numpy\n\ndef k(v, n):\n    {body}\n"
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["v:f32[?]", "n:i32"])
    assert CASES[body] in str(caught.value)


def test_names_of_others_outside_a_kernel() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'constexpr'; write tl\.const$"):
        _ = tl.constexpr
    with pytest.raises(AttributeError, match=r"no attribute 'unheard_of'$"):
        _ = tl.unheard_of


def test_what_is_said_instead_exists() -> None:
    named = [text for text in INSTEAD.values() if text.startswith("tl.")]
    assert len(named) > 20
    for text in named:
        assert hasattr(tl, re.match(r"tl\.(\w+)", text)[1]), text
    assert not any(name in dir(tl) for name in INSTEAD)


def test_what_is_no_dtype_gets_no_name_of_one() -> None:
    assert dtype_help(np.float32) == dtype_help("float32") == ("help: write tl.f32",)
    assert dtype_help("sum") == dtype_help(3) == dtype_help(np.complex64) == ()


def test_only_functions_that_exist_are_named() -> None:
    assert function_help(np.exp) == ("help: use tl.exp",)
    assert function_help(np.linalg.cond) == function_help(tl.memory) == function_help(3) == ()
    assert function_help(math.fsum) == ()


def test_a_rule_in_a_call_belongs_to_the_kernel() -> None:
    with pytest.raises(TypeError, match=r"a rule belongs to the kernel: @tilec.kernel\(grid=lam"):
        check_grid(lambda meta: (1,))
    with pytest.raises(TypeError, match=r"not 'x'$"):
        check_grid("x")
