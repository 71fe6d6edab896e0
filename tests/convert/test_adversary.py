"""Conversions of the adversary's models compute the same scores, or are refused."""

import numpy as np
import pytest

from quadric import Network
from quadric.convert import fold, to_quadratic, truncate
from tests.support.adversary import BLOCKS, KINDS, SAMPLE, draw, of_kinds
from tests.support.exact import exact_scores

FOLDED = tuple(
    kind for kind in KINDS if kind not in ("hidden layers", "categories", "float16 rows")
)


def cases(kinds, seeds):
    return [draw(seed) for seed in of_kinds(seeds, *kinds)]


def check_fold(case):
    """The fold agrees with the model in 60 digits, up to the documented precision."""
    X = case.X.astype(float)
    refusal, folded = "", None
    try:
        folded = fold(case.model)
    except ValueError as error:
        refusal = str(error)
    if folded is None:
        assert "far from zero" in refusal
        assert hasattr(case.model, "steps")
        return 1
    wanted = exact_scores(case.model, X)
    found = folded.logits(X)
    found = np.hstack([np.zeros_like(found), found]) if found.shape[1] == 1 else found
    limit = 1e-7 if hasattr(case.model, "steps") else 1e-11
    if case.fit_dtype == "float32" and hasattr(case.model, "steps"):
        limit = 1e-2  # scikit-learn projects the mean in float32
    assert np.abs(found - wanted).max() <= limit * np.abs(wanted).max()
    return 0


def check_truncation(case):
    """Without a restriction of the rank, truncation changes no difference of scores."""
    network = case.network if isinstance(case.model, Network) else case.model.network_
    whole = truncate(network, network.n_inputs)
    X = case.X.astype(float)
    before, after = (made.logits(X) for made in (network.astype("float64"), whole))
    if before.shape[1] > 1:
        before, after = (z - z.mean(axis=1, keepdims=True) for z in (before, after))
    assert np.abs(after - before).max() <= 1e-10 * np.abs(before).max()


@pytest.mark.parametrize("kind", FOLDED)
def test_folds_of_models_of_every_kind(kind):
    refused = [check_fold(case) for case in cases([kind], SAMPLE)]
    assert sum(refused) == 0 or kind in ("far from zero", "float32 steps", "pipeline")
    assert sum(refused) < len(refused) or kind == "far from zero"


@pytest.mark.parametrize("kind", ["one layer", "low rank", "extreme scales", "bilinear"])
def test_truncation_to_the_whole_rank_changes_nothing(kind):
    for case in cases([kind], SAMPLE):
        check_truncation(case)


def test_quadratic_layers_have_the_same_scores():
    for case in cases(["bilinear"], SAMPLE):
        for layer in case.network.astype("float64").layers:
            x = np.random.default_rng(0).normal(size=(5, layer.n_inputs))
            before, after = (
                Network([made], ["identity"]).forward(x) for made in (layer, to_quadratic(layer))
            )
            assert np.abs(after - before).max() <= 1e-12 * np.abs(before).max()


@pytest.mark.full
@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_folds_and_truncations_of_5000_models(seeds):
    refused = sum(check_fold(case) for case in cases(FOLDED, seeds))
    assert refused < len(seeds) / 5
    for case in cases(["one layer", "low rank", "extreme scales", "bilinear"], seeds):
        check_truncation(case)
