"""`tilec opt`: passes by name, split input, expected diagnostics."""

from __future__ import annotations

import pytest
from mlir import ir

from tilec.cli.opt import Steps, run_passes
from tilec.compile.pipeline import (
    ALL_PASSES,
    EXPLICIT_PIPELINE,
    LLVM_PIPELINE,
    TILE_PIPELINE,
    check_order,
)
from tilec.compile.source import parse_source
from tilec.dialects.context import make_context
from tilec.dialects.gpu_tile import RingReleaseOp
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.passes.contract import Level, PassContext, TilePass, tile_pass
from tilec.passes.rewriting.walk import find_ops

TWICE = """
func.func @k(%x: i32) -> i32 {
  %a = arith.addi %x, %x : i32
  %b = arith.addi %x, %x : i32
  %c = arith.muli %a, %b : i32
  return %c : i32
}
"""
WRONG = """
func.func @k() {
  %i = "tile.program_id"() {axis = 3 : i32} : () -> index
  return
}
"""
RELEASE = '"gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!gpu_tile.ring, i32) -> ()'
RING = f"""
func.func @k() attributes {{tile.kernel, tile.total_warps = 5 : i32}} {{
  %ring = "gpu_tile.make_ring"() {{slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {{}}}} : () -> !gpu_tile.ring
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({{
    scf.for %n = %zero to %c5 step %one : i32 {{
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!gpu_tile.ring, i32) -> i32
      "gpu_tile.ring_publish"(%ring, %at) {{by = "warp"}} : (!gpu_tile.ring, i32) -> ()
    }}
    gpu.yield
  }}) {{name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32}} : () -> ()
  "gpu_tile.role"() ({{
    scf.for %n = %zero to %c5 step %one : i32 {{
      %at = "gpu_tile.ring_wait"(%ring, %n) {{previous = false}} : (!gpu_tile.ring, i32) -> i32
      {RELEASE}
    }}
    gpu.yield
  }}) {{name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32}} : () -> ()
  return
}}
"""  # noqa: E501


def test_without_passes_it_verifies_and_prints(tilec_command) -> None:
    done = tilec_command("opt", stdin=TWICE)
    assert done.code == 0
    assert done.output.count("arith.addi") == 2


def test_runs_passes_of_mlir(tilec_command) -> None:
    done = tilec_command("opt", "--passes", "cse,canonicalize{max-iterations=2}", stdin=TWICE)
    assert done.code == 0
    assert done.output.count("arith.addi") == 1


def test_runs_passes_of_tilec_for_a_target(tilec_command) -> None:
    program = """
    !a = tensor<16x32xf8E5M2>
    !b = tensor<32x8xf8E5M2>
    !c = tensor<16x8xf32>
    func.func @k(%a: !a, %b: !b, %c: !c) attributes {tile.kernel} {
      %d = "tile.dot"(%a, %b, %c) {options = {}} : (!a, !b, !c) -> !c
      return
    }"""
    words = ("opt", "--passes", "select-mma", "--target")
    assert "arith.extf" in tilec_command(*words, "sm_80", stdin=program).output
    assert "mma.m16n8k32.f32.e5m2.e5m2" in tilec_command(*words, "sm_90a", stdin=program).output


def test_unknown_passes_are_wrong_usage(tilec_command) -> None:
    done = tilec_command("opt", "--passes", "cse,frobnicate", stdin=TWICE)
    assert done.code == 2
    assert "unknown pass 'frobnicate': none of tilec's, and MLIR says: 'frobnicate'" in done.errors
    assert "help: `tilec opt --list-passes`" in done.errors
    done = tilec_command("opt", "--passes", "simplfy", stdin=TWICE)
    assert "help: did you mean 'simplify'?" in done.errors


def test_a_misspelt_op(tilec_command) -> None:
    program = '"tile.laod"() : () -> ()'
    done = tilec_command("opt", stdin=program)
    assert "<stdin>:1:1: error: unregistered operation 'tile.laod'" in done.errors
    assert "help: did you mean 'tile.load'?" in done.errors


def test_a_python_file_is_no_program(tilec_command) -> None:
    done = tilec_command("opt", __file__)
    assert done.code == 2
    assert (
        f"`tilec compile {__file__}:NAME --emit tile ...` writes a kernel's program" in done.errors
    )


def test_a_pass_reads_programs_of_its_level(tilec_command) -> None:
    tile = "%t = arith.constant dense<0.0> : tensor<4xf32>"
    program = f"func.func @k() attributes {{tile.kernel}} {{\n{tile}\nreturn\n}}"
    done = tilec_command("opt", "--passes", "lower-to-nvvm", stdin=program)
    assert done.code == 1
    assert "found no layout" in done.errors
    assert "note: 'lower-to-nvvm' reads programs of level 'allocated'" in done.errors


def test_unknown_options_of_passes_are_wrong_usage(tilec_command) -> None:
    done = tilec_command("opt", "--passes", "canonicalize{frob=1}", stdin=TWICE)
    assert done.code == 2
    assert "no such option frob" in done.errors


def test_a_pass_that_fails_is_diagnosed(tilec_command) -> None:
    program = "func.func @k(%x: i32) {\n  func.call @missing(%x) : (i32) -> ()\n  return\n}"
    done = tilec_command("opt", "--passes", "inline", stdin=program)
    assert done.code == 1
    assert "<stdin>:2:3: error: " in done.errors


@pytest.mark.parametrize(
    ("passes", "reason"),
    [
        (
            "overlap-mma,rotate-dots,specialize-warps",
            "'overlap-mma' runs behind 'specialize-warps': 'overlap-mma' behind 'specialize-warps',"
            " that gives slots back behind waits, which this moves",
        ),
        (
            "alternate-programs,simplify,specialize-warps",
            "'alternate-programs' runs behind 'specialize-warps': 'alternate-programs' behind "
            "'overlap-mma', a second set of warps does what the first does by then; 'overlap-mma' "
            "behind 'specialize-warps'",
        ),
        ("allocate-shared,cse,allocate-tensor-memory", "'allocate-shared' runs behind"),
    ],
)
def test_an_order_that_cannot_work_is_refused(tilec_command, passes: str, reason: str) -> None:
    done = tilec_command("opt", "--passes", passes, stdin=TWICE)
    assert (done.code, done.output) == (2, "")
    assert done.errors.startswith(f"error: argument --passes: {reason}")


@pytest.mark.parametrize("pipeline", [TILE_PIPELINE, EXPLICIT_PIPELINE, LLVM_PIPELINE])
def test_parts_of_a_pipeline_are_in_order(pipeline: tuple[TilePass, ...]) -> None:
    for number, one in enumerate(pipeline):
        check_order([one])
        check_order([one, one])
        check_order(pipeline[number:])
        check_order(pipeline[:number])


def test_what_a_pass_runs_behind_exists() -> None:
    known = {tile_pass.name for tile_pass in ALL_PASSES}
    assert known >= {name for tile_pass in ALL_PASSES for name, _ in tile_pass.behind}


@tile_pass(requires=Level.LAYOUTS, keeps=True, rings=True)
def forget_releases(module: ir.Module, _: PassContext) -> None:
    """What a pass of rings must not do."""
    for op in find_ops(module.operation, RingReleaseOp):
        op.erase()


@pytest.mark.parametrize("whole", [True, False])
def test_a_pass_that_breaks_a_ring_is_named(whole: bool) -> None:
    text = RING if whole else RING.replace(RELEASE, "")
    module = parse_source(text, "k.mlir", make_context())
    context = PassContext(find_target("sm_90a"))
    if not whole:
        run_passes(module, Steps((forget_releases,)), context)
        return
    with pytest.raises(CompileError) as error:
        run_passes(module, Steps((forget_releases,)), context)
    assert error.value.message.endswith("waits for a slot that nobody passes on")
    assert "note: 'forget-releases' was given rings that kept their protocol" in str(error.value)


def test_lists_the_passes(tilec_command) -> None:
    lines = tilec_command("opt", "--list-passes").output.splitlines()
    assert [line.split()[0] for line in lines] == [entry.name for entry in ALL_PASSES]
    assert all(entry.summary in line for entry, line in zip(ALL_PASSES, lines, strict=True))


def test_locations_are_those_of_the_input(tilec_command) -> None:
    done = tilec_command("opt", "--locations", stdin=TWICE)
    assert 'loc("<stdin>":3:8)' in done.output


def test_parts_are_independent_and_keep_their_lines(tilec_command) -> None:
    both = f"{WRONG}// -----{TWICE}// -----{WRONG}"
    done = tilec_command("opt", "--split-input-file", stdin=both)
    assert done.code == 1
    assert done.output.count("arith.addi") == 2
    lines = [line for line in done.errors.splitlines() if "error" in line]
    assert [line.split(":")[1] for line in lines] == ["3", "15"]


def test_expected_diagnostics_are_no_failure(tilec_command) -> None:
    program = WRONG.replace("{\n  %i", "{\n  // expected-error @below {{axis must be 0}}\n  %i")
    done = tilec_command("opt", "--verify-diagnostics", stdin=program)
    assert (done.code, done.errors) == (0, "")


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("// expected-error @below {{something else}}", "unexpected error: 'tile.program_id' op"),
        ("// expected-error @below {{something else}}", "expected error was not given: something"),
        ("// expected-error {{axis must be}}", "expected error was not given: axis must be"),
        ("// expected-eror @below {{axis must be}}", "unexpected error: 'tile.program_id' op"),
        ("// expected-error @belo {{axis must be}}", "malformed expectation"),
        ("// expected-warning @below {{axis must be}}", "malformed expectation"),
    ],
)
def test_unmet_expectations_fail(tilec_command, comment: str, message: str) -> None:
    program = WRONG.replace("{\n  %i", f"{{\n  {comment}\n  %i")
    done = tilec_command("opt", "--verify-diagnostics", stdin=program)
    assert done.code == 1
    assert message in done.errors


def test_an_error_that_does_not_come_fails(tilec_command) -> None:
    program = TWICE.replace("return", "// expected-error @below {{no}}\n  return")
    done = tilec_command("opt", "--verify-diagnostics", stdin=program)
    assert done.code == 1
    assert "<stdin>:6:6: error: expected error was not given: no" in done.errors
