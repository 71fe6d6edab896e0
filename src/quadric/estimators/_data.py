"""Data for fitting: validation, the problem, weights, samples for training, and memory checks."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.utils import column_or_1d, compute_class_weight, gen_batches
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import _check_sample_weight, validate_data

from quadric.checks import Array, Matrix, as_csr, check_indices, unmasked
from quadric.cluster import check_absent
from quadric.core import Layer
from quadric.estimators._messages import warn_user
from quadric.training import (
    Architecture,
    BlockSamples,
    Options,
    Samples,
    check_training,
    converted_bytes,
    matrix_bytes,
)
from quadric.utils import check_limit

# For `validate_data`: any sparse format becomes CSR, and integers become float64.
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
LARGEST_RATIO = 1e3  # of two features' standard deviations; a larger one causes a warning
MERGED = 0.25  # if a smaller share of the samples is distinct, equal ones are held out separately
LBFGS_SAMPLES = 20_000  # with more samples, 'adam' is faster
PAUSED = 4  # candidates whose training can be continued with the memory of L-BFGS
PARTS = 4  # to choose a shape, one part of the samples is held out
REPEATED_UP_TO = 250  # with at most this many samples, two parts are held out, one after the other
ALL_UP_TO = 100  # with at most this many samples, all parts are, unless there are more inputs
CHOSEN_ON = 10_000  # samples on which the shape is chosen if there are more than `LBFGS_SAMPLES`
ROWS = 1000  # number of rows compared or squared at once, because X may fill most of the memory


AnySamples: TypeAlias = Samples | BlockSamples


class FitData(NamedTuple):
    """Validated data, and the number of bytes that the validation allocated."""

    X: Matrix
    y: Array
    weight: Array | None
    allocated: int


@dataclass(frozen=True)
class Problem:
    """What the network learns: targets and their weights, loss, last activation and score.

    `encode(dtype)` returns the targets, shape (n_samples, n_outputs). They may be much larger than
    y, so memory is checked before it is called. `score(logits, targets, weights)` is used for early
    stopping, which holds out part of every class if `stratify` is true. If `standardize` is true,
    'lbfgs' receives targets of variance 1, so that the penalty does not depend on their units.
    """

    encode: Callable[[np.dtype[Any]], Array]
    n_outputs: int
    weight: Array | None
    loss: str
    last: str
    score: Callable[[Array, Array, Array | None], float]
    stratify: bool = False
    standardize: bool = False


def check_fit_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, y_dtype: Any = None
) -> FitData:
    """Validate the arguments of `fit`; if y has a single column, it becomes 1-d."""
    unmasked("y", y)
    if getattr(y, "ndim", 1) == 2:
        check_limit(getattr(y, "nbytes", 0), "checking y", "Pass fewer samples at a time.")
    given = check_inputs(X)
    X, y = validate_data(estimator, given, y, reset=reset, multi_output=True, **ACCEPTED)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            unmasked("sample_weight", sample_weight), X, ensure_non_negative=True
        )
    if y_dtype is not None:
        y = np.asarray(y, dtype=y_dtype)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    allocated = converted_bytes(given, X) + (getattr(y, "nbytes", 0) if y.ndim == 2 else 0)
    return FitData(X, y, sample_weight, allocated)


def check_inputs(X: Any) -> Any:
    """Return X; raise an error if it is masked, too large, or has sparse indices out of range.

    This function is called before scikit-learn's validation, which may convert X.
    """
    if hasattr(X, "__dask_graph__"):
        check_absent("This method", X)
    unmasked("X", X)
    if sparse.issparse(X):
        check_indices("X", X)
    elif getattr(X, "dtype", None) not in (np.float32, np.float64):
        size = 8 * math.prod(getattr(X, "shape", ()) or (0,))  # lists take even more
        check_limit(size, "X as an array of float64", "Pass an array of float32, or fewer rows.")
    return X


def with_class_weight(
    class_weight: Any, classes: Array, y: Array, sample_weight: Array | None
) -> Array | None:
    """Multiply sample weights by class weights; 'balanced' counts each sample by its weight.

    `classes` contains all classes, of which y may lack some in `partial_fit`.
    """
    if class_weight is None:
        return sample_weight
    if class_weight != "balanced":
        if y.ndim > 1:
            raise ValueError(
                "class_weight must be 'balanced' or None for multi-label targets, because a dict "
                f"cannot weight several labels. Got {class_weight!r:.100}. Use sample_weight."
            )
        each = compute_class_weight(class_weight, classes=classes, y=y)
        by_class: Array = each[np.searchsorted(classes, y)]
        return by_class if sample_weight is None else by_class * sample_weight
    weight = (
        np.ones(y.shape[0]) if sample_weight is None else sample_weight.astype(float, copy=False)
    )
    balanced = weight
    columns: Any = y[:, None] if y.ndim == 1 else y
    for k in range(columns.shape[1]):
        column = columns[:, [k]]  # one at a time, because y may be sparse
        labels = (column.toarray() if sparse.issparse(column) else column).ravel()
        _, index = np.unique(labels, return_inverse=True)
        sums = np.bincount(index, weights=weight)
        each = np.divide(weight.sum() / np.count_nonzero(sums), sums, where=sums > 0, out=sums)
        balanced = balanced * each[index]
    return balanced


def warn_about_scales(X: Matrix, estimator_name: str) -> None:
    """Warn if features differ widely in scale, because quadratic neurons square their inputs."""
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            _, variance = mean_variance_axis(X, axis=0)
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            # one expression, so that no block is kept while the next one is computed
            squares = (((X[rows] - mean) ** 2).sum(axis=0) for rows in gen_batches(len(X), ROWS))
            variance = sum(squares) / len(X)
        spread = np.sqrt(variance)
    spread = spread[np.isfinite(spread) & (spread > 0)]
    if spread.size > 1 and spread.max() > LARGEST_RATIO * spread.min():
        warn_user(
            f"The features' standard deviations differ by a factor of "
            f"{spread.max() / spread.min():.1e}. Quadratic neurons square their inputs: put a "
            f"StandardScaler in front, make_pipeline(StandardScaler(), {estimator_name}())."
        )


def as_samples(X: Matrix, Y: Array, weight: Array | None, dtype: np.dtype[Any]) -> Samples:
    """Return validated data for `train`: C-contiguous or canonical CSR, all of one dtype."""
    X = as_csr("X", X, dtype) if sparse.issparse(X) else np.ascontiguousarray(X, dtype=dtype)
    if weight is not None:
        weight = np.asarray(weight, dtype=dtype)
        if not weight.any():
            raise ValueError("sample_weight must not be zero for all samples.")
    return Samples(X, np.ascontiguousarray(Y, dtype=dtype), weight)


def hold_out(
    samples: Samples, fraction: float, rng: np.random.RandomState, *, by_class: bool
) -> tuple[Samples, Samples]:
    """Split the samples for training and validation, stratified if each class can be in both.

    The class of a sample is the index of its largest target, or its only target. Samples of weight
    zero are in neither part. The only member of a class is used for training.
    """
    rows = np.arange(len(samples)) if samples.weight is None else np.flatnonzero(samples.weight)
    alone, stratify = rows[:0], None
    if by_class:
        strata = samples.Y[:, 0] if samples.Y.shape[1] == 1 else samples.Y.argmax(axis=1)
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


def without_zero_weights(samples: Samples) -> Samples:
    """Return the samples whose weight is not zero."""
    if samples.weight is None or samples.weight.all():
        return samples
    return samples.take(np.flatnonzero(samples.weight))


def merge_repeated(samples: Samples) -> Samples:
    """Return the distinct (x, y), sorted, with the sums of their weights (None if all are 1).

    The last digits of a sum over samples depend on their order, and on whether a sample is repeated
    or weighted. In a long L-BFGS run on a nonconvex problem, such differences grow into different
    solutions. Merging and sorting make the results for equivalent data bit-identical.
    """
    samples = without_zero_weights(samples)
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
        # sum in increasing order, so that the order of the samples does not matter
        order = np.lexsort((each, group))
        sums = np.bincount(group[order], weights=each[order]).astype(Y.dtype)
        weight = None if (sums == 1).all() else sums
    return Samples(X[first], np.ascontiguousarray(Y[first] + 0.0), weight)


def samples_to_minimize(
    samples: AnySamples, rng: np.random.RandomState, *, several: bool
) -> tuple[AnySamples, Samples]:
    """Return the samples for 'lbfgs', and those on which `several` candidates are compared."""
    if isinstance(samples, BlockSamples):
        assert samples.some is not None
        return samples, merge_repeated(samples.some)
    weighted = without_zero_weights(samples)
    if several and len(samples) > LBFGS_SAMPLES:
        return samples, weighted.take(np.sort(rng.permutation(len(weighted))[:CHOSEN_ON]))
    merged = merge_repeated(weighted)
    return merged, merged if len(merged) >= MERGED * len(weighted) else weighted


def n_splits(X: Matrix) -> int:
    """Return how many parts of the samples are held out, one after the other."""
    n_samples, n_inputs = X.shape
    if n_inputs <= n_samples <= ALL_UP_TO:
        return PARTS
    return 2 if n_samples <= REPEATED_UP_TO else 1


def _sparse_keys(X: Matrix, Y: Array) -> Array:
    """Return a key for each row; two keys are equal if and only if x and y are."""
    keys, Y = np.empty(len(Y), dtype=object), Y + 0.0
    for i in range(len(Y)):
        row = slice(X.indptr[i], X.indptr[i + 1])
        stored = X.data[row] + 0.0
        present = stored != 0
        columns = X.indices[row][present].astype(np.int64)
        keys[i] = b"|".join([columns.tobytes(), stored[present].tobytes(), Y[i].tobytes()])
    return keys


class Units(NamedTuple):
    """Mean and scale of each target; 'lbfgs' receives targets of mean 0 and variance 1."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, samples: AnySamples, last_kind: str) -> "Units":
        """Return the units of the targets.

        A reduced layer is a product and cannot represent a mean, so its targets are only scaled.
        """
        if isinstance(samples, BlockSamples):
            mean, scale = samples.moments(centered=last_kind != "reduced")
            return cls(mean, np.where(scale > 0, scale, 1.0))
        Y, weight = samples.Y, samples.weight
        mean = np.average(Y, axis=0, weights=weight)
        if last_kind == "reduced":
            mean = np.zeros_like(mean)
        largest = np.abs(Y - mean).max(axis=0)  # divide by it first, so that no square overflows
        largest[~(largest > 0)] = 1.0
        scale = np.sqrt(np.average(((Y - mean) / largest) ** 2, axis=0, weights=weight)) * largest
        scale[~(scale > 0)] = 1.0
        return cls(mean, scale)

    def standardized(self, samples: AnySamples) -> Any:
        """Return the samples with targets of mean 0 and variance 1."""
        if isinstance(samples, BlockSamples):
            return samples.standardized(self.mean, self.scale)
        return replace(samples, Y=((samples.Y - self.mean) / self.scale).astype(samples.Y.dtype))


def scale_outputs(last: Layer, scale: Array, shift: Array) -> None:
    """Change a last layer in place so that its output z becomes scale * z + shift.

    Parameters
    ----------
    last : Layer
        The output of a 'reduced' layer is a product, which cannot be shifted.
    scale, shift : array of shape (n_outputs,)
    """
    factor = scale.astype(last.dtype)
    for name, array in last.arrays().items():
        if name == "W":
            array *= factor[:, None]
        elif name in ("b", "packed"):
            array *= factor
    if last.kind != "reduced":
        last.arrays()["b"] += shift.astype(last.dtype)


def check_memory(
    data: FitData,
    shape: Architecture,
    options: Options,
    *,
    candidates: int = 1,
    drawn: int = 0,
    standardize: bool = False,
    early_stopping: bool = False,
) -> None:
    """Raise MemoryLimitError, before anything large is allocated, if a fit needs too much memory.

    Parameters
    ----------
    data, shape, options
        What is trained. Only options that do not depend on the candidate are used.
    candidates : int
        The number of candidates of this shape that 'lbfgs' compares.
    drawn : int
        The memory for drawing initial values.
    standardize, early_stopping : bool
        Whether the targets are standardized, and whether samples are held out.
    """
    X, n_samples = data.X, data.X.shape[0]
    X_bytes = matrix_bytes(X, shape.itemsize)
    Y_bytes = n_samples * shape.n_outputs * shape.itemsize
    both = X_bytes + Y_bytes
    as_it_is = not sparse.issparse(X) and X.dtype.itemsize == shape.itemsize
    cast = 0 if as_it_is and X.flags.c_contiguous else X_bytes
    lbfgs = options.solver == "lbfgs"
    merges = lbfgs or (options.batch_size >= n_samples and not options.resume)
    keys = 8 * X.nnz + 100 * n_samples if sparse.issparse(X) else 0
    merging = cast + Y_bytes + 2 * both + keys if merges else 0
    scaling = 0
    if lbfgs:
        held = both * (2 if candidates > 1 else 1)  # held-out samples while choosing
        if standardize:
            held += Y_bytes
            scaling = both + Y_bytes + 3 * n_samples * shape.n_outputs * 8
    else:
        held = cast + Y_bytes + both * (2 * early_stopping + merges)
    own = candidates * shape.n_parameters * shape.itemsize + drawn
    paused = 0
    if lbfgs and candidates > 1:
        splits = n_splits(X)
        paused = splits * PAUSED * (2 * options.pairs + 3) * 8 * shape.n_parameters
    training = held + paused + max(own, shape.solver_bytes(options, X))
    check_training(shape, X, max(merging, scaling, training), data.allocated)
