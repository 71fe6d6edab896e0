"""Fold a model into as few layers as possible, exactly: its layers and its affine steps.

`models` composes the layers (`_layer_composition.py`). The affine steps of a pipeline can become
part of a layer if this costs little precision. They compute u = A x + t, where A x and t nearly
cancel if the inputs x are far from zero relative to their spread. A folded layer has terms such as
x_i x_j and x_i t_j instead of u_i u_j. With s = |A||x| + |t|, the sum of their magnitudes is at
most M(s), where M is the polynomial of the layer with the absolute values of its coefficients. The
rounding errors are estimated as the machine epsilon times M(s). Those of random models are about 50
times smaller.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from quadric.checks import FLOAT64, Array, as_numbers
from quadric.convert._torch_modules import network_of_module
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.models import (
    Affine,
    Beside,
    Impute,
    ModelView,
    Operation,
    Select,
    affine_map,
    check_matrices,
    compose,
    layer_to_quadratic,
)
from quadric.network import Network

ACCEPTED = (
    "a Network, a layer, a fitted quadric estimator, a Pipeline that ends with one, or a torch "
    "module"
)
MAX_ERROR = 1e-7  # relative to the largest typical output
LIMITS = np.finfo(FLOAT64)


def fold(model: Any) -> Network:
    """Fold layers that are together a polynomial of degree two into one layer.

    Linear layers with identity activation, the affine steps of a pipeline and one quadratic or
    reduced layer are composed into one quadratic layer that computes the same function. Layers are
    composed until an activation other than the identity separates them or the degree would exceed
    two. A bilinear MLP, which consists of a linear, a reduced and a linear layer, thus becomes a
    single quadratic layer.

    Parameters
    ----------
    model : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        The model. A `torch.nn.Sequential` is converted by `quadric.torch.to_network`. For modules
        of your own, torch.fx records the layers, sums, products and activations, so that residual
        connections and products of linear layers are folded as well. The steps of a pipeline must
        be affine, such as scalers and PCA.

    Returns
    -------
    Network
        The folded network with the output activation of the model, in float64. Its inputs are those
        of the model: for a pipeline, the raw features.

    Raises
    ------
    ValueError
        If the features of a pipeline are so far from zero, relative to their spread, that rounding
        errors may reach 1e-7 of the outputs. The coefficients of a layer refer to the origin, so
        the errors grow with the square of this ratio.

    Examples
    --------
    >>> from quadric import Network
    >>> net = Network.create(
    ...     5, [("linear", 3, "identity"), ("reduced", 8, "identity"), ("linear", 2, "softmax")]
    ... )
    >>> fold(net).layers
    (Quadratic(5 -> 2, float64),)
    """
    return fold_view(ModelView.of(_as_model(model), ACCEPTED))


def fold_view(view: ModelView) -> Network:
    """Fold the steps and the network of a model; raises NotAffineError for other steps."""
    first, *others = view.folded.layers
    return Network([with_steps(view, first), *others], view.folded.activations)


def view_of_one_layer(model: Any) -> ModelView:
    """The view of a model whose network should fold to one layer, if its matrices fit in memory."""
    view = ModelView.of(_as_model(model), ACCEPTED)
    check_matrices(view.network.n_outputs, view.network.n_inputs)
    return view


def fold_along(model: Any, direction: Any) -> tuple[Array | None, Quadratic, list[str]]:
    """Fold the sum of a model's scores, weighted by `direction`, into one quadratic neuron.

    Returns the matrix E of a first linear layer with fewer neurons than inputs, or None; the
    neuron, whose inputs are those of the model, or E x + t; and the names of the model's inputs.
    The matrix of all inputs is not built if there is an E.
    """
    view = ModelView.of(_as_model(model), ACCEPTED)
    if view.transformers:
        raise ValueError(
            "direction is for a network without steps in front of it. Pass the network of the last "
            "step, model[-1].network_, whose inputs are the outputs of the steps."
        )
    network = view.network
    layers = [layer.astype(FLOAT64) for layer in network.layers]
    d = as_numbers("direction", direction, FLOAT64)
    if d.shape != (network.n_outputs,):
        raise ValueError(
            f"direction must have one number per output, shape ({network.n_outputs},). Got shape "
            f"{d.shape} instead."
        )
    first, between = layers[0], [*network.activations[:-1], "identity", "identity"]
    layers.append(Linear(d[None], np.zeros(1)))
    narrow = (
        len(layers) > 2
        and isinstance(first, Linear)
        and between[0] == "identity"
        and first.n_outputs < first.n_inputs
    )
    inner = Network(layers[narrow:], between[narrow:])
    neuron = ModelView.of(inner, ACCEPTED).one_layer
    return first.W if narrow else None, neuron, view.coordinates.names


def with_steps(view: ModelView, layer: Layer) -> Layer:
    """Compose the affine steps before a network with a layer that follows them.

    Raises NotAffineError if a step is not affine, and ValueError if the composition is not precise.
    """
    if view.affine_maps:
        _check_offsets(view, layer)
    for change in reversed(view.affine_maps):
        layer = compose(Linear(change.matrix, change.t), layer)
    return layer


def _as_model(model: Any) -> Any:
    """The model; a single layer and a torch module as a network."""
    if isinstance(model, Layer):
        return Network([model], ["identity"])
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return network_of_module(model)
    return model


def add_residual(layer: Layer) -> Layer:
    """Add a residual connection to a layer: the result computes ``layer(x) + x``.

    Use it to write a residual block as a layer of a Network, which `fold` composes with the layers
    around it.

    Parameters
    ----------
    layer : Linear, Quadratic or Reduced
        A layer with as many neurons as inputs and without an activation.

    Returns
    -------
    Linear or Quadratic
        A layer of the same dtype. A reduced layer becomes a quadratic one.

    Examples
    --------
    >>> from quadric.core import Linear
    >>> add_residual(Linear([[1.0, 2.0], [0.0, 3.0]], [0.0, 0.0])).W
    array([[2., 2.],
           [0., 4.]])
    """
    if layer.n_inputs != layer.n_outputs:
        raise ValueError(
            "a residual connection requires as many neurons as inputs, because they are added. "
            f"Got {layer!r}."
        )
    whole = layer.copy() if isinstance(layer, Linear) else layer_to_quadratic(layer)
    whole.W += np.eye(layer.n_inputs, dtype=layer.dtype)
    return whole


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


# ------------------------------------------------------------------- precision


def _check_offsets(view: ModelView, layer: Layer) -> None:
    """Raise ValueError if the outputs of a layer would lose too much precision.

    `layer` is the layer after the steps. The two factors of a reduced layer are checked one by one.
    Typical inputs are those that the steps have learned. Columns that no step centers, scales or
    imputes are assumed to be near zero.
    """
    if isinstance(layer, Reduced):
        layer = Linear(np.vstack([layer.W, layer.U]), np.concatenate([layer.b, layer.c]))
    learned = _learned_by(view)
    x, spread = learned.values, np.where(np.isfinite(learned.spreads), learned.spreads, 1.0)
    sizes = np.abs(x)
    steps = view.transformers
    for k, (step, change) in enumerate(zip(steps, view.affine_maps, strict=True)):
        x, absolute = change.apply(x), affine_map(step, steps[k + 1 :], absolute=0.0)
        spread, sizes = _spread_after(step, absolute.matrix, spread), absolute.apply(sizes)
    share = (
        float(LIMITS.eps)
        * _magnitude(layer, sizes + spread)
        / max(_typical(layer.shifted(x), spread), float(LIMITS.tiny))
    )
    if share > MAX_ERROR:
        raise ValueError(
            "the inputs are so far from zero, relative to their spread, that the folded "
            f"coefficients are not precise: rounding errors may reach {share:.0e} of the outputs. "
            "Subtract the means of the inputs before you fit the pipeline, or fold only its last "
            "step."
        )


class Learned(NamedTuple):
    """What steps have learned about columns: a typical value, or 0, and the spread."""

    values: Array
    spreads: Array  # infinite if it is not known


def _learned_by(view: ModelView) -> Learned:
    """What the steps have learned about the inputs of the first one.

    If a step has learned no values, those of its outputs, which the next steps know, are mapped
    back.
    """
    found: Learned | None = None
    both = zip(view.operations.values(), view.affine_maps, strict=True)
    for inside, change in reversed(list(both)):
        own = _learned(inside, change.matrix.shape[1])
        if found is not None and not own.values.any():
            own = own._replace(values=change.solve(found.values))
        if found is not None and np.array_equal(change.matrix, np.eye(len(change.t))):
            own = own._replace(spreads=np.minimum(own.spreads, found.spreads))  # an imputer
        found = own
    assert found is not None  # because there are steps
    return found


def _learned(found: Sequence[Operation], n: int) -> Learned:
    """What the operations have learned about their n columns: fill values, centers and scales."""
    values, spreads = np.zeros(n), np.full(n, np.inf)
    for operation in found:
        match operation:
            case Impute(fill=fill) if fill.dtype.kind == "f":
                values = np.nan_to_num(fill.astype(float))
            case Affine(A=A, center=center):
                if A.ndim == 1 and not (A == 1).all():
                    spreads = 1 / np.where(A == 0, 1.0, np.abs(A))
                return Learned(np.where(values == 0, np.nan_to_num(center), values), spreads)
            case Beside(branches=branches):
                for branch in branches:
                    columns = np.asarray(branch.columns)
                    inner = _learned(branch.operations, len(columns))
                    known = values[columns]
                    values[columns] = np.where(known == 0, inner.values, known)
                    spreads[columns] = np.minimum(spreads[columns], inner.spreads)
                break
            case Select():
                break
    return Learned(values, spreads)


def _spread_after(step: Any, matrix: Array, spread: Array) -> Array:
    """The spread of the outputs of a step: 1 after scaling, and for inputs without a spread."""
    if getattr(step, "scale_", None) is not None or getattr(step, "whiten", False):
        return np.ones(len(matrix))
    if hasattr(step, "explained_variance_"):
        return np.sqrt(step.explained_variance_)
    return np.sqrt(matrix**2 @ spread**2)


def _magnitude(layer: Layer, sizes: Array) -> float:
    """M: the largest output if all coefficients and inputs are replaced by their magnitudes."""
    total = np.abs(layer.W) @ sizes + np.abs(layer.b)
    if isinstance(layer, Quadratic):
        total += np.abs(layer.Q) @ sizes @ sizes
    return float(total.max())


def _typical(layer: Layer, spread: Array) -> float:
    """The largest root mean square of an output, for independent normal inputs."""
    variance, mean = (layer.W**2) @ spread**2, layer.b
    if isinstance(layer, Quadratic):
        variance = variance + 2 * (layer.Q**2) @ spread**2 @ spread**2
        mean = mean + np.diagonal(layer.Q, axis1=1, axis2=2) @ spread**2
    return float(np.sqrt(variance + mean**2).max())
