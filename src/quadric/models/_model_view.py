"""One view of a fitted model: its network, the steps before it, its classes and its inputs.

A model is a Network, a fitted estimator of this library, or a scikit-learn Pipeline that ends with
one. Other packages ask `ModelView` what a model is, instead of reading it themselves.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core import Linear, Quadratic
from quadric.errors import MemoryLimitError
from quadric.geometry import AffineMap
from quadric.models._coordinates import (
    Coordinates,
    affine_coordinates,
    affine_map,
    hidden_coordinates,
)
from quadric.models._layer_composition import fold_layers, layer_to_quadratic
from quadric.models._operations import Operation, Ordinal, kinds_of, passes
from quadric.models._supported_steps import named_operations, split
from quadric.models._table_columns import TableColumns
from quadric.network import Network
from quadric.utils import first_applying

ACCEPTED = "a Network, a fitted quadric estimator, or a Pipeline that ends with one"


def classes_of(model: Any) -> Any:
    """Return the classes that any fitted model has learned.

    Parameters
    ----------
    model : Any
        A fitted scikit-learn model, Pipeline or Network.

    Returns
    -------
    array or None
        The classes; None for a regressor or a Network.
    """
    return getattr(model, "classes_", None)


def input_names_of(model: Any) -> Any:
    """Return the names of the columns that any model was fitted with.

    Parameters
    ----------
    model : Any
        A fitted scikit-learn model, Pipeline or Network.

    Returns
    -------
    array of str or None
        The names; None if the columns had none.
    """
    return getattr(model, "feature_names_in_", None)


def steps_of(model: Any) -> list[Any]:
    """Return the steps of any fitted Pipeline, including its estimator.

    Parameters
    ----------
    model : Any
        A model. One that is not a Pipeline has no steps.

    Returns
    -------
    list
        The steps in order. 'passthrough' is omitted, and an inner Pipeline is one step.
    """
    return [step for _, step in getattr(model, "steps", []) if not passes(step)]


@dataclass(frozen=True, eq=False)
class ModelView:
    """What a fitted model is: its network, the steps before it, its classes and its inputs.

    A view is made by `ModelView.of`. What it derives from the model is computed once, when it is
    first used, so a view is valid until the model changes.

    Parameters
    ----------
    model : Network, fitted estimator or Pipeline
        The model itself.
    named_steps : list of (str, step)
        The fitted steps before the estimator. Those of inner pipelines are listed one by one. A
        first step that reads a table is not among them.
    estimator : estimator or Network
        The last step, or the model if it is not a Pipeline.
    network : Network
        The network of the estimator.
    reader : TableColumns or None
        The first step, if it reads a table. The inputs are the columns after it.
    read_names : list of str or None
        The names of the columns after the reader.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from quadric import QuadraticLogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
    >>> view = ModelView.of(model)
    >>> view.labels.tolist(), view.coordinates.names[0]
    ([0, 1, 2], 'sepal length (cm)')
    >>> view.coordinates.note()
    'The equations are in your own units (StandardScaler undone).'
    """

    model: Any
    named_steps: list[tuple[str, Any]]
    estimator: Any
    network: Network
    reader: TableColumns | None = None
    read_names: list[str] | None = None

    @classmethod
    def of(cls, model: Any, accepted: str = ACCEPTED) -> "ModelView":
        """Return the view of a model.

        Parameters
        ----------
        model : Network, fitted estimator or Pipeline
            The model.
        accepted : str
            The models that the caller accepts, for the error message.

        Returns
        -------
        ModelView
            The view.

        Raises
        ------
        TypeError
            If the model contains no network.
        """
        named_steps, last = split(model)
        network = getattr(last, "network_", last)
        if isinstance(network, Network):
            first = steps_of(model)[:1]
            if first and type(first[0]) is TableColumns:
                names = first[0].get_feature_names_out().tolist()
                return cls(model, named_steps[1:], last, network, first[0], names)
            return cls(model, named_steps, last, network)
        advice = first_applying(
            {
                "; pass its best_estimator_.": hasattr(last, "best_estimator_"),
                "; call fit first.": type(last).__module__.startswith("quadric."),
                ".": True,
            }
        )
        raise TypeError(f"model must be {accepted}. Got {type(last).__name__}{advice}")

    @property
    def transformers(self) -> list[Any]:
        """The steps before the estimator, without their names."""
        return [step for _, step in self.named_steps]

    @property
    def name(self) -> str:
        """The name of the estimator's class."""
        return type(self.estimator).__name__

    @property
    def input_names(self) -> Sequence[str] | None:
        """The names of the inputs; None if the model was fitted to columns without names."""
        return input_names_of(self.model) if self.read_names is None else self.read_names

    def read(self, X: Any) -> Any:
        """Return the inputs that the reader finds in X, or X itself if there is no reader.

        Parameters
        ----------
        X : table or array
            The user's data.

        Returns
        -------
        table or array
            The data for the steps and the network.
        """
        return X if self.reader is None else self.reader.transform(X)

    @cached_property
    def after_reading(self) -> "ModelView":
        """The view of the rest of the model, for data from `read`."""
        if self.reader is None:
            return self
        return replace(self, model=self.model[1:], reader=None)

    @property
    def n_inputs(self) -> int:
        """The number of columns that the model takes."""
        sizes = (
            step.n_features_in_ for step in self.transformers if hasattr(step, "n_features_in_")
        )
        return int(next(sizes, self.network.n_inputs))

    @property
    def classes(self) -> Array | None:
        """The classes that the estimator has learned; None for a regressor or a Network."""
        classes = classes_of(self.estimator)
        return None if classes is None else np.asarray(classes)

    @property
    def labels(self) -> Array:
        """The classes, or numbers from 0 for a Network. A single output has two labels."""
        return np.arange(max(2, self.network.n_outputs)) if self.classes is None else self.classes

    @property
    def is_multilabel(self) -> bool:
        """Whether a row may have several classes at once."""
        return bool(getattr(self.estimator, "_is_multilabel", False))

    @property
    def chooses_a_class(self) -> bool:
        """Whether the outputs are the scores of mutually exclusive classes."""
        return self.network.activations[-1] in ("logistic", "softmax") and not self.is_multilabel

    @cached_property
    def operations(self) -> dict[str, list[Operation]]:
        """The operations of each step, by its name; raises UnknownStepError for other steps."""
        return named_operations(self.named_steps)

    @cached_property
    def affine_maps(self) -> list[AffineMap]:
        """Each step as a map z = A u + t; raises NotAffineError if a step is not affine."""
        steps = self.transformers
        return [affine_map(step, steps[k + 1 :]) for k, step in enumerate(steps)]

    @cached_property
    def coordinates(self) -> Coordinates:
        """The coordinates of the network's inputs: affine steps undone as far as possible."""
        return self.layer_coordinates(0)

    def layer_coordinates(self, layer: int, names: Sequence[str] | None = None) -> Coordinates:
        """Return the coordinates in which the surfaces of a layer are expressed.

        Parameters
        ----------
        layer : int
            The index of the layer.
        names : sequence of str, optional
            The names of the inputs, by default those that the model was fitted with.

        Returns
        -------
        Coordinates
            Those of the inputs, with affine steps undone, if all layers before this one are linear
            and without activation, and otherwise the activations of the layer before this one.
        """
        if self.reader is not None:
            space = self.after_reading.layer_coordinates(layer, names)
            return replace(space, reach=lambda X: space.reach(self.read(X)))
        network, fitted = self.network, self.input_names
        before, activations = network.layers[:layer], network.activations[:layer]
        if all(isinstance(one, Linear) for one in before) and set(activations) <= {"identity"}:
            names = fitted if names is None else names
            space = affine_coordinates(self.transformers, before, network.n_inputs, names, fitted)
            return _about(space, self.estimator) if hasattr(self.estimator, "center_") else space
        return hidden_coordinates(self.transformers, Network(before, activations), fitted)

    @cached_property
    def orders(self) -> dict[str, list[Any]]:
        """The categories of the inputs that become one number each, in the order of the numbers."""
        if Ordinal not in kinds_of(one for inside in self.operations.values() for one in inside):
            return {}
        try:
            space = self.coordinates
        except (MemoryLimitError, ValueError):
            return {}
        groups = dict(zip(space.names, space.groups, strict=True))
        once = Counter(groups[name] for name in space.codes)
        return {
            groups[name]: categories.tolist()
            for name, (categories, _) in space.codes.items()
            if once[groups[name]] == 1
        }

    @cached_property
    def folded(self) -> Network:
        """The network with as few layers as possible, in float64. The steps are not folded."""
        return fold_layers(self.network)

    @cached_property
    def one_layer(self) -> Quadratic:
        """The network as one quadratic layer, in float64; ValueError if it does not fold to one."""
        layer, *others = self.folded.layers
        if others:
            raise ValueError(
                f"model must fold to a single quadratic layer. This {self.name} folds to "
                f"{1 + len(others)} layers. Train with hidden_layer_sizes=(), or "
                "with activation='identity' and one quadratic layer."
            )
        return layer if isinstance(layer, Quadratic) else layer_to_quadratic(layer)


def _about(space: Coordinates, estimator: Any) -> Coordinates:
    """The coordinates with the center, the scales and the frequencies of a sparse model.

    If a step mixes the coordinates, the terms are not few in them, and they stay as they are.
    """
    center, scale = estimator.center_, estimator.scale_
    inputs = np.arange(len(center))  # the coordinate of each feature
    for step in reversed(space.maps):
        A = step.matrix
        rows, columns = np.nonzero(A)
        if len(np.unique(rows)) < len(rows):
            return space
        factors, found = A[rows, columns], (np.zeros(A.shape[1]), np.ones(A.shape[1]))
        found[0][columns] = (center[rows] - step.t[rows]) / factors
        found[1][columns] = scale[rows] / np.abs(factors)
        center, scale = found
        source = np.zeros(len(A), dtype=int)
        source[rows] = columns
        inputs = source[inputs]
    known = getattr(estimator, "stability_", None)
    frequencies = {
        tuple(sorted(inputs[list(term)].tolist())): frequency
        for term, frequency in (known.by_term.items() if known else ())
    }
    return replace(space, center=center, typical=(center, scale), frequencies=frequencies)
