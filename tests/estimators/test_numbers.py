"""Input that would silently give wrong numbers: masked arrays, overflow, indices out of range."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    load,
    plotting,
    save,
)
from quadric.apps.shell.tables import (
    ColumnOptions,
    Settings,
    TableNetwork,
    open_table,
    predict,
    train,
)
from quadric.convert import separate, separating_quadric
from quadric.core._layers import Linear
from quadric.errors import TableError
from quadric.explain import explain, quadrics
from quadric.geometry import Quadric
from tests.support.networks import make_network, max_difference
from tests.support.processes import output_of

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
MASKED = np.ma.masked_array(X, X > 2)  # some entries
UNMASKED = np.ma.masked_array(X)  # none, but a later step could mask one
MODELS = (
    QuadraticClassifier((), random_state=0),
    QuadraticClassifier((), solver="adam", random_state=0, max_iter=3),
    QuadraticRegressor((), random_state=0),
    QuadraticLogisticRegression(),
)


def fitted(model, **data):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return model.fit(data.get("X", X), data.get("y", Y))


# ---- masks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [MASKED, UNMASKED])
@pytest.mark.parametrize("model", MODELS)
def test_estimators_refuse_masked_arrays(model, masked):
    for name, arguments in (
        ("X", (masked, Y)),
        ("y", (X, np.ma.masked_array(Y, X[:, 0] > 2))),
        ("sample_weight", (X, Y, np.ma.masked_array(np.ones(40), X[:, 0] > 2))),
    ):
        methods = [model.fit]
        if getattr(model, "solver", "") == "adam":
            methods.append(lambda *given: model.partial_fit(*given, classes=[0, 1]))
        for method in methods:
            with pytest.raises(TypeError, match=f"{name} must not be a masked array; fill it"):
                method(*arguments)
    assert not hasattr(model, "network_")
    one = fitted(type(model)(**model.get_params()))
    for method in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
        if hasattr(one, method):
            with pytest.raises(TypeError, match="X must not be a masked array"):
                getattr(one, method)(masked)


def test_networks_and_layers_refuse_masked_arrays():
    net = make_network(["quadratic"], "tanh", "logistic", widths=(1,))
    before = net.copy()
    for call in (
        lambda: net.forward(MASKED),
        lambda: net.logits(MASKED),
        lambda: net.fit(MASKED, Y),
        lambda: net.fit(X, np.ma.masked_array(Y)),
        lambda: net.fit(X, Y, sample_weight=np.ma.ones(40)),
        lambda: net.gradients(MASKED, Y),
        lambda: net.check_gradients(MASKED, Y),
        lambda: net.forward(X, offset=np.ma.ones(3)),
        lambda: setattr(net.layers[0], "W", np.ma.ones((1, 3))),
        lambda: setattr(net.layers[0], "Q", np.ma.ones((1, 3, 3))),
        lambda: Linear(np.ma.ones((1, 3)), [0]),
    ):
        with pytest.raises(TypeError, match="must not be a masked array"):
            call()
    assert max_difference(net, before) == 0


def test_geometry_explanations_and_plots_refuse_masked_arrays():
    model = fitted(QuadraticLogisticRegression())
    surface = quadrics(model)[0]
    plane = np.ma.masked_array(X[:, :2])
    two = fitted(QuadraticLogisticRegression(), X=X[:, :2])
    for call in (
        lambda: explain(model, MASKED),
        lambda: surface.value(MASKED),
        lambda: surface.nearest(MASKED),
        lambda: Quadric(np.ma.ones((2, 2)), [0, 0], 1),
        lambda: separate(MASKED, Y),
        lambda: separate(X, np.ma.masked_array(Y)),
        lambda: separating_quadric(MASKED, Y),
        lambda: plotting.plot_points(plane, Y),
        lambda: plotting.plot_points(X[:, :2], np.ma.masked_array(Y)),
        lambda: plotting.plot_regions(two, plane, Y),
        lambda: plotting.plot_slices(surface, X=MASKED),
        lambda: plotting.animate([[Quadric(np.eye(2), [0, 0], -1)]], plane, Y),
    ):
        with pytest.raises((TypeError, ValueError), match="must not be a masked array"):
            call()


# ---- overflow --------------------------------------------------------------------------------

TOO_LARGE = r"X contains values so large \(up to 1e\+\d+\) that a pre-activation of layer \d is"


def signs(size, dtype="float64"):
    """Return finite inputs of both signs whose squares overflow, which leads to inf - inf."""
    return np.array([[size, -size, size], [-size, -size, size]], dtype=dtype)


@pytest.mark.parametrize("last", ["logistic", "softmax", "identity", "relu", "tanh"])
@pytest.mark.parametrize(("size", "dtype"), [(1e30, "float32"), (1e200, "float64")])
@pytest.mark.parametrize("kinds", [["quadratic"], ["reduced"], ["quadratic", "linear"]])
def test_a_network_that_overflows_raises(kinds, size, dtype, last):
    widths = (2,) if len(kinds) == 1 else (4, 2)
    net = make_network(kinds, "tanh", last, widths=widths, dtype=dtype)
    for method in (net.forward, net.logits):
        with pytest.raises(ValueError, match=TOO_LARGE):
            method(signs(size, dtype))
        with pytest.raises(ValueError, match=TOO_LARGE):
            method(sparse.csr_array(signs(size, dtype)))
        assert np.isfinite(method(X)).all()
    targets = np.array([[1.0, 0.0]] * 2)
    with pytest.raises(ValueError, match=TOO_LARGE):
        net.gradients(signs(size, dtype), targets)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("size", "dtype"), [(1e30, "float32"), (1e200, "float64")])
def test_an_estimator_that_overflows_raises(model, form, size, dtype):
    one = fitted(type(model)(**model.get_params()), X=X.astype(dtype))
    huge = form(signs(size, dtype))
    for method in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
        if hasattr(one, method):
            with pytest.raises(ValueError, match=TOO_LARGE):
                getattr(one, method)(huge)


def test_values_that_are_not_finite_are_named_as_such():
    model = fitted(QuadraticClassifier((), random_state=0))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="contains"):
            model.predict(np.where(np.eye(3), bad, 1.0))


def test_an_overflow_on_validation_data_has_the_worst_score():
    net = make_network(["quadratic"], "tanh", "softmax", widths=(2,), dtype="float32")
    Y2 = np.eye(2)[Y]
    history = net.fit(X, Y2, epochs=2, validation=(signs(1e30, "float32"), Y2[:2]))
    assert history.validation_score == [-np.inf, -np.inf]
    history = net.fit(
        X, Y2, epochs=1, validation=(signs(1e30, "float32"), Y2[:2]), score=lambda Y, a: 1.0
    )
    assert history.validation_score == [-np.inf]


def test_an_overflow_in_a_table_is_a_one_line_error(tmp_path):
    """The table's numbers are within the limit, but the scaler divides by a tiny deviation."""
    path = tmp_path / "table.csv"
    rows = [f"{1e-60 * a},{b},{y}\n" for (a, b, _), y in zip(X.tolist(), Y, strict=True)]
    path.write_text("a,b,y\n" + "".join(rows))
    trained = train(open_table(path), ColumnOptions("y"), Settings(hidden=()))
    save(trained.model, tmp_path / "m.quadric")
    huge = tmp_path / "huge.csv"
    huge.write_text("a,b\n1e99,1e99\n-1e99,1e99\n")
    for proba in (False, True):
        with pytest.raises(TableError, match="values so large"):
            predict(
                load(tmp_path / "m.quadric"),
                trained.schema,
                open_table(huge),
                tmp_path / "o",
                proba=proba,
            )
    assert not (tmp_path / "o").exists()
    network = Network.create(2, [("quadratic", 2, "softmax")], rng=0, dtype="float32")
    model = TableNetwork(network, {"columns": ["a", "b"]})
    huge.write_text("a,b\n1e30,1e30\n-1e30,1e30\n")
    with pytest.raises(TableError, match="so large"):
        predict(model, model.schema, open_table(huge), tmp_path / "o", proba=True)


# ---- sparse indices --------------------------------------------------------------------------


def nonsense(case):
    """Return an invalid CSR matrix with five columns that SciPy accepts."""
    good = sparse.csr_array(np.ones((4, 5)))
    data, indices, indptr = good.data.copy(), good.indices.copy(), good.indptr.copy()
    if case in ("7 of 5", "10**8", "-1"):
        indices[3] = {"7 of 5": 7, "10**8": 10**8, "-1": -1}[case]
    elif case == "indptr falls":
        indptr[2] = 17
    elif case == "indptr is negative":
        indptr[0] = -3
    elif case == "indptr past the end":
        indptr[-1] = 10**6
    elif case == "indptr begins late":
        indptr[0] = 2
    elif case == "indptr ends with 0":  # scipy's check_format accepts it
        indptr[-1] = 0
    matrix = sparse.csr_array((4, 5))
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


CASES = (
    "7 of 5",
    "10**8",
    "-1",
    "indptr falls",
    "indptr is negative",
    "indptr past the end",
    "indptr begins late",
    "indptr ends with 0",
)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("model", MODELS)
def test_invalid_sparse_matrices_are_refused(model, case):
    good, y = np.random.default_rng(0).normal(size=(4, 5)), [0, 1, 0, 1]
    model = type(model)(**model.get_params())
    with pytest.raises(ValueError, match="X must be a valid CSR matrix"):
        model.fit(nonsense(case), y)
    if getattr(model, "solver", "") == "adam":
        with pytest.raises(ValueError, match="X must be a valid CSR matrix"):
            model.partial_fit(nonsense(case), y, classes=[0, 1])
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(good, y)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match="X must be a valid CSR matrix"):
                getattr(model, method)(nonsense(case))


# ---- without compiled code -------------------------------------------------------------------

FORBIDDEN = """
import numpy as np
from quadric import (
    Network, QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor,
)
X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)
paper = {"solver": "sgd", "batch_size": 1, "momentum": 0}

def attempt(name, work):
    try:
        work()
        print(name, "works")
    except RuntimeError as error:
        assert "Unset NUMBA_DISABLE_JIT." in str(error), error
        assert "\\n" not in str(error)
        print(name, "refused")

for kind in ("linear", "reduced", "quadratic"):
    for options in ({}, {"batch_size": 5}, {"solver": "adam"}, {"solver": "lbfgs"}):
        net = Network.create(3, [(kind, 1, "logistic")], rng=0)
        before = net.layers[0].W.copy()
        attempt(f"network {kind} {options}", lambda: net.fit(X, y, epochs=2, **options))
        if kind == "quadratic" or not options:
            assert (net.layers[0].W == before).all()
    for options in ({"solver": "lbfgs"}, {"solver": "sgd"}, {"solver": "adam"}, paper):
        for make in (QuadraticClassifier, QuadraticRegressor):
            model = make((), layer_kinds=kind, max_iter=3, random_state=0, **options)
            attempt(f"{make.__name__} {kind} {options}", lambda: model.fit(X, y).predict(X))
for solver in ("lbfgs", "sgd"):
    model = QuadraticLogisticRegression(solver=solver, max_iter=3)
    attempt(f"logistic {solver}", lambda: model.fit(X, y).predict(X))
"""


@pytest.mark.slow
def test_without_compilation_each_solver_works_or_raises():
    lines = output_of(FORBIDDEN, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore").splitlines()
    assert len(lines) == 3 * (4 + 8) + 2
    for line in lines:
        needed = ("quadratic", "logistic", "{}", "'batch_size': 1,")  # these need compiled code
        compiled = any(word in line for word in needed)
        assert line.endswith("refused" if compiled else "works"), line
