"""The cases of the parity fixture, and networks with their parameters."""

import json

import numpy as np

from quadric import Network
from quadric.files._describe import from_tensors, to_tensors
from tests.support.make_parity_fixture import PATH

CASES = json.loads(PATH.read_text())["cases"]
NAMES = [f"{c['kind']}-{c['loss']}-{c['l2']}" for c in CASES]


def network(case, dtype=np.float64):
    layers = []
    for l in range(2):
        prefix = f"layers.{l}."
        arrays = {
            name.removeprefix(prefix): np.array(value, dtype=dtype)
            for name, value in case["parameters"].items()
            if name.startswith(prefix)
        }
        layers.append(from_tensors(case["kind"], *arrays["W"].shape[::-1], arrays.__getitem__))
    return Network(layers, case["activations"])


def assert_packed(layers, wanted, atol):
    held = {
        f"layers.{l}.{name}": array
        for l, layer in enumerate(layers)
        for name, array in to_tensors(layer).items()
    }
    assert held.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(held[name], array, atol=atol, err_msg=name)
