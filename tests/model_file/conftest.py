"""Saved models for the tests of model files."""

import pickle
import subprocess
import sys

import pytest

from quadric import save
from tests.support.model_file_models import MODELS, make


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Every model with its data and its file; another process writes its predictions."""
    directory = tmp_path_factory.mktemp("models")
    models = {}
    for i, name in enumerate(MODELS):
        model, X = make(name)
        path = directory / f"{i}.quadric"
        save(model, path)
        path.with_suffix(".data").write_bytes(pickle.dumps(X))
        models[name] = (model, X, path)
    subprocess.run(
        [sys.executable, "-m", "tests.support.model_file_models", str(directory)], check=True
    )
    return models


@pytest.fixture
def network_file(tmp_path):
    path = tmp_path / "network.quadric"
    save(make("network quadratic float64")[0], path)
    return path
