"""What NumPy, torch and Triton say otherwise: the message says how tilec says it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from frontend_cases import build

import tilec.language as tl
from tilec.diagnostics import CompileError
from tilec.frontend.habits import function_help

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
    "parts = []\n    parts.append(n)": "help: a list is a tuple in a kernel",
    "t = tl.load(v, 0, n)": "declared as in 'B: tl.const'",
    "v[0] = 3.0": "an array's elements cannot be assigned",
    "t = tl.zeros(4, tl.f32)\n    t[0] = 3.0": "help: build the new tile with tl.where",
    "print(f'{n:3}')": "help: write the value alone",
    "t = len(v)": "help: use x.shape[0]",
    "with open('x') as f:\n        pass": "'with' is for one role",
}


@pytest.mark.parametrize("body", CASES)
def test_the_message_helps(body: str, tmp_path: Path) -> None:
    text = f"import numpy\n\ndef k(v, n):\n    {body}\n"
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["v:f32[?]", "n:i32"])
    assert CASES[body] in str(caught.value)


def test_only_functions_that_exist_are_named() -> None:
    assert function_help(np.exp) == ("help: use tl.exp",)
    assert function_help(np.linalg.norm) == function_help(tl.memory) == function_help(3) == ()
    assert function_help(math.fsum) == ()
