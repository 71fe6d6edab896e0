"""`torch.fx` traces models with our modules, alone and inside others."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import fx, nn  # noqa: E402

from quadric.torch import Quadratic, QuadraticRNN, functional  # noqa: E402
from tests.support.torch_modules import CASES, make_inputs, make_module, outputs_of  # noqa: E402


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = make_module("rnn")
        self.head = Quadratic(4, 2, dtype=torch.float64)

    def forward(self, x, hx=None):
        output, h_n = self.rnn(x, hx)
        return self.head(output[-1]) + h_n.sum()


def assert_same(traced, model, inputs):
    found, wanted = outputs_of(traced, *inputs), outputs_of(model, *inputs)
    assert len(found) == len(wanted)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", [name for name in CASES if name != "rnn"])
def test_a_module_can_be_traced(name):
    module = make_module(name)
    traced = fx.symbolic_trace(module)
    traced.graph.lint()
    assert traced.state_dict().keys() == module.state_dict().keys()
    for batch in (1, 7):
        assert_same(traced, module, make_inputs(name, batch))
    assert_same(traced, module, make_inputs(name)[:1])  # without a state
    assert_same(copy.deepcopy(traced), module, make_inputs(name))
    if name != "cell" or torch.__version__ >= (2, 13):  # torch.fx 2.6 cannot pickle Tensor | None
        assert_same(pickle.loads(pickle.dumps(traced)), module, make_inputs(name))


def test_an_rnn_needs_a_module_around_it():
    with pytest.raises(TypeError, match=r"number of steps is not known: trace a module that"):
        fx.symbolic_trace(QuadraticRNN(3, 2))
    with pytest.raises(fx.proxy.TraceError):  # as in torch
        fx.symbolic_trace(nn.RNN(3, 2))


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_contains_a_module_can_be_traced(name):
    model = nn.Sequential(nn.Linear(3, 3, dtype=torch.float64), make_module(name))
    traced = fx.symbolic_trace(model)
    assert traced.state_dict().keys() == model.state_dict().keys()
    for batch in (1, 7):
        assert_same(traced, model, make_inputs(name, batch)[:1])


def test_both_results_of_an_rnn_can_be_used():
    model = Recurrent()
    traced = fx.symbolic_trace(model)
    assert_same(traced, model, make_inputs("rnn"))
    assert_same(traced, model, make_inputs("rnn", batch=2)[:1])
    longer = torch.randn(9, 2, 3, dtype=torch.float64)
    assert_same(traced, model, (longer,))


def test_a_traced_model_has_the_gradients_of_the_model():
    model = Recurrent()
    traced = fx.symbolic_trace(model)
    for part in (model, traced):
        part.zero_grad()
        part(*make_inputs("rnn")).square().sum().backward()
        gradients = {name: p.grad.clone() for name, p in part.named_parameters()}
        if part is model:
            wanted = gradients
    assert gradients.keys() == wanted.keys()
    assert all(torch.equal(gradients[name], wanted[name]) for name in wanted)


def test_a_traced_model_checks_its_inputs():
    traced = fx.symbolic_trace(make_module("cell"))
    with pytest.raises(RuntimeError, match=r"hx must have shape \(5, 2\). Got \(5, 3\) instead"):
        traced(torch.zeros(5, 3).double(), torch.zeros(5, 3).double())
    traced = fx.symbolic_trace(make_module("quadratic"))
    with pytest.raises(RuntimeError, match=r"shape \(\.\.\., 3\).*Got \(5, 4\) instead"):
        traced(torch.zeros(5, 4).double())


def test_the_functions_are_nodes_of_the_graph():
    def model(x, packed):
        Q = functional.unpack(packed)
        return functional.quadratic(x, functional.pack(Q + Q)) + functional.quadratic(
            x=x, packed=packed
        )

    traced = fx.symbolic_trace(model)
    x, packed = torch.randn(4, 3), torch.randn(6, 2)
    torch.testing.assert_close(traced(x, packed), 3 * functional.quadratic(x, packed))
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    ours = [target for target in targets if target.__module__ == functional.__name__]
    assert ours == [
        functional.unpack,
        functional.pack,
        functional.quadratic,
        functional.quadratic,
    ]


def test_subclasses_of_tensor_are_kept():
    class Named(torch.Tensor):
        pass

    layer = Quadratic(3, 2)
    x = torch.randn(4, 3)
    z = layer(x.as_subclass(Named))
    assert type(z) is Named
    torch.testing.assert_close(z.as_subclass(torch.Tensor), layer(x))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch.ao.quantization is deprecated
@pytest.mark.parametrize("name", CASES)
def test_quantization_of_a_model_keeps_our_modules(name):
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    module = make_module(name, dtype=torch.float32)
    model = nn.Sequential(nn.Linear(3, 3), module).eval()
    (x, *_) = make_inputs(name, dtype=torch.float32)
    prepared = prepare_fx(model, get_default_qconfig_mapping(), (x,))
    assert_same(prepared, model, (x,))
    converted, seen = convert_fx(prepared), []
    linear = converted.get_submodule("0")
    assert type(linear).__module__.startswith("torch.ao.nn.quantized")
    linear.register_forward_hook(lambda module, given, output: seen.append(output.dequantize()))
    found = outputs_of(converted, x)
    assert all(tensor.isfinite().all() for tensor in found)
    if name not in ("linear", "cell"):  # torch also quantizes the operations linear, cat and tanh
        for ours, wanted in zip(found, outputs_of(module, *seen), strict=True):
            assert torch.equal(ours, wanted)
