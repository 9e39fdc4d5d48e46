"""`tilec compile`: every kind of output, of both kinds of input, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shares import share

import tilec
from tilec.cli import compile as compile_command
from tilec.compile import llvm_level
from tilec.compile.assembler import locate_tool
from tilec.hardware.target import TARGETS
from tilec.runtime.artefact import load

ROOT = Path(__file__).resolve().parents[2]
MATMUL_TILE = str(ROOT / "tilec/examples/matmul.tile")
MATMUL_PY = str(ROOT / "tilec/examples/matmul.py")
SPECS = [word for name in "abc" for word in ("--arg", f"{name}:f16[?,?]")]

COPY = """
!x = memref<?xf32, strided<[1]>>
!t = tensor<256xf32>
func.func @copy(%x: !x, %y: !x)
    attributes {tile.kernel, tile.grid = ["cdiv(arg0.shape[0], 256)"]} {
  %c = arith.constant 256 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %i = arith.muli %p, %c : index
  %t = "tile.load"(%x, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}}
    : (!x, index) -> !t
  "tile.store"(%t, %y, %i) {dims = array<i32: 0>, options = {}} : (!t, !x, index) -> ()
  return
}
"""

EXPECTED = {
    "tile": '"tile.load"',
    "gpu_tile": "#gpu_tile.layout<",
    "llvm": "llvm.func @copy",
    "llvmir": "define ptx_kernel void @copy(",
    "ptx": ".visible .entry copy(",
    "report": "copy for sm_80",
    "report-json": '"decisions"',
}


@pytest.mark.parametrize("emit", EXPECTED)
def test_emits_every_level(tilec_command, emit: str) -> None:
    done = tilec_command("compile", "-", "--emit", emit, stdin=COPY)
    assert (done.code, done.errors) == (0, "")
    assert EXPECTED[emit] in done.output


def test_a_text_whose_ring_starves_has_no_other_tiles(tilec_command) -> None:
    """Its tiles are written there: it is compiled as it is, and the report says what is wrong."""
    done = tilec_command("compile", MATMUL_TILE, "--target", "sm_86", "--emit", "report")
    assert done.code == 0
    assert "pipeline: no" in done.output


def test_nothing_asked_for_is_ptx_of_the_first_target(tilec_command) -> None:
    done = tilec_command("compile", "-", stdin=COPY)
    assert f".target {next(iter(TARGETS))}\n" in done.output


@pytest.mark.parametrize("suffix", [".ptx", ".ll", ".mlir", ".tile", ".txt", ".json"])
def test_the_output_s_name_says_what_to_emit(tilec_command, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"copy{suffix}"
    done = tilec_command("compile", "-", "-o", str(out), stdin=COPY)
    assert (done.code, done.output, done.errors) == (0, "", "")
    assert EXPECTED[compile_command.SUFFIXES[suffix]] in out.read_text()


def test_an_output_s_name_that_says_nothing(tilec_command, tmp_path: Path) -> None:
    out = tmp_path / "copy.bin"
    done = tilec_command("compile", "-", "-o", str(out), stdin=COPY)
    assert done.code == 2
    assert f"what to write to {out}? Say --emit, or end the name in one of .ptx, " in done.errors
    assert not out.exists()
    assert tilec_command("compile", "-", "-o", str(out), "--emit", "ptx", stdin=COPY).code == 0


def test_the_json_report_is_json(tilec_command) -> None:
    done = tilec_command("compile", "-", "--emit", "report-json", stdin=COPY)
    report = json.loads(done.output)
    assert {"decisions", "milliseconds"} <= report.keys()


@pytest.mark.parametrize("level", ["tile", "gpu_tile", "llvm"])
def test_what_was_emitted_compiles_on(tilec_command, level: str) -> None:
    middle = tilec_command("compile", "-", "--emit", level, stdin=COPY).output
    again = tilec_command("compile", "-", stdin=middle)
    direct = tilec_command("compile", "-", stdin=COPY)
    assert _instructions(again.output) == _instructions(direct.output)


def _instructions(ptx: str) -> list[str]:
    """Without source positions and labels, which depend on where the text came from."""
    lines = [line.split("//")[0].strip() for line in ptx.splitlines()]
    body = lines[: lines.index("}") + 1]
    return [line for line in body if line and not line.startswith((".loc", ".file", "$", "@"))]


def test_every_dump_compiles_on(tilec_command, tmp_path: Path, every_mutant: bool) -> None:
    """A run takes one in four; of a product, in one process, each: `test_tile_programs.py`."""
    done = tilec_command("compile", "-", "--dump-dir", str(tmp_path / "dump"), stdin=COPY)
    dumps = sorted((tmp_path / "dump").glob("*.mlir"))
    assert len(dumps) > 10
    for dump in share(dumps, 4, everything=every_mutant):
        again = tilec_command("compile", str(dump))
        assert again.code == 0, f"{dump.name}: {again.errors}"
        assert ".entry copy(" in again.output
    assert done.code == 0


def test_the_environment_names_the_dump_directory(tilec_command, tmp_path: Path) -> None:
    tilec_command("compile", "-", stdin=COPY, TILEC_DUMP=str(tmp_path / "dump"))
    assert list((tmp_path / "dump").glob("*.ptx"))


def test_dumps_that_cannot_be_written(tilec_command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/dump"):
        done = tilec_command("compile", "-", "--dump-dir", str(tmp_path / folder), stdin=COPY)
        assert done.code == 1
        assert f"error: cannot write {tmp_path / folder}/00-tile.mlir: " in done.errors


def test_several_targets_have_a_heading_each(tilec_command) -> None:
    words = [word for name in TARGETS for word in ("--target", name)]
    done = tilec_command("compile", "-", *words, stdin=COPY)
    headings = [line for line in done.output.splitlines() if line.startswith("// -----")]
    assert headings == [f"// ----- {name}" for name in TARGETS]


def test_several_targets_have_a_file_each(tilec_command, tmp_path: Path) -> None:
    words = [word for name in TARGETS for word in ("--target", name)]
    done = tilec_command("compile", "-", *words, "-o", str(tmp_path / "k.ptx"), stdin=COPY)
    assert done.code == 0
    for name in TARGETS:
        assert f".target {name}\n" in (tmp_path / f"k.{name}.ptx").read_text()


def test_several_targets_are_one_artefact(tilec_command, tmp_path: Path) -> None:
    out = tmp_path / "copy.tilec"
    words = [word for name in TARGETS for word in ("--target", name)]
    assert tilec_command("compile", "-", *words, "-o", str(out), stdin=COPY).code == 0
    assert [kernel.target for kernel in load(out).kernels] == list(TARGETS)


def test_an_artefact_may_hold_machine_code(tilec_command, tmp_path: Path) -> None:
    out = tmp_path / "copy.tilec"
    done = tilec_command("compile", "-", "--assemble", "-o", str(out), stdin=COPY)
    assert done.code == 0
    (kernel,) = load(out).kernels
    assert kernel.cubin is not None
    assert kernel.cubin.startswith(b"\x7fELF")


def test_cubin(tilec_command, tmp_path: Path) -> None:
    out = tmp_path / "copy.cubin"
    assert tilec_command("compile", "-", "-o", str(out), stdin=COPY).code == 0
    assert out.read_bytes().startswith(b"\x7fELF")


@pytest.mark.skipif(locate_tool("nvdisasm") is None, reason="nvdisasm is not installed")
def test_sass(tilec_command) -> None:
    assert "EXIT" in tilec_command("compile", "-", "--emit", "sass", stdin=COPY).output


def test_slow_kernels_are_warned_of(tilec_command) -> None:
    words = ["compile", "tilec/examples/matmul.py:matmul", "--const", "BM=32", "--const", "BN=32"]
    for type_, warned in (("bf16[?,?]", 3), ("bf16[?,?:8;?:8,1]", 0)):
        arrays = [word for name in "abc" for word in ("--arg", f"{name}:{type_}")]
        done = tilec_command(*words, *arrays)
        assert (done.code, done.errors.count(": warning: array: ")) == (0, warned)
        assert ".entry matmul" in done.output


def test_the_ptx_version_is_as_asked(tilec_command) -> None:
    assert (
        ".version 7.5\n" in tilec_command("compile", "-", "--ptx-version", "75", stdin=COPY).output
    )


def test_the_number_of_warps_is_as_asked(tilec_command) -> None:
    done = tilec_command("compile", "-", "--num-warps", "2", stdin=COPY)
    assert ".reqntid 64\n" in done.output


def test_a_python_kernel(tilec_command) -> None:
    words = ["--const", "BM=64", "--const", "BN=32", "--target", "sm_90a"]
    done = tilec_command("compile", f"{MATMUL_PY}:matmul", *SPECS, *words, "--emit", "tile")
    assert (done.code, done.errors) == (0, "")
    assert "tensor<64x32xf32>" in done.output


def test_parts_of_groups_and_what_is_left_out(tilec_command, tmp_path) -> None:
    path = tmp_path / "k.py"
    path.write_text(
        "import tilec, tilec.language as tl\n"
        "@tilec.kernel\n"
        "def k(xs, p, bias=None):\n"
        "    tile = tl.load(xs[1], 0, p.B) * p.scale\n"
        "    if bias is not None:\n"
        "        tile += tl.load(bias, 0, p.B)\n"
        "    tl.store(xs[0], 0, tile)\n"
    )
    words = ["--arg", "xs[0]:f32[?]", "--arg", "xs[1]:f32[?]", "--arg", "p.scale:f32"]
    words = [*words, "--const", "p.B=64", "--emit", "tile"]
    done = tilec_command("compile", str(path), *words)
    assert (done.code, done.errors) == (0, "")
    assert [f'tile.name = "{n}"' in done.output for n in ("xs_0", "xs_1", "p_scale", "bias")] == [
        True, True, True, False]  # fmt: skip
    for more in (["--const", "bias=None"], ["--arg", "bias:f32[?]"]):
        again = tilec_command("compile", str(path), *words, *more)
        assert again.code == 0
        assert ('tile.name = "bias"' in again.output) == (more[0] == "--arg")


def test_the_only_kernel_of_a_file_needs_no_name(tilec_command) -> None:
    done = tilec_command("compile", MATMUL_PY, *SPECS)
    assert ".entry matmul(" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--emit", "cubin"), "writes a binary file: name it with -o"),
        (("--emit", "artefact"), "writes a binary file: name it with -o"),
        (("--emit", "c"), "writes a source and its header: name it with -o"),
        (("--target", "sm_81"), "unknown target 'sm_81'; known: "),
        (("--target", "sm_100a", "--ptx-version", "80"), "sm_100a needs PTX version 86 or later"),
        (("--ptx-version", "89"), "unknown PTX version 89"),
        (("--num-warps", "33"), "--num-warps: must be a number from 1 to 32, found '33'"),
        (("--arg", "a:q[?]"), "unknown dtype 'q'"),
        (("--const", "BM"), "expected NAME=VALUE, found 'BM'"),
        (("--consumers", "both"), '--consumers: must be "cooperative" or "pingpong", found'),
        (("--arg", "a:f32[?]"), "--arg and --const are for Python kernels"),
        (("--cluster", "2"), "--cluster is for Python kernels; a .tile file has its own"),
    ],
)
def test_wrong_options(tilec_command, words: tuple[str, ...], message: str) -> None:
    done = tilec_command("compile", "-", *words, stdin=COPY)
    assert done.code == 2
    assert message in done.errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("/nowhere/x.tile",), "error: cannot read /nowhere/x.tile: No such file or directory"),
        (("-", "--kernel", "move"), "<stdin>:1:1: error: no kernel named 'move'; found: copy"),
        (("-", "-o", "/dev/null/x.ptx"), "error: cannot write /dev/null/x.ptx: Not a directory"),
        (("-", "-o", "/dev/null/x.tilec"), "error: cannot write /dev/null/x.tilec: "),
        (("/nowhere/x.py:k",), "error: cannot read /nowhere/x.py: no such file"),
        ((f"{MATMUL_PY}:product",), "has no kernel 'product'; found: matmul"),
        ((MATMUL_PY, *SPECS[:4]), "error: argument 'c' has no spec"),
        ((MATMUL_PY, *SPECS, "--const", "Q=1"), "error: the kernel has no constant 'Q'"),
    ],
)
def test_mistakes(tilec_command, words: tuple[str, ...], message: str) -> None:
    done = tilec_command("compile", *words, stdin=COPY)
    assert done.code == 1
    assert message in done.errors
    assert done.output == ""


def test_multiples_are_promised_of_triton_s_numbers(tilec_command) -> None:
    done = tilec_command("compile", MATMUL_PY, *SPECS, "--arg", "n:i32:16")
    assert done.code == 2
    assert "--arg n: only Triton's kernels know of multiples" in done.errors


def test_several_kernels_need_a_name(tilec_command) -> None:
    both = COPY + COPY[COPY.index("func.func") :].replace("@copy", "@move")
    assert "<stdin>:1:1: error: expected one kernel or a name; found: copy, move" in (
        tilec_command("compile", "-", stdin=both).errors
    )
    assert ".entry move(" in tilec_command("compile", "-", "--kernel", "move", stdin=both).output


@pytest.mark.parametrize("emit", ["report", "report-json", "tile", "gpu_tile", "artefact"])
def test_the_llvm_level_has_forgotten_tiles(tilec_command, tmp_path: Path, emit: str) -> None:
    late = tilec_command("compile", "-", "--emit", "llvm", stdin=COPY).output
    done = tilec_command("compile", "-", "--emit", emit, "-o", str(tmp_path / "o"), stdin=late)
    assert done.code == 1
    assert f"cannot emit {emit} of a program at the llvm level" in done.errors


def test_the_llvm_level_takes_no_other_ops(tilec_command) -> None:
    mixed = "llvm.func @k() { %0 = tensor.empty() : tensor<4xf32> llvm.return }"
    done = tilec_command("compile", "-", stdin=mixed)
    assert done.code == 1
    assert "<stdin>:1:23: error: 'tensor.empty' was not lowered" in done.errors


def test_the_texts_of_the_llvm_level_are_levels() -> None:
    assert set(llvm_level.TEXTS) < set(compile_command.EMITTED)


def test_the_example_file_is_the_example_kernel(tilec_command) -> None:
    done = tilec_command("compile", MATMUL_TILE, "--emit", "gpu_tile")
    assert done.code == 0
    assert "gpu_tile.mma" in done.output
    assert tilec.__version__


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (
            "tuple<i32>",
            "1:14: error: parameter 'arg0' must be an array or a number, found tuple<i32>",
        ),
        ("memref<4xi7>", "1:14: error: parameter 'arg0' must have elements of f64, f32"),
        (
            "memref<4xmemref<?xf32>>",
            "must be a list of any length, memref<?xmemref<...>>, found memref<4xmemref<?xf32>>",
        ),
        ("memref<?xmemref<?xi7>>", "parameter 'arg0' must have elements of f64, f32"),
        (
            "memref<?xmemref<?xf32>, 1>",
            "parameter 'arg0' must lie in global memory, found memory space 1",
        ),
        ("memref<4xf32, 3>", "parameter 'arg0' must lie in global memory, found memory space 3"),
        (
            "memref<4x4xf32, affine_map<(i, j) -> (j, i + j)>>",
            "parameter 'arg0' must have a stride per dimension",
        ),
        (
            "memref<4xf32, strided<[1], offset: 8>>",
            "parameter 'arg0' must begin at its pointer, found an offset",
        ),
        (
            "memref<4x?xf16, strided<[?, 9223372036854775807]>>",
            "parameter 'arg0' has a stride beyond 281474976710656 elements",
        ),
    ],
)
def test_parameters_no_launch_can_pass(tilec_command, parameter: str, message: str) -> None:
    text = f"func.func @k(%x: {parameter}) attributes {{tile.kernel}} {{ return }}"
    done = tilec_command("compile", "-", stdin=text)
    assert done.code == 1
    assert message in done.errors


def test_kernels_no_launch_can_call(tilec_command) -> None:
    text = "func.func private @k() attributes {tile.kernel}"
    assert '1:1: error: kernel "k" has no body' in tilec_command("compile", "-", stdin=text).errors
    text = "func.func @k(%x: i32) -> i32 attributes {tile.kernel} { return %x : i32 }"
    done = tilec_command("compile", "-", stdin=text)
    assert 'kernel "k" must return nothing, found i32' in done.errors
