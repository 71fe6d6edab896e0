"""Small networks, data for each loss, conversion to the dicts of the reference, and differences."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
from hypothesis import strategies as st

from quadric import Network, QuadraticClassifier
from quadric.reference import gradients_qnn, gradients_rpqnn, train_qnn, train_rpqnn

KINDS = ("linear", "quadratic", "reduced")
HIDDEN = ("identity", "logistic", "tanh", "relu")
# every valid pair of a loss and a last activation
ENDS = (
    ("binary_cross_entropy", "logistic"),
    ("cross_entropy", "softmax"),
    ("squared_error", "identity"),
    ("squared_error", "logistic"),
    ("squared_error", "tanh"),
    ("squared_error", "relu"),
    ("poisson", "exponential"),
)


def targets(loss, n_samples, m, rng):
    """Return targets in the domain of the loss."""
    if loss == "cross_entropy":
        return np.eye(m)[rng.integers(0, m, n_samples)]
    if loss == "binary_cross_entropy":
        return rng.integers(0, 2, (n_samples, m)).astype(float)
    if loss == "poisson":
        return rng.poisson(1.0, (n_samples, m)).astype(float)
    return rng.normal(size=(n_samples, m))


def make_network(kinds, hidden, last, *, n=3, widths=(4, 2), seed=0, dtype="float64"):
    """Return a network with random parameters and biases, so that no relu is at its kink."""
    activations = [hidden] * (len(kinds) - 1) + [last]
    return Network.create(
        n,
        list(zip(kinds, widths, activations, strict=True)),
        init="normal",
        scale=0.3,
        rng=seed,
        dtype=dtype,
    )


def max_difference(a, b):
    """Return the largest difference between the parameters of two networks."""
    return max(
        float(np.abs(p - q).max())
        for left, right in zip(a.layers, b.layers, strict=True)
        for p, q in zip(left.arrays().values(), right.arrays().values(), strict=True)
    )


def as_dicts(net):
    """Return the layers in the form that the reference takes."""
    return [
        {
            "Q" if name == "packed" else name: layer.Q.copy() if name == "packed" else array.copy()
            for name, array in layer.arrays().items()
        }
        for layer in net.layers
    ]


def has_reference(kinds):
    """Return whether Algorithm 1 (linear, quadratic) or 2 (linear, reduced) covers the kinds."""
    return not {"quadratic", "reduced"} <= set(kinds)


def reference_gradients(net, X, Y, loss):
    """Return the mean loss and gradients over the samples, from the paper's algorithms."""
    kinds = [layer.kind for layer in net.layers]
    one = gradients_rpqnn if "reduced" in kinds else gradients_qnn
    pairs = [one(as_dicts(net), net.activations, x, y, loss) for x, y in zip(X, Y, strict=True)]
    values, gradients = zip(*pairs, strict=True)
    mean = [
        {name: np.mean([layer[name] for layer in layers], axis=0) for name in layers[0]}
        for layers in zip(*gradients, strict=True)
    ]
    return float(np.mean(values)), mean


def reference_training(net, X, Y, loss, eta, **options):
    """Return a copy of the network with the parameters after training by the reference."""
    kinds = [layer.kind for layer in net.layers]
    train = train_rpqnn if "reduced" in kinds else train_qnn
    trained = train(X, Y, as_dicts(net), eta, activations=net.activations, loss=loss, **options)
    result = net.copy()
    for layer, arrays in zip(result.layers, trained, strict=True):
        for name, array in arrays.items():
            setattr(layer, name, array)
    return result


def stacks(depth):
    """Return every sequence of layer kinds of this length."""
    return list(itertools.product(KINDS, repeat=depth))


# ---- networks that can be folded ---------------------------------------------------------


SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.integers(1, 5)
LINEAR = st.lists(st.tuples(st.just("linear"), WIDTHS), max_size=3)
CURVED = st.tuples(st.sampled_from(["quadratic", "reduced"]), st.integers(1, 6))
LAST = st.sampled_from(["softmax", "logistic", "identity"])


def largest_error(found, wanted):
    """The largest difference, relative to the largest logit."""
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def create(n, stack, last, seed):
    """A network without activations before the last layer, with weights and biases of size 0.7."""
    activations = ["identity"] * (len(stack) - 1) + [last]
    layers = [(*layer, name) for layer, name in zip(stack, activations, strict=True)]
    return Network.create(n, layers, init="normal", scale=0.7, rng=seed)


# ---- central differences -----------------------------------------------------------------


EPSILON = 1e-6


def difference(function, array, *, symmetric=False):
    """Return central differences of function() for the entries of `array`, changed in place."""
    result = np.empty_like(array)
    for index in np.ndindex(array.shape):
        places = {index}
        if symmetric:
            places.add((*index[:-2], index[-1], index[-2]))
        value, sides = array[index], []
        for moved in (value + EPSILON, value - EPSILON):
            for place in places:
                array[place] = moved
            sides.append(function())
        for place in places:
            array[place] = value
        result[index] = (sides[0] - sides[1]) / (2 * EPSILON)
    return result


# ---- the loops that most tests use --------------------------------------------------------

DTYPES = ("float64", "float32")


def compile_loops(dtype):
    """Compile them before any test."""
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(dtype)
    y = np.arange(40) % 2
    per_sample = {"solver": "sgd", "batch_size": 1, "momentum": 0}
    with warnings.catch_warnings(action="ignore"):  # too few iterations
        for options in ({"solver": "adam"}, per_sample):
            QuadraticClassifier((3,), max_iter=2, **options).fit(X, y).predict(X)
