"""The coordinates in which a layer's surfaces are expressed, and the user's data in them.

They are reached by undoing steps: `affine_map` expresses a fitted step as an affine map, and
`partly_affine` does so for those branches of a step that are affine.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import issparse

from quadric.checks import Array, axis_names
from quadric.core import Layer
from quadric.geometry import AffineMap, Quadric
from quadric.models._operations import (
    Affine,
    Beside,
    NotAffineError,
    OneHot,
    Operation,
    Read,
    Select,
    codes_after,
    composed,
    fill_after,
    identity,
    is_missing,
    width_after,
)
from quadric.models._supported_steps import (
    UnknownStepError,
    find,
    flat,
    input_indices,
    n_inputs,
    operations,
    transformed,
)
from quadric.network import Network
from quadric.utils import check_limit

MOST_LISTED = 6  # categories of a column, and columns, in a note

# ------------------------------------------------------------------ steps as affine maps


@dataclass(frozen=True)
class PartlyAffine:
    """A ColumnTransformer or FeatureUnion with affine and non-affine branches.

    Attributes
    ----------
    map : AffineMap
        The map from the coordinates to the step's outputs.
    origins : list of (source, index)
        The source of each coordinate: ('input', column) or ('output', column) of the step.
    """

    map: AffineMap
    origins: list[tuple[str, int]]


def affine_map(step: Any, after: Sequence[Any] = (), *, absolute: float | None = None) -> AffineMap:
    """Return a fitted step as a map z = A u + t.

    Raises NotAffineError if the step is not of this form. The map is valid for rows without missing
    values, which an imputer does not change. A scaler returns missing values for a column that had
    no values in `fit`. The map treats such a column as a constant: the value with which the next
    steps, `after`, replace missing values. If `absolute` is given, every number in the step is
    replaced by its absolute value, and `absolute` is added to its inputs and outputs. This map
    bounds rounding errors.
    """
    try:
        inside, fill = operations(step), fill_values(after) if after else None
        return composed(inside, n_inputs(step) or 0, fill, absolute)
    except UnknownStepError as error:
        raise NotAffineError(error.reason) from None
    except NotAffineError as error:
        raise NotAffineError(f"{find(step).name} {error}") from None


def partly_affine(
    step: Any, after: Sequence[Any] = (), *, absolute: float | None = None
) -> PartlyAffine | None:
    """Return the affine branches of a step; None if the step has no branches.

    The step may also have branches that are not affine. `after` and `absolute` have the same
    meaning as in `affine_map`.
    """
    try:
        inside = operations(step)
    except UnknownStepError:
        return None
    if len(inside) != 1 or not isinstance(inside[0], Beside):
        return None
    whole = inside[0]
    width = width_after([whole], whole.n)
    fills = fill_values(after) if after else np.full(width, np.nan)
    maps: list[AffineMap] = []
    origins: list[tuple[str, int]] = []
    for (branch, outputs), (_, fill) in zip(
        whole.split(range(width)), whole.split(fills), strict=True
    ):
        try:
            maps.append(composed(branch.operations, len(branch.columns), fill, absolute))
            origins += [("input", int(column)) for column in branch.columns]
        except NotAffineError:
            maps.append(identity(branch.width))
            origins += [("output", column) for column in outputs]
    A, t = block_diag(*[part.matrix for part in maps]), np.concatenate([part.t for part in maps])
    return PartlyAffine(AffineMap.simplest(A, t), origins)


def undo_steps(surface: Quadric, steps: Sequence[Any]) -> Quadric:
    """Express a surface in the outputs of the last step as a surface in the inputs of the first."""
    for k, step in reversed(list(enumerate(steps))):
        change = affine_map(step, steps[k + 1 :])
        surface = surface.preimage(change.A, change.t)
    return surface


def fill_values(steps: Sequence[Any]) -> Array:
    """The values with which the steps replace missing values in each column, or NaN."""
    every = [operation for step in steps for operation in operations(step)]
    return fill_after(every, n_inputs(steps[0]) or 0)


# --------------------------------------------------------------------------- coordinates


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
    codes : dict of str to (categories, numbers)
        For each coordinate that stands for categories, two arrays in the order of the numbers.
    center : array or None
        The exact center about which a sparse model has few terms.
    frequencies : dict of (int, ...) to float
        How often a sparse model's terms are selected on halves of the samples, by coordinates: (i,)
        for an input, (i, i) for its square and (i, j) for a product; empty if that is unknown.
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
    codes: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    center: Array | None = None
    frequencies: dict[tuple[int, ...], float] = field(default_factory=dict)

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
        where = self.where if self.kind == "hidden" else f"The {what} are {self.where}"
        named = [
            f"{name} is {_listed_codes(*codes)}"
            for name, codes in islice(self.codes.items(), MOST_LISTED)
        ]
        more = len(self.codes) - len(named)
        listed = "; ".join([*named, f"and {more} more columns"] if more else named)
        return f"{where} Categories as numbers: {listed}." if listed else where

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
        first, obstacle = first - 1, "some columns are encoded or transformed"
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
        dict(_codes_of(before, encoded, after, shown)),
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
    return None if names is None else _without_prefixes(steps, list(names))


def _without_prefixes(steps: Sequence[Any], names: list[str]) -> list[str]:
    """The names without those of a ColumnTransformer's parts, if they remain different."""
    parts = {name for step in steps for name, *_ in getattr(step, "transformers_", ())}
    short = []
    for name in map(str, names):
        part, _, rest = name.partition("__")
        short.append(rest if rest and part in parts else name)
    return short if len(set(short)) == len(names) else names


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
            case Read():
                counts = zip(origins, map(len, operation.names), strict=True)
                origins = [(column, 0) for (column, _), count in counts for _ in range(count)]
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


def _codes_of(
    before: Sequence[Any], encoded: PartlyAffine | None, after: Sequence[Any], names: list[str]
) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """The names of the coordinates that stand for categories, with these and their numbers."""
    try:
        n, every = n_inputs([*before, *after][0]) or 0, [*before, *after[: encoded is not None]]
        inside = [operation for step in every for operation in operations(step)]
    except (IndexError, UnknownStepError):
        return
    found = codes_after(inside, [None] * n)
    if encoded is not None:
        found = [None if kind == "input" else found[i] for kind, i in encoded.origins]
    for name, codes in zip(names, found, strict=True):
        if codes is not None:
            order = np.argsort(codes[1], kind="stable")
            yield name, (codes[0][order], codes[1][order])


def _listed_codes(categories: Array, numbers: Array) -> str:
    """The numbers of categories; of many, the smallest and the largest ones."""
    n, half = len(numbers), MOST_LISTED // 2
    every = range(n) if n <= MOST_LISTED else [*range(half), *range(n - half, n)]
    texts = [f"{categories[i]} = {numbers[i]:.3g}" for i in every]
    if len(texts) < n:
        texts.insert(half, f"... ({n - len(texts)} more)")
    return ", ".join(texts)


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
    known, share = encodings > 0, 1 / np.bincount(encodings)[encodings]
    mean = np.where(known, share, 0.0)
    std = np.where(known, np.sqrt(share * (1 - share)), 1.0)
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
