"""Denormal numbers neither slow the quadratic layer down nor make its results depend on threads."""

import pytest
import torch

from quadric.kernels import _denormals
from quadric.torch import Quadratic
from tests.support.denormals import flushing, is_denormal, without_denormals

pytestmark = pytest.mark.skipif(
    _denormals.ARCHITECTURE not in _denormals.MODES,
    reason="the loops do not set the mode on this processor",
)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def case(dtype):
    """Return a layer without a linear part, x, and dz of which about half is denormal."""
    generator = torch.Generator().manual_seed(0)
    layer = Quadratic(128, 64, linear=False, bias=False, dtype=dtype)
    torch.nn.init.normal_(layer.packed, generator=generator)
    x = torch.randn(512, 128, dtype=dtype, generator=generator)
    dz = torch.randn(512, 64, dtype=dtype, generator=generator) * torch.finfo(dtype).tiny
    return layer, x, dz


def results(layer, x, dz):
    """Return z, dL/dx and dL/dpacked."""
    x = x.clone().requires_grad_()
    z = layer(x)
    gradients = torch.autograd.grad(z, (x, layer.packed), dz)
    return [array.detach().numpy() for array in (z, *gradients)]


def same_bits(left, right):
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_T1_denormal_derivatives_count_as_zero(dtype):
    """Some processors take a hundred times as long for denormal numbers, so there must be none."""
    layer, x, dz = case(dtype)
    assert 0.3 < is_denormal(dz.numpy()).mean() < 0.9
    found = results(layer, x, dz)
    assert not any(is_denormal(array).any() for array in found)
    assert all(array.any() for array in found)
    assert same_bits(found, results(layer, x, torch.from_numpy(without_denormals(dz.numpy()))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.usefixtures("two_threads")
def test_torch_T2_results_do_not_depend_on_threads_or_on_set_flush_denormal(dtype):
    given = case(dtype)
    wanted = results(*given)
    for on in (False, True):
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with flushing(on):
                found = results(*given)
            assert same_bits(found, wanted), (on, threads)


@pytest.mark.usefixtures("two_threads")
def test_torch_T2_the_mode_of_torchs_threads_is_unchanged():
    results(*case(torch.float32))
    denormal = torch.full((2**20,), 1e-40)
    assert (denormal * 1 != 0).all()
