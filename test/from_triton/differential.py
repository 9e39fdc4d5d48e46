"""Runs a folder of Triton's IR on the emulator, on random arguments, beside NumPy's interpreter.

    python test/from_triton/differential.py DIR --target sm_90a
    519 kernels: 402 equal, 0 differ, 61 leave their memory, 56 with ops that are not interpreted

What a kernel's arguments mean nobody knows: pointers are into large arrays, integers are small
multiples of what Triton knew. Launches whose accesses leave the memory, divide by 0 or do not end
say nothing, nor do those whose programs race: both are drawn anew a few times.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from interpreter import run
from interpreter_rules import Pointer, Race, Watch, numpy_of

import tilec.triton
from tilec.messages.diagnostics import CompileError
from tilec.triton.descriptor_arguments import described, element_of_descriptor
from tilec.triton.normalize import normalized
from tilec.triton.program import POINTER, Function, Type
from tilec.triton.reader import read_kernel

ELEMENTS, FRONT = 1 << 18, 1 << 12
"""Of each array, and in front of its pointer."""
ROW = 16
"""Elements that rows of descriptors are multiples of: 16 bytes of any dtype."""
TRIES = 6
AGAIN = ("leave their memory", "race")
"""What says nothing of a kernel: it is drawn anew."""
SECONDS = 20
"""For one launch, interpreted and emulated."""
TOLERANCE = {"f64": 1e-4, "f32": 2e-3, "f16": 2e-2, "bf16": 1e-1}
"""Largest error, relative to what is near in magnitude: products and functions are rounded in
another order, and f32 products are of tf32."""


class Late(Exception):
    """A launch that takes too long."""


def argument(kind: Type, divisor: int, drawn: np.random.Generator) -> Any:
    """A random argument: an array for a pointer."""
    if kind.pointee is None:
        if kind.is_integer:
            if kind.element == "i1":
                return int(drawn.integers(0, 2))
            return divisor * int(drawn.integers(1, drawn.choice([4, 20])))
        return float(drawn.standard_normal())
    dtype = numpy_of(Type(kind.pointee))
    if kind.pointee == "i1":
        return drawn.integers(0, 2, ELEMENTS).astype(np.bool_)
    if kind.pointee.startswith("i"):
        return drawn.integers(0, 60, ELEMENTS).astype(dtype)
    return drawn.standard_normal(ELEMENTS).astype(np.float32).astype(dtype)


def arguments(function: Function, drawn: np.random.Generator) -> list[Any]:
    """Random arguments of a kernel: of a descriptor an array, and sizes and strides of its own."""
    found = []
    for formal, given in zip(function.arguments, function.given, strict=True):
        by = int(given.get("tt.divisibility", "1").split(":")[0])
        kind = formal.type
        if kind.block is not None:
            kind = Type(f"{POINTER}{element_of_descriptor(kind)}>")
        found.append(argument(kind, max(by, 1) if kind.pointee is None else 1, drawn))
    for one in described(function):
        stride = 1
        sizes = [int(drawn.integers(1, 70)) for _ in one.sizes]
        for place, size_at, size in zip(one.strides[::-1], one.sizes[::-1], sizes, strict=True):
            found[size_at], found[place] = size, stride
            stride = -(-stride * size // ROW) * ROW
    return found


def differs(found: Any, right: Any, element: str) -> bool:
    """Whether two arrays differ by more than rounding."""
    if element not in TOLERANCE:
        wide = [a.astype(np.float32) if a.dtype.kind == "V" else a for a in (found, right)]
        if element.startswith("f8"):
            one, two = (a.astype(np.float32) for a in (found, right))
            return not np.allclose(one, two, rtol=0.3, atol=0.1, equal_nan=True)
        return not np.array_equal(*wide)
    one, two = (a.astype(np.float64) for a in (found, right))
    near = np.abs(two[np.isfinite(two)])
    bound = TOLERANCE[element] * max(1, near.max(initial=0))
    return not np.allclose(one, two, rtol=TOLERANCE[element], atol=bound, equal_nan=True)


def launch(text: str, name: str, drawn: np.random.Generator) -> str:
    """What became of one launch."""
    function = read_kernel(text, name)
    given = arguments(function, drawn)
    kinds = [a.type for a in normalized(read_kernel(text, name)).arguments]
    grid = tuple(int(n) for n in drawn.integers(1, 4, 3))
    if "tt.get_program_id z" not in text:
        grid = (*grid[:2], 1)
    if "tt.get_program_id y" not in text:
        grid = (grid[0] if "tt.get_program_id x" in text else 1, 1, 1)
    expected = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
    pointers = [Pointer(a, FRONT, Watch(a)) if isinstance(a, np.ndarray) else a for a in expected]
    try:
        run(function, pointers, grid)
    except IndexError:
        return "leave their memory"
    except Race:
        return "race"
    compiled = tilec.triton.kernel(text, name).on("emulator")
    compiled[grid](*(a[FRONT:] if isinstance(a, np.ndarray) else a for a in given))
    for kind, one, two in zip(kinds, given, expected, strict=True):
        if isinstance(one, np.ndarray) and differs(one, two, kind.pointee or ""):
            return "differ"
    return "equal"


def look(path: Path, seed: int) -> str:
    """What became of a file's kernel."""
    text = path.read_text()
    word = ""
    for number in range(TRIES):
        drawn = np.random.default_rng([seed, number])
        signal.alarm(SECONDS)
        try:
            word = launch(text, path.name, drawn)
        except Late:
            word = "take too long"
        except KeyError as error:
            word = f"with ops that are not interpreted ({error})"
        except CompileError as error:
            word = "not imported" if "cannot" in error.message else f"error: {error.message[:60]}"
        except Exception as error:
            word = f"error: {type(error).__name__}: {str(error)[:90]}"
        finally:
            signal.alarm(0)
        if word not in AGAIN:
            break
    return word


def _late(number: int, frame: Any) -> None:
    raise Late


def main() -> None:
    """Prints what became of a folder's kernels."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    os.environ["TILEC_TARGET"] = given.target
    signal.signal(signal.SIGALRM, _late)
    tally: Counter[str] = Counter()
    for path in sorted(given.folder.rglob("*.ttir"))[given.first :: given.every]:
        word = look(path, given.seed)
        tally[re.sub(r"\(.*", "", word)] += 1
        if word not in ("equal", "not imported", *AGAIN):
            print(f"{path.name}: {word}", flush=True)
    print(f"{sum(tally.values())} kernels: {', '.join(f'{n} {w}' for w, n in tally.most_common())}")


if __name__ == "__main__":
    main()
