"""For training: learning rates that fit the number of inputs, and a penalty on eigenvalues."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from quadric.checks import check_number
from quadric.torch._layers import Quadratic


def spectral_penalty(layer: Quadratic, order: int = 1) -> Tensor:
    """Return the sum of |eigenvalue|^order over the matrices Q of a layer.

    Added to a loss, it makes the spectra of Q sparse (order 1, the nuclear norm) or small (order
    2, the squared Frobenius norm, which needs no eigenvalues).

    Parameters
    ----------
    layer : Quadratic
        The layer.
    order : {1, 2}, default=1
        The power of the eigenvalues.

    Returns
    -------
    Tensor
        A differentiable number.

    Examples
    --------
    >>> layer = Quadratic(2, 1)
    >>> layer.Q = torch.tensor([[[3.0, 0.0], [0.0, -4.0]]])
    >>> round(spectral_penalty(layer).item(), 5), round(spectral_penalty(layer, 2).item(), 5)
    (7.0, 25.0)
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2. Got {order!r}.")
    if order == 2:
        return layer.Q.square().sum()
    return torch.linalg.svdvals(layer.Q).sum()  # differentiable also for equal eigenvalues


def parameter_groups(model: nn.Module, lr: float) -> list[dict[str, Any]]:
    """Return the parameters of a model in groups for an optimizer, with smaller rates for Q.

    Adam and similar optimizers change every entry by about the learning rate in each step. A
    neuron has n(n+1)/2 entries of Q but only n linear weights, so a step with one rate for all
    changes the quadratic part about sqrt(n) times as much, and each entry off the diagonal counts
    twice in x'Qx. The group of each `packed` therefore has the rate lr / (2 sqrt(n)).

    Parameters
    ----------
    model : Module
        A model that may contain quadratic layers in any place.
    lr : float
        The learning rate of all other parameters.

    Returns
    -------
    list of dict
        Groups with the keys 'params' and 'lr': the other parameters first, then those of Q, one
        group for each number of inputs. Each parameter of the model is in one group.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), Quadratic(100, 10))
    >>> optimizer = torch.optim.AdamW(parameter_groups(model, lr=1e-3))
    >>> [group["lr"] for group in optimizer.param_groups]
    [0.001, 5e-05]
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__} instead.")
    lr = check_number("lr", lr, at_least=0)
    divisors = {
        id(parameter): 2 * math.sqrt(module.in_features)
        for module in model.modules()
        if isinstance(module, Quadratic)
        for name, parameter in module.named_parameters()
        if "packed" in name  # also pruned ("packed_orig") and parametrized
    }
    groups: dict[float, list[nn.Parameter]] = {1.0: []}
    for parameter in model.parameters():
        groups.setdefault(divisors.get(id(parameter), 1.0), []).append(parameter)
    return [
        {"params": parameters, "lr": lr / divisor}
        for divisor, parameters in groups.items()
        if parameters
    ]
