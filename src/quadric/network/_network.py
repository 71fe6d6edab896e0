"""A feedforward network: a stack of layers of any kinds, with an activation for each."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from quadric._utils import arrays, checks
from quadric._utils.arrays import Array, Matrix
from quadric._utils.memory import check_limit
from quadric.core._activations import ACTIVATIONS, get_activation
from quadric.core._initial_values import INITIAL_VALUES, draw_layer
from quadric.core._layers import LAYERS, Layer
from quadric.core._losses import Loss, get_loss
from quadric.network._gradient_check import GradientCheck, check_gradients
from quadric.training import _objective as objective
from quadric.training._memory_needs import (
    SampleSizes,
    Shape,
    check_answers,
    check_backward,
    check_creation,
    check_training,
    compressed_bytes,
    matrix_bytes,
)
from quadric.training._objective import Samples
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
        if not self.layers or len(self.layers) != len(self.activations):
            raise ValueError(
                "layers and activations must have the same length, at least 1. "
                f"Got {len(self.layers)} and {len(self.activations)}."
            )
        for l, layer in enumerate(self.layers):
            if not isinstance(layer, tuple(LAYERS.values())):
                raise TypeError(
                    f"layers[{l}] must be a Linear, Quadratic or Reduced layer. Got {layer!r}."
                )
            get_activation(self.activations[l])
            if l and layer.n_inputs != self.layers[l - 1].n_outputs:
                raise ValueError(
                    f"layers[{l}] must have {self.layers[l - 1].n_outputs} inputs, one for each "
                    f"neuron of the layer before. Got {layer.n_inputs} instead."
                )
            if layer.dtype != self.layers[0].dtype:
                raise ValueError(
                    "all layers must have the same dtype. "
                    f"Got {self.layers[0].dtype} and {layer.dtype}."
                )
        if len({id(layer) for layer in self.layers}) < len(self.layers):
            raise ValueError("layers must be different objects: one twice would be trained twice.")
        if "softmax" in self.activations[:-1]:
            raise ValueError("activation 'softmax' must be on the last layer only.")

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
        if isinstance(layers, str) or not isinstance(layers, Sequence):
            raise TypeError(
                f"layers must be a sequence of (kind, neurons, activation). Got {layers!r}."
            )
        shapes: list[tuple[str, int, str]] = []
        for l, spec in enumerate(layers):
            if isinstance(spec, str) or not isinstance(spec, Sequence) or len(spec) != 3:
                raise ValueError(
                    f"layers[{l}] must be (kind, neurons, activation), such as "
                    f"('quadratic', 10, 'logistic'). Got {spec!r} instead."
                )
            kind, m, activation = spec
            checks.check_choice(f"the kind of layers[{l}]", kind, LAYERS)
            checks.check_choice(f"the activation of layers[{l}]", activation, ACTIVATIONS)
            m = checks.check_integer(f"the number of neurons of layers[{l}]", m, at_least=1)
            shapes.append((kind, m, activation))
        if shapes:  # a network without layers is refused below
            check_creation(Shape(n, [shape[:2] for shape in shapes], wanted.itemsize), init)
        drawn: list[Layer] = []
        for kind, m, _ in shapes:
            layer = draw_layer(kind, n, m, init=init, scale=scale, rng=generator, dtype=wanted)
            drawn.append(layer)
            n = m
        return cls(drawn, [activation for _, _, activation in shapes])

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
        given = X
        X, shift = self._inputs(X, offset)
        N, layers, shape = X.shape[0], self.layers, Shape.of(self.layers)
        converted = 0 if X is given else matrix_bytes(X, shape.itemsize)
        converted += 0 if shift is None else 3 * self.n_parameters * shape.itemsize
        check_answers(shape, N, self.n_outputs * shape.itemsize, converted)
        if shift is not None:
            layers = (layers[0].shifted(shift), *layers[1:])
        answers = np.empty((N, self.n_outputs), dtype=self.dtype)
        for rows, z in objective.logit_blocks(layers, self.activations, X):
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
        given = X
        X, _ = self._inputs(X, None)
        _refuse_empty("X", X)
        converted = 0 if X is given else matrix_bytes(X, X.dtype.itemsize)
        check_backward(Shape.of(self.layers), X.shape[0], converted)
        _, function = get_loss(loss, self.activations[-1])
        Y = self._targets(X, Y, function)
        weights = arrays.as_weights(sample_weight, X.shape[0], self.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            value, grads = objective.gradients(
                self.layers, self.activations, function, X, Y, weights, finite=True
            )
        found = [array for grad in grads for array in grad.arrays().values()]
        if not (np.isfinite(value) and all(np.isfinite(array).all() for array in found)):
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
        given = X
        X, shift = self._inputs(X, offset)
        _refuse_empty("X", X)
        name, function = get_loss(loss, self.activations[-1])
        Y = self._targets(X, Y, function)
        weight = arrays.as_weights(sample_weight, X.shape[0], self.dtype)
        validate = None
        if validation is not None:
            validate = self._validation(validation, offset, name, function, score)
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
        samples = Samples(X, Y, weight, shift)
        self._check_memory(samples, options, 0 if X is given else matrix_bytes(X, X.dtype.itemsize))
        return train(
            self.layers,
            self.activations,
            name,
            samples,
            options,
            TrainingState(),
            rng=checks.as_generator(rng),
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
        double = self.astype("float64")
        X, _ = double._inputs(X, None)
        _refuse_empty("X", X)
        _, function = get_loss(loss, self.activations[-1])
        Y = double._targets(X, Y, function)
        return check_gradients(double.layers, self.activations, function, X, Y, l2=l2, step=step)

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

    def _inputs(self, X: Any, offset: Any) -> tuple[Matrix, Array | None]:
        if sparse.issparse(X) or getattr(X, "dtype", None) != self.dtype:
            size = math.prod(getattr(X, "shape", ()) or (0,)) * self.dtype.itemsize
            size = 2 * X.nnz * (self.dtype.itemsize + 4) if sparse.issparse(X) else size
            check_limit(size, f"X as an array of {self.dtype}", "Pass fewer samples at a time.")
        X = arrays.as_inputs("X", X, self.n_inputs, self.dtype)
        return X, arrays.as_offset(offset, self.n_inputs, self.dtype)

    def _check_memory(self, samples: Samples, options: Options, converted: int) -> None:
        """Raise MemoryLimitError if training would need more than the limit."""
        (N, n), size = samples.X.shape, self.dtype.itemsize
        sizes = SampleSizes.of(samples.X, self.n_outputs, size, converted)
        held = 0 if samples.offset is None or options.solver == "adam" else N * n * size
        solver = "per sample" if options.per_sample else options.solver
        rows = N if solver == "lbfgs" else min(options.batch_size, N)
        needed = Shape.of(self.layers).solver_bytes(solver, rows)
        if solver == "lbfgs":
            needed = max(needed, matrix_bytes(samples.X, 8))  # the squares of X
        else:
            held += rows * (n + self.n_outputs) * size
        if solver == "per sample":
            held += compressed_bytes(samples.X, size)
        check_training(Shape.of(self.layers), sizes, held + needed)

    def _targets(self, X: Matrix, Y: Any, loss: Loss, name: str = "Y") -> Array:
        Y = arrays.as_targets(name, Y, X.shape[0], self.n_outputs, self.dtype)
        loss.check_targets(Y)
        return Y

    def _validation(
        self,
        validation: tuple[Any, Any],
        offset: Any,
        name: str,
        loss: Loss,
        score: Callable[[Array, Array], float] | None,
    ) -> Callable[[], float]:
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            raise ValueError(f"validation must be (X, Y). Got {type(validation).__name__}.")
        if score is not None and not callable(score):
            raise TypeError(f"score must be callable: score(Y, outputs). Got {score!r} instead.")
        X = arrays.as_inputs("the X of validation", validation[0], self.n_inputs, self.dtype)
        _refuse_empty("the X of validation", X)
        Y = self._targets(X, validation[1], loss, "the Y of validation")

        def validate() -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                try:
                    z = self.logits(X, offset=offset)
                except ValueError:
                    return -np.inf
                if score is not None:
                    return float(score(Y, get_activation(self.activations[-1]).function(z)))
                if name == "squared_error":
                    return -objective.mean_loss(loss, self.activations[-1], z, Y)
                return objective.accuracy(z, Y)

        return validate


def _refuse_empty(name: str, X: Matrix) -> None:
    if X.shape[0] == 0:
        raise ValueError(f"{name} must have at least one row. Got none.")
