"""Arguments of a foreign kernel, described on the command line and drawn at random.

spec   := [NAME ':'] dtype '=' value                        a number
        | [NAME ':'] 'bytes' '=' hex digits                  a parameter as it lies in memory
        | [NAME ':'] dtype '[' size (',' size)* ']' (',' key '=' value)*     an array
key    := 'strides' (in elements, SxS)   default: row-major
        | 'fill': 'random' (the default), 'range', a number, or '@FILE.npy'
        | 'box' (elements that a copy moves, BxB), which makes the parameter a tensor map
        | 'swizzle' of a tensor map: 0, 32, 64 or 128 bytes

Sizes, strides and boxes have the last dimension, along which elements lie side by side, last.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from tilec.records import dataclass
from tilec.runtime.emulator import TensorMap
from tilec.runtime.host import numpy_dtype
from tilec.terms.dtypes import BY_ARRAY

DTYPES = {
    **{d.name: numpy_dtype(d.mlir) for d in BY_ARRAY.values() if d.packed and not d.is_bool},
}
"""Element types by their names."""

_SPEC = re.compile(
    r"(?:(?P<name>\w+):)?(?P<dtype>\w+)(?:=(?P<value>.*)|\[(?P<sizes>[^\]]*)\](?P<keys>.*))"
)
_KEYS = ("strides", "fill", "box", "swizzle")
_MOST_BYTES = 1 << 32
"""Of an array that `tilec check` makes up: a mistyped size is refused before it fills memory."""


@dataclass(frozen=True)
class DrawnArgument:
    """One argument: a `value`, or an array (and a tensor map of it, where it has a `box`).

    `name`: empty where none was given.
    """

    name: str
    dtype: np.dtype | None
    value: Any = None
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    fill: str = "random"
    box: tuple[int, ...] = ()
    swizzle: int = 0

    def draw(self, random: np.random.Generator) -> Any:
        """What the emulator takes for it. ValueError, OSError: the fill or the map is wrong."""
        if self.dtype is None or not self.strides:
            return self.value
        array = self._array(random)
        if not self.box:
            return array
        strides = tuple(stride * self.dtype.itemsize for stride in self.strides[-2::-1])
        return TensorMap(array, self.shape[::-1], strides, self.box[::-1], self.swizzle)

    def _array(self, random: np.random.Generator) -> np.ndarray:
        array = self.blank()
        array[...] = self._content(random)
        return array

    def blank(self) -> np.ndarray:
        """The array of zeros, which take no memory before somebody writes them."""
        assert self.dtype is not None
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        memory = np.zeros(span, self.dtype)
        bytes_of = [stride * self.dtype.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(memory, self.shape, bytes_of)

    def _content(self, random: np.random.Generator) -> np.ndarray:
        assert self.dtype is not None
        if self.fill.startswith("@"):
            found = np.load(self.fill[1:], allow_pickle=False)
            if found.shape != self.shape:
                raise ValueError(f"{self.fill[1:]} holds {found.shape}, not {self.shape}")
            return found.view(self.dtype) if found.dtype.kind == "V" else found.astype(self.dtype)
        if self.fill == "range":
            return np.arange(math.prod(self.shape)).reshape(self.shape).astype(self.dtype)
        if self.fill != "random":
            return np.full(self.shape, _number(self.fill, self.dtype))
        if self.dtype.kind in "iu":
            return random.integers(0, 16, self.shape).astype(self.dtype)
        return random.standard_normal(self.shape).astype(self.dtype)


def parse_drawn(text: str) -> DrawnArgument:
    """One `--arg`. ValueError says what was expected."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"wrong argument {text!r}; expected e.g. a:f16[64,128] or n:i32=64")
    name, word, value = match["name"] or "", match["dtype"], match["value"]
    if word == "bytes" and value is not None:
        return DrawnArgument(name, None, bytes.fromhex(value))
    if word not in DTYPES:
        raise ValueError(f"argument {text!r}: unknown dtype {word!r}; known: {', '.join(DTYPES)}")
    dtype = DTYPES[word]
    if value is not None:
        return DrawnArgument(name, dtype, _number(value, dtype))
    shape = _sizes(text, "size", match["sizes"], ",")
    keys = _keys(text, match["keys"])
    row_major = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    strides = _sizes(text, "stride", keys["strides"], "x") if "strides" in keys else row_major
    box = _sizes(text, "box size", keys["box"], "x") if "box" in keys else ()
    if len(strides) != len(shape) or (box and len(box) != len(shape)):
        raise ValueError(
            f"argument {text!r}: {len(shape)} sizes need as many strides and box sizes"
        )
    if "swizzle" in keys and not box:
        raise ValueError(f"argument {text!r}: swizzle is for tensor maps, which have a box")
    if math.prod(shape) * dtype.itemsize > _MOST_BYTES:
        raise ValueError(f"argument {text!r}: more than {_MOST_BYTES >> 30} GiB")
    fill = keys.get("fill", "random")
    if not fill.startswith("@") and fill not in ("random", "range"):
        _number(fill, dtype)
    swizzle = _sizes(text, "swizzle", keys.get("swizzle", "0"), "x")[0]
    return DrawnArgument(name, dtype, None, shape, strides, fill, box, swizzle)


def _keys(text: str, rest: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if key not in _KEYS or not equals or not rest.startswith(","):
            raise ValueError(
                f"argument {text!r}: {part!r} is none of {', '.join(f'{k}=' for k in _KEYS)}"
            )
        found[key] = value
    return found


def _sizes(text: str, what: str, listed: str, separator: str) -> tuple[int, ...]:
    parts = [part.strip() for part in listed.split(separator)]
    least = 0 if what in ("stride", "swizzle") else 1
    if not all(part.isdecimal() and int(part) >= least for part in parts):
        raise ValueError(
            f"argument {text!r}: wrong {what} in {listed!r}; expected numbers from {least} on"
        )
    return tuple(map(int, parts))


def _number(text: str, dtype: np.dtype) -> np.generic:
    """A number of a dtype; ValueError if it is none, or does not fit."""
    try:
        if dtype.kind not in "iu":
            return np.float64(text).astype(dtype)
        limits, value = np.iinfo(dtype), int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is no {dtype} number") from None
    if not limits.min <= value <= limits.max:
        raise ValueError(f"{text} does not fit {dtype}")
    return dtype.type(value)
