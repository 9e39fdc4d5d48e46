"""Kernels as C launch what Python launches, and refuse what it refuses."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from c_kernels import FLAGS, CKernel, Library, Recorded, cuda_include
from fake_driver import FakeDriver, install, uninstall

from tilec.c_source.source import c_source
from tilec.executable.kernel import CompiledKernel, Facts, Im2col, Parameter, TensorMap, Workspace
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda.tensor_map import encoded
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import check_programs
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher

ROOT = Path(__file__).resolve().parents[2]
MATRIX = Parameter("a", "array", "f16", (None, None), (None, 1), Facts(16, (1, 1), (8, 1)))
PLAIN = CompiledKernel(
    "plain",
    "sm_90a",
    '// a "text"\\\n\t.entry plain',
    (
        MATRIX,
        Parameter("class", "scalar", "f32"),
        replace(MATRIX, name="b", strides=(1, None), facts=Facts(16, (1, 1), (1, 8))),
        Parameter("n", "scalar", "ui64"),
        Parameter("yes", "scalar", "i1"),
        Parameter("half", "scalar", "bf16"),
        Parameter("c", "array", "f32", (None, 4, None), (None, None, 1)),
        Parameter("none", "array", "i32", (), ()),
        Parameter("images", "array", "f16", (None,) * 4, (None, None, None, 1)),
    ),
    ("cdiv(a.shape[0], 16)", "max(b.shape[1] // 3, 1, n % 7)", "min(3, c.shape[2])"),
    128,
    60_000,
    32,
    tensor_maps=(
        TensorMap(0, (1, 0), (64, 16), 128, "f16"),
        TensorMap(2, (0, 1), (32, 16), 64, "f16", stores=True),
        TensorMap(6, (2, 0, 1), (16, 8, 1), 0, "f32"),
        TensorMap(
            *(8, (3, 2, 1, 0), (16, 64), 32, "f16"),
            im2col=Im2col(("b.shape[0] + 30", "c.shape[2] * 20"), (-1, 2), (2, 1)),
        ),
    ),
    writes=("c",),
    limits=(("a.shape[0] * b.shape[1]", 100_000), ("a.shape[0] // (b.shape[1] - 40)", 1000)),
)
LONG = replace(PLAIN, name="long", index_bits=64, limits=(), shared_bytes=0)
BARE = replace(PLAIN, parameters=(PLAIN.parameters[3],), tensor_maps=(), limits=(), grid=None)
X, Y, Z = (Parameter(name, "scalar", "i64") for name in "xyz")
ARITHMETIC = replace(
    BARE,
    name="arithmetic",
    parameters=(X, Y, Z),
    grid=("cdiv(x, y)", "x // y + 0 * (x + y * z)", "x % y - z"),
)
GIVEN = {
    kernel.name: kernel
    for kernel in (
        replace(BARE, name="given"),
        replace(BARE, name="stripes", stripes=4, cluster=(4, 1, 1), most_programs=10**9),
        replace(BARE, name="early", starts_early=True),
        replace(BARE, name="stays", persistent=True, most_programs=10**9),
        replace(BARE, name="shares", persistent=True, starts_early=True, shared_bytes=200_000),
        replace(BARE, name="clusters", persistent=True, cluster=(2, 1, 1)),
        replace(BARE, name="pairs", persistent=True, cluster=(2, 2, 1), starts_early=True),
        replace(BARE, name="asks", persistent=True, dynamic=True, cluster=(2, 1, 1)),
        replace(BARE, name="packed", persistent=True, programs_per_cta=4),
    )
}
NUMBERS = {
    "CU_TENSOR_MAP_DATA_TYPE_FLOAT16": 6,
    "CU_TENSOR_MAP_DATA_TYPE_FLOAT32": 7,
    "CU_TENSOR_MAP_DATA_TYPE_UINT8": 0,
    "CU_TENSOR_MAP_INTERLEAVE_NONE": 0,
    "CU_TENSOR_MAP_SWIZZLE_NONE": 0,
    "CU_TENSOR_MAP_SWIZZLE_32B": 1,
    "CU_TENSOR_MAP_SWIZZLE_64B": 2,
    "CU_TENSOR_MAP_SWIZZLE_128B": 3,
    "CU_TENSOR_MAP_L2_PROMOTION_L2_128B": 2,
    "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE": 0,
}
"""Of cuda.h, for the driver that has names instead."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("c")
    return Library(folder, [[kernel] for kernel in (PLAIN, LONG, ARITHMETIC, *GIVEN.values())])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver())
    uninstall()


def by_python(fake: FakeDriver, kernel: CompiledKernel, values: list[Any], grid: Any) -> Recorded:
    """What a call in Python tells the driver. ArgumentError and ValueError as it raises them."""
    fake.know(kernel)
    arguments = [
        LaunchArgument(p.name.replace("class", "klass"), p.kind) for p in kernel.parameters
    ]
    named = replace(
        kernel,
        parameters=tuple(
            replace(p, name=a.name) for p, a in zip(kernel.parameters, arguments, strict=True)
        ),
    )
    fake.know(named)
    fake.maps.clear()
    encoded.cache_clear()
    before = len(fake.launches)
    Launcher(kernel.name, arguments, lambda *_: named)(*values, grid=grid, stream=9)
    if len(fake.launches) == before:
        return Recorded(kernel.name, (), 9, False, [], [])
    found = fake.launches[-1]
    maps = [
        (
            NUMBERS[m.dtype],
            m.address,
            m.sizes,
            m.strides,
            m.box,
            m.steps,
            [*map(NUMBERS.get, m.modes)],
            m.lower,
            m.upper,
        )
        for m in fake.maps
    ]
    plain = found.arguments[: len(found.arguments) - len(kernel.tensor_maps)]
    place = (*found.grid, *found.block, found.shared_bytes)
    return Recorded(found.name, place, found.stream, found.is_early, plain, maps)


def in_c(kernel: CKernel, values: list[Any], grid: Any) -> Recorded | str:
    """What C tells the driver, or the status where it refuses."""
    before = kernel.library.number("launches").value
    numbers = [0xC020 if value == -2.5 else value for value in values]
    status = kernel.run(numbers, 9, None if kernel.kernel.grid else grid)
    if status != "OK":
        return status
    if kernel.library.number("launches").value == before:
        return Recorded(kernel.kernel.name, (), 9, False, [], [])
    return kernel.recorded()


def view(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> ArrayView:
    return ArrayView(pointer, shape, strides, dtype, (CUDA, 0), "tilec")


def drawn(rng: random.Random) -> list[Any]:
    """Arguments of `PLAIN`, some of which it does not take."""
    rows, columns, inner = (rng.choice([0, 1, 3, 40, 41, 300, 70000]) for _ in range(3))
    pitch = rng.choice([8, 304, 0, 640, 7])
    if not pitch:
        rows = rng.choice([rows, 2**31 - 2**16, 2**31 - 2**16 - 1])
    other = rng.choice([16, 640, 32, 2**31 // 64, 2**39])
    a = view(rng.choice([0x1000] * 5 + [0x1004]), (rows, inner), (pitch, 1), "f16")
    b = view(0x2000, (rng.choice([8, 64, 16, 80, 7]), columns), (1, other), "f16")
    middle = rng.choice([4] * 6 + [5])
    c = view(
        0x3000,
        (inner, middle, 6),
        (rng.choice([32, 64, 40, -32, 0]), 8, rng.choice([1] * 6 + [2])),
        "f32",
    )
    dtype = rng.choice(["i32"] * 7 + ["ui32"])
    n = rng.choice([0, 5, 90, 2**63 - 1, 2**63 + 6])
    height, width = rng.choice([100] * 6 + [300]), rng.choice([80] * 6 + [0, 600])
    shape = (rng.choice([1, 3]), height, width, 16)
    strides = (height * width * 16, width * 16, rng.choice([16] * 9 + [12]), 1)
    images = view(0x5000, shape, strides, "f16")
    return [a, 0.5, b, n, True, -2.5, c, view(0x4000, (), (), dtype), images]


@pytest.mark.parametrize("kernel", [PLAIN, LONG], ids=lambda k: k.name)
def test_c_launches_and_refuses_what_python_does(
    library: Library, fake: FakeDriver, kernel: CompiledKernel
) -> None:
    rng = random.Random(kernel.name)
    loaded = library.loaded(kernel)
    seen: dict[str, int] = {}
    for _ in range(500):
        values = drawn(rng)
        try:
            expected: Any = by_python(fake, kernel, values, None)
        except (ArgumentError, ValueError) as error:
            expected = str(error)
        found = in_c(loaded, values, None)
        if isinstance(found, str):
            seen[found] = seen.get(found, 0) + 1
            # Python knows numbers of any length; in 64 bits those beyond are an error of the grid.
            beyond = found == "GRID" and values[3] >= 2**63
            assert beyond or isinstance(expected, str)
            assert beyond or found == status_of(expected) or status_of(expected) == "GRID"
        else:
            seen["launched"] = seen.get("launched", 0) + 1
            assert found == _with_zeros(expected, found)
    least = {"launched", "DTYPE", "ALIGNMENT", "SIZE", "STRIDE", "GRID", "TENSOR_MAP"}
    if kernel is PLAIN:
        least |= {"TOO_LARGE", "LIMIT"}
    assert least <= seen.keys()
    assert seen["launched"] > 20


def status_of(message: str) -> str:
    """C's word for an error of Python's, which looks at the grid first."""
    kinds = {
        "TENSOR_MAP": r"\(tensor map\)",
        "GRID": r"grid size|division by zero",
        "DTYPE": "expected dtype",
        "ALIGNMENT": "a pointer that",
        "SIZE": r"expected (a )?size",
        "STRIDE": r"expected (a )?stride|memory for each",
        "TOO_LARGE": "less than 2 GiB",
        "LIMIT": "32-bit indices reach",
    }
    return next(kind for kind, pattern in kinds.items() if re.search(pattern, message))


def _with_zeros(expected: Recorded, found: Recorded) -> Recorded:
    """The same, with the address of C's zeros where Python has its own for empty arrays."""
    if isinstance(expected, str):
        return expected
    given = {0x1000, 0x1004, 0x2000, 0x3000, 0x4000, 0x5000}
    maps = [
        (one[0], one[1] if one[1] in given else other[1], *one[2:])
        for one, other in zip(expected.maps, found.maps, strict=True)
    ]
    assert all(
        other[1] not in given
        for one, other in zip(maps, found.maps, strict=True)
        if one[1] not in given
    )
    return expected._replace(maps=maps)


@pytest.mark.parametrize("name", GIVEN)
def test_grids_become_the_same_ctas(library: Library, fake: FakeDriver, name: str) -> None:
    rng = random.Random(name)
    kernel, loaded = GIVEN[name], library.loaded(GIVEN[name])
    early = set()
    for _ in range(60):
        most = rng.choice([3, 9, 70, 1000])
        grid = tuple(rng.randint(rng.choice([0, 1]), most) for _ in range(3))
        found = in_c(loaded, [7], grid)
        assert found == by_python(fake, kernel, [7], grid)
        early.add(isinstance(found, Recorded) and found.is_early)
    assert early == ({True, False} if kernel.starts_early else {False})
    for grid in ((256, 1, 1), (257, 1, 1)):
        assert in_c(loaded, [7], grid) == by_python(fake, kernel, [7], grid)
    for grid in ((2**31, 1, 1), (1, 65536, 1), (-1, 1, 1), (2**31 - 1, 65535, 9)):
        found = in_c(loaded, [7], grid)
        try:
            check_programs(kernel, grid)  # a call would look for a kernel of 64-bit indices first
            assert found == by_python(fake, kernel, [7], grid)
        except ArgumentError:
            assert found in ("LIMIT", "GRID")
        except ValueError:
            assert found == "GRID"


def test_whole_numbers_are_those_of_python(library: Library, fake: FakeDriver) -> None:
    rng = random.Random(3)
    loaded = library.loaded(ARITHMETIC)
    values = [-(2**63), -(2**40), -7, -3, -1, 0, 1, 2, 3, 5, 7, 70, 2**31 - 1, 2**31, 2**63 - 1]
    launched = 0
    for _ in range(400):
        given = [rng.choice(values) for _ in range(3)]
        try:
            expected = by_python(fake, ARITHMETIC, given, None)
        except ValueError:
            assert in_c(loaded, given, None) == "GRID"
        else:
            assert in_c(loaded, given, None) in (expected, *["GRID"] * _is_beyond(*given))
            launched += 1
    assert launched > 30


def _is_beyond(x: int, y: int, z: int) -> bool:
    """Whether computing the grid of `ARITHMETIC` leaves 64 bits."""
    steps = (-x, -x // y, y * z, x + y * z, x // y, x % y - z)
    return not all(-(2**63) <= step < 2**63 for step in steps)


def test_older_drivers_start_no_launch_early(library: Library) -> None:
    kernel = CKernel(library, GIVEN["early"])
    for version, early, now in ((12020, False, 0), (12030, True, 0), (12040, True, 1)):
        library.number("version").value = version
        library.number("loaded_now").value = 0
        assert kernel.load() == "OK"
        assert kernel.run([7], 0, (3, 1, 1)) == "OK"
        assert kernel.recorded().is_early == early
        assert library.number("loaded_now").value == now


def test_a_truth_is_one_or_zero_and_shared_memory_is_asked_for(library: Library) -> None:
    library.number("shared_attribute").value = 0
    kernel = library.loaded(PLAIN)
    assert library.number("shared_attribute").value == 60_000
    empty = view(0x1000, (0, 7), (8, 1), "f16")
    b = view(0x2000, (8, 9), (1, 16), "f16")
    c = view(0x3000, (3, 4, 5), (32, 8, 1), "f32")
    full = view(0x1000, (5, 7), (8, 1), "f16")
    nothing = view(0x4000, (), (), "i32")
    images = view(0x5000, (2, 20, 40, 16), (12800, 640, 16, 1), "f16")
    for a, launched in ((empty, 0), (full, 1)):
        library.number("launches").value = 0
        assert kernel.run([a, 0.5, b, 5, 2, 0, c, nothing, images], 0) == "OK"
        assert library.number("launches").value == launched
    slots = [(slot.parameter, slot.field) for slot in PLAIN.abi()]
    assert kernel.recorded().arguments[slots.index((4, "value"))] == b"\x01"


def test_what_goes_wrong_is_said(library: Library) -> None:
    kernel = library.loaded(PLAIN)
    values = drawn(random.Random(0))
    values[0], values[5] = view(0x1000, (5, 7), (9, 1), "f16"), 0
    assert kernel.run(values, 0) == "STRIDE"
    said = "a stride that the kernel was not compiled for, or 0 where it writes"
    assert kernel.explained() == f"plain: argument a: axis 0: {said}"
    library.number("fail_load").value = 1
    assert kernel.load() == "DRIVER"
    assert kernel.explained() == "plain: the driver refused it: CUDA_ERROR_INVALID_PTX"
    assert b"line 1: nonsense" in kernel.memory.raw
    library.number("fail_load").value = 0
    library.number("major").value = 8
    assert kernel.load() == "NO_CODE"
    assert kernel.explained().endswith("there is no code for this GPU; there is for sm_90a")
    library.number("major").value = 9
    given = library.loaded(GIVEN["given"])
    library.number("fail_launch").value = 1
    assert given.run([7], 0, (1, 1, 1)) == "DRIVER"
    assert given.explained() == "given: the driver refused it: CUDA_ERROR_OF_A_TEST"
    library.number("fail_launch").value = 0
    assert given.unload() == "OK"


def test_the_newest_code_that_runs_is_taken(tmp_path: Path) -> None:
    kernels = [
        replace(BARE, name="k", target=t, threads=n) for t, n in (("sm_80", 32), ("sm_90a", 64))
    ]
    kernels[1] = replace(kernels[1], cubin=b"\x7fELF")
    library = Library(tmp_path, [kernels])
    kernel = CKernel(library, kernels[0])
    for major, minor, threads in ((9, 0, 64), (8, 6, 32), (12, 0, 32), (8, 0, 32)):
        library.number("major").value, library.number("minor").value = major, minor
        for refuses in (0, 1):
            library.number("refuses_cubins").value = refuses
            assert kernel.load() == "OK"
            assert kernel.run([7], 0, (1, 1, 1)) == "OK"
            assert kernel.recorded().place[3] == threads


def test_the_ptx_is_what_it_was(library: Library) -> None:
    source = next(s for s in library.sources if s.name == "plain").source
    assert '"// a \\"text\\"\\\\\\n"\n  "\\t.entry plain\\n"' in source


def test_cplusplus_reads_the_headers(library: Library, tmp_path: Path) -> None:
    for source in library.sources[:2]:
        (tmp_path / f"{source.name}.h").write_text(source.header)
    text = '#include "plain.h"\n#include "long.h"\ntilec_array a{0, TILEC_F16, 1, {3}, {1}};\n'
    (tmp_path / "both.cpp").write_text(text)
    command = ["c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-isystem{cuda_include()}"]
    done = subprocess.run([*command, str(tmp_path / "both.cpp")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_c_cannot_have() -> None:
    deep = Parameter("x", "array", "f32", (None,) * 9, (None,) * 9)
    with pytest.raises(ValueError, match="'x': in C, arrays have at most 8 dimensions"):
        c_source([replace(BARE, parameters=(deep,))])
    with pytest.raises(ValueError, match="plain: C takes one kernel a target"):
        c_source([BARE, BARE])
    with pytest.raises(ValueError, match="plain for sm_80 and sm_90a is not one kernel"):
        c_source([BARE, replace(BARE, target="sm_80", parameters=())])
    meeting = replace(BARE, stripes=64, workspaces=(Workspace(4, is_zero=True),))
    with pytest.raises(ValueError, match="launches have no memory of their own, where 64 CTAs"):
        c_source([meeting])


def test_the_page_s_program_compiles(
    tilec_command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "tilec/c_source/README.md").read_text()
    blocks = dict(re.findall(r"^```(c|cmake)?\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    (tmp_path / "tilec").symlink_to(ROOT / "tilec")
    monkeypatch.chdir(tmp_path)
    done = tilec_command(*shlex.split(blocks[""])[1:])
    assert done.code == 0, done.errors
    (tmp_path / "product.c").write_text(blocks["c"])
    command = ["cc", *FLAGS, f"-isystem{cuda_include()}", "matmul.c", "product.c", "-o", "made.so"]
    compiled = subprocess.run(command, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    named = re.search(r"add_library\(product STATIC (.*)\)", blocks["cmake"])
    assert {*named[1].split()} <= {path.name for path in tmp_path.iterdir()}
