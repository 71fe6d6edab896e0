"""The three kinds of neurons (linear, quadratic, reduced), a class for each."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix, flushed, unmasked
from quadric.core import _quadratic_form as quadratic_form


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
