"""Which names statements assign, and which are read later: classic backward liveness on the AST.

A loop carries, and a branch merges, only names that something may still read; a name reused for
another purpose (another shape, another dtype) is then no conflict.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence

Names = frozenset[str]
_NONE: Names = frozenset()
_KEPT = 1 << 14
"""Nodes whose names are kept: a kernel is built for many tiles, and its text stays the same."""


def assigned_names(nodes: Iterable[ast.AST]) -> Names:
    """Names that the statements may assign (not those local to a comprehension or lambda)."""
    return _NONE.union(*map(_assigned, nodes))


@functools.lru_cache(_KEPT)
def _assigned(node: ast.AST) -> Names:
    if isinstance(node, ast.Name):
        return frozenset([node.id]) if isinstance(node.ctx, ast.Store) else _NONE
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.Lambda)):
        return _NONE
    return assigned_names(ast.iter_child_nodes(node))


@functools.lru_cache(_KEPT)
def read_names(node: ast.AST | None) -> Names:
    """Names that an expression may read."""
    if node is None:
        return _NONE
    return frozenset(
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )


def live_before(statements: Sequence[ast.stmt], after: Names, jumps: Names = _NONE) -> Names:
    """Names read by the statements before they assign them, or live after them.

    `after`: live behind the last statement. `jumps`: live where `break` and `continue` lead.
    """
    live = after
    for statement in reversed(statements):
        live = _before(statement, live, jumps)
    return live


def _before(node: ast.stmt, live: Names, jumps: Names) -> Names:
    match node:
        case ast.Assign(targets=targets, value=value):
            return _assignment(targets, live) | read_names(value)
        case ast.AnnAssign(target=target, value=value):
            return _assignment([target], live) | read_names(value)
        case ast.AugAssign(target=target, value=value):
            return live | assigned_names([target]) | read_names(target) | read_names(value)
        case ast.If(test=test, body=body, orelse=orelse):
            branches = live_before(body, live, jumps) | live_before(orelse, live, jumps)
            return branches | read_names(test)
        case ast.For(target=target, iter=iterable, body=body):
            inside = _loop(body, live, assigned_names([target]), _NONE)
            return inside | read_names(iterable)
        case ast.While(test=test, body=body):
            return _loop(body, live, _NONE, read_names(test))
        case ast.Return(value=value):
            return read_names(value)
        case ast.Break() | ast.Continue():
            return jumps
        case _:
            return live | read_names(node)


def _assignment(targets: Sequence[ast.expr], live: Names) -> Names:
    reads = frozenset[str]().union(*(read_names(target) for target in targets))
    return (live - assigned_names(targets)) | reads


def _loop(body: Sequence[ast.stmt], after: Names, killed: Names, test: Names) -> Names:
    """Finds what is live before a loop, in two rounds: the second sees what the first found at the
    loop's head."""
    head = after | test
    for _ in range(2):
        head |= (live_before(body, head, head) - killed) | test
    return head


def live_in_loop(body: Sequence[ast.stmt], after: Names, killed: Names, test: Names) -> Names:
    """Names live at the head of a loop, which are those live at the end of its body."""
    return _loop(body, after, killed, test)


@functools.lru_cache(_KEPT)
def has_jump(node: ast.AST, loops: bool = True) -> bool:
    """Whether a statement contains `return`, or a `break` or `continue` of a loop around it."""
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, (ast.Break, ast.Continue)):
        return loops
    inner = loops and not isinstance(node, (ast.For, ast.While))
    return any(has_jump(child, inner) for child in ast.iter_child_nodes(node))


def has_break(body: Sequence[ast.AST]) -> bool:
    """Whether a loop's body contains a `break` of that loop."""
    return any(
        isinstance(node, ast.Break)
        or (
            not isinstance(node, (ast.For, ast.While, ast.expr))
            and has_break(list(ast.iter_child_nodes(node)))
        )
        for node in body
    )
