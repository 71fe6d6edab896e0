"""The classifiers of the comparison, and how many numbers each of them stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC

from quadric import QuadraticClassifier, QuadraticLogisticRegression

MOST_EXPANDED = 199  # inputs; more have more than 20 000 squares and products


class Classifier(NamedTuple):
    """How to make a model, how many numbers it stores when fitted, and when and why to omit it."""

    make: Callable[[], Any]
    count: Callable[[Any], int]
    needs: str | None = None
    most_inputs: float = np.inf
    why: str = ""


def _network(model: Any) -> int:
    return model.network_.n_parameters


def _linear(model: Any) -> int:
    return model.coef_.size + model.intercept_.size


def _mlp(model: Any) -> int:
    return sum(array.size for array in (*model.coefs_, *model.intercepts_))


def _qda(model: Any) -> int:
    n = model.n_features_in_
    return model.means_.size + len(model.classes_) * n * (n + 1) // 2


def _svc(model: Any) -> int:
    return model.support_vectors_.size + model.dual_coef_.size + model.intercept_.size


def _trees(model: Any) -> int:
    """The feature and threshold of each split, and the value of each leaf."""
    nodes = (tree.nodes for group in model._predictors for tree in group)
    return sum(int(2 * (1 - n["is_leaf"]).sum() + n["is_leaf"].sum()) for n in nodes)


def _neighbors(model: Any) -> int:
    return model._fit_X.size + len(model._y)


def _boosting_machine(model: Any) -> int:
    return sum(scores.size for scores in model.term_scores_) + model.intercept_.size


def _explainable_boosting_machine() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    # With pairs of inputs, the default, a fit to the 150 rows of iris takes a minute on one core.
    return ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=0)


def _quadratic(*sizes: int, **options: Any) -> Callable[[], Any]:
    return lambda: QuadraticClassifier(sizes, random_state=0, **options)


OWN_MODELS = {
    "quadric": Classifier(lambda: QuadraticClassifier(random_state=0), _network),
    "quadric: one quadratic layer": Classifier(_quadratic(layer_kinds="quadratic"), _network),
    "quadric: one reduced layer": Classifier(_quadratic(layer_kinds="reduced"), _network),
    "quadric: 32 hidden, quadratic output": Classifier(_quadratic(32), _network),
    "quadric: logistic regression": Classifier(QuadraticLogisticRegression, _network),
}
PEER_MODELS = {
    "MLP": Classifier(lambda: MLPClassifier(random_state=0), _mlp),
    "logistic": Classifier(lambda: LogisticRegression(max_iter=1000), _linear),
    "poly-2 logistic": Classifier(
        lambda: make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000)),
        lambda model: _linear(model[-1]),
        most_inputs=MOST_EXPANDED,
        why="more than 20 000 products of inputs",
    ),
    "QDA": Classifier(QuadraticDiscriminantAnalysis, _qda),
    "SVC, poly 2": Classifier(lambda: SVC(kernel="poly", degree=2, coef0=1), _svc),
    "SVC, RBF": Classifier(SVC, _svc),
    "boosted trees": Classifier(lambda: HistGradientBoostingClassifier(random_state=0), _trees),
    "k-NN": Classifier(KNeighborsClassifier, _neighbors),
    "explainable boosting": Classifier(
        _explainable_boosting_machine,
        _boosting_machine,
        needs="interpret",
        most_inputs=500,
        why="too slow for 784 inputs and ten classes",
    ),
}
CLASSIFIERS = OWN_MODELS | PEER_MODELS
