"""tcgen05.cp and tcgen05.shift (PTX ISA 9.7.16.9).

cp: row r of the image in shared memory begins at (r/8)*SBO + (r%8)*(swizzle span, or 16 bytes); its
16-byte parts are LBO apart where there is no swizzle. Rows go to lanes of the same number, 4x256b
to lanes 0, 32, 64, 96; warpx2 and warpx4 give copies to several quarters of the lanes. With
cta_group::2 each CTA of the pair copies its own shared memory to its own tensor memory.

shift.down: in the 8 columns at the address, each of the 32 lanes from the address's lane on gets
what the lane before held; the first keeps its value.
"""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.instructions.memory import lanes_of
from tilec.runtime.emulator.instructions.tensor_product import cta_group, pair_of
from tilec.runtime.emulator.memories.descriptor import decode
from tilec.runtime.emulator.memories.swizzle import swizzle_chunks
from tilec.runtime.emulator.numbers import narrow_floats
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer

_SHAPES = {"128x256b": 128, "128x128b": 128, "4x256b": 4, "64x128b": 64, "32x128b": 32}
_MULTICAST = {"64x128b": ("warpx2::02_13", "warpx2::01_23"), "32x128b": ("warpx4",)}
_FORMATS = {"b6x16_p32": "e2m3", "b4x16_p64": "e2m1"}  # any 6-bit, any 4-bit format


def emit_copy(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers[1:]
    group = cta_group(names, writer)
    rest = [name for name in names if not name.startswith("cta_group::")]
    # ptxas takes shape and multicast in either order; Triton writes the latter first.
    shape = next((name for name in rest[:2] if name in _SHAPES), "")
    if not shape:
        raise writer.unsupported("shape")
    rest.remove(shape)
    multicast = rest.pop(0) if rest[:1] and rest[0].startswith("warpx") else ""
    if multicast not in _MULTICAST.get(shape, ("",)):
        raise writer.unsupported("multicast")
    packed = ""
    if rest[:1] == ["b8x16"] and len(rest) == 2 and rest[1] in _FORMATS:
        packed, rest = _FORMATS[rest[1]], []
    if rest:
        raise writer.unsupported("modifiers")
    destination, descriptor = instruction.operands
    copy = writer.bind(
        "cp", lambda b: TensorMemoryCopy(b, instruction, (shape, multicast, packed), group)
    )
    values = f"{writer.address(destination, U32)}, {writer.read(descriptor, U64)}"
    writer.line(f"{copy}({values}, {lanes_of(writer)})")


class TensorMemoryCopy:
    """tcgen05.cp: rows of shared memory to lanes of tensor memory, some of them to several."""

    def __init__(
        self, binding: Binding, instruction: Instruction, form: tuple[str, str, str], group: int
    ) -> None:
        self.machine = binding.machine
        self.instruction = instruction
        self.place = instruction.place
        shape, multicast, self.packed = form
        self.group = group
        self.rows = _SHAPES[shape]
        self.columns = int(shape.split("x")[1][:-1]) // 32
        self.targets = copy_lanes(shape, multicast)
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
            local = self._local_chunks(int(value))
            columns = (where & 0xFFFF) + np.arange(self.columns)
            ctas = pair_of(machine, lane // 32 % machine.cta_count, self.group, self.instruction)
            for cta in ctas:
                machine.tensor_memory.require(np.array(cta), columns, self.place)
                self._issue(cta, local + cta * (machine.shared_stride // 16), columns, lane)

    def _local_chunks(self, value: int) -> np.ndarray:
        """CTA-local numbers of the image's 16-byte chunks, [row, part]."""
        form = decode(value, True, self.place)
        row, part = np.meshgrid(np.arange(self.rows), np.arange(self.columns // 4), indexing="ij")
        pitch = form.span or 16
        step = 16 if form.span else form.leading
        table = row // 8 * form.stride + row % 8 * pitch + part * step
        numbers = swizzle_chunks((form.start + table) >> 4, form.span)
        if int(numbers.max()) >= self.machine.launch.shared_size // 16:
            raise EmulatorError(
                f"shared memory access out of bounds: tcgen05.cp reads offset "
                f"{int(numbers.max()) * 16}", self.place, "out of bounds",
            )  # fmt: skip
        return numbers

    def _issue(self, cta: int, numbers: np.ndarray, columns: np.ndarray, lane: int) -> None:
        machine, site = self.machine, self.instruction.index
        if machine.checker is not None:
            machine.checker.tensor_product([numbers], lane, site)
            for target in self.targets:
                machine.checker.tensor_written(cta, target[:, None], columns, lane, site)

        early = self.chunks.take(numbers) if machine.arriving.touches(numbers) else None

        def work() -> None:
            taken = self.chunks.take(numbers) if early is None else early
            raw = np.ascontiguousarray(taken).view(np.uint8)
            if self.packed:
                raw = narrow_floats.containers(raw.reshape(-1, 16), self.packed)
            words = np.ascontiguousarray(raw).view(np.uint32).reshape(self.rows, -1)
            for target in self.targets:
                machine.tensor_memory.words[cta, target[:, None], columns] = words

        machine.async_work.submit(work, lane)


def copy_lanes(shape: str, multicast: str) -> list[np.ndarray]:
    """The lanes that receive the rows, once per copy."""
    rows = np.arange(_SHAPES[shape])
    if shape == "4x256b":
        return [rows * 32]
    if shape == "64x128b":
        if multicast == "warpx2::02_13":  # warps 0 and 2 get rows 0..31, 1 and 3 the others
            return [rows, rows + 64]
        return [rows % 32 + rows // 32 * 64, rows % 32 + rows // 32 * 64 + 32]
    if shape == "32x128b":
        return [rows + 32 * warp for warp in range(4)]
    return [rows]


def emit_shift(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers[1:]
    group = cta_group(names, writer)
    if names != (f"cta_group::{group}", "down"):
        raise writer.unsupported("modifiers")
    (address,) = instruction.operands
    shift = writer.bind("shift", lambda b: TensorShift(b, instruction, group))
    writer.line(f"{shift}({writer.address(address, U32)}, {lanes_of(writer)})")


class TensorShift:
    """tcgen05.shift: 32-byte pieces of lanes move to the next lane."""

    def __init__(self, binding: Binding, instruction: Instruction, group: int) -> None:
        self.machine = binding.machine
        self.instruction = instruction
        self.group = group

    def __call__(self, address: np.ndarray, lanes: np.ndarray) -> None:
        machine, site = self.machine, self.instruction.index
        lanes = np.broadcast_to(lanes, address.shape).reshape(-1)
        for where, lane in zip(address.reshape(-1).tolist(), lanes.tolist(), strict=True):
            first, columns = where >> 16, (where & 0xFFFF) + np.arange(8)
            if first % 32:
                raise EmulatorError(
                    "tcgen05.shift from a lane that is no multiple of 32",
                    self.instruction.place, "tensor memory",
                )  # fmt: skip
            rows = first + np.arange(32)[:, None]
            for cta in pair_of(
                machine, lane // 32 % machine.cta_count, self.group, self.instruction
            ):
                machine.tensor_memory.require(np.array(cta), columns, self.instruction.place)
                if machine.checker is not None:
                    machine.checker.tensor_product([], lane, site)
                    machine.checker.tensor_operand(cta, rows, columns, lane, site)
                    machine.checker.tensor_written(cta, rows, columns, lane, site)

                def work(cta: int = cta, rows: np.ndarray = rows, at: np.ndarray = columns) -> None:
                    words = machine.tensor_memory.words[cta]
                    words[rows[1:], at] = words[rows[:-1], at]

                machine.async_work.submit(work, lane)
