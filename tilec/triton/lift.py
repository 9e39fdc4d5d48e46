"""Gives a kernel structured control flow: early returns become branches of `scf.if`.

Before:   cf.cond_br %c, ^bb1, ^bb2       ^bb1: tt.return       ^bb2: ... tt.return
After:    scf.if %c { } else { ... }

Each block behind a branch moves into it. A block that only returns may be reached from anywhere;
does not handle any other that is reached twice, nor loops made of branches, nor values passed on.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.triton.program import Block, Function, Op


def lift(function: Function) -> Function:
    """The same function with one block. CompileError for what is not handled."""
    if not function.blocks:
        raise function.error("it has no body")
    blocks = {block.label: block for block in function.blocks}
    entry = _Lifting(function, blocks).block(function.blocks[0], None)
    return replace(function, blocks=[entry])


class _Lifting:
    def __init__(self, function: Function, blocks: dict[str, Block]) -> None:
        self.function, self.blocks = function, blocks
        self.moved: set[str] = set()

    def block(self, block: Block, parent: Op | None) -> Block:
        """A block with what follows it, ending in nothing."""
        block.parent = parent
        last = block.ops[-1]
        if last.name == "tt.return":
            if last.operands:
                raise last.error("a kernel returns nothing")
            block.ops = block.ops[:-1]
        elif last.name == "cf.br":
            block.ops = block.ops[:-1]
            following = self._target(last, 0)
            for op in following.ops:
                op.block = block
            block.ops += self.block(following, parent).ops
            block.parent = parent
            self._own(block)
        elif last.name == "cf.cond_br":
            branch = Op("scf.if", last.operands[:1], last.location, block=block)
            block.ops[-1] = branch
            for number in range(2):
                inside = self.block(self._target(last, number), branch)
                inside.ops.append(Op("scf.yield", [], last.location, block=inside))
                branch.regions.append(inside)
        elif not last.name.startswith("scf."):
            raise last.error("a function's block ends in a branch or a return")
        return block

    def _own(self, block: Block) -> None:
        for op in block.ops:
            op.block = block

    def _target(self, branch: Op, number: int) -> Block:
        label, values = branch.successors[number]
        found = self.blocks[label]
        if values or found.arguments:
            raise branch.error("values are passed on to another block")
        only_returns = len(found.ops) == 1 and found.ops[0].name == "tt.return"
        if only_returns:
            return Block(label, None, [], list(found.ops))
        if label in self.moved:
            raise branch.error("two branches meet again, or make a loop")
        self.moved.add(label)
        return found
