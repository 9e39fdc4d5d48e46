"""Targets: the one place for facts about an architecture. Everything else asks `target.supports`.

Names are exact keys: an `a` target's features are not inherited by a later architecture, so nothing
compares numbers. To add a target: one row in `TARGETS`, and, only if it brings instructions nobody
has yet, a `Feature`, its rows in `mma_shapes.py` and one family file in `passes/lower_to_nvvm`.
Sources: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per
Compute Capability" (shared memory, threads and CTAs of a multiprocessor; the same numbers in CCCL,
`cuda/__device/arch_traits.h`); PTX ISA 9.0, "Target ISA notes" of each instruction; LLVM 22
NVPTX.td for the lowest PTX version of a chip.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from tilec.hardware.sizes import PORTABLE_CTAS, REGISTERS
from tilec.messages.mistakes import mistake
from tilec.messages.names import did_you_mean
from tilec.records import dataclass


class Feature(Enum):
    """What an architecture can do, named after the PTX instruction or facility."""

    CP_ASYNC = auto()
    LDMATRIX = auto()
    MMA_SYNC = auto()
    MMA_SYNC_FP8 = auto()
    MMA_SYNC_BLOCK_SCALE = auto()
    FP8_CONVERT = auto()
    BF16_ARITHMETIC = auto()
    VECTOR_REDUCTIONS = auto()
    MBARRIER = auto()
    STMATRIX = auto()
    TMA = auto()
    CLUSTERS = auto()
    SETMAXNREG = auto()
    GRIDDEPCONTROL = auto()
    WGMMA = auto()
    TCGEN05 = auto()
    TCGEN05_I8 = auto()
    CLUSTER_LAUNCH_CONTROL = auto()


_AMPERE = frozenset({Feature.CP_ASYNC, Feature.LDMATRIX, Feature.MMA_SYNC})
_ADA = _AMPERE | {Feature.MMA_SYNC_FP8, Feature.FP8_CONVERT}
_SINCE_HOPPER = _ADA | {
    Feature.BF16_ARITHMETIC,
    Feature.VECTOR_REDUCTIONS,
    Feature.MBARRIER,
    Feature.STMATRIX,
    Feature.TMA,
    Feature.CLUSTERS,
    Feature.SETMAXNREG,
    Feature.GRIDDEPCONTROL,
}
_HOPPER = _SINCE_HOPPER | {Feature.WGMMA}
_SINCE_BLACKWELL = _SINCE_HOPPER | {Feature.CLUSTER_LAUNCH_CONTROL}
_TENSOR_I8 = _SINCE_BLACKWELL | {Feature.TCGEN05, Feature.TCGEN05_I8}
_TENSOR = _SINCE_BLACKWELL | {Feature.TCGEN05}
"""PTX ISA 9.0, "tcgen05.mma": .kind::i8 is for sm_100a and sm_110a alone."""
_RTX = _SINCE_BLACKWELL | {Feature.MMA_SYNC_BLOCK_SCALE}
"""PTX ISA 9.0, "mma" (.block_scale), "setmaxnreg" and "clusterlaunchcontrol.try_cancel": sm_120a
and sm_121a have these; they have neither wgmma nor tcgen05."""


@dataclass(frozen=True)
class Groups:
    """Rows of tiles that programs go down before the next column, so that those which run at once
    read the same from L2. All were timed on an H200, and on no other device.

    `alone`: of programs that do not stay, as many as Triton's own products have (`GROUP_SIZE_M`),
    which figures are compared with. `persistent`: 12 rows by 11 columns are one wave of 132
    multiprocessors, near a square of 128 x 256 tiles. bf16 8192^3 read 1.30 GB of memory (8 rows:
    1.49) and 240 million sectors of L2 (8: 231, 16: 266, 24: 273), and was fastest by 0.5 to 1 %:
    the GPU is at its power limit, and what is not read lets it clock higher. `cluster`: persistent
    CTAs in clusters, which are dealt to 8 processor groups in turn, so that 8 rows of pairs give
    each group a row of its own. 259 million sectors (12 rows: 267), and 0.5 % faster. `square`:
    side of what Hilbert's curve fills, since 11.5 x 11.5 programs run at once.
    """

    alone: int = 8
    persistent: int = 12
    cluster: int = 16
    square: int = 16


@dataclass(frozen=True)
class Speed:
    """The fastest common device of a target: for predictions where the device itself is not asked.

    `tensor_flops` (dense f16 on tensor cores), `fma_flops` (f32) and `f64_flops`: operations of one
    multiprocessor in one clock, a fused multiply-add counting as two. `memory_gb_per_s`: what the
    clock and the width of its memory give, as a device says of itself. Sources: CUDA C++
    Programming Guide, "Arithmetic Instructions"; NVIDIA's white papers and data sheets of the
    device that the row is named after: peak f16 with f32 sums by multiprocessors and boost clock;
    of the H200, whose timings predictions are fitted to, the clock that the device states.
    `groups`: of programs, which go by how many multiprocessors there are.
    """

    multiprocessors: int
    clock_mhz: int
    memory_gb_per_s: int
    l2_bytes: int
    tensor_flops: int
    fma_flops: int
    f64_flops: int
    groups: Groups = Groups()


@dataclass(frozen=True)
class Target:
    """One architecture.

    `compute_capability`: the devices whose exact target this is. `lowest_ptx`: PTX version times
    ten below which LLVM has no such chip. `shared_bytes`: the most one CTA may use.
    `forward_compatible`: its PTX also runs on devices of a later compute capability.
    """

    name: str
    compute_capability: tuple[int, int]
    lowest_ptx: int
    features: frozenset[Feature]
    shared_bytes: int
    forward_compatible: bool
    speed: Speed
    warp_size: int = 32
    max_threads: int = 1024
    registers_per_thread: int = 255
    registers_per_sm: int = REGISTERS
    threads_per_sm: int = 2048
    ctas_per_sm: int = 32
    ctas_per_cluster: int = PORTABLE_CTAS
    shared_bytes_per_cta: int = 1024
    """Shared memory the system keeps of each CTA, beside the CTA's own."""

    def fits_twice(self, shared_bytes: int) -> bool:
        """Whether a multiprocessor has shared memory for two CTAs that use so much of it."""
        whole = self.shared_bytes + self.shared_bytes_per_cta
        return 2 * (shared_bytes + self.shared_bytes_per_cta) <= whole

    def bytes_beside(self, ctas: int) -> int:
        """The most shared memory that each of so many CTAs on a multiprocessor may use."""
        whole = self.shared_bytes + self.shared_bytes_per_cta
        return whole // ctas - self.shared_bytes_per_cta

    def ctas_beside(self, shared_bytes: int) -> int:
        """CTAs, one at least, for which a multiprocessor has so much shared memory each."""
        whole = self.shared_bytes + self.shared_bytes_per_cta
        each = shared_bytes + self.shared_bytes_per_cta
        return max(1, min(self.ctas_per_sm, whole // each))

    @property
    def sums_in_clusters(self) -> bool:
        """Whether CTAs of a cluster may each sum a part, and one add them up: not where all warps
        of a CTA meet at its end to give tensor memory back, those included that wait for others."""
        return Feature.CLUSTERS in self.features and Feature.TCGEN05 not in self.features

    @property
    def copies_fragments(self) -> bool:
        """Whether tensor copies bring what threads read as fragments: where no instruction reads
        its operands from shared memory itself."""
        by_itself = {Feature.WGMMA, Feature.TCGEN05}
        return Feature.TMA in self.features and not by_itself & self.features

    def supports(self, feature: Feature) -> bool:
        """Whether the hardware has `feature`."""
        return feature in self.features


_A100 = Speed(108, 1410, 2039, 40 << 20, 2048, 128, 128)
_RTX_3090 = Speed(82, 1695, 936, 6 << 20, 512, 256, 4)
_AGX_ORIN = Speed(16, 1300, 204, 4 << 20, 2048, 256, 4)
_RTX_4090 = Speed(128, 2520, 1008, 72 << 20, 512, 256, 4)
_H200 = Speed(132, 1980, 4917, 60 << 20, 4096, 256, 256)
_B200 = Speed(148, 1850, 8000, 126 << 20, 8192, 256, 128)
_B300 = Speed(148, 1920, 8000, 126 << 20, 8192, 256, 4)
_RTX_5090 = Speed(170, 2407, 1792, 96 << 20, 512, 256, 4)
_GB10 = Speed(48, 2418, 273, 24 << 20, 512, 256, 4)

_KIB = 1024
"""Bytes: shared memory is stated in KiB."""
_FEWER = {"threads_per_sm": 1536, "ctas_per_sm": 16}
_WIDE = {"ctas_per_cluster": 16}
"""CUDA C++ Programming Guide, "Thread Block Clusters": on 9.0 and 10.0; not on 12.x."""
_MORE_CTAS = {"threads_per_sm": 1536, "ctas_per_sm": 24}

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.name: target
        for target in (
            Target("sm_80", (8, 0), 70, _AMPERE, 163 * _KIB, True, _A100),
            Target("sm_86", (8, 6), 71, _AMPERE, 99 * _KIB, True, _RTX_3090, **_FEWER),
            Target("sm_87", (8, 7), 74, _AMPERE, 163 * _KIB, True, _AGX_ORIN, **_FEWER),
            Target("sm_89", (8, 9), 78, _ADA, 99 * _KIB, True, _RTX_4090, **_MORE_CTAS),
            Target("sm_90a", (9, 0), 80, _HOPPER, 227 * _KIB, False, _H200, **_WIDE),
            Target("sm_100a", (10, 0), 86, _TENSOR_I8, 227 * _KIB, False, _B200, **_WIDE),
            Target("sm_103a", (10, 3), 88, _TENSOR, 227 * _KIB, False, _B300, **_WIDE),
            Target("sm_120a", (12, 0), 87, _RTX, 99 * _KIB, False, _RTX_5090, **_MORE_CTAS),
            Target("sm_121a", (12, 1), 88, _RTX, 99 * _KIB, False, _GB10, **_MORE_CTAS),
        )
    }
)

PTX_VERSIONS = (70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90)
"""PTX versions (times ten) LLVM 22 can print and sm_80 exists in; the last is the default."""


_CALLED = {
    "sm_80": "ampere|a100|a30",
    "sm_86": r"a10|a40|rtxa\d000|rtx30\d\d(ti)?",
    "sm_87": "(jetson)?(agx)?orin",
    "sm_89": r"ada|l4|l40s?|rtx40\d\d(ti)?",
    "sm_90a": "hopper|h[12]00|h20|h800|gh200",
    "sm_100a": "blackwell|g?b200|b100",
    "sm_103a": "g?b300",
    "sm_120a": r"rtx50\d\d(ti)?|rtxpro6000(blackwell)?",
    "sm_121a": "gb10|(dgx)?spark",
}
"""What people call devices, in small letters and digits (developer.nvidia.com/cuda-gpus)."""


def find_target(name: str) -> Target:
    """The target of that exact name. ValueError names the known ones."""
    if not isinstance(name, str):
        raise mistake(TypeError(f"target: expected a name such as 'sm_90a', found {name!r}"))
    refuse_older(name)
    try:
        return TARGETS[name]
    except KeyError:
        text = f"unknown target {name!r}; known: {', '.join(TARGETS)}"
        meant = _meant(name)
        notes = [f"help: write {meant}"] if meant else did_you_mean(name, TARGETS)
        raise mistake(ValueError("\n".join([text, *notes]))) from None


def _meant(name: str) -> str | None:
    """The target of a device, or of a compute capability (9.0, sm_90, compute_90), of that name."""
    word = re.sub(r"nvidia|geforce|tesla|[^a-z0-9]", "", name.lower())
    for target in TARGETS.values():
        number = "(sm|compute)?{}{}[af]?".format(*target.compute_capability)
        if re.fullmatch(f"{number}|{_CALLED.get(target.name, number)}", word):
            return target.name
    return None


def check_ptx_version(target: Target, version: int) -> None:
    """Raises ValueError unless LLVM can print `version` (PTX version times ten) for `target`."""
    if version not in PTX_VERSIONS:
        known = ", ".join(str(v) for v in PTX_VERSIONS)
        raise ValueError(f"unknown PTX version {version}; known: {known}")
    if version < target.lowest_ptx:
        raise ValueError(
            f"{target.name} needs PTX version {target.lowest_ptx} or later, not {version}"
        )


OLDEST_CAPABILITY = (8, 0)
"""cp.async, ldmatrix and mma.sync of 16-bit types: what every program here is made of."""


def refuse_older(name: str) -> None:
    """Raises ValueError, with the reason, where `name` is that of an architecture before Ampere."""
    if re.fullmatch(r"(?:sm|compute)_[5-7]\d", name):
        raise ValueError(f"{name} is not supported: {BEFORE_AMPERE}")


BEFORE_AMPERE = "tilec needs Ampere or later (compute capability 8.0), for cp.async and bf16"
"""Why Turing (7.5) and what came before is refused."""


def targets_for_device(
    compute_capability: tuple[int, int], shared_bytes: int | None = None
) -> list[Target]:
    """The targets whose PTX runs on a device: its own, then forward-compatible ones, newest
    first.

    `shared_bytes`: the most the device gives one CTA, if that is known; what a target may use of
    it must be there.
    """
    runnable = [
        target
        for target in TARGETS.values()
        if target.compute_capability == compute_capability
        or (target.forward_compatible and target.compute_capability < compute_capability)
    ]
    fitting = [t for t in runnable if shared_bytes is None or t.shared_bytes <= shared_bytes]
    return sorted(fitting, key=lambda target: target.compute_capability, reverse=True)


def target_for_device(
    compute_capability: tuple[int, int], shared_bytes: int | None = None
) -> Target | None:
    """The best target whose PTX runs on a device; None if there is none."""
    return next(iter(targets_for_device(compute_capability, shared_bytes)), None)


def why_not_its_own(target: Target, compute_capability: tuple[int, int]) -> str | None:
    """A word about a target that is not the device's own, None where it is."""
    if target.compute_capability == compute_capability:
        return None
    shown = "{}.{}".format(*compute_capability)
    return f"there is no target for {shown}: the nearest whose code runs there and fits its memory"


def why_no_target(compute_capability: tuple[int, int]) -> str:
    """Says why no known target's code runs on a device of a compute capability."""
    if compute_capability < OLDEST_CAPABILITY:
        return BEFORE_AMPERE
    return f"no target's code runs there and fits its memory; known: {', '.join(TARGETS)}"
