"""Targets: the one place for facts about an architecture. Everything else asks `target.supports`.

Names are exact keys: an `a` target's features are not inherited by a later architecture, so nothing
compares numbers. To add a target: one row in `TARGETS`, its golden files (`make golden`), and, only
if it brings instructions nobody has yet, a `Feature`, its rows in `mma_shapes.py` and one family
file in `passes/lower_to_nvvm`. Sources: CUDA C++ Programming Guide, "Compute Capabilities"; PTX ISA
9.0, "Target ISA notes" of each instruction; LLVM 22 NVPTX.td for the lowest PTX version of a chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType


class Feature(Enum):
    """What an architecture can do, named after the PTX instruction or facility."""

    CP_ASYNC = auto()
    LDMATRIX = auto()
    MMA_SYNC = auto()
    MMA_SYNC_FP8 = auto()
    FP8_CONVERT = auto()
    BF16_ARITHMETIC = auto()
    MBARRIER = auto()
    STMATRIX = auto()
    TMA = auto()
    CLUSTERS = auto()
    SETMAXNREG = auto()
    GRIDDEPCONTROL = auto()
    WGMMA = auto()
    TCGEN05 = auto()
    CLUSTER_LAUNCH_CONTROL = auto()


_AMPERE = frozenset({Feature.CP_ASYNC, Feature.LDMATRIX, Feature.MMA_SYNC})
_SINCE_HOPPER = _AMPERE | {
    Feature.MMA_SYNC_FP8,
    Feature.FP8_CONVERT,
    Feature.BF16_ARITHMETIC,
    Feature.MBARRIER,
    Feature.STMATRIX,
    Feature.TMA,
    Feature.CLUSTERS,
    Feature.SETMAXNREG,
    Feature.GRIDDEPCONTROL,
}
_BLACKWELL = _SINCE_HOPPER | {Feature.TCGEN05, Feature.CLUSTER_LAUNCH_CONTROL}


@dataclass(frozen=True)
class Speed:
    """The fastest common device of a target: for predictions where the device itself is not asked.

    `tensor_flops` (dense f16 on tensor cores), `fma_flops` (f32) and `f64_flops`: operations of one
    multiprocessor in one clock, a fused multiply-add counting as two. Sources: white papers of
    NVIDIA's A100, H100 and Blackwell; CUDA C++ Programming Guide, "Arithmetic Instructions".
    """

    multiprocessors: int
    clock_mhz: int
    memory_gb_per_s: int
    l2_bytes: int
    tensor_flops: int
    fma_flops: int
    f64_flops: int


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
    registers_per_sm: int = 65536
    threads_per_sm: int = 2048
    ctas_per_sm: int = 32
    shared_bytes_per_cta: int = 1024
    """Shared memory the system keeps of each CTA, beside the CTA's own."""

    def fits_twice(self, shared_bytes: int) -> bool:
        """Whether a multiprocessor has shared memory for two CTAs that use so much of it."""
        whole = self.shared_bytes + self.shared_bytes_per_cta
        return 2 * (shared_bytes + self.shared_bytes_per_cta) <= whole

    def supports(self, feature: Feature) -> bool:
        """Whether the hardware has `feature`."""
        return feature in self.features


_A100 = Speed(108, 1410, 2039, 40 << 20, 2048, 128, 128)
_H200 = Speed(132, 1755, 4800, 60 << 20, 4096, 256, 256)
_B200 = Speed(148, 1850, 8000, 126 << 20, 8192, 256, 128)

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.name: target
        for target in (
            Target("sm_80", (8, 0), 70, _AMPERE, 163 * 1024, True, _A100),
            Target("sm_90a", (9, 0), 80, _SINCE_HOPPER | {Feature.WGMMA}, 227 * 1024, False, _H200),
            Target("sm_100a", (10, 0), 86, _BLACKWELL, 227 * 1024, False, _B200),
        )
    }
)

PTX_VERSIONS = (70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90)
"""PTX versions (times ten) LLVM 22 can print and sm_80 exists in; the last is the default."""


def find_target(name: str) -> Target:
    """The target of that exact name. ValueError names the known ones."""
    try:
        return TARGETS[name]
    except KeyError:
        raise ValueError(f"unknown target {name!r}; known: {', '.join(TARGETS)}") from None


def check_ptx_version(target: Target, version: int) -> None:
    """ValueError unless LLVM can print `version` (PTX version times ten) for `target`."""
    if version not in PTX_VERSIONS:
        known = ", ".join(str(v) for v in PTX_VERSIONS)
        raise ValueError(f"unknown PTX version {version}; known: {known}")
    if version < target.lowest_ptx:
        raise ValueError(
            f"{target.name} needs PTX version {target.lowest_ptx} or later, not {version}"
        )


def targets_for_device(compute_capability: tuple[int, int]) -> list[Target]:
    """The targets whose PTX runs on a device: its own, then forward-compatible ones, newest
    first."""
    runnable = [
        target
        for target in TARGETS.values()
        if target.compute_capability == compute_capability
        or (target.forward_compatible and target.compute_capability < compute_capability)
    ]
    return sorted(runnable, key=lambda target: target.compute_capability, reverse=True)


def target_for_device(compute_capability: tuple[int, int]) -> Target | None:
    """The best target whose PTX runs on a device; None if there is none."""
    return next(iter(targets_for_device(compute_capability)), None)
