"""Low-rank, product and convolutional layers, and settings for training."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from quadric.torch import (
    LowRankQuadratic,
    ProductPlusLinear,
    Quadratic,
    QuadraticConv2d,
    QuadraticRNN,
    Reduced,
    functional,
    parameter_groups,
    spectral_penalty,
)


def with_normal_values(layer):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=generator)
    return layer.double()


def inputs(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


OPTIONS = [{}, {"bias": False}, {"linear": False}, {"bias": False, "linear": False}]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_low_rank_layer_of_full_rank_is_the_same_function(options):
    full, x = with_normal_values(Quadratic(6, 3, **options)), inputs(4, 5, 6)
    layer = LowRankQuadratic.from_quadratic(full)
    torch.testing.assert_close(layer(x), full(x), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(layer.to_quadratic().Q, full.Q, rtol=1e-10, atol=1e-10)
    single = LowRankQuadratic.from_quadratic(full.float())
    torch.testing.assert_close(single(x.float()), full(x.float()), rtol=1e-5, atol=1e-4)


def test_a_low_rank_layer_keeps_the_eigenvalues_of_largest_magnitude():
    full = Quadratic(3, 1)
    full.Q = torch.diag(torch.tensor([1.0, -5.0, 3.0]))[None]
    layer = LowRankQuadratic.from_quadratic(full, rank=2)
    torch.testing.assert_close(layer.s, torch.tensor([[-5.0, 3.0]]))
    torch.testing.assert_close(layer.to_quadratic().Q[0].diag(), torch.tensor([0.0, -5.0, 3.0]))
    with pytest.raises(ValueError, match="rank must be at most in_features, 3"):
        LowRankQuadratic.from_quadratic(full, rank=4)


@pytest.mark.parametrize(
    "layer", [LowRankQuadratic(4, 2, 3), ProductPlusLinear(4, 2), LowRankQuadratic(4, 2, 1, False)]
)
def test_gradients_and_equations_of_the_layers(layer):
    layer, x = with_normal_values(layer), inputs(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, *parameters: torch.func.functional_call(
            layer, dict(zip(dict(layer.named_parameters()), parameters, strict=True)), (x,)
        ),
        (x, *layer.parameters()),
    )
    torch.testing.assert_close(layer.to_quadratic()(x), layer(x))
    with pytest.raises(RuntimeError):
        layer(inputs(3, 5))


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1}, {"dilation": (2, 1), "padding": (0, 2), "stride": (1, 3)}],
)
def test_a_quadratic_convolution_applies_a_layer_to_each_patch(options):
    layer = with_normal_values(QuadraticConv2d(3, 2, (3, 2), **options))
    flat = with_normal_values(Quadratic(18, 2))
    flat.load_state_dict(layer.state_dict())
    x = inputs(2, 3, 9, 8)
    linear = nn.Conv2d(3, 2, (3, 2), **options).double()
    with torch.no_grad():
        linear.weight.copy_(layer.W.view(2, 3, 3, 2))
        linear.bias.copy_(layer.b)
    z = layer(x)
    assert z.shape == linear(x).shape
    patches = nn.functional.unfold(x, (3, 2), **options).transpose(1, 2)
    torch.testing.assert_close(z.flatten(2).transpose(1, 2), flat(patches))
    with torch.no_grad():
        layer.packed.zero_()
    torch.testing.assert_close(layer(x), linear(x))
    torch.testing.assert_close(layer(x[0]), layer(x)[0])
    with pytest.raises(RuntimeError, match=r"shape \(B, 3, height, width\)"):
        layer(x[:, :2])


def test_a_reduced_rnn_starts_as_a_linear_one_and_computes_products():
    rnn = QuadraticRNN(2, 4, kind="reduced").double()
    cell, x = rnn.cells[0].neurons, inputs(5, 3, 2)
    linear = nn.RNN(2, 4).double()
    with torch.no_grad():
        linear.weight_ih_l0.copy_(cell.W[:, :2])
        linear.weight_hh_l0.copy_(cell.W[:, 2:])
        linear.bias_ih_l0.zero_()
        linear.bias_hh_l0.zero_()
    torch.testing.assert_close(rnn(x)[0], linear(x)[0])
    with_normal_values(rnn)
    u = torch.cat([x[0], torch.zeros(3, 4, dtype=torch.float64)], 1)
    z = (u @ cell.W.T + cell.b) * (u @ cell.U.T + cell.c)
    torch.testing.assert_close(rnn(x)[0][0], z.tanh())
    with pytest.raises(ValueError, match="kind"):
        QuadraticRNN(2, 4, kind="cubic")
    with pytest.raises(ValueError, match="bias=True"):
        QuadraticRNN(2, 4, kind="reduced", bias=False)


# ---- training ------------------------------------------------------------------------------


def test_torch_T4_rates_of_Q_scale_with_the_number_of_inputs():
    shared = Quadratic(25, 2)
    model = nn.Sequential(nn.Linear(3, 100), Quadratic(100, 25), shared, nn.Sequential(shared))
    prune.random_unstructured(model[1], "packed", 0.5)
    groups = parameter_groups(model, 0.1)
    assert [group["lr"] for group in groups] == pytest.approx([0.1, 0.005, 0.01])
    listed = [parameter for group in groups for parameter in group["params"]]
    assert len(listed) == len(list(model.parameters()))
    assert {id(p) for p in listed} == {id(p) for p in model.parameters()}
    assert groups[1]["params"] == [model[1].packed_orig]
    torch.optim.AdamW(groups)
    assert len(parameter_groups(nn.Linear(2, 2), 0.1)) == 1


@pytest.mark.parametrize("kind", [Quadratic, Reduced, ProductPlusLinear, LowRankQuadratic])
@pytest.mark.parametrize("n", [2, 16, 64])
def test_torch_T11_deep_stacks_start_with_finite_values(kind, n):
    for depth in (8, 16):
        for seed in range(5):
            torch.manual_seed(seed)
            model = nn.Sequential(*(kind(n, n) for _ in range(depth)))
            z = model(torch.randn(64, n))
            z.square().mean().backward()
            assert z.abs().max() < 1e6
            assert all(p.grad.isfinite().all() for p in model.parameters())


def test_initial_values_preserve_the_variance():
    torch.manual_seed(0)
    x = torch.randn(4000, 64)
    for kind in (Quadratic, Reduced, ProductPlusLinear, LowRankQuadratic):
        for init in ("deep", "glorot"):
            layer = kind(64, 200)
            layer.reset_parameters(init)
            assert layer(x).var().item() == pytest.approx(1, rel=0.15)
        layer.reset_parameters("relinear")
        second = layer(2 * x) - 2 * layer(x)  # nonzero only for a quadratic part
        assert second.abs().max() < 1e-4


def test_the_spectral_penalty_is_a_sum_of_eigenvalues():
    layer = with_normal_values(Quadratic(5, 3))
    values = torch.linalg.eigvalsh(layer.Q)
    torch.testing.assert_close(spectral_penalty(layer), values.abs().sum())
    torch.testing.assert_close(spectral_penalty(layer, 2), values.square().sum())
    spectral_penalty(layer).backward()
    assert layer.packed.grad.isfinite().all()
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        spectral_penalty(layer, 3)


# ---- Q, dtypes and nested tensors ----------------------------------------------------------


def symmetric(Q):
    return (Q + Q.transpose(1, 2)) / 2


def test_torch_T7_the_weight_of_a_bilinear_layer_can_be_assigned():
    layer, bilinear = Quadratic(6, 4), nn.Bilinear(6, 6, 4)
    layer.Q = bilinear.weight
    torch.testing.assert_close(layer.Q, symmetric(bilinear.weight))
    assert sorted(layer.state_dict()) == ["W", "b", "packed"]


def test_torch_T7_an_assignment_to_Q_is_never_lost():
    weight = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(0))
    normed, spectral, pruned = Quadratic(6, 4), Quadratic(6, 4), Quadratic(6, 4)
    parametrizations.weight_norm(normed, "packed")
    normed.Q = weight
    torch.testing.assert_close(normed.Q, symmetric(weight))
    parametrizations.spectral_norm(spectral, "packed")
    with pytest.raises(ValueError, match=r"cannot have these values.*remove_parametrizations"):
        spectral.Q = 9 * weight
    prune.l1_unstructured(pruned, "packed", 0.3)
    with pytest.raises(ValueError, match="pruned"):
        pruned.Q = weight
    pruned.Q = pruned.Q * 2
    before = pruned.Q.clone()
    pruned(torch.ones(6))  # the hook of pruning computes packed again
    torch.testing.assert_close(pruned.Q, before)


def test_torch_T6_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="dtype must be a real floating-point dtype"):
        Quadratic(4, 2, dtype=torch.complex128)
    x, packed = torch.ones(3, 4, dtype=torch.complex64), torch.ones(10, 2, dtype=torch.complex64)
    with pytest.raises(TypeError, match="x must be real"):
        functional.quadratic(x, packed)


def test_torch_T9_index_tensors_of_many_inputs_are_not_kept():
    from quadric.torch._quadratic_form import MOST_KEPT, _kept_places

    _kept_places.cache_clear()
    assert Quadratic(MOST_KEPT + 1, 1).Q.shape == (1, MOST_KEPT + 1, MOST_KEPT + 1)
    assert _kept_places.cache_info().currsize == 0


@pytest.mark.filterwarnings("ignore")  # nested tensors are a prototype in torch
@pytest.mark.parametrize("layer", [Quadratic(4, 2), Reduced(4, 2)])
def test_torch_T10_jagged_nested_tensors(layer):
    parts = [torch.randn(3, 4), torch.randn(5, 4)]
    z = layer(torch.nested.nested_tensor(parts, layout=torch.jagged))
    for part, found in zip(parts, z.unbind(), strict=True):
        torch.testing.assert_close(found, layer(part))
