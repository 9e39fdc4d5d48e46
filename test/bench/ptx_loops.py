"""The loops of a kernel's PTX, and what they hold: natural loops of its control-flow graph.

A loop is found by a branch to a block that dominates it (Aho, Lam, Sethi, Ullman, "Compilers",
9.6.6), so the order in which blocks are printed does not matter. Loops inside a `{ ... }` of inline
assembly, in which one instruction spins, are part of their block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

_LABEL = re.compile(r"(\$L__BB\w+):")
_TARGET = re.compile(r"\$L__BB\w+")
_NO_INSTRUCTION = re.compile(r"//|\.|\$|\w+:|[{}]|$")


@dataclass
class Block:
    """Instructions of one basic block, where it may go on, and whether it falls through."""

    name: str
    instructions: list[str] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    falls_through: bool = True


@dataclass(frozen=True)
class Loop:
    """One natural loop. `instructions`: of its blocks in the order of the PTX; `depth`: loops
    around it, itself included."""

    blocks: frozenset[str]
    instructions: tuple[str, ...]
    depth: int
    innermost: bool

    def count(self, pattern: str) -> int:
        """Instructions whose opcode starts with a match of `pattern`."""
        return count(self.instructions, pattern)


def count(instructions: tuple[str, ...] | list[str], pattern: str) -> int:
    """Instructions whose opcode, behind its guard, starts with a match of `pattern`."""
    opcode = re.compile(rf"(?:@\S+\s+)?(?:{pattern})")
    return sum(1 for line in instructions if opcode.match(line))


def instructions(ptx: str) -> list[str]:
    """All instructions of a module with one kernel."""
    return [line for block in _blocks(ptx) for line in block.instructions]


def find_loops(ptx: str) -> list[Loop]:
    """The loops of a module with one kernel, outer before inner, else in the PTX's order."""
    return loops_of(_blocks(ptx))


def loops_of(blocks: list[Block]) -> list[Loop]:
    """The loops of blocks, outer before inner, else in their order."""
    successors = _successors(blocks)
    dominators = _dominators(blocks[0].name, successors)
    successors = {name: successors[name] for name in dominators}
    bodies: dict[str, set[str]] = {}
    for source, targets in successors.items():
        for header in targets & dominators[source]:
            bodies.setdefault(header, {header}).update(_body(header, source, successors))
    found = []
    for body in bodies.values():
        around = sum(1 for other in bodies.values() if body <= other)
        inside = any(other < body for other in bodies.values())
        lines = [line for b in blocks if b.name in body for line in b.instructions]
        found.append(Loop(frozenset(body), tuple(lines), around, not inside))
    order = {block.name: number for number, block in enumerate(blocks)}
    return sorted(found, key=lambda one: (min(map(order.__getitem__, one.blocks)), one.depth))


def _blocks(ptx: str) -> list[Block]:
    """Basic blocks: a label or a branch ends one."""
    blocks = [Block("entry")]
    body = ptx[ptx.index(".entry") :]
    tables: dict[str, set[str]] = {}
    lines = [line.split("//")[0].strip() for line in body[body.index("{") + 1 :].split("\n")]
    for line in lines:
        if (label := _LABEL.match(line)) is not None:
            blocks.append(Block(label[1]))
        elif ".branchtargets" in line:
            tables[line.split(":")[0]] = targets = set()
        elif tables and re.fullmatch(r"\$L__BB\w+[,;]", line):
            targets.add(line[:-1])
        elif not _NO_INSTRUCTION.match(line):
            _add(blocks, line, tables)
    return blocks


def _add(blocks: list[Block], line: str, tables: dict[str, set[str]]) -> None:
    block = blocks[-1]
    block.instructions.append(line)
    if "brx.idx" in line:
        block.targets |= next(found for name, found in tables.items() if name in line)
    elif re.search(r"\bbra\b", line) and (target := _TARGET.search(line)) is not None:
        block.targets.add(target[0])
    elif not re.match(r"(ret|exit|trap)\b", line):
        return
    block.falls_through = line.startswith("@")
    blocks.append(Block(f"{block.name}+{len(blocks)}"))


def _successors(blocks: list[Block]) -> dict[str, set[str]]:
    found = {block.name: set(block.targets) for block in blocks}
    for block, following in pairwise(blocks):
        if block.falls_through:
            found[block.name].add(following.name)
    return found


def _dominators(entry: str, successors: dict[str, set[str]]) -> dict[str, set[str]]:
    """Per reachable block those that every way to it passes, itself included."""
    reachable, stack = [entry], [entry]
    while stack:
        for target in successors[stack.pop()]:
            if target not in reachable:
                reachable.append(target)
                stack.append(target)
    before = {name: [b for b in reachable if name in successors[b]] for name in reachable}
    found = {name: set(reachable) for name in reachable} | {entry: {entry}}
    changed = True
    while changed:
        changed = False
        for name in reachable[1:]:
            common = set.intersection(*(found[b] for b in before[name])) | {name}
            changed = changed or common != found[name]
            found[name] = common
    return found


def _body(header: str, source: str, successors: dict[str, set[str]]) -> set[str]:
    """The blocks from which a branch back to the header is reached without passing the header."""
    body, stack = {header, source}, [source]
    while stack:
        name = stack.pop()
        if name == header:
            continue
        for before, targets in successors.items():
            if name in targets and before not in body:
                body.add(before)
                stack.append(before)
    return body
