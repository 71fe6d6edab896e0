"""Quadratic layers for a batch: forward and backward, without a linear part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.compare._peers import is_installed, skipped
from benchmarks.compare._result import OURS, case_of, to_json
from benchmarks.shapes import BILINEAR_LIMIT, SHAPES
from benchmarks.timing import seconds_by_round
from quadric.core import _quadratic_form as quadratic_form

TITLE = "Quadratic layers: forward and backward of a batch"
UNIT, PER_SECOND = "ms per pass", 1e3
TOLERANCE = 1e-4  # relative to the largest number
NOTES = (
    "Each pass computes z_k = x'Q_k x and the gradients of x and Q, in float32, for a batch of B "
    "samples, n inputs and m neurons. Values and gradients agree up to 1e-4 of the largest number.",
    "For torch tensors, quadric is `quadric.torch.Quadratic`. For arrays, quadric is the same form "
    "for NumPy arrays, as the layers of `Network` use it. JAX computes with its own arrays in both "
    "comparisons. quadric stores and differentiates the triangle of Q, the others the full matrix.",
    "At (128, 32, 10), autograd and Python take more than half of a pass in torch. With one "
    "thread, the lead over JAX is small there: in ten runs of 31 rounds at commit 0c59066, JAX "
    "took 1.02 to 1.11 times as long as the torch layer. On a busy machine, a single run may show "
    "JAX ahead. The form for arrays, which needs no autograd, is ahead of JAX at every shape.",
    "nn.Bilinear is left out where it takes many seconds per pass, and in a quick run also where "
    "it takes about half a second or more. `results/torch.md` has its times.",
)
QUICK_LIMIT = 1e8  # of nn.Bilinear in a quick run, like BILINEAR_LIMIT
ARRAYS, JAX = "quadric, arrays", "JAX, einsum"
Pass = Callable[[], tuple[Any, Any, Any]]  # returns z, dx and the gradient of Q


def run(*, quick: bool) -> dict[str, Any]:
    cases = []
    for B, n, m in SHAPES:
        passes, left_out = contenders(B, n, m), {}
        work = B * n * n * m
        if work > (QUICK_LIMIT if quick else BILINEAR_LIMIT) and passes.pop("nn.Bilinear", None):
            too_slow = work > BILINEAR_LIMIT
            left_out["nn.Bilinear"] = "many seconds per pass" if too_slow else "only in a full run"
        check_equal([one_pass() for one_pass in passes.values()])
        rounds, budget = (9, 1.0) if quick else (31, 12.0)
        seconds = seconds_by_round(passes, rounds=rounds, at_least=2e-2, budget=budget)
        arrays = {OURS: seconds.pop(ARRAYS)}
        if JAX in seconds:
            arrays[JAX] = seconds[JAX]
        if OURS in seconds:  # torch is installed
            cases.append(case_of(f"({B}, {n}, {m}), torch", seconds, left_out=left_out))
        cases.append(case_of(f"({B}, {n}, {m}), arrays", arrays))
    return {"cases": to_json(cases), "skipped": skipped(["torch", "JAX"])}


def contenders(B: int, n: int, m: int) -> dict[str, Pass]:
    """Return the passes for torch tensors, the pass for NumPy arrays, and that of JAX."""
    x, dz, Q = data(B, n, m)
    passes = torch_passes(x, dz, Q) if is_installed("torch") else {}
    passes[ARRAYS] = numpy_pass(x, dz, Q)
    if is_installed("JAX"):
        passes[JAX] = jax_pass(x, dz, Q)
    return passes


def data(B: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, dL/dz and symmetric Q."""
    rng = np.random.default_rng(0)
    x, dz = (rng.normal(size=shape).astype(np.float32) for shape in ((B, n), (B, m)))
    Q = rng.normal(size=(m, n, n)).astype(np.float32) / n
    return x, dz, (Q + Q.transpose(0, 2, 1)) / 2


def torch_passes(x: np.ndarray, dz: np.ndarray, Q: np.ndarray) -> dict[str, Pass]:
    import torch

    from quadric.torch import Quadratic as TorchQuadratic

    m, n, _ = Q.shape
    inputs, outer = torch.tensor(x).requires_grad_(), torch.tensor(dz)
    layer = TorchQuadratic(n, m, bias=False, linear=False)
    layer.load_state_dict({"packed": torch.tensor(quadratic_form.pack(Q))})
    bilinear = torch.nn.Bilinear(n, n, m, bias=False)
    bilinear.load_state_dict({"weight": torch.tensor(Q)})
    matrix = torch.tensor(Q).requires_grad_()
    forms = {
        OURS: (layer, layer.packed),
        "einsum": (lambda x: torch.einsum("bi,kij,bj->bk", x, matrix, x), matrix),
        "nn.Bilinear": (lambda x: bilinear(x, x), bilinear.weight),
    }

    def one_pass(form: Any, parameter: Any) -> Pass:
        def run() -> tuple[Any, Any, Any]:
            inputs.grad = parameter.grad = None
            z = form(inputs)
            z.backward(outer)
            return z, inputs.grad, parameter.grad

        return run

    return {name: one_pass(*form) for name, form in forms.items()}


def numpy_pass(x: np.ndarray, dz: np.ndarray, Q: np.ndarray) -> Pass:
    P = quadratic_form.pack(Q)
    return lambda: (
        quadratic_form.values(x, P),
        *quadratic_form.gradients(x, P, dz),
    )


def jax_pass(x: np.ndarray, dz: np.ndarray, Q: np.ndarray) -> Pass:
    import jax
    from jax import numpy as jnp

    @jax.jit
    def both(x: Any, Q: Any, dz: Any) -> Any:
        z, back = jax.vjp(lambda x, Q: jnp.einsum("bi,kij,bj->bk", x, Q, x), x, Q)
        return z, *back(dz)

    given = [jnp.asarray(array) for array in (x, Q, dz)]
    return lambda: jax.block_until_ready(both(*given))


def check_equal(found: list[tuple[Any, Any, Any]]) -> None:
    """Raise AssertionError unless all contenders computed the same z and gradients."""
    results = [[as_array(one) for one in all_three] for all_three in found]
    for z, dx, dQ in results:
        if dQ.ndim == 3:  # in the triangle, q_ij and q_ji are one parameter
            n = dx.shape[1]
            dQ = quadratic_form.pack(dQ + dQ.transpose(0, 2, 1))
            dQ[[i * (2 * n - i + 1) // 2 for i in range(n)]] /= 2
        for what, one, other in zip(("z", "dx", "dQ"), results[0], (z, dx, dQ), strict=True):
            close = TOLERANCE * abs(one).max()
            np.testing.assert_allclose(other, one, atol=close, err_msg=what)


def as_array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach() if hasattr(tensor, "detach") else tensor)
