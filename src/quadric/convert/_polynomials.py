"""Conversions from and to PolynomialFeatures(2) with LogisticRegression."""

from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.convert._layers import layer_to_quadratic
from quadric.core._layers import Quadratic
from quadric.geometry import Quadric
from quadric.network import Network


def from_polynomial_logistic(pipeline: Any) -> Network:
    """Convert a fitted pipeline of PolynomialFeatures and LogisticRegression to a network.

    Scalers before and after the polynomial features become part of the neurons.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        A fitted pipeline: optional scalers, PolynomialFeatures of degree 2 or less, optional
        scalers, LogisticRegression.

    Returns
    -------
    Network
        A network of one quadratic layer. For two classes it has one logistic output, the
        probability of the second class; for more classes it has softmax outputs.
    """
    from quadric.pipelines._affine import NotAffineError, undo_steps

    skipped = (None, "passthrough")
    steps = [step for _, step in getattr(pipeline, "steps", []) if step not in skipped]
    places = [i for i, step in enumerate(steps) if hasattr(step, "powers_")]
    if len(places) != 1 or not hasattr(steps[-1], "coef_"):
        raise TypeError(
            "pipeline must be a fitted Pipeline with one PolynomialFeatures and a "
            f"LogisticRegression at its end. Got {pipeline!r}."
        )
    (place,) = places
    before, polynomial, after, last = steps[:place], steps[place], steps[place + 1 : -1], steps[-1]
    if type(last).__name__ not in ("LogisticRegression", "LogisticRegressionCV"):
        raise TypeError(f"the last step must be a LogisticRegression. Got {last!r}.")
    powers = np.asarray(polynomial.powers_)
    if powers.sum(axis=1).max(initial=0) > 2:
        raise ValueError(
            "PolynomialFeatures must have degree 2 or less, because a quadratic neuron has no "
            f"higher powers. Got degree {polynomial.degree}."
        )
    coefficients = np.asarray(last.coef_, dtype=np.float64)
    intercepts = np.broadcast_to(np.asarray(last.intercept_, float), len(coefficients))
    try:
        # a scaler of the monomials scales their coefficients
        planes = [
            undo_steps(Quadric(np.zeros((len(c), len(c))), c, b), after)
            for c, b in zip(coefficients, intercepts, strict=True)
        ]
        quadrics = [undo_steps(_quadric(plane.w, plane.b, powers), before) for plane in planes]
    except NotAffineError as error:
        raise TypeError(f"cannot convert the pipeline: {error}") from None
    layer = Quadratic(
        np.array([q.w for q in quadrics]),
        np.array([q.b for q in quadrics]),
        np.array([q.Q for q in quadrics]),
    )
    return Network([layer], ["logistic" if len(quadrics) == 1 else "softmax"])


def _quadric(coefficients: Array, b: float, powers: Array) -> Quadric:
    """The quadratic function with these coefficients of these monomials."""
    n = powers.shape[1]
    # each monomial is the product of two factors x_i, where x_n = 1 fills up lower degrees
    padded = np.column_stack([powers, 2 - powers.sum(axis=1)])
    factors = np.repeat(np.tile(np.arange(n + 1), len(powers)), padded.ravel()).reshape(-1, 2)
    H = np.zeros((n + 1, n + 1))
    np.add.at(H, (factors[:, 0], factors[:, 1]), coefficients)
    return Quadric(H[:n, :n], H[:n, n], b + H[n, n])


def to_polynomial_logistic(model: Any) -> Any:
    """Convert a network of one layer to PolynomialFeatures and LogisticRegression.

    Parameters
    ----------
    model : Network or fitted classifier
        A model with one layer of any kind, and one logistic output or softmax.

    Returns
    -------
    sklearn.pipeline.Pipeline
        A fitted pipeline with the same `predict_proba`. Its classes are those of the model, or
        0, 1, ... for a network.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    network = getattr(model, "network_", model)
    if not isinstance(network, Network):
        raise TypeError(f"model must be a Network or a fitted classifier. Got {model!r}.")
    outputs, last = network.n_outputs, network.activations[-1]
    if len(network.layers) != 1 or (last, outputs > 1) not in (
        ("logistic", False),
        ("softmax", True),
    ):
        raise ValueError(
            "model must have one layer, with a single logistic output or softmax over several. "
            f"Got {network!r}."
        )
    layer = layer_to_quadratic(network.astype("float64").layers[0])
    n = network.n_inputs
    rows, columns = np.triu_indices(n)
    classes = getattr(model, "classes_", np.arange(max(outputs, 2)))
    # fit only records the number of columns; the coefficients are set below
    features = PolynomialFeatures(2, include_bias=False).fit(np.zeros((1, n)))
    logistic = LogisticRegression()
    factor = np.where(rows == columns, 1.0, 2.0)
    logistic.classes_ = np.asarray(classes)
    logistic.coef_ = np.hstack([layer.W, layer.Q[:, rows, columns] * factor])
    logistic.intercept_ = layer.b.copy()
    logistic.n_features_in_ = logistic.coef_.shape[1]
    logistic.n_iter_ = np.zeros(1, dtype=np.int32)
    return make_pipeline(features, logistic)
