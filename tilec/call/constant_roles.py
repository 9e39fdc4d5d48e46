"""What each `tl.auto` constant of a kernel is for, by a look at the kernel built with probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

from mlir import ir

from tilec.compile.compiler import find_kernel
from tilec.compile.moved_words import MovedWords
from tilec.compile.row_walks import Walk, walk_of
from tilec.dialects.context import lent_context
from tilec.dialects.tile import DotOp, LoadOp
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.executable.kernel import Parameter
from tilec.frontend import LIMITED, build_module
from tilec.messages.diagnostics import CompileError
from tilec.records import dataclass
from tilec.terms.tile_sizes import USUAL_SIDE

_PRIMES = (53, 59, 61, 67, 71, 73, 79, 83)
"""Large enough that a tile's fixed sizes (96 elements of a head) are hardly multiples of one.
A size of a probed tile that one divides is that constant's; kernels have three."""
_SMALL_PRIMES = (11, 13, 17, 19, 23, 29, 31, 37)
"""For tiles that the others make too large: fixed sizes of powers of two are multiples of none."""
_PROBES = ((16, _PRIMES), (1, _PRIMES), (1, _SMALL_PRIMES))
"""Sizes to probe with, so many times primes, the first that the kernel can have: dots take
multiples of 16 (PTX ISA 9.0, mma shapes), and beside a long row most make a tile too large."""
MOST_NAMES = len(_PRIMES)
"""Constants that can be told from each other."""


@dataclass(frozen=True)
class Parts:
    """A tile: the constant of each dimension, "" of those that are fixed, which have `fixed`
    elements together."""

    names: tuple[str, ...]
    fixed: int

    @property
    def chosen(self) -> list[str]:
        """The constants among them."""
        return list(dict.fromkeys(filter(None, self.names)))


@dataclass
class Roles:
    """The findings of the probes: for each constant the role that it has in dots, or the tiles that
    it is a dimension of."""

    dots: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """name -> (m | n | k, element type, precision)"""
    uses: dict[str, set[tuple[ir.Block, str]]] = field(default_factory=dict)
    """name -> the blocks in which it is m, n or k of a dot"""
    tiles: dict[str, list[Parts]] = field(default_factory=dict)
    """name -> the tiles that it is a dimension of"""
    dot_count: int = 0
    steps: dict[str, list[Walk | None]] = field(default_factory=dict)
    """Those that loops walk on by -> what each of these loops walks along"""
    columns: dict[ir.Block, list[int]] = field(default_factory=dict)
    """n of the dots of each block with sums of their own, those to be chosen as USUAL_SIDE."""
    loaded: tuple[int, int] = (0, 0)
    """Elements of the largest loaded tile, and bits of each; of several, of the widest."""
    moved: tuple[int, int] = (0, 0)
    """The same of what is loaded or stored in any way, with the bits that it takes on its way."""
    wants_long_rows: bool = False
    """Whether tiles had better be of few rows (`compile/moved_words.py`)."""
    turns_torn_rows: bool = False
    """Whether rows of one tile are columns of another and begin anywhere."""
    keeps_rows: bool = False
    """Whether tiles share nothing with those above them (`compile/moved_words.py`)."""
    is_limited: bool = False
    """Whether static assertions say which constants the kernel can have."""


def probe(
    fn: Callable[..., Any],
    parameters: Sequence[Parameter],
    constants: Mapping[str, Any],
    names: Sequence[str],
) -> Roles:
    """What the constants of these names are for. CompileError where the kernel can be built with no
    probe."""
    roles = Roles()
    with lent_context() as context, context:
        primes, module = _probed(fn, parameters, constants, names, context)

        def visit(op: ir.Operation) -> ir.WalkResult:
            _look(op, primes, roles)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        words = MovedWords(kernel := find_kernel(module, None))
        roles.moved, roles.wants_long_rows = words.largest, words.wants_long_rows
        roles.keeps_rows = words.keeps_rows
        roles.turns_torn_rows = words.turns_torn_rows
        roles.is_limited = LIMITED in kernel.attributes
    return roles


def _probed(
    fn: Callable[..., Any],
    parameters: Sequence[Parameter],
    constants: Mapping[str, Any],
    names: Sequence[str],
    context: ir.Context,
) -> tuple[dict[str, int], ir.Module]:
    """A prime for each name, and the kernel with multiples of them; if it can have none, its error
    with the first."""
    failed = []
    for factor, every in _PROBES:
        primes: dict[str, int] = dict(zip(names, every, strict=False))
        probes = {name: factor * prime for name, prime in primes.items()}
        try:
            all_of_them = {**constants, **probes}
            return primes, build_module(fn, parameters, all_of_them, context=context, probes=True)
        except CompileError as error:
            failed.append((error, probes))
    error, probes = failed[0]
    shown = ", ".join(f"{name} = {value}" for name, value in probes.items())
    raise CompileError(
        error.message,
        error.location,
        [*error.notes, f"found while trying {shown} to see what the tl.auto constants are for"],
    ) from None


def _look(op: ir.Operation, primes: Mapping[str, int], roles: Roles) -> None:
    """Notes what one op says about the constants."""

    def constant_of(size: int) -> str:
        return next((name for name, prime in primes.items() if size % prime == 0), "")

    view = op.opview
    if op.name == "scf.for" and (step := constant_of(_number(op.operands[2]))):
        roles.steps.setdefault(step, []).append(walk_of(op))
    if isinstance(view, DotOp):
        m, k = shape(view.lhs)[-2:]
        n = shape(view.rhs)[-1]
        if not _goes_on(view):
            roles.dot_count += 1
            own = USUAL_SIDE if constant_of(n) else n
            roles.columns.setdefault(op.block, []).append(own)
        about = (str(element(view.lhs)), view.options.get("precision", ""))
        for role, size in (("m", m), ("n", n), ("k", k)):
            if name := constant_of(size):
                roles.dots.setdefault(name, (role, *about))
                roles.uses.setdefault(name, set()).add((op.block, role))
    for result in filter(is_tile, op.results):
        names = tuple(constant_of(size) for size in shape(result))
        sizes = zip(names, shape(result), strict=True)
        parts = Parts(names, prod(size for name, size in sizes if not name))
        for name in parts.chosen:
            roles.tiles.setdefault(name, []).append(parts)
        if isinstance(view, LoadOp):
            roles.loaded = max(roles.loaded, (prod(shape(result)), bit_width(element(result))))


def _goes_on(dot: DotOp) -> bool:
    """Whether a dot adds to another one of its block, as halves of k do: both are one product."""
    owner = dot.acc.owner
    return not isinstance(owner, ir.Block) and (
        isinstance(owner.opview, DotOp) and owner.operation.block == dot.operation.block
    )


def _number(value: ir.Value) -> int:
    """A constant; 1, which is no multiple of any, for what is none."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    return op.attributes["value"].value if op is not None and op.name == "arith.constant" else 1
