"""Bounds on the difference between the scores that a model computes and those of its fold.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quadric.checks import FLOAT64, Array
from quadric.core import Layer, Quadratic, Reduced
from quadric.geometry import AffineMap
from quadric.kernels import roundings
from quadric.models import Affine, Beside, Impute, Operation, fold_layers, stretches
from quadric.network import Network

TINY = float(np.finfo(np.float64).tiny)  # the largest error of a product that underflows
SAFE = 1e-140, 1e140  # lengths in this range are accurate if they are computed from squares
U64 = float(np.finfo(np.float64).eps) / 2
SLACK = 1.001  # for the rounding errors of the bounds, which are sums of positive numbers
LEAST = 280  # 10 to the power of minus this is far from underflow
# from the coarsest to the finest; pyarrow has names of its own
PRECISIONS = {
    "float16": ("float16", "halffloat[pyarrow]"),
    "float32": ("float32", "float[pyarrow]"),
}


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
        rows = self.Q.sum(axis=1).max(initial=0.0)
        return float(min(rows, norm(self.Q))) * SLACK

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


def rounding_of(network: Network, dtype: Any, absolute: AffineMap, share: float) -> Rounding:
    """The rounding errors of a network that folds to one layer, evaluated in the given dtype."""
    (layer,), (error,) = absolute_layers(network, dtype), shares(network, dtype)
    return Rounding(Majorant.of(layer, error), absolute, share)


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
        enlarged = type(layer).of(**arrays)
        layers.append(enlarged.shifted(np.full(layer.n_inputs, least * (widest + 1) ** 2)))
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


# ----------------------------------------------------------------- steps of a pipeline


def coarsest(dtypes: Iterator[Any] | Sequence[Any]) -> np.dtype[Any]:
    """The least precise of the floating-point dtypes; float64 if there is none below it."""
    names = {str(dtype).lower().removeprefix("torch.") for dtype in dtypes}
    for name, spellings in PRECISIONS.items():
        if names & set(spellings):
            return np.dtype(name)
    return np.dtype(np.float64)


def precision_of(X: Any) -> np.dtype[Any]:
    """The least precise floating-point dtype of the columns of X."""
    if hasattr(X, "dtypes"):  # a table
        return coarsest(list(X.dtypes))
    return coarsest([X.dtype if hasattr(X, "dtype") else np.asarray(X).dtype])


def precision_after(step: Any, before: np.dtype[Any]) -> np.dtype[Any]:
    """The precision in which a fitted step computes, given that of its input."""
    return coarsest([before, *_dtypes(step)])


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
