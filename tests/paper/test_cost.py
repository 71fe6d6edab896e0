"""Multiplications and time: the forms of a step, and the cost of any network."""

import numpy as np
import pytest

from quadric.apps.paper import _cost as cost
from quadric.reference import COUNTS, step_count
from quadric.reference._counts import Counter

COUNTED = ("W", "b", "Q", "U", "c", "packed")  # parameters; 'triangle' holds positions
BY_NAME = {form.name: form for form in cost.FORMS}


@pytest.mark.parametrize("form", cost.FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (4, 2)])
def test_formulas_of_the_forms_equal_counts(form, m, n):
    """The formula is the count of the forward and backward pass, plus the update."""
    rng, counter = np.random.default_rng(0), Counter()
    layer = cost.make_layer(form.model, m, n, rng)
    layer |= {name: counter.wrap(layer[name]) for name in COUNTED if name in layer}
    a, delta = counter.wrap(rng.normal(size=n)), counter.wrap(rng.normal(size=m))
    _, cached = form.forward(layer, a)
    form.backward(layer, a, cached, delta)
    counted = counter.multiplications + counter.by_structural_zero + n  # n products with g'
    update = COUNTS[form.model, "update"](m, n)
    if "Kronecker" in form.name:
        update += m * n * (n - 1) // 2  # both triangles
    assert form.count(m, n) == counted + update


def test_all_forms_of_a_model_take_the_same_step():
    for model in ("qnn", "rpqnn"):
        after = []
        for form in (form for form in cost.FORMS if form.model == model):
            rng = np.random.default_rng(1)
            hidden, output = cost.make_layer("ann", 4, 5, rng), cost.make_layer(model, 3, 4, rng)
            below = cost.train_step(form, hidden, output, rng.normal(size=5), np.eye(3)[1])
            names = ("W", "b", "Q") if model == "qnn" else ("W", "b", "U", "c")
            after.append([below, hidden["W"], *(output[name] for name in names)])
        for other in after[1:]:
            for one, two in zip(after[0], other, strict=True):
                np.testing.assert_allclose(one, two, atol=1e-13)


def test_ratios_of_multiplications_for_the_papers_network():
    ann = cost.network_count(cost.FORMS[0])
    ratios = {form.name: cost.network_count(form) / ann for form in cost.FORMS}
    assert ann == 48_050
    assert cost.network_count(BY_NAME["QNN, V cached"]) == 62_910
    assert ratios["QNN, V cached"] == pytest.approx(1.31, abs=0.005)
    assert ratios["QNN, block product A Q"] == pytest.approx(3.00, abs=0.006)
    assert ratios["RPQNN, v1 and v2 cached"] == pytest.approx(1.02, abs=0.005)
    alone = [step_count(model, 10**3, 10**3) for model in ("rpqnn", "ann")]
    assert alone[0] / alone[1] == pytest.approx(2, abs=0.01)  # a layer by itself


def test_what_caching_saves():
    cached, again = "QNN, V cached", "QNN, V computed again in the backward pass"
    once, twice = (BY_NAME[name].count(10, 30) for name in (cached, again))
    assert (once, twice) == (15_810, 24_810)
    once, twice = (BY_NAME[name].count(10**4, 10**4) for name in (cached, again))
    assert 1 - once / twice == pytest.approx(0.4, abs=1e-3)


def test_first_layer_has_no_backward_pass():
    first, last = cost.cost((784, 30, 10), ("linear", "quadratic"))
    assert first.multiplications == 23_520 + 23_580  # forward and update
    assert last.multiplications == 9_300 + 630 + 5_880
    assert first.multiplications + last.multiplications == 62_910
    assert first.seconds / last.seconds == pytest.approx(47_100 / 15_810)


def test_a_large_network_is_measured_at_a_smaller_size(monkeypatch):
    """Without the limit, Q alone would take 2 TB."""
    seen = []
    create = cost.Network.create

    def record(inputs, layers, **options):
        seen.append((inputs, layers[0][1]))
        return create(inputs, layers, **options)

    monkeypatch.setattr(cost.Network, "create", record)
    monkeypatch.setattr(cost, "LARGEST", 20_000)
    (layer,) = cost.cost((10_000, 10_000), ("quadratic",))
    assert seen == [(19, 19)]
    assert layer.multiplications > 1e12
    assert layer.seconds > 0
