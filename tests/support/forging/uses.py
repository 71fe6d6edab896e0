"""The uses of a loaded model, and the errors that they may raise.

Every use either returns or raises an error that is listed in `TOLD`. A use checks its result: there
must be a finite answer for each row, and probabilities must sum to 1.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from click.testing import CliRunner
from sklearn.base import clone
from typer.main import get_command

import quadric
from quadric import Network, onnx, plotting
from quadric.apps.shell import app
from quadric.errors import TableError
from quadric.explain import explain
from quadric.files import info

COMMAND = get_command(app)  # built once, because typer parses its annotations
MOST_FEATURES = 100
STEP = r"step '.*' cannot be exported:"
# The errors that each use may raise. The first line of the message is matched from its start.
TOLD = (
    # X does not fit the model
    ("predict", ValueError, r"X has \d+ features, but \w+ is expecting \d+ features as input"),
    ("predict", ValueError, r"X must have shape \(n_samples, \d+\), one column for each input"),
    ("predict", ValueError, r"The feature names should match those that were passed during fit"),
    ("predict", ValueError, r"columns are missing: "),
    ("predict predict_claimed", ValueError, r"Found unknown categories .* in column \d+"),
    ("predict predict_claimed", ValueError, r"could not convert string to float: "),
    # a table without columns that the forged model reads, or with other contents
    ("predict predict_claimed fit", TableError, r"the table lacks the columns? '"),
    ("predict predict_claimed fit", TableError, r"column '.*' must contain (numbers|text), but"),
    # a category that the target encodes as 1e308
    ("predict predict_claimed", ValueError, r"Input X contains infinity or a value too large"),
    ("predict predict_claimed", ValueError, r"X contains values so large .* is not finite in"),
    # models that cannot be explained, plotted or exported
    ("explain plot", ValueError, r"this \w+ has no quadratic or reduced layer"),
    (
        "explain plot",
        ValueError,
        r"the (surface|quadratic layer) is larger than floating-point numbers can represent",
    ),
    ("explain plot", ValueError, r"the preprocessing scales features by such extreme factors that"),
    ("plot", ValueError, r"the conic cannot be drawn: its center .* do not define a window"),
    ("export", ValueError, r"\w+ must be finite in float32\. Got "),
    ("export", TypeError, r"classes must be all strings or all integers"),
    ("export", TypeError, r"expected numbers but got text or categories"),
    ("export", TypeError, f"{STEP} an encoder compares text with a numeric column"),
    ("export", TypeError, f"{STEP} expected numbers but got text or categories"),
    ("export", TypeError, f"{STEP} SimpleImputer was given both text and numeric columns"),
    ("export", ValueError, f"{STEP} an encoder distinguishes several kinds of missing or empty"),
    ("export", ValueError, f"{STEP} an encoder has categories that are the same number in float"),
    ("export", ValueError, f"{STEP} an encoder has both None and NaN among its categories"),
    ("export", ValueError, r"ONNX stores text as UTF-8, which cannot encode .*\. Rename"),
    ("export", ValueError, r"column '.*' cannot be an input: the name of an input must not be"),
    # training: invalid parameters, and data that do not fit them
    ("fit learn", ValueError, r"The '\w+' parameter of \w+ must be "),
    ("fit learn", MemoryError, r"layer \d+ \(.*training would need about .* and the limit is"),
    ("fit learn", ValueError, r"training diverged: "),
    ("fit learn", ValueError, r"The classes, .*, are not in class_weight"),
    ("fit learn", ValueError, r".* cannot be used to seed a numpy.random.RandomState instance"),
    ("fit learn", ValueError, r"Seed must be between 0 and 2\*\*32 - 1"),
    ("fit learn", ValueError, r"hidden_layer_sizes must be > 0, got "),
    ("fit learn", ValueError, r"layer_kinds must be 'auto', one of "),
    ("fit", ValueError, r"Cannot use (mean|median) strategy with non-numeric data"),
    ("fit", ValueError, r"Minimum of desired feature range must be smaller than maximum"),
    ("fit", ValueError, r"`drop` should have length equal to the number of features"),
    ("fit", ValueError, r"n_components=.* must be between \d+ and min\(n_samples, n_features\)"),
    ("fit", ValueError, r"Found array with 0 feature\(s\)"),
    ("fit", ValueError, r"could not convert string to float: "),
    ("fit", ValueError, r"Found unknown categories .* in column \d+"),
    ("fit", ValueError, r"Invalid parameter '.*' for estimator Pipeline"),  # a step "a_" has a__b
    ("learn", ValueError, r"X has \d+ features, but \w+ is expecting \d+ features as input"),
    ("learn", ValueError, r"The feature names should match those that were passed during fit"),
    ("learn", ValueError, r"y has \d+ outputs, but this \w+ was fitted with \d+"),
    ("learn", ValueError, r"`y` has classes not in `self.classes_`"),
    ("learn", ValueError, r"warm_start and partial_fit continue with the network of the last call"),
    ("learn", ValueError, r"partial_fit does not support early_stopping=True"),
    ("info", quadric.ModelFileError, r".* cannot be loaded: "),
)
# Allowed only if X has missing values: a model without an imputer refuses them.
TOLD_OF_MISSING = (("predict predict_claimed fit", ValueError, r"Input (X )?contains NaN"),)


def told(use, error, X):
    """Return whether this use of X may raise this error."""
    text = str(error).split("\n")[0]
    accepted = TOLD + (TOLD_OF_MISSING if np.any(pd.isna(X)) else ())
    return any(
        use in uses.split() and isinstance(error, kind) and re.match(message, text)
        for uses, kind, message in accepted
    )


# ---- inputs --------------------------------------------------------------------------------


def claimed_inputs(model, X):
    """Return inputs with the features that the model claims to take, if there are only a few."""
    n = getattr(model, "n_features_in_", getattr(model, "n_inputs", None))
    if n is None:  # unknown if the first step is 'passthrough'
        return None
    assert type(n) is int, "the number of features is none"
    assert n >= 1, "the number of features is none"
    if n > MOST_FEATURES:
        return None
    if isinstance(X, pd.DataFrame):
        names = list(getattr(model, "feature_names_in_", X.columns))
        assert len(names) == n, f"{n} features and {len(names)} names"
        columns = [
            X[name] if name in X else X.iloc[:, i % X.shape[1]] for i, name in enumerate(names)
        ]
        return pd.concat(columns, axis=1, keys=names)
    return np.take(X, np.arange(n) % X.shape[1], axis=1)


def _check(name, answer, rows):
    answer = np.asarray(answer)
    assert answer.shape[:1] == (rows,), f"{name} gives shape {answer.shape} for {rows} rows"
    if answer.dtype.kind == "f" and name != "predict":
        assert np.isfinite(answer).all(), f"{name} is not finite"
    return answer


def _predict(model, X):
    if isinstance(model, Network):
        _check("forward", model.forward(X), len(X))
        return
    y = _check("predict", model.predict(X), len(X))
    if hasattr(model, "predict_proba"):
        p = _check("predict_proba", model.predict_proba(X), len(X))
        sums = p.sum(axis=1)
        assert y.ndim != 1 or np.allclose(sums, 1), f"probabilities sum to {sums}"
        assert ((p >= 0) & (p <= 1 + 1e-9)).all(), "a probability is not between 0 and 1"
        if y.ndim == 1 and y.dtype.kind != "f":
            assert np.isin(y, model.classes_).all(), "a predicted class is not in classes_"
    else:
        assert y.dtype.kind == "f", "a prediction is not a number"
        assert np.isfinite(y).all(), "a prediction is not finite"


# ---- the uses; each takes the model, the original's X and y, and the file's path ----


def harmless(model, X, y, path):
    """Check that no parameter of a step makes a later call write files or start processes."""
    if hasattr(model, "get_params"):
        for name, value in model.get_params().items():
            last = name.rpartition("__")[2]
            if last in ("memory", "n_jobs") and value is not None:
                assert (last, value) == ("n_jobs", 1), f"{last} is taken from the file"
    repr(model)


def predict_claimed(model, X, y, path):
    X = claimed_inputs(model, X[:6])
    if X is not None:
        _predict(model, X)


def explained(model, X, y, path):
    found = explain(model)
    str(found)
    found.to_dict()


def plot(model, X, y, path):
    """Draw the cheapest plots: a slice of the first surface, and the losses."""
    try:
        found = explain(model)
        surface = found.classes[0].surface
        if surface.n_dims > 2:
            plotting.plot_slice(surface, (0, 1), at=np.zeros(surface.n_dims), names=found.names)
        elif surface.n_dims == 2:
            plotting.plot_conic(surface)
    finally:
        plt.close("all")


def fit(model, X, y, path):
    """Fit a clone with the parameters from the file."""
    if hasattr(model, "get_params"):
        _train(clone(model), X, y, "fit")


def learn(model, X, y, path):
    """Continue training from the state saved in the file."""
    if hasattr(model, "partial_fit"):
        _train(model, X, y, "partial_fit")


def _train(model, X, y, method):
    names = [name for name in model.get_params() if name.rpartition("__")[2] == "max_iter"]
    model.set_params(**dict.fromkeys(names, 1))
    getattr(model, method)(X, y)


def save(model, X, y, path):
    again = path.with_suffix(".again")
    quadric.save(model, again)
    quadric.load(again)


def _command(*arguments):
    result = CliRunner().invoke(COMMAND, [str(argument) for argument in arguments])
    lines = result.stderr.strip().splitlines()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1), f"the command's exit code is {result.exit_code}"
    errors = [line for line in lines if not line.startswith("note: ")]
    if result.exit_code:
        assert len(errors) == 1, f"the command ends with {len(errors)} lines: {errors[:1]}"
        assert errors[0].startswith("error: "), errors


def predict_command(model, X, y, path):
    """Run `quadric predict` on a CSV file with the inputs of the original model."""
    table = path.with_suffix(".csv")
    columns = X.columns if isinstance(X, pd.DataFrame) else list("abcdefgh"[: X.shape[1]])
    pd.DataFrame(np.asarray(X)[:6], columns=columns).to_csv(table, index=False)
    _command("predict", path, table, "-o", path.with_suffix(".tsv"))


# each use, and the share of the files on which it is tried; expensive uses have small shares
USES = {
    "harmless": (harmless, 1.0),
    "predict": (lambda model, X, y, path: _predict(model, X[:6]), 1.0),
    "predict_claimed": (predict_claimed, 1.0),
    "explain": (explained, 1.0),
    "export": (lambda model, X, y, path: onnx.export(model, path.with_suffix(".onnx")), 1.0),
    "save": (save, 1.0),
    "plot": (plot, 0.3),
    "fit": (fit, 0.5),
    "learn": (learn, 0.5),
}
# uses that are also tried on refused files
COMMANDS = {
    "info": (lambda model, X, y, path: info(path), 1.0),
    "info_command": (lambda model, X, y, path: _command("info", path), 0.5),
    "explain_command": (lambda model, X, y, path: _command("explain", path), 0.3),
    "predict_command": (predict_command, 0.3),
}
