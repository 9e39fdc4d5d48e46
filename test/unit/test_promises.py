"""What a spec would have to promise for wide accesses and tensor copies is said, once and where."""

from __future__ import annotations

import warnings

import pytest

from tilec.examples.matmul import matmul
from tilec.executable.kernel import CompiledKernel
from tilec.messages.diagnostics import PerformanceWarning

TILES = {"BM": 64, "BN": 64, "BK": 64}


def compiled(target: str, *types: str, **constants: object) -> CompiledKernel:
    """The matmul example for types of a, b and c; what it warns of is in its report."""
    specs = [f"{name}:{text}" for name, text in zip("abc", types, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return matmul.compile(specs, TILES | constants, target=target)


def promises(kernel: CompiledKernel) -> list[str]:
    """What the report says of arrays."""
    return [
        f"{entry['at'].rpartition('/')[2]}: {entry['chosen']} ({entry['why']})"
        for entry in kernel.report["decisions"]
        if entry["about"] == "array"
    ]


def test_rows_without_promises() -> None:
    why = "the stride of dimension 0 is not a known multiple"
    kernel = compiled("sm_90a", "bf16[?,?]", "bf16[?,64]", "bf16[?,?:2;?:2,1]")
    assert "cp.async.bulk.tensor" not in kernel.ptx
    assert promises(kernel) == [
        f"matmul.py:39:22: a by 2-byte loads, without tensor copies ({why}; "
        "a:bf16[?,?:8;?:8,1] promises that it is)",
        f"matmul.py:39:52: b by 2-byte loads, without tensor copies ({why}; "
        "b:bf16[?,64;?:8,1] promises that it is)",
    ]


def test_what_it_says_to_promise_brings_tensor_copies() -> None:
    kernel = compiled("sm_90a", "bf16[?,?:8;?:8,1]", "bf16[?,64;?:8,1]", "bf16[?,?:8;?:8,1]")
    assert kernel.ptx.count("cp.async.bulk.tensor") >= 2
    assert promises(kernel) == []


@pytest.mark.parametrize("strides", ["63,1", "1,63"])
def test_strides_that_no_promise_changes(strides: str) -> None:
    array = f"bf16[64,64;{strides}]"
    assert promises(compiled("sm_80", array, array, array)) == []


def test_columns_and_targets_without_tensor_copies() -> None:
    a = "f8e4m3[?:3,?;1,?]"
    (found, *_) = promises(compiled("sm_80", a, "f8e4m3[?,?:16;?:16,1]", "f16[?,?:8;?:8,1]"))
    assert found == (
        "matmul.py:39:22: a by 1-byte loads (the stride of dimension 1 is not a known multiple; "
        "a:f8e4m3[?:48,?;1,?:16] promises that it is)"
    )


def test_it_is_a_warning() -> None:
    arrays = ["a:bf16[?,?]", "b:bf16[?,?:8;?:8,1]", "c:bf16[?,?:8;?:8,1]"]
    with pytest.warns(PerformanceWarning, match=r"matmul\.py:39:22: array: a by 2-byte loads"):
        matmul.compile(arrays, TILES | {"BM": 32}, target="sm_80")
