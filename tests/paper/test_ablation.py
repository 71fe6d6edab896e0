"""The printed errors on the paper's own data, and the versions of the algorithms with them."""

import csv
from pathlib import Path

import numpy as np
import pytest

from quadric import datasets
from quadric.apps.paper import Context, Store, _ablation as ablation
from quadric.apps.paper._claims import Verdict
from quadric.apps.paper._mnist_claims import paper_table
from quadric.apps.paper._statistics import Sample, sample_of
from quadric.reference import _as_printed as as_printed, train_logistic, train_qnn, train_rpqnn
from results.write import read_runs
from tests.support.sweeps import check_presentation


def neuron(theta):
    """Return Q, w and b of a neuron from its parameters by feature."""
    b, w1, w2, q11, q12, q22 = theta
    return np.array([[q11, q12], [q12, q22]]), np.array([w1, w2]), b


def test_both_signs_are_those_of_the_reference():
    """The last column is the corrected form, the first the printed vector form of w."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1, 2)), np.array([1.0])
    start = rng.normal(size=(1, 1, 6))
    both = ablation.train_signs(ablation.features(X)[None], y[None, :, None], start, 0.1, 1, rng)
    Q, w, b = neuron(start[0, 0])
    wanted = train_logistic(X, y, Q, w, b, 0.1)
    printed = w - 0.1 * as_printed.w_gradient(Q, w, b, X[0], y[0])
    for version, w_wanted in ((1, wanted[1]), (0, printed)):
        found = neuron(both[0, version, 0])
        np.testing.assert_allclose(found[0], wanted[0], atol=1e-14)
        np.testing.assert_allclose(found[1], w_wanted, atol=1e-14)
        assert found[2] == pytest.approx(wanted[2])
    assert np.abs(wanted[1] - printed).max() > 0.001


def test_xor_is_learned_with_the_printed_equations_and_labels():
    assert ablation.train_xor().tolist() == [50, 50]
    assert ablation.train_xor(negative=-1.0).tolist() == [50, 50]


@pytest.mark.slow
def test_six_clusters_reveal_the_wrong_sign_and_xor_does_not():
    scores = ablation.train_clusters(seeds=2, epochs=3)
    printed, corrected = scores.mean(axis=0)
    assert (corrected > 85).all()  # by thresholds and by argmax
    assert (printed < 75).all()
    assert ablation.train_xor().tolist() == [50, 50]
    rows = ablation.sign_rows(scores, ablation.train_xor(), 3)
    assert ablation.verdict(rows) is Verdict.FAILS
    assert ablation.verdict(rows[2:]) is Verdict.HOLDS


@pytest.mark.parametrize("model", ["qnn", "rpqnn"])
def test_the_corrected_version_is_the_reference(model):
    """One epoch in a network with a linear hidden layer, in the order of the samples."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(8, 5)), np.eye(3)[rng.integers(0, 3, 8)]
    version = ablation.VERSIONS[ablation.CORRECTED[model]]
    net = ablation.Network.create(
        5, [("linear", 4, "logistic"), (ablation.MODELS[model], 3, "logistic")], rng=0
    )
    layers = [ablation._parameters(layer) for layer in net.layers]
    train = train_qnn if model == "qnn" else train_rpqnn
    wanted = train(X, Y, layers, ablation.RATE)
    found = train(X, Y, layers, ablation.RATE, update=version.update)
    for one, other in zip(found, wanted, strict=True):
        for name, array in one.items():
            np.testing.assert_allclose(array, other[name], atol=1e-14)
    a = rng.random((2, 4))
    last = net.layers[1]
    last_only = ablation.Network([last], ["identity"])
    np.testing.assert_allclose(
        ablation._outputs(ablation._parameters(last), a), last_only.forward(a), atol=1e-13
    )


@pytest.mark.parametrize(
    "version", [*ablation.PRINTED, ablation.VARIANT], ids=lambda version: version.error
)
def test_each_printed_version_changes_one_update(version):
    rng = np.random.default_rng(2)
    m, n = 3, 4
    shapes = {"W": (m, n), "b": m}
    shapes |= {"Q": (m, n, n)} if version.model == "qnn" else {"U": (m, n), "c": m}
    before = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    delta, a = rng.normal(size=m), rng.normal(size=n)
    kept = (rng.normal(size=m), rng.normal(size=m)) if version.model == "rpqnn" else ()
    layers = []
    for update in (ablation.VERSIONS[ablation.CORRECTED[version.model]].update, version.update):
        layers.append(dict(before))
        update(layers[-1], delta, *kept, a, 0.1)
    differ = {name for name in before if not np.allclose(layers[0][name], layers[1][name])}
    assert differ == ({"Q"} if version.model == "qnn" else {"b", "c"})


def test_the_verdict_of_a_cell_follows_from_its_z():
    paper = Sample(23.51, 6.22, 35.19, 13.68, 25)
    row = ablation.cell_row("e", "d", paper, sample_of([23.0, 25.0]), sample_of([10.0, 11.0]))
    assert row[:5] == ("e", "d", 23.51, 24.0, 10.5)
    assert row[6] == pytest.approx((10.5 - 23.51) / np.sqrt(6.22**2 / 25 + 0.5 / 2))
    assert ablation.verdict([row]) is Verdict.FAILS
    assert ablation.verdict([(*row[:6], -3.9)]) is Verdict.UNKNOWN
    assert ablation.verdict([(*row[:6], -1.9)]) is Verdict.HOLDS
    assert ablation.cell_row("e", "d", None, sample_of([1.0]), sample_of([1.0]))[5:] == (None, None)
    row = ("Algorithm 2: b and c swapped", *row[1:])
    for data, seeds, full, missing in (
        ("mnist", 10, True, ""),
        ("mnist", 10, False, "needs --full"),
        ("mnist", 9, True, "needs at least 10 seeds"),
        ("digits", 10, True, "needs --full and MNIST"),
    ):
        (claim,) = ablation.outcome([row], data, seeds, 1, full=full).claims
        expected = Verdict.UNKNOWN if missing else Verdict.FAILS
        assert (claim.id, claim.verdict) == ("algorithm-2-trained", expected)
        assert claim.ours.endswith(missing or "paper 23.51 %")
    outcome = ablation.outcome([row], "mnist", 10, 1, full=True)
    assert outcome.findings[1].startswith("Of 1 printed forms that were judged, 1 cannot")
    assert len(ablation.outcome([row], "mnist", 9, 1, full=True).findings) == 1
    (claim,) = ablation.outcome([(*row[:6], -3.9)], "mnist", 10, 1, full=True).claims
    assert claim.verdict is Verdict.UNKNOWN
    assert claim.ours.endswith("do not decide it")


def test_a_variant_that_is_not_printed_is_never_shown_as_printed():
    rows = [
        (version.error, "d", 70.0, 75.0, 60.0 + k, 1.0, -1.0)
        for k, version in enumerate((*ablation.PRINTED, ablation.VARIANT))
    ]
    outcome = ablation.outcome(rows, "mnist", 2, 1, full=True)
    printed, variant = outcome.tables
    assert ablation.VARIANT.error not in {row[0] for row in printed.rows}
    assert len(printed.rows) == 3
    assert [row[0] for row in variant.rows] == [ablation.VARIANT.error]
    assert not [name for name in variant.columns if "as printed" in name]
    points = {
        part.get_label(): part.get_offsets()[:, 0].compressed().tolist()
        for part in outcome.figures["ablation"].axes[0].collections
    }
    assert points["as printed"] == [60, 61, 62]
    assert points["variant, not printed"] == [63]


def test_committed_verdicts_follow_from_the_committed_runs():
    """60 new seeds decide every printed form, and the corrected forms agree with the paper."""
    runs = read_runs("ablation")
    assert {len(seeds) for seeds in runs.values()} == {60}
    cells = {key: sample_of([*seeds.values()]) for key, seeds in runs.items()}
    with (Path(__file__).parents[2] / "results" / "claims.csv").open() as file:
        committed = {row["id"]: row for row in csv.DictReader(file)}
    for version in ablation.PRINTED:
        rows = ablation.cell_rows(version, cells, "mnist", paper_table())
        assert all(abs(row[5]) < 2 for row in rows)  # corrected
        row = committed[ablation.CLAIMS[version.error]]
        assert ablation.verdict(rows) == row["verdict on ours"]
        for _, name, paper, corrected, printed, *_ in rows:
            text = f"{name}: {printed:.1f} % as printed, {corrected:.1f} % corrected, paper {paper}"
            assert text in row["ours"]


@pytest.mark.slow
def test_the_run_on_digits_is_labeled_and_not_judged(monkeypatch, tmp_path):
    monkeypatch.setattr(ablation, "CELLS", ((60, 4),))
    monkeypatch.setattr(ablation, "train_clusters", lambda seeds, epochs: np.full((1, 2, 2), 60.0))
    with Store(tmp_path / "runs.sqlite") as store:
        outcome = ablation.run(Context(images=datasets.digits(), jobs=1, store=store))
    check_presentation(outcome)
    assert [claim.id for claim in outcome.claims] == list(ablation.CLAIMS.values())
    assert {claim.verdict for claim in outcome.claims} == {Verdict.UNKNOWN}
    assert len(outcome.tables[0].rows) == 3 + len(ablation.PRINTED)
    assert [row[0] for row in outcome.tables[1].rows] == [ablation.VARIANT.error]
    cells = outcome.tables[0].rows[3:]
    assert all(row[1].startswith("digits, 60 images") for row in cells)
    assert all(row[2] is None for row in cells)  # there is nothing to compare
