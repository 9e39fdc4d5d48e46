"""tcgen05.mma, .commit, .cp and fences: matrix products into tensor memory (PTX ISA 9.7.16.10).

The instruction descriptor: [4,6) D (0 f16, 1 f32, 2 s32), [7,10) A and [10,13) B format, [13] and
[14] negate, [15] and [16] MN-major, [17,23) N/8, [24,29) M/16. K is 32 bytes of A. D of M = 128
lies at (lane m, column n); of M = 64 at lane m%16 + 32*(m/16); with .ws, M = 64 at lane
m + 64*(n >= N/2), column n % (N/2), M = 32 at lane m + 32*(n / (N/4)), column n % (N/4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.descriptor import chunk_numbers, decode
from tilec.runtime.emulator.errors import EmulatorError, Place
from tilec.runtime.emulator.instruction import Address, Instruction, Vector
from tilec.runtime.emulator.mbarrier import MbarrierSite, shared_operand
from tilec.runtime.emulator.memory import lanes_of
from tilec.runtime.emulator.mma import elements
from tilec.runtime.emulator.scalar_types import TYPES
from tilec.runtime.emulator.swizzle import swizzle_chunks
from tilec.runtime.emulator.tensor_memory import emit_access, emit_alloc, emit_wait
from tilec.runtime.emulator.writer import U32, U64, Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.machine import Binding

PRED, U16 = TYPES["pred"], TYPES["u16"]
_FORMATS = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": {0: "e4m3", 1: "e5m2"},
    "i8": {0: "u8", 1: "s8"},
}
_SIZE = {"f16": 2, "tf32": 4, "f8f6f4": 1, "i8": 1}
_FENCES = {("fence::before_thread_sync",), ("fence::after_thread_sync",)}


def emit_tcgen05(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers
    if names in _FENCES:
        writer.line("pass")
    elif names[0] in ("alloc", "dealloc", "relinquish_alloc_permit"):
        emit_alloc(instruction, writer)
    elif names[0] in ("ld", "st"):
        emit_access(instruction, writer)
    elif names[0].startswith("wait::"):
        emit_wait(instruction, writer)
    elif names[0] == "mma":
        _emit_mma(instruction, writer)
    elif names[0] == "commit":
        _emit_commit(instruction, writer)
    elif names[0] == "cp":
        _emit_copy(instruction, writer)
    else:
        raise writer.unsupported(f"tcgen05.{names[0]}")


@dataclass(frozen=True)
class InstructionDescriptor:
    """Shape and types of one tcgen05.mma."""

    m: int
    n: int
    a: str
    b: str
    d: int
    negate: bool
    a_mn_major: bool
    b_mn_major: bool


def decode_instruction(value: int, kind: str, weights: bool, place: Place) -> InstructionDescriptor:
    formats = _FORMATS[kind]
    a, b = value >> 7 & 7, value >> 10 & 7
    d = value >> 4 & 3
    m, n = (value >> 24 & 31) << 4, (value >> 17 & 63) << 3
    shapes = {32, 64, 128} if weights else {64, 128}
    wrong = None
    if value & 0b1111 & ~0b1000:
        wrong = "sparsity is unsupported"
    elif a not in formats or b not in formats:
        wrong = f"operand formats {a}, {b} of kind::{kind} are unsupported"
    elif d != (2 if kind == "i8" else 1):
        wrong = f"accumulator format {d} is unsupported"
    elif m not in shapes or not 8 <= n <= 256 or n % (8 if m == 64 else 16):
        wrong = f"shape M={m} N={n} does not exist"
    if wrong:
        raise EmulatorError(f"instruction descriptor {value:#x}: {wrong}", place, "descriptor")
    return InstructionDescriptor(
        m, n, formats[a], formats[b], d, bool((value >> 13 ^ value >> 14) & 1),
        bool(value >> 15 & 1), bool(value >> 16 & 1),
    )  # fmt: skip


def _emit_mma(instruction: Instruction, writer: Writer) -> None:
    names = list(instruction.modifiers[1:])
    kind = next((name[6:] for name in names if name.startswith("kind::")), "")
    known = {"cta_group::1", f"kind::{kind}", "ws"}
    rest = {name for name in names if name not in known and not name.startswith("collector::")}
    if rest or kind not in _FORMATS:
        raise writer.unsupported("modifiers")
    operands = list(instruction.operands)
    d, a, b, description = operands[:4]
    tail = operands[4:]
    disabled = "None"
    if tail and isinstance(tail[0], Vector):
        words = [writer.broadcast(writer.read(w, U32), w) for w in tail[0].elements]
        disabled = f"({', '.join(words)},)"
        tail = tail[1:]
    if len(tail) != 1 or not isinstance(d, Address):
        raise writer.unsupported("operands")
    in_memory = isinstance(a, Address)
    left = writer.address(a, U32) if in_memory else writer.read(a, U64)
    values = [
        writer.address(d, U32),
        left,
        writer.read(b, U64),
        writer.broadcast(writer.read(description, U32), description),
        writer.broadcast(writer.read(tail[0], PRED), tail[0]),
        disabled,
        lanes_of(writer),
    ]
    product = writer.bind("mma", lambda bind: TensorProduct(bind, instruction, kind, in_memory))
    writer.line(f"{product}({', '.join(values)})")


def output_place(m: int, n: int, weights: bool) -> tuple[np.ndarray, np.ndarray]:
    """Lane and column of element (m, n) of D, relative to its address."""
    row, column = np.meshgrid(np.arange(m), np.arange(n), indexing="ij")
    if m == 128:
        return row, column
    if not weights:
        return row % 16 + 32 * (row // 16), column
    parts = 128 // m
    return row + m * (column // (n // parts)), column % (n // parts)


class TensorProduct:
    """One tcgen05.mma instruction; every running lane issues one product."""

    def __init__(
        self, binding: Binding, instruction: Instruction, kind: str, in_memory: bool
    ) -> None:
        self.machine = binding.machine
        self.instruction = instruction
        self.place = instruction.place
        self.kind = kind
        self.in_memory = in_memory
        self.weights = "ws" in instruction.modifiers
        self.k = 32 // _SIZE[kind]
        self.chunks = self.machine.shared[: self.machine.shared.size // 16 * 16].view(np.complex128)

    def __call__(
        self,
        d: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        description: np.ndarray,
        accumulate: np.ndarray,
        disabled: tuple[np.ndarray, ...] | None,
        lanes: np.ndarray,
    ) -> None:
        lanes = np.broadcast_to(lanes, d.shape).reshape(-1)
        flat = [np.asarray(value).reshape(-1) for value in (d, a, b, description, accumulate)]
        masks = None if disabled is None else [np.asarray(w).reshape(-1) for w in disabled]
        for i, lane in enumerate(lanes.tolist()):
            d_, a_, b_, text, keep = (int(value[i]) for value in flat)
            form = decode_instruction(text, self.kind, self.weights, self.place)
            off = None if masks is None else [int(word[i]) for word in masks]
            self._issue(form, d_, a_, b_, bool(keep), off, int(lane))

    def _issue(
        self, form: InstructionDescriptor, d: int, a: int, b: int, keep: bool,
        disabled: list[int] | None, lane: int,
    ) -> None:  # fmt: skip
        machine = self.machine
        cta = lane // 32 % machine.cta_count
        rows, columns = output_place(form.m, form.n, self.weights)
        rows, columns = rows + (d >> 16), columns + (d & 0xFFFF)
        if int(rows.max()) >= 128:
            raise EmulatorError("D reaches beyond lane 127", self.place, "tensor memory")
        memory = machine.tensor_memory
        memory.require(np.array(cta), columns, self.place)
        right = self._shared_chunks(b, form.n, form.b_mn_major, cta)
        left = None if self.in_memory else self._shared_chunks(a, form.m, form.a_mn_major, cta)
        if machine.checker is not None:
            parts = [right] if left is None else [left, right]
            machine.checker.tensor_product(parts, lane, self.instruction.index)
            if keep:
                machine.checker.tensor_operand(cta, rows, columns, lane, self.instruction.index)
            if left is None:
                lanes = output_place(form.m, 8, self.weights)[0] + (a >> 16)
                where = (a & 0xFFFF) + np.arange(8)
                machine.checker.tensor_operand(cta, lanes, where, lane, self.instruction.index)
            machine.checker.tensor_written(cta, rows, columns, lane, self.instruction.index)
        late = machine.async_work.late
        if late:
            memory.pending[cta, rows, columns] += 1

        def work() -> None:
            self._run(form, cta, rows, columns, a, left, right, keep, disabled)
            if late:
                memory.pending[cta, rows, columns] -= 1

        machine.async_work.submit(work)

    def _shared_chunks(self, value: int, rows: int, mn_major: bool, cta: int) -> np.ndarray:
        descriptor = decode(value, True, self.place)
        numbers = chunk_numbers(descriptor, rows, self.k, _SIZE[self.kind], mn_major)
        if int(numbers.max()) >= self.machine.launch.shared_size // 16:
            raise EmulatorError(
                f"shared memory access out of bounds: tcgen05.mma reads offset "
                f"{int(numbers.max()) * 16}", self.place, "out of bounds",
            )  # fmt: skip
        return numbers + cta * (self.machine.shared_stride // 16)

    def _matrix(self, chunks: np.ndarray, kind: str, mn_major: bool) -> np.ndarray:
        values = elements(self.chunks.take(chunks).view(np.uint32), kind)
        values = values.reshape(chunks.shape[0], -1)
        return values.T if mn_major else values

    def _run(
        self, form: InstructionDescriptor, cta: int, rows: np.ndarray, columns: np.ndarray, a: int,
        left: np.ndarray | None, right: np.ndarray, keep: bool, disabled: list[int] | None,
    ) -> None:  # fmt: skip
        words = self.machine.tensor_memory.words[cta]
        if left is None:
            lanes = output_place(form.m, 8, self.weights)[0][:, 0] + (a >> 16)
            start = a & 0xFFFF
            raw = np.ascontiguousarray(words[lanes, start : start + 8])
            x = elements(raw, form.a).reshape(form.m, -1)
        else:
            x = self._matrix(left, form.a, form.a_mn_major)
        product = x @ self._matrix(right, form.b, form.b_mn_major).T
        if form.negate:
            product = -product
        part = (rows, columns)
        if form.m == 128 and disabled is None:  # all lanes, consecutive columns: a plain block
            part = (slice(None), slice(int(columns[0, 0]), int(columns[0, -1]) + 1))
        old = words[part]
        if form.d == 2:
            total = product.astype(np.int64) + (old.view(np.int32) if keep else 0)
            new = total.astype(np.int32).view(np.uint32)
        else:
            result = product + old.view(np.float32) if keep else product
            new = np.ascontiguousarray(result, dtype=np.float32).view(np.uint32)
        if disabled is not None:
            off = np.array([disabled[r // 32] >> (r % 32) & 1 for r in range(128)], np.bool_)
            new = np.where(off[rows], old, new)
        words[part] = new


def _emit_commit(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers
    known = {
        "commit", "cta_group::1", "mbarrier::arrive::one", "shared::cluster", "shared::cta", "b64",
        "multicast::cluster",
    }  # fmt: skip
    if set(names) - known:
        raise writer.unsupported("modifiers")
    address, *rest = instruction.operands
    mask = writer.broadcast(writer.read(rest[0], U16), rest[0]) if rest else "None"
    where = _barrier_operand(writer, address, names)
    commit = writer.bind("commit", lambda b: Commit(b, instruction))
    writer.line(f"{commit}({where}, {mask}, {lanes_of(writer)})")


def _barrier_operand(writer: Writer, address: object, names: tuple[str, ...]) -> str:
    """The barrier's address may be 32-bit or generic, whatever the state space says."""
    register = getattr(getattr(address, "base", None), "bits", 64)
    spelled = names if register == 32 else ()
    return shared_operand(writer, address, spelled)  # type: ignore[arg-type]


class Commit(MbarrierSite):
    """tcgen05.commit: an arrival when the lane's earlier asynchronous work is done."""

    def __call__(
        self, address: np.ndarray, base: np.ndarray, mask: np.ndarray | None, lanes: np.ndarray
    ) -> None:
        machine = self.machine
        base = np.broadcast_to(base, address.shape)
        cells = self.cells(address, base)
        lanes = np.broadcast_to(lanes, address.shape).reshape(-1)
        for i, (cell, lane) in enumerate(zip(cells.tolist(), lanes.tolist(), strict=True)):
            targets = [cell]
            if mask is not None:
                targets = self._multicast(cell, lane, int(mask.reshape(-1)[i]))
            if machine.checker is not None:
                machine.checker.products_committed(targets, lane)

            def work(targets: list[int] = targets) -> None:
                for target in targets:
                    machine.mbarriers.arrive_late(target, self.place)

            machine.async_work.submit(work)

    def _multicast(self, cell: int, lane: int, mask: int) -> list[int]:
        size, step = self.machine.launch.cluster_size, self.machine.shared_stride // 8
        first = lane // 32 % self.machine.cta_count // size * size
        return [cell % step + (first + rank) * step for rank in range(size) if mask >> rank & 1]


_COPY_SHAPES = {"128x256b": 128, "128x128b": 128, "4x256b": 4, "64x128b": 64, "32x128b": 32}


def _emit_copy(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers[1:]
    shape = next((name for name in names if name in _COPY_SHAPES), "")
    known = {"cta_group::1", shape, "warpx2::02_13", "warpx2::01_23", "warpx4"}
    if not shape or set(names) - known:
        raise writer.unsupported("modifiers")
    destination, descriptor = instruction.operands
    copy = writer.bind("cp", lambda b: TensorMemoryCopy(b, instruction, shape))
    values = f"{writer.address(destination, U32)}, {writer.read(descriptor, U64)}"
    writer.line(f"{copy}({values}, {lanes_of(writer)})")


class TensorMemoryCopy:
    """tcgen05.cp: rows of shared memory to lanes of tensor memory, some of them to several."""

    def __init__(self, binding: Binding, instruction: Instruction, shape: str) -> None:
        self.machine = binding.machine
        self.place = instruction.place
        self.site = instruction.index
        self.rows = _COPY_SHAPES[shape]
        self.columns = int(shape.split("x")[1][:-1]) // 32
        self.targets = _copy_lanes(shape, instruction.modifiers)
        self.chunks = self.machine.shared[: self.machine.shared.size // 16 * 16].view(np.complex128)

    def __call__(self, address: np.ndarray, descriptor: np.ndarray, lanes: np.ndarray) -> None:
        machine = self.machine
        lanes = np.broadcast_to(lanes, address.shape).reshape(-1)
        for where, value, lane in zip(
            address.reshape(-1).tolist(),
            descriptor.reshape(-1).tolist(),
            lanes.tolist(),
            strict=True,
        ):
            cta = lane // 32 % machine.cta_count
            form = decode(int(value), True, self.place)
            row, part = np.meshgrid(
                np.arange(self.rows), np.arange(self.columns // 4), indexing="ij"
            )
            pitch = form.span or 16
            table = (
                row // 8 * form.stride
                + row % 8 * pitch
                + part * (16 if form.span else form.leading)
            )
            local = swizzle_chunks((form.start + table) >> 4, form.span)
            numbers = local + cta * (machine.shared_stride // 16)
            columns = (where & 0xFFFF) + np.arange(self.columns)
            machine.tensor_memory.require(np.array(cta), columns, self.place)
            if machine.checker is not None:
                machine.checker.tensor_product([numbers], lane, self.site)
                for target in self.targets:
                    machine.checker.tensor_written(cta, target[:, None], columns, lane, self.site)

            def work(
                cta: int = cta, numbers: np.ndarray = numbers, columns: np.ndarray = columns
            ) -> None:
                words = self.chunks.take(numbers).view(np.uint32).reshape(self.rows, -1)
                for target in self.targets:
                    machine.tensor_memory.words[cta, target[:, None], columns] = words

            machine.async_work.submit(work)


def _copy_lanes(shape: str, modifiers: tuple[str, ...]) -> list[np.ndarray]:
    """The lanes that receive the rows, once per copy."""
    rows = np.arange(_COPY_SHAPES[shape])
    if shape == "4x256b":
        return [rows * 32]
    if shape == "64x128b":
        if "warpx2::02_13" in modifiers:  # warps 0 and 2 get rows 0..31, 1 and 3 the others
            return [rows, rows + 64]
        return [rows % 32 + rows // 32 * 64, rows % 32 + rows // 32 * 64 + 32]
    if shape == "32x128b":
        return [rows + 32 * warp for warp in range(4)]
    return [rows]


RULES = {"tcgen05": emit_tcgen05}
