"""Which tile a program works on, and when a launch starts."""

from __future__ import annotations

from typing import Any, ClassVar

from mlir import ir

from tilec.dialects.attributes import INT, one_of
from tilec.dialects.constraints import I32
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.op import Attribute, Operand, Result
from tilec.hardware.target import Feature
from tilec.terms.demands import ORDERS


class TileOrderOp(Op, name="tile_order", pure=True, one_thread=True, in_cta=True, least=0):
    """The (row, column) of the `linear`-th tile of a rows x columns grid.

    "grouped": `group` rows are walked column by column before the next rows, so that programs that
    run together share operands in the L2 cache; "rows": row by row; "hilbert": within such groups
    squares of `group` tiles a side, a power of two, along Hilbert's curve, what fills none as
    "grouped".

    Example:
        %m, %n = "gpu_tile.tile_order"(%linear, %rows, %columns) {order = "grouped", group = 8 : i32} : (i32, i32, i32) -> (i32, i32)
    """

    linear = Operand(I32)
    rows = Operand(I32)
    columns = Operand(I32)
    row = Result(I32)
    column = Result(I32)
    order = Attribute(one_of(*ORDERS))
    group = Attribute(INT)

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32)] * 2

    def check(self) -> str | None:
        if self.group < 1:
            return f"group must be positive, found {self.group}"
        if self.order == "hilbert" and self.group & (self.group - 1):
            return f"group must be a power of two for 'hilbert', found {self.group}"
        return None


class LaunchCount(Op, pure=True, one_thread=True, in_cta=True):
    """A number of CTAs, or of clusters, in the launch of a persistent kernel."""

    LEAST: ClassVar[int]
    result = Result(I32)

    @classmethod
    def infer_types(cls) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32)]


class CtaIdOp(LaunchCount, name="cta_id", least=0):
    """The number of this CTA in the launch of a persistent kernel.

    Example:
        %first = "gpu_tile.cta_id"() : () -> i32
    """


class NumCtasOp(LaunchCount, name="num_ctas", least=1):
    """Gives how many CTAs the launch of a persistent kernel has, at most what runs side by side.

    Example:
        %step = "gpu_tile.num_ctas"() : () -> i32
    """


class ProgramInCtaOp(Op, name="program_in_cta", pure=True, one_thread=True, in_cta=True, least=0):
    """Which of the programs that a CTA runs side by side, a warp each (`tile.programs_per_cta` of
    the kernel), this thread works for.

    Example:
        %mine = "gpu_tile.program_in_cta"() : () -> i32
    """

    result = Result(I32)

    @classmethod
    def infer_types(cls) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32)]


class NumProgramsInCtaOp(
    Op, name="programs_in_cta", pure=True, one_thread=True, in_cta=True, least=1
):
    """How many programs each CTA of this launch runs side by side, `tile.programs_per_cta` at most.

    Example:
        %warps = "gpu_tile.programs_in_cta"() : () -> i32
    """

    result = Result(I32)

    @classmethod
    def infer_types(cls) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32)]


class GriddepcontrolOp(Op, name="griddepcontrol", needs=Feature.GRIDDEPCONTROL, one_thread=True):
    """Overlaps this launch with its neighbours in the stream (PTX ISA 9.0, "griddepcontrol").

    "wait": goes on when all earlier launches are done and what they wrote is visible; a kernel that
    has one may be started before that. "launch_dependents": the next launch may start, up to its
    own "wait", as soon as every CTA said so or ended.

    Example:
        "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
    """

    kind = Attribute(one_of("wait", "launch_dependents"))
