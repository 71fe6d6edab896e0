"""One call for all solvers: checks the options, picks the stepper, runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quadric import checks
from quadric.arrays import Array, Matrix
from quadric.layers import Layer
from quadric.losses import LOSSES
from quadric.training.history import Epoch, History
from quadric.training.loop import Stepper, run_epochs
from quadric.training.mini_batch import MiniBatch
from quadric.training.optimizers import SGD, Adam, Optimizer

__all__ = ["fit"]


def fit(
    layers: Sequence[Layer],
    activations: Sequence[str],
    loss: str,
    X: Matrix,
    Y: Array,
    *,
    solver: str,
    learning_rate: float,
    batch_size: int,
    epochs: int,
    l2: float,
    offset: Array | None,
    rng: Any,
    shuffle: bool,
    sample_weight: Array | None,
    power_t: float,
    momentum: float,
    nesterov: bool,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    clip: float | None,
    tol: float,
    validate: Callable[[], float] | None,
    callback: Callable[[Epoch], object] | None,
) -> History:
    """Train the layers in place; the options are those of `Network.fit`."""
    checks.check_choice("solver", solver, ("sgd", "adam", "lbfgs"))
    learning_rate = checks.check_number("learning_rate", learning_rate, above=0)
    batch_size = checks.check_integer("batch_size", batch_size, at_least=1)
    epochs = checks.check_integer("epochs", epochs, at_least=0)
    l2 = checks.check_number("l2", l2, at_least=0)
    power_t = checks.check_number("power_t", power_t, at_least=0)
    momentum = checks.check_number("momentum", momentum, at_least=0, below=1)
    beta_1 = checks.check_number("beta_1", beta_1, at_least=0, below=1)
    beta_2 = checks.check_number("beta_2", beta_2, at_least=0, below=1)
    epsilon = checks.check_number("epsilon", epsilon, above=0)
    shuffle = checks.check_flag("shuffle", shuffle)
    nesterov = checks.check_flag("nesterov", nesterov)
    tol = checks.check_number("tol", tol, at_least=0)
    if clip is not None:
        clip = checks.check_number("clip", clip, above=0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable. Got {callback!r} instead.")
    generator = checks.as_generator(rng)
    if epochs == 0:
        return History(n_samples=len(Y))

    if solver == "lbfgs":
        from quadric.training.full_batch import run_lbfgs  # scipy.optimize: only when needed

        return run_lbfgs(
            layers, activations, LOSSES[loss], X, Y,
            epochs=epochs, l2=l2, tol=tol, sample_weight=sample_weight, offset=offset,
            validate=validate, callback=callback,
        )  # fmt: skip
    stepper: Stepper
    if solver == "sgd" and batch_size == 1 and momentum == 0:
        from quadric.training.per_sample import PerSample  # numba: only when it is needed

        stepper = PerSample(
            layers, activations, loss, X, Y,
            l2=l2, clip=clip, sample_weight=sample_weight, offset=offset,
        )  # fmt: skip
    else:
        optimizer: Optimizer = (
            SGD(momentum, nesterov) if solver == "sgd" else Adam(beta_1, beta_2, epsilon)
        )
        stepper = MiniBatch(
            layers, activations, LOSSES[loss], X, Y,
            optimizer=optimizer, batch_size=batch_size, l2=l2, clip=clip,
            sample_weight=sample_weight, offset=offset,
        )  # fmt: skip
    return run_epochs(
        stepper,
        n_samples=len(Y),
        epochs=epochs,
        learning_rate=learning_rate,
        power_t=power_t,
        shuffle=shuffle,
        rng=generator,
        validate=validate,
        callback=callback,
    )
