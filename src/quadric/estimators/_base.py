"""Fitting of the network estimators: build networks, choose one, train, set attributes, warn."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from quadric.checks import Matrix
from quadric.core import Stack, draw_layers
from quadric.errors import MemoryLimitError
from quadric.estimators import _data
from quadric.estimators._attributes import FittedAttributes
from quadric.estimators._availability import IfIncremental
from quadric.estimators._defaults import (
    CHOSEN_ON,
    LBFGS_SAMPLES,
    MOST_EVALUATED,
    MOST_WORK,
    STOCHASTIC_ALPHA,
    NetworkParameters,
    batch_size_for,
    candidates,
    hidden_sizes,
    solver_for,
    training_options,
    without_choice,
)
from quadric.estimators._importances import FeatureImportances
from quadric.estimators._messages import (
    progress,
    warn_about_training,
    warn_not_converged,
    warn_user,
)
from quadric.estimators._problem import Problem
from quadric.estimators._selection import Candidate, can_choose, select
from quadric.network import Network
from quadric.training import (
    Architecture,
    History,
    Options,
    Samples,
    SampleSizes,
    TrainingState,
    train,
)

FEWEST_EVALUATIONS = 10
MERGED = 0.25  # if a smaller share of the samples is distinct, equal ones are held out separately
KEPT_LOSSES = 10_000  # by `partial_fit`, which may be called any number of times


@dataclass(frozen=True)
class _Plan:
    """How one call trains; `candidates` is empty if it continues with the last network."""

    solver: str
    incremental: bool
    rng: np.random.RandomState
    dtype: np.dtype[Any]
    candidates: list[Candidate]
    seed: int = 0
    skipped: list[dict[str, Any]] = field(default_factory=list)


class QuadraticNetworkEstimator(FittedAttributes, FeatureImportances, NetworkParameters):
    """An estimator that trains a network; see `QuadraticClassifier` for the parameters."""

    _y_dtype: ClassVar[Any] = None  # the dtype to which y is converted
    _shown_name = ""  # in messages, if another estimator uses this one; else the name of the class

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The samples.
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

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Self:
        anew = "network_" not in vars(self) or not (self.warm_start or incremental)
        data = _data.check_fit_data(self, X, y, sample_weight, reset=anew, y_dtype=self._y_dtype)
        problem = self._problem(data, anew=anew, incremental=incremental)
        plan = self._plan(data.X, problem, anew=anew, incremental=incremental)
        if plan.candidates:
            plan = self._affordable(data, problem, plan)
        else:
            self._check_memory(data, problem, plan)
        if anew:
            _data.warn_about_scales(data.X, self._shown_name or type(self).__name__)
            self._state = TrainingState()
            for name in ("network_", "selection_"):  # of an earlier fit
                self.__dict__.pop(name, None)
        Y = problem.encode(plan.dtype)
        samples = _data.as_samples(data.X, Y, problem.weight, plan.dtype)
        if plan.solver == "lbfgs":
            self._minimize(samples, problem, plan)
        else:
            self._run_epochs(samples, problem, plan)
        return self

    @abstractmethod
    def _problem(self, data: _data.FitData, *, anew: bool, incremental: bool) -> Problem:
        """Return what the network learns; `anew` is true if the call starts with a new network."""

    def _plan(self, X: Matrix, problem: Problem, *, anew: bool, incremental: bool) -> _Plan:
        """Choose a solver and candidates, or check that the last network can be trained further."""
        rng, (n_samples, n_inputs) = check_random_state(self.random_state), X.shape
        solver = solver_for(self, n_samples, incremental=incremental)
        if not anew:
            self._check_continuation(problem)
            if solver != "lbfgs" or self.alpha != "auto":
                self._alpha = STOCHASTIC_ALPHA if self.alpha == "auto" else float(self.alpha)
            return _Plan(solver, incremental, rng, self.network_.dtype, [])
        among = candidates(self, n_samples, n_inputs, problem.n_outputs, solver)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        return _Plan(solver, incremental, rng, np.dtype(self.dtype or X.dtype), among, seed)

    def _check_continuation(self, problem: Problem) -> None:
        """Raise ValueError if the parameters or targets do not match the last network."""
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

    def _affordable(self, data: _data.FitData, problem: Problem, plan: _Plan) -> _Plan:
        """Leave out candidates that would need too much time or memory.

        Raise MemoryLimitError, before anything large is allocated, if no candidate is left.
        """
        N, n = data.X.shape
        kept: list[Candidate] = []
        errors: list[MemoryLimitError] = []
        for layers, group in groupby(plan.candidates, key=lambda one: one.layers):
            same = list(group)
            work = Architecture(n, layers, plan.dtype.itemsize).n_parameters * min(N, LBFGS_SAMPLES)
            try:
                self._check_memory(data, problem, replace(plan, candidates=same))
            except MemoryLimitError as error:
                errors.append(error)
                plan.skipped.append({"shape": str(same[0]), "skipped": error.fact})
                continue
            if kept and work > MOST_WORK:
                plan.skipped.append({"shape": str(same[0]), "skipped": "It would take too long."})
            else:
                kept += same
        if errors and not kept:
            raise min(errors, key=lambda error: error.needed)
        return replace(plan, candidates=kept)

    def _check_memory(self, data: _data.FitData, problem: Problem, plan: _Plan) -> None:
        """Raise MemoryLimitError before anything large is allocated."""
        X, size, batch_size = data.X, plan.dtype.itemsize, batch_size_for(self, data.X.shape[0])
        shapes = [Architecture(X.shape[1], one.layers, size) for one in plan.candidates]
        drawn = max((shape.drawing_bytes(self.init) for shape in shapes), default=0)
        shapes = shapes or [Architecture.of(self.network_.layers)]
        sizes = SampleSizes.of(X, problem.n_outputs, size, data.allocated)
        if plan.solver == "lbfgs":
            _data.check_lbfgs(X, shapes, sizes, drawn=drawn, standardize=problem.standardize)
            return
        per_sample = plan.solver == "sgd" and batch_size == 1 and self.momentum == 0
        _data.check_epochs(
            X,
            shapes[0],
            sizes,
            solver="per sample" if per_sample else plan.solver,
            batch_size=batch_size,
            drawn=drawn,
            early_stopping=self.early_stopping,
            merge=batch_size >= X.shape[0] and not plan.incremental,
        )

    def _minimize(self, samples: Samples, problem: Problem, plan: _Plan) -> None:
        """Choose among the candidates, then run L-BFGS."""
        options = training_options(self, plan.solver, len(samples), incremental=plan.incremental)
        among, used, tried = plan.candidates, 0, plan.skipped
        many = len(samples) > LBFGS_SAMPLES and len(among) > 1
        compared_on = _data.without_zero_weights(samples)  # to choose among the candidates
        if many:
            rows = plan.rng.permutation(len(compared_on))[:CHOSEN_ON]
            compared_on = compared_on.take(np.sort(rows))
        else:
            samples = _data.merge_repeated(compared_on)
            compared_on = samples if len(samples) >= MERGED * len(compared_on) else compared_on
        if not can_choose(among, len(compared_on), options):
            among = among and [without_choice(among, samples.X.shape[1])]
        network = self._build(among[0], samples, problem, plan) if among else self.network_
        alpha = among[0].alpha if among else self._alpha
        mean, scale = np.zeros(1), np.ones(1)
        if problem.standardize:
            last = network.layers[-1]
            samples, mean, scale = _data.standardize(samples, last)
            targets = ((compared_on.Y - mean) / scale).astype(samples.Y.dtype)
            compared_on = replace(compared_on, Y=targets)
            if not among:  # a warm start: the network predicts in the units of the targets
                _data.scale_outputs(last, 1 / scale, -mean / scale)
        try:
            if len(among) > 1:
                choice = select(
                    among,
                    lambda candidate: self._build(candidate, samples, problem, plan),
                    problem.loss,
                    compared_on,
                    options,
                    plan.rng,
                )
                network, alpha = choice.network, choice.candidate.alpha
                used, tried = choice.iterations, [*choice.tried, *plan.skipped]
                left = self.max_fun - choice.evaluations
                options = replace(
                    options,
                    epochs=max(1, options.epochs - used),
                    max_evaluations=left,
                    relevance=choice.relevance,
                )
                if many:
                    work = len(samples) * choice.n_parameters
                    most = max(FEWEST_EVALUATIONS, int(MOST_EVALUATED / work))
                    options = replace(options, max_evaluations=min(left, most))
            self.network_, self._alpha = network, alpha
            self._train(samples, problem, options, plan)
        finally:
            if problem.standardize:
                _data.scale_outputs(network.layers[-1], scale, mean)
        if plan.candidates:
            self.selection_ = tried
        self.n_iter_ += used
        # with solver='auto', the limits are a budget, and reaching them is not a failure
        if self._state.history.exhausted and self.solver == "lbfgs":
            warn_not_converged(
                f"lbfgs failed to converge after {self.n_iter_} iteration(s): increase max_iter "
                f"({self.max_iter}) or max_fun ({self.max_fun}), or scale the data."
            )

    def _run_epochs(self, samples: Samples, problem: Problem, plan: _Plan) -> None:
        """Run epochs of 'sgd' or 'adam', with early stopping if it is enabled.

        If all samples form one batch, equal ones are merged. Therefore an integer weight gives the
        same result as repeating the sample, and no copy of a training sample is held out.
        """
        options = training_options(self, plan.solver, len(samples), incremental=plan.incremental)
        validate = None
        if options.batch_size >= len(samples) and not plan.incremental:
            merged = _data.merge_repeated(samples)
            if not self.early_stopping or len(merged) >= MERGED * len(samples):
                samples = merged
        if self.early_stopping:
            samples, held = _data.hold_out(
                samples, self.validation_fraction, plan.rng, by_class=problem.stratify
            )

            def validate() -> float:
                z = Stack(self.network_.layers, self.network_.activations).logits(held.X)
                # non-finite logits get the worst score
                return problem.score(z, held.Y, held.weight) if np.isfinite(z).all() else -np.inf

        for candidate in plan.candidates:  # one, or none on a warm start
            self.network_ = self._build(candidate, samples, problem, plan)
            self._alpha = candidate.alpha
        try:
            self._train(samples, problem, options, plan, validate)
        except KeyboardInterrupt:
            warn_user("Training interrupted by user.")
        if plan.incremental:
            self._state.trim(KEPT_LOSSES)
        warn_about_training(options, self._state, incremental=plan.incremental)

    def _build(
        self, candidate: Candidate, samples: Samples, problem: Problem, plan: _Plan
    ) -> Network:
        """Return a new network with random initial values; all candidates use the same seed."""
        rng, n = np.random.default_rng(plan.seed), samples.X.shape[1]
        layers = draw_layers(n, candidate.layers, init=self.init, rng=rng, dtype=plan.dtype)
        return Network(layers, [self.activation] * (len(layers) - 1) + [problem.last])

    def _train(
        self,
        samples: Samples,
        problem: Problem,
        options: Options,
        plan: _Plan,
        validate: Callable[[], float] | None = None,
    ) -> None:
        if "_state" not in vars(self):  # a model file keeps the records, not the solver's state
            scores = list(self.validation_scores_ or [])
            history = History(0, list(self.loss_curve_), scores)
            self._state = TrainingState(history, samples=self.t_)
        if not self.early_stopping:
            self._state.history.validation_score = []
        network, options = self.network_, replace(options, l2=self._alpha)
        stack = Stack(network.layers, network.activations, problem.loss)
        title = self._shown_name or type(self).__name__
        try:
            with progress(title, options.epochs, verbose=self.verbose) as report:
                state, rng = self._state, plan.rng
                train(stack, samples, options, state, rng=rng, validate=validate, callback=report)
        finally:  # a model whose training was interrupted can be used and saved
            self._set_attributes()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
