"""Residual connections as part of a layer."""

import numpy as np
import pytest

from quadric import Network
from quadric.convert import add_residual, fold


@pytest.mark.parametrize("kind", ["linear", "quadratic", "reduced"])
def test_residual_blocks_are_folded(kind):
    layers = [("linear", 6, "identity"), (kind, 6, "identity"), ("linear", 3, "softmax")]
    first, inner, last = Network.create(4, layers, init="normal", scale=1.0, rng=0).layers
    folded = fold(Network([first, add_residual(inner), last], ["identity", "identity", "softmax"]))
    assert len(folded.layers) == 1
    X = np.random.default_rng(0).normal(size=(20, 4))
    h = first.forward(X)[0]
    wanted = last.forward(inner.forward(h)[0] + h)[0]
    np.testing.assert_allclose(folded.logits(X), wanted, rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match=r"requires as many neurons as inputs.*Linear\(4 -> 6"):
        add_residual(first)
