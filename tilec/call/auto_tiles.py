"""Ranks the tiles that `tl.auto` constants may span, for calls of one class of sizes.

The usual tiles (`auto_constants.py`) are one candidate; the others have sides around theirs. Each
is built to tile level once, and what it does there is counted for the class's sizes
(`tilec.costs`): programs and rounds of them, steps of loops, products, bytes, what threads compute
between products, slots of rings. Another candidate takes the usual one's place where it is
predicted to be faster by more than the model is trusted with, `Rates.gain`. Behind the first come
all others, the fastest first, for where lowering shows that it spills or starves
(`tilec/compile/fitting.py`), each with many sums a thread by twice as many warps, too; last, the
usual tiles halved until they fit.

Loops along rows that one tile holds get that tile (`short_rows.py`), in front of all others; where
none is longer in any launch, and several walk along them or CTAs share each, up to what a cluster
keeps. So do elementwise tiles with sides as short as what they cover (`covered_sides.py`). Tiles
that loops load, but along rows alone, have many shapes (`streamed_sides.py`), ranked with their
warps: what is known to be good stays where others promise too little, `StreamRates.gain`.

Columns between powers of two (96, 160, 192, 224) are tried last, with the rows of the fastest,
where columns are loaded as they are: they can bring the number of programs below that of
multiprocessors, and must promise more than the model errs, `Rates.between_gain`.

Where the least of these sides is longer than what it covers (a batch of 8 tokens, weights for 16
outputs), those of single warps are candidates, too: 16 or 32 rows in place of 64 load and multiply
less for nothing.

Each candidate whose loop CTAs can sum in parts (pass split-sums) is ranked with its programs whole,
in up to 16 parts of a cluster, and in as many as fill the device, which meet in memory, where so
many CTAs run at once; parts must promise more than the model errs, `Rates.parts_gain`.

Each is ranked by itself or in clusters of two, which load together what they share (pass
share-copies), whichever is faster: rows that begin inside of lines may ask too much of L2. Where
they begin at multiples of 16 bytes the first of all takes 1.079 times as long as the fastest (75
products); with a cluster for the first tile alone 1.095.

Where sizes are unknown the usual tiles come first; unknown sizes count as `UNKNOWN_SIZE` then.
Tiles for which a static assertion of the kernel fails are no candidates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from math import prod
from typing import Any

from mlir import ir

from tilec.call.auto_constants import NARROW_SIDES, AutoConstants
from tilec.call.call_class import CallClass, any_class, size_class
from tilec.call.covered_sides import covered_lengths, covering, covering_reasons
from tilec.call.more_warps import with_more_warps
from tilec.call.ranked_tiles import Ranked, by_engine, parts_of, rank, rank_stream
from tilec.call.short_rows import FEW_EACH, LONGEST_OF_FEW, ctas_of_few
from tilec.call.specialization import Specialization
from tilec.call.streamed_sides import PROMISING, shapes, sizes
from tilec.call.tile_choice import Constants, Point, Tiles, label_of, tiles_of
from tilec.compile.row_walks import keeps_row
from tilec.costs.kernel_work import ProgramWork, read_program
from tilec.costs.launch_work import launch_work, ruled_sizes
from tilec.costs.machine import Machine, usual_machine
from tilec.costs.work import Work
from tilec.dialects.context import lent_context
from tilec.hardware.target import Target
from tilec.messages.diagnostics import CompileError
from tilec.terms.tile_sizes import LEAST_DEEP_SLOTS

MOST_TILES = 24
"""Each is built and read, in 5 to 40 ms, when a kernel is compiled for the first time."""
DEEPENED = 3
"""Tiles, the fastest by prediction, that are ranked with twice the k, too: 64 x 64 x 128 took 0.63
to 1.00 of the time of 64 x 64 x 64 (12 products of few programs, H200)."""
BETWEEN = 2
"""Tiles, the fastest by prediction, whose rows are tried with columns between powers of two: four
others each. Not timed with more."""
SHOWN = 6
"""Predictions that the report shows."""

Build = Callable[..., ir.Module]
Context = Callable[[], ir.Context]
"""Takes MLIR's context where something is built."""


class AutoTiles:
    """The candidates of one kernel, specialised but for the class of sizes.

    `build(values, reasons, context)`: its tile-level module with these values of the constants;
    with `held=`, loops along these axes go round once.
    `has_grid`: whether it has a rule for the grid; without one the usual tiles come first, then
    halved ones.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        wanted: Specialization,
        build: Build,
        target: Target,
        *,
        has_grid: bool,
    ) -> None:
        self._usual = AutoConstants(fn, wanted.parameters, dict(wanted.constants), target)
        self._parameters = wanted.parameters
        self._build = build
        self._has_grid = has_grid
        self._target = target
        self._programs: dict[Constants, ProgramWork | None] = {}
        self._last: tuple[CallClass | None, list[Tiles]] | None = None

    def choice(self, call: CallClass | None, number: int) -> Tiles | None:
        """The candidate to take when `number` others were tried; None where that were all."""
        if number == 0 and call is None and not self._usual.is_limited:
            return Tiles(tuple(self._usual.values.items()), self._usual.reasons)
        order = self.order(call)
        return order[number] if number < len(order) else None

    def order(self, call: CallClass | None) -> list[Tiles]:
        """Lists all candidates, the one to take first in front."""
        if self._last is None or self._last[0] != call:
            with ExitStack() as loans:  # one for all that are built here
                context = functools.cache(lambda: loans.enter_context(lent_context()))
                self._last = (call, self._ordered(call, context))
        return self._last[1]

    def _ordered(self, call: CallClass | None, context: Context) -> list[Tiles]:
        machine = usual_machine(self._target)
        predicted = self._predicted(call or any_class(self._parameters, machine), context)
        usual = (tuple(self._usual.values.items()), 1)
        # The usual tiles are known to be good: others must promise more than the model errs.
        gain = machine.rates.gain if call is not None else float("inf")
        cost = {x: self._doubt(x, machine) * found.us for x, found in predicted.items()}
        unable = float("inf") if predicted and call is not None else 0.0
        if self._can_be(usual[0], context):
            cost[usual] = cost.get(usual, unable) / gain
        others = (tiles for tiles in self._halved() if (tiles.chosen, 1) not in cost)
        halved = [tiles for tiles in others if self._can_be(tiles.chosen, context)]
        if not cost:
            return halved or [Tiles(usual[0], self._usual.reasons)]  # which says what it cannot be
        first, *rest = sorted(cost, key=lambda point: cost[point])
        why = self._reasons(first, predicted if call is not None else {})
        whys = [why, *(self._others_reasons(point, first) for point in rest)]
        points = [first, *rest]
        by = (predicted.get(point) if call is not None else None for point in points)
        holds = (call is not None and self._holds_rows(point, call) for point in points)
        ranked = [tiles_of(*one) for one in zip(points, whys, by, holds, strict=True)]
        ranked = [*with_more_warps(ranked, self._programs), *halved]
        ahead = (self._whole, self._short, self._covered)
        found = [] if call is None else [find(call, context) for find in ahead]
        return [*(tiles for tiles in found if tiles is not None), *ranked]

    def _whole(self, call: CallClass, context: Context) -> Tiles | None:
        """The tile that keeps a whole row, where that spares reading it again, or CTAs share it."""
        found = self._usual.whole_row(call) if self._has_grid and call.is_most else None
        if found is None:
            return None
        values, reasons, held, is_read_again = found
        program = self._program(tuple(values.items()), context)
        if program is None or program.rule is None:
            return None
        programs = launch_work(program, call.arguments(self._parameters)).work.programs
        few = ctas_of_few(programs, held, call, is_read_again=is_read_again)
        if not few:
            return None
        module = self._build(values, {}, context(), held=held, few=few)
        tiles = Tiles(tuple(values.items()), reasons, holds_rows=True, held=held, few=few)
        return tiles if keeps_row(module, self._target) else None

    def _covered(self, call: CallClass, context: Context) -> Tiles | None:
        """The usual elementwise tile with sides as short as what they cover; None where it has."""
        usual = self._usual.covering if self._has_grid else {}
        if self._usual.walked(call, tuple(usual)) or self._loads_in_loops(context):
            return None  # the model ranks these
        lengths = self._lengths(usual, call, context)
        if (sides := covering(usual, lengths)) == usual:
            return None
        made = tuple((name, sides[name]) for name in self._usual.values)
        return Tiles(made, covering_reasons(made, lengths)) if self._can_be(made, context) else None

    def _lengths(
        self, usual: Mapping[str, int], call: CallClass, context: Context
    ) -> dict[str, int]:
        """How many elements programs cover, or loops walk along, by each of the `usual` sides."""

        def grid_of(sides: Mapping[str, int], least: int) -> tuple[int, ...] | None:
            program = self._program(tuple((n, sides[n]) for n in self._usual.values), context)
            arguments = call.with_axes_of(least).arguments(self._parameters)
            try:
                return None if program is None else ruled_sizes(program, arguments)
            except ValueError:  # a rule that divides by zero
                return None

        return covered_lengths(usual, self._usual.walked(call, tuple(usual)), grid_of)

    def _loads_in_loops(self, context: Context) -> bool:
        """Whether programs with the usual tiles load in loops, whatever these walk along."""
        program = self._program(tuple(self._usual.values.items()), context)
        return program is not None and program.loads_in_loops

    def _streamed(self, call: CallClass, context: Context) -> dict[Point, Ranked]:
        """The shapes of a tile that loops load, but along rows alone; none of others."""
        usual = self._usual.covering
        walked = self._usual.walked(call, tuple(usual))
        if not usual or not (walked or self._loads_in_loops(context)):
            return {}
        lengths = self._lengths(usual, call, context)
        values = call.arguments(self._parameters)

        def ranked(
            tiles: Iterable[Mapping[str, int]], *, is_usual: bool = False
        ) -> dict[Point, Ranked]:
            found: dict[Point, Ranked] = {}
            for sides in tiles:
                point = tuple((name, sides[name]) for name in self._usual.values)
                if (program := self._program(point, context)) is not None:
                    for parts in parts_of(program, values, call.machine):
                        one = rank_stream(program, values, parts, call.machine, is_usual=is_usual)
                        if one is not None:
                            found[point, parts] = one
            return found

        rules = covering(usual, lengths, walked)
        if rules == usual:  # then one of the usual steps
            steps = self._predictions(self._works(self._candidates, call, context), call)
            rules = dict(min(steps, key=lambda point: steps[point].us)[0]) if steps else usual
        found = ranked(shapes(usual, lengths)) | ranked([rules], is_usual=True)
        first = sorted(found, key=lambda point: found[point].us)[:PROMISING]
        of_shape = ({name: dict(point[0])[name] for name in usual} for point in first)
        return ranked(more for shape in of_shape for more in sizes(shape, lengths)) | found

    def _holds_rows(self, point: Point, call: CallClass) -> bool:
        """Whether a candidate has all that loops walk along in a tile each."""
        sides = dict(point[0])
        walked = self._usual.walked(call, tuple(self._usual.covering))
        held = (length is not None and length <= sides[name] for name, length in walked.items())
        return bool(walked) and all(held)

    def _doubt(self, point: Point, machine: Machine) -> float:
        """How many times as fast as others a candidate must be predicted to be."""
        tiles, parts = point
        gain = machine.rates.between_gain if self._usual.is_between(dict(tiles)) else 1.0
        return gain * (machine.rates.parts_gain if parts > 1 else 1.0)

    def _short(self, call: CallClass, context: Context) -> Tiles | None:
        """The tile that holds a whole row, where rows are short and the kernel can have it, or that
        is a short step of rows that are added up."""
        if self._has_grid and (step := self._usual.short_step(call)) is not None:
            tiles = Tiles(tuple(step[0].items()), step[1])
            return tiles if self._can_be(tiles.chosen, context) else None
        found = self._usual.short_row(call) if self._has_grid else None
        if found is None:
            return self._short_of_few(call, context) if self._has_grid else None
        tiles = Tiles(tuple(found[0].items()), found[1], holds_rows=True)
        return tiles if self._can_be(tiles.chosen, context) else None

    def _short_of_few(self, call: CallClass, context: Context) -> Tiles | None:
        """The same of longer rows, where there are few."""
        found = self._usual.short_row(call, LONGEST_OF_FEW)
        if found is None:
            return None
        tiles = Tiles(tuple(found[0].items()), found[1], holds_rows=True)
        program = self._program(tiles.chosen, context)
        if program is None or program.rule is None:
            return None
        programs = launch_work(program, call.arguments(self._parameters)).work.programs
        few = size_class(FEW_EACH * call.machine.multiprocessors)
        return tiles if programs <= few else None

    def _predicted(self, call: CallClass, context: Context) -> dict[Point, Ranked]:
        """The candidates that can run, the fastest by prediction first."""
        if not self._has_grid:  # only the call knows how many programs there are
            return {}
        if streamed := self._streamed(call, context):
            return dict(sorted(streamed.items(), key=lambda item: item[1].us))
        works = self._works(self._usual.in_few_steps(self._candidates, call), call, context)
        works |= self._works(self._shallow(works, call), call, context)
        works |= self._works(self._narrow(works, call, context), call, context)
        found = self._predictions(works, call)
        between = self._works(self._between(found, works, call), call, context)
        deeper = self._works(self._deeper(found, works, call), call, context)
        found |= self._predictions({**deeper, **between}, call)
        return dict(sorted(found.items(), key=lambda item: item[1].us))

    def _predictions(self, candidates: Iterable[Constants], call: CallClass) -> dict[Point, Ranked]:
        """What can run of candidates, each in so many parts as may be ranked."""
        found: dict[Point, Ranked] = {}
        arguments = call.arguments(self._parameters)
        for tiles in candidates:
            program = self._programs[tiles]
            assert program is not None
            for parts in parts_of(program, arguments, call.machine):
                ranked = rank(program, arguments, parts, call.machine)
                if ranked is not None:
                    found[tiles, parts] = ranked
        return found

    def _shallow(self, works: Mapping[Constants, Work], call: CallClass) -> list[Constants]:
        """Tiles of several rounds of programs with no more of k than loops walk along. Of one round
        the ring had better fill a multiprocessor each, so that the next launch is let in early."""
        shallow = self._usual.shallow(call)
        many = [x for x in works if works[x].programs > call.machine.multiprocessors]
        return [tuple({**dict(x), **shallow}.items()) for x in many] if shallow else []

    def _deeper(
        self, found: Mapping[Point, Ranked], works: Mapping[Constants, Work], call: CallClass
    ) -> list[Constants]:
        """The fastest tiles with longer steps along k where there is room for slots of them, by
        rates that were fitted to such, too."""
        if not call.machine.rates.record:
            return []
        fastest = dict.fromkeys(tiles for tiles, _ in sorted(found, key=lambda x: found[x].us))
        slots = {x: max((one.staged_bytes for one in works[x].loops), default=0) for x in fastest}
        roomy = self._target.shared_bytes // (2 * LEAST_DEEP_SLOTS)
        short = [x for x in list(fastest)[:DEEPENED] if slots[x] <= roomy]
        deeper = (self._usual.deeper(dict(tiles)) for tiles in short)
        return [tuple(tiles.items()) for tiles in deeper if tiles is not None]

    def _between(
        self, found: Mapping[Point, Ranked], works: Mapping[Constants, Work], call: CallClass
    ) -> list[Constants]:
        """The fastest tiles with columns between powers of two, where the copy engine fills all
        rings, by rates that were fitted to such, too."""
        if not call.machine.rates.record:
            return []
        fastest = dict.fromkeys(tiles for tiles, _ in sorted(found, key=lambda x: found[x].us))
        few = [tiles for tiles in list(fastest)[:BETWEEN] if self._loads_columns(tiles)]
        rows = [self._usual.between(dict(tiles)) for tiles in few if by_engine(works[tiles])]
        return list(dict.fromkeys(tuple(tiles.items()) for each in rows for tiles in each))

    def _loads_columns(self, tiles: Constants) -> bool:
        """Whether what has a tile's columns comes from memory as it is multiplied: threads that
        compute it have layouts of powers of two."""
        program = self._programs[tiles]
        fills = [] if program is None else [fill for one in program.bodies for fill in one.fills]
        return any(operand.axis == 0 for fill in fills for operand in fill.operands)

    def _works(
        self, candidates: Sequence[Constants], call: CallClass, context: Context
    ) -> dict[Constants, Work]:
        """The work of a launch with each of the candidates that the kernel can have."""
        arguments = call.arguments(self._parameters)
        programs = {tiles: self._program(tiles, context) for tiles in candidates}
        return {
            tiles: launch_work(program, arguments).work
            for tiles, program in programs.items()
            if program is not None
        }

    def _narrow(
        self, works: Mapping[Constants, Work], call: CallClass, context: Context
    ) -> list[Constants]:
        """The candidates with a shorter side than those in `works`, where that is all it covers, by
        rates that were fitted to tiles of single warps, too."""
        usual = self._usual.values if call.machine.rates.record else {}
        few = {
            name: self._narrow_side(name, tiles, works, call, context)
            for name in filter(self._usual.may_be_narrow, usual)
            if (tiles := self._covering(name, works)) is not None
        }
        sides = [self._usual.narrow_sides(name, few) for name in usual] if few else []
        return [tuple(zip(usual, point, strict=True)) for point in product(*sides)] if few else []

    def _covering(self, name: str, works: Mapping[Constants, Work]) -> Constants | None:
        """Tiles with the least side of a constant, if one twice as long leaves no fewer programs:
        both cover all there is."""
        least = min(self._usual.sides(name))
        pairs = ((t, _with(t, name, 2 * least)) for t in works if dict(t)[name] == least)
        short, long = next((pair for pair in pairs if pair[1] in works), (None, None))
        if short is None or long is None or works[short].programs != works[long].programs:
            return None
        return short

    def _narrow_side(
        self,
        name: str,
        tiles: Constants,
        works: Mapping[Constants, Work],
        call: CallClass,
        context: Context,
    ) -> int:
        """The shorter of two sides where that covers as much as `tiles` do, else the longer."""
        short, long = NARROW_SIDES
        found = self._works([_with(tiles, name, short)], call, context)
        covers = any(work.programs == works[tiles].programs for work in found.values())
        return short if covers else long

    @functools.cached_property
    def _candidates(self) -> list[Constants]:
        """The usual tiles, and those nearest to as many elements."""
        usual = self._usual.values
        size = prod(usual.values())
        sides = [self._usual.sides(name) for name in usual]
        points = [tuple(zip(usual, point, strict=True)) for point in product(*sides)]

        def distance(tiles: Constants) -> float:
            each = prod(value for _, value in tiles)
            return max(each, size) / min(each, size)

        points.sort(key=distance)
        return list(dict.fromkeys([tuple(usual.items()), *points]))[:MOST_TILES]

    def _program(self, tiles: Constants, context: Context) -> ProgramWork | None:
        """What a program with these tiles does; None where the kernel cannot have them."""
        if tiles not in self._programs:
            try:
                module = self._build(dict(tiles), {}, context())
            except CompileError:
                if tiles == tuple(self._usual.values.items()) and not self._usual.is_limited:
                    raise  # the author's mistake, or none of any tile
                self._programs[tiles] = None
            else:
                self._programs[tiles] = read_program(module, self._parameters, self._target)
        return self._programs[tiles]

    def _can_be(self, tiles: Constants, context: Context) -> bool:
        """Whether no static assertion of the kernel fails with these tiles."""
        return not self._usual.is_limited or self._program(tiles, context) is not None

    def _reasons(self, first: Point, predicted: Mapping[Point, Ranked]) -> dict[str, str]:
        usual = (tuple(self._usual.values.items()), 1)
        shown = [f"{label_of(t)} {p.us:.4g} us" for t, p in list(predicted.items())[:SHOWN]]
        if usual in predicted and usual not in list(predicted)[:SHOWN]:
            shown.append(f"{label_of(usual)} {predicted[usual].us:.4g} us")
        names = ", ".join(name for name, _ in usual[0])
        seen = {f"tiles of {names}": f"of {len(predicted)} predicted {'; '.join(shown)}"}
        if first == usual:
            return self._usual.reasons | (seen if len(predicted) > 1 else {})
        roles = {name: why.partition(": ")[2] for name, why in self._usual.reasons.items()}
        return {n: f"{v}: {roles[n]}, fastest by prediction" for n, v in first[0]} | seen

    def _others_reasons(self, point: Point, first: Point) -> dict[str, str]:
        return {
            name: f"{value}: in place of tiles of {label_of(first)}" for name, value in point[0]
        }

    def _halved(self) -> Iterator[Tiles]:
        """The usual tiles, the largest side halved each time, until none can be."""
        times = 1
        while (found := self._usual.halved(times)) is not None:
            values, reasons = found
            yield Tiles(tuple(values.items()), reasons)
            times += 1


def _with(tiles: Constants, name: str, value: int) -> Constants:
    """The same but for one constant."""
    return tuple({**dict(tiles), name: value}.items())
