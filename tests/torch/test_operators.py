"""The loops as registered operators, and the private names of torch."""

import re
from pathlib import Path

import pytest
import torch

import quadric.torch
from quadric.torch import Quadratic, Reduced, _internals, functional
from quadric.torch._quadratic_form import quadratic_form

OPERATORS = torch.ops.quadric


def tensors(*shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_T3_the_operators_pass_opcheck(dtype):
    x, P, dz = tensors((6, 5), (15, 3), (6, 3), dtype=dtype)
    trained = x.clone().requires_grad_(), P.clone().requires_grad_()
    torch.library.opcheck(OPERATORS.quadratic_form.default, trained)
    for wanted in ((True, True), (True, False), (False, True)):
        torch.library.opcheck(OPERATORS.quadratic_form_gradients.default, (x, P, dz, *wanted))


def operators_in(graph):
    return [str(node.target) for node in graph.nodes if "quadric" in str(node.target)]


def test_torch_T3_exported_programs_contain_one_operator_for_any_batch_size():
    layer = Quadratic(5, 3)
    batch = torch.export.Dim("batch")
    program = torch.export.export(layer, (torch.ones(4, 5),), dynamic_shapes=({0: batch},))
    assert operators_in(program.graph) == ["quadric.quadratic_form.default"]
    x = torch.randn(7, 5)
    assert torch.equal(program.module()(x), layer(x))


@pytest.mark.slow
def test_torch_T3_a_compiled_model_runs_the_loops_without_graph_breaks():
    model = torch.nn.Sequential(Quadratic(6, 4), torch.nn.Tanh(), Reduced(4, 4), Quadratic(4, 2))
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph.graph)
        return graph.forward

    x = torch.randn(8, 6)
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    assert torch.equal(compiled(x), model(x))
    assert operators_in(graphs[0]) == ["quadric.quadratic_form"] * 2


def test_fake_tensors_keep_shapes_and_dtypes():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        z = Quadratic(5, 3, dtype=torch.float64)(torch.ones(4, 5, dtype=torch.float64))
    assert z.shape == (4, 3)
    assert z.dtype == torch.float64


@pytest.mark.parametrize("dims", [(0, None), (1, None), (None, 0), (0, 1)])
def test_vmap_of_the_operator(dims):
    x, P = tensors((4, 4, 5), (15, 15, 3)) if dims == (0, 1) else tensors((4, 4, 5), (4, 15, 3))
    x = x if dims[0] is not None else x[0]
    P = P[0] if dims[1] is None else P
    if dims == (0, 1):
        P = tensors((15, 4, 3))[0]
    found = torch.func.vmap(OPERATORS.quadratic_form, dims)(x, P)
    wanted = torch.func.vmap(quadratic_form, dims)(x, P)
    torch.testing.assert_close(found, wanted)


def test_an_operator_returns_what_the_direct_call_returns():
    for dtype in (torch.float32, torch.bfloat16):
        x, P = tensors((6, 5), (15, 3), dtype=dtype)
        assert torch.equal(OPERATORS.quadratic_form(x, P), quadratic_form(x, P))
        assert torch.equal(OPERATORS.quadratic_form(x[:0], P), x.new_empty(0, 3))


def test_torch_T8_half_precision_is_computed_by_the_loops_in_float32():
    x, P = tensors((50, 40), (820, 3), dtype=torch.bfloat16)
    exact = functional.quadratic(x.double(), P.double())
    found = functional.quadratic(x, P)
    assert found.dtype == torch.bfloat16
    # one rounding: the error is half of a unit in the last place
    assert ((found.double() - exact).abs() <= 2**-8 * exact.abs() + 1e-4).all()


def test_torch_T8_torch_operations_run_in_chunks(monkeypatch):
    from quadric.torch import _quadratic_form as form

    x, P, dz = tensors((50, 7), (28, 3), (50, 3), dtype=torch.float64)
    wanted = form.forward(x, P), *form.backward(x, P, dz)
    monkeypatch.setattr(form, "for_loops", lambda *tensors: None)
    monkeypatch.setattr(form, "MOST_NUMBERS", 7 * 3 * 8)
    largest = []
    whole = form._V
    monkeypatch.setattr(form, "_V", lambda x, P: largest.append(len(x)) or whole(x, P))
    with torch.no_grad():
        found = form.forward(x, P), *form.backward(x, P, dz)
    for ours, true in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, true)
    assert max(largest) == 8


# ---- private names -------------------------------------------------------------------------


def test_private_names_of_torch_are_used_in_one_file():
    folder = Path(quadric.torch.__file__).parent
    private = re.compile(r"(?<!quadric\.)torch\._\w+|_current_level|super\(Function")
    found = {file.name for file in folder.glob("*.py") if private.search(file.read_text("utf-8"))}
    assert found == {"_internals.py"}


def test_the_versions_of_torch_are_named():
    """Update the versions in the docstring of the file when the layers are tested with others."""
    major, minor = torch.__version__.split(".")[:2]
    assert f"{major}.{minor}" in (_internals.__doc__ or "")
    for name in ("are_transforms_active", "count_dispatch_modes", "is_autocast_active"):
        assert getattr(_internals, name) not in (_internals._unknown, _internals._one)


def test_without_the_private_names_torch_operations_give_the_same_numbers(monkeypatch):
    layer, x = Quadratic(5, 3).double(), torch.randn(4, 5).double()
    wanted = layer(x)
    monkeypatch.setattr(_internals, "are_transforms_active", _internals._unknown)
    monkeypatch.setattr(_internals, "count_dispatch_modes", _internals._one)
    torch.testing.assert_close(layer(x), wanted)
