"""wgmma: matrix products of a warpgroup from shared memory (PTX ISA 9.7.15).

D register i of lane l in warp w of the group: row 16*w + l/4 + 8*((i/2)%2), column 8*(i/4) +
2*(l%4) + i%2. A in registers: each warp holds its 16 rows as a mma.sync m16 fragment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.checking.register_checker import registers_of
from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.instructions.mma import elements, fragment
from tilec.runtime.emulator.memories.descriptor import chunk_numbers, decode
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Register, Vector
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

PRED = TYPES["pred"]
_K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
_SIZE = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
_RESULTS = {"f16": {"f16", "f32"}, "bf16": {"f32"}, "tf32": {"f32"}, "e4m3": {"f16", "f32"},
            "e5m2": {"f16", "f32"}, "s8": {"s32"}, "u8": {"s32"}}  # fmt: skip
_FAMILIES = [{"f16"}, {"bf16"}, {"tf32"}, {"e4m3", "e5m2"}, {"s8", "u8"}]


@dataclass(frozen=True)
class WgmmaForm:
    """Shape, types and immediates of one wgmma.mma_async."""

    n: int
    k: int
    d: str
    a: str
    b: str
    a_in_registers: bool
    negate_a: bool
    negate_b: bool
    transpose_a: bool
    transpose_b: bool
    saturate: bool


def emit_wgmma(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers
    if names == ("fence", "sync", "aligned"):
        _emit_group(writer, "fence", "")
    elif names == ("commit_group", "sync", "aligned"):
        _emit_group(writer, "commit", "")
    elif names == ("wait_group", "sync", "aligned"):
        (pending,) = instruction.operands
        if not isinstance(pending, Immediate):
            raise writer.unsupported("operand")
        _emit_group(writer, "wait", f", {int(pending.value)}")
    elif names[:3] == ("mma_async", "sync", "aligned"):
        _emit_mma(instruction, writer)
    else:
        raise writer.unsupported("modifiers")


def _warp_numbers(writer: Writer) -> str:
    if writer.lanes:
        return "WI"
    writer.factories["warp_numbers"] = lambda b: b.lane_numbers.reshape(-1, 32)[:, 0] >> 5
    return "warp_numbers"


def _emit_group(writer: Writer, method: str, arguments: str) -> None:
    writer.begin_warps()
    groups = writer.bind("groups", lambda b: b.machine.products)
    writer.line(f"{groups}.{method}({_warp_numbers(writer)}{arguments})")


def _parse(instruction: Instruction, writer: Writer) -> WgmmaForm:
    names = list(instruction.modifiers[3:])
    shape = names.pop(0)
    saturate = names[-1:] == ["satfinite"]
    if saturate:
        names.pop()
    if len(names) != 3 or names[1] not in _K or not shape.startswith("m64n"):
        raise writer.unsupported("shape or types")
    d, a, b = names
    n, k = (int(part) for part in shape[4:].split("k"))
    if k != _K[a] or n % 8 or not 8 <= n <= 256 or d not in _RESULTS[a]:
        raise writer.unsupported("shape or types")
    if not any({a, b} <= family for family in _FAMILIES):
        raise writer.unsupported("operand types")
    rest = instruction.operands[4:]
    if any(not isinstance(operand, Immediate) for operand in rest):
        raise writer.unsupported("operands")
    values = [int(operand.value) for operand in rest if isinstance(operand, Immediate)]
    in_registers = isinstance(instruction.operands[1], Vector)
    signs = values[:2] if a not in ("s8", "u8") else [1, 1]
    turns = values[2:] if a in ("f16", "bf16") else []
    wanted = 0 if a in ("s8", "u8") else 2 + (0 if a not in ("f16", "bf16") else 2 - in_registers)
    if len(values) != wanted or any(sign not in (1, -1) for sign in signs):
        raise writer.unsupported("immediates")
    turn_a = bool(turns[0]) if turns and not in_registers else False
    turn_b = bool(turns[-1]) if turns else False
    return WgmmaForm(
        n, k, d, a, b, in_registers, signs[0] < 0, signs[1] < 0, turn_a, turn_b, saturate
    )


def _emit_mma(instruction: Instruction, writer: Writer) -> None:
    form = _parse(instruction, writer)
    destination, a, b, scale = instruction.operands[:4]
    registers = destination.elements if isinstance(destination, Vector) else ()
    if len(registers) != form.n // (4 if form.d == "f16" else 2):
        raise writer.unsupported("accumulator length")
    indices = [r.index for r in registers if isinstance(r, Register) and r.bits == 32]
    if len(indices) != len(registers):
        raise writer.unsupported("accumulator registers")
    writer.begin_warps()
    flag = writer.broadcast(writer.read(scale, PRED), scale) if not writer.lanes else "None"
    if writer.lanes:
        flag = writer.read_warps(scale, PRED)
    if form.a_in_registers:
        assert isinstance(a, Vector)
        left = f"({', '.join(writer.read_warps(r, U32) for r in a.elements)},)"
    else:
        left = writer.read_warps(a, U64)
    name = writer.bind("wgmma", lambda b_: Wgmma(b_, instruction, form, indices))
    writer.line(
        f"{name}({left}, {writer.read_warps(b, U64)}, {flag}.reshape(-1, 32), "
        f"{_warp_numbers(writer)})"
    )


class ProductGroups:
    """Commit groups of wgmma per warp; in late mode products happen when they are waited for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.reset()

    def reset(self) -> None:
        warps = self.machine.warp_count * self.machine.cta_count
        self.committed = np.zeros(warps, np.int64)
        self.pending: list[tuple[np.ndarray, int, Product]] = []

    def submit(self, warps: np.ndarray, product: Product) -> None:
        if self.machine.mode != "late":
            product.run()
            return
        earlier = [entry for entry in self.pending if product.overlaps(entry[2])]
        ends = [entry[2] for entry in earlier if entry[2].follower is None]
        if all(product.continues(end) for end in ends):
            for end in ends:
                end.follower = product  # its result goes on without passing the registers
                product.chained = True
        else:  # some of their warps come alone: each goes on from the one before it
            for entry in earlier:
                entry[2].run()
            self.pending = [kept for kept in self.pending if not product.overlaps(kept[2])]
        product.poison()
        self.pending.append((warps.copy(), int(self.committed[warps[0]]) + 1, product))

    def fence(self, warps: np.ndarray) -> None:
        if self.machine.register_checker is not None:
            self.machine.register_checker.fence(warps)

    def commit(self, warps: np.ndarray) -> None:
        self.committed[warps] += 1

    def wait(self, warps: np.ndarray, pending: int) -> None:
        if self.machine.checker is not None:
            self.machine.checker.products_waited(warps, self.committed[warps] - pending)
        if self.machine.register_checker is not None:
            self.machine.register_checker.wait(warps, self.committed[warps] - pending)
        waiting = set(np.asarray(warps).tolist())
        left = []
        for owners, group, product in self.pending:
            done = group <= self.committed[owners[0]] - pending
            if done and waiting.intersection(owners.tolist()):
                product.run()
            else:
                left.append((owners, group, product))
        self.pending = left


class Wgmma:
    """One wgmma.mma_async instruction bound to a machine."""

    def __init__(
        self, binding: Binding, instruction: Instruction, form: WgmmaForm, indices: list[int]
    ) -> None:
        self.machine = binding.machine
        self.instruction = instruction
        self.form = form
        self.indices = np.array(indices)
        self.index_list, self.index_set = indices, frozenset(indices)
        self.left_indices = np.array([r.index for r in registers_of(instruction.operands[1])])
        if not form.a_in_registers:
            self.left_indices = self.left_indices[:0]
        first = indices[0]
        consecutive = indices == list(range(first, first + len(indices)))
        rows = self.machine.registers[32]
        flat = rows.reshape(rows.shape[0], -1, 32)
        self.block = flat[first : first + len(indices)] if consecutive else None
        self.flat = flat
        self.chunks = self.machine.shared[: self.machine.shared.size // 16 * 16].view(np.complex128)

    def __call__(
        self,
        a: np.ndarray | tuple[np.ndarray, ...],
        b: np.ndarray,
        scale: np.ndarray,
        warps: np.ndarray,
    ) -> None:
        ctas = self.machine.cta_count
        warp, cta = warps // ctas, warps % ctas
        order = np.lexsort((warp, cta))
        if order.size % 4 or (warp[order][::4] % 4).any():
            raise EmulatorError(
                "wgmma outside a whole warpgroup", self.instruction.place, "divergence"
            )
        leaders = order[::4]
        product = Product(
            self,
            warps[order],
            tuple(r[order] for r in a) if isinstance(a, tuple) else a[leaders, 0],
            b[leaders, 0],
            scale[leaders, 0].copy(),
        )
        product.observe()
        registers = self.machine.register_checker
        if registers is not None:
            group = self.machine.products.committed[warps[order]] + 1
            site = self.instruction.index
            registers.issue(warps[order], group, self.indices, self.left_indices, site)
        self.machine.products.submit(warps[order], product)

    def read_accumulator(self, warps: np.ndarray) -> np.ndarray:
        """(registers, warps, 32) words."""
        if self.block is not None:
            return self.block[:, warps]
        return self.flat[self.indices[:, None], warps]

    def write_accumulator(self, warps: np.ndarray, words: np.ndarray) -> None:
        if self.block is not None:
            self.block[:, warps] = words
        else:
            self.flat[self.indices[:, None], warps] = words


class Product:
    """The work of one wgmma for the warpgroups of a batch; operands were copied at issue."""

    def __init__(
        self,
        owner: Wgmma,
        warps: np.ndarray,
        a: np.ndarray | tuple[np.ndarray, ...],
        b: np.ndarray,
        scale: np.ndarray,
    ) -> None:
        self.owner = owner
        self.warps = warps
        self.warp_set = frozenset(warps.tolist())
        self.a = a
        self.b = b
        self.scale = scale
        self.saved: np.ndarray | None = None
        self.chained = False
        self.follower: Product | None = None
        self.early: tuple[np.ndarray, np.ndarray] | None = None

    def overlaps(self, earlier: Product) -> bool:
        """Do both products write some register of some warp?"""
        mine, others = self.owner.index_set, earlier.owner.index_set
        return not (mine.isdisjoint(others) or self.warp_set.isdisjoint(earlier.warp_set))

    def continues(self, earlier: Product) -> bool:
        """Does this product accumulate onto exactly the result of the earlier one?"""
        same = self.owner.index_list == earlier.owner.index_list
        return same and np.array_equal(self.warps, earlier.warps)

    def poison(self) -> None:
        """Until they are waited for, the accumulators hold nothing usable; keep the old values.
        Operands that have not arrived are taken now (`arriving`)."""
        if isinstance(self.a, tuple):
            self.a = tuple(r.copy() for r in self.a)
        if self.owner.machine.arriving.touches(*self.chunks):
            self.early = self._operands()
        words = self.owner.read_accumulator(self.warps).copy()
        if not self.chained:
            self.saved = words
        self.owner.write_accumulator(self.warps, np.full_like(words, 0xFFFFFFFF))

    @cached_property
    def chunks(self) -> list[np.ndarray]:
        """The chunks of the batch's shared memory that it reads, of B and of A, per group."""
        form = self.owner.form
        parts = [self._chunk_numbers(self.b, form.n, form.b, form.transpose_b)]
        if not isinstance(self.a, tuple):
            parts.append(self._chunk_numbers(self.a, 64, form.a, form.transpose_a))
        return parts

    def _chunk_numbers(
        self, descriptors: np.ndarray, rows: int, kind: str, mn_major: bool
    ) -> np.ndarray:
        owner, form = self.owner, self.owner.form
        size = _SIZE[kind]
        ctas = self.warps[::4] % owner.machine.cta_count
        base = ctas * (owner.machine.shared_stride // 16)
        numbers = []
        for value in descriptors.tolist():
            descriptor = decode(value, False, owner.instruction.place)
            numbers.append(chunk_numbers(descriptor, rows, form.k, size, mn_major))
        local = np.stack(numbers)
        limit = owner.machine.launch.shared_size // 16
        if int(local.max()) >= limit:
            raise EmulatorError(
                f"shared memory access out of bounds: wgmma reads offset {int(local.max()) * 16}",
                owner.instruction.place, "out of bounds",
            )  # fmt: skip
        return local + base[:, None, None]

    def _values(self, chunks: np.ndarray, kind: str, mn_major: bool) -> np.ndarray:
        """(groups, rows, k)."""
        words = self.owner.chunks.take(chunks).view(np.uint32)
        values = elements(words, kind).reshape(chunks.shape[0], chunks.shape[1], -1)
        return values.transpose(0, 2, 1) if mn_major else values

    def observe(self) -> None:
        """Tell the checker which chunks of shared memory are read."""
        checker = self.owner.machine.checker
        if checker is None:
            return
        if self.owner.form.a_in_registers:
            checker.fragments_taken(self.warps)
        groups = self.owner.machine.products.committed[self.warps[::4]] + 1
        for chunks in self.chunks:
            checker.product_reads(chunks, self.warps[::4], groups, self.owner.instruction.index)

    def _operands(self) -> tuple[np.ndarray, np.ndarray]:
        """The values of A and B, (groups, rows, k)."""
        form = self.owner.form
        right = self._values(self.chunks[0], form.b, form.transpose_b)
        if isinstance(self.a, tuple):
            left = fragment(self.a, form.a, "A", 16, 8, form.k).reshape(-1, 64, form.k)
        else:
            left = self._values(self.chunks[1], form.a, form.transpose_a)
        return left, right

    def run(self) -> None:
        owner, form = self.owner, self.owner.form
        left, right = self.early or self._operands()
        product = np.matmul(left, right.transpose(0, 2, 1))
        if form.negate_a != form.negate_b:
            product = -product
        words = self.saved
        if words is None:
            words = owner.read_accumulator(self.warps)
        result = self._accumulate(product, words)
        if self.follower is not None:
            self.follower.saved = result
        else:
            owner.write_accumulator(self.warps, result)

    def _accumulate(self, product: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Words of D: the product (groups, 64, N) in register order, plus the old value."""
        form = self.owner.form
        groups = product.shape[0]
        # row = 16w + 8h + g, column = 8j + 2t + e  ->  register (j, h, e), lane (g, t)
        split = product.reshape(groups, 4, 2, 8, form.n // 8, 4, 2)
        ordered = split.transpose(4, 2, 6, 0, 1, 3, 5).reshape(form.n // 2, groups * 4, 32)
        keep = np.repeat(self.scale, 4)[None, :, None]
        if form.d == "f32":
            old = words.view(np.float32)
            return (ordered + np.where(keep, old, np.float32(0))).view(np.uint32)
        if form.d == "s32":
            total = ordered.astype(np.int64) + np.where(keep, words.view(np.int32), 0)
            if form.saturate:
                total = total.clip(-(2**31), 2**31 - 1)
            return total.astype(np.int32).view(np.uint32)
        pairs = np.ascontiguousarray(words)[..., None].view(np.float16)
        old = np.where(keep[..., None], pairs, np.float16(0)).astype(np.float32)
        new = ordered.reshape(-1, 2, *ordered.shape[1:]).transpose(0, 2, 3, 1)
        return np.ascontiguousarray((new + old).astype(np.float16)).view(np.uint32)[..., 0]


RULES = {"wgmma": emit_wgmma}
