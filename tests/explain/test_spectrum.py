"""Spectra and similarities of interaction matrices."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticLogisticRegression
from quadric.convert import fold, from_qda
from quadric.core import Quadratic
from quadric.explain import similarity, spectrum

IRIS = load_iris(as_frame=True)
SPECIES = IRIS.target_names[IRIS.target]


def layer_of(*Q):
    Q = np.array(Q, dtype=float)
    return Quadratic(np.zeros(Q.shape[:2]), np.zeros(len(Q)), Q)


@pytest.fixture(scope="module")
def model():
    pipeline = make_pipeline(StandardScaler(), QuadraticLogisticRegression())
    return pipeline.fit(IRIS.data, SPECIES)


def rebuilt(found):
    return np.einsum("ki,kia,kib->kab", found.eigenvalues, found.eigenvectors, found.eigenvectors)


def test_a_hand_worked_spectrum():
    found = spectrum(layer_of(np.diag([1.0, -3.0, 0.0]), np.diag([2.0, 2.0, 2.0])))
    np.testing.assert_allclose(found.eigenvalues, [[-3, 1, 0], [2, 2, 2]], atol=1e-15)
    np.testing.assert_allclose(found.energy, [[0.9, 0.1, 0], [1 / 3] * 3], atol=1e-15)
    np.testing.assert_allclose(found.effective_rank, [16 / 10, 3])
    assert [len(one.eigenvalues) for one in found.positive] == [1, 3]
    assert [len(one.eigenvalues) for one in found.negative] == [1, 0]
    np.testing.assert_allclose(found.positive[0].eigenvectors, [[1, 0, 0]])
    np.testing.assert_allclose(found.negative[0].eigenvectors, [[0, 1, 0]])
    assert found.labels == ["neuron 0", "neuron 1"]


def test_the_spectrum_of_zeros_is_zero():
    found = spectrum(layer_of(np.zeros((2, 2))))
    assert found.effective_rank.tolist() == [0.0]
    assert not found.energy.any()
    assert len(found.positive[0].eigenvalues) == len(found.negative[0].eigenvalues) == 0


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_eigenpairs_rebuild_the_folded_matrices(n, m, seed):
    stack = [("linear", 5, "identity"), ("reduced", 7, "identity"), ("linear", m, "identity")]
    network = Network.create(n, stack, init="normal", scale=1.0, rng=seed)
    found, Q = spectrum(network), fold(network).layers[0].Q
    np.testing.assert_allclose(rebuilt(found), Q, atol=1e-12 * np.abs(Q).max())
    magnitudes = np.abs(found.eigenvalues)
    assert (magnitudes[:, :-1] >= magnitudes[:, 1:]).all()
    assert (found.effective_rank >= 1 - 1e-12).all()
    assert (found.effective_rank <= n + 1e-9).all()
    np.testing.assert_allclose(found.energy.sum(axis=1), 1)
    largest = np.abs(found.eigenvectors).argmax(axis=2)
    assert (np.take_along_axis(found.eigenvectors, largest[..., None], 2) > 0).all()


def test_units_of_a_pipeline(model):
    scaler, classifier = model[0], model[1]
    own, scaled = spectrum(model), spectrum(model, units="scaled")
    np.testing.assert_allclose(scaled.eigenvalues, spectrum(classifier).eigenvalues, rtol=1e-9)
    factors = 1 / np.outer(scaler.scale_, scaler.scale_)
    np.testing.assert_allclose(rebuilt(own), rebuilt(scaled) * factors, atol=1e-10)
    assert own.names == list(IRIS.data.columns)
    assert own.labels == ["setosa", "versicolor", "virginica"]
    with pytest.raises(ValueError, match="units='scaled' needs a Pipeline"):
        spectrum(classifier, units="scaled")


def test_a_projection_is_undone():
    pipeline = make_pipeline(StandardScaler(), PCA(2), QuadraticLogisticRegression())
    found = spectrum(pipeline.fit(IRIS.data, SPECIES))
    assert found.eigenvalues.shape == (3, 4)
    assert [len(found.positive[k][0]) + len(found.negative[k][0]) for k in range(3)] == [2] * 3


def test_centering_changes_scores_but_no_prediction():
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(3, 4, 4))
    layer = layer_of(*(Q + Q.transpose(0, 2, 1)))
    softmax, plain = Network([layer], ["softmax"]), Network([layer], ["identity"])
    centered = layer.Q - layer.Q.mean(axis=0)
    np.testing.assert_allclose(rebuilt(spectrum(softmax)), centered, atol=1e-12)
    np.testing.assert_allclose(rebuilt(spectrum(softmax, centered=False)), layer.Q, atol=1e-12)
    np.testing.assert_allclose(rebuilt(spectrum(plain)), layer.Q, atol=1e-12)
    np.testing.assert_allclose(rebuilt(spectrum(plain, centered=True)), centered, atol=1e-12)
    X = rng.normal(size=(9, 4))
    np.testing.assert_allclose(
        Network([layer_of(*centered)], ["softmax"]).forward(X), softmax.forward(X), atol=1e-12
    )


def test_the_difference_of_two_classes_does_not_depend_on_centering(model):
    one = spectrum(model, between=("virginica", "versicolor"))
    Q = rebuilt(spectrum(model, centered=False))
    np.testing.assert_allclose(rebuilt(one)[0], Q[2] - Q[1], atol=1e-10)
    other = spectrum(model, between=("versicolor", "virginica"))
    np.testing.assert_allclose(other.eigenvalues, -one.eigenvalues, atol=1e-10)
    assert one.labels == ["virginica - versicolor"]
    with pytest.raises(ValueError, match="the classes are"):
        spectrum(model, between=("rose", "setosa"))
    with pytest.raises(ValueError, match="two different classes"):
        spectrum(model, between=("setosa", "setosa"))


def test_spectra_of_two_classes_and_of_qda_have_one_row_per_output():
    rows = IRIS.target < 2
    binary = QuadraticLogisticRegression().fit(IRIS.data[rows], SPECIES[rows])
    found = spectrum(binary)
    assert (found.eigenvalues.shape, found.labels) == ((1, 4), ["versicolor"])
    np.testing.assert_allclose(
        spectrum(binary, between=("versicolor", "setosa")).eigenvalues, found.eigenvalues
    )
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    qda = QuadraticDiscriminantAnalysis().fit(IRIS.data, SPECIES)
    assert spectrum(from_qda(qda)).eigenvalues.shape == (3, 4)


def test_a_torch_model_is_folded_first():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from quadric.torch import Reduced

    module = torch.nn.Sequential(torch.nn.Linear(6, 4), Reduced(4, 5), torch.nn.Linear(5, 3))
    found = spectrum(module)
    np.testing.assert_allclose(rebuilt(found), fold(module).layers[0].Q, atol=1e-12)


def test_eigenvectors_become_images():
    Q = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    images = spectrum(layer_of(Q)).images((2, 3))
    assert images.shape == (1, 6, 2, 3)
    np.testing.assert_array_equal(images[0, 0], [[0, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="images with 6 pixels"):
        spectrum(layer_of(Q)).images((2, 2))


def test_the_text_names_the_strongest_inputs():
    v = np.array([0.6, 0.0, -0.8])
    text = str(spectrum(layer_of(10 * np.outer(v, v) - 2 * np.diag([0.0, 1.0, 0.0]))))
    assert "neuron 0: effective rank 1.4, 1 positive and 1 negative eigenvalues" in text
    assert "+10   96.2 %   +0.80 x3, -0.60 x1" in text
    assert "-2    3.8 %   +1.00 x2" in text


def test_models_that_do_not_fold_are_refused():
    deep = Network.create(4, [("quadratic", 3, "tanh"), ("linear", 2, "softmax")], rng=0)
    with pytest.raises(ValueError, match=r"must fold to a single quadratic layer.*to 2 layers"):
        spectrum(deep)
    with pytest.raises(ValueError, match="units must be one of 'inputs', 'scaled'"):
        spectrum(layer_of(np.eye(2)), units="raw")


def test_similarities_match_hand_worked_ones():
    a = layer_of(np.diag([1.0, 0.0]), np.diag([0.0, 2.0]), np.diag([-3.0, 0.0]), np.zeros((2, 2)))
    wanted = [[1, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(similarity(a), wanted, atol=1e-15)
    b = layer_of([[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(similarity(a, b)[:, 0], [0.5, 0.5, -0.5, 0], atol=1e-15)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_similarities_are_symmetric_and_at_most_one(n, m, seed):
    a, b = (
        Network.create(n, [("quadratic", m, "softmax")], init="normal", scale=s, rng=seed + i)
        for i, s in enumerate((1.0, 1e-3))
    )
    own, cross = similarity(a), similarity(a, b)
    np.testing.assert_array_equal(own, own.T)
    assert np.abs(cross).max() <= 1
    np.testing.assert_allclose(similarity(b, a), cross.T, atol=1e-15)
    lengths = np.diag(own)
    assert (np.isclose(lengths, 1) | (lengths == 0)).all()


def test_models_with_different_inputs_have_no_similarity():
    with pytest.raises(ValueError, match=r"the same inputs\. Got 2 and 3 inputs"):
        similarity(layer_of(np.eye(2)), layer_of(np.eye(3)))


# ---- one direction in the space of the outputs ------------------------------------------------


def bilinear_network(n, d, m, seed=0):
    rng = np.random.default_rng(seed)
    return Network.create(
        n,
        [("linear", d, "identity"), ("reduced", 7, "identity"), ("linear", m, "softmax")],
        rng=rng,
        dtype="float64",
    )


@pytest.mark.parametrize(("n", "d"), [(9, 4), (5, 8)])  # with and without an embedding
def test_the_spectrum_of_a_direction_is_that_of_the_weighted_sum(n, d):
    network, direction = bilinear_network(n, d, 3), np.array([1.0, -2.0, 0.5])
    found = spectrum(network, direction=direction)
    assert found.eigenvalues.shape == (1, min(n, d))
    whole = np.tensordot(direction, fold(network).layers[0].Q, 1)
    np.testing.assert_allclose(rebuilt(found)[0], whole, atol=1e-12)
    lengths = np.linalg.norm(found.eigenvectors, axis=2)
    np.testing.assert_allclose(lengths, 1, rtol=1e-12)
    strongest = np.take_along_axis(
        found.eigenvectors, np.abs(found.eigenvectors).argmax(2)[..., None], 2
    )
    assert (strongest > 0).all()
    assert found.effective_rank[0] <= d
    assert "direction" in str(found)


def test_the_spectrum_of_a_direction_needs_no_matrix_of_a_large_vocabulary():
    network = bilinear_network(5000, 8, 5000)
    found = spectrum(network, direction=np.eye(5000)[3])
    assert found.eigenvectors.shape == (1, 8, 5000)


def test_a_wrong_direction_is_refused(model):
    network = bilinear_network(6, 3, 2)
    with pytest.raises(ValueError, match=r"one number per output, shape \(2,\). Got shape \(3,\)"):
        spectrum(network, direction=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="cannot be combined"):
        spectrum(network, direction=[1.0, 2.0], centered=True)
    with pytest.raises(ValueError, match="without steps"):
        spectrum(model, direction=[1.0, 2.0, 3.0])
