"""A feedforward network: a stack of layers of any kind, each with its activation."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from quadric.checks import (
    Array,
    Matrix,
    as_dtype,
    as_generator,
    as_inputs,
    as_offset,
    as_targets,
    as_weights,
    check_choice,
    check_flag,
    check_integer,
    check_number,
)
from quadric.core import (
    ACTIVATIONS,
    INITIAL_VALUES,
    LAYERS,
    Layer,
    Stack,
    accuracy,
    check_loss,
    draw_layers,
    parameters,
)
from quadric.network._gradient_check import GradientCheck, check_gradients
from quadric.training import (
    Architecture,
    Epoch,
    History,
    Options,
    Samples,
    TrainingState,
    check_answers,
    check_backward,
    check_creation,
    check_fit,
    converted_bytes,
    train,
)
from quadric.utils import check_limit


class Network:
    """A feedforward network of linear, quadratic and reduced layers.

    Parameters
    ----------
    layers : sequence of Layer
        `Linear`, `Quadratic` or `Reduced` layers of one dtype. Each layer must have as many inputs
        as the previous layer has neurons. The network uses these objects, not copies of them.
    activations : sequence of str
        One activation for each layer: 'identity', 'logistic', 'tanh' or 'relu'. The last layer can
        also use 'softmax' or 'exponential'.

    Examples
    --------
    One quadratic neuron learns XOR, which no single linear neuron can:

    >>> import numpy as np
    >>> X, Y = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]), np.array([0, 1, 1, 0])
    >>> net = Network.create(2, [("quadratic", 1, "logistic")], init="normal", scale=1.0, rng=0)
    >>> history = net.fit(X, Y, learning_rate=0.1, epochs=200)
    >>> net.predict(X)
    array([0, 1, 1, 0])
    """

    def __init__(self, layers: Sequence[Layer], activations: Sequence[str]) -> None:
        self.layers, self.activations = tuple(layers), tuple(activations)
        _check_stack(self.layers, self.activations)

    @classmethod
    def create(
        cls,
        n_inputs: int,
        layers: Sequence[tuple[str, int, str]],
        *,
        init: str = "glorot",
        scale: float | None = None,
        rng: Any = None,
        dtype: Any = "float64",
    ) -> Self:
        """Create a network with random initial values.

        Parameters
        ----------
        n_inputs : int
            The number of inputs of the first layer.
        layers : sequence of (kind, neurons, activation)
            For example ``[("linear", 30, "logistic"), ("quadratic", 10, "logistic")]``.
        init : {'glorot', 'normal', 'identity', 'relinear'}
            How the initial values are chosen. 'glorot' preserves the variance of the input,
            'normal' draws all parameters from one normal distribution, 'identity' sets every Q to
            the identity matrix, and 'relinear' makes each layer start out linear.
        scale : float, optional
            For 'normal', the standard deviation of all parameters (default 0.005). For 'identity',
            the standard deviation of W and b (default 0). For 'glorot' and 'relinear', a factor
            that multiplies the weights (default 1).
        rng : int or numpy.random.Generator, optional
            The seed, or the generator that draws the initial values.
        dtype : {'float64', 'float32'}
            The dtype of all parameters.

        Returns
        -------
        Network
            The new network.
        """
        n = check_integer("n_inputs", n_inputs, at_least=1)
        wanted, generator = as_dtype(dtype), as_generator(rng)
        check_choice("init", init, INITIAL_VALUES)
        if scale is not None:
            scale = check_number("scale", scale, at_least=0)
        shapes, activations = _checked_specification(layers)
        if shapes:  # the constructor rejects a network without layers
            check_creation(Architecture(n, shapes, wanted.itemsize), init)
        return cls(
            draw_layers(n, shapes, init=init, scale=scale, rng=generator, dtype=wanted), activations
        )

    @property
    def n_inputs(self) -> int:
        return self.layers[0].n_inputs

    @property
    def n_outputs(self) -> int:
        return self.layers[-1].n_outputs

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.layers[0].dtype

    @property
    def n_parameters(self) -> int:
        """The number of independent parameters; for n inputs, Q has n(n+1)/2 of them per neuron."""
        return sum(layer.n_parameters for layer in self.layers)

    def logits(self, X: Any, *, offset: Any = None) -> Array:
        """Compute the logits: the pre-activations z of the last layer.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_inputs)
            The inputs.
        offset : float or array of shape (n_inputs,), optional
            Added to every row of X. A sparse X stays sparse.

        Returns
        -------
        array of shape (n_samples, n_outputs)
            The logits.

        Raises
        ------
        ValueError
            If finite inputs are so large that a pre-activation of any layer is not finite.
        """
        return _network_outputs(self._stack(), X, offset, lambda z: z)

    def forward(self, X: Any, *, offset: Any = None) -> Array:
        """Compute the outputs: the activations of the last layer.

        Parameters
        ----------
        X, offset : array, optional
            As in `logits`.

        Returns
        -------
        array of shape (n_samples, n_outputs)
            The outputs.
        """
        return _network_outputs(
            self._stack(), X, offset, ACTIVATIONS[self.activations[-1]].function
        )

    def predict(self, X: Any, *, offset: Any = None) -> Array:
        """Predict the class of each row, or the outputs of a network for regression.

        Parameters
        ----------
        X, offset : array, optional
            As in `logits`.

        Returns
        -------
        array of shape (n_samples,)
            For softmax and logistic outputs, the index of the largest logit. A single logistic
            output has the classes 0 and 1, and predicts 1 if its logit is positive. Logits decide,
            because outputs that are rounded to 1 are equal. For other activations, the outputs, of
            shape (n_samples, n_outputs).
        """
        if self.activations[-1] not in ("logistic", "softmax"):
            return self.forward(X, offset=offset)
        z = self.logits(X, offset=offset)
        return (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)

    def gradients(
        self, X: Any, Y: Any, loss: str | None = None, *, sample_weight: Any = None
    ) -> tuple[float, list[Layer]]:
        """Compute the mean loss and its gradients.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_inputs)
            The inputs.
        Y : array of shape (n_samples, n_outputs), or (n_samples,) for one output
            The targets.
        loss : {'binary_cross_entropy', 'cross_entropy', 'squared_error', 'poisson'}, optional
            Inferred from the last activation by default.
        sample_weight : array of shape (n_samples,), optional
            Factors that multiply the samples' losses; their sum is still divided by n_samples.

        Returns
        -------
        loss : float
            The mean loss.
        grads : list of Layer
            ``grads[l]`` has the fields of ``layers[l]``. Q holds the derivatives with
            respect to q_ij = q_ji.
        """
        stack = self._stack(loss)
        samples = _checked_samples(stack, X, Y, sample_weight)
        check_backward(Architecture.of(self.layers), len(samples), converted_bytes(X, samples.X))
        with np.errstate(over="ignore", invalid="ignore"):
            value, grads = stack.gradients(samples.X, samples.Y, samples.weight, finite=True)
        if not (np.isfinite(value) and all(np.isfinite(g).all() for g in parameters(grads))):
            raise ValueError(
                "X, Y or sample_weight contains values so large that the gradients are not finite "
                f"in {self.dtype}. Scale them."
            )
        return value, grads

    def fit(
        self,
        X: Any,
        Y: Any,
        loss: str | None = None,
        *,
        solver: str = "sgd",
        learning_rate: float = 0.01,
        batch_size: int = 1,
        epochs: int = 5,
        l2: float = 0.0,
        offset: Any = None,
        rng: Any = 0,
        shuffle: bool = True,
        sample_weight: Any = None,
        power_t: float = 0.0,
        momentum: float = 0.0,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        nesterov: bool = False,
        clip: float | None = None,
        tol: float = 1e-8,
        validation: tuple[Any, Any] | None = None,
        score: Callable[[Array, Array], float] | None = None,
        callback: Callable[[Epoch], object] | None = None,
    ) -> History:
        """Train in place: minimize mean loss + l2/2 times the sum of squared weights.

        Parameters
        ----------
        X, Y, loss : array, array and str, optional
            As in `gradients`.
        solver : {'sgd', 'adam', 'lbfgs'}
            'sgd' with batch_size 1 and no momentum is the paper's algorithm, in a compiled loop.
            Otherwise, 'sgd' and 'adam' process whole batches. 'lbfgs' uses all samples at once.
        learning_rate : float
            The learning rate in the first epoch; see `power_t`.
        batch_size, epochs : int
            The number of samples per step, and the number of passes over the samples. For 'lbfgs',
            `epochs` is the maximum number of iterations, and `batch_size` is ignored.
        l2 : float
            The coefficient of the penalty on W, U and the independent entries of Q.
        offset : float or array of shape (n_inputs,), optional
            Added to every row of X, which stays sparse. Pass the same offset to `forward`.
        rng : int or numpy.random.Generator
            Used to shuffle the samples. The same seed gives bit-identical results.
        shuffle : bool
            Whether to shuffle the samples anew for every epoch.
        sample_weight : array of shape (n_samples,), optional
            A factor that multiplies each sample's step. Samples with weight 0 are skipped.
        power_t : float
            The learning rate in an epoch is learning_rate / (samples seen + 1)**power_t.
        momentum, beta_1, beta_2, epsilon : float
            The momentum of 'sgd', and the parameters of 'adam'.
        nesterov : bool
            Whether to use Nesterov momentum.
        clip : float, optional
            The maximum norm of a step's gradient, excluding the penalty.
        tol : float
            'lbfgs' stops when no entry of the gradient exceeds this value.
        validation : (X, Y), optional
            Data on which the network is scored after every epoch.
        score : callable(Y, outputs), optional
            The default is the accuracy, or the negative mean loss for 'squared_error' and
            'poisson'. The score is -inf if the outputs are not finite.
        callback : callable(Epoch), optional
            Called after every epoch. Training stops if it returns a true value.

        Returns
        -------
        History
            The losses, validation scores and durations of the epochs.

        Raises
        ------
        DivergenceError
            If a value becomes infinite or NaN during training.

        Notes
        -----
        Arguments are checked before the network is changed. If training ends early because of
        divergence, an error in `callback` or `score`, or Ctrl-C, the network keeps the state of the
        last finished epoch.
        """
        stack, validate = self._stack(loss), None
        samples = _checked_samples(stack, X, Y, sample_weight, offset)
        if validation is not None:
            validate = _validation_score(
                stack, validation, score, lambda X: self.logits(X, offset=offset)
            )
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable. Got {callback!r} instead.")
        options = Options(
            solver=check_choice("solver", solver, ("sgd", "adam", "lbfgs")),
            learning_rate=check_number("learning_rate", learning_rate, above=0),
            schedule="invscaling",
            power_t=check_number("power_t", power_t, at_least=0),
            batch_size=check_integer("batch_size", batch_size, at_least=1),
            epochs=check_integer("epochs", epochs, at_least=0),
            l2=check_number("l2", l2, at_least=0),
            momentum=check_number("momentum", momentum, at_least=0, below=1),
            nesterov=check_flag("nesterov", nesterov),
            beta_1=check_number("beta_1", beta_1, at_least=0, below=1),
            beta_2=check_number("beta_2", beta_2, at_least=0, below=1),
            epsilon=check_number("epsilon", epsilon, above=0),
            clip=None if clip is None else check_number("clip", clip, above=0),
            shuffle=check_flag("shuffle", shuffle),
            tol=check_number("tol", tol, at_least=0),
            max_evaluations=15 * int(epochs) + 20,
        )
        check_fit(stack, samples, options, given=X)
        return train(
            stack,
            samples,
            options,
            TrainingState(),
            rng=as_generator(rng),
            validate=validate,
            callback=callback,
        )

    def check_gradients(
        self, X: Any, Y: Any, loss: str | None = None, *, l2: float = 0.0, step: float = 1e-5
    ) -> GradientCheck:
        """Compare the gradients with central differences, in float64.

        Parameters
        ----------
        X, Y, loss : array, array and str, optional
            As in `gradients`.
        l2 : float
            The coefficient of the L2 penalty.
        step : float
            The step size of the differences. q_ij and q_ji are changed together.

        Returns
        -------
        GradientCheck
            The worst entry of every parameter; ``worst`` is the largest error.
        """
        check_number("step", step, above=0)
        check_number("l2", l2, at_least=0)
        stack = self.astype("float64")._stack(loss)
        return check_gradients(stack, _checked_samples(stack, X, Y), l2=l2, step=step)

    def copy(self) -> Self:
        """Copy the network.

        Returns
        -------
        Network
            An independent copy.
        """
        return type(self)([layer.copy() for layer in self.layers], self.activations)

    def astype(self, dtype: Any) -> Self:
        """Copy the network in another dtype.

        Parameters
        ----------
        dtype : {'float64', 'float32'}
            The dtype of all parameters.

        Returns
        -------
        Network
            An independent copy. A parameter that overflows raises ValueError.
        """
        wanted = as_dtype(dtype)
        return type(self)([layer.astype(wanted) for layer in self.layers], self.activations)

    def summary(self) -> str:
        """Describe the layers.

        Returns
        -------
        str
            A table with one line per layer.
        """
        rows = [
            ("layer", "kind", "inputs", "neurons", "activation", "parameters"),
            *(
                (str(l), a.kind, f"{a.n_inputs:,}", f"{a.n_outputs:,}", g, f"{a.n_parameters:,}")
                for l, (a, g) in enumerate(zip(self.layers, self.activations, strict=True))
            ),
            ("", "", "", "", "total", f"{self.n_parameters:,}"),
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        cells = [f"{{:{side}{width}}}" for side, width in zip("<<>><>", widths, strict=True)]
        return "\n".join("  ".join(cells).format(*row).rstrip() for row in rows)

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{layer.kind} {layer.n_outputs} {activation}"
            for layer, activation in zip(self.layers, self.activations, strict=True)
        )
        return f"Network({self.n_inputs} -> {inside}; {self.dtype.name})"

    def _stack(self, loss: str | None = None) -> Stack:
        return Stack(self.layers, self.activations, check_loss(loss, self.activations[-1]))


# ---- layers ------------------------------------------------------------------------------


def _check_stack(layers: Sequence[Layer], activations: Sequence[str]) -> None:
    """Raise ValueError or TypeError unless the layers fit together."""
    if not layers or len(layers) != len(activations):
        raise ValueError(
            "layers and activations must have the same length, at least 1. "
            f"Got {len(layers)} and {len(activations)}."
        )
    for l, layer in enumerate(layers):
        if not isinstance(layer, tuple(LAYERS.values())):
            raise TypeError(
                f"layers[{l}] must be a Linear, Quadratic or Reduced layer. Got {layer!r}."
            )
        check_choice("activation", activations[l], ACTIVATIONS)
        if l and layer.n_inputs != layers[l - 1].n_outputs:
            raise ValueError(
                f"layers[{l}] must have {layers[l - 1].n_outputs} inputs, one for each neuron of "
                f"the previous layer. Got {layer.n_inputs} instead."
            )
        if layer.dtype != layers[0].dtype:
            raise ValueError(
                f"all layers must have the same dtype. Got {layers[0].dtype} and {layer.dtype}."
            )
    if len({id(layer) for layer in layers}) < len(layers):
        raise ValueError("layers must be different objects: repeated ones would be trained twice.")
    for activation in activations[:-1]:
        if ACTIVATIONS[activation].slope is None:
            raise ValueError(f"activation {activation!r} is supported on the last layer only.")


def _checked_specification(layers: Any) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the checked (kind, neurons) of each layer, and the activations."""
    if isinstance(layers, str) or not isinstance(layers, Sequence):
        raise TypeError(
            f"layers must be a sequence of (kind, neurons, activation). Got {layers!r}."
        )
    for l, spec in enumerate(layers):
        if isinstance(spec, str) or not isinstance(spec, Sequence) or len(spec) != 3:
            raise ValueError(
                f"layers[{l}] must be (kind, neurons, activation), such as "
                f"('quadratic', 10, 'logistic'). Got {spec!r} instead."
            )
        kind, m, activation = spec
        check_choice(f"the kind of layers[{l}]", kind, LAYERS)
        check_choice(f"the activation of layers[{l}]", activation, ACTIVATIONS)
        check_integer(f"the number of neurons of layers[{l}]", m, at_least=1)
    return [(kind, int(m)) for kind, m, _ in layers], [activation for *_, activation in layers]


# ---- data --------------------------------------------------------------------------------


def _checked_inputs(stack: Stack, X: Any) -> Matrix:
    """Return X as an array or CSR matrix of the stack's dtype; raise if a copy is too large."""
    n_inputs, dtype = stack.layers[0].n_inputs, stack.layers[0].dtype
    size = 0
    if sparse.issparse(X):
        size = 2 * X.nnz * (dtype.itemsize + 4)
    elif getattr(X, "dtype", None) != dtype:
        size = math.prod(getattr(X, "shape", ()) or (0,)) * dtype.itemsize
    check_limit(size, f"X as an array of {dtype}", "Pass fewer samples at a time.")
    return as_inputs("X", X, n_inputs, dtype)


def _checked_samples(
    stack: Stack, X: Any, Y: Any, sample_weight: Any = None, offset: Any = None
) -> Samples:
    """Return the training data in the stack's dtype."""
    first, X = stack.layers[0], _checked_inputs(stack, X)
    return Samples(
        X,
        offset=as_offset(offset, first.n_inputs, first.dtype),
        Y=_targets(stack, X, Y),
        weight=as_weights(sample_weight, X.shape[0], first.dtype),
    )


def _targets(stack: Stack, X: Matrix, Y: Any, prefix: str = "") -> Array:
    if X.shape[0] == 0:
        raise ValueError(f"{prefix}X must have at least one row. Got none.")
    last = stack.layers[-1]
    Y = as_targets(f"{prefix}Y", Y, X.shape[0], last.n_outputs, last.dtype)
    stack.loss_function.check_targets(Y)
    return Y


def _network_outputs(
    stack: Stack, X: Any, offset: Any, function: Callable[[Array], Array]
) -> Array:
    """Return function(logits), computed block by block."""
    inputs = _checked_inputs(stack, X)
    n_samples = inputs.shape[0]
    network = Architecture.of(stack.layers)
    shift = as_offset(offset, network.n_inputs, stack.layers[0].dtype)
    needed = converted_bytes(X, inputs)
    needed += 0 if shift is None else 3 * network.n_parameters * network.itemsize
    check_answers(network, n_samples, network.n_outputs * network.itemsize, needed)
    outputs = np.empty((n_samples, network.n_outputs), dtype=stack.layers[0].dtype)
    for rows, z in stack.shifted(shift).logit_blocks(inputs):
        outputs[rows] = function(z)
    return outputs


def _validation_score(
    stack: Stack,
    validation: Any,
    score: Callable[[Array, Array], float] | None,
    logits: Callable[[Matrix], Array],
) -> Callable[[], float]:
    """Return a function that computes the validation score of the current parameters."""
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise ValueError(f"validation must be (X, Y). Got {type(validation).__name__} instead.")
    if score is not None and not callable(score):
        raise TypeError(f"score must be callable: score(Y, outputs). Got {score!r} instead.")
    first, prefix = stack.layers[0], "the validation "
    X = as_inputs(f"{prefix}X", validation[0], first.n_inputs, first.dtype)
    Y = _targets(stack, X, validation[1], prefix)

    def validate() -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                z = logits(X)
            except ValueError:
                return -np.inf
            if score is not None:
                return float(score(Y, ACTIVATIONS[stack.activations[-1]].function(z)))
            if stack.loss_name in ("squared_error", "poisson"):
                return -stack.mean_loss(z, Y)
            return accuracy(z, Y)

    return validate
