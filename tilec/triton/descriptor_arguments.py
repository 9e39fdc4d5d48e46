"""Descriptors as arguments become pointers, with what the numbers behind them say of the array.

Before:   @k(%a: !tt.tensordesc<tensor<64x64xf16>>, %m: i32, %n: i32, %s: i64, %t: i64)
After:    @k(%a: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %t: i64)
          %d = tt.make_tensor_descriptor %a, [%m, %n], [%s, 1]

Triton hands a descriptor over as itself, its sizes and its strides. Its last stride is 1, its
address and its other strides are multiples of 16 bytes: its class says so (`TensorDescriptor`), and
every launch checks it. What stands outside the array, zeros or NaN, only the descriptor knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilec.hardware.sizes import VECTOR_BYTES
from tilec.records import dataclass
from tilec.runtime.arrays import describe
from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import ELEMENT_BYTES
from tilec.triton.program import POINTER, Function, Op, Type, Value, replace_values

_ELEMENT = re.compile(r"^!tt\.tensordesc<tensor<(?:\d+x)+[su]?(\w+)")


NAN_PADDING = "2"
"""Triton's number for padding with NaN, of `PaddingOption`."""


@dataclass(frozen=True)
class Described:
    """A descriptor among a function's arguments: its number, and those of its sizes and strides."""

    number: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


def described(function: Function) -> list[Described]:
    """The descriptors among a function's arguments, as it is read. CompileError where their numbers
    do not follow them."""
    return [
        _found(function, number)
        for number, argument in enumerate(function.arguments)
        if argument.type.element.startswith("!tt.tensordesc")
    ]


def _found(function: Function, number: int) -> Described:
    argument = function.arguments[number]
    rank = len(argument.type.block or ())
    behind = function.arguments[number + 1 : number + 1 + 2 * rank]
    if len(behind) < 2 * rank or not all(one.type.is_integer for one in behind):
        raise function.error(
            f"argument '{argument.name}' is {argument.type}, without sizes and strides behind it"
        )
    first = number + 1
    return Described(
        number, tuple(range(first, first + rank)), tuple(range(first + rank, first + 2 * rank))
    )


def without_descriptors(function: Function, nan: frozenset[str] = frozenset()) -> Function:
    """The same function of pointers. `function` has one block. `nan`: the descriptors outside of
    whose arrays NaN stands."""
    found = described(function)
    if not found:
        return function
    (body,) = function.blocks
    given = [dict(attributes) for attributes in function.given]
    made: list[Op] = []
    for one in found:
        argument = function.arguments[one.number]
        kind, element = argument.type, element_of_descriptor(argument.type)
        bytes_ = ELEMENT_BYTES[element]
        argument.type = Type(f"{POINTER}{element}>")
        given[one.number]["tt.divisibility"] = str(VECTOR_BYTES)
        for number in one.strides[:-1]:
            given[number]["tt.divisibility"] = str(max(1, VECTOR_BYTES // bytes_))
        numbers = [function.arguments[n] for n in (*one.sizes, *one.strides[:-1])]
        ops = _descriptor(function, argument, numbers, kind)
        replace_values(body, {argument: ops[-1].result})
        ops[-1].operands[0] = argument
        if argument.name in nan:
            ops[-1].attributes["padding"] = NAN_PADDING
        made += ops
    for op in made:
        op.block = body
    body.ops = [*made, *body.ops]
    return replace(function, given=given)


def with_numbers(
    function: Function, descriptors: Sequence[Described], arguments: Sequence[Any]
) -> tuple[Sequence[Any], frozenset[str]]:
    """A launch's arguments with each descriptor as an array and the numbers that follow it, and the
    names of those that are padded with NaN. `function`: as it is read; `descriptors`: its own.

    A descriptor is what has `base`, `shape`, `strides` and `block_shape`, as Triton's, or an array,
    which is all of itself. With the numbers written out by the caller nothing is added.
    """
    added = sum(len(one.sizes) + len(one.strides) for one in descriptors)
    if not added or len(arguments) + added != len(function.arguments):
        return arguments, frozenset()
    places = {one.number for one in descriptors}
    whole: list[Any] = []
    nan = set()
    for value in arguments:
        if len(whole) not in places:
            whole.append(value)
            continue
        formal = function.arguments[len(whole)]
        whole += _numbered(formal, value)
        if getattr(value, "padding", "zero") == "nan":
            nan.add(formal.name)
    return whole, frozenset(nan)


def _numbered(formal: Value, value: Any) -> list[Any]:
    """The array of a descriptor, its sizes and its strides. ArgumentError for one of other tiles
    than the kernel's."""
    tile = formal.type.block or ()
    if hasattr(value, "block_shape"):
        base, block = _tensor(value.base), tuple(value.block_shape)
        sizes, strides = tuple(value.shape), tuple(value.strides)
    else:
        view = describe(value, formal.name)
        base, block, sizes, strides = value, tile, view.shape, view.strides
    if block != tile or len(sizes) != len(tile):
        raise ArgumentError(
            f"argument {formal.name!r}: expected a descriptor of tiles of {tile}, found {block} of "
            f"an array of {len(sizes)} dimensions"
        )
    return [base, *sizes, *strides]


def _tensor(base: Any) -> Any:
    """What Triton reads as another dtype (its `TensorWrapper`) is the tensor behind it."""
    return base.base if hasattr(base, "data_ptr") and hasattr(base, "base") else base


def check_strides(
    function: Function, descriptors: Sequence[Described], numbers: Sequence[Any]
) -> None:
    """ArgumentError for a descriptor whose last stride is not 1; `numbers`: a launch's arguments,
    the function's as it is read."""
    for one in descriptors:
        if one.strides and numbers[one.strides[-1]] != 1:
            raise ArgumentError(
                f"argument {function.arguments[one.number].name!r}: expected a last stride of 1, "
                f"found {numbers[one.strides[-1]]}"
            )


def _descriptor(
    function: Function, argument: Value, numbers: Sequence[Value], kind: Type
) -> list[Op]:
    """The constant 1 that is the last stride, and the descriptor."""
    one = Op("arith.constant", [], function.location, text="1 : i64")
    one.results = [Value("one", Type("i64"), one, 0)]
    operands = [argument, *numbers, one.result]
    made = Op("tt.make_tensor_descriptor", operands, function.location)
    made.results = [Value(argument.name, kind, made, 0)]
    return [one, made]


def element_of_descriptor(kind: Type) -> str:
    """The elements that a descriptor moves, without their sign."""
    match = _ELEMENT.match(kind.element)
    assert match is not None
    return match[1]
