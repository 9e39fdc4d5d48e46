"""The loops of machine code as nvdisasm prints it, by the way of `ptx_loops`.

A wait that has not succeeded is tried again, until it has, by a block behind the end of the kernel:
no part of what an iteration does.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ptx_loops import Block, Loop, loops_of

_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+([^;]*);")
_LABEL = re.compile(r"(\.L_x_\d+):")
_TARGET = re.compile(r"\.L_x_\d+")
_BRANCH = re.compile(r"(@\S+\s+)?(BRA|BRX)\b")
_END = re.compile(r"(@\S+\s+)?(EXIT|RET)\b")
_RETRY = re.compile(r"SYNCS\S*TRYWAIT")
RETRIED = 3
"""Instructions of a block that only tries again, at most: a NOP, the wait, the branch."""


def machine_loops(sass: str) -> list[Loop]:
    """The loops of a cubin with one kernel, outer before inner, without what is tried again."""
    blocks = _blocks(sass)
    retries = {block.name for block in blocks if _tries_again(block)}
    kept = [block for block in blocks if block.name not in retries]
    for block in kept:
        block.targets -= retries
    return [replace(loop, instructions=_work(loop, kept)) for loop in loops_of(kept)]


def _work(loop: Loop, blocks: list[Block]) -> tuple[str, ...]:
    """What an iteration runs, without the guards in front and NOPs."""
    lines = [line for block in blocks if block.name in loop.blocks for line in block.instructions]
    return tuple(line for line in lines if not line.startswith("NOP"))


def _tries_again(block: Block) -> bool:
    """Whether a block does nothing but wait once more, and again."""
    waits = any(_RETRY.match(line) for line in block.instructions)
    return waits and block.name in block.targets and len(block.instructions) <= RETRIED


def _blocks(sass: str) -> list[Block]:
    """Basic blocks: a label or a branch ends one."""
    blocks = [Block("entry")]
    for line in sass.split("\n"):
        if (label := _LABEL.match(line.strip())) is not None:
            blocks.append(Block(label[1]))
        elif (found := _INSTRUCTION.search(line)) is not None:
            _add(blocks, " ".join(found[1].split()))
    return blocks


def _add(blocks: list[Block], line: str) -> None:
    block = blocks[-1]
    block.instructions.append(line)
    if _BRANCH.match(line):  # a table's branch names them all
        block.targets.update(_TARGET.findall(line))
        block.falls_through = line.startswith(("@", "BRA.U"))
    elif _END.match(line):
        block.falls_through = line.startswith("@")
    else:
        return
    blocks.append(Block(f"{block.name}+{len(blocks)}"))
