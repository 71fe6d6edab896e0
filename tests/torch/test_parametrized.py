"""Pruning and parametrizations of every parameter of every module."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, parametrize, prune  # noqa: E402

from tests.support.torch_modules import (  # noqa: E402
    CASES,
    make_inputs,
    make_module,
    outputs_of,
    parameters_of,
)


class Halved(nn.Module):
    def forward(self, original):
        return original / 2

    def right_inverse(self, value):
        return 2 * value


def register_halved(part, name):
    parametrize.register_parametrization(part, name, Halved())


PRUNINGS = {
    "l1": lambda part, name: prune.l1_unstructured(part, name, amount=0.5),
    "random": lambda part, name: prune.random_unstructured(part, name, amount=0.5),
}
PARAMETRIZATIONS = {
    "custom": register_halved,
    "weight_norm": parametrizations.weight_norm,
    "spectral_norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
}
EVERY_PARAMETER = pytest.mark.parametrize(
    ("case", "number"),
    [
        pytest.param(case, number, id=f"{case}-{path}")
        for case in CASES
        for number, (path, _) in enumerate(make_module(case).named_parameters())
        if "cells" not in path or "cells.3" in path  # the last cell stands for all
    ],
)


def assert_same(ours, theirs, case):
    inputs = make_inputs(case)
    found, wanted = outputs_of(ours, *inputs), outputs_of(theirs, *inputs)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def assert_gradients_reach(module, case, *parameters):
    sum(output.square().sum() for output in outputs_of(module, *make_inputs(case))).backward()
    for parameter in parameters:
        assert parameter.grad.abs().max() > 0


@pytest.mark.parametrize("method", PRUNINGS)
@EVERY_PARAMETER
def test_a_pruned_parameter_is_saved_loaded_and_made_permanent(case, number, method):
    ours, theirs = make_module(case), make_module(case, seed=7)
    names = list(ours.state_dict())
    for module in (ours, theirs):
        PRUNINGS[method](*parameters_of(module)[number])
    assert {name.rsplit("_", 1)[-1] for name in set(ours.state_dict()) - set(names)} == {
        "orig",
        "mask",
    }
    theirs.load_state_dict(ours.state_dict())
    assert_same(ours, theirs, case)
    assert_same(copy.deepcopy(make_detached(ours, case)), theirs, case)
    (path,) = set(names) - set(ours.state_dict())
    original, mask = ours.get_parameter(path + "_orig"), ours.get_buffer(path + "_mask")
    assert_gradients_reach(ours, case, original)
    assert not original.grad[mask == 0].any()
    part, name = ours.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2]
    prune.remove(part, name)
    assert set(ours.state_dict()) == set(names)
    assert (ours.get_parameter(path) == 0).sum() == (mask == 0).sum() > 0
    assert_same(ours, theirs, case)


def make_detached(module, case):
    """Run without gradients, because torch cannot copy a computed weight that has a history."""
    with torch.no_grad():
        module(*make_inputs(case))
    return module


@pytest.mark.parametrize("case", CASES)
def test_pruning_over_all_parameters_removes_the_smallest(case):
    module = make_module(case)
    before = torch.cat([p.detach().abs().flatten() for p in module.parameters()])
    pairs = parameters_of(module)
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.3)
    module(*make_inputs(case))
    after = torch.cat([getattr(part, name).detach().flatten() for part, name in pairs])
    count = round(0.3 * len(before))
    assert (after == 0).sum() == count
    assert after[after != 0].abs().min() >= before.sort().values[count - 1]


@pytest.mark.parametrize("method", PARAMETRIZATIONS)
@EVERY_PARAMETER
def test_a_parametrized_parameter_is_saved_loaded_and_made_permanent(case, number, method):
    ours, theirs = make_module(case), make_module(case, seed=7)
    names, (part, name) = set(ours.state_dict()), parameters_of(ours)[number]
    if method == "orthogonal" and getattr(part, name).ndim < 2:
        pytest.skip("torch has no orthogonal vectors")
    for module in (ours, theirs):
        PARAMETRIZATIONS[method](*parameters_of(module)[number])
        module.eval()  # spectral_norm updates its vectors in training
    (path,) = names - set(ours.state_dict())
    theirs.load_state_dict(ours.state_dict())
    assert_same(ours, theirs, case)
    if method == "orthogonal":
        W = getattr(part, name)
        small = W.T @ W if W.shape[0] >= W.shape[1] else W @ W.T
        torch.testing.assert_close(small, torch.eye(len(small), dtype=W.dtype))
    originals = [p for key, p in part.named_parameters() if f"parametrizations.{name}." in key]
    assert_gradients_reach(ours, case, *originals[-1:])
    parametrize.remove_parametrizations(part, name)
    assert set(ours.state_dict()) == names
    assert isinstance(ours.get_parameter(path), nn.Parameter)
    inputs = make_inputs(case)
    torch.testing.assert_close(outputs_of(ours, *inputs), outputs_of(theirs, *inputs))


@pytest.mark.parametrize("kind", ["quadratic", "reduced", "linear"])
def test_new_initial_values_of_a_pruned_layer_are_not_zero(kind):
    layer = make_module(kind)
    prune.l1_unstructured(layer, "W", amount=1)
    layer.reset_parameters()
    assert layer.W_orig.abs().min() > 0  # as in torch, the original values are kept
