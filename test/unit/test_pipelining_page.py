"""passes/PIPELINING.md shows what the passes really print.

`python test/unit/test_pipelining_page.py` writes the blocks anew after a change of the passes.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from pathlib import Path

import pytest

import tilec.passes
from tilec.examples.ampere_gemm import ampere_gemm
from tilec.report import show_report

PAGE = Path(tilec.passes.__file__).parent / "PIPELINING.md"
SPECS = ["a:bf16[?:8,?:8;?:8,1]", "bt:bf16[?:8,?:8;?:8,1]", "d:f32[?:8,?:8;?:8,1]"]
CONSTANTS = {"BM": 64, "BN": 64, "BK": 32, "STAGES": 3}
SHOWN = {
    "remove-layout-conversions": r"scf\.|\"tile\.(load|transpose|dot|store)|^\} \{tile",
    "schedule-programs": r"program|tile_order|muli|%\d+ = arith.addi|index_cast %\d+#",
    "stage-operands": r"scf\.|\"tile\.[lt]|gpu_tile\.(alloc|buffer|view|mma)|^\} \{tile",
    "insert-async-copies": r"scf\.|gpu_tile\.(alloc|cp|buffer_load|mma)|^\} \{tile",
    "pipeline-loops": r"scf\.|cmpi|gpu_tile\.(alloc|cp|slot|ring|buffer_load|mma)|addi %|^\}$",
    "prefetch-fragments": r"scf\.|gpu_tile\.(cp|slot|ring|buffer_load|mma)|addi %a|^\}$",
    "allocate-shared": r"gpu_tile\.alloc",
    "insert-barriers": r"scf\.|gpu_tile\.(sync|cp|buffer_load|mma)|^\}$",
}
"""Which lines of each pass's dump the page keeps."""
OPCODES = re.compile(
    r"^(?:@\S+ +)?((?:cp\.async|bar\.sync|ldmatrix|mma\.sync|bra|st\.global)[\w.:]*)"
)
SECTION = re.compile(r"^## ([a-z0-9-]+)$.*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shortened(line: str) -> str:
    """A line of a dump without positions and, but for buffers, without types."""
    line = re.sub(r" loc\(.*$", "", line).strip()
    if "gpu_tile.alloc" in line:
        return line
    line = line.partition(" : (")[0]
    line = re.sub(r" -> \(.*\) \{$", " {", line)
    return re.sub(r" : (index|i32|i1|tensor<.*|memref<.*)$", "", line)


def kept(dump: str, pattern: str) -> str:
    """The lines that match, indented by loops, gaps as three dots."""
    lines: list[str] = []
    depth = 0
    body = dump[dump.index("func.func") : dump.rindex("return")].split("\n")[1:]
    for line in filter(None, map(shortened, body)):
        if not re.search(pattern, line):
            if lines and lines[-1].strip() != "...":
                lines.append("  " * depth + "...")
            continue
        depth -= line.startswith("}")
        lines.append("  " * depth + line)
        depth += line.endswith("{")
    return "\n".join(lines[:-1] if lines[-1].strip() == "..." else lines) + "\n"


def skeleton(ptx: str) -> str:
    """The opcodes of interest in order, repetitions counted."""
    matches = (OPCODES.match(line.strip()) for line in ptx.split("\n"))
    runs = itertools.groupby(match[1] for match in matches if match)
    return "".join(f"{len(list(run)):2} {opcode}\n" for opcode, run in runs)


def blocks() -> dict[str, str]:
    """What each section of the page is to show."""
    with tempfile.TemporaryDirectory() as directory:
        compiled = ampere_gemm.compile(SPECS, CONSTANTS, target="sm_80", dump_dir=directory)
        paths = {p.stem.partition("-")[2]: p.read_text() for p in Path(directory).glob("*.mlir")}
    found = {name: kept(paths[name], pattern) for name, pattern in SHOWN.items()}
    found["ptx"] = skeleton(compiled.ptx)
    *lines, _ = show_report(compiled.report).split("\n")  # the last has times
    found["report"] = "".join(re.sub(r"^\S+:\d+:\d+: ", "", line) + "\n" for line in lines)
    return found


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    return blocks()


@pytest.mark.parametrize("name", [*SHOWN, "ptx", "report"])
def test_a_section_is_what_the_passes_print(name: str, expected: dict[str, str]) -> None:
    assert dict(SECTION.findall(PAGE.read_text()))[name] == expected[name]


def test_the_page_has_no_other_sections(expected: dict[str, str]) -> None:
    assert [name for name, _ in SECTION.findall(PAGE.read_text())] == list(expected)


def main() -> None:
    """Writes the page's blocks anew."""
    found = blocks()

    def replaced(match: re.Match[str]) -> str:
        return match[0].replace(match[2] + "```", found[match[1]] + "```") if match[2] else match[0]

    PAGE.write_text(SECTION.sub(replaced, PAGE.read_text()))


if __name__ == "__main__":
    main()
