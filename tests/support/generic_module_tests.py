"""Run the generic module test of the installed torch on our modules; print the outcomes as JSON.

This is a process of its own, because importing torch's tests changes torch: it forbids setting
global flags and replaces methods of torch.jit.
"""

import json
import traceback
from functools import partial

import torch

from quadric.torch import Linear, Quadratic, QuadraticRNN, QuadraticRNNCell, Reduced
from tests.support.torch_modules import randomized


class Wrong(Quadratic):
    """A layer whose gradients are half of the true ones; the test must fail."""

    def forward(self, x):
        return (super().forward(x) + super().forward(x).detach()) / 2


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
    "wrong": (Wrong, (4, 3), {}, [(5, 4)]),
}


def outcomes():
    """Return, for each setting, the error that the test raises, or an empty string."""
    from torch.testing._internal.common_nn import NewModuleTest, NNTestCase

    class Case(NNTestCase):
        """What `NewModuleTest` asks of a test case."""

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

    found = {}
    for name, (kind, arguments, options, shapes) in SETTINGS.items():
        torch.manual_seed(0)
        test = NewModuleTest(
            partial(make, kind, options),
            constructor_args=arguments,
            input_fn=partial(draw, shapes),
            fullname=name,
            default_dtype=torch.double,
            gradcheck_fast_mode=kind is QuadraticRNN,
        )
        try:
            test(Case())
            found[name] = ""
        except Exception:
            found[name] = traceback.format_exc()
    return found


def make(kind, options, *arguments):
    return randomized(kind(*arguments, **options))


def draw(shapes):
    return tuple(torch.randn(shape) for shape in shapes)


if __name__ == "__main__":
    print(json.dumps(outcomes()))
