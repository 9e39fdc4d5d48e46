"""Which tiles behind a loop that CTAs share (split-sums) can be cut into a stripe for each.

Each value of an elementwise op needs its own elements of the operands alone, each row of a
reduction along columns its own row, and a load can begin at any row. So what is stored of a sum is
followed back: to sums, which come in stripes, and to loads, constants and coordinates. Of what is
scattered the indices and the mask come in stripes, too; stores may stand in branches. What a stripe
needs whole, as the greatest element of the tile, where a load begins or which branch is taken, must
not follow from the sums: of those no CTA has all, before the loop's parts are added up or behind
that. Nor must it come from an array that is written: each CTA of an array in place reads what it
writes, and nobody knows when the others write theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.effects import SIDE_EFFECTS, whole_of
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.op import class_of
from tilec.dialects.traits import Sources
from tilec.dialects.types import is_tile, shape
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.rewriting.refusals import Refusal
from tilec.passes.rewriting.walk import all_ops, find_ops, is_of
from tilec.records import dataclass

Writer = tile.StoreOp | tile.ScatterOp


@dataclass
class Cut:
    """Stripes of `sums` along `axis`, of `size` elements before, and of what follows from them,
    `followers`.

    `is_cut(value, dim)`: whether a value can be had in such stripes along `dim`.
    """

    sums: Sequence[ir.Value]
    axis: int
    size: int
    followers: set[ir.Value]
    _found: dict[tuple[ir.Value, int], bool] = field(default_factory=dict)

    def is_cut(self, value: ir.Value, dim: int) -> bool:
        """Whether each CTA can have its stripe of a value along `dim`."""
        if value in self.sums:
            return dim == self.axis
        key = value, dim
        if key not in self._found:
            needed = operands_in_stripes(value, dim) if shape(value)[dim] == self.size else None
            self._found[key] = needed is not None and self._are_cut(defining_op(value), needed)
        return self._found[key]

    def _are_cut(self, op: ir.Operation | None, needed: list[tuple[ir.Value, int]]) -> bool:
        """Whether what an op needs in stripes comes in them, and what it needs whole is no
        follower."""
        stripes = [source for source, _ in needed]
        whole = [] if op is None else [one for one in op.operands if one not in stripes]
        return self.followers.isdisjoint(whole) and all(self.is_cut(*each) for each in needed)

    def dim_of(self, store: Writer) -> int | None:
        """The dimension of what is stored along which it can be cut, None if there is none."""
        if isinstance(store, tile.StoreOp) and not self.followers.isdisjoint(store.offsets):
            return None
        dims = range(len(shape(store.value)))
        tiles = tiles_of(store)
        return next((dim for dim in dims if all(self.is_cut(x, dim) for x in tiles)), None)


def tiles_of(store: Writer) -> list[ir.Value]:
    """The tiles that a store needs, which all lie alike."""
    if isinstance(store, tile.StoreOp):
        return [store.value]
    return [store.value, store.mask, *store.indices]


def stores_of(rest: Sequence[ir.Operation]) -> list[Writer]:
    """The stores among ops and in their branches."""
    return [one.opview for op in rest for one in find_ops(op, tile.StoreOp, tile.ScatterOp)]


def operands_in_stripes(value: ir.Value, dim: int) -> Sources | None:
    """The operands, each with the dimension, whose stripes an op needs for a stripe of its result
    along `dim`; None where these do not suffice."""
    op = defining_op(value)
    if op is None:
        return None
    if class_of(op) is not None:
        return op.opview.stripes(dim)
    if op.name == "tensor.splat":
        return []
    if not is_elementwise(op) or len(op.regions):
        return None
    if op.name == "arith.constant" and not op.attributes["value"].is_splat:
        return None
    return [(operand, dim) for operand in op.operands if is_tile(operand)]


def find_cut(sums: Sequence[ir.Value], rest: Sequence[ir.Operation], parts: int) -> Cut:
    """The stripes in which CTAs have `sums`, so that they do the `rest` of the kernel each for its
    own. Along which axis: rows stay whole in memory, if they can."""
    effects = [one for op in rest for one in find_ops(op, *SIDE_EFFECTS)]
    if effects:
        raise Refusal(f"stripes of the sum have no '{effects[0].name}' of their own")
    stores = stores_of(rest)
    if not all(_is_in_branches(store.operation, rest) for store in stores):
        raise Refusal("what is behind the loop stores in another loop")
    follow = following(followers_of(sums, rest), stores)
    if not follow:
        raise Refusal("nothing that is stored follows from the sum")
    if not all(_is_read_alike(store, rest, store in follow) for store in stores):
        raise Refusal("what is behind the loop reads elsewhere in an array that it writes")
    found = [_cut_along(axis, sums, rest, stores, parts) for axis in range(len(shape(sums[0])))]
    cuts = [(torn, cut) for torn, cut in filter(None, found)]
    if not cuts:
        raise Refusal(f"what is behind the loop does not come in {parts} stripes of the sum")
    return min(cuts, key=lambda each: each[0])[1]


def _cut_along(
    axis: int,
    sums: Sequence[ir.Value],
    rest: Sequence[ir.Operation],
    stores: Sequence[Writer],
    parts: int,
) -> tuple[int, Cut] | None:
    """The stripes along an axis, behind how many stores whose rows they tear."""
    sizes = {shape(value)[axis] for value in sums if axis < len(shape(value))}
    if len(sizes) != 1 or any(axis >= len(shape(value)) for value in sums):
        return None
    (size,) = sizes
    if size % parts or size < parts:
        return None
    followers = followers_of(sums, rest)
    if any(_is_decided_by(followers, store.operation, rest) for store in stores):
        return None
    cut, torn = Cut(sums, axis, size, followers), 0
    for store in following(followers, stores):
        dim = cut.dim_of(store)
        if dim is None or not all(
            _is_read_in_stripes(read.result, dim) for read in _readers(store, rest)
        ):
            return None
        torn += _tears_rows(store, dim)
    return torn, cut


def _tears_rows(store: Writer, dim: int) -> bool:
    """Whether stripes along a dimension of what is stored are parts of rows of the array."""
    if isinstance(store, tile.StoreOp):
        return dim == contiguous_dim(store.dst, store.dims)
    row = contiguous_dim(store.dst, range(len(store.indices)))
    return row is not None and _varies(store.indices[row], dim)


def _varies(value: ir.Value, dim: int) -> bool:
    """Whether coordinates differ along a dimension; so they do where that is not known."""
    op, needed = defining_op(value), operands_in_stripes(value, dim)
    if op is None or needed is None or is_of(op, tile.LoadOp, tile.GatherOp):
        return True
    if is_of(op, tile.IotaOp):
        return op.opview.axis == dim
    return any(_varies(*each) for each in needed)


def followers_of(sums: Sequence[ir.Value], rest: Sequence[ir.Operation]) -> set[ir.Value]:
    """The sums, and what the ops behind the loop make of them."""
    values = set(sums)
    for op in (inner for one in rest for inner in all_ops(one)):
        if any(operand in values for inner in all_ops(op) for operand in inner.operands):
            values.update(op.results)
    return values


def following(followers: set[ir.Value], stores: Sequence[Writer]) -> list[Writer]:
    """Those of the stores whose tile, or place, follows from the sums."""
    return [store for store in stores if not followers.isdisjoint(store.operation.operands)]


def _is_in_branches(op: ir.Operation, rest: Sequence[ir.Operation]) -> bool:
    """Whether an op is one of the rest of a kernel, or in branches of it alone."""
    while op not in rest:
        op = op.parent
        if op.name != "scf.if":
            return False
    return True


def _is_decided_by(values: set[ir.Value], op: ir.Operation, rest: Sequence[ir.Operation]) -> bool:
    """Whether one of these values decides about a branch around an op."""
    while op not in rest:
        op = op.parent
        if not values.isdisjoint(op.operands):
            return True
    return False


def _is_read_alike(store: Writer, rest: Sequence[ir.Operation], is_cut: bool) -> bool:
    """Whether what reads the array behind the loop reads just what the store overwrites, by the CTA
    that does: one alone does what does not come in stripes, `is_cut`."""
    found = [read.rectangle for read in _readers(store, rest)]
    return all(is_cut and one == store.rectangle is not None for one in found)


def _readers(store: Writer, rest: Sequence[ir.Operation]) -> list[tile.LoadOp | tile.GatherOp]:
    """What reads the array of a store behind the loop."""
    whole = whole_of(store.dst)
    every = [one.opview for op in rest for one in find_ops(op, tile.LoadOp, tile.GatherOp)]
    return [read for read in every if whole_of(read.array) == whole]


def _is_read_in_stripes(value: ir.Value, dim: int) -> bool:
    """Whether nobody needs more than a stripe of a value along `dim`: the others' are overwritten,
    nobody knows when."""
    users = [use.owner for use in value.uses]
    return all(is_of(op, tile.StoreOp, tile.ScatterOp) or _goes_on(value, dim, op) for op in users)


def _goes_on(value: ir.Value, dim: int, op: ir.Operation) -> bool:
    """Whether an op makes stripes of such stripes, which are all that anybody needs."""
    found = []
    for result in filter(is_tile, op.results):
        dims = range(len(shape(result)))
        own = [one for one in dims if (value, dim) in (operands_in_stripes(result, one) or ())]
        found.append(any(_is_read_in_stripes(result, one) for one in own))
    return bool(found) and len(found) == len(op.results) and all(found)
