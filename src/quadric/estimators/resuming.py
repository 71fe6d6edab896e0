"""Where an estimator stands between two calls of `partial_fit`, as arrays and plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from quadric.arrays import Array
from quadric.training.optimizers import Adam

__all__ = ["put_state", "rate_of", "set_rate", "state_of"]

NUMBERS = ("loss_", "best_loss_", "t_", "n_iter_", "_rate", "_no_improvement_count")


def state_of(estimator: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """Parameters and Adam's memory, and the records; with `put_state` the same bits go on."""
    optimizer = _adam(estimator)
    arrays = {
        f"layers.{l}.{name}": array
        for l, layer in enumerate(estimator.network_.layers)
        for name, array in layer.arrays().items()
    }
    for i, (mean, square) in enumerate(zip(optimizer.means, optimizer.squares, strict=True)):
        arrays |= {f"means.{i}": mean, f"squares.{i}": square}
    arrays["loss_curve"] = np.array(estimator.loss_curve_)
    numbers = {name: _plain(getattr(estimator, name)) for name in NUMBERS}
    return arrays, numbers | {"adam_t": optimizer.t}


def put_state(estimator: Any, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
    """Go back to a state; the estimator has seen a `partial_fit` of the same shape."""
    optimizer = _adam(estimator)
    for l, layer in enumerate(estimator.network_.layers):
        for name, array in layer.arrays().items():
            array[...] = arrays[f"layers.{l}.{name}"]
    for i, (mean, square) in enumerate(zip(optimizer.means, optimizer.squares, strict=True)):
        mean[...], square[...] = arrays[f"means.{i}"], arrays[f"squares.{i}"]
    estimator.loss_curve_ = arrays["loss_curve"].tolist()
    optimizer.t = int(numbers["adam_t"])
    for name in NUMBERS:
        setattr(estimator, name, numbers[name])


def rate_of(estimator: Any) -> float:
    """The learning rate in use, lowered where training diverged."""
    return float(estimator._rate)


def set_rate(estimator: Any, rate: float) -> None:
    """Go on with another learning rate."""
    estimator._rate = rate


def _adam(estimator: Any) -> Adam:
    optimizer = getattr(estimator, "_optimizer", None)
    if not isinstance(optimizer, Adam):
        raise TypeError("only an estimator that learns by partial_fit with Adam can be resumed.")
    return optimizer


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
