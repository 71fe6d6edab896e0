"""PolynomialFeatures(2) + LogisticRegression is one layer of quadratic neurons."""

from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.convert._layers import layer_to_quadratic
from quadric.core._layers import Quadratic
from quadric.geometry import Quadric
from quadric.network import Network


def from_polynomial_logistic(pipeline: Any) -> Network:
    """A fitted pipeline of PolynomialFeatures and LogisticRegression as a network.

    One quadratic layer: a logistic neuron for two classes, softmax for more, the outputs being
    the probabilities of `predict_proba` (of the second class, where there are two). A scaler may
    stand before the polynomial features, after them, or both; it becomes part of the neurons.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        [scaler,] PolynomialFeatures of degree up to 2, [scaler,] LogisticRegression; fitted.
    """
    from quadric.pipelines._affine import NotAffineError, undo_steps

    steps = [
        step for _, step in getattr(pipeline, "steps", [])
        if step is not None and not isinstance(step, str)  # 'passthrough'
    ]  # fmt: skip
    places = [i for i, step in enumerate(steps) if hasattr(step, "powers_")]
    if len(places) != 1 or not hasattr(steps[-1], "coef_"):
        raise TypeError(
            "pipeline must be a fitted Pipeline with one PolynomialFeatures and a "
            f"LogisticRegression at its end. Got {pipeline!r}."
        )
    before, polynomial, after, last = (
        steps[: places[0]], steps[places[0]], steps[places[0] + 1 : -1], steps[-1]
    )  # fmt: skip
    if type(last).__name__ not in ("LogisticRegression", "LogisticRegressionCV"):
        raise TypeError(f"the last step must be a LogisticRegression. Got {last!r}.")
    powers = np.asarray(polynomial.powers_)
    if powers.sum(axis=1).max(initial=0) > 2:
        raise ValueError(
            "PolynomialFeatures must have degree 2 or less: a quadratic neuron has no higher "
            f"powers. Got degree {polynomial.degree}."
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
    Q, w = np.zeros((n, n)), np.zeros(n)
    degrees = powers.sum(axis=1)
    for coefficient, power, degree in zip(coefficients, powers, degrees, strict=True):
        where = np.flatnonzero(power)
        if degree == 0:
            b += coefficient
        elif degree == 1:
            w[where[0]] += coefficient
        elif len(where) == 1:
            Q[where[0], where[0]] += coefficient
        else:
            Q[where[0], where[1]] += coefficient / 2
            Q[where[1], where[0]] += coefficient / 2
    return Quadric(Q, w, b)


def to_polynomial_logistic(model: Any) -> Any:
    """A network of one layer as a fitted pipeline of PolynomialFeatures and LogisticRegression.

    Parameters
    ----------
    model : Network or fitted classifier
        One layer of any kind, with one logistic output or softmax.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline
        With the same `predict_proba`; the classes are the model's, or 0, 1, ... for a network.
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
    # fitted on nothing but the number of columns and the classes; then the coefficients are set
    features = PolynomialFeatures(2, include_bias=False).fit(np.zeros((1, n)))
    logistic = LogisticRegression()
    factor = np.where(rows == columns, 1.0, 2.0)
    logistic.classes_ = np.asarray(classes)
    logistic.coef_ = np.hstack([layer.W, layer.Q[:, rows, columns] * factor])
    logistic.intercept_ = layer.b.copy()
    logistic.n_features_in_ = logistic.coef_.shape[1]
    logistic.n_iter_ = np.zeros(1, dtype=np.int32)
    return make_pipeline(features, logistic)
