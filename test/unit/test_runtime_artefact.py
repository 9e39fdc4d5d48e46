"""Artefacts: what is saved comes back and runs, the right specialisation is taken, nothing
malformed gets through, and neither MLIR nor LLVM nor NumPy is needed to launch."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, install, uninstall
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runtime_kernels import axpy
from target_names import MAIN

from tilec.executable.kernel import CompiledKernel, Facts, Parameter
from tilec.runtime.artefact import MANIFEST, load, save
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.errors import ArgumentError, ArtefactError

ALIGNED = Facts(16, (4,), (1,))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch, FakeDriver())
    uninstall()


def saved(tmp_path: Path, *kernels: CompiledKernel) -> Path:
    path = tmp_path / "axpy.tilec"
    save(path, kernels)
    return path


# -- files


def test_what_was_saved_comes_back(tmp_path: Path):
    kernels = (
        axpy("sm_90a", facts=ALIGNED),
        dataclasses.replace(
            axpy("sm_80"), cubin=b"\x7fELF", constants={"BM": 64}, report={"loops": [{"stages": 3}]}
        ),
    )
    loaded = load(saved(tmp_path, *kernels))
    assert loaded.kernels == kernels
    assert loaded.name == "axpy"
    assert repr(loaded) == "<artefact axpy(x, y, alpha, n) for sm_90a, sm_80>"


def test_constants_that_json_has_no_number_for_come_back(tmp_path: Path):
    constants = {"LOW": -math.inf, "HIGH": math.inf, "NONE": math.nan, "BM": 64, "MODE": "inf"}
    (kernel,) = load(saved(tmp_path, dataclasses.replace(axpy(), constants=constants))).kernels
    assert repr(kernel.constants) == repr(constants)
    with zipfile.ZipFile(tmp_path / "axpy.tilec") as file:
        strict = {"parse_constant": lambda text: pytest.fail(f"{text} is no JSON")}
        assert json.loads(file.read(MANIFEST), **strict)


def test_the_same_kernels_give_the_same_bytes(tmp_path: Path):
    save(tmp_path / "one", [axpy()], name="mine")
    save(str(tmp_path / "two"), [axpy()], name="mine")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert load(tmp_path / "two").name == "mine"


def test_kernels_of_several_functions_are_no_artefact(tmp_path: Path):
    other = dataclasses.replace(axpy(), parameters=axpy().parameters[:3])
    with pytest.raises(ValueError, match=r"takes .* they are not one function"):
        save(tmp_path / "x", [axpy(), other])
    with pytest.raises(ValueError, match="at least one kernel"):
        save(tmp_path / "x", [])
    assert not (tmp_path / "x").exists()


# -- choosing a specialisation


def call(loaded: Any, size: int = 256, offset: int = 0, **named: Any) -> None:
    device = cuda_device(0)
    x, y = device.empty((size,), "f32"), device.empty((size,), "f32")
    x = dataclasses.replace(x, pointer=x.pointer + offset)
    loaded(x, y, 2.0, size, **named)


@pytest.mark.parametrize(
    ("capability", "held", "expected"),
    [
        ((9, 0), ("sm_80", "sm_90a", "sm_100a"), "sm_90a"),
        ((9, 0), ("sm_100a", "sm_80"), "sm_80"),
        ((8, 0), ("sm_90a", "sm_80"), "sm_80"),
        ((8, 9), ("sm_90a", "sm_80"), "sm_80"),
        ((10, 0), ("sm_80", "sm_100a"), "sm_100a"),
        ((10, 3), ("sm_80", "sm_100a"), "sm_80"),
        ((12, 0), ("sm_80", "sm_100a"), "sm_80"),
    ],
)
def test_the_code_for_the_device(
    tmp_path: Path, fake: FakeDriver, capability: tuple[int, int], held: Any, expected: str
):
    fake.devices[0] = capability
    path = saved(tmp_path, *told_apart(*held))
    fake.know(axpy())
    call(load(path))
    assert len(fake.launches) == 1
    assert [image for image, _ in fake.modules.values()] == [f"// {expected}\0".encode()]


def told_apart(*targets: str) -> list[CompiledKernel]:
    """A kernel a target, whose code is the target's name."""
    return [dataclasses.replace(axpy(target), ptx=f"// {target}") for target in targets]


def test_a_target_asked_for(tmp_path: Path, fake: FakeDriver):
    path = saved(tmp_path, *told_apart("sm_80", "sm_90a"))
    fake.know(axpy())
    call(load(path))
    call(load(path, target="sm_80"))
    assert [image for image, _ in fake.modules.values()] == [b"// sm_90a\0", b"// sm_80\0"]
    with pytest.raises(ArtefactError, match="holds code for sm_80, sm_90a; cuda:0 runs sm_100a"):
        call(load(path, target="sm_100a"))
    with pytest.raises(ValueError, match="unknown target 'sm_12'"):
        load(path, target="sm_12")


def test_no_code_for_the_device(tmp_path: Path, fake: FakeDriver):
    path = saved(tmp_path, axpy("sm_100a"))
    with pytest.raises(
        ArtefactError, match=r"axpy holds code for sm_100a; cuda:0 runs sm_90a or .* or sm_80"
    ):
        call(load(path))
    fake.devices[0] = (7, 5)
    uninstall()
    with pytest.raises(ArtefactError, match="cuda:0 runs none of the known targets"):
        call(load(path))


def test_the_specialisation_that_assumes_most_and_fits(tmp_path: Path, fake: FakeDriver):
    kernels = [
        dataclasses.replace(axpy("sm_90a", index_bits=64), ptx="// general"),
        dataclasses.replace(axpy("sm_90a"), ptx="// 32-bit"),
        dataclasses.replace(axpy("sm_90a", facts=ALIGNED), ptx="// aligned"),
    ]
    loaded = load(saved(tmp_path, *kernels))
    fake.know(axpy())
    call(loaded)
    call(loaded, size=255)
    call(loaded, offset=4)
    call(loaded)
    images = {number: image for number, (image, _) in fake.modules.items()}
    assert list(images.values()) == [b"// aligned\0", b"// 32-bit\0"]
    assert [launch.grid[0] for launch in fake.launches] == [2, 2, 2, 2]


def test_no_specialisation_fits(tmp_path: Path, fake: FakeDriver):
    one = load(saved(tmp_path, axpy("sm_90a", facts=ALIGNED)))
    with pytest.raises(ArgumentError) as caught:
        call(one, size=255)
    expected = "argument 'x': expected a size on axis 0 that is a multiple of 4, found 255"
    assert str(caught.value) == expected
    wide = Facts(128, (1,), (1,))
    two = load(saved(tmp_path, axpy("sm_90a", facts=ALIGNED), axpy("sm_90a", facts=wide)))
    with pytest.raises(ArgumentError) as caught:
        call(two, size=255, offset=16)
    message = str(caught.value)
    assert message.startswith("axpy: none of 2 specialisations for sm_90a takes these arguments:\n")
    assert f"\n  {expected}" in message
    assert "\n  argument 'x': expected a pointer that is a multiple of 128 bytes, found" in message


# -- launching


def test_launches_with_rule_grid_and_stream(tmp_path: Path, fake: FakeDriver):
    loaded = load(saved(tmp_path, axpy("sm_90a")))
    fake.know(axpy())
    for _ in range(2):
        call(loaded, stream=5)
        call(loaded[7], stream=6)
        call(loaded[(1, 2, 3)])
        call(loaded, grid=9)
    grids = [(2, 1, 1), (7, 1, 1), (1, 2, 3), (9, 1, 1)]
    assert [launch.grid for launch in fake.launches] == grids * 2
    assert [launch.stream for launch in fake.launches] == [5, 6, 0, 0] * 2
    assert struct.unpack("<f", fake.launches[0].arguments[4]) == (2.0,)


@pytest.mark.parametrize("target", MAIN)
def test_runs_on_the_emulator(tmp_path: Path, target: str):
    loaded = load(saved(tmp_path, *map(axpy, MAIN)), "emulator", target)
    random = np.random.default_rng(3)
    for size in (1, 127, 1000):
        x, y = random.standard_normal((2, size), np.float32)
        expected = y + 2.5 * x.astype(np.float64)
        loaded(x, y, alpha=2.5, n=size)
        np.testing.assert_allclose(y, expected, rtol=1e-5)
    with pytest.raises(TypeError, match=r"axpy\(\) missing 1 required positional argument: 'n'"):
        loaded(x, y, 2.5)


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Block())
sys.path[:0] = {paths!r}
"""

ON_FAKE = """
import sys, types
sys.modules["pytest"] = types.SimpleNamespace(MonkeyPatch=None)
import fake_driver, runtime_kernels
import tilec
fake = fake_driver.FakeDriver()
sys.modules["cuda.bindings.driver"] = fake
kernel = tilec.load(sys.argv[1])
fake.know(runtime_kernels.axpy())
device = tilec.device()
x, y = device.empty((300,), "f32"), device.empty((300,), "f32")
kernel(x, y, 1.5, 300)
kernel(x, y, 1.5, 300)
print([launch.grid for launch in fake.launches])
"""

ON_EMULATOR = """
import numpy, tilec
x, y = numpy.ones(300, "f4"), numpy.ones(300, "f4")
tilec.load(sys.argv[1], device="emulator")(x, y, 1.5, 300)
print(y.sum())
"""


@pytest.mark.parametrize(
    ("script", "blocked", "expected"),
    [
        (ON_FAKE, ("mlir", "llvmlite", "numpy", "ml_dtypes", "torch"), "[(3, 1, 1), (3, 1, 1)]"),
        (ON_EMULATOR, ("mlir", "llvmlite", "cuda"), "750.0"),
    ],
)
def test_launching_needs_no_compiler(tmp_path: Path, script: str, blocked: Any, expected: str):
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    text = BLOCKED.format(names=blocked, paths=paths) + script
    ran = subprocess.run(
        [sys.executable, "-c", text, str(saved(tmp_path, axpy("sm_90a")))],
        capture_output=True,
        text=True,
        timeout=60,
        env={k: v for k, v in os.environ.items() if k != "TILEC_DEVICE"},
    )
    assert ran.stdout.strip() == expected, ran.stderr


# -- malformed files


def rewritten(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The artefact with its manifest edited in place, or replaced by what `change` returns."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    manifest = json.loads(members[MANIFEST])
    result = change(manifest)
    members[MANIFEST] = json.dumps(manifest if result is None else result).encode()
    write_members(path, members)
    return path


def write_members(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


def edit(*keys: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        place: Any = manifest
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


KERNEL = ("kernels", 0, "kernel")
FIRST = (*KERNEL, "parameters", 0)
SCALAR = (*KERNEL, "parameters", 2)


def persistent_in_stripes(manifest: dict[str, Any]) -> None:
    """Two ways to have a grid and CTAs apart."""
    edit(*KERNEL, "persistent", to=True)(manifest)
    edit(*KERNEL, "stripes", to=2)(manifest)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: [], "the manifest has no format number"),
        (edit("format", to=1), "format 1; this version of tilec reads 8"),
        (edit("format", to=True), "the manifest has no format number"),
        (edit("name", to=3), "the manifest has no name"),
        (edit("kernels", to={}), "no list of kernels"),
        (edit("kernels", to=[]), "0 kernels; expected 1 to"),
        (edit("kernels", to=[3]), "a kernel of the manifest needs the fields"),
        (edit("kernels", 0, "extra", to=1), "a kernel of the manifest needs the fields"),
        (edit("kernels", 0, "ptx", to="other.ptx"), "it holds no file 'other.ptx'"),
        (edit("kernels", 0, "ptx", to=["a"]), "it holds no file"),
        (edit("kernels", 0, "kernel", to=[]), "kernel: expected an object, found list"),
        (edit(*KERNEL, "name", to="a b"), "kernel.name: expected a PTX name, found 'a b'"),
        (edit(*KERNEL, "target", to="sm_75"), "kernel.target: expected one of sm_80, .*sm_90a"),
        (edit(*KERNEL, "threads", to="128"), "kernel.threads: expected an integer, found '128'"),
        (edit(*KERNEL, "threads", to=0), r"kernel.threads: 0 is not in 1..1024"),
        (edit(*KERNEL, "threads", to=True), "kernel.threads: expected an integer, found True"),
        (edit(*KERNEL, "shared_bytes", to=-1), r"kernel.shared_bytes: -1 is not in 0..232448"),
        (edit(*KERNEL, "index_bits", to=16), "kernel.index_bits: expected one of 32, 64"),
        (edit(*KERNEL, "grid", to=["1"]), "kernel.grid: expected null or three texts"),
        (edit(*KERNEL, "grid", to=["x", "1", "1"]), "'x' is an array; expected an integer"),
        (edit(*KERNEL, "grid", to=["__import__('os')"] * 3), "grid rule .*unsupported expression"),
        (edit(*KERNEL, "constants", to=None), "kernel.constants: expected an object"),
        (edit(*KERNEL, "constants", to={"LOW": None}), "an object of numbers and texts"),
        (edit(*KERNEL, "constants", to={"LOW": {"float": "1"}}), "an object of numbers and texts"),
        (edit(*KERNEL, "cluster", to=[2, 1]), "kernel.cluster: expected three powers of two up to"),
        (edit(*KERNEL, "cluster", to=[3, 1, 1]), "kernel.cluster: expected three powers of two"),
        (edit(*KERNEL, "suits", to=[1]), "kernel.suits: expected two integers, 0 or positive"),
        (edit(*KERNEL, "suits", to=[0, -1]), "kernel.suits: expected two integers"),
        (edit(*KERNEL, "spreads_few", to=1), "kernel.spreads_few: expected true or false"),
        (
            edit(*KERNEL, "cluster", to=[2, 1, 1]),
            "kernel.cluster: only persistent kernels and stripes",
        ),
        (edit(*KERNEL, "stripes", to=0), "kernel.stripes: expected a positive integer, found 0"),
        (persistent_in_stripes, "kernel.stripes: a persistent kernel's programs have none"),
        (edit(*KERNEL, "dynamic", to=1), "kernel.dynamic: expected true or false, found 1"),
        (edit(*KERNEL, "dynamic", to=True), "kernel.dynamic: only persistent kernels are"),
        (edit(*KERNEL, "writes", to="x"), "kernel.writes: expected a list of names, or null"),
        (edit(*KERNEL, "writes", to=["nobody"]), "kernel.writes: 'nobody' is no array of the"),
        (edit(*KERNEL, "more", to=1), "kernel: unknown field 'more'"),
        (edit(*KERNEL, "parameters", to=5), "kernel.parameters: expected a list of objects"),
        (edit(*FIRST, to=[]), r"kernel.parameters\[0\]: expected an object"),
        (edit(*FIRST, "name", to="x y"), r"parameters\[0\].name: expected a Python name"),
        (edit(*FIRST, "name", to="stream"), "every call has a keyword of that name"),
        (edit(*FIRST, "name", to="y"), "two have the same name"),
        (
            edit(*FIRST, "kind", to="tensor"),
            r"parameters\[0\].kind: expected one of array, arrays, flat_arrays, scalar",
        ),
        (edit(*FIRST, "dtype", to="u8"), r"parameters\[0\].dtype: expected one of f64, f32"),
        (edit(*FIRST, "sizes", to=[1, 2]), r"parameters\[0\]: 2 sizes but 1 strides"),
        (edit(*FIRST, "sizes", to=[-1]), "sizes: expected integers or nulls"),
        (edit(*FIRST, "sizes", to=[2**70]), "sizes: expected integers or nulls"),
        (edit(*FIRST, "kind", to="scalar"), r"parameters\[0\]: a scalar has no sizes"),
        (edit(*SCALAR, "dtype", to="f8E8M0FNU"), "f8E8M0FNU comes in arrays only"),
        (edit(*FIRST, "facts", "align", to=0), "facts.align: expected a positive integer"),
        (edit(*FIRST, "facts", "sizes", to=[0]), "facts.sizes: expected positive integers"),
        (edit(*FIRST, "facts", "strides", to=[1, 1]), r"facts.strides: expected 1 divisors"),
        (edit(*FIRST, "facts", to={}), r"parameters\[0\].facts.align: missing"),
    ],
)
def test_an_edited_manifest_names_the_field(tmp_path: Path, change: Any, message: str):
    path = rewritten(saved(tmp_path, axpy("sm_90a")), change)
    with pytest.raises(ArtefactError, match=f"axpy.tilec: not a tilec artefact: .*{message}"):
        load(path)


def test_files_that_are_something_else(tmp_path: Path):
    path = tmp_path / "x"
    for content in (b"", b"PK", b"// ptx", b"PK\5\6" + b"\0" * 18, os.urandom(1000)):
        path.write_bytes(content)
        with pytest.raises(ArtefactError, match="x: not a tilec artefact"):
            load(path)
    write_members(path, {MANIFEST: b"[" * 100_000})
    with pytest.raises(ArtefactError, match="not a tilec artefact"):
        load(path)
    write_members(path, {MANIFEST: b"\xff\xfe"})
    with pytest.raises(ArtefactError, match="not a tilec artefact"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(MANIFEST, b" " * (65 << 20))
    path = tmp_path / "bomb"
    path.write_bytes(content.getvalue())
    with pytest.raises(ArtefactError, match=r"manifest\.json is larger than 67108864 bytes"):
        load(path)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_give_one_clear_error_or_the_kernel(tmp_path: Path, data: st.DataObject):
    made = (axpy("sm_90a", facts=ALIGNED), axpy("sm_80"))
    content = bytearray(saved(tmp_path, *made).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "copy"]))
        place = data.draw(st.integers(0, max(len(content) - 1, 0)))
        if kind == "flip" and content:
            content[place] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "cut":
            del content[place : place + data.draw(st.integers(1, 200))]
        elif kind == "insert":
            content[place:place] = data.draw(st.binary(min_size=1, max_size=8))
        else:
            content[place:place] = content[: data.draw(st.integers(0, 200))]
    path = tmp_path / "damaged"
    path.write_bytes(content)
    try:
        found, message = load(path).kernels, ""
    except ArtefactError as error:
        found, message = None, str(error)
    if found is None:
        assert message.startswith(f"{path}: not a tilec artefact: ")
        assert "\n" not in message
    else:
        # What no checksum covers (dates, attributes) may have changed.
        assert found == made


manifests = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_value_anywhere_in_the_manifest(tmp_path: Path, data: st.DataObject):
    def change(manifest: dict[str, Any]) -> None:
        place: Any = manifest
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            inner = place[key]
            if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
                place[key] = data.draw(manifests)
                return
            place = inner

    path = rewritten(saved(tmp_path, axpy("sm_90a", facts=ALIGNED)), change)
    try:
        loaded = load(path, "emulator")
    except ArtefactError:
        return
    x, y = np.ones(8, np.float32), np.ones(8, np.float32)
    with suppress(ArtefactError, TypeError, ValueError):
        loaded(x, y, 1.0, 8, grid=0)


def test_rank_and_dtype_are_checked_for_scalars_of_any_kind(tmp_path: Path):
    made = dataclasses.replace(
        axpy(), parameters=(*axpy().parameters, Parameter("flag", "scalar", "i1"))
    )
    assert load(saved(tmp_path, made)).kernels == (made,)
