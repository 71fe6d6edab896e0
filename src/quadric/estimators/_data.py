"""Data of the estimators: checked, weighted, merged, held out, standardised."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_is_fitted,
    validate_data,
)

from quadric._utils.arrays import Array, Matrix, as_csr, check_indices, unmasked
from quadric._utils.memory import check_limit
from quadric.core._layers import Layer
from quadric.core._stack import Stack
from quadric.estimators._messages import warn_user
from quadric.training._memory_needs import (
    Architecture,
    SampleSizes,
    check_answers,
    converted_bytes,
    matrix_bytes,
)
from quadric.training._samples import Samples, squared

# What `validate_data` is asked for: any sparse format becomes CSR, integers become float64.
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
LARGEST_SPREAD = 1e3
ROWS = 1000  # that are compared or squared at once: X may be large beside the memory


def sound(X: Any) -> Any:
    """X itself, or an error: for a masked array, or a sparse X with indices outside its shape.

    To be called before scikit-learn's checks, which may convert X.
    """
    unmasked("X", X)
    if sparse.issparse(X):
        check_indices("X", X)
    elif getattr(X, "dtype", None) not in (np.float32, np.float64):
        size = 8 * math.prod(getattr(X, "shape", ()) or (0,))  # lists are larger than their array
        check_limit(size, "X as an array of float64", "Pass an array of float32, or fewer rows.")
    return X


def sound_targets(y: Any) -> Any:
    """y itself, or an error: for a masked array, or columns that would be copied beyond a limit."""
    unmasked("y", y)
    if getattr(y, "ndim", 1) == 2:
        check_limit(getattr(y, "nbytes", 0), "checking y", "Pass fewer samples at a time.")
    return y


def check_weight(sample_weight: Any, X: Matrix) -> Array | None:
    """Sample weights, none of them negative, or None."""
    if sample_weight is None:
        return None
    sample_weight = unmasked("sample_weight", sample_weight)
    return _check_sample_weight(sample_weight, X, ensure_non_negative=True)


def as_samples(X: Matrix, Y: Array, weight: Array | None, dtype: np.dtype[Any]) -> Samples:
    """Checked data as the engine takes them: C-contiguous or canonical CSR, of one dtype."""
    X = as_csr("X", X, dtype) if sparse.issparse(X) else np.ascontiguousarray(X, dtype=dtype)
    if weight is not None:
        weight = np.asarray(weight, dtype=dtype)
        if not weight.any():
            raise ValueError("sample_weight must not be zero for all samples.")
    return Samples(X, np.ascontiguousarray(Y, dtype=dtype), weight)


def network_answers(estimator: Any, X: Any, answer: Callable[[Array], Array]) -> Array:
    """answer(z), z being that of a fitted estimator's last layer, for the rows of new data.

    Rows are taken in blocks: no array is larger than X or what is returned.

    Values of X that are not finite show in the first layer's z, because every input meets every
    neuron and infinity times zero is not a number. X itself is searched only if z is not finite.
    """
    check_is_fitted(estimator)
    given = sound(X)
    X = validate_data(estimator, given, reset=False, ensure_all_finite=False, **ACCEPTED)
    network, answers = estimator.network_, None
    shape = Architecture.of(network.layers)
    inputs, more = X, converted_bytes(given, X)
    more += matrix_bytes(X, network.dtype.itemsize) if sparse.issparse(X) else 0
    check_answers(shape, X.shape[0], 0, more)  # before a first block tells their size
    if sparse.issparse(X):
        inputs = as_csr("X", X, network.dtype)
    try:
        for rows, z in Stack(network.layers, network.activations).logit_blocks(inputs):
            part = answer(z)
            if answers is None:
                each = part.nbytes // len(part)
                check_answers(shape, X.shape[0], each, more)
                answers = np.empty((X.shape[0], *part.shape[1:]), dtype=part.dtype)
            answers[rows] = part
    except ValueError:
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
        raise
    assert answers is not None  # scikit-learn refuses data without rows
    return answers


def with_class_weight(class_weight: Any, y: Array, sample_weight: Array | None) -> Array | None:
    """Sample weights times class weights; 'balanced' counts samples by their weight."""
    if class_weight is None:
        return sample_weight
    if class_weight != "balanced":
        by_class = compute_sample_weight(class_weight, y)
        return by_class if sample_weight is None else by_class * sample_weight
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    balanced = weight
    for labels in np.reshape(y, (len(y), -1)).T:
        _, index = np.unique(labels, return_inverse=True)
        sums = np.bincount(index, weights=weight)
        each = np.divide(weight.sum() / np.count_nonzero(sums), sums, where=sums > 0, out=sums)
        balanced = balanced * each[index]
    return balanced


def hold_out(
    samples: Samples, strata: Array | None, fraction: float, rng: np.random.RandomState
) -> tuple[Samples, Samples]:
    """Training and validation samples; stratified if each class can be in both.

    Samples without weight are in neither, and the only member of a class is used for training.
    """
    rows = np.arange(len(samples)) if samples.weight is None else np.flatnonzero(samples.weight)
    alone, stratify = rows[:0], None
    if strata is not None:
        _, index, counts = np.unique(strata[rows], return_inverse=True, return_counts=True)
        single = counts[index] == 1
        if not single.all():
            alone, rows = rows[single], rows[~single]
        n_held, n_classes = int(np.ceil(fraction * len(rows))), int((counts > 1).sum())
        if 0 < n_classes <= min(n_held, len(rows) - n_held):
            stratify = strata[rows]
    rows, held = train_test_split(rows, random_state=rng, test_size=fraction, stratify=stratify)
    if len(held) < 2:
        raise ValueError(
            "The validation set is too small. Increase 'validation_fraction' "
            "or the size of your dataset."
        )
    return samples.take(np.concatenate([rows, alone])), samples.take(held)


def merge_repeated(samples: Samples) -> Samples:
    """Distinct (x, y), sorted, with the sums of their weights (None if all are 1).

    A sum over samples depends, in its last digits, on their order and on whether a sample is
    repeated or weighted. A long L-BFGS run on a problem that is not convex turns last digits into
    other solutions. Merged and sorted, equal data are equal to the last bit.
    """
    if samples.weight is not None:
        samples = samples.take(np.flatnonzero(samples.weight))
    X, Y, weight = samples.X, samples.Y, samples.weight
    if sparse.issparse(X):
        keys = _sparse_keys(X, Y)
    else:
        rows = np.hstack([X, Y])
        rows += 0.0  # -0.0 becomes 0.0
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        X, Y = rows[:, : X.shape[1]], rows[:, X.shape[1] :]
    order = np.argsort(keys, kind="stable")
    new = np.ones(len(Y), dtype=bool)
    for start in range(1, len(Y), ROWS):
        some, before = order[start : start + ROWS], order[start - 1 : start - 1 + ROWS]
        new[start : start + ROWS] = keys[some] != keys[before[: len(some)]]
    first = order[new]
    if weight is not None or len(first) < len(Y):
        group = np.empty(len(Y), dtype=np.intp)
        group[order] = np.cumsum(new) - 1
        each = np.ones(len(Y)) if weight is None else weight.astype(np.float64)
        # summed from the smallest, so that the order of the samples does not matter
        order = np.lexsort((each, group))
        sums = np.bincount(group[order], weights=each[order]).astype(Y.dtype)
        weight = None if (sums == 1).all() else sums
    return Samples(X[first], np.ascontiguousarray(Y[first] + 0.0), weight)


def merging_bytes(X: Matrix, sizes: SampleSizes) -> int:
    """What `merge_repeated` takes: targets, keys, and the new samples."""
    keys = sizes.all
    if sparse.issparse(X):
        keys += 8 * X.nnz + 100 * X.shape[0]
    return sizes.Y + keys + sizes.all


def places(Y: Array) -> Array:
    """The class of each sample: the place of the largest target, or the only target itself."""
    return Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)


def _sparse_keys(X: Matrix, Y: Array) -> Array:
    keys, Y = np.empty(len(Y), dtype=object), Y + 0.0
    for i in range(len(Y)):
        row = slice(X.indptr[i], X.indptr[i + 1])
        stored = X.data[row] + 0.0
        present = stored != 0
        columns = X.indices[row][present].astype(np.int64)
        keys[i] = b"|".join([columns.tobytes(), stored[present].tobytes(), Y[i].tobytes()])
    return keys


def standardise(samples: Samples, last: Layer) -> tuple[Samples, Array, Array]:
    """Samples with targets of mean 0 and variance 1, and the targets' mean and scale.

    A reduced layer, a product, cannot represent a mean: its targets are scaled, not centred.
    """
    Y, weight = samples.Y, samples.weight
    mean = np.average(Y, axis=0, weights=weight)
    if last.kind == "reduced":
        mean = np.zeros_like(mean)
    largest = np.abs(Y - mean).max(axis=0)  # divided out first, so that no square overflows
    largest[~(largest > 0)] = 1.0
    scale = np.sqrt(np.average(((Y - mean) / largest) ** 2, axis=0, weights=weight)) * largest
    scale[~(scale > 0)] = 1.0
    return Samples(samples.X, ((Y - mean) / scale).astype(Y.dtype), weight), mean, scale


def scale_outputs(last: Layer, scale: Array, shift: Array) -> None:
    """Turn the output z of the layer into scale * z + shift."""
    factor = scale.astype(last.dtype)
    for name, array in last.arrays().items():
        if name == "W":
            array *= factor[:, None]
        elif name in ("b", "packed"):
            array *= factor
    if last.kind != "reduced":
        last.arrays()["b"] += shift.astype(last.dtype)


def warn_about_scales(X: Matrix, estimator_name: str) -> None:
    """Quadratic neurons square their inputs: features of very different size need scaling."""
    spread = _standard_deviations(X)
    spread = spread[spread > 0]
    if spread.size > 1 and spread.max() > LARGEST_SPREAD * spread.min():
        warn_user(
            f"The features' standard deviations differ by a factor of "
            f"{spread.max() / spread.min():.1e}. Quadratic neurons square their inputs: put a "
            f"StandardScaler in front, make_pipeline(StandardScaler(), {estimator_name}())."
        )


def _standard_deviations(X: Matrix) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            mean = np.asarray(X.mean(axis=0)).ravel()
            squares = np.asarray(squared(X).mean(axis=0)).ravel()
            deviations = np.sqrt(np.maximum(squares - mean**2, 0))
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            squares = np.zeros_like(mean)
            for start in range(0, len(X), ROWS):
                squares += ((X[start : start + ROWS] - mean) ** 2).sum(axis=0)
            deviations = np.sqrt(squares / len(X))
    return deviations[np.isfinite(deviations)]
