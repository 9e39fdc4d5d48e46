"""Writes `tt.map_elementwise` out: what is computed of elements is computed of tiles.

Before:   %r = "tt.map_elementwise"(%x, %y) <{pack = 1}> ({ ^bb0(%a: i32, %b: i32):
            %c = arith.cmpi slt, %a, %b ; %v = scf.if %c -> (i32) {...} else {...} ; ...return %v })
After:    %c = arith.cmpi slt, %x, %y ; (both sides) ; %v = arith.select %c, ..., ...

Both sides of a branch are computed, and what they give is selected: nothing in such a region has an
effect. With `pack = n`, n neighbours along the last axis are the region's arguments side by side:
tiles are split into as many, and joined again. Does not handle loops in a region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilec.triton.program import Block, Function, Op, Type, Value, replace_values

_COMPUTING = ("arith.", "math.", "tt.bitcast", "tt.fp_to_fp", "tt.clampf", "tt.mulhiui",
              "tt.precise_", "tt.extern_elementwise", "tt.elementwise_inline_asm")  # fmt: skip
_CONSTANT = ("arith.constant", "ub.poison")


def expand_maps(function: Function) -> None:
    """Replaces every map_elementwise of a function of one block. CompileError for one that has
    more in it than computes."""
    for block in function.blocks:
        found: dict[Value, Value] = {}
        _block(block, found)
        replace_values(block, found)


def _block(block: Block, found: dict[Value, Value]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        if op.name == "tt.map_elementwise":
            ops += _Map(op, found).written_out()
            continue
        for region in op.regions:
            _block(region, found)
        ops.append(op)
    block.ops = ops
    for op in ops:
        op.block = block


class _Map:
    """One map: the `ops` that it becomes, and the tile that each of its scalars is."""

    def __init__(self, op: Op, found: dict[Value, Value]) -> None:
        self.op, self.found = op, found
        self.ops: list[Op] = []
        self.tiles: dict[Value, Value] = {}

    def written_out(self) -> list[Op]:
        """Its ops; what its results are goes into `found`."""
        op, body = self.op, self.op.regions[0]
        pack = op.number("pack")
        parts = [part for operand in op.operands for part in self._split(operand, pack)]
        self.shape = parts[0].type.shape or ()
        self.tiles.update(zip(body.arguments, parts, strict=True))
        given = self._body(body)
        for number, result in enumerate(op.results):
            self.found[result] = self._joined(given[number * pack : (number + 1) * pack])
        return self.ops

    def _made(self, name: str, operands: list[Value], kinds: Sequence[Type], like: Op) -> Op:
        made = replace(like, name=name, operands=operands, results=[], regions=[])
        made.results = [Value(f"map{n}", kind, made, n) for n, kind in enumerate(kinds)]
        self.ops.append(made)
        return made

    def _split(self, tile: Value, pack: int) -> list[Value]:
        """Every pack-th element of a tile, from each of the first ones on."""
        if pack == 1:
            return [tile]
        *sizes, last = tile.type.shape or (0,)
        wide = Type(tile.type.element, (*sizes, last // 2, 2))
        half = Type(tile.type.element, (*sizes, last // 2))
        pairs = self._made("tt.reshape", [tile], [wide], self.op).result
        even, odd = self._made("tt.split", [pairs], [half, half], self.op).results
        rows = [self._split(one, pack // 2) for one in (even, odd)]
        return [part for both in zip(*rows, strict=True) for part in both]

    def _joined(self, parts: list[Value]) -> Value:
        if len(parts) == 1:
            return parts[0]
        even, odd = self._joined(parts[::2]), self._joined(parts[1::2])
        kind = even.type
        *sizes, last = kind.shape or (0,)
        pairs = Type(kind.element, (*sizes, last, 2))
        wide = self._made("tt.join", [even, odd], [pairs], self.op).result
        whole = Type(kind.element, (*sizes, 2 * last))
        return self._made("tt.reshape", [wide], [whole], self.op).result

    def _body(self, block: Block) -> list[Value]:
        """A block's ops on tiles; what its end passes on."""
        for op in block.ops[:-1]:
            if op.name == "scf.if":
                self._branch(op)
            elif op.name in _CONSTANT:
                self.ops.append(op)
            elif op.name.startswith(_COMPUTING):
                operands = [self._tile(value) for value in op.operands]
                kinds = [Type(value.type.element, self.shape) for value in op.results]
                made = self._made(op.name, operands, kinds, op)
                self.tiles.update(zip(op.results, made.results, strict=True))
            else:
                raise op.error("inside map_elementwise")
        return [self._tile(value) for value in block.ops[-1].operands]

    def _branch(self, op: Op) -> None:
        mask = self._tile(op.operands[0])
        sides = [self._body(region) for region in op.regions]
        for result, one, two in zip(op.results, *sides, strict=True):
            chosen = self._made("arith.select", [mask, one, two], [one.type], op)
            self.tiles[result] = chosen.result

    def _tile(self, value: Value) -> Value:
        """The tile that a scalar of the region is; a constant, or one from outside, is splat."""
        if value not in self.tiles:
            kind = Type(value.type.element, self.shape)
            self.tiles[value] = self._made("tt.splat", [value], [kind], self.op).result
        return self.tiles[value]
