"""setp, set, selp, slct (PTX ISA 9.7.6) and the comparisons they share."""

from __future__ import annotations

from tilec.runtime.emulator.numbers import rounding
from tilec.runtime.emulator.numbers.scalar_types import TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import Instruction, Pair
from tilec.runtime.emulator.writing.writer import Writer

PRED, U32 = TYPES["pred"], TYPES["u32"]
_ORDERED = {
    "eq": "({0} == {1})",
    "ne": "({0} != {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_NAN = "(np.isnan({0}) | np.isnan({1}))"
_COMBINE = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_UFUNC = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip


def _comparison(writer: Writer, name: str, scalar: ScalarType, x: str, y: str) -> str:
    """A boolean expression for one PTX comparison."""
    floating_type = scalar.kind == "f"
    if not floating_type:
        name = _UNSIGNED_NAMES.get(name, name)
        if name not in _ORDERED or (scalar.kind == "b" and name not in ("eq", "ne")):
            raise writer.unsupported(f"comparison .{name}.{scalar.name}")
        return _ORDERED[name].format(x, y)
    if name == "num":
        return f"(~{_NAN.format(x, y)})"
    if name == "nan":
        return _NAN.format(x, y)
    if name == "ne":  # ordered: false when either is NaN, unlike NumPy's !=
        return f"(({x} < {y}) | ({x} > {y}))"
    if name in _ORDERED:
        return _ORDERED[name].format(x, y)
    if name.endswith("u") and name[:2] in _ORDERED:
        if name == "neu":
            return f"({x} != {y})"
        return f"({_ORDERED[name[:2]].format(x, y)} | {_NAN.format(x, y)})"
    raise writer.unsupported(f"comparison .{name}")


class _Comparison:
    """Modifiers of setp and set: comparison, combining operation, .ftz, types."""

    def __init__(self, instruction: Instruction, writer: Writer, types: int) -> None:
        names = list(instruction.modifiers)
        self.types, names = names[len(names) - types :], names[: len(names) - types]
        self.name = names.pop(0) if names else ""
        self.combine = names.pop(0) if names and names[0] in _COMBINE else None
        self.flush = names == ["ftz"]
        if names and not self.flush:
            raise writer.unsupported(f"modifiers {'.'.join(names)}")

    def read(self, writer: Writer, instruction: Instruction, type_name: str) -> tuple[str, str]:
        if type_name not in TYPES:
            raise writer.unsupported(f"type .{type_name}")
        values = []
        for operand in instruction.operands[1:3]:
            value = writer.read(operand, TYPES[type_name])
            if self.flush:
                value = f"{writer.function(rounding.flush)}({value})"
            values.append(value)
        return values[0], values[1]


def emit_setp(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers[-1] in ("f16x2", "bf16x2"):
        return _emit_packed_setp(instruction, writer)
    form = _Comparison(instruction, writer, 1)
    x, y = form.read(writer, instruction, form.types[0])
    scalar = TYPES[form.types[0]]
    destination = instruction.operands[0]
    plain = form.combine is None and not isinstance(destination, Pair)
    name = _UNSIGNED_NAMES.get(form.name, form.name) if scalar.kind != "f" else form.name
    result = _comparison(writer, form.name, scalar, x, y)
    if plain and name in _UFUNC and not (scalar.kind == "f" and name == "ne"):
        return writer.apply(_UFUNC[name], destination, PRED, x, y)
    other = writer.read(instruction.operands[3], PRED) if form.combine else ""
    if not isinstance(destination, Pair):
        value = f"np.{_COMBINE[form.combine]}({result}, {other})" if form.combine else result
        return writer.assign(destination, PRED, value)
    name = writer.fresh()
    writer.line(f"{name} = {result}")
    for target, value in ((destination.first, name), (destination.second, f"~{name}")):
        if form.combine:
            value = f"np.{_COMBINE[form.combine]}({value}, {other})"
        writer.assign(target, PRED, value)
    return None


def _emit_packed_setp(instruction: Instruction, writer: Writer) -> None:
    """setp.f16x2: the pair of predicates holds the results for the low and the high half."""
    form = _Comparison(instruction, writer, 1)
    scalar = TYPES[form.types[0][:-2]]
    destination = instruction.operands[0]
    if not isinstance(destination, Pair) or form.combine:
        raise writer.unsupported("packed setp form")
    function, dtype = writer.function(rounding.halves), writer.constant(scalar.dtype)
    names = []
    for operand in instruction.operands[1:3]:
        name = writer.fresh()
        writer.line(f"{name} = {function}({writer.read(operand, U32)}, {dtype})")
        if form.flush:
            writer.line(f"{name} = {writer.function(rounding.flush)}({name})")
        names.append(name)
    result = writer.fresh()
    writer.line(f"{result} = {_comparison(writer, form.name, scalar, *names)}")
    writer.assign(destination.first, PRED, f"{result}[..., 0]")
    writer.assign(destination.second, PRED, f"{result}[..., 1]")


def emit_set(instruction: Instruction, writer: Writer) -> None:
    """set: the result is 1.0 for float destinations, all ones for integer ones."""
    form = _Comparison(instruction, writer, 2)
    to, source = form.types
    if to not in ("u32", "s32", "f32") or source not in TYPES:
        raise writer.unsupported(f"set.{to}.{source}")
    x, y = form.read(writer, instruction, source)
    result = _comparison(writer, form.name, TYPES[source], x, y)
    if form.combine:
        other = writer.read(instruction.operands[3], PRED)
        result = f"np.{_COMBINE[form.combine]}({result}, {other})"
    scalar = TYPES[to]
    if to == "f32":
        value = f"np.where({result}, np.float32(1), np.float32(0))"
    else:
        value = f"(-({result}).astype(np.int32)).view(np.{scalar.dtype.name})"
    writer.assign(instruction.operands[0], scalar, value)


def emit_selp(instruction: Instruction, writer: Writer) -> None:
    scalar = TYPES.get(instruction.modifiers[-1])
    if len(instruction.modifiers) != 1 or scalar is None or scalar.kind in "px":
        raise writer.unsupported("modifiers")
    destination, a, b, predicate = instruction.operands
    values = f"{writer.read(a, scalar)}, {writer.read(b, scalar)}"
    writer.assign(destination, scalar, f"np.where({writer.read(predicate, PRED)}, {values})")


def emit_slct(instruction: Instruction, writer: Writer) -> None:
    """slct: a where c >= 0, else b; -0 counts as 0, NaN as negative."""
    *flags, to, source = instruction.modifiers
    if flags not in ([], ["ftz"]) or source not in ("s32", "f32") or to not in TYPES:
        raise writer.unsupported("modifiers")
    scalar = TYPES[to]
    destination, a, b, c = instruction.operands
    chooser = writer.read(c, TYPES[source])
    if flags:
        chooser = f"{writer.function(rounding.flush)}({chooser})"
    values = f"{writer.read(a, scalar)}, {writer.read(b, scalar)}"
    writer.assign(destination, scalar, f"np.where({chooser} >= 0, {values})")


RULES = {"setp": emit_setp, "set": emit_set, "selp": emit_selp, "slct": emit_slct}
