"""Calling kernels: which specialisation a call compiles, where it is kept, what goes wrong."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from frontend_cases import load_text
from mlir import ir
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.call.dependencies import _file_states, compiler_digest, source_digest
from tilec.call.jit import Kernel
from tilec.call.variants import MOST_VARIANTS
from tilec.compile import compiler
from tilec.examples.matmul import matmul
from tilec.language.parameters import auto
from tilec.runtime.errors import ArgumentError

FACTOR = 2.0


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B), device="emulator")
def scale(x: tl.array, y: tl.array, factor=3, B: tl.const = 64):
    """y = factor * FACTOR * x."""
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B) * factor * FACTOR)


@tilec.autotune(search={"B": [32, 64]})
@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B), device="emulator")
def tuned(x: tl.array, y: tl.array, B: tl.const):
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B))


@pytest.mark.parametrize("kernel", [scale, tuned])
def test_kernels_are_copied_and_pickled_as_functions_are(kernel: Any) -> None:
    holder = {"kernel": kernel, "sizes": [1, 2]}
    copied = copy.deepcopy(holder)
    assert copied["sizes"] is not holder["sizes"]
    assert copied["kernel"] is copy.copy(kernel) is pickle.loads(pickle.dumps(kernel)) is kernel
    elsewhere = kernel.on("emulator")
    assert copy.deepcopy(elsewhere) is elsewhere
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(elsewhere)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The specialisations compiled from now on; the disk cache is empty."""
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEC_CACHE", raising=False)
    seen = []
    original = Kernel._compile

    def compile_and_note(self: Kernel, wanted: Any, *rest: Any) -> Any:
        seen.append(wanted)
        return original(self, wanted, *rest)

    monkeypatch.setattr(Kernel, "_compile", compile_and_note)
    return seen


def fresh(kernel: Kernel) -> Kernel:
    """The kernel without what it has compiled."""
    return kernel.on("emulator")


def vectors(size: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(size, dtype=dtype), np.zeros(size, dtype)


def test_the_environment_names_a_folder_for_every_level(
    compiled: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is on disk is compiled again then: a folder for each compilation, in their order."""
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    fresh(scale)(*vectors(70))
    monkeypatch.setenv("TILEC_DUMP", str(tmp_path / "dump"))
    fresh(scale)(*vectors(70))
    fresh(scale)(*vectors(70))
    assert len(compiled) == 3
    folders = sorted((tmp_path / "dump").iterdir())
    assert [folder.name[3:] for folder in folders] == ["-scale.sm_80"] * 2
    for folder in folders:
        first, *_, last = sorted(folder.iterdir())
        assert first.suffix == ".mlir"
        assert last.suffix == ".ptx"


def test_one_specialisation_serves_equal_facts(compiled: list[Any]) -> None:
    kernel = fresh(scale)
    for size in (64, 128, 4):  # all multiples of 16 bytes
        x, y = vectors(size)
        kernel(x, y, 5)
        np.testing.assert_array_equal(y, x * 10)
    assert len(compiled) == 1


@pytest.mark.parametrize(
    "second",
    [
        lambda k: k(*vectors(65), 5),
        lambda k: k(*vectors(64, np.float64), 5),
        lambda k: k(*vectors(64), 2**40),
        lambda k: k(*vectors(64), 5.0),
        lambda k: k(*vectors(64), True),
        lambda k: k(*vectors(64), 5, B=32),
        lambda k: k(np.arange(128, dtype=np.float32)[::2], np.zeros(64, np.float32), 5),
        lambda k: k(np.arange(65, dtype=np.float32)[1:], np.zeros(64, np.float32), 5),
    ],
    ids=["size", "dtype", "i64", "float", "bool", "constant", "stride", "alignment"],
)
def test_what_needs_another_specialisation(second: Any, compiled: list[Any]) -> None:
    kernel = fresh(scale)
    kernel(*vectors(64), 5)
    second(kernel)
    assert len(compiled) == 2


def test_equal_constants_of_different_types_are_different(compiled: list[Any]) -> None:
    @tilec.kernel(device="emulator")
    def halves(y: tl.array, C: tl.const):
        tl.store(y, 0, (C / 2 + tl.full((), C)).to(tl.f32))

    y = np.zeros(1, np.float32)
    for constant in (1, 1.0, True):
        halves[1](y, constant)
        assert y[0] == 1.5
    assert len(compiled) == 3


def test_the_disk_cache_serves_a_new_process(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np\n"
        "from tilec.examples.vector_add import vector_add\n"
        "x = np.ones(100, np.float32); z = np.zeros_like(x)\n"
        "vector_add.on('emulator')(x, x, z)\n"
        "print(z.sum(), 'mlir' in sys.modules)"
    )
    environment = {**os.environ, "TILEC_CACHE_DIR": str(tmp_path), "PATH": ""}
    shown = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            cwd=Path(tilec.__file__).parents[1],
        ).stdout.strip()
        for _ in range(2)
    ]
    assert shown == ["200.0 True", "200.0 False"]


def test_the_cache_can_be_switched_off(
    compiled: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TILEC_CACHE", "0")
    fresh(scale)(*vectors(64), 5)
    fresh(scale)(*vectors(64), 5)
    assert len(compiled) == 2
    assert not list(tmp_path.iterdir())


def helper_one(x: Any) -> Any:
    return x + 1


def helper_two(x: Any) -> Any:
    return x + 2


def test_the_digest_sees_what_a_kernel_uses() -> None:
    namespace: dict[str, Any] = {"helper": helper_one, "LIMIT": 3, "tl": tl}
    exec("def kernel(x):\n    return helper(x) + LIMIT", namespace)
    fn = namespace["kernel"]
    seen = {source_digest(fn)}
    for name, value in (("LIMIT", 4), ("LIMIT", 4.0), ("helper", helper_two)):
        namespace[name] = value
        seen.add(source_digest(fn))
    assert len(seen) == 4
    namespace["unused"] = 5
    assert source_digest(fn) in seen
    assert source_digest(fn, lambda x: x) not in seen


def test_the_digest_sees_the_files_of_kernels_and_compiler(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    digests = set()
    for text in ("def kernel(x):\n    return x", "def kernel(x):\n    return x + 1"):
        file.write_text(text)
        namespace: dict[str, Any] = {}
        exec(compile(text, str(file), "exec"), namespace)
        digests.add(source_digest(namespace["kernel"]))
    assert len(digests) == 2

    states = [list(_file_states(str(tmp_path)))]
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "more.py").write_text("")
    states.append(list(_file_states(str(tmp_path))))
    assert states[1][:2] == ["deeper/ 1", states[1][1]]
    assert states[1][1].startswith("more.py 0 ")
    assert states[1][2:] == states[0]
    (tmp_path / "deeper" / "more.py").rename(tmp_path / "more.py")
    (tmp_path / "LICENSE").write_text("")
    (tmp_path / ".#more.py").symlink_to("nowhere")
    states.append(list(_file_states(str(tmp_path))))
    os.utime(tmp_path / "more.py", ns=(1, 1))
    states.append(list(_file_states(str(tmp_path))))
    assert len(set(map(str, states))) == 4


def test_the_digest_of_a_compiler_in_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "site.zip"
    archive.write_bytes(b"one")
    monkeypatch.setattr("tilec.__path__", [f"{archive}/tilec"])
    first = compiler_digest.__wrapped__()
    assert first == compiler_digest.__wrapped__()
    archive.write_bytes(b"other")
    assert compiler_digest.__wrapped__() != first


def test_the_digest_of_a_function_in_no_file_is_of_its_code() -> None:
    digests = set()
    for text in ("def kernel(x):\n    return x", "def kernel(x):\n    return -x"):
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        digests.add(source_digest(namespace["kernel"]))
    assert len(digests) == 2


def test_the_same_demands_at_a_call_find_what_they_compiled(compiled: list[Any]) -> None:
    """A call of `kernel.demanding(...)(...)` took milliseconds each time: from disk."""
    kernel, arrays = fresh(scale), vectors(70)
    for warps in (1, 2, 1, 2, 1):
        kernel.demanding(num_warps=warps)(*arrays)
    assert len(compiled) == 2
    assert kernel.demanding(num_warps=2) is kernel.demanding(num_warps=2)
    assert kernel.demanding(persistent=True) is not kernel.demanding(persistent=1)  # type: ignore[arg-type]
    for stages in range(2 * MOST_VARIANTS):
        kernel.demanding(settled=("x",) * stages)
    assert len(vars(kernel)["variants"]) == MOST_VARIANTS


def test_grid_override_and_missing_grid() -> None:
    @tilec.kernel(device="emulator")
    def count(y: tl.array):
        tl.atomic_add(y, 0, 1)

    y = np.zeros(1, np.int32)
    count[3](y)
    count[2, 2](y)
    count(y, grid=5)
    assert y[0] == 12
    with pytest.raises(ArgumentError, match="has no grid rule"):
        count(y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scale(np.zeros(4, np.float32)), "missing"),
        (lambda: scale(1, 2, 3, 4, 5), "positional"),
        (lambda: scale(*vectors(4), 1, C=3), "unexpected keyword"),
        (lambda: scale([1, 2], np.zeros(4, np.float32)), "argument 'x': expected an array"),
        (lambda: scale(*vectors(4), "abc"), "argument 'factor'"),
        (lambda: scale(*vectors(4), 1, B=[3]), "argument 'B': expected a constant"),
        (lambda: scale(np.zeros(4, np.complex64), np.zeros(4)), "complex64 is not supported"),
    ],
)
def test_wrong_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_a_wrong_kernel_raises_at_its_line_when_called() -> None:
    x, y = vectors(8)

    @tilec.kernel(device="emulator")
    def wrong(x: tl.array, y: tl.array):
        tl.store(y, 0, tl.load(x, 0, 4).to(tl.f16))

    with pytest.raises(tilec.CompileError, match="'y' holds f32, found a tile") as caught:
        wrong[1](x, y)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("target", MAIN)
def test_compile_ahead_of_time(target: str) -> None:
    kernel = scale.compile(["x:f32[?]", "y:f32[?]", "factor:f32"], {"B": 32}, target=target)
    assert kernel.target == target
    assert f".target {target}" in kernel.ptx
    assert [p.name for p in kernel.parameters] == ["x", "y", "factor"]
    assert kernel.grid == ("cdiv(x.shape[0], 32)", "1", "1")


@pytest.mark.parametrize(
    ("specs", "constants", "message"),
    [
        (["x:f32[?]"], {}, "argument 'y' has no spec"),
        (["x:f32[?]", "x:f32[?]", "y:f32[?]"], {}, "'x' is given twice"),
        (["x:f32[?]", "y:f32[?]", "z:f32", "factor:f32"], {}, "no argument 'z'"),
        (["x:f32[?]", "y:f32[?]", "factor:f32"], {"C": 3}, "no constant 'C'"),
        (["x:f32", "y:f32[?]", "factor:f32"], {}, r"'x': .* expected an array, e\.g\. x:f32\["),
    ],
)
def test_wrong_specs(specs: list[str], constants: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scale.source_module(specs, constants)


@pytest.mark.parametrize(
    "told",
    [
        lambda x, y: scale.report(x, y),
        lambda x, y: tuned.report(x, y),
        lambda x, y: tuned.outcome(x, y).report(),
        lambda x, y: tilec.ops.matmul_report(x[:64].reshape(8, 8), y[:64].reshape(8, 8)),
    ],
)
def test_a_report_is_lines_as_a_notebook_shows_it(
    told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IPython asks what a cell gives for `_repr_pretty_`; of a str it shows \\n."""
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    report = told(*vectors(70))
    shown: list[str] = []
    report._repr_pretty_(SimpleNamespace(text=shown.append), False)
    assert shown == [report]
    assert "\n" in report
    assert type(shown[0]) is str


@tilec.kernel
def shifted_sums(x, y, B: tl.const = 64):
    total = tl.zeros((B,), tl.f32)
    for shift in tl.static_range(1, 7, 2):
        total += tl.load(x, shift, B)
    tl.store(y, 0, total)


def test_what_is_decided_several_times_alike_is_a_line_with_their_number() -> None:
    lines = shifted_sums.report(*vectors(70)).splitlines()
    loads = [line for line in lines if "4-byte loads" in line]
    assert len(loads) == 1, loads
    assert loads[0].endswith(", 3 times"), loads


def test_report_and_constants_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_CACHE", "0")
    a, b = np.zeros((4, 8), np.float16), np.zeros((8, 4), np.float16)
    c = np.zeros((4, 4), np.float16)
    kernel = matmul.on("emulator")
    assert kernel.compiled(a, b, c).constants["BM"] == 16  # all four rows
    assert "m of a dot of f16 on tensor cores" in kernel.report(a, b, c)


def test_an_auto_constant_that_is_no_tile_size_is_an_error() -> None:
    @tilec.kernel
    def scaled(x: tl.array, FACTOR: tl.const = tl.auto):
        tl.store(x, 0, tl.load(x, 0, 4) * FACTOR)

    with pytest.raises(tilec.CompileError, match=r"'FACTOR' is tl\.auto, but it is no tile size"):
        scaled.source_module(["x:f32[?]"])


def test_an_error_while_probing_says_so() -> None:
    @tilec.kernel
    def odd(x: tl.array, B: tl.const = tl.auto):
        tl.store(x, 0, tl.load(x, 0, B + 0.5))

    with pytest.raises(tilec.CompileError, match="must be made of integers") as caught:
        odd.source_module(["x:f32[?]"])
    assert "found while trying B = 848 to see what the tl.auto constants are for" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def k(*x): pass", "unsupported syntax: '*x' parameters"),
        ("def k(**x): pass", "unsupported syntax: '**x' parameters"),
        ("def k(x: 3): pass", "has the annotation 3"),
        ("def k(x: 'tl.arry'): pass", "cannot be evaluated"),
        ("def k(x: tl.array = tl.auto): pass", "is tl.auto, but not a tl.const"),
        ("def k(grid): pass", "every call has a keyword of that name"),
        ("async def k(x): pass", "must not be async"),
    ],
)
def test_wrong_declarations(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "declared.py"
    path.write_text(text)
    namespace: dict[str, Any] = {"tl": tl, "auto": auto}
    exec(compile(text, str(path), "exec"), namespace)
    with pytest.raises(tilec.CompileError) as caught:
        tilec.kernel(namespace["k"]).source_module(["x:f32[?]"])
    assert message in str(caught.value)
    assert caught.value.location is not None


def test_a_kernel_without_source_text_is_an_error() -> None:
    namespace: dict[str, Any] = {}
    exec("def k(x): pass", namespace)
    with pytest.raises(tilec.CompileError, match="the source of 'k' cannot be read"):
        tilec.kernel(namespace["k"]).source_module(["x:f32[?]"])


def test_a_function_among_the_constants_is_kept_on_disk_by_its_source(
    compiled: list[Any],
) -> None:
    @tilec.kernel(device="emulator")
    def apply(x: tl.array, F: tl.const):
        tl.store(x, 0, F(tl.load(x, 0, 4)))

    for function in (helper_one, helper_two, helper_one):
        x = np.zeros(4, np.float32)
        fresh(apply)[1](x, function)
        np.testing.assert_array_equal(x, function(np.zeros(4)))
    assert len(compiled) == 2


def test_check_runs_on_the_emulator() -> None:
    x, y = vectors(100)
    scale.check(x, y, 4)
    np.testing.assert_array_equal(y, x * 8)


@pytest.mark.parametrize("wrong", [3, object(), np.zeros(1)])
def test_what_is_no_device(wrong: Any) -> None:
    with pytest.raises(TypeError, match="device: expected a name such as 'cuda:1' or a device"):
        scale.on(wrong)


def test_an_interrupt_while_mlir_calls_python_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bindings make a RuntimeError of it."""

    raised: list[BaseException] = [KeyboardInterrupt(), OSError("a KeyboardInterrupt is not this")]

    def walk(module: ir.Module, *_: Any) -> None:
        def visit(op: ir.Operation) -> ir.WalkResult:
            raise raised[0]

        module.operation.walk(visit)

    monkeypatch.setattr(compiler, "find_kernel", walk)
    specs = ["x:f32[?]", "y:f32[?]", "factor:i32"]
    with pytest.raises(KeyboardInterrupt):
        scale.compile(specs, target="sm_80")
    raised.pop(0)
    with pytest.raises(RuntimeError, match="OSError"):
        scale.compile(specs, target="sm_80")


CHANGING = """
SCALE = 2.0

def helper(v):
    return v * SCALE

@tilec.kernel(grid=lambda y: 1)
def k(x: tl.array, y: tl.array):
    tl.store(y, 0, helper(tl.load(x, 0, 32)))
"""


def test_a_changed_global_and_a_redefined_helper_are_seen(tmp_path: Path) -> None:
    module = load_text(CHANGING, tmp_path)
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)

    def result() -> float:
        module.k(x, y)
        return y[0]

    assert result() == 2.0
    module.SCALE = 3.0
    assert result() == 3.0
    other = load_text("def helper(v):\n    return v + 10.0\n", tmp_path)
    kept, module.helper = module.helper, other.helper
    assert result() == 11.0
    module.helper = kept
    assert result() == 3.0
    module.helper.__code__ = other.helper.__code__  # as IPython's autoreload does
    assert result() == 11.0
