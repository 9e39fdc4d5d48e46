"""What a descriptor can beside loads and stores of rectangles becomes accesses by pointers.

Before:   tt.descriptor_reduce add, %d[%m, %n], %tile
After:    tt.atomic_rmw fadd, relaxed, gpu, %pointers, %tile, %inside

Before:   %tile = tt.descriptor_gather %d[%rows, %n]         (and tt.descriptor_scatter)
After:    %tile = tt.load %pointers, %inside, %padding       (tt.store)

Elements outside the array are left out; of a gather they are the descriptor's padding. The
descriptor has to be made in the same function, not chosen by branches.

So do loads and stores of rectangles whose array has sizes or strides that only the kernel knows, as
of a group of rows whose length memory says (FBGEMM's products of groups): no launch can describe
such an array.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.triton.blocks import block_of
from tilec.triton.descriptor_arguments import NAN_PADDING
from tilec.triton.forms import Forms
from tilec.triton.program import POINTER, Block, Function, Op, Type, Value, defining, replace_values

_NAMES = ("tt.descriptor_reduce", "tt.descriptor_gather", "tt.descriptor_scatter")
_RECTANGLES = ("tt.descriptor_load", "tt.descriptor_store")
_KINDS = ("add", "min", "max", "and", "or", "xor")


def expand_descriptor_accesses(function: Function) -> None:
    """Replaces them in a function of one block. CompileError for a descriptor that is not made
    where it can be seen."""
    forms = Forms(function)
    for block in function.blocks:
        found: dict[Value, Value] = {}
        _block(block, forms, found)
        replace_values(block, found)


def _block(block: Block, forms: Forms, found: dict[Value, Value]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            _block(region, forms, found)
        apart = op.name in _NAMES or (op.name in _RECTANGLES and _is_unknown(op, forms))
        ops += _Access(op).ops(found) if apart else [op]
    block.ops = ops
    for op in ops:
        op.block = block


def _is_unknown(op: Op, forms: Forms) -> bool:
    """Whether no launch knows the sizes or strides of a descriptor's array."""
    array = block_of(op.operands[0], forms)
    return array is not None and not all(n.is_known for n in (*array.sizes, *array.strides))


class _Access:
    """One access, as the ops that it becomes."""

    def __init__(self, op: Op) -> None:
        self.op, self.made = op, list[Op]()
        descriptor = defining(op.operands[0], "tt.make_tensor_descriptor")
        if descriptor is None:
            raise op.error("the descriptor is not followed through branches or loops")
        self.pointer, *numbers = descriptor.operands
        self.rank = len(numbers) // 2
        self.sizes, self.strides = numbers[: self.rank], numbers[self.rank :]
        self.is_nan = descriptor.attributes.get("padding", "").startswith(NAN_PADDING)

    def ops(self, found: dict[Value, Value]) -> list[Op]:
        """What stands for the access; what its result is goes into `found`."""
        op = self.op
        last = op.result if op.results else op.operands[-1]
        self.tile = last.type.shape or ()
        pointers, inside = self._places(op.operands[1 : 1 + self.rank])
        if op.name == "tt.descriptor_reduce":
            operands = [pointers, last, inside]
            words = {self._kind(last.type): "", "relaxed": "", "gpu": ""}
            self._add("tt.atomic_rmw", operands, last.type, words=words)
        elif op.name in ("tt.descriptor_scatter", "tt.descriptor_store"):
            self.made.append(Op("tt.store", [pointers, last, inside], op.location))
        else:
            padding = self._padding(last.type)
            found[last] = self._add("tt.load", [pointers, inside, padding], last.type)
        return self.made

    def _add(
        self,
        name: str,
        operands: Sequence[Value],
        kind: Type,
        *,
        text: str = "",
        words: dict[str, str] | None = None,
        attributes: dict[str, str] | None = None,
    ) -> Value:
        made = Op(name, list(operands), self.op.location, words or {}, attributes or {}, text=text)
        made.results = [Value("place", kind, made, 0)]
        self.made.append(made)
        return made.results[0]

    def _kind(self, kind: Type) -> str:
        word = next((word for word in _KINDS if word in self.op.words), None)
        if word is None:
            raise self.op.error(f"unknown kind of update: {', '.join(self.op.words)}")
        if not kind.is_integer:
            if word not in ("add", "min", "max"):
                raise self.op.error(f"{word} of {kind.element}")
            return f"f{word}"
        unsigned = "xui" in self.op.operands[0].type.element
        return f"u{word}" if unsigned and word in ("min", "max") else word

    def _padding(self, kind: Type) -> Value:
        number = "0" if kind.is_integer else "0.000000e+00"
        if self.is_nan:
            number = {"f16": "0x7E00", "bf16": "0x7FC0", "f32": "0x7FC00000"}.get(kind.element, "")
            if not number:
                raise self.op.error(f"padding of {kind.element} with NaN")
        return self._add("arith.constant", [], kind, text=f"dense<{number}> : {kind}")

    def _places(self, starts: Sequence[Value]) -> tuple[Value, Value]:
        """Pointers to the tile's elements, and which are inside the array."""
        offsets = inside = None
        for dim, start in enumerate(starts):
            index = self._index(dim, start)
            stride = self._everywhere(self._wide(self.strides[dim]))
            step = self._add("arith.muli", [index, stride], index.type)
            offsets = step if offsets is None else self._add(
                "arith.addi", [offsets, step], index.type
            )  # fmt: skip
            bound = self._everywhere(self._wide(self.sizes[dim]))
            zero = self._add("arith.constant", [], index.type, text=f"dense<0> : {index.type}")
            for word, limit in (("slt", bound), ("sge", zero)):
                flag = self._add(
                    "arith.cmpi", [index, limit], index.type.with_element("i1"), words={word: ""}
                )
                inside = flag if inside is None else self._add(
                    "arith.andi", [inside, flag], flag.type
                )  # fmt: skip
        assert offsets is not None
        assert inside is not None
        pointee = self.pointer.type.pointee
        kind = Type(f"{POINTER}{pointee}>", self.tile)
        whole = self._add("tt.splat", [self.pointer], kind)
        return self._add("tt.addptr", [whole, offsets], kind), inside

    def _index(self, dim: int, start: Value) -> Value:
        """The array's coordinate along a dimension, of every element of the tile, in 64 bits. A
        gather's first is a tile; leading dimensions that the tile does not have are a number."""
        axis = dim - (self.rank - len(self.tile))
        kind = Type("i64", self.tile)
        if axis < 0:
            return self._everywhere(self._wide(start))
        if start.type.shape is not None:
            return self._along(self._wide(start), axis)
        size = self.tile[axis]
        attributes = {"start": "0 : i32", "end": f"{size} : i32"}
        narrow = self._add("tt.make_range", [], Type("i32", (size,)), attributes=attributes)
        along = self._along(self._wide(narrow), axis)
        return self._add("arith.addi", [self._everywhere(self._wide(start)), along], kind)

    def _wide(self, value: Value) -> Value:
        kind = value.type.with_element("i64")
        return value if value.type == kind else self._add("arith.extsi", [value], kind)

    def _everywhere(self, value: Value) -> Value:
        return self._add("tt.splat", [value], Type(value.type.element, self.tile))

    def _along(self, value: Value, axis: int) -> Value:
        """A tile of one dimension along an axis of the whole one."""
        sizes = [1] * len(self.tile)
        sizes[axis] = self.tile[axis]
        for other in range(len(sizes)):
            if other != axis:
                shape = list(value.type.shape or ())
                shape.insert(other, 1)
                kind = Type(value.type.element, tuple(shape))
                attributes = {"axis": f"{other} : i32"}
                value = self._add("tt.expand_dims", [value], kind, attributes=attributes)
        kind = Type(value.type.element, self.tile)
        return self._add("tt.broadcast", [value], kind)
