"""Fit the network of a classifier or regressor: build, choose, train, set attributes, warn."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from quadric._utils.arrays import Array, Matrix
from quadric.core._initial_values import draw_layer
from quadric.core._stack import Stack
from quadric.estimators import _data as data
from quadric.estimators import _selection as selection
from quadric.estimators._messages import (
    progress,
    warn_about_recoveries,
    warn_about_the_end,
    warn_not_converged,
    warn_user,
)
from quadric.estimators._selection import Candidate
from quadric.network import Network
from quadric.training._memory_needs import (
    Architecture,
    SampleSizes,
    check_training,
    compressed_bytes,
    matrix_bytes,
)
from quadric.training._options import Options
from quadric.training._samples import Samples
from quadric.training._state import History, TrainingState
from quadric.training._train import train

GROWTH = 10.0  # times the loss at the start: a step was too long
KEPT_LOSSES = 10_000  # of `partial_fit`, which may be called for ever


@dataclass(frozen=True)
class Task:
    """What is learned: targets, loss and last activation, score and strata.

    `encode(dtype)` makes the targets, shape (n_samples, n_outputs): they may be much larger than y,
    so that memory is asked for first. `score` of (logits, targets, weights) is for early stopping,
    which holds out a part of every class if asked to `stratify`. `standardise` asks for targets in
    units of their own standard deviation ('lbfgs'), so that the penalty is independent of units.
    """

    encode: Callable[[np.dtype[Any]], Array]
    n_outputs: int
    loss: str
    last: str
    score: Callable[[Array, Array, Array | None], float]
    stratify: bool = False
    standardise: bool = False


@dataclass(frozen=True)
class _Plan:
    """How one call is going to train; `among` and `seed` are for a new network."""

    solver: str
    incremental: bool
    rng: np.random.RandomState
    dtype: np.dtype[Any]
    among: list[Candidate]
    seed: int = 0


def starts_anew(estimator: Any, *, incremental: bool) -> bool:
    """Whether a call begins with a new network."""
    return "network_" not in vars(estimator) or not (estimator.warm_start or incremental)


def fit_network(
    estimator: Any,
    X: Matrix,
    weight: Array | None,
    task: Task,
    *,
    incremental: bool,
    converted: int = 0,
) -> None:
    """Train the estimator's network on checked data, and set its fitted attributes.

    `converted` is the bytes that checking X has taken.
    """
    plan = _plan(estimator, X, task, incremental=incremental)
    _check_memory(estimator, X, task, plan, converted)
    if plan.among:
        data.warn_about_scales(X, type(estimator).__name__)
        estimator._state = TrainingState()
    samples = data.as_samples(X, task.encode(plan.dtype), weight, plan.dtype)
    if plan.solver == "lbfgs":
        samples = data.merge_repeated(samples)
        _minimise(estimator, samples, task, plan)
    else:
        _run_epochs(estimator, samples, task, plan)


def _plan(estimator: Any, X: Matrix, task: Task, *, incremental: bool) -> _Plan:
    """Choose the solver; check that the old network serves if it is to be trained on."""
    if incremental and estimator.early_stopping:
        raise ValueError("partial_fit does not support early_stopping=True")
    rng, (n_samples, n_inputs) = check_random_state(estimator.random_state), X.shape
    solver = estimator.solver
    if solver == "auto":
        batches = incremental or estimator.early_stopping or estimator.batch_size != "auto"
        solver = selection.auto_solver(n_samples, batches=batches)
    if not starts_anew(estimator, incremental=incremental):
        _check_continuation(estimator, task)
        if estimator.alpha != "auto":
            estimator._alpha = float(estimator.alpha)
        return _Plan(solver, incremental, rng, estimator.network_.dtype, [])
    dtype = np.dtype(estimator.dtype or X.dtype)
    alpha = None if estimator.alpha == "auto" else float(estimator.alpha)
    among = selection.candidates(selection.hidden_sizes(estimator), alpha, n_inputs, solver)
    for candidate in among:  # layer_kinds that mean nothing are told first of all
        selection.shape_of(estimator, candidate, task.n_outputs)
    seed = int(rng.randint(np.iinfo(np.int32).max))
    return _Plan(solver, incremental, rng, dtype, among, seed)


def _check_memory(estimator: Any, X: Matrix, task: Task, plan: _Plan, converted: int) -> None:
    """Raise MemoryLimitError before anything is made of the data."""
    N, size = X.shape[0], plan.dtype.itemsize
    if plan.among:
        layers = [selection.shape_of(estimator, one, task.n_outputs) for one in plan.among]
        shapes = [Architecture(X.shape[1], one, size) for one in layers]
    else:
        shapes = [Architecture.of(estimator.network_.layers)]
    shape = max(shapes, key=lambda one: one.n_parameters)
    sizes = SampleSizes.of(X, task.n_outputs, size, converted)
    own = sum(one.n_parameters for one in shapes) * size
    own += shape.drawing_bytes(estimator.init) if plan.among else 0
    as_it_is = X.dtype == plan.dtype and not sparse.issparse(X) and X.flags.c_contiguous
    cast = 0 if as_it_is else sizes.X
    if plan.solver == "lbfgs":
        scaling = sizes.all + sizes.Y + 3 * N * task.n_outputs * 8 if task.standardise else 0
        held = sizes.all + (sizes.Y if task.standardise else 0)
        held += sizes.all if len(shapes) > 1 else 0  # kept and held out while one is chosen
        training = held + max(own, matrix_bytes(X, 8), shape.solver_bytes("lbfgs", N))
        check_training(shape, sizes, max(data.merging_bytes(X, sizes) + cast, scaling, training))
        return
    held = cast + sizes.Y + (2 * sizes.all if estimator.early_stopping else 0)
    batch = selection.BATCH_SIZE if estimator.batch_size == "auto" else estimator.batch_size
    held += min(batch, N) * (X.shape[1] + task.n_outputs) * size
    solver = plan.solver
    if solver == "sgd" and batch == 1 and estimator.momentum == 0:
        solver = "per sample"
        held += compressed_bytes(X, size)
    check_training(shape, sizes, held + max(own, shape.solver_bytes(solver, N)))


def _minimise(estimator: Any, samples: Samples, task: Task, plan: _Plan) -> None:
    """L-BFGS, after a choice among the candidates."""
    options = _options(estimator, plan, len(samples))
    among, used = plan.among, 0
    if not selection.worth_choosing(among, len(samples), options):
        among = among[:1]
    networks = [_build(estimator, candidate, samples, task, plan) for candidate in among]
    if among:
        estimator.network_, estimator._alpha = networks[0], among[0].alpha
    mean, scale = np.zeros(1), np.ones(1)
    if task.standardise:
        last = estimator.network_.layers[-1]
        samples, mean, scale = data.standardise(samples, last)
        if not among:  # a warm start: the network is in the targets' own units
            data.scale_outputs(last, 1 / scale, -mean / scale)
    try:
        if len(among) > 1:
            entries = list(zip(among, networks, strict=True))
            choice = selection.select(entries, task.loss, samples, options, plan.rng)
            estimator.network_, estimator._alpha = choice.network, choice.candidate.alpha
            used = choice.iterations
            options = replace(
                options,
                epochs=max(1, options.epochs - used),
                max_evaluations=estimator.max_fun - choice.evaluations,
            )
        _train(estimator, samples, task, replace(options, l2=estimator._alpha), plan)
    finally:
        if task.standardise:
            data.scale_outputs(estimator.network_.layers[-1], scale, mean)
    estimator.n_iter_ += used
    if estimator._state.history.exhausted and estimator.solver == "lbfgs":  # for 'auto' a budget
        limits = f"increase max_iter ({estimator.max_iter}) or max_fun ({estimator.max_fun})"
        warn_not_converged(
            f"lbfgs failed to converge after {estimator.n_iter_} iteration(s): {limits}, or scale "
            "the data."
        )


def _run_epochs(estimator: Any, samples: Samples, task: Task, plan: _Plan) -> None:
    """Epochs of 'sgd' or 'adam', with early stopping if asked for."""
    validate = None
    if estimator.early_stopping:
        strata = data.places(samples.Y) if task.stratify else None
        samples, held = data.hold_out(samples, strata, estimator.validation_fraction, plan.rng)

        def validate() -> float:
            network = estimator.network_
            z = Stack(network.layers, network.activations).logits(held.X)
            # what is not finite is no answer, and the worst score
            return task.score(z, held.Y, held.weight) if np.isfinite(z).all() else -np.inf

    if plan.among:
        (candidate,) = plan.among
        estimator.network_ = _build(estimator, candidate, samples, task, plan)
        estimator._alpha = candidate.alpha
    options = replace(_options(estimator, plan, len(samples)), l2=estimator._alpha)
    try:
        _train(estimator, samples, task, options, plan, validate)
    except KeyboardInterrupt:
        warn_user("Training interrupted by user.")
        set_attributes(estimator)
    if plan.incremental:
        estimator._state.trim(KEPT_LOSSES)
    else:
        warn_about_the_end(options, estimator._state)
    warn_about_recoveries(options, estimator._state)


def _train(
    estimator: Any,
    samples: Samples,
    task: Task,
    options: Options,
    plan: _Plan,
    validate: Callable[[], float] | None = None,
) -> None:
    network, name = estimator.network_, type(estimator).__name__
    if "_state" not in vars(estimator):  # a model file keeps the records, not the memory
        history = History(0, list(estimator.loss_curve_), list(estimator.validation_scores_ or []))
        estimator._state = TrainingState(history, samples=estimator.t_)
    if not estimator.early_stopping:
        estimator._state.history.validation_score = []
    with progress(name, options.epochs) if estimator.verbose else nullcontext() as report:
        train(
            Stack(network.layers, network.activations, task.loss),
            samples,
            options,
            estimator._state,
            rng=plan.rng,
            validate=validate,
            callback=report,
        )
    set_attributes(estimator)


def _build(
    estimator: Any, candidate: Candidate, samples: Samples, task: Task, plan: _Plan
) -> Network:
    """A new network; all candidates draw from the same seed."""
    rng, n, layers = np.random.default_rng(plan.seed), samples.X.shape[1], []
    for kind, m in selection.shape_of(estimator, candidate, task.n_outputs):
        layers.append(draw_layer(kind, n, m, init=estimator.init, rng=rng, dtype=plan.dtype))
        n = m
    return Network(layers, [estimator.activation] * len(candidate.hidden) + [task.last])


def set_attributes(estimator: Any) -> None:
    """The fitted attributes of scikit-learn's networks."""
    state, early = estimator._state, estimator.early_stopping
    history = state.history
    estimator.n_iter_, estimator.t_ = state.epochs, state.samples
    estimator.loss_curve_ = history.loss
    estimator.loss_ = history.loss[-1] if history.loss else np.nan
    estimator.best_loss_ = None if early else state.best_loss
    estimator.validation_scores_ = history.validation_score if early else None
    estimator.best_validation_score_ = state.best_score if early else None


# ---- settings ----


def _options(estimator: Any, plan: _Plan, n_samples: int) -> Options:
    """The estimator's parameters as options of the engine; `l2` is added when alpha is known."""
    batch_size = estimator.batch_size
    if batch_size == "auto":
        batch_size = min(selection.BATCH_SIZE, n_samples)
    elif plan.solver != "lbfgs" and batch_size > n_samples:
        warn_user(
            f"batch_size={batch_size} is larger than the number of samples, {n_samples}: "
            "all of them make one batch."
        )
        batch_size = n_samples
    return Options(
        solver=plan.solver,
        epochs=1 if plan.incremental else estimator.max_iter,
        learning_rate=estimator.learning_rate_init,
        schedule=estimator.learning_rate if plan.solver == "sgd" else "constant",
        power_t=estimator.power_t,
        batch_size=batch_size,
        by_weight=True,
        momentum=estimator.momentum,
        nesterov=estimator.nesterovs_momentum,
        beta_1=estimator.beta_1,
        beta_2=estimator.beta_2,
        epsilon=estimator.epsilon,
        shuffle=estimator.shuffle,
        tol=estimator.tol,
        n_iter_no_change=estimator.n_iter_no_change,
        max_evaluations=estimator.max_fun,
        resume=plan.incremental,
        recover=estimator.on_divergence == "recover",
        # the one step of a single batch shows only in the next call, on other samples
        growth=None if plan.incremental and batch_size == n_samples else GROWTH,
    )


def _check_continuation(estimator: Any, task: Task) -> None:
    """Raise ValueError if the parameters or targets do not suit the network of the last call."""
    network = estimator.network_
    widths = [layer.n_outputs for layer in network.layers[:-1]]
    hidden = selection.hidden_sizes(estimator)
    same_shape = isinstance(estimator.hidden_layer_sizes, str) or hidden == widths
    if same_shape and (task.n_outputs, task.last) == (network.n_outputs, network.activations[-1]):
        return
    raise ValueError(
        "warm_start and partial_fit continue with the network of the last call, which has hidden "
        f"layers {tuple(widths)}, {network.n_outputs} outputs and the last activation "
        f"{network.activations[-1]!r}. The parameters and y ask for hidden layers "
        f"{hidden if hidden is None else tuple(hidden)}, {task.n_outputs} outputs and "
        f"{task.last!r}. Use a new estimator, or warm_start=False."
    )
