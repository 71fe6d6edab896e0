"""Where labels are proven, generated C code and the model agree."""

import re
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from quadric import QuadraticClassifier, QuadraticLogisticRegression
from quadric.codegen import generate
from tests.codegen.conftest import LOADERS, fitted
from tests.support.generated_code import SANITIZERS, compile_c, packed_rows

ARITHMETICS = {"double": "double", "float": "float", "int32": "int32_t"}
SHARES = {"double": 0.99, "float": 0.99, "int32": 0.95}
BODY = """int out[2] = {model_label(ARGS), model_proven(ARGS)};
    fwrite(out, sizeof(int), 2, stdout);
    (void)z;"""


def program(text, folder, arithmetic, texts=(), **options):
    body = BODY.replace("ARGS", "x, text" if texts else "x")
    real = ARITHMETICS[arithmetic]
    return compile_c(text, folder, body, real=real, texts=bool(texts), **options)


def labels_and_proofs(compiled, X, texts=()):
    done = subprocess.run([compiled], input=packed_rows(X, texts), capture_output=True)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, np.int32).reshape(-1, 2).T


def near_boundaries(model, low, high, count, rng):
    """Rows of a box; half of them, at most 2000, are moved to a tie of two scores by bisection."""
    X, half = rng.uniform(low, high, size=(count, len(low))), min(count // 2, 2000)
    a, b = X[:half].copy(), rng.uniform(low, high, size=(half, len(low)))
    wanted = model.predict(a)
    moved = wanted != model.predict(b)
    for _ in range(50):
        middle = (a + b) / 2
        same = (model.predict(middle) == wanted)[:, None]
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    first = rng.uniform(size=(len(a), 1)) < 0.5
    noise = rng.normal(size=a.shape) * 10.0 ** rng.uniform(-16, -3, size=(len(a), 1)) * (high - low)
    tie = np.clip(np.where(first, a, b) + noise, low, high)
    X[:half][moved] = tie[moved]
    return X


def assert_proven(model, X, compiled, count, seed):
    """Check labels of random rows in the box and of rows near ties; return the proven share."""
    attack = near_boundaries(
        model, X.min(axis=0), X.max(axis=0), count, np.random.default_rng(seed)
    )
    label, proven = labels_and_proofs(compiled, attack)
    agree = model.classes_[label] == model.predict(attack)
    assert (label >= 0).all()
    assert agree[proven == 1].all()
    return proven.mean(), agree.mean()


def covered(text):
    found, rows = re.search(r"Covered: (\d+) of (\d+) rows", text).groups()
    return int(found) / int(rows)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_proven_labels_are_those_of_the_model(name, arithmetic, tmp_path):
    model, X = fitted(name)
    text = generate(model, "c", X=X, arithmetic=arithmetic)
    assert covered(text) >= SHARES[arithmetic]
    share, _ = assert_proven(model, X, program(text, tmp_path, arithmetic), 1000, 0)
    assert 0.5 < share < 1


MODELS = {
    f"{data}, {type(step).__name__}, {kind}": (data, step, kind)
    for data, steps in {
        "iris": [StandardScaler(), MinMaxScaler(), PCA(3)],
        "wine": [StandardScaler(), RobustScaler(), PCA(5)],
        "breast cancer": [StandardScaler(), make_pipeline(StandardScaler(), PCA(10))],
        "digits": [StandardScaler(), PCA(20)],
    }.items()
    for step in steps
    for kind in ("quadratic", "reduced")
}


def a_model(data, step, kind):
    X, y = LOADERS[data](return_X_y=True)
    last = QuadraticClassifier((), layer_kinds=kind, random_state=0, max_iter=25)
    return make_pipeline(step, last).fit(X, y), X


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arithmetic", ["float", "int32"])
def test_proven_labels_on_many_rows(arithmetic, tmp_path):
    model, X = a_model(*MODELS["wine, RobustScaler, quadratic"])
    text = generate(model, "c", X=X, arithmetic=arithmetic)
    assert covered(text) >= SHARES[arithmetic]
    assert_proven(model, X, program(text, tmp_path, arithmetic), 100_000, 1)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arithmetic", ["float", "int32"])
@pytest.mark.parametrize("name", MODELS)
def test_proven_labels_of_twenty_models(name, arithmetic, tmp_path):
    """5 10^5 rows per model and arithmetic, 10^7 in all for each; 10^4 are moved to a tie."""
    model, X = a_model(*MODELS[name])
    text = generate(model, "c", X=X, arithmetic=arithmetic)
    compiled = program(text, tmp_path, arithmetic)
    assert covered(text) >= SHARES[arithmetic]
    for seed in range(5):
        assert_proven(model, X, compiled, 100_000, seed)


@pytest.mark.parametrize("arithmetic", ["float", "int32"])
def test_categories_and_missing_values_are_proven(arithmetic, tmp_path):
    model, X = fitted("mixed")
    text = generate(model, "c", X=X, arithmetic=arithmetic)
    compiled = program(text, tmp_path, arithmetic, texts=[2])
    label, proven = labels_and_proofs(compiled, X, [2])
    assert proven.mean() >= SHARES[arithmetic]
    assert model.classes_[label].tolist() == model.predict(X).tolist()
    outside = X[:1].assign(size=1e6)
    label, proven = labels_and_proofs(compiled, outside, [2])
    assert proven.tolist() == [0]
    assert label.tolist() == ([-1] if arithmetic == "int32" else label.tolist())


def test_an_epsilon_that_is_too_small_is_found(tmp_path):
    """The attack finds rows near a tie whose labels differ, which the bounds exclude."""
    model, X = fitted("wine")
    text = generate(model, "c", X=X, arithmetic="float")
    text = re.sub(r"(epsilon\[3\]\[3\] = )\{.*?\};", r"\1{{0.0f}};", text, flags=re.DOTALL)
    with pytest.raises(AssertionError):
        assert_proven(model, X, program(text, tmp_path, "float"), 20_000, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "wine",
        *(pytest.param(n, marks=pytest.mark.full) for n in ("iris", "breast cancer", "digits")),
    ],
)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_sanitizers_find_nothing_at_the_ends_of_the_box(arithmetic, compiler, name, tmp_path):
    model, X = fitted(name)
    text = generate(model, "c", X=X, arithmetic=arithmetic)
    compiled = program(text, tmp_path, arithmetic, compiler=compiler, options=SANITIZERS)
    rng = np.random.default_rng(0)
    corners = np.where(rng.uniform(size=(2000, X.shape[1])) < 0.5, X.min(axis=0), X.max(axis=0))
    corners[:10] *= 1e30
    corners[10, 3] = np.nan
    label, _ = labels_and_proofs(compiled, corners)
    assert (label[11:] == model.predict(corners[11:])).mean() > 0.99
    assert label[10] == -1


def numbers_of(text):
    """All numbers of the layers in generated C code, in the order of the file."""
    arrays = re.findall(r"static const \w+ [WbP](?:\[\d+\])+ = \{(.*?)\};", text, re.DOTALL)
    return [
        np.array([float(one.rstrip("f")) for one in re.findall(r"-?\d[\w.+-]*", a)]) for a in arrays
    ]


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("arithmetic", ["double", "float"])
def test_constants_are_read_back_bit_for_bit_and_a_flipped_bit_is_found(arithmetic):
    X, y = load_iris(return_X_y=True)
    X = np.hstack([X, X**2, X + 1])
    model = QuadraticLogisticRegression(max_iter=20).fit(X, y)
    dtype = np.dtype("float64" if arithmetic == "double" else "float32")
    layer = model.network_.layers[0]
    W, b, P = (a.astype(dtype) for a in numbers_of(generate(model, "c", arithmetic=arithmetic)))

    def equal(layer):
        upper = np.triu_indices(layer.n_inputs)
        double = np.where(upper[0] == upper[1], 1.0, 2.0)[:, None]
        wanted = layer.W.T, layer.b, layer.packed * double
        return all(
            np.array_equal(found, one.ravel().astype(dtype))
            for found, one in zip((W, b, P), wanted, strict=True)
        )

    assert equal(layer)
    rng = np.random.default_rng(0)
    for name in ("W", "b", "packed"):
        for _ in range(20):
            other = layer.copy()
            array = other.arrays()[name].reshape(-1).view(np.uint64)
            bit = rng.integers(30 if arithmetic == "float" else 0, 62)
            array[rng.integers(array.size)] ^= np.uint64(1) << np.uint64(bit)
            with np.errstate(all="ignore"):
                assert not equal(other)
