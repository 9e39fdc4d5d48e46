"""Mistakes of users of torch, of which kernels, layers and operators tell. CPU tensors run on the
emulator.
"""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import torch
from cases import case

import tilec
import tilec.language as tl
from tilec.torch import layers


@tilec.kernel(grid=lambda y, N: tl.cdiv(y.shape[0], N), device="emulator")
def copy(x: tl.array, y: tl.array, N: tl.const = 64):
    at = tl.program_id(0) * N
    tl.store(y, at, tl.load(x, at, N))


v, w = torch.ones(100), torch.zeros(100)
rows, labels = torch.ones(4, 8), torch.zeros(4, dtype=torch.long)


@case
def gradient_of_a_kernel():
    copy(torch.ones(100, requires_grad=True), w)


@case
def parameter_as_output():
    copy(v, torch.nn.Parameter(torch.zeros(100)))


@case
def sparse_tensor():
    copy(torch.eye(100).to_sparse(), w)


@case
def nested_tensor():
    some = [torch.ones(3), torch.ones(4)]
    copy(torch.nested.nested_tensor(some, layout=torch.jagged), w)


@case
def module_for_a_tensor():
    copy(torch.nn.Linear(3, 3), w)


@case
def expanded_output():
    copy(v, torch.zeros(1).expand(100))


@case
def tensor_on_meta():
    copy(torch.ones(100, device="meta"), w)


@case
def dtype_of_torch_as_constant():
    @tilec.kernel(grid=1, device="emulator")
    def k(y: tl.array, D: tl.const):
        tl.store(y, 0, tl.zeros(16, D))

    k(w, torch.float32)


@case
def device_of_torch():
    copy.on(torch.device("cuda"))(v, w)


@case
def activation_of_torch():
    tilec.ops.matmul(rows, rows.T, activation=torch.nn.ReLU())


@case
def weight_of_another_length():
    layers.layer_norm(rows, torch.ones(7), torch.ones(8))


@case
def normalized_shape():
    layers.layer_norm(rows, (8,), torch.ones(8), torch.ones(8))


@case
def norm_without_a_weight():
    layers.rms_norm(rows, None)


@case
def norm_in_f64():
    layers.rms_norm(rows.double(), torch.ones(8).double())


@case
def labels_are_probabilities():
    layers.cross_entropy(rows, rows)


@case
def labels_are_floats():
    layers.cross_entropy(rows, labels.float())


@case
def loss_of_three_dimensions():
    layers.cross_entropy(torch.ones(2, 4, 8), torch.zeros(2, 4, dtype=torch.long))


@case
def autograd_keeps_nothing():
    double = tilec.autograd(lambda x: x * 2, lambda kept, dy: (2 * dy,))
    double(torch.ones(3, requires_grad=True))


@case
def autograd_forgets_an_input():
    scaled = tilec.autograd(lambda x, w: (x * w, (x, w)), lambda kept, dy: dy)
    scaled(torch.ones(3, requires_grad=True), torch.ones(3)).sum().backward()
