"""The world's kernels: libraries in Triton's language launched by both compilers, and compared.

    python test/from_triton/libraries.py FOLDER --list
    python test/from_triton/libraries.py FOLDER --device emulator [--only liger.softmax ...]
    python test/from_triton/libraries.py FOLDER --large --jobs 12 --out right.json
    python test/from_triton/libraries.py FOLDER --large --time right.json --out times.json

FOLDER has the libraries' checkouts, each named owner+name as on GitHub (linkedin+Liger-Kernel).
The libraries' own functions are called on random tensors (`library_calls`); what they launch is
noted and launched again by both compilers on copies of its arguments (`library_launches.py`). On
the emulator Triton's interpreter stands for Triton's compiler, and the calls are small. Each call
is a process of its own, since a wild access ends it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from library_workers import Lost, done

LIBRARIES = (
    "lightllm",
    "liger",
    "mamba",
    "unsloth",
    "bitsandbytes",
    "awq",
    "fla",
    "flaggems",
    "attorch",
    "lmdeploy",
    "sage",
    "flash_attention",
    "recommenders",
    "vllm",
    "fbgemm",
    "transformer_engine",
    "xformers",
    "torchao",
    "tritonbench",
    "applied_ai",
    "torch_sparse",
)
"""Modules of `library_calls`."""
PRELOAD = ["library_launches", "tilec.triton.takeover.hooks", "torch._dynamo"]
HERE = Path(__file__).resolve().parent
BUDGET_MS = 12.0
"""For the timed rounds of one launch."""


@dataclass
class Row:
    """What became of one launch, or of a call that failed (`kernel` is empty then)."""

    library: str
    call: str
    kernel: str
    imported: bool = False
    right: bool | None = None
    error: str = ""
    difference: float = 0.0
    has_dots: bool = False
    triton_us: float = 0.0
    tilec_us: float = 0.0

    @property
    def ratio(self) -> float:
        """Triton's time to tilec's; 0 if not timed."""
        return self.triton_us / self.tilec_us if self.tilec_us else 0.0


@dataclass(frozen=True)
class Asked:
    """How calls are made. `times`: by call and kernel, what is known of launches that are to be
    timed and no longer compared."""

    folder: Path
    device: str | None
    target: str
    is_large: bool
    seed: int
    times: dict[tuple[str, str, str], Row] | None = None


def calls_of(libraries: tuple[str, ...] = LIBRARIES) -> Iterator[tuple[str, str]]:
    """Libraries and the names of their calls."""
    for library in libraries:
        for name in import_module(f"library_calls.{library}").CALLS:
            yield library, name


def look(library: str, name: str, asked: Asked) -> list[Row]:
    """Makes a call and compares its launches."""
    import torch
    from library_calls.draw import Draw
    from library_launches import noted

    begin(asked.device, asked.target)
    torch.manual_seed(asked.seed)
    module = import_module(f"library_calls.{library}")
    module.prepare(asked.folder / module.REPOSITORY.replace("/", "+"))
    rows = []
    draw = Draw("cpu" if asked.device else "cuda", asked.is_large)
    with noted() as launches:
        try:
            module.CALLS[name](draw)
        except Exception as error:
            rows.append(Row(library, name, "", error=cause(error)))
    for launch in launches:
        row = Row(library, name, launch.name)
        if asked.times is None:
            free = getattr(module, "FREE_ORDER", {}).get(launch.name, {})
            turns = getattr(module, "TURNS", {}).get(launch.name, {})
            compare(row, launch, ways_of(launch, asked.device), free, turns)
        elif (library, name, launch.name) in asked.times:
            row = replace(asked.times[library, name, launch.name])
            try:
                compare_times(row, launch, ways_of(launch, asked.device))
            except Exception as error:
                row.error = f"not timed: {cause(error)}"
        else:
            continue
        rows.append(row)
        if is_lost(row):
            break
    return rows


def is_lost(row: Row) -> bool:
    """Whether a launch ended in an error of the GPU, after which its process can do nothing."""
    return any(words in row.error for words in ("CUDA error", "CUDA_ERROR"))


@cache
def begin(device: str | None, target: str) -> None:
    """Once a process."""
    import torch
    from host_cuda import pretend

    import tilec.triton
    from tilec.hardware.target import find_target
    from tilec.triton.takeover.hooks import install

    torch.use_deterministic_algorithms(True, warn_only=True)  # and torch.empty is poisoned
    install()
    if device:
        os.environ["TILEC_TARGET"] = target
        found = find_target(target)
        pretend(found.compute_capability, found.shared_bytes)
        tilec.triton.enable(device=device)


def ways_of(given: Any, device: str | None) -> dict[str, Any]:
    """How a launch is done by both, each called as `JITFunction.run` is."""
    from library_launches import JITFunction, interpret

    from tilec.triton.takeover.hooks import taken
    from tilec.triton.takeover.wish import Wish

    twin = taken(given.function, Wish(device=device))
    return {
        "triton": interpret if device else JITFunction.run,
        "tilec": lambda function, *arguments, **named: twin.run(*arguments, **named),
    }


def compare(
    row: Row, given: Any, ways: dict[str, Any], free: Mapping[str, str] | None = None,
    turns: Mapping[str, float] | None = None,
) -> None:  # fmt: skip
    """Launches by both compilers, on copies. `free`: arrays whose order is (`FREE_ORDER`); `turns`:
    arrays of angles (`TURNS`)."""
    import torch
    from library_launches import difference, launch

    copies = {}
    for who in ("tilec", "triton"):
        copies[who] = given.copied()
        try:
            compiled = launch(ways[who], copies[who])
            if any(tensor.is_cuda for tensor in given.tensors()):
                torch.cuda.synchronize()
        except Exception as error:
            row.error = f"{who}: {cause(error)}"
            if who == "tilec":
                return
        else:
            if who == "tilec":
                row.imported = True
                row.has_dots = "tt.dot" in str(compiled.asm["ttir"])
    if row.error:
        return
    for one in copies.values():
        one.sort_in_groups(free or {})
    copies["tilec"].turn_towards(copies["triton"], turns or {})
    found = difference(copies["tilec"], copies["triton"], given, row.has_dots)
    row.right, row.difference = found.is_rounding, found.most
    row.error = "; ".join(found.where)


def compare_times(row: Row, given: Any, ways: dict[str, Any]) -> None:
    """Microseconds of both, in turn, on rotating copies."""
    import torch
    from library_launches import changed_counts, launch

    sys.path.insert(0, str(HERE.parent / "bench"))
    from timing import CudaClock, rotated_sets, time_peers, time_restored

    sets = [given.copied() for _ in range(rotated_sets(max(given.nbytes, 1), most=48))]
    peers = {who: lambda i, way=way: launch(way, sets[i % len(sets)]) for who, way in ways.items()}
    peers["tilec"](0)
    counts = changed_counts(given, sets[0])

    def restore() -> None:
        for one in sets:
            one.restore(given, counts)

    for peer in peers.values():
        restore()
        for i in range(len(sets)):
            peer(i)
    torch.cuda.synchronize()
    options = {"sets": len(sets), "budget_ms": BUDGET_MS, "least_rounds": 5, "most_rounds": 30}
    if counts:
        times = time_restored(peers, CudaClock(), restore=restore, **options)
    else:
        times = time_peers(peers, CudaClock(), **options)
    row.triton_us, row.tilec_us = times["triton"].us, times["tilec"].us


def cause(error: BaseException) -> str:
    """An error's first lines, in one."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    ours = [e for e in chain if type(e).__module__.startswith("tilec")]
    last = (ours or chain)[0] if ours else chain[0]
    words = " ".join(str(last).split())
    if os.environ.get("TILEC_TRACEBACK") == "full":
        traceback.print_exception(error)
    return f"{type(last).__name__}: {words[:300]}"


def rows_of(task: tuple[str, str, Asked]) -> tuple[list[Row], bool]:
    """Of a call, and whether this process can launch anything more."""
    import torch

    library, name, asked = task
    try:
        rows = look(library, name, asked)
        if not any(map(is_lost, rows)):
            torch.cuda.empty_cache()
    except Exception as error:
        rows = [Row(library, name, "", error=cause(error))]
    return rows, not any(map(is_lost, rows))


def table(rows: list[Row]) -> str:
    """Counts and times by library, then what is wrong, then what is slow."""
    lines = ["| library | calls | kernels | launches | imported | right | timed | mean | < 0.9 |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    launched = [row for row in rows if row.kernel]
    for library in [*dict.fromkeys(row.library for row in rows), ""]:
        own = [row for row in launched if library in ("", row.library)]
        kernels = best(own)
        timed = [row for row in kernels if row.ratio]
        judged = [row for row in own if row.right is not None]
        cells = (
            library or "all", len({(row.library, row.call) for row in own}), len(kernels), len(own),
            share(own, "imported"), share(judged, "right"), len(timed), f"{mean(timed):.2f}",
            sum(row.ratio < 0.9 for row in timed),
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    dots = [row for row in best(launched) if row.ratio and row.has_dots]
    lines.append(f"with products: {len(dots)}, mean {mean(dots):.2f}")
    return "\n".join(lines)


def best(rows: list[Row]) -> list[Row]:
    """One a kernel: the launch that takes Triton longest."""
    found: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row.triton_us):
        found[row.library, row.kernel] = row
    return list(found.values())


def share(rows: list[Row], word: str) -> str:
    """How many are."""
    return f"{sum(bool(getattr(row, word)) for row in rows)} of {len(rows)}"


def mean(rows: list[Row]) -> float:
    """The geometric one of ratios."""
    return math.exp(sum(math.log(row.ratio) for row in rows) / len(rows)) if rows else 0.0


def line(row: Row) -> str:
    """One launch."""
    word = "right" if row.right else "WRONG" if row.right is False else "not"
    times = f" {row.triton_us:.1f} / {row.tilec_us:.1f} us = {row.ratio:.2f}" if row.ratio else ""
    return f"{row.library}.{row.call} {row.kernel}: {word} {row.difference:.1e}{times} {row.error}"


def main() -> None:
    """The command; ends with 1 if a launch is not right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="of the checkouts")
    parser.add_argument("--list", action="store_true", help="names of calls")
    parser.add_argument("--only", nargs="*", default=[], help="library or library.call, in order")
    parser.add_argument("--device", help="emulator or emulator:check, instead of a GPU")
    parser.add_argument("--target", default="sm_90a", help="what is emulated")
    parser.add_argument("--large", action="store_true", help="sizes of practice")
    parser.add_argument("--time", type=Path, help="the launches that this record says are right")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="for one call")
    parser.add_argument("--whole", type=float, default=3600, help="seconds for all of them")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--out", type=Path, help="JSON of all launches")
    given = parser.parse_args()
    chosen = list(calls_of())
    if given.only:
        named = (one for words in given.only for one in chosen if words in (one[0], ".".join(one)))
        chosen = list(dict.fromkeys(named))
    if given.list:
        print("\n".join(f"{library}.{name}" for library, name in chosen))
        return
    print(f"seed {given.seed}", flush=True)
    asked = Asked(
        given.folder.resolve(), given.device, given.target, given.large, given.seed,
        known(given.time) if given.time else None,
    )  # fmt: skip
    if asked.times is not None:
        dots = {key[:2]: row.has_dots for key, row in asked.times.items()}
        chosen = sorted((one for one in chosen if one in dots), key=lambda one: not dots[one])
    rows: list[Row] = []
    tasks = [(*one, asked) for one in chosen]
    for (library, name, _), found in done(
        tasks, rows_of, PRELOAD, jobs=given.jobs, seconds=given.seconds, whole=given.whole
    ):
        new = [Row(library, name, "", error=found.why)] if isinstance(found, Lost) else found
        rows += new
        print("\n".join(map(line, new)), flush=True)
        if given.out:
            given.out.write_text(json.dumps([asdict(row) for row in rows], indent=0))
    print(table(rows))
    sys.exit(not all(row.right for row in rows))


def known(record: Path) -> dict[tuple[str, str, str], Row]:
    """What a record says is right; of a call, kernels with products last, which thus say what it
    has."""
    rows = [Row(**row) for row in json.loads(record.read_text())]
    right = sorted((row for row in rows if row.right), key=lambda row: row.has_dots)
    return {(row.library, row.call, row.kernel): row for row in right}


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
