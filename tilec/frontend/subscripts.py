"""`x[...]`: parts of tuples and shapes, new dimensions of tiles."""

from __future__ import annotations

import ast
from typing import Any

from tilec.frontend.arrays import array_size, as_tuple
from tilec.frontend.conversion import place
from tilec.frontend.frame import Frame
from tilec.frontend.habits import AT_A_TIME, LISTS, UNROLL
from tilec.frontend.tl_lists import array_at
from tilec.frontend.values import (
    Array,
    ArrayList,
    ArrayShape,
    Mistake,
    Scalar,
    Tile,
    check_shape,
    describe,
)


def evaluate_subscript(frame: Frame, node: ast.Subscript) -> Any:
    """Evaluates `shape[0]`, `tuple[1:]`, `tile[:, None]`."""
    owner = frame.evaluate(node.value)
    if isinstance(owner, (Tile, Scalar)):
        return _index_tile(frame, owner, node.slice)
    if isinstance(owner, ArrayList):
        if isinstance(node.slice, ast.Slice):
            raise Mistake("a list of arrays has no parts", AT_A_TIME)
        return array_at(frame, owner, frame.evaluate(node.slice))
    if isinstance(owner, Array):
        raise Mistake(
            "an array cannot be indexed",
            "help: read with tl.load(array, offsets, shape) or tl.gather(array, indices)",
        )
    if isinstance(node.slice, ast.Slice):
        return _slice_tuple(frame, owner, node.slice)
    position = frame.evaluate(node.slice)
    if isinstance(position, bool) or not isinstance(position, int):
        notes = (UNROLL, LISTS) if isinstance(position, (Tile, Scalar)) else ()
        raise Mistake(f"an index must be a constant integer, found {describe(position)}", *notes)
    if isinstance(owner, ArrayShape):
        return array_size(frame.builder, owner.array, position)
    if not isinstance(owner, (tuple, str)):
        raise Mistake(f"{describe(owner)} cannot be indexed")
    if not -len(owner) <= position < len(owner):
        raise Mistake(f"index {position} is out of range for {describe(owner)}")
    return owner[position]


def _slice_tuple(frame: Frame, owner: Any, node: ast.Slice) -> Any:
    parts = owner if isinstance(owner, str) else as_tuple(frame.builder, owner)
    if parts is None:
        raise Mistake(f"{describe(owner)} cannot be sliced")
    bounds = []
    for bound in (node.lower, node.upper, node.step):
        value = None if bound is None else frame.evaluate(bound)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise Mistake(f"a slice bound must be a constant integer, found {describe(value)}")
        bounds.append(value)
    if bounds[2] == 0:
        raise Mistake("the step of a slice must not be 0")
    return parts[slice(*bounds)]


def _index_tile(frame: Frame, tile: Tile | Scalar, node: ast.expr) -> Any:
    """Indexes a tile by `:`, `...` and `None` (a new dimension of size 1), and by nothing else."""
    shape = tile.shape if isinstance(tile, Tile) else ()
    items = list(node.elts) if isinstance(node, ast.Tuple) else [node]
    kinds = [_index_kind(frame, item) for item in items]
    rest = len(shape) - kinds.count(":")
    if kinds.count("...") > 1 or rest < 0:
        raise Mistake(f"too many indices for {describe(tile)}")
    if "..." not in kinds:
        kinds += ["..."]
    expanded: list[str] = []
    for kind in kinds:
        expanded += [":"] * rest if kind == "..." else [kind]
    sizes = iter(shape)
    result = tuple(next(sizes) if kind == ":" else 1 for kind in expanded)
    if len(result) == len(shape):
        return tile
    dims = tuple(i for i, kind in enumerate(expanded) if kind == ":")
    check_shape(result, argument=None)
    if isinstance(tile, Scalar):
        kind = frame.builder.type(tile.dtype, result)
        return Tile(frame.builder.value("tensor.splat", kind, tile.value), tile.dtype, result)
    return place(frame.builder, tile, result, dims)


def _index_kind(frame: Frame, node: ast.expr) -> str:
    if isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step):
        return ":"
    if isinstance(node, ast.Constant) and node.value is None:
        return "None"
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        return "..."
    raise frame.error(
        node,
        "a tile is indexed with ':', '...' and None only",
        "help: tl.take gathers elements of a tile, tl.split cuts it, tl.load reads an array",
    )
