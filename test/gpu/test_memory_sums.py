"""CTAs that sum parts of a loop and meet in memory, on a real GPU with torch: launches on several
streams at once, graphs, streams that are gone; every launch gives the same bits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "unit")]

from gpu_marks import needs_gpu  # noqa: E402

import tilec  # noqa: E402
import tilec.language as tl  # noqa: E402

torch: Any = pytest.importorskip("torch")
pytestmark = needs_gpu()

COLUMNS = 48


@tilec.kernel(grid=lambda c, B: tl.cdiv(c.shape[0], B), sum_parts=112)
def gram(x: tl.array, c: tl.array, B: tl.const = 64, K: tl.const = 128):
    """c = x.T @ x for rows of up to B elements."""
    i = tl.program_id(0) * B
    acc = tl.zeros((B, B), tl.f32)
    for k in tl.range(0, x.shape[0], K):
        acc = tl.dot(tl.load(x, (k, i), (K, B)).T, tl.load(x, (k, 0), (K, B)), acc)
    tl.store(c, (i, 0), acc)


@pytest.fixture(scope="module")
def problems() -> list[tuple[Any, Any]]:
    """Matrices of some lengths, and what a launch by itself gives of each."""
    torch.manual_seed(3)
    found = []
    for rows in (20_011, 23_001, 40_000, 60_013, 90_001, 137_546):
        x = torch.randn(rows, COLUMNS, device="cuda", dtype=torch.float16)
        c = torch.full((COLUMNS, COLUMNS), float("nan"), device="cuda")
        gram(x, c)
        exact = x.double().T @ x.double()
        assert (c - exact).norm() < 1e-4 * exact.norm()
        found.append((x, c))
    return found


def poisoned(problems: list[tuple[Any, Any]]) -> list[Any]:
    found = [torch.full_like(c, float("nan")) for _, c in problems]
    torch.cuda.synchronize()
    return found


def test_launches_on_several_streams(problems: list[tuple[Any, Any]]) -> None:
    streams = [torch.cuda.Stream() for _ in problems]
    for _ in range(10):
        found = poisoned(problems)
        for _ in range(10):
            for stream, (x, _), c in zip(streams, problems, found, strict=True):
                with torch.cuda.stream(stream):
                    gram(x, c)
        torch.cuda.synchronize()
        assert all(torch.equal(c, one) for c, (_, one) in zip(found, problems, strict=True))


def test_graphs_beside_launches(problems: list[tuple[Any, Any]]) -> None:
    streams, graphs = [torch.cuda.Stream() for _ in problems], []
    found, beside = poisoned(problems), poisoned(problems)
    for (x, _), c in zip(problems, found, strict=True):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(5):
                gram(x, c)
        graphs.append(graph)
    for _ in range(10):
        for each in (*found, *beside):
            each.fill_(float("nan"))
        torch.cuda.synchronize()
        for stream, graph, (x, _), c in zip(streams, graphs, problems, beside, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
            gram(x, c)
        torch.cuda.synchronize()
        for each in (found, beside):
            assert all(torch.equal(c, one) for c, (_, one) in zip(each, problems, strict=True))


def test_a_stream_that_is_gone_leaves_its_memory(problems: list[tuple[Any, Any]]) -> None:
    x, one = problems[-1]
    for _ in range(20):
        c = torch.full_like(one, float("nan"))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            gram(x, c)
        stream.synchronize()
        del stream
        assert torch.equal(c, one)
