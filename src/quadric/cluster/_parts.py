"""What runs on the workers: parts of a collection, ranges of blocks, and sums over a range.

Only numbers of rows, classes and sums leave a worker. The blocks of a range are views of the
parts; only the rows of a block that lies in two parts are copied.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from quadric.checks import Array
from quadric.cluster._workers import Versions, mismatch, versions
from quadric.training import BLOCK_ROWS, Block, Node, divide, nodes_of
from quadric.utils import blas_threads, one_blas_thread

# ---- parts of a collection -------------------------------------------------------------------


class Facts(NamedTuple):
    """What the client knows about a part: its rows, and the distinct values of a target."""

    rows: int
    shape: tuple[int, ...]
    values: Array | None


def as_numbers(part: Any, columns: Sequence[str] | None, dtype: Any) -> Any:
    """Return a part as an array of numbers, whose columns must be the expected ones."""
    if not sparse.issparse(part):
        return np.ascontiguousarray(_checked(part, columns), dtype=dtype)
    return sparse.csr_array(part, dtype=dtype)


def as_given(part: Any, columns: Sequence[str] | None, dtype: Any) -> Any:
    """Return a part with plain texts, whose columns must be the expected ones."""
    return plain(_checked(part, columns))


def plain(part: Any) -> Any:
    """Return a part whose missing texts are NaN: scikit-learn does not know pandas.NA."""
    if not hasattr(part, "columns"):
        return part
    import pandas as pd

    texts = {
        name: part[name].astype(object).where(part[name].notna(), np.nan)
        for name, kind in part.dtypes.items()
        if isinstance(kind, pd.StringDtype) and kind.na_value is pd.NA
    }
    return part.assign(**texts) if texts else part


def as_column(part: Any, columns: Sequence[str] | None, dtype: Any) -> Array:
    """Return targets or weights as an array, one-dimensional if there is a single column."""
    values = np.asarray(_checked(part, columns), dtype=dtype)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _checked(part: Any, columns: Sequence[str] | None) -> Any:
    if columns is not None and hasattr(part, "columns"):
        found = [str(name) for name in part.columns]
        if found != list(columns):
            missing, extra = set(columns) - set(found), set(found) - set(columns)
            how = "their order differs"
            if missing:
                how = f"the column {min(missing)!r} is missing"
            elif extra:
                how = f"there is an additional column {min(extra)!r}"
            raise ValueError(f"the schema differs from that of the first part: {how}")
    return part


def facts_of(part: Any, distinct: bool) -> Facts:
    """Return the facts about a part; with `distinct`, also its distinct values."""
    values = None
    if distinct and part.ndim == 1:
        values = np.unique(part)
    return Facts(int(part.shape[0]), tuple(part.shape), values)


def cut(part: Any, start: int, stop: int) -> Any:
    """Return some rows of a part."""
    return _rows(part, start, stop)


def _rows(part: Any, start: int, stop: int) -> Any:
    return part.iloc[start:stop] if hasattr(part, "iloc") else part[start:stop]


def joined(parts: Sequence[Any]) -> Any:
    """Return the rows of several parts."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


# ---- ranges of blocks ------------------------------------------------------------------------


@dataclass(eq=False)
class Range:
    """A contiguous range of blocks, beginning with block `first`."""

    first: int
    blocks: list[Block]

    def __sizeof__(self) -> int:  # Dask asks for it
        return sum(map(_bytes, (array for block in self.blocks for array in block)))


def _bytes(array: Any) -> int:
    if array is None:
        return 0
    if sparse.issparse(array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(getattr(array, "nbytes", 0) or sys.getsizeof(array))


def range_of(
    first: int,
    xs: Sequence[Any],
    ys: Sequence[Any],
    ws: Sequence[Any],
    classes: Array | None,
    expected: Versions,
) -> Range:
    """Return the range that consists of these rows; classes become their codes.

    Raise RuntimeError on a worker with other versions, which may have joined during the fit.
    """
    if versions() != expected:
        raise RuntimeError(mismatch(expected, "a worker that joined later", versions()))
    if classes is not None:
        code = np.uint8 if len(classes) <= 256 else np.int32
        ys = [np.searchsorted(classes, y).astype(code) for y in ys]
    columns = [_in_blocks(parts) if parts else None for parts in (xs, ys, ws)]
    blocks = []
    for X in columns[0] or ():
        y, weight = (None if column is None else next(column) for column in columns[1:])
        blocks.append(Block(X, y, weight))
    return Range(first, blocks)


def _in_blocks(parts: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows of the parts, `BLOCK_ROWS` at a time."""
    held: list[Any] = []
    count = 0
    for part in parts:
        start, rows = 0, part.shape[0]
        while start < rows:
            stop = min(rows, start + BLOCK_ROWS - count)
            held.append(_rows(part, start, stop))
            count, start = count + stop - start, stop
            if count == BLOCK_ROWS:
                yield joined(held)
                held, count = [], 0
    if held:
        yield joined(held)


def nodes_in(rows: Range, function: Callable[..., Array], arguments: tuple[Any, ...]) -> list[Node]:
    """Return the nodes that cover a range.

    Each block is computed by one thread, so that its value does not depend on their number.
    """
    threads = _threads()

    def some(start: int, stop: int) -> list[Node]:
        # the client reacts to infinity and NaN
        with one_blas_thread(), np.errstate(all="ignore"):
            values = (function(block, *arguments) for block in rows.blocks[start:stop])
            return nodes_of(rows.first + start, values)

    count = len(rows.blocks)
    if min(threads, count) <= 1:
        return some(0, count)
    limits = divide(count, [1] * threads)
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(some, limits[:-1], limits[1:]))
    return [node for part in parts for node in part]


def combined_in(
    rows: Range,
    function: Callable[..., Any],
    combine: Callable[[Sequence[Any]], Any],
    arguments: tuple[Any, ...],
) -> Any:
    """Return the combination of the values of a range's blocks."""
    return combine([function(block, *arguments) for block in rows.blocks])


def _threads() -> int:
    """The number of threads of this worker, or of BLAS outside of a cluster."""
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return blas_threads()


def taken(rows: Range, numbers: Array) -> tuple[Any, Any, Any] | None:
    """Return the rows with these numbers, in increasing order, as far as the range has them."""
    at = numbers // BLOCK_ROWS - rows.first
    found = []
    for k in np.unique(at[(at >= 0) & (at < len(rows.blocks))]):
        inside = numbers[at == k] % BLOCK_ROWS
        found.append([_picked(array, inside) for array in rows.blocks[k]])
    if not found:
        return None
    X, y, weight = ([one[k] for one in found] for k in range(3))
    return joined(X), *(None if part[0] is None else np.concatenate(part) for part in (y, weight))


def _picked(array: Any, inside: Array) -> Any:
    if array is None:
        return None
    return array.iloc[inside] if hasattr(array, "iloc") else array[inside]


# ---- facts about values ----------------------------------------------------------------------

# These are here and not in `estimators`, because a new worker would import scikit-learn for them.


def odd_values(block: Block) -> Array:
    """Numbers of non-finite values of each input and of the targets, of bad weights, and weight."""
    X, y, weight = block
    if sparse.issparse(X):
        odd = np.bincount(X.indices[~np.isfinite(X.data)], minlength=X.shape[1])
    else:
        odd = (~np.isfinite(X)).sum(axis=0)
    targets = (~np.isfinite(y)).sum() if y is not None and y.dtype.kind == "f" else 0
    bad, total = 0, float(X.shape[0])
    if weight is not None:
        bad = (~(np.isfinite(weight) & (weight >= 0))).sum()
        total = weight.sum()
    return np.array([*odd, targets, bad, total], dtype=np.float64)


def weights_by_class(block: Block, n_classes: int) -> Array:
    """The sum of the weights of each class."""
    assert block.y is not None
    return np.bincount(block.y, weights=block.weight, minlength=n_classes).astype(float)
