"""tcgen05.mma: matrix products into tensor memory (PTX ISA 9.7.16.10).

D of M = 128 lies at (lane m, column n); of M = 64 at lane m%16 + 32*(m/16); with .ws, M = 64 at
lane m + 64*(n >= N/2), column n % (N/2), M = 32 at lane m + 32*(n / (N/4)), column n % (N/4). An
f16 accumulator is the low half of its column. With cta_group::2 each CTA of the pair holds half of
the rows of A and of B and gets the rows of its A: M = 256 as M = 128 above, M = 128 at lane
m%64 + 64*(n >= N/2), column n % (N/2).

Block scaling multiplies A and B by scale factors in tensor memory: that of row m (of B: column n)
for the s-th part of K is byte id+s of lane m%32, column m/32, in each quarter of the lanes alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.instructions.memory import lanes_of
from tilec.runtime.emulator.instructions.mma import elements
from tilec.runtime.emulator.memories.descriptor import chunk_numbers, decode
from tilec.runtime.emulator.memories.instruction_descriptor import (
    BLOCK_SCALED,
    FORMATS,
    InstructionDescriptor,
    decode_instruction,
)
from tilec.runtime.emulator.numbers import narrow_floats
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Address, Immediate, Instruction, Vector
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

PRED = TYPES["pred"]
_SIZE = {"f16": 2, "tf32": 4}
_VECTORS = {"scale_vec::1X": (1,), "scale_vec::2X": (2,), "scale_vec::4X": (4,),
            "block32": (1, 2), "block16": (4,)}  # fmt: skip


@dataclass(frozen=True)
class ProductForm:
    """What the modifiers of one tcgen05.mma say; `factors`: scale factors of a row's K."""

    kind: str
    group: int
    weights: bool
    in_memory: bool
    factors: int
    shift: int

    @property
    def size(self) -> int:
        """Bytes of an element of A where it has whole bytes, else 1."""
        return _SIZE.get(self.kind, 1)


def cta_group(names: tuple[str, ...], writer: Writer) -> int:
    groups = [name for name in names if name.startswith("cta_group::")]
    if groups not in (["cta_group::1"], ["cta_group::2"]):
        raise writer.unsupported("cta_group")
    return int(groups[0][-1])


def emit_product(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers[1:]
    kind = next((name[6:] for name in names if name.startswith("kind::")), "")
    group = cta_group(names, writer)
    known = {f"cta_group::{group}", f"kind::{kind}", "ws", "block_scale", *_VECTORS}
    rest = {name for name in names if name not in known and not name.startswith("collector::")}
    scaled = "block_scale" in names
    if rest or kind not in FORMATS or scaled != (kind in BLOCK_SCALED):
        raise writer.unsupported("modifiers")
    d, a, b, description, *tail = instruction.operands
    if not isinstance(d, Address) or ("ws" in names and (group == 2 or scaled)):
        raise writer.unsupported("operands")
    scales = ["None", "None"]
    if scaled:
        scales = [writer.address(operand, U32) for operand in tail[:2]]
        tail = tail[2:]
    disabled = "None"
    if tail and isinstance(tail[0], Vector):
        words = [writer.broadcast(writer.read(w, U32), w) for w in tail[0].elements]
        if len(words) != 4 * group:
            raise writer.unsupported("length of disable-output-lane")
        disabled = f"({', '.join(words)},)"
        tail = tail[1:]
    shift = 0
    if len(tail) == 2 and kind in ("f16", "tf32") and isinstance(tail[1], Immediate):
        shift = int(tail[1].value)
        tail = tail[:1]
    if len(tail) != 1 or not 0 <= shift <= 15:
        raise writer.unsupported("operands")
    in_memory = isinstance(a, Address)
    form = ProductForm(kind, group, "ws" in names, in_memory, _factors(names, kind, writer), shift)
    values = [
        writer.address(d, U32),
        writer.address(a, U32) if in_memory else writer.read(a, U64),
        writer.read(b, U64),
        writer.broadcast(writer.read(description, U32), description),
        writer.broadcast(writer.read(tail[0], PRED), tail[0]),
        *scales,
        disabled,
        lanes_of(writer),
    ]
    product = writer.bind("mma", lambda bind: TensorProduct(bind, instruction, form))
    writer.line(f"{product}({', '.join(values)})")


def _factors(names: tuple[str, ...], kind: str, writer: Writer) -> int:
    if kind not in BLOCK_SCALED:
        if any(name in _VECTORS for name in names):
            raise writer.unsupported("scale vector")
        return 0
    spelled = [name for name in names if name in _VECTORS]
    if not spelled:
        if kind == "mxf4nvf4":
            raise writer.unsupported("scale vector")
        return BLOCK_SCALED[kind][0]
    found = [count for count in _VECTORS[spelled[0]] if count in BLOCK_SCALED[kind]]
    if len(spelled) != 1 or len(found) != 1:
        raise writer.unsupported("scale vector")
    return found[0]


@lru_cache(maxsize=64)
def output_place(m: int, n: int, weights: bool, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Lane and column of element (m, n) of one CTA's part of D, relative to its address."""
    rows = m // group
    row, column = np.meshgrid(np.arange(rows), np.arange(n), indexing="ij")
    if rows == 128:
        return row, column
    if not weights and group == 1:
        return row % 16 + 32 * (row // 16), column
    parts = 128 // rows
    return row + rows * (column // (n // parts)), column % (n // parts)


@dataclass(frozen=True)
class Issue:
    """One product: its descriptors and addresses, as one lane of `cta` gave them."""

    form: InstructionDescriptor
    d: int
    a: int
    b: int
    keep: bool
    scales: tuple[int, int] | None
    disabled: tuple[int, ...] | None


@dataclass(frozen=True)
class Share:
    """What one CTA of the issuing pair contributes and gets."""

    cta: int
    rows: np.ndarray
    columns: np.ndarray
    left: np.ndarray | None
    right: np.ndarray
    off: tuple[int, ...] | None


class Taken(NamedTuple):
    """What one CTA contributes from shared memory, (rows, K); `left`: None in tensor memory."""

    left: np.ndarray | None
    right: np.ndarray


class TensorProduct:
    """One tcgen05.mma instruction; every running lane issues one product."""

    def __init__(self, binding: Binding, instruction: Instruction, form: ProductForm) -> None:
        self.machine: Machine = binding.machine
        self.instruction = instruction
        self.place = instruction.place
        self.form = form
        self.chunks = self.machine.shared[: self.machine.shared.size // 16 * 16].view(np.complex128)

    def __call__(
        self,
        d: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        description: np.ndarray,
        accumulate: np.ndarray,
        scale_a: np.ndarray | None,
        scale_b: np.ndarray | None,
        disabled: tuple[np.ndarray, ...] | None,
        lanes: np.ndarray,
    ) -> None:
        lanes = np.broadcast_to(lanes, d.shape).reshape(-1)
        flat = [np.asarray(value).reshape(-1) for value in (d, a, b, description, accumulate)]
        scales = None
        if scale_a is not None and scale_b is not None:
            scales = [np.asarray(value).reshape(-1) for value in (scale_a, scale_b)]
        masks = None if disabled is None else [np.asarray(w).reshape(-1) for w in disabled]
        for i, lane in enumerate(lanes.tolist()):
            d_, a_, b_, text, keep = (int(value[i]) for value in flat)
            form = decode_instruction(
                text, self.form.kind, self.form.weights, self.form.group, self.place
            )
            pair = None if scales is None else (int(scales[0][i]), int(scales[1][i]))
            off = None if masks is None else tuple(int(word[i]) for word in masks)
            self._issue(Issue(form, d_, a_, b_, bool(keep), pair, off), int(lane))

    def _issue(self, issue: Issue, lane: int) -> None:
        machine = self.machine
        shares = self._shares(issue, lane // 32 % machine.cta_count)
        if machine.checker is not None:
            self._observe(issue, shares, lane)
        late = machine.async_work.late
        memory = machine.tensor_memory
        if late:
            for share in shares:
                memory.pending[share.cta, share.rows, share.columns] += 1

        parts = [part for share in shares for part in (share.left, share.right) if part is not None]
        early = self._take(issue, shares) if machine.arriving.touches(*parts) else None

        def work() -> None:
            self._run(issue, shares, early or self._take(issue, shares))
            if late:
                for share in shares:
                    memory.pending[share.cta, share.rows, share.columns] -= 1

        machine.async_work.submit(work, lane)

    def _shares(self, issue: Issue, cta: int) -> list[Share]:
        form, group = issue.form, self.form.group
        ctas = pair_of(self.machine, cta, group, self.instruction)
        rows, columns = output_place(form.m, form.n, self.form.weights, group)
        rows, columns = rows + (issue.d >> 16), columns + (issue.d & 0xFFFF)
        if int(rows.max()) >= 128:
            raise EmulatorError("D reaches beyond lane 127", self.place, "tensor memory")
        if self.form.in_memory and group == 2 and form.m == 128:
            raise EmulatorError(
                "A in tensor memory with cta_group::2 and M=128 is unsupported", self.place
            )
        shares = []
        for number, owner in enumerate(ctas):
            self.machine.tensor_memory.require(np.array(owner), columns, self.place)
            left = None
            if not self.form.in_memory:
                left = self._shared_chunks(issue.a, form.m // group, form.a_mn_major, owner)
            right = self._shared_chunks(issue.b, form.n // group, form.b_mn_major, owner)
            off = issue.disabled
            off = None if off is None else off[4 * number : 4 * number + 4]
            shares.append(Share(owner, rows, columns, left, right, off))
        return shares

    def _observe(self, issue: Issue, shares: list[Share], lane: int) -> None:
        """Tell the checker what is read and written."""
        checker, site = self.machine.checker, self.instruction.index
        assert checker is not None
        parts = [part for share in shares for part in (share.left, share.right) if part is not None]
        checker.tensor_product(parts, lane, site)
        for share in shares:
            if issue.keep:
                checker.tensor_operand(share.cta, share.rows, share.columns, lane, site)
            if share.left is None:
                where = (issue.a & 0xFFFF) + np.arange(8)
                rows = self._left_lanes(issue)[:, None]
                checker.tensor_operand(share.cta, rows, where, lane, site)
            for rows, columns in self._scale_places(issue):
                checker.tensor_operand(share.cta, rows, columns, lane, site)
            checker.tensor_written(share.cta, share.rows, share.columns, lane, site)

    def _left_lanes(self, issue: Issue) -> np.ndarray:
        form = issue.form
        lanes = output_place(form.m, 8, self.form.weights, self.form.group)[0][:, 0]
        return lanes + (issue.a >> 16)

    def _scale_places(self, issue: Issue) -> list[tuple[np.ndarray, np.ndarray]]:
        """Lanes and columns of the scale factors of A and of B, [quarter, 1, row], [row]."""
        if issue.scales is None:
            return []
        places = []
        for address, count in zip(
            issue.scales, (issue.form.m // self.form.group, issue.form.n), strict=True
        ):
            row = np.arange(count)
            lane = row % 32 + 32 * np.arange(4)[:, None]
            # Bits 30 and 31 repeat the scale factor id.
            places.append((lane, row // 32 + (address & 0xFFFF)))
        return places

    def _shared_chunks(self, value: int, rows: int, mn_major: bool, cta: int) -> np.ndarray:
        descriptor = decode(value, True, self.place)
        columns = 32 // self.form.size
        numbers = chunk_numbers(descriptor, rows, columns, self.form.size, mn_major)
        if int(numbers.max()) >= self.machine.launch.shared_size // 16:
            raise EmulatorError(
                f"shared memory access out of bounds: tcgen05.mma reads offset "
                f"{int(numbers.max()) * 16}", self.place, "out of bounds",
            )  # fmt: skip
        return numbers + cta * (self.machine.shared_stride // 16)

    # -- the arithmetic -----------------------------------------------------------------------

    def _matrix(self, chunks: np.ndarray, kind: str, mn_major: bool) -> np.ndarray:
        """(rows, K) float32."""
        raw = self.chunks.take(chunks)
        if self.form.kind in ("mxf4", "mxf4nvf4"):
            return narrow_floats.dense_values(raw.view(np.uint8))
        if kind in narrow_floats.BITS:
            values = narrow_floats.padded_values(raw.view(np.uint8).reshape(-1, 16), kind)
        else:
            values = elements(raw.view(np.uint32), kind)
        values = values.reshape(chunks.shape[0], -1)
        return values.T if mn_major else values

    def _left_in_memory(self, issue: Issue, cta: int) -> np.ndarray:
        start = issue.a & 0xFFFF
        words = self.machine.tensor_memory.words[cta][self._left_lanes(issue), start : start + 8]
        raw = np.ascontiguousarray(words)
        if self.form.kind in ("mxf4", "mxf4nvf4"):
            return narrow_floats.dense_values(raw.view(np.uint8))
        if issue.form.a in narrow_floats.BITS:
            return narrow_floats.container_values(raw.view(np.uint8), issue.form.a)
        return elements(raw, issue.form.a).reshape(raw.shape[0], -1)

    def _take(self, issue: Issue, shares: list[Share]) -> list[Taken]:
        """What the CTAs contribute from their shared memory."""
        form = issue.form
        return [
            Taken(
                None if share.left is None else self._matrix(share.left, form.a, form.a_mn_major),
                self._matrix(share.right, form.b, form.b_mn_major),
            )
            for share in shares
        ]

    def _run(self, issue: Issue, shares: list[Share], taken: list[Taken]) -> None:
        form = issue.form
        rights = [operands.right for operands in taken]
        right = rights[0] if len(rights) == 1 else np.concatenate(rights)
        products = []
        for share, (left, _) in zip(shares, taken, strict=True):  # all is read before any write
            if left is None:
                left = self._left_in_memory(issue, share.cta)
            if issue.scales is None:
                product = left @ right.T
            else:
                product = self._scaled(issue, share.cta, left, right)
            products.append(-product if form.negate else product)
        for share, product in zip(shares, products, strict=True):
            self._accumulate(issue, share, product)

    def _scaled(self, issue: Issue, cta: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """A and B times their scale factors; every quarter of the lanes uses its own copy."""
        form, count = issue.form, self.form.factors
        words = self.machine.tensor_memory.words[cta]
        scales = []
        for (lanes, columns), first in zip(
            self._scale_places(issue), (form.a_scale_id, form.b_scale_id), strict=True
        ):
            if first + count > 4 or first % count:
                raise EmulatorError(
                    f"scale factor id {first} with {count} scale factors", self.place, "descriptor"
                )
            self.machine.tensor_memory.require(np.array(cta), columns, self.place)
            raw = np.ascontiguousarray(words[lanes, columns]).view(np.uint8)
            codes = raw.reshape(4, -1, 4)[:, :, first : first + count]
            scales.append(narrow_floats.scale_values(codes, form.scale))
        length = left.shape[1] // count
        parts = []
        for quarter in range(4):
            rows = slice(32 * quarter, 32 * quarter + 32)
            x = left[rows] * np.repeat(scales[0][quarter, rows], length, 1)
            parts.append(x @ (right * np.repeat(scales[1][quarter], length, 1)).T)
        return np.concatenate(parts)

    def _accumulate(self, issue: Issue, share: Share, product: np.ndarray) -> None:
        words = self.machine.tensor_memory.words[share.cta]
        part: tuple[object, object] = (share.rows, share.columns)
        if product.shape[0] == 128 and share.off is None:  # all lanes, consecutive columns
            first = int(share.columns[0, 0])
            part = (slice(None), slice(first, first + product.shape[1]))
        old = words[part]
        form, factor = issue.form, np.float32(2.0**-self.form.shift)
        if form.d == "s32":
            total = product.astype(np.int64) + (old.view(np.int32) if issue.keep else 0)
            new = total.astype(np.int32).view(np.uint32)
        elif form.d == "f16":
            low = np.ascontiguousarray(old).astype(np.uint16).view(np.float16)
            total = product + low.astype(np.float32) * factor if issue.keep else product
            halves = np.ascontiguousarray(total, dtype=np.float16).view(np.uint16)
            new = (old & np.uint32(0xFFFF0000)) | halves
        else:
            total = product + old.view(np.float32) * factor if issue.keep else product
            new = np.ascontiguousarray(total, dtype=np.float32).view(np.uint32)
        if share.off is not None:
            off = np.array([share.off[r // 32] >> (r % 32) & 1 for r in range(128)], np.bool_)
            new = np.where(off[share.rows], old, new)
        words[part] = new


def pair_of(machine: Machine, cta: int, group: int, instruction: Instruction) -> list[int]:
    """The CTAs of the batch that a cta_group::1 or ::2 instruction of `cta` works on."""
    if group == 1:
        return [cta]
    if machine.launch.cluster_size % 2:
        raise EmulatorError("cta_group::2 needs a cluster of CTA pairs", instruction.place)
    return [cta & ~1, cta | 1]
