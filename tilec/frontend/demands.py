"""What a kernel's author demands of the whole kernel, as attributes of its function.

Each demand is checked for its form here; whether it can be met, passes say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir import ir

from tilec.diagnostics import CompileError, Location
from tilec.dialects.gpu_tile.schedule import ORDERS
from tilec.frontend.values import describe

Attributes = dict[str, ir.Attribute]


def demand_attributes(demands: Mapping[str, Any], location: Location) -> Attributes:
    """The attributes for demands by name, of which None is none. CompileError for a wrong one."""
    found: Attributes = {}
    for name, demanded in demands.items():
        if demanded is not None:
            found |= _ATTRIBUTES[name](demanded, location)
    return found


def _i32(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _num_warps(demanded: Any, location: Location) -> Attributes:
    if type(demanded) is not int or demanded not in range(1, 33):
        raise CompileError(
            f"num_warps must be a number from 1 to 32, found {describe(demanded)}", location
        )
    return {"tile.num_warps": _i32(demanded)}


def _persistent(demanded: Any, location: Location) -> Attributes:
    """True, False, or the name of the scheduler that hands on programs while CTAs run."""
    if type(demanded) is bool:
        return {"tile.persistent": ir.BoolAttr.get(demanded)}
    if demanded == "dynamic":
        return {"tile.persistent": ir.StringAttr.get(demanded)}
    raise CompileError(
        f'persistent must be True, False or "dynamic", found {describe(demanded)}', location
    )


def _cluster(demanded: Any, location: Location) -> Attributes:
    """Programs of a cluster along the axes of the grid; a number is those along the first."""
    sizes = demanded if isinstance(demanded, (tuple, list)) else (demanded,)
    if not 1 <= len(sizes) <= 3 or any(type(n) is not int or n not in range(1, 17) for n in sizes):
        raise CompileError(
            "cluster must be a number of programs, or one for each axis of the grid, found "
            f"{describe(demanded)}",
            location,
        )
    return {"tile.cluster": ir.DenseI32ArrayAttr.get(list(sizes))}


def _consumers(demanded: Any, location: Location) -> Attributes:
    """How the warps that compute share a CTA's programs, by name."""
    if demanded in ("cooperative", "pingpong"):
        return {"tile.consumers": ir.StringAttr.get(demanded)}
    raise CompileError(
        f'consumers must be "cooperative" or "pingpong", found {describe(demanded)}', location
    )


def _order(demanded: Any, location: Location) -> Attributes:
    """The name of an order, and the rows of its groups or the side of its squares."""
    name, group = demanded if isinstance(demanded, tuple) and len(demanded) == 2 else (demanded, 1)
    is_number = type(group) is int and group > 0
    if name not in ORDERS or not is_number or (name == "hilbert" and group & (group - 1)):
        raise CompileError(
            'order must be "grouped", "rows" or "hilbert", or that and the rows of a group or the '
            f"side of a square, a power of two, found {describe(demanded)}",
            location,
        )
    found: Attributes = {"tile.order": ir.StringAttr.get(name)}
    return found | {"tile.group": _i32(group)} if isinstance(demanded, tuple) else found


_ATTRIBUTES: Mapping[str, Callable[[Any, Location], Attributes]] = {
    "num_warps": _num_warps,
    "persistent": _persistent,
    "cluster": _cluster,
    "consumers": _consumers,
    "order": _order,
}
