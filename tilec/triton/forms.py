"""What integers and pointers of a kernel are in terms of arguments, program ids, loops and
coordinates: polynomials.

    %3 = tt.splat %2 ; %5 = arith.addi %3, %range     ->  pid * 64 + i0
    scf.for iter_args(%p = %init) { yield tt.addptr %p, %step }   ->  init + trip * step

A pointer is the argument that it comes from (its root) and a polynomial. What a loop carries and
adds the same to every time is an induction, and written with the loop's trips; behind a loop of a
known number of trips, with that. A scalar that is no polynomial is a symbol of its own; a tile that
is none has no form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tilec.records import dataclass
from tilec.triton.op_facts import constant_integer, keeps_size, moved_axes
from tilec.triton.pointer_roots import argument_of
from tilec.triton.polynomial import ONE, ZERO, Polynomial, Symbol
from tilec.triton.program import Function, Op, Type, Value, defining, is_inside, walk

Form = Polynomial | None
_WIDE = ("i32", "i64", "index")
"""Integers whose arithmetic is taken to be exact; narrower ones are made to run over."""


def is_wide(kind: Type) -> bool:
    """Whether polynomials speak of a type's arithmetic."""
    return kind.element in _WIDE


@dataclass(frozen=True)
class Wrap:
    """A coordinate that wraps: `exact` where that is below `limit`, else some other number from 0
    on below the limit."""

    exact: Polynomial
    limit: Polynomial


@dataclass(frozen=True)
class Pointer:
    """`root`: the pointer argument it comes from; `offset`: in elements, None if no polynomial."""

    root: Value
    offset: Form


@dataclass(frozen=True)
class Trips:
    """How often a loop goes round: `trip * step` is `last` in its last iteration."""

    step: int
    last: Polynomial


class Forms:
    """The forms of one kernel's values, found as they are asked for."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.wraps: dict[Symbol, Wrap] = {}
        self.at_least: set[Value] = set()
        self._integers: dict[Value, Form] = {}
        self._pointers: dict[Value, Pointer | None] = {}
        self._symbols: dict[tuple[str, Value | None, int], Symbol] = {}
        self._inductions: dict[Symbol, Form] = {}
        self._look_at_outer_loops()
        self._find_assumptions()

    def _look_at_outer_loops(self) -> None:
        """What a loop carries through inner ones, before these are asked for: whether they move it
        on by the same every time is seen from outside."""
        for block in self.function.blocks:
            for loop in walk(block):
                if loop.name != "scf.for" or not any(op.name == "scf.for" for op in _inner(loop)):
                    continue
                for value in loop.regions[0].arguments[1:]:
                    if value.type.pointee is not None:
                        self.pointer(value)
                    elif is_wide(value.type):
                        self.integer(value)

    def _find_assumptions(self) -> None:
        """Values that `tl.assume` says are 0 or more."""
        for block in self.function.blocks:
            for op in walk(block):
                compared = op.name == "llvm.intr.assume" and defining(op.operands[0], "arith.cmpi")
                if compared and ("sge" in compared.words or "sgt" in compared.words):
                    low = self.integer(compared.operands[1])
                    if low is not None and (low.constant or 0) >= 0 and low.constant is not None:
                        self.at_least.add(compared.operands[0])

    def symbol(self, kind: str, value: Value | None = None, axis: int = 0) -> Symbol:
        """The symbol of a thing, always the same."""
        key = (kind, value, axis)
        if key not in self._symbols:
            self._symbols[key] = Symbol(kind, value, axis)
        return self._symbols[key]

    def coordinate(self, axis: int) -> Symbol:
        """The coordinate of an element along a tile's axis."""
        return self.symbol("coordinate", None, axis)

    def integer(self, value: Value) -> Form:
        """The form of an integer or a tile of them; None of a tile that has none."""
        if value not in self._integers:
            found = self._integer(value)
            if found is None and value.type.shape is None:
                found = Polynomial.of(self.symbol("value", value))
            self._integers[value] = found
        found = self._integers[value]
        return None if found is None else self._settled(found)

    def equate(self, value: Value, other: Value) -> None:
        """Takes an integer to be another."""
        self._integers[value] = self.integer(other)

    def _settled(self, form: Polynomial) -> Polynomial:
        """With inductions written out."""
        known = {s: f for s in form.symbols if (f := self._inductions.get(s)) is not None}
        return self._settled(form.replaced(known)) if known else form

    def _integer(self, value: Value) -> Form:
        if not is_wide(value.type):
            return None
        if not isinstance(value.owner, Op):
            return self._argument(value, self.integer)
        if value.owner.name == "scf.for":
            return self._left(value.owner, value.number, self.integer)
        rule = _RULES.get(value.owner.name)
        return rule(self, value.owner) if rule else self._opaque(value)

    def _opaque(self, value: Value) -> Form:
        """A scalar that arguments alone decide is known at launch."""
        if value.type.shape is not None or not isinstance(value.owner, Op):
            return None
        if value.owner.name not in LAUNCH_OPS:
            return None
        parts = [self.integer(operand) for operand in value.owner.operands]
        known = tuple(part for part in parts if part is not None and part.is_known)
        if len(known) < len(parts):
            return None
        return Polynomial.of(Symbol("value", value, 0, (value.owner.name, known)))

    def _argument(self, value: Value, form: Callable[[Value], Form]) -> Form:
        """A block's argument: of the kernel, of a for loop, or of something else."""
        block = value.owner
        loop = getattr(block, "parent", None)
        if loop is None:
            return Polynomial.of(self.symbol("argument", value))
        if loop.name != "scf.for":
            return None
        if value.number == 0:
            low, step = self.integer(loop.operands[0]), self.integer(loop.operands[2])
            if low is None or step is None or step.constant is None:
                return None
            return low + Polynomial.of(self.symbol("trip", value)) * step
        return self._induction(loop, value, form)

    def _induction(self, loop: Op, value: Value, form: Callable[[Value], Form]) -> Form:
        """What `value` grows by in each iteration is the same, or it is no induction."""
        carried = self.symbol("carried", value)
        self._remember(value, Polynomial.of(carried))
        after = form(loop.regions[0].terminator.operands[value.number - 1])
        init = form(loop.operands[2 + value.number])
        if after is None or init is None:
            return None
        step = after - Polynomial.of(carried)
        if any(self.varies(symbol, loop) for symbol in step.symbols):
            return None
        variable = loop.regions[0].arguments[0]
        trip = Polynomial.of(self.symbol("trip", variable))
        self._inductions[carried] = init + trip * step
        return init + trip * step

    def _left(self, loop: Op, number: int, form: Callable[[Value], Form]) -> Form:
        """What a loop leaves of an induction: a pointer that an inner loop moves on, too, is one of
        the outer loop's."""
        low, high, step = map(self.integer, loop.operands[:3])
        variable, *carried = loop.regions[0].arguments
        if low is None or high is None or step is None or form(carried[number]) is None:
            return None
        inside = self._inductions.get(self.symbol("carried", carried[number]))
        span, each = (high - low).constant, step.constant
        if inside is None or span is None or each is None or each < 1:
            return None
        trips = Polynomial.of(max(0, -(-span // each)))
        return inside.replaced({self.symbol("trip", variable): trips})

    def trips_of(self, trip: Symbol) -> Trips | None:
        """What the trips of a loop come to; None where that is not known to the element: an array
        that began where no trip comes to would begin in front of its memory."""
        low, high, step = map(self.integer, trip.value.owner.parent.operands[:3])
        each = None if step is None else step.constant
        if low is None or high is None or each is None or each < 1:
            return None
        span = high - low
        rest = span.terms.get((), 0)
        whole = span - Polynomial.of(rest)
        if any(n % each for n in whole.terms.values()):
            return None
        return Trips(each, whole + Polynomial.of((rest - 1) // each * each))

    def _remember(self, value: Value, form: Polynomial) -> None:
        """The form of what a loop carries while the loop is looked at."""
        if value.type.pointee is None:
            self._integers[value] = form
        else:
            pointer = self._pointers[value]
            assert pointer is not None
            self._pointers[value] = Pointer(pointer.root, form)

    def varies(self, symbol: Symbol, loop: Op) -> bool:
        """Whether a symbol may change from one iteration to the next."""
        if symbol.kind == "coordinate":
            return False
        return isinstance(symbol.value, Value) and is_inside(symbol.value, loop)

    def wrapped(self, op: Op, exact: Form, limit: Form) -> Form:
        """A tile of coordinates that wrap at `limit`, which is the same for all of them."""
        axes = {s.axis for s in exact.symbols if s.kind == "coordinate"} if exact else set()
        if exact is None or limit is None or limit.has("coordinate") or len(axes) != 1:
            return None
        symbol = self.symbol("wrapped", op.result, axes.pop())
        self.wraps[symbol] = Wrap(exact, limit)
        return Polynomial.of(symbol)

    def moved(self, form: Form, axes: Callable[[int], int]) -> Form:
        """A form under other numbers of axes."""
        if form is None:
            return None
        new: dict[Symbol, Polynomial] = {}
        for symbol in form.symbols:
            if symbol.kind == "coordinate":
                new[symbol] = Polynomial.of(self.coordinate(axes(symbol.axis)))
            elif symbol.kind == "wrapped":
                moved = self.symbol("wrapped", symbol.value, axes(symbol.axis))
                wrap = self.wraps[symbol]
                exact = self.moved(wrap.exact, axes)
                assert exact is not None
                self.wraps[moved] = Wrap(exact, wrap.limit)
                new[symbol] = Polynomial.of(moved)
            elif symbol.kind == "carried" and symbol.value.type.shape is not None:
                return None  # a tile that a loop carries, and is not known yet
        return form.replaced(new)

    def usable(self, form: Form) -> Form:
        """A form without tiles that loops carry and that are no inductions."""
        if form is None or any(s.kind == "carried" and s.value.type.shape for s in form.symbols):
            return None
        return form

    def pointer(self, value: Value) -> Pointer | None:
        """The form of a pointer or a tile of them; None where its root is no argument."""
        if value not in self._pointers:
            root = argument_of(value)
            rooted = None if root is None else Pointer(root, None)
            self._pointers[value] = rooted
            if rooted is not None:
                self._pointers[value] = Pointer(rooted.root, self._offset_or_symbol(value))
        found = self._pointers[value]
        if found is None or found.offset is None:
            return found
        return Pointer(found.root, self._settled(found.offset))

    def _offset(self, value: Value) -> Form:
        if not isinstance(value.owner, Op):
            if value.owner.parent is None:
                return ZERO
            return self._argument(value, self._offset_of)
        if value.owner.name == "scf.for":
            return self._left(value.owner, value.number, self._offset_of)
        rule = _POINTER_RULES.get(value.owner.name)
        return rule(self, value.owner) if rule else None

    def _offset_or_symbol(self, value: Value) -> Form:
        """A scalar pointer's offset that is no polynomial is a symbol of its own, as a scalar
        integer is."""
        found = self._offset(value)
        if found is None and value.type.shape is None:
            return Polynomial.of(self.symbol("value", value))
        return found

    def _offset_of(self, value: Value) -> Form:
        pointer = self.pointer(value)
        return None if pointer is None else pointer.offset

    def range_of(self, op: Op) -> Form:
        """The form of make_range."""
        return Polynomial.of(op.number("start")) + Polynomial.of(self.coordinate(0))


def _inner(loop: Op) -> Iterable[Op]:
    return walk(loop.regions[0])


def _constant(forms: Forms, op: Op) -> Form:
    number = constant_integer(op)
    return None if number is None else Polynomial.of(number)


def _sum(forms: Forms, op: Op) -> Form:
    one, two = map(forms.integer, op.operands)
    return None if one is None or two is None else one + two


def _difference(forms: Forms, op: Op) -> Form:
    """A remainder, `x - x // n * n`, is a scalar of its own: as a sum of its parts an address would
    move along two dimensions where the author has one."""
    one, two = map(forms.integer, op.operands)
    if one is None or two is None:
        return None
    found = one - two
    return forms._opaque(op.result) if _is_remainder(op) and not found.is_known else found


def _is_remainder(op: Op) -> bool:
    """Whether a scalar difference takes from a number the multiples of another that it has."""
    times = defining(op.operands[1], "arith.muli")
    if times is None or op.result.type.shape is not None:
        return False
    return any(
        found is not None and found.operands[0] is op.operands[0] and found.operands[1] is by
        for part, by in (times.operands, times.operands[::-1])
        if (found := defining(part, "arith.divsi")) is not None
    )


def _product(forms: Forms, op: Op) -> Form:
    one, two = map(forms.integer, op.operands)
    return None if one is None or two is None else one * two


def _shifted(forms: Forms, op: Op) -> Form:
    one, two = map(forms.integer, op.operands)
    if one is None or two is None or two.constant is None or not 0 <= two.constant < 31:
        return forms._opaque(op.result)
    return one.scaled(1 << two.constant)


def _same(forms: Forms, op: Op) -> Form:
    if not is_wide(op.operands[0].type):
        return None
    return forms.integer(op.operands[0])


def _moved(forms: Forms, op: Op) -> Form:
    return forms.moved(forms.integer(op.operands[0]), moved_axes(op))


def _quotient(forms: Forms, op: Op) -> Form:
    """Of what divides without a rest: 128 * pid // 32 is 4 * pid."""
    one, two = map(forms.integer, op.operands)
    exact = one.divided(two) if one is not None and two is not None and two.constant else None
    return forms._opaque(op.result) if exact is None else exact


def _remainder(forms: Forms, op: Op) -> Form:
    """0 of what divides without a rest; of a tile, coordinates that wrap."""
    one, two = map(forms.integer, op.operands)
    if one is not None and two is not None and two.constant and one.divided(two) is not None:
        return ZERO
    if op.result.type.shape is None:
        return forms._opaque(op.result)
    return forms.wrapped(op, *map(forms.integer, op.operands))


def _clamped(forms: Forms, op: Op) -> Form:
    """min(x, n - 1): as an index below n where x is one."""
    if op.result.type.shape is None:
        return forms._opaque(op.result)
    one, two = map(forms.integer, op.operands)
    if one is not None and not one.has("coordinate"):
        one, two = two, one
    return forms.wrapped(op, one, None if two is None else two + ONE)


def _selected(forms: Forms, op: Op) -> Form:
    """where(x < n, x, 0)."""
    compared = defining(op.operands[0], "arith.cmpi")
    other = forms.integer(op.operands[2])
    if op.result.type.shape is None or compared is None or other is None:
        return None
    if "slt" not in compared.words or compared.operands[0] is not op.operands[1] or other != ZERO:
        return None
    return forms.wrapped(op, *map(forms.integer, compared.operands))


_RULES: dict[str, Callable[[Forms, Op], Form]] = {
    "arith.constant": _constant,
    "arith.addi": _sum,
    "arith.subi": _difference,
    "arith.muli": _product,
    "arith.shli": _shifted,
    "arith.extsi": _same,
    "arith.index_cast": _same,
    "tt.splat": _same,
    "tt.broadcast": _same,
    "tt.expand_dims": _moved,
    "tt.trans": _moved,
    "tt.make_range": lambda forms, op: forms.range_of(op),
    "arith.divsi": _quotient,
    "arith.remsi": _remainder,
    "arith.minsi": _clamped,
    "arith.select": _selected,
}

LAUNCH_OPS = ("arith.divsi", "arith.remsi", "arith.minsi", "arith.maxsi")
"""What a launch can compute of arguments besides polynomials (`array_rule.py`)."""


def _advanced(forms: Forms, op: Op) -> Form:
    base, step = forms._offset_of(op.operands[0]), forms.integer(op.operands[1])
    return None if base is None or step is None else base + step


def _same_pointer(forms: Forms, op: Op) -> Form:
    return forms._offset_of(op.operands[0])


def _cast_pointer(forms: Forms, op: Op) -> Form:
    """To other elements: of another size only where nothing has been added."""
    offset = forms._offset_of(op.operands[0])
    return offset if keeps_size(op) or offset == ZERO else None


def _moved_pointer(forms: Forms, op: Op) -> Form:
    return forms.moved(forms._offset_of(op.operands[0]), moved_axes(op))


_POINTER_RULES: dict[str, Callable[[Forms, Op], Form]] = {
    "tt.addptr": _advanced,
    "tt.splat": _same_pointer,
    "tt.broadcast": _same_pointer,
    "tt.bitcast": _cast_pointer,
    "tt.expand_dims": _moved_pointer,
    "tt.trans": _moved_pointer,
}


def without_size_one(form: Polynomial, shape: Iterable[int]) -> Polynomial:
    """Coordinates along an axis of one element are 0."""
    sizes = tuple(shape)
    return form.part(
        lambda monomial: not any(s.kind == "coordinate" and sizes[s.axis] == 1 for s in monomial)
    )
