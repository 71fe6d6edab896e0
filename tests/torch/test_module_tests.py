"""The generic module test of the installed torch, `NewModuleTest`, applied to our modules.

It compares contiguous and other inputs, pickles the module, checks first and second derivatives by
all inputs and parameters against differences, also under vmap, and converts dtypes. All of it
passes, so there is no list of exceptions. It cannot check forward mode for modules with parameters,
because it does not pass them to the module; `test_forward_mode` does.
"""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("expecttest", reason="torch's tests need expecttest")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_nn import NewModuleTest, NNTestCase

from quadric.torch import Linear, Quadratic, QuadraticRNN, QuadraticRNNCell, Reduced  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of torch's tests

SETTINGS = {
    "linear": (Linear, (4, 3), {}, [(5, 4)]),
    "linear, no bias": (Linear, (4, 3), {"bias": False}, [(5, 4)]),
    "linear, no batch": (Linear, (4, 3), {}, [(4,)]),
    "quadratic": (Quadratic, (4, 3), {}, [(5, 4)]),
    "quadratic, no bias": (Quadratic, (4, 3), {"bias": False}, [(5, 4)]),
    "quadratic, no W": (Quadratic, (4, 3), {"linear": False}, [(5, 4)]),
    "quadratic, only Q": (Quadratic, (4, 3), {"bias": False, "linear": False}, [(5, 4)]),
    "quadratic, no batch": (Quadratic, (4, 3), {}, [(4,)]),
    "quadratic, two batch dimensions": (Quadratic, (4, 3), {}, [(2, 3, 4)]),
    "reduced": (Reduced, (4, 3), {}, [(5, 4)]),
    "reduced, no bias": (Reduced, (4, 3), {"bias": False}, [(5, 4)]),
    "reduced, no batch": (Reduced, (4, 3), {}, [(4,)]),
    "cell": (QuadraticRNNCell, (3, 2), {}, [(4, 3), (4, 2)]),
    "cell, no state": (QuadraticRNNCell, (3, 2), {}, [(4, 3)]),
    "cell, relu": (QuadraticRNNCell, (3, 2), {"nonlinearity": "relu"}, [(4, 3), (4, 2)]),
    "cell, no bias, no batch": (QuadraticRNNCell, (3, 2), {"bias": False}, [(3,), (2,)]),
    "rnn": (QuadraticRNN, (3, 2), {}, [(3, 2, 3), (1, 2, 2)]),
    "rnn, no state": (QuadraticRNN, (3, 2), {}, [(3, 2, 3)]),
    "rnn, batch first": (QuadraticRNN, (3, 2), {"batch_first": True}, [(2, 3, 3)]),
    "rnn, two layers": (QuadraticRNN, (3, 2, 2), {}, [(2, 2, 3), (2, 2, 2)]),
    "rnn, both directions": (QuadraticRNN, (3, 2), {"bidirectional": True}, [(2, 2, 3)]),
}


class Case(NNTestCase):
    """What `NewModuleTest` asks of a test case."""

    __test__ = False  # for pytest

    def runTest(self):
        """A test case must have a test; `NewModuleTest` is called directly."""

    def _forward(self, module, given):
        outputs = module(*given) if isinstance(given, tuple) else module(given)
        if isinstance(outputs, tuple):
            return torch.cat([output.reshape(-1) for output in outputs])
        return outputs

    def _backward(self, module, given, output, grad_output, create_graph=False):
        output.backward(grad_output, retain_graph=True, create_graph=create_graph)
        return tuple(tensor.grad for tensor in given)

    def _get_parameters(self, module):
        parameters = list(module.parameters())
        return parameters, [parameter.grad for parameter in parameters]

    def _zero_grad_parameters(self, module):
        for parameter in module.parameters():
            parameter.grad = torch.zeros_like(parameter)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_generic_module_test_passes(name):
    kind, arguments, options, shapes = SETTINGS[name]

    def constructor(*arguments):
        module = kind(*arguments, **options)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(0, 0.5)
        return module

    torch.manual_seed(0)
    test = NewModuleTest(
        constructor,
        constructor_args=arguments,
        input_fn=lambda: tuple(torch.randn(shape) for shape in shapes),
        desc=name,
        default_dtype=torch.double,
        gradcheck_fast_mode=kind is QuadraticRNN,
    )
    test(Case())


def test_the_generic_module_test_can_fail():
    class Wrong(Quadratic):
        def forward(self, x):
            return super().forward(x) + super().forward(x).detach()

    test = NewModuleTest(
        Wrong,
        constructor_args=(3, 2),
        input_fn=lambda: (torch.randn(2, 3),),
        default_dtype=torch.double,
        pickle=False,
    )
    with pytest.raises(Exception, match="Jacobian mismatch"):
        test(Case())
