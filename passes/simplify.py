"""simplify: upstream canonicalize, cse and licm, and the same for our own pure ops.

Before:   %0 = "tile.iota"() ...   %1 = "tile.iota"() ...     (equal)
          %2 = "tile.broadcast"(%x) ...  (unused)
After:    %0 = "tile.iota"() ...                              each use of %1 now uses %0

MLIR 22 treats dynamic ops as opaque: it never merges, drops or moves them. Ops marked `pure` are
merged here when name, operands, attributes, types and regions agree and one dominates the other
(same or enclosing block), dropped when unused, and moved out of loops that do not define their
operands.
A comparison with 0 of what a loop counts up from 0 on is decided: no branch stands between the loop
and what each of its iterations does.
A loop that runs once or not at all, as some write `if` in Triton, is a branch, and its counter 0:

          %n = arith.extui %c : i1 to index   scf.for %i = %c0 to %n step %c1 { work on %i }
          scf.if %c { work on %c0 }

What a loop adds the same to in each iteration, `k += 64`, follows from its variable
(`programs/inductions.py`), and tiles are loaded and stored without dimensions of 1 that nothing
else has (`programs/unit_dims.py`), but in kernels by hand.

What two neighbours come to, and both get back, is an exchange (`rewriting/pair_sums.py`).

A product added to what a loop carries, `acc += a @ b`, starts from it: `dot(a, b, acc)`. The sum
may be contracted to that as to an fma, and is made where the product is, not in registers.
Does not handle: memory accesses (never moved); loops of products that run once at most, whose
copies are a loop's.
"""

from __future__ import annotations

from mlir import ir
from mlir.passmanager import PassManager

from tilec.dialects.def_use import constant_attribute, defining_op, only_use
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.predicates import predicate_of
from tilec.dialects.tile import DotOp
from tilec.dialects.types import bit_width, is_tile
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.demands.kernels import is_explicit
from tilec.passes.programs.inductions import dissolve_inductions
from tilec.passes.programs.unit_dims import drop_unit_dims
from tilec.passes.rewriting.loops import find_loops, is_inside
from tilec.passes.rewriting.pair_sums import exchange_pair_sums
from tilec.passes.rewriting.scalars import i1_constant, is_zero
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import all_ops, blocks_in, find_ops, is_of, is_pure, ops_named

_UPSTREAM = "builtin.module(func.func(canonicalize,cse,loop-invariant-code-motion))"
_LOOPS = ("scf.for", "scf.while")
_SIGN = {"slt": False, "sge": True}
"""What `x < 0` and `x >= 0` are where no x is negative."""


@tile_pass(requires=Level.TILE, keeps=True)
def simplify(module: ir.Module, context: PassContext) -> None:
    """Folds, merges and hoists ops, and drops those without an effect."""
    _drop_unused(module)
    for dot in find_ops(module.operation, DotOp):
        _add_into(dot.opview)
    _decide_signs(module)
    exchange_pair_sums(module.operation)
    upstream = PassManager.parse(_UPSTREAM)
    upstream.run(module.operation)
    kernels = (view.operation for view in module.body.operations)
    chosen = [kernel for kernel in kernels if not is_explicit(kernel)]
    # What an inner loop adds in all is an amount of the outer one's, once it has moved out.
    while any([dissolve_inductions(loop) for kernel in chosen for loop in find_loops(kernel)]):
        upstream.run(module.operation)
    for kernel in chosen:
        drop_unit_dims(kernel)
    for loop in ops_named(module.operation, ["scf.for"]):
        _make_branch(loop)
    for function in module.body.operations:
        for block in blocks_in(function.operation):
            _simplify_block(block, {})
    _drop_unused(module)


def _decide_signs(module: ir.Module) -> None:
    """Replaces the comparisons `i >= 0` and `i < 0` of a loop's own counter by what they are."""
    for op in list(all_ops(module.operation)):
        if op.name != "arith.cmpi" or is_tile(op.results[0]):
            continue
        predicate, (counter, zero) = predicate_of(op), op.operands
        if predicate in _SIGN and constant_of(zero) == 0 and _counts_from_zero(counter):
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(i1_constant(_SIGN[predicate]))
            op.erase()


def _counts_from_zero(value: ir.Value) -> bool:
    """Whether a value is the counter of a loop that begins at 0 or above (steps are positive), or
    that counter in fewer bits, which hold it."""
    bits = None
    cast = defining_op(value, "arith.index_cast")
    if cast is not None:
        bits, value = bit_width(cast.results[0].type), cast.operands[0]
    if not isinstance(value.owner, ir.Block) or ir.BlockArgument(value).arg_number:
        return False
    loop = value.owner.owner
    first = constant_of(loop.operands[0]) if loop.name == "scf.for" else None
    return first is not None and first >= 0 and (bits is None or _fits(loop.operands[1], bits))


def _fits(number: ir.Value, bits: int) -> bool:
    """Whether an index, which is not negative, is known to fit a signed integer of so many bits."""
    cast, known = defining_op(number, "arith.index_cast"), constant_of(number)
    if cast is not None and isinstance(cast.operands[0].type, ir.IntegerType):
        return bit_width(cast.operands[0].type) <= bits
    return known is not None and known < 1 << bits - 1


def _simplify_block(block: ir.Block, available: dict[tuple, ir.Operation]) -> None:
    """Merges equal ops, hoisting first; `available`: ops of enclosing blocks by key."""
    available = dict(available)
    for view in list(block.operations):
        op = view.operation
        if op.name in _LOOPS:
            _hoist(op)
    for view in list(block.operations):
        op = view.operation
        if is_pure(op):
            key = (tuple(op.operands), _form(op, {}))
            earlier = available.get(key)
            if earlier is not None:
                replace_op(op, *earlier.results)
                continue
            available[key] = op
        elif op.name.startswith("scf."):
            for inner in blocks_in(op):
                _simplify_block(inner, available)


def _form(op: ir.Operation, numbers: dict[ir.Value, int]) -> tuple:
    """Describes an op so that two on the same operands whose descriptions are equal give the same.
    Values inside its regions are named by their order, those from outside by themselves."""
    inside = []
    for block in blocks_in(op):
        for argument in block.arguments:
            numbers[argument] = len(numbers)
        for view in block.operations:
            inner = view.operation
            used = tuple(numbers.get(operand, operand) for operand in inner.operands)
            inside.append((used, _form(inner, numbers)))
            for result in inner.results:
                numbers[result] = len(numbers)
    return (
        op.name,
        tuple(sorted((a, str(op.attributes[a])) for a in op.attributes)),
        tuple(r.type for r in op.results),
        tuple(inside),
    )


def _hoist(loop: ir.Operation) -> None:
    """Moves pure ops whose operands are defined outside a loop in front of it, inner loops
    first."""
    for block in blocks_in(loop):
        for view in list(block.operations):
            op = view.operation
            if op.name in _LOOPS:
                _hoist(op)
            elif is_pure(op) and all(_is_outside(v, loop) for v in op.operands):
                op.move_before(loop)


def _make_branch(loop: ir.Operation) -> None:
    """Makes a branch of a loop from 0 to a truth value, of which nothing is demanded."""
    lower, upper, _, *inits = loop.operands
    condition, zero = _truth_behind(upper), constant_attribute(lower)
    if condition is None or zero is None or zero.value != 0 or len(loop.attributes):
        return
    if find_ops(loop, DotOp):
        return
    types = [result.type for result in loop.results]
    with loop.location, ir.InsertionPoint(loop):
        branch = ir.Operation.create("scf.if", results=types, operands=[condition], regions=2)
    body = loop.regions[0].blocks[0]
    for argument, value in zip(body.arguments, [lower, *inits], strict=True):
        argument.replace_all_uses_with(value)
    inside = branch.regions[0].blocks.append()
    for view in list(body.operations):
        inside.append(view)
    if inits:
        with loop.location, ir.InsertionPoint(branch.regions[1].blocks.append()):
            ir.Operation.create("scf.yield", operands=inits)
    replace_op(loop, *branch.results)


def _truth_behind(value: ir.Value) -> ir.Value | None:
    """The truth value that is counted as 0 or 1, None where it is another number."""
    op = defining_op(value, "arith.extui", "arith.index_cast", "arith.index_castui")
    if op is None:
        return None
    is_one_bit = str(op.operands[0].type) == "i1" and op.name != "arith.index_cast"
    return op.operands[0] if is_one_bit else _truth_behind(op.operands[0])


def _is_outside(value: ir.Value, loop: ir.Operation) -> bool:
    return value in list(loop.results) or not is_inside(value, loop)


def _add_into(dot: DotOp) -> None:
    """Makes the sum of a product and what its loop carries the product's own."""
    use = only_use(dot.result)
    if use is None or not is_zero(dot.acc):
        return
    add, number = use.owner.operation, use.operand_number
    if add.block != dot.operation.block or add.name not in ("arith.addf", "arith.addi"):
        return
    if add.name == "arith.addf" and not _may_contract(add):
        return
    other = add.operands[1 - number]
    if _is_carried(other, add.block):
        dot.operation.move_before(add)
        dot.acc = other
        replace_op(add, dot.result)


def _may_contract(op: ir.Operation) -> bool:
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    return "contract" in flags or "fast>" in flags


def _is_carried(value: ir.Value, block: ir.Block) -> bool:
    """Whether a tile is what a loop's body `block` carries, a sum on from it, or a multiple."""
    op = defining_op(value)
    if op is None:
        return value.owner == block and block.owner.name in _LOOPS
    if op.block != block:
        return False
    if is_of(op, DotOp):
        return _is_carried(op.opview.acc, block)
    same = [operand for operand in op.operands if operand.type == value.type]
    return is_elementwise(op) and any(_is_carried(operand, block) for operand in same)


def _drop_unused(module: ir.Module) -> None:
    for op in reversed(list(filter(is_pure, all_ops(module.operation)))):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()
