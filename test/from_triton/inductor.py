"""torch.compile's kernels by tilec and by Triton: layers and models, forward and backward.

    python test/from_triton/inductor.py [NAME ...] [--time]
    python test/from_triton/inductor.py [NAME ...] --device emulator:check

Each is compiled by Inductor, on a GPU by both compilers, and compared with eager torch in float64.
All of Inductor's kernels must be tilec's where it is asked for.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import tilec.triton
from tilec.triton.takeover import driver

ROUNDS = 15


class Attention(nn.Module):
    """A block of a transformer, attention by torch's own kernels."""

    def __init__(self, width: int = 96, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        b, n, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) / (width // self.heads) ** 0.5
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, width)
        x = x + self.out(mixed)
        return x + self.down(functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Gated(nn.Module):
    """RMS norm and a gated MLP."""

    def __init__(self, width: int = 200) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.up, self.gate = nn.Linear(width, 333, bias=False), nn.Linear(width, 333, bias=False)
        self.down = nn.Linear(333, width, bias=False)

    def forward(self, x: Any) -> Any:
        normal = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        return x + self.down(functional.silu(self.gate(normal)) * self.up(normal))


class Convolutional(nn.Module):
    """A residual block."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: Any) -> Any:
        y = self.norms[0](self.convolutions[0](x)).relu()
        return (x + self.norms[1](self.convolutions[1](y))).relu()


class Apply(nn.Module):
    """A function of a tensor as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *x: Any) -> Any:
        return self.function(*x)


def normal(*shape: int) -> Callable[[], tuple[Any, ...]]:
    """Draws one tensor."""
    return lambda: (torch.randn(*shape),)


def loss_inputs() -> tuple[Any, ...]:
    """Logits and labels."""
    return (
        torch.randn(512, 5003),
        torch.randint(0, 5003, (512,)),
    )


def rotary(x: Any) -> Any:
    """Rotary positions of (batch, n, heads, d)."""
    n, d = x.shape[1], x.shape[-1] // 2
    at = torch.arange(n, device=x.device, dtype=x.dtype)
    angle = at[:, None] / 10000 ** (torch.arange(d, device=x.device, dtype=x.dtype) / d)
    one, two = x[..., :d], x[..., d:]
    cos, sin = angle.cos()[None, :, None], angle.sin()[None, :, None]
    return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]] = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(511, 1024), nn.GELU(), nn.Linear(1024, 255)),
        normal(128, 511),
    ),
    "transformer": (Attention, normal(2, 43, 96)),
    "gated": (Gated, normal(3, 27, 200)),
    "convolution": (Convolutional, normal(3, 12, 14, 14)),
    "layer_norm": (lambda: nn.LayerNorm(1000), normal(777, 1000)),
    "group_norm": (lambda: nn.Sequential(nn.GroupNorm(8, 64), nn.SiLU()), normal(2, 64, 13, 17)),
    "softmax": (lambda: Apply(lambda x: x.softmax(-1)), normal(300, 1777)),
    "cross_entropy": (lambda: Apply(functional.cross_entropy), loss_inputs),
    "rotary": (lambda: Apply(rotary), normal(2, 40, 4, 64)),
    "sum_columns": (lambda: Apply(lambda x: (x * x).sum(0)), normal(1001, 57)),
    "large_sum": (lambda: Apply(lambda x: x.sin().sum()), normal(1 << 17)),
    "cumulative": (lambda: Apply(lambda x: x.cumsum(-1)), normal(40, 3000)),
    "transposed": (lambda: Apply(lambda x: x.t().contiguous() * 2 + 1), normal(1000, 333)),
    "pooling": (
        lambda: nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2)),
        normal(2, 5, 36, 36),
    ),
    "indexed": (lambda: Apply(lambda x: x[x.argsort(0)[:, 0]] + x.roll(3, 0)), normal(500, 64)),
    "variance": (lambda: Apply(lambda x: torch.var_mean(x, 1)[0]), normal(60, 4097)),
    "largest": (lambda: Apply(lambda x: x.max(1).values * x.argmax(1)), normal(123, 999)),
    "upsampled": (
        lambda: Apply(lambda x: functional.interpolate(x, scale_factor=2)),
        normal(2, 8, 31, 17),
    ),
    "embedding": (
        lambda: Apply(lambda i: functional.one_hot(i, 50).float().mean(0)),
        lambda: (torch.randint(0, 50, (4000,)),),
    ),
    "smooth_l1": (
        lambda: Apply(lambda x: functional.smooth_l1_loss(x, x.flip(0))),
        normal(701, 99),
    ),
}
"""A module, and how its inputs are drawn."""


def step(module: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """Outputs and gradients."""
    given = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    out = module(*given)
    wanted = [x for x in (*given, *module.parameters()) if x.requires_grad]
    if not wanted or not out.requires_grad:
        return [out.detach()]
    return [out.detach(), *torch.autograd.grad(out.sin().sum(), wanted, allow_unused=True)]


def near(found: list[Any], right: list[Any]) -> None:
    """Each within rounding of what is right, relative to its largest."""
    for one, two in zip(found, right, strict=True):
        if two is not None:
            most = two.double().abs().max().clamp(min=1e-3)
            error = ((one.double() - two.double()).abs().max() / most).item()
            assert error < 2e-3, f"relative error {error:.1e}"


class Loaded:
    """Counts binaries as they are loaded: tilec's texts, and machine code of Triton."""

    def __init__(self) -> None:
        self.texts = self.codes = 0
        plain = driver.Binaries.load_binary

        def counted(binaries: Any, name: str, binary: Any, *rest: Any) -> Any:
            if bytes(binary[:4]) == b"\x7fELF":
                self.codes += 1
            else:
                self.texts += 1
            return plain(binaries, name, binary, *rest)

        driver.Binaries.load_binary = counted


def look(name: str, timed: bool, device: str | None, loaded: Loaded) -> str:
    """What became of a module. `device`: the emulator's name, or none for the GPU."""
    make, draw = CASES[name]
    place = "cpu" if device else "cuda"
    module, inputs = make().to(place), tuple(x.to(place) for x in draw())
    right = [
        None if x is None else x.clone()
        for x in step(
            make_double(module), tuple(x.double() if x.is_floating_point() else x for x in inputs)
        )
    ]
    if device is None:
        torch._dynamo.reset()
        near(step(torch.compile(module), inputs), right)
    torch._dynamo.reset()
    before, start = (loaded.texts, loaded.codes), time.perf_counter()
    tilec.triton.enable(device=device)
    ours = torch.compile(module)
    try:
        near(step(ours, inputs), right)
        spent = time.perf_counter() - start
        near(step(ours, inputs), right)
    finally:
        tilec.triton.disable()
    texts, codes = loaded.texts - before[0], loaded.codes - before[1]
    assert texts > 0 == codes, f"{texts} kernels of tilec, {codes} of Triton"
    word = f"right, {texts} kernels, {spent:.1f} s"
    return f"{word}; {compared(module, inputs)}" if timed else word


def make_double(module: nn.Module) -> nn.Module:
    """A copy in float64."""
    return copy.deepcopy(module).double()


def compared(module: nn.Module, inputs: tuple[Any, ...]) -> str:
    """Times of a step as graphs, in turn."""
    graphs = []
    for enable in (lambda **_: None, tilec.triton.enable):
        torch._dynamo.reset()
        enable()
        compiled = torch.compile(module)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                step(compiled, inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(5):
                step(compiled, inputs)
        tilec.triton.disable()
        graphs.append(graph)
    times: list[list[float]] = []
    for _ in range(ROUNDS):
        row = []
        for graph in graphs:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            row.append(200 * begin.elapsed_time(end))
        times.append(row)
    theirs, mine = (statistics.median(column) for column in zip(*times, strict=True))
    return f"a step: Triton {theirs:.1f} us, tilec {mine:.1f} us, ratio {theirs / mine:.2f}"


def main() -> None:
    """Prints a line a module; the exit code says whether all were right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--time", action="store_true", help="against Triton's, on a GPU")
    parser.add_argument("--device", help="emulator or emulator:check, instead of a GPU")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    loaded, failed = Loaded(), 0
    for name in given.names or CASES:
        try:
            print(f"{name}: {look(name, given.time, given.device, loaded)}", flush=True)
        except Exception as error:
            failed += 1
            words = " ".join(str(error).split())
            print(f"{name}: FAILED {type(error).__name__}: {words[:260]}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
