"""The code of Blackwell kernels, tilec's beside Triton's of the same tiles, as a table.

    python test/bench/blackwell_code.py              # needs ptxas, no GPU
    python test/bench/blackwell_code.py --machine    # and nvdisasm: instructions of a step

Triton's PTX is that of test/emulator/fixtures (Triton 3.6.0). What a main loop does is counted in
the loops of the PTX (`ptx_loops`): the innermost ones that multiply or that copy tiles in. Of loops
that do the same (attention with and without a mask) the shortest counts. Tensor copies are counted
as boxes: Triton's warps share one instruction where a tile is several.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from pathlib import Path
from typing import Any

from machine_loops import machine_loops
from ptx_loops import Loop, count, find_loops, instructions

from tilec.compile.assembler import Assembly, assemble, disassemble
from tilec.examples.matmul import matmul
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import TARGETS
from tilec.hardware.tensor_memory import COLUMNS
from tilec.messages.report import show_report
from tilec.ops.attention_kernel import attention
from tilec.ops.scaled_kernel import scaled_product

TARGET = TARGETS["sm_100a"]
TRITON = Path(__file__).resolve().parent.parent / "emulator" / "fixtures" / "triton.tar.xz"
PRODUCT = r"tcgen05\.mma"
TENSOR_COPY = r"cp\.async\.bulk\.tensor\S*shared::(?:cta|cluster)\.global"
COPY = rf"{TENSOR_COPY}|cp\.async\.c[ag]"
WAIT, ARRIVAL = r"mbarrier\.try_wait", r"mbarrier\.arrive|tcgen05\.commit"
SYNC = r"bar(rier)?\.sync"
ELEMENT_BYTES = 2


@dataclass(frozen=True)
class Case:
    """A kernel that both compile. `element_bytes`: of what it loads, `depth`: of an instruction.

    `fixtures`: a label and a name for each of Triton's. `loads`, `store`: shapes of the tiles that
    a step of the main loop copies in and that leave at the end. `products`: (m, n, k) of each
    product of a step. `kept`: bytes of shared memory that hold an operand for all steps.
    """

    name: str
    fixtures: tuple[tuple[str, str], ...]
    loads: tuple[tuple[int, int], ...]
    store: tuple[int, int]
    products: tuple[tuple[int, int, int], ...]
    compile: Callable[[], CompiledKernel]
    kept: int = 0
    element_bytes: int = 2
    depth: int = 16

    @property
    def fewest_products(self) -> int:
        """Instructions of a step where each is as large as there are: 128 x 256 x `depth`."""
        return sum(-(-m // 128) * -(-n // 256) * -(-k // self.depth) for m, n, k in self.products)


@dataclass(frozen=True)
class Code:
    """A kernel in PTX. `boxes`: shapes of its tensor maps, those that it stores through apart."""

    ptx: str
    shared: int
    threads: int
    load_boxes: tuple[tuple[int, ...], ...]
    store_boxes: tuple[tuple[int, ...], ...]
    stages: int

    @cached_property
    def assembly(self) -> Assembly:
        """What ptxas makes of it."""
        return assemble(self.ptx, TARGET)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The main loop's: one that multiplies, and one that copies, if that is another."""
        innermost = [loop for loop in find_loops(self.ptx) if loop.innermost]
        found = []
        for pattern in (PRODUCT, COPY):
            fitting = [loop for loop in innermost if loop.count(pattern)]
            found.append(min(fitting, key=lambda loop: len(loop.instructions)))
        return tuple(dict.fromkeys(found))

    def per_step(self, pattern: str) -> int:
        """Instructions of a kind in an iteration of the main loop's roles."""
        return sum(loop.count(pattern) for loop in self.loops)

    @property
    def shapes(self) -> list[str]:
        """m and n of the products of a step, from their instruction descriptors (PTX ISA 9.0,
        "Instruction descriptor": bits 24 to 28 are m / 16, bits 17 to 22 n / 8)."""
        constants = dict(re.findall(r"mov\.b32 +\t?(%r\d+), (-?\d+);", self.ptx.replace("\t", " ")))
        found = []
        for line in self.loops[0].instructions:
            if re.search(PRODUCT, line):
                word = int(constants[line.split(",")[3].strip()])
                found.append(f"m{(word >> 24 & 31) * 16}n{(word >> 17 & 63) * 8}")
        return found

    @property
    def columns(self) -> int:
        """Columns of tensor memory a CTA takes."""
        return int(re.findall(r"tcgen05\.alloc\S* \[%r\d+\], (\d+);", self.ptx)[0])

    @property
    def ctas(self) -> int:
        """CTAs that run side by side on a multiprocessor."""
        registers = -(-self.assembly.registers // 8) * 8 * self.threads
        whole = TARGET.shared_bytes + TARGET.shared_bytes_per_cta
        return min(
            whole // (self.shared + TARGET.shared_bytes_per_cta),
            COLUMNS // self.columns,
            TARGET.registers_per_sm // registers,
        )

    @property
    def persistent(self) -> bool:
        """Whether a CTA goes on with another tile."""
        return "%nctaid" in self.ptx

    @property
    def overlaps(self) -> bool:
        """Whether a tile's products run while the one before is stored: they are issued in a loop
        over tiles that does not read the sums."""
        over_tiles = [one for one in find_loops(self.ptx) if self.loops[0].blocks < one.blocks]
        return self.persistent and bool(over_tiles) and not over_tiles[0].count(r"tcgen05\.ld")


@cache
def _triton() -> dict[str, str]:
    with tarfile.open(TRITON) as tar:
        read = {m.name: tar.extractfile(m) for m in tar.getmembers()}
        return {name: file.read().decode() for name, file in read.items() if file is not None}


def triton_code(case: Case, fixture: str) -> Code:
    """Triton's kernel of a case; its stages are as many as fit into its shared memory."""
    facts: dict[str, Any] = json.loads(_triton()["index.json"])[fixture]
    boxes = [tuple(one["block_size"]) for one in facts["tensor_maps"]]
    ptx = _triton()[f"{fixture}.ptx"]
    stages = (facts["shared"] - case.kept) // (sum(map(prod, case.loads)) * case.element_bytes)
    load, store = tuple(boxes[: len(case.loads)]), tuple(boxes[len(case.loads) :])
    return Code(ptx, facts["shared"], facts["threads"], load, store, stages)


@cache
def tilec_code(case: Case) -> Code:
    """tilec's."""
    compiled = case.compile()
    decision = re.search(r"(\d+) stages", show_report(compiled.report))
    maps = sorted(compiled.tensor_maps, key=lambda one: one.parameter)
    return Code(
        compiled.ptx,
        compiled.shared_bytes,
        compiled.threads,
        tuple(one.box for one in maps if not one.stores)[-len(case.loads) :],
        tuple(one.box for one in maps if one.stores),
        int(decision[1]) if decision else 1,
    )


def _product(m: int, n: int, k: int, order: str, **fixtures: str) -> Case:
    specs = [
        f"{name}:f16[?:8,?:8;{'1,?:8' if letter == 't' else '?:8,1'}]"
        for name, letter in zip("abc", f"{order}n", strict=True)
    ]
    constants = {"BM": m, "BN": n, "BK": k}
    return Case(
        f"{m}x{n}x{k} {order}",
        tuple(
            (label.replace("_", ", "), f"{name}.{TARGET.name}") for label, name in fixtures.items()
        ),
        ((m, k), (k, n)),
        (m, n),
        ((m, n, k),),
        lambda: matmul.compile(specs, constants, target=TARGET.name),
    )


def _scaled(kind: str, element: str, scale: str, k: int, block: int, fixture: str) -> Case:
    """128 x 128 tiles of operands that are contiguous along k, with a scale per `block` numbers;
    the scales come arranged. Rows of an operand's tile are 128 bytes."""
    scales = (1, k // block // 4, 2, 256)
    specs = [
        f"a:{element}[?:16,?:16;?:16,1]",
        f"a_scale:{scale}[?,?,2,256;?:512,512,256,1]",
        f"b:{element}[?:16,?:16;1,?:16]",
        f"b_scale:{scale}[?,?,2,256;?:512,512,256,1]",
        "c:f32[?:4,?:4;?:4,1]",
        *(f"{name}:i32" for name in ("bias", "row_scale", "column_scale", "scale", "residual")),
    ]
    constants = {"BM": 128, "BN": 128, "BK": k, "BLOCK": block, "ARRANGED": True}
    return Case(
        f"{kind} 128x128x{k} nt",
        (("Triton", f"matmul_scaled_tma.{fixture}.{TARGET.name}"),),
        ((128, 128), scales, (128, 128), scales),
        (128, 128),
        ((128, 128, k),),
        lambda: scaled_product.compile(specs, constants, target=TARGET.name),
        element_bytes=1,
        depth=k // 4,
    )


def _attention(causal: bool) -> Case:
    specs = [*(f"{name}:f16[?,?,?,64;?:8,?:8,?:8,1]" for name in "qkvo"), "scale:f32"]
    constants = {"D": 64, "BM": 64, "BN": 32, "CAUSAL": causal}
    name = "causal" if causal else "full"
    return Case(
        f"attention 64x32 {name}",
        (("Triton", f"attention.{name}.{TARGET.name}"),),
        ((32, 64), (32, 64)),
        (64, 64),
        ((64, 32, 64), (64, 64, 32)),
        lambda: attention.compile(specs, constants, target=TARGET.name),
        kept=64 * 64 * ELEMENT_BYTES,
    )


CASES = (
    _product(128, 128, 64, "nn", Triton="matmul_tma.128x128x64.nn"),
    _product(
        128,
        128,
        64,
        "nt",
        Triton="matmul_tma.128x128x64.nt",
        Triton_specialised="matmul_tma.128x128x64.nt.ws",
    ),
    _product(128, 128, 64, "tn", Triton="matmul_tma.128x128x64.tn"),
    _product(128, 256, 64, "nt", Triton="matmul_tma.128x256x64.nt"),
    _product(128, 128, 32, "nn", Triton_pointers="matmul.f16.nn.128x128x32"),
    _scaled("mxfp8", "f8e4m3", "f8e8m0", 128, 32, "mx8"),
    _scaled("mxfp4", "f4e2m1x2", "f8e8m0", 256, 32, "mx4"),
    _scaled("nvfp4", "f4e2m1x2", "f8e4m3", 256, 16, "nv4"),
    _attention(False),
    _attention(True),
)


def _boxes(tiles: Sequence[tuple[int, ...]], boxes: Sequence[tuple[int, ...]]) -> int:
    """Tensor copies of some tiles."""
    return sum(prod(tile) // prod(box) for tile, box in zip(tiles, boxes, strict=True))


def loaded(case: Case, code: Code) -> str:
    """How a step's tiles come."""
    if code.load_boxes:
        return str(_boxes(case.loads, code.load_boxes))
    return f"{code.per_step(COPY)} cp.async a thread"


def _stored(case: Case, code: Code) -> str:
    """How a finished tile leaves."""
    if code.store_boxes:
        return str(_boxes([case.store], code.store_boxes))
    stores = count(instructions(code.ptx), r"st\.global")
    return f"{stores} st.global a thread"


SHOWN: dict[str, Callable[[Case, Code], object]] = {
    "products a step": lambda case, code: _runs(code.shapes),
    "loads a step": loaded,
    "stores a tile": _stored,
    "waits": lambda case, code: code.per_step(WAIT),
    "arrivals": lambda case, code: code.per_step(ARRIVAL),
    "syncs": lambda case, code: code.per_step(SYNC),
    "stages": lambda case, code: code.stages,
    "columns": lambda case, code: code.columns,
    "shared": lambda case, code: code.shared,
    "overlap": lambda case, code: "yes" if code.overlaps else "no",
    "registers": lambda case, code: code.assembly.registers,
    "spills": lambda case, code: code.assembly.spills,
    "CTAs": lambda case, code: code.ctas,
}
"""Of what is counted per step: in an iteration of the main loop, all roles together."""
ASSEMBLED = ("registers", "spills", "CTAs")
"""What needs ptxas and may change with it."""


def _runs(shapes: Sequence[str]) -> str:
    return " + ".join(f"{shapes.count(shape)} {shape}" for shape in dict.fromkeys(shapes))


def rows(columns: Sequence[str]) -> list[list[str]]:
    """What is shown of every case: tilec's kernel, then Triton's."""
    found = []
    for case in CASES:
        codes = {"tilec": tilec_code(case)}
        codes |= {label: triton_code(case, name) for label, name in case.fixtures}
        for by, code in codes.items():
            shown = [str(SHOWN[column](case, code)) for column in columns]
            found.append([case.name if by == "tilec" else "", by, *shown])
    return found


def table() -> str:
    """Markdown, a row a kernel."""
    lines = [["f16", "", *SHOWN], ["---"] * (2 + len(SHOWN)), *rows(tuple(SHOWN))]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


BY_MACHINE: Mapping[str, str] = {
    "instructions a step": "",
    "UMOV": "UMOV",
    "addresses": "ULEA|UIADD3|UIMAD|USHF|ULOP3|USGXT|USEL",
    "elections": "VOTEU|ELECT",
    "waits": "SYNCS",
    "syncs": "BAR",
}
"""Of a step in machine code: all instructions, moves of constants, mostly upper halves of
descriptors, what computes addresses and slots, what picks a thread, waits, and syncs of the CTA."""


def machine_rows(only: str = "") -> list[list[str]]:
    """What is counted in a step of each kernel, of the warp that multiplies and, where that is in
    another loop, of the one that copies. `only`: the name of a case, else all."""
    found = []
    for case in CASES:
        if only not in ("", case.name):
            continue
        codes = {"tilec": tilec_code(case)}
        codes |= {label: triton_code(case, name) for label, name in case.fixtures}
        for by, code in codes.items():
            loops = machine_loops(disassemble(code.assembly.cubin))
            steps = [_step(loops, kind) for kind in ("UTC.*MMA", "UTMALDG|LDGSTS")]
            apart = [step for step in dict.fromkeys(steps) if step is not None]
            shown = [
                " + ".join(str(step.count(pattern)) for step in apart)
                for pattern in BY_MACHINE.values()
            ]
            found.append([case.name if by == "tilec" else "", by, *shown])
    return found


def _step(loops: Sequence[Loop], kind: str) -> Loop | None:
    """The smallest loop with an instruction of a kind."""
    fitting = [loop for loop in loops if loop.count(kind)]
    return min(fitting, key=lambda loop: len(loop.instructions), default=None)


def machine_table() -> str:
    """Markdown, a row a kernel."""
    heads = ["f16", "", *BY_MACHINE]
    lines = [heads, ["---"] * len(heads), *machine_rows()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(machine_table() if "--machine" in sys.argv else table(), end="")
