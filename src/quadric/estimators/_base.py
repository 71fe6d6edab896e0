"""What classifier and regressor share: parameters, and attributes that follow from the network."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options, StrOptions

from quadric._utils.arrays import Array
from quadric.core._initial_values import INITIAL_VALUES
from quadric.network import Network


class QuadraticNetworkEstimator(BaseEstimator):
    """An estimator that trains a network; see `QuadraticClassifier` for the parameters."""

    network_: Network
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden_layer_sizes": [
            StrOptions({"auto"}),
            "array-like",
            Interval(Integral, 1, None, closed="left"),
        ],
        "activation": [StrOptions({"identity", "logistic", "tanh", "relu"})],
        "layer_kinds": [str, "array-like"],
        "init": [StrOptions(set(INITIAL_VALUES))],
        "solver": [StrOptions({"auto", "lbfgs", "sgd", "adam"})],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"constant", "invscaling", "adaptive"})],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "nesterovs_momentum": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_iter_no_change": [
            Interval(Integral, 1, None, closed="left"),
            Options(Real, {np.inf}),
        ],
        "max_fun": [Interval(Integral, 1, None, closed="left")],
        "dtype": [StrOptions({"float32", "float64"}), None],
        "on_divergence": [StrOptions({"recover", "raise"})],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        activation: str = "tanh",
        *,
        layer_kinds: Any = "auto",
        loss: str = "squared_error",
        init: str = "relinear",
        solver: str = "auto",
        alpha: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 100,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: int = 10,
        max_fun: int = 15000,
        dtype: str | None = None,
        on_divergence: str = "recover",
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.layer_kinds = layer_kinds
        self.loss = loss
        self.init = init
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.dtype = dtype
        self.on_divergence = on_divergence

    @property
    def coefs_(self) -> list[Array]:
        """W of each layer, transposed: shape (inputs, neurons), as scikit-learn has it."""
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
        """The number of layers, the input counted as one."""
        return len(self._fitted().layers) + 1

    @property
    def n_outputs_(self) -> int:
        """The number of neurons of the last layer."""
        return self._fitted().n_outputs

    def _fitted(self) -> Network:
        try:
            return self.__dict__["network_"]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None

    def _solver_is_stochastic(self) -> bool:
        if self.solver == "lbfgs":
            raise AttributeError(
                "partial_fit is only available for stochastic optimizers. lbfgs is not stochastic."
            )
        return True
