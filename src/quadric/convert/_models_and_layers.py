"""Gaussian classes, ellipsoids and polynomials as one layer; conversion of kinds of neurons."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from quadric.checks import FLOAT64, Array, as_numbers, check_number, unmasked
from quadric.convert._fold import fold_view
from quadric.core import LAYERS, Layer, Quadratic, Reduced
from quadric.estimators import QuadraticLogisticRegression
from quadric.geometry import Quadric
from quadric.models import (
    ModelView,
    NotAffineError,
    classes_of,
    layer_to_quadratic,
    split,
    steps_of,
    undo_steps,
)
from quadric.network import Network

# ---- other models ------------------------------------------------------------------------


def from_qda(qda: Any) -> Network:
    """Convert a fitted QuadraticDiscriminantAnalysis to a network.

    The network has one quadratic layer with softmax, and can be trained further. The coefficients
    of the neurons refer to the origin. If the points are far from the origin relative to their
    spread, center them first; otherwise, precision is lost.

    Parameters
    ----------
    qda : sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis or Pipeline
        A fitted model, or a fitted pipeline that ends with one. The steps of a pipeline must be
        affine, such as scalers and PCA. They become part of the neurons; see `fold`.

    Returns
    -------
    Network
        A network whose outputs equal `qda.predict_proba`, in the order of `qda.classes_`. A network
        has no labels; ``to_classifier(network, qda.classes_)`` adds them.
    """
    named_steps, last = split(qda)
    if not isinstance(last, QuadraticDiscriminantAnalysis) or not hasattr(last, "rotations_"):
        place = "" if last is qda else "a Pipeline that ends with "
        hint = "; call fit first" if isinstance(last, QuadraticDiscriminantAnalysis) else ""
        raise TypeError(
            "qda must be a fitted sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis, or "
            f"a Pipeline that ends with one. Got {place}{type(last).__name__}{hint}."
        )
    network = _network_of_qda(last)
    try:
        return fold_view(ModelView(qda, named_steps, last, network)) if named_steps else network
    except NotAffineError as error:
        raise TypeError(f"cannot convert the pipeline: {error}.") from None


def _network_of_qda(qda: QuadraticDiscriminantAnalysis) -> Network:
    priors = np.asarray(qda.priors_, dtype=FLOAT64)
    if not (priors > 0).all():
        raise ValueError(
            "the priors of qda must be positive, because a class that never occurs has no neuron. "
            f"Got {priors.tolist()}; remove such classes."
        )
    covariances = zip(qda.rotations_, qda.scalings_, strict=True)  # R diag(S) R' for each class
    return _network(
        np.asarray(qda.means_, dtype=FLOAT64),
        np.array([(R / S) @ R.T for R, S in covariances]),
        np.array([float(np.log(S).sum()) for S in qda.scalings_]),
        priors,
    )


def from_gaussians(means: Any, covariances: Any, priors: Any = None) -> Network:
    """Convert Gaussian class densities to a network that is their Bayes classifier.

    The network has one quadratic layer with softmax.

    Parameters
    ----------
    means : array of shape (n_classes, n)
        Mean of each class.
    covariances : array of shape (n_classes, n, n)
        Covariance of each class, symmetric and positive definite.
    priors : array of shape (n_classes,), optional
        Positive prior probabilities, which are scaled to sum to 1. By default, all priors are
        equal.

    Returns
    -------
    Network
        A network whose outputs are the posterior probabilities of the classes.
    """
    means = as_numbers("means", means, FLOAT64)
    covariances = as_numbers("covariances", covariances, FLOAT64)
    if means.ndim != 2 or covariances.shape != (*means.shape, means.shape[-1]) or not means.size:
        raise ValueError(
            "means must have shape (n_classes, n) and covariances (n_classes, n, n). "
            f"Got {means.shape} and {covariances.shape} instead."
        )
    C = len(means)
    priors = np.full(C, 1 / C) if priors is None else as_numbers("priors", priors, FLOAT64)
    if priors.shape != (C,) or not (priors > 0).all():
        raise ValueError(f"priors must be {C} positive numbers. Got {priors} instead.")
    factors = np.array([_cholesky(f"covariances[{k}]", S) for k, S in enumerate(covariances)])
    inverses = np.linalg.inv(factors)
    return _network(
        means,
        inverses.transpose(0, 2, 1) @ inverses,
        2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1),
        priors / priors.sum(),
    )


def _cholesky(name: str, matrix: Array) -> Array:
    """The Cholesky factor, or ValueError if the matrix is not symmetric positive definite."""
    if np.abs(matrix - matrix.T).max() > 1e-8 * np.abs(matrix).max():
        raise ValueError(f"{name} must be symmetric. Got a matrix that is not.")
    try:
        return np.linalg.cholesky((matrix + matrix.T) / 2)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} must be positive definite. Got a matrix that is not; add a small multiple of "
            "the identity to it."
        ) from None


def _network(means: Array, precisions: Array, log_determinants: Array, priors: Array) -> Network:
    """z_k = log prior_k - (log det + (x - mean)' precision (x - mean)) / 2."""
    Pm = np.einsum("kij,kj->ki", precisions, means)
    b = np.log(priors) - (log_determinants + (Pm * means).sum(axis=1)) / 2
    return Network([Quadratic(Pm, b, -precisions / 2)], ["softmax"])


def from_ellipsoids(ellipsoids: Sequence[Quadric], sharpness: float = 1.0) -> Network:
    """Convert ellipsoids to a network with one logistic neuron per ellipsoid.

    The output of a neuron is above 1/2 inside its ellipsoid and nowhere else. Its pre-activation is
    ``z = sharpness (1 - r²)``, where r is 0 at the center and 1 on the surface.

    Parameters
    ----------
    ellipsoids : sequence of Quadric
        Ellipsoids of the same dimension.
    sharpness : float
        Value of z at the center, which determines how steeply z falls toward the surface.

    Returns
    -------
    Network
        A network with one quadratic layer.
    """
    sharpness = check_number("sharpness", sharpness, above=0)
    ellipsoids = list(ellipsoids)
    if not ellipsoids:
        raise ValueError("ellipsoids must contain at least one ellipsoid. Got none.")
    parts = []
    for k, quadric in enumerate(ellipsoids):
        if not isinstance(quadric, Quadric) or not quadric.is_ellipsoid:
            kind = quadric.kind if isinstance(quadric, Quadric) else type(quadric).__name__
            raise ValueError(f"ellipsoids[{k}] must be an ellipsoid. Got {kind} instead.")
        center = quadric.center
        assert center is not None
        factor = sharpness / quadric.value(center)
        rounded = center @ quadric.Q @ center + quadric.w @ center + quadric.b
        if abs(factor * rounded - sharpness) > 0.01 * sharpness:
            raise ValueError(
                f"ellipsoids[{k}] is so far from the origin, relative to its size, that float64 "
                "cannot represent the coefficients of its neuron. Shift the coordinates first."
            )
        parts.append((factor * quadric.w, factor * quadric.b, factor * quadric.Q))
    if len({quadric.n_dims for quadric in ellipsoids}) > 1:
        raise ValueError("ellipsoids must all have the same dimension.")
    return Network([Quadratic(*map(np.array, zip(*parts, strict=True)))], ["logistic"])


def from_polynomial_logistic(pipeline: Any) -> Network:
    """Convert a fitted pipeline of PolynomialFeatures and LogisticRegression to a network.

    Scalers before and after the polynomial features become part of the neurons.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        A fitted pipeline: optional scalers, PolynomialFeatures of degree 2 or less, optional
        scalers, LogisticRegression. For more than two classes, it must be multinomial, not one
        versus the rest.

    Returns
    -------
    Network
        A network with one quadratic layer. For two classes, it has one logistic output, the
        probability of the second class. For more classes, it has softmax outputs.
    """
    steps = steps_of(pipeline)
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
    factor = _logit_factor(last)
    coefficients = factor * np.asarray(last.coef_, dtype=np.float64)
    intercepts = np.broadcast_to(factor * np.asarray(last.intercept_, float), len(coefficients))
    try:
        # a scaler of the monomials scales their coefficients
        planes = [
            undo_steps(Quadric(np.zeros((len(c), len(c))), c, b), after)
            for c, b in zip(coefficients, intercepts, strict=True)
        ]
        quadrics = [undo_steps(_quadric(plane.w, plane.b, powers), before) for plane in planes]
    except NotAffineError as error:
        raise TypeError(f"cannot convert the pipeline: {error}") from None
    parts = zip(*[(q.w, q.b, q.Q) for q in quadrics], strict=True)
    return Network(
        [Quadratic(*map(np.array, parts))], ["logistic" if len(quadrics) == 1 else "softmax"]
    )


def _logit_factor(logistic: Any) -> float:
    """The factor between the decision function and the logits of a logistic or softmax output.

    Older versions of scikit-learn have the parameter `multi_class`.
    """
    given, solver = getattr(logistic, "multi_class", "auto"), logistic.solver
    if len(classes_of(logistic)) == 2:
        return 2.0 if given == "multinomial" else 1.0  # softmax([-z, z]) is logistic(2 z)
    if given == "ovr" or (given != "multinomial" and solver == "liblinear"):
        raise ValueError(
            "the LogisticRegression must be multinomial, because the probabilities of one class "
            f"versus the rest are not a softmax. Got multi_class={given!r} and solver={solver!r}; "
            "fit it with solver='lbfgs' and without multi_class."
        )
    return 1.0


def _quadric(coefficients: Array, b: float, powers: Array) -> Quadric:
    """The quadratic function with these coefficients for these monomials."""
    n = powers.shape[1]
    # each monomial is the product of two factors x_i, where x_n = 1 pads monomials of lower degree
    padded = np.column_stack([powers, 2 - powers.sum(axis=1)])
    factors = np.repeat(np.tile(np.arange(n + 1), len(powers)), padded.ravel()).reshape(-1, 2)
    H = np.zeros((n + 1, n + 1))
    np.add.at(H, (factors[:, 0], factors[:, 1]), coefficients)
    return Quadric(H[:n, :n], H[:n, n], b + H[n, n])


def to_polynomial_logistic(model: Any) -> Any:
    """Convert a network with one layer to PolynomialFeatures and LogisticRegression.

    Parameters
    ----------
    model : Network or fitted classifier
        A model with one layer of any kind, and either one logistic output or softmax outputs.

    Returns
    -------
    sklearn.pipeline.Pipeline
        A fitted pipeline with the same `predict_proba`. Its classes are those of the model, or
        0, 1, ... for a network.
    """
    network = getattr(model, "network_", model)
    if not isinstance(network, Network):
        raise TypeError(f"model must be a Network or a fitted classifier. Got {model!r}.")
    _check_chooses_a_class("model", network)
    layer = layer_to_quadratic(network.astype("float64").layers[0])
    n, outputs = network.n_inputs, network.n_outputs
    rows, columns = np.triu_indices(n)
    classes = classes_of(model)
    # fit only records the number of columns; the coefficients are set below
    features = PolynomialFeatures(2, include_bias=False).fit(np.zeros((1, n)))
    logistic = LogisticRegression()
    squares = layer.Q[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)
    coefficients = np.hstack([layer.W, squares])
    intercepts = layer.b.copy()
    if outputs == 2:  # a softmax of two outputs is a logistic function of their difference
        coefficients, intercepts = np.diff(coefficients, axis=0), np.diff(intercepts)
    logistic.__dict__.update(
        classes_=np.arange(max(outputs, 2)) if classes is None else np.asarray(classes),
        coef_=coefficients,
        intercept_=intercepts,
        n_features_in_=n + len(rows),
        n_iter_=np.zeros(1, dtype=np.int32),
    )
    return make_pipeline(features, logistic)


def to_classifier(network: Network, classes: Any) -> QuadraticLogisticRegression:
    """Convert a network with one layer to a fitted classifier with class labels.

    Parameters
    ----------
    network : Network
        A network with one layer of any kind, and either one logistic output or softmax outputs, for
        example a result of `from_qda`.
    classes : array of shape (n_classes,)
        The label of each output, or two labels for a single output, in increasing order.

    Returns
    -------
    QuadraticLogisticRegression
        A fitted classifier that predicts labels. It can be explained, certified and saved.

    Examples
    --------
    >>> network = from_gaussians([[0.0], [4.0]], [[[1.0]], [[1.0]]])
    >>> to_classifier(network, ["left", "right"]).predict([[1.0], [3.0]]).tolist()
    ['left', 'right']
    """
    if not isinstance(network, Network):
        raise TypeError(f"network must be a Network. Got {network!r}.")
    _check_chooses_a_class("network", network)
    labels, count = np.asarray(unmasked("classes", classes)), max(2, network.n_outputs)
    if not np.array_equal(labels, np.unique(labels)) or labels.shape != (count,):
        raise ValueError(
            f"classes must be {count} different labels in increasing order, one for each class of "
            f"the network. Got {labels.tolist()}."
        )
    classifier = QuadraticLogisticRegression()
    classifier.__dict__.update(
        network_=Network([layer_to_quadratic(network.layers[0])], network.activations),
        classes_=labels,
        n_features_in_=network.n_inputs,
        n_iter_=np.zeros(1, dtype=np.int32),
    )
    return classifier


def _check_chooses_a_class(name: str, network: Network) -> None:
    kinds = (("logistic", False), ("softmax", True))
    if len(network.layers) != 1 or (network.activations[-1], network.n_outputs > 1) not in kinds:
        raise ValueError(
            f"{name} must have one layer, with a single logistic output or softmax over several. "
            f"Got {network!r}."
        )


# ---- kinds of neurons --------------------------------------------------------------------


Model = TypeVar("Model", Network, Layer)


@dataclass(frozen=True)
class Reduction:
    """A model of reduced neurons, and its distance from the original model.

    Parameters
    ----------
    model : Network or Reduced
        The converted model.
    error : array of shape (n_neurons,)
        For each neuron, the Frobenius norm of the change in the matrix [[Q, w/2], [w'/2, b]]. It is
        zero if the neuron was a product of two affine functions.
    relative_error : array of shape (n_neurons,)
        The error divided by the norm of the original matrix.
    """

    model: Any
    error: Array
    relative_error: Array


def to_quadratic(model: Model, layer: int | None = None) -> Model:
    """Convert a model to quadratic neurons that compute exactly the same function.

    A linear neuron gets Q = 0. A reduced neuron, (w'x + b)(u'x + c), gets Q = (wu' + uw')/2, the
    weights cw + bu and the bias bc. The converted model can be trained further.

    Parameters
    ----------
    model : Network or Layer
        The model.
    layer : int, optional
        Index of the layer of a network to convert. By default, all layers are converted.

    Returns
    -------
    Network or Quadratic
        A copy with quadratic neurons.
    """
    if isinstance(model, Layer):
        return layer_to_quadratic(model)
    _check_network(model)
    chosen = range(len(model.layers)) if layer is None else [layer_index(model, layer)]
    return _with_layers(model, {l: layer_to_quadratic(model.layers[l]) for l in chosen})


def to_reduced(model: Network | Layer, layer: int = -1) -> Reduction:
    """Convert one layer of a model to the nearest reduced neurons.

    The matrix [[Q, w/2], [w'/2, b]] of a product of two affine functions has at most one positive
    and one negative eigenvalue. Keeping the largest and the smallest eigenvalue gives the nearest
    such matrix in the Frobenius norm. Linear neurons are converted exactly.

    Parameters
    ----------
    model : Network or Layer
        The model.
    layer : int
        Index of the layer of a network to convert.

    Returns
    -------
    Reduction
        The converted model and its errors.
    """
    if isinstance(model, Layer):
        return _layer_to_reduced(model)
    _check_network(model)
    l = layer_index(model, layer)
    reduction = _layer_to_reduced(model.layers[l])
    return replace(reduction, model=_with_layers(model, {l: reduction.model}))


def _layer_to_reduced(layer: Layer) -> Reduction:
    m, n = layer.W.shape
    if not isinstance(layer, Quadratic):
        linear = Reduced(layer.W, layer.b, np.zeros_like(layer.W), np.ones(m, dtype=layer.dtype))
        exact = layer.copy() if isinstance(layer, Reduced) else linear
        return Reduction(exact, np.zeros(m), np.zeros(m))
    H = np.empty((m, n + 1, n + 1))
    H[:, :n, :n], H[:, n, n] = layer.Q, layer.b
    H[:, :n, n] = H[:, n, :n] = layer.W / 2
    eigenvalues, vectors = np.linalg.eigh(H)
    kept = np.zeros_like(eigenvalues)
    kept[:, -1], kept[:, 0] = eigenvalues[:, -1].clip(min=0), eigenvalues[:, 0].clip(max=0)
    plus = np.sqrt(kept[:, [-1]]) * vectors[:, :, -1]
    minus = np.sqrt(-kept[:, [0]]) * vectors[:, :, 0]
    # plus plus' - minus minus' is the symmetric part of (plus + minus)(plus - minus)'
    first, second = (plus + minus).astype(layer.dtype), (plus - minus).astype(layer.dtype)
    reduced = Reduced(first[:, :n], first[:, n], second[:, :n], second[:, n])
    error = np.linalg.norm(eigenvalues - kept, axis=1)
    size = np.linalg.norm(eigenvalues, axis=1)
    return Reduction(reduced, error, error / np.where(size > 0, size, 1.0))


def layer_index(network: Network, layer: int) -> int:
    """Return a valid index as a non-negative number; negative indices count from the end."""
    count = len(network.layers)
    if not isinstance(layer, (int, np.integer)) or not -count <= layer < count:
        raise ValueError(f"layer must be one of the network's {count} layers. Got {layer!r}.")
    return int(layer) % count


def _check_network(model: Any) -> None:
    if not isinstance(model, Network):
        kinds = ", ".join(kind.__name__ for kind in LAYERS.values())
        raise TypeError(
            f"model must be a Network or a layer ({kinds}). Got {type(model).__name__}; pass the "
            "network_ of an estimator."
        )


def _with_layers(network: Network, new: dict[int, Layer]) -> Network:
    layers = [new[l] if l in new else layer.copy() for l, layer in enumerate(network.layers)]
    return Network(layers, network.activations)
