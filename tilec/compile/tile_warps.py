"""The rules for programs whose threads meet often, and for those that load all before they compute,
each with what was measured for it."""

from __future__ import annotations

from math import prod

from tilec.compile.program_facts import ProgramFacts
from tilec.compile.warp_rules import COSTLY_SLOTS, Rule, Wanted, costly_steps, size_of, spread
from tilec.hardware.powers import power_above, power_below
from tilec.passes.demands.kernels import SEVERAL, SOME

MANY_MEETINGS = 6
"""Reductions of one tile, outside of loops, whose threads wait for each other more than they read:
they get as many elements a warp as exchanges."""
MET_PER_WARP = (128, 1024)
"""Elements that a warp has at least, and at most, of those that exchange places with each other:
between lanes that takes a shuffle, between warps a buffer and two barriers."""
REDUCED_OFTEN = 512
"""Elements that a warp has of a tile that is reduced often. Of several that are loaded each is in
registers while others are: backward of attention over residuals, 2048 bf16, takes 173 us, with 1024
209, with 256 224. In one warp the elements of a longer row, and where each is, take up to 194
registers: the largest of f32 rows one by one, 7 of 2172 of 1463, 3 of 2985 of 906, 7 of 7323 of
2439, take 14.9, 6.4 and 61.4 us in two warps, 20.4, 7.2 and 75.4 in one, 15.0, 6.6 and 63.5 in
four, the last 87.7 in 8; 4 of 9708 of 546 13.5 in one and 13.1 in two (H200)."""
MET_WORDS = 2
"""Words of such an element at most, of which a thread has 32 then; of wider ones it has fewer."""
MANY_MOVES = 50
"""Times that an element changes places, from which on two warps share what fills one: a sort of
1024 f32 then takes 57 us for 54 in 8192 programs and 3.3 for 5.9 in 64, with places 167 for 164 and
8.1 for 19.9; the 64 largest, which move half as often, 26 for 24 (H200)."""
ELEMENTWISE_BYTES_PER_THREAD = 16
"""Of the largest tile where no threads meet: one access each (vector addition, H200)."""
NARROW_BYTES_PER_THREAD = 32
"""The same at most, where the only such tile that is loaded, or what it becomes, is narrower, as in
conversions: one access each of the narrower. Those that go by numbers do not count: 4-bit numbers
by rows of eight, with scales and zeros of groups, became f16 in 0.82 of the time (H200). Else a
thread repeats twice what it computes of rows and columns, and stores half a vector. Eleven
conversions of 2^22 and 2^25 elements (H200, casts, scales, gelu, 4-bit numbers): 0.88 to 1.00 of
the time, one 1.02 with the fewer; where a second tile is loaded (masks of bytes, residuals of other
dtypes) 1.01 to 1.02."""
NUMBERS = 2
"""Single numbers that a program loads beside its only such tile, from which on a thread has the
same bytes of the tile: each loads all of them. Gradients of cross-entropy, by a label, a total and
a factor, 4096 x 32000 bf16 in tiles of 2048 or 4096: 146 us with 32 bytes, 156 with 16 (a copy
142), 16384 x 4096 84.7 and 89.9, 2048 x 50257 144 and 151 (H200)."""
FEW_READ, SPREAD_BYTES_PER_THREAD = 8, 64
"""The second of a tile that is stored where none that is loaded has more than the first's part of
its elements: threads wait for the little that they read before they store. Rows of a mean spread
over tiles of 64 x 64 bf16: 9.5 us with 64 to 256, 10.2 with 32, 12.4 with 16 (H200). Also where
more loads than of several whole tiles are of rows or columns: each thread loads its part of these
once, for however many elements. Filters of four elements a channel, 7 x 1256 x 384 f32 in tiles of
16 x 64, take 9.8 us so, 18.3 with 16, 3 x 4096 x 1024 bf16 20.9 and 27.0."""
ELEMENTWISE_SLOTS_PER_THREAD = (1024, 2048)
"""Instructions of a thread at most where no threads meet, so that of what takes hundreds an element
each thread has fewer; the second where a multiprocessor has more than `SOME` programs, whose
threads share more of what they do for several elements. Dropout by a counter, 280 an element, in 8
and in 4 warps of a tile of 1024: 137344 f16 1.55 and 1.91 us, 584128 3.84 and 3.16, 2 million 6.98
and 7.18, 9 million 28.2 and 26.3 (H200). Of gelu and its like, 30 at most, it is no limit."""
ALONE_PER_THREAD = 8
"""Elements of a thread at most where no threads meet and they come one by one. The stencil of 3 x 3
bytes, 3 x 938 x 1370 in tiles of 16 x 64: 10.5 us in 4 warps, in tiles of 64 x 64 with twice as
many elements a thread 14.9 (H200)."""
APART_PER_THREAD = 4
"""The same of what is loaded from places apart. Tiles of 1024 in 8 warps for 4: a step of a
convolution of four taps, 22 x 4096, 81 x 4096 and 128 x 5120 channels of bf16, 2.1 us for 2.2, 5.1
for 5.3 and 8.8 for 9.0; pixels of 3 bytes into planes, 8 x 277917, 8 x 62596 and 48136, 8.6 for
8.8, 2.6 for 2.9 and 1.16 for 1.18 (H200)."""
PACKED, PACKED_PER_THREAD = 2, 16
"""Warps of a program that has one in launches of many, which share CTAs then, if it has no more
elements a thread: a multiprocessor takes 80 ns to begin a CTA (`passes/pack_programs.py`), in which
it moves 2.9 KB at an H200's 4.8 TB/s, as much as two warps of such programs do. Nor if the
program's instructions take longer than that (`SLOTS_PER_THREAD`): 2^24 4-bit floats, 32768 programs
of 544 a warp, take 21.7 us in two warps, 24.8 in one (H200)."""
REDUCED_IN_THREAD = 4
"""Elements that meet at most in programs of which as many share a CTA: means of 2 by 2 elements in
tiles of 2 x 512, 40 planes of 500 x 600 bf16, take 9.2 us in one warp, 13.8 in two, 100 of 256 x
256 f16 6.1 and 9.1 (H200)."""
GATHERED_PER_THREAD = 16
"""Accesses of gathers of a thread at most where no threads meet, each an element or a run: more
wait for each other, and for their addresses. Pooling in tiles of 512, nine gathers of f16 an
element: 6 planes of 71 x 95 take 0.95 us in 8 warps for 1.45 in 4 and 2.00 in 2, 120 of 37 x 163
2.83 for 3.27 and 3.96, 3419 of 35 x 23 13.3 for 12.7 and 12.4; of f32 263 of 161 x 81 6.2 for 6.9
in 4; four gathers an element 20.1 for 19.4 and 21.0 (2048 planes of 112 x 112, H200)."""
GATHERED_OF_FEW, GATHERING_OF_FEW = 8, 8
"""The same of launches that are not crowded, in so many warps at most. Four gathers an element in
tiles of 512: 292 planes of 108 x 67 bf16 take 2.9 us in 8 warps, 3.75 in four, 700 of 60 x 60 f16
3.2 and 3.9 (H200)."""
LEAST_PARTS = 4
"""Loads of parts of a tile, as what belongs to columns, that are as many as those of whole ones: a
thread loads its columns' once for several rows, `SPREAD_BYTES_PER_THREAD` of them. Filters of four
taps of bf16 in two, four and 8 warps: 15 x 160 x 4352 14.9, 17.9 and 23.0 us, 7 x 381 x 80 2.47,
2.58 and 2.34, 1 x 328 x 2752 f32 3.89, 3.95 and 5.14 (H200). So where columns' numbers come of
small reductions: fla's short convolution in tiles of 64 x 64 bf16 takes 48.1 us in four warps, 50.1
in two, 55.8 in 8."""
SLOTS_PER_THREAD, LEAST_COMPUTING, LEAST_PER_LANE = 512, 4, 2
"""Instructions of a thread where tiles that nobody loads are computed and reduced, and the fewest
warps for a program of more than one, in which lanes have at least so many elements each. Integrals
and hits of 256 to 4096 points (H200): in 4 warps 5 programs take 0.39 to 0.97 of the time of
one warp, 60000 programs 0.83 to 1.17; 4096 points of sines take 8 or more. What one warp does in
the time in which a multiprocessor begins a CTA stays in one (`passes/pack_programs.py`)."""
MOST_COMPUTING = 16
"""Warps of such a program: they fill a multiprocessor."""
ACROSS_BYTES = 64
"""Of the largest tile where elements meet across its rows in memory: each thread holds so much of a
column that few threads meet. Means of 64 rows of 64 bf16 take 10.6 us, with 128 or 256 12.1, with
32 23.6 (H200)."""
ALONE_ACROSS_BYTES = 128
"""The same at most of a tile that one warp holds, which waits for no other: programs of one warp
share a CTA (`passes/pack_programs.py`)."""
BYTES_PER_THREAD = 32
"""Of the largest tile otherwise; twice as many where it has more than the first of MANY_ELEMENTS,
and again for the second (softmax, layer normalisation and sums of rows of 1024 to 32768 elements of
2 and 4 bytes, H200, test/bench)."""
MANY_ELEMENTS = (4096, 8192)
"""Of 4 bytes, the first fills 16 warps with `BYTES_PER_THREAD` each, the second with twice as
many."""
SCANNED = 2
"""Times as many bytes where columns or several rows are scanned, several numbers together, or in
costly steps, and of MANY_ELEMENTS themselves in any scan: it waits for all before it twice. Running
sums of 64 columns of 64 f32 take 34.4 us for 88.8 in 16 warps, of 32 columns 9.6, with half as many
bytes 11.5. A row of single numbers has the usual bytes: 30000 of 1024 f16 take 30.5 us in two
warps, 32.6 in one, 3863 of 1721 f32 14.9 in 8, 15.8 in four, 300 of 4096 4.2 and 4.6, 20000 bf16
80.6 in four, 81.6 in two, 9908 of 11499 f32 225 in 8, 224 in four, 4096 of 16384 131.8 in 16, 132.4
in 8. Elements that are several numbers count as often: sums of segments, with flags, of 2675 rows
of 3000 f32 take 19.6 us in 8 warps, 28.3 in 4, of 927 of 1024 3.5 in 8, 4.3 in 4 (H200)."""
SCALED_WARPS = 16
"""Of a row of more than the first of MANY_ELEMENTS that is loaded with others as long, as what it
is scaled with: in 8 warps RMS norms of 64 to 938 rows of 8192 and 16384 bf16 took 1.02 to 1.27
times as long, layer norms 1.04 to 1.21, 4000 and 8000 rows 0.99 to 1.01; softmax, which loads
nothing beside, 0.94 to 1.01 (H200). Rows that have 4 warps keep them, 335
gated ones of 4864 bf16, to int8, take 5.6 us for 7.0 in 8, divergences of 557 of 5000 9.4 for 10.3,
layer norms of 5971 of 5120 f16 56.7 for 55.8; and many rows keep theirs: layer norms of 32768 of
8192 bf16 took 263 us in 8, 293 in 16, of 16384 of 16384 f16 267 and 277, of 32745 of 4099 f32 264
and 304 (records of two days); 65489 of 4099 f16 and bf16, element by element, 349 and 313 in 4 and
389 and 388 in 8."""
FEW_PER_THREAD, MOST_OF_FEW = 16, 16
"""Elements of a thread at least, and warps at most, where launches have few programs, each with a
multiprocessor to itself: cross-entropy of 142 rows of 5888 bf16 takes 3.8 us in 8 warps, in 4 and
16 4.7 and 4.6 (H200)."""
ISSUED_OF_SEVERAL, MOST_OF_SEVERAL = 150, 4
"""Instructions of a thread at most, and warps for that at most, where elements of rows meet and
launches have up to `SEVERAL` programs a multiprocessor: a scheduler with one or two warps waits for
what each of their instructions gives. Norms of 558 sums of 672 bf16, to fp8, take 1.63 us in two
warps, 1.65 in four, 2.52 in one; Hadamard's transform of 584 rows of 1024 1.76, 1.78 and 3.46;
softmax of 132 rows of 672 1.17, 1.10 and 1.40, of 500 1.48, 1.42 and 1.54; but of 1000 2.50, 2.54
and 2.14, as programs of one warp share CTAs, and of 500 of 300, 188 instructions, 1.28, 1.26 and
1.16 (H200)."""
COMPUTED_PER_THREAD = 64
"""Elements of the largest tile at most, where those in memory are smaller (an outer product): a
quarter of the registers, of which an expression holds two or three tiles."""


def meets_often(program: ProgramFacts, lanes: int) -> Wanted | None:
    """Elements change places, or one tile is reduced many times: few warps meet."""
    few = program.reductions.once < MANY_MEETINGS or program.accesses.streamed
    if not program.exchanges and few:
        return None
    low, high = MET_PER_WARP
    high //= -(-program.exchanges.words // MET_WORDS)
    if not program.exchanges:
        high = REDUCED_OFTEN
    each = max(low, min(high, program.exchanges.met or high))
    warps = program.elements // each
    moves_much = program.exchanges.moved > MANY_MOVES * program.elements
    if warps == 1 and each == high and moves_much:
        warps = 2
    return _of_several(
        program, Wanted(warps, f"{size_of(program)}, whose threads meet often"), lanes
    )


def elementwise(program: ProgramFacts, lanes: int) -> Wanted | None:
    """No threads meet."""
    if program.meets:
        return None
    once = program.accesses.once
    each = ELEMENTWISE_BYTES_PER_THREAD
    parts = sum(1 < elements < program.elements for elements in once)
    has_few = once and FEW_READ * max(once) <= program.elements
    if has_few or parts > program.rows_loaded > 1 or _repeats_parts(program):
        each = SPREAD_BYTES_PER_THREAD
    elif once and program.rows_loaded - program.rows_numbered <= 1:
        each = min(each * program.bytes // program.narrow_bytes, NARROW_BYTES_PER_THREAD)
        if sum(elements == 1 for elements in once) >= NUMBERS:
            each = NARROW_BYTES_PER_THREAD
    wanted = spread(program, program.bytes, each, lanes, "elementwise")
    slots = ELEMENTWISE_SLOTS_PER_THREAD[program.crowd > SOME]
    busy = max(program.results.slots // (slots * lanes), _gathering(program, lanes))
    words = program.words
    for loaded, most in ((words.alone, ALONE_PER_THREAD), (words.apart, APART_PER_THREAD)):
        busy = max(busy, power_above(-(-loaded // (most * lanes))))
    warps = max(busy, wanted.warps)
    if program.packs_crowds and power_below(warps) == PACKED:
        is_short = program.results.slots <= SLOTS_PER_THREAD * lanes
        warps = 1 if is_short and program.elements <= PACKED_PER_THREAD * lanes else warps
    return _held(program, wanted._replace(warps=warps), lanes)


def _gathering(program: ProgramFacts, lanes: int) -> int:
    """The warps that gathers want."""
    warps = power_below(program.gathered // (GATHERED_PER_THREAD * lanes))
    if program.is_crowded:
        return warps
    of_few = power_below(program.gathered // (GATHERED_OF_FEW * lanes))
    return max(warps, min(GATHERING_OF_FEW, of_few))


def reduces_parts(program: ProgramFacts, lanes: int) -> Wanted | None:
    """What meets is little, and belongs to columns: threads have several rows, as where they load
    as much (`_repeats_parts`)."""
    reduced = max((prod(sizes) for sizes, _ in program.reductions.along), default=0)
    if not reduced or program.exchanges or program.reductions.scans:
        return None
    parts = program.parts_loaded + program.reductions.once
    if FEW_READ * reduced > program.elements or parts < max(LEAST_PARTS, program.rows_loaded):
        return None
    what = "whose columns have much"
    return _held(
        program, spread(program, program.bytes, SPREAD_BYTES_PER_THREAD, lanes, what), lanes
    )


def _repeats_parts(program: ProgramFacts) -> bool:
    """Whether threads of an elementwise program load much for each of their columns."""
    few = max(LEAST_PARTS, program.rows_loaded)
    return not program.meets and program.parts_loaded >= few


def computed(program: ProgramFacts, lanes: int) -> Wanted | None:
    """Elements meet that nobody loads: memory has less than a byte for each."""
    if program.bytes >= program.elements:
        return None
    wanted = spread(program, program.results.slots, SLOTS_PER_THREAD, lanes, "computed")
    most = min(MOST_COMPUTING, program.elements // (LEAST_PER_LANE * lanes))
    warps = min(max(LEAST_COMPUTING, wanted.warps), most) if wanted.warps else 1
    return _held(program, wanted._replace(warps=warps), lanes)


def meets_across(program: ProgramFacts, lanes: int) -> Wanted | None:
    """Elements meet across the rows of memory."""
    if not program.meets_across:
        return None
    each = ACROSS_BYTES * (SCANNED if program.reductions.scans else 1)
    if program.bytes <= ALONE_ACROSS_BYTES * lanes:
        each = ALONE_ACROSS_BYTES
    return _held(program, spread(program, program.bytes, each, lanes, "whose rows meet"), lanes)


def few_rows(program: ProgramFacts, lanes: int) -> Wanted | None:
    """Elements of rows meet, of which a multiprocessor has one or two."""
    if not program.is_few:
        return None
    warps = min(MOST_OF_FEW, program.elements // (FEW_PER_THREAD * lanes))
    return _held(program, Wanted(warps, f"{size_of(program)}, of few rows"), lanes)


def rows(program: ProgramFacts, lanes: int) -> Wanted:
    """Elements of rows meet, as in all other programs."""
    scans = program.reductions.scans
    # A scan's rows are long from MANY_ELEMENTS on, others' from one more.
    doubled = sum(program.elements + bool(scans) > many for many in MANY_ELEMENTS)
    several = any(prod(sizes) > sizes[axis] for sizes, axis in program.reductions.along)
    is_dear = several or scans > 1 or program.reductions.scan_slots >= COSTLY_SLOTS
    each = BYTES_PER_THREAD * (SCANNED if scans and is_dear else 1) << doubled
    bytes_ = program.bytes * max(1, scans)
    wanted = spread(program, bytes_, each, lanes, f"{program.bytes} bytes")
    wanted = wanted._replace(warps=max(wanted.warps, costly_steps(program, lanes)))
    if program.elements > MANY_ELEMENTS[0] and program.rows_loaded > 1:
        more = min(2 * wanted.warps, SCALED_WARPS)
        if more == SCALED_WARPS and not program.is_crowded:
            wanted = wanted._replace(warps=max(wanted.warps, more))
    if program.packs_crowds and power_below(wanted.warps) == PACKED and _reduces_little(program):
        wanted = wanted._replace(warps=1)
    return _held(program, _of_several(program, wanted, lanes), lanes)


def _of_several(program: ProgramFacts, wanted: Wanted, lanes: int) -> Wanted:
    """More warps where launches have so few programs that schedulers wait for each instruction."""
    if not program.crowd or program.crowd > SEVERAL:
        return wanted
    busy = min(MOST_OF_SEVERAL, program.results.slots // (ISSUED_OF_SEVERAL * lanes))
    return wanted._replace(warps=max(wanted.warps, busy))


def _reduces_little(program: ProgramFacts) -> bool:
    """Whether few elements meet, which a thread has: it shares a CTA, as one of tiles alone."""
    along = program.reductions.along
    return bool(along) and all(sizes[axis] <= REDUCED_IN_THREAD for sizes, axis in along)


def _held(program: ProgramFacts, wanted: Wanted, lanes: int) -> Wanted:
    """At least as many as hold the largest tile that is computed."""
    held = program.elements // (COMPUTED_PER_THREAD * lanes)
    return wanted._replace(warps=max(held, wanted.warps))


AT_ONCE: tuple[Rule, ...] = (elementwise, reduces_parts, computed, meets_across, few_rows, rows)
"""In order: the first that is for a program decides."""
