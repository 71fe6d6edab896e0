"""Fitting of the network estimators: validate, pose the problem, choose, train, publish."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from quadric.core import Stack, draw_layers
from quadric.errors import MemoryLimitError
from quadric.estimators import _data
from quadric.estimators._auto_choice import (
    STOCHASTIC_ALPHA,
    Candidate,
    Choice,
    candidates,
    choose,
)
from quadric.estimators._data import FitData, Problem
from quadric.estimators._fitted_attributes import FittedAttributes
from quadric.estimators._messages import (
    progress,
    warn_about_training,
    warn_not_converged,
    warn_user,
)
from quadric.estimators._parameters import (
    IfIncremental,
    NetworkParameters,
    hidden_sizes,
    solver_for,
)
from quadric.network import Network
from quadric.training import (
    Architecture,
    BlockSamples,
    History,
    Options,
    Samples,
    TrainingState,
    train,
)

BATCH_SIZE = 200
GROWTH = 10.0  # an epoch diverges if its loss exceeds this many times the loss at the start
KEPT_LOSSES = 10_000  # by `partial_fit`, which may be called any number of times
MOST_WORK = 3e8  # parameters times samples; a larger candidate is left out if there are others
MOST_EVALUATED = 2e10  # parameters times samples, in all evaluations on more than `LBFGS_SAMPLES`
FEWEST_EVALUATIONS = 10
MOST_CHECKED = 1000  # samples for which the hidden neurons may all be off
STILL_FALLS = 1e-3  # of the loss, during the last tenth of the iterations
MAX_ITER = {"lbfgs": 1000, "adam": 100, "sgd": 100}  # if max_iter is None
LAST = 60  # iterations on all samples after a choice
# The options of `train` that are parameters of the estimators, and the names of the parameters.
OPTION_PARAMETERS = {
    "learning_rate": "learning_rate_init",
    "nesterov": "nesterovs_momentum",
    "max_evaluations": "max_fun",
} | {
    name: name
    for name in (
        "power_t",
        "momentum",
        "beta_1",
        "beta_2",
        "epsilon",
        "shuffle",
        "tol",
        "n_iter_no_change",
    )
}


class NewNetworks(NamedTuple):
    """The candidates for a new network, a function that draws one, and those that were skipped."""

    among: Sequence[Candidate]
    build: Callable[[Candidate], Stack]
    skipped: list[dict[str, Any]]


class QuadraticNetworkEstimator(FittedAttributes, NetworkParameters):
    """An estimator that trains a network; see `QuadraticClassifier` for the parameters."""

    _y_dtype: ClassVar[Any] = None  # the dtype to which y is converted

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to data.

        Parameters
        ----------
        X : array, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples. A Dask array or dataframe is fitted on the workers that hold it, by
            L-BFGS; y and the weights may then be Dask collections, too.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            The targets: classes, an array of 0 and 1 for multi-label data, or numbers.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the samples; all 1 if None.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        return self._fit(X, y, sample_weight, incremental=False)

    @IfIncremental
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train for one epoch; the state of the solver is kept between calls.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        return self._fit(X, y, sample_weight, incremental=True)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, *, incremental: bool, title: str | None = None
    ) -> Self:
        """Fit the model; messages name the estimator by `title`, or else by its class."""
        title = title or type(self).__name__
        if hasattr(X, "__dask_graph__"):
            from quadric.estimators import _on_cluster

            _on_cluster.refuse(self, incremental=incremental)
            given = _on_cluster.prepare(self, X, y, sample_weight)
            options = training_options(self, "lbfgs", given.n_samples, incremental=False)
            return self._fit_data(given.data, given.problem, options, title, given.samples)
        anew = "network_" not in vars(self) or not (self.warm_start or incremental)
        data = _data.check_fit_data(self, X, y, sample_weight, reset=anew, y_dtype=self._y_dtype)
        problem = self._problem(data, anew=anew, incremental=incremental)
        n_samples = data.X.shape[0]
        solver = solver_for(self, n_samples, incremental=incremental)
        options = training_options(self, solver, n_samples, incremental=incremental)
        return self._fit_data(data, problem, options, title, anew=anew)

    def _fit_data(
        self,
        data: FitData,
        problem: Problem,
        options: Options,
        title: str,
        samples: Callable[[np.dtype[Any]], _data.AnySamples] | None = None,
        *,
        anew: bool = True,
    ) -> Self:
        """Fit the model to validated data, or to `samples(dtype)`, of which `data` are a part."""
        rng = check_random_state(self.random_state)
        if anew:
            dtype = np.dtype(self.dtype or data.X.dtype)
            new = self._new_networks(data, problem, options, rng, dtype)
            _data.warn_about_scales(data.X, title)
            self._state = TrainingState()
            for name in ("network_", "selection_"):  # of an earlier fit
                self.__dict__.pop(name, None)
        else:
            new, dtype = None, self.network_.dtype
            self._check_continuation(data, problem, options)
        if samples is not None:
            every = samples(dtype)
        else:
            every = _data.as_samples(data.X, problem.encode(dtype), problem.weight, dtype)
        run: Any = self._minimize if options.solver == "lbfgs" else self._run_epochs
        run(every, problem, options, new, rng, title)
        return self

    @abstractmethod
    def _problem(self, data: FitData, *, anew: bool, incremental: bool) -> Problem:
        """Return what the network learns; `anew` is true if the call starts with a new network."""

    def _new_networks(
        self,
        data: FitData,
        problem: Problem,
        options: Options,
        rng: np.random.RandomState,
        dtype: np.dtype[Any],
    ) -> NewNetworks:
        """Return the candidates that do not need too much time or memory.

        Raise MemoryLimitError, before anything large is allocated, if no candidate is left.
        """
        n_samples, n = data.X.shape
        among = candidates(self, n_samples, n, problem.n_outputs, options.solver)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        kept: list[Candidate] = []
        skipped: list[dict[str, Any]] = []
        errors: list[MemoryLimitError] = []
        for layers, group in groupby(among, key=lambda candidate: candidate.layers):
            same, shape = list(group), Architecture(n, layers, dtype.itemsize)
            try:
                _data.check_memory(
                    data,
                    shape,
                    options,
                    candidates=len(same),
                    drawn=shape.drawing_bytes(self.init),
                    standardize=problem.standardize,
                    early_stopping=self.early_stopping,
                )
            except MemoryLimitError as error:
                errors.append(error)
                skipped.append({"shape": str(same[0]), "skipped": error.fact})
                continue
            if kept and shape.n_parameters * min(n_samples, _data.LBFGS_SAMPLES) > MOST_WORK:
                skipped.append({"shape": str(same[0]), "skipped": "It would take too long."})
            else:
                kept += same
        if errors and not kept:
            raise min(errors, key=lambda error: error.needed)

        def build(candidate: Candidate) -> Stack:
            """Return a new network with random initial values; all use the same seed."""
            layers = draw_layers(
                n, candidate.layers, init=self.init, rng=np.random.default_rng(seed), dtype=dtype
            )
            hidden = len(layers) - 1
            return Stack(layers, [self.activation] * hidden + [problem.last], problem.loss)

        return NewNetworks(kept, build, skipped)

    def _check_continuation(self, data: FitData, problem: Problem, options: Options) -> None:
        """Raise an error unless the last network can be trained further, and set the penalty."""
        network, hidden = self.network_, hidden_sizes(self)
        widths = tuple(layer.n_outputs for layer in network.layers[:-1])
        same_shape = isinstance(self.hidden_layer_sizes, str) or hidden == widths
        outputs = network.n_outputs, network.activations[-1]
        if not same_shape or (problem.n_outputs, problem.last) != outputs:
            raise ValueError(
                "warm_start and partial_fit continue with the network of the last call, which has "
                f"hidden layers {widths}, {outputs[0]} outputs and the last activation "
                f"{outputs[1]!r}. The parameters and y require hidden layers {hidden}, "
                f"{problem.n_outputs} outputs and {problem.last!r}. Use a new estimator, or "
                "warm_start=False."
            )
        if options.solver != "lbfgs" or self.alpha != "auto":
            self._alpha = STOCHASTIC_ALPHA if self.alpha == "auto" else float(self.alpha)
        _data.check_memory(
            data,
            Architecture.of(network.layers),
            options,
            standardize=problem.standardize,
            early_stopping=self.early_stopping,
        )

    def _minimize(
        self,
        samples: _data.AnySamples,
        problem: Problem,
        options: Options,
        new: NewNetworks | None,
        rng: np.random.RandomState,
        title: str,
    ) -> None:
        """Choose a new network, or continue with the last one, and run L-BFGS."""
        limits, several = options, new is not None and len(new.among) > 1
        many = several and len(samples) > _data.LBFGS_SAMPLES
        samples, compared_on = _data.samples_to_minimize(samples, rng, several=several)
        last_kind = self.network_.layers[-1].kind if new is None else new.among[0].layers[-1][0]
        units = _data.Units.of(samples, last_kind) if problem.standardize else None
        if units is not None:
            samples, compared_on = units.standardized(samples), units.standardized(compared_on)
        if new is not None:
            choice = choose(new.among, new.build, compared_on, options, rng)
            self._publish_network(choice.candidate, choice.stack)
            options = _after(choice, options, len(samples) if many else 0)
        last = self.network_.layers[-1]
        if units is not None and new is None:  # the network predicts in the units of the targets
            _data.scale_outputs(last, 1 / units.scale, -units.mean / units.scale)
        try:
            self._train(samples, problem.loss, options, rng, title)
        finally:
            if units is not None:
                _data.scale_outputs(last, units.scale, units.mean)
        if new is not None:
            self.selection_ = [*choice.tried, *new.skipped]
            self.n_iter_ += choice.iterations
        self._warn_about_limits(limits, choice.evaluations if new is not None else 0)
        if isinstance(samples, Samples):
            self._warn_if_off(samples)

    def _warn_if_off(self, samples: Samples) -> None:
        """Warn if all neurons of a hidden layer are off, so that the network is a constant.

        Their gradients are zero, so the training ends as if it had converged.
        """
        network = self.network_
        if self.activation != "relu" or len(network.layers) == 1:
            return
        some = samples.take(np.arange(min(len(samples), MOST_CHECKED)))
        z = Stack(network.layers, network.activations).logits(some.X)
        if np.ptp(z, axis=0).max() == 0 < np.ptp(some.Y, axis=0).max():
            warn_not_converged(
                "All neurons of a hidden layer are off (relu returns 0) for every sample, so the "
                "predictions are the same for all. Set another random_state, more hidden neurons, "
                "or activation='tanh'."
            )

    def _warn_about_limits(self, limits: Options, evaluations: int) -> None:
        """Warn if the iterations or evaluations ran out.

        With solver='auto', the limits are a budget. Reaching them is a failure if the loss would
        fall further.
        """
        losses = self.loss_curve_
        falls = losses[-1 - len(losses) // 10] - losses[-1] > STILL_FALLS * abs(losses[-1])
        evaluations += self._state.call.evaluations
        out = self.n_iter_ >= limits.epochs or evaluations >= limits.max_evaluations
        if self._state.history.exhausted and out and (falls or self.solver == "lbfgs"):
            warn_not_converged(
                f"lbfgs failed to converge after {self.n_iter_} iteration(s): increase max_iter "
                f"({limits.epochs}) or max_fun ({self.max_fun}), or scale the data."
            )

    def _run_epochs(
        self,
        samples: Samples,
        problem: Problem,
        options: Options,
        new: NewNetworks | None,
        rng: np.random.RandomState,
        title: str,
    ) -> None:
        """Run epochs of 'sgd' or 'adam', with early stopping if it is enabled.

        If all samples form one batch, equal ones are merged. Therefore an integer weight gives the
        same result as repeating the sample, and no copy of a training sample is held out.
        """
        validate = None
        if options.batch_size >= len(samples) and not options.resume:
            merged = _data.merge_repeated(samples)
            if not self.early_stopping or len(merged) >= _data.MERGED * len(samples):
                samples = merged
        if self.early_stopping:
            samples, held = _data.hold_out(
                samples, self.validation_fraction, rng, by_class=problem.stratify
            )

            def validate() -> float:
                z = Stack(self.network_.layers, self.network_.activations).logits(held.X)
                # non-finite logits get the worst score
                return problem.score(z, held.Y, held.weight) if np.isfinite(z).all() else -np.inf

        if new is not None:
            candidate = new.among[0]  # the only one
            self._publish_network(candidate, new.build(candidate))
        try:
            self._train(samples, problem.loss, options, rng, title, validate)
        except KeyboardInterrupt:
            warn_user("Training interrupted by user.")
        if options.resume:
            self._state.trim(KEPT_LOSSES)
        warn_about_training(options, self._state)
        if not options.resume:
            self._warn_if_off(samples)

    def _publish_network(self, candidate: Candidate, stack: Stack) -> None:
        self.network_, self._alpha = Network(stack.layers, stack.activations), candidate.alpha

    def _train(
        self,
        samples: _data.AnySamples,
        loss: str,
        options: Options,
        rng: np.random.RandomState,
        title: str,
        validate: Callable[[], float] | None = None,
    ) -> None:
        if "_state" not in vars(self):  # a model file keeps the records, not the solver's state
            history = History(0, list(self.loss_curve_), list(self.validation_scores_ or []))
            self._state = TrainingState(history, samples=self.t_)
        state, options = self._state, replace(options, l2=self._alpha)
        if not self.early_stopping:
            state.history.validation_score = []
        stack = Stack(self.network_.layers, self.network_.activations, loss)
        try:
            on_cluster = isinstance(samples, BlockSamples)
            rows = len(samples) if on_cluster else 0
            with progress(title, options.epochs, rows) if self.verbose else nullcontext() as report:
                run: Any = train
                if on_cluster:
                    from quadric.estimators import _on_cluster

                    run = _on_cluster.train
                run(stack, samples, options, state, rng=rng, validate=validate, callback=report)
        finally:  # a model whose training was interrupted can be used and saved
            self._set_attributes()

    def _set_attributes(self) -> None:
        """Set the fitted attributes of scikit-learn's networks from the training state."""
        state, early = self._state, self.early_stopping
        history = state.history
        self.n_iter_, self.t_ = state.call.epochs, state.samples
        self.loss_curve_ = history.loss
        self.loss_ = history.loss[-1] if history.loss else np.nan
        self.best_loss_ = None if early else state.stopping.best_loss
        self.validation_scores_ = history.validation_score if early else None
        self.best_validation_score_ = state.stopping.best_score if early else None


def training_options(
    parameters: NetworkParameters, solver: str, n_samples: int, *, incremental: bool
) -> Options:
    """Return the parameters as options of `train`; `l2` is set later, once alpha is known."""
    batch_size = BATCH_SIZE if parameters.batch_size == "auto" else int(parameters.batch_size)
    if batch_size > n_samples and parameters.batch_size != "auto" and solver != "lbfgs":
        warn_user(
            f"batch_size={batch_size} is larger than the number of samples, {n_samples}: all of "
            "them form one batch."
        )
    most = MAX_ITER[solver] if parameters.max_iter is None else parameters.max_iter
    return Options(
        **{option: getattr(parameters, name) for option, name in OPTION_PARAMETERS.items()},
        solver=solver,
        epochs=1 if incremental else most,
        batch_size=min(batch_size, n_samples),
        schedule=parameters.learning_rate if solver == "sgd" else "constant",
        by_weight=True,
        penalty="monomials" if parameters.alpha == "auto" and solver == "lbfgs" else "entries",
        resume=incremental,
        recover=parameters.on_divergence == "recover",
        growth=GROWTH,
    )


def _after(choice: Choice, options: Options, n_samples: int) -> Options:
    """Return the options for the rest of the training; `n_samples` is 0 unless there are many."""
    if not choice.tried:
        return options
    left = options.max_evaluations - choice.evaluations
    if n_samples:
        most = int(MOST_EVALUATED / (n_samples * choice.stack.n_parameters))
        left = min(left, max(FEWEST_EVALUATIONS, most))
    return replace(
        options,
        epochs=max(1, min(options.epochs - choice.iterations, LAST)),
        max_evaluations=left,
        relevance=choice.relevance,
    )
