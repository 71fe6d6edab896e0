"""A feedforward network: a stack of layers of any kinds, with an activation for each."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from quadric._utils import arrays, checks
from quadric._utils.arrays import Array
from quadric.core._activations import get_activation
from quadric.core._initial_values import INITIAL_VALUES, draw_layer
from quadric.core._layers import Layer, parameters
from quadric.core._losses import get_loss
from quadric.core._stack import Stack
from quadric.network._data import checked_inputs, checked_samples, validation_score
from quadric.network._gradient_check import GradientCheck, check_gradients
from quadric.network._specification import check_specification, check_stack
from quadric.training._memory_needs import (
    Architecture,
    check_answers,
    check_backward,
    check_creation,
    check_fit,
    converted_bytes,
)
from quadric.training._options import Options
from quadric.training._state import Epoch, History, TrainingState
from quadric.training._train import train


class Network:
    """Layers of linear, quadratic and reduced neurons, one after the other.

    Parameters
    ----------
    layers : sequence of Layer
        `Linear`, `Quadratic` or `Reduced`, of one dtype, each with as many inputs as the one
        before has neurons. The network keeps these objects.
    activations : sequence of str
        One for each layer: 'identity', 'logistic', 'tanh', 'relu'; on the last layer also
        'softmax'.

    Examples
    --------
    One quadratic neuron learns XOR, which no single linear neuron can:

    >>> import numpy as np
    >>> X, Y = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]), np.array([0, 1, 1, 0])
    >>> net = Network.create(2, [("quadratic", 1, "logistic")], init="normal", scale=1.0, rng=0)
    >>> history = net.fit(X, Y, learning_rate=0.1, epochs=200)
    >>> (net.forward(X)[:, 0] > 0.5).astype(int)
    array([0, 1, 1, 0])
    """

    def __init__(self, layers: Sequence[Layer], activations: Sequence[str]) -> None:
        self.layers, self.activations = tuple(layers), tuple(activations)
        check_stack(self.layers, self.activations)

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
        """A network with new initial values.

        Parameters
        ----------
        n_inputs : int
        layers : sequence of (kind, neurons, activation)
            For example ``[("linear", 30, "logistic"), ("quadratic", 10, "logistic")]``.
        init : {'glorot', 'normal', 'identity', 'relinear'}
            See `quadric.core._initial_values`.
        scale : float, optional
            The standard deviation for 'normal' (default 0.005) and of W and b for 'identity'
            (default 0); a factor on the weights for 'glorot' and 'relinear' (default 1).
        rng : int or numpy.random.Generator, optional
        dtype : {'float64', 'float32'}
        """
        n = checks.check_integer("n_inputs", n_inputs, at_least=1)
        wanted, generator = arrays.as_dtype(dtype), checks.as_generator(rng)
        checks.check_choice("init", init, INITIAL_VALUES)
        if scale is not None:
            scale = checks.check_number("scale", scale, at_least=0)
        specification = check_specification(layers)
        if specification:  # the constructor rejects a network without layers
            kinds = [(kind, m) for kind, m, _ in specification]
            check_creation(Architecture(n, kinds, wanted.itemsize), init)
        drawn: list[Layer] = []
        for kind, m, _ in specification:
            drawn.append(
                draw_layer(kind, n, m, init=init, scale=scale, rng=generator, dtype=wanted)
            )
            n = m
        return cls(drawn, [activation for _, _, activation in specification])

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
        """The number of independent parameters: Q of n inputs counts n(n+1)/2 a neuron."""
        return sum(layer.n_parameters for layer in self.layers)

    def logits(self, X: Any, *, offset: Any = None) -> Array:
        """The pre-activations z of the last layer, shape (n_samples, n_outputs).

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_inputs)
        offset : float or array of shape (n_inputs,), optional
            Added to every row of X; a sparse X stays sparse.

        Raises
        ------
        ValueError
            Where finite inputs are so large that a pre-activation of any layer is not finite.
        """
        return self._answers(X, offset, lambda z: z)

    def forward(self, X: Any, *, offset: Any = None) -> Array:
        """The activations of the last layer; see `logits` for the parameters."""
        return self._answers(X, offset, get_activation(self.activations[-1]).function)

    def _answers(self, X: Any, offset: Any, function: Callable[[Array], Array]) -> Array:
        """function(z) of the last layer, block by block."""
        stack, given = self._stack(), X
        X = checked_inputs(stack, X)
        shift = arrays.as_offset(offset, self.n_inputs, self.dtype)
        network = Architecture.of(self.layers)
        converted = converted_bytes(given, X)
        converted += 0 if shift is None else 3 * self.n_parameters * network.itemsize
        check_answers(network, X.shape[0], self.n_outputs * network.itemsize, converted)
        answers = np.empty((X.shape[0], self.n_outputs), dtype=self.dtype)
        for rows, z in stack.shifted(shift).logit_blocks(X):
            answers[rows] = function(z)
        return answers

    def gradients(
        self, X: Any, Y: Any, loss: str | None = None, *, sample_weight: Any = None
    ) -> tuple[float, list[Layer]]:
        """The mean loss and its gradients.

        Parameters
        ----------
        X, Y : arrays of shapes (n_samples, n_inputs) and (n_samples, n_outputs)
        loss : {'binary_cross_entropy', 'cross_entropy', 'squared_error'}, optional
            Inferred from the last activation where it is None.
        sample_weight : array of shape (n_samples,), optional
            Multiplies the samples' losses; their sum is still divided by n_samples.

        Returns
        -------
        loss : float
        grads : list of Layer
            ``grads[l]`` has the fields of ``layers[l]``. ``grads[l].Q`` is the M form: entry
            (i, j) is the derivative by q_ij and q_ji moved together.
        """
        stack = self._stack(loss)
        samples = checked_samples(stack, X, Y, sample_weight)
        check_backward(Architecture.of(self.layers), len(samples), converted_bytes(X, samples.X))
        with np.errstate(over="ignore", invalid="ignore"):
            value, grads = stack.gradients(samples.X, samples.Y, samples.weight, finite=True)
        finite = all(np.isfinite(array).all() for array in parameters(grads))
        if not (finite and np.isfinite(value)):
            raise ValueError(
                f"X, Y or sample_weight holds values so large that the gradients are not finite in "
                f"{self.dtype}. Scale them."
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
        nesterov: bool = False,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        clip: float | None = None,
        tol: float = 1e-8,
        validation: tuple[Any, Any] | None = None,
        score: Callable[[Array, Array], float] | None = None,
        callback: Callable[[Epoch], object] | None = None,
    ) -> History:
        """Train in place: minimise mean loss + l2/2 times the sum of the squared weights.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_inputs)
        Y : array of shape (n_samples, n_outputs), or (n_samples,) for one output
        loss : str, optional
            As in `gradients`.
        solver : {'sgd', 'adam', 'lbfgs'}
            'sgd' with batch_size 1 and no momentum is the paper's algorithm and runs in a
            compiled loop. With momentum, or a larger batch, or 'adam', the same equations go
            through BLAS; batch_size 1 is then much slower than the compiled loop.
            'lbfgs' uses all samples at once and ignores what concerns batches and rates.
        learning_rate, power_t : float
            The rate of an epoch is learning_rate / (samples seen + 1)**power_t.
        batch_size, epochs : int
            For 'lbfgs' `epochs` is the largest number of iterations.
        l2 : float
            The penalty on W, U and the independent entries of Q; never on b and c.
        offset : float or array of shape (n_inputs,), optional
            Added to every row of X, at the cost of X's non-zeros where the first layer is
            linear or reduced. Give the same offset to `forward`.
        rng : int or numpy.random.Generator
            For the order of the samples, drawn anew for each epoch (unless shuffle is False).
            The same seed gives the same bits.
        sample_weight : array of shape (n_samples,), optional
            A sample's step is multiplied by its weight; a weight of 0 skips it.
        momentum, nesterov, beta_1, beta_2, epsilon
            Of 'sgd' and 'adam', as usual.
        clip : float, optional
            The largest norm of a step's gradient (penalty apart); longer ones are shortened.
        tol : float
            'lbfgs' stops when no entry of the gradient is larger.
        validation : (X, Y), optional
            Scored after every epoch.
        score : callable(Y, outputs), optional
            By default accuracy (or minus the mean loss, for 'squared_error'). Where an output
            is not finite the score is -inf, and `score` is not called.
        callback : callable(Epoch), optional
            Called after every epoch; training stops if it returns something true.

        Returns
        -------
        History

        Raises
        ------
        DivergenceError
            When a value is no longer finite.

        Notes
        -----
        Arguments are checked before anything is changed. Once training has begun, whatever ends
        it early (divergence, an error in `callback` or `score`, Ctrl-C) leaves the network as it
        was after the last finished epoch.
        """
        stack, validate = self._stack(loss), None
        samples = checked_samples(stack, X, Y, sample_weight, offset)
        if validation is not None:
            logits = partial(self.logits, offset=offset)
            validate = validation_score(stack, validation, score, logits)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable. Got {callback!r} instead.")
        options = Options(
            solver=checks.check_choice("solver", solver, ("sgd", "adam", "lbfgs")),
            learning_rate=checks.check_number("learning_rate", learning_rate, above=0),
            schedule="invscaling",
            power_t=checks.check_number("power_t", power_t, at_least=0),
            batch_size=checks.check_integer("batch_size", batch_size, at_least=1),
            epochs=checks.check_integer("epochs", epochs, at_least=0),
            l2=checks.check_number("l2", l2, at_least=0),
            momentum=checks.check_number("momentum", momentum, at_least=0, below=1),
            nesterov=checks.check_flag("nesterov", nesterov),
            beta_1=checks.check_number("beta_1", beta_1, at_least=0, below=1),
            beta_2=checks.check_number("beta_2", beta_2, at_least=0, below=1),
            epsilon=checks.check_number("epsilon", epsilon, above=0),
            clip=None if clip is None else checks.check_number("clip", clip, above=0),
            shuffle=checks.check_flag("shuffle", shuffle),
            tol=checks.check_number("tol", tol, at_least=0),
        )
        check_fit(Architecture.of(self.layers), samples, options, converted_bytes(X, samples.X))
        generator = checks.as_generator(rng)
        return train(
            stack,
            samples,
            options,
            TrainingState(),
            rng=generator,
            validate=validate,
            callback=callback,
        )

    def check_gradients(
        self, X: Any, Y: Any, loss: str | None = None, *, l2: float = 0.0, step: float = 1e-5
    ) -> GradientCheck:
        """Compare the gradients with central differences; q_ij and q_ji are moved together.

        Runs in float64 whatever the network's dtype. `print` the result for the worst entry of
        every parameter; ``.worst`` is the largest error of all.
        """
        checks.check_number("step", step, above=0)
        checks.check_number("l2", l2, at_least=0)
        stack = self.astype("float64")._stack(loss)
        return check_gradients(stack, checked_samples(stack, X, Y), l2=l2, step=step)

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)([layer.copy() for layer in self.layers], self.activations)

    def astype(self, dtype: Any) -> Self:
        """A copy with all parameters in another dtype; an error where one would overflow."""
        wanted = arrays.as_dtype(dtype)
        layers = []
        for layer in self.layers:
            with np.errstate(over="ignore"):
                cast = {name: array.astype(wanted) for name, array in layer.arrays().items()}
            layers.append(type(layer)(**cast))
        return type(self)(layers, self.activations)

    def summary(self) -> str:
        """The layers as a small table of text."""
        rows = [("layer", "kind", "inputs", "neurons", "activation", "parameters")]
        for l, (layer, activation) in enumerate(zip(self.layers, self.activations, strict=True)):
            n, m = f"{layer.n_inputs:,}", f"{layer.n_outputs:,}"
            rows.append((str(l), layer.kind, n, m, activation, f"{layer.n_parameters:,}"))
        rows.append(("", "", "", "", "total", f"{self.n_parameters:,}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        texts = (0, 1, 4)
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i in texts else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{layer.kind} {layer.n_outputs} {activation}"
            for layer, activation in zip(self.layers, self.activations, strict=True)
        )
        return f"Network({self.n_inputs} -> {inside}; {self.dtype.name})"

    def _stack(self, loss: str | None = None) -> Stack:
        return Stack(self.layers, self.activations, get_loss(loss, self.activations[-1])[0])
