"""Two random kernels, one launched right behind the other, which reads what the first one wrote
and writes what it read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from random_functions import numpy_language
from random_functions.cases import Case, difference, drawn
from random_functions.placing import Placed

ORDERS = ((0, 1), (0, 1), (0, 1, 0, 1), (0, 0, 1), (1, 0, 1), (0, 1, 1, 0))
OTHER = 500_000
"""Between the seeds of a pair's kernels."""
MOST_ATTEMPTS = 8


@dataclass
class Pair:
    """Cases that have some arrays in common, and in which order they are launched. `shared`:
    numbers of the second's arrays, with those of the first that they are."""

    cases: tuple[Case, Case]
    order: tuple[int, ...]
    shared: dict[int, int]


def drawn_pair(seed: int, targets: Sequence[str], data: int = 0) -> Pair:
    """The same for the same seed; `data` as of `drawn`. Most have something in common."""
    for attempt in range(MOST_ATTEMPTS):
        pair = _pair(seed + attempt * 1_000_000_000, targets, data)
        if pair.shared:
            break
    return pair


def _pair(seed: int, targets: Sequence[str], data: int) -> Pair:
    rng = random.Random(f"pair {seed}")
    one = drawn(seed, targets, data)
    two = drawn(seed + OTHER, targets, data, before=one)
    shared: dict[int, int] = {}
    for number, array in enumerate(two.kernel.arrays):
        read = array.kind == "data"
        wanted, often = ("out", 0.8) if read else ("data", 0.5)
        alike = [
            n for n, other in enumerate(one.kernel.arrays)
            if other.kind == wanted and other.dtype == array.dtype and not other.large
            and array.kind in ("data", "out") and not array.large
            and one.arguments[n].shape == two.arguments[number].shape
            and (read or one.lies[n].same_as is None)
            and all(n != m or read for m in shared.values())
        ]  # fmt: skip
        if alike and two.lies[number].same_as is None and rng.random() < often:
            shared[number] = rng.choice(alike)
            two.arguments[number] = one.arguments[shared[number]]
    for number, lie in enumerate(two.lies):
        if lie.same_as is not None:
            two.arguments[number] = two.arguments[lie.same_as]
    written = {id(a) for case in (one, two) for a in case.arguments_of("out")}
    for case in (one, two):
        pairs = zip(case.kernel.arrays, case.arguments, strict=True)
        settled = [a.name for a, values in pairs if a.kind == "data" and id(values) not in written]
        if settled and rng.random() < 0.4:
            promise = f'settled="{rng.choice(settled)}"'
            case.demands = f"{case.demands}, {promise}" if case.demands else promise
    return Pair((one, two), rng.choice(ORDERS), shared)


def expected_of_pair(pair: Pair) -> list[list[np.ndarray]] | None:
    """What NumPy leaves in the arguments of both; None where sums would round."""
    memory: dict[int, np.ndarray] = {}
    arrays = [
        [memory.setdefault(id(argument), argument.copy()) for argument in case.arguments]
        for case in pair.cases
    ]
    for number in pair.order:
        case = pair.cases[number]
        numpy_language.run(case.text, "kernel", arrays[number], case.grid, case.constants)
        if case.largest(arrays[number]) > case.limit:
            return None
    return arrays


def difference_of_pair(
    pair: Pair, found: Sequence[Sequence[np.ndarray]], expected: Sequence[Sequence[np.ndarray]]
) -> str:
    """As `difference`, of both."""
    both = zip(("first", "second"), pair.cases, found, expected, strict=True)
    for name, case, got, wanted in both:
        wrong = difference(case, got, wanted)
        if wrong:
            return f"the {name}'s {wrong}"
    return ""


def joined(pair: Pair, places: Sequence[list[Placed]]) -> None:
    """Makes those of the second's arrays that are the first's the same memory."""
    first, second = places
    for number, other in pair.shared.items():
        second[number] = first[other]
    for number, lie in enumerate(pair.cases[1].lies):
        if lie.same_as is not None:
            second[number] = second[lie.same_as]


def text_of_pair(pair: Pair) -> str:
    """Both kernels, and what they share."""
    one, two = pair.cases
    names = [
        f"{two.kernel.arrays[n].name} is the first's {one.kernel.arrays[m].name}"
        for n, m in pair.shared.items()
    ]
    shapes = [
        ", ".join(
            f"{array.name} {array.dtype}{list(a.shape)}"
            for array, a in zip(case.kernel.arrays, case.arguments, strict=True)
        )
        for case in pair.cases
    ]
    return "\n".join(
        [
            f"{one.text}grid {one.grid}: {shapes[0]}",
            f"{two.text}grid {two.grid}: {shapes[1]}",
            f"order {pair.order}; {', '.join(names)}\n{one.lies}\n{two.lies}",
        ]
    )
