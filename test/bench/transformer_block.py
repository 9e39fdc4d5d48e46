"""Trains a transformer block under `torch.compile`, with tilec's kernels and with torch's own.

    python test/bench/transformer_block.py                    # 100 steps on a GPU, a step's time
    python test/bench/transformer_block.py --graphs           # as CUDA graphs, no host in the time
    python test/bench/transformer_block.py --tiny --steps 3   # on the emulator: that it is right

Attention and its gradients, RMS norm, products with their epilogues and the loss are tilec's, as
operators of one graph; the rest is torch's. Both begin with the same weights and see the same data.
"""

from __future__ import annotations

import argparse
import faulthandler
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

import tilec  # noqa: E402
from tilec.torch import layers  # noqa: E402

EPS = 1e-6
WARM_STEPS = 10
"""Steps before those that are timed: compilation, graphs, clocks."""
FURTHER, NOISE = 2.0, 1e-2
"""How much further than torch's compiled losses ours may be from eager ones, and in any case."""
SECONDS = 100.0
"""For all of it: behind them the block that trains says so, and is given up."""
GRACE = 30.0
"""Seconds behind these, after which a step that never ends is shown."""


def product(x: Any, weight: Any, activation: str | None = None) -> Any:
    """A linear layer of torch's."""
    y = x @ weight
    return y if activation is None else torch.nn.functional.silu(y)


OURS = {
    "attention": lambda q, k, v: tilec.ops.attention(q, k, v, causal=True),
    "norm": lambda x, w: layers.rms_norm(x, w, EPS),
    "product": lambda x, w, activation=None: tilec.ops.matmul(x, w, activation=activation),
    "losses": layers.cross_entropy,
}
TORCHS = {
    "attention": lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=True
    ),
    "norm": lambda x, w: torch.nn.functional.rms_norm(x, (x.shape[1],), w, EPS),
    "product": product,
    "losses": lambda z, labels: torch.nn.functional.cross_entropy(
        z.float(), labels, reduction="none"
    ),
}


def loss_of(operations: dict[str, Callable[..., Any]], heads: int) -> Callable[..., Any]:
    """The block with these operations: tokens (batch, length) and weights to the mean loss."""
    norm, multiply = operations["norm"], operations["product"]

    def loss(tokens: Any, labels: Any, w: dict[str, Any]) -> Any:
        batch, length = tokens.shape
        x = w["embedding"][tokens].flatten(0, 1)
        qkv = multiply(norm(x, w["norm1"]), w["qkv"]).view(batch, length, 3, heads, -1)
        q, k, v = (qkv[:, :, n].transpose(1, 2).contiguous() for n in range(3))
        o = operations["attention"](q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + multiply(o, w["out"])
        x = x + multiply(multiply(norm(x, w["norm2"]), w["up"], "silu"), w["down"])
        logits = multiply(norm(x, w["norm3"]), w["head"])
        return operations["losses"](logits, labels.flatten()).mean()

    return loss


def new_weights(width: int, vocabulary: int, dtype: Any, device: str) -> dict[str, Any]:
    """The same at every call."""
    made = torch.Generator().manual_seed(0)
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width)}
    shapes |= {"down": (4 * width, width), "head": (width, vocabulary)}
    w = {name: torch.randn(s, generator=made) / math.sqrt(s[0]) for name, s in shapes.items()}
    w["embedding"] = torch.randn(vocabulary, width, generator=made)
    w |= {f"norm{n}": torch.ones(width) for n in (1, 2, 3)}
    return {name: t.to(device, dtype).requires_grad_() for name, t in w.items()}


class Late(Exception):
    """The time is over."""


def train(
    step_of: Callable[..., Any], name: str, options: argparse.Namespace
) -> tuple[list[float], float]:
    """The loss at each step, and the median of a step's milliseconds. Late where time is over."""
    weights = new_weights(options.width, options.vocabulary, torch.bfloat16, options.device)
    optimizer = torch.optim.AdamW(weights.values(), lr=1e-3)
    drawn = torch.Generator().manual_seed(1)
    losses, times = [], []
    for step in range(options.steps):
        shape = (options.batch, options.length)
        tokens = torch.randint(options.vocabulary, shape, generator=drawn).to(options.device)
        labels = (3 * tokens + 1) % options.vocabulary
        begin = time.perf_counter()
        loss = step_of(tokens, labels, weights)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))  # waits for the step
        times.append((time.perf_counter() - begin) * 1e3)
        if step == 0:
            told(options, f"{name}: first step after {times[0] / 1e3:.1f} s, loss {losses[0]:.4f}")
        if time.monotonic() - options.since > options.seconds:
            raise Late(f"{name}: given up after {step + 1} steps")
    return losses, statistics.median(times[WARM_STEPS:] or times)


def told(options: argparse.Namespace, text: str) -> None:
    """Prints a line as soon as it is known, with the seconds since the beginning."""
    print(f"{time.monotonic() - options.since:6.1f} s  {text}", flush=True)


def main() -> int:
    """Trains three times (torch's eager, tilec's and torch's compiled) and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--tiny", action="store_true", help="on the emulator")
    parser.add_argument("--graphs", action="store_true", help="mode='reduce-overhead'")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    large = {"batch": 4, "length": 1024, "width": 1024, "heads": 8, "vocabulary": 8192}
    small = {"batch": 1, "length": 40, "width": 32, "heads": 2, "vocabulary": 48}
    vars(options).update(small if options.tiny else large)
    options.device = "cpu" if options.tiny else "cuda"
    options.since = time.monotonic()
    faulthandler.dump_traceback_later(options.seconds + GRACE, exit=True)
    how: dict[str, Any] = {"backend": "aot_eager" if options.tiny else "inductor"}
    if options.graphs:
        how["mode"] = "reduce-overhead"
    ours, torchs = loss_of(OURS, options.heads), loss_of(TORCHS, options.heads)
    ways = {
        "torch's, eager": torchs,
        "tilec's, compiled": torch.compile(ours, fullgraph=True, **how),
        "torch's, compiled": torch.compile(torchs, fullgraph=True, **how),
    }
    expected: list[float] = []
    apart = {}
    for name, step in ways.items():
        try:
            losses, milliseconds = train(step, name, options)
        except Late as late:
            told(options, str(late))
            return 1
        expected = expected or losses
        apart[name] = max(abs(a - b) / b for a, b in zip(losses, expected, strict=True))
        told(
            options,
            f"{name:18} loss {losses[0]:.4f} to {losses[-1]:.4f}, at most {apart[name]:.1e} apart, "
            f"{milliseconds:.2f} ms a step",
        )
    right = apart["tilec's, compiled"] <= FURTHER * apart["torch's, compiled"] + NOISE
    print("right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
