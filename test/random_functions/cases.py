"""Random kernels with arguments, how they are compiled, and what NumPy makes of them."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import random_functions
from random_functions import numpy_language
from random_functions.attentions import attentions
from random_functions.kernel_writer import ArrayOf, Written
from random_functions.numpy_language import AUTO_SIDE
from random_functions.placing import Lie, Placed, drawn_lies, harmed
from random_functions.products import products
from random_functions.rows import FAR, rows

TARGETS = ("sm_80", "sm_90a", "sm_90a", "sm_90a", "sm_100a", "sm_100a", "sm_120a")
EXACT = 1 << 23
"""Larger sums would round in f32."""
EXACT_OF_FP8 = 1 << 12
"""Larger sums would round in warpgroup instructions of 8-bit floats."""
NUMPY = {
    "i1": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
"""Dtypes that NumPy has."""
ROWS, PRODUCTS, ATTENTIONS = 0.3, 0.25, 0.15
"""So many are kernels of rows, columns and elements, so many products, and so many attentions, in
tiles of the compiler's choice."""
MOST_KEYS = 700
MOST_ELEMENTS = 40_000
"""Of such a kernel's arrays."""
MOST_OF_PRODUCTS = {"M": 500, "N": 500, "K": 4000}
MOST_MULTIPLIED = 4_000_000
"""In a product."""
MOST_IN_A_TILE = 8192
"""Of a row that one warp may have."""
MOST_PROGRAMS = 40
"""Of it, in NumPy, which runs one behind the other."""
MOST_BEHIND = 1024
"""Elements along an axis of rows, behind which a kernel may have squares as long."""
DEMANDS = re.compile(r", (stages=\d|warp_specialize=True)")


@dataclass
class Case:
    """A kernel with its arguments, in float64 or truths, and how it is compiled and run. `lies`:
    where they lie; `demands`: of the kernel; `in_loops`: whether its loops' hold; `sizes`: along
    the axes."""

    kernel: Written
    demands: str
    target: str
    arguments: list[np.ndarray]
    grid: tuple[int, ...]
    lies: list[Lie]
    sizes: dict[str, int]
    in_loops: bool = True
    constants: dict[str, int] = field(default_factory=dict)

    def launch(self, kernel: Any, places: Sequence[Placed]) -> None:
        """Launches it, whose own rule may give the grid."""
        pairs = zip(self.kernel.arrays, self.arguments, places, strict=True)
        given = [int(a) if array.dtype == "int" else one.array for array, a, one in pairs]
        (kernel if self.kernel.rule else kernel[self.grid])(*given, **self.constants)

    @property
    def text(self) -> str:
        """The kernel in Python."""
        text = self.kernel.text(self.demands)
        return text if self.in_loops else DEMANDS.sub("", text)

    @property
    def limit(self) -> int:
        """The greatest sum that does not round."""
        return EXACT_OF_FP8 if "tl.f8" in self.text else EXACT

    def arguments_of(self, kind: str) -> list[np.ndarray]:
        """Of its arrays of a kind."""
        pairs = zip(self.kernel.arrays, self.arguments, strict=True)
        return [argument for array, argument in pairs if array.kind == kind]

    def largest(self, arrays: Sequence[np.ndarray]) -> float:
        """The greatest number in those arrays whose dtypes may round."""
        pairs = zip(self.kernel.arrays, arrays, strict=True)
        narrow = [a for array, a in pairs if array.dtype not in ("i1", "i64", "f64", "int")]
        return max((np.abs(a).max(initial=0) for a in narrow), default=0)


def drawn(
    seed: int,
    targets: Sequence[str] = TARGETS,
    data: int = 0,
    before: Case | None = None,
    *,
    near: bool = False,
) -> Case:
    """A case; the same for the same seed. `data`: other numbers in arrays of the same sizes, or of
    sizes `near` them where the compiler chooses tiles, by classes of sizes;
    `before`: whose target, sizes and dtype it has, its K being as long as the other's M."""
    rng = random.Random(seed)
    dtype = before.kernel.dtype if before else None
    kind = random.Random(f"kind {seed}").random()
    is_rows, is_product = kind < ROWS, ROWS <= kind < ROWS + PRODUCTS
    written = rows if is_rows else products if is_product else random_functions.kernel
    if is_attention := ROWS + PRODUCTS <= kind < ROWS + PRODUCTS + ATTENTIONS:
        written = attentions
    kernel = written(seed, dtype)
    target = before.target if before else rng.choice(targets)
    demands = _demands_of_rows(rng, target) if is_rows else _demands(rng, target)
    sizes = _sizes_of_rows(rng, kernel) if is_rows else _sizes(rng, kernel)
    if is_product or is_attention:
        sizes = _sizes_of_products(rng)
    if before is not None and is_rows:
        sizes |= {"M": before.sizes["M"], "K": before.sizes.get("N", before.sizes["K"])}
    elif before is not None and max(before.sizes.values()) <= MOST_BEHIND:
        sizes |= {**sizes, **before.sizes, "K": before.sizes["M"]}
        if before.kernel.rule:
            sizes["N"] = before.sizes["K"]
    if near and data and kernel.rule and "N" not in kernel.constants:
        sizes = _near(random.Random(f"near {seed} {data}"), sizes)
    blocks = blocks_of_rows(kernel) if kernel.rule else kernel.blocks
    if is_attention:
        sizes = {"M": sizes["M"], "K": min(sizes["K"], MOST_KEYS), **kernel.blocks}
    counts = {axis: -(-sizes[axis] // blocks[axis]) for axis in sizes if axis in blocks}
    width = max(8, -(-sizes["K"] // 8) * 8)
    width = width if rng.random() < 0.5 else 1 << (width - 1).bit_length()
    constants = {"N": width} if "N" in kernel.constants else {}
    numbers = np.random.default_rng([rng.randrange(1 << 30), data])
    arguments = [_elements(a, kernel, sizes, counts, rng, numbers) for a in kernel.arrays]
    grid = tuple(counts[axis] for axis in kernel.programs)
    lies = drawn_lies(rng, kernel.arrays, arguments)
    for lie, number in zip(lies, range(len(lies)), strict=True):
        if lie.same_as is not None:
            arguments[number] = arguments[lie.same_as]
    return Case(kernel, demands, target, arguments, grid, lies, sizes, constants=constants)


def blocks_of_rows(kernel: Written) -> dict[str, int]:
    """Of a kernel whose tiles the compiler chooses, those that NumPy takes."""
    along = kernel.rule.split(", ")[1].rstrip(")")
    own = kernel.programs[0]
    rows = {own: int(along) if along.isdigit() else AUTO_SIDE}
    return {**dict.fromkeys("MKN", AUTO_SIDE), **rows}


def expected_of(case: Case, launches: int = 1) -> list[np.ndarray] | None:
    """What NumPy leaves in the arguments, after so many launches on the same; None where sums would
    round."""
    arrays = [a.copy() for a in case.arguments]
    for _ in range(launches):
        numpy_language.run(case.text, "kernel", arrays, case.grid, case.constants)
    return arrays if case.largest(arrays) <= case.limit else None


def difference(case: Case, found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    """Where a result, in float64, is another than it should be: "" if nowhere."""
    for array, got, wanted in zip(case.kernel.arrays, found, expected, strict=True):
        differ = ~(got == wanted)
        if differ.any():
            at = tuple(map(int, np.argwhere(differ)[0]))
            where = f"{differ.sum()} of {differ.size} differ, first {at}"
            return f"values of {array.name} {got.shape}: {where}: {got[at]} for {wanted[at]}"
    return ""


def beside(case: Case, places: Sequence[Placed], memories: Sequence[np.ndarray]) -> str:
    """The name of an array beside which something was written, "" if none."""
    for array, one, memory in zip(case.kernel.arrays, places, memories, strict=True):
        if harmed(one, memory):
            return f"values beside {array.name}"
    return ""


def _demands(rng: random.Random, target: str) -> str:
    found = []
    if rng.random() < 0.4:
        found.append(f"num_warps={rng.choice((1, 2, 4, 4, 8, 8, 16))}")
    if rng.random() < 0.5:
        found.append(f"persistent={rng.choice(('True', 'True', 'False'))}")
    if target not in ("sm_80", "sm_120a"):
        if rng.random() < 0.25:
            found.append(f"cluster={rng.choice(('2', '2', '(1, 2)', '4'))}")
        if rng.random() < 0.1:
            found.append('consumers="pingpong"')
        if rng.random() < 0.06:
            found.append("sum_parts=2")
    return ", ".join(found)


def _demands_of_rows(rng: random.Random, target: str) -> str:
    found = []
    if rng.random() < 0.25:
        found.append(f"num_warps={rng.choice((1, 2, 4, 8))}")
    if rng.random() < 0.25:
        ways = ("True", "False") if target in ("sm_80", "sm_90a") else ("True", '"dynamic"')
        found.append(f"persistent={rng.choice(ways)}")
    if target not in ("sm_80", "sm_120a") and rng.random() < 0.1:
        found.append(rng.choice(("cluster=2", "sum_parts=2", "sum_parts=4")))
    return ", ".join(found)


def _sizes(rng: random.Random, kernel: Written) -> dict[str, int]:
    """Elements along the axes: no, one, several blocks, up to where rings of four have wrapped."""
    step = rng.choice((1, 8, 8, 16, 16))
    sizes = {}
    for axis, block in kernel.blocks.items():
        most = {"M": rng.randint(1, 7), "N": 2 if "N" in kernel.programs else 1}
        blocks = most.get(axis) or rng.choice((0, 1, 2, 3, 5, 7, 9, 13))
        if axis == "L":
            blocks = rng.choice((0, 1, 2, 3, 5))
        over = rng.choice((0, rng.randrange(block)))
        least = step if axis in "MN" else 0
        sizes[axis] = max(least, (blocks * block - over) // step * step)
    return sizes


def _sizes_of_rows(rng: random.Random, kernel: Written) -> dict[str, int]:
    """Rows and columns: a few, or of one axis many where the other is short."""
    few, many = (int(math.exp(rng.uniform(0, math.log(most)))) for most in (20, MOST_ELEMENTS))
    many = max(1, many // few)
    if rng.random() < 0.2:
        many = rng.choice((0, 1, AUTO_SIDE, 2 * AUTO_SIDE))
    if rng.random() < 0.5:
        many = -(-many // 16) * 16
    if "N" in kernel.constants:
        many = min(many, MOST_IN_A_TILE)
    walked, own = (many, few) if rng.random() < 0.7 else (few, many)
    own = min(own, MOST_PROGRAMS * blocks_of_rows(kernel)[kernel.programs[0]])
    return {"M": own, "K": walked} if kernel.programs[0] == "M" else {"M": walked, "K": own}


def _sizes_of_products(rng: random.Random) -> dict[str, int]:
    """Rows, columns and depth: a few tiles, or a long depth of few."""
    step = rng.choice((1, 8, 8, 16, 64))
    found = {axis: math.exp(rng.uniform(1, math.log(MOST_OF_PRODUCTS[axis]))) for axis in "MNK"}
    if found["M"] * found["N"] * found["K"] > MOST_MULTIPLIED:
        found["K"] = MOST_MULTIPLIED / (found["M"] * found["N"])
    return {axis: max(1, round(length / step)) * step for axis, length in found.items()}


def _near(rng: random.Random, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes with another along one axis, by up to a sixteenth, as whole 16 as it was."""
    axis = rng.choice(list(sizes))
    other = round(sizes[axis] * rng.uniform(15 / 16, 17 / 16)) + rng.choice((-1, 0, 1))
    step = 16 if sizes[axis] % 16 == 0 else 1
    return {**sizes, axis: max(0, other) // step * step}


def _elements(
    array: ArrayOf,
    kernel: Written,
    sizes: dict[str, int],
    counts: dict[str, int],
    rng: random.Random,
    numbers: np.random.Generator,
) -> np.ndarray:
    """The numbers in an array: small, places of blocks, or numbers of rows, some outside."""
    axis = array.axes[-1:]
    if array.dtype == "int":
        far = array.kind == "far"
        return np.array(int(rng.choice(FAR)) if far else rng.randint(0, sizes["K"] + 9), np.float64)
    if array.kind == "ends":
        return np.sort(numbers.integers(0, sizes["K"] + 1, (sizes[axis],))).astype(np.float64)
    if array.kind == "flags" and kernel.rule:
        return numbers.integers(0, 2, (sizes[axis],)).astype(np.float64)
    if array.kind in ("flags", "blocks"):
        length = max(1, counts[axis] + rng.choice((0, 0, -1)))
        high = 2 if array.kind == "flags" else counts[axis] + 1
        if array.kind == "blocks" and axis != "M":
            length = rng.choice((0, 1, counts[axis], counts[axis] + 2))
        return numbers.integers(0, high, (length,)).astype(np.float64)
    if array.kind == "rows":
        shape = [sizes[a] for a in array.axes]
        return numbers.integers(-1, sizes[axis] + 1, shape).astype(np.float64)
    whole = {"P": counts["M"], "Q": counts.get("N", 1), **sizes}
    if "P" in array.axes:  # a block of each program
        whole |= kernel.blocks
    least = 0 if array.dtype in ("i1", "u8", "u16") else -1
    drawn_ones = numbers.integers(least, 2, [whole[a] for a in array.axes])
    return drawn_ones.astype(bool if array.dtype == "i1" else np.float64)
