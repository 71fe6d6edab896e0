"""Saved models for the tests of model files."""

import pickle

import pytest

from quadric import save
from tests.support.fitted_models import MODELS, make


class Saved(dict):
    """Models with their data and files, by name, created when first requested."""

    def __init__(self, directory):
        self.directory = directory

    def __missing__(self, name):
        model, X = make(name)
        path = self.directory / f"{MODELS.index(name)}.quadric"
        save(model, path)
        path.with_suffix(".data").write_bytes(pickle.dumps(X))
        self[name] = model, X, path
        return self[name]


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    return Saved(tmp_path_factory.mktemp("models"))


@pytest.fixture
def network_file(tmp_path):
    path = tmp_path / "network.quadric"
    save(make("network quadratic float64")[0], path)
    return path
