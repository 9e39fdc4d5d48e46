"""What is known of a matrix instruction: a row of `mma_shapes.py`, which checks itself."""

from __future__ import annotations

from math import prod

from tilec.hardware.layout import Layout, covers
from tilec.hardware.target import Feature
from tilec.records import dataclass

WARPGROUP_THREADS = 128
"""Of a warpgroup: four warps of 32 (PTX ISA 9.0, "Warpgroup")."""


@dataclass(frozen=True)
class MmaInstruction:
    """One instruction. `lhs`, `rhs`, `acc`: MLIR element types; tf32 reads f32 registers.

    `intrinsic`: LLVM's name for it. `lhs_layout` etc.: the fragments; None for `fma`.
    `paired`: threads have neighbouring rows (`_PAIRED_ROWS`), with the lhs in registers.
    `threads`: how many execute it together. `kind`: what PTX calls the operands' types (.kind).
    `ctas`: 2 where a pair of CTAs has half of the rows of lhs and accumulator each, and half of the
    columns of the rhs. `scale`: the element type of its operands' scales, "" without, and
    `scale_block`: numbers along k that share one. `formats`: what the numbers of lhs and rhs are
    where there are scales, and `pack`: how many of them an element has.
    """

    name: str
    m: int
    n: int
    k: int
    lhs: str
    rhs: str
    acc: str
    feature: Feature | None
    intrinsic: str = ""
    tf32: bool = False
    lhs_layout: Layout | None = None
    rhs_layout: Layout | None = None
    acc_layout: Layout | None = None
    paired: bool = False
    threads: int = 32
    kind: str = ""
    ctas: int = 1
    scale: str = ""
    scale_block: int = 0
    formats: tuple[str, str] = ("", "")
    pack: int = 1

    @property
    def depth(self) -> int:
        """Elements of the operands along k."""
        return self.k // self.pack

    @property
    def is_warpgroup(self) -> bool:
        """Whether a warpgroup executes it, with its rhs in shared memory."""
        return self.threads == WARPGROUP_THREADS

    @property
    def is_tensor(self) -> bool:
        """Whether one thread issues it, with its accumulator in tensor memory."""
        return self.threads == 1

    @property
    def is_scaled(self) -> bool:
        """Whether blocks of its operands along k have scales, where its accumulator is: in
        registers or in tensor memory."""
        return self.scale_block > 0

    @property
    def scale_blocks(self) -> int:
        """Scales of a row that it reads (.scale_vec_size)."""
        return self.k // self.scale_block

    @property
    def reads_buffers(self) -> bool:
        """Whether it reads its operands from shared memory itself."""
        return self.is_warpgroup or self.is_tensor

    def __post_init__(self) -> None:
        for layout, shape in (
            (self.lhs_layout, (self.m, self.depth)),
            (self.rhs_layout, (self.depth, self.n)),
            (self.acc_layout, (self.m, self.n)),
        ):
            if layout is None:
                continue
            if not (
                covers(layout, shape) and layout.num_threads * layout.num_values == prod(shape)
            ):
                raise ValueError(f"{self.name}: fragment {layout} does not tile {shape}")
