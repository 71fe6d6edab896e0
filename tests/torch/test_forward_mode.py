"""Forward-mode derivatives of every module, by its inputs and parameters together."""

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch.autograd import forward_ad  # noqa: E402
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap  # noqa: E402

from quadric.torch._quadratic_form import _kept_places  # noqa: E402
from tests.support.torch_modules import CASES, make_inputs, make_module  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning"),
    pytest.mark.parametrize("name", CASES),
]


@pytest.fixture
def function(name):
    """Return outputs, joined to one vector, as a function of one vector of all arguments."""
    module, inputs = make_module(name), make_inputs(name, batch=2)
    held = dict(module.named_parameters())
    shapes = [tensor.shape for tensor in (*inputs, *held.values())]

    def call(arguments):
        pieces = arguments.split([shape.numel() for shape in shapes])
        given = [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
        parameters = dict(zip(held, given[len(inputs) :], strict=True))
        outputs = functional_call(module, parameters, tuple(given[: len(inputs)]))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return torch.cat([output.reshape(-1) for output in outputs])

    return call


@pytest.fixture
def point(name):
    tensors = (*make_inputs(name, batch=2), *make_module(name).parameters())
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def direction_like(point, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(point.shape, generator=generator, dtype=point.dtype)


def differences(function, point, direction, step=1e-6):
    """Return the derivative in a direction by central differences."""
    return (function(point + step * direction) - function(point - step * direction)) / (2 * step)


def assert_near(found, wanted, tolerance):
    scale = max(1.0, wanted.detach().abs().max().item())
    torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance * scale)


def loss(function):
    return lambda arguments: function(arguments).square().sum()


def test_jvp_matches_central_differences(function, point):
    direction = direction_like(point)
    value, tangent = jvp(function, (point,), (direction,))
    assert_near(value, function(point), 1e-12)
    wanted = differences(function, point, direction)
    assert wanted.abs().max() > 0.1
    assert_near(tangent, wanted, 1e-7)


def test_dual_numbers_match_central_differences(function, point):
    direction = direction_like(point)
    with forward_ad.dual_level():
        output = function(forward_ad.make_dual(point, direction))
        tangent = forward_ad.unpack_dual(output).tangent
    assert_near(tangent, differences(function, point, direction), 1e-7)


def test_the_jacobian_matches_that_of_reverse_mode(function, point):
    assert_near(jacfwd(function)(point), jacrev(function)(point), 1e-10)


@pytest.mark.slow
def test_the_hessian_is_the_same_in_every_order_of_the_modes(function, point):
    wanted = jacrev(jacrev(loss(function)))(point)
    for second in (hessian, lambda f: jacfwd(jacfwd(f)), lambda f: jacrev(jacfwd(f))):
        assert_near(second(loss(function))(point), wanted, 1e-10)
    gradient, direction = grad(loss(function)), direction_like(point)
    assert_near(wanted @ direction, differences(gradient, point, direction), 1e-6)


def test_forward_over_reverse_matches_central_differences(function, point):
    gradient, direction = grad(loss(function)), direction_like(point)
    _, tangent = jvp(gradient, (point,), (direction,))
    assert_near(tangent, differences(gradient, point, direction), 1e-6)
    many = torch.stack([direction, 2 * direction])
    tangents = vmap(lambda one: jvp(gradient, (point,), (one,))[1])(many)
    assert_near(tangents, torch.stack([tangent, 2 * tangent]), 1e-10)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_cached_indices_do_not_belong_to_a_transform(function, point, depth):
    """A deep transform may be the first to need them; others follow at any depth."""
    _kept_places.cache_clear()
    direction, directional = direction_like(point), loss(function)
    for _ in range(depth):
        directional = derivative(directional, direction)
    directional(point)
    wanted = grad(loss(function))(point) @ direction
    assert_near(derivative(loss(function), direction)(point), wanted, 1e-10)
    assert_near(vmap(function)(point[None])[0], function(point), 1e-12)


def derivative(function, direction):
    return lambda point: jvp(function, (point,), (direction,))[1]
