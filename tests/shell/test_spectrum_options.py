"""`quadric explain --spectrum` and the plots of spectra."""

import json

import numpy as np
import pytest

import quadric
from quadric.explain import spectrum
from tests.support.commands import NAMES, assert_error, command


@pytest.mark.slow
def test_explain_prints_the_spectrum(place):
    result = command("explain", place / "iris.quadric", "--spectrum", "--top", "2")
    assert result.returncode == 0, result.stderr
    found = spectrum(quadric.load(place / "iris.quadric"))
    lines = result.stdout.splitlines()
    (start,) = [k for k, line in enumerate(lines) if line.startswith("versicolor: effective rank")]
    assert f"effective rank {found.effective_rank[1]:.1f}," in lines[start]
    strongest = NAMES[np.abs(found.eigenvectors[1, 0]).argmax()]
    assert f"{found.eigenvalues[1, 0]:+10.4g}" in lines[start + 2]
    assert lines[start + 2].split("%")[1].split(",")[0].endswith(strongest)
    assert "(2 smaller eigenvalues)" in lines[start + 4]


@pytest.mark.slow
def test_explain_prints_the_spectrum_as_json(place):
    found = json.loads(command("explain", place / "iris.quadric", "--spectrum", "--json").stdout)
    wanted = spectrum(quadric.load(place / "iris.quadric"))
    assert [one["label"] for one in found["outputs"]] == wanted.labels
    for k, one in enumerate(found["outputs"]):
        np.testing.assert_allclose(one["eigenvalues"], wanted.eigenvalues[k])
        assert np.shape(one["eigenvectors"]) == (3, 4)


@pytest.mark.parametrize(
    "options",
    [
        ["--spectrum", "--permutation"],
        ["--spectrum", "--row", "3"],
        ["--row", "3", "--permutation"],
    ],
    ids=" ".join,
)
def test_options_of_explain_that_exclude_each_other_are_refused(options, place):
    result = command("explain", place / "iris.quadric", place / "iris.csv", *options)
    assert result.returncode == 2, result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("what", ["spectrum", "similarity", "truncation"])
def test_plots_of_spectra_are_drawn(place, tmp_path, what):
    table = [place / "iris.csv"] if what == "truncation" else []
    result = command("plot", place / "iris.quadric", *table, "--what", what, cwd=tmp_path)
    assert result.stdout == f"Picture: iris-{what}.png\n", result.stderr
    assert (tmp_path / f"iris-{what}.png").stat().st_size > 10_000
    if what == "truncation":
        assert_error(
            command("plot", place / "iris.quadric", "--what", what, cwd=tmp_path),
            "needs a table with the target",
        )
