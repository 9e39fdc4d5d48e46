"""The op-definition layer: one Python class per op.

From one class with `Operand`, `Result`, attribute and `Region` fields come the IRDL definition (the
structural verifier inside MLIR), an OpView with named accessors, `build()` with inferred result
types, and the documentation. `check()` adds the rules IRDL cannot say, with messages that name the
operand; `passes.verify_ops` runs it after every pass. MLIR 22's IRDL gives dynamic ops no traits,
no custom assembly and no optional attributes, hence the house rules: at most one variadic or
optional group, last in its list (two groups bring `operandSegmentSizes` or `resultSegmentSizes`
into the text, so only ops that nobody writes by hand have them); every attribute mandatory; what is
rare sits in one `options` dictionary. IRDL wants one type for all values of a group, unless it is
`mixed` or `each` has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar

from mlir import ir
from mlir.dialects._ods_common import _cext

from tilec.dialects.attributes import AttributeKind
from tilec.dialects.constraints import Constraint
from tilec.dialects.traits import OpTraits

_cext.globals.append_dialect_search_prefix("tilec.dialects")

NAMESPACES = ("tile.", "gpu_tile.")
"""How the names of these ops begin: cheaper to look at than an op's class."""
_CLASSES: dict[str, type[TileOp]] = {}
"""The classes of these ops by name."""


def class_of(op: ir.Operation) -> type[TileOp] | None:
    """The class of an op of these dialects, None for another's. Its name tells, of which a view
    takes ten times as long to make."""
    return _CLASSES.get(op.name)


def names_where(holds: Callable[[type[TileOp]], bool]) -> frozenset[str]:
    """The names of the ops of these dialects whose class is such."""
    return frozenset(name for name, kind in _CLASSES.items() if holds(kind))


class _Field:
    name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class _ValueField(_Field):
    """An operand or result (group). `index` is its position (or first entry); a lone group is last.

    `mixed`: a variadic group of at least one whose first value may have another type than the rest.
    `each`: up to that many values, each of its own type; the segment attribute says which are
    there.
    `segmented`: one of several groups, whose sizes the segment attribute holds.
    """

    SEGMENTS: ClassVar[str]

    def __init__(
        self,
        constraint: Constraint,
        *,
        variadic: bool = False,
        optional: bool = False,
        mixed: bool = False,
        each: int = 0,
    ) -> None:
        self.constraint = constraint
        self.variadic = variadic or each > 0
        self.each = each
        self.optional = optional
        self.mixed = mixed
        self.segmented = False
        self.index = -1

    def _select(self, op: TileOp, values: Any) -> Any:
        if self.segmented:
            sizes = list(op.operation.attributes[self.SEGMENTS])
            start = sum(sizes[: self.index])
            size = sum(sizes[self.index : self.index + self.entries])
            return list(values)[start : start + size]
        if self.variadic:
            return list(values)[self.index :]
        if self.optional:
            return values[self.index] if len(values) > self.index else None
        return values[self.index]

    @property
    def entries(self) -> int:
        """Entries in the segment attribute: a mixed group is a value and a group to IRDL."""
        return self.each or (2 if self.mixed else 1)

    def sizes(self, group: Sequence[Any]) -> list[int]:
        """The entries for a group of values."""
        if self.each:
            return [int(number < len(group)) for number in range(self.each)]
        return [1, len(group) - 1] if self.mixed else [len(group)]

    def irdl(self, bound: Callable[[str], str]) -> str:
        """`name: [variadic|optional] %constraint`; `bound` names a constraint of its own."""
        if self.each:
            return ", ".join(
                f"{self.name}_{number}: optional {bound(self.constraint.irdl)}"
                for number in range(self.each)
            )
        if self.mixed:
            first, rest = bound(self.constraint.irdl), bound(self.constraint.irdl)
            return f"{self.name}: {first}, {self.name}_rest: variadic {rest}"
        kind = "variadic " if self.variadic else "optional " if self.optional else ""
        return f"{self.name}: {kind}{bound(self.constraint.irdl)}"


class Operand(_ValueField):
    """A declared operand; `op.<name>` is the value, a list when variadic, None when absent. One
    that is there, and no list, can be set.

    `reads`, `writes`: of an array or a buffer, what the op does with the elements there.
    """

    SEGMENTS = "operandSegmentSizes"

    def __init__(
        self, constraint: Constraint, *, reads: bool = False, writes: bool = False, **group: Any
    ) -> None:
        super().__init__(constraint, **group)
        self.reads, self.writes = reads, writes

    def __get__(self, op: TileOp | None, owner: type) -> Any:
        return self if op is None else self._select(op, op.operation.operands)

    def __set__(self, op: TileOp, value: ir.Value) -> None:
        if self.variadic:
            raise AttributeError(f"{op.OPERATION_NAME}: '{self.name}' is no single operand")
        op.operation.operands[self.index] = value


class Result(_ValueField):
    """A declared result; `op.<name>` is the value, a list when variadic."""

    SEGMENTS = "resultSegmentSizes"

    def __get__(self, op: TileOp | None, owner: type) -> Any:
        return self if op is None else self._select(op, op.operation.results)


class Attribute(_Field):
    """A declared attribute; `op.<name>` is its Python value (int, str, tuple, dict ...), and can be
    set to one."""

    def __init__(self, kind: AttributeKind, *, default: Any = None) -> None:
        self.kind = kind
        self.default = default

    def __get__(self, op: TileOp | None, owner: type) -> Any:
        return self if op is None else self.kind.read(op.operation.attributes[self.name])

    def __set__(self, op: TileOp, value: Any) -> None:
        op.operation.attributes[self.name] = self.written(value)

    def written(self, value: Any) -> ir.Attribute:
        """The attribute for a Python value, or that attribute itself."""
        return value if isinstance(value, ir.Attribute) else self.kind.write(value)


class Region(_Field):
    """A declared region of one block; `op.<name>` is the block."""

    def __init__(self) -> None:
        self.index = -1

    def __get__(self, op: TileOp | None, owner: type) -> Any:
        return self if op is None else op.operation.regions[self.index].blocks[0]


class TileOp(OpTraits):
    """Base of every op of the `tile` and `gpu_tile` dialects; subclass with `name="dot"`.

    A subclass without a name is no op: ops that inherit from it have its fields before their own.
    """

    DIALECT: ClassVar[str]
    MNEMONIC: ClassVar[str] = ""
    OPERATION_NAME: ClassVar[str]
    OPERANDS: ClassVar[tuple[Operand, ...]] = ()
    READS: ClassVar[tuple[Operand, ...]] = ()
    WRITES: ClassVar[tuple[Operand, ...]] = ()
    RESULTS: ClassVar[tuple[Result, ...]] = ()
    ATTRIBUTES: ClassVar[tuple[Attribute, ...]] = ()
    REGIONS: ClassVar[tuple[Region, ...]] = ()

    def __init_subclass__(cls, *, name: str = "", **traits: Any) -> None:
        super().__init_subclass__(**traits)
        if not name:
            return
        fields = _fields(cls)
        cls.MNEMONIC = name
        cls.OPERATION_NAME = f"{cls.DIALECT}.{name}"
        cls.OPERANDS = _numbered(cls, [f for f in fields if isinstance(f, Operand)])
        cls.READS = tuple(field for field in cls.OPERANDS if field.reads)
        cls.WRITES = tuple(field for field in cls.OPERANDS if field.writes)
        cls.RESULTS = _numbered(cls, [f for f in fields if isinstance(f, Result)])
        cls.ATTRIBUTES = tuple(f for f in fields if isinstance(f, Attribute))
        cls.REGIONS = tuple(f for f in fields if isinstance(f, Region))
        for index, region in enumerate(cls.REGIONS):
            region.index = index
        _CLASSES[cls.OPERATION_NAME] = cls

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(getattr(type(self), name, None), (Operand, Attribute)):
            raise AttributeError(f"{self.OPERATION_NAME} has no '{name}' that can be set")
        super().__setattr__(name, value)

    @classmethod
    def infer_types(cls, *operands: Any, **attributes: Any) -> list[ir.Type]:
        """The result types, given operands as declared (a group as a list) and attributes."""
        raise NotImplementedError(f"{cls.OPERATION_NAME} does not infer its result types")

    @classmethod
    def takes(cls, constraint: Constraint) -> bool:
        """Whether an operand is declared by `constraint`."""
        return any(field.constraint is constraint for field in cls.OPERANDS)

    def check(self) -> str | None:
        """Says what is wrong with this op beyond its structure, or None."""
        return None

    def check_attributes(self) -> str | None:
        """The first attribute that is not of its declared kind, or None."""
        for field in self.ATTRIBUTES:
            wrong = field.kind.check(self.operation.attributes[field.name])
            if wrong:
                return f"attribute '{field.name}' {wrong}"
        return None

    @classmethod
    def build(
        cls,
        *operands: Any,
        results: Sequence[Any] | None = None,
        body: Callable[..., Sequence[ir.Value]] | None = None,
        body_types: Sequence[ir.Type] = (),
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
        **attributes: Any,
    ) -> Any:
        """Creates the op; returns its one result, the list of results, or the op if it has none.

        `operands`: one per declared operand, a group as a sequence; `results` are flat unless there
        are several groups. `attributes`: Python values or MLIR attributes; those with a default may
        be left out. `body(*arguments)` fills a region whose block takes `body_types` and returns
        the values it yields.
        """
        if results is None:
            results = cls.infer_types(*operands, **attributes) if cls.RESULTS else []
        grouped = results if len(cls.RESULTS) > 1 else [results]
        segments = _segments(cls.OPERANDS, operands) | _segments(cls.RESULTS, grouped)
        op = ir.Operation.create(
            cls.OPERATION_NAME,
            results=_flat(results),
            operands=_flat(operands),
            attributes=cls._attributes(attributes) | segments,
            regions=len(cls.REGIONS),
            loc=loc,
            ip=ip,
        )
        if body is not None:
            _fill(op, body, body_types)
        if not cls.RESULTS:
            return op.opview
        many = len(cls.RESULTS) > 1 or cls.RESULTS[0].variadic
        return list(op.results) if many else op.results[0]

    @classmethod
    def _attributes(cls, given: dict[str, Any]) -> dict[str, ir.Attribute]:
        written = {}
        for field in cls.ATTRIBUTES:
            value = given.pop(field.name, field.default)
            if value is None:
                raise TypeError(f"{cls.OPERATION_NAME}: attribute '{field.name}' is missing")
            written[field.name] = field.written(value)
        if given:
            raise TypeError(f"{cls.OPERATION_NAME} has no attribute {sorted(given)}")
        return written

    @classmethod
    def irdl(cls) -> str:
        """The `irdl.operation` text of this op."""
        lines: list[str] = []

        def bound(constraint: str) -> str:
            lines.append(f"%c{len(lines)} = {constraint}")
            return f"%c{len(lines) - 1}"

        def values(fields: Sequence[_ValueField]) -> str:
            return ", ".join(field.irdl(bound) for field in fields)

        tail = []
        if cls.OPERANDS:
            tail.append(f"irdl.operands({values(cls.OPERANDS)})")
        if cls.RESULTS:
            tail.append(f"irdl.results({values(cls.RESULTS)})")
        if cls.ATTRIBUTES:
            named = ", ".join(f'"{f.name}" = {bound("irdl.any")}' for f in cls.ATTRIBUTES)
            tail.append(f"irdl.attributes {{{named}}}")
        if cls.REGIONS:
            named = ", ".join(f"{f.name}: {bound('irdl.region with size 1')}" for f in cls.REGIONS)
            tail.append(f"irdl.regions({named})")
        body = "\n".join(lines + tail)
        return f"irdl.operation @{cls.MNEMONIC} {{\n{body}\n}}"


def _fields(cls: type[TileOp]) -> list[_Field]:
    """Lists the fields of a class: those of its bases first, as its own, since positions differ."""
    found: dict[str, _Field] = {}
    for base in reversed(cls.__mro__):
        found |= {n: copy(f) for n, f in vars(base).items() if isinstance(f, _Field)}
    for name, field in found.items():
        setattr(cls, name, field)
    return list(found.values())


def _numbered(cls: type[TileOp], fields: list[Any]) -> tuple[Any, ...]:
    groups = [f for f in fields if isinstance(f, _ValueField) and (f.variadic or f.optional)]
    segmented = len(groups) > 1 or any(f.each for f in groups)
    at = 0
    for number, field in enumerate(fields):
        field.index = at
        field.segmented = segmented
        at += field.entries if segmented else 1
        if field in groups and not segmented and number != len(fields) - 1:
            raise TypeError(f"{cls.__name__}.{field.name}: a lone group stands last")
        if segmented and not field.variadic:
            raise TypeError(f"{cls.__name__}.{field.name}: among several groups all are variadic")
    return tuple(fields)


def _flat(values: Sequence[Any]) -> list[Any]:
    """Values and groups of values in a row; absent ones are left out."""
    flat: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            flat.extend(value)
        elif value is not None:
            flat.append(value)
    return flat


def _segments(fields: Sequence[_ValueField], values: Sequence[Any]) -> dict[str, ir.Attribute]:
    """The segment attribute of several groups."""
    if not any(field.segmented for field in fields):
        return {}
    for field, group in zip(fields, values, strict=True):
        if field.each and len(group) > field.each:
            raise TypeError(f"'{field.name}' takes at most {field.each} values, found {len(group)}")
    sizes = [s for field, group in zip(fields, values, strict=True) for s in field.sizes(group)]
    return {fields[0].SEGMENTS: ir.DenseI32ArrayAttr.get(sizes)}


def _fill(
    op: ir.Operation, body: Callable[..., Sequence[ir.Value]], types: Sequence[ir.Type]
) -> None:
    block = op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block), op.location:
        yielded = body(*block.arguments)
        # gpu.yield: the one upstream terminator that is variadic and takes any parent.
        ir.Operation.create("gpu.yield", operands=list(yielded))
