"""`tilec check`: PTX of other compilers, arguments described on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from ptx_fixtures import archive

from tilec.cli.drawn_arguments import parse_drawn
from tilec.runtime.emulator import TensorMap


def words(*specs: str) -> list[str]:
    return [word for spec in specs for word in ("--arg", spec)]


def descriptor(spec: str, rows: int, columns: int) -> list[str]:
    """A tensor descriptor as Triton's kernels take it: the map, sizes and strides."""
    return [spec, f"i32={rows}", f"i32={columns}", f"i64={columns}", "i64=1"]


TMA = archive("triton")["matmul_tma.64x64x32.nn.sm_90a.ptx"]
TMA_WORDS = [
    *words(
        *descriptor("a:f16[64,160],box=64x32,swizzle=64", 64, 160),
        *descriptor("b:f16[160,64],box=32x64,swizzle=128", 160, 64),
        *descriptor("c:f16[64,64],box=64x64,swizzle=128,fill=0", 64, 64),
        "m:i32=64", "n:i32=64", "k:i32=160", "u64=0", "u64=0",
    ),
    "--shared", "24600", "--cluster", "1", "--grid", "1",
]  # fmt: skip
COLLATZ = archive("nvcc")["kernels.sm_90a.ptx"]
COLLATZ_WORDS = ["--entry", "collatz", "--block", "128", "--grid", "3"]
LATE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 c) .reqntid 32 {
    .reg .b32 %r<5>; .reg .b64 %d<5>; .shared .align 16 .b8 s[512];
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [c]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4;
    add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3; cvt.u32.u64 %r2, %d3; mov.u32 %r3, s;
    add.u32 %r2, %r2, %r3; cp.async.ca.shared.global [%r2], [%d1], 4; cp.async.commit_group;
    st.global.u32 [%d1], %r1; cp.async.wait_group 0;
    ld.shared.u32 %r4, [%r2]; st.global.u32 [%d2], %r4; ret;
}
"""
"""Overwrites what cp.async may still read, which check mode does not see."""


def test_a_kernel_of_triton_is_right(tilec_command) -> None:
    done = tilec_command("check", "-", *TMA_WORDS, "--late", stdin=TMA)
    assert (done.code, done.output) == (0, "matmul_tma: no findings\n"), done.errors


def test_a_wait_that_nobody_repeats(tilec_command, tmp_path: Path) -> None:
    """As JSON and as text; both name the line of the source."""
    broken, count = re.subn(r"(?m)^.*@!complete bra.*$", "", TMA)
    assert count == 1
    path = tmp_path / "broken.ptx"
    path.write_text(broken)
    done = tilec_command("check", str(path), *TMA_WORDS, "--json")
    assert done.code == 1, done.errors
    found = json.loads(done.output)
    assert found["entry"] == "matmul_tma"
    assert found["statistics"]["warp_instructions"] > 100
    races = [f for f in found["findings"] if f["kind"] == "race"]
    assert races
    assert all(f["severity"] == "error" for f in races)
    assert "wgmma" in {f["second"]["instruction"].split(".")[0] for f in races}
    assert races[0]["first"]["source"]["file"] == "triton_kernels.py"
    assert races[0]["first"]["ptx_line"] > 1
    told = tilec_command("check", str(path), *TMA_WORDS)
    assert told.code == 1
    assert re.match(r"matmul_tma: \d+ findings\nerror: race on shared memory: triton_", told.output)
    assert "ask again until it is true" in told.output


def test_kernels_of_nvcc(tilec_command) -> None:
    right = words("x:u32[384],fill=7", "y:u32[384]", "n:i32=384")
    done = tilec_command("check", "-", *COLLATZ_WORDS, *right, stdin=COLLATZ)
    assert (done.code, done.output) == (0, "collatz: no findings\n"), done.errors
    short = words("x:u32[384],fill=7", "y:u32[300]", "n:i32=384")
    done = tilec_command("check", "-", *COLLATZ_WORDS, *short, stdin=COLLATZ)
    assert done.code == 1
    assert "4 bytes at byte offset 1200 of argument 1, which has 1200 bytes" in done.output
    endless = words("x:u32[384],fill=0", "y:u32[384]", "n:i32=384")
    done = tilec_command("check", "-", *COLLATZ_WORDS, *endless, "--steps", "900", stdin=COLLATZ)
    assert done.code == 1
    assert "no end after 900 steps" in done.output


def test_values_that_depend_on_when_copies_end(tilec_command) -> None:
    specs = words("a:u32[32],fill=77", "c:u32[32]")
    assert tilec_command("check", "-", *specs, stdin=LATE).code == 0
    done = tilec_command("check", "-", *specs, "--late", stdin=LATE)
    assert done.code == 1
    assert "late values" in done.output
    assert "argument 1 gets other values when asynchronous work is late" in done.output


ONE = ["a:u32[32]", "c:u32[32]"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "k takes 2 parameters, found 0 --arg: a (8 bytes), c (8 bytes)"),
        (
            words("f16[3", "u64=0"),
            "wrong argument 'f16[3'; expected e.g. a:f16[64,128] or n:i32=64",
        ),
        (words("f12[3]", "u64=0"), "unknown dtype 'f12'; known: f64, f32, f16"),
        (words("u32[0]", "u64=0"), "wrong size in '0'; expected numbers from 1 on"),
        (words("u32[2,x]", "u64=0"), "wrong size in '2,x'"),
        (words("u32[4],swizzle=32", "u64=0"), "swizzle is for tensor maps, which have a box"),
        (
            words("u32[4],color=32", "u64=0"),
            "'color=32' is none of strides=, fill=, box=, swizzle=",
        ),
        (words("u32[4]fill=0", "u64=0"), "'fill=0' is none of"),
        (words("u32[4,4],strides=4", "u64=0"), "2 sizes need as many strides and box sizes"),
        (words("u32[9999999999]", "u64=0"), "more than 4 GiB"),
        (words("u32[4],fill=-1", "u64=0"), "-1 does not fit uint32"),
        (words("u64=1e3", "u64=0"), "'1e3' is no uint64 number"),
        (words("bytes=0g", "u64=0"), "non-hexadecimal number"),
        (words("bytes=00", "u64=0"), "argument 0 (a, 8 bytes): got 1 bytes"),
        (words("u32=7", "u64=0"), "argument 0 (a, 8 bytes): got 4 bytes"),
        (words("f16[8,8],box=8x4", "u64=0"), "inner box of 8 bytes is no multiple of 16"),
        (words("f16[8,8],box=8x8,swizzle=48", "u64=0"), "swizzle 48 is not one of"),
        (words("u32[4],fill=@/nowhere.npy", "u64=0"), "cannot read /nowhere.npy: No such file"),
        ([*words(*ONE), "--block", "33"], "block has 33 threads; .reqntid says"),
        ([*words(*ONE), "--block", "32,x"], "expected one to three positive numbers, found '32,x'"),
        ([*words(*ONE), "--grid", "3", "--cluster", "2"], "is not a multiple of cluster"),
        ([*words(*ONE), "--grid", "99999999999"], "the limits are 2147483647, 65535, 65535"),
        ([*words(*ONE), "--entry", "j"], "no entry 'j'; the PTX has k"),
        ([*words(*ONE), "--steps", "0"], "steps is 0; expected a positive number"),
        ([*words(*ONE), "--seed", "-1"], "expected"),
    ],
)
def test_wrong_words(tilec_command, line: list[str], message: str) -> None:
    done = tilec_command("check", "-", *line, stdin=LATE)
    assert done.code == 2, done.errors
    assert message in done.errors
    assert len(done.errors.splitlines()) == 2
    assert done.output == ""


def test_several_entries_and_no_block(tilec_command) -> None:
    done = tilec_command("check", "-", stdin=COLLATZ)
    assert (done.code, "Say --entry; the PTX has saxpy, " in done.errors) == (2, True)
    done = tilec_command("check", "-", "--entry", "collatz", stdin=COLLATZ)
    assert (done.code, "collatz has no .reqntid: say --block" in done.errors) == (2, True)


def test_what_is_no_ptx(tilec_command, tmp_path: Path) -> None:
    missing = tilec_command("check", "/nowhere.ptx")
    assert (missing.code, missing.errors) == (
        1, "error: cannot read /nowhere.ptx: No such file or directory\n"
    )  # fmt: skip
    binary = tilec_command("check", "-", stdin=b"\xff\xfe\x00")
    assert (binary.code, binary.errors) == (1, "error: cannot read <stdin>: it is no text\n")
    foo = tilec_command("check", "-", stdin="\nfoo")
    assert foo.code == 1
    assert foo.errors.startswith("<stdin>:2:1: error: unexpected `foo`")
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import tilec\n")
    python = tilec_command("check", str(kernel))
    assert python.errors.splitlines()[1:] == [
        "help: this checks PTX; `tilec run --check FILE.py` checks kernels as they run"
    ]
    unknown = LATE.replace("cp.async.commit_group", "frobnicate.u32 %r1, %r2")
    path = tmp_path / "k.ptx"
    path.write_text(unknown)
    done = tilec_command("check", str(path), *words(*ONE))
    assert done.code == 1
    assert done.errors.startswith(f"{path}:8:1: error: unsupported: opcode frobnicate")


def test_arguments_are_drawn_from_the_seed(tmp_path: Path) -> None:
    first, second, other = (
        parse_drawn("x:f32[5,30],strides=32x1").draw(np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).all()
    assert first.strides == (128, 4)
    assert first.std() > 0.5
    assert np.ptp(parse_drawn("i8[99]").draw(np.random.default_rng(0))) > 8
    saved = tmp_path / "x.npy"
    np.save(saved, first)
    np.testing.assert_array_equal(
        parse_drawn(f"f32[5,30],fill=@{saved}").draw(np.random.default_rng(0)), first
    )
    with pytest.raises(ValueError, match=r"holds \(5, 30\), not \(5, 31\)"):
        parse_drawn(f"f32[5,31],fill=@{saved}").draw(np.random.default_rng(0))


def test_tensor_maps_and_numbers() -> None:
    random = np.random.default_rng(0)
    made = parse_drawn("m:bf16[6,100,64],strides=9000x72x1,box=2x50x64,swizzle=128,fill=range")
    found = made.draw(random)
    assert isinstance(found, TensorMap)
    assert (found.dims, found.strides) == ((64, 100, 6), (144, 18000))
    assert (found.box, found.swizzle) == ((64, 50, 2), 128)
    assert found.array.shape == (6, 100, 64)
    assert float(found.array[0, 1, 1]) == 65
    number = parse_drawn("n:i64=-3").draw(random)
    assert (number, number.dtype) == (-3, np.int64)
    assert parse_drawn("f16=0.5").draw(random).tobytes() == b"\x00\x38"
    assert parse_drawn("bytes=0a0B").draw(random) == b"\x0a\x0b"
