"""The texts of errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

import quadric
from benchmarks.identity._hashes import Results, outcome, save_and_load
from benchmarks.identity._training import SCALED, SPECIES
from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    torch as qt,
)
from quadric.certify import counterfactual, radius
from quadric.convert import fold, from_qda, truncate
from quadric.explain import boundary, explain, spectrum
from quadric.geometry import Quadric
from quadric.onnx import export

X, Y = np.array([[-1.0, -1], [1, -1], [-1, 1], [1, 1]]), np.array([0, 1, 1, 0])
NET = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
UNFITTED = QuadraticClassifier()
FITTED = QuadraticLogisticRegression().fit(SCALED, SPECIES)
MISTAKES: dict[str, Callable[[], Any]] = {
    "create kind": lambda: Network.create(2, [("cubic", 1, "logistic")]),
    "create activation": lambda: Network.create(2, [("linear", 1, "sigmoid")]),
    "create softmax": lambda: Network.create(2, [("linear", 2, "softmax"), ("linear", 1, "tanh")]),
    "create dtype": lambda: Network.create(2, [("linear", 1, "tanh")], dtype="float16"),
    "create nothing": lambda: Network.create(2, []),
    "layers": lambda: Network([quadric.Linear(np.eye(3), np.zeros(2))], ["tanh"]),
    "activations": lambda: Network(NET.layers, ["tanh", "tanh"]),
    "forward shape": lambda: NET.forward(np.ones((2, 3))),
    "forward nan": lambda: NET.forward([[np.nan, 1]]),
    "forward text": lambda: NET.forward([["a", "b"]]),
    "forward overflow": lambda: NET.forward([[1e200, 1e200]]),
    "fit solver": lambda: NET.fit(X, Y, solver="newton"),
    "fit rate": lambda: NET.fit(X, Y, learning_rate=-1),
    "fit loss": lambda: NET.fit(X, Y, "cross_entropy"),
    "fit targets": lambda: NET.fit(X, Y + 1),
    "fit rows": lambda: NET.fit(X, Y[:3]),
    "fit callback": lambda: NET.fit(X, Y, callback=3),
    "fit diverges": lambda: NET.copy().fit(X * 1e3, Y, learning_rate=1e9, epochs=50),
    "unfitted predict": lambda: UNFITTED.predict(X),
    "unfitted save": lambda: save_and_load(UNFITTED),
    "unfitted explain": lambda: explain(UNFITTED),
    "unfitted radius": lambda: radius(UNFITTED, X),
    "unfitted export": lambda: export(UNFITTED),
    "one class": lambda: QuadraticClassifier(random_state=0).fit(X, [1, 1, 1, 1]),
    "kind": lambda: QuadraticClassifier((3,), layer_kinds="cubic").fit(X, Y),
    "kinds": lambda: QuadraticClassifier((3,), layer_kinds=["linear"]).fit(X, Y),
    "alpha": lambda: QuadraticClassifier(alpha=-1).fit(X, Y),
    "batch size": lambda: QuadraticRegressor(batch_size=0).fit(X, Y),
    "penalty": lambda: QuadraticLogisticRegression(dual=True).fit(X, Y),
    "masked": lambda: QuadraticClassifier().fit(np.ma.masked_array(X, X > 0), Y),
    "missing": lambda: QuadraticClassifier().fit(np.where(X > 0, np.nan, X), Y),
    "features": lambda: FITTED.predict(X),
    "poisson": lambda: QuadraticRegressor(loss="poisson").fit(X, Y - 1),
    "partial_fit": lambda: QuadraticClassifier(early_stopping=True).partial_fit(X, Y),
    "partial_fit classes": lambda: QuadraticClassifier().partial_fit(X, Y),
    "save other": lambda: save_and_load(LogisticRegression().fit(X, Y)),
    "save extra": lambda: save_and_load(FITTED, extra={"a": {1, 2}}),
    "load missing": lambda: quadric.load("missing.quadric"),
    "load other": lambda: quadric.load(Path("/dev/null")),
    "boundary": lambda: boundary(FITTED, 0, 7),
    "explain layer": lambda: explain(FITTED, layer=3),
    "explain names": lambda: explain(FITTED, names=["a"]),
    "explain other": lambda: explain(LogisticRegression().fit(X, Y)),
    "spectrum": lambda: spectrum(FITTED, between=(0, 9)),
    "radius shape": lambda: radius(FITTED, X),
    "radius units": lambda: radius(FITTED, SCALED, units="cm"),
    "radius fixed": lambda: radius(FITTED, SCALED, fixed=["age"]),
    "radius regressor": lambda: radius(QuadraticRegressor((), alpha=1).fit(X, Y), X),
    "counterfactual class": lambda: counterfactual(FITTED, SCALED[0], to=9),
    "counterfactual bounds": lambda: counterfactual(FITTED, SCALED[0], bounds={7: (0, 1)}),
    "fold": lambda: fold(LogisticRegression()),
    "truncate": lambda: truncate(FITTED, 0),
    "from_qda": lambda: from_qda(QuadraticDiscriminantAnalysis()),
    "separate": lambda: quadric.separate(X, Y[:3]),
    "memory": lambda: quadric.set_config(max_memory="many"),
    "quadric": lambda: Quadric(np.eye(2), [1, 2, 3], 0),
    "slice": lambda: Quadric(np.eye(2), [1, 2], 0).slice([4]),
    "export opset": lambda: export(FITTED, opset=3),
    "export dtype": lambda: export(FITTED, dtype="float16"),
    "name": lambda: quadric.Networks,
    "torch shape": lambda: qt.Quadratic(3, 2)(torch.ones(2, 4)),
    "torch head": lambda: qt.replace_head(torch.nn.Tanh()),
    "torch network": lambda: qt.to_network(torch.nn.Conv1d(1, 1, 1)),
}


def mistakes() -> Results:
    for name, call in MISTAKES.items():
        yield name, outcome(call)
