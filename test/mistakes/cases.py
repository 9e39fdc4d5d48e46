"""What the programs of `*_cases.py` share: each has one mistake, as people make them who come from
Triton, CUDA, NumPy or torch. `messages.txt` has what each of them is told.
"""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import numpy as np

import tilec

x = np.arange(256, dtype=np.float32)
y = np.zeros(256, np.float32)
m = np.ones((64, 96), np.float32)
h = np.ones((64, 96), np.float16)
CASES = {}


def case(program):
    """Notes a program under its name."""
    CASES[program.__name__] = program
    return program


def kernel(fn=None, **options):
    """`tilec.kernel` for one program on the emulator."""
    options = {"grid": 1, "device": "emulator", **options}
    return tilec.kernel(fn, **options) if fn else lambda found: tilec.kernel(found, **options)
