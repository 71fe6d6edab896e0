"""Bad input raises an error that names the argument, and changes nothing."""

import numpy as np
import pytest
from scipy import sparse

from quadric import Network
from quadric.checks import as_dtype
from tests.support.networks import make_network, max_difference

X, Y = np.ones((4, 3)), np.ones((4, 2))
SHAPE = r"X must have shape \(n_samples, 3\).*Got shape"


def changed(array, value):
    array = array.astype(float)
    array[1, 1] = value
    return array


BAD_FIT = [
    ((np.ones((4, 2)), Y), {}, ValueError, SHAPE + r" \(4, 2\)"),
    ((np.ones(3), Y), {}, ValueError, SHAPE + r" \(3,\)"),
    ((np.ones((4, 3, 1)), Y), {}, ValueError, SHAPE),
    ((sparse.csr_array(np.ones((4, 2))), Y), {}, ValueError, SHAPE),
    (([[1, 2, 3], [1, 2]], Y), {}, ValueError, "X must be a rectangular array"),
    ((X.astype(complex), Y), {}, TypeError, "X must hold real numbers. Got dtype complex128"),
    ((np.full((4, 3), "a"), Y), {}, TypeError, "X must hold real numbers"),
    ((np.full((4, 3), object()), Y), {}, TypeError, "X must hold numbers"),
    ((changed(X, np.nan), Y), {}, ValueError, r"X must be finite.*nan at index \(1, 1\)"),
    ((changed(X, -np.inf), Y), {}, ValueError, r"X must be finite.*-inf at index \(1, 1\)"),
    ((sparse.csr_array(changed(X, np.nan)), Y), {}, ValueError, "X must be finite"),
    ((X, changed(Y, np.nan)), {}, ValueError, "Y must be finite"),
    ((X, np.ones((3, 2))), {}, ValueError, r"Y must have shape \(4, 2\)"),
    ((X, np.ones(4)), {}, ValueError, r"Got shape \(4,\) instead; turn class labels.*np.eye"),
    ((X, sparse.csr_array(Y)), {}, TypeError, "Y must be a dense array"),
    ((X, 2 * Y), {}, ValueError, r"Y must lie in \[0, 1\].*encode labels as 0 and 1"),
    ((X, -Y), {}, ValueError, r"Y must lie in \[0, 1\]"),
    ((X[:0], Y[:0]), {}, ValueError, "X must have at least one row"),
    ((X, Y), {"loss": "cross_entropy"}, ValueError, "needs a last layer.*'softmax'"),
    ((X, Y), {"loss": "hinge"}, ValueError, "loss must be one of.*Got 'hinge'"),
    ((X, Y), {"loss": 3}, ValueError, "loss must be one of.*Got 3"),
    ((X, Y), {"solver": "newton"}, ValueError, "solver must be one of.*Got 'newton'"),
    ((X, Y), {"learning_rate": 0}, ValueError, "learning_rate must be .* above 0. Got 0"),
    ((X, Y), {"learning_rate": np.nan}, ValueError, "learning_rate must be a finite number"),
    ((X, Y), {"learning_rate": "fast"}, TypeError, "learning_rate must be.*Got 'fast'"),
    ((X, Y), {"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1"),
    ((X, Y), {"batch_size": 1.5}, TypeError, "batch_size must be a whole number"),
    ((X, Y), {"epochs": -1}, ValueError, "epochs must be a whole number of at least 0"),
    ((X, Y), {"epochs": True}, TypeError, "epochs must be a whole number"),
    ((X, Y), {"l2": -0.1}, ValueError, "l2 must be a finite number of at least 0"),
    ((X, Y), {"momentum": 1.0}, ValueError, "momentum must be.*below 1. Got 1.0"),
    ((X, Y), {"clip": 0}, ValueError, "clip must be.*above 0"),
    ((X, Y), {"power_t": -1}, ValueError, "power_t must be"),
    ((X, Y), {"offset": np.ones(2)}, ValueError, r"offset must be a number or have shape \(3,\)"),
    ((X, Y), {"offset": np.inf}, ValueError, "offset must be finite"),
    ((X, Y), {"sample_weight": np.ones(3)}, ValueError, r"sample_weight must.*shape \(4,\)"),
    ((X, Y), {"sample_weight": [1, 1, -2, 1]}, ValueError, "not be negative. Got -2.0 at index 2"),
    ((X, Y), {"rng": "seed"}, ValueError, "rng must be"),
    ((X, Y), {"rng": -1}, ValueError, "rng must be"),
    ((X, Y), {"rng": True}, ValueError, "rng must be"),
    ((X, Y), {"shuffle": "no"}, TypeError, "shuffle must be True or False. Got 'no'"),
    ((X, Y), {"learning_rate": 10**400}, ValueError, "learning_rate must be a finite number"),
    ((X, Y), {"validation": (X, Y), "score": "accuracy"}, TypeError, "score must be callable"),
    ((X, Y), {"validation": (X[:0], Y[:0])}, ValueError, "the validation X must have at least one"),
    ((sparse.csr_array(X.astype(complex)), Y), {}, TypeError, "X must hold real numbers"),
    ((np.ma.masked_equal(X, 1), Y), {}, TypeError, "X must not be a masked array"),
    ((X, Y), {"callback": 3}, TypeError, "callback must be callable"),
    ((X, Y), {"validation": X}, ValueError, r"validation must be \(X, Y\)"),
    ((X, Y), {"validation": (X[:, :2], Y)}, ValueError, "the validation X must have shape"),
    ((X, Y), {"validation": (X, 3 * Y)}, ValueError, r"must lie in \[0, 1\]"),
]


@pytest.mark.parametrize(("data", "options", "error", "message"), BAD_FIT)
@pytest.mark.parametrize("path", [{}, {"batch_size": 2}])
def test_bad_input_raises_and_changes_nothing(data, options, error, message, path):
    net = make_network(("linear", "quadratic"), "tanh", "logistic")
    before = net.copy()
    with pytest.raises(error, match=message):
        net.fit(*data, **(path | options))
    assert max_difference(net, before) == 0.0


def test_cross_entropy_requires_distributions():
    net = make_network(["quadratic"], "tanh", "softmax", widths=(2,))
    for bad in (Y, np.zeros((4, 2)), np.array([[2.0, -1.0]] * 4)):
        with pytest.raises(ValueError, match="rows that are non-negative and sum to 1"):
            net.fit(X, bad)
    assert net.fit(X, Y / 2, epochs=1).epochs == 1


def test_float32_overflow_is_detected():
    net = make_network(["quadratic"], "tanh", "identity", widths=(2,), dtype="float32")
    with pytest.raises(ValueError, match=r"X must be finite in float32\. Got inf"):
        net.forward(np.full((1, 3), 1e300))


def test_large_finite_numbers_are_accepted():
    net = make_network(["linear"], "tanh", "identity", widths=(2,))
    assert np.isfinite(net.forward(np.full((2, 3), 1e307))).all()  # their sum overflows


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, [("linear", 1, "tanh")]), ValueError, "n_inputs must be a whole number"),
        ((2.5, [("linear", 1, "tanh")]), TypeError, "n_inputs must be a whole number"),
        ((2, []), ValueError, "at least 1"),
        ((2, [("cubic", 1, "tanh")]), ValueError, r"kind of layers\[0\] must be one of 'linear'"),
        ((2, [("linear", 0, "tanh")]), ValueError, r"neurons of layers\[0\] must be"),
        ((2, [("linear", 1, "step")]), ValueError, r"activation of layers\[0\] must be one of"),
        ((2, [("linear", 1)]), ValueError, r"layers\[0\] must be \(kind, neurons, activation\)"),
        ((2, None), TypeError, "layers must be a sequence"),
        ((2, ["linear"]), ValueError, r"layers\[0\] must be \(kind, neurons, activation\)"),
    ],
)
def test_bad_layers_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Network.create(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init": "zeros"}, "init must be one of 'normal', 'glorot', 'identity', 'relinear'"),
        ({"init": ["normal"]}, "init must be one of"),
        ({"scale": -1}, "scale must be a finite number of at least 0"),
        ({"scale": np.nan}, "scale must be a finite number"),
        ({"scale": "big"}, "scale must be a finite number"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64'. Got 'float16'"),
        ({"dtype": "nonsense"}, "dtype must be"),
        ({"rng": 1.5}, "rng must be"),
    ],
)
def test_bad_options_of_create_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Network.create(2, [("linear", 1, "tanh")], **options)


def test_dtypes_are_accepted_as_classes_and_as_names():
    assert as_dtype(np.float32) == as_dtype("float32") == np.dtype("f4")


def test_unusual_but_valid_input_is_accepted():
    net = make_network(("linear", "quadratic"), "tanh", "logistic")
    wanted = net.forward(X)
    for good in (X.astype(int), X.astype(bool), X.tolist(), X.astype(object), np.asfortranarray(X)):
        np.testing.assert_array_equal(net.forward(good), wanted)
    read_only = X.copy()
    read_only.flags.writeable = False
    net.fit(read_only, Y, epochs=1)
    net.fit(X[:, ::-1], Y, epochs=1)
    assert net.forward(X[:0]).shape == (0, 2)


def test_empty_data_are_refused():
    net = make_network(["quadratic"], "tanh", "logistic", widths=(2,))
    for method in (net.gradients, net.check_gradients, net.fit):
        with pytest.raises(ValueError, match="X must have at least one row"):
            method(X[:0], Y[:0])


def test_parameters_that_overflow_in_float32_are_refused():
    net = make_network(["quadratic"], "tanh", "identity", widths=(2,), dtype="float32")
    with pytest.raises(ValueError, match="W must be finite in float32"):
        net.layers[0].W = np.full((2, 3), 1e300)
    assert np.abs(net.layers[0].W).max() < 10
    double = net.astype("float64")
    double.layers[0].b = [1e300, 0]
    with pytest.raises(ValueError, match="b must be finite in float32"):
        double.astype("float32")


def test_wrong_options_of_check_gradients_are_refused():
    net = make_network(["quadratic"], "tanh", "logistic", widths=(2,))
    with pytest.raises(ValueError, match="step must be"):
        net.check_gradients(X, Y, step=0)
    with pytest.raises(TypeError, match="l2 must be"):
        net.check_gradients(X, Y, l2="a")


def test_a_layer_that_is_used_twice_is_refused():
    from quadric import Linear

    layer = Linear(np.eye(3), np.zeros(3))
    with pytest.raises(ValueError, match="layers must be different objects"):
        Network([layer, layer], ["tanh", "tanh"])


def test_a_network_that_does_not_fit_into_memory_is_refused():
    with pytest.raises(MemoryError, match=r"layer 1 \(quadratic, 200,000 inputs, 10 neurons\)"):
        Network.create(3, [("linear", 200_000, "tanh"), ("quadratic", 10, "softmax")])
