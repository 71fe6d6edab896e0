"""What a torch module computes, as steps: layers, sums, products and activations.

`torch.fx` records the calls of the module. `quadric.convert.fold` composes the steps.
"""

import copy
import operator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.fx import Node, Tracer

from quadric.checks import Array
from quadric.torch._conversion import (
    activation_of,
    check_has_no_hooks,
    check_has_values,
    core_layer,
    described,
    is_layer,
)

SUMS = (operator.add, operator.iadd, torch.add, "add", "add_")
DIFFERENCES = (operator.sub, operator.isub, torch.sub, "sub", "sub_")
PRODUCTS = (operator.mul, operator.imul, torch.mul, "mul", "mul_")
ACTIVATIONS: dict[Any, str] = {
    torch.sigmoid: "logistic",
    nn.functional.sigmoid: "logistic",
    "sigmoid": "logistic",
    torch.tanh: "tanh",
    nn.functional.tanh: "tanh",
    "tanh": "tanh",
    torch.relu: "relu",
    nn.functional.relu: "relu",
    "relu": "relu",
}
SOFTMAX = (torch.softmax, nn.functional.softmax, "softmax")


class Step(NamedTuple):
    """A value, computed from earlier ones.

    Attributes
    ----------
    kind : {'input', 'layer', 'sum', 'product', 'scaled', 'activation'}
    arguments : tuple of int
        The numbers of the steps that it uses.
    given : object
        The layer of `quadric.core`, the name of the activation, or the factor.
    """

    kind: str
    arguments: tuple[int, ...] = ()
    given: Any = None


class _Recorder(Tracer):
    """A tracer that does not look into layers, also of a subclass."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return is_layer(m) or super().is_leaf_module(m, module_qualified_name)


def recorded_steps(module: nn.Module) -> list[Step]:
    """Return what a module computes, as in evaluation mode; the last step is its output.

    Raises
    ------
    ValueError
        If torch.fx cannot record the calls of the module, or if one of them is not supported. The
        message names it.
    """
    for place, part in module.named_modules():
        check_has_no_hooks(part, place)
    for name, tensor in module.named_parameters():
        check_has_values(f"the parameter {name!r}", tensor)
    try:
        graph = _Recorder().trace(module)
    except Exception as error:
        raise ValueError(
            f"torch.fx cannot record what this {type(module).__name__} computes ({error}). Pass "
            "the part that consists of layers, sums and products, or its matrices to fold_bilinear."
        ) from None
    return _Steps(module).of(graph.nodes)


def values_of(module: nn.Module, X: Array) -> Array:
    """Return the outputs of a copy of the module in evaluation mode, in float64."""
    copied = copy.deepcopy(module).double().eval()
    with torch.no_grad():
        found: Array = copied(torch.tensor(X)).numpy()
    return found


class _Steps:
    """The steps of a graph so far, and the step of each node."""

    def __init__(self, module: nn.Module) -> None:
        self.modules = dict(module.named_modules(remove_duplicate=False))
        self.steps: list[Step] = []
        self.numbers: dict[Node, int] = {}

    def of(self, nodes: Any) -> list[Step]:
        for node in nodes:
            if node.op == "output":
                if not isinstance(node.args[0], Node):
                    raise ValueError("the module must return one tensor.")
                self._same_as(self.numbers[node.args[0]])
            else:
                self.numbers[node] = self._number(node)
        return self.steps

    def _number(self, node: Node) -> int:
        """Return the number of the step of a node, which is added unless it exists."""
        if node.op == "placeholder":
            if self.steps:
                raise ValueError(f"the module must have one input. Got a second one, {node.name}.")
            return self._add(Step("input"))
        if node.op == "call_module":
            return self._of_module(node)
        if node.op in ("call_function", "call_method"):
            found = self._of_function(node)
            if found is not None:
                return found
        raise ValueError(
            f"{node.format_node()} is not supported: fold supports layers, sums, products, "
            "multiplication by a number, and activations. Pass the part of the module that "
            "consists of these, or its matrices to fold_bilinear."
        )

    def _of_module(self, node: Node) -> int:
        module, place = self.modules[str(node.target)], str(node.target)
        (number,) = self._arguments(node)
        if is_layer(module):
            return self._add(Step("layer", (number,), core_layer(module, described(place, module))))
        name = activation_of(module, place, first=self.steps[number].kind == "input")
        return number if name == "identity" else self._add(Step("activation", (number,), name))

    def _of_function(self, node: Node) -> int | None:
        called, given = node.target, node.args
        if called in SOFTMAX and _dimension(node) in (1, -1):
            return self._add(Step("activation", (self._arguments(node)[0],), "softmax"))
        if called in ACTIVATIONS:
            return self._add(Step("activation", self._arguments(node), ACTIVATIONS[called]))
        if called in (operator.neg, torch.neg, "neg"):
            return self._add(Step("scaled", self._arguments(node), -1.0))
        if node.kwargs or len(given) != 2:
            return None
        tensors = [one for one in given if isinstance(one, Node)]
        numbers = [one for one in given if isinstance(one, (int, float))]
        if called in PRODUCTS and len(tensors) == len(numbers) == 1:
            return self._add(Step("scaled", self._arguments(node), float(numbers[0])))
        if called in (operator.truediv, torch.div, "div") and isinstance(given[1], (int, float)):
            return self._add(Step("scaled", self._arguments(node), 1 / given[1]))
        if len(tensors) != 2:
            return None
        first, second = self._arguments(node)
        if called in DIFFERENCES:
            second = self._add(Step("scaled", (second,), -1.0))
            return self._add(Step("sum", (first, second)))
        kinds: dict[str, tuple[Any, ...]] = {"sum": SUMS, "product": PRODUCTS}
        kind = next((kind for kind, names in kinds.items() if called in names), None)
        return None if kind is None else self._add(Step(kind, (first, second)))

    def _arguments(self, node: Node) -> tuple[int, ...]:
        return tuple(self.numbers[one] for one in node.args if isinstance(one, Node))

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _same_as(self, number: int) -> None:
        """Let a step be the last one; what comes after it is not used."""
        del self.steps[number + 1 :]


def _dimension(node: Node) -> Any:
    return node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
