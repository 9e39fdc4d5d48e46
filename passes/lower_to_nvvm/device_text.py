"""C strings in a kernel's module, and calls of the driver's device functions."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.messages.diagnostics import InternalError
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import create


def enclosing(op: ir.Operation, name: str) -> ir.Operation:
    """The nearest op around `op` with that name."""
    at: ir.Operation | None = op
    while at is not None and at.name != name:
        at = at.parent
    if at is None:
        raise InternalError(f"'{op.name}' lies outside of any {name}")
    return at


def text_pointer(op: ir.Operation, text: str) -> ir.Value:
    """Makes a generic pointer to `text`, kept once per module as a zero-terminated constant."""
    module = enclosing(op, "builtin.module").regions[0].blocks[0]
    value = ir.StringAttr.get(text + "\0")
    texts = [each.operation for each in module.operations if each.operation.name == _GLOBAL]
    found = next(
        (t for t in texts if "value" in t.attributes and t.attributes["value"] == value), None
    )
    if found is None:
        # No kernel's name has a `$`.
        found = _create_text(module, f"text${len(texts)}", value, len(text.encode()) + 1)
    name = ir.FlatSymbolRefAttr.get(ir.StringAttr(found.attributes["sym_name"]).value)
    pointer = create("llvm.mlir.addressof", [], ir.Type.parse("!llvm.ptr<1>"), global_name=name)
    return create("llvm.addrspacecast", [pointer], ir.Type.parse("!llvm.ptr"))


_GLOBAL = "llvm.mlir.global"


def _create_text(module: ir.Block, name: str, value: ir.Attribute, size: int) -> ir.Operation:
    return ir.Operation.create(
        _GLOBAL,
        attributes={
            "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{size} x i8>")),
            "sym_name": ir.StringAttr.get(name),
            "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
            "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1),
            "constant": ir.UnitAttr.get(),
            "value": value,
        },
        regions=1,
        ip=ir.InsertionPoint.at_block_begin(module),
        loc=ir.Location.unknown(),
    )


def call(
    op: ir.Operation, callee: str, operands: Sequence[ir.Value], result: ir.Type | None = None
) -> None:
    """Calls a function the CUDA driver links in, declaring it once; its result is dropped.

    CompileError where the kernel has that name: it would be called itself.
    """
    if ir.StringAttr(enclosing(op, "func.func").attributes["sym_name"]).value == callee:
        raise error_at(
            op, f"a kernel that is called '{callee}' cannot call the driver's '{callee}'"
        )
    module = enclosing(op, "builtin.module").regions[0].blocks[0]
    declared = any(
        each.operation.name == "llvm.func"
        and ir.StringAttr(each.operation.attributes["sym_name"]).value == callee
        for each in module.operations
    )
    if not declared:
        types = ", ".join(str(operand.type) for operand in operands)
        signature = ir.Type.parse(f"!llvm.func<{result or 'void'} ({types})>")
        ir.Operation.create(
            "llvm.func",
            attributes={
                "sym_name": ir.StringAttr.get(callee),
                "function_type": ir.TypeAttr.get(signature),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
            },
            regions=1,
            ip=ir.InsertionPoint.at_block_begin(module),
            loc=ir.Location.unknown(),
        )
    ir.Operation.create(
        "llvm.call",
        results=[] if result is None else [result],
        operands=list(operands),
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(callee),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
            "TailCallKind": ir.Attribute.parse("#llvm.tailcallkind<none>"),
        },
    )
