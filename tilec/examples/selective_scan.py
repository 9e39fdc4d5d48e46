"""The selective scan of Mamba (arXiv:2312.00752): a linear recurrence with gates of its own a step.

A program keeps the states of BD channels in registers and walks along the sequence; nothing but
its inputs and outputs is ever in memory.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned
from tilec.ops.attention_kernel import LOG2_E


@tilec.kernel(grid=lambda x, BD: (tl.cdiv(x.shape[2], BD), x.shape[0]))
def selective_scan(
    x: tl.array,
    steps: tl.array,
    decay: tl.array,
    entry: tl.array,
    readout: tl.array,
    skip: tl.array,
    y: tl.array,
    N: tl.const = 16,
    BD: tl.const = 32,
):
    """h = exp(step * decay) * h + step * entry * x, y = readout h + skip x, per channel.

    x, steps, y (batch, length, channels), decay (channels, N), entry, readout (batch, length, N).
    """
    d, batch = tl.program_id(0) * BD, tl.program_id(1)
    rate = tl.load(decay, (d, 0), (BD, N)) * LOG2_E
    through = tl.load(skip, d, BD)
    state = tl.zeros((BD, N), tl.f32)
    for t in tl.range(x.shape[1]):
        now, step = (tl.load(a, (batch, t, d), BD).to(tl.f32) for a in (x, steps))
        enter, read = (tl.load(a, (batch, t, 0), N).to(tl.f32) for a in (entry, readout))
        kept = tl.exp2(step[:, None] * rate, approx=True)
        state = kept * state + (step * now)[:, None] * enter[None, :]
        out = tl.sum(state * read[None, :], 1) + through * now
        tl.store(y, (batch, t, d), out.to(y.dtype))


def reference(
    x: np.ndarray,
    steps: np.ndarray,
    decay: np.ndarray,
    entry: np.ndarray,
    readout: np.ndarray,
    skip: np.ndarray,
) -> np.ndarray:
    """The recurrence in float64."""
    x, steps = x.astype(np.float64), steps.astype(np.float64)
    state, y = np.zeros((x.shape[0], *decay.shape)), np.empty(x.shape)
    for t in range(x.shape[1]):
        step, now = steps[:, t, :, None], x[:, t, :, None]
        state = np.exp(step * decay) * state + step * now * entry[:, t, None, :]
        y[:, t] = (state * readout[:, t, None, :]).sum(-1) + skip * x[:, t]
    return y


def main() -> None:
    """Channels that fill no tile."""
    rng = np.random.default_rng(0)
    batch, length, channels, n = 2, 21, 45, 16
    x = rng.standard_normal((batch, length, channels), dtype=np.float32)
    steps = rng.random(x.shape, np.float32)
    decay, skip = -rng.random((channels, n), np.float32), rng.random(channels, np.float32)
    entry, readout = rng.standard_normal((2, batch, length, n), dtype=np.float32)
    y = poisoned(x.shape, np.float32)
    launch(selective_scan, x, steps, decay, entry, readout, skip, y, N=n)
    compare("selective_scan", y, reference(x, steps, decay, entry, readout, skip), 1e-5)


if __name__ == "__main__":
    main()
