"""Layers exported with `torch.onnx.export` give the same numbers for any batch size."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from torch import nn  # noqa: E402

from quadric.torch import Quadratic, Reduced, from_network, replace_head  # noqa: E402
from tests.support.networks import make_network  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("seeded"),
    # torch warns when it copies a traced graph
    pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning"),
]
NEAR = {torch.float32: 1e-5, torch.float64: 1e-12}


def assert_exported(module, *shape, dtype=torch.float32):
    """Export with one batch size and run with others; return the graph."""
    pytest.importorskip("onnxscript")  # not when the tests are collected: it takes a second
    module = module.to(dtype).eval()
    exported = torch.onnx.export(
        module,
        (torch.randn(3, *shape, dtype=dtype),),
        dynamo=True,
        verbose=False,
        dynamic_shapes=({0: torch.export.Dim("batch")},),
    )
    proto = exported.model_proto
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (entry,) = session.get_inputs()
    assert isinstance(entry.shape[0], str)  # the name of a dynamic size
    for batch in (1, 2, 17):
        x = torch.randn(batch, *shape, dtype=dtype)
        (found,) = session.run(None, {entry.name: x.numpy()})
        with torch.no_grad():
            wanted = module(x).numpy()
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        error = np.abs(found - wanted).max() / np.abs(wanted).max()
        assert error < NEAR[dtype], error
    return proto


@pytest.mark.sample(2)
# more than 128 inputs are divided into blocks; with 64 or more neurons, the products differ
@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(9, 3), (9, 50), (140, 3), (140, 64)])
def test_an_exported_quadratic_layer_matches(n, m):
    assert_exported(Quadratic(n, m), n)


@pytest.mark.slow
def test_an_exported_layer_in_float64_matches():
    """No traced tensor remains in the caches of the layers."""
    layer = Quadratic(140, 64, dtype=torch.float64)
    x = torch.randn(4, 140, dtype=torch.float64)
    before = layer(x)
    assert_exported(layer, 140, dtype=torch.float64)
    after = layer(x)
    assert torch.equal(before, after)
    after.sum().backward()
    assert layer.packed.grad.isfinite().all()


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("options", [{"bias": False}, {"linear": False}])
def test_an_exported_layer_without_W_or_b_matches(options):
    assert_exported(Quadratic(6, 2, **options), 6)


@pytest.mark.slow
def test_an_exported_layer_keeps_leading_dimensions():
    assert_exported(Quadratic(140, 3), 5, 140)


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("dtype", NEAR)
def test_an_exported_reduced_layer_matches(dtype):
    assert_exported(Reduced(70, 50), 70, dtype=dtype)


@pytest.mark.slow
def test_an_exported_cnn_with_a_quadratic_head_matches():
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    )
    layer = replace_head(model)[4]
    layer.reset_parameters()  # so that Q is not zero
    proto = assert_exported(model, 1, 8, 8)
    assert "Conv" in {node.op_type for node in proto.graph.node}


@pytest.mark.slow
def test_an_exported_network_matches():
    net = make_network(("linear", "quadratic", "reduced"), "tanh", "softmax", widths=(5, 4, 3))
    assert_exported(from_network(net), 3, dtype=torch.float64)
