"""Which elements of a loaded tile anybody needs: whether a coordinate that wraps may as well not.

    %rows = remsi %m, %M       (tutorial 03: rows past the edge are read from the top again)
    ... dot, casts, sums ... tt.store %c, %tile, %mask      where %mask has %m < %M

Rows past the edge reach only elements that the mask of every store or atomic update leaves out (and
what an update gives back there is nothing anybody may use): it does not matter what they hold, and
the load may give its padding there. Followed forwards from the load, along one axis, through what
computes element by element, dots, reductions along other axes and loops. Where anything else reads
the tile the answer is no.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilec.triton.forms import Forms, Wrap
from tilec.triton.masks import terms_of
from tilec.triton.op_facts import moved_axes
from tilec.triton.program import Op, Value, walk
from tilec.triton.signs import Signs

_ELEMENTWISE = ("arith.", "math.", "tt.fp_to_fp", "tt.clampf", "tt.precise_", "tt.broadcast")
_YIELDS = ("scf.yield", "tt.reduce.return")
_WRITES = ("tt.store", "tt.atomic_rmw")
"""What takes pointers, values, and a mask of those that count."""


class Demands:
    """The uses of a kernel's values."""

    def __init__(self, forms: Forms, signs: Signs) -> None:
        self.forms, self.signs = forms, signs
        self.uses: dict[Value, list[tuple[Op, int]]] = {}
        for block in forms.function.blocks:
            for op in walk(block):
                for number, operand in enumerate(op.operands):
                    self.uses.setdefault(operand, []).append((op, number))

    def needs_only(self, tile: Value, axis: int, wrap: Wrap) -> bool:
        """Whether only elements whose coordinate along `axis` is exact reach memory."""
        if not self.signs.of(wrap.exact):
            return False
        seen: set[tuple[Value, int]] = set()
        todo = [(tile, axis)]
        while todo:
            value, along = todo.pop()
            if (value, along) in seen:
                continue
            seen.add((value, along))
            for op, number in self.uses.get(value, ()):
                reached = list(self._reached(op, number, along, (axis, wrap)))
                if None in reached:
                    return False
                todo += [found for found in reached if found is not None]
        return True

    def _reached(
        self, op: Op, number: int, along: int, wrap: tuple[int, Wrap]
    ) -> Iterator[tuple[Value, int] | None]:
        """The values, with their axes, that an operand's elements get into; None for anywhere."""
        if op.name in _WRITES:
            yield from () if number == 1 and self._is_masked(op, along, wrap) else (None,)
        elif op.name == "tt.dot":
            yield None if (number, along) in ((0, 1), (1, 0)) else (op.result, along)
        elif op.name in ("tt.expand_dims", "tt.trans"):
            yield op.result, moved_axes(op)(along)
        elif op.name in ("tt.reduce", "tt.scan"):
            yield from self._combined(op, along)
        elif op.name == "scf.for":
            n = number - 3
            yield from (
                (v, along) for v in (op.results[n], op.regions[0].arguments[n + 1]) if n >= 0
            )
        elif op.name in _YIELDS:
            yield from self._yielded(op, number, along)
        elif op.name.startswith(_ELEMENTWISE):
            yield op.result, along
        else:
            yield None

    def _combined(self, op: Op, along: int) -> Iterator[tuple[Value, int] | None]:
        axis = op.number("axis")
        for result in op.results:
            if along == axis:
                yield None
            else:
                yield result, along - (op.name == "tt.reduce" and along > axis)

    def _yielded(self, op: Op, number: int, along: int) -> Iterator[tuple[Value, int] | None]:
        around = op.block.parent if op.block else None
        if around is None or around.name not in ("scf.for", "scf.if"):
            yield None
            return
        yield around.results[number], along
        if around.name == "scf.for":
            yield around.regions[0].arguments[number + 1], along

    def _is_masked(self, write: Op, along: int, wrap: tuple[int, Wrap]) -> bool:
        """Whether the mask leaves out what is past the edge."""
        _, found = wrap
        mask = write.operands[2] if len(write.operands) > 2 else None
        inside = self.forms.moved(found.limit - found.exact, lambda one: along)
        return any(term.positive == inside for term in terms_of(mask, self.forms, self.signs))
