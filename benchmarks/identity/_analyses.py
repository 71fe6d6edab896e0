"""Certificates, explanations, conversions, surfaces and the paper's algorithms."""

from itertools import product
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchmarks.identity._hashes import Results, outcome
from benchmarks.identity._training import FRAME, IRIS, SCALED, SPECIES, explained
from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    certify,
    convert,
    datasets,
    explain,
    reference,
    separate,
)
from quadric.geometry import Quadric

BILINEAR = [("linear", 4, "identity"), ("reduced", 6, "identity"), ("linear", 3, "softmax")]
CLASSIFIERS: dict[str, Any] = {
    "softmax": make_pipeline(StandardScaler(), QuadraticLogisticRegression()),
    "one per class": QuadraticLogisticRegression(loss="one-vs-rest"),
    "float32": QuadraticClassifier((), dtype="float32", alpha=0.1, random_state=0),
    "hidden": make_pipeline(StandardScaler(), QuadraticClassifier((4,), alpha=1, random_state=0)),
    "reduced": QuadraticClassifier((), layer_kinds="reduced", alpha=0.1, random_state=0),
    "network": Network.create(4, [("quadratic", 3, "softmax")], rng=1),
    "bilinear": Network.create(4, BILINEAR, rng=2),
    "named": make_pipeline(StandardScaler(), QuadraticLogisticRegression(C=10)),
}


def classifiers() -> dict[str, tuple[Any, Any]]:
    """Return classifiers of irises, and the inputs that they accept."""
    found = {}
    for name, model in CLASSIFIERS.items():
        X = FRAME if name == "named" else IRIS
        if isinstance(model, Network):
            model = model.copy()
            model.fit(X, np.eye(3)[SPECIES], solver="lbfgs", epochs=30, l2=0.01)
        else:
            model.fit(X, SPECIES)
        found[name] = (model, X)
    qda = QuadraticDiscriminantAnalysis().fit(IRIS, SPECIES)
    return {**found, "qda": (convert.from_qda(qda), IRIS)}


RADII: dict[str, dict[str, Any]] = {
    "radius": {},
    "radius scaled": {"units": "scaled"},
    "radius fixed": {"fixed": [0, 2]},
}
COUNTERFACTUALS: dict[str, dict[str, Any]] = {
    "nearest": {},
    "given class": {"to": 0},
    "fixed": {"fixed": [1]},
    "weights": {"weights": [1, 2, 3, 4]},
    "bounds": {"bounds": {0: (4, 7), 2: (1, None)}},
    "integers": {"integers": [2]},
    "scaled": {"units": "scaled"},
}


def certificates() -> Results:
    for name, (model, X) in classifiers().items():
        for kind, options in RADII.items():
            yield f"{name}/{kind}", outcome(certify.radius, model, X[50:110:2], **options)
        radii = certify.radius(model, X)
        yield f"{name}/accuracy", radii.certified_accuracy(SPECIES, [0, 0.1, 1])
        for kind, options in COUNTERFACTUALS.items():
            found = outcome(certify.counterfactual, model, X[70:71], **options)
            yield f"{name}/counterfactual {kind}", found


EXPLANATIONS: dict[str, dict[str, Any]] = {
    "top": {"top": 3},
    "all": {"top": None, "precision": 6},
    "names": {"names": list("abcd"), "target": "kind"},
    "first layer": {"layer": 0},
}
SPECTRA: dict[str, dict[str, Any]] = {
    "spectrum": {},
    "spectrum between": {"between": (0, 1)},
    "spectrum not centered": {"centered": False},
    "spectrum scaled": {"units": "scaled"},
}


def explanations() -> Results:
    """Explain and truncate classifiers."""
    for name, (model, X) in classifiers().items():
        yield f"{name}/explain", outcome(explained, model, X)
        for kind, options in EXPLANATIONS.items():
            yield f"{name}/explain {kind}", outcome(explain.explain, model, **options)
        for kind, options in SPECTRA.items():
            yield f"{name}/{kind}", outcome(explain.spectrum, model, **options)
        yield f"{name}/quadrics", outcome(explain.quadrics, model)
        yield f"{name}/boundary", outcome(explain.boundary, model, 0, 2)
        yield f"{name}/similarity", outcome(explain.similarity, model)
        for inputs in ([0], [2, 3]):
            found = outcome(explain.dependence, model, X, inputs, size=7)
            yield f"{name}/dependence {inputs}", found
        shuffled = outcome(explain.permutation_importances, model, X, SPECIES, repeats=2)
        yield f"{name}/permutation", shuffled
        yield f"{name}/fold", outcome(convert.fold, model)
        for rank in (1, [1, 2, 3]):
            yield f"{name}/truncate {rank}", outcome(convert.truncate, model, rank)
        tolerance = outcome(convert.truncate, model, tolerance=0.02, X=X, y=SPECIES)
        yield f"{name}/truncate tolerance", tolerance
        scores = outcome(convert.truncation_scores, model, X, SPECIES)
        yield f"{name}/truncation scores", scores
        yield f"{name}/polynomial", outcome(polynomial_scores, model, X)


def polynomial_scores(model: Any, X: Any) -> Any:
    return convert.to_polynomial_logistic(model).decision_function(X)


def conversions() -> Results:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        net = Network.create(4, BILINEAR, rng=seed, dtype=("float64", "float32")[seed % 2])
        one = Network.create(4, [("quadratic", 3, "softmax")], rng=seed)
        residual = Network.create(4, [("reduced", 4, "identity")], rng=seed)
        W, V, out = rng.normal(size=(6, 4)), rng.normal(size=(6, 4)), rng.normal(size=(4, 6))
        X, y = datasets.clusters(30, rng=seed)
        spreads = [np.eye(2) * (k + 1) for k in range(3)]
        separation = separate(X, y)
        yield f"fold/{seed}", convert.fold(net)
        yield f"to_quadratic/{seed}", outcome(convert.to_quadratic, net)
        yield f"to_reduced/{seed}", outcome(convert.to_reduced, one)
        yield f"to_classifier/{seed}", convert.to_classifier(one, ["a", "b", "c"])
        yield f"add_residual/{seed}", convert.add_residual(residual.layers[0])
        yield f"fold_bilinear/{seed}", convert.fold_bilinear(W, V, out, residual=seed > 1)
        yield f"from_gaussians/{seed}", convert.from_gaussians(W[:3, :2], spreads, [0.2, 0.3, 0.5])
        yield f"separate/{seed}", [separation, separation.predict(X)]
        yield f"from_ellipsoids/{seed}", convert.from_ellipsoids(separation.ellipsoids, 2.0)
        overlapping = outcome(convert.separating_quadric, X[:60] * [seed, 1], y[:60])
        yield f"separating_quadric/{seed}", overlapping
        yield f"clusters/{seed}", [X, y]
    powers = PolynomialFeatures(2, include_bias=False)
    model = make_pipeline(powers, LogisticRegression()).fit(SCALED, SPECIES)
    yield "from_polynomial_logistic", convert.from_polynomial_logistic(model)
    yield "xor", datasets.xor()
    yield "digits", datasets.digits()


def surfaces() -> Results:
    """Quadrics of many kinds: of full rank, with flat directions, planes, empty sets."""
    for dims, rank, seed in product((2, 3, 5), (0, 1, 2, 5), range(4)):
        rng = np.random.default_rng([seed, dims, rank])
        A, X = rng.normal(size=(dims, rank)), rng.normal(size=(6, dims)) * 3
        signs = rng.choice([-1, 1], rank)
        surface = Quadric(A * signs @ A.T, rng.normal(size=dims), rng.normal())
        name = f"{dims} dimensions, rank {rank}/{seed}"
        axes = outcome(lambda surface=surface: surface.axes)
        text = [repr(surface), surface.equation(list("abcde")[:dims])]
        yield f"{name}/shape", [surface, surface.signature, surface.center, axes, text]
        nearest = [outcome(surface.nearest, X), outcome(surface.distance, X)]
        yield f"{name}/points", [surface.value(X), surface.gradient(X), nearest]
        cut = [outcome(surface.slice, [0, 1], X[0]), outcome(surface.project, [0])]
        yield f"{name}/cuts", [cut, outcome(surface.encloses, X)]


def references() -> Results:
    """The paper's algorithms."""
    outputs = {"binary_cross_entropy": "logistic", "squared_error": "identity"}
    for (loss, last), seed in product(outputs.items(), range(3)):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(20, 3)), rng.integers(0, 2, (20, 2)).astype(float)
        hidden = {"W": rng.normal(size=(4, 3)), "b": rng.normal(size=4)}
        output = {"W": rng.normal(size=(2, 4)), "b": rng.normal(size=2)}
        Q = rng.normal(size=(2, 4, 4))
        Q += Q.transpose(0, 2, 1)
        reduced = {"U": rng.normal(size=(2, 4)), "c": rng.normal(size=2)}
        layers = {
            "qnn": [{**hidden, "Q": np.zeros((4, 3, 3))}, {**output, "Q": Q}],
            "rpqnn": [{**hidden, "U": np.zeros((4, 3)), "c": np.ones(4)}, {**output, **reduced}],
        }
        for kind, stack in layers.items():
            options = {"activations": ["tanh", last], "loss": loss, "l2": 0.01, "epochs": 2}
            train = getattr(reference, f"train_{kind}")
            yield f"train_{kind}/{loss}/{seed}", outcome(train, X, Y, stack, 0.01, **options)
            gradients = getattr(reference, f"gradients_{kind}")
            found = outcome(gradients, stack, ["tanh", last], X[0], Y[0], loss)
            yield f"gradients_{kind}/{loss}/{seed}", found
        trained = reference.train_logistic(X, Y[:, 0], Q[0, :3, :3], X[0], 0.1, 0.01, epochs=2)
        yield f"train_logistic/{loss}/{seed}", trained
