"""A model whose classes can be certified: its coordinates, and the rounding errors of its steps."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from quadric.certify._rounding import (
    U64,
    check_factors,
    precision_after,
    precision_of,
    relative_error,
    step_roundings,
    underflow,
    unit_roundoff,
)
from quadric.checks import Array
from quadric.geometry import AffineMap
from quadric.models import (
    Affine,
    Beside,
    Coordinates,
    Impute,
    ModelView,
    NotAffineError,
    OneHot,
    Operation,
    Ordinal,
    PartlyAffine,
    Select,
    affine_map,
    partly_affine,
    width_after,
)

ACCEPTED = (
    "a Network, a fitted quadric classifier or a Pipeline that ends with one (for a torch module, "
    "pass quadric.torch.to_network(module, activation='softmax'))"
)

KNOWN = ("quadric.", "sklearn.")  # modules
DECIDES = {"predict", "logits", "forward", "transform", "_stack", "_is_multilabel"}
LEARNED = {"classes_", "network_"}  # attributes of objects, but not of classes


@dataclass(frozen=True)
class CertifiedModel:
    """A classifier, and the affine map from its coordinates to the inputs of its network.

    The model chooses the class with the largest score. A network with one output has the scores 0
    and z. `change` is the map, `absolute` is the map with the absolute values of all coefficients,
    and `share` bounds the relative rounding error of evaluating the map. The network computes in
    `dtype`. `held` marks encoded categories, which cannot move.
    """

    view: ModelView
    change: AffineMap
    absolute: AffineMap
    share: float
    dtype: Any
    held: Array

    @property
    def names(self) -> list[str]:
        """The names of the coordinates."""
        return self.view.coordinates.names

    def predict(self, X: Any) -> Array:
        """The index of the class that the model itself predicts for each row."""
        if self.view.model is self.view.network:
            return self.view.network.predict(X)
        index = {label: k for k, label in enumerate(self.view.labels.tolist())}
        return np.array([index[label] for label in self.view.model.predict(X).tolist()], dtype=int)

    def sizes(self, units: str) -> Array:
        """The unit of length along each coordinate, for units of 'inputs' or 'scaled'."""
        if units == "inputs":
            return np.ones(len(self.names))
        return self.view.coordinates.scales()

    def held_inputs(self, fixed: Iterable[Any]) -> Array:
        """Which coordinates cannot move: encoded categories, and those named in `fixed`."""
        held = self.held.copy()
        held[self.indices("fixed", fixed)] = True
        return held

    def indices(self, argument: str, listed: Iterable[Any]) -> list[int]:
        """The coordinates with the given names or indices; a single one need not be in a list."""
        single = isinstance(listed, (str, int, np.integer))
        return [self.index(argument, one) for one in ([listed] if single else listed)]

    def index(self, argument: str, one: Any) -> int:
        """The coordinate with the given name or index."""
        names = self.names
        if isinstance(one, str) and one in names:
            return names.index(one)
        if isinstance(one, (int, np.integer)) and -len(names) <= one < len(names):
            return int(one) % len(names)
        raise ValueError(f"{argument} must name inputs: {', '.join(names)}. Got {one!r} instead.")


def view_of_classifier(model: Any) -> ModelView:
    """The view of a model; raise ValueError unless it chooses one of several classes."""
    view = ModelView.of(model, ACCEPTED)
    network = view.network
    for part in (model, *view.transformers, view.estimator, network, *network.layers):
        _check_own_predictions(part)
    if not view.chooses_a_class:
        raise ValueError(
            f"model must choose one of several classes. This {view.name} has "
            f"{network.activations[-1]!r} outputs that are not mutually exclusive classes."
        )
    if view.classes is not None and len(view.classes) < 2:
        raise ValueError("model must know at least two classes. It was fitted to one class only.")
    return view


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


def certified_model(view: ModelView, X: Any) -> CertifiedModel:
    """The model for inputs of the dtype of X.

    Raises ValueError if a step is neither affine nor an encoder.
    """
    network, space, steps = view.network, view.coordinates, view.transformers
    change = absolute = AffineMap(np.ones(len(space.names)), np.zeros(len(space.names)))
    if len(space.maps) < len(steps):
        raise ValueError(
            f"the steps before the model must be affine or encode categories. {space.note()}"
        )
    held, total, precision = np.zeros(len(space.names), dtype=bool), 0.0, precision_of(X)
    found = zip(steps, view.operations.values(), space.maps, strict=True)
    for k, (step, inside, own_map) in enumerate(found):
        change, following = own_map.after(change), steps[k + 1 :]
        precision = precision_after(step, precision)
        u = unit_roundoff(precision)
        check_factors(inside, precision, type(step).__name__)
        total += step_roundings(inside) * (u + 2 * U64)
        more = 4 * underflow(precision) / u
        try:
            part = affine_map(step, following, absolute=more)
        except NotAffineError:
            parts = partly_affine(step, following, absolute=more)
            assert parts is not None  # because the map was found
            _check_branches(type(step).__name__, inside, parts, space)
            part = parts.map
            held = np.array([source == "output" for source, _ in parts.origins])
        absolute = part.after(absolute)
    dtype, converted = network.dtype, U64  # integers may be rounded, too
    if not hasattr(view.estimator, "get_params"):  # a network converts its inputs
        converted = unit_roundoff(dtype)
    elif precision == np.float64:  # an estimator computes in the finer of the two precisions
        dtype = precision
    return CertifiedModel(view, change, absolute, relative_error(total) + converted, dtype, held)


def _check_branches(
    step: str, inside: list[Operation], parts: PartlyAffine, space: Coordinates
) -> None:
    """Raise ValueError unless branches of a step that are not affine encode categories.

    An input that can move must occur in one branch only. Each occurrence is a coordinate, but they
    cannot move independently.
    """
    (whole,) = inside
    assert isinstance(whole, Beside)
    kept = {column for source, column in parts.origins if source == "output"}
    for branch, columns in whole.split(range(width_after([whole], whole.n))):
        kinds = {type(one) for one in branch.operations}
        encodes = kinds & {OneHot, Ordinal} and kinds <= {OneHot, Ordinal, Impute, Select, Affine}
        if kept & set(columns) and not encodes:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(
                "the steps before the model must be affine or encode categories. A branch of "
                f"{step} does neither ({shown}). {space.note()}"
            )
    uses = Counter(int(column) for branch in whole.branches for column in branch.columns)
    for name, (source, column) in zip(space.names, parts.origins, strict=True):
        if source == "input" and uses[column] > 1:
            raise ValueError(
                f"the steps before the model must use each number once. {step} uses the column "
                f"{name} in several branches; use it in one of them."
            )
