"""The five torch modules with inputs, for tests that apply to all of them.

    python -m tests.support.torch_modules

This command runs the generic module test of the installed torch on our modules, and prints the
outcomes as JSON. It is a process of its own, because importing torch's tests changes torch: it
forbids setting global flags and replaces methods of torch.jit.
"""

import json
import traceback
from functools import partial

import torch

from quadric.torch import Linear, Quadratic, QuadraticRNN, QuadraticRNNCell, Reduced

# name -> (class, arguments, shapes of the inputs for a batch of B)
CASES = {
    "linear": (Linear, (3, 2), lambda B: [(B, 3)]),
    "quadratic": (Quadratic, (3, 2), lambda B: [(B, 3)]),
    "reduced": (Reduced, (3, 2), lambda B: [(B, 3)]),
    "cell": (QuadraticRNNCell, (3, 2), lambda B: [(B, 3), (B, 2)]),
    "rnn": (
        QuadraticRNN,
        (3, 2, 2, "tanh", True, False, 0.0, True),
        lambda B: [(2, B, 3), (4, B, 2)],
    ),
}


def make_module(name, seed=0, dtype=torch.float64):
    """Return a module with random parameters, because the initial Q of a cell is zero."""
    kind, arguments, _ = CASES[name]
    return randomized(kind(*arguments, dtype=dtype), torch.Generator().manual_seed(seed))


def randomized(module, generator=None):
    """Return the module after drawing its parameters."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return module


def make_inputs(name, batch=5, seed=1, dtype=torch.float64):
    """Return the inputs of a module: x, and for recurrent modules also the state."""
    generator = torch.Generator().manual_seed(seed)
    shapes = CASES[name][2](batch)
    return tuple(torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)


def outputs_of(module, *inputs):
    """Return the outputs as a tuple of tensors."""
    outputs = module(*inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def parameters_of(module):
    """Return the (submodule, parameter name) pairs of a module."""
    return [
        (part, name)
        for part in module.modules()
        for name, _ in part.named_parameters(recurse=False)
    ]


# ---- torch's generic test of modules -----------------------------------------------------


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
