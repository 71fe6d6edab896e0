"""The parts of a model that certificates need: its classes, its network and its coordinates."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from quadric.certify._rounding import U64, relative_error
from quadric.certify._steps import (
    check_factors,
    precision_after,
    precision_of,
    roundings,
    underflow,
    unit_roundoff,
)
from quadric.checks import Array
from quadric.convert import fold
from quadric.explain import Space, affine_space
from quadric.geometry import AffineMap
from quadric.models import (
    Affine,
    Beside,
    Impute,
    NotAffineError,
    OneHot,
    Ordinal,
    PartlyAffine,
    Select,
    affine_map,
    operations,
    partly_affine,
    split_network,
    width_after,
)
from quadric.network import Network

ACCEPTED = (
    "a Network, a fitted quadric classifier or a Pipeline that ends with one (for a torch module, "
    "pass quadric.torch.to_network(module, activation='softmax'))"
)

KNOWN = ("quadric.", "sklearn.")  # modules
DECIDES = {"predict", "logits", "forward", "transform", "_stack", "_is_multilabel"}
LEARNED = {"classes_", "network_"}  # attributes of objects, but not of classes


@dataclass(frozen=True)
class Classifier:
    """A model that chooses one of several classes: the one with the largest score.

    A network with one output has the scores 0 and z.
    """

    model: Any
    steps: Sequence[Any]
    estimator: Any
    network: Network
    labels: Array

    @cached_property
    def folded(self) -> Network:
        """The network with as few layers as possible, in float64."""
        return fold(self.network)

    def predict(self, X: Any) -> Array:
        """The index of the class that the model itself predicts for each row."""
        if isinstance(self.model, Network):
            return self.network.predict(X)
        index = {label: k for k, label in enumerate(self.labels.tolist())}
        return np.array([index[label] for label in self.model.predict(X).tolist()], dtype=int)


@dataclass(frozen=True)
class Coordinates:
    """The inputs of a model, and the affine map from them to the inputs of its network.

    `change` is the map, `absolute` is the map with the absolute values of all coefficients, and
    `share` bounds the relative rounding error of evaluating the map. The network computes in
    `dtype`. `held` marks encoded categories, which cannot move.
    """

    space: Space
    change: AffineMap
    absolute: AffineMap
    share: float
    dtype: Any
    held: Array

    @property
    def names(self) -> list[str]:
        return self.space.names


def as_classifier(model: Any) -> Classifier:
    """The model as a `Classifier`; raise ValueError unless it chooses one of several classes."""
    named_steps, estimator, network = split_network(model, ACCEPTED)
    for part in (model, *(step for _, step in named_steps), estimator, network, *network.layers):
        _check_own_predictions(part)
    last = network.activations[-1]
    if last not in ("logistic", "softmax") or getattr(estimator, "_is_multilabel", False):
        raise ValueError(
            f"model must choose one of several classes. This {type(estimator).__name__} has "
            f"{last!r} outputs that are not mutually exclusive classes."
        )
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) < 2:
        raise ValueError("model must know at least two classes. It was fitted to one class only.")
    count = 2 if network.n_outputs == 1 else network.n_outputs
    labels = np.arange(count) if classes is None else np.asarray(classes)
    return Classifier(model, [step for _, step in named_steps], estimator, network, labels)


def _check_own_predictions(part: Any) -> None:
    """Raise ValueError if a subclass, or the object itself, replaces what decides about classes."""
    outside = takewhile(lambda kind: not kind.__module__.startswith(KNOWN), type(part).__mro__)
    replaced = DECIDES & set(vars(part))
    replaced |= (DECIDES | LEARNED) & set().union(*(vars(kind) for kind in outside))
    if replaced:
        raise ValueError(
            f"model must predict as quadric does. This {type(part).__name__} replaces "
            f"{min(replaced)!r}, so a certificate would not hold for its predictions."
        )


def coordinates_of(classifier: Classifier, X: Any) -> Coordinates:
    """The coordinates of a model; raise ValueError if a step is neither affine nor an encoder."""
    names, network = getattr(classifier.model, "feature_names_in_", None), classifier.network
    space = affine_space(classifier.steps, (), network.n_inputs, None, names)
    change = absolute = AffineMap(np.ones(len(space.names)), np.zeros(len(space.names)))
    if len(space.maps) < len(classifier.steps):
        raise ValueError(
            f"the steps before the model must be affine or encode categories. {space.note}"
        )
    held, total, precision = np.zeros(len(space.names), dtype=bool), 0.0, precision_of(X)
    for k, (step, found) in enumerate(zip(classifier.steps, space.maps, strict=True)):
        change, following = found.after(change), classifier.steps[k + 1 :]
        precision, inside = precision_after(step, precision), operations(step)
        u = unit_roundoff(precision)
        check_factors(inside, precision, type(step).__name__)
        total += roundings(inside) * (u + 2 * U64)
        more = 4 * underflow(precision) / u
        try:
            part = affine_map(step, following, absolute=more)
        except NotAffineError:
            parts = partly_affine(step, following, absolute=more)
            assert parts is not None  # because the map was found
            _check_encodes(step, parts, space)
            _check_used_once(step, parts, space)
            part = parts.map
            held = np.array([source == "output" for source, _ in parts.origins])
        absolute = part.after(absolute)
    dtype, converted = network.dtype, U64  # integers may be rounded, too
    if not hasattr(classifier.estimator, "get_params"):  # a network converts its inputs
        converted = unit_roundoff(dtype)
    elif precision == np.float64:  # an estimator computes in the finer of the two precisions
        dtype = precision
    share = relative_error(total) + converted
    return Coordinates(space, change, absolute, share, dtype, held)


def _check_encodes(step: Any, parts: PartlyAffine, space: Space) -> None:
    """Raise ValueError unless the branches of a step that are not affine encode categories."""
    (whole,) = operations(step)
    assert isinstance(whole, Beside)
    kept = {column for source, column in parts.origins if source == "output"}
    for branch, columns in whole.split(range(width_after([whole], whole.n))):
        kinds = {type(one) for one in branch.operations}
        encodes = kinds & {OneHot, Ordinal} and kinds <= {OneHot, Ordinal, Impute, Select, Affine}
        if kept & set(columns) and not encodes:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(
                "the steps before the model must be affine or encode categories. A branch of "
                f"{type(step).__name__} does neither ({shown}). {space.note}"
            )


def _check_used_once(step: Any, parts: PartlyAffine, space: Space) -> None:
    """Raise ValueError if an input that can move occurs in several branches of a step.

    Each occurrence is a coordinate, but they cannot move independently.
    """
    (whole,) = operations(step)
    assert isinstance(whole, Beside)
    uses = Counter(int(column) for branch in whole.branches for column in branch.columns)
    for name, (source, column) in zip(space.names, parts.origins, strict=True):
        if source == "input" and uses[column] > 1:
            raise ValueError(
                f"the steps before the model must use each number once. {type(step).__name__} uses "
                f"the column {name} in several branches; use it in one of them."
            )


def scaler_sizes(inputs: Coordinates) -> Array:
    """The standard deviations that the scaler of a pipeline has learned."""
    if inputs.space.typical is None:
        raise ValueError(
            "units='scaled' needs a Pipeline whose first step is a scaler. Use units='inputs'."
        )
    sizes = inputs.space.typical[1]
    return np.where(sizes > 0, sizes, 1.0)


def held_inputs(inputs: Coordinates, fixed: Iterable[Any]) -> Array:
    """Which coordinates cannot move: encoded categories, and those named in `fixed`."""
    held = inputs.held.copy()
    held[input_indices(inputs, "fixed", fixed)] = True
    return held


def input_indices(inputs: Coordinates, argument: str, listed: Iterable[Any]) -> list[int]:
    """The coordinates with the given names or indices; a single one need not be in a list."""
    single = isinstance(listed, (str, int, np.integer))
    return [input_index(inputs, argument, one) for one in ([listed] if single else listed)]


def input_index(inputs: Coordinates, argument: str, one: Any) -> int:
    """The coordinate with the given name or index."""
    names = inputs.names
    if isinstance(one, str) and one in names:
        return names.index(one)
    if isinstance(one, (int, np.integer)) and -len(names) <= one < len(names):
        return int(one) % len(names)
    raise ValueError(f"{argument} must name inputs: {', '.join(names)}. Got {one!r} instead.")
