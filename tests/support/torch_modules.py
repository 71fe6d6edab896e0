"""The five torch modules with inputs, for tests that apply to all of them."""

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
