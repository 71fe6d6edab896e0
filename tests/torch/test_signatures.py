"""Arguments have the names of torch's modules, so that only the class name changes."""

from inspect import signature

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402

from quadric.torch import QuadraticRNN, from_network  # noqa: E402
from tests.support.networks import make_network  # noqa: E402
from tests.support.torch_modules import CASES, make_inputs, make_module, outputs_of  # noqa: E402

THEIRS = {
    "linear": nn.Linear,
    "quadratic": nn.Linear,
    "reduced": nn.Linear,
    "cell": nn.RNNCell,
    "rnn": nn.RNN,
}


@pytest.mark.parametrize("name", CASES)
def test_inputs_can_be_passed_by_torchs_names(name):
    module, inputs = make_module(name), make_inputs(name)
    names = list(signature(module.forward).parameters)
    assert names == list(signature(THEIRS[name].forward).parameters)[1:]
    found = outputs_of(lambda: module(**dict(zip(names, inputs, strict=True))))
    wanted = outputs_of(module, *inputs)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    found = outputs_of(lambda: module(inputs[0], **dict(zip(names[1:], inputs[1:], strict=True))))
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_a_converted_network_is_called_like_torchs_modules():
    module = from_network(make_network(("quadratic",), "tanh", "identity", widths=(2,)))
    x = torch.zeros(4, module.layers[0].in_features, dtype=module.layers[0].W.dtype)
    assert torch.equal(module(input=x), module(x))


def test_parameters_can_be_flattened_as_those_of_an_rnn():
    rnn = QuadraticRNN(3, 2)
    before = {name: tensor.clone() for name, tensor in rnn.state_dict().items()}
    assert rnn.flatten_parameters() is None
    assert all(torch.equal(rnn.state_dict()[name], tensor) for name, tensor in before.items())


def test_arguments_of_the_constructors_are_torchs():
    for name, kind in CASES.items():
        ours = list(signature(kind[0]).parameters)
        theirs = [p for p in signature(THEIRS[name]).parameters if p not in ("args", "kwargs")]
        assert [p for p in ours if p != "linear"][: len(theirs)] == theirs
