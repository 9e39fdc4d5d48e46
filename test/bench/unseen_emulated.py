"""Tilec's kernels of `unseen.py` on the emulator in check mode, compared with float64; no GPU.

python test/bench/unseen_emulated.py --seed N [--only NAME...]     # TILEC_TARGET=sm_90a: for that

Sizes are drawn as `unseen.py` draws them, but small. Prints a line a kind; fails if one is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

os.environ.setdefault("TILEC_DEVICE", "emulator")

import ml_dtypes
import torch
import unseen
from drawn_cases import Source
from unseen_case import Kind, Maker

VIEWS = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
}
"""Dtypes that NumPy has not: those of as many bits, and ml_dtypes'."""


def host_array(value: Any) -> Any:
    """A tensor as a NumPy array of the same memory; numbers as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    bits, dtype = VIEWS.get(value.dtype, (None, None))
    return value.view(bits).numpy().view(dtype) if bits else value.numpy()


def emulate(kind: Kind, number: int, seed: int) -> str:
    """The sizes, and what is wrong or nothing."""
    sizes = kind.draw(Source(seed * 1000 + number, small=True))
    tensors = kind.tensors(Maker("cpu", seed), sizes)
    expected = kind.reference(tensors, sizes)
    try:
        for launch in kind.launches(tensors, sizes):
            arguments = [host_array(one) for one in launch.arguments]
            launch.kernel.check(*arguments, **launch.constants)
        why = unseen.wrong(kind, tensors, sizes, expected)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    return f"{kind.label(sizes)}: {'WRONG, ' + why if why else 'right'}"


def main() -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--only", nargs="+", default=list(unseen.KINDS), metavar="NAME")
    options = parser.parse_args()
    failed = 0
    for number, kind in enumerate(unseen.KINDS.values()):
        if kind.name in options.only:
            line = emulate(kind, number, options.seed)
            failed += "WRONG" in line
            print(line, flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
