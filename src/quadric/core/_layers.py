"""The three kinds of neurons (linear, quadratic, reduced), a class for each; stacks of layers.

`Stack` runs the forward and backward passes of several layers. Losses and gradients are sums over
blocks of rows, added in the order of the rows. The size of a block limits the memory needed, and
the result does not depend on where a block is computed.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix, flushed, unmasked
from quadric.core import _quadratic_form as quadratic_form
from quadric.core._activations_and_losses import ACTIVATIONS, LOSSES, Loss, infer_loss
from quadric.utils import threads_for_loops


class Layer(ABC):
    """Named parameter arrays of fixed shape and dtype, and the equations that use them.

    Assigning to a parameter copies the values into its array. The shape must match and the
    values must be finite.
    """

    kind: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    weights: ClassVar[tuple[str, ...]]  # the penalized fields: all except the biases
    W: Array
    b: Array

    def __init__(self, **parameters: Any) -> None:
        W = np.asarray(unmasked("W", parameters["W"]))
        if W.ndim != 2 or 0 in W.shape:
            raise ValueError(
                f"W must have shape (neurons, inputs), both nonzero. Got {W.shape} instead."
            )
        dtype = W.dtype if W.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        for name, shape in self.shapes(W.shape[1], W.shape[0]).items():
            self.__dict__[name] = np.zeros(shape, dtype=dtype)
        for name, value in parameters.items():
            setattr(self, name, value)

    def __init_subclass__(cls) -> None:
        """Copy the docstrings of the abstract methods, so that subclasses need not repeat them."""
        for name in ("forward", "backward", "shifted"):
            vars(cls)[name].__doc__ = getattr(Layer, name).__doc__

    @classmethod
    def shapes(cls, n: int, m: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter of m neurons with n inputs."""
        shapes = {"W": (m, n), "b": (m,), "packed": (n * (n + 1) // 2, m), "U": (m, n), "c": (m,)}
        return {name: shapes[name] for name in cls.fields}

    @classmethod
    def of(cls, **arrays: Array) -> Self:
        """Return a layer that holds the given arrays, without copying or checking them."""
        layer = cls.__new__(cls)
        layer.__dict__.update(arrays)
        return layer

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.fields:
            array = self.__dict__[name]
            array[...] = checked_array(name, value, array.shape, array.dtype)
        elif isinstance(getattr(type(self), name, None), property):
            super().__setattr__(name, value)
        else:
            raise AttributeError(
                f"a {self.kind} layer has no parameter {name}, only {', '.join(self.fields)}"
            )

    @property
    def n_inputs(self) -> int:
        return int(self.W.shape[1])

    @property
    def n_outputs(self) -> int:
        return int(self.W.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.W.dtype

    @property
    def n_parameters(self) -> int:
        """The number of independent parameters."""
        return sum(array.size for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        """Return the parameter arrays themselves, for code that updates them in place."""
        return {name: self.__dict__[name] for name in self.fields}

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self).of(**{name: array.copy() for name, array in self.arrays().items()})

    def astype(self, dtype: np.dtype[Any]) -> Self:
        """Return a copy in another dtype; raise ValueError if a parameter overflows."""
        with np.errstate(over="ignore"):
            return type(self)(
                **{name: array.astype(dtype) for name, array in self.arrays().items()}
            )

    def penalty(self) -> float:
        """Return half the sum of squares of the weights, excluding the biases."""
        arrays = [self.__dict__[name].astype(np.float64, copy=False) for name in self.weights]
        return sum(float(np.vdot(array, array)) / 2 for array in arrays)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_inputs} -> {self.n_outputs}, {self.dtype.name})"

    @abstractmethod
    def forward(self, X: Matrix) -> tuple[Array, Any]:
        """Compute the pre-activations of a batch.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_inputs)
            The inputs.

        Returns
        -------
        z : array of shape (n_samples, n_outputs)
            The pre-activations.
        cache : object
            Intermediate values that `backward` needs.
        """

    @abstractmethod
    def backward(
        self, delta: Array, cache: Any, *, inputs: bool = True
    ) -> tuple[Self, Array | None]:
        """Compute the gradients of a batch.

        Parameters
        ----------
        delta : array of shape (n_samples, n_outputs)
            The derivatives dL/dz.
        cache : object
            The `cache` that `forward` returned.
        inputs : bool, default=True
            Whether to compute dL/dX.

        Returns
        -------
        gradients : Layer
            A layer of the same kind that holds dL/dW in place of W, and so on.
        d_input : array of shape (n_samples, n_inputs) or None
            The derivatives dL/dX; None if `inputs` is False.
        """

    @abstractmethod
    def shifted(self, o: Array) -> Self:
        """Return a layer whose output for x is the output of this layer for x + o.

        Parameters
        ----------
        o : array of shape (n_inputs,)
            The offset.

        Returns
        -------
        Layer
            A layer of the same kind. It may share arrays with this layer.
        """


class Linear(Layer):
    """Linear neurons, z = W a + b, with n + 1 parameters each.

    Parameters
    ----------
    W : array of shape (m, n)
        The weights of m neurons with n inputs.
    b : array of shape (m,)
        The biases.
    """

    kind = "linear"
    fields = ("W", "b")
    weights = ("W",)

    def __init__(self, W: Any, b: Any) -> None:
        super().__init__(W=W, b=b)

    def forward(self, X: Matrix) -> tuple[Array, Any]:
        z = X @ self.W.T
        z += self.b
        return z, X

    def backward(
        self, delta: Array, cache: Any, *, inputs: bool = True
    ) -> tuple[Self, Array | None]:
        delta = flushed(delta)
        gradients = self.of(W=(cache.T @ delta).T, b=delta.sum(axis=0))
        return gradients, delta @ self.W if inputs else None

    def shifted(self, o: Array) -> Self:
        return self.of(W=self.W, b=self.b + self.W @ o)


class Quadratic(Layer):
    """Quadratic neurons (QNN), z = a'Qa + W a + b with symmetric Q.

    Parameters
    ----------
    W : array of shape (m, n)
        The linear weights of m neurons with n inputs.
    b : array of shape (m,)
        The biases.
    Q : array of shape (m, n, n), optional
        A nonsymmetric Q is replaced by (Q + Q')/2, which defines the same function.
    packed : array of shape (n(n+1)/2, m), optional
        The entries q_ij with i <= j. Exactly one of `Q` and `packed` is required.

    Notes
    -----
    A neuron has n(n+1)/2 + n + 1 parameters. The layer stores `packed`. `Q` is a read-only array
    that is built from `packed` on request; to change Q, assign a whole array. In a layer of
    gradients, `packed` holds the derivatives with respect to the independent entries, delta_k M(a),
    where M(a) is 2 a a' with its diagonal halved, and `Q` holds the same values as symmetric
    matrices.
    """

    kind = "quadratic"
    fields = ("W", "b", "packed")
    weights = ("W", "packed")
    packed: Array

    def __init__(self, W: Any, b: Any, Q: Any = None, *, packed: Any = None) -> None:
        if (Q is None) == (packed is None):
            raise TypeError("a quadratic layer needs exactly one of Q and packed.")
        super().__init__(W=W, b=b, **({"packed": packed} if Q is None else {"Q": Q}))

    @property
    def Q(self) -> Array:
        """The symmetric matrices, shape (m, n, n), read-only."""
        Q = quadratic_form.unpack(self.packed)
        Q.flags.writeable = False
        return Q

    @Q.setter
    def Q(self, value: Any) -> None:
        m, n = self.W.shape
        Q = checked_array("Q", value, (m, n, n), self.dtype)
        half = Q * self.dtype.type(0.5)  # halve first, so that the sum cannot overflow
        self.packed[...] = quadratic_form.pack(half + half.transpose(0, 2, 1))

    def forward(self, X: Matrix) -> tuple[Array, Any]:
        X = X.toarray() if sparse.issparse(X) else X
        z = X @ self.W.T
        z += self.b
        z += quadratic_form.values(X, self.packed)
        return z, X

    def backward(
        self, delta: Array, cache: Any, *, inputs: bool = True
    ) -> tuple[Self, Array | None]:
        delta = flushed(delta)
        d_input, packed = quadratic_form.gradients(cache, self.packed, delta, inputs=inputs)
        gradients = self.of(W=delta.T @ cache, b=delta.sum(axis=0), packed=packed)
        if d_input is not None:
            d_input += delta @ self.W
        return gradients, d_input

    def shifted(self, o: Array) -> Self:
        Qo = self.Q @ o
        return self.of(W=self.W + 2 * Qo, b=self.b + (self.W + Qo) @ o, packed=self.packed)


class Reduced(Layer):
    """Reduced quadratic neurons (RPQNN), z = (W a + b)(U a + c) elementwise.

    Parameters
    ----------
    W : array of shape (m, n)
        The weights of the first factor, for m neurons with n inputs.
    b : array of shape (m,)
        The biases of the first factor.
    U : array of shape (m, n)
        The weights of the second factor.
    c : array of shape (m,)
        The biases of the second factor.

    Notes
    -----
    A neuron has 2n + 2 parameters. ``v1 = W a + b`` and ``v2 = U a + c`` are kept for the backward
    pass. The boundary z = 0 is always a pair of hyperplanes, never an ellipsoid.
    """

    kind = "reduced"
    fields = ("W", "b", "U", "c")
    weights = ("W", "U")
    U: Array
    c: Array

    def __init__(self, W: Any, b: Any, U: Any, c: Any) -> None:
        super().__init__(W=W, b=b, U=U, c=c)

    def forward(self, X: Matrix) -> tuple[Array, Any]:
        v1 = X @ self.W.T + self.b
        v2 = X @ self.U.T + self.c
        return v1 * v2, (X, v1, v2)

    def backward(
        self, delta: Array, cache: Any, *, inputs: bool = True
    ) -> tuple[Self, Array | None]:
        X, v1, v2 = cache
        to_W, to_U = flushed(delta * v2), flushed(delta * v1)
        gradients = self.of(
            W=(X.T @ to_W).T, b=to_W.sum(axis=0), U=(X.T @ to_U).T, c=to_U.sum(axis=0)
        )
        return gradients, to_U @ self.U + to_W @ self.W if inputs else None

    def shifted(self, o: Array) -> Self:
        return self.of(W=self.W, b=self.b + self.W @ o, U=self.U, c=self.c + self.U @ o)


LAYERS: dict[str, type[Linear] | type[Quadratic] | type[Reduced]] = {
    layer.kind: layer for layer in (Linear, Quadratic, Reduced)
}


def parameters(layers: Iterable[Layer]) -> list[Array]:
    """Return the parameter arrays of all layers, layer by layer in the order of the fields."""
    return [array for layer in layers for array in layer.arrays().values()]


def checked_array(name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return the value as a finite array of the given shape and dtype."""
    array = np.asarray(unmasked(name, value))
    if array.shape != shape or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be an array of numbers of shape {shape}. "
            f"Got dtype {array.dtype} and shape {array.shape} instead."
        )
    with np.errstate(over="ignore"):
        array = array.astype(dtype)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite in {dtype}. Got an infinite or NaN entry.")
    return array


# ---- stacks of layers --------------------------------------------------------------------


BLOCK_ROWS = 1536
FEWEST_ROWS = 16  # of a block, however wide its arrays are
BLOCK_NUMBERS = 2**21  # per array of a block, so that wide layers process fewer rows at once
WORTH_THREADS = 2**25  # multiplications of a pass above which it pays to set the number of threads


def block_rows(width: int) -> int:
    """Number of rows that are computed at once if the widest array has `width` columns."""
    return max(FEWEST_ROWS, min(BLOCK_ROWS, BLOCK_NUMBERS // width))


def columns_needed(kind: str, n: int, m: int) -> int:
    """Number of columns of the widest array that a layer with n inputs and m neurons creates."""
    return max(n, m) if kind == "quadratic" else m  # a quadratic layer makes X dense


@dataclass(frozen=True)
class Stack:
    """A sequence of layers, their activations, and the loss of the last layer.

    Parameters
    ----------
    layers : sequence of Layer
        Updated in place by training.
    activations : sequence of str
    loss : str, optional
        Inferred from the last activation by default.
    """

    layers: Sequence[Layer]
    activations: Sequence[str]
    loss: str | None = None

    @property
    def loss_name(self) -> str:
        return self.loss or infer_loss(self.activations[-1])

    @property
    def loss_function(self) -> Loss:
        return LOSSES[self.loss_name]

    @cached_property
    def n_parameters(self) -> int:
        return sum(array.size for array in parameters(self.layers))

    def logit_blocks(self, X: Matrix, *, finite: bool = True) -> Iterator[tuple[slice, Array]]:
        """Yield a slice of rows and the logits of these rows, block by block.

        With `finite`, raise ValueError if a pre-activation of any layer is not finite, because a
        later layer could turn it into NaN or into a plausible probability.
        """
        dtype = self.layers[0].dtype
        for rows in self._blocks(X.shape[0]):
            block = X[rows]
            with self.threads(block.shape[0]), np.errstate(over="ignore", invalid="ignore"):
                a = block if sparse.issparse(X) else np.ascontiguousarray(block, dtype)
                for l, layer in enumerate(self.layers):
                    z = layer.forward(a)[0]
                    if finite:
                        _check_finite(z, l, block)
                    if l < len(self.layers) - 1:
                        a = ACTIVATIONS[self.activations[l]].function(z)
            yield rows, z

    def logits(self, X: Matrix) -> Array:
        """Return the logits of every row of X, which may be infinite or NaN."""
        z = np.empty((X.shape[0], self.layers[-1].n_outputs), dtype=self.layers[0].dtype)
        for rows, block in self.logit_blocks(X, finite=False):
            z[rows] = block
        return z

    def mean_loss(self, z: Array | None, Y: Array, weight: Array | None = None) -> float:
        """Return the mean over samples of weight times loss; if z is None, all logits are zero."""
        values = np.empty(len(Y), dtype=Y.dtype)
        for rows in _slices(len(Y), block_rows(Y.shape[1])):
            logits = np.zeros_like(Y[rows]) if z is None else z[rows]
            values[rows] = self.loss_function.value(self.activations[-1], logits, Y[rows])
        if weight is not None:
            values = values * weight
        return float(values.mean(dtype=np.float64))

    def gradients(
        self,
        X: Matrix,
        Y: Array,
        weight: Array | None = None,
        *,
        finite: bool = False,
        divisor: float | None = None,
    ) -> tuple[float, list[Layer]]:
        """Return the mean over samples of weight times loss, and its gradients.

        With `finite`, raise ValueError if a pre-activation is not finite. Training does not
        need this check, because the loss reveals such values. The sums are divided by `divisor`,
        which is the number of samples by default.
        """
        divisor = X.shape[0] if divisor is None else divisor
        total = 0.0
        sums: list[Layer] = []
        with self.threads(X.shape[0]):
            for rows in self._blocks(X.shape[0]):
                factors = None if weight is None else weight[rows]
                value, grads = self._block_gradients(X[rows], Y[rows], factors, divisor, finite)
                total += value
                if sums:
                    for into, part in zip(parameters(sums), parameters(grads), strict=True):
                        into += part
                else:
                    sums = grads
        return total, sums

    def _block_gradients(
        self, X: Matrix, Y: Array, weight: Array | None, divisor: float, finite: bool
    ) -> tuple[float, list[Layer]]:
        """Return the block's sum of losses divided by `divisor`, and its gradients."""
        caches, outputs = [], [X]
        for l, layer in enumerate(self.layers):
            z, cache = layer.forward(outputs[-1])
            if finite:
                _check_finite(z, l, X)
            caches.append(cache)
            if l < len(self.layers) - 1:
                outputs.append(ACTIVATIONS[self.activations[l]].function(z))
        values, delta = self.loss_function.value_and_delta(self.activations[-1], z, Y)
        if weight is not None:
            values = values * weight
            delta *= weight[:, None]
        delta /= delta.dtype.type(divisor)

        grads: list[Layer] = []
        for l in range(len(self.layers) - 1, -1, -1):
            grad, d_input = self.layers[l].backward(delta, caches.pop(), inputs=l > 0)
            grads.append(grad)
            if d_input is not None:
                slope = ACTIVATIONS[self.activations[l - 1]].slope
                assert slope is not None  # only the last activation may lack a slope
                delta = d_input
                delta *= slope(outputs.pop())
        return float(values.sum(dtype=np.float64)) / divisor, grads[::-1]

    def threads(self, n_rows: int) -> AbstractContextManager[None]:
        """Return a context that gives the threads to compiled loops if they do most of the work."""
        worth = n_rows * self._in_loops > WORTH_THREADS and 2 * self._in_loops > self.n_parameters
        return threads_for_loops() if worth else nullcontext()

    @cached_property
    def _in_loops(self) -> int:
        return sum(
            layer.arrays()["packed"].size for layer in self.layers if layer.kind == "quadratic"
        )

    def shifted(self, offset: Array | None) -> Self:
        """Return a stack whose output for X is the output of this stack for X + offset."""
        if offset is None:
            return self
        return replace(self, layers=(self.layers[0].shifted(offset), *self.layers[1:]))

    def penalty(self, l2: float) -> float:
        """Return l2/2 times the sum of squares of all weights."""
        return l2 * sum(layer.penalty() for layer in self.layers) if l2 else 0.0

    def add_l2(self, grads: Sequence[Layer], l2: float) -> None:
        """Add l2 times the weights to their gradients, in place."""
        if l2:
            for layer, grad in zip(self.layers, grads, strict=True):
                for name in layer.weights:
                    grad.arrays()[name] += l2 * layer.arrays()[name]

    def snapshot(self) -> list[Layer]:
        """Return a copy of all layers."""
        return [layer.copy() for layer in self.layers]

    def restore(self, saved: Sequence[Layer]) -> None:
        """Copy the parameters of a snapshot into the layers."""
        for array, value in zip(parameters(self.layers), parameters(saved), strict=True):
            array[...] = value

    def _blocks(self, n_rows: int) -> Iterator[slice]:
        return _slices(n_rows, FEWEST_ROWS if n_rows <= FEWEST_ROWS else self._block_rows)

    @cached_property
    def _block_rows(self) -> int:
        sizes = [(layer.kind, layer.n_inputs, layer.n_outputs) for layer in self.layers]
        return block_rows(max(columns_needed(*size) for size in sizes))


def _slices(n_rows: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def _check_finite(z: Array, l: int, X: Matrix) -> None:
    if not np.isfinite(z).all():
        raise ValueError(
            f"X contains values so large (up to {abs(X).max():g}) that a pre-activation of layer "
            f"{l} is not finite in {z.dtype}. Scale the features as they were scaled in training."
        )
