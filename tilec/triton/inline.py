"""Puts functions out of line where they are called.

Before:   %y = tt.call @double(%x)          tt.func private @double(%a) { ... tt.return %b }
After:    ... %b                            (%x in the place of %a; whoever reads %y reads %b)

A function is copied for each call. Does not handle functions that call themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tilec.triton.lift import lift
from tilec.triton.program import Block, Function, Op, Value, replace_values

_CALLED = re.compile(r'^@("[^"]*"|[\w$.-]+)')


def inline_calls(function: Function) -> None:
    """Replaces every call in a function of one block. CompileError for one that cannot be."""
    for block in function.blocks:
        found: dict[Value, Value] = {}
        _block(block, function.module, (function.name,), found)
        replace_values(block, found)


def _block(
    block: Block,
    module: Mapping[str, Function],
    calling: tuple[str, ...],
    found: dict[Value, Value],
) -> None:
    ops: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            _block(region, module, calling, found)
        ops += _called(op, module, calling, found) if op.name == "tt.call" else [op]
    block.ops = ops
    for op in ops:
        op.block = block


def _called(
    call: Op,
    module: Mapping[str, Function],
    calling: tuple[str, ...],
    found: dict[Value, Value],
) -> list[Op]:
    """A function's ops in the place of a call; what its results are goes into `found`."""
    match = _CALLED.match(call.text.strip())
    name = match[1].strip('"') if match else ""
    if name not in module:
        raise call.error(f"there is no function '{name}'")
    if name in calling:
        raise call.error(f"'{name}' calls itself")
    (body,) = lift(copied(module[name])).blocks
    _block(body, module, (*calling, name), found)
    found.update(zip(body.arguments, call.operands, strict=True))
    last = body.terminator
    found.update(zip(call.results, last.operands, strict=True))
    return body.ops[:-1]


def copied(function: Function) -> Function:
    """A copy of a function that shares no op, block or value with it."""
    known: dict[Value, Value] = {}
    first, *following = function.blocks
    blocks = _copied_blocks([first, *following], None, known)
    for op in (op for block in blocks for op in _all_ops(block)):
        op.operands = [known[value] for value in op.operands]
        op.successors = [(to, [known[v] for v in values]) for to, values in op.successors]
    return replace(function, blocks=blocks, arguments=blocks[0].arguments)


def _copied_blocks(
    blocks: list[Block], parent: Op | None, known: dict[Value, Value]
) -> list[Block]:
    return [_copied_block(block, parent, known) for block in blocks]


def _copied_block(block: Block, parent: Op | None, known: dict[Value, Value]) -> Block:
    made = Block(block.label, parent)
    made.arguments = [Value(v.name, v.type, made, v.number) for v in block.arguments]
    known.update(zip(block.arguments, made.arguments, strict=True))
    made.ops = [_copied_op(op, made, known) for op in block.ops]
    made.following = _copied_blocks(block.following, parent, known)
    return made


def _copied_op(op: Op, block: Block, known: dict[Value, Value]) -> Op:
    made = replace(op, block=block, results=[], regions=[])
    made.results = [Value(v.name, v.type, made, v.number) for v in op.results]
    known.update(zip(op.results, made.results, strict=True))
    made.regions = _copied_blocks(op.regions, made, known)
    return made


def _all_ops(block: Block) -> list[Op]:
    inside = [one for op in block.ops for region in op.regions for one in _all_ops(region)]
    more = [one for following in block.following for one in _all_ops(following)]
    return [*block.ops, *inside, *more]
