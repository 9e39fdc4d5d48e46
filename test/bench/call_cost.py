"""CPU time of calls from Python: kernels, `tilec.ops`, the torch operator, and torch's own.

    python test/bench/call_cost.py [--calls 10000]

Each row is the median of batches of 250 calls, with the GPU's queue drained in between: what a call
takes before it returns, whatever the GPU does. The rows of a table take turns. Without torch only
tilec's own arrays are timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "unit")]

from runtime_kernels import eight, mapped  # noqa: E402

import tilec  # noqa: E402
from tilec.runtime.artefact import Artefact  # noqa: E402
from tilec.runtime.cuda.driver import load_driver, no_device_reason  # noqa: E402

try:
    import torch
except ImportError:
    torch: Any = None

BATCH = 250
SIZE = 512
Rows = dict[str, Callable[[], Any]]


def launches() -> Rows:
    """Kernels, with nothing between the caller and the launcher; and the driver alone."""
    gpu = tilec.device("cuda")
    run, maps = Artefact("eight", [eight()]), Artefact("mapped", [mapped()])
    x = [gpu.empty((1024,), "f32") for _ in range(3)]
    a = [gpu.empty((SIZE, SIZE), "f16") for _ in range(3)]
    run(*x, 1, 2, 3, 4, 5)
    plan = run.known_plan(*x, 1, 2, 3, 4, 5)
    bare, function = load_driver().cuLaunchKernel, plan.loaded.function
    arguments = plan.launch.arguments
    rows = {
        "cuLaunchKernel, nothing packed": lambda: bare(
            function, 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0
        ),
        "3 arrays and 5 integers": lambda: run(*x, 1, 2, 3, 4, 5),
        "the same, run[grid]": lambda: run[2](*x, 1, 2, 3, 4, 5),
        "3 matrices and their tensor maps": lambda: maps(*a),
    }
    if torch is not None:
        t = [torch.empty(1024, device="cuda") for _ in range(3)]
        m = [torch.empty(SIZE, SIZE, dtype=torch.half, device="cuda") for _ in range(3)]
        rows["3 tensors and 5 integers"] = lambda: run(*t, 1, 2, 3, 4, 5)
        rows["3 tensors and their tensor maps"] = lambda: maps(*m)
    return rows


def products() -> Rows:
    """Products with bias and relu, into a given array or a new one; attention."""
    gpu = tilec.device("cuda")
    a, b, out = (gpu.empty((SIZE, SIZE), "bf16") for _ in range(3))
    bias = gpu.empty((SIZE,), "bf16")
    epilogue = {"bias": bias, "activation": "relu"}
    q, k, v, o = (gpu.empty((1, 4, 128, 64), "bf16") for _ in range(4))
    rows: Rows = {
        "tilec.ops.matmul(a, b, out)": lambda: tilec.ops.matmul(a, b, out),
        "... and bias, relu": lambda: tilec.ops.matmul(a, b, out, **epilogue),
        "tilec.ops.attention(q, k, v, out)": lambda: tilec.ops.attention(q, k, v, o, causal=True),
    }
    if torch is None:
        return rows
    from tilec.ops.torch import matmul as operator

    t, u = (torch.randn(SIZE, SIZE, device="cuda").bfloat16() for _ in range(2))
    row = torch.randn(SIZE, device="cuda").bfloat16()
    named = {"bias": row, "activation": "relu"}
    return rows | {
        "tilec.ops.matmul, bias, relu, new": lambda: tilec.ops.matmul(t, u, **named),
        "tilec.ops.torch.matmul, the same": lambda: operator(t, u, **named),
        "torch.addmm": lambda: torch.addmm(row, t, u),
        "torch.addmm and relu": lambda: torch.relu(torch.addmm(row, t, u)),
    }


def gradients() -> Rows:
    """Products and launches whose gradient torch records, and with their backward; a launch as the
    operator that compiled graphs hold."""
    if torch is None:
        return {}
    import tilec.runtime.torch_operator as operators
    from tilec.examples.softmax import softmax

    t, u = (torch.randn(SIZE, SIZE, device="cuda").bfloat16().requires_grad_() for _ in range(2))
    g, x, y = (torch.randn(SIZE, SIZE, device="cuda").bfloat16() for _ in range(3))
    recorded: list[Any] = []
    asked = operators._operator
    operators._operator = lambda *arguments: recorded.append(arguments)
    operators.record(softmax, (x, y, SIZE), {})
    operators._operator = asked

    def launch(x: Any) -> Any:
        softmax(x, y, SIZE)
        return y.view_as(y), (x,)

    function = tilec.autograd(launch, lambda kept, gradient: (gradient,))

    def both(product: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(product(t, u), (t, u), g)

    return {
        "tilec.ops.matmul, recorded": lambda: tilec.ops.matmul(t, u),
        "torch.matmul, recorded": lambda: torch.matmul(t, u),
        "tilec.ops.matmul and its gradients": both(tilec.ops.matmul),
        "torch.matmul and its gradients": both(torch.matmul),
        "tilec.autograd of a launch, recorded": lambda: function(t),
        "... and its gradient": lambda: torch.autograd.grad(function(t), t, g),
        "a launch": lambda: softmax(x, y, SIZE),
        "a launch as graphs hold it": lambda: asked(*recorded[0]),
    }


def microseconds(rows: Rows, calls: int) -> dict[str, float]:
    """The median of each row."""
    gpu = tilec.device("cuda")
    times: dict[str, list[float]] = {name: [] for name in rows}
    for call in rows.values():
        for _ in range(BATCH):
            call()
    for _ in range(max(1, calls // BATCH)):
        for name, call in rows.items():
            gpu.synchronize()
            begin = time.perf_counter()
            for _ in range(BATCH):
                call()
            times[name].append((time.perf_counter() - begin) / BATCH * 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> int:
    """Parses the command line, prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args()
    if reason := no_device_reason():
        print(f"no GPU: {reason}")
        return 1
    tables = {"launches": launches(), "products": products(), "gradients": gradients()}
    for title, rows in tables.items():
        print(f"{title}, CPU microseconds (median)")
        for name, found in microseconds(rows, options.calls).items():
            print(f"  {name:36} {found:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
