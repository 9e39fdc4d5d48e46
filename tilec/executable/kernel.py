"""CompiledKernel: what the compiler hands to the runtime. Plain data, no MLIR, no CUDA.

A kernel's parameters are flattened for the hardware in one order, `CompiledKernel.abi()`:
for an array the pointer, then one size per run-time dimension, then one stride (in elements)
per run-time stride; for a scalar its value. Sizes and strides are `index_bits` wide. The grid of a
persistent kernel and the tensor maps that the launcher encodes for the copy engine come last.

A list of n arrays is the pointer to a table in global memory, and n. The table has words of 8
bytes: n rows of an array's pointer, run-time sizes and run-time strides (elements), then for each
array how many elements the arrays in front of it have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from math import prod
from typing import Any

from tilec.records import dataclass

Grid = tuple[int, int, int]

WORD_BYTES = 8
"""Of a number in the table of a list: as many as an address has."""


def row_words(sizes: Sequence[int | None], strides: Sequence[int | None]) -> int:
    """Words of a row in the table of a list whose arrays have these sizes and strides, None where
    the launch has them."""
    return 1 + [*sizes, *strides].count(None)


@dataclass(frozen=True)
class Facts:
    """The facts that the compiler assumed of an array argument; the launcher checks them at every
    call.

    `align`: the pointer is a multiple of this many bytes, a scalar of this number.
    `sizes`/`strides`: known divisor, in elements, of each size/stride (1 = nothing known). A
    violated fact is a launch error.
    """

    align: int = 1
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


LISTS = ("arrays", "flat_arrays")
"""The kinds of parameters that are lists."""


@dataclass(frozen=True)
class Parameter:
    """One argument as the author wrote it.

    `kind` is "array", "scalar", "arrays" (a list of arrays) or "flat_arrays" (one whose arrays are
    seen as rows of all their elements). For an array `sizes`/`strides` hold the compile-time
    values, None where it is passed at launch; `rank == len(sizes) == len(strides)`. For a list all
    but the name is said of each of its arrays. For a scalar both are empty.
    """

    name: str
    kind: str
    dtype: str
    sizes: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] = ()
    facts: Facts = field(default_factory=Facts)

    @property
    def rank(self) -> int:
        """Number of array dimensions; 0 for a scalar."""
        return len(self.sizes)

    @property
    def is_list(self) -> bool:
        """Whether it is a list of arrays."""
        return self.kind in LISTS

    @property
    def has_memory(self) -> bool:
        """Whether it is an array or a list of them."""
        return self.kind != "scalar"


INDEX_LIMIT_32 = 2**31 - 2**16
"""Sizes and byte spans below this take 32-bit indices: the last tile may hang over by 2^16."""
MOST_PROGRAMS = 2**31 - 1
"""CTAs in one dimension of a launch (CUDA C++ Programming Guide, "Compute Capabilities")."""
LEFT_OUT = 32
"""One in so many multiprocessors may stay idle so that all others take equally many programs: 3 %
of them, of whose time the others save more (4 of an H200's 132 for 4096 cubed)."""
TENSOR_MAP_BYTES = 128
"""Size of an encoded tensor map, aligned to 64 (CUDA driver API, CUtensorMap)."""


def even_share(programs: int, resident: int) -> int:
    """The number of CTAs that take `programs` evenly, of at most `resident` that run side by side.

    As many rounds as with all of them, but they end together, and a round of 128 is 16 by 8 tiles:
    on an H200 with its 132 multiprocessors, products of 4096 cubed in 4 rounds, and of 8 times 2048
    cubed in 8, were 0.2 to 1.7 % faster in bursts with 128 CTAs.

    A CTA's programs may then lie as far apart as their lengths repeat. Where these differ,
    `schedule-programs` deals them out from both ends, or some CTAs would get long ones alone.
    """
    if programs <= resident:
        return programs
    even = -(-programs // -(-programs // resident))
    return even if resident - even <= resident // LEFT_OUT else resident


@dataclass(frozen=True)
class Im2col:
    """How copies in im2col mode walk over an array of images (PTX ISA 9.0, "im2col mode"): from
    position to position of a bounding box along each dimension between channels and images, then on
    to the next image.

    Along each, innermost first: `extents`: how many positions, expressions of
    `tilec.executable.grid` over the parameters; `lower`: the coordinate of the first; `steps`: from
    one to the next.
    """

    extents: tuple[str, ...]
    lower: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class TensorMap:
    """The description of an array that the launcher makes for the copy engine: one hardware
    parameter.

    `parameter`: number of the array. `dims`: all its dimensions, innermost (stride 1) first.
    `box`: elements that one copy moves, per entry of `dims`. `swizzle`: bytes of the pattern in
    shared memory, 0 for none. `dtype`: of the elements, MLIR's name. `stores`: whether tiles are
    written through it, which the copy engine does in whole 16 bytes. `im2col`: None of a map of
    boxes; else `box` is of channels and positions.
    """

    parameter: int
    dims: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    dtype: str
    stores: bool = False
    im2col: Im2col | None = None


@dataclass(frozen=True)
class Workspace:
    """Memory that a launch gives the kernel by a pointer: a place for each stripe of each program,
    where CTAs that sum parts of it meet.

    `bytes`: of a place. `is_zero`: whether it is 0 in front of each launch, as each leaves it
    behind.
    """

    bytes: int
    is_zero: bool = False


@dataclass(frozen=True)
class AbiSlot:
    """One hardware parameter: `field` is pointer, size, stride, value, workspace, grid or
    tensor_map; `axis`: the dimension, or the number of the workspace or tensor map. A list's size
    is the number of its arrays. A workspace or a grid belongs to no parameter (-1)."""

    parameter: int
    field: str
    axis: int
    dtype: str


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel for one target, ready to launch.

    `grid`: three expressions over the parameters ("cdiv(c.shape[0], 128)"), see
    `tilec.executable.grid`; None when the kernel has no grid rule and the caller gives the grid.
    `threads`: CTA size in threads. `shared_bytes`: dynamic shared memory a CTA needs. `report`: the
    decision report (JSON-able). `persistent`: launched in one dimension, with at most as many CTAs
    as run side by side; the grid is three parameters more. `dynamic`: such a kernel launched with a
    CTA for each program: its CTAs ask for programs, so that many never start, or they are clusters
    with one program each. `starts_early`: waits by itself for earlier launches of its stream, and
    so may be started before they end. `has_roles`: some of its warps load for the others.
    `cluster`: programs along each axis of the grid whose CTAs run as a cluster; all CTAs of a
    cluster are launched. `stripes`: how many CTAs, one behind the other along x, run each program
    of a kernel that is not persistent. `workspaces`: memory of the launch's own, in which those of
    them meet that no `cluster` joins. `programs_per_cta`: of a persistent kernel, how many
    programs of one warp a CTA of `threads` runs side by side, at most. `suits`: the
    fewest and the most programs a multiprocessor, below and beyond which a kernel compiled for so
    many is faster; 0 where there are none. `spreads_few`: where a launch leaves multiprocessors
    idle, so is one whose CTAs share each program. `rounds`: of a persistent kernel, how many times
    as many CTAs as run side by side share its programs, at most.
    `tensor_maps`: in the order of their parameters. `limits`: of 32-bit indices, expressions over
    shapes in the language of `tilec.executable.grid` and the largest value, or most negative, of
    each, and `most_programs`: the largest `counts` of a grid; the launcher takes a kernel of 64-bit
    indices where one does not hold. `writes`: names of the arrays that it writes, or may; None
    where nobody looked. `cubin`: the PTX assembled for exactly this target, where
    somebody asked for it.
    """

    name: str
    target: str
    ptx: str
    parameters: tuple[Parameter, ...]
    grid: tuple[str, str, str] | None
    threads: int
    shared_bytes: int
    index_bits: int
    constants: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    cubin: bytes | None = field(default=None, repr=False)
    tensor_maps: tuple[TensorMap, ...] = ()
    persistent: bool = False
    dynamic: bool = False
    starts_early: bool = False
    has_roles: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)
    limits: tuple[tuple[str, int], ...] = ()
    most_programs: int = MOST_PROGRAMS
    stripes: int = 1
    workspaces: tuple[Workspace, ...] = ()
    programs_per_cta: int = 1
    suits: tuple[int, int] = (0, 0)
    spreads_few: bool = False
    rounds: int = 1
    writes: tuple[str, ...] | None = None

    def written(self) -> tuple[str, ...]:
        """The names of the arrays that a launch may change: all, where nobody looked."""
        arrays = tuple(p.name for p in self.parameters if p.has_memory)
        return arrays if self.writes is None else self.writes

    def counts(self, programs: Grid) -> int:
        """What `most_programs` limits of a grid: the programs along x, or all where CTAs share
        them, which count through the whole grid."""
        return prod(programs) if self.persistent else programs[0]

    def launched(self, programs: Grid, resident: int, multiprocessors: int = 1) -> Grid:
        """The CTAs to launch for a grid: of all programs, or of a persistent kernel as many as run
        side by side (`resident`, on so many `multiprocessors`), in whole clusters; of a dynamic one
        all, in one dimension. Of a kernel with roles an even number (`even_share`): others may want
        every multiprocessor for what it draws from memory.

        ValueError for more than one dimension holds.
        """
        if not self.persistent:
            x, y, z = programs
            if x * self.stripes > MOST_PROGRAMS:
                raise ValueError(
                    f"grid {programs}, {self.stripes} CTAs a program, has too many CTAs"
                )
            return x * self.stripes, y, z
        clusters = prod(-(-n // part) for n, part in zip(programs, self.cluster, strict=True))
        size = prod(self.cluster)
        if self.dynamic:
            if clusters * size > MOST_PROGRAMS:
                raise ValueError(f"grid {programs} has more than {MOST_PROGRAMS} programs")
            return clusters * size, 1, 1
        resident *= self.rounds
        if clusters > MOST_PROGRAMS - resident * self.programs_per_cta:
            raise ValueError(f"grid {programs} has more programs than CTAs can count")
        if self.programs_per_cta > 1:
            # A CTA takes some 80 ns to begin, and another on each multiprocessor as long again.
            each = -(-clusters // (multiprocessors * self.programs_per_cta))
            return min(clusters, resident, multiprocessors * each), 1, 1
        most = max(1, resident // size)
        ctas = even_share(clusters, most) if self.has_roles else min(clusters, most)
        return ctas * size, 1, 1

    def workspace_bytes(self, launched: Grid) -> tuple[int, ...]:
        """Bytes of each workspace of a launch of so many CTAs. ValueError for more than the
        kernel's indices reach."""
        places = prod(launched) // self.stripes * prod(self.cluster)
        for workspace in self.workspaces:
            if places * workspace.bytes > INDEX_LIMIT_32:
                raise ValueError(
                    f"{launched} CTAs that sum parts would leave {places * workspace.bytes} bytes "
                    f"for each other, more than {INDEX_LIMIT_32}: fewer parts leave less"
                )
        return tuple(places * workspace.bytes for workspace in self.workspaces)

    def threads_of(self, programs: Grid, launched: Grid) -> int:
        """The threads of each CTA of such a launch: with no more warps than there are programs."""
        most = self.programs_per_cta
        if most == 1 or 0 in programs:
            return self.threads
        return self.threads // most * min(most, -(-prod(programs) // launched[0]))

    def abi(self) -> tuple[AbiSlot, ...]:
        """The hardware parameters in order."""
        index = f"i{self.index_bits}"
        slots: list[AbiSlot] = []
        for number, parameter in enumerate(self.parameters):
            if parameter.kind == "scalar":
                slots.append(AbiSlot(number, "value", 0, parameter.dtype))
                continue
            slots.append(AbiSlot(number, "pointer", 0, "pointer"))
            if parameter.is_list:
                slots.append(AbiSlot(number, "size", 0, index))
                continue
            for name, values in (("size", parameter.sizes), ("stride", parameter.strides)):
                slots += [
                    AbiSlot(number, name, axis, index)
                    for axis, value in enumerate(values)
                    if value is None
                ]
        slots += [
            AbiSlot(-1, "workspace", number, "pointer") for number in range(len(self.workspaces))
        ]
        if self.persistent:
            slots += [AbiSlot(-1, "grid", axis, "i32") for axis in range(3)]
        slots += [
            AbiSlot(tensor_map.parameter, "tensor_map", number, "tensor_map")
            for number, tensor_map in enumerate(self.tensor_maps)
        ]
        return tuple(slots)

    def to_json(self) -> dict[str, Any]:
        """Gives everything but the PTX and the cubin, as JSON-able values; `from_json` is the
        inverse."""
        fields = asdict(self)
        del fields["ptx"], fields["cubin"]
        fields["constants"] = {name: _written(value) for name, value in self.constants.items()}
        return fields

    @classmethod
    def from_json(
        cls, fields: Mapping[str, Any], ptx: str, cubin: bytes | None = None
    ) -> CompiledKernel:
        """Rebuilds a kernel from `to_json` and its code. KeyError/TypeError if malformed."""
        parameters = tuple(
            Parameter(
                name=entry["name"],
                kind=entry["kind"],
                dtype=entry["dtype"],
                sizes=tuple(entry["sizes"]),
                strides=tuple(entry["strides"]),
                facts=Facts(
                    align=entry["facts"]["align"],
                    sizes=tuple(entry["facts"]["sizes"]),
                    strides=tuple(entry["facts"]["strides"]),
                ),
            )
            for entry in fields["parameters"]
        )
        tensor_maps = tuple(
            TensorMap(
                parameter=entry["parameter"],
                dims=tuple(entry["dims"]),
                box=tuple(entry["box"]),
                swizzle=entry["swizzle"],
                dtype=entry["dtype"],
                stores=entry["stores"],
                im2col=_read_im2col(entry["im2col"]),
            )
            for entry in fields["tensor_maps"]
        )
        grid = fields["grid"]
        return cls(
            name=fields["name"],
            target=fields["target"],
            ptx=ptx,
            parameters=parameters,
            grid=None if grid is None else (grid[0], grid[1], grid[2]),
            threads=fields["threads"],
            shared_bytes=fields["shared_bytes"],
            index_bits=fields["index_bits"],
            constants={name: _read(value) for name, value in fields["constants"].items()},
            report=fields["report"],
            cubin=cubin,
            tensor_maps=tensor_maps,
            persistent=fields["persistent"],
            dynamic=fields["dynamic"],
            starts_early=fields["starts_early"],
            has_roles=fields["has_roles"],
            cluster=tuple(fields["cluster"]),
            limits=tuple((text, most) for text, most in fields["limits"]),
            most_programs=fields["most_programs"],
            stripes=fields["stripes"],
            workspaces=tuple(Workspace(w["bytes"], w["is_zero"]) for w in fields["workspaces"]),
            programs_per_cta=fields["programs_per_cta"],
            suits=tuple(fields["suits"]),
            spreads_few=fields["spreads_few"],
            rounds=fields["rounds"],
            writes=None if fields["writes"] is None else tuple(fields["writes"]),
        )


def _read_im2col(entry: Mapping[str, Any] | None) -> Im2col | None:
    if entry is None:
        return None
    return Im2col(tuple(entry["extents"]), tuple(entry["lower"]), tuple(entry["steps"]))


NOT_FINITE = ("inf", "-inf", "nan")
"""The floats that JSON has no number for, as `{"float": "inf"}`."""


def _written(value: Any) -> Any:
    """A constant as JSON has it."""
    return {"float": repr(value)} if repr(value) in NOT_FINITE else value


def _read(value: Any) -> Any:
    """The inverse."""
    return float(value["float"]) if isinstance(value, Mapping) else value
