"""The fitted attributes that the network estimators share with scikit-learn's networks."""

import numpy as np

from quadric._utils.arrays import Array
from quadric.network import Network
from quadric.training import TrainingState


class FittedAttributes:
    """Attributes that are computed from `network_`, and those that are set after training."""

    network_: Network
    early_stopping: bool
    _state: TrainingState

    @property
    def coefs_(self) -> list[Array]:
        """W of each layer, transposed: shape (inputs, neurons), as in scikit-learn."""
        return [layer.W.T for layer in self._fitted().layers]

    @property
    def intercepts_(self) -> list[Array]:
        """b of each layer."""
        return [layer.b for layer in self._fitted().layers]

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

    def _fitted(self) -> Network:
        if "network_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.network_

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
