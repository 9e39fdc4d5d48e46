"""Attributes and types of `gpu_tile`: register layouts, layouts of shared and tensor memory,
buffers, barriers, rings, tensor maps, and tiles that the tensor cores still write.

IRDL gives Python no access to parameters, so they are read from the text, once a type (`kept.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar, TypeVar

from mlir import ir

from tilec.dialects.kept import kept
from tilec.dialects.types import bit_width, byte_width, element, encoding, shape
from tilec.hardware.layout import Layout, parse_layout
from tilec.hardware.shared_layout import SharedLayout, parse_shared_layout
from tilec.hardware.tensor_memory import COLUMN_BITS, TensorMemoryLayout, parse_tensor_memory_layout
from tilec.records import dataclass

IRDL = """
irdl.attribute @layout { %s = irdl.base "#builtin.string" irdl.parameters(form: %s) }
irdl.attribute @shared { %s = irdl.base "#builtin.string" irdl.parameters(form: %s) }
irdl.attribute @tmem { %s = irdl.base "#builtin.string" irdl.parameters(form: %s) }
irdl.type @buffer {
  %t = irdl.base "!builtin.tensor" %l = irdl.any irdl.parameters(tile: %t, layout: %l)
}
irdl.type @barrier
irdl.type @ring
irdl.type @tensor_map
irdl.type @pending { %t = irdl.base "!builtin.tensor" irdl.parameters(tile: %t) }
"""

BOX_ALIGNMENT = 128
"""Where a box of the copy engine may start in shared memory, in bytes (PTX ISA 9.0,
"cp.async.bulk.tensor")."""

_LAYOUT = re.compile(r'#gpu_tile\.layout<"([^"]*)">')
_PENDING = re.compile(r"!gpu_tile\.pending<(tensor<.*>)>")
_BUFFER = re.compile(r'!gpu_tile\.buffer<(tensor<[^#]*>), #gpu_tile\.shared<"([^"]*)">>')
_TENSOR_BUFFER = re.compile(r'!gpu_tile\.buffer<(tensor<[^#]*>), #gpu_tile\.tmem<"([^"]*)">>')


def layout_attr(layout: Layout) -> ir.Attribute:
    """`#gpu_tile.layout<"...">` in the current context."""
    return ir.Attribute.parse(f'#gpu_tile.layout<"{layout}">')


def layout_of(value: Any) -> Layout:
    """The layout of a tile value (or type). ValueError if it has none or it does not read."""
    return layout_in(encoding(value))


@kept
def layout_in(attribute: ir.Attribute | None) -> Layout:
    """The layout a layout attribute holds. ValueError if it is none or does not read."""
    match = _LAYOUT.fullmatch(str(attribute))
    if not match:
        raise ValueError(
            f"expected a tile with a #gpu_tile.layout, found {attribute or 'no layout'}"
        )
    return parse_layout(match[1])


def barrier_type() -> ir.Type:
    """`!gpu_tile.barrier` in the current context."""
    return ir.Type.parse("!gpu_tile.barrier")


def ring_type() -> ir.Type:
    """`!gpu_tile.ring` in the current context."""
    return ir.Type.parse("!gpu_tile.ring")


def is_ring(value: ir.Value) -> bool:
    """Whether a value is `!gpu_tile.ring`."""
    return _own(_type(value)) == "!gpu_tile.ring"


def wrong_counter(value: ir.Value) -> str | None:
    """Says why a value cannot count what arrives in slots, as it is neither mbarriers nor a ring;
    None if it can."""
    counts = _own(value.type) in ("!gpu_tile.barrier", "!gpu_tile.ring")
    return None if counts else f"'barrier' must be mbarriers or a ring, found {value.type}"


def tensor_map_type() -> ir.Type:
    """`!gpu_tile.tensor_map` in the current context."""
    return ir.Type.parse("!gpu_tile.tensor_map")


def pending_type(tile: ir.Type) -> ir.Type:
    """`!gpu_tile.pending<tile>`: registers that the tensor cores still write."""
    return ir.Type.parse(f"!gpu_tile.pending<{tile}>")


def tile_of(value: Any) -> ir.Type:
    """The tile type inside a pending value (or type). ValueError if it is none."""
    return _pending_tile(_type(value))


@kept
def _pending_tile(type_: ir.Type) -> ir.Type:
    match = _PENDING.fullmatch(str(type_))
    if not match:
        raise ValueError(f"expected a pending tile, found {type_}")
    return ir.Type.parse(match[1], type_.context)


def _type(value: Any) -> ir.Type:
    return value.type if isinstance(value, ir.Value) else value


@kept
def _own(type_: ir.Type) -> str:
    """The text of a type that may be of this dialect, which MLIR has no class for; "" for
    others."""
    return str(type_) if type(type_) is ir.Type else ""


def is_pending(value: Any) -> bool:
    """Whether a value (or type) is `!gpu_tile.pending`."""
    return _own(_type(value)).startswith("!gpu_tile.pending<")


def is_tiled(value: Any) -> bool:
    """Whether a value (or type) is a tile, or one that is on its way."""
    type_ = _type(value)
    return isinstance(type_, ir.RankedTensorType) or is_pending(type_)


def is_buffer(value: Any) -> bool:
    """Whether a value (or type) is a shared-memory buffer."""
    return _own(_type(value)).startswith("!gpu_tile.buffer<") and not is_tensor_buffer(value)


def is_tensor_buffer(value: Any) -> bool:
    """Whether a value (or type) is a buffer in tensor memory."""
    return _is_tensor_buffer(_type(value))


@kept
def _is_tensor_buffer(type_: ir.Type) -> bool:
    return _TENSOR_BUFFER.fullmatch(_own(type_)) is not None


@dataclass(frozen=True)
class _Buffer:
    """A parsed `!gpu_tile.buffer`: a tile's shape and element type under a layout of its memory.

    A leading dimension more than the layout has is the number of slots of a ring.
    """

    shape: tuple[int, ...]
    element: ir.Type
    layout: Any
    MEMORY: ClassVar[str]

    @classmethod
    def of(cls: type[_Kind], tile: Any, layout: Any) -> _Kind:
        """The buffer for a tile (or its type)."""
        return cls(shape(tile), element(tile), layout)

    @property
    def slots(self) -> int:
        """Slots of a ring, 1 for a plain buffer."""
        return self.shape[0] if len(self.shape) > len(self.layout.dims) else 1

    def slot(self: _Kind) -> _Kind:
        """The type of one slot."""
        return self.part(self.shape[len(self.shape) - len(self.layout.dims) :])

    def with_slots(self: _Kind, slots: int) -> _Kind:
        """The type of a ring of such buffers."""
        return self.part((slots, *self.shape))

    def part(self: _Kind, sizes: Sequence[int]) -> _Kind:
        """The type of a buffer of other sizes that lies in the same way, as a part of this does."""
        return replace(self, shape=tuple(sizes))

    def type(self) -> ir.Type:
        """The MLIR type in the current context."""
        tile = "x".join([*map(str, self.shape), str(self.element)])
        layout = f'#gpu_tile.{self.MEMORY}<"{self.layout}">'
        return ir.Type.parse(f"!gpu_tile.buffer<tensor<{tile}>, {layout}>")


_Kind = TypeVar("_Kind", bound=_Buffer)


@dataclass(frozen=True)
class BufferType(_Buffer):
    """A buffer in shared memory."""

    layout: SharedLayout
    MEMORY = "shared"

    @property
    def element_bytes(self) -> int:
        """Bytes one element takes; i1 takes a whole byte."""
        return byte_width(self.element)

    @property
    def tile_bytes(self) -> int:
        """Bytes of its elements alone, without what lies between them."""
        return prod(self.shape) * self.element_bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes from one slot to the next: each starts aligned, as the copy engine needs it, too."""
        used = self.layout.span * self.element_bytes
        step = max(self.alignment_bytes, BOX_ALIGNMENT)
        return -(-used // step) * step

    @property
    def size_bytes(self) -> int:
        """Bytes of shared memory the buffer takes."""
        used = self.layout.span * self.element_bytes
        if self.layout.swizzle:  # it moves bytes within units of what its lower bits reach
            unit = 1 << sum(self.layout.swizzle[:2])
            used = -(-used // unit) * unit
        return (self.slots - 1) * self.slot_bytes + used

    @property
    def alignment_bytes(self) -> int:
        """16 for vector accesses; a swizzled buffer starts where its pattern does."""
        return 1 << sum(self.layout.swizzle) if self.layout.swizzle else 16


def buffer_of(value: Any) -> BufferType:
    """The parsed type of a buffer value (or of a buffer type). ValueError if it does not read."""
    return _parsed_buffer(_type(value))


@kept
def _parsed_buffer(type_: ir.Type) -> BufferType:
    match = _BUFFER.fullmatch(str(type_))
    if not match:
        raise ValueError(f"expected a shared-memory buffer, found {type_}")
    tile = ir.RankedTensorType(ir.Type.parse(match[1], type_.context))
    return BufferType(tuple(tile.shape), tile.element_type, parse_shared_layout(match[2]))


@dataclass(frozen=True)
class TensorBuffer(_Buffer):
    """A buffer in tensor memory."""

    layout: TensorMemoryLayout
    MEMORY = "tmem"

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return bit_width(self.element)

    @property
    def slot_columns(self) -> int:
        """Columns from one slot to the next."""
        return self.layout.columns(self.bits)

    @property
    def columns(self) -> int:
        """Columns the buffer takes."""
        return self.slots * self.slot_columns


def tensor_buffer_of(value: Any) -> TensorBuffer:
    """The parsed type of a buffer in tensor memory. ValueError if it is none or does not read."""
    return _parsed_tensor_buffer(_type(value))


@kept
def _parsed_tensor_buffer(type_: ir.Type) -> TensorBuffer:
    match = _TENSOR_BUFFER.fullmatch(str(type_))
    if not match:
        raise ValueError(f"expected a buffer in tensor memory, found {type_}")
    tile = ir.RankedTensorType(ir.Type.parse(match[1], type_.context))
    layout = parse_tensor_memory_layout(match[2])
    if bit_width(tile.element_type) > COLUMN_BITS:
        raise ValueError(f"tensor memory has columns of 32 bits, found {tile.element_type}")
    return TensorBuffer(tuple(tile.shape), tile.element_type, layout)


def any_buffer_of(value: Any) -> BufferType | TensorBuffer:
    """The parsed type of a buffer in either memory. ValueError if it does not read."""
    return tensor_buffer_of(value) if is_tensor_buffer(value) else buffer_of(value)
