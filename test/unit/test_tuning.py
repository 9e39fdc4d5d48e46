"""The parts of autotuning: candidates, agreement, keys, the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_tuning_model import MACHINE

from tilec.call.dependencies import source_digest
from tilec.call.kernel_file import load_kernel
from tilec.runtime.arrays import describe
from tilec.tuning.agreement import MOST_COMPARED, difference
from tilec.tuning.call_key import argument_class, quick_key, size_class, tuning_key
from tilec.tuning.candidates import Candidate, candidates_of
from tilec.tuning.outcome import Outcome, Trial
from tilec.tuning.store import WinnerFile, default_file

# -- candidates


def candidates(**named: Any) -> tuple[Candidate, ...]:
    return candidates_of("k", ("BM", "BN"), ("num_warps",), **named)


def test_the_default_comes_first_and_nothing_twice() -> None:
    found = candidates(
        configs=[{"BM": 64}, {"BM": 64}, {"num_warps": 8}],
        search={"BM": [32, 64], "BN": [128]},
    )
    assert [c.label for c in found] == [
        "default",
        "BM=64",
        "num_warps=8",
        "BM=32 BN=128",
        "BM=64 BN=128",
    ]
    assert found[2].demands == {"num_warps": 8}


def test_a_space_is_filtered_by_a_predicate_on_some_of_its_names() -> None:
    found = candidates(search={"BM": [32, 64], "BN": [32, 64]}, where=lambda BN, BM: BM > BN)
    assert [c.label for c in found] == ["default", "BM=64 BN=32"]


def test_true_and_1_are_different_candidates() -> None:
    assert len(candidates(configs=[{"BM": 1}, {"BM": True}, {"BM": 1.0}])) == 4


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, "give configs=[{...}, ...] or search="),
        ({"configs": []}, "no candidate beside the default"),
        ({"configs": [{"BK": 1}]}, "k has no constant and no demand 'BK'; constants: BM, BN"),
        ({"configs": [{"BM": []}]}, "the value of 'BM' must be hashable"),
        ({"configs": ["BM"]}, "configs: expected a dictionary, found str"),
        ({"configs": [{"BM": 1}], "where": lambda BM: True}, "only a search space is filtered"),
        ({"search": {"BM": 64}}, "search: 'BM' needs a list or tuple of values, found 64"),
        ({"search": {"BM": []}}, "search: 'BM' needs a list or tuple"),
        ({"search": {"BM": [1]}, "where": lambda BK: True}, "its parameter 'BK' is not in"),
        ({"search": {"BM": list(range(600))}}, "601 candidates; at most 512"),
        ({"search": {"BM": list(range(999)), "BN": list(range(999))}}, "998001 points, too many"),
    ],
)
def test_a_wrong_offer_is_refused(named: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        candidates(**named)
    assert message in str(caught.value)


# -- agreement


def test_results_agree_within_their_dtypes_precision() -> None:
    rng = np.random.default_rng(0)
    one = rng.standard_normal((100, 100)).astype(np.float32)
    assert difference(one, one * np.float32(1 + 1e-6), "f32") == ""
    assert "differs by 1.0e-03" in difference(one, one * np.float32(1.001), "f32")
    assert difference(one, one * np.float32(1.001), "f32", 1e-2) == ""
    holed = one.copy()
    holed[3, 4] = np.nan
    assert difference(holed, holed, "f32") == ""
    assert "NaN or infinity in other places" in difference(one, holed, "f32")
    assert "NaN or infinity in other places" in difference(holed, one, "f32")
    whole = np.arange(10)
    assert difference(whole, whole, "i32") == ""
    assert difference(whole, whole + 1, "i32") == "10 of 10 elements differ"


def test_large_results_are_sampled_over_all_rows_and_columns() -> None:
    one = np.zeros((4096, 4096), np.int8)
    two = one.copy()
    two[128:256, 512:640] = 1  # one tile
    assert one.size > MOST_COMPARED
    assert "differ" in difference(one, two, "i8")


# -- keys


def test_sizes_fall_into_classes() -> None:
    sizes = (0, 5, 16, 17, 24, 25, 32, 1000, 1025, 1536, 4096, 4097)
    classes = [0, 5, 16, 24, 24, 32, 32, 1024, 1536, 1536, 4096, 6144]
    assert [size_class(size) for size in sizes] == classes


def test_the_class_of_an_array_has_what_code_is_specialised_to() -> None:
    rows = np.zeros((104, 64), np.float16)
    seen = {
        argument_class("x", describe(view, "x"))
        for view in (rows, rows.T, rows[:, 1:], rows[:, ::2], rows.astype(np.float32))
    }
    assert len(seen) == 5
    same = np.zeros((120, 64), np.float16)
    assert argument_class("x", describe(same, "x")) == argument_class("x", describe(rows, "x"))


def test_quick_keys_tell_values_and_types_apart() -> None:
    x = np.zeros((4, 4), np.float32)
    keys = [1, 1.5, True, "a", None, x, x.T[:, :2], x.astype(np.float16), (1, 2), [1]]
    assert len({quick_key(value) for value in keys}) == len(keys)
    assert quick_key(2.5) == quick_key(1.5)


PROGRAM = """
import tilec
import tilec.language as tl

@tilec.kernel(grid=lambda x: 1)
def copy(x: tl.array, B: tl.const = 8):
    tl.store(x, 0, tl.full((B,), {value}, tl.f32))
"""


def test_the_source_counts_and_not_where_it_lies(tmp_path: Path) -> None:
    kernels = []
    for name, value in (("one", 1.0), ("two", 1.0), ("three", 2.0)):
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(PROGRAM.format(value=value)) + ("\n" if name else ""))
        kernels.append(load_kernel(str(path), "copy"))
    digests = [source_digest(kernel.fn, kernel.grid, portable=True) for kernel in kernels]
    assert digests[0] == digests[1] != digests[2]
    assert source_digest(kernels[0].fn) != source_digest(kernels[1].fn)
    bound = {"x": describe(np.zeros(8, np.float32), "x"), "B": 8}
    key = tuning_key(kernels[0], bound, {"B": 8}, MACHINE)
    assert json.loads(json.dumps(key)) == key
    assert key["constants"] == {"B": "int 8"}
    assert (key["device"], key["target"]) == ("test", "sm_80")


def test_known_choices_need_no_mlir() -> None:
    """Neither importing the packages nor looking a choice up loads the compiler."""
    program = "import tilec, sys; tilec.autotune; tilec.ops.matmul; print('mlir' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


# -- the file


KEY = {"kernel": "k", "device": "GPU", "n": 1}
OPTIONS = (Candidate(), Candidate({"BM": 64}), Candidate({"BM": 64}, {"num_warps": 8}))
FOUND = Outcome(
    "k",
    "GPU",
    OPTIONS[2],
    "measured",
    "fastest of 2 timed",
    (
        Trial(OPTIONS[0], 10.0, "L2", 12.0, 11.5, 12.5),
        Trial(OPTIONS[1], rejected="too large"),
        Trial(OPTIONS[2], 9.0, "L2", 8.0, 7.5, 8.5),
    ),
    1.5,
    ("a note",),
)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    kept = WinnerFile(tmp_path / "deep" / "file.json")
    assert kept.find(KEY, OPTIONS) is None
    kept.keep(KEY, FOUND)
    found = kept.find(KEY, OPTIONS)
    assert found == replace(FOUND, source="file", why="kept from an earlier tuning")
    assert kept.find({**KEY, "n": 2}, OPTIONS) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry.pop("winner"),
        lambda entry: entry.update(winner={"BM": "int 65"}),
        lambda entry: entry.update(winner=3),
        lambda entry: entry.update(key={**KEY, "n": 2}),
        lambda entry: entry.update(seconds="long"),
        lambda entry: entry["trials"][0].update(measured_us="fast"),
        lambda entry: entry["trials"].append(None),
        lambda entry: entry.clear(),
    ],
)
def test_a_damaged_entry_counts_as_missing(tmp_path: Path, damage: Any) -> None:
    kept = WinnerFile(tmp_path / "file.json")
    kept.keep(KEY, FOUND)
    content = json.loads(kept.path.read_text())
    (entry,) = content["entries"].values()
    damage(entry)
    kept.path.write_text(json.dumps(content))
    assert kept.find(KEY, OPTIONS) is None
    kept.keep(KEY, FOUND)
    assert kept.find(KEY, OPTIONS) is not None


def test_a_file_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    kept = WinnerFile(tmp_path / "file.json")
    kept.path.write_text(json.dumps({"format": "other", "entries": {}}))
    with pytest.warns(UserWarning, match="is no 'tilec tuning 1' file; tuning anew"):
        assert kept.find(KEY, OPTIONS) is None


@pytest.mark.parametrize("what", ["a pipe", "deep"])
def test_a_file_of_winners_that_cannot_be_read_is_tuned_anew(tmp_path: Path, what: str) -> None:
    path = tmp_path / "file.json"
    if what == "deep":
        path.write_text("[" * 100_000)
    else:
        os.mkfifo(path)
    with pytest.warns(UserWarning, match="is not readable .*; tuning anew"):
        assert WinnerFile(path).find({"kernel": "k"}, []) is None


def test_many_may_add_to_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    threads = [
        threading.Thread(target=lambda n=n: WinnerFile(path).keep({**KEY, "n": n}, FOUND))
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads(path.read_text())["entries"]) == 12


def test_a_disk_that_refuses_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    with pytest.warns(UserWarning, match="cannot keep what tuning found"):
        WinnerFile(tmp_path / "a file" / "winners.json").keep(KEY, FOUND)


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEC_CACHE", raising=False)
    monkeypatch.delenv("TILEC_TUNING_FILE", raising=False)
    assert default_file() == tmp_path / "tuning.json"
    monkeypatch.setenv("TILEC_CACHE", "0")
    assert default_file() is None
    monkeypatch.setenv("TILEC_TUNING_FILE", "here.json")
    assert default_file() == Path("here.json")


def test_the_report_has_a_line_for_every_candidate() -> None:
    lines = FOUND.report().splitlines()
    assert lines[0].startswith("k on GPU: BM=64 num_warps=8 (fastest of 2 timed): 8.0 us, the def")
    assert lines[1] == "  note: a note"
    assert [line.split()[0] for line in lines[2:]] == ["BM=64", "default", "BM=64"]
    assert "8.0 us (7.5 to 8.5); predicted 9.0 us, bound by L2" in lines[2]
    assert lines[4].endswith("too large")
