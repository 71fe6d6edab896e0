"""A model taken apart: steps before the network, the layer to look at, and its coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from quadric.affine import Affine, NotAffineError, affine_step, typical_inputs, undo
from quadric.arrays import Array
from quadric.convert.layers import layer_to_quadratic
from quadric.geometry import Quadric
from quadric.layers import Layer, Linear
from quadric.memory import check_limit
from quadric.network import Network

__all__ = ["Parts", "Space", "take_apart"]


@dataclass(frozen=True)
class Space:
    """The coordinates in which the surfaces of a layer are stated.

    Attributes
    ----------
    kind : str
        'inputs', 'features' (what comes out of the last step that is not affine) or 'hidden' (the
        activations before the layer).
    names : list of str
    note : str
        In a sentence, what the coordinates are.
    undone : tuple of Affine
        The affine steps between the coordinates and the layer, the first one first.
    reach : callable
        Takes the user's X to the coordinates.
    typical : (means, standard deviations) or None
        What a scaler right after the coordinates has learned of them.
    """

    kind: str
    names: list[str]
    note: str
    undone: tuple[Affine, ...]
    reach: Callable[[Any], Array]
    typical: tuple[Array, Array] | None = None

    def restate(self, surface: Quadric) -> Quadric:
        """A surface in the layer's inputs, restated in the coordinates."""
        for step in reversed(self.undone):
            surface = undo(surface, step)
        return surface


@dataclass(frozen=True)
class Parts:
    """A model taken apart: the network inside, the layer to look at, and its coordinates."""

    name: str
    network: Network
    layer: int
    classes: Array | None
    multilabel: bool
    space: Space

    def functions(self) -> tuple[Array, Array, Array]:
        """Q, W and b of the layer's neurons, in float64, whatever its kind."""
        layer = layer_to_quadratic(self.network.astype("float64").layers[self.layer])
        return layer.Q, layer.W, layer.b


def _dense(Z: Any) -> Array:
    return np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=float)


def take_apart(model: Any, layer: int | None = None, names: Sequence[str] | None = None) -> Parts:
    """The network inside a model, and how its layer's inputs come from the user's."""
    if isinstance(model, Layer):
        model = Network([model], ["identity"])
    steps: list[Any] = []
    estimator = model
    if hasattr(model, "named_steps"):  # a Pipeline
        used = [step for _, step in model.steps if step is not None and not isinstance(step, str)]
        steps, estimator = used[:-1], used[-1]
    network = estimator if isinstance(estimator, Network) else _network_of(estimator)
    l = _chosen_layer(network, layer, type(estimator).__name__)
    n, m = network.layers[l].n_inputs, network.layers[l].n_outputs
    check_limit(
        5 * 8 * m * n * n,
        f"{m:,} neurons of {n:,} inputs as matrices",
        "Nobody reads so many terms: explain a model of fewer inputs.",
    )
    before = list(zip(network.layers[:l], network.activations[:l], strict=True))
    if all(isinstance(layer, Linear) and g == "identity" for layer, g in before):
        given = getattr(model, "feature_names_in_", None)
        space = _space_before(steps, network, l, given if names is None else names)
    else:
        space = _hidden_space(steps, network, l)
    return Parts(
        type(estimator).__name__, network, l, getattr(estimator, "classes_", None),
        bool(getattr(estimator, "_is_multilabel", False)), space,
    )  # fmt: skip


def _hidden_space(steps: Sequence[Any], network: Network, l: int) -> Space:
    width = network.layers[l].n_inputs

    def reach(X: Any) -> Array:
        hidden = Network(network.layers[:l], network.activations[:l])
        return hidden.forward(_through(steps, X)).astype(np.float64)

    return Space(
        "hidden",
        [f"h{i + 1}" for i in range(width)],
        f"The equations are in h1 ... h{width}, the activations of the hidden layer before these "
        "neurons: behind a hidden layer there is no equation of the second degree in the inputs.",
        (),
        reach,
    )


def _space_before(
    steps: Sequence[Any], network: Network, l: int, names: Sequence[str] | None
) -> Space:
    """As far back from layer l as affine steps lead."""
    undone = [Affine(layer.W.astype(float), layer.b.astype(float)) for layer in network.layers[:l]]
    encoded: Affine | None = None
    first, obstacle = len(steps), ""
    while first and encoded is None:
        try:
            affine = affine_step(steps[first - 1])
        except NotAffineError as error:
            obstacle = str(error)
            break
        undone.insert(0, affine)
        first -= 1
        if affine.names is not None:
            encoded, obstacle = affine, "some columns are encoded"

    def reach(X: Any) -> Array:
        if encoded is None:
            if not first:
                X = _in_order(X, names)
            return _dense(_through(steps[:first], X))
        # forward through the encoder, and back through the affine part of what it did
        Z = _dense(_through(steps[: first + 1], X)) - encoded.t
        if encoded.A.ndim == 1:
            return Z / encoded.A
        return np.linalg.lstsq(encoded.A, Z.T, rcond=None)[0].T

    used = [step for step in steps[first:] if type(step).__name__ != "SimpleImputer"]
    typical = typical_inputs(used[0]) if used else None
    if not obstacle:
        n = steps[0].n_features_in_ if steps else network.n_inputs
        note = "The equations are in the model's inputs."
        if steps:
            undone_names = ", ".join(type(step).__name__ for step in steps)
            note = f"The equations are in your own units ({undone_names} undone)."
        return Space("inputs", _names(names, n), note, tuple(undone), reach, typical)
    width = undone[0].A.shape[-1] if undone else network.n_inputs
    found = encoded.names if encoded is not None else _output_names(steps[:first])
    note = (
        f"The equations are in the {width} features that the preprocessing makes of the inputs "
        f"({obstacle})."
    )
    if encoded is not None:
        typical = None
    return Space("features", _names(found, width), note, tuple(undone), reach, typical)


def _names(given: Any, n: int) -> list[str]:
    if given is None:
        return [f"x{i + 1}" for i in range(n)]
    if len(given) != n:
        raise ValueError(f"names must hold {n} names, one a feature. Got {len(given)}.")
    return [str(name) for name in given]


def _in_order(X: Any, names: Sequence[str] | None) -> Any:
    """The columns of a table in the order of fit, by their names."""
    columns = getattr(X, "columns", None)
    if columns is None or names is None or not set(names) <= set(columns):
        return X
    return X[list(names)]


def _through(steps: Sequence[Any], X: Any) -> Any:
    for step in steps:
        X = step.transform(X)
    return X.toarray() if hasattr(X, "toarray") else X


def _network_of(estimator: Any) -> Network:
    network = getattr(estimator, "network_", None)
    if network is None:
        raise TypeError(
            "model must be a Network, a layer, a fitted quadric estimator, or a Pipeline that ends "
            f"with one. Got {type(estimator).__name__}" + _advice(estimator)
        )
    return network


def _advice(estimator: Any) -> str:
    if hasattr(estimator, "best_estimator_"):
        return "; pass its best_estimator_."
    if type(estimator).__module__.startswith("quadric"):
        return "; call fit first."
    return "."


def _chosen_layer(network: Network, layer: int | None, name: str) -> int:
    curved = [l for l, kind in enumerate(network.layers) if not isinstance(kind, Linear)]
    if layer is None:
        if not curved:
            raise ValueError(
                f"this {name} has no quadratic or reduced layer, so there are no quadrics: all its "
                "boundaries are made of planes. Its weights are in layers[l].W."
            )
        return curved[-1]
    count = len(network.layers)
    if not isinstance(layer, (int, np.integer)) or not -count <= layer < count:
        raise ValueError(f"layer must be one of the network's {count} layers. Got {layer!r}.")
    return int(layer) % count


def _output_names(steps: Sequence[Any]) -> list[str] | None:
    names = None
    try:
        for step in steps:
            names = step.get_feature_names_out(names)
    except (AttributeError, ValueError, TypeError):
        return None
    return None if names is None else list(names)
