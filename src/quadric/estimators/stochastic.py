"""The epochs of an estimator: stopping, learning rate, divergence, best weights.

The rules (when to stop, when to lower the rate, what is kept) are those of scikit-learn's
networks; what an epoch does is the core's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from quadric.errors import DivergenceError
from quadric.estimators.progress import live_bar
from quadric.layers import Layer
from quadric.training.history import History
from quadric.training.loop import NonFiniteError, Stepper

__all__ = ["run_stochastic"]

RECOVERIES = 12  # how often the rate is lowered before giving up
LOWER_BY = 10.0
KEPT_LOSSES = 10_000  # of `partial_fit`, which may be called for ever
EXPLOSION = 1e3  # times the loss before: the epoch is taken back


def run_stochastic(
    estimator: Any,
    make_stepper: Callable[[], Stepper],
    n_samples: int,
    *,
    incremental: bool,
    validate: Callable[[], float] | None,
    start_loss: Callable[[], float],
) -> None:
    """Train `estimator.network_` through the stepper and fill the estimator's fitted attributes."""
    stepper = make_stepper()
    in_order = np.arange(n_samples)
    recoveries, in_a_row, first_rate = 0, 0, estimator._rate
    at_start = [layer.copy() for layer in estimator.network_.layers]
    best: list[Layer] | None = None
    # a step too long shows in the loss long before a number stops being finite
    usual_loss = start_loss() if estimator.t_ == 0 else estimator.loss_
    epochs = 1 if incremental else estimator.max_iter
    title = type(estimator).__name__
    with live_bar(title, epochs, bool(estimator.verbose)) as update:
        estimator.n_iter_ = 0
        while estimator.n_iter_ < epochs:
            order = (
                estimator._random_state.permutation(n_samples) if estimator.shuffle else in_order
            )
            try:
                loss = stepper.run_epoch(order, estimator._rate)
                if loss > EXPLOSION * max(usual_loss, 1e-3):
                    raise NonFiniteError(sample=None, layer=None)
            except NonFiniteError as failure:
                stepper.restore()
                stepper.publish()
                if estimator.on_divergence == "raise" or recoveries == RECOVERIES:
                    raise _divergence(estimator, failure) from None
                recoveries, in_a_row = recoveries + 1, in_a_row + 1
                estimator._rate /= LOWER_BY
                if in_a_row > 1:  # the last epoch was not that good: it had begun to blow up
                    _write(estimator.network_.layers, at_start)
                stepper = make_stepper()  # the solver's memory is as bad as the step was
                continue
            except KeyboardInterrupt:
                stepper.restore()
                warnings.warn("Training interrupted by user.", stacklevel=5)
                break
            stepper.snapshot()
            in_a_row = 0
            estimator.n_iter_ += 1
            estimator.t_ += n_samples
            estimator.loss_ = loss
            estimator.loss_curve_.append(loss)
            if incremental and len(estimator.loss_curve_) >= 2 * KEPT_LOSSES:
                del estimator.loss_curve_[:-KEPT_LOSSES]
            if validate is not None:
                stepper.publish()
                if _note_score(estimator, validate()):
                    best = [layer.copy() for layer in estimator.network_.layers]
            else:
                _note_loss(estimator, loss)
            update(loss, estimator.validation_scores_[-1] if validate is not None else None)
            if estimator.learning_rate == "invscaling" and estimator._solver == "sgd":
                estimator._rate = (
                    estimator.learning_rate_init / (estimator.t_ + 1) ** estimator.power_t
                )
            if estimator._no_improvement_count > estimator.n_iter_no_change:
                if estimator.learning_rate != "adaptive" or estimator._solver != "sgd":
                    break
                if estimator._rate <= 1e-6:
                    break
                estimator._rate /= 5.0
                estimator._no_improvement_count = 0
            if not incremental and estimator.n_iter_ == epochs:
                warnings.warn(
                    f"Stochastic Optimizer: Maximum iterations ({epochs}) reached and the "
                    "optimization hasn't converged yet.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
    stepper.publish()
    if best is not None:
        _write(estimator.network_.layers, best)
    if recoveries:
        warnings.warn(
            f"Training diverged {recoveries} time{'s' if recoveries > 1 else ''}; each time the "
            f"last good epoch was restored, and the learning rate lowered, from {first_rate:g} to "
            f"{estimator._rate:g}. Scale the features (StandardScaler), or set a smaller "
            "learning_rate_init.",
            ConvergenceWarning,
            stacklevel=5,
        )


def _write(layers: Sequence[Layer], kept: Sequence[Layer]) -> None:
    """Copy the parameters kept into the layers."""
    for layer, other in zip(layers, kept, strict=True):
        for name, array in other.arrays().items():
            layer.arrays()[name][...] = array


def _note_score(estimator: Any, score: float) -> bool:
    """Book a validation score; true if it is the best so far."""
    estimator.validation_scores_.append(score)
    if score < estimator.best_validation_score_ + estimator.tol:
        estimator._no_improvement_count += 1
    else:
        estimator._no_improvement_count = 0
    if score > estimator.best_validation_score_:
        estimator.best_validation_score_ = score
        return True
    return False


def _note_loss(estimator: Any, loss: float) -> None:
    if loss > estimator.best_loss_ - estimator.tol:
        estimator._no_improvement_count += 1
    else:
        estimator._no_improvement_count = 0
    estimator.best_loss_ = min(estimator.best_loss_, loss)


def _divergence(estimator: Any, failure: NonFiniteError) -> DivergenceError:
    history = History(n_samples=0, loss=list(estimator.loss_curve_))
    return DivergenceError(
        epoch=estimator.n_iter_,
        sample=failure.sample,
        layer=failure.layer,
        learning_rate=estimator._rate,
        history=history,
    )
