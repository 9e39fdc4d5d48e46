"""Demands in IR: the rows of `tilec/terms/demands.py` as attributes of kernels, parameters and loops.

tile.num_warps = 8 : i32                  a number
tile.persistent = true                    True or False
tile.consumers = "pingpong"               a word
tile.cluster = array<i32: 1, 2>           numbers
tile.order = ["hilbert", 8 : i32]         values of several kinds

A demand that names arrays is true of each of these parameters. A wrong value is found by
`passes/checks/levels.py` and `verify_kernels.py`: all others read what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

from tilec.terms.demands import KERNEL_DEMANDS, LOOP_DEMANDS, OF_ARRAYS, Demand

OF_FUNCTIONS: Mapping[str, Demand] = {
    row.attribute: row for row in KERNEL_DEMANDS.values() if row not in OF_ARRAYS
}
OF_LOOPS: Mapping[str, Demand] = {row.attribute: row for row in LOOP_DEMANDS.values()}
OF_PARAMETERS: Mapping[str, Demand] = {row.attribute: row for row in OF_ARRAYS}
"""Rows by the name of their attribute, which is one of the kernel's function, of an `scf.for`, of a
parameter."""


def attribute_of(value: Any) -> ir.Attribute:
    """Writes a demand's value as IR has it: a bool, an int (i32), a string, or a tuple of these."""
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if all(type(part) is int for part in value):
        return ir.DenseI32ArrayAttr.get(list(value))
    return ir.ArrayAttr.get([attribute_of(part) for part in value])


def value_of(attribute: ir.Attribute) -> Any:
    """The value of an attribute; one that no demand has, as it is."""
    if isinstance(attribute, (ir.BoolAttr, ir.IntegerAttr, ir.StringAttr)):
        return attribute.value
    if isinstance(attribute, ir.DenseI32ArrayAttr):
        return tuple(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(map(value_of, attribute))
    return attribute


def demanded(op: ir.Operation, row: Demand) -> Any:
    """The value that is demanded of a kernel's function or of a loop; the row's default where
    nothing is."""
    written = op.attributes.get(row.attribute)
    return row.default if written is None else value_of(written)


def is_demanded(op: ir.Operation, row: Demand) -> bool:
    """Whether a demand is made of a loop, of a kernel, or of a parameter of it."""
    parameters = op.attributes.get("arg_attrs", ())
    return any(row.attribute in given for given in (op.attributes, *parameters))


def wrong_demand(row: Demand, written: ir.Attribute) -> str | None:
    """Says what is wrong with the attribute of a demand of a kernel's function or a loop; None if
    nothing is."""
    if row.allows(value_of(written)):
        return None
    return f"{row.attribute} must be {row.takes}, found {written}"
