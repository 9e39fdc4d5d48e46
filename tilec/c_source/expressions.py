"""Grid rules and limits as C: calls of the functions of support.c, which notice what 64 bits do not
hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilec.executable.grid import Printer
from tilec.executable.kernel import Parameter
from tilec.terms.dtypes import BY_MLIR

_FUNCTIONS = {"+": "plus", "-": "minus", "*": "times", "//": "over", "%": "modulo"}
_EXTREMES = {"min": "least", "max": "most"}


def expression_in_c(text: str, parameters: Sequence[Parameter]) -> str:
    """An expression over sizes `arrays[n]->shape[axis]` and scalars `numbers->name`, as an int64_t;
    `wrong` is where it notes what went wrong. ValueError names text and column."""
    return _CPrinter(text, parameters).print()


class _CPrinter(Printer):
    def __init__(self, text: str, parameters: Sequence[Parameter]) -> None:
        super().__init__(text, parameters)
        self._all = parameters
        arrays = [number for number, p in enumerate(parameters) if p.kind == "array"]
        self._places = {number: place for place, number in enumerate(arrays)}

    def number(self, value: int) -> str:
        return f"INT64_C({value})"

    def value_of(self, index: int) -> str:
        field = f"numbers->n{index}"
        dtype = BY_MLIR[self._all[index].dtype]
        return f"from_unsigned({field}, &wrong)" if dtype.is_unsigned else f"(int64_t){field}"

    def size_of(self, index: int, axis: int) -> str:
        return f"arrays[{self._places[index]}]->shape[{axis}]"

    def negated(self, operand: str) -> str:
        return f"minus(0, {operand}, &wrong)"

    def combined(self, left: str, operator: str, right: str) -> str:
        return f"{_FUNCTIONS[operator]}({left}, {right}, &wrong)"

    def rounded_up(self, left: str, right: str) -> str:
        return f"cdiv({left}, {right}, &wrong)"

    def extreme(self, name: str, arguments: Sequence[str]) -> str:
        return reduce(lambda left, right: f"{_EXTREMES[name]}({left}, {right})", arguments)
