"""The rules for programs that load tiles or meet in a loop, each with what was measured for it."""

from __future__ import annotations

from tilec.compile.program_facts import ProgramFacts
from tilec.compile.warp_rules import Rule, Wanted, costly_steps, spread

CARRIED_PER_THREAD, CARRIED_MORE = 4, 4
"""Elements a thread of a tile that a loop carries, where it has at least the second times as many
as any that it loads: what is computed of it is what an iteration takes (selective scans of 32
channels with 16 states each on an H200: 161 us in 4 warps, 230 in 2, 395 in one)."""
GATHERED_PER_THREAD = 64
"""Of all that an iteration loads, where it gathers rows and reduces them: each warp looks up the
numbers of its rows, and reduces what it has of them. Attention of 32 requests to paged keys, four
kernels of lightllm (H200): in 2, 2, 8 and 4 warps 131, 98, 75 and 97 us, in 8, 8, 16 and 16 337,
125, 144 and 168."""
SUMMED_PER_THREAD = 16
"""The same of a tile that iterations only add to: nothing waits for it, and what a thread loads it
computes with once for each element of the other side."""
WAITED_PER_THREAD = 16
"""Of all that an iteration loads, or of the tile that it reduces, where threads exchange results in
each: fewer warps meet sooner, and other programs compute meanwhile (cross-entropy and gradients of
norms, H200)."""
COMPUTING_PER_THREAD = 16
"""Of the tile that a loop reduces which loads nothing, for each reduction that an iteration waits
for: threads meet so often. Cholesky's factors, which wait for two a column, of 6763 matrices of
32 x 32 take 67.2 us in one warp, 88.4 in two, 102.6 in four; of 3500 of 64 x 64 339 in four, 367 in
8, 397 in two and 474 in 16. Halving an interval by one sum, 696 rows of 1000: 6.4 in two, 7.5 in
four, 8.5 in one (H200)."""
HELD_PER_THREAD = 64
"""Words at most of the tiles that such a loop has in registers throughout, a quarter of those that
a thread may have: an iteration computes with as much again. fla's `dplr`, six tiles of 16 x 128 in
a loop of four reductions, takes 366 us in four warps, 394 in two, 432 in 8, and in one, where it
spilled 756 bytes a thread, 958; its gradient, ten of 16 x 64, 655, 715, 799 and 1048 (H200)."""
CROWDED_PER_THREAD = 32
"""`WAITED_PER_THREAD` at most where there are many programs, as far as two warps, if the loop holds
no tile as large: those take the same registers of a multiprocessor in few warps as in many (fla's
`oja`, 16 x 128 twice: 125 us in four warps, 159 in two, 177 in 8). Losses of 8000 rows of 1800 bf16
take 20.9 us in two warps, 24.1 in four; of 2162 of 2115 9.57 and 9.62, of 17098 of 1102 29.9 in
two, 30.5 in one (H200)."""
STREAMED_PER_THREAD = 8
"""Of a tile otherwise: short tiles in many threads hide latency best (sums of rows of 1024 to 32768
elements of 2 and 4 bytes, H200, test/bench)."""
UNEVEN_BYTES_PER_THREAD = 64
"""The same of a tile of several rows whose loop ends where memory says: nothing comes ahead, so a
thread loads several vectors at once, and fewer meet behind a loop of few turns. Sums of 900
segments of 150 rows of 240 f16 take 19.6 us in 4 warps of 64 x 64, 25.9 in 16, 1595 of 195 of 304
52.0 and 62.8, 3000 of 60 of 512 f32 91 in 4 warps of 32 x 64, 103 in 8 (H200)."""
RECURRENT_WARPS = 4
"""At least, of a loop that computes a tile from itself, if each lane has an element: an iteration
waits for that of one element, and a multiprocessor issues for four warps at once. RWKV-4 over 1024
steps of 8 x 2048 channels in tiles of 128 takes 149 us in 4 warps, 216 in 2, 368 in one; backward
266, 429 and 1614 (H200)."""


def carries_more(program: ProgramFacts, lanes: int) -> Wanted | None:
    """A loop carries a tile much larger than those that it loads."""
    if not program.results.carried >= CARRIED_MORE * program.accesses.largest > 0:
        return None
    each = CARRIED_PER_THREAD if program.recurs else SUMMED_PER_THREAD
    return spread(program, program.elements, each, lanes, "of few loaded in a loop")


def gathers_rows(program: ProgramFacts, lanes: int) -> Wanted | None:
    """A loop gathers rows, and threads meet."""
    loaded = program.accesses.streamed
    if not (loaded and program.accesses.gathers and program.meets):
        return None
    why = f"{loaded} elements loaded in a loop that gathers rows"
    return Wanted(loaded // (GATHERED_PER_THREAD * lanes), why)


def meets_in_each(program: ProgramFacts, lanes: int) -> Wanted | None:
    """An iteration needs what its threads reduce."""
    loaded, reduced = program.accesses.streamed, program.reductions.waited
    if not (loaded and reduced):
        return None
    most, did = (loaded, "loaded") if loaded >= reduced else (reduced, "reduced")
    why = f"{most} elements {did} in a loop whose threads meet"
    warps = most // (WAITED_PER_THREAD * lanes)
    if program.is_crowded and program.reductions.held < most:
        warps = max(min(2, warps), -(-most // (CROWDED_PER_THREAD * lanes)))
    return Wanted(max(warps, costly_steps(program, lanes)), why)


def computes_and_meets(program: ProgramFacts, lanes: int) -> Wanted | None:
    """An iteration loads nothing and needs what its threads reduce."""
    reduced, waits = program.reductions.waited, program.reductions.waits
    if program.accesses.streamed or not reduced:
        return None
    wanted = spread(program, reduced, waits * COMPUTING_PER_THREAD, lanes, "reduced in a loop")
    held = program.reductions.held
    least = spread(
        program, held, HELD_PER_THREAD, lanes, f"reduced in a loop that holds {held} words"
    )
    return max(wanted, least, key=lambda each: each.warps)


def recurs(program: ProgramFacts, lanes: int) -> Wanted | None:
    """An iteration computes with what the one before made, and no threads meet."""
    if not (program.accesses.streamed and program.recurs) or program.meets:
        return None
    what = "each iteration computed from the last"
    usual = spread(program, program.elements, STREAMED_PER_THREAD, lanes, what)
    several = min(RECURRENT_WARPS, program.elements // lanes)
    return Wanted(max(usual.warps, several), usual.why)


def streams(program: ProgramFacts, lanes: int) -> Wanted | None:
    """Any other loop that loads."""
    if not program.accesses.streamed:
        return None
    usual = spread(program, program.elements, STREAMED_PER_THREAD, lanes, "loaded in a loop")
    if not (program.is_uneven and program.reductions.any):
        return usual
    what = "loaded in a loop that ends where memory says"
    fewer = spread(program, program.bytes, UNEVEN_BYTES_PER_THREAD, lanes, what)
    return min(usual, fewer, key=lambda wanted: wanted.warps)


IN_LOOPS: tuple[Rule, ...] = (
    carries_more,
    gathers_rows,
    meets_in_each,
    computes_and_meets,
    recurs,
    streams,
)
"""In order: the first that is for a program decides."""
