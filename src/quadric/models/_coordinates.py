"""The coordinates in which a layer's surfaces are expressed, and the user's data in them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from scipy.sparse import issparse

from quadric.checks import Array, axis_names
from quadric.core import Layer
from quadric.geometry import AffineMap, Quadric
from quadric.models._composition import (
    NotAffineError,
    PartlyAffine,
    affine_map,
    fill_values,
    partly_affine,
)
from quadric.models._operations import Affine, Beside, OneHot, Operation, Select, is_missing
from quadric.models._supported_steps import (
    UnknownStepError,
    find,
    flat,
    input_indices,
    operations,
    transformed,
)
from quadric.network import Network
from quadric.utils import check_limit


@dataclass(frozen=True)
class Coordinates:
    """The coordinates in which the surfaces of a layer are expressed.

    Parameters
    ----------
    kind : {'inputs', 'features', 'hidden'}
        The inputs of the model, the outputs of the last step that is not affine, or the activations
        before the layer.
    names : list of str
        The name of each coordinate.
    where : str
        What the coordinates are, after 'The equations are'.
    maps : tuple of AffineMap
        The affine steps between the coordinates and the layer, in order.
    reach : callable
        Computes the coordinates of the user's X.
    typical : tuple of arrays or None
        The means and standard deviations that a scaler has learned, if the first step after the
        coordinates is a scaler.
    groups : list of str
        The input that each coordinate comes from. The columns of a one-hot encoding have the same.
    encodings : array of int
        The same positive number for the columns of one one-hot encoding, 0 for other coordinates.
    encoded : PartlyAffine or None
        The first step after the coordinates, if some of its branches are not affine.
    """

    kind: str
    names: list[str]
    where: str
    maps: tuple[AffineMap, ...]
    reach: Callable[[Any], Array]
    typical: tuple[Array, Array] | None
    groups: list[str]
    encodings: Array
    encoded: PartlyAffine | None = None

    @property
    def widest(self) -> int:
        """The largest number of coordinates in which `restate` expresses a surface."""
        return max([len(self.names), *(step.A.shape[-1] for step in self.maps)])

    def note(self, what: str = "equations") -> str:
        """Describe the coordinates in a sentence.

        Parameters
        ----------
        what : str
            What is expressed in these coordinates, as a plural.

        Returns
        -------
        str
            The sentence.
        """
        return self.where if self.kind == "hidden" else f"The {what} are {self.where}"

    def restate(self, surface: Quadric) -> Quadric:
        """Express a surface over the layer's inputs in these coordinates.

        Parameters
        ----------
        surface : Quadric
            The surface.

        Returns
        -------
        Quadric
            The same surface.
        """
        try:
            with np.errstate(all="ignore"):
                for step in reversed(self.maps):
                    surface = surface.preimage(step.A, step.t)
        except ValueError:  # a coefficient is not finite
            raise ValueError(
                "the preprocessing scales features by such extreme factors that the equations "
                "overflow in the units of its inputs. Rescale the data before fitting."
            ) from None
        return surface

    def scales(self) -> Array:
        """Return the standard deviations that a scaler has learned.

        Returns
        -------
        array of shape (n_coordinates,)
            The standard deviations; 1 for a constant input.

        Raises
        ------
        ValueError
            If the first step is not a scaler.
        """
        if self.typical is None:
            raise ValueError(
                "units='scaled' needs a Pipeline whose first step is a scaler. Use units='inputs'."
            )
        sizes = self.typical[1]
        return np.where(sizes > 0, sizes, 1.0)


def hidden_coordinates(
    steps: Sequence[Any], hidden: Network, fitted_names: Sequence[str] | None
) -> Coordinates:
    """The activations of the layers in `hidden`."""

    def reach(X: Any) -> Array:
        Z = transformed(steps, X) if steps else _in_order(X, fitted_names)
        return hidden.forward(Z if issparse(Z) else _real_numbers(Z)).astype(np.float64)

    width = hidden.n_outputs
    note = (
        "After a hidden layer, a surface has no quadratic equation in the inputs. For an equation, "
        f"train with hidden_layer_sizes=(). The equations in h1 ... h{width}, the activations of "
        "the hidden layer, are in `classes`."
    )
    names = [f"h{i + 1}" for i in range(width)]
    return Coordinates("hidden", names, note, (), reach, None, names, np.zeros(width, dtype=int))


def affine_coordinates(
    steps: Sequence[Any],
    layers: Sequence[Layer],
    n_inputs: int,
    names: Sequence[str] | None,
    fitted_names: Sequence[str] | None,
) -> Coordinates:
    """The coordinates reached by undoing affine steps, as far back as possible.

    `layers` are the linear layers between the steps and the layer that is expressed, and `n_inputs`
    the number of inputs of the first. `names` are the names shown to the user, and `fitted_names`
    are those of the columns passed to `fit`.
    """
    maps = [AffineMap(layer.W.astype(float), layer.b.astype(float)) for layer in layers]
    widths = [*(getattr(step, "n_features_in_", 0) for step in steps), n_inputs]
    first, obstacle, encoded = len(steps), "", None
    while first and not obstacle:
        step, following = steps[first - 1], steps[first:]
        n, m = widths[first - 1 : first + 1]
        check_limit(
            4 * 8 * m * n,
            f"the map from {n:,} to {m:,} columns of {type(step).__name__}",
            "Use a model with fewer inputs.",
        )
        try:
            maps.insert(0, affine_map(step, following))
            first -= 1
        except NotAffineError as error:
            obstacle, encoded = str(error), partly_affine(step, following)
    if encoded is not None:
        first, obstacle = first - 1, "some columns are encoded"
        maps.insert(0, encoded.map)
    before, after = steps[:first], steps[first:]

    def reach(X: Any) -> Array:
        Z = transformed(before, X) if before else _in_order(X, fitted_names)
        if not after:
            return _real_numbers(Z)
        fill = fill_values(after)
        if encoded is None:
            return _completed(Z, _used(maps, len(fill)), fill)
        return _partly_encoded(encoded, fill, Z, transformed(after[:1], Z if before else X))

    width = maps[0].A.shape[-1] if maps else n_inputs
    found = _output_names(before, names) if before else names
    if encoded is not None:
        found = _coordinate_names(encoded, after[0], found)
    shown = _names(found, width)
    groups, encodings = _groups_of(before, encoded, after, shown, names)
    typical = (
        _typical_after(after) if encoded is None else _typical_encoded(encoded, after[0], encodings)
    )
    undone = ", ".join(type(step).__name__ for step in steps)
    features = f"the {width} features that the preprocessing computes from the inputs"
    where = f"in your own units ({undone} undone)." if steps else "in the model's inputs."
    if obstacle:
        where = f"in {features} ({obstacle})."
    return Coordinates(
        "features" if obstacle else "inputs",
        shown,
        where,
        tuple(maps),
        reach,
        typical,
        groups,
        encodings,
        encoded,
    )


def _used(maps: Sequence[AffineMap], n: int) -> Array:
    """For each of n coordinates, whether the result of the maps depends on it."""
    used = np.ones(len(maps[-1].t) if maps else n, dtype=bool)
    for step in reversed(maps):
        weights = step.A != 0
        used = weights & used if weights.ndim == 1 else weights[used].any(axis=0)
    return used


# --------------------------------------------------------------------------------- names


def _names(given: Any, n: int) -> list[str]:
    return axis_names([f"x{i + 1}" for i in range(n)] if given is None else given, n)


def _output_names(steps: Sequence[Any], names: Any) -> list[str] | None:
    try:
        for step in steps:
            names = step.get_feature_names_out(names)
    except (AttributeError, ValueError, TypeError):
        return None
    return None if names is None else list(names)


def _coordinate_names(encoded: PartlyAffine, step: Any, names: Any) -> list[str]:
    """The names of inputs where a step is affine, and of outputs where it is not."""
    outputs = _output_names([step], names) or [f"z{i + 1}" for i in range(len(encoded.map.t))]
    sources = {"input": _names(names, step.n_features_in_), "output": outputs}
    return [sources[source][i] for source, i in encoded.origins]


# -------------------------------------------------------------------------------- values


def _in_order(X: Any, names: Sequence[str] | None) -> Any:
    """The columns of a table, found by name, in the order used in `fit`.

    A column that the table lacks is left empty, because a ColumnTransformer may drop it anyway.
    """
    there = set(getattr(X, "columns", ()))
    if names is None or not there & set(names):
        return X
    if there >= set(names):
        return X[list(names)]
    empty = np.full(len(X), None, dtype=object)
    return np.column_stack(
        [np.asarray(X[name], dtype=object) if name in there else empty for name in names]
    )


def _partly_encoded(encoded: PartlyAffine, fill: Array, X: Any, outputs: Any) -> Array:
    """The columns of X where a step is affine, and those of its outputs where it is not."""
    outputs = np.asarray(outputs, dtype=float)
    given = np.asarray(X, dtype=object)
    return np.column_stack(
        [
            _real_numbers(given[:, i], fill[i]) if source == "input" else outputs[:, i]
            for source, i in encoded.origins
        ]
    )


def _completed(X: Any, used: Array, fill: Array) -> Array:
    """X as real numbers, with missing values replaced by `fill`.

    An unused column may contain anything and is set to 0. An imputer rounds its fill values to the
    dtype of X.
    """
    if np.shape(X)[1:] != used.shape:
        return _real_numbers(X)  # the caller raises an error about the shape
    if getattr(X, "dtype", None) in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            fill = fill.astype(X.dtype).astype(float)
    if not used.all():
        X = np.array(X, dtype=object)
        X[:, ~used] = 0.0
    return _real_numbers(X, fill)


def _real_numbers(values: Any, fill: Any = np.nan) -> Array:
    """The values as float64, with missing ones (including pandas' NA) replaced by `fill`."""
    try:
        X = np.asarray(values, dtype=float)
    except TypeError:  # NA is not a number
        X = np.array(values, dtype=object)
        X[np.frompyfunc(is_missing, 1, 1)(X).astype(bool)] = np.nan
        X = X.astype(float)
    return np.where(np.isnan(X), fill, X)


# ------------------------------------------------- where coordinates come from, and scales


Origin = tuple[int, int]
"""Where a column comes from: its input column, and the number of its encoding.

The input is -1 if the values are computed from several inputs. The number is 0 for most columns.
The columns of one one-hot encoding share a positive number; at most one of them is 1 in a row, and
the others are 0.
"""


def _origins_after(
    operations: Sequence[Operation], origins: list[Origin], numbers: Iterator[int]
) -> list[Origin]:
    """The origins of the columns after the operations, given those before them."""
    for operation in operations:
        match operation:
            case Affine() if operation.A.ndim == 2:
                inputs = [{origins[i][0] for i in np.flatnonzero(row)} for row in operation.A]
                origins = [(found.pop() if len(found) == 1 else -1, 0) for found in inputs]
            case Select():
                origins = [origins[i] for i in operation.indices]
            case OneHot():
                columns = zip(origins, operation.columns, strict=True)
                encoded = [((column, next(numbers)), known.width) for (column, _), known in columns]
                origins = [origin for origin, width in encoded for _ in range(width)]
            case Beside():
                parts = [
                    _origins_after(b.operations, [origins[i] for i in b.columns], numbers)
                    for b in operation.branches
                ]
                origins = [origin for part in parts for origin in part]
            case _:
                origins = [(column, 0) for column, _ in origins]
    return origins


def _groups_of(
    before: Sequence[Any],
    encoded: PartlyAffine | None,
    after: Sequence[Any],
    shown: list[str],
    inputs: Any,
) -> tuple[list[str], Array]:
    """The name of each coordinate's input, and the numbers of the one-hot encodings.

    `shown` are the names of the coordinates, and `inputs` those of the pipeline's inputs or None.
    A coordinate that is computed from several inputs, or by an unknown step, is its own group.
    """
    alone = shown, np.zeros(len(shown), dtype=int)
    steps = [*before, *after]
    n = getattr(steps[0], "n_features_in_", None) if steps else None
    if n is None or (not before and encoded is None):
        return alone
    try:
        numbers = count(1)
        every = [operation for step in before for operation in operations(step)]
        found = _origins_after(every, [(i, 0) for i in range(n)], numbers)
        if encoded is not None:
            outputs = _origins_after(operations(after[0]), found, numbers)
            found = [found[i] if kind == "input" else outputs[i] for kind, i in encoded.origins]
    except UnknownStepError:
        return alone
    names = [f"x{i + 1}" for i in range(n)] if inputs is None else list(map(str, inputs))
    groups = [
        names[column] if column >= 0 else name
        for (column, _), name in zip(found, shown, strict=True)
    ]
    return groups, np.array([number for _, number in found], dtype=int)


def _typical_after(steps: Sequence[Any]) -> tuple[Array, Array] | None:
    """Means and standard deviations that the first scaler has learned.

    An imputer before it may drop columns without values; for these, both are zero.
    """
    if steps and type(steps[0]).__name__ == "SimpleImputer":
        found, kept = _typical_after(steps[1:]), affine_map(steps[0])
        return None if found is None else (kept.pull_back(found[0]), kept.pull_back(found[1]))
    learned = find(steps[0]).typical(steps[0]) if steps else None
    if learned is None:
        return None
    mean, std = np.nan_to_num(np.array(learned, dtype=float))
    return mean, std


def _typical_encoded(
    encoded: PartlyAffine, step: Any, encodings: Array
) -> tuple[Array, Array] | None:
    """Means and standard deviations learned by the scalers of a ColumnTransformer's branches.

    The categories of a column count as equally frequent, because encoders do not learn their
    frequencies.
    """
    mean, std = np.zeros(len(encodings)), np.ones(len(encodings))
    known = encodings > 0
    for number in np.unique(encodings[known]):
        share = 1 / np.count_nonzero(encodings == number)
        mean[encodings == number], std[encodings == number] = share, np.sqrt(share * (1 - share))
    places = {origin: k for k, origin in enumerate(encoded.origins)}
    for name, inner, _ in getattr(step, "transformers_", ()):
        try:
            learned = _typical_after([one for _, one in flat(inner)]) or ()
        except (NotAffineError, UnknownStepError):  # or the branch is dropped
            continue
        for c, *values in zip(input_indices(step, name), *learned, strict=False):
            k = places.get(("input", int(c)))
            if k is not None and values:
                mean[k], std[k], known[k] = *values, True
    return (mean, std) if known.all() else None
