"""`LowRankQuadratic`: quadratic neurons whose matrices Q have a low rank."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear as product

from quadric.checks import check_integer
from quadric.torch._layers import QUADRATIC_PART, Quadratic, _Layer
from quadric.torch.functional import overridable


@overridable
def low_rank(x: Tensor, U: Tensor, s: Tensor, W: Tensor | None, b: Tensor | None) -> Tensor:
    """z_k = sum_r s_kr (u_kr'x)^2 + w_k'x + b_k, for U of shape (m, rank, n)."""
    if x.ndim == 0 or x.shape[-1] != U.shape[-1]:
        raise RuntimeError(
            f"expected an input of shape (..., {U.shape[-1]}), where {U.shape[-1]} is the layer's "
            f"in_features. Got {tuple(x.shape)} instead."
        )
    V = product(x, U.flatten(0, 1)).reshape(*x.shape[:-1], *s.shape)
    z = (V * V * s).sum(-1)
    if W is not None:
        return z + product(x, W, b)
    return z if b is None else z + b


class LowRankQuadratic(_Layer):
    """z_k = x'U_k' diag(s_k) U_k x + w_k'x + b_k: quadratic neurons with matrices of low rank.

    Time and memory are proportional to n · rank per neuron instead of n². This is the layer for
    many inputs.

    Parameters
    ----------
    in_features, out_features : int
        Number n of inputs and number m of neurons.
    rank : int, default=8
        The rank of each Q, the number of its nonzero eigenvalues.
    bias, linear : bool, default=True
        Whether the layer has b and W.
    device, dtype : as in `torch.nn.Linear`
        The device and dtype of the parameters.

    Attributes
    ----------
    U : Parameter of shape (m, rank, n)
        The directions. They need not be orthogonal.
    s : Parameter of shape (m, rank)
        Their weights, positive or negative.
    W, b : Parameters of shapes (m, n) and (m,), or None

    Examples
    --------
    >>> layer = LowRankQuadratic(784, 10, rank=8)
    >>> layer(torch.randn(32, 784)).shape
    torch.Size([32, 10])
    """

    kind = "low rank"
    names = ("U", "s", "W", "b")
    U: Tensor
    s: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        rank: int = 8,
        bias: bool = True,
        linear: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.rank = check_integer("rank", rank, at_least=1)
        absent = (() if bias else ("b",)) + (() if linear else ("W",))
        self._build(in_features, out_features, absent, device, dtype)

    @classmethod
    def from_quadratic(cls, layer: Quadratic, rank: int | None = None) -> "LowRankQuadratic":
        """Return the layer with the eigenvalues of largest magnitude of each Q.

        Parameters
        ----------
        layer : Quadratic
            The layer to approximate.
        rank : int, default=None
            How many eigenvalues are kept. If None, all n, so that the function is the same.

        Returns
        -------
        LowRankQuadratic
            A layer with copies of the parameters, on the same device. Of all layers with this
            rank, it has the smallest error of each Q in the Frobenius norm.
        """
        Q = layer.Q.detach()
        values, vectors = torch.linalg.eigh(Q.double())
        rank = Q.shape[-1] if rank is None else rank
        if rank > Q.shape[-1]:
            raise ValueError(f"rank must be at most in_features, {Q.shape[-1]}. Got {rank}.")
        new = cls(
            layer.in_features,
            layer.out_features,
            rank,
            layer.b is not None,
            layer.W is not None,
            Q.device,
            Q.dtype,
        )
        order = values.abs().argsort(dim=1, descending=True)[:, :rank]
        with torch.no_grad():
            new.s.copy_(values.gather(1, order))
            picked = order[:, None, :].expand(-1, Q.shape[-1], -1)
            new.U.copy_(vectors.gather(2, picked).transpose(1, 2))
            for copy, original in ((new.W, layer.W), (new.b, layer.b)):
                if copy is not None and original is not None:
                    copy.copy_(original)
        return new

    def to_quadratic(self) -> Quadratic:
        """Return the `Quadratic` layer that computes the same function.

        Returns
        -------
        Quadratic
            A layer with copies of the parameters.
        """
        Q = torch.einsum("krn,kr,krp->knp", self.U.detach(), self.s.detach(), self.U.detach())
        return with_matrices(Q, self.W, self.b)

    def forward(self, input: Tensor) -> Tensor:
        """Return z for an input x.

        Parameters
        ----------
        input : Tensor of shape (..., n)
            The inputs.

        Returns
        -------
        Tensor of shape (..., m)
            The values z.
        """
        return low_rank(input, *self._current_parameters())

    def _shapes(self, n: int, m: int) -> dict[str, tuple[int, ...]]:
        return {"U": (m, self.rank, n), "s": (m, self.rank), "W": (m, n), "b": (m,)}

    def _variances(self, init: str) -> dict[str, float]:
        n, part = self.in_features, 1 / 2 if init == "glorot" else QUADRATIC_PART
        if init == "relinear":
            return {"U": 1 / n, "W": 2 / (n + self.out_features)}
        part = 1.0 if self.W is None else part
        return {"U": 1 / n, "s": part / (3 * self.rank), "W": (1 - part) / n}  # E (u'x)^4 = 3

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, rank={self.rank}, linear={self.W is not None}"


class ProductPlusLinear(_Layer):
    """z = (U x)(V x) + W x + b, elementwise: a product of two linear maps plus a third.

    Parameters
    ----------
    in_features, out_features : int
        Number n of inputs and number m of neurons.
    bias : bool, default=True
        Whether the layer has b.
    device, dtype : as in `torch.nn.Linear`
        The device and dtype of the parameters.

    Attributes
    ----------
    U, V, W : Parameters of shape (m, n)
    b : Parameter of shape (m,), or None

    Notes
    -----
    Q_k = (u_k v_k' + v_k u_k')/2 has at most rank 2. Unlike `Reduced`, whose linear part follows
    from its two factors, this layer has an independent linear part.

    Examples
    --------
    >>> ProductPlusLinear(3, 2)(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    kind = "product plus linear"
    names = ("U", "V", "W", "b")
    U: Tensor
    V: Tensor
    W: Tensor

    def forward(self, input: Tensor) -> Tensor:
        """Return z for an input x.

        Parameters
        ----------
        input : Tensor of shape (..., n)
            The inputs.

        Returns
        -------
        Tensor of shape (..., m)
            The values z.
        """
        U, V, W, b = self._current_parameters()
        return product(input, U) * product(input, V) + product(input, W, b)

    def to_quadratic(self) -> Quadratic:
        """Return the `Quadratic` layer that computes the same function.

        Returns
        -------
        Quadratic
            A layer with copies of the parameters.
        """
        return with_matrices(self.U.detach()[:, :, None] * self.V.detach()[:, None], self.W, self.b)

    def _shapes(self, n: int, m: int) -> dict[str, tuple[int, ...]]:
        return {"U": (m, n), "V": (m, n), "W": (m, n), "b": (m,)}

    def _variances(self, init: str) -> dict[str, float]:
        n, part = self.in_features, 1 / 2 if init == "glorot" else QUADRATIC_PART
        if init == "relinear":
            return {"V": 1 / n, "W": 2 / (n + self.out_features)}
        factor = (part / (n * (n + 2))) ** 0.5  # E (u'x)^2 (v'x)^2 = var(u) var(v) n (n + 2)
        return {"U": factor, "V": factor, "W": (1 - part) / n}


def with_matrices(Q: Tensor, W: Any, b: Any) -> Quadratic:
    """Return a quadratic layer with these values; W and b may be None."""
    m, n = Q.shape[:2]
    layer = Quadratic(n, m, b is not None, W is not None, Q.device, Q.dtype)
    layer.Q = Q
    with torch.no_grad():
        for copy, original in ((layer.W, W), (layer.b, b)):
            if copy is not None:
                copy.copy_(original)
    return layer
