"""The original model files: files written by this version, and all fixtures."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import quadric
from quadric.files import _safetensors as container
from tests.support.forging import make_fixtures
from tests.support.model_file_models import MODELS, make, table

FIXTURES = make_fixtures.FIXTURES
FEW = (
    "network reduced float32",
    "classes objects",
    "multi-label",
    "class weights",
    "logistic",
    "partial fit",
    "min max",
    "imputer",
    "columns by number",
    "given categories",
)
SMALL_SEEDS = 10**6


class Original(NamedTuple):
    """The content of a file, inputs for its model, and the predictions."""

    name: str
    description: dict[str, Any]
    tensors: dict[str, Any]
    X: Any
    y: Any


def originals(seed):
    """Return all models and fixtures; for seeds below a million, only a few of the models."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model"
        for name in FEW if seed < SMALL_SEEDS else MODELS:
            model, X = make(name)
            quadric.save(model, path)
            found.append(_original(name, path, X))
    inputs = make_fixtures.data()
    for path in sorted(FIXTURES.glob("*.quadric")):
        X = inputs.get(path.stem.removeprefix("forgery_"))
        found.append(_original(path.stem, path, X))
    return found


def _original(name, path, X):
    model = quadric.load(path)
    X = _inputs(model) if X is None else X
    return Original(
        name, *container.read(path), X, model.predict(X) if hasattr(model, "predict") else None
    )


def _inputs(model):
    frame = table()[0]
    if set(getattr(model, "feature_names_in_", ["none"])) <= set(frame):
        return frame[list(model.feature_names_in_)]
    n = getattr(model, "n_features_in_", getattr(model, "n_inputs", None))
    return np.random.default_rng(0).normal(size=(20, n))
