"""Models with finite but huge or tiny weights give valid JSON and no warnings."""

import warnings

import numpy as np
import pytest

from quadric import Network, save
from quadric.core import Quadratic
from quadric.explain import explain, similarity, spectrum
from tests.support.commands import command, strict_json


def network(size):
    rng = np.random.default_rng(0)
    layer = Quadratic(rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(3, 4, 4)))
    layer = Quadratic(layer.W * size, layer.b * size, layer.Q * size)
    return Network([layer], ["softmax"])


@pytest.mark.parametrize("size", [1e-200, 1e160, 1e300])
@pytest.mark.parametrize("options", [[], ["data.csv"], ["--spectrum"]], ids=" ".join)
def test_faults_R7_explanations_of_huge_weights_are_valid_json(tmp_path, size, options):
    save(network(size), tmp_path / "model.quadric")
    rows = np.random.default_rng(1).normal(size=(20, 4)).tolist()
    (tmp_path / "data.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = command("explain", "model.quadric", *options, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert [str(one.message) for one in caught] == []
    found = strict_json(result.stdout)
    for item in found.get("classes", ()):
        assert sum(term["share"] for term in item["terms"]) == pytest.approx(1)
    for item in found.get("outputs", ()):
        assert item["effective_rank"] >= 1


def test_faults_R7_scaling_a_model_changes_neither_shares_nor_spectra():
    X = np.random.default_rng(1).normal(size=(20, 4))
    size = 2.0**600
    ordinary, huge = network(1.0), network(size)
    for data in (None, X):
        a, b = (explain(model, data, top=None) for model in (ordinary, huge))
        assert a.importances == b.importances
        for one, other in zip(a.classes, b.classes, strict=True):
            assert [term.share for term in one.terms] == [term.share for term in other.terms]
    a, b = spectrum(ordinary), spectrum(huge)
    np.testing.assert_allclose(b.eigenvalues, a.eigenvalues * size, rtol=1e-12)
    np.testing.assert_allclose(b.energy, a.energy, rtol=1e-12)
    np.testing.assert_allclose(b.effective_rank, a.effective_rank, rtol=1e-12)
    np.testing.assert_allclose(similarity(huge), similarity(ordinary), rtol=1e-12)


def test_faults_R7_numbers_that_are_not_finite_are_null(capsys):
    from quadric.apps.shell.commands._console import print_json

    print_json({"a": [float("nan"), 1.5, (float("inf"), np.float64("-inf"))], "b": {"c": "NaN"}})
    found = strict_json(capsys.readouterr().out)
    assert found == {"a": [None, 1.5, [None, None]], "b": {"c": "NaN"}}
