"""`quadric.Network` as a module: layers one after the other, an activation behind each."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from quadric._utils.checks import check_choice

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "softmax": lambda z: torch.softmax(z, dim=-1),
}


class Network(nn.Module):
    """a = g(z), z a linear, quadratic or reduced function of the a before; `from_network` makes it.

    Parameters
    ----------
    layers : sequence of `Linear`, `Quadratic`, `Reduced`
    activations : sequence of str
        One for each layer: 'identity', 'logistic', 'tanh', 'relu'; on the last also 'softmax',
        over the last dimension.
    """

    def __init__(self, layers: Sequence[nn.Module], activations: Sequence[str]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.activations = tuple(activations)
        if not self.activations or len(self.layers) != len(self.activations):
            raise ValueError(
                "layers and activations must have the same length, at least 1. "
                f"Got {len(self.layers)} and {len(self.activations)}."
            )
        for l, activation in enumerate(self.activations):
            check_choice(f"activations[{l}]", activation, FUNCTIONS)
        if "softmax" in self.activations[:-1]:
            raise ValueError("activation 'softmax' must be on the last layer only.")

    def logits(self, x: Tensor) -> Tensor:
        """The pre-activations z of the last layer, shape (..., m): what torch's losses take."""
        for l, layer in enumerate(self.layers):
            x = layer(x if l == 0 else FUNCTIONS[self.activations[l - 1]](x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        return FUNCTIONS[self.activations[-1]](self.logits(x))

    def extra_repr(self) -> str:
        return f"activations={', '.join(self.activations)}"
