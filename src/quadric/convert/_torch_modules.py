"""Torch modules as networks: stacks of layers, and modules with sums and products of layers.

A module of one's own, such as a bilinear block with a residual connection, is a polynomial of its
inputs between two activations. The polynomial is one layer if its degree is two at most.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quadric.checks import FLOAT64
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.models import compose, layer_to_quadratic
from quadric.network import Network


def network_of_module(module: Any) -> Network:
    """Return the network that computes what a module does, in its evaluation mode.

    A stack of layers keeps them. The layers of other modules are composed.
    """
    from quadric.torch import recorded_steps, to_network, values_of

    try:
        return to_network(module)
    except ValueError as error:
        try:
            steps = recorded_steps(module)
        except ValueError as other:
            is_stack = isinstance(module, sys.modules["torch"].nn.Sequential)
            raise (error if is_stack else other) from None
    network = _network(steps)
    # torch.fx does not record that a tensor is changed in place, for instance
    X = np.random.default_rng(0).normal(size=(8, network.n_inputs))
    found, wanted = network.forward(X), values_of(module, X)
    if found.shape != wanted.shape or not np.allclose(found, wanted, 1e-6, 1e-6):
        raise ValueError(
            "torch.fx does not record all that the module computes: its outputs differ from those "
            "of the recorded layers. Avoid operations that change a tensor in place."
        )
    return network


TOO_HIGH = (
    "the module is a polynomial of a higher degree than two, and has no step at which it could be "
    "divided into layers. Fold its blocks one by one."
)


class _DegreeError(ValueError):
    """A value would be a polynomial of a higher degree than two."""


def _network(steps: Sequence[Any], ends: frozenset[int] = frozenset()) -> Network:
    """Compose the steps up to each activation, each step in `ends` and the last one to a layer.

    The value of a step is a layer whose inputs are those of the module or the last activation; None
    stands for these inputs. If the degree becomes too high, a layer ends at an earlier step.
    """
    layers: list[Layer] = []
    activations: list[str] = []
    values: dict[int, Layer | None] = {}
    for number, step in enumerate(steps):
        if not set(step.arguments) <= values.keys():
            raise ValueError(
                "a connection past an activation is not supported. Fold the parts of the module "
                "before and after the activation."
            )
        given = [values[argument] for argument in step.arguments]
        try:
            value = given[0] if step.kind == "activation" else _value(steps, number, given)
        except _DegreeError:
            end = next((k for k in _bottlenecks(steps, number) if values.get(k)), None)
            if end is None:
                raise
            return _network(steps, ends | {end})
        values[number] = value
        if step.kind == "activation" or number in ends or number == len(steps) - 1:
            if value is None and step.kind == "activation":
                raise ValueError(f"the activation {step.given!r} must come after a layer.")
            layers += [] if value is None else [value]
            activations += (
                [] if value is None else [step.given if step.kind == "activation" else "identity"]
            )
            values = {number: None}
    if not layers:
        raise ValueError("module must have a layer. This one has none.")
    return Network(layers, activations)


def _bottlenecks(steps: Sequence[Any], number: int) -> Iterator[int]:
    """The steps before `number` through which all later steps get their values; the last first."""
    first = len(steps)  # the first step that the steps from here on use
    for k in range(len(steps) - 1, 0, -1):
        if k < number and first >= k:
            yield k
        first = min(first, *steps[k].arguments, first)


def _value(steps: Sequence[Any], number: int, given: Sequence[Layer | None]) -> Layer | None:
    """The value of a step from those of its arguments."""
    step = steps[number]
    if step.kind == "input":
        return None
    if step.kind == "layer" and given[0] is None:
        layer: Layer = step.given.astype(FLOAT64)
        return layer
    width = _width(steps, number, given)
    first, *others = [_identity(width) if value is None else value for value in given]
    if step.kind == "layer":
        if not (isinstance(first, Linear) or isinstance(step.given, Linear)):
            raise _DegreeError(TOO_HIGH)
        return compose(first, step.given.astype(FLOAT64))
    if step.kind == "scaled":
        return compose(
            first, Linear(step.given * np.eye(first.n_outputs), np.zeros(first.n_outputs))
        )
    (second,) = others
    if first.n_outputs != second.n_outputs:
        raise ValueError(
            f"the sums and products of the module must have terms of the same size. Got "
            f"{first.n_outputs} and {second.n_outputs}."
        )
    if step.kind == "product":
        if not (isinstance(first, Linear) and isinstance(second, Linear)):
            raise _DegreeError(TOO_HIGH)
        return Reduced(first.W, first.b, second.W, second.b)
    if isinstance(first, Linear) and isinstance(second, Linear):
        return Linear(first.W + second.W, first.b + second.b)
    p, q = layer_to_quadratic(first), layer_to_quadratic(second)
    return Quadratic(p.W + q.W, p.b + q.b, packed=p.packed + q.packed)


def _identity(width: int) -> Linear:
    return Linear(np.eye(width), np.zeros(width))


def _width(steps: Sequence[Any], number: int, given: Sequence[Layer | None]) -> int:
    """The number of inputs of the module or of those after the last activation."""
    known = next((value.n_inputs for value in given if value is not None), None)
    if known is not None:
        return known
    start = max((k for k, one in enumerate(steps[:number]) if one.kind == "activation"), default=0)
    for step in steps[number:]:
        if step.kind == "layer" and step.arguments == (start,):
            return int(step.given.n_inputs)
    raise ValueError("the module must have a layer that takes its input.")
