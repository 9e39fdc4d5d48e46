"""Runs the lanes of a machine: groups of lanes at one instruction, lowest first, until all exit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.execution.blocks import Block, BlockCompiler, BoundBlocks
from tilec.runtime.emulator.execution.hangs import Parked, stuck_place, stuck_warps
from tilec.runtime.emulator.execution.machine import Machine
from tilec.runtime.emulator.execution.meetings import complete_lanes
from tilec.runtime.emulator.execution.pieces import Piece, pieces
from tilec.runtime.emulator.execution.polling import Polling
from tilec.runtime.emulator.instructions.barrier import CtaBarriers
from tilec.runtime.emulator.instructions.cluster import ClusterBarriers
from tilec.runtime.emulator.instructions.control import (
    begins_products,
    is_cluster_barrier,
    needs_whole_warp,
)
from tilec.runtime.emulator.reading.instruction import Instruction, Register, Symbol

_PATIENCE = 256  # blocks one group may run before another one gets a turn


class Scheduler:
    """One run of a machine from the first instruction to the exit of every lane."""

    def __init__(self, compiler: BlockCompiler, machine: Machine, blocks: BoundBlocks) -> None:
        self.compiler = compiler
        self.machine = machine
        self.blocks = blocks
        self.barriers = CtaBarriers(machine)
        self.cluster_barriers = ClusterBarriers(machine)
        self.parked: list[Parked] = []
        self.timed_out_at = -1
        self.ready: dict[int, np.ndarray] = {}
        self.held: dict[int, np.ndarray] = {}
        self.turn = 0
        self.steps = 0
        self.passes = 0
        self.polling = Polling(machine)
        self.gated: dict[int, np.ndarray] = {}
        """Lanes that wait for the launch before, by where they go on."""

    def run(self) -> Iterator[None]:
        """Runs all lanes, a block of code for some of them between two items; an item where
        nothing happens if all wait for the launch before."""
        self.add(0, ~self.machine.exited)
        while self._gate() or self.ready or self._resume():
            if self.ready:
                self._run_some()
            yield
        self.machine.async_work.finish()
        self.machine.tensor_memory.check_leaks()
        self.machine.register_budgets.check()
        if self.machine.checker is not None:
            self.machine.checker.finish()

    def _run_some(self) -> None:
        pc = self._choose()
        mask = self.ready.pop(pc)
        for piece in pieces(mask):
            self._run_piece(pc, piece)
        self.machine.async_work.tick()
        if self.parked:
            self._wake()

    def _resume(self) -> bool:
        """Nothing is ready: finish asynchronous work, let waits time out, or report a deadlock."""
        while self.machine.async_work.run_one(self._awaited()):
            self._wake()
            if self.ready:
                return True
        if self.gated:
            return True
        if self.parked and self.timed_out_at != self._progress():
            self.timed_out_at = self._progress()
            for parked in self.parked:
                self._finish_wait(parked.instruction, parked.lanes, np.False_)
            self.parked.clear()
            return True
        return self._deadlock()

    def _let_next(self, piece: Piece, after: int) -> int | None:
        """griddepcontrol.launch_dependents: the next launch may have its turn before the lanes."""
        machine, mask = self.machine, piece.mask(self.machine.shape)
        machine.launch.let_next(machine.first_cta + np.flatnonzero(mask.any((0, 2))))
        if not machine.launch.is_followed:
            return after
        self.add(after, mask)
        return None

    def _grid_wait(self, piece: Piece, after: int) -> int | None:
        """griddepcontrol.wait: lanes go on when the launch before is over."""
        launch = self.machine.launch
        launch.waits = True
        if launch.previous is not None and not launch.previous.is_over:
            mask = piece.mask(self.machine.shape)
            self.gated[after] = self.gated.get(after, False) | mask
            return None
        if self.machine.checker is not None:
            self.machine.checker.launches_waited(self._lane_numbers(piece))
        return after

    def _gate(self) -> bool:
        """Lets lanes go on whose wait for the launch before is over; False."""
        previous = self.machine.launch.previous
        if self.gated and previous is not None and previous.is_over:
            for pc, mask in self.gated.items():
                if self.machine.checker is not None:
                    self.machine.checker.launches_waited(np.flatnonzero(mask))
                self.add(pc, mask)
            self.gated.clear()
            self.passes += 1
        return False

    def _awaited(self) -> set[int]:
        """The mbarriers that lanes wait for."""
        return {cell for parked in self.parked for cell in parked.cells.tolist()}

    def _progress(self) -> int:
        """A number that changes whenever a wait may have become true."""
        return self.machine.mbarriers.progress + int(self.machine.exited.sum()) + self.passes

    def _wake(self) -> None:
        """Lanes whose mbarrier phase has completed go on with a true predicate."""
        left = []
        for parked in self.parked:
            passed = self._passed(parked.instruction, parked.lanes, parked.cells, parked.parity)
            if passed.any():
                self._finish_wait(parked.instruction, parked.lanes[passed], np.True_)
                rest = ~passed
                parked = Parked(
                    parked.instruction,
                    parked.lanes[rest],
                    parked.cells[rest],
                    parked.parity[rest],
                )
            if parked.lanes.size:
                left.append(parked)
        self.parked = left

    def _passed(
        self, instruction: Instruction, lanes: np.ndarray, cells: np.ndarray, parity: np.ndarray
    ) -> np.ndarray:
        machine = self.machine
        passed = machine.mbarriers.passed(cells, parity, instruction.place)
        if machine.checker is not None and passed.any():
            machine.checker.mbarrier_waited(cells[passed], lanes[passed], instruction)
        return passed

    def _finish_wait(self, instruction: Instruction, lanes: np.ndarray, value: np.bool_) -> None:
        self._answer(instruction, lanes, value)
        mask = np.zeros(self.machine.shape, np.bool_)
        mask.reshape(-1)[lanes] = True
        self.add(instruction.index + 1, mask)

    def _answer(self, instruction: Instruction, lanes: np.ndarray, value: np.bool_) -> None:
        """Writes a wait's predicate."""
        register = instruction.operands[0]
        assert isinstance(register, Register)
        self.machine.registers[1][register.index].reshape(-1)[lanes] = value

    def _mbarrier(
        self, instruction: Instruction, piece: Piece, values: tuple, after: int
    ) -> int | None:
        """try_wait and test_wait: lanes whose phase is still in progress are parked; in check mode
        some hear false at once, as if their time limit were over."""
        lanes = self._lane_numbers(piece).reshape(-1)
        cells, parity = (np.asarray(value).reshape(-1) for value in values[1:3])
        late = self._times_out(instruction, lanes, cells, parity)
        if late.any():
            self._finish_wait(instruction, lanes[late], np.False_)
            if late.all():
                return None
            lanes, cells, parity = lanes[~late], cells[~late], parity[~late]
        passed = self._passed(instruction, lanes, cells, parity)
        if passed.all() and not late.any():
            self._answer(instruction, lanes, np.True_)
            return after
        if passed.any():
            self._finish_wait(instruction, lanes[passed], np.True_)
        rest = ~passed
        if rest.any():
            self.parked.append(Parked(instruction, lanes[rest], cells[rest], parity[rest]))
        return None

    def _times_out(
        self, instruction: Instruction, lanes: np.ndarray, cells: np.ndarray, parity: np.ndarray
    ) -> np.ndarray:
        """Which lanes hear false at once."""
        machine = self.machine
        if machine.checker is None:
            return np.zeros(lanes.shape, np.bool_)
        passed = machine.mbarriers.passed(cells, parity, instruction.place)
        return machine.checker.times_out(cells, lanes, passed, instruction)

    def _set_registers(self, instruction: Instruction, piece: Piece, after: int) -> int | None:
        """Warps whose CTA has the registers go on, also those that have waited for them."""
        budgets = self.machine.register_budgets
        if not budgets.ask(self._lane_numbers(piece).reshape(-1), instruction):
            return after
        for warp, cta, site in budgets.granted():
            self.passes += 1
            mask = np.zeros(self.machine.shape, np.bool_)
            mask[warp, cta] = ~self.machine.exited[warp, cta]
            self.add(site.index + 1, mask)
        return None

    def _cluster_barrier(self, instruction: Instruction, piece: Piece, after: int) -> int | None:
        mask = piece.mask(self.machine.shape)
        barriers = self.cluster_barriers
        if "arrive" in instruction.modifiers:
            relaxed = "relaxed" in instruction.modifiers
            if not relaxed:
                self.machine.async_work.released(self._lane_numbers(piece))
            barriers.arrive(mask, instruction.place, relaxed)
            self._release_clusters()
            return after
        barriers.wait(after, mask, instruction.place)
        self._release_clusters()
        return None

    def _release_clusters(self) -> None:
        for pc, mask in self.cluster_barriers.released():
            self.passes += 1
            self.add(pc, mask)

    def _choose(self) -> int:
        """The lowest instruction, so that lanes meet; now and then another, so that all move."""
        self.turn += 1
        if self.polling.is_long:
            self._let_time_pass()
            return self.polling.next_turn(self.ready)
        in_turn = self.turn % _PATIENCE == 0
        return self.polling.next_turn(self.ready) if in_turn else min(self.ready)

    def _let_time_pass(self) -> None:
        """Somebody polls: asynchronous work goes on meanwhile. Without any, the launch may hang."""
        if self.polling.let_time_pass():
            self._wake()
        elif self.polling.hangs(self.ready):
            self._deadlock()

    def add(self, pc: int, mask: np.ndarray) -> None:
        """Lanes become ready at `pc`; they join those that are there or held there."""
        held = self.held.pop(pc, None)
        if held is not None:
            mask = mask | held
        present = self.ready.get(pc)
        self.ready[pc] = mask if present is None else present | mask

    def _run_piece(self, pc: int, piece: Piece, *, met: bool = False) -> None:
        """Runs a piece from `pc` on for a while; `met`: its lanes have met there."""
        machine, ready = self.machine, self.ready
        statistics = machine.launch.statistics
        ran = False
        for _ in range(_PATIENCE):
            if ran and (self.polling.is_long or (ready and pc >= min(ready))):
                break
            ran = True
            rectangle = piece.rectangle
            if not met and not (rectangle is not None and rectangle.has_groups):
                instruction = machine.entry.instructions[pc]
                whole = needs_whole_warp if rectangle is None else begins_products
                if whole(instruction) and not self._converged(pc, piece, instruction):
                    return
            met = False
            function, block = self.blocks.get(pc, rectangle)
            values = function() if rectangle is not None else function(piece.lanes)
            warps = (
                rectangle.shape[0] * rectangle.shape[1]
                if rectangle is not None
                else -(-len(piece.lanes) // 32)  # type: ignore[arg-type]
            )
            statistics.warp_instructions += warps * (block.next - block.start)
            self.steps += block.next - block.start
            if block.polls:
                self.polling.saw()
            if block.terminator is None:
                pc = block.next
                continue
            following = self._control(block, piece, values)
            if following is None:
                return
            pc = following
        self.add(pc, piece.mask(machine.shape))
        if self.steps > machine.launch.steps:
            raise self._endless(pc)

    def _converged(self, pc: int, piece: Piece, instruction: Instruction) -> bool:
        """Hold lanes back until all of their warp's member lanes stand at this instruction."""
        held = self.held.pop(pc, None)  # lanes that came earlier may complete these
        mask = piece.mask(self.machine.shape)
        mask = mask if held is None else mask | held
        ready = complete_lanes(mask, instruction, self.machine)
        if held is None and np.array_equal(ready, mask):
            return True
        late = mask & ~ready
        if late.any():
            self.held[pc] = late
        if ready.any():
            for part in pieces(ready):
                self._run_piece(pc, part, met=True)
        return False

    # -- control instructions ------------------------------------------------------------------

    def _control(self, block: Block, piece: Piece, values: tuple) -> int | None:
        """Execute the terminator; the next pc if the whole piece goes there, else None."""
        instruction = block.terminator
        assert instruction is not None
        guard = values[0]
        if guard is not None:
            count = np.count_nonzero(guard)
            if count == 0:
                return block.next
            if count != guard.size:
                return self._split(block, piece, values, guard)
        return self._execute(instruction, piece, values, block.next)

    def _split(self, block: Block, piece: Piece, values: tuple, guard: np.ndarray) -> int | None:
        """Part of the lanes take the control instruction, the others fall through."""
        shape = self.machine.shape
        lanes = self._lane_numbers(piece)
        chosen = np.array(guard)
        stays = np.zeros(shape, np.bool_)
        stays.reshape(-1)[lanes[~chosen]] = True
        self.add(block.next, stays)
        part = Piece(None, lanes[chosen])
        values = (None, *(None if v is None else np.asarray(v)[chosen] for v in values[1:]))
        instruction = block.terminator
        assert instruction is not None
        following = self._execute(instruction, part, values, block.next)
        if following is not None:
            self.add(following, part.mask(shape))
        return None

    def _lane_numbers(self, piece: Piece) -> np.ndarray:
        if piece.rectangle is not None:
            return self.machine.lane_numbers[piece.rectangle.slices]
        assert piece.lanes is not None
        return piece.lanes

    def _execute(
        self, instruction: Instruction, piece: Piece, values: tuple, after: int
    ) -> int | None:
        opcode = instruction.opcode
        if opcode == "bra":
            target = instruction.operands[0]
            assert isinstance(target, Symbol)
            return self.compiler.entry.labels[target.name]
        if opcode in ("exit", "ret"):
            return self._exit(piece)
        if opcode == "brx":
            return self._indexed_branch(instruction, piece, values[1])
        if opcode == "mbarrier":
            return self._mbarrier(instruction, piece, values, after)
        if opcode == "setmaxnreg":
            return self._set_registers(instruction, piece, after)
        if is_cluster_barrier(instruction):
            return self._cluster_barrier(instruction, piece, after)
        if opcode == "griddepcontrol":
            lets = "launch_dependents" in instruction.modifiers
            return (self._let_next if lets else self._grid_wait)(piece, after)
        if opcode == "trap":
            raise EmulatorError("the kernel executed trap", instruction.place)
        return self._barrier(instruction, piece, values, after)

    def _exit(self, piece: Piece) -> None:
        lanes = self._lane_numbers(piece)
        self.machine.exit(lanes)
        for pc, mask in self.barriers.recheck():
            self.add(pc, mask)
        self.cluster_barriers.complete()
        self._release_clusters()
        for pc in list(self.held):  # a warp may be complete now
            self.add(pc, np.zeros(self.machine.shape, np.bool_))

    def _indexed_branch(self, instruction: Instruction, piece: Piece, index: np.ndarray) -> None:
        table = instruction.operands[1]
        assert isinstance(table, Symbol)
        targets = self.compiler.targets(table.name)
        lanes = self._lane_numbers(piece)
        if int(index.max()) >= len(targets):
            raise EmulatorError("brx.idx beyond its table", instruction.place)
        for number in np.unique(index):
            mask = np.zeros(self.machine.shape, np.bool_)
            mask.reshape(-1)[lanes[index == number]] = True
            self.add(targets[int(number)], mask)

    def _barrier(
        self, instruction: Instruction, piece: Piece, values: tuple, after: int
    ) -> int | None:
        if self.machine.checker is None and self.barriers.passes_at_once(
            instruction, piece.rectangle
        ):
            self.passes += 1
            return after
        mask = piece.mask(self.machine.shape)
        order = np.argsort(self._lane_numbers(piece), axis=None)
        flat = [None if v is None else np.asarray(v).reshape(-1)[order] for v in values[1:]]
        numbers = flat[0]
        if numbers is None:
            numbers = np.zeros(int(mask.sum()), np.int64)
        predicate = flat[2] if len(flat) > 2 else None
        released = self.barriers.arrive(instruction, mask, numbers, flat[1], predicate)
        if len(released) == 1 and released[0][0] == after and np.array_equal(released[0][1], mask):
            return after
        self.passes += bool(released)
        for pc, lanes in released:
            self.add(pc, lanes)
        return None

    def _deadlock(self) -> bool:
        """Nothing is ready: fine if every lane has exited, else the launch hangs."""
        if self.machine.exited.all():
            return False
        lines = [
            "deadlock: no thread can go on",
            *stuck_warps(self, "asking again and again").lines(),
        ]
        kind = "divergence" if self.held else "deadlock"
        raise EmulatorError("\n  ".join(lines), stuck_place(self), kind)

    def _endless(self, pc: int) -> EmulatorError:
        """The step limit is reached: who still runs, and where, and who waits for what."""
        place = self.machine.entry.instructions[pc].place
        limit = self.machine.launch.steps
        head = f"no end after {limit} steps: is a loop endless? (TILEC_EMULATOR_STEPS: the limit)"
        lines = [head, *stuck_warps(self, "running on").lines()]
        return EmulatorError("\n  ".join(lines), place, "step limit")
