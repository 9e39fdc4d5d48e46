"""Lowers tile.atomic_rmw and tile.atomic_cas to `red`, `atom`, and loops around `atom.cas`.

Sums of floats that are neighbours in memory and in registers, and whose old values nobody wants,
are one `red` or `atom` of a pair or a vector (`analysis/vector_additions.py`). Where the neighbours
are is known from infer-layouts, since an index that went through shared memory does not say it any
more; a kernel written by hand has its indices in registers.

Of several elements a thread the order is that of two fences, one in front of all and one behind:
each `atom.acq_rel` by itself is a MEMBAR.GPU before it and an invalidation of L1 behind (64 of each
in a thread that adds 64 elements). A relaxed access behind a fence is a release, one before a fence
an acquire (PTX ISA 9.0, "Release and Acquire Patterns"); elements of one tile have no order.

PTX text, since LLVM 22's NVPTX printer drops the ordering and scope of an atomicrmw. PTX ISA 9.0,
"atom", "red": `red` (no old value) knows relaxed and release only; bf16 addition is an instruction
since Hopper; 16-bit elements have add and cas, no exchange, minimum or bit operation. Those, and
bf16 addition elsewhere, loop around cas.

Floating-point minimum and maximum of 32 and 64 bits have no instruction. IEEE numbers of one sign
order like integers, so the maximum with a value v is the signed integer maximum for v >= 0 and the
unsigned minimum for v < 0 (the minimum the other way round). Infinities and signed zeros come out
right; a NaN value is written and stays. A NaN that lies in the array already orders by its sign
bit: without it above +inf, with it below -inf. 16-bit ones loop and let any NaN win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import gcd

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.types import bit_width, byte_width, element
from tilec.hardware.sizes import WORD_BITS
from tilec.hardware.target import Feature
from tilec.passes.analysis.index_runs import index_run
from tilec.passes.analysis.vector_additions import WORD_ELEMENTS, most_added
from tilec.passes.layouts.runs import register_run
from tilec.passes.lower_to_nvvm.access import braced, inline_asm, pack, storage_bits, unpack
from tilec.passes.lower_to_nvvm.indexed import Elements
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.control import either, while_loop
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import both, compare, create, select
from tilec.records import dataclass

_LETTER = {16: "h", 32: "r", 64: "l"}
_INTEGER_KINDS = {
    "addi": "add.u{bits}",
    "maxs": "max.s{bits}",
    "mins": "min.s{bits}",
    "maxu": "max.u{bits}",
    "minu": "min.u{bits}",
    "andi": "and.b{bits}",
    "ori": "or.b{bits}",
    "xori": "xor.b{bits}",
}
_COMBINE = {
    "addf": "arith.addf",
    "addi": "arith.addi",
    "maxs": "arith.maxsi",
    "mins": "arith.minsi",
    "maxu": "arith.maxui",
    "minu": "arith.minui",
    "maxf": "arith.maximumf",
    "minf": "arith.minimumf",
    "andi": "arith.andi",
    "ori": "arith.ori",
    "xori": "arith.xori",
}
"""The scalar op that makes the new value where no instruction does."""
_SWAPS = "a loop of compare-and-swaps, until nobody else wrote in between"


@dataclass(frozen=True)
class Memory:
    """The memory order of an atomic, and the threads among whom it holds."""

    order: str
    scope: str

    def atom(self, operation: str) -> str:
        """Spells `atom` with its qualifiers."""
        return f"atom.{self.order}.{self.scope}.global.{operation}"

    def red(self, operation: str) -> str:
        """Spells `red` with its qualifiers; `order` must be relaxed or release."""
        return f"red.{self.order}.{self.scope}.global.{operation}"


def lower_atomic_rmw(op: tile.AtomicRmwOp, state: Lowering) -> None:
    """Lowers tile.atomic_rmw to one instruction where the hardware has one, else to a loop."""
    memory = _memory(op, state)
    elements = Elements(state, state.values[op.dst], op.mask, op.indices)
    with _ordered(op, memory) as memory:
        width = _vector_width(op, state)
        if width > 1:
            _add_vectors(op, elements, memory, width, state)
            return
        update = _update(op, memory, state)
        state.values[op.old] = [
            update(pointer, value, guard)
            for (pointer, guard), value in zip(
                elements.places(writes=True), state.registers(op.value), strict=True
            )
        ]


def lower_atomic_cas(op: tile.AtomicCasOp, state: Lowering) -> None:
    """Lowers tile.atomic_cas, which compares bits: -0.0 is not 0.0, and a NaN equals itself."""
    memory = _memory(op, state)
    elements = Elements(state, state.values[op.dst], op.mask, op.indices)
    kind = element(op.value)
    old = []
    with _ordered(op, memory) as memory:
        for (pointer, guard), expected, value in zip(
            elements.places(writes=True),
            state.registers(op.expected),
            state.registers(op.value),
            strict=True,
        ):
            words = pack([expected], kind, state) + pack([value], kind, state)
            bits = words[0].type.width
            given = [[word] for word in words]
            (seen,) = _atom(memory.atom(f"cas.b{bits}"), pointer, given, guard, state)
            old += unpack([seen], kind, 1, state)
    state.values[op.old] = old


@contextmanager
def _ordered(op: tile.AtomicRmwOp | tile.AtomicCasOp, memory: Memory) -> Iterator[Memory]:
    """What accesses say inside: relaxed, between fences, where a thread has several elements."""
    if memory.order == "relaxed" or layout_of(op.mask).num_values == 1:
        yield memory
        return
    fence = f"fence.acq_rel.{memory.scope};"
    if memory.order != "acquire":
        inline_asm(fence, [], [], [])
    yield replace(memory, order="relaxed")
    if memory.order != "release":
        inline_asm(fence, [], [], [])


def _reduces(op: tile.AtomicRmwOp) -> bool:
    """Whether nobody wants the old value, so that `red` will do: which reads nothing, as the fence
    behind an acquire wants (PTX ISA 9.0, "Operation Types")."""
    return not op.gives_old and op.order in ("relaxed", "release") and op.kind != "exchange"


def _vector_width(op: tile.AtomicRmwOp, state: Lowering) -> int:
    """Elements that one instruction adds up: neighbours in memory and in registers."""
    most = most_added(op, state.context)
    dim, run = op.options.get("run") or index_run(op, state.divisibility)
    width = gcd(most, run, register_run(layout_of(op.mask), dim))
    if most > 1:
        bytes_ = width * byte_width(element(op.value))
        why = "neighbours in memory and in registers" if width > 1 else "an element each"
        if width == 1 and bytes_ < WORD_BITS // 8:
            why += f": the assembler makes {_SWAPS} of it"
        state.context.report.add("memory access", op.operation, f"{bytes_}-byte additions", why)
    return width


def _add_vectors(
    op: tile.AtomicRmwOp, elements: Elements, memory: Memory, width: int, state: Lowering
) -> None:
    """Adds `width` registers by each instruction; of 16 bits, packed in pairs."""
    kind, values = element(op.value), state.registers(op.value)
    pairs = bit_width(kind) == WORD_BITS // WORD_ELEMENTS
    type_, count = (
        (f"noftz.{{}}{kind}x2", width // WORD_ELEMENTS) if pairs else (f"{{}}{kind}", width)
    )
    instruction = "add." + type_.format(f"v{count}." if count > 1 else "")
    for number, (pointer, guard) in enumerate(elements.places(writes=True, width=width)):
        words = values[number * width : (number + 1) * width]
        words = pack(words, kind, state) if pairs else words
        if _reduces(op):
            _red(memory.red(instruction), pointer, words, guard)
        else:
            _atom(memory.atom(instruction), pointer, [words], guard, state)
    state.values[op.old] = values


Update = Callable[[ir.Value, ir.Value, "ir.Value | None"], ir.Value]
"""(pointer, value, guard) -> the old value."""


def check_scope(op: tile.AtomicRmwOp | tile.AtomicCasOp | tile.FenceOp, state: Lowering) -> None:
    """CompileError where the target does not know the op's scope (PTX ISA 9.0, "Scope")."""
    target = state.context.target
    if op.scope == "cluster" and not target.supports(Feature.CLUSTERS):
        raise error_at(
            op.operation,
            f"scope 'cluster' needs thread block clusters, which {target.name} does not have",
            "help: use scope 'cta' or 'gpu'",
        )


def _memory(op: tile.AtomicRmwOp | tile.AtomicCasOp, state: Lowering) -> Memory:
    kind = element(op.value)
    if storage_bits(kind, state) < 16 or bit_width(kind) == 1:
        raise error_at(op.operation, f"no atomics on {kind}; elements must have 16, 32 or 64 bits")
    check_scope(op, state)
    return Memory(op.order, op.scope)


def _update(op: tile.AtomicRmwOp, memory: Memory, state: Lowering) -> Update:
    kind = element(op.value)
    scalar = state.scalar_type(kind)
    operation = _instruction(op.kind, scalar, state)
    reduces = _reduces(op)

    def by_instruction(pointer: ir.Value, value: ir.Value, guard: ir.Value | None) -> ir.Value:
        assert operation is not None  # else there is a loop around a comparison
        words = pack([value], kind, state)
        if reduces:
            _red(memory.red(operation), pointer, words, guard)
            return value
        old = _atom(memory.atom(operation), pointer, [words], guard, state)
        return unpack(old, kind, 1, state)[0]

    def by_sign(pointer: ir.Value, value: ir.Value, guard: ir.Value | None) -> ir.Value:
        return _order_as_integers(op.kind, memory, pointer, value, guard, state, reduces=reduces)

    def by_loop(pointer: ir.Value, value: ir.Value, guard: ir.Value | None) -> ir.Value:
        return _loop(op.kind, memory, pointer, value, guard, state)

    if operation is not None:
        return by_instruction
    if scalar.width == 16:
        why = f"no instruction does it on {scalar}: {_SWAPS}"
        state.context.report.add("memory access", op.operation, "2-byte atomics", why)
    return by_loop if scalar.width == 16 else by_sign


def _instruction(kind: str, scalar: ir.Type, state: Lowering) -> str | None:
    """Spells `op.type` of the instruction for a kind, None if there is none."""
    bits = scalar.width
    if kind == "addf":
        if str(scalar) == "bf16" and not state.context.target.supports(Feature.BF16_ARITHMETIC):
            return None
        return f"add.noftz.{scalar}" if bits == 16 else f"add.{scalar}"
    if bits == 16:
        return None
    if kind == "exchange":
        return f"exch.b{bits}"
    return _INTEGER_KINDS[kind].format(bits=bits) if kind in _INTEGER_KINDS else None


def _atom(
    instruction: str,
    pointer: ir.Value,
    given: Sequence[Sequence[ir.Value]],
    guard: ir.Value | None,
    state: Lowering,
) -> list[ir.Value]:
    """The old words, zeros where the guard is false; `given`: the words of each operand, as many as
    are in memory."""
    count = len(given[0])
    letters = [_letter(word) for word in given[0]]
    constraints = [*("=" + letter for letter in letters), "l", *letters * len(given)]
    operands = [pointer, *(word for words in given for word in words)]
    starts = [0, *range(count + 1, count + 1 + count * len(given), count)]
    old, *inputs = (braced(start, count) for start in starts)
    if guard is not None:
        # Tied to zeros: a register never written would make the result differ from run to run.
        constraints += map(str, range(count))
        operands += [state.constant(word.type, 0) for word in given[0]]
    text = f"{instruction} {old}, [${count}], {', '.join(inputs)};"
    return inline_asm(text, constraints, operands, [word.type for word in given[0]], guard=guard)


def _red(
    instruction: str, pointer: ir.Value, words: Sequence[ir.Value], guard: ir.Value | None
) -> None:
    text = f"{instruction} [$0], {braced(1, len(words))};"
    inline_asm(text, ["l", *map(_letter, words)], [pointer, *words], [], guard=guard)


def _letter(word: ir.Value) -> str:
    return "f" if isinstance(word.type, ir.F32Type) else _LETTER[word.type.width]


def _order_as_integers(
    kind: str,
    memory: Memory,
    pointer: ir.Value,
    value: ir.Value,
    guard: ir.Value | None,
    state: Lowering,
    *,
    reduces: bool,
) -> ir.Value:
    """Does minimum or maximum of f32 and f64 by two guarded integer atomics, of which one acts."""
    bits = value.type.width
    integer = ir.IntegerType.get_signless(bits)
    # All bits but the sign, or all bits: the NaN that wins every later comparison of this kind.
    winner = state.constant(integer, (1 << (bits - 1)) - 1 if kind == "maxf" else -1)
    unordered = predicate_attribute("arith.cmpf", "uno")
    is_nan = create("arith.cmpf", [value, value], state.i1, predicate=unordered)
    word = create("arith.bitcast", [value], integer)
    word = select(is_nan, winner, word)
    zero = state.constant(integer, 0)
    negative = compare("slt", word, zero)
    positive = compare("sle", zero, word)
    signed, unsigned = ("max", "min") if kind == "maxf" else ("min", "max")
    names = (f"{signed}.s{bits}", f"{unsigned}.u{bits}")
    guards = (both(guard, positive), both(guard, negative))
    if reduces:
        for name, sign in zip(names, guards, strict=True):
            _red(memory.red(name), pointer, [word], sign)
        return value
    letter = _LETTER[bits]
    text = "\n".join(
        f"@${number + 4} {memory.atom(name)} $0, [$1], $2;" for number, name in enumerate(names)
    )
    constraints = ["=&" + letter, "l", letter, "0", "b", "b"]
    operands = [pointer, word, zero, *guards]
    old = inline_asm(text, constraints, operands, [integer])[0]
    return create("arith.bitcast", [old], value.type)


def _loop(
    kind: str,
    memory: Memory,
    pointer: ir.Value,
    value: ir.Value,
    guard: ir.Value | None,
    state: Lowering,
) -> ir.Value:
    """Reads, computes, and swaps until nobody else wrote in between; gives the old value."""
    integer = ir.IntegerType.get_signless(value.type.width)

    def swap_until_alone() -> list[ir.Value]:
        first = _relaxed_load(memory.scope, pointer, integer)
        loop, before, after = while_loop([first], [integer])
        with ir.InsertionPoint(before):
            seen = before.arguments[0]
            swap = memory.atom(f"cas.b{integer.width}")
            given = [[seen], [_combined(kind, seen, value)]]
            (found,) = _atom(swap, pointer, given, None, state)
            again = compare("ne", found, seen)
            ir.Operation.create("scf.condition", operands=[again, found])
        with ir.InsertionPoint(after):
            ir.Operation.create("scf.yield", operands=[after.arguments[0]])
        return list(loop.results)

    (old,) = either(guard, swap_until_alone, lambda: [state.constant(integer, 0)])
    return _as_type(old, value.type)


def _relaxed_load(scope: str, pointer: ir.Value, word: ir.Type) -> ir.Value:
    text = f"ld.relaxed.{scope}.global.b{word.width} $0, [$1];"
    return inline_asm(text, ["=" + _LETTER[word.width], "l"], [pointer], [word])[0]


def _combined(kind: str, seen: ir.Value, value: ir.Value) -> ir.Value:
    """Computes the new word."""
    if kind == "exchange":
        return _as_type(value, seen.type)
    made = create(_COMBINE[kind], [_as_type(seen, value.type), value], value.type)
    return _as_type(made, seen.type)


def _as_type(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else create("arith.bitcast", [value], type_)


RULES = {tile.AtomicRmwOp: lower_atomic_rmw, tile.AtomicCasOp: lower_atomic_cas}
