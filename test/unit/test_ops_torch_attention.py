"""`tilec.ops.torch.attention` with torch on the CPU, the kernels on the emulator; skipped without
torch."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

import tilec  # noqa: E402
from tilec.ops import gradient_launch  # noqa: E402
from tilec.ops.attention_options import NAMES  # noqa: E402
from tilec.ops.torch import attention  # noqa: E402
from tilec.ops.torch_attention import _gradients, _operator  # noqa: E402
from tilec.runtime.errors import ArgumentError  # noqa: E402


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    torch.manual_seed(0)


def inputs(length: int = 40, keys: int = 40, dtype: Any = None) -> list[Any]:
    """q of four heads, k and v of two."""
    shapes = (1, 4, length, 16), (1, 2, keys, 16), (1, 2, keys, 24)
    return [torch.randn(shape).to(dtype or torch.float16) for shape in shapes]


def expected(q: Any, k: Any, v: Any, causal: bool) -> Any:
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_torchs(causal: bool) -> None:
    mine = [x.requires_grad_() for x in inputs(40, 40 if causal else 25)]
    theirs = [x.detach().double().requires_grad_() for x in mine]
    out, right = attention(*mine, causal=causal), expected(*theirs, causal)
    torch.testing.assert_close(out.double(), right, rtol=1e-2, atol=2e-3)
    weight = torch.randn_like(out)
    (out * weight).sum().backward()
    (right * weight).sum().backward()
    for x, y in zip(mine, theirs, strict=True):
        torch.testing.assert_close(x.grad.double(), y.grad, rtol=2e-2, atol=4e-3)


def test_gradient_of_a_sum_and_once_only() -> None:
    q, k, v = (x.requires_grad_() for x in inputs(20, 20))
    (dv,) = torch.autograd.grad(attention(q, k, v).sum(), v)
    assert abs(float(dv.double().sum()) - 4 * 20 * 24) < 2  # each query's weights have the sum 1
    (dq,) = torch.autograd.grad(attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiable once"):
        dq.sum().backward()


def test_the_operators_are_what_torch_expects() -> None:
    q, k, v = inputs(9, 9, torch.bfloat16)
    options = (True, 4, None, 2.0, 0.5, 3, None, None, 1 << 20)
    sinks = torch.randn(4, requires_grad=True)
    torch.library.opcheck(_operator, (q, k, v, sinks, *[None] * 4, *options))
    out, logs = (x.detach() for x in _operator(q, k, v, sinks, *[None] * 4, *options))
    rest = (out, logs, sinks.detach(), None, None)
    torch.library.opcheck(_gradients, (out, q, k, v, *rest, *options))


def test_the_operators_of_packed_sequences_are_what_torch_expects() -> None:
    q, k, v = (x[0].transpose(0, 1).contiguous().requires_grad_() for x in inputs(9, 9))
    starts = torch.tensor([0, 2, 9], dtype=torch.int32)
    options = (True, None, None, None, 0.0, None, 7, None, None)
    torch.library.opcheck(_operator, (q, k, v, None, starts, *[None] * 3, *options))
    attention(q, k, v, starts=starts, longest=7, causal=True).sum().backward()
    pieces = [x.detach()[2:].transpose(0, 1)[None].requires_grad_() for x in (q, k, v)]
    attention(*pieces, causal=True).sum().backward()
    for whole, piece in zip((q, k, v), pieces, strict=True):
        torch.testing.assert_close(whole.grad[2:], piece.grad[0].transpose(0, 1))


def test_caches_have_no_gradients() -> None:
    q, k, v = inputs(3, 9)
    lengths = torch.tensor([7], dtype=torch.int32)
    torch.library.opcheck(
        _operator, (q, k, v, *[None] * 3, lengths, None, True, *[None] * 3, 0.0, *[None] * 4)
    )
    out = attention(q.requires_grad_(), k, v, lengths=lengths, causal=True)
    with pytest.raises(ArgumentError, match="'lengths': attention of caches has no gradients"):
        out.sum().backward()


def test_the_plain_call_is_the_operator_inside_a_compiled_function() -> None:
    def layer(q: Any, k: Any, v: Any) -> Any:
        return tilec.ops.attention(q, k, v, causal=True) * 2

    q, k, v = inputs(12, 12)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v), 2 * attention(q, k, v, causal=True))


def test_the_operators_take_every_option_as_the_plain_call_does() -> None:
    for operator in (_operator, _gradients):
        options = operator._schema.arguments[-len(NAMES) :]
        assert tuple(option.name for option in options) == NAMES
    with pytest.raises(ArgumentError, match="'casual': attention takes arrays, and causal"):
        attention(*inputs(), casual=True)  # pyright: ignore


@pytest.mark.parametrize("scratch", [None, 0])
def test_the_gradients_take_the_scratch_of_the_call(
    scratch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In eager code and in a compiled function."""
    seen: list[int | None] = []

    def noted(*call: Any) -> bool:
        seen.append(call[3])
        return False

    monkeypatch.setattr(gradient_launch, "heads_at_once", noted)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return tilec.ops.attention(q, k, v, scratch=scratch).sum()

    for function in (loss, torch.compile(loss, backend="aot_eager", fullgraph=True)):
        function(*(x.requires_grad_() for x in inputs(12, 12))).backward()
    assert seen == [scratch] * 2


def test_the_plain_call_has_gradients() -> None:
    q, k, v = inputs(12, 12)
    tilec.ops.attention(q.requires_grad_(), k, v, causal=True).sum().backward()
    found, q.grad = q.grad, None
    attention(q, k, v, causal=True).sum().backward()
    torch.testing.assert_close(found, q.grad)
    with pytest.raises(ArgumentError, match="'out': where torch traces attention or wants its"):
        tilec.ops.attention(q, k, v, torch.empty_like(q))
