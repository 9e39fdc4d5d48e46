"""Compiles the products of `cluster_ends.py`, whose clusters end in each way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

from cluster_ends import MANIFEST, NOW, RELAXED, SHAPES, STAGES, TARGET, WAYS
from mlir import ir
from ops_compiler import compile_ops
from product_cases import ProductCase

from tilec.compile import pipeline
from tilec.dialects.gpu_tile import ClusterSyncOp
from tilec.ops import product_launch
from tilec.ops.tile_choice import TileChoice, choose_tiles
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.walk import find_ops


@contextmanager
def parting(way: str) -> Iterator[None]:
    """The compiler ends clusters in this way."""

    def part(module: ir.Module, _: PassContext) -> None:
        meeting = list(find_ops(module.operation, ClusterSyncOp))[-1]
        if way == RELAXED:
            meeting.opview.order = "relaxed"
        else:
            meeting.erase()

    own = tuple(
        replace(each, run=part) if each.name == "await-arrivals" and way != NOW else each
        for each in pipeline.TILE_PIPELINE
    )
    with mock.patch.object(pipeline, "TILE_PIPELINE", own):
        yield


def build(out: Path) -> None:
    """Compiles each product in each way into files, and says how its clusters end."""
    out.mkdir(parents=True, exist_ok=True)
    entries = {}
    for way in WAYS:
        for number, (shape, stages) in enumerate(product(SHAPES, STAGES)):
            case = ProductCase("bf16", "bf16", shape, "NN", ())
            path = out / f"{WAYS.index(way)}{number}.tilec"
            with parting(way), ring_of(stages):
                compiled, entry = compile_ops(case, TARGET, path)
            name = f"{case.name}, {stages or 'as many'} slots, {way}"
            entries[name] = {"way": way, "shape": shape, "file": path.name, **entry}
            meetings = compiled.ptx.count("barrier.cluster.arrive") - 1
            relaxed = compiled.ptx.count("barrier.cluster.arrive.relaxed") - 1
            waits = compiled.ptx.count("mbarrier.try_wait.parity.relaxed.cluster")
            print(f"{name}: {meetings} meetings at the end, {relaxed} relaxed, {waits} waits")
    (out / MANIFEST).write_text(json.dumps(entries))


@contextmanager
def ring_of(stages: int | None) -> Iterator[None]:
    """`tilec.ops` takes so many slots of the tiles it chooses."""

    def choose(*arguments: Any) -> TileChoice:
        return replace(choose_tiles(*arguments), stages=stages)

    with mock.patch.object(product_launch, "choose_tiles", choose):
        yield
