"""A model taken apart: steps before the network, the layer to look at, and its coordinates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from quadric._utils.arrays import Array
from quadric._utils.memory import check_limit
from quadric.convert._layers import layer_to_quadratic
from quadric.core._layers import Layer, Linear
from quadric.geometry import Quadric
from quadric.network import Network
from quadric.pipelines._affine import (
    Map,
    NotAffineError,
    PartlyAffine,
    affine_map,
    partly_affine,
)
from quadric.pipelines._missing_values import fill_values
from quadric.pipelines._operations import is_missing
from quadric.pipelines._table import find, split


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
    undone : tuple of Map
        The affine steps between the coordinates and the layer, the first one first.
    reach : callable
        Takes the user's X to the coordinates.
    typical : (means, standard deviations) or None
        What a scaler right after the coordinates has learned of them.
    """

    kind: str
    names: list[str]
    note: str
    undone: tuple[Map, ...]
    reach: Callable[[Any], Array]
    typical: tuple[Array, Array] | None = None

    def restate(self, surface: Quadric) -> Quadric:
        """A surface in the layer's inputs, restated in the coordinates."""
        try:
            with np.errstate(all="ignore"):
                for step in reversed(self.undone):
                    surface = step.undo(surface)
        except ValueError:  # a coefficient is not finite
            raise ValueError(
                "the preprocessing scales features by so much that the equations overflow in the "
                "units of its inputs. Rescale the data before fit."
            ) from None
        return surface


@dataclass(frozen=True)
class SelectedLayer:
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


def select_layer(
    model: Any, layer: int | None = None, names: Sequence[str] | None = None
) -> SelectedLayer:
    """The network inside a model, and how its layer's inputs come from the user's."""
    if isinstance(model, Layer):
        model = Network([model], ["identity"])
    named_steps, estimator = split(model)
    steps = [step for _, step in named_steps]
    network = estimator if isinstance(estimator, Network) else _network_of(estimator)
    l = _chosen_layer(network, layer, type(estimator).__name__)
    n, m = network.layers[l].n_inputs, network.layers[l].n_outputs
    check_limit(
        5 * 8 * m * n * n,
        f"{m:,} neurons of {n:,} inputs as matrices",
        "Explain a model of fewer inputs.",
    )
    before = list(zip(network.layers[:l], network.activations[:l], strict=True))
    if all(isinstance(layer, Linear) and g == "identity" for layer, g in before):
        given = getattr(model, "feature_names_in_", None)
        space = _space_before(steps, network, l, given if names is None else names, given)
    else:
        space = _hidden_space(steps, network, l, getattr(model, "feature_names_in_", None))
    return SelectedLayer(
        type(estimator).__name__, network, l, getattr(estimator, "classes_", None),
        bool(getattr(estimator, "_is_multilabel", False)), space,
    )  # fmt: skip


def _hidden_space(
    steps: Sequence[Any], network: Network, l: int, fitted_names: Sequence[str] | None
) -> Space:
    width = network.layers[l].n_inputs

    def reach(X: Any) -> Array:
        hidden = Network(network.layers[:l], network.activations[:l])
        Z = _through(steps, X) if steps else _in_order(X, fitted_names)
        return hidden.forward(Z if issparse(Z) else _real_numbers(Z)).astype(np.float64)

    return Space(
        "hidden",
        [f"h{i + 1}" for i in range(width)],
        f"The equations are in h1 ... h{width}, the activations of the hidden layer before these "
        "neurons: behind a hidden layer there is no equation of the second degree in the inputs.",
        (),
        reach,
    )


@dataclass(frozen=True)
class _Undone:
    """The affine steps in front of a layer, as far back as they lead.

    Attributes
    ----------
    first : int
        The index of the first of them.
    maps : tuple of Map
        The steps and linear layers, the first one first.
    encoded : PartlyAffine or None
        The first step, if only some of its branches are affine.
    obstacle : str
        Why the step before them is not affine; '' if there is none.
    """

    first: int
    maps: tuple[Map, ...]
    encoded: PartlyAffine | None
    obstacle: str

    def used(self, n: int) -> Array:
        """Whether the layer depends on each of n coordinates."""
        if not self.maps:
            return np.ones(n, dtype=bool)
        used = np.ones(len(self.maps[-1].t), dtype=bool)
        for step in reversed(self.maps):
            weights = step.A != 0
            used = weights & used if weights.ndim == 1 else weights[used].any(axis=0)
        return used


def _undo(steps: Sequence[Any], layers: Sequence[Layer]) -> _Undone:
    """The affine steps before linear layers."""
    maps = [Map(layer.W.astype(float), layer.b.astype(float)) for layer in layers]
    for k, step in reversed(list(enumerate(steps))):
        try:
            maps.insert(0, affine_map(step, steps[k + 1 :]))
        except NotAffineError as error:
            encoded = partly_affine(step, steps[k + 1 :])
            if encoded is None:
                return _Undone(k + 1, tuple(maps), None, str(error))
            return _Undone(k, (encoded.map, *maps), encoded, "some columns are encoded")
    return _Undone(0, tuple(maps), None, "")


def _space_before(
    steps: Sequence[Any],
    network: Network,
    l: int,
    names: Sequence[str] | None,
    fitted_names: Sequence[str] | None,
) -> Space:
    """As far back from layer l as affine steps lead.

    `names` are for people; `fitted_names` those of the columns in `fit`.
    """
    undone = _undo(steps, network.layers[:l])
    reach = _way_to(undone, steps, fitted_names)
    typical = None if undone.encoded is not None else _typical(steps[undone.first :])
    width = undone.maps[0].A.shape[-1] if undone.maps else network.n_inputs
    if not undone.obstacle:
        note = "The equations are in the model's inputs."
        if steps:
            undone_names = ", ".join(type(step).__name__ for step in steps)
            note = f"The equations are in your own units ({undone_names} undone)."
        return Space("inputs", _names(names, width), note, undone.maps, reach, typical)
    found = _output_names(steps[: undone.first], names)
    if undone.encoded is not None:
        before = found if undone.first else names
        found = _coordinate_names(undone.encoded, steps[undone.first], before)
    note = (
        f"The equations are in the {width} features that the preprocessing makes of the inputs "
        f"({undone.obstacle})."
    )
    return Space("features", _names(found, width), note, undone.maps, reach, typical)


def _way_to(
    undone: _Undone, steps: Sequence[Any], fitted_names: Sequence[str] | None
) -> Callable[[Any], Array]:
    """The function that takes the user's X to the coordinates before the undone steps."""
    before, after = steps[: undone.first], steps[undone.first :]

    def reach(X: Any) -> Array:
        Z = _through(before, X) if before else _in_order(X, fitted_names)
        if undone.encoded is not None:
            outputs = _through(after[:1], Z if before else X)
            return _coordinates(undone.encoded, fill_values(after), Z, outputs)
        if not after:
            return _real_numbers(Z)
        fill = fill_values(after)
        return _completed(Z, undone.used(len(fill)), fill)

    return reach


def _typical(steps: Sequence[Any]) -> tuple[Array, Array] | None:
    """Means and standard deviations, as the scaler in front has learned them.

    Imputers before it may drop columns that had no values; of these, both are zero.
    """
    kept: Map | None = None
    for step in steps:
        if type(step).__name__ != "SimpleImputer":
            found = find(step).typical(step)
            if found is None:
                return None
            mean, std = (np.nan_to_num(np.asarray(part, dtype=float)) for part in found)
            return (mean, std) if kept is None else (mean @ kept.matrix, std @ kept.matrix)
        kept = affine_map(step) if kept is None else affine_map(step).after(kept)
    return None


def _names(given: Any, n: int) -> list[str]:
    if given is None:
        return [f"x{i + 1}" for i in range(n)]
    if len(given) != n:
        raise ValueError(f"names must hold {n} names, one a feature. Got {len(given)}.")
    return [str(name) for name in given]


def _in_order(X: Any, names: Sequence[str] | None) -> Any:
    """The columns of a table in the order of fit, by their names.

    One that is not there is empty: a ColumnTransformer that drops it does not need it.
    """
    columns = getattr(X, "columns", None)
    if columns is None or names is None or not set(names) & set(columns):
        return X
    if set(names) <= set(columns):
        return X[list(names)]
    empty = np.full(len(X), None, dtype=object)
    there = set(columns)
    return np.column_stack(
        [np.asarray(X[name], dtype=object) if name in there else empty for name in names]
    )


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


def _output_names(steps: Sequence[Any], names: Any) -> list[str] | None:
    try:
        for step in steps:
            names = step.get_feature_names_out(names)
    except (AttributeError, ValueError, TypeError):
        return None
    return None if names is None else list(names)


def _coordinate_names(encoded: PartlyAffine, step: Any, names: Any) -> list[str]:
    """The step's names of its inputs and outputs, as far as they are coordinates."""
    inputs = _names(names, step.n_features_in_)
    outputs = _output_names([step], names)
    if outputs is None:
        outputs = [f"z{i + 1}" for i in range(len(encoded.map.t))]
    sources = {"input": inputs, "output": outputs}
    return [sources[source][i] for source, i in encoded.origins]


def _coordinates(encoded: PartlyAffine, fill: Array, X: Any, outputs: Any) -> Array:
    """Columns of X where a step is affine, columns of its outputs where it is not."""
    outputs = np.asarray(outputs, dtype=float)
    given = np.asarray(X, dtype=object)
    columns = [
        _filled(_real_numbers(given[:, i]), fill[i]) if source == "input" else outputs[:, i]
        for source, i in encoded.origins
    ]
    return np.column_stack(columns)


def _completed(X: Any, used: Array, fill: Array) -> Array:
    """X as real numbers, `fill` in the place of missing ones.

    A column that is not used may hold anything, and becomes 0.
    """
    if np.shape(X)[1:] != used.shape:
        return _real_numbers(X)  # the caller raises an error about the shape
    if not used.all():
        X = np.array(X, dtype=object)
        X[:, ~used] = 0.0
    return _filled(_real_numbers(X), fill)


def _real_numbers(values: Any) -> Array:
    """In float64; missing values, pandas' NA among them, are NaN."""
    try:
        return np.asarray(values, dtype=float)
    except TypeError:  # NA is no number
        array = np.array(values, dtype=object)
        array[np.frompyfunc(is_missing, 1, 1)(array).astype(bool)] = np.nan
        return array.astype(float)


def _filled(X: Array, fill: Array) -> Array:
    return np.where(np.isnan(X), fill, X)
