"""The two ways to run an epoch: mini-batches on the layers' equations, and the compiled loop.

`MiniBatch` is SGD with momentum, or Adam. `PerSample` packs the layers for the compiled loop, which
takes one step for each sample.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from quadric import kernels
from quadric.checks import Array, Matrix
from quadric.core import Layer, Stack, parameters
from quadric.training._run import FailedEpochError, Optimizer, Options, Samples, TrainingState

WORTH_COMPRESSING = 10_000  # entries; with fewer, loading the compiled functions is not worthwhile


class MiniBatch:
    """A stepper that updates the layers' own arrays, one batch at a time.

    The gradient of a batch is the weighted sum over its samples, divided by the number of samples,
    and `l2` is multiplied by their mean weight. A sample's weight therefore scales its step. With
    ``options.by_weight``, the sum and the penalty are divided by the batch's sum of weights
    instead, as in scikit-learn's networks.

    Attributes
    ----------
    l2 : float
        Coefficient of the L2 penalty in the loss that `run_epoch` returns.
    """

    def __init__(
        self, stack: Stack, samples: Samples, options: Options, state: TrainingState
    ) -> None:
        self.stack, self.samples, self.options, self.state = stack, samples, options, state
        mean_weight = 1.0 if samples.weight is None else float(samples.weight.mean())
        n_batch = min(options.batch_size, len(samples))
        self.l2 = options.l2 * mean_weight
        if options.by_weight:
            self.l2 = options.l2 / (n_batch * mean_weight)
        self.snapshot()

    def snapshot(self) -> None:
        self.saved = self.stack.snapshot()

    def restore(self) -> None:
        self.stack.restore(self.saved)

    def publish(self) -> None:
        """Do nothing, because the layers' own arrays are trained."""

    def run_epoch(self, order: Array, rate: float) -> float:
        """Take one step for each batch of `order`; return the mean loss, including the penalty."""
        total, size = 0.0, self.options.batch_size
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for start in range(0, len(order), size):
                rows = order[start : start + size]
                total += self._step(rows, rate) * len(rows)
        if not all(np.isfinite(array).all() for array in parameters(self.stack.layers)):
            raise FailedEpochError
        return total / len(order) + self.stack.penalty(self.l2)

    def _step(self, rows: Array, rate: float) -> float:
        """Take one step and return the batch's mean loss before the step."""
        batch, l2 = self.samples.take(rows), self.options.l2
        weight = batch.weight
        mean_weight = 1.0 if weight is None else float(weight.mean(dtype=np.float64))
        if mean_weight == 0:
            return 0.0
        if self.options.by_weight:
            weight = None if weight is None else weight / weight.dtype.type(mean_weight)
            l2 /= mean_weight * len(rows)
        else:
            l2 *= mean_weight
        value, grads = self.stack.gradients(batch.X, batch.Y, weight)
        if not np.isfinite(value):
            raise FailedEpochError(sample=int(rows[0]) if len(rows) == 1 else None)
        if self.options.clip is not None:
            _clip(grads, self.options.clip)
        self.stack.add_l2(grads, l2)
        update = self._sgd if self.options.solver == "sgd" else self._adam
        update(parameters(self.stack.layers), parameters(grads), rate)
        return value

    def _sgd(self, theta: Sequence[Array], gradients: Sequence[Array], rate: float) -> None:
        """v <- momentum v - rate g; the step is v, or momentum v - rate g (Nesterov)."""
        momentum = self.options.momentum
        if momentum == 0:
            for parameter, gradient in zip(theta, gradients, strict=True):
                gradient *= gradient.dtype.type(rate)
                parameter -= gradient
            return
        velocities = self._remembered("velocity", theta)
        for parameter, gradient, v in zip(theta, gradients, velocities, strict=True):
            number = parameter.dtype.type
            v *= number(momentum)
            v -= number(rate) * gradient
            if self.options.nesterov:
                parameter += number(momentum) * v - number(rate) * gradient
            else:
                parameter += v

    def _adam(self, theta: Sequence[Array], gradients: Sequence[Array], rate: float) -> None:
        """Take an Adam step (Kingma and Ba, 2015)."""
        beta_1, beta_2 = self.options.beta_1, self.options.beta_2
        means, squares = self._remembered("mean", theta), self._remembered("square", theta)
        rate = self.state.optimizer.adam_rate(rate, beta_1, beta_2)
        for parameter, gradient, mean, square in zip(theta, gradients, means, squares, strict=True):
            number = parameter.dtype.type
            mean *= number(beta_1)
            mean += number(1 - beta_1) * gradient
            square *= number(beta_2)
            square += number(1 - beta_2) * gradient * gradient
            parameter -= number(rate) * mean / (np.sqrt(square) + number(self.options.epsilon))

    def _remembered(self, name: str, theta: Sequence[Array]) -> list[Array]:
        """Return the arrays ``name.0``, ``name.1``, ... of the optimizer, initially zero."""
        memory = self.state.optimizer.memory
        for i, parameter in enumerate(theta):
            if f"{name}.{i}" not in memory:
                memory[f"{name}.{i}"] = np.zeros_like(parameter)
        return [memory[f"{name}.{i}"] for i in range(len(theta))]


def _clip(grads: Sequence[Layer], most: float) -> None:
    """Scale the gradient down in place if its norm is larger than `most`."""
    norm = np.sqrt(sum(_squares(grad) for grad in grads))
    if norm > most:
        for array in parameters(grads):
            array *= array.dtype.type(most / norm)


def _squares(grad: Layer) -> float:
    biases = [array for name, array in grad.arrays().items() if name not in grad.weights]
    return 2 * grad.penalty() + sum(float(np.vdot(bias, bias)) for bias in biases)


class _Space:
    """Hands out consecutive sections of a buffer that is allocated at the end."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype, self.size = dtype, 0
        self.unit = kernels.UNIT_BYTES // dtype.itemsize

    def padded(self, length: int) -> int:
        return -(-length // self.unit) * self.unit

    def place(self, row: Any, sizes: dict[str, int]) -> None:
        """Write the starts of new sections, by their names, into the row of a table."""
        for name, size in sizes.items():
            row[name] = self.size
            self.size += self.padded(size)

    def allocate(self) -> Array:
        """Return zeros that start at a page boundary, so that no load crosses a cache line."""
        page = 4096 // self.dtype.itemsize
        raw = np.zeros(self.size + page, dtype=self.dtype)
        start = -(raw.ctypes.data // self.dtype.itemsize) % page
        return raw[start : start + self.size]


class PackedLayers:
    """The parameters of a stack of layers in one buffer, with a table of their positions.

    Attributes
    ----------
    theta, scale : arrays
        The parameters. The penalized ones are stored first, divided by ``scale[0]``.
    work : array
        Values of the current sample, such as its activations.
    memory : `kernels.Memory`
        All buffers, in the form that the compiled loop expects.
    table : structured array
        One record for each layer; see `kernels._layout`.
    folds_offset : bool
        Whether the offset is folded into the first layer, which is then linear or reduced.
    """

    def __init__(self, stack: Stack, offset: Any) -> None:
        first = stack.layers[0]
        self.offset, self.folds_offset = offset, offset is not None and first.kind != "quadratic"
        self.table = np.empty(len(stack.layers), dtype=kernels.LAYER)
        self.table.view(np.int64)[...] = -1
        theta, work = _Space(first.dtype), _Space(first.dtype)
        for row, layer, activation in zip(self.table, stack.layers, stack.activations, strict=True):
            row["kind"] = kernels.KIND_CODES[layer.kind]
            row["activation"] = kernels.ACTIVATION_CODES[activation]
            row["n_in"], row["n_out"] = layer.n_inputs, layer.n_outputs
            row["pad"] = theta.padded(layer.n_outputs)
            pad = int(row["pad"])
            theta.place(row, {name: _n_rows(layer, name) * pad for name in layer.weights})
        if self.folds_offset:  # u and r are parts of the weights and shrink with them
            names = [f"{weight}_{part}" for weight in first.weights for part in "ur"]
            theta.place(self.table[0], dict.fromkeys(names, first.n_outputs))
        n_penalized = theta.size
        for row, layer in zip(self.table, stack.layers, strict=True):
            biases = [name for name in layer.fields if name not in layer.weights]
            theta.place(row, dict.fromkeys(biases, layer.n_outputs))
        self._place_activations(stack.layers, work)
        widest = max(layer.n_inputs for layer in stack.layers)
        self.table[0]["where"] = widest
        self.theta, self.scale, self.work = theta.allocate(), np.ones(1), work.allocate()
        where = np.concatenate([np.arange(widest), np.zeros(first.n_inputs, np.int64)])
        self.memory = kernels.Memory(self.theta, self.scale, n_penalized, self.work, where)
        for name, array, rows in self._fields(stack.layers):
            rows[...] = array if name == "packed" else array.T
        self.settle()

    def _place_activations(self, layers: Sequence[Layer], work: _Space) -> None:
        work.place(self.table[0], {"x": layers[0].n_inputs})
        for l, (row, layer) in enumerate(zip(self.table, layers, strict=True)):
            pad = int(row["pad"])
            sizes = dict.fromkeys(("z", "a", "delta"), pad)
            if layer.kind == "reduced":
                sizes |= {"v1": pad, "v2": pad}
            if l > 0:
                row["x"], row["where"] = self.table[l - 1]["a"], 0
            if l > 0 and layer.kind == "quadratic":
                # writing a row of monomials may overrun its end by less than a register
                monomials = _n_rows(layer, "packed") + work.unit
                sizes |= {"V": layer.n_inputs * pad, "monomials": monomials}
            work.place(row, sizes)

    def _rows(self, row: Any, name: str, count: int) -> Array:
        """Return `count` stored rows of the layer's neurons, without the padding."""
        start, pad, m = row[name], row["pad"], row["n_out"]
        return self.theta[start : start + count * pad].reshape(count, pad)[:, :m]

    def _fields(self, layers: Sequence[Layer]) -> Iterator[tuple[str, Array, Array]]:
        """Yield (name, the layer's array, the rows in which it is stored here)."""
        for row, layer in zip(self.table, layers, strict=True):
            for name, array in layer.arrays().items():
                yield name, array, self._rows(row, name, _n_rows(layer, name))

    def read_into(self, layers: Sequence[Layer]) -> None:
        """Copy the parameters into the layers' arrays."""
        for name, array, rows in self._fields(layers):
            if name in ("W", "packed", "U") and self.scale[0] != 1:
                rows = rows * rows.dtype.type(self.scale[0])
            array[...] = (rows if name == "packed" else rows.T).reshape(array.shape)

    def holds(self, stack: Stack) -> bool:
        """Return whether the layers hold the values that `read_into` would write."""
        copies = stack.snapshot()
        self.read_into(copies)
        return all(map(np.array_equal, parameters(copies), parameters(stack.layers)))

    def settle(self) -> None:
        """Fold the offset's u into the weights and recompute r; called once per epoch."""
        first = self.table[0]
        for name in ("W", "U"):
            if first[f"{name}_u"] >= 0:
                weights = self._rows(first, name, int(first["n_in"]))
                u, r = self._rows(first, f"{name}_u", 1)[0], self._rows(first, f"{name}_r", 1)[0]
                weights += np.multiply.outer(self.offset, u)
                u[...] = 0
                # not `@`: the result of a BLAS product may depend on the number of threads
                r[...] = np.einsum("i,ik->k", self.offset, weights)


def _n_rows(layer: Layer, name: str) -> int:
    """Return the number of stored rows of a parameter, which is its size per neuron."""
    return layer.arrays()[name].size // layer.n_outputs


class PerSample:
    """A stepper that trains a packed copy of the layers; `publish` copies it back.

    With ``options.resume``, it continues bit-identically from the packed copy in `state`.

    Attributes
    ----------
    l2 : float
        Coefficient of the L2 penalty in the loss that `run_epoch` returns. It includes the mean
        sample weight, because a sample's weight scales its step.
    """

    def __init__(
        self, stack: Stack, samples: Samples, options: Options, state: TrainingState
    ) -> None:
        self.stack, self.options, self.n_samples = stack, options, len(samples)
        X, offset, weight = samples.X, samples.offset, samples.weight
        self.l2 = options.l2 * (1.0 if weight is None else float(weight.mean()))
        dtype = stack.layers[0].dtype
        if not sparse.issparse(X):
            X = _compress(X)
            if offset is not None and not sparse.issparse(X):
                X, offset = X + offset, None  # exact, and no slower for dense rows
        self.packed = _resumed(stack, state.optimizer) or PackedLayers(stack, offset)
        if options.resume:
            assert samples.offset is None  # it could differ from the offset of the last call
            state.optimizer.packed = self.packed
            state.optimizer.memory = {"theta": self.packed.theta, "scale": self.packed.scale}
        self.table = _read_only(self.packed.table)
        indptr, indices, data = _as_rows(X, dtype)
        offset_use = kernels.NO_OFFSET if offset is None else kernels.ADDED_TO_INPUTS
        dots = np.empty(0, dtype)
        if self.packed.folds_offset:
            offset_use, dots = kernels.FOLDED_INTO_WEIGHTS, X @ offset
        self.samples = kernels.SampleArrays(
            form=kernels.CSR if sparse.issparse(X) else kernels.DENSE,
            indptr=_read_only(indptr),
            indices=_read_only(indices),
            data=_read_only(data),
            Y=_read_only(np.ascontiguousarray(samples.Y, dtype=dtype)),
            weights=_read_only(np.ones(len(samples), dtype) if weight is None else weight),
            offset_use=offset_use,
            offset=_read_only(np.empty(0, dtype) if offset is None else offset),
            offset_dots=_read_only(np.ascontiguousarray(dots, dtype=dtype)),
        )
        self.snapshot()

    def snapshot(self) -> None:
        self.saved = self.packed.theta.copy(), self.packed.scale.copy()

    def restore(self) -> None:
        self.packed.theta[...], self.packed.scale[...] = self.saved

    def publish(self) -> None:
        self.packed.read_into(self.stack.layers)

    def run_epoch(self, order: Array, rate: float) -> float:
        """Run one compiled pass over the samples; return the mean loss, including the penalty."""
        packed, options = self.packed, self.options
        loss = kernels.LOSS_CODES[self.stack.loss_name]
        clip = math.inf if options.clip is None else float(options.clip)
        epoch = kernels.sgd_epoch(
            packed.memory,
            self.table,
            self.samples,
            _read_only(order.astype(np.int64, copy=False)),
            kernels.Step(loss, float(rate), float(options.l2), clip),
        )
        if epoch.position >= 0:
            raise FailedEpochError(sample=int(order[epoch.position]), layer=epoch.layer)
        packed.settle()
        if not math.isfinite(packed.theta.sum(dtype=np.float64)):
            raise FailedEpochError
        loss_mean = epoch.loss_sum / self.n_samples
        if self.l2:
            self.publish()
            loss_mean += self.stack.penalty(self.l2)
        return float(loss_mean)


def _resumed(stack: Stack, optimizer: Optimizer) -> PackedLayers | None:
    """Return the packed copy from the last call, unless the layers have changed since then."""
    packed, memory = optimizer.packed, optimizer.memory
    if packed is None and "theta" in memory:
        packed = PackedLayers(stack, offset=None)
        packed.theta[...], packed.scale[...] = memory["theta"], memory["scale"]
    return packed if packed is not None and packed.holds(stack) else None


def _read_only(array: Array) -> Array:
    """Return a read-only view, so that numba compiles only once, whatever the user passed."""
    view = array.view()
    view.flags.writeable = False
    return view


def _as_rows(X: Matrix, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return (indptr, indices, data) for the compiled loop; only data is used for dense rows."""
    if sparse.issparse(X):
        return (
            np.ascontiguousarray(X.indptr, dtype=np.int64),
            np.ascontiguousarray(X.indices, dtype=np.int32),
            np.ascontiguousarray(X.data, dtype=dtype),
        )
    return np.empty(0, np.int64), np.empty(0, np.int32), X.reshape(-1)


def _compress(X: Array) -> Matrix:
    """Convert a dense matrix that is mostly zeros to CSR; return any other matrix unchanged.

    Finding the non-zeros again for every sample of every epoch costs as much as the step itself.
    """
    n_samples, n = X.shape
    if X.size < WORTH_COMPRESSING:
        return X
    flat = _read_only(X.reshape(-1))
    counts = np.zeros(n_samples, dtype=np.int64)
    kernels.count_nonzeros(flat, n, counts)
    indptr = np.zeros(n_samples + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    if indptr[-1] > X.size // 2:
        return X
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], X.dtype)
    kernels.compress_rows(flat, n, _read_only(indptr), indices, values)
    return sparse.csr_array((values, indices, indptr), shape=X.shape)
