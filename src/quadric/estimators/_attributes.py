"""Fitted attributes that are views of `network_`, and those that record the training."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, SupportsIndex

import numpy as np

from quadric.checks import Array
from quadric.core import Quadratic, checked_array
from quadric.network import Network
from quadric.training import Options, TrainingState


class HasNetwork:
    """An estimator with a `network_`, once it is fitted."""

    network_: Network

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a network; an interrupted first `fit` may leave other attributes."""
        return "network_" in vars(self)

    def _fitted(self) -> Network:
        if "network_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.network_


class _Views(list[Array]):
    """Views of one parameter array of each layer; assigning to an item changes the layer."""

    def __init__(self, name: str, views: Sequence[Array]) -> None:
        super().__init__(views)
        self.name = name

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, SupportsIndex):
            raise TypeError(f"assign to all of {self.name}, or to one item of it.")
        view = self[index]
        view[...] = checked_array(f"{self.name}[{index}]", value, view.shape, view.dtype)

    def assign(self, values: Any) -> None:
        """Change all layers, or none if a value is not valid."""
        if len(values) != len(self):
            raise ValueError(
                f"{self.name} must have one array for each of the {len(self)} layers. "
                f"Got {len(values)} instead."
            )
        checked = [
            checked_array(f"{self.name}[{l}]", value, view.shape, view.dtype)
            for l, (value, view) in enumerate(zip(values, self, strict=True))
        ]
        for view, value in zip(self, checked, strict=True):
            view[...] = value


class FittedAttributes(HasNetwork):
    """The attributes that the network estimators share with scikit-learn's networks."""

    early_stopping: bool
    solver: str
    learning_rate: str
    learning_rate_init: float
    power_t: float
    _state: TrainingState

    @property
    def coefs_(self) -> _Views:
        """W of each layer, transposed: shape (inputs, neurons), as in scikit-learn."""
        return _Views("coefs_", [layer.W.T for layer in self._fitted().layers])

    @coefs_.setter
    def coefs_(self, values: Any) -> None:
        self.coefs_.assign(values)

    @property
    def intercepts_(self) -> _Views:
        """b of each layer."""
        return _Views("intercepts_", [layer.b for layer in self._fitted().layers])

    @intercepts_.setter
    def intercepts_(self, values: Any) -> None:
        self.intercepts_.assign(values)

    @property
    def out_activation_(self) -> str:
        """The activation of the last layer."""
        return self._fitted().activations[-1]

    @property
    def n_layers_(self) -> int:
        """The number of layers, including the input."""
        return len(self._fitted().layers) + 1

    @property
    def n_outputs_(self) -> int:
        """The number of neurons of the last layer."""
        return self._fitted().n_outputs

    @property
    def _optimizer(self) -> SimpleNamespace:
        """The current learning rate, under the private name that users of scikit-learn know."""
        schedule = self.learning_rate if self.solver == "sgd" else "constant"
        options = Options(
            learning_rate=self.learning_rate_init, schedule=schedule, power_t=self.power_t
        )
        return SimpleNamespace(learning_rate=self._state.next_rate(options))

    @property
    def _no_improvement_count(self) -> int:
        """The number of epochs since the last improvement, also under scikit-learn's name."""
        return self._state.no_improvement

    def _set_attributes(self) -> None:
        """Set the fitted attributes of scikit-learn's networks from the training state."""
        state, early = self._state, self.early_stopping
        history = state.history
        self.n_iter_, self.t_ = state.epochs, state.samples
        self.loss_curve_ = history.loss
        self.loss_ = history.loss[-1] if history.loss else np.nan
        self.best_loss_ = None if early else state.best_loss
        self.validation_scores_ = history.validation_score if early else None
        self.best_validation_score_ = state.best_score if early else None


def _refused(name: str) -> property:
    """Return a property that raises AttributeError and names the attributes to use instead.

    Other tools take a model with `coef_` for a linear one: shap would explain it as such, and RFE
    and SelectFromModel would ignore its squares and products.
    """

    def refuse(self: Any, *_: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} has no attribute {name!r}, because z = x'Qx + w'x + b is not "
            "linear. Use w_, b_ and Q_, or feature_importances_."
        )

    return property(refuse, refuse)


class NeuronAttributes(HasNetwork):
    """The parameters of an estimator with a single quadratic layer, which can be assigned."""

    coef_ = _refused("coef_")
    intercept_ = _refused("intercept_")

    @property
    def w_(self) -> Array:
        """The linear coefficients, shape (n_neurons, n_features)."""
        return self._layer().W

    @w_.setter
    def w_(self, value: Any) -> None:
        W = self._layer().W
        W[...] = checked_array("w_", value, W.shape, W.dtype)

    @property
    def b_(self) -> Array:
        """The intercepts, shape (n_neurons,)."""
        return self._layer().b

    @b_.setter
    def b_(self, value: Any) -> None:
        b = self._layer().b
        b[...] = checked_array("b_", value, b.shape, b.dtype)

    @property
    def Q_(self) -> Array:
        """The symmetric matrices, shape (n_neurons, n_features, n_features), read-only.

        To change them, assign a whole array. A nonsymmetric Q is replaced by (Q + Q')/2.
        """
        return self._layer().Q

    @Q_.setter
    def Q_(self, value: Any) -> None:
        layer = self._layer()
        m, n = layer.W.shape
        layer.Q = checked_array("Q_", value, (m, n, n), layer.dtype)

    def _layer(self) -> Quadratic:
        layer = self._fitted().layers[0]
        assert isinstance(layer, Quadratic)
        return layer
