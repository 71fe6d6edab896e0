"""Fold a bilinear block, given by its matrices, into one quadratic layer."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from quadric.checks import FLOAT64, Array, as_numbers
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.models import compose, layer_to_quadratic


def fold_bilinear(
    W: Any,
    V: Any,
    out: Any,
    *,
    embed: Any = None,
    head: Any = None,
    biases: Mapping[str, Any] | None = None,
    residual: bool | str = False,
) -> Quadratic:
    """Fold a bilinear block, given by its matrices, into one quadratic layer.

    The block computes ``h = embed x``, then ``y = out (W h * V h)``, and returns ``head y``. With
    ``residual=True``, y is ``h + out (W h * V h)``.

    Parameters
    ----------
    W, V : arrays of shape (m, d)
        The two factors of the product.
    out : array of shape (k, m)
        The matrix after the product.
    embed : array of shape (d, n), optional
        The matrix before the block. By default, the inputs are h.
    head : array of shape (c, k), optional
        The matrix after the block. By default, the outputs are y.
    biases : dict of arrays, optional
        Biases by the name of their matrix: 'W', 'V', 'out', 'embed' and 'head'. A missing one is
        zero.
    residual : bool or {'after', 'before'}, default=False
        Where h is added. True and 'after' mean ``h + out (W h * V h)``, as in a transformer, which
        requires k = d. 'before' means ``out (W h * V h + h)``, which requires m = d.

    Returns
    -------
    Quadratic
        A layer with n inputs that computes the same function, in float64.

    Examples
    --------
    A block with a residual connection, and the classes' scores after it:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> W, V = rng.normal(size=(2, 16, 6))
    >>> out, embed, head = (rng.normal(size=size) for size in [(6, 16), (6, 4), (3, 6)])
    >>> fold_bilinear(W, V, out, embed=embed, head=head, residual=True)
    Quadratic(4 -> 3, float64)
    """
    given = {"W": W, "V": V, "out": out, "embed": embed, "head": head}
    matrices = {
        name: as_numbers(name, value, FLOAT64) for name, value in given.items() if value is not None
    }
    wrong = [name for name, matrix in matrices.items() if matrix.ndim != 2 or not matrix.size]
    if wrong:
        raise ValueError(f"{wrong[0]} must be a matrix. Got shape {matrices[wrong[0]].shape}.")
    unknown = set(biases or {}) - set(matrices)
    if unknown:
        raise ValueError(f"biases must name matrices that are given. Got {sorted(unknown)}.")
    place = residual if isinstance(residual, str) else "after" if residual else ""
    if place not in ("", "after", "before"):
        raise ValueError(
            f"residual must be True, False, 'after' or 'before'. Got {residual!r} instead."
        )
    b = {
        name: as_numbers(f"biases[{name!r}]", (biases or {}).get(name, np.zeros(len(m))), FLOAT64)
        for name, m in matrices.items()
    }
    linear = {name: Linear(matrices[name], b[name]) for name in matrices if name not in ("W", "V")}
    product = Reduced(matrices["W"], b["W"], matrices["V"], b["V"])
    last: Layer = linear["out"]
    _check_size("out", last.W, 1, product.n_outputs, "one per row of W and V")
    if place:
        size = last.n_outputs if place == "after" else product.n_outputs
        if size != product.n_inputs:
            raise ValueError(
                f"residual={residual!r} adds h, with {product.n_inputs} entries, to "
                f"{'the output of out' if place == 'after' else 'the product'}, with {size}. The "
                "two must have the same size."
            )
    around = np.eye(last.n_outputs) if place == "after" else last.W  # from h to y, past the product
    if head is not None:
        _check_size("head", matrices["head"], 1, last.n_outputs, "one per row of out")
        last, around = compose(last, linear["head"]), matrices["head"] @ around
    layer = compose(product, last)
    if place:
        layer.W += around
    if embed is not None:
        _check_size("embed", matrices["embed"], 0, product.n_inputs, "one per column of W and V")
        layer = compose(linear["embed"], layer)
    return layer_to_quadratic(layer)


def _check_size(name: str, matrix: Array, axis: int, size: int, why: str) -> None:
    if matrix.shape[axis] != size:
        raise ValueError(
            f"{name} must have {size} {('rows', 'columns')[axis]}, {why}. Got shape {matrix.shape}."
        )
