"""Deployment: the time of one prediction in Python, ONNX runtime, torch and the command line."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import quadric
from benchmarks.compare._peers import is_installed, skipped
from benchmarks.compare._result import OURS, case_of, to_json
from benchmarks.timing import seconds_by_round
from quadric import QuadraticClassifier

TITLE = "Deployment: predictions of a 784-30-10 network"
UNIT, PER_SECOND = "µs per row", 1e6
N, HIDDEN, CLASSES, TRAINED = 784, 30, 10, 500
TOLERANCE = 1e-5  # of the probabilities
NOTES = (
    "One linear hidden layer and a quadratic output with softmax, float32, one thread. quadric is "
    "`QuadraticClassifier.predict_proba`, with its checks of the input; the names that begin with "
    "quadric are other ways to run the same model. Their probabilities agree up to 1e-5.",
    "The command line is a whole process that reads a CSV file and writes another one: for one "
    "row, its time is that of starting Python and loading the model.",
    "MLPClassifier is a network of the same size with a linear output, so its probabilities "
    "differ. For one row, it spends most of its time on checks of the input. quadric skips them "
    "for arrays that they would return unchanged.",
)
Predict = Callable[[np.ndarray], np.ndarray]


def run(*, quick: bool) -> dict[str, Any]:
    warnings.simplefilter("ignore", ConvergenceWarning)  # five iterations are enough to time it
    rng = np.random.default_rng(0)
    X = rng.random((10_000, N), dtype=np.float32)
    y = np.arange(TRAINED) % CLASSES
    options = {"activation": "logistic", "max_iter": 5, "random_state": 0}
    model = QuadraticClassifier((HIDDEN,), alpha=1.0, dtype="float32", **options)
    named = clone(model).fit(frame(X[:TRAINED]), y)  # the command line matches columns by name
    model.fit(X[:TRAINED], y)
    cases = []
    with tempfile.TemporaryDirectory() as directory:
        predictors, in_shell = in_process(model), Shell(named, Path(directory))
        check_equal({**predictors, "quadric, command line": in_shell.predict}, X[:200])
        mlp = MLPClassifier((HIDDEN,), solver="lbfgs", **options).fit(X[:TRAINED], y)
        predictors["MLPClassifier"] = mlp.predict_proba
        for rows in (1, 10_000):
            calls = {who: partial(predict, X[:rows]) for who, predict in predictors.items()}
            timed = seconds_by_round(calls, rounds=9 if quick else 41, at_least=2e-3)
            in_shell.write(X[:rows])
            timed["quadric, command line"] = [in_shell.seconds() for _ in range(2 if quick else 5)]
            units = dict.fromkeys(timed, rows)
            name = "one row" if rows == 1 else f"{rows} rows"
            cases.append(case_of(name, timed, units=units))
    return {"cases": to_json(cases), "skipped": skipped(["ONNX runtime", "torch"])}


def in_process(model: QuadraticClassifier) -> dict[str, Predict]:
    found: dict[str, Predict] = {
        OURS: model.predict_proba,
        "quadric, Network.forward": model.network_.forward,
    }
    if is_installed("ONNX runtime"):
        import onnxruntime

        from quadric.onnx import export

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(export(model).SerializeToString(), options)
        found["quadric, ONNX runtime"] = lambda X: session.run(["probabilities"], {"X": X})[0]
    if is_installed("torch"):
        import torch

        from quadric.torch import from_network

        module = from_network(model.network_)

        def in_torch(X: np.ndarray) -> np.ndarray:
            with torch.inference_mode():
                return module(torch.from_numpy(X)).numpy()

        found["quadric, torch"] = in_torch
    return found


class Shell:
    """`quadric predict` with the model and rows in files."""

    def __init__(self, model: QuadraticClassifier, directory: Path) -> None:
        self.model, self.rows, self.out = (
            directory / name for name in ("model.quadric", "rows.csv", "out.csv")
        )
        quadric.save(model, self.model)

    def write(self, X: np.ndarray) -> None:
        frame(X).write_csv(self.rows)

    def run(self) -> None:
        command = [sys.executable, "-m", "quadric", "predict", self.model, self.rows]
        command += ["-o", self.out, "--proba"]
        subprocess.run(command, check=True, capture_output=True)

    def seconds(self) -> float:
        start = time.perf_counter()
        self.run()
        return time.perf_counter() - start

    def predict(self, X: np.ndarray) -> np.ndarray:
        self.write(X)
        self.run()
        return polars.read_csv(self.out).to_numpy()[:, -CLASSES:]


def frame(X: np.ndarray) -> polars.DataFrame:
    return polars.DataFrame(X, [f"x{i}" for i in range(X.shape[1])])


def check_equal(predictors: dict[str, Predict], X: np.ndarray) -> None:
    """Raise AssertionError unless all give the same probabilities."""
    ours = predictors[OURS](X)
    for who, predict in predictors.items():
        np.testing.assert_allclose(predict(X), ours, atol=TOLERANCE, err_msg=who)
