"""The pages in passes/: PIPELINING.md, HOPPER.md and BLACKWELL.md show what the passes really
print, README.md lists the passes in order.

`python test/unit/test_pass_pages.py` writes the blocks anew after a change of the passes.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from pass_pages import Dump, Opcodes, Page, Program, Report

import tilec.passes
from tilec.compile.pipeline import ALL_PASSES, EXPLICIT_PIPELINE, LLVM_PIPELINE, TILE_PIPELINE
from tilec.examples.ampere_gemm import ampere_gemm
from tilec.examples.block_scaled_matmul import block_scaled_matmul
from tilec.examples.matmul import matmul
from tilec.ops.attention_kernel import attention
from tilec.passes.contract import TilePass
from tilec.passes.keep_explicit import keep_explicit

PASSES = Path(tilec.passes.__file__).parent
AMPERE = Program(
    ampere_gemm,
    ["a:bf16[?:8,?:8;?:8,1]", "bt:bf16[?:8,?:8;?:8,1]", "d:f32[?:8,?:8;?:8,1]"],
    {"BM": 64, "BN": 64, "BK": 32, "STAGES": 3},
    "sm_80",
    {
        **{
            stage: Dump(stage, pattern)
            for stage, pattern in {
                "remove-layout-conversions": (
                    r"scf\.|\"tile\.(load|transpose|dot|store)|^\} \{tile"
                ),
                "schedule-programs": r"program|tile_order|muli|%\d+ = arith.addi|index_cast %\d+#",
                "stage-operands": (
                    r"scf\.|\"tile\.[lt]|gpu_tile\.(alloc|buffer|view|mma)|^\} \{tile"
                ),
                "insert-async-copies": (r"scf\.|gpu_tile\.(alloc|cp|buffer_load|mma)|^\} \{tile"),
                "pipeline-loops": (
                    r"scf\.|cmpi|gpu_tile\.(alloc|cp|slot|make|ring|buffer_load|mma)|addi %|^\}$"
                ),
                "prefetch-fragments": (
                    r"scf\.|gpu_tile\.(cp|slot|ring|buffer_load|mma)|addi %a|^\}$"
                ),
                "allocate-shared": r"gpu_tile\.alloc",
                "insert-barriers": r"scf\.|gpu_tile\.(sync|cp|buffer_load|mma)|^\}$",
            }.items()
        },
        "ptx": Opcodes(r"cp\.async|bar\.sync|ldmatrix|mma\.sync|bra|st\.global"),
        "report": Report(),
    },
)
LOOP = r"scf\.(for|yield|if)|^\}$"
PRODUCT = Program(
    matmul,
    [f"{name}:bf16[?:8,?:8;?:8,1]" for name in "abc"],
    {"BM": 128, "BN": 256, "BK": 64},
    "sm_90a",
    {
        "select-mma": Dump("select-mma", LOOP + r"|\"tile\.[lds]|truncf"),
        "schedule-programs": Dump(
            "schedule-programs", LOOP + r"|cta|tile_order|\"tile\.[lds]|conv"
        ),
        "insert-tensor-stores": Dump(
            "insert-tensor-stores",
            r"scf\.for|^\}$|make_tensor|tile\.split|alloc|slot|store|tma_wait|truncf",
            end="tma_wait",
        ),
        "stage-operands": Dump(
            "stage-operands",
            LOOP + r"|tile\.load|gpu_tile\.(alloc|buffer|wgmma)",
            start=r"scf.for %\w+ = %c0 ",
            end=r"^\}$",
        ),
        "insert-async-copies": Dump(
            "insert-async-copies",
            LOOP + r"|make_tensor_map|ring|tma_load|alloc|gpu_tile.wgmma",
            end=r"^scf\.yield %\d+, ",
        ),
        "specialize-warps": Dump(
            "specialize-warps",
            LOOP + r"|role|^\}\)|alloc|ring|slot\"\(%\d+, %\d+\)|tma|wgmma",
        ),
        "overlap-mma": Dump(
            "overlap-mma",
            LOOP + r"|ring|gpu_tile.wgmma|subi|cmpi",
            start=r"wgmma_fence",
            end=r"truncf",
        ),
        "allocate-shared": Dump("allocate-shared", r"gpu_tile\.(alloc|make_ring)"),
        "overlap-launches": Dump(
            "overlap-launches",
            r"sync|griddep|gpu_tile.role|cmpi|scf.(for|if)|tma_load|^\}",
            end=r"name = \"load\"",
        ),
        "expand-rings": Dump(
            "expand-rings",
            r"role|^\}\)|barrier|gpu_tile.sync|ring|xori|tma_load|gpu_tile.wgmma\"|subi",
            end="barrier_arrive",
        ),
        "ptx": Opcodes(
            r"cp\.async|bar\.sync|mbarrier|wgmma|setmaxnreg|elect|stmatrix|fence|prefetch|griddep"
        ),
        "report": Report(),
    },
)
PAIR = Program(
    matmul.demanding(cluster=2),
    PRODUCT.specs,
    PRODUCT.constants,
    PRODUCT.target,
    {
        "clusters": Dump(
            "schedule-programs",
            r"cluster|tile_order|select|cmpi|scf\.(for|if)|addi|\"tile\.[ls]|^\}$",
        ),
        "share-copies": Dump(
            "share-copies",
            r"cluster|ring_|role|view|tma_(load|mult)|muli %0|addi %\d+, %\d+$|^\}\)",
        ),
        "share-copies-ptx": Opcodes(
            r"mapa|barrier\.cluster|mbarrier|cp\.async\.bulk\.t\S*shared::cl"
        ),
        "await-arrivals": Dump(
            "await-arrivals",
            r"for|addi|ring|^\}",
            start=r"for %arg3 = %c0_i32_0",
            end=r'name = "load"',
        ),
        "share-copies-report": Report("^(program|cluster)"),
    },
)
TURNS = Program(
    matmul.demanding(num_warps=4, consumers="pingpong"),
    PRODUCT.specs,
    {"BM": 128, "BN": 192, "BK": 64},
    PRODUCT.target,
    {
        "alternate-programs": Dump(
            "alternate-programs",
            r"scf\.|^\}( else \{)?$|andi|cmpi eq|ring|gpu_tile.wgmma|store\"|role|^\}\)|select"
            r"|addi %arg4|arith.constant [01] : i32",
            start=r"^\}\) \{first_warp = 8",
            end=r'name = "compute"',
        ),
        "alternate-programs-report": Report("^(program|warp spec|consumers|matrix|shared)"),
    },
)
THREE = Program(
    matmul.demanding(num_warps=12),
    PRODUCT.specs,
    {"BM": 192, "BN": 256, "BK": 64},
    PRODUCT.target,
    {
        "three-warpgroups": Dump(
            "overlap-mma", r"role|^\}\)|gpu_tile.wgmma\"|make_ring|iter_args\(.*%arg7"
        ),
        "three-warpgroups-report": Report("^(dot inst|warp spec|shared)"),
    },
)
ATTENTION = Program(
    attention,
    [*(f"{name}:bf16[?,?,?,64;?:8,?:8,?:8,1]" for name in "qkvo"), "scale:f32"],
    {"D": 64, "BM": 128, "BN": 64},
    "sm_90a",
    {
        "attention": Dump(
            "specialize-warps",
            r"scf\.(for|yield)|ring|gpu_tile.wgmma|exp2|truncf|mulf %arg12|^\}$",
            start=r"scf.for .* step %c64 iter_args\(.*%cst",
            end=r"^\}$",
        ),
        "rotate-dots": Dump(
            "rotate-dots",
            r"scf\.(for|yield|if)|else|ring|gpu_tile.wgmma|exp2|truncf|^\}( else \{)?$",
            start=r"scf.if",
            end=r"^\} else",
        ),
        "attention-report": Report("^(warp spec|matrix|dot operand|programs|tensor)"),
    },
)
BRANCHES = LOOP + r"|^\} else \{$"
SUM = Program(
    matmul,
    PRODUCT.specs,
    PRODUCT.constants,
    "sm_100a",
    {
        "select-mma": PRODUCT.sections["select-mma"],
        "insert-tensor-stores": PRODUCT.sections["insert-tensor-stores"],
        "stage-operands": Dump(
            "stage-operands",
            LOOP + r"|ring|tile\.load|gpu_tile\.(alloc|buffer|tcgen)",
            end=r"^scf\.yield %\d+, ",
        ),
        "keep-accumulators": Dump(
            "keep-accumulators",
            BRANCHES + r"|cmpi|ring|gpu_tile\.(buffer|tcgen)|truncf",
            start=r"scf.for %\w+ = %c0 ",
            end="truncf",
        ),
        "specialize-warps": Dump(
            "specialize-warps",
            BRANCHES + r"|role|^\}\)|alloc|ring|slot\"\(%\d+, %\d+\)|tma_|tcgen|buffer_load",
        ),
        "allocate-tensor-memory": Dump("allocate-tensor-memory", r"reserve|release_t|tmem|sync"),
        "fence-tensor-memory": Dump(
            "fence-tensor-memory",
            BRANCHES + r"|role|^\}\)|ring|fence|tcgen|buffer_load",
            start=r"iter_args\(%\w+ = %c0_i32, %\w+ = %c0_i32_0\)",
            end='by = "warp"',
        ),
        "ptx": Opcodes(
            r"cp\.async|bar\.sync|mbarrier|tcgen05|elect|st\.shared|fence|prefetch|griddep"
        ),
        "report": Report(),
    },
)
SHARED_COLUMNS = Program(
    attention,
    ATTENTION.specs,
    ATTENTION.constants,
    "sm_100a",
    {
        "attention": Dump(
            "specialize-warps",
            LOOP + r"|ring|tcgen|buffer_(load|store)|exp2|truncf|alloc",
            start=r"scf.for .* step %c64 iter_args\(.*%cst",
            end=r"^\}$",
        ),
        "rotated": Dump(
            "rotate-dots",
            BRANCHES + r"|ring|cmpi|tcgen|buffer_(load|store)|exp2|truncf|alloc|mulf %\d+, %1",
            start=r"tensor<2x128x64xf32>",
            end=r"scf\.yield %\d+(, %\d+){4}$",
        ),
        "attention-memory": Dump("allocate-tensor-memory", r"reserve|tmem"),
        "attention-report": Report("^(warp spec|matrix|dot operand|tensor m)"),
    },
)
TOGETHER = Program(
    matmul.demanding(cluster=2),
    PRODUCT.specs,
    PRODUCT.constants,
    "sm_100a",
    {
        "pair-products": Dump(
            "pair-products",
            BRANCHES + r"|cluster|role|^\}\)|alloc|ring|muli %0|tma_pair|tcgen|buffer_load",
        ),
        "pair-products-report": Report("^(cluster|CTA pair|warp spec|tensor mem|shared mem)"),
    },
)
ASKING = Program(
    matmul.demanding(persistent="dynamic"),
    PRODUCT.specs,
    PRODUCT.constants,
    "sm_100a",
    {
        "request-programs": Dump(
            "request-programs",
            LOOP
            + r"|while|condition|\} do \{|role|xi32|slots = 3|next_program|ring_.*\(%5,"
            + r"|tma_load",
            end='name = "load"',
        ),
        "request-programs-report": Report("^program"),
    },
)
SCALED = Program(
    block_scaled_matmul,
    (
        "a:f8e4m3[?:16,?:16;?:16,1]",
        "a_scale:f8e8m0[?,?,2,256;?:512,512,256,1]",
        "b:f8e4m3[?:16,?:16;1,?:16]",
        "b_scale:f8e8m0[?,?,2,256;?:512,512,256,1]",
        "c:bf16[?:8,?:8;?:8,1]",
    ),
    {},
    "sm_100a",
    {
        "multiply-out": Dump("multiply-out", LOOP + r"|tile\.|truncf", start="scf.for"),
        "block-scales": Dump(
            "stage-operands",
            LOOP + r"|ring_|tile\.load|gpu_tile\.(alloc|buffer|reshape|tcgen)",
            start=r"scf.for .* step %c1 ",
            end="ring_publish",
        ),
        "scales-in-order": Dump(
            "specialize-warps",
            LOOP + r"|ring|reshape|slot|tcgen",
            start=r'name = "load"',
            end='name = "multiply"',
        ),
        "scales-report": Report("^(dot|scales|warp spec|tensor m|shared)"),
    },
)
PAGES = {
    "PIPELINING": Page(PASSES / "PIPELINING.md", [AMPERE]),
    "HOPPER": Page(PASSES / "HOPPER.md", [PRODUCT, PAIR, TURNS, THREE, ATTENTION]),
    "BLACKWELL": Page(PASSES / "BLACKWELL.md", [SUM, SHARED_COLUMNS, TOGETHER, ASKING, SCALED]),
}
SECTIONS = [(name, section) for name, page in PAGES.items() for section in page.sections]


@cache
def expected(name: str) -> dict[str, str]:
    """What the sections of a page are to show."""
    return PAGES[name].expected()


@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_a_section_is_what_the_passes_print(name: str, section: str) -> None:
    assert PAGES[name].written()[section] == expected(name)[section]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_other_sections(name: str) -> None:
    assert list(PAGES[name].written()) == PAGES[name].sections


def test_the_list_of_passes_is_the_pipeline() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", (PASSES / "README.md").read_text(), re.MULTILINE)
    in_order = [*TILE_PIPELINE, keep_explicit, *LLVM_PIPELINE]
    assert listed == [one.name for one in in_order]


@pytest.mark.parametrize("one", ALL_PASSES, ids=lambda one: one.name)
def test_a_pass_says_what_it_does_and_does_not(one: TilePass) -> None:
    text = inspect.getmodule(one.run).__doc__ or ""
    assert text.startswith(f"{one.name}: ")
    assert [word for word in ("Before", "After", "Does not handle: ") if word not in text] == []


def test_the_folder_holds_the_passes_and_their_contract() -> None:
    """What is no pass has a folder on the map, which names nothing that is not there."""
    text = (PASSES / "README.md").read_text()
    modules = {path.stem for path in PASSES.glob("[!_]*.py")}
    folders = {path.parent.name for path in PASSES.glob("*/__init__.py")}
    passes = {one.name.replace("-", "_") for one in ALL_PASSES}
    assert modules == passes - folders | {"contract"}
    assert set(re.findall(r"`(\w+)/`", text)) == folders
    named = re.findall(r"`([\w*/]+\.py)`", text)
    assert [name for name in named if not list(PASSES.rglob(name))] == []


def test_explicit_kernels_get_the_passes_the_list_names() -> None:
    assert [one.name for one in EXPLICIT_PIPELINE] == [
        "simplify",
        "dissolve-windows",
        "widen-indices",
        "keep-explicit",
        "allocate-tensor-memory",
        "allocate-shared",
        "expand-rings",
    ]


if __name__ == "__main__":
    for page in PAGES.values():
        page.rewrite()
