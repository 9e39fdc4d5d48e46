"""`torch.vmap` and `torch.func` of products and attention; tensors without memory."""

from __future__ import annotations

from typing import Any

import pytest

import tilec
from tilec.ops.known_calls import look
from tilec.runtime.errors import ArgumentError

torch: Any = pytest.importorskip("torch")
matmul: Any = pytest.importorskip("tilec.ops.torch").matmul


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    torch.manual_seed(0)


def close(found: Any, expected: Any, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def reference(a: Any, b: Any, bias: Any, residual: Any, row: Any = None) -> Any:
    product = a @ b
    product = product if row is None else product * row[..., :, None]
    return torch.relu(product + bias[..., None, :]) + residual


def ours(a: Any, b: Any, bias: Any, residual: Any, row: Any = None) -> Any:
    how = {"bias": bias, "residual": residual, "row_scale": row}
    return tilec.ops.matmul(a, b, activation="relu", **how)


SHAPES = {
    "all": ((4, 9, 11), (4, 11, 7), (4, 7), (4, 9, 7), (0, 0, 0, 0)),
    "a": ((4, 9, 11), (11, 7), (7,), (9, 7), (0, None, None, None)),
    "b": ((9, 11), (11, 4, 7), (7,), (7,), (None, 1, None, None)),
    "a residual alone": ((9, 11), (11, 7), (7,), (4, 9, 7), (None, None, None, 0)),
    "a bias alone": ((9, 11), (11, 7), (7, 4), (9, 7), (None, None, 1, None)),
    "beside leading dimensions": ((3, 4, 9, 11), (11, 4, 7), (3, 7), (9, 7), (1, 1, None, None)),
    "of b": ((9, 4, 11), (2, 3, 11, 7), (4, 7), (4, 3, 9, 7), (1, None, 0, 0)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_of_products(name: str) -> None:
    *shapes, dims = SHAPES[name]
    arrays = [torch.randn(shape) for shape in shapes]
    close(torch.vmap(ours, dims)(*arrays), torch.vmap(reference, dims)(*arrays))
    close(torch.vmap(ours, dims, 1)(*arrays), torch.vmap(reference, dims, 1)(*arrays))


def test_batches_that_are_a_call_an_element() -> None:
    a, b, s = torch.randn(4, 11), torch.randn(4, 11, 7), torch.rand(4, 1) + 1
    close(torch.vmap(tilec.ops.matmul)(a, b), torch.vmap(torch.matmul)(a, b))
    x = torch.randn(4, 9, 11)
    scaled = torch.vmap(lambda x, b, s: tilec.ops.matmul(x, b, scale=s))
    close(scaled(x, b, s), x @ b * s[:, :, None])


def test_batches_in_batches_and_scales() -> None:
    a, b, row = torch.randn(2, 3, 9, 11), torch.randn(3, 11, 7), torch.rand(2, 3, 9) + 1
    bias, residual = torch.randn(7), torch.randn(3, 9, 7)
    dims = (0, 0, None, 0, 0), (0, None, None, None, 0)
    found, wanted = (torch.vmap(torch.vmap(f, dims[0]), dims[1]) for f in (ours, reference))
    close(found(a, b, bias, residual, row), wanted(a, b, bias, residual, row))


@pytest.mark.parametrize("dims", [(0, None, None, None), (0, 0, 0, 0), (None, 0, None, 0)])
def test_gradients_of_each_element(dims: tuple[int | None, ...]) -> None:
    shapes = ((9, 11), (11, 7), (7,), (9, 7))
    arrays = [
        torch.randn(shape if d is None else (4, *shape))
        for shape, d in zip(shapes, dims, strict=True)
    ]
    found, wanted = (
        torch.vmap(torch.func.grad(lambda *x, f=f: f(*x).square().sum(), (0, 1, 2, 3)), dims)
        for f in (ours, reference)
    )
    close(found(*arrays), wanted(*arrays), 1e-3)


def test_jacobians_and_second_derivatives() -> None:
    a, b = torch.randn(3, 5), torch.randn(5, 4)
    for transform in (torch.func.jacrev, lambda f: torch.func.jacrev(torch.func.jacrev(f))):
        found = transform(lambda a: tilec.ops.matmul(a, b).square())(a)
        close(found, transform(lambda a: (a @ b).square())(a))
    with pytest.raises(NotImplementedError, match="jvp"):
        torch.func.jvp(lambda a: tilec.ops.matmul(a, b), (a,), (a,))


def attend(q: Any, k: Any, v: Any) -> Any:
    return tilec.ops.attention(q, k, v, causal=True)


def attend_by_torch(q: Any, k: Any, v: Any) -> Any:
    more = q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(more, 1) for x in (k, v))
    scores = q.float() @ k.mT / q.shape[-1] ** 0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return (scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v).to(q.dtype)


@pytest.mark.parametrize("dims", [(0, 0, 0), (1, None, 0), (None, 0, None)])
def test_a_batch_of_attention(dims: tuple[int | None, ...]) -> None:
    arrays = []
    for heads, d in zip((4, 2, 2), dims, strict=True):
        x = torch.randn(2, heads, 19, 16).half()
        arrays.append(x if d is None else torch.stack([x, -x, x.flip(0)], d))
    found, wanted = (torch.vmap(f, dims) for f in (attend, attend_by_torch))
    close(found(*arrays), wanted(*arrays), 5e-3)
    found, wanted = (
        torch.vmap(torch.func.grad(lambda *x, f=f: f(*x).float().square().sum(), (0, 1, 2)), dims)
        for f in (attend, attend_by_torch)
    )
    close(found(*arrays), wanted(*arrays), 2e-2)


def test_a_batch_of_attention_an_element_at_a_time() -> None:
    q, k, v = torch.randn(3, 3, 2, 2, 19, 16).half()
    how = {"dropout": 0.5, "seed": 7}
    found = torch.vmap(lambda q, k, v: tilec.ops.attention(q, k, v, **how))(q, k, v)
    expected = [tilec.ops.attention(*x, **how) for x in zip(q, k, v, strict=True)]
    assert torch.equal(found, torch.stack(expected))
    sinks = torch.randn(3, 2)
    found = torch.vmap(lambda q, k, v, s: tilec.ops.attention(q, k, v, sinks=s))(q, k, v, sinks)
    expected = [tilec.ops.attention(*x[:3], sinks=x[3]) for x in zip(q, k, v, sinks, strict=True)]
    assert torch.equal(found, torch.stack(expected))


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_tensors_without_memory_have_shapes(kind: str) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    place = torch.device("meta") if kind == "meta" else FakeTensorMode()
    with place:
        a, b, q = torch.empty(3, 9, 11), torch.empty(11, 7), torch.empty(1, 2, 19, 16).half()
        assert tilec.ops.matmul(a, b).shape == (3, 9, 7)
        assert tilec.ops.attention(q, q, q).shape == q.shape
    x = torch.randn(9, 11)
    close(tilec.ops.matmul(x, x.T), x @ x.T)  # nothing was kept of tensors without memory
    with pytest.raises(ArgumentError, match="found one on meta"):
        tilec.ops.attention_gradients(*[torch.empty(1, 2, 9, 16, device="meta").half()] * 6)


@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_a_fake_tensor_is_like_no_known_call() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    assert look([torch.empty(9, 11)], ()) is not None
    with FakeTensorMode():
        assert look([torch.empty(9, 11)], ()) is None
