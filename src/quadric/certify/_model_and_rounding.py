"""A model whose classes can be certified: its coordinates, and bounds on its rounding errors.

The bounds are on the difference between the scores that a model computes and those of its fold.
Both are the same polynomial of the inputs, evaluated with rounding errors: the model rounds in
every layer and step, and folding rounds the coefficients. If no value passes through more than N
roundings with unit roundoff u, then in either case (N. Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1)

    |computed - exact| <= N u / (1 - N u) M(|s|),

where M is the same polynomial with the absolute values of all parameters: the fold of the network
of absolute values. Here s are the inputs of the network. They are the outputs of the steps of a
pipeline, which are rounded, too. By the same rule, the length of their error is at most sigma, a
small multiple of the length of ``|A||x| + |t|``, and their error changes the scores by at most
M(|s| + sigma) - M(|s|). Because M has no negative coefficient,

    M(a + e) <= M(a) + G |e| + H |e|^2,   G = |2 Q a + w|,  H = |Q|,

for every e of the given length, so that the whole difference, for all inputs at a distance of at
most r from x, is at most ``constant + slope r + curve r^2``.

Numbers that underflow have absolute errors. The compiled loops, and processors that are set to do
so, replace subnormal numbers by zero, inputs and weights included. An operation then has an error
of at most the smallest normal number, and M covers it after small numbers have been added to the
inputs, weights and biases of every layer (`absolute_layers`). A score that overflows needs no
bound, because `predict` then raises an error instead of returning a class.

A step of a pipeline computes in the coarsest of the precisions of its input, its fitted arrays and
its own parameter `dtype`: scikit-learn subtracts a mean that was fitted in float32 from data in
float64 only after multiplying it in float32. The precision of the output, which the next step
receives, is not finer than that.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from quadric.checks import FLOAT64, Array
from quadric.core import Layer, Quadratic, Reduced
from quadric.geometry import AffineMap
from quadric.kernels import roundings
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
    Power,
    Select,
    affine_map,
    fold_layers,
    kinds_of,
    partly_affine,
    stretches,
    width_after,
)
from quadric.network import Network

ACCEPTED = (
    "a Network, a fitted quadric classifier or a Pipeline that ends with one (for a torch module, "
    "pass quadric.torch.to_network(module, activation='softmax'))"
)

DECIDES = {"predict", "logits", "forward", "transform", "_stack", "_is_multilabel"}

TINY = float(np.finfo(np.float64).tiny)  # the largest error of a product that underflows
SAFE = 1e-140, 1e140  # lengths in this range are accurate if they are computed from squares
EPS = float(np.finfo(np.float64).eps)
U64 = EPS / 2
SLACK = 1.001  # for the rounding errors of the bounds, which are sums of positive numbers
SAFETY = 4.0  # factor for the products of bounds, which are themselves rounded
LEAST = 280  # 10 to the power of minus this is far from underflow
# from the coarsest to the finest; pyarrow has names of its own
PRECISIONS = {
    "float16": ("float16", "halffloat[pyarrow]"),
    "float32": ("float32", "float[pyarrow]"),
}


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
        return np.ones(len(self.names)) if units == "inputs" else self.view.coordinates.scales()

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


@dataclass(frozen=True)
class Nearest:
    """What is known about each row; the arrays are filled in place."""

    distance: Array
    radius: Array
    step: Array
    predicted: Array
    becomes: Array

    @classmethod
    def unknown(cls, predicted: Array, n: int) -> "Nearest":
        """Only the class of each row is known so far; n coordinates are free."""
        distance, radius = np.full((2, len(predicted)), np.inf)
        return cls(distance, radius, np.zeros((len(predicted), n)), predicted, predicted.copy())

    def part(self, rows: slice) -> "Nearest":
        """Views of some rows."""
        return Nearest(*(array[rows] for array in self.__dict__.values()))


def checked_view(model: Any) -> ModelView:
    """The view of a model; raise ValueError if a part of it predicts in a way of its own."""
    view = ModelView.of(model, ACCEPTED)
    network = view.network
    for part in (model, view.reader, *view.transformers, view.estimator, network, *network.layers):
        _check_own_predictions(part)
    return view


def view_of_classifier(model: Any) -> ModelView:
    """The view of a model; raise ValueError unless it chooses one of several classes."""
    view = checked_view(model)
    network = view.network
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
    outside = takewhile(
        lambda kind: not kind.__module__.startswith(("quadric.", "sklearn.")), type(part).__mro__
    )
    replaced = DECIDES & set(getattr(part, "__dict__", ()))
    # objects have these two attributes after `fit`, classes do not
    replaced |= (DECIDES | {"classes_", "network_"}) & set().union(*map(vars, outside))
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
        # a step computes in the coarsest precision of its input and of its own
        precision = coarsest([precision, *_dtypes(step)])
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
        kinds = kinds_of(branch.operations)
        encodes = kinds & {OneHot, Ordinal} and kinds <= {OneHot, Ordinal, Impute, Select, Affine}
        if kept & set(columns) and not encodes:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            advice = " Fit with tails='keep' instead." if Power in kinds else ""
            raise ValueError(
                "the steps before the model must be affine or encode categories. A branch of "
                f"{step} does neither ({shown}).{advice} {space.note()}"
            )
    uses = Counter(int(column) for branch in whole.branches for column in branch.columns)
    for name, (source, column) in zip(space.names, parts.origins, strict=True):
        if source == "input" and uses[column] > 1:
            raise ValueError(
                f"the steps before the model must use each number once. {step} uses the column "
                f"{name} in several branches; use it in one of them."
            )


def steps_of(change: AffineMap, free: Array, sizes: Array) -> AffineMap:
    """The linear part of a map, from steps in the free coordinates in units of `sizes`.

    `sizes` may also be a matrix that maps steps to those of the free coordinates.
    """
    if sizes.ndim == 2:
        return AffineMap(change.matrix[:, free] @ sizes, np.zeros(len(change.t)))
    if change.A.ndim == 1 and len(free) == len(sizes):
        return AffineMap(change.A * sizes, np.zeros(len(change.t)))
    return AffineMap(change.matrix[:, free] * sizes[free], np.zeros(len(change.t)))


def factor_of(argument: str, covariance: Array) -> Array:
    """L with L L' = covariance, which need not have full rank."""
    if not len(covariance) or not np.isfinite(covariance).all():
        raise ValueError(f"{argument} must be finite, and positive for an input that is not fixed.")
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    lam, V = np.linalg.eigh((correlation + correlation.T) / 2)
    if np.abs(correlation - correlation.T).max() > 1e-12 or lam[0] < -1e-10:
        raise ValueError(f"{argument} must be a symmetric matrix without negative eigenvalues.")
    kept = lam > 1e-14 * len(lam)
    return np.asarray(scale[:, None] * V[:, kept] * np.sqrt(lam[kept]))


# ------------------------------------------------------- rounding errors of the network


@dataclass(frozen=True)
class Majorant:
    """The largest of the polynomials of absolute values: M(a) = a'Q a + w'a + b for a >= 0."""

    Q: Array
    w: Array
    b: float
    share: float  # bound on the relative rounding error

    @classmethod
    def of(cls, layer: Layer, share: float) -> "Majorant":
        """The maximum over the neurons of a layer of absolute values."""
        n = layer.n_inputs
        Q = layer.Q.max(axis=0) if isinstance(layer, Quadratic) else np.zeros((n, n))
        return cls(Q, layer.W.max(axis=0), float(layer.b.max()), share)

    @cached_property
    def curve(self) -> float:
        """H, a bound on the spectral norm of Q."""
        return float(min(self.Q.sum(axis=1).max(initial=0.0), norm(self.Q))) * SLACK

    def at(self, a: Array) -> tuple[Array, Array]:
        """M and G at each row of a."""
        slope = 2 * (a @ self.Q) + self.w
        value = ((slope + self.w) * a).sum(axis=1) / 2 + self.b
        return value * SLACK, norm(slope, axis=1) * SLACK


@dataclass(frozen=True)
class Rounding:
    """The rounding errors of the first layer of a fold and of the steps before it.

    `absolute` is the affine map of the steps with the absolute values of all coefficients, and
    `share` the relative rounding error of evaluating the map.
    """

    majorant: Majorant
    absolute: AffineMap
    share: float

    def size(self, X: Array) -> Array:
        """The length of |A||x| + |t| for each row of X."""
        return norm(self.absolute.apply(np.abs(X)), axis=1) * SLACK

    def growth(
        self, u: Array, size: Array, moved: Array, stretch: float, spread: float
    ) -> tuple[Array, Array]:
        """`constant` and `slope` of the bound for one score, for each row of u.

        u are the computed inputs of the network, with errors of at most `moved`. A step of length r
        changes u by at most `stretch` r, and |A||x| by at most `spread` r.
        """
        (M, G), H, share = self.majorant.at(np.abs(u)), self.majorant.curve, self.majorant.share
        error, more = self.share * size + moved, self.share * spread
        again = (1 + share) * SLACK
        return (
            share * M + again * (G + H * error) * error,
            share * G * stretch + again * (G * more + 2 * H * (stretch + more) * error),
        )

    def curve(self, stretch: float, spread: float) -> float:
        """`curve` of the bound for one score."""
        share, more = self.majorant.share, self.share * spread
        factor = share * stretch**2 + (1 + share) * (2 * stretch + more) * more
        return factor * self.majorant.curve * SLACK


@dataclass(frozen=True)
class Scores:
    """Scores z_k = u'Q_k u + w_k'u + b_k of the classes, where u = A x + t.

    The scores are evaluated in u, which is well scaled, and differentiated by x, the coordinates in
    which distances are measured. A model with one output has the scores 0 and z.
    """

    Q: Array  # (K, n, n), symmetric
    W: Array
    b: Array
    change: AffineMap
    rounding: Rounding
    stored: float  # the relative error with which parameters are stored
    searches: dict[bytes, Any] = field(default_factory=dict)  # by free coordinates and units


def class_scores(model: CertifiedModel) -> Scores:
    """The scores of a model; raise ValueError if it does not fold to one layer."""
    view = model.view
    if len(view.folded.layers) > 1:
        raise ValueError(
            f"model must fold to a single quadratic layer. This {view.name} folds to "
            f"{len(view.folded.layers)} layers, so its distances have no exact solution. Train "
            "with hidden_layer_sizes=(), or with activation='identity' and one quadratic layer."
        )
    Q, W, b = view.one_layer.Q, view.one_layer.W, view.one_layer.b
    if len(b) == 1:
        Q, W, b = (np.concatenate([np.zeros_like(part), part]) for part in (Q, W, b))
    (majorant,) = majorants(view.network, model.dtype)
    rounding = Rounding(majorant, model.absolute, model.share)
    return Scores(Q, W, b, model.change, rounding, float(np.finfo(view.network.dtype).eps))


def majorants(network: Network, dtype: Any) -> list[Majorant]:
    """The majorant of each layer of the fold of a network, evaluated in the given dtype."""
    layers = zip(absolute_layers(network, dtype), shares(network, dtype), strict=True)
    return [Majorant.of(layer, share) for layer, share in layers]


def absolute_layers(network: Network, dtype: Any) -> tuple[Layer, ...]:
    """The fold of a network with the absolute values of all parameters, each enlarged.

    A rounding error is at least u times its value. So u times the added numbers is more than what
    underflows: in each of the at most (n + 1)^2 operations that add to an output, and in the
    parameters themselves.
    """
    limits, widest = np.finfo(dtype), max(layer.n_inputs for layer in network.layers)
    least = max(float(limits.tiny) / float(limits.eps), _least_factor(network))
    layers = []
    for layer in network.layers:
        arrays = {
            name: np.abs(array.astype(FLOAT64)) + least * (1 if name == "packed" else widest + 1)
            for name, array in layer.arrays().items()
        }
        for name in {"b", "c"} & set(arrays):
            arrays[name] += least * (widest + 1) ** 2
        shift = np.full(layer.n_inputs, least * (widest + 1) ** 2)
        layers.append(type(layer).of(**arrays).shifted(shift))
    return fold_layers(Network(layers, network.activations)).layers


def _least_factor(network: Network) -> float:
    """How much to add to each parameter so that no coefficient of the fold underflows.

    A coefficient is a sum of products of at most `count` parameters. Zero if there are no products
    or none of nonzero parameters underflows.
    """
    if len(network.layers) == 1 and not isinstance(network.layers[0], Reduced):
        return 0.0
    count, smallest = 0, 0.0
    for layer in network.layers:  # a parameter before the quadratic layer occurs twice
        times = 1 if isinstance(layer, Quadratic) else 2
        sizes = [np.abs(array[array != 0]).min(initial=1.0) for array in layer.arrays().values()]
        count, smallest = count + times, smallest + times * float(np.log10(min(sizes)))
    return 0.0 if smallest > -LEAST else 10.0 ** (-LEAST / count) / U64


def shares(network: Network, dtype: Any) -> list[float]:
    """The relative rounding error N u / (1 - N u) of each layer of the fold.

    N u is summed over the layers that it replaces.
    """
    found, u = [], unit_roundoff(dtype)
    for layers, _ in stretches(network):
        total = 0.0
        for layer in layers:  # a value before the quadratic layer occurs twice in each product
            folded = 2 * (layer.n_inputs + layer.n_outputs) + 16
            total += 2 * (_roundings(layer) * u + folded * U64)
        found.append(relative_error(total))
    return found


def relative_error(total: float) -> float:
    """N u / (1 - N u), for the given N u; infinite if N u is too large for a useful bound."""
    return total / (1 - total) if total < 0.5 else np.inf


def _roundings(layer: Layer) -> int:
    """The largest number of roundings between an input and an output of a layer."""
    n = layer.n_inputs
    if isinstance(layer, Quadratic):
        return roundings(n) + 4  # for the linear part and the sums
    return 2 * n + 5 if isinstance(layer, Reduced) else n + 2


def gamma(n: int) -> float:
    """Bound on the relative error of a sum of n products."""
    return SAFETY * (n + 4) * EPS


def underflows(n: int) -> float:
    """A bound on the sum of the errors of products that underflow, for n inputs of at most 1."""
    return 4 * (n + 1) ** 2 * TINY


# --------------------------------------- rounding errors of the steps of a pipeline


def coarsest(dtypes: Iterator[Any] | Sequence[Any]) -> np.dtype[Any]:
    """The least precise of the floating-point dtypes; float64 if there is none below it."""
    names = {str(dtype).lower().removeprefix("torch.") for dtype in dtypes}
    coarse = (name for name, spellings in PRECISIONS.items() if names & set(spellings))
    return np.dtype(next(coarse, "float64"))


def precision_of(X: Any) -> np.dtype[Any]:
    """The least precise floating-point dtype of the columns of X."""
    if hasattr(X, "dtypes"):  # a table
        return coarsest(list(X.dtypes))
    return coarsest([X.dtype if hasattr(X, "dtype") else np.asarray(X).dtype])


def _dtypes(part: Any) -> Iterator[Any]:
    """The dtypes of the arrays in a step and in the steps inside it, and its parameter `dtype`."""
    if isinstance(part, np.ndarray):
        yield part.dtype
    elif isinstance(part, (list, tuple)):
        for entry in part:
            yield from _dtypes(entry)
    elif hasattr(part, "get_params") and not isinstance(part, type):
        if getattr(part, "dtype", None) is not None:
            yield np.dtype(part.dtype)
        yield from _dtypes(list(vars(part).values()))


def unit_roundoff(precision: np.dtype[Any]) -> float:
    """The largest relative error of an operation."""
    return float(np.finfo(precision).eps) / 2


def underflow(precision: np.dtype[Any]) -> float:
    """The largest absolute error of an operation that underflows.

    The processor may be set to replace subnormal numbers by zero, except in float16, for which it
    has no arithmetic.
    """
    limits = np.finfo(precision)
    return float(limits.smallest_subnormal if precision == np.float16 else limits.tiny)


def step_roundings(operations: Sequence[Operation]) -> int:
    """The largest number of roundings between an input and an output of the operations."""
    count = 0
    for operation in operations:
        match operation:
            case Affine(A=A):  # a sum over the inputs, a center, a shift, and the fitted numbers
                count += 8 + (A.shape[1] if A.ndim == 2 else 0)
            case Impute():  # a fill value is rounded to the dtype of X
                count += 1
            case Beside(branches=branches):
                count += max([step_roundings(branch.operations) for branch in branches], default=0)
    return count


def check_factors(operations: Sequence[Operation], precision: np.dtype[Any], name: str) -> None:
    """Raise ValueError if a step multiplies by factors that the precision cannot represent.

    scikit-learn rounds a scale to the dtype of X. A scale that becomes infinite or subnormal then
    changes the outputs by more than any bound on rounding errors.
    """
    limits = np.finfo(precision)
    for operation in operations:
        match operation:
            case Affine(A=A) if A.ndim == 1 and precision != np.float64:
                factors = np.abs(A[(A != 0) & ~np.isnan(A)])
                sizes: Array = np.concatenate([factors, 1 / factors])
                if ((sizes > limits.max) | (sizes < limits.tiny)).any():
                    raise ValueError(
                        f"{name} scales by factors that {precision} cannot represent, so its "
                        "outputs have no proven precision. Pass X in float64."
                    )
            case Beside(branches=branches):
                for branch in branches:
                    check_factors(branch.operations, precision, name)


# --------------------------------------- lengths whose squares may underflow or overflow


def norm(array: Array, axis: Any = None) -> Any:
    """The square root of the sum of squares, over all entries or along one or more axes."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.linalg.norm(array.ravel() if axis is None else array, axis=axis)
        if np.all((found > SAFE[0]) & (found < SAFE[1])):
            return found
        unit = power_of_two(np.abs(array).max(axis=axis, keepdims=True, initial=0.0))
        scaled = array / unit
        found = np.linalg.norm(scaled.ravel() if axis is None else scaled, axis=axis)
        return found * unit.reshape(np.shape(found))


def power_of_two(size: Any) -> Any:
    """The largest power of two that is not larger than the size; 1 for a size of zero."""
    return np.where(np.asarray(size) == 0, 1.0, np.ldexp(1.0, np.frexp(size)[1] - 1))
