"""Boundaries of the adversary's models: values and distances agree with those in 60 digits."""

import numpy as np
import pytest

from quadric.convert import fold
from quadric.geometry import Quadric
from tests.support.adversary import BLOCKS, SAMPLE, draw, of_kinds
from tests.support.exact import distance_between, scores_of

CURVED = ("one layer", "low rank", "bilinear", "converted", "truncated")


def check_boundary(seed):
    """The boundary between the first two classes, seen from two rows."""
    case = draw(seed)
    layer = fold(case.network).layers[0]
    Q, W, b = layer.Q, layer.W, layer.b
    if len(b) == 1:
        Q, W, b = (np.concatenate([np.zeros_like(part), part]) for part in (Q, W, b))
    surface = Quadric(Q[0] - Q[1], W[0] - W[1], b[0] - b[1])
    scores, change = scores_of(case.network, case.network.n_inputs)
    for x in case.X[:2].astype(float):
        sides = (distance_between(scores, change, x, *pair) for pair in ((0, 1), (1, 0)))
        wanted = float(max(sides))
        found = float(surface.distance(x)) if surface.kind != "empty" else np.inf
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9 * case.scale)


@pytest.mark.parametrize("kind", CURVED)
def test_distances_to_boundaries_of_every_kind(kind):
    for seed in of_kinds(SAMPLE, kind):
        check_boundary(seed)


@pytest.mark.full
@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_distances_to_the_boundaries_of_5000_models(seeds):
    for seed in of_kinds(seeds, *CURVED):
        check_boundary(seed)
