"""Vector accesses to global memory: packing registers into words, plain and predicated
instructions.

A predicated access is PTX text, since LLVM would branch around it; a certain one is an LLVM load or
store, which LLVM may combine and schedule. PTX ISA 9.0, "ld", "st": an access of n bytes (n = 1, 2,
4, 8, 16) needs an address that is a multiple of n; v2/v4 vectors hold 32- or 64-bit words.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.types import bit_width
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.rewriting.scalars import compare, constant, create, resized

CACHE_MODIFIERS = {
    None: ("", ""),
    "evict_first": (".L1::evict_first", ".L1::evict_first"),
    "evict_last": (".L1::evict_last", ".L1::evict_last"),
    "no_allocate": (".L1::no_allocate", ".L1::no_allocate"),
    "streaming": (".cs", ".cs"),
}
"""A cache hint as (load, store) modifiers. PTX ISA 9.0, "Cache Operators", "Cache Eviction
Priority"."""


def storage_bits(element: ir.Type, state: Lowering) -> int:
    """Bits an element takes in memory; i1 takes a byte, index the index width."""
    scalar = state.scalar_type(element)
    return max(8, bit_width(scalar))


def word_bits(bits: int, width: int) -> tuple[int, int]:
    """Gives (bits, count) of the words that carry `width` elements of `bits`: words of at most 32,
    or 64."""
    total = bits * width
    if bits == 64:
        return 64, width
    return (32, total // 32) if total >= 32 else (total, 1)


def pack(registers: Sequence[ir.Value], element: ir.Type, state: Lowering) -> Registers:
    """Packs neighbouring elements into integer words, the first in the lowest bits. Elements that
    came out of a word, or of one vector, are not put together again."""
    bits = storage_bits(element, state)
    word, count = word_bits(bits, len(registers))
    per_word = len(registers) // count
    if per_word == 1:
        return [_to_integer(r, bits) for r in registers]
    integer = ir.IntegerType.get_signless(word)
    words = []
    for first in range(0, len(registers), per_word):
        members = registers[first : first + per_word]
        whole = state.whole(members) or vector_of([_to_integer(r, bits) for r in members], state)
        words.append(whole if whole.type == integer else create("llvm.bitcast", [whole], integer))
    return words


def vector_of(members: Sequence[ir.Value], state: Lowering) -> ir.Value:
    """Values of one type as a vector."""
    type_ = ir.VectorType.get([len(members)], members[0].type)
    vector = create("llvm.mlir.undef", [], type_)
    for lane, member in enumerate(members):
        vector = create("llvm.insertelement", [vector, member, state.i32_constant(lane)], type_)
    return vector


def elements_of(vector: ir.Value, state: Lowering) -> Registers:
    """The elements of a vector."""
    kind = vector.type
    lanes = (state.i32_constant(lane) for lane in range(kind.shape[0]))
    return [create("llvm.extractelement", [vector, lane], kind.element_type) for lane in lanes]


def unpack(words: Sequence[ir.Value], element: ir.Type, width: int, state: Lowering) -> Registers:
    """The inverse of `pack`."""
    bits = storage_bits(element, state)
    per_word = width // len(words)
    scalar = state.scalar_type(element)
    if per_word == 1:
        return [_from_integer(w, scalar) for w in words]
    integer = ir.IntegerType.get_signless(bits)
    vector = ir.VectorType.get([per_word], integer)
    elements = []
    for word in words:
        lanes = create("llvm.bitcast", [word], vector)
        members = []
        for lane in range(per_word):
            value = create("llvm.extractelement", [lanes, state.i32_constant(lane)], integer)
            members.append(_from_integer(value, scalar))
        if bit_width(scalar) == bits:
            state.note_whole(members, word)
        elements += members
    return elements


def _to_integer(value: ir.Value, bits: int) -> ir.Value:
    integer = ir.IntegerType.get_signless(bits)
    if value.type == integer:
        return value
    if isinstance(value.type, ir.IntegerType):  # i1 in a byte
        return create("arith.extui", [value], integer)
    return create("arith.bitcast", [value], integer)


def _from_integer(value: ir.Value, scalar: ir.Type) -> ir.Value:
    if value.type == scalar:
        return value
    if isinstance(scalar, ir.IntegerType):
        return compare("ne", value, constant(value.type, 0))
    return create("arith.bitcast", [value], scalar)


def load_words(
    pointer: ir.Value,
    word: int,
    count: int,
    predicate: ir.Value | None,
    padding: Registers,
    hint: str | None,
) -> Registers:
    """Loads `count` words of `word` bits from global memory; they are those of `padding` where
    `predicate` is false."""
    if predicate is None and hint is None:
        return plain_load(pointer, word, count)
    integer = ir.IntegerType.get_signless(word)
    # ptxas would merge what comes into a narrower register with its other half.
    held = max(32, word)
    register = _asm_type(held)
    suffix = f".v{count}" if count > 1 else ""
    text = (
        f"ld.global{CACHE_MODIFIERS[hint][0]}{suffix}.b{word} {braced(0, count)}, [${2 * count}];"
    )
    # Ties each result to the padding, so that a lane that does not load keeps it.
    constraints = ["=" + _letter(held)] * count + [str(i) for i in range(count)] + ["l"]
    operands = [*(resized(pad, register, signed=False) for pad in padding), pointer]
    results = inline_asm(text, constraints, operands, [register] * count, guard=predicate)
    return [resized(r, integer) for r in results]


def store_words(
    pointer: ir.Value,
    words: Registers,
    predicate: ir.Value | None,
    hint: str | None,
    *,
    space: str = "global",
) -> None:
    """Stores words at a pointer into `space` ("global", "shared" or "shared::cluster") where
    `predicate` holds."""
    word = words[0].type.width
    if predicate is None and hint is None:
        plain_store(pointer, words)
        return
    register = _asm_type(word)
    count = len(words)
    suffix = f".v{count}" if count > 1 else ""
    text = f"st.{space}{CACHE_MODIFIERS[hint][1]}{suffix}.b{word} [$0], {braced(1, count)};"
    # Shared pointers are 32 bits wide (see emit_ptx).
    constraints = ["l" if space == "global" else "r"] + [_letter(word)] * count
    operands = [pointer, *(resized(w, register, signed=False) for w in words)]
    inline_asm(text, constraints, operands, [], guard=predicate)


def braced(first: int, count: int) -> str:
    """Operands of inline PTX from number `first` on, as one vector if they are several."""
    return vector_text(first, count) if count > 1 else f"${first}"


def vector_text(first: int, count: int) -> str:
    """Operands of inline PTX from number `first` on, as a vector however many they are."""
    return "{" + ", ".join(f"${number}" for number in range(first, first + count)) + "}"


def inline_asm(
    text: str,
    constraints: Sequence[str],
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type],
    *,
    pure: bool = False,
    guard: ir.Value | None = None,
) -> Registers:
    """Makes an `llvm.inline_asm`, with side effects unless `pure`; gives the results as separate
    values.

    Side effects alone keep loads in order with it in LLVM IR, but not behind: MachineSink moves a
    load into the block of its uses, past everything that is not known to write memory.
    """
    if guard is not None:
        text = f"@${len(constraints)} {text}"
        constraints, operands = [*constraints, "b"], [*operands, guard]
    clobbers = [] if pure else ["~{memory}"]
    attributes: dict[str, ir.Attribute] = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(",".join([*constraints, *clobbers])),
    }
    if not pure:
        attributes["has_side_effects"] = ir.UnitAttr.get()
    return _create_many("llvm.inline_asm", operands, results, attributes)


def asm_text(op: ir.Operation) -> str:
    """The text of an `llvm.inline_asm`; of another op none."""
    return op.attributes["asm_string"].value if op.name == "llvm.inline_asm" else ""


def issue_once(
    text: str, constraints: Sequence[str], operands: Sequence[ir.Value], state: Lowering
) -> None:
    """Runs `text` in the single thread that issues what must be issued once."""
    inline_asm(text, constraints, operands, [], guard=state.single_thread())


def call_intrinsic(
    name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type]
) -> Registers:
    """Makes an `llvm.call_intrinsic`; gives the results as separate values."""
    attributes = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    return _create_many("llvm.call_intrinsic", operands, results, attributes)


def _create_many(
    name: str,
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type],
    attributes: dict[str, ir.Attribute],
) -> Registers:
    """Makes an op and takes its result apart, as LLVM gives several results as one struct."""
    if len(results) <= 1:
        op = ir.Operation.create(
            name, results=list(results), operands=list(operands), attributes=attributes
        )
        return list(op.results)
    names = {type_: str(type_) for type_ in set(results)}
    struct = ir.Type.parse(f"!llvm.struct<({', '.join(names[type_] for type_ in results)})>")
    packed = create(name, operands, struct, **attributes)
    return [
        create("llvm.extractvalue", [packed], type_, position=ir.DenseI64ArrayAttr.get([i]))
        for i, type_ in enumerate(results)
    ]


def _letter(word: int) -> str:
    return {8: "h", 16: "h", 32: "r", 64: "l"}[word]


def _asm_type(word: int) -> ir.Type:
    """The type in which a value passes through inline PTX: a byte travels in 16 bits, since PTX has
    no 8-bit registers."""
    return ir.IntegerType.get_signless(max(word, 16))


def plain_load(pointer: ir.Value, word: int, count: int) -> Registers:
    """An unguarded LLVM load of `count` words, naturally aligned."""
    integer = ir.IntegerType.get_signless(word)
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), word * count // 8)
    if count == 1:
        return [create("llvm.load", [pointer], integer, alignment=alignment)]
    vector = ir.VectorType.get([count], integer)
    loaded = create("llvm.load", [pointer], vector, alignment=alignment)
    i32 = ir.IntegerType.get_signless(32)
    lanes = [constant(i32, lane) for lane in range(count)]
    return [create("llvm.extractelement", [loaded, lane], integer) for lane in lanes]


def plain_store(pointer: ir.Value, words: Registers) -> None:
    """An unguarded LLVM store of words, naturally aligned."""
    alignment = ir.IntegerAttr.get(
        ir.IntegerType.get_signless(64), words[0].type.width * len(words) // 8
    )
    value = words[0]
    if len(words) > 1:
        vector = ir.VectorType.get([len(words)], words[0].type)
        value = create("llvm.mlir.undef", [], vector)
        i32 = ir.IntegerType.get_signless(32)
        for lane, word in enumerate(words):
            value = create("llvm.insertelement", [value, word, constant(i32, lane)], vector)
    ir.Operation.create(
        "llvm.store", operands=[value, pointer], attributes={"alignment": alignment}
    )
