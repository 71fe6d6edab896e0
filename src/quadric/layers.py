"""The three neurons, a layer of each: linear, quadratic and reduced.

A layer holds its parameters and knows its own equations, for a batch of inputs X of shape
(batch, n). `forward` returns the pre-activations z and a cache; `backward` turns
``delta = dL/dz`` and that cache into the gradients (a layer of the same kind that holds
dL/dW in the place of W, and so on) and dL/dX.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from quadric import triangle
from quadric.arrays import Array, Matrix

__all__ = ["LAYERS", "Layer", "Linear", "Quadratic", "Reduced"]

BLOCK_BYTES = 256 * 2**10


class Layer(ABC):
    """What the three kinds share: named parameter arrays of fixed shape and dtype.

    Assigning to a parameter copies the values into it: the shape must fit, the values must be
    finite, and an unsymmetric Q is replaced by (Q + Q')/2, which is the same function.
    """

    kind: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    weights: ClassVar[tuple[str, ...]]  # the fields under an L2 penalty: all but the biases
    W: Array
    b: Array

    def __init__(self, **parameters: Any) -> None:
        W = np.asarray(parameters["W"])
        if W.ndim != 2 or 0 in W.shape:
            raise ValueError(
                f"W must have shape (neurons, inputs), neither zero. Got {W.shape} instead."
            )
        dtype = W.dtype if W.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        for name, shape in self.shapes(W.shape[1], W.shape[0]).items():
            self.__dict__[name] = np.zeros(shape, dtype=dtype)
            setattr(self, name, parameters[name])

    @classmethod
    def shapes(cls, n: int, m: int) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter of m neurons with n inputs."""
        shapes = {"W": (m, n), "b": (m,), "Q": (m, n, n), "U": (m, n), "c": (m,)}
        return {name: shapes[name] for name in cls.fields}

    @classmethod
    def of(cls, **arrays: Array) -> Self:
        """A layer around these very arrays, unchecked: for results computed here."""
        layer = cls.__new__(cls)
        layer.__dict__.update(arrays)
        return layer

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.fields:
            raise AttributeError(f"a {self.kind} layer has {', '.join(self.fields)}; not {name}")
        held = self.__dict__[name]
        array = np.asarray(value)
        if array.shape != held.shape or array.dtype.kind not in "fiub":
            raise ValueError(
                f"{name} must be an array of numbers of shape {held.shape}. "
                f"Got dtype {array.dtype} and shape {array.shape} instead."
            )
        if name == "Q":
            half = array * 0.5  # halved first, so that the sum cannot overflow
            array = half + half.transpose(0, 2, 1)
        with np.errstate(over="ignore"):
            array = array.astype(held.dtype)
        if not np.isfinite(array).all():
            raise ValueError(
                f"{name} must be finite in {held.dtype}. Got an infinite or undefined entry."
            )
        held[...] = array

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
        """How many independent numbers the layer holds: of Q its triangle counts."""
        n, m = self.n_inputs, self.n_outputs
        shapes = self.shapes(n, m) | ({"Q": (m, n * (n + 1) // 2)} if "Q" in self.fields else {})
        return sum(int(np.prod(shape)) for shape in shapes.values())

    def arrays(self) -> dict[str, Array]:
        """The parameter arrays themselves, for code that updates them in place.

        An update of Q must keep it symmetric; an elementwise one with a symmetric step does.
        """
        return {name: self.__dict__[name] for name in self.fields}

    def packed(self) -> dict[str, Array]:
        """The parameters as they are stored outside memory: Q as its row-major triangle."""
        return {
            name: triangle.pack(array) if name == "Q" else array
            for name, array in self.arrays().items()
        }

    @classmethod
    def from_packed(cls, arrays: dict[str, Array]) -> Self:
        """The layer whose `packed()` is `arrays`."""
        n = np.shape(arrays["W"])[1]
        return cls(
            **{
                name: triangle.unpack(np.asarray(array), n) if name == "Q" else array
                for name, array in arrays.items()
            }
        )

    def copy(self) -> Self:
        return type(self).of(**{name: array.copy() for name, array in self.arrays().items()})

    def penalty(self) -> float:
        """Half the sum of squares of the independent weights; the biases are left out."""
        total = 0.0
        for name in self.weights:
            array = self.__dict__[name].astype(np.float64, copy=False)
            squares = float(np.vdot(array, array))
            if name == "Q":  # an entry off the diagonal stands twice, and counts once
                diagonal = np.einsum("kii->ki", array)
                squares = (squares + float(np.vdot(diagonal, diagonal))) / 2
            total += squares / 2
        return total

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_inputs} -> {self.n_outputs}, {self.dtype.name})"

    @abstractmethod
    def forward(self, X: Matrix) -> tuple[Array, Any]:
        """z of shape (batch, m), and what `backward` will need."""

    @abstractmethod
    def backward(
        self, delta: Array, cache: Any, *, inputs: bool = True
    ) -> tuple[Self, Array | None]:
        """The gradients, summed over the batch, and dL/dX (None where `inputs` is false)."""

    @abstractmethod
    def shifted(self, o: Array) -> Self:
        """The layer whose output for s is this one's output for s + o."""


class Linear(Layer):
    """z = W a + b. The ordinary neuron; n + 1 parameters each."""

    kind = "linear"
    fields = ("W", "b")
    weights = ("W",)

    def __init__(self, W: Any, b: Any) -> None:
        super().__init__(W=W, b=b)

    def forward(self, X: Matrix) -> tuple[Array, Any]:
        return X @ self.W.T + self.b, X

    def backward(
        self, delta: Array, cache: Any, *, inputs: bool = True
    ) -> tuple[Self, Array | None]:
        X = cache
        gradients = self.of(W=(X.T @ delta).T, b=delta.sum(axis=0))
        return gradients, delta @ self.W if inputs else None

    def shifted(self, o: Array) -> Self:
        return self.of(W=self.W, b=self.b + self.W @ o)


class Quadratic(Layer):
    """z = a'Q a + W a + b, Q symmetric (QNN); n(n+1)/2 + n + 1 parameters each.

    `Q` has shape (m, n, n) and reads as symmetric matrices, one for each neuron. Assign a whole
    array to change it; an unsymmetric one is replaced by (Q + Q')/2, which is the same function.

    Notes
    -----
    ``V_k = a'Q_k`` is computed once, in the forward pass (``z = b + (W + V) a``), and gives the
    input gradient ``(W + 2V)' delta`` for next to nothing. The gradient by the independent
    entries of Q_k is ``delta_k M(a)``, M(a) being 2 a a' with its diagonal halved: both q_ij and
    q_ji take it, so Q stays symmetric.
    """

    kind = "quadratic"
    fields = ("W", "b", "Q")
    weights = ("W", "Q")

    def __init__(self, W: Any, b: Any, Q: Any) -> None:
        super().__init__(W=W, b=b, Q=Q)

    @property
    def Q(self) -> Array:
        """Read-only: writing single entries would break the symmetry."""
        view = self.__dict__["Q"].view()
        view.flags.writeable = False
        return view

    def forward(self, X: Matrix) -> tuple[Array, Any]:
        X = _dense(X)
        m, n = self.W.shape
        V = (X @ self.__dict__["Q"].reshape(m * n, n).T).reshape(len(X), m, n)
        z = X @ self.W.T + self.b + np.matmul(V, X[:, :, None])[:, :, 0]
        return z, (X, V)

    def backward(
        self, delta: Array, cache: Any, *, inputs: bool = True
    ) -> tuple[Self, Array | None]:
        X, V = cache
        m, n = self.W.shape
        M = np.empty((m, n, n), dtype=X.dtype)
        # a few neurons at a time: what is made on the way stays in the processor's cache
        step = max(1, BLOCK_BYTES // max(1, X.nbytes))
        for k in range(0, m, step):
            # sum over the batch of delta_k x x', as one matrix product for these neurons
            weighted = delta[:, k : k + step, None] * X[:, None, :]
            outer = (weighted.reshape(len(X), -1).T @ X).reshape(-1, n, n)
            # 2 delta_k x x', symmetric to the last bit
            np.add(outer, outer.transpose(0, 2, 1), out=M[k : k + step])
        np.einsum("kii->ki", M)[...] *= 0.5  # now delta_k M(x)
        gradients = self.of(W=delta.T @ X, b=delta.sum(axis=0), Q=M)
        if not inputs:
            return gradients, None
        return gradients, delta @ self.W + 2 * np.matmul(delta[:, None, :], V)[:, 0, :]

    def shifted(self, o: Array) -> Self:
        Q = self.__dict__["Q"]
        Qo = Q @ o
        return self.of(W=self.W + 2 * Qo, b=self.b + (self.W + Qo) @ o, Q=Q)


class Reduced(Layer):
    """z = (W a + b)(U a + c), elementwise (RPQNN); 2n + 2 parameters each.

    Notes
    -----
    ``v1 = W a + b`` and ``v2 = U a + c`` are kept for the backward pass. The boundary z = 0 is
    always a pair of hyperplanes, never an ellipsoid.
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
        to_W, to_U = delta * v2, delta * v1
        gradients = self.of(
            W=(X.T @ to_W).T, b=to_W.sum(axis=0), U=(X.T @ to_U).T, c=to_U.sum(axis=0)
        )
        return gradients, to_U @ self.U + to_W @ self.W if inputs else None

    def shifted(self, o: Array) -> Self:
        return self.of(W=self.W, b=self.b + self.W @ o, U=self.U, c=self.c + self.U @ o)


LAYERS: dict[str, type[Linear] | type[Quadratic] | type[Reduced]] = {
    layer.kind: layer for layer in (Linear, Quadratic, Reduced)
}


def _dense(X: Matrix) -> Array:
    """A batch of CSR rows as an array: a quadratic layer pairs every input with every other."""
    return X.toarray() if sparse.issparse(X) else X
