"""cp.async.bulk, cp.async.bulk.tensor and their reductions (PTX ISA 9.7.9.25.4 and .5)."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.checking.sync_checker import BulkLoad
from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.instructions.arriving import CHUNK
from tilec.runtime.emulator.instructions.bulk_form import BulkForm
from tilec.runtime.emulator.instructions.mbarrier import MbarrierSite, locate_shared
from tilec.runtime.emulator.instructions.memory import lanes_of, own_base
from tilec.runtime.emulator.memories.global_memory import ARENA_BASE, GlobalSite, Region
from tilec.runtime.emulator.memories.shared_memory import SharedSite
from tilec.runtime.emulator.memories.tensor_box import (
    box_chunks,
    box_offsets,
    combine,
    read_box,
    write_box,
)
from tilec.runtime.emulator.memories.tensor_map import TensorMap
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Vector,
)
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer

S32, U16 = TYPES["s32"], TYPES["u16"]
_OFFSETS = {3: 0xFFFF, 4: 0xFF, 5: 0x1F}


def emit_bulk(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers
    if names in (("async", "bulk", "commit_group"),):
        work = writer.bind("work", lambda b: b.machine.async_work)
        writer.line(f"{work}.commit({lanes_of(writer)})")
        _tell_checker(writer, "bulk_committed", "")
    elif names[:3] == ("async", "bulk", "wait_group"):
        (pending,) = instruction.operands
        if not isinstance(pending, Immediate) or names[3:] not in ((), ("read",)):
            raise writer.unsupported("form")
        work = writer.bind("work", lambda b: b.machine.async_work)
        writer.line(f"{work}.wait({lanes_of(writer)}, {int(pending.value)})")
        _tell_checker(writer, "bulk_waited", f", {int(pending.value)}, {'read' in names}")
    elif "prefetch" in names:
        writer.line("pass")
    elif "tensor" in names:
        _emit_tensor(instruction, writer, BulkForm(instruction, writer))
    else:
        _emit_linear(instruction, writer, BulkForm(instruction, writer))


def _tell_checker(writer: Writer, method: str, arguments: str) -> None:
    if writer.checked:
        checker = writer.bind("checker", lambda b: b.machine.checker)
        writer.line(f"{checker}.{method}({lanes_of(writer)}{arguments})")


def _coordinates(writer: Writer, address: Address, rank: int) -> str:
    if len(address.coordinates) != rank:
        raise writer.unsupported("number of coordinates")
    values = (writer.broadcast(writer.read(c, S32), c) for c in address.coordinates)
    return f"({', '.join(values)},)"


def _emit_tensor(instruction: Instruction, writer: Writer, form: BulkForm) -> None:
    operands = list(instruction.operands)
    tensor = operands[1] if form.load else operands[0]
    shared = operands[0] if form.load else operands[1]
    if not isinstance(tensor, Address):
        raise writer.unsupported("tensor operand")
    where = f"{writer.address(shared, U32)}, {own_base(writer, 'shared')}"
    plain = Address(tensor.base, tensor.offset)
    extra = "None, None"
    if form.load:
        if not form.signals:
            raise writer.unsupported("a load without an mbarrier")
        mask, behind = "None", 3 + form.im2col
        if form.multicast:
            mask = writer.broadcast(writer.read(operands[behind], U16), operands[behind])
        extra = f"{writer.address(operands[2], U32)}, {mask}"
    at = _coordinates(writer, tensor, form.rank)
    if form.im2col:
        at += f" + {_offsets(writer, operands[3], form.rank - 2)}"
    copy = writer.bind("tma", lambda b: TensorCopy(b, instruction, form))
    writer.line(f"{copy}({where}, {writer.address(plain, U64)}, {at}, {extra}, {lanes_of(writer)})")


def _offsets(writer: Writer, operand: Operand, count: int) -> str:
    """What an im2col copy adds to its positions, a vector of 16-bit numbers."""
    if not isinstance(operand, Vector) or len(operand.elements) != count:
        raise writer.unsupported("number of im2col offsets")
    values = (writer.broadcast(writer.read(c, U16), c) for c in operand.elements)
    return f"({', '.join(values)},)"


class BulkSite:
    """An instruction that fills or reads 16-byte chunks of shared memory asynchronously."""

    def __init__(self, binding: Binding, instruction: Instruction) -> None:
        self.machine = binding.machine
        self.instruction = instruction
        self.place = instruction.place
        self.shared_site = SharedSite(self.machine, 16, instruction.place)
        self.barrier_site = MbarrierSite(binding, instruction)
        self.chunks = self.machine.shared[: self.machine.shared.size // 16 * 16].view(np.complex128)

    def ctas_of_mask(self, cta: int, mask: int) -> list[int]:
        """Batch CTA numbers that a multicast mask of cluster ranks names."""
        first = cta // self.machine.launch.cluster_size * self.machine.launch.cluster_size
        return [
            first + rank for rank in range(self.machine.launch.cluster_size) if mask >> rank & 1
        ]


class _BulkCopy(BulkSite):
    def __init__(self, binding: Binding, instruction: Instruction, form: BulkForm) -> None:
        super().__init__(binding, instruction)
        self.form = form
        self.memory = self.machine.launch.memory
        self.everywhere = self.machine.launch.global_checker
        self.regions: dict[int, Region | None] = {}
        """Where the arrays of tensor maps (by id) lie."""


class TensorCopy(_BulkCopy):
    """One cp.async.bulk.tensor instruction; every running lane issues a copy of its own."""

    def __call__(
        self,
        shared: np.ndarray,
        base: np.ndarray,
        tensor: np.ndarray,
        coordinates: tuple[np.ndarray, ...],
        barrier: np.ndarray | None,
        mask: np.ndarray | None,
        lanes: np.ndarray,
    ) -> None:
        base = np.broadcast_to(base, shared.shape)
        places = locate_shared(self.shared_site, shared, base).reshape(-1)
        cells = None if barrier is None else self.barrier_site.cells(barrier, base)
        for i, lane in enumerate(np.broadcast_to(lanes, shared.shape).reshape(-1).tolist()):
            start = int(tensor.reshape(-1)[i]) - ARENA_BASE
            if not 0 <= start <= self.memory.bytes.size - 128:
                raise EmulatorError("not the address of a tensor map", self.place, "tensor map")
            raw = self.memory.bytes[start : start + 128].tobytes()
            tensor_map = self.machine.launch.tensor_maps.decode(raw, self.place)
            corner = tuple(int(c.reshape(-1)[i]) for c in coordinates)
            self._check(tensor_map, int(places[i]))
            self._check_corner(tensor_map, corner)
            if cells is not None:
                chosen = None if mask is None else int(mask.reshape(-1)[i])
                self._load(tensor_map, int(places[i]), corner, int(cells[i]), chosen, lane)
            else:
                self._store(tensor_map, int(places[i]), corner, lane)

    def _check(self, tensor_map: TensorMap, place: int) -> None:
        if len(tensor_map.dims) != self.form.rank:
            raise EmulatorError(
                f"a {len(tensor_map.dims)}-dimensional tensor map in a "
                f"{self.form.rank}-dimensional copy", self.place, "tensor map",
            )  # fmt: skip
        if (tensor_map.im2col is not None) != self.form.im2col:
            modes = ("im2col", "tiled") if self.form.im2col else ("tiled", "im2col")
            raise EmulatorError(
                f"a copy in {modes[0]} mode through a map in {modes[1]} mode", self.place,
                "tensor map",
            )  # fmt: skip
        stride = self.machine.shared_stride
        if place % stride % 128:
            raise EmulatorError(
                f"shared address {place % stride:#x} of a tensor copy is not 128-byte aligned",
                self.place, "misaligned",
            )  # fmt: skip
        if place % stride + tensor_map.span > self.machine.launch.shared_size:
            raise EmulatorError(
                f"shared memory access out of bounds: a box over {tensor_map.span} bytes at "
                f"offset {place % stride}", self.place, "out of bounds",
            )  # fmt: skip

    def _check_corner(self, tensor_map: TensorMap, corner: tuple[int, ...]) -> None:
        """The two corners at which an H200 stops with CUDA_ERROR_ILLEGAL_INSTRUCTION.

        CUDA C++ Programming Guide, "Tensor Memory Access", negative indices: a tile copied from
        shared to global memory may be out of bounds in part, but its top left corner cannot have
        negative indices. The alignment is as measured: of boxes of 1, 2 and 4-byte elements all
        whose first byte is no multiple of 16 stop, loads and stores, whatever the swizzle.
        """
        if corner[0] * tensor_map.itemsize % 16:
            raise EmulatorError(
                f"coordinates {corner}: the innermost one of a tensor copy starts at byte "
                f"{corner[0] * tensor_map.itemsize}, no multiple of 16", self.place, "misaligned",
            )  # fmt: skip
        moved, most = corner[self.form.rank :], _OFFSETS.get(self.form.rank, 0)
        if any(offset > most for offset in moved):
            raise EmulatorError(
                f"im2col offsets {moved} of a {self.form.rank}-dimensional copy are not in "
                f"0..{most}", self.place, "tensor map",
            )  # fmt: skip
        if not self.form.load and min(corner) < 0:
            raise EmulatorError(
                f"coordinates {corner}: a tensor copy to global memory cannot start before the "
                "tensor", self.place, "out of bounds",
            )  # fmt: skip

    def _chunk_numbers(self, tensor_map: TensorMap, place: int) -> np.ndarray:
        """Batch chunk numbers of the box's 16-byte chunks; the swizzle sees CTA-local addresses."""
        stride = self.machine.shared_stride
        width = tensor_map.box[0] * tensor_map.itemsize // 16
        local = box_chunks(
            place % stride // 16, tensor_map.box_bytes // 16, width, tensor_map.pitch // 16,
            tensor_map.swizzle,
        )  # fmt: skip
        return local + place // stride * (stride // 16)

    def _load(
        self, tensor_map: TensorMap, place: int, corner: tuple[int, ...], cell: int,
        mask: int | None, lane: int,
    ) -> None:  # fmt: skip
        machine, stride = self.machine, self.machine.shared_stride
        targets = [(place, cell)]
        if mask is not None:
            own = lane // 32 % machine.cta_count
            targets = []
            for cta in self.ctas_of_mask(own, mask):
                signalled = self._signalled(cta, cell * 8 // stride)
                shift = (signalled - cell * 8 // stride) * stride // 8
                targets.append((place + (cta - place // stride) * stride, cell + shift))
        numbers = [self._chunk_numbers(tensor_map, where) for where, _ in targets]
        tokens = None
        if machine.checker is not None:
            self._observe(tensor_map, corner, lane)
            if mask is not None:
                cells = np.array([signal for _, signal in targets])
                machine.checker.mbarrier_signalled(cells, lane, self.instruction)
            tokens = [machine.checker.bulk_load(n, lane, self.instruction.index) for n in numbers]
        for chunk in numbers:
            machine.arriving.begin(chunk)

        def work() -> None:
            start = self._start(tensor_map)
            rows = read_box(tensor_map, self._allocation(start), start, corner)
            for position, (chunk, (_, signal)) in enumerate(zip(numbers, targets, strict=True)):
                machine.require_running(int(chunk.flat[0]) * 16 // stride, self.place)
                self.chunks[chunk] = rows
                machine.arriving.end(chunk)
                if machine.checker is not None and tokens is not None:
                    machine.checker.bulk_loaded(tokens[position], signal)
                count = np.array([tensor_map.box_bytes])
                machine.mbarriers.complete(np.array([signal]), count, self.place)

        machine.async_work.submit_copy(work, [signal for _, signal in targets])

    def _observe(self, tensor_map: TensorMap, corner: tuple[int, ...], lane: int) -> None:
        """Tell the checker of global memory which cells of it are read or written."""
        everywhere = self.everywhere
        assert everywhere is not None
        written = everywhere.history.written and self._is_written(tensor_map)
        if self.form.load and not (written or everywhere.early):
            return
        start = self._start(tensor_map)
        granule = everywhere.shadow.granule
        stored = not self.form.load and not self.form.operation
        cells = box_offsets(tensor_map, start, corner, stored, granule) // granule
        site = self.instruction.index
        if self.form.load:
            everywhere.bulk_read(cells, lane, site)
        else:
            everywhere.bulk_written(cells, lane, site, bool(self.form.operation))

    def _is_written(self, tensor_map: TensorMap) -> bool:
        """Whether the kernel has written the array so far."""
        if id(tensor_map) not in self.regions:
            self.regions[id(tensor_map)] = self.memory.region_at(self._start(tensor_map))
        region = self.regions[id(tensor_map)]
        return region is not None and region.dirty

    def _signalled(self, cta: int, barrier_cta: int) -> int:
        """Whose mbarrier a part of a multicast signals: with cta_group::2 that of the CTA of the
        receiving pair whose rank is as even or odd as that of the named mbarrier's CTA."""
        return cta & ~1 | barrier_cta & 1 if self.form.pairs else cta

    def _start(self, tensor_map: TensorMap) -> int:
        offset = getattr(tensor_map.tensor, "byte_offset", 0)
        return self.memory.address_of(tensor_map.array) - ARENA_BASE + offset

    def _allocation(self, start: int) -> np.ndarray:
        """The memory up to the end of what lies at `start`."""
        region = self.memory.region_at(start)
        return self.memory.bytes if region is None else self.memory.bytes[: region.end]

    def _store(self, tensor_map: TensorMap, place: int, corner: tuple[int, ...], lane: int) -> None:
        numbers = self._chunk_numbers(tensor_map, place)
        checker = self.machine.checker
        if checker is not None:
            checker.bulk_store(numbers, lane, self.instruction.index)
            self._observe(tensor_map, corner, lane)
        early = self.chunks[numbers] if self.machine.arriving.touches(numbers) else None

        def work() -> None:
            start = self._start(tensor_map)
            region = self.memory.region_at(start)
            if region is not None:
                region.dirty = True
            rows = self.chunks[numbers] if early is None else early
            write_box(tensor_map, self._allocation(start), start, corner, rows, self.form.operation)

        self.machine.async_work.submit_store(lane, work)


def _emit_linear(instruction: Instruction, writer: Writer, form: BulkForm) -> None:
    destination, source, size, *rest = instruction.operands
    scalars = {"global": U64, "shared::cta": U32, "shared::cluster": U32}
    ends = ", ".join(
        writer.address(end, scalars[space])
        for end, space in ((destination, form.to), (source, form.source))
    )
    count = writer.broadcast(writer.read(size, U32), size)
    barrier, mask = "None", "None"
    if form.signals:
        barrier = writer.address(rest[0], U32)
        if form.multicast:
            mask = writer.broadcast(writer.read(rest[1], U16), rest[1])
    elif form.load:
        raise writer.unsupported("a load without an mbarrier")
    copy = writer.bind("bulk", lambda b: LinearCopy(b, instruction, form))
    base = own_base(writer, "shared")
    writer.line(f"{copy}({ends}, {count}, {barrier}, {mask}, {base}, {lanes_of(writer)})")


class LinearCopy(_BulkCopy):
    """cp.async.bulk of consecutive bytes, multiples of 16."""

    def __call__(
        self,
        destination: np.ndarray,
        source: np.ndarray,
        size: np.ndarray,
        barrier: np.ndarray | None,
        mask: np.ndarray | None,
        base: np.ndarray,
        lanes: np.ndarray,
    ) -> None:
        base = np.broadcast_to(base, size.shape)
        cells = None if barrier is None else self.barrier_site.cells(barrier, base)
        for i, lane in enumerate(np.broadcast_to(lanes, size.shape).reshape(-1).tolist()):
            count = int(size.reshape(-1)[i])
            if count % 16:
                raise EmulatorError(
                    "a bulk copy of no multiple of 16 bytes", self.place, "misaligned"
                )
            own = base.reshape(-1)[i : i + 1]
            to = self._bytes(self.form.to, destination.reshape(-1)[i : i + 1], own, count, True)
            come = self._bytes(self.form.source, source.reshape(-1)[i : i + 1], own, count, False)
            if self.form.load:
                chosen = None if mask is None else int(mask.reshape(-1)[i])
                assert cells is not None
                self._load(to, come, count, int(cells[i]), lane, chosen)
            else:
                self._store(to, come, count, lane)

    def _bytes(
        self, space: str, address: np.ndarray, base: np.ndarray, count: int, store: bool
    ) -> int:
        """First byte in the arena or in the batch's shared memory; both ends are checked."""
        if space == "global":
            site = GlobalSite(self.memory, 16, self.place, store)
            ends = np.array([address[0], address[0] + np.uint64(max(count - 16, 0))])
            return int(site.locate(ends)[0])
        last = locate_shared(self.shared_site, address + np.uint32(max(count - 16, 0)), base)
        return int(last[0]) - max(count - 16, 0)

    def _load(self, to: int, come: int, count: int, cell: int, lane: int, mask: int | None) -> None:
        machine, stride = self.machine, self.machine.shared_stride
        targets = [(to, cell)]
        if mask is not None:
            ctas = self.ctas_of_mask(lane // 32 % machine.cta_count, mask)
            targets = [
                (to % stride + cta * stride, (cell * 8 % stride + cta * stride) // 8)
                for cta in ctas
            ]
        memory = self.memory.bytes if self.form.source == "global" else machine.shared
        tokens = None
        if machine.checker is not None:
            tokens = self._observe_load(come, count, lane, [where for where, _ in targets])
        chunks = [where // CHUNK + np.arange(count // CHUNK) for where, _ in targets]
        for part in chunks:
            machine.arriving.begin(part)

        def work() -> None:
            raw = memory[come : come + count].copy()
            for position, (where, signal) in enumerate(targets):
                machine.require_running(where // stride, self.place)
                machine.shared[where : where + count] = raw
                machine.arriving.end(chunks[position])
                if machine.checker is not None and tokens is not None:
                    machine.checker.bulk_loaded(tokens[position], signal)
                machine.mbarriers.complete(np.array([signal]), np.array([count]), self.place)

        machine.async_work.submit_copy(work, [signal for _, signal in targets])

    def _observe_load(self, come: int, count: int, lane: int, targets: list[int]) -> list[BulkLoad]:
        """Tell the checkers what is read and written, in shared memory or from global memory."""
        checker, site = self.machine.checker, self.instruction.index
        assert checker is not None
        chunk = np.arange(count // 16)
        if self.form.source == "global" and self.everywhere is not None:
            cells = self.everywhere.shadow.cells(np.array([come]), count)
            self.everywhere.bulk_read(cells, lane, site)
        elif self.form.source != "global":
            checker.bulk_source(come // 16 + chunk, lane, site)
        loads = [checker.bulk_load(chunk + where // 16, lane, site) for where in targets]
        if self.form.source != "global":
            for load in loads:
                checker.bulk_sent(come // 16 + chunk, load)
        return loads

    def _store(self, to: int, come: int, count: int, lane: int) -> None:
        machine = self.machine
        chunks = come // CHUNK + np.arange(count // CHUNK)
        early = self.chunks[chunks] if machine.arriving.touches(chunks) else None
        if machine.checker is not None:
            machine.checker.bulk_store(chunks, lane, self.instruction.index)
        if self.everywhere is not None:
            cells = self.everywhere.shadow.cells(np.array([to]), count)
            reduces = bool(self.form.operation)
            self.everywhere.bulk_written(cells, lane, self.instruction.index, reduces)

        def work() -> None:
            raw = machine.shared[come : come + count]
            if early is not None:
                raw = early.view(np.uint8)
            target = self.memory.bytes[to : to + count]
            if not self.form.operation:
                target[...] = raw
                return
            assert self.form.element is not None
            dtype = self.form.element.dtype
            result = combine(self.form.operation, target.view(dtype), raw.view(dtype))
            target[...] = result.view(np.uint8)

        machine.async_work.submit_store(lane, work)
