"""Networks between the core and torch: the same function, the same numbers, either way."""

import torch
from torch import nn

from quadric import network as core
from quadric._utils.checks import check_choice
from quadric.core._activations import ACTIVATIONS
from quadric.torch._core_layers import core_layer
from quadric.torch._feedforward import Network
from quadric.torch._inspection import lacks_values
from quadric.torch._layers import Linear, Quadratic, Reduced
from quadric.torch._sequential import shown, take_apart

LAYERS = {"linear": Linear, "quadratic": Quadratic, "reduced": Reduced}


def from_network(network: core.Network) -> Network:
    """The network as a module, on the CPU, in the same dtype: the weights move bit for bit.

    Returns
    -------
    Module
        With `layers`, `activations` and, beside the call, `logits`. Its `state_dict` has the names
        of the core's layers: layers.0.W, .b, .packed (Q, shape (n(n+1)/2, m)), .U, .c.

    Examples
    --------
    >>> import quadric
    >>> net = quadric.Network.create(4, [("quadratic", 3, "tanh"), ("reduced", 2, "softmax")])
    >>> module = from_network(net)
    >>> [(name, tuple(tensor.shape)) for name, tensor in module.state_dict().items()][:3]
    [('layers.0.packed', (10, 3)), ('layers.0.W', (3, 4)), ('layers.0.b', (3,))]
    """
    if not isinstance(network, core.Network):
        hint = "; give its network_." if hasattr(network, "network_") else "."
        raise TypeError(
            f"network must be a quadric.Network. Got {type(network).__name__} instead{hint}"
        )
    layers, state = [], {}
    for l, layer in enumerate(network.layers):
        for name, array in layer.arrays().items():
            state[f"layers.{l}.{name}"] = torch.tensor(array)
        n, m, dtype = layer.n_inputs, layer.n_outputs, state[f"layers.{l}.W"].dtype
        layers.append(LAYERS[layer.kind](n, m, device="meta", dtype=dtype))
    module = Network(layers, network.activations).to_empty(device="cpu")
    module.load_state_dict(state)
    return module


def to_network(module: nn.Module, *, activation: str | None = None) -> core.Network:
    """A module as a `quadric.Network`, for `quadric.save`, `explain` and the command line.

    Parameters
    ----------
    module : Module
        What `from_network` makes, one layer, or a `torch.nn.Sequential`, nested too: of
        `torch.nn.Linear`, `Linear`, `Quadratic` and `Reduced`, with Sigmoid, Tanh, ReLU, Identity,
        Dropout (nothing in prediction), Softmax as the last, and Flatten in front.
    activation : str, optional
        The last activation, where the module ends in logits, as for torch's cross_entropy:
        ``activation="softmax"``.

    Returns
    -------
    quadric.Network
        With copies of the parameters, bit for bit in float32 and float64; others become float32.
        W, b and c that are not there (bias=False, linear=False) are zero.

    Raises
    ------
    ValueError
        At what a Network does not have, with its place in the module.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Quadratic(8, 3))
    >>> to_network(model, activation="softmax")
    Network(4 -> linear 8 relu, quadratic 3 softmax; float32)
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module. Got {type(module).__name__} instead.")
    if activation is not None:
        check_choice("activation", activation, ACTIVATIONS)
    for name, tensor in module.named_parameters():
        why = lacks_values(tensor)
        if why:
            raise ValueError(f"the parameter {name!r} {why}.")
    stages = take_apart(module)
    last = stages[-1]
    if activation is not None and last.activation not in ("identity", activation):
        raise ValueError(
            f"activation={activation!r} is for a module that ends in logits. This one ends with "
            f"{last.activation!r} at {last.end!r}: leave out one of the two."
        )
    layers = [core_layer(stage.layer, shown(stage.place, stage.layer)) for stage in stages]
    activations = [stage.activation for stage in stages]
    return core.Network(layers, [*activations[:-1], activation or activations[-1]])
