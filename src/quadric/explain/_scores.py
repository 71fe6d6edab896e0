"""The scores that questions about a model refer to: combinations of the outputs of its layer."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from quadric.checks import Array, check_integer
from quadric.convert import view_of_one_layer
from quadric.explain._explained_layer import ExplainedLayer, class_index, two_classes
from quadric.geometry import AffineMap
from quadric.models import check_matrices


@dataclass(frozen=True)
class NamedScores:
    """Scores of a model, as combinations of its outputs.

    `weights` has a row for each score and a column for each output.
    """

    labels: list[str]
    weights: Array
    meaning: str


def one_layer_of(model: Any, instead: str) -> ExplainedLayer:
    """The model as one quadratic layer; the error for other networks ends with `instead`."""
    view = view_of_one_layer(model)
    count = len(view.folded.layers)
    if count > 1:
        raise ValueError(
            f"model must fold to a single quadratic layer. This {view.name} folds to {count} "
            f"layers. {instead}"
        )
    layer, space = view.one_layer, view.coordinates
    check_matrices(layer.n_outputs, space.widest)
    return ExplainedLayer(view, layer, True, space)


def map_to_layer(selected: ExplainedLayer) -> AffineMap:
    """The affine map from the coordinates to the inputs of the layer."""
    n = len(selected.space.names)
    identity = AffineMap(np.ones(n), np.zeros(n))
    return reduce(lambda first, step: step.after(first), selected.space.maps, identity)


def named_scores(selected: ExplainedLayer, between: Any = None, target: str = "y") -> NamedScores:
    """The scores of a model: one for two classes or a regressor, otherwise one for each output.

    With `between`, the only score is the margin between two classes.
    """
    m, view = selected.layer.n_outputs, selected.view
    labels, last = selected.labels, selected.activation
    if between is not None:
        i, j = two_classes(selected, between)
        return NamedScores(
            [f"score of {labels[i]} - score of {labels[j]}"],
            _unit(m, i) - _unit(m, j),
            f"The score of {labels[i]} minus that of {labels[j]}, which is the logarithm of the "
            "ratio of their probabilities for a softmax.",
        )
    if view.chooses_a_class and len(labels) == 2:
        return NamedScores(
            [f"log-odds of {labels[1]}"],
            _unit(m, 1) - _unit(m, 0),
            f"The log-odds of {labels[1]}: the model predicts it where they are positive.",
        )
    if last == "softmax":
        return NamedScores(
            [f"score of {label}" for label in labels],
            np.eye(m) - 1 / m,
            "The score of each class minus the mean score of all classes: the scores of a softmax "
            "are defined up to a common term.",
        )
    if selected.is_regression or last == "exponential":
        names = [target] if m == 1 else [f"{target} {k}" for k in range(m)]
        logs = last == "exponential"
        meaning = f"The {'logarithm of the ' if logs else ''}predicted {target}."
        return NamedScores([f"log({name})" if logs else name for name in names], np.eye(m), meaning)
    if last == "logistic":
        meaning = "The log-odds of each label."
        return NamedScores([f"log-odds of {label}" for label in labels[-m:]], np.eye(m), meaning)
    meaning = "The outputs before their activation."
    return NamedScores([f"z{k}" if m > 1 else "z" for k in range(m)], np.eye(m), meaning)


def _unit(m: int, k: int) -> Array:
    """The weights of the score of class k; with a single output, those of classes 0 and 1."""
    return np.full((1, 1), float(k)) if m == 1 else np.eye(m)[[k]]


def class_at(selected: ExplainedLayer, label: Any) -> int:
    """The index of a class, or of an output of a model without classes."""
    if selected.is_regression or selected.activation == "exponential":
        return check_output(label, selected.layer.n_outputs)
    return class_index(selected, label)


def check_output(label: Any, count: int) -> int:
    """The index of an output, checked."""
    if check_integer("of", label, at_least=0) >= count:
        raise ValueError(f"of must be below {count}, the number of outputs. Got {label}.")
    return int(label)


def score_name(selected: ExplainedLayer, named: NamedScores, k: int) -> str:
    """The name of the score of class or output k."""
    if len(named.labels) == 1 and selected.view.chooses_a_class:
        return f"log-odds of {selected.labels[k]}"
    return named.labels[k]
