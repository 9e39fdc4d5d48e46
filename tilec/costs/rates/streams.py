"""What programs take that only load, compute and store in loops: the numbers of `costs/streams.py`.

Fitted to 620 timings of 19 launches on an H200, in 19 to 50 shapes of tiles and 1 to 16 warps each:
sums of segments, running sums of columns, matrices times vectors (`streams-h200-*.json`). With
`gain` the shape taken of those takes 1.11 times as long as the fastest in the geometric mean, that
of rules alone 1.44 times, and none longer than that. Times are off by 0.4 (the logarithm), mostly
where one segment is much longer than the others: `longest` and `tail` are set behind the fit, so
that 16147 segments of 8 rows and 222 of 25 both take what was faster.
"""

from __future__ import annotations

from tilec.records import dataclass


@dataclass(frozen=True)
class StreamRates:
    """In clocks of a multiprocessor, if nothing else is said.

    A program's chain of waits. `latency`: from the loads of an iteration to the first result, where
    other warps load beside it; `ahead`: iterations that are under way at most. `issue`: of a warp
    alone for each instruction of a thread. `meeting`: a reduction across warps whose result all
    wait for. `end`: what is behind the last iteration, with its stores. `longest`: where memory
    says how long rows are the longest is so many times the logarithm of their number of means;
    `tail`: the part of it that runs behind the others in any case.

    What keeps a multiprocessor busy. `begin`: a CTA begins; `next`: a warp takes its next program.
    `instruction`: of a warp, `access`: a load or store of a warp. `stored_bytes`: a clock.
    `spread_load`: instructions of a thread that loads a part of a row or column for its elements,
    with what clears the registers and looks at bounds (of densities, in machine code).

    Registers of a thread: `registers`, and `held` for each word of the largest tile that it has.

    DRAM: `dram_efficiency`: the part of its rate that whole lines reach; `narrow`: the part of that
    which pieces of 32 bytes lose, longer ones less as they are longer. `unhidden`: of the shorter
    of computing and reading. `launch`: microseconds.

    `gain`: how many times as fast as that of the rules a tile must be predicted to be."""

    latency: float
    ahead: int
    issue: float
    meeting: float
    end: float
    longest: float
    tail: float
    begin: float
    next: float
    instruction: float
    access: float
    spread_load: float
    stored_bytes: float
    registers: int
    held: float
    dram_efficiency: float
    narrow: float
    unhidden: float
    launch: float
    gain: float


STREAMS = StreamRates(
    latency=600,
    ahead=8,
    issue=5.0,
    meeting=220,
    end=560,
    longest=1.75,
    tail=0.1,
    begin=110,
    next=117,
    instruction=0.11,
    access=2.6,
    spread_load=6.0,
    stored_bytes=17.5,
    registers=14,
    held=1.1,
    dram_efficiency=0.78,
    narrow=0.48,
    unhidden=0.2,
    launch=1.44,
    gain=1.1,
)
