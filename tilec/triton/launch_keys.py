"""What launches like one before have alike: the keys under which they are known.

    add(x, y, out, 4000, 0.5)  ->  the classes of the arguments, the thread, the grid,
                                   of x, y, out: dtype, device, whether in whole 16 bytes; 4000

Fractions are told apart by their class alone, and so are whole numbers that no array is made of, a
step or a seed: whether they are 1, a multiple of 16, below 2^31 and not negative, which is all that
Triton and the importer specialise for. Others, sizes and strides, by their values.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilec.hardware.sizes import VECTOR_BYTES

MULTIPLE = 16
"""What whole numbers are asked to be multiples of, as Triton does."""

Reader = Callable[[Sequence[Any], Any], tuple[Any, tuple[int, ...]]]
"""Of arguments, and of the grid: a key, none where one needs a look, and the addresses of the
pointers."""


class Form(NamedTuple):
    """Calls alike: classes of the arguments, the names of the last of them, and places of fractions
    that are told apart after all, exactly."""

    classes: tuple[type, ...]
    names: tuple[str, ...] = ()
    fractions: tuple[int, ...] = ()


_READER = """
def read(arguments, grid):
    ({names}) = arguments
    {pointers}
    {refuse}
    return (of, ident(), grid, {values}), ({starts})
"""


def reader(form: Form, kinds: frozenset[type], free: frozenset[int]) -> Reader | None:
    """What reads keys of such calls; None where an argument is neither a tensor nor a number nor of
    `kinds`. `free`: the places of whole numbers of which the class is enough."""
    return _reader(form, tensor_classes(), kinds, free)


@functools.lru_cache(1024)
def _reader(
    form: Form, tensors: frozenset[type], kinds: frozenset[type], free: frozenset[int]
) -> Reader | None:
    """A function for arguments of these classes: it asks each what launches alike have alike, with
    no loop and no question after a class. Its text has numbers alone."""
    classes = form.classes
    if not all(kind in tensors or kind in kinds or kind is float for kind in classes):
        return None
    pointers = [n for n, kind in enumerate(classes) if kind in tensors]
    values = [_class_of(n) if n in free else f"a{n}" for n, kind in enumerate(classes)
              if kind in kinds]  # fmt: skip
    bits = " | ".join(f"p{n}" for n in pointers)
    negated = " or ".join(f"a{n}.is_neg()" for n in pointers)
    low = "".join(f"p{n} % {VECTOR_BYTES}, " for n in pointers)
    text = _READER.format(
        names="".join(f"a{n}, " for n in range(len(classes))),
        pointers="; ".join(f"p{n} = a{n}.data_ptr()" for n in pointers) or "pass",
        refuse=f"if {negated}: return None, ()" if pointers else "",
        values=", ".join([
            *(f"a{n}.dtype, a{n}.get_device()" for n in pointers), *values,
            *(f"a{n}.hex()" for n in form.fractions),
            f"({bits}) % {VECTOR_BYTES} and ({low})" if pointers else "0",
        ]),
        starts="".join(f"p{n}, " for n in pointers),
    )  # fmt: skip
    # One object for this function's keys alone: it tells 1 and True apart, a class from a value.
    names: dict[str, Any] = {"ident": threading.get_ident, "of": object()}
    exec(compile(text, "<key of a launch>", "exec"), names)
    return names["read"]


def _class_of(place: int) -> str:
    """0, 1 or 2 where a whole number is from 0 to 2^31 - 1, else itself."""
    name = f"a{place}"
    return f"({name} if {name} >> 31 else 2 if {name} == 1 else {name} % {MULTIPLE} > 0)"


@functools.cache
def _classes(torch: Any) -> frozenset[type]:
    return frozenset((torch.Tensor, torch.nn.Parameter))


def tensor_classes() -> frozenset[type]:
    """The classes of torch that are known; none before it is imported."""
    torch = sys.modules.get("torch")
    return frozenset() if torch is None else _classes(torch)
