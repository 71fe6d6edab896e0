"""Conversion between `Network` and torch is exact; torch models work with the command line."""

import copy
import itertools
import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax  # noqa: E402
from torch.nn.utils import parametrizations, weight_norm  # noqa: E402

import quadric  # noqa: E402
from quadric import Network  # noqa: E402
from quadric.torch import Linear, Quadratic, Reduced, from_network, to_network  # noqa: E402
from tests.support.commands import (  # noqa: E402
    NAMES as COLUMNS,
    command,
    write_iris,
)
from tests.support.fixtures import CASES, NAMES, assert_packed, network  # noqa: E402
from tests.support.networks import ENDS, HIDDEN, KINDS, make_network, targets  # noqa: E402
from tests.support.process_groups import one_process, shard  # noqa: E402

pytestmark = pytest.mark.usefixtures("seeded")
BIASES = ("b", "c")


def loss_of(module, name, X, Y):
    """Compute the loss as in quadric.core.LOSSES: sum over outputs, mean over samples."""
    z = module.logits(X)
    if name == "binary_cross_entropy":
        total = binary_cross_entropy_with_logits(z, Y, reduction="sum")
    elif name == "cross_entropy":
        total = -(Y * log_softmax(z, dim=-1)).sum()
    elif name == "poisson":
        total = (module(X) - Y + torch.xlogy(Y, Y) - Y * z).sum()
    else:
        total = 0.5 * (module(X) - Y).square().sum()
    return total / len(X)


def gradients(module):
    """Return the gradients under the names of `state_dict`."""
    return {name: parameter.grad.numpy() for name, parameter in module.named_parameters()}


def as_tensors(*arrays, dtype=torch.float64):
    return [torch.tensor(np.asarray(array), dtype=dtype) for array in arrays]


def arrays_of(net):
    return {
        f"layers.{l}.{name}": array
        for l, layer in enumerate(net.layers)
        for name, array in layer.arrays().items()
    }


def assert_identical(a, b):
    """Check that two networks are bit-identical."""
    assert a.activations == b.activations
    assert [layer.kind for layer in a.layers] == [layer.kind for layer in b.layers]
    left, right = arrays_of(a), arrays_of(b)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype
        assert left[name].tobytes() == right[name].tobytes(), name


# ---- the same numbers ----------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "last_kind"), list(itertools.product(KINDS, KINDS)))
@pytest.mark.parametrize(("loss", "last"), ENDS)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_forward_and_gradients_match_the_core(kind, last_kind, loss, last, hidden):
    rng = np.random.default_rng(3)
    net = make_network((kind, last_kind), hidden, last, n=5, widths=(7, 3))
    X, Y = rng.normal(size=(11, 5)), targets(loss, 11, 3, rng)
    module = from_network(net)
    x, y = as_tensors(X, Y)
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(module.logits(x).detach(), net.logits(X), **near)
    np.testing.assert_allclose(module(x).detach(), net.forward(X), **near)
    value = loss_of(module, loss, x, y)
    value.backward()
    wanted, grads = net.gradients(X, Y, loss)
    np.testing.assert_allclose(value.item(), wanted, **near)
    found = gradients(module)
    for l, layer in enumerate(grads):
        for name, array in layer.arrays().items():
            np.testing.assert_allclose(found.pop(f"layers.{l}.{name}"), array, **near)
    assert not found


@pytest.mark.slow
def test_a_wide_network_computes_the_same_as_the_core():
    """More than 128 inputs use several blocks of columns."""
    rng = np.random.default_rng(4)
    net = make_network(("quadratic", "quadratic"), "tanh", "softmax", n=140, widths=(150, 70))
    X, Y = rng.normal(size=(9, 140)) / 12, targets("cross_entropy", 9, 70, rng)
    module = from_network(net)
    x, y = as_tensors(X, Y)
    np.testing.assert_allclose(module(x).detach(), net.forward(X), rtol=1e-12, atol=1e-14)
    loss_of(module, "cross_entropy", x, y).backward()
    found = gradients(module)
    for l, layer in enumerate(net.gradients(X, Y)[1]):
        for name, array in layer.arrays().items():
            np.testing.assert_allclose(found[f"layers.{l}.{name}"], array, atol=1e-12)
    assert_identical(to_network(module), net)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_forward_and_gradients_match_the_parity_fixture(case):
    module = from_network(network(case))
    x, y = as_tensors(case["X"], case["Y"])
    np.testing.assert_allclose(module.logits(x).detach(), case["logits"], atol=1e-13)
    np.testing.assert_allclose(module(x).detach(), case["outputs"], atol=1e-13)
    loss = loss_of(module, case["loss"], x, y)
    assert loss.item() == pytest.approx(case["mean_loss"], rel=1e-12)
    loss.backward()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.grad)
    assert_packed(to_network(module).layers, case["mean_gradients"], atol=1e-13)


@pytest.mark.sample(8)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_200_steps_of_sgd_match_the_parity_fixture(case):
    """Weight decay on the weights, but not on the biases, corresponds to the fixture's l2."""
    module = from_network(network(case))
    named = dict(module.named_parameters())
    groups = [
        {
            "params": [
                p for name, p in named.items() if (name.split(".")[-1] in BIASES) == is_bias
            ],
            "weight_decay": 0.0 if is_bias else case["l2"],
        }
        for is_bias in (False, True)
    ]
    optimizer = torch.optim.SGD(groups, lr=case["sgd"]["rate"])
    x, y = as_tensors(case["X"], case["Y"])
    for step in range(case["sgd"]["steps"]):
        i = step % len(x)
        optimizer.zero_grad()
        loss_of(module, case["loss"], x[i : i + 1], y[i : i + 1]).backward()
        optimizer.step()
    assert_packed(to_network(module).layers, case["sgd"]["parameters"], atol=1e-12)


def test_leading_dimensions_of_the_input_are_kept():
    net = make_network(("quadratic", "reduced"), "relu", "softmax")
    module, x = from_network(net), torch.randn(4, 5, 3, dtype=torch.float64)
    assert torch.equal(module(x), module(x.reshape(20, 3)).reshape(4, 5, 2))
    np.testing.assert_allclose(module(x).sum(-1).detach(), np.ones((4, 5)), rtol=1e-12)


# ---- round trips ---------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "last_kind"), list(itertools.product(KINDS, KINDS)))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", ["identity", "logistic", "softmax"])
def test_round_trips_are_exact(kind, last_kind, dtype, last):
    net = make_network((kind, last_kind), "tanh", last, n=6, widths=(5, 4), dtype=dtype)
    module = from_network(net)
    state = module.state_dict()
    wanted = arrays_of(net)
    assert state.keys() == wanted.keys()
    for name, array in wanted.items():
        assert state[name].numpy().dtype == array.dtype
        assert state[name].numpy().tobytes() == array.tobytes(), name
    assert_identical(to_network(module), net)


def test_the_smallest_numbers_survive_the_round_trip():
    """Halving an entry of Q, as an assignment does, would lose its last bit."""
    net = make_network(("quadratic",), "tanh", "identity", widths=(2,), dtype="float32")
    tiny = np.float32(1e-45)
    for array in net.layers[0].arrays().values():
        array[...] = tiny
    assert (tiny == net.layers[0].Q).all()
    assert_identical(to_network(from_network(net)), net)


def test_converted_models_share_no_memory():
    net = make_network(("quadratic", "reduced"), "tanh", "softmax")
    kept = net.copy()
    module = from_network(net)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    assert_identical(net, kept)
    back = to_network(module)
    kept = back.copy()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    assert_identical(back, kept)
    back.layers[0].W[...] = 0  # writable


def test_conversion_does_not_change_the_random_state():
    before = torch.get_rng_state()
    from_network(make_network(("quadratic", "linear"), "tanh", "softmax"))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_network_from_a_file_converts(tmp_path):
    net = make_network(("quadratic", "reduced"), "tanh", "softmax")
    quadric.save(net, tmp_path / "net.quadric")
    module = from_network(quadric.load(tmp_path / "net.quadric"))
    assert_identical(to_network(module), net)


def test_the_module_supports_the_usual_operations():
    module = from_network(make_network(("linear", "quadratic"), "relu", "softmax"))
    other = from_network(make_network(("linear", "quadratic"), "relu", "softmax", seed=1))
    other.load_state_dict(module.state_dict())
    assert_identical(to_network(other), to_network(module))
    assert "activations=relu, softmax" in repr(module)
    assert_identical(to_network(copy.deepcopy(module)), to_network(module))
    assert from_network(to_network(module.float())).layers[0].W.dtype == torch.float32


# ---- from a user's modules -----------------------------------------------------------------


def assert_same_function(module, net, n, dtype=torch.float64):
    x = torch.randn(9, n, dtype=dtype, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        outputs = module.eval()(x)
    np.testing.assert_allclose(net.forward(x.numpy()), outputs, rtol=1e-12, atol=1e-12)


def test_a_sequential_converts():
    module = nn.Sequential(
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Identity(),
        nn.Linear(5, 8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Sequential(Linear(8, 7), nn.Sequential(nn.Tanh(), nn.Identity())),
        Reduced(7, 6),
        nn.AlphaDropout(),
        nn.Sigmoid(),
        nn.Linear(6, 4),
        Quadratic(4, 3),
        nn.Softmax(dim=-1),
    ).double()
    net = to_network(module)
    kinds = ["linear", "linear", "reduced", "linear", "quadratic"]
    assert [layer.kind for layer in net.layers] == kinds
    assert net.activations == ("relu", "tanh", "logistic", "identity", "softmax")
    assert_same_function(module, net, 5)


def test_a_converted_network_inside_a_sequential_converts():
    net = make_network(("linear", "quadratic"), "tanh", "identity")
    module = nn.Sequential(nn.Flatten(), from_network(net), nn.Softmax(dim=1))
    assert_same_function(module, to_network(module), 3)


@pytest.mark.parametrize(
    ("make", "options", "zero"),
    [
        (nn.Linear, {"bias": False}, "b"),
        (Linear, {"bias": False}, "b"),
        (Quadratic, {"bias": False}, "b"),
        (Quadratic, {"linear": False}, "W"),
        (Quadratic, {"bias": False, "linear": False}, "Wb"),
        (Reduced, {"bias": False}, "bc"),
    ],
)
def test_absent_parameters_become_zero(make, options, zero):
    layer = make(3, 2, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    net = to_network(layer)
    for name, array in net.layers[0].arrays().items():
        assert array.any() == (name not in zero), name
    assert_same_function(layer, net, 3)


def test_a_replaced_head_without_bias_converts():
    head = quadric.torch.replace_head(nn.Linear(3, 2, bias=False).double(), "reduced")
    assert_same_function(head, to_network(head), 3)


@pytest.mark.parametrize("last", ["softmax", "logistic", "identity", "tanh", "relu"])
def test_the_last_activation_can_be_given(last):
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), Quadratic(4, 2)).double()
    net = to_network(module, activation=last)
    assert net.activations == ("relu", last)
    x = torch.randn(5, 3, dtype=torch.float64)
    np.testing.assert_allclose(net.logits(x.numpy()), module(x).detach(), rtol=1e-12, atol=1e-12)
    assert to_network(from_network(net)).activations == ("relu", last)


def test_the_last_activation_of_a_converted_network_can_be_given():
    net = make_network(("quadratic",), "tanh", "identity", widths=(2,))
    assert to_network(from_network(net), activation="softmax").activations == ("softmax",)
    module = from_network(Network(net.layers, ["softmax"]))
    assert to_network(module, activation="softmax").activations == ("softmax",)
    with pytest.raises(ValueError, match=r"ends with 'softmax' at 'activations\[0\]'"):
        to_network(module, activation="logistic")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_becomes_single(dtype):
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), Quadratic(4, 2), nn.Sigmoid()).to(dtype)
    net = to_network(module)
    assert net.dtype == np.float32
    assert_identical(net, to_network(module.float()))  # float32 represents these numbers exactly


def test_parametrized_weights_are_copied_as_computed():
    module = nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 4).double()), nn.Tanh())
    assert_same_function(module, to_network(module), 3)


# ---- unsupported models --------------------------------------------------------------------


class Scaled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Residual(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


def hooked():
    module = nn.Sequential(nn.Linear(2, 2))
    module[0].register_forward_hook(lambda *_: None)
    return module


def patched():
    module = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    module[1].forward = lambda x: x
    return module


def infinite():
    module = nn.Sequential(nn.Linear(2, 2))
    module[0].bias.data[0] = torch.inf
    return module


def one(*modules):
    return lambda: nn.Sequential(nn.Linear(2, 2), *modules)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (
            lambda: nn.Sequential(nn.Conv2d(1, 1, 3)),
            "the Conv2d at '0' is not supported by Network",
        ),
        (lambda: nn.GRU(2, 2), "the GRU is not supported by Network. .* Pass the part"),
        (one(nn.Sequential(nn.Tanh(), nn.GELU())), "the GELU at '1.1' is not supported"),
        (one(nn.BatchNorm1d(2)), "the BatchNorm1d at '1' .* Fold it into"),
        (one(nn.LogSoftmax(dim=1)), "the LogSoftmax at '1' .* pass activation='softmax'"),
        (one(nn.ReLU(), nn.Tanh()), "the Tanh at '2' must come after a layer.*'relu' at '1'"),
        (one(nn.ReLU(), nn.Dropout(), nn.ReLU()), "the ReLU at '3' must come after a layer"),
        (lambda: nn.Sequential(nn.Tanh(), nn.Linear(2, 2)), "the Tanh at '0'.* There is none"),
        (one(nn.Softmax(dim=1), nn.Linear(2, 2)), "last activation. At '1' it .* Linear at '2'"),
        (one(nn.Softmax(dim=0)), "the Softmax at '1' must run over the neurons.* Got dim=0"),
        (one(nn.Flatten()), "the Flatten at '1' must come before"),
        (lambda: nn.Sequential(nn.Flatten(2), nn.Linear(2, 2)), "the Flatten at '0' must come"),
        (lambda: nn.Sequential(), "module must have a layer. This Sequential has none"),
        (lambda: nn.Sequential(Scaled(2, 2)), "the Scaled at '0' is not supported"),
        (one(Residual(nn.Linear(2, 2))), "the Residual at '1' is not supported"),
        (hooked, "the Linear at '0' has forward hooks"),
        (patched, "the Tanh at '1' is not supported"),
        (lambda: nn.Sequential(nn.Linear(2, 3), nn.Linear(2, 3)), r"layers\[1\] must have 3 inp"),
        (infinite, "b of the Linear at '0' must be finite"),
        (lambda: nn.Sequential(nn.Linear(2, 2).to("meta")), "the parameter '0.weight' is on the m"),
        (lambda: nn.Linear(2, 2, dtype=torch.complex64), "the parameter 'weight' must hold real"),
    ],
)
def test_unsupported_modules_are_named_with_their_path(make, part):
    with pytest.raises(ValueError, match=part):
        to_network(make())


def test_a_lazy_layer_without_parameters_is_refused():
    module = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(ValueError, match=r"'0.weight' has no shape yet: run a batch"):
        to_network(module)
    module(torch.zeros(1, 3))
    assert to_network(module).n_inputs == 3


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_weights_computed_by_a_hook_are_refused():
    """Such weights were computed in the last forward pass and may be outdated."""
    with pytest.raises(ValueError, match=r"'0' has forward hooks.* make the weights ordinary"):
        to_network(nn.Sequential(weight_norm(nn.Linear(2, 2))))


@pytest.mark.slow
@pytest.mark.parametrize("layer", [nn.Linear, Quadratic])
def test_sharded_parameters_are_refused(layer, tmp_path):
    module = nn.Sequential(layer(3, 2))
    net = to_network(module)
    with one_process(tmp_path):
        shard(module)
        with pytest.raises(ValueError, match=r"parameter '0.\w+' is sharded.* the full tensors"):
            to_network(module)
        state = {name: tensor.full_tensor() for name, tensor in module.state_dict().items()}
    whole = nn.Sequential(layer(3, 2))
    whole.load_state_dict(state)
    assert_identical(to_network(whole), net)


def test_arguments_are_checked():
    with pytest.raises(TypeError, match=r"module must be a torch.nn.Module. Got Network instead"):
        to_network(make_network(("linear",), "tanh", "identity", widths=(2,)))
    with pytest.raises(ValueError, match=r"activation must be one of .* Got 'Softmax' instead"):
        to_network(nn.Linear(2, 2), activation="Softmax")
    with pytest.raises(TypeError, match=r"network must be a quadric.Network. Got Linear instead."):
        from_network(nn.Linear(2, 2))
    fitted = quadric.QuadraticLogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    with pytest.raises(TypeError, match=r"Got QuadraticLogisticRegression .* pass its network_"):
        from_network(fitted)
    assert_identical(to_network(from_network(fitted.network_)), fitted.network_)


# ---- from torch to the shell ---------------------------------------------------------------


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    """A directory with iris.csv and a model trained on it in torch."""
    directory = tmp_path_factory.mktemp("iris")
    write_iris(directory / "iris.csv")
    X, y = load_iris(return_X_y=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.05), Quadratic(6, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    x, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()
    with torch.no_grad():
        P = torch.softmax(model.eval()(x), dim=1).numpy()
    assert (P.argmax(axis=1) == y).mean() > 0.95
    return directory, model, P


@pytest.mark.slow
def test_a_converted_model_predicts_from_the_shell(iris):
    directory, model, P = iris
    quadric.save(to_network(model, activation="softmax"), directory / "bare.quadric")
    result = command(
        "predict", "bare.quadric", "iris.csv", "-o", "bare.csv", "--proba", cwd=directory
    )
    assert result.returncode == 0, result.stderr
    assert "The inputs are the table's numeric columns, in table order: 'sepal_" in result.stderr
    assert "does not use: 'species'" in result.stderr
    found = np.genfromtxt(directory / "bare.csv", delimiter=",", skip_header=1)
    assert (found[:, 0] == P.argmax(axis=1)).all()
    np.testing.assert_allclose(found[:, 1:], P, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_converted_model_keeps_columns_and_classes(iris):
    directory, model, P = iris
    names = load_iris().target_names.tolist()
    extra = {"columns": COLUMNS, "classes": names, "target": "species"}
    network = to_network(model, activation="softmax")
    quadric.save(network, directory / "iris.quadric", extra=extra)
    result = command("predict", "iris.quadric", "iris.csv", cwd=directory)
    assert result.stderr.startswith("note: Scores on 150 rows with a value for 'species'")
    assert result.stdout.splitlines() == ["species", *(names[k] for k in P.argmax(axis=1))]
    path = directory / "iris.quadric"
    facts = json.loads(command("info", path, "--json").stdout)
    assert (facts["kind"], facts["classes"], facts["columns"]) == ("Network", names, COLUMNS)
    assert names[0] in command("explain", path, directory / "iris.csv").stdout
    pytest.importorskip("onnx")
    assert command("export", path, directory / "iris.onnx").returncode == 0
    session = pytest.importorskip("onnxruntime").InferenceSession(directory / "iris.onnx")
    outputs, _ = session.run(None, {"X": load_iris().data.astype(np.float32)})
    np.testing.assert_allclose(outputs, P, rtol=1e-4, atol=1e-6)
